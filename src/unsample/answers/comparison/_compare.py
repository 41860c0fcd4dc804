"""`compare`: the front door of the room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import Seed, as_rng, check_choice, check_level, suggest
from unsample.answers._estimate import DEFAULT_METHOD, DEFAULT_METRICS, estimate_counts
from unsample.answers._result import DEFAULT_LEVEL, Estimates
from unsample.answers.comparison._duels import CORRECTIONS, Duels, corrected
from unsample.answers.comparison._models import (
    Outcome,
    check_same_catalogue,
    evaluated,
    load_model,
    match_users,
    users_of,
)
from unsample.answers.comparison._results import ALL, BEST, Comparison, Difference, Standing
from unsample.errors import InputError
from unsample.estimators import Estimator
from unsample.evidence import RankCounts, Targets
from unsample.metrics import Metric

__all__ = ["compare"]

#: More models than this are compared with the best alone, unless all pairs are asked for.
_MOST_MODELS_BY_DEFAULT = 100
#: The pairs of more models than this are too many to compute, keep or read.
_MOST_MODELS_IN_PAIRS = 1_000


def compare(
    models: Mapping[str, npt.ArrayLike | RankCounts | Targets | Outcome],
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator = DEFAULT_METHOD,
    weights: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    replacement: bool = True,
    candidates: str | None = None,
    level: float = DEFAULT_LEVEL,
    correction: str = "holm",
    against: str | None = None,
    paired: bool | None = None,
    rng: Seed = 0,
) -> Comparison:
    """Compare two or more models by their sampled ranks.

    Parameters
    ----------
    models
        For each name the ranks of its targets, as in `unsample.estimate`; or `Targets`, which
        know their design and users; or `RankCounts`, which cannot be paired; or what
        `unsample.evaluate` returned for them (``metrics`` are then those it was asked for).
    items, sampled, metrics, method, weights, replacement, candidates
        As in `unsample.estimate`, the same for all models.
    users
        Whose target each rank is: one sequence for all models, or one for each name. Models that
        were asked about the same users in another order are brought into the same order.
    level
        The chance that the verdicts of a metric are all right, and the level of the intervals.
    correction
        ``"holm"``, ``"bonferroni"`` or ``"none"``, over the pairs of models on one metric.
    against
        Which pairs: ``"all"``; the name of a model chosen beforehand, to compare every other one
        with it; or ``"best"``, to compare the highest estimate of each metric with every other
        one (the correction is then that for all pairs, because the data chose it). By default all
        pairs of up to 100 models, and ``"best"`` for more of them.
    paired
        Whether to take differences user by user: None where users match, True to insist.
    rng
        Seed or Generator behind the chances of being the best.

    >>> ranks = {"A": [1, 2, 2, 9] * 50, "B": [1, 2, 3, 20] * 50}
    >>> compare(ranks, items=500, sampled=99, metrics="Recall@50").paired
    True
    """
    if not isinstance(models, Mapping) or len(models) < 2:
        got = f"{len(models)}" if isinstance(models, Mapping) else type(models).__name__
        raise InputError(f"models must map at least two names to their ranks, got {got}")
    level = check_level(level)
    check_choice("correction", correction, CORRECTIONS)
    wanted = _metrics.parse_all(metrics)
    notes: list[str] = []
    against = _chosen_pairs(against, list(models), notes)
    loaded = [
        load_model(name, ranks, items, sampled, weights, users_of(users, name), replacement)
        for name, ranks in models.items()
    ]
    check_same_catalogue(loaded)
    matched = match_users(loaded, paired)
    estimates = {
        one.name: evaluated(one, wanted)
        or _estimate_quietly(one.counts, wanted, method, candidates, notes)
        for one in (matched or loaded)
    }
    if matched is None and paired is None:
        notes.append("the models' users do not match one by one, so they are compared unpaired")
    duels = Duels(matched or loaded, estimates, matched is not None, level, against)
    differences: list[Difference] = []
    standings: list[Standing] = []
    for metric in wanted:
        held = corrected(duels.differences(metric), correction, level, duels.family)
        differences.extend(held)
        standings.extend(duels.standings(metric, held, as_rng(rng)))
    return Comparison(
        estimates,
        tuple(standings),
        tuple(differences),
        matched is not None,
        level,
        correction,
        tuple(dict.fromkeys(notes)),
        against,
    )


def _chosen_pairs(against: str | None, names: list[str], notes: list[str]) -> str:
    """Return ``against`` as it is used, with a note where the number of models decided it."""
    count = len(names)
    if against is None:
        if count <= _MOST_MODELS_BY_DEFAULT:
            return ALL
        notes.append(
            f"{count:,} models have {count * (count - 1) // 2:,} pairs: on each metric only the "
            'highest estimate is compared with every other model (against="best")'
        )
        return BEST
    if against in {ALL, BEST} and against in names:
        raise InputError(
            f"against={against!r} must not be the name of a model too, for it has a meaning of its "
            "own; rename the model"
        )
    if against not in (ALL, BEST, *names):
        near = suggest(str(against), (ALL, BEST, *names))
        raise InputError(
            f"against must be 'all', 'best' or the name of a model, got {against!r}"
            + (f"; {near}" if near else "")
        )
    if against == ALL and count > _MOST_MODELS_IN_PAIRS:
        raise InputError(
            f"against must be 'best' or the name of a model for more than {_MOST_MODELS_IN_PAIRS:,}"
            f" models, got 'all' for {count:,}, which have {count * (count - 1) // 2:,} pairs"
        )
    return against


def _estimate_quietly(
    counts: RankCounts,
    metrics: tuple[Metric, ...],
    method: str | Estimator,
    candidates: str | None,
    notes: list[str],
) -> Estimates:
    result = estimate_counts(
        counts, metrics=metrics, method=method, candidates=candidates, errors="delta"
    )
    notes.extend(result.warnings)
    return result
