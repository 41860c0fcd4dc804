"""Comparing targets with more and more of their candidates, in each target's own random order.

A `Scan` knows who is compared with whom and counts; how far each target goes is its caller's
business. Counts depend on the seed and on the scores, and on nothing else: not on how the work is
cut into batches, nor on the threads that do it, nor on interruptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.designs.ranking._candidates import Candidates
from unsample.designs.ranking._orders import LongWords, Orders, target_keys
from unsample.designs.ranking._scores import Score, ScoreArray, as_scores, refuse_infinite_targets

__all__ = ["Scan", "Tally"]

#: Most items of one target in a call of the scorer.
_LONGEST_ROW = 1 << 16
#: Least part of a batch's columns that each of its targets needs.
_FILLED = 0.9


@dataclass(frozen=True, eq=False)
class Tally:
    """What is known of each target: how many items it met, and how it compared with them.

    Attributes
    ----------
    scored
        Items the target was compared with.
    better
        Those of them with a higher score.
    equal
        Those with the same score.
    lost_ties
        Those of the equal ones that stand above the target when ties are broken at random.
    infinite
        Those whose score is infinite; they stand above or below all finite ones.
    """

    scored: IntArray
    better: IntArray
    equal: IntArray
    lost_ties: IntArray
    infinite: IntArray

    @classmethod
    def empty(cls, targets: int) -> Tally:
        """Return the tally of targets that met no item yet."""
        return cls(*(np.zeros(targets, dtype=np.int64) for _ in fields(cls)))

    def beaten(self, ties: str) -> IntArray:
        """Return how many items stand above each target under a tie rule."""
        if ties == "optimistic":
            return self.better
        return self.better + (self.lost_ties if ties == "random" else self.equal)

    def add(self, rows: IntArray, part: Tally) -> None:
        """Count in what ``rows`` met."""
        for field in fields(self):
            getattr(self, field.name)[rows] += getattr(part, field.name)


@dataclass(frozen=True, eq=False)
class Scan:
    """Targets, their candidates and their orders; build it with `prepare`.

    ``others`` is how many candidates each target has beside itself.
    """

    score: Score
    candidates: Candidates
    others: IntArray
    keys: LongWords
    replacement: bool

    @classmethod
    def prepare(
        cls,
        score: Score,
        candidates: Candidates,
        *,
        seed: int,
        replacement: bool = False,
        others: IntArray | None = None,
    ) -> Scan:
        """Make the orders' keys; ``others`` overrides the catalogue where users' sizes differ."""
        if others is None:
            others = candidates.items - 1 - candidates.excluded
        keys = target_keys(seed, candidates.users, candidates.targets)
        return cls(score, candidates, others, keys, replacement)

    def advance(
        self, tally: Tally, goal: IntArray, *, batch: int, workers: int = 1
    ) -> Iterator[int]:
        """Compare every target with items until it met ``goal`` of them; count in ``tally``.

        Yields how many scores each call of the scorer gave, after they are counted.
        """
        while (open_rows := np.flatnonzero(tally.scored < goal)).size:
            missing = np.minimum((goal - tally.scored)[open_rows], _LONGEST_ROW)
            batches = _batches(open_rows, missing, batch)
            for rows, part in _in_threads(lambda job: self._compare(*job, tally), batches, workers):
                tally.add(rows, part)
                yield len(rows) * (1 + int(part.scored.max()))

    def items_of(self, rows: IntArray, first: IntArray, count: int) -> IntArray:
        """Return the items that stand at ``first, first + 1, ...`` in these targets' orders."""
        orders = Orders(self.others[rows], self.keys[rows])
        index = (orders.draws if self.replacement else orders.positions)(first, count)
        return self.candidates.items_at(rows, index)

    def _compare(self, rows: IntArray, missing: IntArray, tally: Tally) -> tuple[IntArray, Tally]:
        """Compare targets with their next items; the target's own score comes in the same call.

        Scores of one pair may differ in their last bits between calls of different shapes, and
        a target must tie with its twin.
        """
        longest = int(missing.max())
        users, targets = self.candidates.users[rows], self.candidates.targets[rows]
        items = self.items_of(rows, tally.scored[rows], longest)
        inside = None
        if int(missing.min()) < longest:
            inside = np.arange(longest) < missing[:, None]
            items = np.where(inside, items, targets[:, None])  # asked in vain, to fill the block
        asked = np.concatenate([targets[:, None], items], axis=1)
        scores = as_scores(self.score(users, asked), asked.shape, users, items=asked)
        own = scores[:, :1]
        refuse_infinite_targets(own[:, 0], users, targets)
        better, equal = scores[:, 1:] > own, scores[:, 1:] == own
        if inside is not None:  # a filler may not even tie with its twin, if rounded elsewhere
            better &= inside
            equal &= inside
        row, column = np.nonzero(equal)
        lost = Orders(self.others[rows], self.keys[rows]).tie_is_lost(row, items[row, column])
        return rows, Tally(
            missing,
            np.count_nonzero(better, axis=1),
            np.bincount(row, minlength=len(rows)),
            np.bincount(row[lost], minlength=len(rows)),
            _infinite(scores),
        )

    def probe(self, targets: int, items: int) -> ScoreArray:
        """Return the scores of a few targets and of the first items they meet."""
        rows = np.unique(np.linspace(0, len(self.candidates) - 1, targets).astype(np.int64))
        first = self.items_of(rows, np.zeros(len(rows), dtype=np.int64), items)
        asked = np.concatenate([self.candidates.targets[rows][:, None], first], axis=1)
        users = self.candidates.users[rows]
        return as_scores(self.score(users, asked), asked.shape, users, items=asked)


def _infinite(scores: ScoreArray) -> IntArray:
    """Return how many scores of each row are infinite; one sum tells where to look at all."""
    if np.isfinite(scores.sum()):
        return np.zeros(len(scores), dtype=np.int64)
    return np.asarray(np.count_nonzero(np.isinf(scores), axis=1))


def _batches(rows: IntArray, missing: IntArray, pairs: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Cut targets into batches of about ``pairs`` scores, those that miss alike together."""
    order = np.argsort(-missing, kind="stable")
    rows, missing = rows[order], missing[order]
    start = 0
    while start < len(rows):
        longest = int(missing[start])
        alike = int(np.searchsorted(-missing, -_FILLED * longest, side="right"))
        stop = max(start + 1, min(start + pairs // (1 + longest), alike))
        yield rows[start:stop], missing[start:stop]
        start = stop


def _in_threads(
    work: Callable[[tuple[IntArray, IntArray]], tuple[IntArray, Tally]],
    jobs: Iterator[tuple[IntArray, IntArray]],
    workers: int,
) -> Iterator[tuple[IntArray, Tally]]:
    if workers == 1:
        yield from map(work, jobs)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(work, jobs)


def keyed_rank(
    better: IntArray, equal: IntArray, ties: str, place: npt.NDArray[np.float64]
) -> IntArray:
    """Return whole ranks from full counts; ``place`` says where among its ties a target stands."""
    if ties == "optimistic":
        return 1 + better
    if ties == "pessimistic":
        return 1 + better + equal
    return np.asarray(1 + better + np.floor(place * (equal + 1)).astype(np.int64))
