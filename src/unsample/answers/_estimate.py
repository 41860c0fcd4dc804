"""`estimate` and `exact`: from ranks to metrics with intervals, every step once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from unsample import estimators as _estimators
from unsample import metrics as _metrics
from unsample._checks import FloatArray, Seed, as_rng, check_choice, check_integer
from unsample.answers._result import Estimate, Estimates, Variation
from unsample.confidence import (
    Certainty,
    SamplingError,
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
from unsample.estimators import Estimator, Fit, Naive, Observed
from unsample.evidence import RankCounts, Targets
from unsample.law import Law, RankDistribution, RankGrid
from unsample.metrics import Metric
from unsample.tables import is_frame, read_counts

DEFAULT_METRICS = ("Recall@10", "NDCG@10", "AP@10")
DEFAULT_METHOD = "auto"
#: How the sampling error of a method's value is found.
ERRORS = ("bootstrap", "delta")
#: What methods that care about seen items take for granted where nothing is said.
_USUAL_CANDIDATES = "unseen"
#: Ranks that stand alone in the distribution of exact ranks; beyond them bins are as fine as ever.
_MOST_SINGLE_RANKS = 20_000

_Kind = TypeVar("_Kind", bound=Estimates)


def estimate(
    ranks: npt.ArrayLike | RankCounts | Targets,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    weights: npt.ArrayLike | None = None,
    users: npt.ArrayLike | None = None,
    replacement: bool = True,
    sampler: str = "uniform",
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
        or `RankCounts` or `Targets`, which already know ``items`` and ``sampled``; or a data frame
        of any engine, with a column ``rank`` (or ``user``, ``score`` and ``target``).
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
    candidates
        ``"unseen"`` if the items a user had already seen were left out of the candidates,
        ``"all"`` if they were among them. Sampled ranks cannot tell this at small K, and
        intervals are narrower when it is given. Without it, intervals allow for either, and
        methods that depend on it assume ``"unseen"``.
    shape
        What the intervals assume of P(R): a name from `unsample.confidence.SHAPES` or a `Shape`;
        by default what follows from ``candidates``.
    errors
        ``"bootstrap"`` or ``"delta"`` (faster) for the sampling error of each method's value. It
        is computed when it is first asked for.
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
    result = estimate_counts(
        _as_counts(ranks, items, sampled, weights, users, replacement),
        metrics=metrics,
        method=method,
        candidates=candidates,
        shape=shape,
        errors=errors,
        resamples=resamples,
        rng=rng,
    )
    for note in result.notes:
        warnings.warn(note, stacklevel=2)
    return result


def estimate_counts(
    counts: RankCounts,
    *,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] = DEFAULT_METHOD,
    candidates: str | None = None,
    shape: str | Shape | None = None,
    errors: str = "bootstrap",
    resamples: int = 400,
    rng: Seed = 0,
) -> Estimates:
    """Return what `estimate` does, without warning: what there is to warn of stands in the result.

    Filters of warnings belong to the whole process, and threads that change them for a moment
    leave them changed for each other. Callers that print warnings themselves need none.
    """
    question = Question.parse(metrics, method, candidates, shape)
    check_choice("errors", errors, ERRORS)
    resamples = check_integer("resamples", resamples, minimum=0)
    cutoffs = question.cutoffs(counts.largest_catalogue)
    observed = Observed.prepare(counts, cutoffs=cutoffs, candidates=question.usual_candidates)
    certainty = None
    if not observed.known.all():
        certainty = Certainty.of(observed.counts, cutoffs, question.shape)
    variation = Refits.of(observed, question, errors, resamples, rng)
    return question.answer(
        Estimates,
        counts,
        {str(method): method.evaluate(observed, question.metrics) for method in question.methods},
        certainty,
        variation,
        resolved=lambda metric: is_resolved(metric, counts),
        unresolved=_why_unresolved(counts),
    )


def exact(
    full_ranks: npt.ArrayLike,
    *,
    items: npt.ArrayLike,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    weights: npt.ArrayLike | None = None,
    users: npt.ArrayLike | None = None,
    resamples: int = 400,
    rng: Seed = 0,
) -> Estimates:
    """Return plain metrics of ranks in the full catalogue, as the same kind of result.

    The values hold for these targets without error; the intervals say how far they would move
    with other targets like these (with other users, where ``users`` says whose targets they are).

    >>> exact([1, 3, 20], items=100, metrics="HR@10")["HR@10"].value
    0.6666666666666666
    """
    try:
        counts = RankCounts.from_ranks(
            full_ranks,
            items=items,
            sampled=np.asarray(items) - 1,
            weights=weights,
            users=users,
            replacement=False,
        )
    except RankError as problem:
        raise RankError(str(problem).replace("sampled + 1", "items")) from problem
    question = Question.parse(metrics, Exact(), None, None)
    resamples = check_integer("resamples", resamples, minimum=0)
    observed = Observed.prepare(counts, cutoffs=np.unique(counts.low)[:_MOST_SINGLE_RANKS])
    fits = {"exact": Exact().evaluate(observed, question.metrics)}
    variation = Refits.of(observed, question, "bootstrap", resamples, rng)
    return question.answer(Estimates, counts, fits, None, variation)


@dataclass(frozen=True)
class Exact(Naive):
    """The metric of ranks that are all known."""

    name: ClassVar[str] = "exact"
    caution: ClassVar[str] = ""

    def evaluate(self, observed: Observed, metrics: Sequence[Metric]) -> Fit:
        """Return the plain mean of every metric, and the ranks as they are."""
        known = RankDistribution(observed.grid, observed.known_mass()[0])
        return replace(super().evaluate(observed, metrics), distribution=known)


@dataclass(frozen=True)
class Question:
    """What is asked of the data: metrics, by which methods, and under what assumptions."""

    metrics: tuple[Metric, ...]
    methods: tuple[Estimator, ...]
    candidates: str | None
    shape: Shape

    @classmethod
    def parse(
        cls,
        metrics: str | Metric | Iterable[str | Metric],
        method: str | Estimator | Iterable[str | Estimator],
        candidates: str | None,
        shape: str | Shape | None,
    ) -> Question:
        """Read names, and refuse metrics that a method cannot give."""
        wanted, methods = _metrics.parse_all(metrics), _estimators.parse_all(method)
        for each in methods:
            each.require(wanted)
        return cls(wanted, methods, candidates, shape_for(shape, candidates))

    @property
    def usual_candidates(self) -> str:
        """Return what methods take the candidates to be: the usual ones where nothing is said."""
        return self.candidates or _USUAL_CANDIDATES

    def cutoffs(self, items: int) -> list[int]:
        """Return the last rank that counts for each metric."""
        return [metric.cutoff(items) for metric in self.metrics]

    def answer(
        self,
        kind: Callable[..., _Kind],
        counts: RankCounts,
        fits: Mapping[str, Fit],
        certainty: Certainty | None,
        variation: Variation,
        *,
        resolved: Callable[[Metric], bool] = lambda metric: True,
        unresolved: str = "",
        refuted: Callable[[Certainty], str] | None = None,
        **more: Any,
    ) -> _Kind:
        """Put what was found together, with all there is to warn of."""
        seen = {metric.name: resolved(metric) for metric in self.metrics}
        entries = [
            Estimate(
                metric,
                name,
                float(fit.values[0, place]),
                seen[metric.name],
                fit.certificate,
                certainty,
                fit.clipped[place],
                variation,
                place,
            )
            for name, fit in fits.items()
            for place, metric in enumerate(self.metrics)
        ]
        notes = (
            *_resolution_notes([name for name, enough in seen.items() if not enough], unresolved),
            *(BiasedMethodWarning(each.caution) for each in self.methods if each.caution),
            *_convergence_notes(fits),
            *_clipping_notes(fits, self.metrics),
            *_refutation_notes(certainty, refuted or _why_refuted),
        )
        return kind(
            entries=tuple(entries),
            counts=counts,
            distributions={
                n: f.distribution for n, f in fits.items() if f.distribution is not None
            },
            notes=notes,
            candidates=self.candidates,
            explanations={n: f.explanation for n, f in fits.items() if f.explanation},
            **more,
        )


@dataclass(frozen=True, eq=False)
class Refits:
    """The methods fitted again, to bootstrap samples or to counts with a target more at each rank.

    It is done when it is first asked for, in one batch for all metrics of a method. A seed gives
    the same samples whenever that is, so that threads that ask at once find the same.
    """

    question: Question
    counts: RankCounts
    grid: RankGrid
    delta: bool
    resamples: int
    #: A seed, or bootstrap samples drawn already.
    source: int | FloatArray

    @classmethod
    def of(
        cls, observed: Observed, question: Question, errors: str, resamples: int, rng: Seed
    ) -> Refits:
        """Prepare the fits, and draw now what could not be drawn later as well."""
        counts = observed.counts
        # One target, or ranks that are all alike, resample only to themselves: an interval of
        # width zero would be a lie.
        if counts.effective < 2 or np.count_nonzero(counts.weight) < 2:
            resamples = 0
        generator = as_rng(rng)
        source: int | FloatArray = 0
        if isinstance(rng, int | np.integer):
            source = int(rng)
        elif errors == "bootstrap" and resamples:
            source = counts.resample(resamples, rng=generator)
        return cls(question, counts, observed.grid, errors == "delta", resamples, source)

    def replicates(self, method: str, metric: int) -> FloatArray:
        """Return a method's values of the metric of this number on bootstrap samples."""
        if self.delta or self.resamples == 0:
            return np.empty(0)
        return np.asarray(self._fits[method][0].values[1:, metric])

    def error(self, method: str, metric: int) -> SamplingError | None:
        """Return the standard errors by the delta method, where these were chosen."""
        return self._fits[method][1][metric] if self.delta else None

    @property
    def notes(self) -> tuple[UnsampleWarning, ...]:
        """Return where fits did not converge, once they were made."""
        made: dict[str, tuple[Fit, list[SamplingError]]] = self.__dict__.get("_fits", {})
        return tuple(
            ConvergenceWarning(f"{name} did not converge on {fit.failures} bootstrap samples")
            for name, (fit, _) in made.items()
            if fit.failures and fit.certificate.usable
        )

    @cached_property
    def _fits(self) -> dict[str, tuple[Fit, list[SamplingError]]]:
        batch = Observed.prepare(
            self.counts,
            resampled=self._rows(),
            grid=self.grid,
            candidates=self.question.usual_candidates,
        )
        fits = {
            str(each): each.evaluate(batch, self.question.metrics) for each in self.question.methods
        }
        return {
            name: (fit, sampling_errors(fit.smooth_values, batch) if self.delta else [])
            for name, fit in fits.items()
        }

    def _rows(self) -> FloatArray:
        if self.delta:
            return nudged(self.counts)
        if isinstance(self.source, int):
            return self.counts.resample(self.resamples, rng=as_rng(self.source))
        return self.source


