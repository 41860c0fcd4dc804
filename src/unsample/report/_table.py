"""The one table model: names of columns, rows of cells, and numbers that know their intervals.

Text, notebooks, LaTeX, Markdown, pages and charts of intervals are all made from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias, TypeVar

DASH = "\N{EN DASH}"
#: Points of the text of an article.
_PAPER = 345.0
#: Points of a letter in 10 point type: of most, of narrow ones and of wide ones.
_LETTER = 5.1
_NARROW = 2.9
_WIDE = 7.4
_NARROW_LETTERS = frozenset(".,:;'|()[] -ijlt")
#: The least points of a column of words that are broken.
_LEAST_ROOM = 100.0


class _Type(NamedTuple):
    """A size of type in LaTeX: how wide a letter is, relative to 10 points, and a gap in points."""

    command: str
    scale: float
    gap: float


_SIZES = (
    _Type("", scale=1.0, gap=12.0),
    _Type(r"\small", scale=0.925, gap=12.0),
    _Type(r"\footnotesize", scale=0.85, gap=12.0),
    _Type(r"\footnotesize\setlength{\tabcolsep}{3pt}", scale=0.85, gap=6.0),
)
Row = TypeVar("Row")
Ends: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Number:
    """A number as it is shown, with its interval and a wider range, if it has them.

    On screens both have columns of their own. In papers the interval stands in brackets.

    >>> shown = Number("0.2500", 0.25, ends=(0.2, 0.3), word="bounds")
    >>> str(shown), shown.behind, str(shown.spans[0])
    ('0.2500', ' [0.2000, 0.3000] (bounds)', '0.2000 .. 0.3000 (bounds)')
    """

    text: str
    #: The number by which a page sorts the column.
    value: float | None = None
    ends: Ends | None = None
    #: A wider range, such as the bounds.
    wider: Ends | None = None
    #: What a reader must know of the interval, such as that it is the bounds.
    word: str = ""
    #: Whether it is significantly different from the others.
    bold: bool = False
    #: The values that it is the mean of, for charts.
    marks: tuple[float, ...] = ()

    def __str__(self) -> str:
        return self.text

    @property
    def spans(self) -> tuple[Number, Number]:
        """Return the interval and the wider range as cells of their own."""
        if self.ends is None:
            interval = Number(self.word)
        else:
            interval = Number(f"{self._range(self.ends)}{self._mark}", self.ends[0])
        if self.wider is None:
            return interval, Number("")
        return interval, Number(self._range(self.wider), self.wider[0])

    @property
    def behind(self) -> str:
        """Return the interval as it stands behind the number."""
        if self.ends is None:
            return self._mark
        return f" [{', '.join(self._written(self.ends))}]{self._mark}"

    @property
    def _mark(self) -> str:
        """Return what a reader must know, in brackets behind the interval."""
        return f" ({self.word})" if self.word else ""

    def _range(self, ends: Ends) -> str:
        """Return a range as a column of its own shows it."""
        return " .. ".join(self._written(ends))

    def _written(self, ends: Ends) -> list[str]:
        """Return both ends with equally many digits, and with a sign if the number has one."""
        sign = "+" if self.text[:1] in ("+", "-") else ""
        return [digits(end, max(map(abs, ends)), sign=sign) for end in ends]


#: A cell of a table: words on the left of their column, or a number on the right.
Cell: TypeAlias = str | Number
Columns: TypeAlias = Mapping[str, Callable[[Row], Cell]]


@dataclass(frozen=True)
class Table:
    """Cells below names of columns.

    >>> columns = {"metric": lambda row: row[0], "estimate": lambda row: number(*row[1:])}
    >>> table = Table.of([("HR@10", 0.25, (0.2, 0.3)), ("AUC", 0.9, (0.8, 0.95))], columns)
    >>> table.columns, [str(cell) for cell in table.rows[0]]
    (('metric', 'estimate'), ['HR@10', '0.2500'])
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    #: Its name on a page and in a label.
    identity: str = ""
    #: What the intervals and the wider ranges of its numbers are called.
    interval: str = ""
    wider: str = ""
    #: What bold numbers mean, in papers, and the name of the column that says it on screens.
    bold: str = ""
    told: str = ""
    #: Columns that pages show always, and text only if more is asked for.
    details: tuple[str, ...] = ()
    #: The column that papers split into one column for each metric, if there are few metrics.
    over_metrics: str = ""
    #: The columns of words that name a row, beside the column ``metric``.
    keys: tuple[str, ...] = ()
    #: The same cells with more rows and fewer columns, for papers that have no room for these.
    unpivoted: Table | None = None

    @classmethod
    def of(cls, rows: Iterable[Row], columns: Columns[Row]) -> Table:
        """Return the table whose columns are these functions of the rows."""
        cells = tuple(tuple(column(row) for column in columns.values()) for row in rows)
        return cls(tuple(columns), cells)

    def with_ranges(self, *, interval: bool = True) -> Table:
        """Return the table with ranges in columns of their own, as screens show it."""
        columns: dict[str, list[Cell]] = {}
        for name in self.columns:
            cells = self.cells(name)
            columns[name] = cells
            spans = [cell.spans if isinstance(cell, Number) else ("", "") for cell in cells]
            intervals: list[Cell] = [interval_of_cell for interval_of_cell, _ in spans]
            wider: list[Cell] = [range_of_cell for _, range_of_cell in spans]
            if interval and self.interval and any(map(str, intervals)):
                columns[self.interval] = intervals
            if self.wider and any(map(str, wider)):
                columns[self.wider] = wider
        if self.told and interval:
            columns[self.told] = ["yes" if any(map(_is_bold, row)) else "" for row in self.rows]
        rows = tuple(zip(*columns.values(), strict=True))
        return replace(self, columns=tuple(columns), rows=rows)

    @property
    def brief(self) -> Table:
        """Return the table without its details."""
        kept = [index for index, name in enumerate(self.columns) if name not in self.details]
        return replace(
            self,
            columns=tuple(self.columns[index] for index in kept),
            rows=tuple(tuple(row[index] for index in kept) for row in self.rows),
            keys=tuple(name for name in self.keys if name not in self.details),
        )

    @property
    def narrow(self) -> Table:
        """Return the table as papers set it: with a column for each metric, if these fit."""
        table = self.with_ranges(interval=False).brief
        # Without keys no column would name the rows.
        if self.over_metrics and table.keys:
            pivoted = table.pivot("metric", self.over_metrics)
            if pivoted.fits_paper:
                return pivoted
        if self.unpivoted is not None and not table.fits_paper:
            return self.unpivoted.narrow
        return table

    @property
    def set_in_paper(self) -> tuple[str, str]:
        r"""Return the columns for LaTeX and the type in which the table fits an article.

        Type gets smaller where that is enough. Otherwise the longest words are broken into lines.

        >>> value = Number("0.2500", 0.25, ends=(0.2, 0.3))
        >>> Table(("model", "a", "b"), (("EASE", value, value),)).set_in_paper
        ('lrr', '')
        >>> Table(("model", "a", "b", "c"), (("EASE", value, value, value),)).set_in_paper
        ('lrrr', '\\footnotesize')
        >>> Table(("model", "a", "b"), ((9 * "long name ", value, value),)).set_in_paper
        ('p{110pt}rr', '')
        """
        for size in _SIZES:
            if self._width_in(size) <= _PAPER:
                return "".join(self.align), size.command
        words = [index for index, side in enumerate(self.align) if side == "l"]
        if not words:
            return "".join(self.align), _SIZES[-1].command
        longest = max(words, key=lambda index: self._points[index])
        rooms = []
        for size in _SIZES:
            others = self._width_in(size) - size.scale * self._points[longest]
            rooms.append(_PAPER - others)
        wide_enough = [index for index, room in enumerate(rooms) if room >= _LEAST_ROOM]
        chosen = wide_enough[0] if wide_enough else len(_SIZES) - 1
        room = max(rooms[chosen], _LEAST_ROOM / 2.0)
        columns = list(self.align)
        columns[longest] = f"p{{{room:.0f}pt}}"
        return "".join(columns), _SIZES[chosen].command

    @property
    def fits_paper(self) -> bool:
        """Return whether the table fits an article, in small type at least."""
        return self._width_in(_SIZES[-1]) <= _PAPER

    def _width_in(self, size: _Type) -> float:
        """Return how many points wide the table is in a size of type, about."""
        return sum(size.scale * points + size.gap for points in self._points)

    @property
    def _points(self) -> list[float]:
        """Return how many points wide the widest cell of each column is in 10 point type."""
        rows = [self.columns, *([_in_paper(cell) for cell in row] for row in self.rows)]
        return [max(map(_points_of, column)) for column in zip(*rows, strict=True)]

    def pivot(self, over: str, value: str) -> Table:
        """Return the table with a column of values for each word in the column ``over``.

        >>> rows = (("A", "HR@10", "0.3"), ("A", "AUC", "0.9"), ("B", "HR@10", "0.2"))
        >>> table = Table(("model", "metric", "value"), rows, keys=("model",))
        >>> table.pivot("metric", "value").columns
        ('model', 'HR@10', 'AUC')
        >>> [[str(cell) for cell in row] for row in table.pivot("metric", "value").rows]
        [['A', '0.3', '0.9'], ['B', '0.2', '–']]
        """
        names = [name for name in self.columns if name in ("metric", *self.keys) and name != over]
        words = dict.fromkeys(str(cell) for cell in self.cells(over))
        values_of: dict[tuple[Cell, ...], dict[str, Cell]] = {}
        for row in self.rows:
            cells = dict(zip(self.columns, row, strict=True))
            key = tuple(cells[name] for name in names)
            values_of.setdefault(key, {})[str(cells[over])] = cells[value]
        rows = tuple(
            (*key, *(values.get(word, Number(DASH)) for word in words))
            for key, values in values_of.items()
        )
        return replace(self, columns=(*names, *words), rows=rows)

    def cells(self, column: str) -> list[Cell]:
        """Return the cells of a column."""
        index = self.columns.index(column)
        return [row[index] for row in self.rows]

    @property
    def align(self) -> tuple[str, ...]:
        """Return ``"l"`` for each column of words and ``"r"`` for each column of numbers."""
        first = self.rows[0] if self.rows else ("",) * len(self.columns)
        return tuple("r" if isinstance(cell, Number) else "l" for cell in first)


