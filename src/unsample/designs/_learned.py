"""A guide that is learned during an evaluation, if nothing else is known about the items.

First, the targets of some users, drawn at random, are compared with items in random order: this is
the lesson. Items that beat these targets most often come first for all other targets. Like any
guide, this changes the cost of an evaluation, never its results. The users of the lesson depend on
the seed only, and the order depends on all their comparisons: not on batches, threads or
interruptions. The users who are ranked in full later are drawn by other random numbers.
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

#: How often each item is compared in a lesson, and the smallest number that is useful.
_TIMES, _LEAST_TIMES = 32, 4
#: The largest part of the budget for a lesson, or of a full ranking if there is no budget.
_OF_BUDGET, _OF_ALL = 0.1, 0.01
#: Without a budget, a target of the lesson is compared with this part of the catalogue.
_OF_CATALOGUE = 0.25
#: Each item gets this many further comparisons with the average rate.
_PRIOR = 2.0


@dataclass(eq=False)
class Lesson:
    """The users of a lesson and their items, and how often each item was compared and better."""

    candidates: Candidates
    keys: LongWords
    #: The users of the lesson, sorted, and the items that they are compared with, a row for each.
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
        """Return a lesson, or None if it would take too large a part of the ``allowed`` scores.

        At least ``needed`` of them must be left.
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
        # A key of the user only, and not the one that draws users to be ranked in full.
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
        """Return the orders during the lesson."""
        return self._orders(None)

    @property
    def learned(self) -> GuidedOrders:
        """Return the orders after the lesson."""
        average = self.better.sum() / max(int(self.met.sum()), 1)
        rate = (self.better + _PRIOR * average) / (self.met + _PRIOR)
        return self._orders(strongest_first(rate))

    @property
    def goal(self) -> IntArray:
        return self.orders.listed_others

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"lesson_met": self.met, "lesson_better": self.better}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.met[:], self.better[:] = (arrays[name] for name in self.arrays)

    def add(self, items: IntArray, better: BoolArray) -> None:
        """Count compared items, and those of them that beat a target."""
        met = as_index(items)
        self.met += np.bincount(met.reshape(-1), minlength=len(self.met))
        self.better += np.bincount(met[better], minlength=len(self.met))

    def _orders(self, order: IntArray | None) -> GuidedOrders:
        return GuidedOrders(self.candidates, self.keys, Guide(order, self.lists, self.teachers))
