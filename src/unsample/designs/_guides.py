"""Guides: which items are likely to be strong, and the order of items that follows from it.

A guide changes the cost of an evaluation, never its results. Items that it puts first come first,
then all other candidates, each once. A bad guide costs more.

A guide has a list of items for each user, which comes first, and an order of all items for the
rest. Both are optional. Without the order, the rest comes in a random order for each target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, as_index
from unsample.designs._orders import LongWords, Orders
from unsample.designs._scan import Candidates
from unsample.designs._scorers import FactorScores, Scorer, as_matrix
from unsample.errors import InputError

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
    "one score for each item, a pair (user factors, item factors), a function users -> scores of "
    "all items, a dict of user -> ranked items, a matrix of ranked items with a row for each "
    "user, or a recommender with score_all"
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

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        held = {"guide": self.order, "lists": self.lists, "listed": self.listed}
        return {name: array for name, array in held.items() if array is not None}


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
        last = int(start.max(initial=0)) + count
        if last <= others.min(initial=last):
            return self.guide.order.take(some.items_from(start, count))
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
    """Return the given guide; by default items are ordered by how many users exclude them.

    Users exclude items of the training data, so these are the popular items. If nothing is
    excluded, the guide is empty: each target meets items in its own random order.
    """
    popularity = _popularity(candidates)
    if guide is None:
        return Guide(popularity)
    if isinstance(guide, Guide):
        return guide
    if isinstance(guide, Mapping):
        return _guide_of_lists(*_rows_of(guide), candidates, popularity)
    scores = _score_function(guide, candidates)
    if scores is not None:
        return _of_scores(scores, candidates, popularity)
    values = _as_array(guide)
    if values.ndim == 2 and np.issubdtype(values.dtype, np.integer):
        return _of_matrix(values, candidates, popularity)
    if values.ndim == 1:
        return Guide(_strongest_first(_checked(values[None, :], candidates.items)[0]))
    raise InputError(f"guide must be {_KINDS}, got an array of shape {values.shape}")


def _popularity(candidates: Candidates) -> IntArray | None:
    exclude = candidates.exclude
    if exclude is None or not exclude.nnz or candidates.items > _LARGEST_POPULARITY:
        return None
    return _strongest_first(np.bincount(as_index(exclude.indices), minlength=candidates.items))


def _strongest_first(scores: npt.NDArray[Any]) -> IntArray:
    return np.argsort(-scores.astype(np.float64), kind="stable")


def _score_function(guide: Any, candidates: Candidates) -> Callable[[IntArray], Any] | None:
    """Return a function users -> scores of all items, if the guide has one."""
    if isinstance(guide, Scorer):
        return guide.score_all
    if hasattr(guide, "user_factors") and hasattr(guide, "item_factors"):
        guide = guide.user_factors, guide.item_factors
    if isinstance(guide, tuple | list) and len(guide) == 2 and np.ndim(guide[0]) == 2:
        factors = FactorScores(*map(as_matrix, guide))
        known = len(factors.user_factors)
        if known <= candidates.users.max():
            raise InputError(
                "guide must have user factors for every user, got "
                f"{known} rows and user {int(candidates.users.max())}"
            )
        return factors
    whole = getattr(guide, "score_all", None)
    if callable(whole):
        return whole  # type: ignore[no-any-return]
    return guide if callable(guide) else None


def _as_array(guide: Any) -> npt.NDArray[Any]:
    if isinstance(guide, str | bytes):
        raise InputError(f"guide must be {_KINDS}, got {guide!r}")
    try:
        values = np.asarray(guide)
    except ValueError as problem:
        raise InputError(f"guide must be {_KINDS}, got rows of different lengths") from problem
    if not (np.issubdtype(values.dtype, np.number) or values.dtype == np.bool_):
        raise InputError(f"guide must be {_KINDS}, got {type(guide).__name__}")
    return values


def _checked(values: npt.ArrayLike, items: int, rows: int = 1) -> FloatArray:
    scores = np.asarray(values)
    if scores.shape != (rows, items):
        got = f"{scores.shape[-1]:,}" if scores.ndim else "one number"
        if scores.ndim != 2 or scores.shape[0] != rows:
            got = f"an array of shape {scores.shape} for {rows} users"
        raise InputError(f"guide must have one score for each of the {items:,} items, got {got}")
    if not (np.issubdtype(scores.dtype, np.number) or scores.dtype == np.bool_):
        raise InputError(f"guide must hold numbers, got values of type {scores.dtype}")
    floats = scores.astype(np.float64, copy=False)
    bad = np.isnan(floats)
    if bad.any():
        raise InputError(
            f"guide must not be NaN, got {int(bad.sum())} NaN, the first for item "
            f"{int(np.argwhere(bad)[0][1])}; give unknown items the lowest score"
        )
    return floats


def _of_scores(
    scores: Callable[[IntArray], Any], candidates: Candidates, order: IntArray | None
) -> Guide:
    """Return a guide with the strongest items of each user, without excluded ones."""
    users, items = np.unique(candidates.users), candidates.items
    length = min(items, _LONGEST_LIST)
    lists = np.empty((len(users), length), dtype=np.int32)
    step = max(1, _BLOCK // items)
    for start in range(0, len(users), step):
        some = users[start : start + step]
        values = _checked(scores(some), items, len(some)).copy()
        if candidates.exclude is not None:
            excluded = candidates.exclude[some].tocoo()
            values[excluded.coords[0], excluded.coords[1]] = -np.inf
        best = np.argpartition(-values, length - 1, axis=1)[:, :length]
        # Items with equal scores are in the order of their ids.
        best.sort(axis=1)
        ranked = np.argsort(-np.take_along_axis(values, best, axis=1), axis=1, kind="stable")
        lists[start : start + step] = np.take_along_axis(best, ranked, axis=1)
    return _guide_of_lists(users, lists, candidates, order)


def _rows_of(lists: Mapping[Any, Any]) -> tuple[IntArray, IntArray]:
    """Return sorted users, and their lists in one matrix."""
    users = sorted(lists)
    whole = all(isinstance(user, int | np.integer) for user in users)
    if not users or not whole:
        raise InputError(
            "guide must be a dict of user -> ranked items with users as zero-based integers, got "
            f"{repr(users[0]) if users else 'an empty one'}"
        )
    rows = [np.atleast_1d(_as_array(lists[user]))[:_LONGEST_LIST] for user in users]
    matrix = np.full((len(rows), max(map(len, rows))), _NOBODY, dtype=np.int64)
    for number, row in enumerate(rows):
        if len(row) and not np.issubdtype(row.dtype, np.integer):
            raise InputError(f"guide must hold items as whole numbers, got {row[0]!r}")
        if len(row) and row.min() < 0:
            raise InputError(f"guide must hold items from 0 on, got {int(row.min())}")
        matrix[number, : len(row)] = row
    return np.array(users, dtype=np.int64), matrix


def _of_matrix(values: IntArray, candidates: Candidates, order: IntArray | None) -> Guide:
    if len(values) <= candidates.users.max():
        raise InputError(
            f"guide must have a list for every user, got {len(values)} rows and user "
            f"{int(candidates.users.max())}"
        )
    users = np.unique(candidates.users)
    return _guide_of_lists(users, values[users][:, :_LONGEST_LIST], candidates, order)


def _guide_of_lists(
    users: IntArray, lists: npt.NDArray[Any], candidates: Candidates, order: IntArray | None
) -> Guide:
    """Return a guide of lists without excluded and repeated items; refuse unknown items."""
    asked = np.isin(users, candidates.users)
    users, lists = users[asked], lists[asked].astype(np.int64)
    unknown = (lists >= candidates.items) | (lists < _NOBODY)
    if unknown.any():
        row, column = np.argwhere(unknown)[0]
        raise InputError(
            f"guide must hold items in 0..{candidates.items - 1}, got {int(lists[row, column])} "
            f"for user {int(users[row])} ({int(unknown.sum())} such items); -1 fills short rows"
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
