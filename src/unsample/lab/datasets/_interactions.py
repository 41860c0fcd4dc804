"""`Interactions`: who did something with what, as zero-based integer ids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    FloatArray,
    IntArray,
    as_integer_array,
    as_text_array,
    at_position,
    check_integer,
)
from unsample.errors import DatasetError, InputError

if TYPE_CHECKING:
    import scipy.sparse


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Distinct (user, item) pairs with ids in ``0..users-1`` and ``0..items-1``.

    Build one with `from_pairs`, which merges repeated pairs and sorts by user, then item.

    ``complete`` is false where only part of a published data set was at hand; ``note`` then says
    which part, and everything computed from it must carry that note. ``merged`` counts the
    repeated rows that were merged. ``user_ids`` and ``item_ids`` are the ids of the source, where
    those are not the zero-based ones: the user ``u`` here is ``user_ids[u]`` there.

    >>> pairs = Interactions.from_pairs([0, 0, 1, 0], [2, 1, 1, 2])
    >>> pairs
    Interactions(2 users, 3 items, 3 pairs, 1 repeated row merged)
    >>> pairs.matrix().toarray()
    array([[0., 1., 1.],
           [0., 1., 0.]], dtype=float32)
    """

    user: IntArray
    item: IntArray
    users: int
    items: int
    rating: FloatArray | None = None
    time: IntArray | None = None
    name: str = ""
    complete: bool = True
    note: str = ""
    merged: int = 0
    user_ids: npt.NDArray[Any] | None = None
    item_ids: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        check_integer("users", self.users, minimum=0)
        check_integer("items", self.items, minimum=0)
        for column in ("item", "rating", "time"):
            _check_length(column, getattr(self, column), "user", len(self.user))
        _check_length("user_ids", self.user_ids, "users", self.users)
        _check_length("item_ids", self.item_ids, "items", self.items)
        _check_range("user", self.user, "users", self.users)
        _check_range("item", self.item, "items", self.items)

    @classmethod
    def from_pairs(
        cls,
        user: npt.ArrayLike,
        item: npt.ArrayLike,
        *,
        users: int | None = None,
        items: int | None = None,
        rating: npt.ArrayLike | None = None,
        time: npt.ArrayLike | None = None,
        name: str = "",
        complete: bool = True,
        note: str = "",
        user_ids: npt.NDArray[Any] | None = None,
        item_ids: npt.NDArray[Any] | None = None,
    ) -> Interactions:
        """Merge repeated pairs and sort by user, then item.

        Users and items are numbers from 0, or names: the columns of any frame. Names become
        numbers in their order, which ``user_ids`` and ``item_ids`` tell. Of repeated pairs the
        latest row is kept (without times, the last one). ``users`` and ``items`` default to one
        more than the largest number.

        >>> Interactions.from_pairs(["ann", "bob"], ["tea", "tea"]).user_ids.tolist()
        ['ann', 'bob']
        """
        user, user_ids = _numbered("user", user, user_ids)
        item, item_ids = _numbered("item", item, item_ids)
        if not len(user):
            raise DatasetError(f"{name or 'interactions'} must hold at least one pair, got none")
        _check_length("item", item, "user", len(user))
        rows = cls(
            user=user,
            item=item,
            users=int(user.max()) + 1 if users is None else users,
            items=int(item.max()) + 1 if items is None else items,
            rating=None if rating is None else np.asarray(rating, dtype=np.float64),
            time=None if time is None else np.asarray(time, dtype=np.int64),
            name=name,
            complete=complete,
            note=note,
            user_ids=user_ids,
            item_ids=item_ids,
        )
        kept = rows.select(_last_of_each_pair(rows))
        return replace(kept, merged=len(rows) - len(kept))

    def __len__(self) -> int:
        return len(self.user)

    def matrix(self) -> scipy.sparse.csr_array:
        """Return the users x items matrix with a float32 one for each pair."""
        from scipy.sparse import csr_array

        ones = np.ones(len(self.user), dtype=np.float32)
        return csr_array((ones, (self.user, self.item)), shape=(self.users, self.items))

    def count_by_user(self) -> IntArray:
        """Return how many pairs each user has."""
        return np.bincount(self.user, minlength=self.users).astype(np.int64)

    def count_by_item(self) -> IntArray:
        """Return how many pairs each item has: its popularity."""
        return np.bincount(self.item, minlength=self.items).astype(np.int64)

    def pair_keys(self) -> IntArray:
        """Return one number for each pair, ``user * items + item``."""
        return self.user * self.items + self.item

    def select(self, rows: npt.NDArray[Any]) -> Interactions:
        """Return the given rows (a mask or positions); the ids and their ranges stay."""
        columns = {
            name: values[rows]
            for name in ("user", "item", "rating", "time")
            if (values := getattr(self, name)) is not None
        }
        return replace(self, **columns)

    def at_least(self, *, per_user: int = 1, per_item: int = 1) -> Interactions:
        """Keep users and items with so many pairs, again and again until none falls below.

        The ids are numbered anew; ``user_ids`` and ``item_ids`` tell the former ones.
        """
        per_user = check_integer("per_user", per_user, minimum=1)
        per_item = check_integer("per_item", per_item, minimum=1)
        kept, before = self, -1
        while len(kept) != before:
            before = len(kept)
            enough = kept.count_by_user()[kept.user] >= per_user
            enough &= kept.count_by_item()[kept.item] >= per_item
            kept = kept.select(enough)
        if not len(kept):
            raise DatasetError(
                f"{self.name or 'interactions'} must keep some of its {len(self):,} pairs, got "
                f"none with per_user={per_user} and per_item={per_item}; lower them"
            )
        return _renumbered(kept)

    def __repr__(self) -> str:
        parts = [f"{self.users:,} users", f"{self.items:,} items", f"{len(self):,} pairs"]
        if self.name:
            parts.insert(0, self.name)
        if self.merged:
            parts.append(f"{self.merged:,} repeated row{'s' * (self.merged > 1)} merged")
        if not self.complete:
            parts.append(f"INCOMPLETE: {self.note}")
        elif self.note:
            parts.append(self.note)
        return f"Interactions({', '.join(parts)})"


