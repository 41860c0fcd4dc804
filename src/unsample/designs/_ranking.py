"""Ranks among all candidates and among published negatives.

For full ranks nothing is sorted and nothing is masked: a block of scores that stays in the
processor's cache is compared with the targets' scores twice (better, at least as good), and what
the excluded pairs contributed is subtracted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, Seed, as_rng, check_choice
from unsample._progress import Progress
from unsample.designs._item_tiles import count_item_item
from unsample.designs._scan import Candidates, Excluded, check_ids
from unsample.designs._scorers import Score, ScoreArray, Scorer, as_scorer, as_scores
from unsample.designs._tiles import WORD, Tiled, can_tile, count_tiles, count_where
from unsample.errors import InputError
from unsample.evidence import check_ties, rank_with_ties

#: Scores of a block: 8 MB of float32.
_BLOCK = 1 << 21
#: Fewest users in a block: a matrix product of fewer rows wastes the item factors' way to it.
_FEWEST_ROWS = 16
#: How some consecutive targets compare with all their candidates: where they are, how many items
#: beat each, how many others tie with it, and its own score.
Counted: TypeAlias = "tuple[slice, IntArray, IntArray, ScoreArray]"
#: Pairs scored at a time against published negatives, and what to do with the target among them.
_PAIRS = 1 << 20
_ON_TARGET = ("drop", "tie", "refuse")


@dataclass(frozen=True, eq=False)
class FullRanks:
    """Ranks among all candidates, one for each target.

    Attributes
    ----------
    ranks
        Global ranks R, from 1; whole numbers, except under the tie rule ``"realistic"``.
    items
        N of each target: how many candidates it was ranked among, itself included.
    ties
        How many other candidates have the target's score.
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


@dataclass(frozen=True, eq=False)
class SampledRanks:
    """Ranks r of targets, from 1, each among ``sampled`` items beside itself."""

    ranks: IntArray | FloatArray
    sampled: IntArray


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
        Anything that `unsample.evaluate` takes; ``Scorer(score_all=...)`` for a function that
        gives the scores of all items for an array of users.
    items, exclude
        As in `unsample.evaluate`; but a target is a candidate even if it is to be excluded.
    ties
        ``"random"``, ``"realistic"``, ``"optimistic"`` or ``"pessimistic"``.
    rng
        Seed of the random tie rule.
    device, precision
        For factors: rank them on this device of torch (``"cuda"``), rounded to ``"float32"``,
        ``"tf32"`` (CUDA only) or ``"bfloat16"``. By default numpy ranks, in float32 or float64.
    progress
        Called with targets done and targets in all.

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
    """Compare targets with all their candidates, chunk after chunk of targets."""
    if device is not None:
        # Imported here, for torch takes a while.
        from unsample.designs import _device

        if scorer.factors is not None:
            yield from _device.count_all_on_device(scorer.factors, candidates, device, precision)
            return
        model = scorer.item_item
        if model is None:
            raise InputError(
                "device must be left out unless factors or item-item weights are ranked in full, "
                f"got {device!r}; a torch module is asked on the device it is on"
            )
        yield from _device.count_item_item_on_device(model, candidates, device, precision)
        return
    tiled: Iterator[Tiled] | None = None
    if scorer.factors is not None and can_tile(scorer.factors):
        tiled = count_tiles(scorer.factors, candidates)
    elif scorer.item_item is not None:
        tiled = count_item_item(scorer.item_item, candidates)
    if tiled is not None:
        for place, better, equal, own, again in tiled:
            if len(again):
                part = candidates.take(np.arange(place.start, place.stop)[again])
                parts = [*_count_rows(scorer, part)]
                better[again], equal[again], own[again] = (
                    np.concatenate(column) for column in list(zip(*parts, strict=True))[1:]
                )
            yield place, better, equal, own
        return
    yield from _count_rows(scorer, candidates)


