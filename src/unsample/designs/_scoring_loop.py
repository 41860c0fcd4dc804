"""Comparing targets with more and more of their candidates, each target in its own order.

A `ScoringLoop` takes the items of each target in an order that depends on the seed, the user and
the target only, and counts. Its caller says how far each target goes. Counts depend on the seed and
the scores only: not on other targets, batches, threads or interruptions.

Several models share one loop: row ``m * targets + t`` is target t under model m, and every model
compares a target with the same items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, FloatArray, IntArray, as_index
from unsample._threads import in_threads
from unsample.counts import tie_position
from unsample.designs._guides import Orders
from unsample.designs._item_orders import tie_is_lost
from unsample.errors import UnsampleError
from unsample.scoring import Candidates, ScoreArray, Scorer, refuse_infinite_targets

#: What is counted of a target, and its own score.
_ROW = np.dtype(
    [
        ("scored", np.int64),
        ("better", np.int64),
        ("equal", np.int64),
        ("lost_ties", np.int64),
        ("own", np.float64),
    ]
)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many items each target was compared with, and the results.

    One array has a row for each target, and rows change by one assignment. So an interruption, such
    as Ctrl-C, comes before or after a change, and the table can be saved and continued.

    >>> tally = Tally.of(scored=[9, 9], better=[2, 0], equal=[1, 3])
    >>> tally.add(np.array([1]), Tally.of(scored=[10], better=[4], equal=[0]))
    >>> tally.scored.tolist(), tally.beaten("optimistic").tolist()
    ([9, 19], [2, 4])
    """

    table: npt.NDArray[np.void]

    #: The columns, as they are saved.
    columns: ClassVar[tuple[str, ...]] = _ROW.names or ()

    @classmethod
    def of(cls, **columns: npt.ArrayLike) -> Tally:
        """Return a tally with these columns; those left out are 0, and scores are not known."""
        table = np.zeros(len(np.asarray(columns["scored"])), dtype=_ROW)
        table["own"] = np.nan
        for name, values in columns.items():
            table[name] = values
        return cls(table)

    @classmethod
    def empty(cls, targets: int) -> Tally:
        return cls.of(scored=np.zeros(targets, dtype=np.int64))

    @property
    def scored(self) -> IntArray:
        """With how many items each target was compared."""
        return self.table["scored"]

    @property
    def better(self) -> IntArray:
        """How many of them have a higher score."""
        return self.table["better"]

    @property
    def equal(self) -> IntArray:
        """How many of them have the same score."""
        return self.table["equal"]

    @property
    def lost_ties(self) -> IntArray:
        """How many of the equal items are above the target at random, where draws repeat items."""
        return self.table["lost_ties"]

    @property
    def own(self) -> FloatArray:
        """The target's own score; NaN until it is asked for, together with its first items."""
        return self.table["own"]

    def beaten(self, ties: str) -> IntArray:
        """Return how many items are above each target under a tie rule."""
        if ties == "optimistic":
            return self.better
        return self.better + (self.lost_ties if ties == "random" else self.equal)

    def add(self, rows: IntArray, part: Tally) -> None:
        """Add the results of some targets, all of them or, if it is interrupted, none."""
        changed = self.table[rows]
        for name in self.columns[:-1]:
            changed[name] += part.table[name]
        changed["own"] = part.own
        self.table[rows] = changed

    def take(self, rows: slice) -> Tally:
        """Return the tally of some targets."""
        return Tally(self.table[rows])


