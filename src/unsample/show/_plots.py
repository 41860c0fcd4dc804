"""Plots of results on matplotlib axes: the charts of the pages, for papers.

Each takes a result and ``ax``, and returns the axes.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import check_choice, check_integer, import_extra
from unsample._files import write_atomically
from unsample.answers import Across, Comparison, Estimates, Plan, exact
from unsample.errors import FileError, InputError
from unsample.show._across import means_chart
from unsample.show._charts import (
    IntervalChart,
    IntervalView,
    LineChart,
    Role,
    Series,
    estimates_chart,
)
from unsample.show._comparison import differences_chart
from unsample.show._curves import Curves, limit_names
from unsample.show._html import page
from unsample.show._plan import plan_chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORMATS = ("pdf", "png", "svg")
#: Colours by the styles of the pages, as on a light page.
_COLOURS = ("#1b1f24", "#5c6670", "#a8327a", "#8a6100", "#1b6ca8", "#007a5a", "#6d4aa3")
_NEUTRAL, _EXACT = "#9aa5b1", "#c2410c"
#: Opacity of bands, which lie on top of each other.
_SHADES: dict[Role, float] = {"bounds": 0.3, "interval": 0.4}
#: Lines of a row, the widest range first: width and opacity of each.
_LINES: tuple[tuple[Role, float, float], ...] = (
    ("bounds", 1.5, 1.0),
    ("interval", 6.0, 0.5),
)


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
    if result.counts.several and not family.weighs_alike:
        raise InputError(
            f"metric must be Recall where users have several relevant items, got {metric!r}; only "
            "then does P(R) weigh targets as the metric does"
        )
    largest = check_integer("largest", largest, minimum=2)
    chart = Curves.of({"": result}, level, largest=largest).metrics(family)
    axes = _draw_lines(_with_exact(chart, result, family, full_ranks), ax)
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
    if not result.distributions:
        raise InputError(f"none of {', '.join(result.methods)} gives P(R); try mle")
    chart = Curves.of({"": result}, level).metrics(_metrics.Recall)
    (view,) = chart.views
    learned = replace(view, series=tuple(curve for curve in view.series if not curve.marked))
    chart = replace(chart, views=(learned,))
    axes = _draw_lines(_with_exact(chart, result, _metrics.Recall, full_ranks), ax)
    axes.set(xlabel="rank R", ylabel="share of targets at R or better", ylim=(0, 1))
    return axes


def plot_estimates(result: Estimates, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Plot every estimate with its interval and its bounds, one below the other."""
    chart = estimates_chart({"": result}, level)
    axes = _draw_intervals(chart, chart.views[0], ax)
    axes.set_xlabel(chart.x_label)
    axes.set_xlim(left=0)
    rows = chart.views[0].rows
    drawn = {role for role, *_ in _LINES if any(math.isfinite(getattr(r, role)[0]) for r in rows)}
    names = limit_names(level)
    lines = import_extra("matplotlib.lines", extra="report", purpose="plotting")
    keys = [
        lines.Line2D([], [], color=_shade(role), lw=width, alpha=alpha, label=names[role])
        for role, width, alpha in reversed(_LINES)
        if role in drawn
    ]
    # Above the rows, for lines may be anywhere.
    place = {"bbox_to_anchor": (0.5, 1.0), "ncols": len(keys), "frameon": False}
    axes.legend(handles=keys, loc="lower center", fontsize="small", **place)
    return axes


