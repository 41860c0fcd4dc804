"""The paper's figures: from rows to SVG images inside a page.

A figure is some panels of lines, one line an estimator. Each estimator has the same colour, dash
pattern and marker in all figures, so that no reader needs the colours. These are variables inside
an image, which suits light and dark pages.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unsample._checks import import_extra
from unsample.lab.paper._report_tables import (
    candidates_name,
    grouped,
    in_dataset_order,
    median_relative,
    metric_name,
    percent,
    values_of,
)
from unsample.lab.paper._tables import Reproduction, Row

_EXACT = "exact"
#: The paper draws three recommenders; more would not make the point better.
_SHOWN_RECOMMENDERS = 3
#: The metric of the sweep: the three behave alike, and this is the most used.
_SWEPT = "NDCG"
_LABELS = {
    "pmf": "probability P(R)",
    "cdf": "P(rank ≤ R) = Recall@R",
    "bias": "|bias| / exact",
    "rmse": "RMSE / exact",
}

#: Colours on light pages, and on dark ones.
_INK = {"#1b1f24": "#e6e9ec", "#57606a": "#a3adb8", "#d0d5db": "#3a414a"}
_SERIES = {
    "#5c6670": "#aab4bf",
    "#a8327a": "#f49ad0",
    "#8a6100": "#e3b93c",
    "#0062b0": "#6cb8ff",
    "#007a5a": "#3fd6a8",
    "#c2410c": "#ff9a5c",
}
_TEXT, _QUIET, _RULE = _INK
_DASHES: tuple[Any, ...] = (
    (0, (1, 2)), (0, (6, 2)), (0, (3, 2)), "solid", (0, (5, 2, 1, 2)), (0, (4, 1, 1, 1, 1, 1)),
)  # fmt: skip
_MARKERS = ("^", "D", "x", "+", "v", "o")
#: Inches of one panel.
_WIDTH, _HEIGHT = 4.2, 2.8
_RC: dict[str, Any] = {
    "svg.hashsalt": "unsample",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _QUIET,
    "axes.labelcolor": _QUIET,
    "axes.titlecolor": _TEXT,
    "xtick.color": _QUIET,
    "ytick.color": _QUIET,
    "text.color": _TEXT,
    "grid.color": _RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.labelcolor": _TEXT,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@dataclass(frozen=True)
class Drawing:
    """One image with its words; ``description`` is for those who do not see it."""

    identity: str
    title: str
    caption: str
    description: str
    #: The image as the address of an ``img``.
    source: str


@dataclass(frozen=True)
class _Panel:
    """One set of axes: the points (x, y) of each estimator, on plain or on logarithmic axes."""

    title: str
    across: str
    up: str
    curves: Mapping[str, Sequence[tuple[float, float]]]
    logarithmic: bool = False

    @property
    def description(self) -> str:
        """Return in words what the panel shows."""
        ends = "; ".join(
            f"{name} {percent(points[-1][1]) if self.logarithmic else format(points[-1][1], '.3g')}"
            for name, points in self.curves.items()
            if points
        )
        return f"{self.title}: {self.up} against {self.across}. At the end: {ends}."


def distribution_figures(results: Reproduction) -> tuple[Drawing, ...]:
    """Return learned P(R) against the exact one, for each data set and its candidates."""
    drawings: list[Drawing] = []
    rows = in_dataset_order(results.distributions, results)
    for (dataset, candidates), group in grouped(rows, "dataset", "candidates").items():
        by_recommender = grouped(group, "recommender")
        if all(len(values_of(each, "sampled")) > 1 for each in by_recommender.values()):
            continue  # the figures of small against large samples show all of this already
        smallest, last = min(values_of(group, "sampled")), max(values_of(group, "rank"))
        panels = {
            str(name): [row for row in each if row["sampled"] == smallest]
            for (name,), each in list(by_recommender.items())[:_SHOWN_RECOMMENDERS]
        }
        title = f"{dataset}, {candidates_name(candidates)}"
        what = f"Recall@R, for the first {last} ranks; {smallest} items sampled"
        identity = f"ranks-{len(drawings) + 1}"
        drawings.append(_rank_drawing(identity, title, what, panels, _styles(results)))
    return tuple(drawings)


def sample_size_figures(results: Reproduction) -> tuple[Drawing, ...]:
    """Return P(R) by sample size, where a recommender was run with several."""
    drawings: list[Drawing] = []
    rows = in_dataset_order(results.distributions, results)
    for names, group in grouped(rows, "dataset", "candidates", "recommender").items():
        dataset, candidates, recommender = names
        sizes = sorted(values_of(group, "sampled"))
        if len(sizes) > 1:
            panels = {f"n = {n + 1}": [row for row in group if row["sampled"] == n] for n in sizes}
            title = f"{recommender} on {dataset}, {candidates_name(candidates)}"
            what = f"Recall@R, with {' and '.join(map(str, sizes))} items sampled"
            identity = f"sizes-{len(drawings) + 1}"
            drawings.append(_rank_drawing(identity, title, what, panels, _styles(results)))
    return tuple(drawings)


def sweep_figures(results: Reproduction) -> tuple[Drawing, ...]:
    """Return relative errors against the sample size on logarithmic axes."""
    drawings = []
    rows = [row for row in in_dataset_order(results.sweep, results) if row["metric"] == _SWEPT]
    for number, ((candidates,), group) in enumerate(grouped(rows, "candidates").items(), start=1):
        panels = [
            _Panel(
                f"{dataset}: {_LABELS[column]}",
                "sampled items",
                _LABELS[column],
                _errors_by_size(column, part),
                logarithmic=True,
            )
            for (dataset,), part in grouped(group, "dataset").items()
            for column in ("bias", "rmse")
        ]
        caption = (
            f"Relative error of {metric_name(group[0])} against the number of sampled items, "
            "both axes logarithmic, median over recommenders: |bias| / exact, then RMSE / exact, "
            "for each data set."
        )
        title = f"Error by sample size, {candidates_name(candidates)}"
        styles = _styles(results)
        drawings.append(_drawing(f"sweep-{number}", title, caption, panels, styles, columns=2))
    return tuple(drawings)


def _styles(results: Reproduction) -> dict[str, int]:
    """Return one style for each estimator, the same in all figures."""
    rows = [*results.accuracy, *results.sweep, *results.distributions]
    names = [name for name in values_of(rows, "estimator") if name != _EXACT]
    return {name: number % len(_SERIES) for number, name in enumerate(names)}


def _rank_drawing(
    identity: str,
    title: str,
    what: str,
    panels: Mapping[str, Sequence[Row]],
    styles: Mapping[str, int],
) -> Drawing:
    caption = (
        f"Learned P(R) and, below, its sums, which are {what}, mean over repeats. The filled area "
        "is the exact distribution."
    )
    shown = [
        _Panel(
            name,
            "rank R",
            _LABELS[column],
            {
                label: [(row["rank"], row[column]) for row in group]
                for (label,), group in grouped(rows, "estimator").items()
            },
        )
        for column in ("pmf", "cdf")
        for name, rows in panels.items()
    ]
    return _drawing(identity, title, caption, shown, styles, columns=len(panels))


def _errors_by_size(column: str, rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    """Return the median relative error of each estimator at each sample size, where it has one."""
    found = {}
    for (name,), group in grouped(rows, "estimator").items():
        sizes = grouped(sorted(group, key=lambda row: row["sampled"]), "sampled")
        medians = [(size, median_relative(part, column)) for (size,), part in sizes.items()]
        found[name] = [(size, error) for size, error in medians if error]
    return found


# -- drawing ----------------------------------------------------------------------------------


def _drawing(
    identity: str,
    title: str,
    caption: str,
    panels: Sequence[_Panel],
    styles: Mapping[str, int],
    *,
    columns: int,
) -> Drawing:
    """Return panels side by side, in rows that share their vertical axes where they have one."""
    matplotlib = import_extra("matplotlib", extra="report", purpose="an HTML report")
    figures = import_extra("matplotlib.figure", extra="report", purpose="an HTML report")
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(_RC):
        size = (_WIDTH * columns, _HEIGHT * rows + 0.4)
        figure = figures.Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for place, panel in zip(axes, panels, strict=True):
            _draw(place, panel, styles)
        for start in range(0, len(panels), columns):
            _share_limits(axes[start : start + columns])
        handles = {
            label: handle
            for place in axes
            for handle, label in zip(*place.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles, loc="outside upper left", ncols=7)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date")))
    words = " ".join(panel.description for panel in panels)
    return Drawing(identity, title, caption, words, _source(text.getvalue()))


def _draw(axes: Any, panel: _Panel, styles: Mapping[str, int]) -> None:
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    for name, points in panel.curves.items():
        across, up = [x for x, _ in points], [y for _, y in points]
        if name == _EXACT:
            axes.fill_between(across, up, color=_TEXT, alpha=0.18, linewidth=0, label=name)
            continue
        style = styles[name]
        marked = {"marker": _MARKERS[style], "markersize": 5} if panel.logarithmic else {}
        colour = {"color": list(_SERIES)[style], "linestyle": _DASHES[style], "linewidth": 1.5}
        axes.plot(across, up, **colour, **marked, label=name)
    if panel.logarithmic:
        _tick_sizes_and_percents(axes, panel)
    else:
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
    axes.set_xlabel(panel.across)
    axes.set_ylabel(panel.up)
    axes.set_title(panel.title, loc="left", fontweight="bold", fontsize=10)


def _tick_sizes_and_percents(axes: Any, panel: _Panel) -> None:
    """Name the tried sizes across, and errors in percent at few and round places."""
    ticker = import_extra("matplotlib.ticker", extra="report", purpose="an HTML report")
    sizes = sorted({size for points in panel.curves.values() for size, _ in points})
    axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{100 * value:.4g} %"))


def _share_limits(row: Sequence[Any]) -> None:
    """Give the panels of a row that show the same quantity one vertical axis."""
    if len({place.get_ylabel() for place in row}) == 1:
        low = min(place.get_ylim()[0] for place in row)
        high = max(place.get_ylim()[1] for place in row)
        for place in row:
            place.set_ylim(low, high)


def _source(svg: str) -> str:
    """Return an SVG as an address that holds it, with colours that follow the page's."""
    # A tenth of a point is as fine as anybody sees, and a third of the size.
    svg = re.sub(r' d="[^"]+"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), svg)
    colours = _INK | _SERIES
    for number, light in enumerate(colours):
        svg = svg.replace(light, f"var(--c{number})")
    light_rules = "".join(f"--c{n}:{light};" for n, light in enumerate(colours))
    dark_rules = "".join(f"--c{n}:{dark};" for n, dark in enumerate(colours.values()))
    style = f":root{{{light_rules}}}@media(prefers-color-scheme:dark){{:root{{{dark_rules}}}}}"
    svg = svg.replace("<defs>", f"<style>{style}</style><defs>", 1)
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")
