"""`evaluate`: a scorer, its targets and a design in; metrics with intervals and their cost out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray, Seed, check_integer
from unsample._progress import Progress
from unsample.answers._estimate import DEFAULT_METHOD, estimate_counts
from unsample.answers._exact import as_grades, exact_targets
from unsample.answers._guided import guided_targets
from unsample.answers._pilot import pilot_targets
from unsample.answers._result import DEFAULT_METRICS, Estimates
from unsample.designs import (
    AUTO,
    LARGEST_ORDER,
    Adaptive,
    Candidates,
    Certified,
    Design,
    Exact,
    Excluded,
    Execution,
    Findings,
    Guided,
    Pilot,
    as_design,
    as_guide,
    as_key,
    as_scorer,
    on_device,
    run,
    run_quickest,
)
from unsample.errors import BudgetError, DesignError, UnsampleWarning
from unsample.estimators import Estimator
from unsample.evidence import Targets, check_ties, refuse_joint
from unsample.metrics import Metric

#: Where samples stop growing by what they found, the data decide, so EM may stop earlier.
ADAPTIVE_METHOD = "mle(iterations=30)"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Evaluation(Estimates):
    """Metrics of a scorer on the full catalogue, with intervals; ``result["NDCG@10"].value``.

    The arrays have an entry for each target, in the order in which targets were given, so that
    two models evaluated on the same targets can be compared target by target.

    Attributes
    ----------
    design
        The design, with every parameter that was decided on the way.
    users, targets
        Who, and which item.
    ranks, highest
        The rank of each target among ``sampled + 1`` items. Where only a range is known (beyond
        the K of a certified evaluation, or of users that a guided one did not draw), ``ranks`` is
        its first and ``highest`` its last.
    sampled
        How many items the ranks are among, the target not counted: those it was compared with,
        or all candidates where the rank holds in the whole catalogue.
    catalogues
        The number of candidates of each target, itself included.
    scored
        How many scores the scorer was asked for, in all: of items, of the targets themselves, and
        a few that were asked for twice. Never more than the budget.
    rng
        The seed of the random orders; models evaluated with one seed met the same items.
    weights, relevance
        How much each target's user counts, and how relevant each target is; None where all are
        alike.
    """

    design: Design
    users: IntArray
    targets: IntArray
    ranks: IntArray = field(repr=False)
    highest: IntArray = field(repr=False)
    sampled: IntArray = field(repr=False)
    catalogues: IntArray = field(repr=False)
    scored: int
    rng: int
    weights: npt.ArrayLike | None = field(repr=False, default=None)
    relevance: FloatArray | None = field(repr=False, default=None)

    @property
    def found(self) -> Targets:
        """Return what the design found, target by target."""
        return Targets(
            self.highest if self.design.certifies else self.ranks,
            self.catalogues,
            self.sampled,
            self.weights,
            self.users,
            self.design.with_replacement,
            self.design.stops_after,
            filtered=self.filtered,
        )

    @property
    def share(self) -> float:
        """Return `scored` as a share of a full ranking, which scores all candidates."""
        return float(self.scored / self.catalogues.sum())

    @property
    def cost(self) -> str:
        """Return what was scored, in words."""
        return (
            f"{self.design.name} design: {self.scored:,} scores, "
            f"{self.scored / len(self.users):,.1f} for each target, {self.share:.3%} of a full "
            "ranking"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        cost = {"design": self.design.name, "scored": self.scored, "share": self.share}
        return cost | super().to_dict()


def evaluate(
    scorer: Any,
    targets: Any,
    *,
    items: int,
    design: str | Design | None = None,
    budget: int | None = None,
    exclude: Excluded | None = None,
    guide: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] | None = None,
    filtered: bool = False,
    relevance: npt.ArrayLike | None = None,
    ties: str = "random",
    weights: npt.ArrayLike | None = None,
    rng: Seed = 0,
    resamples: int = 400,
    batch: int = 1 << 17,
    workers: int = 1,
    device: str | None = None,
    precision: str = "float32",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate a recommender on the full catalogue at a fraction of the cost, or exactly.

    Parameters
    ----------
    scorer
        A callable ``scores(users, items)`` that scores row i of the matrix ``items`` for
        ``users[i]``; a pair (user factors, item factors) or a `FactorScores`; a
        ``torch.nn.Module`` whose ``forward(users, items)`` takes two equally long vectors of
        ids; a factor model of implicit; or a recommender with ``score`` and ``score_all``.
        Higher is better. Items scored -inf rank below all others, +inf above; NaN is an error.
        The score of a pair must not depend on what else is asked in the same call.
    targets
        The relevant items: a pair (users, items) of id arrays (a user with several targets comes
        several times), a dict of user -> items, or a sparse users x items matrix.
    items
        Number of items in the catalogue.
    design
        ``"guided"``, ``"certified"``, ``"pilot"``, ``"adaptive"``, ``"fixed"`` or ``"exact"``; or
        one with parameters, such as ``Adaptive(start=64, cap=6400)`` or
        ``unsample.plan(...).best.design``. ``"auto"`` is exact in whichever way takes least time,
        ``"exact"`` or ``"certified"`` with or without the guide: each is tried on a few users. By
        default ``"auto"`` without a budget; with one ``"guided"`` where it suffices and every
        metric has a K, else ``"adaptive"``, which is also the default where a method is given.
    budget
        All scores that may be asked of the scorer, those of the targets included: a hard limit.
        A guided, adaptive or fixed design takes what it allows; an exact or certified one, which
        cannot do with less than it needs, is refused where it does not suffice.
    exclude
        Sparse users x items matrix of pairs to leave out (training data); None keeps
        all items.
    guide
        Any cheap idea of which items are strong, for a guided or certified design: it decides the
        order in which items are met, so what they cost, and never what is found. One score for
        each item; a pair (user factors, item factors); a function users -> scores of all items; a
        dict of user -> ranked items, or a matrix of them with a row for each user; a recommender
        with ``score_all``. By default the popularity of items in ``exclude``; without it a random
        order. What a guide scores is no part of the budget.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`.
    method
        Estimator for sampled designs, or several; by default ``"auto"``, under an adaptive design
        ``"mle"`` with 30 iterations. Others need none.
    filtered
        False: the other targets of a user are competitors of each, as in a list of
        recommendations, and metrics are those of users. True: they are left out, as in knowledge
        graphs, and metrics are those of targets. Errors count users either way.
    relevance
        How relevant each target is, in the order of ``targets``, for NDCG with grades; with
        ``design="exact"``, ``"certified"`` or ``"guided"``.
    ties
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``. Random ties are keyed by the seed.
    weights
        How much each target's user counts, where users differ.
    rng
        Seed or Generator. It decides the order in which each target meets items, which is the
        same for every model, batch size and number of workers, and the bootstrap.
    resamples
        Bootstrap samples behind the standard errors; 0 for none.
    batch
        Scores asked for in one call, at most (but for rows that are longer).
    workers
        Threads that score.
    device, precision
        For factors: score on this device of torch (``"cuda"``). With ``design="exact"`` they may be
        rounded to ``"tf32"`` or ``"bfloat16"``; see `exact_ranks`. A torch module is asked on the
        device it is on.
    checkpoint
        A file to which the state is written now and then. The same call continues from there, to
        the same result. Interrupted, it asks again for what was not written yet.
    progress
        Called with targets done and targets in all.

    >>> users, catalogue = np.random.default_rng(0).normal(size=(2, 500, 8))
    >>> result = evaluate((users, catalogue), (np.arange(500), np.arange(500)), items=500,
    ...                   design="certified", metrics="NDCG@10")
    >>> full = evaluate((users, catalogue), (np.arange(500), np.arange(500)), items=500,
    ...                 design="exact", metrics="NDCG@10")
    >>> bool(np.isclose(result["NDCG@10"].value, full["NDCG@10"].value)), result.share < 0.2
    (True, True)
    """
    items = check_integer("items", items, minimum=2, maximum=LARGEST_ORDER)
    candidates = Candidates.check(targets, items, exclude, filtered=filtered)
    candidates.refuse_repeated()
    candidates.refuse_unrankable()
    wanted = _metrics.parse_all(metrics)
    if design is None:
        design = _default_design(candidates, wanted, budget, method)
    quickest = design == AUTO
    if quickest:
        design = _of_exact_ways(wanted, budget, device)
    chosen, scoring, seed = as_design(design), as_scorer(scorer, items), as_key(rng)
    check_ties(ties, whole=True)
    _refuse_with_design(chosen, method, guide)
    execution = Execution(batch, workers, device, precision, checkpoint, progress)
    scoring = on_device(scoring, device, precision, whole=isinstance(chosen, Exact))
    grades = None if relevance is None else as_grades(relevance, len(candidates))
    if grades is not None and not grades.all():
        # Items of relevance 0 are judged, and not relevant.
        kept = grades > 0
        candidates, grades = candidates.take(kept), grades[kept]
        weights = None if weights is None else np.asarray(weights)[kept]
    if isinstance(chosen, Pilot):
        _refuse_with_pilot(candidates, grades, weights)
    elif not chosen.certifies:
        wanted = _of_samples(
            chosen, candidates, grades, wanted, by_default=metrics is DEFAULT_METRICS
        )
    options: dict[str, Any] = {"metrics": wanted, "ties": ties, "rng": seed, "execution": execution}
    if quickest and chosen.guided:
        found, tally = run_quickest(
            scoring, candidates, lambda some: as_guide(guide, some), **options
        )
    else:
        order = as_guide(guide, candidates) if chosen.guided else None
        found, tally = run(chosen, scoring, candidates, budget=budget, guide=order, **options)
    if weights is not None:
        found = replace(found, weights=np.asarray(weights, dtype=np.float64))
    if found.design.certifies:
        estimates = certified_targets(found, wanted, grades, resamples, seed)
    else:
        estimates = estimate_counts(
            found.counts,
            metrics=wanted,
            method=method_of(found.design) if method is None else method,
            # Without a list of seen items it is not known whether there were any to leave out.
            candidates=None if exclude is None else "unseen",
            resamples=resamples,
            rng=seed,
        )
    for note in estimates.notes:
        warnings.warn(note, stacklevel=2)
    notes = list(estimates.notes)
    if tally.infinite.any():
        first = int(candidates.users[np.argmax(tally.infinite > 0)])
        notes.append(
            UnsampleWarning(
                f"{int(tally.infinite.sum())} scores were infinite, the first for user {first}: "
                "such items rank above (+inf) or below (-inf) all others"
            )
        )
    return Evaluation(
        **{each.name: getattr(estimates, each.name) for each in fields(estimates)}
        | {"notes": tuple(notes), "counts": found.ranges, "filtered": filtered},
        design=found.design,
        users=candidates.users,
        targets=candidates.targets,
        ranks=found.lowest,
        highest=found.ranks,
        sampled=np.asarray(found.sampled),
        catalogues=np.asarray(found.items),
        scored=found.scored,
        rng=seed,
        weights=found.weights,
        relevance=grades,
    )


