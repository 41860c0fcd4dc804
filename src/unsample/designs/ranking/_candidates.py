"""Who is ranked against whom: the targets, and the items each of them is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, IntArray, as_integer_array, check_integer
from unsample.errors import InputError

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["Candidates", "Chunk", "check_ids"]

#: Targets whose seen items are looked through at a time.
_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some consecutive targets; ``row`` and ``column`` are the pairs that are no candidates.

    A target is always its own candidate: it is never among the excluded pairs.
    """

    place: slice
    users: IntArray
    targets: IntArray
    row: IntArray
    column: npt.NDArray[np.integer[Any]]

    def __len__(self) -> int:
        return len(self.users)

    @property
    def excluded(self) -> IntArray:
        """Return how many items are no candidates of each target."""
        return np.bincount(self.row, minlength=len(self)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Targets, the catalogue, and the pairs to leave out; build it with `check`."""

    users: IntArray
    targets: IntArray
    items: int
    exclude: scipy.sparse.csr_array | None

    @classmethod
    def check(
        cls,
        users: npt.ArrayLike,
        targets: npt.ArrayLike,
        items: int,
        exclude: scipy.sparse.sparray | scipy.sparse.spmatrix | None,
    ) -> Candidates:
        """Check the targets and bring ``exclude`` into a form that can be sliced by user."""
        items = check_integer("items", items, minimum=1, hint="items counts the whole catalogue")
        matrix = None if exclude is None else _as_excluded(exclude, items)
        known_users = None if matrix is None else matrix.shape[0]
        user_ids = check_ids("users", users, known_users, of="rows of exclude")
        target_ids = check_ids("targets", targets, items, of="items")
        if len(user_ids) != len(target_ids):
            raise InputError(
                f"users and targets must be as long as each other, got {len(user_ids)} and "
                f"{len(target_ids)}; a user with several targets is repeated"
            )
        if len(user_ids) == 0:
            raise InputError("targets must hold at least one target, got none")
        return cls(user_ids, target_ids, items, matrix)

    def __len__(self) -> int:
        return len(self.users)

    def take(self, rows: IntArray) -> Candidates:
        """Return some of the targets."""
        return replace(self, users=self.users[rows], targets=self.targets[rows])

    @cached_property
    def excluded(self) -> IntArray:
        """Return how many items are no candidates of each target."""
        if self.exclude is None:
            return np.zeros(len(self), dtype=np.int64)
        lengths = np.diff(self.exclude.indptr)[self.users].astype(np.int64)
        return lengths - self.excluded_targets

    @cached_property
    def excluded_targets(self) -> BoolArray:
        """Return which targets are among the seen items of their own users."""
        if self.exclude is None:
            return np.zeros(len(self), dtype=bool)
        present = [
            self._is_seen(self.users[start : start + _ROWS], self.targets[start : start + _ROWS])
            for start in range(0, len(self), _ROWS)
        ]
        return np.concatenate(present)

    def _is_seen(self, users: IntArray, targets: IntArray) -> BoolArray:
        assert self.exclude is not None
        block = self.exclude[users]
        row = np.repeat(np.arange(len(users)), np.diff(block.indptr))
        return np.bincount(row[block.indices == targets[row]], minlength=len(users)) > 0

    def items_at(self, rows: IntArray, index: IntArray) -> IntArray:
        """Return the items at places ``index`` among the other candidates of these targets.

        The other candidates of a target stand in the order of their ids: all items but itself
        and the excluded ones.
        """
        targets = self.targets[rows]
        if self.exclude is None:
            return index + (index >= targets[:, None])
        row, column = self._excluded_pairs(self.users[rows], targets)
        before = np.bincount(row[column < targets[row]], minlength=len(rows))
        index = index + (index >= (targets - before)[:, None])
        # Place j is the item j + (excluded items up to it): of the sorted excluded items e_0,
        # e_1, ... those with e_i - i <= j. One search serves all rows, each in a range of its own.
        first = np.searchsorted(row, np.arange(len(rows)))
        ranges = np.arange(len(rows)) * (self.items + 1)
        keys = column - (np.arange(len(row)) - first[row]) + ranges[row]
        found = np.searchsorted(keys, index + ranges[:, None], side="right")
        return np.asarray(index + (found - first[:, None]))

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield the targets in order, at most ``rows`` at a time."""
        for start in range(0, len(self), rows):
            place = slice(start, min(start + rows, len(self)))
            users, targets = self.users[place], self.targets[place]
            row, column = self._excluded_pairs(users, targets)
            yield Chunk(place, users, targets, row, column)

    def _excluded_pairs(
        self, users: IntArray, targets: IntArray
    ) -> tuple[IntArray, npt.NDArray[np.integer[Any]]]:
        if self.exclude is None:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        block = self.exclude[users]
        row = np.repeat(np.arange(len(users)), np.diff(block.indptr))
        column = np.asarray(block.indices)
        other = column != targets[row]
        if not other.all():
            row, column = row[other], column[other]
        return row, column


def check_ids(name: str, ids: npt.ArrayLike, count: int | None, *, of: str) -> IntArray:
    """Return ids as integers in ``0..count-1``, or name the first that is not."""
    array = as_integer_array(name, ids, hint="ids are zero-based integers", error=InputError)
    bad = array < 0 if count is None else (array < 0) | (array >= count)
    if bad.any():
        where = int(np.argmax(bad))
        rule = "at least 0" if count is None else f"in 0..{count - 1} ({count} {of})"
        raise InputError(
            f"{name} must be {rule}, got {int(array[where])} at position {where} "
            f"({int(bad.sum())} such ids)"
        )
    return array.astype(np.int64, copy=False)


def _as_excluded(exclude: Any, items: int) -> scipy.sparse.csr_array:
    from scipy.sparse import csr_array, issparse

    if not issparse(exclude):
        raise InputError(
            f"exclude must be a scipy sparse matrix of users x items, got {type(exclude).__name__}; "
            "pass interactions.matrix(), or None to keep every item"
        )
    matrix: scipy.sparse.csr_array = csr_array(cast("Any", exclude))
    if matrix.shape[1] != items:
        raise InputError(f"exclude must have {items} columns, one an item, got {matrix.shape[1]}")
    if matrix.has_canonical_format and matrix.data.all():  # sorted, and nothing twice
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