def _numbered(
    name: str, values: npt.ArrayLike, ids: npt.NDArray[Any] | None
) -> tuple[IntArray, npt.NDArray[Any] | None]:
    """Return numbers from 0 and the names they stand for, where names were given."""
    given = np.asarray(values)
    if given.dtype.kind in "UTO" and given.size:
        texts = [value for value in given.tolist() if isinstance(value, str)]
        if len(texts) < given.size:
            raise InputError(f"{name} must be numbers or names throughout, got others among them")
        ids, given = np.unique(as_text_array(name, texts), return_inverse=True)
    return as_integer_array(name, given, error=InputError).astype(np.int64), ids


def _last_of_each_pair(rows: Interactions) -> IntArray:
    keys = rows.pair_keys()
    columns = (keys,) if rows.time is None else (rows.time, keys)
    order = np.lexsort(columns)
    ordered = keys[order]
    last = np.ones(len(order), dtype=bool)
    last[:-1] = ordered[1:] != ordered[:-1]
    return order[last]


def _renumbered(rows: Interactions) -> Interactions:
    present_users, user = np.unique(rows.user, return_inverse=True)
    present_items, item = np.unique(rows.item, return_inverse=True)
    return replace(
        rows,
        user=user.reshape(-1),
        item=item.reshape(-1),
        users=len(present_users),
        items=len(present_items),
        user_ids=present_users if rows.user_ids is None else rows.user_ids[present_users],
        item_ids=present_items if rows.item_ids is None else rows.item_ids[present_items],
    )


def _check_length(name: str, values: npt.NDArray[Any] | None, other: str, size: int) -> None:
    if values is not None and np.shape(values) != (size,):
        raise InputError(
            f"{name} must have shape ({size},) as {other} does, got {np.shape(values)}"
        )


def _check_range(name: str, ids: IntArray, bound: str, size: int) -> None:
    if len(ids) and (ids.min() < 0 or ids.max() >= size):
        where = int(np.argmax((ids < 0) | (ids >= size)))
        raise InputError(
            f"{name} must be in 0..{bound}-1 = 0..{size - 1}, got {ids[where]} "
            f"{at_position(where, len(ids))}; ids start at 0"
        )
