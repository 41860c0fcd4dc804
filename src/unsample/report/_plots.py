"""Plots of results on matplotlib axes: the charts of the pages, for papers."""

from __future__ import annotations

import io
import os
import textwrap
import warnings
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
#: Inches of a chart of curves.
_SIZE = (6.4, 4.0)
#: Inches of a chart of intervals beside its rows, and of a row.
_AROUND = 1.2
_ROW = 0.42
#: Longer labels of rows are broken.
_LABEL = 34


class Described(NamedTuple):
    """The title and the description of a picture, which readers of a screen hear."""

    title: str
    text: str


def plot(
    result: object,
    *,
    chart: str | None = None,
    metric: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot a chart of a result: estimates, differences or means with intervals, or curves.

    Parameters
    ----------
    result
        The result of a question, or a dict of names and estimates.
    chart
        Its name, such as ``"ranks"`` for P(R); by default the chart that sums up the result.
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
        If the result has no chart, or none of this name or metric.
    MissingExtraError
        If matplotlib is not installed.
    """
    drawn, index = view_to_plot(result, chart=chart, metric=metric)
    return draw(drawn, index, ax=ax)


def view_to_plot(
    result: object, *, chart: str | None = None, metric: str | None = None
) -> tuple[Chart, int]:
    """Return the chart of this name, and which of its views is of the metric."""
    drawn = _chart(result, chart)
    if metric is None:
        return drawn, 0
    names = [view.name for view in drawn.views]
    name = _metrics.parse(metric).name
    if name not in names:
        raise InputError(f"metric must be one of {', '.join(names)}, got {metric!r}")
    return drawn, names.index(name)


def write_plot(result: object, path: str | os.PathLike[str], *, chart: str | None = None) -> None:
    """Write a chart of a result as PNG, SVG or PDF, by the ending of the name.

    Of curves, all views are drawn, each under its name.

    Raises
    ------
    InputError
        If the name has another ending, or the result has no chart of this name.
    """
    target = Path(path)
    check_ending("path", target, PLOT_ENDINGS)
    drawn = _chart(result, chart)
    if isinstance(drawn, LineChart) and len(drawn.views) > 1:
        write_views(drawn, target)
    else:
        write_figure(
            draw(drawn, ax=axes_to_write(drawn)), target, described=described_by(result, chart)
        )


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
    save_figure(figure, Path(path), described=Described(chart.title, chart.caption))


def axes_to_write(chart: Chart, index: int = 0) -> Axes:
    """Return axes of a new figure; one that pyplot makes stays in memory until it is closed."""
    module = import_extra("matplotlib.figure", extra="report", purpose="plotting")
    axes: Axes = module.Figure(figsize=_size_of(chart, index), layout="constrained").subplots()
    return axes


def _size_of(chart: Chart, index: int) -> tuple[float, float]:
    """Return the inches of a view: one of intervals is as high as its rows need."""
    if isinstance(chart, LineChart):
        return _SIZE
    lines = sum(1 + _label(row.label).count("\n") for row in chart.views[index].rows)
    return _SIZE[0], _AROUND + _ROW * lines


def write_figure(axes: Axes, path: str | os.PathLike[str], *, described: Described) -> None:
    """Write the figure of axes as PNG, SVG or PDF, by the ending of the name."""
    target = Path(path)
    check_ending("path", target, PLOT_ENDINGS)
    save_figure(axes.get_figure(root=True), target, described=described)


def save_figure(figure: Any, path: Path, *, described: tuple[str, str], **options: Any) -> None:
    """Write a figure with its title and its description, in the form of the file's ending."""
    content = picture_of(figure, path.suffix.lstrip(".").lower(), described=described, **options)
    write_atomically(path, lambda file: file.write(content))


def picture_of(figure: Any, kind: str, *, described: tuple[str, str], **options: Any) -> bytes:
    """Return a figure as SVG, PDF or PNG; nothing in it tells the day.

    Parameters
    ----------
    figure
        The figure of matplotlib.
    kind
        ``"svg"``, ``"pdf"`` or ``"png"``.
    described
        The title and the description, which readers of a screen hear.
    options
        Other arguments of ``savefig``.

    Returns
    -------
    bytes
        The content of the file.
    """
    title, text = described
    if kind == "svg":
        metadata = {"Title": title, "Creator": "unsample", "Date": None}
    elif kind == "pdf":
        metadata = {"Title": title, "Subject": text, "CreationDate": None}
    else:
        metadata = {"Title": title, "Description": text}
    drawn = io.BytesIO()
    how = {"bbox_inches": "tight"} | options
    matplotlib = import_extra("matplotlib", extra="report", purpose="plotting")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Else names of parts are drawn at random.
        with matplotlib.rc_context({"svg.hashsalt": "unsample"}):
            figure.savefig(drawn, format=kind, metadata=metadata, **how)
    if any("missing from" in str(each.message) for each in caught):
        warn(
            "the plot shows boxes in place of some letters of names, which its font does not have; "
            "rename the models, or set a font that has them: matplotlib.rcParams['font.family']"
        )
    content = drawn.getvalue()
    if kind == "svg":
        content = _with_description(content.decode("utf-8"), text).encode("utf-8")
    return content


def _with_description(svg: str, text: str) -> str:
    r"""Return an SVG that is one picture to readers of a screen, with its description.

    >>> print(_with_description("<svg width='1'>\n <title>Plot</title>\n</svg>", "Two < three."))
    <svg role="img" width='1'>
     <title>Plot</title><desc>Two &lt; three.</desc>
    </svg>
    """
    picture = svg.replace("<svg ", '<svg role="img" ', 1)
    return picture.replace("</title>", f"</title><desc>{escape(text)}</desc>", 1)


def described_by(result: object, chart: str | None = None) -> Described:
    """Return the title and the description of a chart: what it shows, and of which data."""
    view = view_of(result)
    drawn = _chart(result, chart)
    return Described(drawn.title or view.title, f"{'; '.join(view.about)}. {drawn.caption}")


def _chart(result: object, name: str | None = None) -> Chart:
    """Return the chart of this name, or the one that sums up a result.

    A comparison is summed up by its differences.
    """
    view = view_of(result)
    charts = [part.chart for part in (*view.parts[view.plotted :], *view.parts[: view.plotted])]
    by_name = {chart.name: chart for chart in charts if chart is not None}
    if not by_name:
        raise InputError(f"result must have a chart to plot, got {type(result).__name__}")
    if name is None:
        return next(iter(by_name.values()))
    if name not in by_name:
        raise InputError(f"chart must be one of {', '.join(by_name)}, got {name!r}")
    return by_name[name]


def draw(chart: Chart, index: int = 0, *, ax: Axes | None = None) -> Axes:
    """Draw a view of a chart, by default on new axes."""
    axes: Any = ax
    if ax is None:
        pyplot = import_extra("matplotlib.pyplot", extra="report", purpose="plotting")
        size = _size_of(chart, index)
        axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    if isinstance(chart, LineChart):
        _draw_lines(chart, chart.views[index], axes=axes)
    else:
        _draw_rows(chart, chart.views[index], axes=axes)
    drawn: Axes = axes
    return drawn


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
    if chart.log_y:
        axes.set_yscale("log", nonpositive="clip")
        axes.set_ylim(view.floor, None)
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


def _label(text: str) -> str:
    """Return a name as a plot shows it, in lines: a dollar sign in it is not mathematics."""
    lines = textwrap.wrap(printable(text), _LABEL, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("$", r"\$")
