"""Full ranks of factor models on the processor, tile by tile.

A tile of scores, some users by some items, stays in the cache of a core while it is compared with
the targets' scores. Cores take users in turn, each with one BLAS thread: comparing is then shared
out as well as multiplying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample._threads import blas_threads, one_thread
from unsample.designs._scan import Candidates
from unsample.designs._scorers import FactorScores, ScoreArray

#: A word holds eight comparisons, and a byte counts to 255: so many words may be added at once.
WORD, _WORDS_AT_ONCE = 8, 255
#: Users and items of a tile.
ROWS, COLUMNS = 256, WORD * _WORDS_AT_ONCE
#: Targets whose score is not the one of their tile, to the last bit: rank them in another way.
Again: TypeAlias = "IntArray"
Job = TypeVar("Job")
Done = TypeVar("Done")
Tiled: TypeAlias = "tuple[slice, IntArray, IntArray, ScoreArray, Again]"


def can_tile(factors: FactorScores) -> bool:
    """Return whether the factors are floats whose products are finite."""
    left, right = factors.folded
    if not all(np.issubdtype(each.dtype, np.floating) for each in (left, right)):
        return False
    kind = np.result_type(left, right)
    if kind not in (np.float32, np.float64) or not right.size or not left.size:
        return False
    # No sum of such products overflows. With NaN or infinity among the factors this is false.
    largest = [float(max(each.max(), -each.min())) for each in (left, right)]
    return largest[0] * largest[1] * float(right.shape[1]) < float(np.finfo(kind).max)


def count_tiles(factors: FactorScores, candidates: Candidates) -> Iterator[Tiled]:
    """Compare targets with all their candidates, chunk after chunk of targets."""
    left, right = factors.folded
    tiles = -(-candidates.items // COLUMNS)
    # Tiles of one size: a small one would be multiplied in another way, and rounded so.
    edges = np.linspace(0, candidates.items, tiles + 1).astype(np.int64)

    def count(job: tuple[slice, Candidates]) -> Tiled:
        place, part = job
        return place, *_count(left, right, part, edges)

    jobs = -(-len(candidates) // ROWS)
    yield from in_turn(count, candidates.parts(ROWS), jobs)


def in_turn(work: Callable[[Job], Done], jobs: Iterable[Job], count: int) -> Iterator[Done]:
    """Yield what comes of ``count`` jobs, in their order; cores take them in turn."""
    # To look for the number of threads takes milliseconds, longer than some jobs.
    workers = blas_threads() if count > 1 else 1
    with one_thread():
        if workers == 1:
            yield from map(work, jobs)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(work, jobs)


def _count(
    left: ScoreArray, right: ScoreArray, part: Candidates, edges: IntArray
) -> tuple[IntArray, IntArray, ScoreArray, Again]:
    users, row_of = np.unique(part.users, return_inverse=True)
    some = left[users]
    rivals = Rivals.of(part, _own_scores(some, right, row_of, part.targets), edges)
    better, not_worse = (np.zeros(len(part), dtype=np.int64) for _ in range(2))
    odd = np.zeros(len(part), dtype=bool)
    mask = np.zeros((len(part), COLUMNS), dtype=bool)
    for at, (first, last) in enumerate(pairwise(edges.tolist())):
        scores = some @ right[first:last].T
        if len(users) < len(part):
            scores = scores[row_of]
        above, level, moved = rivals.count(at, scores, mask)
        better += above
        not_worse += level
        odd[moved] = True
    # The target ties with itself.
    return better, not_worse - better - 1, rivals.own, np.flatnonzero(odd)


@dataclass(frozen=True, eq=False)
class Rivals:
    """Some targets' own scores, and where in which tile stand they and what is left out."""

    own: ScoreArray
    edges: IntArray
    targets: IntArray
    #: Targets in the order of their items, and where those of each tile begin.
    by_item: IntArray
    cuts: IntArray
    #: The same of pairs (row, item) to leave out.
    row: IntArray
    item: IntArray
    pair_cuts: IntArray

    @classmethod
    def of(cls, part: Candidates, own: ScoreArray, edges: IntArray) -> Self:
        """Find out who stands in which tile."""
        row, excluded = part.excluded
        order = np.argsort(excluded, kind="stable")
        row, item = row[order], np.asarray(excluded[order], dtype=np.int64)
        by_item = np.argsort(part.targets, kind="stable")
        cuts = np.searchsorted(part.targets[by_item], edges)
        pair_cuts = np.searchsorted(item, edges)
        return cls(own, edges, part.targets, by_item, cuts, row, item, pair_cuts)

    def count(
        self, at: int, scores: ScoreArray, mask: npt.NDArray[np.bool_]
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return how many candidates of a tile beat each target, and how many do not fall behind.

        The third are targets in it whose score is not the one that they were compared by.
        """
        own, first = self.own, int(self.edges[at])
        better = count_where(np.greater, scores, own, mask)
        not_worse = count_where(np.greater_equal, scores, own, mask)
        here = self.by_item[self.cuts[at] : self.cuts[at + 1]]
        moved = here[scores[here, self.targets[here] - first] != own[here]]
        pairs = slice(self.pair_cuts[at], self.pair_cuts[at + 1])
        row = self.row[pairs]
        if len(row):
            left_out, rival = scores[row, self.item[pairs] - first], own[row]
            better -= np.bincount(row[left_out > rival], minlength=len(own))
            not_worse -= np.bincount(row[left_out >= rival], minlength=len(own))
        return better, not_worse, moved


def _own_scores(
    some: ScoreArray, right: ScoreArray, row_of: IntArray, targets: IntArray
) -> ScoreArray:
    """Return the targets' scores from a matrix product, which rounds as that of a tile does."""
    found = np.empty(len(targets), dtype=np.result_type(some, right))
    for start in range(0, len(targets), ROWS):
        chunk = slice(start, start + ROWS)
        product = some @ right[targets[chunk]].T
        found[chunk] = product[row_of[chunk], np.arange(product.shape[1])]
    return found


def count_where(
    compare: np.ufunc, scores: ScoreArray, own: ScoreArray, mask: npt.NDArray[np.bool_]
) -> IntArray:
    """Return for how many items of each row ``compare(score, own)`` holds.

    Comparisons are bytes of 0 or 1 in ``mask``, whose rows are at least as long, in whole words.
    Read as words they add up eight columns at once, each byte for itself, unless one passes 255.
    """
    width = scores.shape[1]
    compare(scores, own[:, None], out=mask[:, :width])
    used = mask[:, : -(-width // WORD) * WORD]
    used[:, width:] = False
    words = used.view(np.uint64)
    total = np.zeros(len(scores), dtype=np.int64)
    for start in range(0, words.shape[1], _WORDS_AT_ONCE):
        sums = words[:, start : start + _WORDS_AT_ONCE].sum(axis=1)
        total += sums.view(np.uint8).reshape(-1, WORD).sum(axis=1, dtype=np.int64)
    return total
