"""Full ranks of factor models on the processor, tile by tile.

A tile of scores (some users x some items) stays in the cache of a core while it is compared with
the targets' scores. Each core takes some users, with one BLAS thread. So all cores compare, not
only multiply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from unsample._checks import BoolArray, IntArray
from unsample._threads import blas_threads, one_thread
from unsample.designs._scan import Candidates, Done, Given, in_threads
from unsample.designs._scorers import FactorScores, ScoreArray

#: A word holds eight comparisons. A byte counts to 255, so this many words may be added at once.
WORD, _WORDS_AT_ONCE = 8, 255
#: Users and items of a tile.
ROWS, COLUMNS = 256, WORD * _WORDS_AT_ONCE
#: Where some targets are, how many items beat them, how many others tie, and their own scores. The
#: last are targets whose score is not equal to that of their tile: rank them in another way.
Tiled: TypeAlias = "tuple[slice, IntArray, IntArray, ScoreArray, IntArray]"
#: Of each target, how many items of a tile are better and how many are not worse, and whether the
#: target's score is another one in the tile.
Compared: TypeAlias = "tuple[IntArray, IntArray, BoolArray]"


def can_tile(factors: FactorScores) -> bool:
    """Return whether the factors are floats whose products are finite."""
    left, right = factors.folded
    if not all(np.issubdtype(each.dtype, np.floating) for each in (left, right)):
        return False
    kind = np.result_type(left, right)
    if kind not in (np.float32, np.float64) or not right.size or not left.size:
        return False
    # Then no sum of products overflows. NaN or infinite factors make this false.
    largest = [float(max(each.max(), -each.min())) for each in (left, right)]
    return largest[0] * largest[1] * float(right.shape[1]) < float(np.finfo(kind).max)


def count_tiles(factors: FactorScores, candidates: Candidates) -> Iterator[Tiled]:
    """Compare targets with all their candidates."""
    left, right = factors.folded
    tiles = -(-candidates.items // COLUMNS)
    # All tiles have one size, because BLAS rounds products of small matrices differently.
    edges = np.linspace(0, candidates.items, tiles + 1).astype(np.int64)

    def count(job: tuple[slice, Candidates]) -> Tiled:
        place, part = job
        return place, *_count(left, right, part, edges)

    jobs = -(-len(candidates) // ROWS)
    yield from in_turn(count, candidates.parts(ROWS), jobs)


def in_turn(work: Callable[[Given], Done], jobs: Iterable[Given], count: int) -> Iterator[Done]:
    """Yield the results of ``count`` jobs, in their order; all cores work on them."""
    # Asking for the number of threads takes milliseconds, longer than some jobs.
    workers = blas_threads() if count > 1 else 1
    with one_thread():
        yield from in_threads(work, jobs, workers)


def _count(
    left: ScoreArray, right: ScoreArray, part: Candidates, edges: IntArray
) -> tuple[IntArray, IntArray, ScoreArray, IntArray]:
    users, row_of = np.unique(part.users, return_inverse=True)
    some = left[users]
    rivals = Rivals.of(part, _own_scores(some, right, row_of, part.targets), edges)
    mask = np.zeros((len(part), COLUMNS), dtype=bool)

    def compared(at: int) -> Compared:
        scores = some @ right[edges[at] : edges[at + 1]].T
        return rivals.count(at, scores if len(users) == len(part) else scores[row_of], mask)

    return add_up(rivals.own, map(compared, range(len(edges) - 1)))


@dataclass(frozen=True, eq=False)
class Rivals:
    """The scores of some targets, and in which tiles the targets and excluded items are."""

    own: ScoreArray
    edges: IntArray
    targets: IntArray
    #: Targets in the order of their items, and where those of each tile begin.
    by_item: IntArray
    cuts: IntArray
    #: The same for excluded pairs (row, item).
    row: IntArray
    item: IntArray
    pair_cuts: IntArray

    @classmethod
    def of(cls, part: Candidates, own: ScoreArray, edges: IntArray) -> Self:
        row, excluded = part.excluded
        order = np.argsort(excluded, kind="stable")
        row, item = row[order], np.asarray(excluded[order], dtype=np.int64)
        by_item = np.argsort(part.targets, kind="stable")
        cuts = np.searchsorted(part.targets[by_item], edges)
        pair_cuts = np.searchsorted(item, edges)
        return cls(own, edges, part.targets, by_item, cuts, row, item, pair_cuts)

    def count(self, at: int, scores: ScoreArray, mask: BoolArray) -> Compared:
        """Compare each target with its candidates in tile number ``at``."""
        own, first = self.own, int(self.edges[at])
        better = count_where(np.greater, scores, own, mask)
        not_worse = count_where(np.greater_equal, scores, own, mask)
        here = self.by_item[self.cuts[at] : self.cuts[at + 1]]
        moved = np.zeros(len(own), dtype=bool)
        moved[here] = scores[here, self.targets[here] - first] != own[here]
        pairs = slice(self.pair_cuts[at], self.pair_cuts[at + 1])
        row = self.row[pairs]
        if len(row):
            left_out, rival = scores[row, self.item[pairs] - first], own[row]
            better -= np.bincount(row[left_out > rival], minlength=len(own))
            not_worse -= np.bincount(row[left_out >= rival], minlength=len(own))
        return better, not_worse, moved


def add_up(
    own: ScoreArray, tiles: Iterable[Compared]
) -> tuple[IntArray, IntArray, ScoreArray, IntArray]:
    """Return the counts of all tiles, the targets' own scores, and the targets to rank again."""
    better, not_worse = (np.zeros(len(own), dtype=np.int64) for _ in range(2))
    again = np.zeros(len(own), dtype=bool)
    for above, level, moved in tiles:
        better += above
        not_worse += level
        again |= moved
    # The target ties with itself.
    return better, not_worse - better - 1, own, np.flatnonzero(again)


def _own_scores(
    some: ScoreArray, right: ScoreArray, row_of: IntArray, targets: IntArray
) -> ScoreArray:
    """Return the targets' scores from a matrix product, which rounds as the product of a tile."""
    found = np.empty(len(targets), dtype=np.result_type(some, right))
    for start in range(0, len(targets), ROWS):
        chunk = slice(start, start + ROWS)
        product = some @ right[targets[chunk]].T
        found[chunk] = product[row_of[chunk], np.arange(product.shape[1])]
    return found


def count_where(
    compare: np.ufunc, scores: ScoreArray, own: ScoreArray, mask: BoolArray
) -> IntArray:
    """Return for how many items of each row ``compare(score, own)`` is true.

    Results are bytes of 0 or 1 in ``mask``, whose rows are at least as long, in whole words. Read
    as words, eight columns are added at once, as long as no byte passes 255.
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
