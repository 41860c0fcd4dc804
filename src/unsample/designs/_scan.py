"""Comparing targets with more and more of their candidates, each target in its own order.

`Candidates` are the targets and the items that each is compared with. A `Scan` takes the items of
each target in an order that depends on the seed, the user and the target only, and counts. Its
caller says how far each target goes. Counts depend on the seed and on the scores only: not on other
targets, batches, threads or interruptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_index,
    as_integer_array,
    as_rng,
    at_position,
    check_integer,
)
from unsample.designs._orders import LongWords, Orders
from unsample.designs._scorers import Score, as_scores, refuse_infinite_targets
from unsample.errors import InputError

if TYPE_CHECKING:
    import scipy.sparse

    from unsample.designs._guides import GuidedOrders

Excluded: TypeAlias = "scipy.sparse.sparray | scipy.sparse.spmatrix"

#: Targets whose excluded items are counted at a time.
_ROWS = 1 << 14
#: Most items of one target in a call of the scorer.
_LONGEST_ROW = 1 << 16
#: All rows of a call have one length. If targets need more than this many different lengths, rare
#: lengths are cut to powers of two: those that fill less than this part of a batch.
_FEW_LENGTHS, _WORTH_A_CALL = 8, 0.125
_NOWHERE = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
_SHAPES = (
    "a pair (users, items) of equally long id arrays, a dict of user -> item or items, or a "
    "scipy sparse matrix of users x items"
)


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

        ``targets`` are a pair (users, items), a dict of user -> items, or a sparse matrix. With
        ``filtered``, the other targets of the same user are not candidates of a target.
        """
        items = check_integer("items", items, minimum=1, hint="items counts the whole catalogue")
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
        found = cls(user_ids, target_ids, items, matrix)
        return found._without_other_targets() if filtered else found

    def _without_other_targets(self) -> Candidates:
        from scipy.sparse import csr_array

        self.refuse_unrankable()
        shape = (int(self.users.max()) + 1, self.items)
        if self.exclude is not None:
            shape = self.exclude.shape
        pairs = csr_array((np.ones(len(self), dtype=bool), (self.users, self.targets)), shape=shape)
        pairs.sum_duplicates()
        both = pairs if self.exclude is None else (self.exclude.astype(bool) + pairs).tocsr()
        both.sort_indices()
        return replace(self, exclude=both, filtered=True)

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
            place = slice(start, min(start + rows, len(self)))
            yield place, self.take(place)

    @cached_property
    def excluded(self) -> tuple[IntArray, npt.NDArray[np.integer[Any]]]:
        """Return the excluded pairs (row, item), without the targets themselves."""
        if self.exclude is None:
            return _NOWHERE
        # A slice of the matrix would copy its data too, and take several times as long.
        start = self.exclude.indptr[self.users].astype(np.int64)
        size = self.exclude.indptr[self.users + 1] - start
        row = np.repeat(np.arange(len(self)), as_index(size))
        place = np.arange(len(row)) + np.repeat(start - np.cumsum(size) + size, as_index(size))
        column = np.asarray(self.exclude.indices[place])
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
    def relevant(self) -> int:
        """Return the largest number of targets of one user that are ranked in one list."""
        return 1 if self.filtered else int(np.bincount(as_index(self.users)).max())

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
            listed = np.diff(self.exclude.indptr)[self.users]
            excluded = listed > self.items - 1 - self.others  # the target is listed as well
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
        """Return the items at places ``index`` among the other candidates of each target.

        These are all items but the target and the excluded ones, in the order of their ids.
        """
        (row, column), rows = self.excluded, np.arange(len(self))
        if not len(row):
            return index + (index >= self.targets[:, None])
        before = np.bincount(row[column < self.targets[row]], minlength=len(self))
        place = index + (index >= (self.targets - before)[:, None])
        # The item at place j is j plus the number of excluded items before it. With the sorted
        # excluded items e_0, e_1, ..., these are the ones with e_i - i <= j. A single search finds
        # them for all rows, because each row has its own range of keys.
        first = np.searchsorted(row, rows)
        keys = column - (np.arange(len(row)) - first[row]) + row * (self.items + 1)
        found = np.searchsorted(keys, place + (rows * (self.items + 1))[:, None], side="right")
        return np.asarray(place + (found - first[:, None]))


