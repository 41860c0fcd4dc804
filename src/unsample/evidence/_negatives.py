"""`Negatives`: which items each target was ranked against, and what can be counted of them.

Lists are read block by block. A number is kept for each list and for each item, never one for each
pair of list and item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    as_index,
    as_integer_array,
    at_position,
)
from unsample.errors import InputError
from unsample.evidence._columns import first_of_equal

if TYPE_CHECKING:
    import scipy.sparse

#: Draws that are read together.
_BLOCK = 1 << 20
#: Probabilities sum to one up to this.
_ROUNDING = 1e-6
_ZERO_BASED = "items are numbered 0 to items - 1; subtract 1 if yours start at 1"
_LISTS = (
    "negatives must be a two-dimensional array (a row for each target), a sequence of arrays, or a "
    "table with columns user and item"
)


@dataclass(frozen=True, eq=False)
class Negatives:
    """The negatives of each target, one list after the other."""

    #: Item numbers of all lists; list t is ``ids[starts[t]:starts[t + 1]]``.
    ids: npt.NDArray[np.integer[Any]]
    starts: IntArray
    items: int
    #: The user of each list: a row of ``exclude``.
    users: IntArray
    #: Items that each user has seen (users x items): ones, without duplicates.
    exclude: scipy.sparse.csr_array | None = None
    #: The targets that are known: their lists, in order, and their items.
    target_lists: IntArray | None = None
    target_items: IntArray | None = None

    @classmethod
    def of_lists(cls, negatives: Any, *, items: int, targets: IntArray | None = None) -> Negatives:
        """Check lists of item numbers, each of its own user."""
        ids, starts = _flat(negatives)
        check_item_numbers("negatives", ids, items)
        size = len(starts) - 1
        if targets is not None and len(targets) != size:
            raise InputError(
                f"targets must hold the target of each of the {size:,} lists, got {len(targets):,}"
            )
        places = None if targets is None else np.arange(size)
        return cls(ids, starts, items, np.arange(size), None, places, targets)

    @classmethod
    def of_rows(
        cls,
        rows: npt.NDArray[Any],
        ids: IntArray,
        *,
        items: int,
        is_target: BoolArray | None = None,
    ) -> tuple[Negatives, npt.NDArray[Any]]:
        """Collect the lists of a table, in the order in which they first appear.

        ``rows`` names the list of each item. The names of the lists are returned too.
        """
        names, first, code = np.unique(rows, return_index=True, return_inverse=True)
        place = np.empty(len(names), dtype=np.int64)
        place[np.argsort(first)] = np.arange(len(names))
        lists = place[code.reshape(-1)]
        drawn = np.ones(len(lists), dtype=bool) if is_target is None else ~is_target
        order = np.flatnonzero(drawn)[np.argsort(lists[drawn], kind="stable")]
        sizes = np.bincount(as_index(lists[drawn]), minlength=len(names))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        own, targets = None, None
        if is_target is not None:
            mine = np.flatnonzero(is_target)[np.argsort(lists[is_target], kind="stable")]
            own, targets = lists[mine], ids[mine]
        users = np.arange(len(names))
        found = cls(ids[order], starts, items, users, None, own, targets)
        return found, names[np.argsort(first)]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def sizes(self) -> IntArray:
        """Return how many negatives each list has."""
        return np.diff(self.starts)

    @cached_property
    def owner(self) -> IntArray:
        """Return the list of each draw."""
        return np.repeat(np.arange(len(self)), as_index(self.sizes))

    def blocks(self) -> Iterator[slice]:
        """Yield the lists in blocks of about a million draws."""
        first = 0
        while first < len(self):
            last = int(np.searchsorted(self.starts, self.starts[first] + _BLOCK, "right")) - 1
            last = max(last, first + 1)
            yield slice(first, last)
            first = last

    def keys(self, part: slice) -> IntArray:
        """Return the draws of a block as list * items + item, in their order."""
        ids = self.ids[self.starts[part.start] : self.starts[part.stop]]
        rows = np.repeat(_whole(part.stop - part.start), as_index(self.sizes[part]))
        return np.asarray(rows * self.items + ids)

    def count(self, kept: BoolArray | None = None) -> IntArray:
        """Return how often each item was drawn, in all lists or in those that are kept."""
        found = np.zeros(self.items, dtype=np.int64)
        for part in self.blocks():
            ids = self.ids[self.starts[part.start] : self.starts[part.stop]]
            if kept is not None and not kept[part].all():
                ids = ids[np.repeat(kept[part], as_index(self.sizes[part]))]
            found += np.bincount(as_index(ids), minlength=self.items)
        return found

    def left_out(self, weights: FloatArray, *, seen: bool, targets: bool) -> FloatArray:
        """Return for each item the weight of the lists that leave it out.

        They leave out the items that their user has ``seen``, their own ``targets``, or both.
        """
        found = np.zeros(self.items)
        if seen and self.exclude is not None:
            by_user = np.bincount(as_index(self.users), weights, minlength=self.exclude.shape[0])
            found += self.exclude.T @ by_user
        if targets and self.target_lists is not None and self.target_items is not None:
            found += np.bincount(
                as_index(self.target_items), weights[self.target_lists], self.items
            )
        return found

    def weight_left_out(self, weights: FloatArray) -> FloatArray:
        """Return for each list the weight of the items that its user has seen."""
        if self.exclude is None:
            return np.zeros(len(self))
        return np.asarray((self.exclude @ weights)[self.users])

    @cached_property
    def pairs_left_out(self) -> tuple[IntArray, IntArray]:
        """Return pairs of a list and an item it never holds: seen items, and its own target."""
        lists, items = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        if self.exclude is not None:
            rows = self.exclude[self.users]
            lists.append(np.repeat(np.arange(len(self)), np.diff(rows.indptr)))
            items.append(rows.indices.astype(np.int64))
        if self.target_lists is not None and self.target_items is not None:
            lists.append(self.target_lists)
            items.append(self.target_items)
        return np.concatenate(lists), np.concatenate(items)


@dataclass(frozen=True, eq=False)
class ListCounts:
    """What is counted in every list: a number for each list."""

    #: Draws that repeat an earlier item of their list, and pairs of equal items in a list.
    repeats: IntArray
    pairs: IntArray
    #: Draws of items that the user has seen, and draws of the list's own target.
    seen: IntArray
    targets: IntArray
    #: The number of the first list with the same items.
    same: IntArray

    @classmethod
    def of(cls, negatives: Negatives) -> ListCounts:
        """Read every list once."""
        size = len(negatives)
        repeats, pairs, seen, targets = (np.zeros(size, dtype=np.int64) for _ in range(4))
        marks = np.zeros(size, dtype=np.uint64)
        for part in negatives.blocks():
            keys = negatives.keys(part)
            lists = part.stop - part.start
            marks[part] = _marks(keys, negatives, part)
            seen[part] = _met(keys, _seen_keys(negatives, part), negatives.items, lists)
            targets[part] = _met(keys, _target_keys(negatives, part), negatives.items, lists)
            repeats[part], pairs[part] = _equal_draws(keys, negatives.items, lists)
        return cls(repeats, pairs, seen, targets, _same(marks, negatives.sizes))

    @cached_property
    def first(self) -> BoolArray:
        """Return which lists are the first with their items."""
        return np.asarray(self.same == np.arange(len(self.same)))


def check_item_numbers(name: str, ids: npt.NDArray[np.integer[Any]], items: int) -> None:
    """Refuse numbers that are not item numbers."""
    if not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < items):
        return
    bad = (ids < 0) | (ids >= items)
    place = int(np.argmax(bad))
    raise InputError(
        f"{name} must hold item numbers in 0..{items - 1} ({items} items), got {int(ids[place])} "
        f"{at_position(place, len(ids))} ({int(bad.sum())} such numbers); {_ZERO_BASED}"
    )


def check_probabilities(probabilities: Any, counts: IntArray) -> FloatArray:
    """Return the chance of each item in a single draw; refuse what cannot be chances.

    ``counts`` is how often each item was drawn: an item that was drawn must have a chance.
    """
    try:
        found = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"probabilities must be numbers, got {type(probabilities).__name__}"
        ) from problem
    if found.shape != counts.shape:
        raise InputError(
            f"probabilities must hold one for each of the {len(counts):,} items, got shape "
            f"{found.shape}"
        )
    bad = ~(np.isfinite(found) & (found >= 0.0))
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(
            f"probabilities must be finite and at least 0, got {found[place]} for item {place}"
        )
    total = float(found.sum())
    if abs(total - 1.0) > _ROUNDING:
        raise InputError(f"probabilities must sum to 1, got {total:.6g}; divide them by their sum")
    strange = (found == 0.0) & (counts > 0)
    if strange.any():
        place = int(np.argmax(strange))
        raise InputError(
            f"probabilities must be above 0 for items that were drawn, got 0 for item {place}, "
            f"drawn {int(counts[place]):,} times ({int(strange.sum()):,} such items)"
        )
    return found


def overlaps(negatives: Negatives, left: IntArray, right: IntArray) -> IntArray:
    """Return how many items each of some lists has in common with each of others."""
    from scipy.sparse import csr_array

    def incidence(lists: IntArray) -> Any:
        sizes = negatives.sizes[lists]
        places = np.repeat(negatives.starts[lists], as_index(sizes)) + _within(sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        shape = (len(lists), negatives.items)
        matrix = csr_array((np.ones(len(places)), negatives.ids[places], starts), shape=shape)
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        return matrix

    shared = incidence(left) @ incidence(right).T
    return np.asarray(shared.toarray(), dtype=np.int64)


def _flat(negatives: Any) -> tuple[npt.NDArray[np.integer[Any]], IntArray]:
    """Return the item numbers of all lists, and where each list starts."""
    if isinstance(negatives, np.ndarray) and negatives.ndim == 2:
        ids = as_integer_array("negatives", negatives.reshape(-1), hint=_hint(), error=InputError)
        return ids, np.arange(len(negatives) + 1) * negatives.shape[1]
    if isinstance(negatives, np.ndarray) and negatives.ndim != 1:
        raise InputError(f"{_LISTS}, got an array of shape {negatives.shape}")
    if isinstance(negatives, str) or not isinstance(negatives, Sequence | np.ndarray):
        raise InputError(f"{_LISTS}, got {type(negatives).__name__}")
    if len(negatives) and np.ndim(negatives[0]) == 0:
        raise InputError(f"{_LISTS}, got one list of {len(negatives):,} values")
    parts = [
        as_integer_array(f"list {place} of negatives", part, hint=_hint(), error=InputError)
        for place, part in enumerate(negatives)
    ]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
    return np.concatenate([*parts, np.empty(0, dtype=np.int64)]), starts.astype(np.int64)


def _hint() -> str:
    return "items are numbered from 0; where lists differ in length, pass a list of arrays"


def _within(sizes: IntArray) -> IntArray:
    """Return 0, 1, ... for each list, one list after the other."""
    starts = np.cumsum(sizes) - sizes
    return np.asarray(np.arange(int(sizes.sum())) - np.repeat(starts, as_index(sizes)))


def _marks(keys: IntArray, negatives: Negatives, part: slice) -> npt.NDArray[np.uint64]:
    """Return a number of 64 bits that is the same for lists of the same items in any order.

    It is the sum of a hash of each item (the finalizer of splitmix64).
    """
    bits = (keys % negatives.items).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    total = np.concatenate([[np.uint64(0)], np.cumsum(bits ^ (bits >> np.uint64(31)))])
    starts = negatives.starts[part.start : part.stop + 1] - negatives.starts[part.start]
    return np.asarray(total[starts[1:]] - total[starts[:-1]])


def _same(marks: npt.NDArray[np.uint64], sizes: IntArray) -> IntArray:
    """Return for each list the number of the first list with the same items."""
    order = np.lexsort([np.arange(len(marks)), sizes, marks])
    new = first_of_equal(np.stack([marks, sizes.astype(np.uint64)])[:, order])
    firsts = order[new]
    found = np.empty(len(order), dtype=np.int64)
    found[order] = firsts[np.cumsum(new) - 1]
    return found


def _whole(number: int) -> IntArray:
    """Return 0, 1, 2, ... with 64 bits on any machine: their products with items need them."""
    return np.arange(number, dtype=np.int64)


def _seen_keys(negatives: Negatives, part: slice) -> IntArray:
    if negatives.exclude is None:
        return np.empty(0, dtype=np.int64)
    block = negatives.exclude[negatives.users[part]]
    rows = np.repeat(_whole(block.shape[0]), as_index(np.diff(block.indptr)))
    return np.asarray(rows * negatives.items + block.indices)


def _target_keys(negatives: Negatives, part: slice) -> IntArray:
    lists, items = negatives.target_lists, negatives.target_items
    if lists is None or items is None:
        return np.empty(0, dtype=np.int64)
    first, last = np.searchsorted(lists, [part.start, part.stop])
    own = (lists[first:last] - part.start).astype(np.int64)
    return np.sort(own * negatives.items + items[first:last])


def _met(keys: IntArray, known: IntArray, items: int, lists: int) -> IntArray:
    """Return how many draws of each list are among the known (list, item) keys, sorted."""
    if not len(known):
        return np.zeros(lists, dtype=np.int64)
    place = np.searchsorted(known, keys).clip(max=len(known) - 1)
    return np.bincount(as_index(keys[known[place] == keys] // items), minlength=lists)


def _equal_draws(keys: IntArray, items: int, lists: int) -> tuple[IntArray, IntArray]:
    """Return for each list its repeats, and its pairs of equal items."""
    ordered = np.sort(keys)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    starts = starts[: len(ordered)]
    times = np.diff(np.append(starts, len(ordered)))
    several = np.flatnonzero(times > 1)
    times, row = times[several], ordered[starts[several]] // items
    repeats = np.zeros(lists, dtype=np.int64)
    pairs = np.zeros(lists, dtype=np.int64)
    np.add.at(repeats, row, times - 1)
    np.add.at(pairs, row, times * (times - 1) // 2)
    return repeats, pairs
