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
from unsample.report._table import Cell, Ends, Number, Table

_NONE = (math.nan, math.nan)
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


@dataclass(frozen=True, eq=False)
class LineChart:
    """Curves with bands over a logarithmic axis."""

    kind: ClassVar = "lines"
    identity: str
    title: str
    caption: str
    x_label: str
    views: tuple[LineView, ...]


@dataclass(frozen=True)
class IntervalRow:
    """A value with its interval and, where there is one, a wider range such as its bounds."""

    label: str
    value: float
    interval: Ends
    wider: Ends
    #: Whether it is sure, which colour and shape of the point say.
    sure: bool
    #: Values that the row sums up, drawn as small marks.
    marks: tuple[float, ...]


@dataclass(frozen=True)
class IntervalView:
    """Rows of a metric, or of all."""

    name: str
    rows: tuple[IntervalRow, ...]


@dataclass(frozen=True)
class IntervalChart:
    """Values with intervals below each other; with ``zero``, they are differences."""

    kind: ClassVar = "intervals"
    identity: str
    title: str
    caption: str
    x_label: str
    views: tuple[IntervalView, ...]
    #: What the legend calls the intervals, rows that are not sure, and the wider range.
    sure: str
    unsure: str
    wider: str
    zero: bool = False


Chart: TypeAlias = LineChart | IntervalChart


def intervals_of(table: Table) -> IntervalChart | None:
    """Return the first numbers of a table that have intervals, a view for each metric if named.

    Rows are sure unless they are bounds; rows of differences, if models differ for sure.
    """
    brief = table.brief
    column = next((name for name in brief.columns if any(map(_spans, brief.cells(name)))), None)
    if column is None:
        return None
    words = [name for name, side in zip(brief.columns, brief.align, strict=True) if side == "l"]
    keys = [name for name in words if name != "metric"]
    by_metric = keys not in ([], ["method"])
    views: dict[str, list[IntervalRow]] = {}
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        metric, key = str(cells["metric"]), tuple(str(cells[name]) for name in keys)
        held = cells[column]
        assert isinstance(held, Number)
        value = math.nan if held.value is None else held.value
        views.setdefault(metric if by_metric else "all", []).append(
            IntervalRow(
                ", ".join(key if by_metric else (metric, *key)),
                value,
                held.ends or (value, value),
                held.wider or _NONE,
                held.bold if table.told else held.word != "bounds",
                held.marks,
            )
        )
    thin = any(row.wider != _NONE for rows in views.values() for row in rows)
    return IntervalChart(
        identity=f"{table.identity}-chart",
        title=table.caption,
        caption=f"Thick line: {table.interval}." + f" Thin line: {table.wider}." * thin,
        x_label=f"{column} on the full catalogue",
        views=tuple(IntervalView(name, tuple(rows)) for name, rows in views.items()),
        sure=table.told or table.interval,
        unsure=f"not {table.told}" if table.told else "interval is the bounds",
        wider=table.wider,
        zero=bool(table.told),
    )


def _spans(cell: Cell) -> bool:
    return isinstance(cell, Number) and (cell.ends or cell.wider) is not None


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
