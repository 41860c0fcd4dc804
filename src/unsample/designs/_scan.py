"""Comparing targets with more and more of their candidates, in each target's own random order.

`Candidates` says who is compared with whom. A `Scan` meets the items of each target in an order
made from a seed, the user and the target alone, and counts; how far each target goes is its
caller's business. Counts depend on the seed and on the scores, and on nothing else: not on the
other targets, nor on how the work is cut into batches, nor on threads, nor on interruptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

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

Excluded: TypeAlias = "scipy.sparse.sparray | scipy.sparse.spmatrix"

#: Targets whose excluded items are looked through at a time.
_ROWS = 1 << 14
#: Most items of one target in a call of the scorer.
_LONGEST_ROW = 1 << 16
#: Targets that miss so many different numbers of items are asked in lengths of powers of two,
#: unless those that miss alike fill this part of a batch: a call scores rows of one length.
_FEW_LENGTHS, _WORTH_A_CALL = 8, 0.125
_NOWHERE = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
_SHAPES = (
    "a pair (users, items) of equally long id arrays, a dict of user -> item or items, or a "
    "scipy sparse matrix of users x items"
)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Targets, the catalogue, and the pairs to leave out; build it with `check`."""

    users: IntArray
    targets: IntArray
    items: int
    exclude: scipy.sparse.csr_array | None
    #: Whether the other targets of a user are among what is left out.
    filtered: bool = False

    @classmethod
    def check(
        cls, targets: Any, items: int, exclude: Excluded | None = None, *, filtered: bool = False
    ) -> Candidates:
        """Check the targets and bring ``exclude`` into a form that can be sliced by user.

        ``targets`` are a pair (users, items), a dict of user -> items, or a sparse matrix. With
        ``filtered``, the other targets of its user are left out of a target's candidates.
        """
        items = check_integer("items", items, minimum=1, hint="items counts the whole catalogue")
        users, wanted = _as_pairs(targets)
        matrix = None if exclude is None else as_excluded(exclude, items)
        known_users = None if matrix is None else matrix.shape[0]
        user_ids = check_ids("users", users, known_users, of="rows of exclude")
        target_ids = check_ids("targets", wanted, items, of="items")
        if len(user_ids) != len(target_ids):
            raise InputError(
                f"users and targets must be as long as each other, got {len(user_ids)} and "
                f"{len(target_ids)}; a user with several targets is repeated"
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
        """Return some of the targets."""
        some = replace(self, users=self.users[rows], targets=self.targets[rows])
        if "others" in self.__dict__:  # counting them again would take as long
            some.__dict__["others"] = self.others[rows]
        return some

    def parts(self, rows: int) -> Iterator[tuple[slice, Candidates]]:
        """Yield the targets in order, at most ``rows`` at a time, and where they are."""
        for start in range(0, len(self), rows):
            place = slice(start, min(start + rows, len(self)))
            yield place, self.take(place)

    @cached_property
    def excluded(self) -> tuple[IntArray, npt.NDArray[np.integer[Any]]]:
        """Return the pairs (row, item) to leave out; a target is always a candidate."""
        if self.exclude is None:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        # Rows of the matrix, without its data: a slice of it takes several times as long.
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
        """Return the most targets of one user that compete with each other."""
        return 1 if self.filtered else int(np.bincount(as_index(self.users)).max())

    def refuse_repeated(self) -> None:
        """Refuse a user who has one item as a target twice."""
        pairs, count = np.unique(self.users * self.items + self.targets, return_counts=True)
        if (count > 1).any():
            user, item = divmod(int(pairs[np.argmax(count > 1)]), self.items)
            raise InputError(
                f"targets must name each item of a user once, got {int((count > 1).sum())} pairs "
                f"that come again, such as item {item} of user {user}"
            )

    def refuse_unrankable(self) -> None:
        """Refuse targets that are to be excluded, and those with nothing to be ranked against."""
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

        The other candidates of a target stand in the order of their ids: all items but itself
        and the excluded ones.
        """
        if self.exclude is None:
            return index + (index >= self.targets[:, None])
        row, column = self.excluded
        before = np.bincount(row[column < self.targets[row]], minlength=len(self))
        index = index + (index >= (self.targets - before)[:, None])
        # Place j is the item j + (excluded items up to it): of the sorted excluded items e_0,
        # e_1, ... those with e_i - i <= j. One search serves all rows, each in a range of its own.
        first = np.searchsorted(row, np.arange(len(self)))
        ranges = np.arange(len(self)) * (self.items + 1)
        keys = column - (np.arange(len(row)) - first[row]) + ranges[row]
        found = np.searchsorted(keys, index + ranges[:, None], side="right")
        return np.asarray(index + (found - first[:, None]))

    def items_from(self, first: IntArray, count: int) -> IntArray:
        """Return the items at places ``first, first + 1, ...``, as `items_at` has them.

        From place to place the item is the next one, but where some are passed over.
        """
        if self.exclude is None:
            return self.items_at(first[:, None] + np.arange(count))
        row, column = self.excluded
        own, begin = self.targets[row], np.searchsorted(row, np.arange(len(self)))
        before = np.bincount(row[column < own], minlength=len(self))
        # After so many other candidates comes each item that is passed over.
        after = column - (np.arange(len(row)) - begin[row]) - (column > own)
        after = np.concatenate([after, self.targets - before])
        row = np.concatenate([row, np.arange(len(self))])
        place = after - first[row]
        steps = np.ones((len(self), count), dtype=np.int64)
        steps[:, 0] = first + np.bincount(row[place <= 0], minlength=len(self))
        inside = (place > 0) & (place < count)
        np.add.at(steps, (row[inside], place[inside]), 1)
        return np.cumsum(steps, axis=1, out=steps)


@dataclass(frozen=True, eq=False)
class Tally:
    """What is known of each target: how many items it met, and how it compared with them."""

    scored: IntArray
    better: IntArray
    equal: IntArray
    #: Those of the equal ones that stand above the target when ties are broken at random.
    lost_ties: IntArray
    #: Items whose score is infinite; they stand above or below all finite ones.
    infinite: IntArray
    #: The target's own score; NaN until it is asked for, with the target's first items.
    own: FloatArray

    @classmethod
    def empty(cls, targets: int) -> Tally:
        """Return the tally of targets that met no item yet."""
        counts = {each.name: np.zeros(targets, dtype=np.int64) for each in fields(cls)}
        return cls(**counts | {"own": np.full(targets, np.nan)})

    def beaten(self, ties: str) -> IntArray:
        """Return how many items stand above each target under a tie rule."""
        if ties == "optimistic":
            return self.better
        return self.better + (self.lost_ties if ties == "random" else self.equal)

    def add(self, rows: IntArray, part: Tally) -> None:
        """Count in what ``rows`` met."""
        for field in fields(self)[:-1]:
            getattr(self, field.name)[rows] += getattr(part, field.name)
        self.own[rows] = part.own


class Listener(Protocol):
    """Whoever is told what was scored."""

    def note(self, users: IntArray, items: IntArray, scores: npt.NDArray[np.floating[Any]]) -> None:
        """Take notice of the scores of some items for each of some users."""


class ItemOrders(Protocol):
    """An order of its candidates for each target."""

    def items(self, rows: IntArray, first: IntArray, count: int) -> IntArray:
        """Return the items that some targets meet as number ``first, first + 1, ...``."""


class Learner(Protocol):
    """Whoever counts which items beat targets."""

    def add(self, items: IntArray, better: BoolArray) -> None:
        """Take note of items that some targets met."""


@dataclass(frozen=True, eq=False)
class Scan:
    """Targets, their candidates and the orders in which they meet them, random ones by default."""

    score: Score
    candidates: Candidates
    keys: LongWords
    replacement: bool
    guided: ItemOrders | None = None
    listener: Listener | None = None
    learner: Learner | None = None

    @cached_property
    def shuffle(self) -> IntArray:
        """Return a random order of the targets, which models with one seed share."""
        return np.argsort(self.keys, kind="stable")

    def advance(
        self, tally: Tally, goal: IntArray, *, batch: int, workers: int = 1
    ) -> Iterator[int]:
        """Compare every target with items until it met ``goal`` of them; count in ``tally``.

        A target's own score is asked for once, with its first items; no score is asked for in
        vain. Yields how many scores each call of the scorer gave, after they are counted.
        """
        while (rows := np.flatnonzero(tally.scored < goal)).size:
            missing = np.minimum((goal - tally.scored)[rows], _LONGEST_ROW)
            fresh = np.isnan(tally.own[rows])
            jobs = _batches(rows, _lengths(missing, batch), fresh, batch)
            for done, part, asked, seen in self._compared(jobs, tally, workers):
                tally.add(done, part)
                if self.learner is not None:
                    self.learner.add(*seen)
                yield asked

    def own_scores(self, rows: IntArray) -> FloatArray:
        """Ask for the own scores of some targets."""
        users, asked = self.candidates.users[rows], self.candidates.targets[rows][:, None]
        scores = as_scores(self.score(users, asked), asked.shape, users, asked)
        return scores[:, 0].astype(np.float64)

    def tie_place(self) -> FloatArray:
        """Return where in 0..1 each target stands among the items that tie with it."""
        rows = np.arange(len(self.keys))
        return self._orders(rows).tie_place(rows)

    def _compared(self, jobs: Iterator[Job], tally: Tally, workers: int) -> Iterator[Compared]:
        if workers == 1:
            yield from (self._compare(job, tally) for job in jobs)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(lambda job: self._compare(job, tally), jobs)

    def _compare(self, job: Job, tally: Tally) -> Compared:
        rows, length, fresh = job
        some, orders = self.candidates.take(rows), self._orders(rows)
        users, targets = some.users, some.targets
        if self.guided is not None:
            items = self.guided.items(rows, tally.scored[rows], length)
        else:
            stretch = orders.draws if self.replacement else orders.positions
            items = some.items_at(stretch(tally.scored[rows], length))
        asked = np.concatenate([targets[:, None], items], axis=1) if fresh else items
        scores = as_scores(self.score(users, asked), asked.shape, users, asked)
        if self.listener is not None:
            self.listener.note(users, asked, scores)
        own = tally.own[rows]
        if fresh:
            own = scores[:, 0].astype(np.float64)
            refuse_infinite_targets(own, users, targets)
            scores = scores[:, 1:]
        rival = own.astype(scores.dtype)  # numbers of one kind are compared in half the time
        rival = rival if np.array_equal(rival, own) else own
        tied = scores == rival[:, None]
        # A look whether there is any is quicker than a list of none.
        row, column = np.nonzero(tied) if tied.any() else _NOWHERE
        lost = orders.tie_is_lost(row, items[row, column])
        row = as_index(row)
        infinite = np.zeros(len(rows), dtype=np.int64)
        with np.errstate(invalid="ignore", over="ignore"):
            total = scores.sum()
        if not np.isfinite(total):  # a sum is quicker than a look at each score
            infinite = np.count_nonzero(np.isinf(scores), axis=1)
        better = scores > rival[:, None]
        part = Tally(
            np.full(len(rows), length),
            np.count_nonzero(better, axis=1),
            np.bincount(row, minlength=len(rows)),
            np.bincount(row[lost], minlength=len(rows)),
            infinite,
            own,
        )
        return rows, part, asked.size, (items, better)

    def _orders(self, rows: IntArray) -> Orders:
        return Orders(self.candidates.others[rows], self.keys[rows])


#: Targets that are asked for as many items each; whether their own scores are asked for as well.
Job: TypeAlias = "tuple[IntArray, int, bool]"
#: Targets, their part of the tally, how many scores were asked for, the items, and which beat.
Compared: TypeAlias = "tuple[IntArray, Tally, int, tuple[IntArray, BoolArray]]"


def _lengths(missing: IntArray, pairs: int) -> IntArray:
    """Return how many items to ask for of what each target misses, few different numbers."""
    found, where, times = np.unique(missing, return_inverse=True, return_counts=True)
    if len(found) > _FEW_LENGTHS:
        rare = found * times < _WORTH_A_CALL * pairs
        found = np.where(rare, 1 << np.floor(np.log2(found)).astype(np.int64), found)
    return np.asarray(found[where])


def _batches(rows: IntArray, length: IntArray, fresh: BoolArray, pairs: int) -> Iterator[Job]:
    """Cut targets into batches of at most ``pairs`` scores, in which all rows are equally long."""
    kind = 2 * length + fresh
    order = np.argsort(-kind, kind="stable")
    edges = np.flatnonzero(np.diff(kind[order], prepend=-1, append=-1))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        size, new = divmod(int(kind[order[first]]), 2)
        step = max(1, pairs // (size + new))
        for start in range(first, last, step):
            yield rows[order[start : min(start + step, last)]], size, bool(new)


def as_key(rng: Seed) -> int:
    """Return a seed for keyed orders: the one given, or one draw of 63 bits from a Generator."""
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
    """Return ids as integers in ``0..count-1``, or name the first that is not."""
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
    """Return a matrix of users x items in a form that can be sliced by user, nothing twice."""
    from scipy.sparse import csr_array, issparse

    if not issparse(exclude):
        raise InputError(
            "exclude must be a scipy sparse matrix of users x items, got "
            f"{type(exclude).__name__}; pass interactions.matrix(), or None to keep every item"
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
