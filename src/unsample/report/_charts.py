"""The one chart model: lines with bands, and intervals in rows.

A chart is plain data, which the script of a page and matplotlib both draw. It holds views of the
same kind, one for each metric, among which the reader chooses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from unsample._checks import FloatArray
from unsample._rules import printable
from unsample.report._table import Cell, Ends, Number, Table

#: The ends of a range that a row does not have.
_NO_RANGE = (math.nan, math.nan)
Role: TypeAlias = Literal["bounds", "interval"]


@dataclass(frozen=True, eq=False)
class Series:
    """A curve with a value at each x of its view."""

    name: str
    y: FloatArray


@dataclass(frozen=True, eq=False)
class Band:
    """A range around the curves."""

    role: Role
    name: str
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class GuideLine:
    """An upright line across the chart that marks an x."""

    at: float
    label: str


@dataclass(frozen=True, eq=False)
class LineView:
    """Curves over shared values of x."""

    name: str
    y_label: str
    x: tuple[float, ...]
    series: tuple[Series, ...]
    bands: tuple[Band, ...] = ()
    guide: GuideLine | None = None
    #: The lowest y of a logarithmic axis.
    floor: float = 0.0


@dataclass(frozen=True, eq=False)
class LineChart:
    """Curves with bands over a logarithmic axis."""

    kind: ClassVar = "lines"
    identity: str
    title: str
    caption: str
    x_label: str
    views: tuple[LineView, ...]
    #: Whether the upright axis is logarithmic too.
    log_y: bool = False

    @property
    def name(self) -> str:
        """Return the name by which a reader asks for the chart."""
        return self.identity


@dataclass(frozen=True)
class IntervalRow:
    """A value with its interval and, where there is one, a wider range such as its bounds."""

    label: str
    value: float
    interval: Ends
    wider: Ends
    #: Whether it is certain, which the colour and the shape of the point show.
    sure: bool
    #: The values that the row is the mean of, drawn as small marks.
    marks: tuple[float, ...]


@dataclass(frozen=True)
class IntervalView:
    """The rows of one metric, or of all."""

    name: str
    rows: tuple[IntervalRow, ...]


@dataclass(frozen=True)
class IntervalChart:
    """Values with intervals below each other; differences if ``zero`` marks no difference."""

    kind: ClassVar = "intervals"
    identity: str
    title: str
    caption: str
    x_label: str
    views: tuple[IntervalView, ...]
    #: The words of the legend for intervals, for rows that are not certain, and for wider ranges.
    sure: str
    unsure: str
    wider: str
    zero: bool = False

    @property
    def name(self) -> str:
        """Return the name by which a reader asks for the chart."""
        return self.identity.removesuffix("-chart")


Chart: TypeAlias = LineChart | IntervalChart


def intervals_of(table: Table) -> IntervalChart | None:
    """Return the first numbers of a table that have intervals; None if no numbers have them.

    Each row of the table is a row of the chart, named by the keys of the table. There is a view for
    each metric, or one view if rows differ by metric and method alone. A difference is drawn as
    certain if it is significant, and another number unless its interval is the bounds.

    >>> bounded = Number("0.9", 0.9, ends=(0.5, 1.0), word="bounds")
    >>> rows = (("A", "HR@10", Number("0.3", 0.3, ends=(0.2, 0.4))), ("B", "HR@10", bounded))
    >>> chart = intervals_of(Table(("model", "metric", "estimate"), rows, keys=("model",)))
    >>> [(view.name, [row.label for row in view.rows]) for view in chart.views]
    [('HR@10', ['A', 'B'])]
    >>> [(row.interval, row.sure) for row in chart.views[0].rows]
    [((0.2, 0.4), True), ((0.5, 1.0), False)]
    """
    shown = table.brief
    with_ranges = [name for name in shown.columns if any(map(_has_range, shown.cells(name)))]
    if not with_ranges:
        return None
    column = with_ranges[0]
    view_for_each = any(key != "method" for key in shown.keys)
    labels = shown.keys if view_for_each else ("metric", *shown.keys)
    views: dict[str, list[IntervalRow]] = {}
    for row in shown.rows:
        cells = dict(zip(shown.columns, row, strict=True))
        view = str(cells["metric"]) if view_for_each else "all"
        number = cells[column]
        assert isinstance(number, Number)
        label = ", ".join(str(cells[name]) for name in labels)
        views.setdefault(view, []).append(_interval_row(label, number, table=table))
    has_wider = any(row.wider != _NO_RANGE for rows in views.values() for row in rows)
    caption = f"Thick line: {table.interval}."
    if has_wider:
        caption += f" Thin line: {table.wider}."
    return IntervalChart(
        identity=f"{table.identity}-chart",
        title=table.caption,
        caption=caption,
        x_label=f"{column} on the full catalogue",
        views=tuple(IntervalView(name, tuple(rows)) for name, rows in views.items()),
        sure=table.told or table.interval,
        unsure=f"not {table.told}" if table.told else "interval is the bounds",
        wider=table.wider,
        zero=bool(table.told),
    )


def _interval_row(label: str, number: Number, *, table: Table) -> IntervalRow:
    """Return the row of a chart for a number of a table."""
    value = math.nan if number.value is None else number.value
    return IntervalRow(
        label=label,
        value=value,
        interval=number.ends or (value, value),
        wider=number.wider or _NO_RANGE,
        sure=number.bold if table.told else number.word != "bounds",
        marks=number.marks,
    )


def _has_range(cell: Cell) -> bool:
    """Return whether a cell is a number with an interval or a wider range."""
    return isinstance(cell, Number) and (cell.ends or cell.wider) is not None


def spec(chart: Chart) -> dict[str, Any]:
    """Return a chart as plain values for the script of a page; None stands for no number."""
    return {"kind": chart.kind, **_plain(chart)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        # No chart shows more digits.
        return float(f"{value:.6g}") if math.isfinite(value) else None
    # Nothing in a name may turn the direction of writing.
    return printable(value) if isinstance(value, str) else value
