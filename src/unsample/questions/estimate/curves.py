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
from unsample.questions.estimate.result import Estimates
from unsample.report import Band, GuideLine, LineChart, LineView, Series, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 24


def curves_chart(
    result: Estimates,
    *,
    families: Iterable[MetricFamily] | None = None,
    largest: float = math.inf,
) -> LineChart | None:
    """Return metrics@K by the first method, a view for each family; None where none is known."""
    asked = [metric for metric in result.metrics if metric.k]
    if families is None:  # names such as HR and Recall may mean the same
        named = {metric.family.single or metric.family.name: metric.family for metric in asked}
        families = {Recall.name: Recall, **named}.values()
    last = min(result.counts.catalogues[1], largest)
    steps = np.geomspace(1, last, _POINTS).round()
    ks = np.unique([*steps, *(metric.k for metric in asked if metric.k and metric.k <= last)])
    views = tuple(filter(None, (_view(result, family, ks.astype(int)) for family in families)))
    if not views:
        return None
    text = (
        "The curve is the estimate. The band is its interval, and the lightest band are the "
        "bounds. Left of the dotted line less than one sampled item falls into the top K."
    )
    return LineChart("curves", "Metric@K at every K", text, "K", views)


def _view(result: Estimates, family: MetricFamily, ks: IntArray) -> LineView | None:
    try:
        found = [result.metric(family @ int(k)) for k in ks]
    except MetricError:  # nothing is known of other metrics than those asked for
        return None
    bounds = np.array([each.bounds(result.level) for each in found])
    bands = [Band("bounds", "bounds", *bounds.T)]
    if any(each.source == "prior" for each in found):
        ends = np.array([each.interval(result.level) for each in found])
        bands.append(Band("interval", f"{100 * result.level:g} % interval", *ends.T))
    values = np.array([each.value for each in found])
    edge = result.counts.blind_rank
    return LineView(
        name=family.name,
        y_label=f"{family.name}@K",
        x=tuple(ks.tolist()),
        series=(Series(found[0].method, values),),
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
    """Plot a metric@K against K: the estimate, its interval, and the bounds without assumptions.

    With ``largest`` the size of the catalogue, Recall@K is the whole distribution P(R), summed up.
    ``full_ranks`` adds the exact curve, where the truth is known.
    """
    family = _metrics.parse(metric).family
    largest = check_integer("largest", largest, minimum=2)
    chart = curves_chart(result, largest=largest, families=[family])
    if chart is None:
        raise InputError(
            f"{result.methods[0]} gives no P(R) that weighs relevant items as {metric} does; "
            "try mle, or Recall"
        )
    axes, ks = draw(chart, ax=ax), chart.views[0].x
    if full_ranks is not None:
        names = [family @ int(k) for k in ks]
        truth = exact(full_ranks, items=result.counts.catalogues[1], metrics=names)
        axes.plot(ks, [entry.value for entry in truth.entries], "--", label="exact")
        axes.legend(frameon=False)
    axes.set(xlim=(1, ks[-1]))
    axes.set_ylim(bottom=0)
    return axes
