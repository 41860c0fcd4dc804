"""Ranks among items that are really drawn, many repeats at a time.

A draw needs no score, only whether the drawn item beats the target. So each user's candidates are
turned into one byte each (better, equal or worse than the target), laid one after the other, and
the draws of all repeats look up bytes that stay in the processor's cache.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, Seed, as_rng, check_integer
from unsample._progress import Progress
from unsample.designs.ranking._candidates import Candidates, Chunk
from unsample.designs.ranking._results import SampledRanks
from unsample.designs.ranking._scores import ScoreAll, ScoreArray, score_block
from unsample.designs.ranking._ties import TieRule, check_ties, rank_with_ties
from unsample.errors import DesignError

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["sampled_ranks"]

#: Bytes of comparisons in a chunk of users, and items drawn at a time: both fit a core's cache.
_CHUNK_BYTES = 1 << 20
_DRAWS_AT_ONCE = 1 << 17
#: The byte of an item: a beating one adds to the low half, a tying one to the high half.
_BETTER, _EQUAL = 1, 16
#: How many such bytes add up without a carry from half to half, and how many where none ties.
_BYTES_AT_ONCE, _UNTIED_BYTES_AT_ONCE = 15, 255
#: Without replacement, beyond this share of the candidates a shuffle is cheaper than redrawing.
_SHUFFLE_FROM = 0.25
#: Bits of a uniform number that is scaled to the candidates.
_BITS = 32


def sampled_ranks(
    score_all: ScoreAll,
    users: npt.ArrayLike,
    targets: npt.ArrayLike,
    *,
    items: int,
    sampled: int,
    replacement: bool = True,
    exclude: scipy.sparse.sparray | scipy.sparse.spmatrix | None = None,
    repeats: int = 1,
    ties: str = "random",
    rng: Seed = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> SampledRanks:
    """Rank each target among uniformly drawn candidates of its user, ``repeats`` times over.

    The target is never drawn. Under the tie rule ``"random"`` every repeat breaks ties anew and
    consistently (an item drawn twice beats the target twice or not at all), so the ranks follow
    `unsample.law.Law` exactly. Each candidate's probability is right to 2**-32.

    Parameters
    ----------
    score_all, users, targets, items, exclude, ties
        See `exact_ranks`.
    sampled
        How many items are drawn for each target.
    replacement
        Whether the same item may be drawn twice for a target.
    repeats
        How many times to draw; the result has a row for each.
    rng
        Seed; the ranks do not depend on ``workers``.
    workers
        Threads that draw (scores are asked for in the calling thread); more than one
        pays where scoring is slow.
    progress
        Called with targets done and targets in all.
    """
    rule = check_ties(ties)
    candidates = Candidates.check(users, targets, items, exclude)
    plan = _Plan(
        check_integer("sampled", sampled, minimum=1, error=DesignError),
        bool(replacement),
        check_integer("repeats", repeats, minimum=1),
        rule,
    )
    threads = check_integer("workers", workers, minimum=1)
    shape = (plan.repeats, len(candidates))
    ranks: IntArray | FloatArray = np.empty(shape, dtype=np.int64)
    if rule == "realistic":
        ranks = np.empty(shape, dtype=np.float64)
    catalogue = np.empty(len(candidates), dtype=np.int64)
    jobs = _jobs(score_all, candidates, plan, as_rng(rng))
    for part, urn, drawn in _in_threads(jobs, threads):
        ranks[:, part.place] = drawn
        catalogue[part.place] = urn.others + 1
        if progress is not None:
            progress(part.place.stop, len(candidates))
    return SampledRanks(ranks, np.full(len(candidates), plan.sampled), catalogue)


@dataclass(frozen=True)
class _Plan:
    sampled: int
    replacement: bool
    repeats: int
    ties: TieRule


@dataclass(frozen=True, eq=False)
class _Urn:
    """The other candidates of some users as bytes; user i has ``others[i]`` from ``start[i]``."""

    code: npt.NDArray[np.uint8]
    start: IntArray
    others: IntArray
    equal: IntArray

    @classmethod
    def build(cls, scores: ScoreArray, part: Chunk) -> _Urn:
        """Compare every candidate with the target of its row."""
        rows = np.arange(len(part))
        target = scores[rows, part.targets][:, None]
        tied = scores == target
        candidate = np.ones(scores.shape, dtype=bool)
        candidate[rows, part.targets] = False
        candidate[part.row, part.column] = False
        code = (scores > target).view(np.uint8)
        np.putmask(code, tied, _EQUAL)
        tied &= candidate
        others = scores.shape[1] - 1 - part.excluded
        tied_row = np.flatnonzero(tied) // scores.shape[1]
        equal = np.bincount(tied_row, minlength=len(part)).astype(np.int64)
        return cls(code[candidate], np.cumsum(others) - others, others, equal)


_Job: TypeAlias = tuple[Chunk, _Urn, _Plan, np.random.Generator]
_Waiting: TypeAlias = "tuple[Chunk, _Urn, Future[IntArray | FloatArray]]"


def _jobs(
    score_all: ScoreAll, candidates: Candidates, plan: _Plan, rng: np.random.Generator
) -> Iterator[_Job]:
    """Score chunk after chunk; each has a random stream of its own, whoever draws from it."""
    rows = max(1, _CHUNK_BYTES // candidates.items)
    for part in candidates.chunks(rows):
        urn = _Urn.build(score_block(score_all, part.users, candidates.items), part)
        _check_enough(urn, part, plan)
        yield part, urn, plan, rng.spawn(1)[0]


def _in_threads(
    jobs: Iterator[_Job], threads: int
) -> Iterator[tuple[Chunk, _Urn, IntArray | FloatArray]]:
    """Draw in threads, with no more chunks waiting than there are threads to draw them."""
    waiting: deque[_Waiting] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for part, urn, plan, rng in jobs:
            waiting.append((part, urn, pool.submit(_draw_ranks, urn, plan, rng)))
            if len(waiting) > threads:
                yield _finished(waiting.popleft())
        yield from map(_finished, waiting)


def _finished(waiting: _Waiting) -> tuple[Chunk, _Urn, IntArray | FloatArray]:
    part, urn, future = waiting
    return part, urn, future.result()


def _draw_ranks(urn: _Urn, plan: _Plan, rng: np.random.Generator) -> IntArray | FloatArray:
    """Return the ranks of an urn's users, a row for each repeat."""
    shape = (plan.repeats, len(urn.others))
    better, equal = (np.empty(shape[0] * shape[1], dtype=np.int64) for _ in range(2))
    owner = np.tile(np.arange(shape[1]), shape[0])
    step = max(1, _DRAWS_AT_ONCE // plan.sampled)
    room = np.empty(step * plan.sampled, dtype=np.int64), np.empty(step * plan.sampled, np.uint8)
    any_ties = bool(urn.equal.any())
    draw = _repeated if plan.replacement else _distinct
    for start in range(0, len(owner), step):
        cells = owner[start : start + step]
        size = plan.sampled * len(cells)
        position = draw(urn.others[cells], plan.sampled, rng, room[0][:size])
        position += urn.start[cells]
        code = np.take(urn.code, position, mode="clip", out=room[1][:size].reshape(position.shape))
        place = slice(start, start + len(cells))
        better[place], equal[place] = _add_up(code, any_ties)
    better, equal = better.reshape(shape), equal.reshape(shape)
    if plan.ties == "random" and plan.replacement:
        return 1 + better + _beating_ties(equal, urn.equal, rng)
    return rank_with_ties(better, equal, plan.ties, rng)


def _repeated(others: IntArray, sampled: int, rng: np.random.Generator, room: IntArray) -> IntArray:
    """Draw with replacement: a column of ``sampled`` positions for each user, written to room."""
    return _uniform(others, rng, room.reshape(sampled, len(others)))


def _distinct(others: IntArray, sampled: int, rng: np.random.Generator, room: IntArray) -> IntArray:
    """Draw without replacement: a column of ``sampled`` positions for each user."""
    if sampled > _SHUFFLE_FROM * others.min():
        return _shuffled(others, sampled, rng).T
    return _redrawn_until_distinct(others, rng, room.reshape(len(others), sampled)).T


def _uniform(below: IntArray, rng: np.random.Generator, room: IntArray) -> IntArray:
    """Fill ``room`` with integers in ``0..below-1``: high halves of products with random bits."""
    words = rng.integers(0, 1 << 64, size=-(-room.size // 2), dtype=np.uint64)
    bits = words.view(np.uint32)[: room.size].reshape(room.shape)
    product = room.view(np.uint64)
    np.multiply(bits, below.view(np.uint64), out=product)
    product >>= np.uint64(_BITS)
    return room


def _redrawn_until_distinct(others: IntArray, rng: np.random.Generator, room: IntArray) -> IntArray:
    """Fill rows with distinct integers: repeats are drawn anew until none is left.

    Which draws are replaced depends only on which are equal, never on which items they are, so
    no set of items is preferred to another.
    """
    drawn = _uniform(others[:, None], rng, room)
    drawn.sort(axis=1)
    open_rows = np.arange(len(others))
    while len(open_rows):
        rows = drawn[open_rows]
        repeated = rows[:, 1:] == rows[:, :-1]
        hit = repeated.any(axis=1)
        open_rows, rows = open_rows[hit], rows[hit]
        row, column = np.nonzero(repeated[hit])
        rows[row, column + 1] = _uniform(others[open_rows[row]], rng, np.empty_like(row))
        rows.sort(axis=1)
        drawn[open_rows] = rows
    return drawn


def _shuffled(others: IntArray, sampled: int, rng: np.random.Generator) -> IntArray:
    """Draw rows of distinct integers: those with the smallest of random keys."""
    width = int(others.max())
    result = np.empty((len(others), sampled), dtype=np.int64)
    step = max(1, _DRAWS_AT_ONCE // width)
    for start in range(0, len(others), step):
        rows = slice(start, start + step)
        keys = rng.random((len(others[rows]), width))
        keys[np.arange(width) >= others[rows][:, None]] = np.inf
        result[rows] = np.argpartition(keys, sampled - 1, axis=1)[:, :sampled]
    return result


def _add_up(code: npt.NDArray[np.uint8], any_ties: bool) -> tuple[IntArray, IntArray]:
    """Return how many bytes of each column are better, and how many are equal."""
    better, equal = (np.zeros(code.shape[1], dtype=np.int64) for _ in range(2))
    step = _BYTES_AT_ONCE if any_ties else _UNTIED_BYTES_AT_ONCE
    for start in range(0, len(code), step):
        sums = np.add.reduce(code[start : start + step], axis=0, dtype=np.uint8)
        better += sums % _EQUAL if any_ties else sums
        if any_ties:
            equal += sums // _EQUAL
    return better, equal


def _beating_ties(equal: IntArray, tied: IntArray, rng: np.random.Generator) -> IntArray:
    """Return how many of the ``equal`` drawn ties beat their targets.

    The target takes a uniform place among its ``tied`` items; a drawn tie is uniform among them.
    """
    above = rng.integers(0, tied + 1, size=equal.shape)
    return rng.binomial(equal, above / np.maximum(tied, 1))


def _check_enough(urn: _Urn, part: Chunk, plan: _Plan) -> None:
    needed = 1 if plan.replacement else plan.sampled
    short = urn.others < needed
    if short.any():
        where = int(np.argmax(short))
        raise DesignError(
            f"sampled must be at most a target's other candidates without replacement (and there "
            f"must be one), got {plan.sampled} for user {int(part.users[where])}, who has "
            f"{int(urn.others[where])}; draw fewer, or keep seen items as candidates"
        )
