"""Full rankings on the processor: items above each target, counted in blocks that stay in cache.

Factors are multiplied tile by tile (some users x some items). All other scores are whole rows of
some users. Each core takes some users, with one BLAS thread, so all cores compare, not only
multiply. Nothing is sorted and nothing is masked: a block is compared with the targets' scores
twice (better, at least as good). Then the counts of the excluded pairs are subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray, Seed
from unsample._rules import ONCE
from unsample._threads import blas_threads, in_threads, one_thread
from unsample.counts import check_ties, rank_with_ties, runs_of
from unsample.scoring._candidates import Candidates, Excluded
from unsample.scoring._scorers import (
    FactorScores,
    ItemItemScores,
    ScoreArray,
    Scorer,
    as_scorer,
    refuse_unknown_users,
)

#: A word holds eight comparisons.
_WORD = 8
#: A byte counts to 255, so this many words may be added at once.
_WORDS_AT_ONCE = 255
#: Users and items of a tile.
_ROWS = 256
_COLUMNS = _WORD * _WORDS_AT_ONCE
#: Scores of a block of whole rows: 8 MB of float32.
_BLOCK = 1 << 21
#: A block has at least this many users: reading the item factors for fewer takes too long.
_MIN_ROWS = 16
#: The number formats to which factors may be rounded on a device.
PRECISIONS = ("float32", "bfloat16")
#: A slice of the targets, and for each target how many items beat it, how many others tie, and its
#: own score.
Counted: TypeAlias = "tuple[slice, IntArray, IntArray, ScoreArray]"


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
) -> FullRanks:
    """Rank each target among all candidates of its user.

    ``evaluate(design="exact")`` gives the same ranks. Targets of one user have different ranks,
    unless ``ties`` is ``"realistic"``. A target is a candidate even if it is excluded.

    Parameters
    ----------
    scorer, targets, items, exclude, rng
        As in `unsample.evaluate`.
    ties
        The rank of a target whose score other items have: ``"random"``, ``"optimistic"``,
        ``"pessimistic"``, or ``"realistic"`` (the mean of the last two).

    Returns
    -------
    FullRanks
        With ``ranks``, the number of candidates ``items``, and ``ties``, an entry for each target.

    >>> table = np.array([[0.9, 0.1, 0.5], [0.2, 0.2, 0.2]])
    >>> exact_ranks(table, ([0, 1], [2, 0]), items=3, ties="realistic").ranks
    array([2., 2.])
    """
    rule = check_ties(ties)
    every_target = Candidates.check(targets, items, exclude=exclude)
    known = as_scorer(scorer, items)
    refuse_unknown_users(known, every_target.users)
    candidates, again = every_target.distinct()
    better = np.empty(len(candidates), dtype=np.int64)
    equal = np.empty(len(candidates), dtype=np.int64)
    scores = np.empty(len(candidates))
    for part, *counts in count_all(known, candidates):
        better[part], equal[part], scores[part] = counts
    # An excluded target is in no other list than its own.
    alone = -1 - np.arange(len(candidates))
    lists = np.where(candidates.listed, alone, candidates.users)
    ranks = rank_with_ties(
        better,
        equal,
        ties=rule,
        rng=rng,
        users=candidates.users,
        targets=candidates.targets,
        runs=runs_of(lists, scores),
    )
    return FullRanks(ranks[again], every_target.others + 1, ties=equal[again])


def count_all(
    scorer: Scorer,
    candidates: Candidates,
    device: str | None = None,
    precision: str = "float32",
) -> Iterator[Counted]:
    """Compare targets with all their candidates."""
    if device is not None and isinstance(scorer, FactorScores):
        # Imported here, because torch takes long to import.
        with ONCE:
            from unsample.scoring._cuda import count_on_device

        return count_on_device(scorer, candidates, device=device, precision=precision)
    if isinstance(scorer, FactorScores) and _can_tile(scorer.user_factors, scorer.item_factors):
        return _count_tiles(scorer, candidates)
    return count_rows(scorer, candidates)


def _can_tile(left: ScoreArray, right: ScoreArray) -> bool:
    """Return whether the products of the factors are finite, in a precision that BLAS has."""
    kind = np.result_type(left, right)
    if kind not in (np.float32, np.float64) or not right.size or not left.size:
        return False
    # Then no sum of products overflows. NaN or infinite factors make this false.
    largest_left = float(max(left.max(), -left.min()))
    largest_right = float(max(right.max(), -right.min()))
    factors = float(right.shape[1])
    return largest_left * largest_right * factors < float(np.finfo(kind).max)


def _count_tiles(scorer: FactorScores, candidates: Candidates) -> Iterator[Counted]:
    """Compare targets with all their candidates, whose scores are products of factors."""
    tiles = -(-candidates.items // _COLUMNS)
    # All tiles have one size, because BLAS rounds products of small matrices differently.
    edges = np.linspace(0, candidates.items, tiles + 1).astype(np.int64)

    def count(job: tuple[slice, Candidates]) -> Counted:
        targets, part = job
        better, equal, own, moved = _multiply(
            scorer.user_factors, scorer.item_factors, part=part, edges=edges
        )
        for at, *counts in count_rows(scorer, part.take(moved)):
            rows = moved[at]
            better[rows], equal[rows], own[rows] = counts
        return targets, better, equal, own

    yield from _on_all_cores(count, candidates, rows=_ROWS)


def count_rows(scorer: Scorer, candidates: Candidates) -> Iterator[Counted]:
    """Compare targets with whole rows of scores."""
    rows = max(_MIN_ROWS, _BLOCK // candidates.items)

    def count(job: tuple[slice, Candidates]) -> Counted:
        targets, part = job
        scores = scorer.rows(part.users, part.items)
        own = scores[np.arange(len(part)), part.targets]
        mask = _room(scores.shape)
        better, not_worse = _compare(part, own, first=0, scores=scores, mask=mask)
        return targets, better, not_worse - better - 1, own

    if isinstance(scorer, ItemItemScores):
        yield from _on_all_cores(count, candidates, rows=rows)
    else:  # a user's function may not be safe for several threads
        yield from map(count, candidates.parts(rows))


def _on_all_cores(
    count: Callable[[tuple[slice, Candidates]], Counted], candidates: Candidates, *, rows: int
) -> Iterator[Counted]:
    """Count some rows at a time, on as many threads as BLAS would use."""
    # Asking for the number of threads takes milliseconds, longer than some jobs.
    workers = blas_threads() if len(candidates) > rows else 1
    with one_thread():
        yield from in_threads(count, candidates.parts(rows), workers=workers)


def _multiply(
    left: ScoreArray, right: ScoreArray, *, part: Candidates, edges: IntArray
) -> tuple[IntArray, IntArray, ScoreArray, IntArray]:
    """Return how many items beat each target, how many tie, its own score, and moved targets.

    A moved target has another score in its tile, because a product was rounded differently.
    """
    users, row_of = np.unique(part.users, return_inverse=True)
    each_once = len(users) == len(part)
    if each_once:  # rows as the targets come
        users = part.users
        row_of = np.arange(len(part))
    factors = left[users]
    targets = part.targets
    own = _own_scores(factors, right, row_of=row_of, targets=targets)
    better = np.zeros(len(part), dtype=np.int64)
    not_worse = np.zeros(len(part), dtype=np.int64)
    moved = np.zeros(len(part), dtype=bool)
    mask = _room((len(part), _COLUMNS))
    for first, last in pairwise(edges.tolist()):
        scores = factors @ right[first:last].T
        if not each_once:
            scores = scores[row_of]
        above, at_least = _compare(part, own, first=first, scores=scores, mask=mask)
        better += above
        not_worse += at_least
        here = np.flatnonzero((targets >= first) & (targets < last))
        moved[here] = scores[here, targets[here] - first] != own[here]
    return better, not_worse - better - 1, own, np.flatnonzero(moved)


def _own_scores(
    factors: ScoreArray, right: ScoreArray, *, row_of: IntArray, targets: IntArray
) -> ScoreArray:
    """Return the targets' scores from a matrix product, which rounds as the product of a tile."""
    product = factors @ right[targets].T
    return np.asarray(product[row_of, np.arange(len(targets))])