@dataclass(frozen=True, eq=False)
class Tally:
    """How many items each target was compared with, and the results."""

    scored: IntArray
    better: IntArray
    equal: IntArray
    #: How many of the equal items are above the target when ties are broken at random.
    lost_ties: IntArray
    #: Items with an infinite score. They are above or below all finite ones.
    infinite: IntArray
    #: The target's own score; NaN until it is asked for, together with its first items.
    own: FloatArray

    @classmethod
    def empty(cls, targets: int) -> Tally:
        counts = {each.name: np.zeros(targets, dtype=np.int64) for each in fields(cls)}
        return cls(**counts | {"own": np.full(targets, np.nan)})

    def beaten(self, ties: str) -> IntArray:
        """Return how many items are above each target under a tie rule."""
        if ties == "optimistic":
            return self.better
        return self.better + (self.lost_ties if ties == "random" else self.equal)

    def add(self, rows: IntArray, part: Tally) -> None:
        """Add the results of some targets."""
        for field in fields(self)[:-1]:
            getattr(self, field.name)[rows] += getattr(part, field.name)
        self.own[rows] = part.own


@dataclass(frozen=True, eq=False)
class Scan:
    """Targets, and the orders in which they are compared with their candidates."""

    score: Score
    orders: GuidedOrders
    replacement: bool = False

    @property
    def candidates(self) -> Candidates:
        return self.orders.candidates

    @property
    def keys(self) -> LongWords:
        return self.orders.keys

    def advance(
        self, tally: Tally, goal: IntArray, *, batch: int, workers: int = 1
    ) -> Iterator[int]:
        """Compare every target with items up to number ``goal``; add the results to ``tally``.

        The target's own score is asked for once, together with its first items. Yields the number
        of scores of each call of the scorer, after they are counted.
        """
        while (rows := np.flatnonzero(tally.scored < goal)).size:
            missing = np.minimum((goal - tally.scored)[rows], _LONGEST_ROW)
            fresh = np.isnan(tally.own[rows])
            jobs = _batches(rows, _lengths(missing, batch), fresh, batch)
            compared = in_threads(lambda job: self._compare(job, tally), jobs, workers)
            for done, part, asked in compared:
                tally.add(done, part)
                yield asked

    def own_scores(self, rows: IntArray) -> FloatArray:
        users, asked = self.candidates.users[rows], self.candidates.targets[rows][:, None]
        scores = as_scores(self.score(users, asked), asked.shape, users, asked)
        return scores[:, 0].astype(np.float64)

    def tie_place(self) -> FloatArray:
        """Return the place of each target, in 0..1, among the items that tie with it."""
        rows = np.arange(len(self.keys))
        return self._keyed(rows).tie_place(rows)

    def _compare(self, job: Job, tally: Tally) -> Compared:
        rows, length, fresh = job
        some, scored = self.candidates.take(rows), tally.scored[rows]
        users, targets = some.users, some.targets
        if self.replacement:
            items = some.items_at(self._keyed(rows).draws(scored, length))
        else:
            items = self.orders.items(rows, scored, length)
        asked = np.concatenate([targets[:, None], items], axis=1) if fresh else items
        scores = as_scores(self.score(users, asked), asked.shape, users, asked)
        own = tally.own[rows]
        if fresh:
            own = scores[:, 0].astype(np.float64)
            refuse_infinite_targets(own, users, targets)
            scores = scores[:, 1:]
        rival = own.astype(scores.dtype)  # comparing numbers of one type takes half the time
        rival = rival if np.array_equal(rival, own) else own
        tied = scores == rival[:, None]
        # Ties are rare, and `any` is faster than `nonzero`.
        row, column = np.nonzero(tied) if tied.any() else _NOWHERE
        infinite = np.zeros(len(rows), dtype=np.int64)
        with np.errstate(invalid="ignore", over="ignore"):
            total = scores.sum()
        if not np.isfinite(total):  # one sum is faster than a test of each score
            infinite = np.count_nonzero(np.isinf(scores), axis=1)
        better = np.count_nonzero(scores > rival[:, None], axis=1)
        lost = self._keyed(rows).tie_is_lost(row, items[row, column])
        equal, lost_ties = (
            np.bincount(as_index(some), minlength=len(rows)) for some in (row, row[lost])
        )
        met = np.full(len(rows), length)
        return rows, Tally(met, better, equal, lost_ties, infinite, own), asked.size

    def _keyed(self, rows: IntArray) -> Orders:
        return Orders(self.candidates.others[rows], self.keys[rows])


