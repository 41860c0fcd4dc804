"""A guide that is learned on the way, where nothing else is known of the items.

Some users, drawn at random, first meet items in random order. Which items beat their targets there,
and how often, gives the order in which all others meet theirs (and these users what is left). Like
any guide it changes what an evaluation costs, and never what is found. Who teaches depends on the
seed alone, and the order on all that they met: on no batch, number of threads or interruption.
Who is ranked in full later is drawn by other random numbers, so that nothing hangs on the lesson.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, IntArray, as_index
from unsample.designs._guides import LARGEST_POPULARITY, Guide, GuidedOrders, strongest_first
from unsample.designs._orders import LongWords, Orders, target_keys
from unsample.designs._scan import Candidates

#: How often each item should be met in a lesson, and below what number it teaches nothing.
_TIMES, _LEAST_TIMES = 32, 4
#: The part of a budget that a lesson may take, or of a full ranking where there is no budget.
_OF_BUDGET, _OF_ALL = 0.1, 0.01
#: Without a budget, a target that teaches meets this part of the catalogue.
_OF_CATALOGUE = 0.25
#: Items count as if each had met so many targets more, and beaten as many of them as the average.
_PRIOR = 2.0


@dataclass(eq=False)
class Lesson:
    """Who teaches, which items they meet, and how often each item was met and was better."""

    candidates: Candidates
    keys: LongWords
    #: The users who teach, sorted, and the items that they meet, a row for each.
    teachers: IntArray
    lists: IntArray
    met: IntArray = field(init=False)
    better: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.met, self.better = (np.zeros(self.candidates.items, dtype=np.int64) for _ in range(2))

    @classmethod
    def of(
        cls, candidates: Candidates, keys: LongWords, seed: int, allowed: int | None, needed: int
    ) -> Lesson | None:
        """Return a lesson, if it can be had for a small part of what may be ``allowed``.

        ``needed`` is what must be left of it.
        """
        items, others = candidates.items, candidates.others
        if items > LARGEST_POPULARITY:
            return None
        if allowed is None:
            most, each = _OF_ALL * float(others.sum()), _OF_CATALOGUE * items
        else:
            most = min(_OF_BUDGET * allowed, allowed - needed)
            each = allowed / len(others)
        each = int(min(max(each, 1.0), others.min()))
        targets = int(min(most, _TIMES * items) // each)
        if targets * each < _LEAST_TIMES * items:
            return None
        users, count = np.unique(candidates.users, return_counts=True)
        # A key of the user alone, and another one than that of the draw.
        order = np.argsort(target_keys(seed, users, np.full(len(users), items + 1)), kind="stable")
        chosen = np.sort(order[np.cumsum(count[order]) <= targets])
        if not len(chosen):
            return None
        words = target_keys(seed, users[chosen], np.full(len(chosen), items + 2))
        first = np.zeros(len(chosen), dtype=np.int64)
        lists = Orders(np.full(len(chosen), items), words).positions(first, each)
        return cls(candidates, keys, users[chosen], lists)

    @property
    def orders(self) -> GuidedOrders:
        """Return the orders that targets have, as far as they have one yet."""
        return self._orders(None)

    @property
    def learned(self) -> GuidedOrders:
        """Return the orders that targets have after the lesson."""
        average = self.better.sum() / max(int(self.met.sum()), 1)
        rate = (self.better + _PRIOR * average) / (self.met + _PRIOR)
        return self._orders(strongest_first(rate))

    @property
    def goal(self) -> IntArray:
        """Return how many items each target meets in the lesson."""
        return self.orders.listed_others

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learned so far, by name."""
        return {"lesson_met": self.met, "lesson_better": self.better}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on with what was written down."""
        self.met[:], self.better[:] = (arrays[name] for name in self.arrays)

    def add(self, items: IntArray, better: BoolArray) -> None:
        """Count items that were met, and those of them that beat a target."""
        met = as_index(items)
        self.met += np.bincount(met.reshape(-1), minlength=len(self.met))
        self.better += np.bincount(met[better], minlength=len(self.met))

    def _orders(self, order: IntArray | None) -> GuidedOrders:
        return GuidedOrders(self.candidates, self.keys, Guide(order, self.lists, self.teachers))
