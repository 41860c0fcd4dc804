"""`PoolCounts`: which items of a shared pool beat targets, counted by item and sampled rank.

Where all targets of a batch are ranked against one pool of drawn items, their sampled ranks depend
on each other through these items: a pool without any popular item lifts all targets at once. How
much this matters can be computed if it is known which item beat which target. Without item s, the
targets that it beat are one rank higher. So a mean over targets of scores of their ranks changes by

    A(s) = mean over targets i of  B(i, s) (score(r_i) - score(r_i - 1)),

where B(i, s) is 1 if item s beats target i, and 0 otherwise. All A(s) follow from the weight of the
targets that item s beats at each sampled rank. That is what is counted here. It can be added up
over parts of the targets, and its size does not depend on their number.

The sum of squares of A(s) about their mean is the jackknife estimate of the variance that comes
from the drawn items (Efron and Stein 1981). On average it is not too small, whatever the score is.
Items also differ because each target meets them with noise of its own. That part is already in the
variance between targets. It is known from the ranks alone, and is subtracted once (Cameron, Gelbach
and Miller 2011).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    FloatArray,
    IntArray,
    as_index,
    as_integer_array,
    check_choice,
    check_integer,
)
from unsample.errors import DesignError, FileError, InputError, RankError
from unsample.evidence._columns import (
    check_lengths,
    first_of_equal,
    joined,
    merge_equal,
    read_columns,
    refuse_where,
)
from unsample.evidence._drawn import DrawnPart, more_cautious, smoothed
from unsample.metrics import Metric

_KEYS = ("pool", "item", "rank", "relevant", "place")
_COLUMNS = (*_KEYS, "weight")
#: Whether targets have sampled items of their own, or share them.
NEGATIVES = ("own", "shared")


@dataclass(frozen=True, eq=False)
class PoolCounts:
    """The weight of the targets at each sampled rank that each item of a pool beats.

    Without any row, it is not known which item beats which target.

    >>> beats = np.array([[True, False, True], [False, False, True]])
    >>> PoolCounts.from_outcomes(beats, items=[7, 8, 9])
    PoolCounts(1 pool, sampled=3, 3 cells)
    """

    #: How many items each pool holds.
    sampled: int
    pool: IntArray
    item: IntArray
    #: The sampled rank of the beaten targets.
    rank: IntArray
    #: How many relevant items their users have, and their place among them: see `RankCounts`.
    relevant: IntArray
    place: IntArray
    weight: FloatArray

    def __post_init__(self) -> None:
        check_integer("sampled", self.sampled, minimum=2, error=DesignError)
        check_lengths(self, _COLUMNS)
        most = "ranks must be at most sampled + 1"
        refuse_where(self.rank > self.sampled + 1, most, self.rank, RankError)
        refuse_where(self.rank < 2, "a beaten target is not first", self.rank, RankError)
        merge_equal(self, _KEYS, ("weight",))
        if (np.unique(self._items()[0][0], return_counts=True)[1] > self.sampled).any():
            raise InputError(f"a pool must hold at most sampled = {self.sampled} items, got more")

    # -- building ---------------------------------------------------------------------------

    @classmethod
    def from_outcomes(
        cls,
        beats: npt.ArrayLike,
        *,
        items: npt.ArrayLike | None = None,
        pool: int = 0,
        relevant: IntArray | None = None,
        place: IntArray | None = None,
    ) -> PoolCounts:
        """Count outcomes by item: one row for each target, one column for each drawn item.

        ``items`` are numbers of the drawn items, by which two models are aligned; an item that was
        drawn twice needs two numbers. By default items are numbered by their columns. ``relevant``
        and ``place`` are as in `RankCounts`, where users have several targets.
        """
        beaten = np.asarray(beats, dtype=bool)
        if beaten.ndim != 2 or beaten.shape[1] < 2:
            raise InputError(
                "beats must have a row for each target and a column for each of at least two "
                f"items, got shape {beaten.shape}"
            )
        targets, sampled = beaten.shape
        labels = np.arange(sampled) if items is None else as_integer_array("items", items)
        if len(np.unique(labels)) != len(labels) or len(labels) != sampled:
            raise InputError(
                f"items must be {sampled} different numbers, one for each column of beats"
            )
        ones = np.ones(targets, dtype=np.int64)
        kinds = (ones if each is None else each for each in (relevant, place))
        # A column for each kind of target that occurs, and a row for each item.
        keys = np.stack([beaten.sum(axis=1) + 1, *kinds]).astype(np.int64)
        seen, column = np.unique(keys, axis=1, return_inverse=True)
        target, item = np.nonzero(beaten)
        cell = as_index(item * seen.shape[1] + column.reshape(-1)[target])
        by_item = np.bincount(cell, minlength=sampled * seen.shape[1]).reshape(sampled, -1)
        item, kind = np.nonzero(by_item)
        rank, of_user, at = seen[:, kind]
        return cls(
            sampled,
            np.full(len(item), pool, dtype=np.int64),
            labels[item].astype(np.int64),
            rank,
            of_user,
            at,
            by_item[item, kind].astype(np.float64),
        )

    @classmethod
    def without_outcomes(cls, sampled: int) -> PoolCounts:
        """Return what is known if only ranks were recorded: that items were shared."""
        columns: dict[str, Any] = {name: np.empty(0, dtype=np.int64) for name in _KEYS}
        return cls(sampled, **columns, weight=np.empty(0))

    @classmethod
    def merge(cls, parts: Iterable[PoolCounts]) -> PoolCounts:
        """Add up counts made in parts: of the same pools, or of others."""
        counts = list(parts)
        if not counts:
            raise InputError("parts must hold at least one PoolCounts, got none")
        sizes = sorted({part.sampled for part in counts})
        if len(sizes) > 1:
            raise DesignError(
                f"pools must be equally large to be added, got {sizes[0]} and {sizes[1]} items; "
                "keep counts for each size"
            )
        if not all(part.known for part in counts):
            return cls.without_outcomes(sizes[0])
        return replace(counts[0], **joined(counts, _COLUMNS))

    def for_metric(self, metric: Metric) -> PoolCounts:
        """Return the counts with each target weighed as it counts in the metric of its user."""
        ones = np.ones_like(self.rank)
        weight = self.weight * metric.shares(self.relevant, self.place)
        return replace(self, relevant=ones, place=ones, weight=weight)

    # -- looking ----------------------------------------------------------------------------

    @property
    def known(self) -> bool:
        """Return whether it is known which item beats which target."""
        return len(self.rank) > 0

    @property
    def pools(self) -> IntArray:
        """Return the numbers of the pools."""
        return np.unique(self.pool)

    def effects(self, scores: FloatArray, total: float) -> tuple[IntArray, FloatArray]:
        """Return (pool, item) and A(s) of the items that beat any target.

        ``scores`` has one number for each rank, and ``total`` is the weight of all targets.
        """
        keys, starts = self._items()
        changes = self.weight * np.diff(scores)[self.rank - 2]
        return keys, np.add.reduceat(changes, starts) / total if len(starts) else changes

    def part(
        self, keys: IntArray, effects: FloatArray, *, twice: float = 0.0, left: float = 1.0
    ) -> DrawnPart:
        """Return the items' part of a variance, given what leaving out each does; 0 if not named.

        ``twice`` is the part that the variance between targets contains as well. ``left`` is the
        share of the catalogue that a pool drawn without replacement leaves out.
        """
        pools, sampled = self.pools, self.sampled
        place = as_index(np.searchsorted(pools, keys[0]))
        mean = np.bincount(place, effects, minlength=len(pools)) / sampled
        centred = effects - mean[place]
        others = sampled - np.bincount(place, minlength=len(pools))
        squares, third, fourths = (
            float((centred**power).sum() + others @ (-mean) ** power) for power in (2, 3, 4)
        )
        effective = squares**2 / fourths if fourths > 0 else 0.0
        variance = left * max((1.0 - 1.0 / sampled) * squares - twice, 0.0)
        return DrawnPart(variance, left**1.5 * third, effective, sampled * len(pools))

    def _items(self) -> tuple[IntArray, IntArray]:
        """Return (pool, item) of the items that beat any target, and where their rows start."""
        keys = np.stack([self.pool, self.item])
        starts = np.flatnonzero(first_of_equal(keys)) if self.known else self.pool
        return keys[:, starts], starts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PoolCounts):
            return NotImplemented
        names = ("sampled", *_COLUMNS)
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        pools = len(self.pools)
        return (
            f"PoolCounts({pools} pool{'s' * (pools != 1)}, sampled={self.sampled}, "
            f"{len(self.rank)} cells)"
        )

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that `from_arrays` needs, for files."""
        fields = {"sampled": np.asarray(self.sampled)}
        return fields | {name: getattr(self, name) for name in _COLUMNS}

    @classmethod
    def from_arrays(cls, fields: Mapping[str, Any], source: str) -> PoolCounts:
        """Take what `arrays` gave, and check it; ``source`` is its name in messages."""
        columns = read_columns(fields, source, whole=_KEYS, reals=("weight",))
        size = np.asarray(fields.get("sampled"))
        if size.shape != () or size.dtype.kind not in "iu":
            raise FileError(f"{source} must hold the size of its pools, got {size}")
        return cls(int(size), **columns)