def _points_of(text: str) -> float:
    """Return how many points wide a text is in 10 point type, about."""
    narrow = sum(letter in _NARROW_LETTERS for letter in text)
    wide = sum(letter.isupper() or letter in "@%+mw" for letter in text)
    return _NARROW * narrow + _WIDE * wide + _LETTER * (len(text) - narrow - wide)


def _in_paper(cell: Cell) -> str:
    """Return a cell as papers set it, without the signs of a markup."""
    return f"{cell}{cell.behind}" if isinstance(cell, Number) else cell


def _is_bold(cell: Cell) -> bool:
    return isinstance(cell, Number) and cell.bold


def digits(value: float, scale: float, *, sign: str = "") -> str:
    """Return a value with the digits that numbers of this scale need.

    >>> digits(0.25, scale=0.3), digits(0.00012345, scale=0.0002), digits(0.1, scale=0.1, sign="+")
    ('0.2500', '0.000123', '+0.1000')
    """
    return f"{value:{sign}.3g}" if 1e-6 < abs(scale) < 1e-3 else f"{value:{sign}.4f}"


def number(
    value: float,
    ends: Ends | None = None,
    *,
    wider: Ends | None = None,
    word: str = "",
    bold: bool = False,
) -> Number:
    """Return a metric with its interval; a dash stands for no value.

    >>> number(0.25, (0.2, 0.3), wider=(0.1, 0.4)).behind
    ' [0.2000, 0.3000]'
    """
    if ends is not None and math.isnan(ends[0]):
        return number(value, word="nothing varies", bold=bold)
    is_known = math.isfinite(value)
    return Number(
        text=digits(value, value) if is_known else DASH,
        value=value if is_known else None,
        ends=ends,
        wider=wider,
        word=word,
        bold=bold,
    )


def probability(value: float | None) -> Number:
    """Return a probability in per cent, or an empty cell if it is not known.

    >>> [str(probability(value)) for value in (0.25, 0.999, None)]
    ['25 %', '>99 %', '']
    """
    if value is None:
        return Number("")
    if not 0.005 <= value <= 0.995:
        return Number("<1 %" if value < 0.5 else ">99 %", value)
    return Number(f"{100 * value:.0f} %", value)
