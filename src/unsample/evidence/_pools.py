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
    as_floats,
    check_lengths,
    first_of_equal,
    joined,
    merge_equal,
    read_columns,
    refuse_where,
)
from unsample.evidence._drawn import (
    DrawnPart,
    more_cautious,
    part_of_pools,
    smoothed,
)
from unsample.metrics import Metric

_FORMAT = "unsample.PoolCounts/1"
#: The keys of rows, and what is summed over rows with equal keys.
_TARGET_KEYS = ("pool", "rank", "relevant", "place")
_BEAT_KEYS = ("beat_pool", "beat_item", "beat_rank", "beat_relevant", "beat_place")
_TARGET_SUMS, _BEAT_SUMS = ("weight", "weight_squared"), ("beat_weight",)
_TARGETS, _BEATS = (*_TARGET_KEYS, *_TARGET_SUMS), (*_BEAT_KEYS, *_BEAT_SUMS)
_COLUMNS = (*_TARGETS, *_BEATS)


@dataclass(frozen=True, eq=False)
class PoolCounts:
    """Targets by pool and sampled rank, and the weight of those that each item beats.

    >>> beats = np.array([[True, False, True], [False, False, True]])
    >>> counts = PoolCounts.from_outcomes(beats, items=[7, 8, 9])
    >>> counts
    PoolCounts(1 pool, sampled=3, 2 cells, 3 cells of items)
    >>> counts.items_part([1.0, 0.5, 0.25, 0.125]).drawn
    3
    """

    #: How many items each pool holds.
    sampled: int
    pool: IntArray
    rank: IntArray
    #: How many relevant items the target's user has, and its place among them: see `RankCounts`.
    relevant: IntArray
    place: IntArray
    weight: FloatArray
    weight_squared: FloatArray
    beat_pool: IntArray
    beat_item: IntArray
    beat_rank: IntArray
    beat_relevant: IntArray
    beat_place: IntArray
    beat_weight: FloatArray
    #: Whether it is known which item beats which target.
    known: bool = True

    def __post_init__(self) -> None:
        check_integer("sampled", self.sampled, minimum=2, error=DesignError)
        check_lengths(self, _TARGETS)
        check_lengths(self, _BEATS)
        if not self.weight.sum() > 0:
            raise InputError("weights must not all be zero: there is nothing to estimate from")
        low, high = "ranks must be at least 1 (1 is the best)", "ranks must be at most sampled + 1"
        for ranks in (self.rank, self.beat_rank):
            refuse_where(ranks < 1, low, ranks, RankError)
            refuse_where(ranks > self.sampled + 1, high, ranks, RankError)
        refuse_where(self.beat_rank < 2, "a beaten target is not first", self.beat_rank, RankError)
        merge_equal(self, _TARGET_KEYS, _TARGET_SUMS)
        merge_equal(self, _BEAT_KEYS, _BEAT_SUMS)
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
        column, size = column.reshape(-1), seen.shape[1]
        target, item = np.nonzero(beaten)
        by_item = _counted(item * size + column[target], sampled * size).reshape(sampled, size)
        item, kind = np.nonzero(by_item)
        return cls(
            sampled,
            np.full(size, pool, dtype=np.int64),
            seen[0],
            seen[1],
            seen[2],
            weight=_counted(column),
            weight_squared=_counted(column),
            beat_pool=np.full(len(item), pool, dtype=np.int64),
            beat_item=labels[item].astype(np.int64),
            beat_rank=seen[0, kind],
            beat_relevant=seen[1, kind],
            beat_place=seen[2, kind],
            beat_weight=by_item[item, kind],
        )

    @classmethod
    def without_outcomes(
        cls,
        ranks: IntArray,
        pools: IntArray,
        *,
        sampled: int,
        relevant: IntArray,
        place: IntArray,
    ) -> PoolCounts:
        """Count targets of which only the rank and the pool are known."""
        nobody: dict[str, Any] = {name: np.empty(0, dtype=np.int64) for name in _BEAT_KEYS}
        return cls(
            sampled,
            pools,
            ranks,
            relevant,
            place,
            np.ones(len(ranks)),
            np.ones(len(ranks)),
            **nobody | {"beat_weight": np.empty(0), "known": False},
        )

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
        known = all(part.known for part in counts)
        return replace(counts[0], **joined(counts, _COLUMNS), known=known)

    def for_metric(self, metric: Metric) -> PoolCounts:
        """Return the counts with each target weighed as it counts in the metric of its user."""
        if (self.relevant == 1).all():
            return self
        shares = metric.shares(self.relevant, self.place)
        of_beats = metric.shares(self.beat_relevant, self.beat_place)
        ones, beats = np.ones_like(self.rank), np.ones_like(self.beat_rank)
        return replace(
            self,
            relevant=ones,
            place=ones,
            beat_relevant=beats,
            beat_place=beats,
            weight=self.weight * shares,
            weight_squared=self.weight_squared * shares**2,
            beat_weight=self.beat_weight * of_beats,
        )

    def __add__(self, other: object) -> PoolCounts:
        if not isinstance(other, PoolCounts):
            return NotImplemented
        return PoolCounts.merge((self, other))

    # -- looking ----------------------------------------------------------------------------

    @property
    def pools(self) -> IntArray:
        """Return the numbers of the pools."""
        return np.unique(self.pool)

    @property
    def total(self) -> float:
        """Return the weight of all targets."""
        return float(self.weight.sum())

    def pool_means(self, scores: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the mean score of each pool's targets, and each pool's share of the weight."""
        score, _ = self._versions(scores)
        _, place = np.unique(self.pool, return_inverse=True)
        weight = _sums(place, self.weight)
        return _sums(place, self.weight * score[self.rank - 1]) / weight, weight / self.total

    @property
    def estimable(self) -> bool:
        """Return whether anything is known of how far ranks depend on each other."""
        return self.known or len(self.pools) > 1

    def drawn_part(self, scores: npt.ArrayLike, *, left: float) -> DrawnPart:
        """Return the part of the variance that comes from the items, or else from the pools."""
        return self.items_part(scores, left=left) if self.known else self.between_part(scores)

    def between_part(self, scores: npt.ArrayLike) -> DrawnPart:
        """Return the variance of the mean of ``scores[r - 1]``, from how much pools differ.

        It needs no outcomes by item, and it includes the variance between targets.
        """
        means, shares = self.pool_means(scores)
        return part_of_pools(means, shares)

    def items_part(self, scores: npt.ArrayLike, *, left: float = 1.0) -> DrawnPart:
        """Return the items' part of the variance of the mean of ``scores[r - 1]`` over targets.

        ``left`` is the share of the catalogue that a pool drawn without replacement leaves out. The
        variance is multiplied by it.
        """
        found = []
        for score in self._versions(scores):
            rise = np.diff(score)[self.rank - 2] * (self.rank > 1)
            beaten = self.rank - 1.0
            each = self.weight_squared * rise**2 * beaten * (self.sampled - beaten) / self.sampled
            twice = (1.0 - 1.0 / self.sampled) * float(each.sum()) / self.total**2
            found.append(self._part(*self._effects(score), twice, left))
        return more_cautious(*found)

    def difference_part(
        self,
        other: PoolCounts,
        scores: npt.ArrayLike,
        other_scores: npt.ArrayLike,
        *,
        left: float = 1.0,
    ) -> DrawnPart:
        """Return the items' part for the mean of ``scores`` less that of another model's.

        Both models were ranked against the same pools, so what an item does to both cancels. The
        part that is also in the variance between targets is not known here: nothing is subtracted.
        """
        if not np.array_equal(self.pools, other.pools) or self.sampled != other.sampled:
            raise InputError("models must have been ranked against the same pools to be compared")
        found = []
        versions = zip(self._versions(scores), other._versions(other_scores), strict=True)
        for score, other_score in versions:
            keys, effects = self._effects(score)
            other_keys, other_effects = other._effects(other_score)
            joined, place = np.unique(
                np.concatenate([keys, other_keys], axis=1), axis=1, return_inverse=True
            )
            both = _sums(
                place.reshape(-1), np.concatenate([effects, -other_effects]), joined.shape[1]
            )
            if (np.unique(joined[0], return_counts=True)[1] > self.sampled).any():
                raise InputError("models must number the items of a pool alike to be compared")
            found.append(self._part(joined, both, 0.0, left))
        return more_cautious(*found)

    def _versions(self, scores: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        score = as_floats("scores", scores)
        if len(score) != self.sampled + 1:
            raise InputError(
                f"scores must be sampled + 1 = {self.sampled + 1} numbers, one for each rank, "
                f"got {len(score)}"
            )
        return score, smoothed(score)

    def _effects(self, score: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return (pool, item) and A(s) of the items that beat any target."""
        keys, starts = self._items()
        changes = self.beat_weight * np.diff(score)[self.beat_rank - 2]
        effects = np.add.reduceat(changes, starts) if len(starts) else changes
        return keys, effects / self.total

    def _part(self, keys: IntArray, effects: FloatArray, twice: float, left: float) -> DrawnPart:
        """Return the part of the items, given what leaving out each does; 0 where none is named.

        ``twice`` is the part that the variance between targets contains as well. ``left`` is the
        share of the catalogue that a pool drawn without replacement leaves out.
        """
        pools, sampled = self.pools, self.sampled
        place = np.searchsorted(pools, keys[0])
        mean = _sums(place, effects, len(pools)) / sampled
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
        keys = np.stack([self.beat_pool, self.beat_item])
        starts = np.flatnonzero(first_of_equal(keys))
        return keys[:, starts], starts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PoolCounts):
            return NotImplemented
        names = ("sampled", "known", *_COLUMNS)
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        pools = len(self.pools)
        return (
            f"PoolCounts({pools} pool{'s' * (pools != 1)}, sampled={self.sampled}, "
            f"{len(self.rank)} cells, {len(self.beat_rank)} cells of items)"
        )

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that `from_arrays` needs, for files."""
        fields = {"format": np.asarray(_FORMAT), "sampled": np.asarray(self.sampled)}
        fields["known"] = np.asarray(self.known)
        return fields | {name: getattr(self, name) for name in _COLUMNS}

    @classmethod
    def from_arrays(cls, fields: Mapping[str, Any], source: str) -> PoolCounts:
        """Take what `arrays` gave, and check it; ``source`` is its name in messages."""
        marker = str(fields.get("format"))
        if marker != _FORMAT:
            raise FileError(f"{source} must hold {_FORMAT}, got {marker}")
        whole, reals = (*_TARGET_KEYS, *_BEAT_KEYS), (*_TARGET_SUMS, *_BEAT_SUMS)
        columns = read_columns(fields, source, whole=whole, reals=reals)
        if not {"sampled", "known"} <= set(fields):
            raise FileError(f"{source} lacks sampled or known")
        sampled = np.asarray(fields["sampled"])
        size = check_integer(f"sampled in {source}", sampled.item(), minimum=2, error=FileError)
        return cls(size, **columns, known=bool(np.asarray(fields["known"])))


def numbered(names: npt.ArrayLike) -> IntArray:
    """Return a number for each name of a pool or an item, the same wherever the name occurs."""
    array = np.asarray(names)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    distinct, place = np.unique(array.astype(np.str_), return_inverse=True)
    digests = [hashlib.sha256(name.encode()).digest()[:8] for name in distinct.tolist()]
    codes = np.array([int.from_bytes(each, "big") >> 1 for each in digests], dtype=np.int64)
    return np.asarray(codes[place.reshape(-1)])


def _counted(place: npt.NDArray[Any], size: int = 0) -> FloatArray:
    """Return how often each place occurs."""
    return np.bincount(as_index(place), minlength=size).astype(np.float64)


def _sums(place: npt.NDArray[Any], values: FloatArray, size: int = 0) -> FloatArray:
    """Return the sum of the values at each place."""
    return np.bincount(as_index(place), values, minlength=size).astype(np.float64)


#: Whether targets have sampled items of their own, or share them.
NEGATIVES = ("own", "shared")


def shared_pools(negatives: str, pools: npt.ArrayLike | None) -> npt.ArrayLike | None:
    """Return the pool of each target, or 0 where all share one; None where each has its own."""
    check_choice("negatives", negatives, NEGATIVES)
    return 0 if negatives == "shared" and pools is None else pools
