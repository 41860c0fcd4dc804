"""`estimate`: from sampled ranks to metrics with intervals."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, overload

import numpy.typing as npt

from unsample._gone import refuses_gone
from unsample.answers._doubts import doubts
from unsample.answers._fits import DeltaErrors, fitted
from unsample.answers._given import USUAL, Given, library_of, possible_metrics
from unsample.answers._notes import Note, warn_of
from unsample.answers._prior import SHIPPED
from unsample.answers._question import Question
from unsample.answers._result import DEFAULT_METRICS, Estimates
from unsample.confidence import Certainty, PooledCertainty
from unsample.estimators import Estimator, Observed
from unsample.estimators.prior import Prior
from unsample.evidence import RankCounts, Targets
from unsample.metrics import Metric
from unsample.tables import Read

DEFAULT_METHOD = "auto"


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
        The rank of each target among the ``sampled + 1`` items it was ranked with; 1 is the best. A
        half rank is a tie, and is rounded up or down at random. Or a table: a file (CSV, TSV, JSON
        lines, Parquet, NPZ), a folder, a pattern such as ``"runs/*.parquet"``, a list of files, a
        data frame of pandas, Polars, PyArrow, DuckDB or PySpark, or what the query of
        `unsample.sql` returns. Or `RankCounts`, which hold ``items`` and ``sampled``. Or a dict of
        names and any of these.
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
        intervals are narrower when it is given. Without it, intervals allow for either, and
        methods that depend on it assume ``"unseen"``.
    kind
        The kind of evaluation: ``"recommendation"``, ``"repeats"`` if people choose again what
        they chose before (baskets, sessions, songs), or ``"graph"`` for knowledge graphs: the other
        relevant items of a user were then left out when a target was ranked, and metrics are means
        over targets. If it is not given, the data decide, and intervals are wider.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`.
    method
        Names from `unsample.estimators.REGISTRY` such as ``"mle"`` or ``"bv(gamma=0.01)"``; by
        default ``"auto"``, which chooses from the data.
    prior
        What other data sets say about P(R), for ``auto`` and for calibrated intervals: by default
        the prior in the package; or your own `Prior`, or its file. With None no prior is used:
        ``auto`` is then ``mle``, and intervals are the guaranteed ones.
    by
        A column of the table, such as ``"model"``, for an estimate of each of its values.
    read
        What columns of a table are called, what its rows hold, and how ties are broken: see
        `unsample.Read`.

    Returns
    -------
    Estimates
        The metrics; a dict of them by name if there is a dict of sources, or ``by``.

    >>> result = estimate([1, 1, 2, 5, 40] * 20, items=3706, sampled=99, metrics="Recall@50")
    >>> round(result["Recall@50"].value, 1), result["Recall@50"].resolved
    (0.5, True)
    """
    given = Given(items, sampled, users, replacement, negatives, kind, read)
    filtered = given.filtered or (isinstance(ranks, Targets) and ranks.filtered)
    results = {}
    for name, counts in given.counts(ranks, by).items():
        found = estimate_counts(
            counts, metrics=metrics, method=method, candidates=candidates, prior=prior, kind=kind
        )
        results[name] = replace(found, filtered=filtered, library=library_of(ranks))
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
    possible = possible_metrics(metrics, counts)
    question = Question.parse(possible, method, candidates, None, prior, kind)
    parts = [
        _answered(replace(question, metrics=same), weighed)
        for weighed, same in _weighed(counts, question.metrics)
    ]
    found = _together(parts, question.metrics, counts) if counts.several else parts[0]
    return replace(found, notes=(*doubts(counts, question.metrics), *found.notes))


def _weighed(
    counts: RankCounts, metrics: tuple[Metric, ...]
) -> list[tuple[RankCounts, tuple[Metric, ...]]]:
    """Return counts for each way to weigh targets, with the metrics that weigh them in this way."""
    found: dict[bytes, tuple[RankCounts, list[Metric]]] = {}
    for metric in metrics:
        weighed = counts.for_metric(metric)
        key = weighed.weight.tobytes() + weighed.relevant.tobytes()
        found.setdefault(key, (weighed, []))[1].append(metric)
    return [(weighed, tuple(same)) for weighed, same in found.values()]


def _together(parts: list[Estimates], metrics: tuple[Metric, ...], counts: RankCounts) -> Estimates:
    """Return one result from the results of metrics that weigh targets differently."""
    entries = [entry for part in parts for entry in part.entries]
    methods = parts[0].methods
    order = {metric.name: place for place, metric in enumerate(metrics)}
    entries.sort(key=lambda entry: (methods.index(entry.method), order[entry.metric.name]))
    notes = dict.fromkeys(note for part in parts for note in part.notes)
    # P(R) is that of a metric to which all relevant items of a user count the same, if any.
    alike = [part for part in parts if part.metrics[0].family.weighs_alike]
    return replace(
        parts[0],
        entries=tuple(entries),
        counts=counts,
        notes=tuple(notes),
        distributions=alike[0].distributions if alike else {},
    )


def _answered(question: Question, counts: RankCounts) -> Estimates:
    """Answer a question about metrics that all weigh targets in the same way as the counts."""
    cutoffs = question.cutoffs(counts.largest_catalogue)
    observed = Observed.prepare(counts, cutoffs=cutoffs, candidates=question.usual_candidates)
    known = bool(counts.known.all())
    certainty = None if known else Certainty.of(counts, cutoffs, question.shape)
    fits = {str(each): fitted(each, observed, question.metrics) for each in question.methods}
    return question.answer(
        Estimates,
        counts,
        fits,
        certainty,
        DeltaErrors(observed, question),
        remedy=_remedy(counts),
        data="the data",
        misfit="fits these sampled ranks: items, sampled,",
        calibrated=question.calibrated(observed),
        notes=[
            *_on_shared(certainty),
            *(
                Note(
                    "unconverged",
                    f"{name} did not converge on the data ({fit.certificate}): do not rely on its "
                    "values, and use another method, for instance auto",
                )
                for name, fit in fits.items()
                if not fit.certificate.usable
            ),
        ],
    )


def _on_shared(certainty: Certainty | None) -> list[Note]:
    """Return a note if targets share their items and the dependence is not known."""
    if isinstance(certainty, PooledCertainty) and certainty.caveat:
        return [Note("shared", certainty.caveat)]
    return []


def _remedy(counts: RankCounts) -> str:
    """Return advice on what would resolve a metric."""
    top = math.ceil(counts.blind_rank - 1e-9)
    return (
        f"on average one sampled item falls into the top {top:,}: more sampled items help, more "
        "targets do not"
    )
