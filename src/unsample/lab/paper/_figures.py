"""The paper's figures and two of our own: from rows to SVG images inside a page.

Each estimator has the same colour, dash pattern and marker in all figures, so that no reader needs
the colours. These are variables inside an image, which suits light and dark pages.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unsample._checks import import_extra
from unsample.lab.paper._report_tables import (
    Row,
    candidates_name,
    grouped,
    in_dataset_order,
    is_number,
    median_relative,
    metric_name,
    percent,
    values_of,
)
from unsample.lab.paper._tables import Reproduction

_EXACT = "exact"
#: The paper draws three recommenders; more would not make the point better.
_SHOWN_RECOMMENDERS = 3
_PREFERRED = ("NDCG", "Recall", "AP")
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
    """One set of axes: what it is called, how it is drawn, and in words what it shows."""

    title: str
    draw: Callable[[Any], None]
    description: str


def distribution_figures(results: Reproduction) -> tuple[Drawing, ...]:
    """Return learned P(R) against the exact one, for each data set and its candidates."""
    styles = _styles(results)
    groups = grouped(in_dataset_order(results.distributions, results), "dataset", "candidates")
    drawings: list[Drawing] = []
    for (dataset, candidates), rows in groups.items():
        by_recommender = grouped(rows, "recommender")
        if all(len(values_of(group, "sampled")) > 1 for group in by_recommender.values()):
            continue  # the figures of small against large samples show all of this already
        smallest, last = min(values_of(rows, "sampled")), max(values_of(rows, "rank"))
        panels = {
            str(name): [row for row in group if row["sampled"] == smallest]
            for (name,), group in list(by_recommender.items())[:_SHOWN_RECOMMENDERS]
        }
        drawings.append(
            _rank_drawing(
                f"ranks-{len(drawings) + 1}",
                f"{dataset}, {candidates_name(candidates)}",
                f"Recall@R, for the first {last} ranks; {smallest} items sampled",
                panels,
                styles,
            )
        )
    return tuple(drawings)


def sample_size_figures(results: Reproduction) -> tuple[Drawing, ...]:
    """Return P(R) by sample size, where a recommender was run with several."""
    styles = _styles(results)
    rows = in_dataset_order(results.distributions, results)
    drawings: list[Drawing] = []
    for names, group in grouped(rows, "dataset", "candidates", "recommender").items():
        dataset, candidates, recommender = names
        sizes = sorted(values_of(group, "sampled"))
        if len(sizes) < 2:
            continue
        listed = " and ".join(map(str, sizes))
        drawings.append(
            _rank_drawing(
                f"sizes-{len(drawings) + 1}",
                f"{recommender} on {dataset}, {candidates_name(candidates)}",
                f"Recall@R, with {listed} items sampled",
                {f"n = {n + 1}": [row for row in group if row["sampled"] == n] for n in sizes},
                styles,
            )
        )
    return tuple(drawings)


def sweep_figures(results: Reproduction) -> tuple[Drawing, ...]:
    """Return relative errors against the sample size on logarithmic axes."""
    styles = _styles(results)
    groups = grouped(in_dataset_order(results.sweep, results), "candidates")
    drawings = []
    for number, ((candidates,), rows) in enumerate(groups.items(), start=1):
        chosen = _preferred_metric(rows)
        panels = [
            _sweep_panel(column, dataset, group, styles)
            for (dataset,), group in grouped(chosen, "dataset").items()
            for column in ("bias", "rmse")
        ]
        caption = (
            f"Relative error of {metric_name(chosen[0])} against the number of sampled items, "
            "both axes logarithmic, median over recommenders: |bias| / exact, then RMSE / exact, "
            "for each data set."
        )
        title = f"Error by sample size, {candidates_name(candidates)}"
        drawings.append(_drawing(f"sweep-{number}", title, caption, panels, columns=2))
    return tuple(drawings)


def error_figures(results: Reproduction) -> tuple[Drawing, ...]:
    """Return relative bias and RMSE by estimator."""
    styles = _styles(results)
    caption = (
        "Solid bars: |bias| / exact. Outlined bars: RMSE / exact. Medians over recommenders and "
        "metrics; shorter is better."
    )
    drawings = []
    groups = grouped(results.accuracy, "candidates")
    for number, ((candidates,), rows) in enumerate(groups.items(), start=1):
        panels = [
            _error_panel(dataset, sampled, group, styles)
            for (dataset, sampled), group in grouped(rows, "dataset", "sampled").items()
        ]
        title = f"Bias and RMSE by estimator, {candidates_name(candidates)}"
        drawing = _drawing(f"errors-{number}", title, caption, panels, columns=2, legend=False)
        drawings.append(drawing)
    return tuple(drawings)


def _styles(results: Reproduction) -> dict[str, int]:
    """Return one style for each estimator, the same in all figures."""
    rows = [*results.accuracy, *results.sweep, *results.distributions]
    names = [name for name in values_of(rows, "estimator") if name != _EXACT]
    return {name: number % len(_SERIES) for number, name in enumerate(names)}


# -- rank distributions -----------------------------------------------------------------------


def _rank_drawing(
    identity: str,
    title: str,
    what: str,
    panels: Mapping[str, Sequence[Row]],
    styles: dict[str, int],
) -> Drawing:
    return _drawing(
        identity,
        title,
        f"Learned P(R) and, below, its sums, which are {what}, mean over repeats. The filled area "
        "is the exact distribution.",
        [
            _rank_panel(column, name, rows, styles)
            for column in ("pmf", "cdf")
            for name, rows in panels.items()
        ],
        columns=len(panels),
    )


def _rank_panel(column: str, title: str, rows: Sequence[Row], styles: dict[str, int]) -> _Panel:
    known = grouped([row for row in rows if is_number(row[column])], "estimator")
    curves = {
        name: ([row["rank"] for row in group], [row[column] for row in group])
        for (name,), group in known.items()
    }

    def draw(axes: Any) -> None:
        for name, (ranks, values) in curves.items():
            if name == _EXACT:
                axes.fill_between(ranks, values, color=_TEXT, alpha=0.18, linewidth=0, label=name)
            else:
                axes.plot(ranks, values, **_line(styles[name]), label=name)
        axes.set_xlabel("rank R")
        axes.set_ylabel(_LABELS[column])
        axes.set_ylim(bottom=0)
        axes.margins(x=0)

    ends = "; ".join(f"{name} {values[-1]:.3g}" for name, (_, values) in curves.items())
    what = f"{_LABELS[column]} against rank R for {title}. At the last rank: {ends}."
    return _Panel(title, draw, what)


# -- errors -----------------------------------------------------------------------------------


def _sweep_panel(column: str, dataset: str, rows: Sequence[Row], styles: dict[str, int]) -> _Panel:
    errors = {}
    for (name,), group in grouped(rows, "estimator").items():
        sizes = grouped(sorted(group, key=lambda row: row["sampled"]), "sampled")
        medians = {size: median_relative(part, column) for (size,), part in sizes.items()}
        errors[name] = {size: error for size, error in medians.items() if error}

    def draw(axes: Any) -> None:
        axes.set_xscale("log")
        axes.set_yscale("log")
        for name, known in errors.items():
            style = _line(styles[name]) | {"marker": _MARKERS[styles[name]], "markersize": 5}
            axes.plot(list(known), list(known.values()), **style, label=name)
        ticks = sorted(values_of(rows, "sampled"))
        axes.set_xticks(ticks, [str(size) for size in ticks], minor=False)
        axes.set_xticks([], minor=True)
        _percents(axes.yaxis, log=True)
        axes.set_xlabel("sampled items")
        axes.set_ylabel(_LABELS[column])

    ends = "; ".join(
        f"{n} {percent(list(known.values())[-1])}" for n, known in errors.items() if known
    )
    what = f"{_LABELS[column]} on {dataset} against the sample size. At the largest: {ends}."
    return _Panel(f"{dataset}: {_LABELS[column]}", draw, what)


def _preferred_metric(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows of one metric: the three behave alike, and NDCG is the most used."""
    groups = grouped(rows, "metric", "k")
    order = {name: place for place, name in enumerate(_PREFERRED)}
    return groups[min(groups, key=lambda names: order.get(names[0], len(order)))]


