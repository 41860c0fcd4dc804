"""`RankCounts`: counts of targets by design and sampled rank."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, FloatArray, IntArray, as_integer_array
from unsample.errors import DesignError, FileError, InputError, RankError
from unsample.evidence._catalogues import design_columns
from unsample.evidence._cells import WHOLE, DesignCells, check_cells, refuse_joint, span
from unsample.evidence._columns import (
    as_column,
    check_lengths,
    distinct_rows,
    joined,
    merge_equal,
    read_columns,
)
from unsample.evidence._pairs import PairCounts, pair_keys, shares_in
from unsample.evidence._shared import ItemCounts
from unsample.law import Law
from unsample.metrics import AUC, Metric

_KEYS = ("sampled", "items", "low", "high", "relevant", "place")
_COLUMNS = (*_KEYS, "count")
_SUMS = ("count", "weight", "weight_squared")


def _not_given() -> npt.NDArray[Any]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class RankCounts:
    """Counts of targets by design and sampled rank; build one with a ``from_`` method.

    >>> counts = RankCounts.from_ranks([1, 1, 3], items=1000, sampled=9)
    >>> counts
    RankCounts(3 targets, 2 cells, items=1000, sampled=9, with replacement)
    >>> RankCounts.merge([counts, counts]).total
    6
    """

    sampled: IntArray
    items: IntArray
    low: IntArray
    high: IntArray
    count: IntArray
    replacement: bool = True
    #: How many relevant items the users of a cell have; by default one.
    relevant: IntArray = field(default_factory=_not_given)
    #: The place of a cell's targets among those of their user; 0 where it is not known.
    place: IntArray = field(default_factory=_not_given)
    #: How many users there are; by default as many as targets, or as follows from ``relevant``.
    users: int = 0
    #: Pairs of targets of one user; None where each target has its own user, or it is not known.
    clusters: PairCounts | None = None
    #: The metric that the weights are for, and the mean over users of the sum of their weights.
    metric: Metric | None = None
    scale: float = 1.0
    #: Numbers of relevant items, and the weight of users with so many, where users have several.
    sizes: tuple[tuple[int, float], ...] = ()
    #: What is known of the items that targets share; None where each target has its own items.
    shared: ItemCounts | None = None
    #: What a cell's targets count together, and the sum over them of what each counts times what
    #: all targets of its user do. By default a target counts 1; a metric may weigh them.
    weight: FloatArray = field(default_factory=_not_given)
    weight_squared: FloatArray = field(default_factory=_not_given)

    def __post_init__(self) -> None:
        given: dict[str, Any] = {}
        relevant = self.relevant
        if not len(relevant):
            relevant = given["relevant"] = np.broadcast_to(np.int64(1), len(self.low))
        if not len(self.place):
            given["place"] = (relevant == 1).astype(np.int8)
        for name, values in given.items():
            object.__setattr__(self, name, values)
        check_lengths(self, _COLUMNS)
        check_cells(self)
        if not len(self.weight):
            object.__setattr__(self, "weight", self.count.astype(np.float64))
            object.__setattr__(self, "weight_squared", self._squares(None))
        merge_equal(self, _KEYS, _SUMS)
        if not self.users:
            users = round(float((self.count / self.relevant).sum()))
            object.__setattr__(self, "users", users)

    # -- building ---------------------------------------------------------------------------

    @classmethod
    def from_ranks(
        cls,
        ranks: npt.ArrayLike,
        *,
        items: npt.ArrayLike,
        sampled: npt.ArrayLike,
        count: npt.ArrayLike | None = None,
        users: npt.ArrayLike | None = None,
        replacement: bool = True,
    ) -> RankCounts:
        """Count sampled ranks (1 = best, at most sampled + 1), one for each target.

        ``items`` and ``sampled`` are single numbers, or one for each rank. ``users`` names the user
        of each rank: metrics are per user, and errors count users. Without users, ``count`` may say
        how many targets each rank stands for.
        """
        from unsample.evidence._targets import Targets

        found: Any = as_integer_array("ranks", ranks, hint=WHOLE)
        if count is None:
            return Targets(found, items, sampled, users, replacement).counts
        if users is not None:
            raise InputError("count must be left out with users; give the rank of each target")
        columns: dict[str, Any] = design_columns(items, sampled, found.size, replacement)
        columns |= dict.fromkeys(("low", "high"), found.astype(np.int64, copy=False))
        times = as_column("count", count, found.size)
        return cls(**columns, count=times, replacement=replacement)

    @classmethod
    def from_histogram(cls, histogram: npt.ArrayLike, design: Law) -> RankCounts:
        """Take the counts of the ranks 1, 2, ..., sampled + 1 of one design."""
        counts = as_integer_array("histogram", histogram)
        if len(counts) != design.n:
            raise RankError(
                f"histogram must hold sampled + 1 = {design.n} counts, got {len(counts)}"
            )
        ranks = np.flatnonzero(counts) + 1
        return cls.from_ranges(ranks, ranks, counts[ranks - 1], design)

    @classmethod
    def from_ranges(
        cls,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        count: npt.ArrayLike,
        design: Law,
    ) -> RankCounts:
        """Count targets whose sampled rank is only known to lie in ``low..high``."""
        lows = as_integer_array("low", low).astype(np.int64)
        counts = as_integer_array("count", count).astype(np.int64)
        size = len(lows)
        return cls(
            sampled=np.full(size, design.sampled),
            items=np.full(size, design.items),
            low=lows,
            high=as_integer_array("high", high).astype(np.int64),
            count=counts,
            replacement=design.replacement,
        )

    @classmethod
    def merge(cls, parts: Iterable[RankCounts]) -> RankCounts:
        """Add up counts made in parts: by workers, by files, by hours of a stream.

        >>> day = RankCounts.merge(RankCounts.from_ranks([r], items=50, sampled=9) for r in (1, 3))
        >>> day.count.tolist()
        [1, 1]
        """
        counts = list(parts)
        if not counts:
            raise InputError("parts must hold at least one RankCounts, got none")
        if len({part.replacement for part in counts}) > 1:
            raise DesignError(
                "counts must agree on replacement to be added, got some with and some without; "
                "estimate them separately"
            )
        alone = all(part.clusters is None for part in counts)
        clusters = None if alone else PairCounts.merge(part.pairs() for part in counts)
        shared = [part.shared for part in counts if part.shared is not None]
        if 0 < len(shared) < len(counts):
            raise DesignError("counts of shared and of own items must not be added; estimate apart")
        return replace(
            counts[0],
            **joined(counts, (*_KEYS, *_SUMS)),
            users=sum(part.users for part in counts),
            clusters=clusters,
            shared=ItemCounts.merge(shared) if shared else None,
        )

    # -- looking ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.low)

    @property
    def total(self) -> int:
        """Return the number of targets."""
        return int(self.count.sum())

    @property
    def several(self) -> bool:
        """Return whether some user has several relevant items: metrics then weigh targets."""
        return bool((self.relevant > 1).any())

    def for_metric(self, metric: Metric) -> RankCounts:
        """Return the counts with each target weighed as it counts in the metric of its user.

        The metric is then `scale` times the mean of w(R) over targets so weighed.
        """
        if not self.several:
            return self
        refuse_joint(metric, places=bool((self.place > 0).all()))
        shares = metric.shares(self.relevant, self.place)
        weight = self.weight * shares
        ones = np.ones_like(self.low)
        return replace(
            self,
            weight=weight,
            weight_squared=self._squares(metric),
            # The AUC of a rank depends on the number of the user's relevant items.
            relevant=self.relevant if metric.family is AUC else ones,
            place=ones,
            metric=metric,
            scale=float(weight.sum()) / self.users_weight,
            sizes=self._sizes(),
            shared=None if self.shared is None else self.shared.for_metric(metric),
        )

    def _squares(self, metric: Metric | None) -> FloatArray:
        """Return for each cell the sum of weights times that of all targets of the user.

        Their sum is that of the squared weights of users. It gives the effective number of targets
        if those of one user are taken as fully dependent.
        """
        shares = shares_in(metric, self.relevant, self.place)
        if self.clusters is None:
            return np.asarray(self.count * self.relevant * shares**2)
        pairs, keys = self.clusters, self.clusters.keys
        weights = pairs.count * shares_in(metric, keys[:, 3], keys[:, 4])[pairs.right]
        found, place = distinct_rows(np.concatenate([keys, pair_keys(vars(self))]))
        first, own = place[: len(keys)][pairs.left], place[len(keys) :]
        of_users = np.bincount(first, weights, minlength=len(found))
        targets = np.bincount(own, self.count, minlength=len(found))
        return np.asarray(self.count * shares * (of_users / np.maximum(targets, 1))[own])

    def _sizes(self) -> tuple[tuple[int, float], ...]:
        """Return how much users with each number of relevant items weigh."""
        sizes, where = np.unique(self.relevant, return_inverse=True)
        weights = np.bincount(where.reshape(-1), self.weight / self.relevant)
        return tuple(zip(sizes.tolist(), weights.tolist(), strict=True))

    def ceiling(self, metric: Metric) -> float:
        """Return the metric if every user's relevant items came first.

        No value is greater, because the ranks of one user differ.
        """
        if not self.sizes or metric.family.unlimited:
            return math.inf
        best = []
        for size, _ in self.sizes:
            places = np.arange(1, size + 1)
            shares = metric.shares(np.full(size, size), places)
            best.append(shares @ metric.weights(places, self.largest_catalogue))
        return float(np.average(best, weights=[weight for _, weight in self.sizes]))

    def take(self, cells: BoolArray) -> RankCounts:
        """Return some of the cells, without the users of their targets."""
        columns = {name: getattr(self, name)[cells] for name in (*_KEYS, *_SUMS)}
        return replace(self, **columns, users=0, clusters=None, shared=None)

    # -- users ------------------------------------------------------------------------------

    @property
    def users_weight(self) -> float:
        """Return the weight of all users."""
        if self.metric is not None:
            return float(self.weight.sum()) / self.scale
        return float((self.weight / self.relevant).sum())

    @property
    def effective_users(self) -> float:
        """Return the number of equally weighted users that would be as informative."""
        if self.clusters is None:
            return self.effective
        return self.users_weight**2 / self.clusters.users

    def pairs(self) -> PairCounts:
        """Return the pairs of targets of one user; without others, each is one with itself."""
        if self.clusters is not None:
            return self.clusters
        keys = pair_keys(vars(self))
        return PairCounts.of_cells(keys, keys, self.count)

    @property
    def effective(self) -> float:
        """Return the number of equally weighted targets that would be as informative."""
        return float(self.weight.sum() ** 2 / self.weight_squared.sum())

    @property
    def largest_catalogue(self) -> int:
        """Return the largest number of items among the designs."""
        return int(self.items.max())

    @property
    def largest_sample(self) -> int:
        """Return the largest number of sampled items among the designs."""
        return int(self.sampled.max())

    @property
    def blind_rank(self) -> float:
        """Return the rank down to which one sampled item falls on average: (N - 1)/(n - 1)."""
        return 1.0 / float(np.average(self.sampled / (self.items - 1), weights=self.weight))

    @property
    def full(self) -> BoolArray:
        """Return which cells hold targets that were compared with all their candidates."""
        return np.asarray((self.sampled == self.items - 1) & (not self.replacement), dtype=bool)

    @property
    def known(self) -> BoolArray:
        """Return which cells hold known global ranks: all candidates were compared."""
        return np.asarray(self.full & (self.low == self.high))

    def by_design(self) -> Iterator[DesignCells]:
        """Yield the cells of each design in turn."""
        change = (np.diff(self.sampled) != 0) | (np.diff(self.items) != 0)
        edges = np.concatenate([[0], np.flatnonzero(change) + 1, [len(self)]])
        for first, last in pairwise(edges):
            design = Law(int(self.items[first]), int(self.sampled[first]), self.replacement)
            columns = slice(int(first), int(last))
            yield DesignCells(design, self.low[columns], self.high[columns], columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RankCounts):
            return NotImplemented
        names = (*_COLUMNS, "replacement")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        how = "with" if self.replacement else "without"
        what = f"{self.total} targets"
        what += "" if self.users == self.total else f" of {self.users} users"
        return (
            f"RankCounts({what}, {len(self)} cells, items={span(self.items)}, "
            f"sampled={span(self.sampled)}, {how} replacement)"
        )

    # -- saving -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an ``.npz`` file, all or nothing."""
        from unsample.evidence._models import ModelCounts

        ModelCounts({"": self}, {}).save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RankCounts:
        """Read what `save` wrote."""
        from unsample.evidence._models import ModelCounts

        found = ModelCounts.load(path)
        if len(found) != 1:
            raise FileError(f"{str(path)!r} must hold one model, got {len(found)}; use ModelCounts")
        return next(iter(found.values()))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a file keeps of the cells."""
        design = np.array([self.users, self.replacement], dtype=np.int64)
        return {"design": design, **{name: getattr(self, name) for name in _COLUMNS}}

    @classmethod
    def from_arrays(
        cls,
        fields: Mapping[str, Any],
        source: str,
        clusters: PairCounts | None,
        shared: ItemCounts | None,
    ) -> RankCounts:
        """Take what `arrays` gave, and check it; ``source`` is for messages."""
        columns = read_columns(fields, source, (*_COLUMNS, "design"))
        design = columns.pop("design").tolist()
        if len(design) != 2 or design[0] < 1 or design[1] not in (0, 1):
            raise FileError(f"{source} must tell its users and its design, got {design}")
        found = cls(
            **columns,
            users=design[0],
            replacement=bool(design[1]),
            clusters=clusters,
            shared=shared,
        )
        cells = distinct_rows(pair_keys(vars(found)))[0]
        if clusters is not None and not np.array_equal(cells, clusters.keys):
            raise FileError(f"{source} must hold pairs of the cells that it counts, got others")
        return found
