"""Guides: which items are likely to be strong, and the order of items that follows from it.

A guide changes the cost of an evaluation, never its results. Items that it puts first come first,
then all other candidates, each once. A bad guide costs more.

A guide has a list of items for each user, which comes first, and an order of all items for the
rest. Both are optional. Without the order, the rest comes in a random order for each target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, as_index, as_integer_array
from unsample.designs._candidates import Candidates
from unsample.designs._orders import LongWords, Orders
from unsample.designs._scorers import Scorer, as_scorer
from unsample.errors import InputError, ScoreError

#: The longest list of a user. The order of all items follows.
_LONGEST_LIST = 1024
#: Scores of a guide in memory at a time.
_BLOCK = 1 << 21
#: Larger catalogues have a random order by default, because counts of all items take much memory.
_LARGEST_POPULARITY = 1 << 26
#: Fills short lists.
_NOBODY = -1
#: Items of lists that are compared at a time.
_CELLS = 1 << 22
_KINDS = (
    "a number for each item (the strongest has the largest), a cheap scorer as in evaluate "
    "(factors, a matrix of scores, an object with score_all), or a dict of user -> ranked items"
)


@dataclass(frozen=True, eq=False)
class Guide:
    """The items that come first; make one with `as_guide`."""

    #: All items, the strongest first; None for a random order for each target.
    order: IntArray | None = None
    #: Ranked items of some users, a row for each; -1 fills short rows.
    lists: npt.NDArray[np.integer[Any]] | None = None
    #: The users of these rows, sorted.
    listed: IntArray | None = None


@dataclass(frozen=True, eq=False)
class GuidedOrders:
    """The order of each target's candidates: the list of its user first, then the rest."""

    candidates: Candidates
    keys: LongWords
    guide: Guide

    def items(self, rows: IntArray, first: IntArray, count: int) -> IntArray:
        """Return items number ``first, first + 1, ...`` of some targets."""
        if self.listed is None:
            return self._rest(rows, first, count)
        row, size, own = (held[rows] for held in self.listed)
        offset = first[:, None] + np.arange(count)
        in_list = offset < size[:, None]
        found = np.empty(offset.shape, dtype=np.int64)
        if in_list.any():
            assert self.guide.lists is not None
            # The target itself is left out if it is on the list.
            place = offset + (offset >= own[:, None])
            place = np.minimum(place, self.guide.lists.shape[1] - 1)
            found = self.guide.lists[row[:, None], place].astype(np.int64)
        if in_list.all():
            return found
        rest = self._rest(rows, np.maximum(first - size, 0), count)
        column = np.maximum(np.arange(count) - np.maximum(size - first, 0)[:, None], 0)
        return np.where(in_list, found, np.take_along_axis(rest, column, axis=1))

    def _unlisted(self, rows: IntArray) -> tuple[Candidates, IntArray]:
        """Return some targets without the items on their lists, and the number of these items.

        Items are named by their places in the order of all items.
        """
        some, listed = self._relabelled.take(rows), self.listed
        if listed is None:
            return some, np.zeros(len(rows), dtype=np.int64)
        size = listed[1][rows]
        if size.any():
            assert self.guide.lists is not None
            # Only a few targets may have lists, and lists may be long.
            which = np.flatnonzero(size)
            lists = self.guide.lists[listed[0][rows[which]]]
            row, column = np.nonzero(lists != _NOBODY)
            items = lists[row, column]
            if self.guide.order is not None:
                items = self._place[items]
            some = _without(some, which[row], items)
        return some, size

    @cached_property
    def listed(self) -> tuple[IntArray, IntArray, IntArray] | None:
        """Return for each target: the row of its list, its number of other items, its own place."""
        lists, users = self.guide.lists, self.guide.listed
        if lists is None or users is None or not lists.size:
            return None
        row = np.minimum(np.searchsorted(users, self.candidates.users), len(users) - 1)
        size, own = np.zeros(len(row), dtype=np.int64), np.full(len(row), lists.shape[1])
        lengths = np.count_nonzero(lists != _NOBODY, axis=1)
        # Lists may be long, so only some of them are compared at a time.
        listed = np.flatnonzero(users[row] == self.candidates.users)
        step = max(1, _CELLS // lists.shape[1])
        for start in range(0, len(listed), step):
            here = listed[start : start + step]
            mine = lists[row[here]] == self.candidates.targets[here, None]
            size[here] = lengths[row[here]] - mine.any(axis=1)
            own[here] = np.where(mine.any(axis=1), np.argmax(mine, axis=1), lists.shape[1])
        return row, size, own

    def _rest(self, rows: IntArray, start: IntArray, count: int) -> IntArray:
        """Return candidates that are not on the list, from number ``start`` on."""
        some, size = self._unlisted(rows)
        # If all candidates are on the list, the result is not used.
        others = np.maximum(self.candidates.others[rows] - size, 1)
        if self.guide.order is None:
            return some.items_at(Orders(others, self.keys[rows]).positions(start, count))
        index = np.minimum(start[:, None] + np.arange(count), (others - 1)[:, None])
        found = np.minimum(some.items_at(index), self.candidates.items - 1)
        return self.guide.order.take(found)

    @cached_property
    def _relabelled(self) -> Candidates:
        """Return the candidates with items named by their places in the order of all items.

        Sorted by these names, the candidates of a target are in the order of the guide.
        """
        order, candidates = self.guide.order, self.candidates
        if order is None:
            return candidates
        exclude = candidates.exclude
        if exclude is not None:
            exclude = exclude.copy()
            exclude.indices = self._place[exclude.indices].astype(exclude.indices.dtype)
            exclude.has_sorted_indices = False
            exclude.sort_indices()
        return replace(candidates, targets=self._place[candidates.targets], exclude=exclude)

    @cached_property
    def _place(self) -> IntArray:
        assert self.guide.order is not None
        place = np.empty_like(self.guide.order)
        place[self.guide.order] = np.arange(len(place))
        return place


def _without(some: Candidates, row: IntArray, item: npt.NDArray[np.integer[Any]]) -> Candidates:
    """Return targets with further excluded pairs (row, item)."""
    from scipy.sparse import csr_array

    old_row, old = some.excluded
    pairs = np.concatenate([old_row, row]), np.concatenate([old, item])
    data = np.ones(len(pairs[0]), dtype=bool)
    exclude = csr_array((data, pairs), shape=(len(some), some.items))
    exclude.sum_duplicates()
    return Candidates(np.arange(len(some)), some.targets, some.items, exclude)


def as_guide(guide: Any, candidates: Candidates) -> Guide:
    """Return the guide that was given; by default the popularity of items in ``exclude``.

    Where nothing is excluded, the default is empty: each target meets items in its own random
    order.
    """
    popularity = _popularity(candidates)
    if guide is None:
        return Guide(popularity)
    if isinstance(guide, Guide):
        return guide
    if isinstance(guide, Mapping):
        return _of_lists(*_rows_of(guide), candidates, popularity)
    if isinstance(guide, str | bytes):
        raise InputError(f"guide must be {_KINDS}, got {guide!r}")
    if _is_vector(guide):
        return Guide(_strongest_first(_item_scores(guide, candidates.items)))
    try:
        scorer = as_scorer(guide, candidates.items)
    except InputError as problem:
        raise InputError(f"guide must be {_KINDS}, got one that is not: {problem}") from problem
    if not scorer.whole:
        raise InputError(
            f"guide must be {_KINDS}, got {type(guide).__name__}, which scores single pairs"
        )
    return _of_scores(scorer, candidates, popularity)


def _popularity(candidates: Candidates) -> IntArray | None:
    exclude = candidates.exclude
    if exclude is None or not exclude.nnz or candidates.items > _LARGEST_POPULARITY:
        return None
    return _strongest_first(np.bincount(as_index(exclude.indices), minlength=candidates.items))


def _strongest_first(scores: npt.NDArray[Any]) -> IntArray:
    return np.argsort(-scores.astype(np.float64), kind="stable")


def _is_vector(guide: Any) -> bool:
    plain = isinstance(guide, list | tuple) and all(np.ndim(each) == 0 for each in guide)
    return plain or getattr(guide, "ndim", None) == 1


def _item_scores(guide: Any, items: int) -> npt.NDArray[Any]:
    scores = np.asarray(guide)
    if len(scores) != items:
        raise InputError(
            f"guide must have a number for each of the {items:,} items, got {len(scores):,}"
        )
    if not (np.issubdtype(scores.dtype, np.number) or scores.dtype == np.bool_):
        raise InputError(f"guide must hold numbers, got values of type {scores.dtype}")
    bad = np.isnan(scores.astype(np.float64))
    if bad.any():
        raise InputError(
            f"guide must not be NaN, got {int(bad.sum())} NaN, the first for item "
            f"{int(np.argmax(bad))}; give unknown items the lowest number"
        )
    return scores


def _of_scores(scorer: Scorer, candidates: Candidates, order: IntArray | None) -> Guide:
    """Return a guide with the strongest items of each user, without excluded ones."""
    users, items = np.unique(candidates.users), candidates.items
    length = min(items, _LONGEST_LIST)
    lists = np.empty((len(users), length), dtype=np.int64)
    step = max(1, _BLOCK // items)
    for start in range(0, len(users), step):
        some = users[start : start + step]
        try:
            values = scorer.rows(some, items).astype(np.float64)
        except (ScoreError, IndexError) as problem:
            raise InputError(f"guide must score every user and item, but: {problem}") from problem
        if candidates.exclude is not None:
            excluded = candidates.exclude[some].tocoo()
            values[excluded.coords[0], excluded.coords[1]] = -np.inf
        best = np.argpartition(-values, length - 1, axis=1)[:, :length]
        # Items with equal scores are in the order of their ids.
        best.sort(axis=1)
        ranked = np.argsort(-np.take_along_axis(values, best, axis=1), axis=1, kind="stable")
        lists[start : start + step] = np.take_along_axis(best, ranked, axis=1)
    return _of_lists(users, lists, candidates, order)


def _rows_of(lists: Mapping[Any, Any]) -> tuple[IntArray, IntArray]:
    """Return sorted users, and their lists in one matrix."""
    if not lists or not all(isinstance(user, int | np.integer) for user in lists):
        raise InputError(
            "guide must be a dict of user -> ranked items with users as zero-based integers, got "
            f"{repr(next(iter(lists))) if lists else 'an empty one'}"
        )
    users = sorted(lists)
    hint = "items are zero-based integers, the strongest first"
    rows = [as_integer_array("guide", lists[user], hint=hint)[:_LONGEST_LIST] for user in users]
    matrix = np.full((len(rows), max(map(len, rows))), _NOBODY, dtype=np.int64)
    for number, row in enumerate(rows):
        if len(row) and row.min() < 0:
            raise InputError(f"guide must hold items from 0 on, got {int(row.min())}")
        matrix[number, : len(row)] = row
    return np.array(users, dtype=np.int64), matrix


def _of_lists(
    users: IntArray, lists: IntArray, candidates: Candidates, order: IntArray | None
) -> Guide:
    """Return a guide of lists without excluded and repeated items; refuse unknown items."""
    asked = np.isin(users, candidates.users)
    users, lists = users[asked], lists[asked]
    unknown = lists >= candidates.items
    if unknown.any():
        row, column = np.argwhere(unknown)[0]
        raise InputError(
            f"guide must hold items in 0..{candidates.items - 1}, got {int(lists[row, column])} "
            f"for user {int(users[row])} ({int(unknown.sum())} such items)"
        )
    pair = np.arange(len(users), dtype=np.int64)[:, None] * candidates.items + lists
    dropped = lists == _NOBODY
    repeated = np.ones(pair.size, dtype=bool)
    repeated[np.unique(pair, return_index=True)[1]] = False
    dropped |= repeated.reshape(pair.shape)
    if candidates.exclude is not None:
        some = candidates.exclude[users].tocoo()
        row = some.coords[0].astype(np.int64)
        dropped |= np.isin(pair, row * candidates.items + some.coords[1])
    # The items of each row come first, then its gaps.
    order_of = np.argsort(dropped, axis=1, kind="stable")[:, :_LONGEST_LIST]
    kept = np.take_along_axis(np.where(dropped, _NOBODY, lists), order_of, axis=1)
    small = np.int32 if candidates.items <= np.iinfo(np.int32).max else np.int64
    return Guide(order, kept.astype(small), users)