def plot_comparison(
    result: Comparison, *, metric: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the difference of each pair of models with its interval.

    ``metric`` is the one to show, by default the first that was compared. Of very many models
    those with the highest estimates are shown.
    """
    chart = differences_chart(result)
    view = _view_of(chart, metric)
    axes = _draw_intervals(chart, view, ax)
    axes.set_xlabel(f"difference of {view.name} with its {100 * result.level:g} % interval")
    return axes


def _view_of(chart: IntervalChart, metric: str | None) -> IntervalView:
    """Return the view of a metric, by default the first."""
    wanted = _metrics.parse(chart.views[0].name if metric is None else metric)
    found = [view for view in chart.views if _metrics.parse(view.name).same_as(wanted)]
    if not found:
        names = ", ".join(view.name for view in chart.views)
        raise InputError(f"metric must be one that was compared ({names}), got {metric!r}")
    return found[0]


def plot_across(result: Across, *, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """Plot the mean of each model over data sets, with these as small marks.

    ``metric`` is the one to show, by default the first that was compared.
    """
    chart = means_chart(result)
    view = _view_of(chart, metric)
    axes = _draw_intervals(chart, view, ax)
    for place, row in enumerate(view.rows):
        axes.plot(row.marks, [place] * len(row.marks), "|", color=_COLOURS[0], ms=9)
    axes.set_xlabel(
        f"{view.name}: data sets, their mean, and its {100 * result.level:g} % interval"
    )
    return axes


def plot_plan(result: Plan, *, ax: Axes | None = None) -> Axes:
    """Draw the half-width of each design's interval against its cost."""
    axes = _draw_lines(plan_chart(result), ax, marker="o")
    axes.set_title(f"{result.users:,} users, {result.items:,} items")
    return axes


def write_plot(result: object, path: str | os.PathLike[str]) -> None:
    """Write the first chart of a result's page as PNG, SVG or PDF, by the ending of the name."""
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    check_choice("the ending of the plot's name", kind, _FORMATS, error=FileError)
    charts = [chart for part in page(result).parts for chart in part.charts]
    if not charts:
        raise InputError("the result must have a chart to be plotted, and this kind has none")
    chart = charts[0]
    if isinstance(chart, LineChart):
        axes = _draw_lines(chart, None)
    else:
        axes = _draw_intervals(chart, chart.views[0], None)
        axes.set_xlabel(chart.x_label)
    axes.set_title(chart.title)
    figure: Any = axes.get_figure(root=True)
    write_atomically(target, lambda file: figure.savefig(file, format=kind, bbox_inches="tight"))


def _with_exact(
    chart: LineChart,
    result: Estimates,
    family: _metrics.MetricFamily,
    full_ranks: npt.ArrayLike | None,
) -> LineChart:
    """Return the chart with the exact curve of these ranks, where they are given."""
    if full_ranks is None:
        return chart
    (view,) = chart.views
    names = [family @ int(k) for k in view.x]
    truth = exact(full_ranks, items=result.counts.largest_catalogue, metrics=names)
    series = Series("exact", -1, np.array([entry.value for entry in truth.entries]))
    return replace(chart, views=(replace(view, series=(*view.series, series)),))


def _draw_lines(chart: LineChart, ax: Axes | None, marker: str = "") -> Axes:
    """Draw the first view of a chart: bands below, then guides, then curves."""
    axes: Axes = _axes_or_new(ax)
    view = chart.views[0]
    for band in view.bands:
        style = 4 if band.style is None else band.style
        colour = _NEUTRAL if band.role == "bounds" else _COLOURS[style]
        alpha = _SHADES[band.role]
        shade = axes.fill_between(view.x, band.low, band.high, color=colour, alpha=alpha, lw=0)
        shade.set_label(band.name)
    for guide in view.guides:
        line = axes.axvline if guide.axis == "x" else axes.axhline
        line(guide.at, color="0.4", lw=0.8, ls=":", label=guide.label)
    for series in view.series:
        there = np.isfinite(series.y)
        axes.plot(
            np.asarray(view.x)[there],
            series.y[there],
            color=_EXACT if series.style < 0 else _COLOURS[series.style],
            ls="--" if series.style < 0 else "" if series.marked else "-",
            marker="o" if series.marked else marker,
            label=series.name,
        )
    axes.set(xscale="log" if chart.log_x else "linear", yscale="log" if chart.log_y else "linear")
    axes.set(xlabel=chart.x_label, ylabel=view.y_label)
    axes.legend(frameon=False)
    return axes


def _draw_intervals(chart: IntervalChart, view: IntervalView, ax: Axes | None) -> Axes:
    """Draw rows from top to bottom: lines of several widths, a circle where it is sure."""
    axes: Axes = _axes_or_new(ax)
    if chart.zero:
        axes.axvline(0, color="0.4", lw=0.8)
    for place, row in enumerate(view.rows):
        colour = _NEUTRAL if chart.zero and row.health == "unsure" else _COLOURS[4]
        for role, width, alpha in _LINES:
            ends, shade = getattr(row, role), _shade(role, colour)
            axes.hlines(place, *ends, color=shade, lw=width, alpha=alpha)
        axes.plot(row.value, place, "o" if row.health == "sure" else "s", color=colour)
    # A dollar sign in a name is not mathematics.
    axes.set_yticks(range(len(view.rows)), [row.label.replace("$", r"\$") for row in view.rows])
    axes.set_ylim(len(view.rows) - 0.5, -0.5)
    return axes


def _shade(role: Role, colour: str = _COLOURS[4]) -> str:
    return _NEUTRAL if role == "bounds" else colour


def _axes_or_new(ax: Axes | None) -> Any:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = import_extra("matplotlib.pyplot", extra="report", purpose="plotting")
    return pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
