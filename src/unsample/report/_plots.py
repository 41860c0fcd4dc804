"""Plots of results on matplotlib axes: the charts of the pages, for papers."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from unsample import metrics as _metrics
from unsample._checks import import_extra, warn
from unsample._files import PLOT_ENDINGS, check_ending, write_atomically
from unsample._rules import printable
from unsample.errors import InputError
from unsample.report._charts import Chart, IntervalChart, IntervalView, LineChart, LineView
from unsample.report._view import view_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE = "C0"
_GREY = "#9aa5b1"
_INK = "#1b1f24"
#: Inches of a plot.
_SIZE = (6.4, 4.0)
#: What the time is called that each format would hold.
_DATE = {"svg": "Date", "pdf": "CreationDate"}


def plot(result: object, *, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """Plot the chart that sums up a result: estimates, differences or means, with intervals.

    Parameters
    ----------
    result
        The result of a question, or a dict of names and estimates.
    metric
        The metric to plot if each has a plot of its own; by default the first.
    ax
        The matplotlib axes to draw on; by default new ones.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    InputError
        If the result has no chart, or none of this metric.
    MissingExtraError
        If matplotlib is not installed.
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
    """Write the chart of a result as PNG, SVG or PDF, by the ending of the name.

    Of curves, all views are drawn, each under its name.

    Raises
    ------
    InputError
        If the name has another ending, or the result has no chart.
    """
    target = Path(path)
    check_ending("path", target, PLOT_ENDINGS)
    chart = _chart(result)
    if isinstance(chart, LineChart) and len(chart.views) > 1:
        write_views(chart, target)
    else:
        write_figure(plot(result, ax=axes_to_write()), target)


def write_views(chart: LineChart, path: str | os.PathLike[str]) -> None:
    """Write all views of a chart beside each other, each under its name, below the title."""
    figures = import_extra("matplotlib.figure", extra="report", purpose="plotting")
    columns = next(number for number in (3, 2, 1) if len(chart.views) % number == 0)
    rows = len(chart.views) // columns
    figure = figures.Figure(figsize=(4.0 * columns, 3.0 * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for index, (axes, view) in enumerate(zip(panels, chart.views, strict=True)):
        draw(chart, index, ax=axes)
        axes.set_title(view.name, fontsize="medium", loc="left")
    figure.suptitle(chart.title)
    _save(figure, Path(path))


def axes_to_write() -> Axes:
    """Return axes of a new figure; one that pyplot makes stays in memory until it is closed."""
    module = import_extra("matplotlib.figure", extra="report", purpose="plotting")
    axes: Axes = module.Figure(figsize=_SIZE, layout="constrained").subplots()
    return axes


def write_figure(axes: Axes, path: str | os.PathLike[str]) -> None:
    """Write the figure of axes as PNG, SVG or PDF, by the ending of the name."""
    target = Path(path)
    check_ending("path", target, PLOT_ENDINGS)
    _save(axes.get_figure(root=True), target)


def _save(figure: Any, path: Path) -> None:
    """Write a figure; the same figure gives the same bytes of an SVG or a PDF file."""
    matplotlib = import_extra("matplotlib", extra="report", purpose="plotting")
    kind = path.suffix.lstrip(".").lower()

    def write(file: IO[bytes]) -> None:
        # Else names of parts are drawn at random, and the time is written.
        with matplotlib.rc_context({"svg.hashsalt": "unsample"}):
            metadata = {_DATE[kind]: None} if kind in _DATE else {}
            figure.savefig(file, format=kind, bbox_inches="tight", metadata=metadata)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write_atomically(path, write)
    if any("missing from" in str(each.message) for each in caught):
        warn(
            "the plot shows boxes in place of some letters of names, which its font does not have; "
            "rename the models, or set a font that has them: matplotlib.rcParams['font.family']"
        )


def _chart(result: object) -> Chart:
    """Return the chart that sums up a result; of a comparison, the differences."""
    view = view_of(result)
    for part in view.parts[view.plotted :]:
        chart = part.chart
        if chart is not None:
            return chart
    raise InputError(f"result must have a chart to plot, got {type(result).__name__}")


def draw(chart: Chart, index: int = 0, *, ax: Axes | None = None) -> Axes:
    """Draw a view of a chart, by default on new axes."""
    axes: Any = ax
    if ax is None:
        pyplot = import_extra("matplotlib.pyplot", extra="report", purpose="plotting")
        axes = pyplot.subplots(figsize=_SIZE, layout="constrained")[1]
    if isinstance(chart, LineChart):
        _draw_lines(chart, chart.views[index], axes=axes)
    else:
        _draw_rows(chart, chart.views[index], axes=axes)
    drawn: Axes = axes
    return drawn


def _label(name: str) -> str:
    """Return a name as a plot shows it: a dollar sign in it is not mathematics."""
    return printable(name).replace("$", r"\$")


def _draw_lines(chart: LineChart, view: LineView, *, axes: Any) -> None:
    """Draw bands below, then guides, then curves."""
    for band in view.bands:
        is_bounds = band.role == "bounds"
        axes.fill_between(
            view.x,
            band.low,
            band.high,
            color=_GREY if is_bounds else _BLUE,
            alpha=0.3 if is_bounds else 0.4,
            lw=0,
            label=band.name,
        )
    if view.guide is not None:
        axes.axvline(view.guide.at, color="0.4", lw=0.8, ls=":", label=view.guide.label)
    for series in view.series:
        axes.plot(view.x, series.y, label=_label(series.name))
    axes.set(xscale="log", xlabel=chart.x_label, ylabel=view.y_label)
    axes.legend(frameon=False)


def _draw_rows(chart: IntervalChart, view: IntervalView, *, axes: Any) -> None:
    """Draw rows from top to bottom, with lines of two widths; a circle is certain, a square not."""
    for height, row in enumerate(view.rows):
        colour = _BLUE if row.sure or not chart.zero else _GREY
        label = chart.sure if row.sure else chart.unsure
        axes.hlines(height, *row.wider, color=_GREY, lw=1.5, label=chart.wider)
        axes.hlines(height, *row.interval, color=colour, lw=6, alpha=0.5, label=label)
        heights = [height] * len(row.marks)
        axes.plot(row.marks, heights, linestyle="none", marker="|", color=_INK, ms=9)
        marker = "o" if row.sure else "s"
        axes.plot(row.value, height, linestyle="none", marker=marker, color=colour)
    labels_of_rows = [_label(row.label) for row in view.rows]
    axes.set_yticks(range(len(view.rows)), labels_of_rows)
    axes.set_ylim(len(view.rows) - 0.5, -0.5)
    if chart.zero:
        axes.axvline(0, color="0.4", lw=0.8)
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel(chart.x_label if view.name == "all" else f"{view.name}, {chart.x_label}")
    handles, labels = axes.get_legend_handles_labels()
    handle_of = {label: handle for label, handle in zip(labels, handles, strict=True) if label}
    axes.legend(
        handle_of.values(),
        handle_of.keys(),
        frameon=False,
        fontsize="small",
        # Above the rows, for lines may be anywhere.
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=len(handle_of),
    )