def _count_rows(scorer: Scorer, candidates: Candidates) -> Iterator[Counted]:
    """Compare targets with whole rows of scores."""
    rows = max(_FEWEST_ROWS, _BLOCK // candidates.items)
    padded = -(-candidates.items // WORD) * WORD
    mask = np.zeros((min(rows, len(candidates)), padded), dtype=bool)
    for place, part in candidates.parts(rows):
        scores = scorer.rows(part.users, candidates.items)
        own = scores[np.arange(len(part)), part.targets]
        yield place, *_beaten_and_tied(scores, own, part, mask), own


def _beaten_and_tied(
    scores: ScoreArray, target: ScoreArray, part: Candidates, mask: npt.NDArray[np.bool_]
) -> tuple[IntArray, IntArray]:
    """Return how many candidates beat each target, and how many others tie with it."""
    better, not_worse = (
        count_where(compare, scores, target, mask[: len(part)])
        for compare in (np.greater, np.greater_equal)
    )
    row, column = part.excluded
    if len(row):
        excluded, rival = scores[row, column], target[row]
        better -= np.bincount(row[excluded > rival], minlength=len(part))
        not_worse -= np.bincount(row[excluded >= rival], minlength=len(part))
    return better, not_worse - better - 1  # the target ties with itself


def ranks_against(
    score: Score,
    users: npt.ArrayLike,
    targets: npt.ArrayLike,
    negatives: npt.ArrayLike,
    *,
    on_target: str = "drop",
    ties: str = "random",
    rng: Seed = 0,
    progress: Progress | None = None,
) -> SampledRanks:
    """Rank each target among the negatives of its row, which somebody published.

    Published negatives may hold the target itself (for 156 users of ml-1m they do). ``on_target``
    says what happens then: ``"drop"`` leaves that negative out, so that the target is ranked
    among fewer (the usual evaluation script does so, since it keys scores by item; the result's
    ``sampled`` tells), ``"tie"`` keeps it as an item that ties with the target, and ``"refuse"``
    raises an error. A negative listed twice counts twice.

    Parameters
    ----------
    score
        Gives the scores of ``items`` (a matrix, one row for each user): a model's ``score``.
    users, targets
        One user and one target item for each row of ``negatives``.
    negatives
        Matrix of item ids, one row for each target.
    on_target, ties, rng, progress
        See above and `exact_ranks`.
    """
    rule, generator = check_ties(ties), as_rng(rng)
    check_choice("on_target", on_target, _ON_TARGET)
    user_ids = check_ids("users", users, None, of="users")
    target_ids = check_ids("targets", targets, None, of="items")
    matrix = np.asarray(negatives)
    if matrix.ndim != 2 or not len(user_ids) == len(target_ids) == len(matrix) or not matrix.size:
        raise InputError(
            "negatives must be a matrix with a row for each target and at least one column, got "
            f"shape {matrix.shape} for {len(target_ids)} targets of {len(user_ids)} users"
        )
    ids = check_ids("negatives", matrix.reshape(-1), None, of="items").reshape(matrix.shape)
    itself = ids == target_ids[:, None]
    if on_target == "refuse" and itself.any():
        rows = np.flatnonzero(itself.any(axis=1))
        raise InputError(
            f"negatives must not hold the target, got it for {len(rows)} users, the first user "
            f"{int(user_ids[rows[0]])}; pass on_target='drop' to leave such negatives out"
        )
    counted = ~itself if on_target == "drop" else np.ones_like(itself)
    better, equal = (np.empty(len(user_ids), dtype=np.int64) for _ in range(2))
    step = max(1, _PAIRS // (matrix.shape[1] + 1))
    for start in range(0, len(user_ids), step):
        part = slice(start, start + step)
        asked = np.column_stack([target_ids[part], ids[part]])
        scores = as_scores(score(user_ids[part], asked), asked.shape, user_ids[part], asked)
        better[part] = ((scores[:, 1:] > scores[:, :1]) & counted[part]).sum(axis=1)
        equal[part] = ((scores[:, 1:] == scores[:, :1]) & counted[part]).sum(axis=1)
        if progress is not None:
            progress(min(start + step, len(user_ids)), len(user_ids))
    return SampledRanks(rank_with_ties(better, equal, rule, generator), counted.sum(axis=1))
