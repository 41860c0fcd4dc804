"""Plots of results on matplotlib axes: each takes a result and an ``ax``, and returns the axes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import check_integer, import_extra
from unsample.answers import Estimates, exact
from unsample.answers.comparison import Comparison
from unsample.answers.evaluation import Evaluated
from unsample.confidence import blind_rank
from unsample.errors import InputError
from unsample.pages._known import Curve, Known, ladder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "axes_or_new",
    "plot_comparison",
    "plot_distribution",
    "plot_estimates",
    "plot_metric_curve",
]

_COLOURS = {"value": "#1b6ca8", "interval": "#1b6ca8", "bounds": "#9aa5b1", "exact": "#c2410c"}
#: Curves of several methods, beside the colour of the exact one.
_SEVERAL = ("#1b6ca8", "#007a5a", "#a8327a", "#8a6100", "#5c6670")


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
    ax = axes_or_new(ax)
    largest = min(check_integer("largest", largest, minimum=2), result.counts.largest_catalogue)
    family = _metrics.parse(metric).family
    known = Known.of(result, ladder(largest), level)
    ks, curve = known.ks, known.curve(family)
    _fill_limits(ax, known, curve)
    edge = blind_rank(result.counts)
    if known.certainty is not None and 1 < edge < largest:
        ax.axvline(edge, color="0.4", lw=0.8, ls=":", label=f"N/n = {edge:.0f}")
    colours = itertools.cycle(_SEVERAL)
    for method, values in curve.values.items():
        ax.plot(ks, values, color=next(colours), label=f"estimate ({method})")
    if full_ranks is not None:
        names = [family @ int(k) for k in ks]
        truth = exact(full_ranks, items=result.counts.largest_catalogue, metrics=names, resamples=0)
        ax.plot(
            ks, [truth[one].value for one in names], color=_COLOURS["exact"], ls="--", label="exact"
        )
    ax.set(xscale="log", xlabel="K", ylabel=f"{family.name}@K", xlim=(1, largest))
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def plot_distribution(
    result: Estimates,
    *,
    full_ranks: npt.ArrayLike | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot the learned P(R) as its cumulative distribution, with its interval and bounds."""
    if not result.distributions:
        raise InputError(f"none of {', '.join(result.methods)} gives P(R); try mle or smooth")
    ax = axes_or_new(ax)
    known = Known.of(result, ladder(result.counts.largest_catalogue), level)
    # The sum of P(R) up to rank K is Recall@K.
    _fill_limits(ax, known, known.curve(_metrics.Recall))
    ranks = np.unique(np.geomspace(1, known.ks[-1], 200).round().astype(int))
    colours = itertools.cycle(_SEVERAL)
    for method, distribution in result.distributions.items():
        ax.plot(ranks, distribution.cdf(ranks), color=next(colours), label=method)
    if full_ranks is not None:
        ordered = np.sort(np.asarray(full_ranks))
        shares = np.searchsorted(ordered, ranks, side="right") / len(ordered)
        ax.plot(ranks, shares, color=_COLOURS["exact"], ls="--", label="exact")
    ax.set(xscale="log", xlabel="rank R", ylabel="share of targets at R or better", ylim=(0, 1))
    ax.legend(frameon=False)
    return ax


def plot_estimates(
    result: Estimates | Evaluated, *, level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Plot every estimate with its interval and its bounds, one below the other."""
    entries = (result.estimates if isinstance(result, Evaluated) else result).entries
    rows = [
        (f"{entry.metric}, {entry.method}", entry.value, entry.interval(level), entry.bounds(level))
        for entry in entries
    ]
    ax = axes_or_new(ax)
    for place, (_, value, interval, bounds) in enumerate(rows):
        ax.hlines(place, *bounds, color=_COLOURS["bounds"], lw=1.5)
        ax.hlines(place, *interval, color=_COLOURS["interval"], lw=5, alpha=0.5)
        ax.plot(value, place, "o", color=_COLOURS["value"])
    _name_rows(ax, [row[0] for row in rows])
    ax.set_xlabel(f"metric on the full catalogue; thick: {level:.0%} interval, thin: bounds")
    ax.set_xlim(left=0)
    return ax


def plot_comparison(
    result: Comparison, *, metric: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the difference of each pair of models with its interval.

    ``metric`` is the one to show, by default the first that was compared. Of very many models
    those with the highest estimates are shown.
    """
    result = result.excerpt()
    name = result.differences[0].metric if metric is None else _metrics.parse(metric).name
    rows = [one for one in result.differences if one.metric == name]
    if not rows:
        known = ", ".join(dict.fromkeys(one.metric for one in result.differences))
        raise InputError(f"metric must be one that was compared ({known}), got {metric!r}")
    ax = axes_or_new(ax)
    ax.axvline(0, color="0.4", lw=0.8)
    for place, one in enumerate(rows):
        colour = _COLOURS["value"] if one.winner else _COLOURS["bounds"]
        ax.hlines(place, one.low, one.high, color=colour, lw=5, alpha=0.5)
        ax.plot(one.value, place, "o" if one.winner else "s", color=colour)
    _name_rows(ax, [f"{one.a} \N{MINUS SIGN} {one.b}" for one in rows])
    ax.set_xlabel(f"difference of {name} with its {result.level:.0%} interval")
    return ax


def _fill_limits(ax: Axes, known: Known, curve: Curve) -> None:
    """Shade the bounds and, above them, the interval."""
    for limits, name, label in (
        (curve.bounds, "bounds", "bounds, no assumption"),
        (curve.interval, "interval", f"{known.level:.0%} interval"),
    ):
        if limits is not None:
            low, high = limits.T
            ax.fill_between(known.ks, low, high, color=_COLOURS[name], alpha=0.3, lw=0, label=label)


def _name_rows(ax: Axes, names: list[str]) -> None:
    """Label rows from top to bottom; a dollar sign in a name is not mathematics."""
    ax.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)


def axes_or_new(ax: Axes | None) -> Any:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = import_extra("matplotlib.pyplot", extra="report", purpose="plotting")
    return pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