#: Targets, how many items each is compared with, and whether their own scores are needed as well.
Job: TypeAlias = "tuple[IntArray, int, bool]"
#: Targets, their tally, and how many scores were asked for.
Compared: TypeAlias = "tuple[IntArray, Tally, int]"


Given = TypeVar("Given")
Done = TypeVar("Done")


def in_threads(
    work: Callable[[Given], Done], jobs: Iterable[Given], workers: int
) -> Iterator[Done]:
    """Yield the results of all jobs, in their order."""
    if workers == 1:
        yield from map(work, jobs)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(work, jobs)


def _lengths(missing: IntArray, pairs: int) -> IntArray:
    """Return how many of its ``missing`` items each target takes: few different numbers."""
    found, where, times = np.unique(missing, return_inverse=True, return_counts=True)
    if len(found) > _FEW_LENGTHS:
        rare = found * times < _WORTH_A_CALL * pairs
        found = np.where(rare, 1 << np.floor(np.log2(found)).astype(np.int64), found)
    return np.asarray(found[where])


def _batches(rows: IntArray, length: IntArray, fresh: BoolArray, pairs: int) -> Iterator[Job]:
    """Yield batches of at most ``pairs`` scores, each with rows of one length."""
    kind = 2 * length + fresh
    order = np.argsort(-kind, kind="stable")
    edges = np.flatnonzero(np.diff(kind[order], prepend=-1, append=-1))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        size, new = divmod(int(kind[order[first]]), 2)
        step = max(1, pairs // (size + new))
        for start in range(first, last, step):
            yield rows[order[start : min(start + step, last)]], size, bool(new)


def as_key(rng: Seed) -> int:
    """Return a seed for keyed orders: the given one, or 63 bits drawn from a Generator."""
    if rng is None or isinstance(rng, np.random.Generator | np.random.SeedSequence):
        return int(as_rng(rng).integers(2**63))
    return check_integer("rng", rng, minimum=0, maximum=2**63 - 1)


def _as_pairs(targets: Any) -> tuple[npt.ArrayLike, npt.ArrayLike]:
    if isinstance(targets, Mapping):
        pairs = [(user, item) for user, some in targets.items() for item in np.atleast_1d(some)]
        return [user for user, _ in pairs], [item for _, item in pairs]
    if hasattr(targets, "tocoo"):
        found = targets.tocoo()
        kept = found.data != 0
        return found.coords[0][kept], found.coords[1][kept]
    if isinstance(targets, tuple | list) and len(targets) == 2:
        return targets[0], targets[1]
    raise InputError(f"targets must be {_SHAPES}, got {type(targets).__name__}")


def check_ids(name: str, ids: npt.ArrayLike, count: int | None, *, of: str) -> IntArray:
    """Return ids as integers; refuse those outside ``0..count-1``."""
    array = as_integer_array(name, ids, hint="ids are zero-based integers", error=InputError)
    bad = array < 0 if count is None else (array < 0) | (array >= count)
    if bad.any():
        where = int(np.argmax(bad))
        rule = "at least 0" if count is None else f"in 0..{count - 1} ({count} {of})"
        raise InputError(
            f"{name} must be {rule}, got {int(array[where])} "
            f"{at_position(where, array.size)} ({int(bad.sum())} such ids)"
        )
    return array.astype(np.int64, copy=False)


def as_excluded(exclude: Any, items: int) -> scipy.sparse.csr_array:
    """Return a sparse matrix of users x items that can be sliced by user, without duplicates."""
    from scipy.sparse import csr_array, issparse

    if not issparse(exclude):
        raise InputError(
            "exclude must be a scipy sparse matrix of users x items, got "
            f"{type(exclude).__name__}; pass interactions.matrix(), or None to keep every item"
        )
    matrix: scipy.sparse.csr_array = csr_array(cast("Any", exclude))
    if matrix.shape[1] != items:
        raise InputError(
            f"exclude must have {items} columns, one for each item, got {matrix.shape[1]}"
        )
    if matrix.has_canonical_format and matrix.data.all():  # sorted, and nothing twice
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
