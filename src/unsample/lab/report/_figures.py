"""The paper's figures and two of our own, from rows to charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray
from unsample.lab.report._results import Results, Row, grouped, in_dataset_order, values_of
from unsample.lab.report._svg import Bars, Drawing, Series, bar_chart, line_chart, sample
from unsample.lab.report._tables import median_relative, metric_name, protocol_name
from unsample.pages._format import is_number, percent

__all__ = [
    "Figure",
    "Key",
    "distribution_figures",
    "error_figures",
    "sample_size_figures",
    "sweep_figures",
]

_EXACT = "exact"
#: The paper draws three recommenders; more would not make the point better.
_SHOWN_RECOMMENDERS = 3
_PREFERRED = ("NDCG", "Recall", "AP")


@dataclass(frozen=True)
class Key:
    """One entry of a legend."""

    label: str
    sample: Drawing


@dataclass(frozen=True)
class Figure:
    """Panels that share a legend and a caption."""

    identity: str
    title: str
    caption: str
    keys: tuple[Key, ...]
    panels: tuple[Drawing, ...]
    #: Panels side by side where the page is wide enough.
    columns: int


def distribution_figures(results: Results) -> tuple[Figure, ...]:
    """Return learned P(R) against the exact one, for each data set and protocol."""
    styles = _styles(results)
    groups = grouped(in_dataset_order(results.distributions, results), "dataset", "protocol")
    return tuple(
        _distribution_figure(f"ranks-{number}", dataset, protocol, rows, styles)
        for number, ((dataset, protocol), rows) in enumerate(groups.items(), start=1)
        if not _all_have_sizes(rows)
    )


def sample_size_figures(results: Results) -> tuple[Figure, ...]:
    """Return P(R) by sample size, where a recommender was run with several."""
    styles = _styles(results)
    rows = in_dataset_order(results.distributions, results)
    groups = grouped(rows, "dataset", "protocol", "recommender")
    several = {names: rows for names, rows in groups.items() if len(values_of(rows, "sampled")) > 1}
    return tuple(
        _sample_size_figure(f"sizes-{number}", dataset, protocol, recommender, rows, styles)
        for number, ((dataset, protocol, recommender), rows) in enumerate(several.items(), start=1)
    )


def sweep_figures(results: Results) -> tuple[Figure, ...]:
    """Return relative errors against the sample size on logarithmic axes, for each protocol."""
    styles = _styles(results)
    groups = grouped(in_dataset_order(results.sweep, results), "protocol")
    return tuple(
        _sweep_figure(f"sweep-{number}", protocol, rows, styles)
        for number, ((protocol,), rows) in enumerate(groups.items(), start=1)
    )


def error_figures(results: Results) -> tuple[Figure, ...]:
    """Return relative bias and RMSE by estimator, for each protocol."""
    styles = _styles(results)
    groups = grouped(results.accuracy, "protocol")
    return tuple(
        _error_figure(f"errors-{number}", protocol, rows, styles)
        for number, ((protocol,), rows) in enumerate(groups.items(), start=1)
    )


def _styles(results: Results) -> dict[str, int]:
    """Return one style for each estimator, the same in all figures; the exact values have 0."""
    rows = [*results.accuracy, *results.sweep, *results.distributions]
    names = [name for name in values_of(rows, "estimator") if name != _EXACT]
    return {_EXACT: 0, **{name: number for number, name in enumerate(names, start=1)}}


def _distribution_figure(
    identity: str, dataset: str, protocol: str, rows: Sequence[Row], styles: dict[str, int]
) -> Figure:
    smallest = min(values_of(rows, "sampled"))
    first = [row for row in rows if row["sampled"] == smallest]
    recommenders = grouped(first, "recommender")
    shown = list(recommenders.items())[:_SHOWN_RECOMMENDERS]
    panels = [
        _rank_panel(f"{identity}-{column}-{number}", column, recommender, group, styles)
        for column in ("pmf", "cdf")
        for number, ((recommender,), group) in enumerate(shown, start=1)
    ]
    return Figure(
        identity=identity,
        title=f"{dataset}, {protocol_name(protocol)}",
        caption=(
            f"Learned P(R) and, below, its sums, which are Recall@R, for the first "
            f"{_last_rank(first)} ranks; {smallest} items sampled, mean over repeats. "
            f"The filled area is the exact distribution."
        ),
        keys=_keys(first, styles),
        panels=tuple(panels),
        columns=max(len(shown), 2),
    )


def _sample_size_figure(
    identity: str,
    dataset: str,
    protocol: str,
    recommender: str,
    rows: Sequence[Row],
    styles: dict[str, int],
) -> Figure:
    sizes = grouped(sorted(rows, key=lambda row: row["sampled"]), "sampled")
    panels = [
        _rank_panel(
            f"{identity}-{column}-{size}", column, f"n = {size + 1}", group, styles, beside=rows
        )
        for column in ("pmf", "cdf")
        for (size,), group in sizes.items()
    ]
    listed = " and ".join(str(size) for (size,) in sizes)
    return Figure(
        identity=identity,
        title=f"{recommender} on {dataset}, {protocol_name(protocol)}",
        caption=(
            f"Learned P(R) and, below, its sums with {listed} items sampled, "
            f"mean over repeats. The filled area is the exact distribution."
        ),
        keys=_keys(rows, styles),
        panels=tuple(panels),
        columns=len(sizes),
    )


def _rank_panel(
    identity: str,
    column: str,
    title: str,
    rows: Sequence[Row],
    styles: dict[str, int],
    *,
    beside: Sequence[Row] = (),
) -> Drawing:
    """Return curves over ranks, on the same vertical axis as the rows shown ``beside`` them."""
    series = [
        Series(
            label=name,
            style=styles[name],
            x=_column(group, "rank"),
            y=_column(group, column),
            filled=name == _EXACT,
        )
        for (name,), group in grouped(
            [row for row in rows if is_number(row[column])], "estimator"
        ).items()
    ]
    what = "probability P(R)" if column == "pmf" else "P(rank ≤ R) = Recall@R"
    ends = "; ".join(f"{one.label} {one.y[-1]:.3g}" for one in series)
    return line_chart(
        identity=identity,
        title=title,
        description=f"{what} against rank R for {title}. At the last rank: {ends}.",
        x_label="rank R",
        y_label=what,
        # What is filled goes below the lines.
        series=sorted(series, key=lambda one: not one.filled),
        y_shared=_column([row for row in beside if is_number(row[column])], column),
    )


def _sweep_figure(
    identity: str, protocol: str, rows: Sequence[Row], styles: dict[str, int]
) -> Figure:
    chosen = _preferred_metric(rows)
    name = metric_name(chosen[0])
    panels = [
        _sweep_panel(f"{identity}-{column}-{number}", column, dataset, group, styles)
        for number, ((dataset,), group) in enumerate(grouped(chosen, "dataset").items(), start=1)
        for column in ("bias", "rmse")
    ]
    return Figure(
        identity=identity,
        title=f"Error by sample size, {protocol_name(protocol)}",
        caption=(
            f"Relative error of {name} against the number of sampled items, both axes "
            f"logarithmic, median over recommenders: |bias| / exact, then RMSE / exact, for each "
            f"data set."
        ),
        keys=_keys(chosen, styles, marked=True),
        panels=tuple(panels),
        columns=2,
    )


def _sweep_panel(
    identity: str, column: str, dataset: str, rows: Sequence[Row], styles: dict[str, int]
) -> Drawing:
    what = {"bias": "|bias| / exact", "rmse": "RMSE / exact"}[column]
    series = [
        _sweep_series(name, styles[name], group, column)
        for (name,), group in grouped(rows, "estimator").items()
    ]
    ends = "; ".join(f"{s.label} {percent(float(s.y[-1]))}" for s in series if len(s.y))
    return line_chart(
        identity=identity,
        title=f"{dataset}: {what}",
        description=f"{what} on {dataset} against the sample size. At the largest: {ends}.",
        x_label="sampled items",
        y_label=what,
        series=series,
        log=True,
        x_ticks=sorted(values_of(rows, "sampled")),
        y_percent=True,
    )


def _sweep_series(label: str, style: int, rows: Sequence[Row], column: str) -> Series:
    sizes = grouped(sorted(rows, key=lambda row: row["sampled"]), "sampled")
    errors = {size: median_relative(group, column) for (size,), group in sizes.items()}
    known = {size: error for size, error in errors.items() if error is not None}
    return Series(
        label=label,
        style=style,
        x=np.array(list(known), dtype=np.float64),
        y=np.array(list(known.values()), dtype=np.float64),
        marked=True,
    )


def _error_figure(
    identity: str, protocol: str, rows: Sequence[Row], styles: dict[str, int]
) -> Figure:
    panels = [
        _error_panel(f"{identity}-{number}", dataset, sampled, group, styles)
        for number, ((dataset, sampled), group) in enumerate(
            grouped(rows, "dataset", "sampled").items(), start=1
        )
    ]
    return Figure(
        identity=identity,
        title=f"Bias and RMSE by estimator, {protocol_name(protocol)}",
        caption=(
            "Solid bars: |bias| / exact. Outlined bars: RMSE / exact. "
            "Medians over recommenders and metrics; shorter is better."
        ),
        keys=(),
        panels=tuple(panels),
        columns=2,
    )


def _error_panel(
    identity: str, dataset: str, sampled: int, rows: Sequence[Row], styles: dict[str, int]
) -> Drawing:
    bars = [
        _bars(name, styles[name], group) for (name,), group in grouped(rows, "estimator").items()
    ]
    told = "; ".join(f"{b.label}: bias {b.solid_text}, RMSE {b.outlined_text}" for b in bars)
    return bar_chart(
        identity=identity,
        title=f"{dataset}, {sampled} sampled",
        description=f"Relative bias and RMSE on {dataset}. {told}.",
        x_label="share of the exact value",
        bars=bars,
    )


def _bars(label: str, style: int, rows: Sequence[Row]) -> Bars:
    bias, rmse = median_relative(rows, "bias"), median_relative(rows, "rmse")
    return Bars(
        label=label,
        style=style,
        solid=bias or 0.0,
        outlined=rmse or 0.0,
        solid_text=percent(bias),
        outlined_text=percent(rmse),
    )


def _all_have_sizes(rows: Sequence[Row]) -> bool:
    """Return whether the figures of small against large samples show all of this already."""
    groups = grouped(rows, "recommender").values()
    return all(len(values_of(group, "sampled")) > 1 for group in groups)


def _preferred_metric(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows of one metric: the three behave alike, and NDCG is the most used."""
    groups = grouped(rows, "metric", "k")
    order = {name: place for place, name in enumerate(_PREFERRED)}
    best = min(groups, key=lambda names: order.get(names[0], len(order)))
    return groups[best]


def _keys(rows: Sequence[Row], styles: dict[str, int], *, marked: bool = False) -> tuple[Key, ...]:
    return tuple(
        Key(str(name), sample(styles[name], filled=name == _EXACT, marked=marked))
        for name in values_of(rows, "estimator")
    )


def _last_rank(rows: Sequence[Row]) -> int:
    return max(int(row["rank"]) for row in rows)


def _column(rows: Sequence[Row], name: str) -> FloatArray:
    return np.array([row[name] for row in rows], dtype=np.float64)
