"""Plots of results on matplotlib axes: the charts of the pages, for papers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unsample import metrics as _metrics
from unsample._checks import import_extra
from unsample._files import PLOT_ENDINGS, check_ending, write_atomically
from unsample.errors import InputError
from unsample.report._charts import Chart, IntervalChart, IntervalView, LineChart, LineView
from unsample.report._view import view_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _GREY, _INK = "C0", "#9aa5b1", "#1b1f24"


def plot(result: object, *, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """Plot what sums up a result, of a comparison the differences, by default the first metric.

    Estimates, and means over data sets, stand below each other with their intervals.
    """
    chart = _chart(result)
    names = [view.name for view in chart.views]
    index = 0
    if metric is not None:
        name = _metrics.parse(metric).name
        if name not in names:
            raise InputError(f"metric must be one of {', '.join(names)}, got {metric!r}")
        index = names.index(name)
    return draw(chart, index, ax=ax)


def write_plot(result: object, path: str | os.PathLike[str]) -> None:
    """Write the chart of a result as PNG, SVG or PDF, by the ending of the name."""
    target = Path(path)
    check_ending("path", target, PLOT_ENDINGS)
    write_figure(plot(result), target)


def write_figure(axes: Axes, path: str | os.PathLike[str]) -> None:
    """Write the figure of axes as PNG, SVG or PDF, by the ending of the name."""
    target = Path(path)
    check_ending("path", target, PLOT_ENDINGS)
    kind = target.suffix.lstrip(".").lower()
    figure: Any = axes.get_figure(root=True)
    write_atomically(target, lambda file: figure.savefig(file, format=kind, bbox_inches="tight"))


def _chart(result: object) -> Chart:
    """Return the chart that sums up a result; of a comparison, the differences."""
    view = view_of(result)
    parts = view.parts[view.plotted :]
    found = next((chart for part in parts if (chart := part.chart) is not None), None)
    if found is None:
        raise InputError(f"result must have a chart to plot, got {type(result).__name__}")
    return found


def draw(chart: Chart, index: int = 0, *, ax: Axes | None = None) -> Axes:
    """Draw a view of a chart, on axes of its own where none are given."""
    axes: Any = ax
    if ax is None:
        pyplot = import_extra("matplotlib.pyplot", extra="report", purpose="plotting")
        axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
    if isinstance(chart, LineChart):
        _draw_lines(chart, chart.views[index], axes)
    else:
        _draw_rows(chart, chart.views[index], axes)
    drawn: Axes = axes
    return drawn


def _draw_lines(chart: LineChart, view: LineView, axes: Any) -> None:
    """Draw bands below, then guides, then curves."""
    for band in view.bands:
        colour, alpha = (_GREY, 0.3) if band.role == "bounds" else (_BLUE, 0.4)
        axes.fill_between(
            view.x, band.low, band.high, color=colour, alpha=alpha, lw=0, label=band.name
        )
    if view.guide is not None:
        axes.axvline(view.guide.at, color="0.4", lw=0.8, ls=":", label=view.guide.label)
    for series in view.series:
        axes.plot(view.x, series.y, label=series.name)
    axes.set(xscale="log", xlabel=chart.x_label, ylabel=view.y_label)
    axes.legend(frameon=False)


def _draw_rows(chart: IntervalChart, view: IntervalView, axes: Any) -> None:
    """Draw rows from top to bottom: lines of two widths, a circle where it is sure."""
    for at, row in enumerate(view.rows):
        colour = _BLUE if row.sure or not chart.zero else _GREY
        axes.hlines(at, *row.wider, color=_GREY, lw=1.5, label=chart.wider)
        label = chart.sure if row.sure else chart.unsure
        axes.hlines(at, *row.interval, color=colour, lw=6, alpha=0.5, label=label)
        axes.plot(row.marks, [at] * len(row.marks), "|", color=_INK, ms=9)
        axes.plot(row.value, at, "o" if row.sure else "s", color=colour)
    # A dollar sign in a name is not mathematics.
    axes.set_yticks(range(len(view.rows)), [row.label.replace("$", r"\$") for row in view.rows])
    axes.set_ylim(len(view.rows) - 0.5, -0.5)
    if chart.zero:
        axes.axvline(0, color="0.4", lw=0.8)
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel(chart.x_label if view.name == "all" else f"{view.name}, {chart.x_label}")
    handles, labels = axes.get_legend_handles_labels()
    known = {label: handle for label, handle in zip(labels, handles, strict=True) if label}
    # Above the rows, for lines may be anywhere.
    place_of = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": len(known)}
    axes.legend(known.values(), known.keys(), frameon=False, fontsize="small", **place_of)
