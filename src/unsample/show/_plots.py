"""Plots of results on matplotlib axes: the charts of the pages, for papers.

Each takes a result and ``ax``, and returns the axes.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import check_choice, check_integer, import_extra
from unsample._files import write_atomically
from unsample.answers import Across, Comparison, Estimates, exact
from unsample.errors import FileError, InputError
from unsample.show._charts import Chart, IntervalChart, IntervalView, LineChart, LineView, Series
from unsample.show._curves import curves_chart
from unsample.show._sheet import sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORMATS = ("pdf", "png", "svg")
#: Colours by the styles of the pages, as on a light page; the last is that of exact curves.
_COLOURS = ("#1b1f24", "#5c6670", "#a8327a", "#8a6100", "#1b6ca8", "#007a5a", "#6d4aa3", "#c2410c")
_NEUTRAL, _EXACT = "#9aa5b1", len(_COLOURS) - 1


def plot_metric_curve(
    result: Estimates,
    *,
    metric: str = "Recall",
    largest: int = 200,
    full_ranks: npt.ArrayLike | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot a metric@K against K: the estimate, its interval, and the bounds without assumptions.

    ``full_ranks`` adds the exact curve, where the truth is known.
    """
    family = _metrics.parse(metric).family
    largest = check_integer("largest", largest, minimum=2)
    chart = curves_chart({"": result}, level, largest=largest, families=[family])
    if chart is None:
        raise InputError(
            f"none of {', '.join(result.methods)} gives P(R) that weighs relevant items as "
            f"{metric} does; try mle, or Recall"
        )
    if full_ranks is not None:
        (view,) = chart.views
        names = [family @ int(k) for k in view.x]
        truth = exact(full_ranks, items=result.counts.largest_catalogue, metrics=names)
        series = Series("exact", _EXACT, np.array([entry.value for entry in truth.entries]))
        chart = replace(chart, views=(replace(view, series=(*view.series, series)),))
    axes = _draw(chart, None, ax)
    axes.set(xlim=(1, chart.views[0].x[-1]))
    axes.set_ylim(bottom=0)
    return axes


def plot_distribution(
    result: Estimates,
    *,
    full_ranks: npt.ArrayLike | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot the learned P(R) as its cumulative distribution, with its interval and bounds."""
    items = max(result.counts.largest_catalogue, 2)
    axes = plot_metric_curve(result, largest=items, full_ranks=full_ranks, level=level, ax=ax)
    axes.set(xlabel="rank R", ylabel="share of targets at R or better", ylim=(0, 1))
    return axes


def plot_estimates(result: Estimates, *, ax: Axes | None = None) -> Axes:
    """Plot every estimate with its interval and its bounds, one below the other."""
    axes = _draw(_chart(result), None, ax)
    axes.set_xlim(left=0)
    return axes


def plot_comparison(
    result: Comparison, *, metric: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the difference of each pair of models, by default on the first metric."""
    return _draw(_chart(result), metric, ax)


def plot_across(result: Across, *, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """Plot the mean of each model over data sets, with these as small marks."""
    return _draw(_chart(result), metric, ax)


def write_plot(result: object, path: str | os.PathLike[str]) -> None:
    """Write the chart of a result as PNG, SVG or PDF, by the ending of the name."""
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    check_choice("the ending of the plot's name", kind, _FORMATS, error=FileError)
    figure: Any = _draw(_chart(result), None, None).get_figure(root=True)
    write_atomically(target, lambda file: figure.savefig(file, format=kind, bbox_inches="tight"))


def _chart(result: object) -> Chart:
    """Return the chart that sums up a result; of a comparison, the differences."""
    parts = sheet(result).parts[isinstance(result, Comparison) :]
    found = next((chart for part in parts if (chart := part.chart) is not None), None)
    if found is None:
        raise InputError(f"result must have a chart to plot, got {type(result).__name__}")
    return found


def _draw(chart: Chart, metric: str | None, ax: Axes | None) -> Axes:
    """Draw the view of a metric, by default the first."""
    names = [view.name for view in chart.views]
    found = [name for name in names if metric is not None and _metrics.parse(metric).name == name]
    if metric is not None and not found:
        raise InputError(
            f"metric must be one that was compared ({', '.join(names)}), got {metric!r}"
        )
    axes: Any = ax
    if ax is None:
        pyplot = import_extra("matplotlib.pyplot", extra="report", purpose="plotting")
        axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
    place = names.index(found[0]) if found else 0
    if isinstance(chart, LineChart):
        _draw_lines(chart, chart.views[place], axes)
    else:
        _draw_rows(chart, chart.views[place], axes)
    drawn: Axes = axes
    return drawn


def _draw_lines(chart: LineChart, view: LineView, axes: Any) -> None:
    """Draw bands below, then guides, then curves."""
    for band in view.bands:
        colour, alpha = (_NEUTRAL, 0.3) if band.role == "bounds" else (_COLOURS[4], 0.4)
        axes.fill_between(
            view.x, band.low, band.high, color=colour, alpha=alpha, lw=0, label=band.name
        )
    for guide in view.guides:
        line = axes.axvline if guide.axis == "x" else axes.axhline
        line(guide.at, color="0.4", lw=0.8, ls=":", label=guide.label)
    for series in view.series:
        there, style = np.isfinite(series.y), "--" if series.style == _EXACT else "-"
        x, colour = np.asarray(view.x)[there], _COLOURS[series.style]
        axes.plot(x, series.y[there], color=colour, ls=style, label=series.name)
    axes.set(xscale="log", yscale="log" if chart.log_y else "linear")
    axes.set(xlabel=chart.x_label, ylabel=view.y_label)
    axes.legend(frameon=False)


def _draw_rows(chart: IntervalChart, view: IntervalView, axes: Any) -> None:
    """Draw rows from top to bottom: lines of two widths, a circle where it is sure."""
    if chart.zero:
        axes.axvline(0, color="0.4", lw=0.8)
    for at, row in enumerate(view.rows):
        colour = _COLOURS[4] if row.sure or not chart.zero else _NEUTRAL
        axes.hlines(at, *row.wider, color=_NEUTRAL, lw=1.5, label=chart.wider)
        label = chart.sure if row.sure else chart.unsure
        axes.hlines(at, *row.interval, color=colour, lw=6, alpha=0.5, label=label)
        axes.plot(row.marks, [at] * len(row.marks), "|", color=_COLOURS[0], ms=9)
        axes.plot(row.value, at, "o" if row.sure else "s", color=colour)
    # A dollar sign in a name is not mathematics.
    axes.set_yticks(range(len(view.rows)), [row.label.replace("$", r"\$") for row in view.rows])
    axes.set_ylim(len(view.rows) - 0.5, -0.5)
    axes.set_xlabel(chart.x_label if view.name == "all" else f"{view.name}, {chart.x_label}")
    handles, labels = axes.get_legend_handles_labels()
    known = {label: handle for label, handle in zip(labels, handles, strict=True) if label}
    # Above the rows, for lines may be anywhere.
    place_of = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": len(known)}
    axes.legend(known.values(), known.keys(), frameon=False, fontsize="small", **place_of)
