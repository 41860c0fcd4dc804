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
from unsample.errors import MetricError
from unsample.estimators import Estimator, Fit
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
from unsample.questions.estimate.prior_choice import (
    SHIPPED,
    as_methods,
    as_prior,
    check_protocol,
    knowing,
)
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
    seen: float | npt.ArrayLike | None = None,
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
    seen: float | npt.ArrayLike | None = None,
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
    seen: float | npt.ArrayLike | None = None,
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
    seen: float | npt.ArrayLike | None = None,
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
        The ranks of targets, in one of these forms:

        * an array: the rank of each target among the ``sampled + 1`` items that it was ranked
          with; 1 is the best;
        * a table: a file (CSV, TSV, JSON lines, Parquet, NPZ), a folder, a pattern such as
          ``"runs/*.parquet"``, a list of files, a data frame of pandas, Polars, PyArrow, DuckDB or
          PySpark, or the result of the query of `unsample.sql`;
        * `RankCounts`. They hold ``items`` and ``sampled``, in files too: leave these out, or
          repeat the same numbers;
        * a dict of names and any of these.
    items
        The number of candidates in a full ranking, the target included: one number, or one for
        each target. (If seen items are left out of the candidates, the number differs by user.)
    sampled
        The number of items sampled for a target, without the target: one number, or one for each
        target. If these differ, ``items - 1`` means that a target was ranked among all items. A
        few users that were drawn at random and ranked in full show the first ranks, which no sample
        does.
    users
        The user of each rank, if users have several targets. Metrics are then means over users, and
        errors count users. HR, MRR and AP need all targets of a user to be ranked among the same
        items: give a table of scored rows (user, item, score, target).
    protocol
        How targets were ranked. Sampled ranks cannot tell this at small K, and without it intervals
        are wider: they allow for the first three.

        * ``"unseen"``: items that the user had already seen were no candidates.
        * ``"all"``: seen items were candidates.
        * ``"repeats"``: seen items were candidates, and people choose again what they chose before
          (baskets, sessions, songs).
        * ``"graph"``: a knowledge graph. The other relevant items of a user were left out when a
          target was ranked, and metrics are means over targets.
    seen
        With ``protocol="all"``: how many of a user's own items were among the candidates: the mean,
        a number for each user, or the name of a column of the table. These items push targets
        down, and the more there are, the less a sample shows of the first ranks. Without it,
        intervals allow for the usual numbers.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`; by default Recall@10, NDCG@10
        and Recall@50, or AP@10 if users have several targets.
    method
        ``"auto"``, the median of the posterior, or a method of a paper (`unsample.estimators` lists
        them), such as ``"mle"`` or ``"bv(gamma=0.01)"``; or several of these. The methods of papers
        give a value and P(R). Intervals belong to the metric, and are the same for all methods.
    prior
        What other data sets say about P(R), for ``auto`` and for intervals: by default the prior in
        the package, or your own `Prior`, or its file. With None or ``"none"`` no prior is used:
        ``auto`` is then ``mle``, and intervals are the bounds.
    by
        A column of the table, such as ``"model"``, for an estimate of each of its values.
    level
        The level of the intervals that are shown. ``interval(level)`` of an estimate gives others.
    negatives
        How items were drawn: `unsample.Negatives`, by default for each target, with replacement.
        In any case every candidate must be as likely to be drawn as any other. Ranks do not show
        whether this is so: from samples by popularity the estimate is wrong, without a warning.
    read
        The names of the columns of a table, the contents of its rows, and how ties are broken: see
        `unsample.Read`.

    Returns
    -------
    Estimates
        The metrics. If there is a dict of sources, or ``by``, a dict of them by name.

    Raises
    ------
    DesignError
        If ``items`` or ``sampled`` is missing or cannot be.
    RankError
        If a rank is no whole number from 1 to ``sampled + 1``.
    MetricError, MethodError
        If there is no such metric or method, or the ranks cannot give it.
    InputError
        If another argument is wrong; the message names it.

    >>> ranks = [1 + user**3 // 300_000 for user in range(300)]
    >>> result = estimate(ranks, items=3706, sampled=99, metrics="Recall@50")
    >>> recall = result["Recall@50"]
    >>> round(recall.value, 1), [round(end, 1) for end in recall.interval(0.95)], recall.resolved
    (0.3, [0.2, 0.3], True)
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
    known_prior = knowing(as_prior(prior), seen, protocol=check_protocol(protocol), source=ranks)
    counts_of = inputs.counts(ranks, by)
    for name, counts in counts_of.items():
        try:
            results[name] = estimate_counts(
                counts,
                metrics=metrics,
                method=method,
                protocol=protocol,
                prior=known_prior,
                level=level,
                filtered=filtered,
            )
        except MetricError as problem:
            # Some of them may give a metric that others cannot.
            problem.args = (f"{name}: {problem}" if len(counts_of) > 1 else str(problem),)
            raise
    warn_of(note for result in results.values() for note in result.notes)
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
    """Return what `estimate` returns, without raising warnings: they are in the result.

    So callers that print warnings themselves need no filter of warnings. A filter is not safe in
    threads: it belongs to the whole process, and one thread's change would hold for the others.
    """
    check_protocol(protocol)
    wanted = _metrics.parse_all(usual_metrics(counts) if metrics is None else metrics)
    refuse_overdrawn(counts.largest, counts.sampled)
    known_prior = as_prior(prior)
    methods = as_methods(method, known_prior)
    for estimator in methods.values():
        if estimator is not None:
            estimator.require(wanted)
    parts = []
    for weighed, metrics_of_part in _by_weights(counts, wanted):
        known = _as_known(weighed, metrics_of_part)
        if known.known.all():
            parts.append(_of_known_ranks(known, metrics_of_part, methods=methods))
            continue
        cloud = None
        if known_prior is not None:
            cloud = Cloud.of(known, known_prior, protocol=protocol)
        parts.append(_of_samples(known, metrics_of_part, methods=methods, cloud=cloud))
    by_name = {(entry.method, entry.metric.name): entry for part in parts for entry in part.entries}
    # P(R) belongs to a metric that weighs all relevant items of a user equally, if there is one.
    equally = [part for part in parts if part.metrics[0].family.weighs_alike]
    curves = (equally or parts)[0].curves
    notes = beyond_items(wanted, counts.catalogues[1])
    notes += drawn_often(counts)
    notes += one_less(counts)
    for estimator in methods.values():
        if estimator is not None and estimator.caution:
            notes.append(Note("biased", estimator.caution))
    for part in parts:
        notes += part.notes
    return Estimates(
        entries=tuple(by_name[name, metric.name] for name in methods for metric in wanted),
        counts=counts,
        distributions=curves,
        notes=tuple(dict.fromkeys(notes)),
        protocol=protocol,
        filtered=filtered,
        level=level,
    )


def _by_weights(
    counts: RankCounts, metrics: tuple[Metric, ...]
) -> list[tuple[RankCounts, tuple[Metric, ...]]]:
    """Return the counts for each way to weigh targets, with the metrics that weigh them so."""
    groups: dict[bytes, tuple[RankCounts, list[Metric]]] = {}
    for metric in metrics:
        weighed = counts.for_metric(metric)
        key = weighed.weight.tobytes() + weighed.relevant.tobytes()
        _, metrics_of_group = groups.setdefault(key, (weighed, []))
        metrics_of_group.append(metric)
    return [(weighed, tuple(metrics_of_group)) for weighed, metrics_of_group in groups.values()]


class _Part(NamedTuple):
    """The estimates of metrics that weigh targets in the same way."""

    metrics: tuple[Metric, ...]
    entries: list[Estimate]
    #: P(R) by method.
    curves: Mapping[str, RankDistribution]
    notes: list[Note]


def _of_known_ranks(
    counts: RankCounts,
    metrics: tuple[Metric, ...],
    *,
    methods: Mapping[str, Estimator | None],
) -> _Part:
    """Return metrics of users whose ranks are all known: the same value by each method."""
    observed = Observed.prepare(counts)
    entries: list[Estimate] = []
    for metric in metrics:
        direct = DirectMean.of(metric, counts)
        values = observed.known_weights([metric])[:, 0] if direct is None else direct.values
        value = counts.weight_per_user * float(counts.weight @ values) / float(counts.weight.sum())
        error = MeanError.of_cells(values, counts, metric=metric)
        entries += [
            Estimate.of_known(metric, name, value=value, error=error, counts=counts)
            for name in methods
        ]
    return _Part(metrics, entries, curves={}, notes=[])


def _of_samples(
    counts: RankCounts,
    metrics: tuple[Metric, ...],
    *,
    methods: Mapping[str, Estimator | None],
    cloud: Cloud | None,
) -> _Part:
    """Return metrics of sampled ranks, from one cloud and one fit of each method of a paper."""
    cutoffs = [metric.cutoff(counts.largest_catalogue) for metric in metrics]
    bounds = Bounds.of(counts, cutoffs)
    fits = _fits(counts, metrics, methods=methods)
    entries: list[Estimate] = []
    notes = on_fits(fits, metrics)
    for index, metric in enumerate(metrics):
        first = sampled_estimate(
            metric, next(iter(methods)), counts=counts, bounds=bounds, cloud=cloud
        )
        unbiased = DirectMean.of(metric, counts) is not None
        for name in methods:
            entry = first if name == first.method else replace(first, method=name)
            if name in fits and not unbiased:
                value = counts.weight_per_user * float(fits[name].values[0, index])
                entry = replace(entry, value=min(value, counts.ceiling(metric)))
            entries.append(entry)
            notes += outside(entry)
    # An unbiased mean does not depend on the curves, whatever they are like.
    of_curves = any(entry.source != MEAN for entry in entries)
    notes += on_likeness(bounds, cloud if of_curves else None, entries=entries)
    return _Part(metrics, entries, curves=_curves(methods, fits, cloud=cloud), notes=notes)


def _curves(
    methods: Iterable[str], fits: Mapping[str, Fit], *, cloud: Cloud | None
) -> dict[str, RankDistribution]:
    """Return P(R) by method, for methods that estimate it."""
    curves = {name: fits[name].distribution for name in methods if name in fits}
    if cloud is not None:
        curves = {name: curves[name] if name in fits else cloud.mean() for name in methods}
    return {name: curve for name, curve in curves.items() if curve is not None}


def _fits(
    counts: RankCounts,
    metrics: tuple[Metric, ...],
    *,
    methods: Mapping[str, Estimator | None],
) -> dict[str, Fit]:
    """Return the fit of each method of a paper; ``auto`` has none."""
    estimators = {name: method for name, method in methods.items() if method is not None}
    if not estimators:
        return {}
    cutoffs = [metric.cutoff(counts.largest_catalogue) for metric in metrics]
    observed = Observed.prepare(counts, cutoffs=cutoffs)
    return {name: method.evaluate(observed, metrics) for name, method in estimators.items()}


def _as_known(counts: RankCounts, metrics: Sequence[Metric]) -> RankCounts:
    """Return the ranks of a certified evaluation as known, if the metrics can tell no difference.

    Such ranks are known up to K, and beyond it only as ranges, which are all the same to metrics@K.
    """
    vague = counts.low < counts.high
    of_all_items = not counts.replacement and bool((counts.sampled == counts.items - 1).all())
    if not vague.any() or not of_all_items:
        return counts
    for metric in metrics:
        if metric.k is None or (counts.low[vague] <= metric.k).any():
            return counts
    return replace(counts, low=counts.high)