@dataclass(frozen=True, eq=False)
class ScoringLoop:
    """Models, targets, and the orders in which these are compared with their candidates."""

    scorers: Sequence[Scorer]
    orders: Orders
    #: The names of the models, for messages; none if there is only one.
    names: Sequence[str] = ()

    @property
    def candidates(self) -> Candidates:
        return self.orders.candidates

    def advance(self, tally: Tally, goal: IntArray, *, batch: int, workers: int) -> Iterator[None]:
        """Compare every target with items up to number ``goal``; add the results to ``tally``.

        The target's own score is asked for once, together with its first items. Yields after each
        call of the scorer, when its scores are counted.
        """
        while (rows := np.flatnonzero(tally.scored < goal)).size:
            missing = np.minimum(goal - tally.scored, batch)
            compare = partial(self._compare, missing, tally)
            jobs = self._batches(rows, missing, batch=batch)
            for done, part in in_threads(compare, jobs, workers=workers):
                tally.add(done, part)
                yield

    def own_scores(self, rows: IntArray) -> FloatArray:
        """Return the scores of targets, under the model of each row."""
        size = len(self.candidates)
        scores = np.empty(len(rows))
        for model, scorer in enumerate(self.scorers):
            mine = rows // size == model
            some = self.candidates.take(rows[mine] % size)
            if len(some):
                with self.naming(model):
                    scores[mine] = scorer.pairs(some.users, some.targets)
        return scores

    def _batches(self, rows: IntArray, missing: IntArray, *, batch: int) -> Iterator[IntArray]:
        """Yield rows of one model for which at most ``batch`` items are compared.

        Longest first, so that rows of one batch have about the same length.
        """
        model_of = rows // len(self.candidates)
        order = np.lexsort([-missing[rows], model_of])
        rows = rows[order]
        model_of = model_of[order]
        first = 0
        while first < len(rows):
            longest = int(missing[rows[first]]) + 1
            max_rows = max(1, batch // longest)
            end_of_model = int(np.searchsorted(model_of, model_of[first], side="right"))
            last = min(first + max_rows, end_of_model)
            yield rows[first:last]
            first = last

    def _compare(self, missing: IntArray, tally: Tally, rows: IntArray) -> tuple[IntArray, Tally]:
        """Compare targets of one model with the items that are missing."""
        model = int(rows[0]) // len(self.candidates)
        targets = rows % len(self.candidates)
        count = missing[rows]
        items = self._next_items(targets, tally.scored[rows], count=count)
        # The number of the target, among these, that each of the items is compared with.
        row = np.repeat(np.arange(len(rows)), as_index(count))
        own, scores = self._scores(model, targets, items=items, row=row, known=tally.own[rows])
        rival = own.astype(scores.dtype)  # comparing numbers of one type takes half the time
        rival = (rival if np.array_equal(rival, own) else own)[row]
        tied = np.flatnonzero(scores == rival)
        lost = tied[self._above_ties(targets[row[tied]], items[tied])]
        starts = as_index(np.cumsum(count) - count)
        part = Tally.of(
            scored=count,
            better=np.add.reduceat(scores > rival, starts, dtype=np.int64),
            equal=np.bincount(row[tied], minlength=len(rows)),
            lost_ties=np.bincount(row[lost], minlength=len(rows)),
            own=own,
        )
        return rows, part

    def _next_items(self, targets: IntArray, scored: IntArray, *, count: IntArray) -> IntArray:
        """Return the next items of each target, one target after the other."""
        width = int(count.max())
        table = self.orders.items(targets, scored, count=width)
        return table[np.arange(width) < count[:, None]]

    def _scores(
        self, model: int, targets: IntArray, *, items: IntArray, row: IntArray, known: FloatArray
    ) -> tuple[FloatArray, ScoreArray]:
        """Return the targets' own scores and the scores of the items, by one call of the scorer.

        Own scores that are ``known`` are not asked for again.
        """
        some = self.candidates.take(targets)
        fresh = np.flatnonzero(np.isnan(known))
        asked = np.concatenate([fresh, row])
        wanted = np.concatenate([some.targets[fresh], items])
        with self.naming(model):
            scores = self.scorers[model].pairs(some.users[asked], wanted)
            own = known.copy()
            own[fresh] = scores[: len(fresh)]
            refuse_infinite_targets(own[fresh], some.users[fresh], targets=some.targets[fresh])
        return own, scores[len(fresh) :]

    def _above_ties(self, targets: IntArray, items: IntArray) -> BoolArray:
        """Return which tied items are above their targets, where draws repeat items.

        In other draws only the number of tied items matters.
        """
        if not self.orders.replacement:
            return np.zeros(len(items), dtype=bool)
        distinct, index = np.unique(targets, return_inverse=True)
        here = self.candidates.take(distinct)
        position = tie_position(self.orders.seed, here.users, targets=here.targets)
        probability = position[index.reshape(-1)]
        return tie_is_lost(self.orders.keys[targets], items, probability=probability)

    @contextmanager
    def naming(self, model: int) -> Iterator[None]:
        """Add the name of the model to errors about it."""
        try:
            yield
        except UnsampleError as problem:
            if not self.names:
                raise
            raise type(problem)(f"{problem} (model {self.names[model]!r})") from problem
