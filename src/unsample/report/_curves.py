"""Plots of results on matplotlib axes: each takes a result and an ``ax``, and returns the axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import check_integer, import_extra
from unsample.confidence import blind_rank
from unsample.errors import InputError
from unsample.estimation import Estimates, exact

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axes_or_new", "plot_distribution", "plot_metric_curve"]

_COLOURS = {"value": "#1b6ca8", "interval": "#1b6ca8", "bounds": "#9aa5b1", "exact": "#c2410c"}
_POINTS = 24


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
    ks = np.unique(np.geomspace(1, largest, _POINTS).round().astype(int)).tolist()
    names = [_metrics.parse(f"{metric}@{k}") for k in ks]
    certainty = result.certainty_at(ks)
    if certainty is not None:
        bounds = np.array([certainty.bounds(one, level) for one in names])
        limits = np.array([certainty.interval(one, level) for one in names])
        ax.fill_between(
            ks, *bounds.T, color=_COLOURS["bounds"], alpha=0.3, lw=0, label="bounds, no assumption"
        )
        ax.fill_between(
            ks,
            *limits.T,
            color=_COLOURS["interval"],
            alpha=0.3,
            lw=0,
            label=f"{level:.0%} interval",
        )
        edge = blind_rank(result.counts)
        if 1 < edge < largest:
            ax.axvline(edge, color="0.4", lw=0.8, ls=":", label=f"N/n = {edge:.0f}")
    for method, distribution in result.distributions.items():
        values = [distribution.expect(one) for one in names]
        ax.plot(ks, values, color=_COLOURS["value"], label=f"estimate ({method})")
    if full_ranks is not None:
        truth = exact(full_ranks, items=result.counts.largest_catalogue, metrics=names, resamples=0)
        ax.plot(
            ks, [truth[one].value for one in names], color=_COLOURS["exact"], ls="--", label="exact"
        )
    ax.set(xscale="log", xlabel="K", ylabel=f"{metric}@K", xlim=(1, largest))
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def plot_distribution(
    result: Estimates, *, full_ranks: npt.ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the learned P(R) as its cumulative distribution, on a logarithmic axis of ranks."""
    if not result.distributions:
        raise InputError(f"none of {', '.join(result.methods)} gives P(R); try mle or smooth")
    ax = axes_or_new(ax)
    items = result.counts.largest_catalogue
    ranks = np.unique(np.geomspace(1, items, 200).round().astype(int))
    for method, distribution in result.distributions.items():
        ax.plot(ranks, distribution.cdf(ranks), label=method)
    if full_ranks is not None:
        ordered = np.sort(np.asarray(full_ranks))
        shares = np.searchsorted(ordered, ranks, side="right") / len(ordered)
        ax.plot(ranks, shares, color=_COLOURS["exact"], ls="--", label="exact")
    ax.set(xscale="log", xlabel="rank R", ylabel="share of targets at R or better", ylim=(0, 1))
    ax.legend(frameon=False)
    return ax


def axes_or_new(ax: Axes | None) -> Any:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = import_extra("matplotlib.pyplot", extra="report", purpose="plotting")
    return pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
