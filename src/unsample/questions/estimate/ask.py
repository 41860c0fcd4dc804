"""`estimate`: from sampled ranks to metrics with intervals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, overload

import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import check_level
from unsample._threads import one_thread
from unsample.bounds import Bounds, DirectMean, MeanError
from unsample.counts import Negatives, RankCounts, Targets
from unsample.estimators import Estimator
from unsample.likelihood import Observed
from unsample.metrics import Metric
from unsample.posterior import Cloud, Prior
from unsample.questions.estimate.diagnostics import (
    beyond_items,
    drawn_often,
    on_fits,
    on_likeness,
    one_less,
    outside,
)
from unsample.questions.estimate.inputs import Inputs, usual_metrics
from unsample.questions.estimate.prior_choice import SHIPPED, as_methods, as_prior, check_protocol
from unsample.questions.estimate.result import AUTO, MEAN, Estimate, Estimates, sampled_estimate
from unsample.report import Note, warn_of
from unsample.sampling import RankDistribution, refuse_overdrawn
from unsample.tables import Read
from unsample.uncertainty import DEFAULT_LEVEL

DEFAULT_METHOD = AUTO


# What comes back follows from what comes in.
@overload
def estimate(
    ranks: Mapping[str, Any],
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    protocol: str | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    by: str | None = None,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    read: Read | None = None,
) -> dict[str, Estimates]: ...
@overload
def estimate(
    ranks: Any,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    protocol: str | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    by: None = None,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    read: Read | None = None,
) -> Estimates: ...
@overload
def estimate(
    ranks: Any,
    *,
    by: str,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    protocol: str | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    read: Read | None = None,
) -> dict[str, Estimates]: ...
def estimate(
    ranks: Any,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    protocol: str | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    by: str | None = None,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    read: Read | None = None,
) -> Estimates | dict[str, Estimates]:
    """Estimate full-catalogue metrics from ranks among items sampled uniformly at random.

    Parameters
    ----------
    ranks
        The rank of each target among the ``sampled + 1`` items it was ranked with; 1 is the best.
        Or a table: a file (CSV, TSV, JSON lines, Parquet, NPZ), a folder, a pattern such as
        ``"runs/*.parquet"``, a list of files, a data frame of pandas, Polars, PyArrow, DuckDB or
        PySpark, or what the query of `unsample.sql` returns. Or `RankCounts`. Or a dict of names
        and any of these. Counts, saved ones too, hold ``items`` and ``sampled``: leave them out, or
        repeat what the counts hold.
    items
        The number of candidates in a full ranking, the target included: one number, or one for
        each target (if seen items are left out of the candidates, it differs by user).
    sampled
        The number of items sampled for a target, without the target: one, or one for each target.
        Where these differ, ``items - 1`` says that a target was ranked among all items: a few users
        in full, drawn at random, show the first ranks, which no sample does.
    users
        The user of each rank, if users have several targets: metrics are means over users, and
        errors count users. HR, MRR and AP then need all targets of a user ranked among the same
        items: give a table of scored rows (user, item, score, target).
    protocol
        How targets were ranked, which sampled ranks cannot tell at small K. ``"unseen"``: the items
        that a user had already seen were left out of the candidates. ``"all"``: they were among
        them. ``"repeats"``: they were, and people choose again what they chose before (baskets,
        sessions, songs). ``"graph"``: a knowledge graph; the other relevant items of a user were
        left out when a target was ranked, and metrics are means over targets. Without it, intervals
        allow for the first three and are wider.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`; by default Recall@10, NDCG@10
        and AP@10.
    method
        Names from `unsample.estimators.REGISTRY` such as ``"mle"`` or ``"bv(gamma=0.01)"``; by
        default ``"auto"``, the value of the posterior. The methods of papers give a value and P(R);
        intervals belong to the metric, and are the same for all methods.
    prior
        What other data sets say about P(R), for ``auto`` and for intervals: by default the prior in
        the package; or your own `Prior`, or its file. With None or ``"none"`` no prior is used:
        ``auto`` is then
        ``mle``, and intervals are the bounds.
    by
        A column of the table, such as ``"model"``, for an estimate of each of its values.
    level
        The level of the intervals that are shown. ``interval(level)`` of an estimate gives others.
    negatives
        How items were drawn: `unsample.Negatives`, by default for each target, with replacement.
        In any case every candidate must be as likely to be drawn as any other. Ranks do not show
        whether it was: from samples by popularity they give a wrong number without a warning.
    read
        What columns of a table are called, what its rows hold, and how ties are broken: see
        `unsample.Read`.

    Returns
    -------
    Estimates
        The metrics; a dict of them by name if there is a dict of sources, or ``by``.

    >>> ranks = [1 + user**3 // 300_000 for user in range(300)]
    >>> result = estimate(ranks, items=3706, sampled=99, metrics="Recall@50")
    >>> round(result["Recall@50"].value, 1), result["Recall@50"].resolved
    (0.3, True)
    """
    check_level(level)
    inputs = Inputs.of(
        items=items,
        sampled=sampled,
        users=users,
        negatives=negatives,
        protocol=protocol,
        read=read,
    )
    filtered = inputs.asked.filtered or (isinstance(ranks, Targets) and ranks.filtered)
    results = {}
    for name, counts in inputs.counts(ranks, by).items():
        results[name] = estimate_counts(
            counts,
            metrics=metrics,
            method=method,
            protocol=protocol,
            prior=prior,
            level=level,
            filtered=filtered,
        )
    warn_of(note for found in results.values() for note in found.notes)
    return results[""] if by is None and list(results) == [""] else results


@one_thread()
def estimate_counts(
    counts: RankCounts,
    *,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    protocol: str | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    level: float = DEFAULT_LEVEL,
    filtered: bool = False,
) -> Estimates:
    """Return what `estimate` returns, but raise no warnings: they are in the result.

    Callers that print warnings themselves need no others. To filter warnings is not safe in
    threads: filters belong to the whole process, and one thread's change would stay for the others.
    """
    check_protocol(protocol)
    wanted = _metrics.parse_all(usual_metrics(counts) if metrics is None else metrics)
    refuse_overdrawn(counts.largest, counts.sampled)
    held = as_prior(prior)
    methods = as_methods(method, held)
    for asked in methods.values():
        if asked is not None:
            asked.require(wanted)
    parts = []
    for each, same in _weighed_apart(counts, wanted):
        weighed = _certified(each, same)
        if weighed.known.all():
            parts.append(_known(weighed, same, methods))
            continue
        cloud = None if held is None else Cloud.of(weighed, held, protocol=protocol)
        parts.append(_sampled(weighed, same, methods, cloud))
    by_name = {(entry.method, entry.metric.name): entry for part in parts for entry in part.entries}
    # P(R) is that of a metric to which all relevant items of a user count the same, if any.
    alike = [part for part in parts if part.metrics[0].family.weighs_alike] or parts[:1]
    notes = beyond_items(wanted, counts.catalogues[1])
    notes += drawn_often(counts) + one_less(counts)
    notes += [Note("biased", each.caution) for each in methods.values() if each and each.caution]
    return Estimates(
        tuple(by_name[name, metric.name] for name in methods for metric in wanted),
        counts,
        alike[0].curves,
        tuple(dict.fromkeys([*notes, *(note for part in parts for note in part.notes)])),
        protocol=protocol,
        filtered=filtered,
        level=level,
    )


def _weighed_apart(
    counts: RankCounts, metrics: tuple[Metric, ...]
) -> list[tuple[RankCounts, tuple[Metric, ...]]]:
    """Return counts for each way to weigh targets, with the metrics that weigh them in this way."""
    found: dict[bytes, tuple[RankCounts, list[Metric]]] = {}
    for metric in metrics:
        weighed = counts.for_metric(metric)
        key = weighed.weight.tobytes() + weighed.relevant.tobytes()
        found.setdefault(key, (weighed, []))[1].append(metric)
    return [(weighed, tuple(same)) for weighed, same in found.values()]


class _Part(NamedTuple):
    """What is asked about metrics that all weigh targets in the same way."""

    metrics: tuple[Metric, ...]
    entries: list[Estimate]
    curves: Mapping[str, RankDistribution]
    notes: list[Note]


def _known(
    counts: RankCounts, metrics: tuple[Metric, ...], methods: Mapping[str, Estimator | None]
) -> _Part:
    """Return the metrics of users whose ranks are all known, which are no method's."""
    observed, entries = Observed.prepare(counts), list[Estimate]()
    for metric in metrics:
        direct = DirectMean.of(metric, counts)
        values = observed.known_weights([metric])[:, 0] if direct is None else direct.values
        value = counts.weight_per_user * float(counts.weight @ values) / float(counts.weight.sum())
        error = MeanError.of_cells(values, counts, metric)
        entries += [
            Estimate.of_known(metric, name, value=value, error=error, counts=counts)
            for name in methods
        ]
    return _Part(metrics, entries, {}, [])


def _sampled(
    counts: RankCounts,
    metrics: tuple[Metric, ...],
    methods: Mapping[str, Estimator | None],
    cloud: Cloud | None,
) -> _Part:
    """Answer with one cloud, and one fit of each method of a paper."""
    cutoffs = [metric.cutoff(counts.largest_catalogue) for metric in metrics]
    bounds = Bounds.of(counts, cutoffs)
    papers = {name: each for name, each in methods.items() if each is not None}
    observed = Observed.prepare(counts, cutoffs=cutoffs) if papers else None
    fits = {name: each.evaluate(observed, metrics) for name, each in papers.items() if observed}
    learned = None if cloud is None else cloud.mean()
    curves = {name: fits[name].distribution if name in fits else learned for name in methods}
    entries, notes = list[Estimate](), on_fits(fits, metrics)
    for place, metric in enumerate(metrics):
        known = sampled_estimate(
            metric, next(iter(methods)), counts=counts, bounds=bounds, cloud=cloud
        )
        unbiased = DirectMean.of(metric, counts) is not None
        for name in methods:
            entry = known if name == known.method else replace(known, method=name)
            if name in fits and not unbiased:
                value = counts.weight_per_user * float(fits[name].values[0, place])
                entry = replace(entry, value=min(value, counts.ceiling(metric)))
            entries.append(entry)
            notes += outside(entry)
    # An unbiased mean does not depend on the curves, whatever they are like.
    of_curves = any(entry.source != MEAN for entry in entries)
    notes += on_likeness(bounds, cloud if of_curves else None, entries)
    kept = {name: curve for name, curve in curves.items() if curve is not None}
    return _Part(metrics, entries, kept, notes)


def _certified(counts: RankCounts, metrics: Sequence[Metric]) -> RankCounts:
    """Return ranks of a certified evaluation as known: all beyond K are the same to metrics@K."""
    vague = counts.low < counts.high
    if not vague.any() or counts.replacement or (counts.sampled < counts.items - 1).any():
        return counts
    if any(metric.k is None or (counts.low[vague] <= metric.k).any() for metric in metrics):
        return counts
    return replace(counts, low=counts.high)
