"""Exact ranks among all candidates, from blocks of scores that stay in the processor's cache.

Nothing is sorted and nothing is masked: a block of scores is compared with the targets' scores
twice (better, at least as good), and what the excluded pairs contributed is subtracted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng, check_integer
from unsample._progress import Progress
from unsample.designs.ranking._candidates import Candidates, Chunk
from unsample.designs.ranking._results import FullRanks
from unsample.designs.ranking._scores import ScoreAll, ScoreArray, score_block
from unsample.designs.ranking._ties import check_ties, rank_with_ties

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["Counted", "count_all", "exact_ranks"]

#: Scores of a block when ``chunk`` is not given: 8 MB of float32.
_BLOCK = 1 << 21
#: Fewest users in a block: a matrix product of fewer rows wastes the item factors' way to it.
_FEWEST_ROWS = 16
_WORD = 8
#: A byte counts to 255, so that many words may be added before their bytes overflow.
_WORDS_AT_ONCE = 255


def exact_ranks(
    score_all: ScoreAll,
    users: npt.ArrayLike,
    targets: npt.ArrayLike,
    *,
    items: int,
    exclude: scipy.sparse.sparray | scipy.sparse.spmatrix | None = None,
    ties: str = "random",
    rng: Seed = 0,
    chunk: int | None = None,
    progress: Progress | None = None,
) -> FullRanks:
    """Rank each target among all candidates of its user.

    Parameters
    ----------
    score_all
        Gives the scores of all items for an array of users: a model's ``score_all``, or a
        `FactorScores`.
    users, targets
        One user and one target item for each rank; a user may come several times.
    items
        Number of items in the catalogue.
    exclude
        Sparse users x items matrix of pairs that are no candidates (the training data, in the
        everyday protocol). None keeps every item. A target is a candidate even if it is seen.
    ties
        ``"random"``, ``"realistic"``, ``"optimistic"`` or ``"pessimistic"``.
    rng
        Seed of the random tie rule; the ranks do not depend on ``chunk``.
    chunk
        Users scored at a time; by default as many as fill 8 MB.
    progress
        Called with targets done and targets in all.
    """
    rule, generator = check_ties(ties), as_rng(rng)
    candidates = Candidates.check(users, targets, items, exclude)
    better, equal = (np.empty(len(candidates), dtype=np.int64) for _ in range(2))
    for part in count_all(score_all, candidates, chunk=chunk):
        better[part.place], equal[part.place] = part.better, part.equal
        if progress is not None:
            progress(part.place.stop, len(candidates))
    catalogue = candidates.items - candidates.excluded
    return FullRanks(rank_with_ties(better, equal, rule, generator), catalogue, equal)


@dataclass(frozen=True, eq=False)
class Counted:
    """How some consecutive targets compare with all their candidates, and their own scores."""

    place: slice
    better: IntArray
    equal: IntArray
    own: ScoreArray


def count_all(
    score_all: ScoreAll, candidates: Candidates, *, chunk: int | None = None
) -> Iterator[Counted]:
    """Compare targets with all their candidates, chunk after chunk of targets."""
    default = max(_FEWEST_ROWS, _BLOCK // candidates.items)
    rows = default if chunk is None else check_integer("chunk", chunk, minimum=1)
    counter = _Counter.build(min(rows, len(candidates)), candidates.items)
    for part in candidates.chunks(rows):
        scores = score_block(score_all, part.users, candidates.items)
        own = scores[np.arange(len(part)), part.targets]
        yield Counted(part.place, *_beaten_and_tied(scores, own, part, counter), own)


@dataclass(frozen=True, eq=False)
class _Counter:
    """Counts the true comparisons of each row, eight at a time.

    Comparisons are bytes of 0 or 1. Read as 64-bit words they add up eight columns at once, each
    byte for itself, as long as no byte passes 255.
    """

    mask: npt.NDArray[np.bool_]
    items: int

    @classmethod
    def build(cls, rows: int, items: int) -> _Counter:
        """Prepare for blocks of at most ``rows`` rows; the columns are padded with false."""
        return cls(np.zeros((rows, -(-items // _WORD) * _WORD), dtype=bool), items)

    def count(self, compare: np.ufunc, scores: ScoreArray, target: ScoreArray) -> IntArray:
        """Return for how many items of each row ``compare(score, target)`` holds."""
        mask = self.mask[: len(scores)]
        compare(scores, target[:, None], out=mask[:, : self.items])
        words = mask.view(np.uint64)
        total = np.zeros(len(scores), dtype=np.int64)
        for start in range(0, words.shape[1], _WORDS_AT_ONCE):
            sums = words[:, start : start + _WORDS_AT_ONCE].sum(axis=1)
            total += sums.view(np.uint8).reshape(-1, _WORD).sum(axis=1, dtype=np.int64)
        return total


def _beaten_and_tied(
    scores: ScoreArray, target: ScoreArray, part: Chunk, counter: _Counter
) -> tuple[IntArray, IntArray]:
    """Return how many candidates beat each target, and how many others tie with it."""
    better = counter.count(np.greater, scores, target)
    not_worse = counter.count(np.greater_equal, scores, target)
    if len(part.row):
        excluded, rival = scores[part.row, part.column], target[part.row]
        better -= _per_row(part.row[excluded > rival], len(part))
        not_worse -= _per_row(part.row[excluded >= rival], len(part))
    return better, not_worse - better - 1  # the target ties with itself


def _per_row(row: npt.NDArray[np.integer[Any]], rows: int) -> IntArray:
    return np.bincount(row, minlength=rows).astype(np.int64)