def certified_targets(
    found: Findings,
    metrics: tuple[Metric, ...],
    relevance: FloatArray | None,
    resamples: int,
    rng: Seed,
) -> Estimates:
    """Return exact metrics, or estimates where only a part of the open targets was followed."""
    sampled, items = np.asarray(found.sampled), np.asarray(found.items)
    if isinstance(found.design, Pilot) and (sampled < items - 1).any():
        return pilot_targets(found, metrics, DEFAULT_METHOD)
    if found.unknown.any():
        return guided_targets(found, metrics, relevance)
    estimates = exact_targets(found, metrics, relevance, resamples, rng)
    if np.array_equal(found.lowest, found.ranks):
        return estimates
    # Beyond K the last rank stands for all: right for metrics@K, but no P(R).
    return replace(estimates, distributions={})


def _refuse_with_design(chosen: Design, method: Any, guide: Any) -> None:
    """Refuse arguments of other designs."""
    if chosen.certifies and method is not None:
        raise DesignError(
            f"method must be left out with design={chosen.name!r}, which needs no estimator, "
            f"got {method!s}"
        )
    if guide is not None and not chosen.guided:
        raise DesignError(
            f"guide must be left out with design={chosen.name!r}, which meets items in random "
            "order; use design='guided' or 'certified'"
        )


