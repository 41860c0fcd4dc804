"""Full ranks of factor models on the processor, tile by tile.

A tile of scores, some users by some items, stays in the cache of a core while it is compared with
the targets' scores. Cores take users in turn, each with one BLAS thread: comparing is then shared
out as well as multiplying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeAlias, TypeVar

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
    workers = blas_threads()
    with one_thread():
        if workers == 1 or count <= 1:
            yield from map(work, jobs)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(work, jobs)


def _count(
    left: ScoreArray, right: ScoreArray, part: Candidates, edges: IntArray
) -> tuple[IntArray, IntArray, ScoreArray, Again]:
    users, row_of = np.unique(part.users, return_inverse=True)
    some = left[users]
    repeated = len(users) < len(part)
    own = _own_scores(some, right, row_of, part.targets)
    better, not_worse = (np.zeros(len(part), dtype=np.int64) for _ in range(2))
    odd = np.zeros(len(part), dtype=bool)
    mask = np.zeros((len(part), COLUMNS), dtype=bool)
    rows, columns = _by_column(part)
    cuts = np.searchsorted(columns, edges)
    by_target = np.argsort(part.targets, kind="stable")
    own_cuts = np.searchsorted(part.targets[by_target], edges)
    for at, (first, last) in enumerate(pairwise(edges.tolist())):
        scores = some @ right[first:last].T
        if repeated:
            scores = scores[row_of]
        better += count_where(np.greater, scores, own, mask)
        not_worse += count_where(np.greater_equal, scores, own, mask)
        here = by_target[own_cuts[at] : own_cuts[at + 1]]
        odd[here] = scores[here, part.targets[here] - first] != own[here]
        row = rows[cuts[at] : cuts[at + 1]]
        if len(row):
            left_out, rival = scores[row, columns[cuts[at] : cuts[at + 1]] - first], own[row]
            better -= np.bincount(row[left_out > rival], minlength=len(part))
            not_worse -= np.bincount(row[left_out >= rival], minlength=len(part))
    # The target ties with itself.
    return better, not_worse - better - 1, own, np.flatnonzero(odd)


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


def _by_column(part: Candidates) -> tuple[IntArray, IntArray]:
    """Return the pairs to leave out, in the order of the items."""
    row, column = part.excluded
    order = np.argsort(column, kind="stable")
    return row[order], np.asarray(column[order], dtype=np.int64)


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