def _as_counts(
    ranks: npt.ArrayLike | RankCounts | Targets,
    items: npt.ArrayLike | None,
    sampled: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    users: npt.ArrayLike | None,
    replacement: bool,
) -> RankCounts:
    given = {"items": items, "sampled": sampled, "weights": weights, "users": users}
    extra = " and ".join(name for name, value in given.items() if value is not None)
    if isinstance(ranks, RankCounts | Targets):
        if extra:
            raise InputError(f"{extra} must be left out with {type(ranks).__name__}, which know it")
        return ranks if isinstance(ranks, RankCounts) else ranks.counts
    if is_frame(ranks):
        if weights is not None or users is not None:
            raise InputError("weights and users must be left out with a frame; give it columns")
        return read_counts(ranks, items=items, sampled=sampled, replacement=replacement)[""]
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


def _why_unresolved(counts: RankCounts) -> str:
    smallest = math.ceil(blind_rank(counts) - 1e-9)
    return (
        "fewer than one sampled item falls into the top K on average, so the value rests on the "
        f"method's assumption about the top ranks; this sample resolves K >= {smallest}"
    )


def _resolution_notes(names: list[str], why: str) -> list[UnsampleWarning]:
    if not names:
        return []
    are = "is" if len(names) == 1 else "are"
    return [UnresolvedWarning(f"{', '.join(names)} {are} not resolved: {why}")]


