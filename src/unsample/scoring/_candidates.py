"""Targets, and the items that each of them is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    BoolArray,
    IntArray,
    as_index,
    as_integer_array,
    at_position,
    check_flag,
    check_integer,
)
from unsample._threads import cached_property
from unsample.errors import InputError

if TYPE_CHECKING:
    import scipy.sparse

Excluded: TypeAlias = "scipy.sparse.sparray | scipy.sparse.spmatrix"

#: Targets whose excluded items are counted at a time.
_ROWS = 1 << 14
#: Where other targets are left out, there is a row for each number up to the largest user.
_MOST_USERS = 2**31 - 1
#: No excluded pairs: their rows, and their items.
_NOWHERE = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Candidates:
    """Targets, the catalogue, and the excluded pairs; build it with `check`."""

    users: IntArray
    targets: IntArray
    items: int
    exclude: scipy.sparse.csr_array | None
    #: Whether the other targets of a user are excluded too.
    filtered: bool = False

    @classmethod
    def check(
        cls, targets: Any, items: int, exclude: Excluded | None = None, *, filtered: bool = False
    ) -> Candidates:
        """Check the arguments, and bring ``exclude`` into a form that can be sliced by user.

        ``targets`` are a pair (users, items) or a sparse matrix. With ``filtered``, the other
        targets of the same user are not candidates of a target.

        User 0 has two targets among five items:

        >>> targets = np.array([0, 0]), np.array([2, 4])
        >>> Candidates.check(targets, 5).others.tolist()
        [4, 4]
        >>> Candidates.check(targets, 5, filtered=True).others.tolist()
        [3, 3]
        """
        items = check_integer("items", items, minimum=1, hint="items counts the whole catalogue")
        check_flag("filtered", filtered)
        users, wanted = _as_pairs(targets)
        matrix = None if exclude is None else as_excluded(exclude, items)
        known_users = None if matrix is None else matrix.shape[0]
        user_ids = check_ids("users", users, known_users, of="rows of exclude")
        target_ids = check_ids("targets", wanted, items, of="items")
        if len(user_ids) != len(target_ids):
            raise InputError(
                f"users and targets must have the same length, got {len(user_ids)} and "
                f"{len(target_ids)}; repeat a user who has several targets"
            )
        if len(user_ids) == 0:
            raise InputError("targets must hold at least one target, got none")
        largest = _MOST_USERS if filtered else np.iinfo(np.int64).max // items - 1
        if user_ids.max() > largest:
            raise InputError(
                f"users must be numbers of at most {largest:,}, got {int(user_ids.max()):,}; "
                "number the users from 0: numpy.unique(users, return_inverse=True)"
            )
        candidates = cls(user_ids, target_ids, items=items, exclude=matrix)
        if not filtered:
            return candidates
        candidates.refuse_unrankable()
        return replace(candidates.without(user_ids, target_ids), filtered=True)

    def without(self, users: IntArray, items: IntArray) -> Candidates:
        """Return the candidates with further excluded pairs."""
        from scipy.sparse import csr_array

        shape = (int(self.users.max()) + 1, self.items)
        if self.exclude is not None:
            shape = self.exclude.shape
        pairs = csr_array((np.ones(len(users), dtype=bool), (users, items)), shape=shape)
        pairs.sum_duplicates()
        both = pairs if self.exclude is None else (self.exclude.astype(bool) + pairs).tocsr()
        both.sort_indices()
        return replace(self, exclude=both)

    def __len__(self) -> int:
        return len(self.users)

    def take(self, rows: IntArray | BoolArray | slice) -> Candidates:
        some = replace(self, users=self.users[rows], targets=self.targets[rows])
        if "others" in self.__dict__:  # counting them again would take as long
            some.__dict__["others"] = self.others[rows]
        return some

    def parts(self, rows: int) -> Iterator[tuple[slice, Candidates]]:
        """Yield slices of at most ``rows`` targets, and their candidates."""
        for start in range(0, len(self), rows):
            part = slice(start, min(start + rows, len(self)))
            yield part, self.take(part)

    @cached_property
    def excluded(self) -> tuple[IntArray, npt.NDArray[np.integer[Any]]]:
        """Return the excluded pairs (row, item), without the targets themselves."""
        if self.exclude is None:
            return _NOWHERE
        # A slice of the matrix would copy its data too, and take several times as long.
        start = self.exclude.indptr[self.users].astype(np.int64)
        size = self.exclude.indptr[self.users + 1] - start
        row = np.repeat(np.arange(len(self)), as_index(size))
        index = np.arange(len(row)) + np.repeat(start - np.cumsum(size) + size, as_index(size))
        column = np.asarray(self.exclude.indices[index])
        other = column != self.targets[row]
        return (row, column) if other.all() else (row[other], column[other])

    @cached_property
    def others(self) -> IntArray:
        """Return how many candidates each target has beside itself."""
        excluded = [
            np.bincount(as_index(part.excluded[0]), minlength=len(part))
            for _, part in self.parts(_ROWS)
        ]
        return np.asarray(self.items - 1 - np.concatenate(excluded))

    @property
    def listed(self) -> BoolArray:
        """Return which targets are excluded themselves."""
        if self.exclude is None:
            return np.zeros(len(self), dtype=bool)
        listed = np.diff(self.exclude.indptr)[self.users]
        return np.asarray(listed > self.items - 1 - self.others)

    def distinct(self) -> tuple[Candidates, IntArray]:
        """Return each target once, and the index of each given target among these."""
        pairs = self.users * self.items + self.targets
        _, first, again = np.unique(pairs, return_index=True, return_inverse=True)
        return self.take(first), again.reshape(-1)

    @property
    def relevant(self) -> int:
        """Return the largest number of targets of one user that are ranked in one list."""
        return 1 if self.filtered else int(np.unique(self.users, return_counts=True)[1].max())

    def refuse_repeated(self) -> None:
        pairs, count = np.unique(self.users * self.items + self.targets, return_counts=True)
        if (count > 1).any():
            user, item = divmod(int(pairs[np.argmax(count > 1)]), self.items)
            raise InputError(
                f"targets must name each item of a user once, got {int((count > 1).sum())} "
                f"repeated pairs, such as item {item} of user {user}"
            )

    def refuse_unrankable(self) -> None:
        """Refuse targets that are excluded, and targets without any other candidate."""
        if self.exclude is not None and not self.filtered:
            excluded = self.listed
            if excluded.any():
                first = int(np.argmax(excluded))
                raise InputError(
                    f"targets must not be among the items to exclude, got {int(excluded.sum())} "
                    f"that are, the first item {int(self.targets[first])} of user "
                    f"{int(self.users[first])}; take them out of exclude, or pass exclude=None to "
                    "keep every item as a candidate"
                )
        alone = self.others < 1
        if alone.any():
            first = int(np.argmax(alone))
            raise InputError(
                f"every target must have another candidate, got {int(alone.sum())} without, the "
                f"first of user {int(self.users[first])}; exclude leaves nothing to rank against"
            )

    def items_at(self, index: IntArray) -> IntArray:
        """Return the items at positions ``index`` among the other candidates of each target.

        These are all items but the target and the excluded ones, in the order of their ids.
        """
        row, column = self.excluded
        rows = np.arange(len(self))
        if not len(row):
            return index + (index >= self.targets[:, None])
        before = np.bincount(row[column < self.targets[row]], minlength=len(self))
        position = index + (index >= (self.targets - before)[:, None])
        # The item at position j is j plus the number of excluded items before it. With the sorted
        # excluded items e_0, e_1, ..., these are the ones with e_i - i <= j. A single search finds
        # them for all rows, because each row has its own range of keys.
        first = np.searchsorted(row, rows)
        keys = column - (np.arange(len(row)) - first[row]) + row * (self.items + 1)
        found = np.searchsorted(keys, position + (rows * (self.items + 1))[:, None], side="right")
        return np.asarray(position + (found - first[:, None]))


def _as_pairs(targets: Any) -> tuple[npt.ArrayLike, npt.ArrayLike]:
    if hasattr(targets, "tocoo"):
        matrix = targets.tocoo()
        kept = matrix.data != 0
        return matrix.coords[0][kept], matrix.coords[1][kept]
    if isinstance(targets, tuple | list) and len(targets) == 2:
        return targets[0], targets[1]
    raise InputError(
        "targets must be a pair (users, items) of equally long id arrays, or a scipy sparse "
        f"matrix of users x items, got {type(targets).__name__}"
    )


def check_ids(name: str, ids: npt.ArrayLike, count: int | None, *, of: str) -> IntArray:
    """Return ids as integers; refuse those outside ``0..count-1``."""
    array = as_integer_array(name, ids, hint="ids are zero-based integers", error=InputError)
    bad = array < 0 if count is None else (array < 0) | (array >= count)
    if bad.any():
        where = int(np.argmax(bad))
        rule = "at least 0" if count is None else f"in 0..{count - 1} ({count} {of})"
        raise InputError(
            f"{name} must be {rule}, got {int(array[where])} "
            f"{at_position(where, array.size)} ({int(bad.sum())} such ids); ids count from 0, and "
            "targets are (users, items), in this order"
        )
    return array.astype(np.int64, copy=False)


def as_excluded(exclude: Any, items: int) -> scipy.sparse.csr_array:
    """Return a sparse matrix of users x items that can be sliced by user, without duplicates.

    >>> from scipy.sparse import coo_array
    >>> twice = coo_array(([1, 1, 1], ([0, 0, 1], [2, 2, 0])), shape=(2, 3))
    >>> as_excluded(twice, items=3).nnz
    2
    """
    from scipy.sparse import csr_array, issparse

    if not issparse(exclude):
        raise InputError(
            "exclude must be a scipy sparse matrix of users x items, got "
            f"{type(exclude).__name__}; build one with scipy.sparse.csr_array, or pass None to "
            "keep every item"
        )
    matrix: scipy.sparse.csr_array = csr_array(cast("Any", exclude))
    if matrix.shape[1] != items:
        raise InputError(
            f"exclude must have {items} columns, one for each item, got {matrix.shape[1]}"
        )
    outside = (matrix.indices < 0) | (matrix.indices >= items)
    if outside.any():
        where = int(np.argmax(outside))
        raise InputError(
            f"exclude must hold items in 0..{items - 1}, got {int(matrix.indices[where])} "
            f"{at_position(where, len(outside))} of its indices ({int(outside.sum())} such items)"
        )
    if not (matrix.has_canonical_format and matrix.data.all()):  # sorted, and nothing twice
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix
