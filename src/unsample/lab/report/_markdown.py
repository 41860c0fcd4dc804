"""The tables as Markdown (the pipe tables that code hosts show)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from unsample.lab.report._results import Results
from unsample.lab.report._tables import (
    AccuracyCell,
    AccuracyLine,
    AccuracyTable,
    WinnerCell,
    WinnerTable,
    accuracy_tables,
    winner_tables,
)
from unsample.pages._format import DASH

__all__ = ["accuracy_markdown", "winners_markdown"]

_SPECIAL = re.compile(r"([\\`*_\[\]#|~!])")


def accuracy_markdown(results: Results) -> str:
    """Return the accuracy tables, the paper's numbers above ours."""
    return "\n\n".join(_accuracy(table) for table in accuracy_tables(results.accuracy)) + "\n"


def winners_markdown(results: Results) -> str:
    """Return the winner tables; a cell reads: the paper's count, then ours."""
    return "\n\n".join(_winners(table) for table in winner_tables(results.winners)) + "\n"


def _accuracy(table: AccuracyTable) -> str:
    header = ("metric", "recommender", "numbers", "exact", *table.estimators)
    rows = [row for line in table.lines for row in _accuracy_rows(line, table.has_paper)]
    return _table(table.caption, header, rows, right=3)


def _accuracy_rows(line: AccuracyLine, has_paper: bool) -> list[tuple[str, ...]]:
    names = (line.metric, line.recommender)
    paper = (*names, "paper", line.paper_exact, *(c.paper if c else DASH for c in line.cells))
    ours = (*names, "ours", line.exact, *(_ours(cell) for cell in line.cells))
    errors = (*names, "bias; RMSE", "", *(_errors(cell) for cell in line.cells))
    return [paper, ours, errors] if has_paper else [ours, errors]


def _ours(cell: AccuracyCell | None) -> str:
    return f"{cell.ours} {cell.deviation.marker}".rstrip() if cell else DASH


def _errors(cell: AccuracyCell | None) -> str:
    return f"{cell.bias}; {cell.rmse}" if cell else DASH


def _winners(table: WinnerTable) -> str:
    header = ("metric", "true winner", *table.estimators)
    rows = [
        (line.metric, line.true_winner, *(_counts(cell, table.has_paper) for cell in line.cells))
        for line in table.lines
    ]
    return _table(table.caption, header, rows, right=2)


def _counts(cell: WinnerCell | None, has_paper: bool) -> str:
    if cell is None:
        return DASH
    return f"{cell.paper}, {cell.ours} {cell.deviation.marker}".rstrip() if has_paper else cell.ours


def _table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], right: int) -> str:
    """Return a heading and a table; columns from ``right`` on are aligned to the right."""
    rule = ["---"] * right + ["---:"] * (len(header) - right)
    lines = [_row(header), "| " + " | ".join(rule) + " |", *(_row(row) for row in rows)]
    return f"### {_escaped(caption)}\n\n" + "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    plain = " ".join(str(text).split())
    marked = _SPECIAL.sub(r"\\\1", plain.replace("&", "&amp;"))
    return marked.replace("<", "&lt;").replace(">", "&gt;")
