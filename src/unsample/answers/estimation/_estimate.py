"""The front door: `estimate` and `exact`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unsample import estimators as _estimators
from unsample import metrics as _metrics
from unsample._checks import FloatArray, Seed, as_rng, check_choice, check_integer
from unsample.answers.estimation._results import Estimate, Estimates
from unsample.confidence import (
    Certainty,
    Shape,
    blind_rank,
    is_resolved,
    nudged,
    sampling_errors,
    shape_for,
)
from unsample.errors import (
    BiasedMethodWarning,
    ClippedWarning,
    ConvergenceWarning,
    DesignError,
    InputError,
    RankError,
    RefutedWarning,
    UnresolvedWarning,
    UnsampleWarning,
)
from unsample.estimators import Estimator, Evaluation, Observed, group_catalogues
from unsample.estimators._solvers import Certificate, Status
from unsample.evidence import RankCounts
from unsample.law import Law, RankDistribution
from unsample.metrics import Metric
from unsample.tables import is_frame, read_counts

__all__ = [
    "DEFAULT_METHOD",
    "DEFAULT_METRICS",
    "ERRORS",
    "EVERYDAY",
    "Note",
    "clipping_notes",
    "estimate",
    "exact",
    "quiet_estimate",
]

DEFAULT_METRICS = ("Recall@10", "NDCG@10", "AP@10")
DEFAULT_METHOD = "auto"
#: How the sampling error of a method's value is found.
ERRORS = ("bootstrap", "delta")
#: Ranks that stand alone in the distribution of exact ranks; beyond them bins are as fine as ever.
_MOST_SINGLE_RANKS = 20_000

#: What methods that care about seen items take for granted where nothing is said.
EVERYDAY = "unseen"

#: A warning to give: its category and its words.
Note: TypeAlias = tuple[type[UnsampleWarning], str]


def estimate(
    ranks: npt.ArrayLike | RankCounts,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    weights: npt.ArrayLike | None = None,
    users: npt.ArrayLike | None = None,
    replacement: bool = True,
    sampler: str = "uniform",
    stop: int | None = None,
    candidates: str | None = None,
    shape: str | Shape | None = None,
    errors: str = "bootstrap",
    resamples: int = 400,
    rng: Seed = 0,
) -> Estimates:
    """Estimate full-catalogue metrics from ranks among sampled items.

    Parameters
    ----------
    ranks
        The rank of each target among the ``sampled + 1`` items it was ranked with, 1 the best;
        or `RankCounts`, which already know ``items`` and ``sampled``; or a data frame of any
        engine, as in `unsample.tables.read_counts`.
    items
        The number of candidates in a full ranking, the target included: one number, or one for
        each target (where seen items are left out of the candidates, it differs by user).
    sampled
        The number of items sampled for a target, without the target: one number or one each.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`.
    method
        Names from `unsample.estimators.REGISTRY` such as ``"mle"`` or ``"bv(gamma=0.01)"``; by
        default ``"auto"``, which chooses from the data.
    weights
        How much each target counts, where they differ (1/3 each for a user's three targets).
    users
        Whose target each rank is, where users have several: targets of one user are not
        independent, and the errors then count the users.
    replacement
        Whether the same item may be sampled twice for a target.
    sampler
        ``"uniform"``; anything else is refused with the reason.
    stop
        Where the sample of a target grew until so many items beat it (adaptive evaluation), that
        number. The sizes then tell something about the rank, and intervals must know it.
    candidates
        Whether the items a user is known to have seen were ``"unseen"`` from the candidates or
        ``"all"`` among them. Sampled ranks cannot tell this at small K, and intervals are
        narrower when it is said. Not said, intervals allow for either, and methods that care
        take the everyday protocol, excluded.
    shape
        What the intervals assume of P(R): a name from `unsample.confidence.SHAPES` or a `Shape`;
        by default what follows from ``candidates``.
    errors
        ``"bootstrap"`` or ``"delta"`` (faster) for the sampling error of each method's value.
    resamples
        Bootstrap samples; 0 for none. The intervals do not need them.
    rng
        Seed or Generator of the bootstrap.

    >>> result = estimate([1, 1, 2, 5, 40] * 20, items=3706, sampled=99, metrics="Recall@50")
    >>> round(result["Recall@50"].value, 1), result["Recall@50"].resolved
    (0.5, True)
    """
    if sampler != "uniform":
        Law(items=2, sampled=1, sampler=sampler)
    result, notes = quiet_estimate(
        _as_counts(ranks, items, sampled, weights, users, replacement),
        metrics=metrics,
        method=method,
        stop=stop,
        candidates=candidates,
        shape=shape,
        errors=errors,
        resamples=resamples,
        rng=rng,
    )
    for category, text in notes:
        warnings.warn(text, category, stacklevel=2)
    return result


def quiet_estimate(
    counts: RankCounts,
    *,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    stop: int | None = None,
    candidates: str | None = None,
    shape: str | Shape | None = None,
    errors: str = "bootstrap",
    resamples: int = 400,
    rng: Seed = 0,
) -> tuple[Estimates, tuple[Note, ...]]:
    """Return the estimates and what `estimate` would warn of, without warning.

    Callers that say it in their own way need no filters: those belong to the whole process, and
    threads that change them for a moment leave them changed for each other.
    """
    wanted = _metrics.parse_all(metrics)
    methods = _estimators.parse_all(method)
    check_choice("errors", errors, ERRORS)
    resamples = check_integer("resamples", resamples, minimum=0)
    if stop is not None:
        stop = check_integer("stop", stop, minimum=1)
    assumed = shape_for(shape, candidates)
    for one in methods:
        one.require(wanted)
    # Grouping first keeps the batch small where every user has a catalogue of its own.
    grouped = group_catalogues(counts)
    delta = errors == "delta"
    batch = nudged(grouped) if delta else _resample(grouped, resamples, rng)
    cutoffs = [metric.cutoff(counts.largest_catalogue) for metric in wanted]
    observed = Observed.prepare(
        grouped, resampled=batch, cutoffs=cutoffs, candidates=candidates or EVERYDAY
    )
    evaluations = {str(one): one.evaluate(observed, wanted) for one in methods}
    certainty = None if observed.known.all() else Certainty.of(grouped, cutoffs, assumed, stop=stop)
    notes: tuple[Note, ...] = (
        *_resolution_notes(wanted, counts),
        *((BiasedMethodWarning, one.caution) for one in methods if one.caution),
        *_solver_notes(evaluations),
        *clipping_notes(evaluations, wanted),
        *_refutation_notes(certainty),
    )
    entries: list[Estimate] = []
    for name, evaluation in evaluations.items():
        smooth = evaluation.smooth_values
        found = sampling_errors(smooth, observed) if delta else [None] * len(wanted)
        replicates = evaluation.values[:0] if delta else evaluation.values[1:]
        entries.extend(
            Estimate(
                metric,
                name,
                float(evaluation.values[0, column]),
                is_resolved(metric, counts),
                evaluation.certificate,
                replicates[:, column],
                certainty,
                error,
                evaluation.clipped[column],
            )
            for column, (metric, error) in enumerate(zip(wanted, found, strict=True))
        )
    result = Estimates(
        tuple(entries),
        counts,
        {
            name: evaluation.distribution
            for name, evaluation in evaluations.items()
            if evaluation.distribution is not None
        },
        tuple(text for _, text in notes),
        candidates,
        {
            name: evaluation.explanation
            for name, evaluation in evaluations.items()
            if evaluation.explanation
        },
    )
    return result, notes


def exact(
    full_ranks: npt.ArrayLike,
    *,
    items: npt.ArrayLike,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    weights: npt.ArrayLike | None = None,
    resamples: int = 400,
    rng: Seed = 0,
) -> Estimates:
    """Return plain metrics of ranks in the full catalogue, as the same kind of result.

    The values hold for these targets without error; the intervals say how far they would move
    with other targets like these.

    >>> exact([1, 3, 20], items=100, metrics="HR@10")["HR@10"].value
    0.6666666666666666
    """
    sizes = np.asarray(items)
    try:
        counts = RankCounts.from_ranks(
            full_ranks, items=items, sampled=sizes - 1, weights=weights, replacement=False
        )
    except RankError as problem:
        raise RankError(str(problem).replace("sampled + 1", "items")) from problem
    wanted = _metrics.parse_all(metrics)
    resamples = check_integer("resamples", resamples, minimum=0)
    observed = Observed.prepare(
        counts,
        resampled=_resample(counts, resamples, rng),
        cutoffs=np.unique(counts.low)[:_MOST_SINGLE_RANKS],
    )
    closed = Certificate(Status.CLOSED_FORM, 0.0, 0.0, 0.0, 0)
    entries = []
    for metric in wanted:
        values = observed.known_metric(metric)
        entries.append(Estimate(metric, "exact", float(values[0]), True, closed, values[1:]))
    masses = RankDistribution(observed.grid, observed.known_mass()[0])
    return Estimates(tuple(entries), counts, {"exact": masses})


def _as_counts(
    ranks: npt.ArrayLike | RankCounts,
    items: npt.ArrayLike | None,
    sampled: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    users: npt.ArrayLike | None,
    replacement: bool,
) -> RankCounts:
    if isinstance(ranks, RankCounts):
        given = {"items": items, "sampled": sampled, "weights": weights, "users": users}
        extra = [name for name, value in given.items() if value is not None]
        if extra:
            raise InputError(
                f"{' and '.join(extra)} must be left out with RankCounts, which hold them"
            )
        return ranks
    if is_frame(ranks):
        if weights is not None or users is not None:
            raise InputError("weights and users must be left out with a frame; give it columns")
        counted = read_counts(
            ranks,
            items=items,  # type: ignore[arg-type]  # it is checked there
            sampled=sampled,  # type: ignore[arg-type]
            replacement=replacement,
        )
        return counted[""]
    for name, value in (("items", items), ("sampled", sampled)):
        if value is None:
            raise DesignError(
                f"{name} must be given with ranks, got None; see help(unsample.estimate)"
            )
    return RankCounts.from_ranks(
        ranks,
        items=items,  # type: ignore[arg-type]
        sampled=sampled,  # type: ignore[arg-type]
        weights=weights,
        users=users,
        replacement=replacement,
    )


def _resample(counts: RankCounts, size: int, rng: Seed) -> FloatArray | None:
    # One target, or ranks that are all alike, resample only to themselves: an interval of width
    # zero would be a lie.
    if size == 0 or counts.effective < 2 or np.count_nonzero(counts.weight) < 2:
        return None
    return counts.resample(size, rng=as_rng(rng))


def _resolution_notes(wanted: tuple[Metric, ...], counts: RankCounts) -> list[Note]:
    blind = [metric.name for metric in wanted if not is_resolved(metric, counts)]
    if not blind:
        return []
    smallest = math.ceil(blind_rank(counts) - 1e-9)
    are = "is" if len(blind) == 1 else "are"
    return [
        (
            UnresolvedWarning,
            (
                f"{', '.join(blind)} {are} not resolved: fewer than one sampled item falls into "
                "the top K on average, so the value rests on the method's assumption about the "
                f"top ranks; this sample resolves K >= {smallest}"
            ),
        )
    ]


def _solver_notes(
    evaluations: Mapping[str, Evaluation],
) -> list[Note]:
    notes: list[Note] = []
    for name, evaluation in evaluations.items():
        if not evaluation.certificate.usable:
            text = (
                f"{name} did not converge on the data ({evaluation.certificate}): do not rely on "
                "its values, and use another method, for instance auto"
            )
            notes.append((ConvergenceWarning, text))
        elif evaluation.failures:
            text = f"{name} did not converge on {evaluation.failures} bootstrap samples"
            notes.append((ConvergenceWarning, text))
    return notes


def clipping_notes(evaluations: Mapping[str, Evaluation], wanted: tuple[Metric, ...]) -> list[Note]:
    """Say which values left the range of their metric, and what they were."""
    notes: list[Note] = []
    for name, evaluation in evaluations.items():
        moved = [
            f"{metric.name} = {before:.6g}"
            for metric, before, clipped in zip(
                wanted, evaluation.smooth_values[0], evaluation.clipped, strict=True
            )
            if clipped
        ]
        if moved:
            text = (
                f"{name} gave {', '.join(moved)}, outside the metric's range, and was clipped "
                "into it: the method is linear in the counts and too noisy for these data; "
                "use auto or mle"
            )
            notes.append((ClippedWarning, text))
    return notes


def _refutation_notes(certainty: Certainty | None) -> list[Note]:
    if certainty is None or certainty.fits():
        return []
    if certainty.shape_in_use() is None:
        text = (
            "no distribution of global ranks fits these sampled ranks: items, sampled, or how "
            "items were drawn or ties broken is not as stated, and no estimate can be trusted"
        )
    else:
        text = (
            f"the data refute the assumption {certainty.shape}; "
            "the intervals are the bounds that assume nothing"
        )
    return [(RefutedWarning, text)]