def difference_part(
    first: tuple[PoolCounts, FloatArray, float],
    second: tuple[PoolCounts, FloatArray, float],
    *,
    left: float = 1.0,
) -> DrawnPart:
    """Return the items' part for the mean of one model's scores less that of another's.

    Each is given by its pools, the score of each rank, and the weight of its targets. Both were
    ranked against the same pools, so what an item does to both cancels. The part that is also in
    the variance between targets is not known here: nothing is subtracted.
    """
    pools, other = first[0], second[0]
    if not np.array_equal(pools.pools, other.pools) or pools.sampled != other.sampled:
        raise InputError("models must have been ranked against the same pools to be compared")
    found = []
    for change in (np.asarray, smoothed):
        keys, effects = first[0].effects(change(first[1]), first[2])
        other_keys, other_effects = other.effects(change(second[1]), second[2])
        together, place = np.unique(
            np.concatenate([keys, other_keys], axis=1), axis=1, return_inverse=True
        )
        if (np.unique(together[0], return_counts=True)[1] > pools.sampled).any():
            raise InputError("models must number the items of a pool alike to be compared")
        both = np.bincount(place.reshape(-1), np.concatenate([effects, -other_effects]))
        found.append(pools.part(together, both.astype(np.float64), left=left))
    return more_cautious(*found)


def numbered(names: npt.ArrayLike) -> IntArray:
    """Return a number for each name of a pool or an item, the same wherever the name occurs."""
    array = np.asarray(names)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    distinct, place = np.unique(array.astype(np.str_), return_inverse=True)
    digests = [hashlib.sha256(name.encode()).digest()[:8] for name in distinct.tolist()]
    codes = np.array([int.from_bytes(each, "big") >> 1 for each in digests], dtype=np.int64)
    return np.asarray(codes[place.reshape(-1)])


def shared_pools(negatives: str, pools: npt.ArrayLike | None) -> npt.ArrayLike | None:
    """Return the pool of each target, or 0 where all share one; None where each has its own."""
    check_choice("negatives", negatives, NEGATIVES)
    return 0 if negatives == "shared" and pools is None else pools