def _refuse_with_pilot(
    candidates: Candidates, relevance: FloatArray | None, weights: npt.ArrayLike | None
) -> None:
    """Refuse what is not made for guesses that a pilot corrects."""
    if relevance is not None or weights is not None:
        raise DesignError(
            "relevance and weights must be left out with design='pilot', where all users count "
            "alike; use design='guided'"
        )
    several = len(candidates) - len(np.unique(candidates.users))
    if several:
        raise DesignError(
            f"users must have one target each with design='pilot', got {several:,} further ones; "
            "use design='guided'"
        )


def _default_design(
    candidates: Candidates, metrics: tuple[Metric, ...], budget: int | None, method: Any
) -> str | Design:
    """Return an exact way without a budget; a guided one where a budget suffices, or adaptive."""
    if method is None and budget is None:
        return AUTO
    if method is not None or any(metric.k is None for metric in metrics):
        return Adaptive()
    try:
        Guided().fit(metrics, candidates.others, budget)
    except BudgetError:
        return Adaptive()
    return Guided()


def _of_exact_ways(metrics: tuple[Metric, ...], budget: int | None, device: str | None) -> Design:
    """Return a design of the kind that ``"auto"`` takes."""
    if budget is not None:
        raise DesignError(
            f"budget must be left out with design='auto', which is exact whatever that takes, got "
            f"{budget!r}; with a budget leave design out, or use 'guided'"
        )
    if device is not None or any(metric.k is None for metric in metrics):
        return Exact()
    return Certified()


def _of_samples(
    design: Design,
    candidates: Candidates,
    relevance: FloatArray | None,
    metrics: tuple[Metric, ...],
    *,
    by_default: bool,
) -> tuple[Metric, ...]:
    """Return the metrics that a sampled design can tell; refuse others unless nobody named them."""
    if relevance is not None:
        raise DesignError(
            f"relevance must be left out with design={design.name!r}, which knows no grades; use "
            "design='guided', 'certified' or 'exact'"
        )
    if candidates.filtered or len(np.unique(candidates.users)) == len(candidates):
        return metrics
    if by_default:
        return tuple(each for each in metrics if not each.family.uses_places)
    for metric in metrics:
        refuse_joint(metric)
    return metrics


def method_of(design: Design) -> str:
    """Return the method by which `evaluate` estimates from what a sampled design found."""
    return DEFAULT_METHOD if design.stops_after is None else ADAPTIVE_METHOD
