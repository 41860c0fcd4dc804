"""A metric at every K: the estimate, its interval and its bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from unsample._checks import IntArray
from unsample.answers import DEFAULT_LEVEL, Estimates
from unsample.errors import MetricError
from unsample.metrics import MetricFamily, Recall
from unsample.show._charts import Band, Guide, LineChart, LineView, Series

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
    last = min(result.counts.largest_catalogue, largest)
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
    bounds = np.array([each.bounds() for each in found])
    bands = [Band("bounds", "bounds", *bounds.T)]
    if any(each.source == "prior" for each in found):
        ends = np.array([each.interval() for each in found])
        bands.append(Band("interval", f"{100 * DEFAULT_LEVEL:g} % interval", *ends.T))
    values = np.array([each.value for each in found])
    edge = result.counts.blind_rank
    return LineView(
        name=family.name,
        y_label=f"{family.name}@K",
        x=tuple(ks.tolist()),
        series=(Series(found[0].method, values),),
        bands=tuple(bands),
        guide=Guide(edge, f"N/n = {edge:,.0f}") if 1 < edge < ks[-1] else None,
    )
