"""Charts as data: what the script of a page draws, and matplotlib as well.

A chart holds views of the same kind (one for each metric), among which the reader chooses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from unsample._checks import FloatArray
from unsample.answers import DEFAULT_LEVEL, Estimate, Estimates
from unsample.show._sheet import Cell, Number, Table, has_both, is_exact, number, point_of

_NONE = (math.nan, math.nan)
#: Styles of the page in the order in which curves take them, the most distinct first.
_STYLES = (4, 6, 5, 2, 3, 1, 0)
Role: TypeAlias = Literal["interval", "bounds"]
#: What each design does, for readers of plans.
DESIGNS = {
    "fixed": "The same number of sampled items for each target.",
    "certified": "Items are scored until the metric@K is certain, for as many users as the budget "
    "allows.",
    "guided": "Likely strong items are scored first, and part of the users is certified.",
    "exact": "Users are ranked in full, as many as the budget allows.",
}


@dataclass(frozen=True, eq=False)
class Series:
    """A curve with a value at each place of its view, NaN for none; ``marked`` draws points."""

    name: str
    style: int
    y: FloatArray
    marked: bool = False


@dataclass(frozen=True, eq=False)
class Band:
    """A range around a curve, or around all of them where ``style`` is None."""

    role: Role
    name: str
    low: FloatArray
    high: FloatArray
    style: int | None = None


@dataclass(frozen=True)
class Guide:
    """A straight line across the chart that marks a value of an axis."""

    axis: Literal["x", "y"]
    at: float
    label: str


@dataclass(frozen=True, eq=False)
class LineView:
    """Curves over shared places; of a chart with steps, ``x`` holds the ends of ranges."""

    name: str
    y_label: str
    x: tuple[float, ...]
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    bands: tuple[Band, ...] = ()
    guides: tuple[Guide, ...] = ()


@dataclass(frozen=True, eq=False)
class LineChart:
    """Curves with bands; the reader may hide any of them and change the axes."""

    kind: ClassVar = "lines"
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
    def table(self) -> Table:
        """Return every number of the chart, for readers without script or sight."""
        several = len(self.views) > 1
        head = ("view", self.x_label) if several else (self.x_label,)
        held = [dict(_columns(view)) for view in self.views]
        names = list(dict.fromkeys(name for columns in held for name in columns))
        rows = []
        for view, columns in zip(self.views, held, strict=True):
            absent = np.full(len(view.labels), np.nan)
            for place, label in enumerate(view.labels):
                at: tuple[Cell, ...] = (Number(label, view.x[place]),)
                before = (view.name, *at) if several else at
                values = (columns.get(name, absent)[place] for name in names)
                rows.append((*before, *(number(float(value)) for value in values)))
        return Table((*head, *names), tuple(rows), self.title, f"{self.identity}-numbers")


@dataclass(frozen=True)
class IntervalRow:
    """A value with its interval and, where these are wider, its bounds."""

    label: str
    value: float
    interval: tuple[float, float]
    bounds: tuple[float, float] = _NONE
    #: What the row means, for the reader who points at it.
    note: str = ""
    #: ``"sure"`` or ``"unsure"``, which the page marks by colour and by shape.
    health: str = "sure"
    #: Values that the row sums up, drawn as small marks.
    marks: tuple[float, ...] = ()


@dataclass(frozen=True)
class IntervalView:
    """Rows of a metric, or of all."""

    name: str
    rows: tuple[IntervalRow, ...]


@dataclass(frozen=True)
class IntervalChart:
    """Values with intervals below each other; with ``zero``, they are differences."""

    kind: ClassVar = "intervals"
    #: Pages show these numbers in a table of their own, with more columns.
    table: ClassVar = None
    identity: str
    title: str
    caption: str
    x_label: str
    views: tuple[IntervalView, ...]
    zero: bool = False
    #: What the two healths are called in the legend.
    sure: str = "interval"
    unsure: str = "interval is the bounds"
    #: What the wider range is called.
    wider: str = "bounds"


Chart: TypeAlias = LineChart | IntervalChart


def spec(chart: Chart) -> dict[str, Any]:
    """Return what the script draws: plain values, None where there is none."""
    return {"kind": chart.kind, **_plain(chart)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(held) for held in value]
    if isinstance(value, float):
        # No chart shows more digits.
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def style(place: int) -> int:
    """Return the style of a curve by its place among the curves."""
    return _STYLES[place % len(_STYLES)]


def _columns(view: LineView) -> Iterable[tuple[str, FloatArray]]:
    yield from ((series.name, series.y) for series in view.series)
    for band in view.bands:
        yield from ((f"{band.name}, low", band.low), (f"{band.name}, high", band.high))


# --- charts of results -------------------------------------------------------------------------


def estimates_chart(
    results: Mapping[str, Estimates], level: float = DEFAULT_LEVEL, *, highest_first: bool = False
) -> IntervalChart:
    """Return estimates with intervals and bounds; groups have a view for each metric."""
    alone = list(results) == [""]
    rows: dict[str, list[IntervalRow]] = {}
    for name, result in results.items():
        for entry in result.entries:
            metric = entry.metric.name
            label = metric if alone else name
            label = f"{label}, {entry.method}" if len(result.methods) > 1 else label
            row = _row(label, entry, level, bounds=not has_both(result))
            rows.setdefault("all" if alone else metric, []).append(row)
    if highest_first:
        for found in rows.values():
            found.sort(key=lambda row: math.inf if math.isnan(row.value) else -row.value)
    title, sure = "Estimates with intervals and bounds", "interval"
    caption = "Thick line: the interval. Thin line: the bounds, which hold whatever P(R) is."
    every = [row for found in rows.values() for row in found]
    if all(math.isnan(row.bounds[0]) and row.health == "sure" for row in every):
        title, caption = "Values with intervals", "Each line is the interval for users like these."
    if all(is_exact(entry) for result in results.values() for entry in result.entries):
        sure = "exact"
    return IntervalChart(
        identity="intervals",
        title=title,
        caption=caption,
        x_label="metric on the full catalogue",
        views=views_of(rows),
        sure=sure,
    )


def _row(label: str, entry: Estimate, level: float, *, bounds: bool) -> IntervalRow:
    row = IntervalRow(label, point_of(entry), entry.interval(level))
    if entry.source == "bounds":
        note = "the interval is the bounds, which hold whatever P(R) is"
        return replace(row, note=note, health="unsure")
    return replace(row, bounds=entry.bounds(level)) if bounds and not is_exact(entry) else row


def views_of(rows: Mapping[str, list[IntervalRow]]) -> tuple[IntervalView, ...]:
    return tuple(IntervalView(name, tuple(found)) for name, found in rows.items())
