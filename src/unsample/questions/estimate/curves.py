"""A metric at every K: the estimate, its interval and its bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import IntArray, check_integer
from unsample.errors import InputError, MetricError
from unsample.metrics import MetricFamily, Recall
from unsample.questions.estimate.exact import exact
from unsample.questions.estimate.result import PRIOR, Estimates
from unsample.report import Band, GuideLine, LineChart, LineView, Series, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: At how many K a curve is computed, at most, beside the K that were asked for.
_POINTS = 24


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
