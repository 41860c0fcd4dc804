r"""The tables as LaTeX, for documents that load ``booktabs``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unsample.lab.report._results import Results
from unsample.lab.report._tables import (
    AccuracyLine,
    AccuracyTable,
    WinnerCell,
    WinnerTable,
    accuracy_tables,
    winner_tables,
)
from unsample.pages._format import DASH

__all__ = ["accuracy_latex", "winners_latex"]

_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        # Behind the end of a row these would be its options.
        "[": "{[}",
        "]": "{]}",
        "*": "{*}",
        "±": r"$\pm$",
        "×": r"$\times$",  # noqa: RUF001
        "−": "$-$",  # noqa: RUF001
        "–": "--",  # noqa: RUF001
        "≠": r"$\neq$",
    }
)


def accuracy_latex(results: Results) -> str:
    """Return the accuracy tables, the paper's numbers above ours."""
    return _document(_accuracy(table) for table in accuracy_tables(results.accuracy))


def winners_latex(results: Results) -> str:
    """Return the winner tables; a cell reads: the paper's count / ours."""
    return _document(_winners(table) for table in winner_tables(results.winners))


def _accuracy(table: AccuracyTable) -> str:
    header = ("", "", "Exact", *table.estimators)
    groups = []
    for metric, lines in table.by_metric.items():
        rows = [row for line in lines for row in _accuracy_rows(line, table.has_paper)]
        groups.append((metric, rows))
    return _table(table.caption, "ll", header, groups)


def _accuracy_rows(line: AccuracyLine, has_paper: bool) -> list[tuple[str, ...]]:
    paper = ("paper", line.paper_exact, *(c.paper if c else DASH for c in line.cells))
    ours = ("ours", line.exact, *(c.ours if c else DASH for c in line.cells))
    errors = ("bias; RMSE", "", *(f"{c.bias}; {c.rmse}" if c else DASH for c in line.cells))
    rows = [paper, ours, errors] if has_paper else [ours, errors]
    names = [line.recommender] + [""] * (len(rows) - 1)
    return [(name, *row) for name, row in zip(names, rows, strict=True)]


def _winners(table: WinnerTable) -> str:
    header = ("Metric", "Winner", *table.estimators)
    groups = [
        (
            f"K = {k}",
            [
                (line.metric, line.true_winner, *(_counts(c, table.has_paper) for c in line.cells))
                for line in lines
            ],
        )
        for k, lines in table.by_k.items()
    ]
    return _table(table.caption, "ll", header, groups)


def _counts(cell: WinnerCell | None, has_paper: bool) -> str:
    if cell is None:
        return DASH
    return f"{cell.paper} / {cell.ours}" if has_paper else cell.ours


def _table(
    caption: str,
    left: str,
    header: Sequence[str],
    groups: Iterable[tuple[str, Sequence[Sequence[str]]]],
) -> str:
    """Return a floating table as wide as the page, a rule and a name above each group of rows."""
    columns = left + "r" * (len(header) - len(left))
    lines = [
        r"\begin{table*}[t]",
        r"\centering",
        rf"\caption{{{_escaped(caption)}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _row(header),
    ]
    for name, rows in groups:
        lines.append(r"\midrule")
        lines.append(rf"\multicolumn{{{len(header)}}}{{l}}{{\textbf{{{_escaped(name)}}}}} \\")
        lines += [_row(row) for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table*}"])


def _document(tables: Iterable[str]) -> str:
    note = "% Needs \\usepackage{booktabs} and \\usepackage{graphicx}."
    return "\n\n".join([note, *tables]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(_escaped(cell) for cell in cells) + r" \\"


def _escaped(text: str) -> str:
    """Return text that LaTeX sets as it is, on one line."""
    return " ".join(str(text).split()).translate(_ESCAPES)
