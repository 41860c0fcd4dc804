"""Ranks among all candidates.

Nothing is sorted and nothing is masked. A block of scores that fits into the cache
is compared with the targets' scores twice (better, at least as good). Then the counts of the
excluded pairs are subtracted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from unsample._checks import FloatArray, IntArray, Seed, as_rng
from unsample._progress import Progress
from unsample.designs._item_tiles import count_item_item
from unsample.designs._scan import Candidates, Excluded
from unsample.designs._scorers import ScoreArray, Scorer, as_scorer
from unsample.designs._tiles import WORD, Rivals, Tiled, add_up, can_tile, count_tiles
from unsample.errors import InputError
from unsample.evidence import check_ties, rank_with_ties

#: Scores of a block: 8 MB of float32.
_BLOCK = 1 << 21
#: The fewest users in a block: reading the item factors for fewer rows takes too long.
_FEWEST_ROWS = 16
#: A slice of the targets; of each, how many items beat it, how many others tie, and its own score.
Counted: TypeAlias = "tuple[slice, IntArray, IntArray, ScoreArray]"


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
        For factors: the torch device that ranks them (``"cuda"``), and how they are rounded:
        ``"float32"``, ``"tf32"`` (CUDA only) or ``"bfloat16"``. By default numpy ranks, in float32
        or float64.
    progress
        Called with the number of finished targets and of all targets.

    >>> table = np.array([[0.9, 0.1, 0.5], [0.2, 0.2, 0.2]])
    >>> scorer = Scorer(score_all=table.__getitem__)
    >>> exact_ranks(scorer, ([0, 1], [2, 0]), items=3, ties="realistic").ranks
    array([2., 2.])
    """
    rule, generator = check_ties(ties), as_rng(rng)
    candidates = Candidates.check(targets, items, exclude)
    better, equal = (np.empty(len(candidates), dtype=np.int64) for _ in range(2))
    for place, *counts, _ in count_all(as_scorer(scorer, items), candidates, device, precision):
        better[place], equal[place] = counts
        if progress is not None:
            progress(place.stop, len(candidates))
    return FullRanks(rank_with_ties(better, equal, rule, generator), candidates.others + 1, equal)


def count_all(
    scorer: Scorer, candidates: Candidates, device: str | None = None, precision: str = "float32"
) -> Iterator[Counted]:
    """Compare targets with all their candidates."""
    if device is not None:
        # Imported here, because torch takes long to import.
        from unsample.designs import _device

        if scorer.factors is not None:
            yield from _device.count_all_on_device(scorer.factors, candidates, device, precision)
            return
        model = scorer.item_item
        if model is None:
            raise InputError(
                "device must be left out unless factors or item-item weights are ranked in full, "
                f"got {device!r}; a torch module is called on its own device"
            )
        yield from _device.count_item_item_on_device(model, candidates, device, precision)
        return
    tiled: Iterator[Tiled] | None = None
    if scorer.factors is not None and can_tile(scorer.factors):
        tiled = count_tiles(scorer.factors, candidates)
    elif scorer.item_item is not None:
        tiled = count_item_item(scorer.item_item, candidates)
    if tiled is None:
        yield from _count_rows(scorer, candidates)
        return
    for place, better, equal, own, again in tiled:
        if len(again):
            for at, *counts in _count_rows(scorer, candidates.take(place.start + again)):
                better[again[at]], equal[again[at]], own[again[at]] = counts
        yield place, better, equal, own


def _count_rows(scorer: Scorer, candidates: Candidates) -> Iterator[Counted]:
    """Compare targets with whole rows of scores, as with one tile that has all items."""
    rows = max(_FEWEST_ROWS, _BLOCK // candidates.items)
    padded = -(-candidates.items // WORD) * WORD
    mask = np.zeros((min(rows, len(candidates)), padded), dtype=bool)
    for place, part in candidates.parts(rows):
        scores = scorer.rows(part.users, candidates.items)
        own = scores[np.arange(len(part)), part.targets]
        rivals = Rivals.of(part, own, np.array([0, candidates.items]))
        better, equal, *_ = add_up(own, [rivals.count(0, scores, mask[: len(part)])])
        yield place, better, equal, own
