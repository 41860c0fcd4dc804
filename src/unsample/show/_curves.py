"""Metrics at every K: the values of each method and, of a single result, what the data allow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from unsample._checks import FloatArray, IntArray, check_level
from unsample.answers import DEFAULT_LEVEL, Estimate, Estimates
from unsample.metrics import Metric, MetricFamily, Recall
from unsample.show._charts import Band, Guide, LineChart, LineView, Series, style

_POINTS = 24
#: The method whose curve is that of the posterior.
_AUTO = "auto"


def curves_chart(
    results: Mapping[str, Estimates],
    level: float = DEFAULT_LEVEL,
    *,
    largest: float = math.inf,
    families: Iterable[MetricFamily] | None = None,
) -> LineChart | None:
    """Return metrics@K of results by name, a view for each metric; None where none is known."""
    check_level(level)
    drawn = {name: held for name, held in results.items() if held.distributions}
    metrics = [metric for held in drawn.values() for metric in held.metrics if metric.k is not None]
    if families is None:  # names such as HR and Recall may mean the same
        asked = {metric.family.single or metric.family.name: metric.family for metric in metrics}
        families = {Recall.name: Recall, **asked}.values()
    catalogues = [held.counts.largest_catalogue for held in drawn.values()]
    steps = np.geomspace(1, min(max(catalogues, default=1), largest), _POINTS).round()
    asked_ks = [metric.k for metric in metrics if metric.k and metric.k <= steps[-1]]
    ks = np.unique([*steps, *asked_ks]).astype(np.int64)
    views = tuple(filter(None, (_view(drawn, family, ks, level) for family in families)))
    if not views:
        return None
    text = "The curve is the estimate."
    if views[0].bands:
        text += " The band is its interval, and the lightest band are the bounds."
    if views[0].guides:
        text += " Left of the dotted line less than one sampled item falls into the top K."
    return LineChart("curves", "Metric@K at every K", text, "K", views)


def _view(
    results: Mapping[str, Estimates], family: MetricFamily, ks: IntArray, level: float
) -> LineView | None:
    series: list[Series] = []
    bands: list[Band] = []
    for name, result in results.items():
        entry = _asked_alike(result, family)
        if entry is None:
            continue
        metrics = [family @ int(k) for k in ks if k <= result.counts.largest_catalogue]
        beyond = np.full(len(ks) - len(metrics), np.nan)
        for method in result.distributions:
            label = name if name and len(result.methods) == 1 else f"{name} {method}".strip()
            values = np.concatenate([_values(result, method, entry, metrics), beyond])
            series.append(Series(label, style(len(series)), values))
        if len(results) == 1 and not result.counts.known.all():
            bands += _bands(entry, metrics, level)
    if not series:
        return None
    sampled = [held.counts for held in results.values() if not held.counts.known.all()]
    guides = tuple(
        Guide("x", edge, f"N/n = {edge:,.0f}")
        for edge in {round(counts.blind_rank, 1) for counts in sampled}
        if 1 < edge < ks[-1]
    )
    return LineView(
        name=family.name,
        y_label=f"{family.name}@K",
        x=tuple(ks.tolist()),
        labels=tuple(f"K = {k:,}" for k in ks.tolist()),
        series=tuple(series),
        bands=tuple(bands),
        guides=guides,
    )


def _asked_alike(result: Estimates, family: MetricFamily) -> Estimate | None:
    """Return an entry that weighs the relevant items of users as the family does, if any."""
    if not result.counts.several:
        return result.entries[0]
    # P(R) is that of a user's items all alike.
    alike = (each for each in result.entries if each.metric.family.weighs_alike)
    return next(alike, None) if family.weighs_alike else None


def _values(result: Estimates, method: str, entry: Estimate, metrics: list[Metric]) -> FloatArray:
    """Return what a method says at each K; the posterior's value is not that of its mode."""
    if method == _AUTO and entry.posterior is not None:
        return np.array([entry.posterior.law(metric).value() for metric in metrics])
    curve = result.distributions[method]
    return entry.counts.scale * np.array([curve.expect(metric) for metric in metrics])


def _bands(entry: Estimate, metrics: list[Metric], level: float) -> Iterable[Band]:
    """Yield the bounds at each K, and the interval where that is another."""
    found = [entry.another(metric) for metric in metrics]
    yield Band("bounds", "bounds", *np.array([each.bounds(level) for each in found]).T)
    if entry.source == "prior":
        ends = np.array([each.interval(level) for each in found])
        yield Band("interval", f"{100 * level:g} % interval", *ends.T)
