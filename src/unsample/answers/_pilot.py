"""Estimates without assumptions, from sampled ranks and the full ranks of some random users."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from unsample import estimators as _estimators
from unsample import metrics as _metrics
from unsample._checks import BoolArray, FloatArray, IntArray, as_integer_array, at_position
from unsample.answers._exact import UserValues
from unsample.answers._result import Estimate, Estimates, Variation
from unsample.confidence import PilotError
from unsample.designs import Findings
from unsample.errors import BiasedMethodWarning, InputError, MethodError, RankError
from unsample.estimators import CLOSED_FORM, DistributionEstimator, Observed
from unsample.evidence import Targets, group_catalogues
from unsample.law import Law, RankDistribution, bin_weights
from unsample.metrics import Metric

#: The name of the method in results, for values that a pilot corrected.
NAME = "pilot"
#: The fewest users that a pilot may have.
_FEWEST = 10
#: A pilot drawn at random hardly differs from the others by more standard errors than this.
_UNLIKE = 4.0


def pilot_estimates(
    found: Targets,
    pilot: npt.ArrayLike,
    metrics: str | Metric | Iterable[str | Metric],
    method: str | _estimators.Estimator | Iterable[str | _estimators.Estimator],
    candidates: str | None,
) -> Estimates:
    """Return metrics from the sampled ranks of all users and the full ranks of some.

    ``pilot`` holds the full rank of each target, or 0 if it is not known.
    """
    more = (found.users, found.weights, found.pools, found.stop)
    if found.filtered or not all(each is None for each in more):
        raise InputError(
            "weights, users, filtered, negatives, pools and samples that grow must be left out "
            "with a pilot: users have one target each, and samples of their own"
        )
    wanted, guess = _metrics.parse_all(metrics), _guessing(method)
    ranks = np.asarray(found.ranks)
    full = _as_pilot(pilot, found)
    known = full > 0
    law = typical_law(found)
    cutoffs = [metric.cutoff(law.items) for metric in wanted]
    counts = group_catalogues(found.counts)
    observed = Observed.prepare(counts, cutoffs=cutoffs, candidates=candidates or "unseen")
    distribution = guess.evaluate(observed, ()).distribution
    assert distribution is not None
    guesses = expected_at(distribution, law, wanted)[ranks - 1]
    exact = UserValues.of(_known_targets(found, full, known), wanted).totals
    each = [
        PilotError.of_pilot(exact[:, place], guesses[known, place], guesses[~known, place], metric)
        for place, metric in enumerate(wanted)
    ]
    variation = {NAME: Variation(np.empty((0, len(wanted))), tuple(error for _, error in each))}
    entries = tuple(
        Estimate(metric, NAME, value, True, CLOSED_FORM, None, True, False, variation, place)
        for place, (metric, (value, _)) in enumerate(zip(wanted, each, strict=True))
    )
    text = (
        f"{int(known.sum()):,} of {len(ranks):,} users ranked in full correct what {guess} guesses "
        "of the others; taken as drawn at random"
    )
    return Estimates(
        entries,
        found.counts,
        {},
        notes=_unlike(guesses[:, 0], known),
        candidates=candidates,
        explanations={NAME: text},
    )


def pilot_targets(
    found: Findings, metrics: Sequence[Metric], method: str, candidates: str | None = None
) -> Estimates:
    """Return metrics from a pilot design that left some users open.

    Full ranks count up to the first user, in random order, whom the budget left open. This user
    was probably costly. The mean over the users before is unbiased (see `unsample.designs.Guided`).
    """
    notes, items = found.notes, np.asarray(found.items)
    last = getattr(found.design, "k", None) or int(items.max())
    known = np.asarray(found.sampled) == items - 1
    beyond = notes.before >= last
    place = np.where(notes.turn == 0, len(items) + 1, np.abs(notes.turn))
    ends = place[~known & ~beyond].min()
    ends = min(ends, len(items) - 1)  # at least one user is estimated
    full = np.where(place < ends, np.where(known, found.ranks, items), 0)
    sampled = int(getattr(found.design, "sampled", 0))
    sample = Targets(1 + notes.before, items, sampled, replacement=False)
    return pilot_estimates(sample, full, metrics, method, candidates)


def _guessing(method: object) -> DistributionEstimator:
    methods = _estimators.parse_all(method)  # type: ignore[arg-type]
    if len(methods) != 1 or not isinstance(methods[0], DistributionEstimator):
        names = ", ".join(map(str, methods))
        raise MethodError(
            f"method must be one that learns P(R) with a pilot, got {names}; use auto"
        )
    return methods[0]


def _as_pilot(pilot: npt.ArrayLike, found: Targets) -> IntArray:
    """Return the full ranks, after a check against the sampled ones."""
    ranks = np.asarray(found.ranks)
    values = np.asarray(pilot)
    if values.shape != ranks.shape:
        raise InputError(
            f"pilot must hold a full rank for each of the {len(ranks)} ranks, 0 where it is not "
            f"known, got shape {values.shape}"
        )
    if np.issubdtype(values.dtype, np.floating):
        values = np.where(np.isnan(values), 0, values)
    full = as_integer_array("pilot", values, hint="0 where a full rank is not known")
    full = full.astype(np.int64)
    known = int((full > 0).sum())
    if known < _FEWEST or known > len(full) - 2:
        rest = "no more than all but two" if known > len(full) - 2 else f"at least {_FEWEST}"
        raise InputError(f"pilot must hold full ranks of {rest} users, got {known} of {len(full)}")
    items = np.broadcast_to(np.asarray(found.items), full.shape)
    outside = (full < 0) | (full > items)
    if outside.any():
        where = int(np.argmax(outside))
        raise RankError(
            f"pilot must hold ranks in 1..items = {items[where]}, or 0, got {full[where]} at "
            f"position {where}"
        )
    impossible = (full == 1) & (ranks > 1)
    if not found.replacement:
        impossible |= (full > 0) & (ranks > full)
    if impossible.any():
        where = int(np.argmax(impossible))
        raise RankError(
            f"pilot must agree with the sampled ranks, got full rank {full[where]} and sampled "
            f"rank {ranks[where]} {at_position(where, len(ranks))}; a sample holds no more items "
            "that beat a target than the catalogue does"
        )
    return full


def typical_law(found: Targets) -> Law:
    """Return one law for all targets, with the mean number of items: any law is valid here."""
    sampled = np.unique(np.asarray(found.sampled))
    if len(sampled) > 1:
        raise InputError(
            f"sampled must be one number with a pilot, got {sampled[0]} to {sampled[-1]}"
        )
    items = round(float(np.mean(np.asarray(found.items))))
    size = int(sampled[0])
    return Law(items if found.replacement else max(items, size + 2), size, found.replacement)


def expected_at(distribution: RankDistribution, law: Law, metrics: Sequence[Metric]) -> FloatArray:
    """Return the expected value of each metric at each sampled rank (ranks x metrics)."""
    ranks, grid = np.arange(1, law.n + 1), distribution.grid
    joint = law.matrix(ranks, ranks, grid, beyond="last") * distribution.mass
    weights = np.stack([bin_weights(each, grid, law.items) for each in metrics], axis=1)
    return np.asarray(joint @ weights / np.maximum(joint.sum(axis=1), 1e-300)[:, None])


def _known_targets(found: Targets, full: IntArray, known: BoolArray) -> Targets:
    items = np.broadcast_to(np.asarray(found.items), full.shape)[known]
    return Targets(full[known], items, items - 1, replacement=False)


def _unlike(guesses: FloatArray, known: BoolArray) -> tuple[BiasedMethodWarning, ...]:
    """Return a warning if the pilot's sampled ranks differ from those of the others."""
    apart = float(guesses[known].mean() - guesses[~known].mean())
    error = math.sqrt(guesses[known].var() / known.sum() + guesses[~known].var() / (~known).sum())
    if abs(apart) <= _UNLIKE * error:
        return ()
    return (
        BiasedMethodWarning(
            f"sampled ranks of the pilot differ from the others' by {abs(apart) / error:.1f} "
            "standard errors: its users were hardly drawn at random, and intervals may not hold"
        ),
    )