def _compare(
    part: Candidates, own: ScoreArray, *, first: int, scores: ScoreArray, mask: BoolArray
) -> tuple[IntArray, IntArray]:
    """Return how many candidates beat each target, and how many are not worse (it is one of them).

    ``scores`` has the items from number ``first`` on.
    """
    better = _count_where(np.greater, scores, own=own, mask=mask)
    not_worse = _count_where(np.greater_equal, scores, own=own, mask=mask)
    row, item = part.excluded
    here = np.flatnonzero((item >= first) & (item < first + scores.shape[1]))
    if len(here):
        row = row[here]
        left_out = scores[row, item[here] - first]
        rival = own[row]
        better -= np.bincount(row[left_out > rival], minlength=len(own))
        not_worse -= np.bincount(row[left_out >= rival], minlength=len(own))
    return better, not_worse


def _room(shape: tuple[int, ...]) -> BoolArray:
    """Return an array for comparisons of scores of this shape, with rows of whole words."""
    return np.empty((shape[0], -(-shape[1] // _WORD) * _WORD), dtype=bool)


def _count_where(
    compare: np.ufunc, scores: ScoreArray, *, own: ScoreArray, mask: BoolArray
) -> IntArray:
    """Return for how many items of each row ``compare(score, own)`` is true.

    Results are bytes of 0 or 1 in ``mask``. Read as words, eight columns are added at once, as
    long as no byte passes 255.

    >>> scores = np.array([[0.1, 0.7, 0.3], [0.5, 0.5, 0.9]])
    >>> own = np.array([0.2, 0.5])
    >>> _count_where(np.greater, scores, own=own, mask=_room(scores.shape))
    array([2, 1])
    """
    width = scores.shape[1]
    compare(scores, own[:, None], out=mask[:, :width])
    used = mask[:, : -(-width // _WORD) * _WORD]
    used[:, width:] = False
    words = used.view(np.uint64)
    total = np.zeros(len(scores), dtype=np.int64)
    for start in range(0, words.shape[1], _WORDS_AT_ONCE):
        sums = words[:, start : start + _WORDS_AT_ONCE].sum(axis=1)
        total += sums.view(np.uint8).reshape(-1, _WORD).sum(axis=1, dtype=np.int64)
    return total
