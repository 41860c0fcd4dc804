"""`estimate`: from sampled ranks to metrics with intervals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, overload

import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import check_choice
from unsample._gone import refuses_gone
from unsample.answers._doubts import (
    beyond_items,
    drawn_often,
    on_bounds,
    on_fits,
    one_less,
    outside,
)
from unsample.answers._estimates import (
    AUTO,
    Estimate,
    Estimates,
    entry_of,
)
from unsample.answers._given import USUAL, Given, possible_metrics
from unsample.answers._notes import Note, warn_of
from unsample.answers._prior import SHIPPED, as_methods, as_prior, prior_kind
from unsample.answers._result import DEFAULT_METRICS
from unsample.bounds import Bounds, DirectMean, MeanError
from unsample.estimators import CANDIDATES, Estimator, Observed
from unsample.evidence import RankCounts, Targets
from unsample.law import RankDistribution
from unsample.metrics import Metric
from unsample.prior import Posterior, Prior
from unsample.tables import Read

DEFAULT_METHOD = AUTO


# What comes back follows from what comes in; which arguments there are, the function says.
@overload
def estimate(ranks: Mapping[str, Any], **options: Any) -> dict[str, Estimates]: ...
@overload
def estimate(ranks: Any, *, by: str, **options: Any) -> dict[str, Estimates]: ...
@overload
def estimate(ranks: Any, *, by: None = None, **options: Any) -> Estimates: ...


@refuses_gone  # type: ignore[misc]
def estimate(
    ranks: Any,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    replacement: bool = True,
    negatives: str = "own",
    candidates: str | None = None,
    kind: str | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    by: str | None = None,
    read: Read = USUAL,
) -> Estimates | dict[str, Estimates]:
    """Estimate full-catalogue metrics from ranks among sampled items.

    Parameters
    ----------
    ranks
        The rank of each target among the ``sampled + 1`` items it was ranked with; 1 is the best.
        Or a table: a file (CSV, TSV, JSON lines, Parquet, NPZ), a folder, a pattern such as
        ``"runs/*.parquet"``, a list of files, a data frame of pandas, Polars, PyArrow, DuckDB or
        PySpark, or what the query of `unsample.sql` returns. Or `RankCounts`, which hold ``items``
        and ``sampled``. Or a dict of names and any of these.
    items
        The number of candidates in a full ranking, the target included: one number, or one for
        each target (if seen items are left out of the candidates, it differs by user).
    sampled
        The number of items sampled for a target, without the target: one, or one for each target.
    users
        The user of each rank, if users have several targets: metrics are means over users, and
        errors count users. HR, MRR and AP then need all targets of a user ranked among the same
        items: give a table of scored rows (user, item, score, target).
    replacement
        Whether the same item may be sampled twice for a target.
    negatives
        ``"own"`` if items were sampled for each target, ``"shared"`` if all targets were ranked
        against one pool of sampled items: their ranks then depend on each other. If it is known
        which item beats which target, give a table of scored rows (user, item, score, target).
    candidates
        ``"unseen"`` if the items a user had already seen were left out of the candidates,
        ``"all"`` if they were among them. Sampled ranks cannot tell this at small K, and
        intervals are narrower when it is given. Without it, intervals allow for either.
    kind
        The kind of evaluation: ``"recommendation"``, ``"repeats"`` if people choose again what
        they chose before (baskets, sessions, songs), or ``"graph"`` for knowledge graphs: the other
        relevant items of a user were then left out when a target was ranked, and metrics are means
        over targets. If it is not given, the data decide, and intervals are wider.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`.
    method
        Names from `unsample.estimators.REGISTRY` such as ``"mle"`` or ``"bv(gamma=0.01)"``; by
        default ``"auto"``, the value of the posterior. The methods of papers give a value and P(R);
        intervals belong to the metric, and are the same for all methods.
    prior
        What other data sets say about P(R), for ``auto`` and for intervals: by default the prior in
        the package; or your own `Prior`, or its file. With None no prior is used: ``auto`` is then
        ``mle``, and intervals are the bounds.
    by
        A column of the table, such as ``"model"``, for an estimate of each of its values.
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
    given = Given(items, sampled, users, replacement, negatives, kind, read)
    filtered = given.filtered or (isinstance(ranks, Targets) and ranks.filtered)
    results = {}
    for name, counts in given.counts(ranks, by).items():
        found = estimate_counts(
            counts, metrics=metrics, method=method, candidates=candidates, prior=prior, kind=kind
        )
        results[name] = replace(found, filtered=filtered)
    warn_of((note for found in results.values() for note in found.notes), stacklevel=3)
    return results[""] if by is None and list(results) == [""] else results


def estimate_counts(
    counts: RankCounts,
    *,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    candidates: str | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    kind: str | None = None,
) -> Estimates:
    """Return what `estimate` returns, but raise no warnings: they are in the result.

    Callers that print warnings themselves need no others. To filter warnings is not safe in
    threads: filters belong to the whole process, and one thread's change would stay for the others.
    """
    if candidates is not None:
        check_choice("candidates", candidates, CANDIDATES)
    wanted = _metrics.parse_all(possible_metrics(metrics, counts))
    held, chosen = as_prior(prior), prior_kind(kind, candidates)
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
        posterior = None
        if held is not None:
            posterior = Posterior.of(weighed, held, kind=chosen, candidates=candidates)
        parts.append(_sampled(weighed, same, methods, posterior))
    by_name = {(entry.method, entry.metric.name): entry for part in parts for entry in part.entries}
    # P(R) is that of a metric to which all relevant items of a user count the same, if any.
    alike = [part for part in parts if part.metrics[0].family.weighs_alike] or parts[:1]
    notes = beyond_items(wanted, counts.largest_catalogue)
    notes += drawn_often(counts) + one_less(counts)
    notes += [Note("biased", each.caution) for each in methods.values() if each and each.caution]
    return Estimates(
        tuple(by_name[name, metric.name] for name in methods for metric in wanted),
        counts,
        alike[0].curves,
        tuple(dict.fromkeys([*notes, *(note for part in parts for note in part.notes)])),
        candidates,
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
        value = counts.scale * float(counts.weight @ values) / float(counts.weight.sum())
        error = MeanError.of_cells(values, counts, metric)
        entries += [Estimate.of_known(metric, name, value, error, counts) for name in methods]
    return _Part(metrics, entries, {}, [])


def _sampled(
    counts: RankCounts,
    metrics: tuple[Metric, ...],
    methods: Mapping[str, Estimator | None],
    posterior: Posterior | None,
) -> _Part:
    """Answer with one posterior, and one fit of each method of a paper."""
    cutoffs = [metric.cutoff(counts.largest_catalogue) for metric in metrics]
    observed, bounds = Observed.prepare(counts, cutoffs=cutoffs), Bounds.of(counts, cutoffs)
    fits = {name: each.evaluate(observed, metrics) for name, each in methods.items() if each}
    learned = None if posterior is None else posterior.curve()
    curves = {name: fits[name].distribution if name in fits else learned for name in methods}
    entries, notes = list[Estimate](), on_fits(fits, metrics)
    for place, metric in enumerate(metrics):
        first = entry_of(metric, counts, bounds, posterior)
        unbiased = DirectMean.of(metric, counts) is not None
        for name in methods:
            value = first.value
            if name in fits and not unbiased:
                value = counts.scale * float(fits[name].values[0, place])
                value = min(value, counts.ceiling(metric))
            entries.append(replace(first, method=name, value=value))
            notes += outside(entries[-1])
    notes += on_bounds(counts, bounds, posterior, entries)
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