def _error_panel(dataset: str, sampled: int, rows: Sequence[Row], styles: dict[str, int]) -> _Panel:
    errors = {
        name: {column: median_relative(group, column) for column in ("bias", "rmse")}
        for (name,), group in grouped(rows, "estimator").items()
    }
    colours = list(_SERIES)

    def draw(axes: Any) -> None:
        for place, (name, found) in enumerate(errors.items()):
            colour = colours[styles[name]]
            for column, at, face in (("bias", -0.2, colour), ("rmse", 0.2, "none")):
                bar = axes.barh(
                    place + at, found[column] or 0.0, 0.34, facecolor=face, edgecolor=colour
                )
                axes.bar_label(bar, [percent(found[column])], padding=3, color=_QUIET, fontsize=8)
        axes.set_yticks(range(len(errors)), list(errors))
        axes.invert_yaxis()
        axes.margins(x=0.18)
        axes.set_xlim(left=0)
        _percents(axes.xaxis)
        axes.set_xlabel("share of the exact value")

    told = "; ".join(
        f"{name}: bias {percent(found['bias'])}, RMSE {percent(found['rmse'])}"
        for name, found in errors.items()
    )
    what = f"Relative bias and RMSE on {dataset}. {told}."
    return _Panel(f"{dataset}, {sampled} sampled", draw, what)


