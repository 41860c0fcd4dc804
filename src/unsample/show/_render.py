r"""A `Sheet` as text, as HTML for notebooks, as LaTeX and as Markdown; every name is escaped.

Names come from files. None of them may move a terminal's cursor, end a table row or run code.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable

from unsample._rules import printable
from unsample.show._paper import paper
from unsample.show._sheet import Cell, Number, Table, sheet

_MARKDOWN = re.compile(r"([\\`*_\[\]#|~!])")
_LATEX = str.maketrans(
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
        "\N{PLUS-MINUS SIGN}": r"$\pm$",
        "\N{MULTIPLICATION SIGN}": r"$\times$",
        "\N{MINUS SIGN}": "$-$",
        "\N{EN DASH}": "--",
        "\N{NOT EQUAL TO}": r"$\neq$",
    }
)


def _one_line(text: object) -> str:
    """Return printable text on one line."""
    return printable(str(text)).replace("\n", "\\n").replace("\t", "\\t")


def as_text(result: object, *, warnings: bool = True, verbose: bool = False) -> str:
    """Return a result as aligned tables, ``verbose`` with bounds; ``warnings`` stand below them."""
    shown = sheet(result)
    tables = shown.tables if verbose else [table.brief for table in shown.tables]
    return "\n\n".join(
        filter(
            None,
            [
                "\n".join(map(_one_line, shown.title)),
                "\n".join(map(_one_line, shown.verdicts)),
                *map(_aligned, tables),
                *map(printable, shown.notes),
                *(f"warning: {printable(text)}" for text in shown.warnings if warnings),
            ],
        )
    )


def _aligned(table: Table) -> str:
    """Return a table with a rule below its header and every column as wide as it must be."""
    whole = [[_one_line(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in whole
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def as_notebook(result: object) -> str:
    """Return a result as HTML for notebooks."""
    shown = sheet(result)
    return "".join(
        [
            _paragraph("\n".join(shown.title)),
            *map(_paragraph, shown.verdicts),
            *(_html_table(table.brief) for table in shown.tables),
            *map(_paragraph, shown.notes),
            *(_paragraph(text, "<b>Warning:</b> ") for text in shown.warnings),
        ]
    )


def _paragraph(text: str, before: str = "") -> str:
    return f"<p>{before}{html.escape(text)}</p>".replace("\n", "<br>")


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def as_latex(result: object) -> str:
    r"""Return a result as LaTeX tables, for documents that load ``booktabs``.

    The best value of each metric is bold where models are compared. Below stand the method, the
    meaning of the intervals, and what to cite.
    """
    shown = paper(result)
    lines = [line for note in shown.notes for line in note.splitlines()]
    lines = [*shown.verdicts, *lines, *(f"Warning: {text}" for text in shown.warnings)]
    text = _latex_escaped(" ".join(line.rstrip(".") + "." for line in lines))
    below = [rf"\par\smallskip\footnotesize {text}"] if lines else []
    blocks = []
    for place, table in enumerate(shown.tables):
        caption = ". ".join([*filter(None, [table.caption]), *shown.title])
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex_escaped(caption)}}}",
            rf"\begin{{tabular}}{{{''.join(table.align)}}}",
            r"\toprule",
            _latex_row(table.columns),
            r"\midrule",
            *map(_latex_row, table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            *(below if place == len(shown.tables) - 1 else []),
            r"\end{table}",
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _latex_row(cells: Iterable[Cell]) -> str:
    """Return the cells as a row of a LaTeX table."""
    return " & ".join(_cells(cells, _latex_escaped, r"\textbf{%s}")) + r" \\"


def _latex_escaped(text: str) -> str:
    """Return text that LaTeX sets as it is, on one line."""
    plain = " ".join(printable(text).split())
    # A hyphen before a number is a minus.
    return re.sub(r"(?<![\w-])-(?=[0-9])", "$-$", plain.translate(_LATEX))


def as_markdown(result: object) -> str:
    """Return a result as Markdown, with the pipe tables that code hosts show."""
    shown = paper(result)
    blocks = [
        *(f"**{_markdown_escaped(text)}**" for text in shown.title),
        *map(_markdown_escaped, shown.verdicts),
        *map(_markdown_table, shown.tables),
        *("  \n".join(map(_markdown_escaped, text.splitlines())) for text in shown.notes),
        *(f"**Warning:** {_markdown_escaped(text)}" for text in shown.warnings),
    ]
    return "\n\n".join(blocks) + "\n"


def _markdown_table(table: Table) -> str:
    """Return a pipe table, below its caption where it has one."""
    rule = ["---:" if side == "r" else "---" for side in table.align]
    rows = [_cells(row, _markdown_escaped, "**%s**") for row in (table.columns, *table.rows)]
    lines = [f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:])]
    caption = [f"### {_markdown_escaped(table.caption)}", ""] if table.caption else []
    return "\n".join([*caption, *lines])


def _markdown_escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    plain = " ".join(printable(text).split())
    marked = _MARKDOWN.sub(r"\\\1", plain.replace("&", "&amp;"))
    return marked.replace("<", "&lt;").replace(">", "&gt;")


def _cells(cells: Iterable[Cell], escaped: Callable[[str], str], bold: str) -> list[str]:
    """Return escaped cells, the best of them bold."""

    def shown(cell: Cell) -> str:
        if isinstance(cell, Number) and cell.best:
            return f"{bold % escaped(cell.text)} {escaped(cell.after)}".rstrip()
        return escaped(str(cell))

    return list(map(shown, cells))
