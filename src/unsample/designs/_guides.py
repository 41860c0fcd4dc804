"""Guides: which items are likely to be strong, and the order of items that follows from it.

A guide says in which order candidates are compared with a target; each comes once. In an exact or
certified evaluation it changes the cost and no result. In a guided one it also changes which users
are drawn, so estimates differ between guides, each within its interval. A bad guide costs more.

A guide has an order of all items, or a list of the strongest items of each user, which comes before
that order. Without an order, items come in a random order for each target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, IntArray, as_index
from unsample._threads import cached_property
from unsample.designs._item_orders import LongWords, draws, positions
from unsample.errors import InputError, ScoreError
from unsample.scoring import Candidates, Scorer, as_scorer

#: The longest list of a user.
_LONGEST_LIST = 1024
#: Scores of a guide in memory at a time.
_BLOCK = 1 << 21
#: Lists that are compared with their targets at a time.
_ROWS = 1 << 12
_KINDS = (
    "a number for each item (the strongest has the largest), or a cheap scorer as in evaluate "
    "(factors, a matrix of scores, an object with score_all)"
)


@dataclass(frozen=True, eq=False)
class Guide:
    """The items that come first; make one with `as_guide`."""

    #: All items, the strongest first; None for a random order for each target.
    order: IntArray | None = None
    #: The strongest candidates of each user that has targets, a row for each user; then -1.
    lists: npt.NDArray[np.int32] | None = None


@dataclass(frozen=True, eq=False)
class Orders:
    """The order of each target's candidates: the list of its user first, then the rest.

    Or a random sample of them with ``replacement``, but of targets ``in_full`` each once.
    """

    candidates: Candidates
    #: Random numbers of each target, from `target_keys`.
    keys: LongWords
    guide: Guide
    replacement: bool = False
    #: The seed of the keys, by which ties are broken as well.
    seed: int = 0
    #: Which targets are ranked in full beside samples of the others, if any are.
    in_full: BoolArray | None = None

    def items(self, rows: IntArray, first: IntArray, *, count: int) -> IntArray:
        """Return items number ``first, first + 1, ...`` of some targets, a row for each."""
        if self.replacement:
            return self._drawn(rows, first, count=count)
        if self.guide.lists is None:
            return self._rest_from(rows, first, count=count)
        return self._listed(self.guide.lists, rows, first=first, count=count)

    def _drawn(self, rows: IntArray, first: IntArray, *, count: int) -> IntArray:
        """Return a random sample of candidates, but of targets ``in_full`` each once."""
        some = self.candidates.take(rows)
        position = draws(some.others, self.keys[rows], first=first, count=count)
        if self.in_full is not None:
            in_turn = np.minimum(first[:, None] + np.arange(count), some.others[:, None] - 1)
            position = np.where(self.in_full[rows][:, None], in_turn, position)
        return some.items_at(position)

    def _listed(
        self, lists: npt.NDArray[np.int32], rows: IntArray, *, first: IntArray, count: int
    ) -> IntArray:
        """Return items of the list of each target's user, and then those that are not on it."""
        row, own_column, size = (array[rows] for array in self._in_lists)
        offset = first[:, None] + np.arange(count)
        in_list = offset < size[:, None]
        # The target itself is left out if it is on the list.
        column = np.minimum(offset + (offset >= own_column[:, None]), lists.shape[1] - 1)
        listed: IntArray = lists[row[:, None], column].astype(np.int64)
        if in_list.all():
            return listed
        rest = self._rest_from(rows, np.maximum(first - size, 0), count=count)
        still_listed = np.maximum(size - first, 0)
        column = np.maximum(np.arange(count) - still_listed[:, None], 0)
        return np.where(in_list, listed, np.take_along_axis(rest, column, axis=1))

    @cached_property
    def _in_lists(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the row of each target's list, its column there, and the number of others."""
        assert self.guide.lists is not None
        row = np.unique(self.candidates.users, return_inverse=True)[1].reshape(-1)
        # A target that is not on the list has a column beyond it.
        own_column = np.full(len(row), self.guide.lists.shape[1])
        for here, part in self.candidates.parts(_ROWS):
            target, column = np.nonzero(self.guide.lists[row[here]] == part.targets[:, None])
            own_column[here.start + target] = column
        return row, own_column, self.candidates.others - self._rest.others

    def _rest_from(self, rows: IntArray, start: IntArray, *, count: int) -> IntArray:
        """Return candidates that are not on the list, from number ``start`` on."""
        some = self._rest.take(rows)
        order = self.guide.order
        # If all candidates are on the list, the result is not used.
        others = np.maximum(some.others, 1)
        if order is None:
            return some.items_at(positions(others, self.keys[rows], first=start, count=count))
        index = np.minimum(start[:, None] + np.arange(count), (others - 1)[:, None])
        return order.take(np.minimum(some.items_at(index), some.items - 1))

    @cached_property
    def _rest(self) -> Candidates:
        """Return the candidates that are on no list, numbered in the guide's order.

        Sorted by these numbers, the candidates of a target are in the order of the guide.
        """
        rest = self.candidates
        if self.guide.lists is not None:
            row, column = np.nonzero(self.guide.lists >= 0)
            listed = self.guide.lists[row, column].astype(np.int64)
            rest = rest.without(np.unique(rest.users)[row], listed)
        if self.guide.order is not None:
            number = np.argsort(self.guide.order)
            exclude = rest.exclude
            if exclude is not None:
                exclude = exclude.copy()
                exclude.indices = number[exclude.indices].astype(exclude.indices.dtype)
                exclude.has_sorted_indices = False
                exclude.sort_indices()
            rest = replace(rest, targets=number[rest.targets], exclude=exclude)
        _ = rest.others  # counted once, for all parts
        return rest


def as_guide(guide: Any, candidates: Candidates) -> Guide:
    """Return the guide that was given; by default the popularity of items in ``exclude``.

    Where nothing is excluded, the default is empty: each target is compared with items in its own
    random order.
    """
    exclude = candidates.exclude
    popularity = None
    if exclude is not None and exclude.nnz:
        count = np.bincount(as_index(exclude.indices), minlength=candidates.items)
        popularity = _strongest_first(count)
    if guide is None:
        return Guide(popularity)
    plain = isinstance(guide, list | tuple) and all(np.ndim(value) == 0 for value in guide)
    if plain or getattr(guide, "ndim", None) == 1:
        return Guide(_strongest_first(_item_scores(guide, candidates.items)))
    try:
        scorer = as_scorer(guide, candidates.items)
    except InputError as problem:
        raise InputError(f"guide must be {_KINDS}, got one that is not: {problem}") from problem
    if not scorer.whole:
        raise InputError(
            f"guide must be {_KINDS}, got {type(guide).__name__}, which scores single pairs"
        )
    return Guide(popularity, _lists_of(scorer, candidates))


def _strongest_first(scores: npt.NDArray[Any]) -> IntArray:
    return np.argsort(-scores.astype(np.float64), kind="stable")


def _item_scores(guide: Any, items: int) -> npt.NDArray[Any]:
    scores = np.asarray(guide)
    if len(scores) != items or scores.dtype.kind not in "fiub":
        raise InputError(
            f"guide must have a number for each of the {items:,} items, got {len(scores):,} values "
            f"of type {scores.dtype}"
        )
    bad = np.isnan(scores)
    if bad.any():
        raise InputError(
            f"guide must not be NaN, got {int(bad.sum())} NaN, the first for item "
            f"{int(np.argmax(bad))}; give unknown items the lowest number"
        )
    return scores


def _lists_of(scorer: Scorer, candidates: Candidates) -> npt.NDArray[np.int32]:
    """Return the strongest candidates of each user."""
    users = np.unique(candidates.users)
    items = candidates.items
    width = min(items, _LONGEST_LIST)
    lists = np.empty((len(users), width), dtype=np.int32)
    step = max(1, _BLOCK // items)
    for start in range(0, len(users), step):
        here = slice(start, start + step)
        try:
            values = scorer.rows(users[here], items).astype(np.float64)
        except (ScoreError, IndexError) as problem:
            raise InputError(f"guide must score every user and item, but: {problem}") from problem
        np.maximum(values, np.finfo(np.float64).min, out=values)
        if candidates.exclude is not None:
            values[candidates.exclude[users[here]].nonzero()] = -np.inf
        best = np.argpartition(-values, width - 1, axis=1)[:, :width]
        best.sort(axis=1)  # items with equal scores are in the order of their ids
        strength = np.take_along_axis(values, best, axis=1)
        best[np.isneginf(strength)] = -1
        ranked = np.argsort(-strength, axis=1, kind="stable")
        lists[here] = np.take_along_axis(best, ranked, axis=1)
    return lists
