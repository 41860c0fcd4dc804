"""A metric at every K with its interval and its bounds, and P(R) with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray, check_integer
from unsample.errors import InputError, MetricError
from unsample.metrics import MetricFamily, Recall
from unsample.questions.estimate.exact import exact
from unsample.questions.estimate.result import PRIOR, Estimates
from unsample.report import Band, GuideLine, LineChart, LineView, Series, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: At how many K a curve is computed, at most, beside the K that were asked for.
_POINTS = 24
#: In how many ranges of ranks P(R) is shown, at most.
_RANGES = 36
#: A logarithmic axis begins at this part of the lowest positive value.
_BELOW = 0.5


def curves_chart(
    result: Estimates,
    *,
    families: Iterable[MetricFamily] | None = None,
    largest: float = math.inf,
) -> LineChart | None:
    """Return metrics@K by the first method, a view for each family; None if no family is known.

    By default the families are Recall and the ones that were asked for.
    """
    asked = [metric for metric in result.metrics if metric.k]
    if families is None:
        # Names such as HR and Recall may mean the same.
        by_meaning = {metric.family.single or metric.family.name: metric.family for metric in asked}
        families = {Recall.name: Recall, **by_meaning}.values()
    last = min(result.counts.catalogues[1], largest)
    steps = np.geomspace(1, last, _POINTS).round()
    asked_ks = [metric.k for metric in asked if metric.k and metric.k <= last]
    ks = np.unique([*steps, *asked_ks]).astype(int)
    views = tuple(filter(None, (_view(result, family, ks=ks) for family in families)))
    if not views:
        return None
    text = (
        "The curve is the estimate. The band is its interval, and the lightest band are the "
        "bounds. Left of the dotted line less than one sampled item falls into the top K."
    )
    return LineChart(
        identity="curves",
        title="Metric@K at every K",
        caption=text,
        x_label="K",
        views=views,
    )


def _view(result: Estimates, family: MetricFamily, *, ks: IntArray) -> LineView | None:
    """Return a family of metrics at each K; None if the result does not tell them."""
    try:
        estimates = [result.metric(family @ int(k)) for k in ks]
    except MetricError:
        return None
    level = result.level
    bounds = np.array([estimate.bounds(level) for estimate in estimates])
    bands = [Band("bounds", "bounds", low=bounds[:, 0], high=bounds[:, 1])]
    if any(estimate.source == PRIOR for estimate in estimates):
        ends = np.array([estimate.interval(level) for estimate in estimates])
        name = f"{100 * level:g} % interval"
        bands.append(Band("interval", name, low=ends[:, 0], high=ends[:, 1]))
    values = np.array([estimate.value for estimate in estimates])
    edge = result.counts.blind_rank
    return LineView(
        name=family.name,
        y_label=f"{family.name}@K",
        x=tuple(ks.tolist()),
        series=(Series(estimates[0].method, values),),
        bands=tuple(bands),
        guide=GuideLine(edge, f"N/n = {edge:,.0f}") if 1 < edge < ks[-1] else None,
    )


@dataclass(frozen=True, eq=False)
class RankRanges:
    """P(R) over ranges of ranks: the share of targets in each, by method, and its interval."""

    first: IntArray
    last: IntArray
    #: The share of targets by method, for methods that estimate P(R).
    shares: Mapping[str, FloatArray]
    #: The interval of each share; None without curves.
    low: FloatArray | None
    high: FloatArray | None

    @classmethod
    def of(cls, result: Estimates) -> RankRanges | None:
        """Return P(R) of a result; None if no method of it estimates P(R).

        >>> import unsample
        >>> ranges = RankRanges.of(unsample.exact([1, 3, 3, 90], items=100, metrics="AUC"))
        >>> ranges.first[:4].tolist(), ranges.shares["exact"][:4].tolist()
        ([1, 2, 3, 4], [0.25, 0.0, 0.5, 0.0])
        """
        if not result.distributions:
            return None
        items = result.counts.catalogues[1]
        starts = np.unique(np.geomspace(1, items + 1, _RANGES + 1).round().astype(np.int64))[:-1]
        low: FloatArray | None = None
        high: FloatArray | None = None
        if any(entry.cloud is not None for entry in result.entries):
            grid, masses = result.curves.on_one_grid()
            # A range begins where a bin begins: inside a bin the curves tell nothing.
            bins = np.unique(grid.locate(starts))
            starts = grid.low[bins]
            tails = [(1.0 - result.level) / 2.0, (1.0 + result.level) / 2.0]
            low, high = np.quantile(np.add.reduceat(masses, bins, axis=1), tails, axis=0)
        last = np.append(starts[1:] - 1, items)
        shares = {
            method: np.diff(curve.cdf(last), prepend=0.0)
            for method, curve in result.distributions.items()
        }
        return cls(starts, last, shares, low=low, high=high)

    @property
    def width(self) -> IntArray:
        """Return how many ranks each range holds."""
        return self.last - self.first + 1

    def to_dict(self) -> dict[str, Any]:
        """Return the ranges as plain values."""
        return {
            "from": self.first.tolist(),
            "to": self.last.tolist(),
            "share": {method: share.tolist() for method, share in self.shares.items()},
            "low": None if self.low is None else self.low.tolist(),
            "high": None if self.high is None else self.high.tolist(),
        }


def ranks_chart(result: Estimates) -> LineChart | None:
    """Return P(R) by each method that estimates it, with its interval; None if none does."""
    ranges = RankRanges.of(result)
    if ranges is None:
        return None
    curves = {method: share / ranges.width for method, share in ranges.shares.items()}
    positive = np.concatenate([curve[curve > 0.0] for curve in curves.values()])
    bands: tuple[Band, ...] = ()
    if ranges.low is not None and ranges.high is not None:
        name = f"{100 * result.level:g} % interval"
        low = ranges.low / ranges.width
        high = ranges.high / ranges.width
        bands = (Band("interval", name, low=low, high=high),)
    edge = result.counts.blind_rank
    view = LineView(
        name="P(R)",
        y_label="P(R)",
        x=tuple(np.sqrt(ranges.first * ranges.last.astype(np.float64)).tolist()),
        series=tuple(Series(method, curve) for method, curve in curves.items()),
        bands=bands,
        guide=GuideLine(edge, f"N/n = {edge:,.0f}") if 1 < edge < ranges.last[-1] else None,
        floor=_BELOW * float(positive.min()),
    )
    text = "The share of targets at each rank among all items, as means over ranges of ranks."
    if view.guide is not None:
        text += " Left of the dotted line less than one sampled item falls into the first R ranks."
    return LineChart(
        identity="ranks",
        title="P(R), where the targets are",
        caption=text,
        x_label="R",
        views=(view,),
        log_y=True,
    )


def plot_curve(
    result: Estimates,
    *,
    metric: str = "Recall",
    largest: int = 200,
    full_ranks: npt.ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot a metric@K against K, as `Estimates.plot_curve` does."""
    family = _metrics.parse(metric).family
    largest = check_integer("largest", largest, minimum=2)
    chart = curves_chart(result, largest=largest, families=[family])
    if chart is None:
        raise InputError(
            f"{result.methods[0]} gives no P(R) that weighs relevant items as {metric} does; "
            "try mle, or Recall"
        )
    axes = draw(chart, ax=ax)
    ks = chart.views[0].x
    if full_ranks is not None:
        names = [family @ int(k) for k in ks]
        truth = exact(full_ranks, items=result.counts.catalogues[1], metrics=names)
        values = [entry.value for entry in truth.entries]
        axes.plot(ks, values, linestyle="--", label="exact")
        axes.legend(frameon=False)
    axes.set(xlim=(1, ks[-1]))
    axes.set_ylim(bottom=0)
    return axes