def _convergence_notes(fits: Mapping[str, Fit]) -> list[UnsampleWarning]:
    return [
        ConvergenceWarning(
            f"{name} did not converge on the data ({fit.certificate}): do not rely on its values, "
            "and use another method, for instance auto"
        )
        for name, fit in fits.items()
        if not fit.certificate.usable
    ]


def _clipping_notes(fits: Mapping[str, Fit], metrics: tuple[Metric, ...]) -> list[UnsampleWarning]:
    """Say which values left the range of their metric, and what they were."""
    notes: list[UnsampleWarning] = []
    for name, fit in fits.items():
        moved = [
            f"{metric.name} = {fit.smooth_values[0, place]:.6g}"
            for place, metric in enumerate(metrics)
            if fit.clipped[place]
        ]
        if moved:
            text = (
                f"{name} gave {', '.join(moved)}, outside the metric's range, and was clipped "
                "into it: the method is linear in the counts and too noisy for these data; "
                "use auto or mle"
            )
            notes.append(ClippedWarning(text))
    return notes


def _refutation_notes(
    certainty: Certainty | None, why: Callable[[Certainty], str]
) -> list[UnsampleWarning]:
    if certainty is None or certainty.fits():
        return []
    return [RefutedWarning(why(certainty))]


def _why_refuted(certainty: Certainty) -> str:
    if certainty.shape_in_use() is None:
        return (
            "no distribution of global ranks fits these sampled ranks: items, sampled, or how "
            "items were drawn or ties broken is not as stated, and no estimate can be trusted"
        )
    return (
        f"the data refute the assumption {certainty.shape}; "
        "the intervals are the bounds that assume nothing"
    )
