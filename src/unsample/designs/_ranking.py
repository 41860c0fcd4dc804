"""Ranks among all candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unsample._checks import FloatArray, IntArray, Seed
from unsample._progress import Progress
from unsample.designs._blocks import count_all
from unsample.designs._candidates import Candidates, Excluded
from unsample.designs._scorers import as_scorer
from unsample.evidence import check_ties, rank_with_ties, tie_seed


@dataclass(frozen=True, eq=False)
class FullRanks:
    """Ranks R among all candidates, from 1: one for each target, and its number of candidates."""

    #: Whole numbers, except under the tie rule ``"realistic"``.
    ranks: IntArray | FloatArray
    #: N of each target, the target included.
    items: IntArray
    #: How many other candidates have the same score as the target.
    ties: IntArray


def exact_ranks(
    scorer: Any,
    targets: Any,
    *,
    items: int,
    exclude: Excluded | None = None,
    ties: str = "random",
    rng: Seed = 0,
    device: str | None = None,
    precision: str = "float32",
    progress: Progress | None = None,
) -> FullRanks:
    """Rank each target among all candidates of its user.

    Parameters
    ----------
    scorer, targets
        As in `unsample.evaluate`. Use ``RowScores(function)`` for a function that gives the scores
        of all items for an array of users.
    items, exclude
        As in `unsample.evaluate`, but a target is a candidate even if it is excluded.
    ties
        ``"random"``, ``"realistic"``, ``"optimistic"`` or ``"pessimistic"``.
    rng
        Seed of the random tie rule.
    device, precision
        As in `unsample.Run`, for factors.
    progress
        Called with the number of finished targets and of all targets.

    >>> table = np.array([[0.9, 0.1, 0.5], [0.2, 0.2, 0.2]])
    >>> exact_ranks(table, ([0, 1], [2, 0]), items=3, ties="realistic").ranks
    array([2., 2.])
    """
    rule, seed = check_ties(ties), tie_seed(rng)
    candidates = Candidates.check(targets, items, exclude)
    better, equal = (np.empty(len(candidates), dtype=np.int64) for _ in range(2))
    for place, *counts, _ in count_all(as_scorer(scorer, items), candidates, device, precision):
        better[place], equal[place] = counts
        if progress is not None:
            progress(place.stop, len(candidates))
    ranks = rank_with_ties(better, equal, rule, seed, candidates.users, candidates.targets)
    return FullRanks(ranks, candidates.others + 1, equal)
