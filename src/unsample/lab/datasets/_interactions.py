"""`Interactions`: who did something with what, as zero-based integer ids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, as_integer_array, at_position, check_integer
from unsample.errors import DatasetError, InputError

if TYPE_CHECKING:
    import scipy.sparse


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Distinct (user, item) pairs with ids in ``0..users-1`` and ``0..items-1``.

    Build one with `from_pairs`, which merges repeated pairs and sorts by user, then item.
    ``complete`` is false where only part of a published data set was at hand; ``note`` then says
    which part, and everything computed from it must carry that note.

    >>> pairs = Interactions.from_pairs([0, 0, 1, 0], [2, 1, 1, 2])
    >>> pairs
    Interactions(2 users, 3 items, 3 pairs)
    >>> pairs.matrix().toarray()
    array([[0., 1., 1.],
           [0., 1., 0.]], dtype=float32)
    """

    user: IntArray
    item: IntArray
    users: int
    items: int
    time: IntArray | None = None
    name: str = ""
    complete: bool = True
    note: str = ""

    def __post_init__(self) -> None:
        check_integer("users", self.users, minimum=0)
        check_integer("items", self.items, minimum=0)
        for column in ("item", "time"):
            values = getattr(self, column)
            if values is not None and len(values) != len(self.user):
                raise InputError(
                    f"{column} must have a value for each of the {len(self.user)} users, got "
                    f"{len(values)}"
                )
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
        time: npt.ArrayLike | None = None,
        name: str = "",
        complete: bool = True,
        note: str = "",
    ) -> Interactions:
        """Merge repeated pairs and sort by user, then item.

        Of repeated pairs the latest row is kept. ``users`` and ``items`` default to one more than
        the largest number.
        """
        user, item = (
            as_integer_array(each, values, error=InputError).astype(np.int64)
            for each, values in (("user", user), ("item", item))
        )
        if not len(user):
            raise DatasetError(f"{name or 'interactions'} must hold at least one pair, got none")
        rows = cls(
            user=user,
            item=item,
            users=int(user.max()) + 1 if users is None else users,
            items=int(item.max()) + 1 if items is None else items,
            time=None if time is None else np.asarray(time, dtype=np.int64),
            name=name,
            complete=complete,
            note=note,
        )
        return rows.select(_last_of_each_pair(rows))

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
        time = None if self.time is None else self.time[rows]
        return replace(self, user=self.user[rows], item=self.item[rows], time=time)

    def __repr__(self) -> str:
        parts = [f"{self.users:,} users", f"{self.items:,} items", f"{len(self):,} pairs"]
        named = [self.name, *parts, "" if self.complete else f"INCOMPLETE: {self.note}"]
        return f"Interactions({', '.join(filter(None, named))})"


def _last_of_each_pair(rows: Interactions) -> IntArray:
    keys = rows.pair_keys()
    order = np.lexsort((keys,) if rows.time is None else (rows.time, keys))
    ordered = keys[order]
    last = np.ones(len(order), dtype=bool)
    last[:-1] = ordered[1:] != ordered[:-1]
    return order[last]


def _check_range(name: str, ids: IntArray, bound: str, size: int) -> None:
    if len(ids) and (ids.min() < 0 or ids.max() >= size):
        where = int(np.argmax((ids < 0) | (ids >= size)))
        raise InputError(
            f"{name} must be in 0..{bound}-1 = 0..{size - 1}, got {ids[where]} "
            f"{at_position(where, len(ids))}; ids start at 0"
        )