# -- drawing ----------------------------------------------------------------------------------


def _drawing(
    identity: str,
    title: str,
    caption: str,
    panels: Sequence[_Panel],
    *,
    columns: int,
    legend: bool = True,
) -> Drawing:
    """Return panels side by side, in rows that share their vertical axes where they have one."""
    matplotlib = import_extra("matplotlib", extra="report", purpose="an HTML report")
    figures = import_extra("matplotlib.figure", extra="report", purpose="an HTML report")
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(_RC):
        size = (_WIDTH * columns, _HEIGHT * rows + 0.4 * legend)
        figure = figures.Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for place, panel in zip(axes, panels, strict=False):
            panel.draw(place)
            place.set_title(panel.title, loc="left", fontweight="bold", fontsize=10)
        for spare in axes[len(panels) :]:
            spare.remove()
        for start in range(0, len(panels) if legend else 0, columns):
            _share_limits(axes[start : min(start + columns, len(panels))])
        if legend:
            handles = {
                label: handle
                for place in axes
                for handle, label in zip(*place.get_legend_handles_labels(), strict=True)
            }
            figure.legend(handles.values(), handles, loc="outside upper left", ncols=7)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata=dict.fromkeys(("Creator", "Date")))
    return Drawing(
        identity, title, caption, " ".join(p.description for p in panels), _source(text.getvalue())
    )


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


def _line(style: int) -> dict[str, Any]:
    return {"color": list(_SERIES)[style], "linestyle": _DASHES[style], "linewidth": 1.5}


def _share_limits(row: Sequence[Any]) -> None:
    """Give the panels of a row that show the same quantity one vertical axis."""
    if len({place.get_ylabel() for place in row}) == 1:
        low = min(place.get_ylim()[0] for place in row)
        high = max(place.get_ylim()[1] for place in row)
        for place in row:
            place.set_ylim(low, high)


def _percents(axis: Any, *, log: bool = False) -> None:
    """Write the values of an axis in percent, at few and round places."""
    ticker = import_extra("matplotlib.ticker", extra="report", purpose="an HTML report")
    places = ticker.LogLocator(subs=(1, 2, 5)) if log else ticker.MaxNLocator(5)
    axis.set_major_locator(places)
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{100 * value:.4g} %"))


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
