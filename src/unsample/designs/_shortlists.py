"""The scores of one model as a guide for the next model: the strongest scored items of each user.

This takes no further scores. Items that are strong for one model are likely strong for another, so
items that beat a target come early.

Lists are closed when users are drawn to be ranked in full. After that, most scores are those of the
drawn users, and models with one seed draw the same users first. If lists held these scores, the
next model would have better lists for exactly the users that it draws. They would no longer stand
for the others, and estimates would be biased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray
from unsample.designs._guides import NOBODY, Guide, guide_of_lists
from unsample.designs._scan import Candidates

#: Items on the list of each user.
_LENGTH = 128


@dataclass(eq=False)
class Shortlists:
    """The strongest scored items of each user, the strongest first; -1 fills short rows."""

    #: Sorted.
    users: IntArray
    items: IntArray
    scores: FloatArray
    open: bool = True
    _lock: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def empty(cls, candidates: Candidates) -> Self:
        users = np.unique(candidates.users)
        shape = (len(users), min(_LENGTH, candidates.items))
        return cls(users, np.full(shape, NOBODY), np.full(shape, -np.inf))

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"short_items": self.items, "short_scores": self.scores}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], *, drawn: bool) -> None:
        """Continue with saved lists; ``drawn`` says whether users were drawn before."""
        self.items[:], self.scores[:] = (arrays[name] for name in self.arrays)
        self.open = not drawn

    def note(self, users: IntArray, items: IntArray, scores: npt.NDArray[np.floating[Any]]) -> None:
        """Put strong items on the lists of their users.

        The order of calls does not matter: of items with equal scores, the lower one comes first.
        """
        if not self.open:
            return
        with self._lock:
            row = np.searchsorted(self.users, users)
            strong = (scores >= self.scores[row, -1][:, None]) & (scores > -np.inf)
            new_row, column = np.nonzero(strong)
            touched = np.unique(row[new_row])
            known_row, known = np.nonzero(self.items[touched] != NOBODY)
            known_row = touched[known_row]
            whose = np.concatenate([known_row, row[new_row]])
            which = np.concatenate([self.items[known_row, known], items[new_row, column]])
            score = np.concatenate([self.scores[known_row, known], scores[new_row, column]])
            self._rewrite(touched, whose, which, score)

    def _rewrite(self, rows: IntArray, whose: IntArray, which: IntArray, score: FloatArray) -> None:
        """Keep the strongest items of some users, each once."""
        order = np.lexsort([which, -score, whose])
        whose, which, score = whose[order], which[order], score[order]
        first = np.lexsort([np.arange(len(which)), which, whose])
        again = np.zeros(len(which), dtype=bool)
        again[first[1:]] = (np.diff(whose[first]) == 0) & (np.diff(which[first]) == 0)
        whose, which, score = whose[~again], which[~again], score[~again]
        place = np.arange(len(whose)) - np.searchsorted(whose, whose)
        kept = place < self.items.shape[1]
        self.items[rows], self.scores[rows] = NOBODY, -np.inf
        self.items[whose[kept], place[kept]] = which[kept]
        self.scores[whose[kept], place[kept]] = score[kept]


def led_by(guide: Guide, lists: Sequence[Shortlists], candidates: Candidates) -> Guide:
    """Return a guide that begins with the lists of other models, one item of each in turn."""
    if not lists:
        return guide
    users = lists[0].users
    turns = np.stack([each.items for each in lists], axis=2).reshape(len(users), -1)
    if guide.lists is not None and guide.listed is not None:
        own = np.full((len(users), guide.lists.shape[1]), NOBODY)
        own[np.searchsorted(users, guide.listed)] = guide.lists
        turns = np.hstack([turns, own])
    return guide_of_lists(users, turns, candidates, guide.order)
