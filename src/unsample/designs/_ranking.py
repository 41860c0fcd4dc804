"""Ranks among all candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from unsample._checks import FloatArray, IntArray, Seed
from unsample._progress import Progress
from unsample.designs._scan import Candidates, Excluded
from unsample.designs._scorers import Scorer, as_scorer
from unsample.designs._tiles import Counted, can_tile, count_rows, count_tiles
from unsample.errors import InputError
from unsample.evidence import check_ties, rank_with_ties, tie_seed


@dataclass(frozen=True, eq=False)
class FullRanks:
    """Ranks among all candidates, one for each target.

    Attributes
    ----------
    ranks
        Full ranks R, from 1; whole numbers, except under the tie rule ``"realistic"``.
    items
        N of each target: the number of its candidates, the target included.
    ties
        How many other candidates have the same score as the target.
    """

    ranks: IntArray | FloatArray
    items: IntArray
    ties: IntArray

    def __len__(self) -> int:
        return len(self.ranks)

    def __repr__(self) -> str:
        tied = int(np.count_nonzero(self.ties))
        low, high = int(self.items.min()), int(self.items.max())
        return f"FullRanks({len(self)} targets, items={low}..{high}, {tied} targets with ties)"


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
        As in `unsample.evaluate`. Use ``Scorer(score_all=...)`` for a function that gives the
        scores of all items for an array of users.
    items, exclude
        As in `unsample.evaluate`, but a target is a candidate even if it is excluded.
    ties
        ``"random"``, ``"realistic"``, ``"optimistic"`` or ``"pessimistic"``.
    rng
        Seed of the random tie rule.
    device, precision
        For factors and item-item weights: the torch device that ranks them (``"cuda"``). Factors
        may be rounded: ``"float32"``, ``"tf32"`` (CUDA only) or ``"bfloat16"``. By default numpy
        ranks, in float32 or float64.
    progress
        Called with the number of finished targets and of all targets.

    >>> table = np.array([[0.9, 0.1, 0.5], [0.2, 0.2, 0.2]])
    >>> scorer = Scorer(score_all=table.__getitem__)
    >>> exact_ranks(scorer, ([0, 1], [2, 0]), items=3, ties="realistic").ranks
    array([2., 2.])
    """
    rule, seed = check_ties(ties), tie_seed(rng)
    candidates = Candidates.check(targets, items, exclude)
    better, equal = (np.empty(len(candidates), dtype=np.int64) for _ in range(2))
    model = as_scorer(scorer, items)
    check_device(model, device)
    for place, *counts, _ in count_all(model, candidates, device, precision):
        better[place], equal[place] = counts
        if progress is not None:
            progress(place.stop, len(candidates))
    ranks = rank_with_ties(better, equal, rule, seed, candidates.users, candidates.targets)
    return FullRanks(ranks, candidates.others + 1, equal)


def check_device(scorer: Scorer, device: str | None) -> None:
    """Refuse a device for scores that are not made of factors or item-item weights."""
    if device is not None and scorer.factors is None and scorer.item_item is None:
        raise InputError(
            "device must be left out unless factors or item-item weights are ranked in full, "
            f"got {device!r}; a torch module is called on its own device"
        )


def count_all(
    scorer: Scorer, candidates: Candidates, device: str | None = None, precision: str = "float32"
) -> Iterator[Counted]:
    """Compare targets with all their candidates."""
    if device is not None:
        # Imported here, because torch takes long to import.
        from unsample.designs._cuda import count_on_device

        return count_on_device(scorer, candidates, device, precision)
    if scorer.factors is not None and can_tile(scorer.factors):
        return count_tiles(scorer, candidates)
    return count_rows(scorer, candidates)
