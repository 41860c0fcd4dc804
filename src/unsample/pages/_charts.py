"""Charts as data: what a page's script draws, and the table that says the same in numbers.

A chart holds views of the same kind (one for each metric), among which the reader chooses. The
script gets `LineChart.spec` or `IntervalChart.spec` as JSON; a reader without script, or who does
not see charts, gets `table`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from unsample._checks import FloatArray
from unsample.pages._format import DASH

__all__ = [
    "Band",
    "Cell",
    "Chart",
    "Guide",
    "IntervalChart",
    "IntervalRow",
    "IntervalView",
    "LineChart",
    "LineSeries",
    "LineView",
    "Numbers",
    "Table",
    "as_numbers",
    "number",
    "share_of",
    "words",
]

#: Values along a chart; None where there is none.
Numbers: TypeAlias = tuple[float | None, ...]
_DIGITS = 6
_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and the number by which its column is sorted, if it is one."""

    text: str
    key: float | None = None
    #: Whether it is a number, set flush right.
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """A table whose columns sort when their heads are clicked."""

    identity: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class LineSeries:
    """A curve, one value for each place of its view; ``marked`` draws points without a line."""

    name: str
    style: int
    y: Numbers
    marked: bool = False


@dataclass(frozen=True)
class Band:
    """A range around a curve, or around all of them where ``style`` is None."""

    role: Literal["interval", "bounds"]
    name: str
    low: Numbers
    high: Numbers
    style: int | None = None


@dataclass(frozen=True)
class Guide:
    """A straight line across the chart that marks one value of an axis."""

    axis: Literal["x", "y"]
    at: float
    label: str


@dataclass(frozen=True)
class LineView:
    """Curves over shared places; with ``steps``, ``x`` holds the ends of ranges, one more."""

    name: str
    y_label: str
    x: Numbers
    labels: tuple[str, ...]
    series: tuple[LineSeries, ...]
    bands: tuple[Band, ...] = ()
    guides: tuple[Guide, ...] = ()


@dataclass(frozen=True)
class LineChart:
    """Curves with bands; the reader may hide any of them and change the axes."""

    identity: str
    title: str
    caption: str
    x_label: str
    views: tuple[LineView, ...]
    log_x: bool = True
    log_y: bool = False
    steps: bool = False
    percent: bool = False
    #: Roles of bands that show at first.
    shown: tuple[str, ...] = ("interval", "bounds")

    @property
    def spec(self) -> dict[str, Any]:
        """Return what the script draws."""
        return {
            "kind": "lines",
            "title": self.title,
            "xLabel": self.x_label,
            "logX": self.log_x,
            "logY": self.log_y,
            "steps": self.steps,
            "percent": self.percent,
            "shown": list(self.shown),
            "views": [_line_view(view) for view in self.views],
        }

    @property
    def table(self) -> Table:
        """Return every number of the chart."""
        several = len(self.views) > 1
        names = _column_names(self.views[0])
        rows = [row for view in self.views for row in _line_rows(view, several=several)]
        head = ("view", self.x_label) if several else (self.x_label,)
        return Table(f"{self.identity}-numbers", self.title, (*head, *names), tuple(rows))


@dataclass(frozen=True)
class IntervalRow:
    """A value with its interval, its bounds, and the truth where it is known."""

    label: str
    value: float
    low: float
    high: float
    bound_low: float = math.nan
    bound_high: float = math.nan
    truth: float = math.nan
    #: What the row means, for the reader who points at it.
    note: str = ""
    #: ``"sure"`` or ``"unsure"``, which the page marks by colour and by shape.
    health: Literal["sure", "unsure"] = "sure"


@dataclass(frozen=True)
class IntervalView:
    """Rows of one metric, or of all."""

    name: str
    rows: tuple[IntervalRow, ...]


@dataclass(frozen=True)
class IntervalChart:
    """Values with intervals below each other; with ``zero``, they are differences."""

    identity: str
    title: str
    caption: str
    x_label: str
    views: tuple[IntervalView, ...]
    zero: bool = False
    #: What the two healths are called in the legend.
    sure: str = "resolved"
    unsure: str = "not resolved, or outside its interval"

    @property
    def spec(self) -> dict[str, Any]:
        """Return what the script draws."""
        return {
            "kind": "intervals",
            "title": self.title,
            "xLabel": self.x_label,
            "zero": self.zero,
            "sure": self.sure,
            "unsure": self.unsure,
            "views": [
                {"name": view.name, "rows": [_interval_row(row) for row in view.rows]}
                for view in self.views
            ],
        }

    @property
    def table(self) -> Table | None:
        """Return None: pages show these numbers in a table of their own, with more columns."""
        return None


Chart: TypeAlias = LineChart | IntervalChart


def as_numbers(values: FloatArray | Sequence[float | None]) -> Numbers:
    """Return finite values rounded as far as a chart can show, and None for others."""
    return tuple(_rounded(None if value is None else float(value)) for value in values)


def number(value: float | None, *, sign: bool = False, percent: bool = False) -> Cell:
    """Return a cell with four decimals, or four digits where these would be lost."""
    if value is None or not math.isfinite(value):
        return Cell(DASH)
    return Cell(_plain(_shown(value, sign=sign, percent=percent)), value)


def share_of(share: float, *, sign: bool = False) -> Cell:
    """Return a cell with a share in per cent, to three digits."""
    text = f"{100 * share:{'+' if sign else ''}.3g} %" if share else "0 %"
    return Cell(text.replace("-", "\N{MINUS SIGN}"), share)


def words(text: str, key: float | None = None) -> Cell:
    """Return a cell with text."""
    return Cell(text, key, numeric=False)


def _shown(value: float, *, sign: bool, percent: bool) -> str:
    plus = "+" if sign else ""
    if percent:
        return f"{100.0 * value:{plus}.4g} %"
    return f"{value:{plus}.3g}" if 0.0 < abs(value) < 1e-3 else f"{value:{plus}.4f}"


def _plain(text: str) -> str:
    return text.replace("-", _MINUS)


def _rounded(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}")


def _line_view(view: LineView) -> dict[str, Any]:
    return {
        "name": view.name,
        "yLabel": view.y_label,
        "x": view.x,
        "labels": view.labels,
        "series": [vars(one) for one in view.series],
        "bands": [vars(one) for one in view.bands],
        "guides": [vars(one) for one in view.guides],
    }


def _interval_row(row: IntervalRow) -> dict[str, Any]:
    return {
        "label": row.label,
        "value": _rounded(row.value),
        "interval": as_numbers([row.low, row.high]),
        "bounds": as_numbers([row.bound_low, row.bound_high]),
        "truth": _rounded(row.truth),
        "note": row.note,
        "health": row.health,
    }


def _column_names(view: LineView) -> tuple[str, ...]:
    names = [one.name for one in view.series]
    for band in view.bands:
        names += [f"{band.name}, low", f"{band.name}, high"]
    return tuple(names)


def _line_rows(view: LineView, *, several: bool) -> list[tuple[Cell, ...]]:
    rows = []
    for place, label in enumerate(view.labels):
        row = [words(view.name)] if several else []
        row.append(words(label, float(np.float64(view.x[place]))))
        row += [number(one.y[place]) for one in view.series]
        for band in view.bands:
            row += [number(band.low[place]), number(band.high[place])]
        rows.append(tuple(row))
    return rows
