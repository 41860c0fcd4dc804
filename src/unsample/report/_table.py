"""The one table model: names of columns, rows of cells, and numbers that know their intervals.

Text, notebooks, LaTeX, Markdown, pages and charts of intervals are all made from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

DASH = "\N{EN DASH}"
#: Wider tables leave the page of a paper: then each metric has rows of its own.
_MAX_METRICS = 4
Row = TypeVar("Row")
Ends: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Number:
    """A number as it is shown, with its interval and a wider range where it has them.

    They stand in columns of their own on screens; in papers, the interval is in brackets.
    """

    text: str
    #: By which its column is sorted.
    value: float | None = None
    ends: Ends | None = None
    #: Such as the bounds.
    wider: Ends | None = None
    #: What a reader must know of the interval, such as that it is the bounds.
    word: str = ""
    #: Whether it differs from others for sure.
    bold: bool = False
    #: The values that it sums up, for charts.
    marks: tuple[float, ...] = ()

    def __str__(self) -> str:
        return self.text

    @property
    def spans(self) -> tuple[Number, Number]:
        """Return the interval and the wider range as cells of their own."""
        mark = f" ({self.word})" if self.word else ""
        first = Number(self.word)
        if self.ends is not None:
            first = Number(" .. ".join(self._written(self.ends)) + mark, self.ends[0])
        if self.wider is None:
            return first, Number("")
        return first, Number(" .. ".join(self._written(self.wider)), self.wider[0])

    @property
    def behind(self) -> str:
        """Return the interval as it stands behind the number."""
        mark = f" ({self.word})" if self.word else ""
        return mark if self.ends is None else f" [{', '.join(self._written(self.ends))}]{mark}"

    def _written(self, ends: Ends) -> list[str]:
        sign = "+" if self.text[:1] in ("+", "-") else ""
        return [digits(end, max(map(abs, ends)), sign) for end in ends]


#: What stands in a table: words, flush left, or a number, flush right.
Cell: TypeAlias = str | Number
Columns: TypeAlias = Mapping[str, Callable[[Row], Cell]]


@dataclass(frozen=True)
class Table:
    """Cells below names of columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    #: Its name on a page and in a label.
    identity: str = ""
    #: What the intervals and the wider ranges of its numbers are called.
    interval: str = ""
    wider: str = ""
    #: What bold numbers are, in papers, and the column that says it on screens.
    bold: str = ""
    told: str = ""
    #: Columns that stand on pages, and in text only where more is asked for.
    details: tuple[str, ...] = ()
    #: The column of which papers make one for each metric, if these are few.
    over_metrics: str = ""

    @classmethod
    def of(cls, rows: Iterable[Row], columns: Columns[Row]) -> Table:
        """Return the table whose columns are these functions of the rows."""
        cells = tuple(tuple(column(row) for column in columns.values()) for row in rows)
        return cls(tuple(columns), cells)

    def with_ranges(self, *, interval: bool = True) -> Table:
        """Return the table with ranges in columns of their own, as screens show it."""
        columns: dict[str, list[Cell]] = {}
        for name in self.columns:
            cells = columns[name] = self.cells(name)
            spans = [cell.spans if isinstance(cell, Number) else ("", "") for cell in cells]
            for at, label in enumerate((self.interval if interval else "", self.wider)):
                if label and any(str(span[at]) for span in spans):
                    columns[label] = [span[at] for span in spans]
        if self.told and interval:
            bold = ([cell for cell in row if getattr(cell, "bold", False)] for row in self.rows)
            columns[self.told] = ["yes" if found else "" for found in bold]
        rows = tuple(zip(*columns.values(), strict=True))
        return replace(self, columns=tuple(columns), rows=rows)

    @property
    def brief(self) -> Table:
        """Return the table without its details."""
        kept = [column for column, name in enumerate(self.columns) if name not in self.details]
        rows = tuple(tuple(row[column] for column in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[column] for column in kept), rows=rows)

    @property
    def narrow(self) -> Table:
        """Return the table as papers set it."""
        table, over = self.with_ranges(interval=False).brief, self.over_metrics
        if not over:
            return table
        wide = table.pivot("metric", over)
        few = len({*map(str, self.cells("metric"))}) <= _MAX_METRICS
        return wide if few and wide.align[0] == "l" else table

    def pivot(self, over: str, value: str) -> Table:
        """Return the table with a column of values for each word in the column ``over``."""
        keys = [name for name, side in zip(self.columns, self.align, strict=True) if side == "l"]
        keys.remove(over)
        names = dict.fromkeys(map(str, self.cells(over)))
        found: dict[tuple[Cell, ...], dict[str, Cell]] = {}
        for row in self.rows:
            cells = dict(zip(self.columns, row, strict=True))
            key = tuple(cells[name] for name in keys)
            found.setdefault(key, {})[str(cells[over])] = cells[value]
        rows = (
            (*key, *(held.get(name, Number(DASH)) for name in names)) for key, held in found.items()
        )
        return replace(self, columns=(*keys, *names), rows=tuple(rows))

    def cells(self, column: str) -> list[Cell]:
        """Return what stands in a column."""
        index = self.columns.index(column)
        return [row[index] for row in self.rows]

    @property
    def align(self) -> tuple[str, ...]:
        """Return ``"l"`` for each column of words and ``"r"`` for each column of numbers."""
        first = self.rows[0] if self.rows else ("",) * len(self.columns)
        return tuple("r" if isinstance(cell, Number) else "l" for cell in first)


def digits(value: float, scale: float, sign: str = "") -> str:
    """Return a value with the digits that numbers of this scale need: four decimals, or more."""
    return f"{value:{sign}.3g}" if 1e-6 < abs(scale) < 1e-3 else f"{value:{sign}.4f}"


def number(
    value: float,
    ends: Ends | None = None,
    wider: Ends | None = None,
    word: str = "",
    *,
    bold: bool = False,
) -> Number:
    """Return a metric with its interval; a dash stands for no value."""
    if ends is not None and math.isnan(ends[0]):
        ends, wider, word = None, None, "nothing varies"
    shown = math.isfinite(value)
    text = digits(value, value) if shown else DASH
    return Number(text, value if shown else None, ends, wider, word, bold)


def probability(value: float | None) -> Number:
    """Return a probability in per cent, or nothing where it is withheld."""
    if value is None:
        return Number("")
    if not 0.005 <= value <= 0.995:
        return Number("<1 %" if value < 0.5 else ">99 %", value)
    return Number(f"{100 * value:.0f} %", value)
