"""Comparing targets with more and more of their candidates, each target in its own order.

A `Scan` takes the items of each target in an order that depends on the seed, the user and the
target only, and counts. Its caller says how far each target goes. Counts depend on the seed and on
the scores only: not on other targets, batches, threads or interruptions.

Several models are one scan: row ``m * targets + t`` is target t under model m, and every model
compares a target with the same items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from unsample._checks import FloatArray, IntArray, as_index
from unsample._threads import in_threads
from unsample.designs._candidates import Candidates
from unsample.designs._guides import Orders
from unsample.designs._orders import tie_is_lost
from unsample.designs._scorers import Scorer, refuse_infinite_targets
from unsample.errors import UnsampleError


@dataclass(frozen=True, eq=False)
class Tally:
    """How many items each target was compared with, and the results."""

    scored: IntArray
    better: IntArray
    equal: IntArray
    #: How many of the equal items are above the target when ties are broken at random.
    lost_ties: IntArray
    #: The target's own score; NaN until it is asked for, together with its first items.
    own: FloatArray

    @classmethod
    def empty(cls, targets: int) -> Tally:
        counts = {each.name: np.zeros(targets, dtype=np.int64) for each in fields(cls)}
        return cls(**counts | {"own": np.full(targets, np.nan)})

    def beaten(self, ties: str) -> IntArray:
        """Return how many items are above each target under a tie rule."""
        if ties == "optimistic":
            return self.better
        return self.better + (self.lost_ties if ties == "random" else self.equal)

    def add(self, rows: IntArray, part: Tally) -> None:
        """Add the results of some targets."""
        for field in fields(self)[:-1]:
            getattr(self, field.name)[rows] += getattr(part, field.name)
        self.own[rows] = part.own

    def take(self, rows: slice) -> Tally:
        return Tally(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Scan:
    """Models, targets, and the orders in which these are compared with their candidates."""

    scorers: Sequence[Scorer]
    orders: Orders
    #: The names of the models, for messages; none if there is only one.
    names: Sequence[str] = ()

    @property
    def candidates(self) -> Candidates:
        return self.orders.candidates

    def advance(self, tally: Tally, goal: IntArray, batch: int, workers: int) -> Iterator[None]:
        """Compare every target with items up to number ``goal``; add the results to ``tally``.

        The target's own score is asked for once, together with its first items. Yields after each
        call of the scorer, when its scores are counted.
        """
        while (rows := np.flatnonzero(tally.scored < goal)).size:
            missing = np.minimum(goal - tally.scored, batch)
            compare = partial(self._compare, missing, tally)
            jobs = self._batches(rows, missing, batch)
            for done, part in in_threads(compare, jobs, workers):
                tally.add(done, part)
                yield

    def own_scores(self, rows: IntArray) -> FloatArray:
        """Return the scores of targets, under the model of each row."""
        found = np.empty(len(rows))
        for model, scorer in enumerate(self.scorers):
            mine = rows // len(self.candidates) == model
            some = self.candidates.take(rows[mine] % len(self.candidates))
            if len(some):
                with self.naming(model):
                    found[mine] = scorer.pairs(some.users, some.targets)
        return found

    def _batches(self, rows: IntArray, missing: IntArray, batch: int) -> Iterator[IntArray]:
        """Yield rows of one model for which at most ``batch`` items are compared.

        Longest first, so that rows of one batch have about the same length.
        """
        order = rows[np.lexsort([-missing[rows], rows // len(self.candidates)])]
        first = 0
        while first < len(order):
            most = max(1, batch // (int(missing[order[first]]) + 1))
            model = order[first] // len(self.candidates)
            last = int(np.searchsorted(order // len(self.candidates), model, side="right"))
            yield order[first : min(first + most, last)]
            first = min(first + most, last)

    def _compare(self, missing: IntArray, tally: Tally, rows: IntArray) -> tuple[IntArray, Tally]:
        """Compare rows of one model with the items that they miss."""
        count = missing[rows]
        model, targets = int(rows[0]) // len(self.candidates), rows % len(self.candidates)
        some, scored, own = self.candidates.take(targets), tally.scored[rows], tally.own[rows]
        width = int(count.max())
        table = self.orders.items(targets, scored, width)
        items = table[np.arange(width) < count[:, None]]
        row = np.repeat(np.arange(len(rows)), as_index(count))
        fresh = np.flatnonzero(np.isnan(own))
        asked = np.concatenate([fresh, row])
        wanted = np.concatenate([some.targets[fresh], items])
        with self.naming(model):
            scores = self.scorers[model].pairs(some.users[asked], wanted)
            own[fresh], scores = scores[: len(fresh)], scores[len(fresh) :]
            refuse_infinite_targets(own[fresh], some.users[fresh], some.targets[fresh])
        rival = own.astype(scores.dtype)  # comparing numbers of one type takes half the time
        rival = (rival if np.array_equal(rival, own) else own)[row]
        tied = np.flatnonzero(scores == rival)
        lost = tie_is_lost(self.orders.keys[targets[row[tied]]], items[tied])
        starts = as_index(np.cumsum(count) - count)
        better = np.add.reduceat(scores > rival, starts, dtype=np.int64)
        equal, lost_ties = (
            np.bincount(row[each], minlength=len(rows)) for each in (tied, tied[lost])
        )
        return rows, Tally(count, better, equal, lost_ties, own)

    @contextmanager
    def naming(self, model: int) -> Iterator[None]:
        """Add the name of the model to errors about it."""
        try:
            yield
        except UnsampleError as problem:
            if not self.names:
                raise
            raise type(problem)(f"{problem} (model {self.names[model]!r})") from problem
