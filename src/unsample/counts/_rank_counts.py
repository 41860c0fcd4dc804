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

from unsample._checks import (
    LARGEST_CATALOGUE,
    BoolArray,
    FloatArray,
    IntArray,
    as_integer_array,
    check_flag,
)
from unsample._fields import Field, read_fields, refuse_unless
from unsample.counts._catalogues import are_many, design_columns, sizes_on_grid, some_in_full
from unsample.counts._columns import (
    as_column,
    check_lengths,
    distinct_rows,
    joined,
    merge_equal,
)
from unsample.counts._design_cells import WHOLE, DesignCells, check_cells, refuse_joint, span
from unsample.counts._shared_items import ItemCounts
from unsample.counts._user_pairs import PairCounts, pair_keys, shares_in
from unsample.errors import DesignError, FileError, InputError, RankError
from unsample.metrics import AUC, Metric
from unsample.sampling import SamplingModel

_KEYS = ("sampled", "items", "low", "high", "relevant", "position")
_COLUMNS = (*_KEYS, "smallest", "largest", "count")
_SIZE = Field("whole", ("cells",), low=1, high=LARGEST_CATALOGUE)
#: The arrays of a file: one value for each cell; the design is the number of users, and whether an
#: item may be drawn twice for a target.
_FIELDS = dict.fromkeys(_COLUMNS, _SIZE) | {
    "low": Field("whole", ("cells",), low=1, high=LARGEST_CATALOGUE + 1),
    "high": Field("whole", ("cells",), low=1, high=LARGEST_CATALOGUE + 1),
    "position": Field("whole", ("cells",), low=0, high=LARGEST_CATALOGUE),
    "count": Field("whole", ("cells",), low=0, high=LARGEST_CATALOGUE),
    "design": Field("whole", (2,), low=(1, 0), high=(LARGEST_CATALOGUE, 1)),
}
_SUMS = ("count", "weight", "_squared_weights")
_PARTS = (*_KEYS, "smallest", "largest", *_SUMS)


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
    #: The position of a cell's targets among their user's targets: 1 is the best, 0 is unknown.
    position: IntArray = field(default_factory=_not_given)
    #: The true smallest and largest catalogue of a cell's targets. By default they are ``items``,
    #: which is on a grid where there are many sizes.
    smallest: IntArray = field(default_factory=_not_given)
    largest: IntArray = field(default_factory=_not_given)
    #: How many users there are; by default as many as targets, or as follows from ``relevant``.
    users: int = 0
    #: Pairs of targets of one user; None where each target has its own user, or it is not known.
    clusters: PairCounts | None = None
    #: The metric that the weights are for; None where each target counts 1.
    metric: Metric | None = None
    #: The items that targets share; None where each target has its own items.
    shared: ItemCounts | None = None
    #: Whether targets with ``sampled = items - 1`` were compared with all other items, although the
    #: samples of other targets were drawn with replacement. It is so where samples differ in size.
    mixed: bool = False
    #: The sum of the weights of a cell's targets. By default a target has the weight 1, and a
    #: metric may give another one (`for_metric`).
    weight: FloatArray = field(default_factory=_not_given)
    #: See the properties `squared_weights` and `weight_per_user`. Where there are weights without
    #: squares, each target has the weight 1 and a user of its own.
    _squared_weights: FloatArray = field(default_factory=_not_given)
    _weight_per_user: float = 1.0
    #: Where users have several relevant items: each number of them, and the weight of its users.
    _user_weights: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        self._set("replacement", check_flag("replacement", self.replacement))
        self._complete_columns()
        check_lengths(self, _COLUMNS)
        check_cells(self)
        self._complete_weights()
        merge_equal(self, _KEYS, sums=_SUMS, minima=("smallest",), maxima=("largest",))
        if self.replacement and not self.mixed:
            self._set("mixed", some_in_full(self.items, self.sampled))
        if not self.users:
            self._set("users", round(float((self.count / self.relevant).sum())))

    def _set(self, name: str, value: object) -> None:
        """Complete a field, while the object is made."""
        object.__setattr__(self, name, value)

    def _complete_columns(self) -> None:
        """Fill the columns that were left out."""
        if not len(self.relevant):
            self._set("relevant", np.broadcast_to(np.int64(1), len(self.low)))
        if not len(self.position):
            self._set("position", (self.relevant == 1).astype(np.int8))
        if not len(self.smallest):
            self._set("smallest", self.items)
        if not len(self.largest):
            self._set("largest", self.items)

    def _complete_weights(self) -> None:
        """Let each target weigh 1, unless weights are there."""
        if not len(self.weight):
            self._set("weight", self.count.astype(np.float64))
            self._set("_squared_weights", self._squares(None))
        if not len(self._squared_weights):
            self._set("_squared_weights", self.weight)

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

        Parameters
        ----------
        ranks
            The sampled rank of each target.
        items, sampled
            The size of the catalogue and the number of sampled items: one number for all, or one
            for each rank. Where samples differ in size, a sample of ``items - 1`` items is all
            other items, and the rank is known.
        count
            Without ``users``: how many targets each rank stands for.
        users
            The user of each rank. Metrics are then per user, and errors count users.
        replacement
            Whether an item may be drawn twice for a target.

        Raises
        ------
        InputError
            The ranks cannot come from the design, or both ``count`` and ``users`` are given.

        >>> counts = RankCounts.from_ranks([1, 3, 240], items=500, sampled=[9, 9, 499])
        >>> counts.known.tolist()
        [False, False, True]
        >>> RankCounts.from_ranks([1, 3], items=500, sampled=9, count=[20, 5]).total
        25
        """
        from unsample.counts._targets import Targets

        whole: Any = as_integer_array("ranks", ranks, hint=WHOLE)
        if count is None:
            return Targets(
                ranks=whole, items=items, sampled=sampled, users=users, replacement=replacement
            ).counts
        if users is not None:
            raise InputError("count must be left out with users; give the rank of each target")
        columns: dict[str, Any] = design_columns(
            items, sampled, size=whole.size, replacement=replacement
        )
        single_ranks = whole.astype(np.int64, copy=False)
        return cls(
            **columns,
            low=single_ranks,
            high=single_ranks,
            count=as_column("count", count, size=whole.size),
            replacement=replacement,
        )

    @classmethod
    def from_histogram(cls, histogram: npt.ArrayLike, design: SamplingModel) -> RankCounts:
        """Take the counts of the ranks 1, 2, ..., sampled + 1 of one design.

        Raises
        ------
        RankError
            If there are not ``sampled + 1`` counts.

        >>> RankCounts.from_histogram([5, 0, 2], SamplingModel(items=50, sampled=2))
        RankCounts(7 targets, 2 cells, items=50, sampled=2, with replacement)
        """
        counts = as_integer_array("histogram", histogram)
        if len(counts) != design.n:
            raise RankError(
                f"histogram must hold sampled + 1 = {design.n} counts, got {len(counts)}"
            )
        ranks = np.flatnonzero(counts) + 1
        return cls.from_ranges(ranks, ranks, count=counts[ranks - 1], design=design)

    @classmethod
    def from_ranges(
        cls,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        count: npt.ArrayLike,
        design: SamplingModel,
    ) -> RankCounts:
        """Count targets whose sampled rank is only known to lie in ``low..high``.

        >>> design = SamplingModel(items=5000, sampled=99)
        >>> counts = RankCounts.from_ranges([1, 6], [5, 10], count=[30, 12], design=design)
        >>> counts.low.tolist(), counts.high.tolist(), counts.total
        ([1, 6], [5, 10], 42)
        """
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

        Raises
        ------
        InputError
            There is no part.
        DesignError
            Some parts were sampled with replacement and some without, or some share their items
            and some do not.

        >>> day = RankCounts.merge(RankCounts.from_ranks([r], items=50, sampled=9) for r in (1, 3))
        >>> day.count.tolist()
        [1, 1]
        """
        counts = list(parts)
        if not counts:
            raise InputError("parts must hold at least one RankCounts, got none")
        counts = _agreeing_on_replacement(counts)
        whole = replace(
            counts[0],
            **joined(counts, _PARTS),
            users=sum(part.users for part in counts),
            clusters=_all_pairs(counts),
            shared=_all_shared_items(counts),
        )
        return whole.rounded()

    def rounded(self) -> RankCounts:
        """Return the counts with the sizes of catalogues on the grid, if there are many.

        Parts that have few sizes each may have many together.
        """
        if not self.many_sizes:
            return self
        items = sizes_on_grid(self.items, self.sampled, keep_full=self.tells_full)
        clusters = None if self.clusters is None else self.clusters.rounded_like(self, self)
        return replace(self, items=items, clusters=clusters)

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

        The metric is then `weight_per_user` times the weighted mean of w(R) over targets.

        Of a user with two relevant items each counts half in Recall: the targets at rank 1 weigh
        1/2 and 1. In Precision@5 each target counts wholly, so users weigh 1.5 on average.

        >>> from unsample.metrics import parse
        >>> counts = RankCounts.from_ranks([1, 3, 1], items=50, sampled=9, users=[7, 7, 8])
        >>> recall, precision = (counts.for_metric(parse(m)) for m in ("Recall", "Precision@5"))
        >>> recall.weight.tolist(), recall.weight_per_user
        ([1.5, 0.5], 1.0)
        >>> precision.weight.tolist(), precision.weight_per_user
        ([2.0, 1.0], 1.5)
        """
        if not self.several:
            return self
        refuse_joint(metric, positions=bool((self.position > 0).all()))
        shares = metric.shares(self.relevant, self.position)
        weight = self.weight * shares
        ones = np.ones_like(self.low)
        return replace(
            self,
            weight=weight,
            _squared_weights=self._squares(metric),
            # The AUC of a rank depends on the number of the user's relevant items.
            relevant=self.relevant if metric.family is AUC else ones,
            position=ones,
            metric=metric,
            _weight_per_user=float(weight.sum()) / self.users_weight,
            _user_weights=self._weights_by_relevant(),
            shared=None if self.shared is None else self.shared.for_metric(metric),
        )

    def _squares(self, metric: Metric | None) -> FloatArray:
        """Return `squared_weights` for the weights that targets have in a metric."""
        shares = shares_in(metric, relevant=self.relevant, position=self.position)
        if self.clusters is None:
            # Which targets are of one user is not known: all of a user's weigh alike.
            return np.asarray(self.count * self.relevant * shares**2)
        return np.asarray(self.count * shares * self._user_weight(self.clusters, metric))

    def _user_weight(self, pairs: PairCounts, metric: Metric | None) -> FloatArray:
        """Return, by cell, the mean over targets of the weight of all targets of their user.

        A pair of targets adds the weight of the second to the user's weight of the first. So the
        sum over the pairs whose first target is in a cell is the sum over the cell's targets.

        User 7 has two targets, at the ranks 1 and 3. User 8 has one, at rank 1, in a cell of its
        own because there is one relevant item.

        >>> counts = RankCounts.from_ranks([1, 3, 1], items=50, sampled=9, users=[7, 7, 8])
        >>> counts._user_weight(counts.pairs(), None).tolist()
        [1.0, 2.0, 2.0]
        """
        shares = shares_in(metric, relevant=pairs.keys[:, 3], position=pairs.keys[:, 4])
        added = pairs.count * shares[pairs.right]
        distinct, index = distinct_rows(np.concatenate([pairs.keys, pair_keys(vars(self))]))
        of_key, of_cell = np.split(index, [len(pairs.keys)])
        total = np.bincount(of_key[pairs.left], added, minlength=len(distinct))
        targets = np.bincount(of_cell, self.count, minlength=len(distinct))
        return np.asarray((total / np.maximum(targets, 1))[of_cell])

    def _weights_by_relevant(self) -> tuple[tuple[int, float], ...]:
        """Return each number of relevant items, and the weight of the users who have it."""
        numbers, index = np.unique(self.relevant, return_inverse=True)
        weights = np.bincount(index.reshape(-1), self.weight / self.relevant)
        return tuple(zip(numbers.tolist(), weights.tolist(), strict=True))

    def ceiling(self, metric: Metric) -> float:
        """Return the metric if every user's relevant items came first.

        No value is greater, because the ranks of one user differ.

        A user with three relevant items cannot have more than two of them among the first two.

        >>> from unsample.metrics import parse
        >>> counts = RankCounts.from_ranks([1, 3, 4], items=50, sampled=9, users=[7, 7, 7])
        >>> metric = parse("Recall@2")
        >>> round(counts.for_metric(metric).ceiling(metric), 3)
        0.667
        """
        if not self._user_weights or metric.family.unlimited:
            return math.inf
        best_values = []
        for relevant, _ in self._user_weights:
            positions = np.arange(1, relevant + 1)
            shares = metric.shares(np.full(relevant, relevant), positions)
            best_values.append(shares @ metric.weights(positions, self.largest_catalogue))
        users = [weight for _, weight in self._user_weights]
        return float(np.average(best_values, weights=users))

    def take(self, cells: BoolArray) -> RankCounts:
        """Return some of the cells, without the users of their targets.

        >>> counts = RankCounts.from_ranks([1, 1, 3], items=50, sampled=9)
        >>> counts.take(counts.low == 1).total
        2
        """
        columns = {name: getattr(self, name)[cells] for name in _PARTS}
        return replace(self, **columns, users=0, clusters=None, shared=None)

    # -- users ------------------------------------------------------------------------------

    @property
    def users_weight(self) -> float:
        """Return the weight of all users."""
        if self.metric is not None:
            return float(self.weight.sum()) / self._weight_per_user
        return float((self.weight / self.relevant).sum())

    @property
    def weight_per_user(self) -> float:
        """Return the mean over users of the sum of their targets' weights; 1 without a metric.

        A metric is this times the weighted mean of w(R) over targets.
        """
        return self._weight_per_user

    @property
    def squared_weights(self) -> FloatArray:
        """Return, by cell, the sum over targets of their own weight times the user's weight.

        A user weighs as much as the user's targets together. So the sum over all cells is the sum
        of the squared weights of users. It gives the effective number of targets, with the
        targets of one user taken as fully dependent.

        Here one user has a single target, at rank 1, and another one has two, at the ranks 1 and
        3: the squares are 1 and 2^2, and the latter is shared by two cells.

        >>> counts = RankCounts.from_ranks([1, 3, 1], items=50, sampled=9, users=[7, 7, 8])
        >>> counts.squared_weights.tolist(), counts.effective       # 3^2 / (1 + 2 + 2)
        ([1.0, 2.0, 2.0], 1.8)
        """
        return self._squared_weights

    @property
    def effective_users(self) -> float:
        """Return the number of equally weighted users that would be as informative."""
        if self.clusters is None:
            return self.effective
        return self.users_weight**2 / self.clusters.users

    def pairs(self) -> PairCounts:
        """Return the pairs of targets of one user; without any, each target pairs with itself."""
        if self.clusters is not None:
            return self.clusters
        keys = pair_keys(vars(self))
        return PairCounts.of_cells(keys, keys, count=self.count)

    @property
    def effective(self) -> float:
        """Return the number of equally weighted targets that would be as informative."""
        return float(self.weight.sum() ** 2 / self._squared_weights.sum())

    @property
    def largest_catalogue(self) -> int:
        """Return the largest number of items among the designs, which may be on a grid."""
        return int(self.items.max())

    @property
    def catalogues(self) -> tuple[int, int]:
        """Return the true smallest and largest number of items."""
        return int(self.smallest.min()), int(self.largest.max())

    @property
    def samples(self) -> tuple[int, int]:
        """Return the smallest and largest number of sampled items."""
        return int(self.sampled.min()), int(self.sampled.max())

    @property
    def many_sizes(self) -> bool:
        """Return whether there are too many sizes of catalogues to keep each: they are rounded."""
        return are_many(self.items, smallest=self.smallest, largest=self.largest)

    @property
    def largest_sample(self) -> int:
        """Return the largest number of sampled items, beside targets that were ranked in full."""
        drawn = self._drawn
        return int((self.sampled[drawn] if drawn.any() else self.sampled).max())

    @property
    def blind_rank(self) -> float:
        """Return the rank down to which one sampled item falls on average: (N - 1)/(n - 1).

        Targets that were ranked in full beside others are left out.

        >>> RankCounts.from_ranks([1, 3], items=1000, sampled=9).blind_rank
        111.0
        """
        drawn = self._drawn
        share = self.sampled[drawn] / (self.items[drawn] - 1)
        return 1.0 / float(np.average(share, weights=self.weight[drawn]))

    @property
    def _drawn(self) -> BoolArray:
        """Return which cells are not of targets that were ranked in full beside others."""
        return ~self.full if self.mixed else np.ones(len(self), dtype=bool)

    @property
    def tells_full(self) -> bool:
        """Return whether ``sampled = items - 1`` says that all other items were compared."""
        return not self.replacement or self.mixed

    @property
    def full(self) -> BoolArray:
        """Return which cells hold targets that were compared with all their candidates."""
        return np.asarray((self.sampled == self.items - 1) & self.tells_full, dtype=bool)

    @property
    def known(self) -> BoolArray:
        """Return which cells hold known global ranks: all candidates were compared."""
        return np.asarray(self.full & (self.low == self.high))

    def by_design(self) -> Iterator[DesignCells]:
        """Yield the cells of each design in turn.

        >>> counts = RankCounts.from_ranks([1, 3, 2], items=[50, 50, 90], sampled=9)
        >>> [(cells.design.items, cells.low.tolist()) for cells in counts.by_design()]
        [(50, [1, 3]), (90, [2])]
        """
        differs_from_last = (np.diff(self.sampled) != 0) | (np.diff(self.items) != 0)
        edges = np.concatenate([[0], np.flatnonzero(differs_from_last) + 1, [len(self)]])
        full = self.full
        for start, stop in pairwise(edges):
            design = SamplingModel(
                int(self.items[start]),
                int(self.sampled[start]),
                replacement=self.replacement and not full[start],
            )
            columns = slice(int(start), int(stop))
            yield DesignCells(
                design=design, low=self.low[columns], high=self.high[columns], columns=columns
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RankCounts):
            return NotImplemented
        names = (*_COLUMNS, "replacement")
        return all(np.array_equal(vars(self)[name], vars(other)[name]) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        with_or_without = "with" if self.replacement else "without"
        of_users = "" if self.users == self.total else f" of {self.users} users"
        return (
            f"RankCounts({self.total} targets{of_users}, {len(self)} cells, "
            f"items={span(*self.catalogues)}, sampled={span(*self.samples)}, "
            f"{with_or_without} replacement)"
        )

    # -- saving -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an ``.npz`` file, all or nothing; `load` and `unsample.estimate` read it."""
        from unsample.counts._model_counts import ModelCounts

        ModelCounts({"": self}, {}).save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RankCounts:
        """Read what `save` wrote.

        Raises
        ------
        FileError
            If the file is another one, damaged, or holds several models.
        """
        from unsample.counts._model_counts import ModelCounts

        models = ModelCounts.load(path)
        if len(models) != 1:
            raise FileError(
                f"{str(path)!r} must hold one model, got {len(models)}; use ModelCounts"
            )
        return next(iter(models.values()))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a file keeps of the cells."""
        design = np.array([self.users, self.replacement], dtype=np.int64)
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return {"design": design, **columns}

    @classmethod
    def from_arrays(
        cls,
        fields: Mapping[str, Any],
        source: str,
        clusters: PairCounts | None,
        shared: ItemCounts | None,
    ) -> RankCounts:
        """Take what `arrays` gave, and check it; ``source`` is for messages."""
        columns: dict[str, Any] = read_fields(fields, _FIELDS, where=source)
        users, replacement = columns.pop("design").tolist()
        try:
            counts = cls(**columns, replacement=bool(replacement), clusters=clusters, shared=shared)
        except InputError as problem:
            rule = f"{source} must hold counts that an evaluation can give"
            raise FileError(f"{rule}; {problem}") from problem
        if clusters is not None:
            clusters.check_users(counts.by_key(), where=source)
        if shared is not None:
            _check_shared(counts, shared, where=source)
        possible = users == counts.users
        if clusters is not None and not counts.several:
            # Users whose other relevant items were left out have several targets of one relevant
            # item. By Cauchy and Schwarz, (sum of m)^2 <= users * (sum of m^2).
            possible = users <= counts.total and counts.total**2 <= users * clusters.total
        refuse_unless(possible, f"{source} must hold the number of its users, got {users:,}")
        return replace(counts, users=users)

    def by_key(self) -> dict[tuple[int, ...], int]:
        """Return how many targets each pair cell has: see `PairCounts`.

        >>> RankCounts.from_ranks([1, 1, 3], items=50, sampled=9).by_key()
        {(9, 50, 1, 1, 1): 2, (9, 50, 3, 1, 1): 1}
        """
        keys, index = distinct_rows(pair_keys(vars(self)))
        targets = np.zeros(len(keys), dtype=np.int64)
        np.add.at(targets, index, self.count)
        return dict(zip(map(tuple, keys.tolist()), targets.tolist(), strict=True))


def _agreeing_on_replacement(parts: list[RankCounts]) -> list[RankCounts]:
    """Return parts that were all drawn with replacement, or all without; refuse others."""
    if any(part.replacement for part in parts):
        # Known ranks were not drawn at all: they stand beside samples of any kind.
        parts = [replace(part, replacement=True) if part.known.all() else part for part in parts]
    if len({part.replacement for part in parts}) > 1:
        raise DesignError(
            "counts must agree on replacement to be added, got some with and some without; "
            "estimate them separately"
        )
    return parts


def _all_pairs(parts: list[RankCounts]) -> PairCounts | None:
    """Return the pairs of all parts; None where each target has its own user."""
    if all(part.clusters is None for part in parts):
        return None
    return PairCounts.merge(part.pairs() for part in parts)


def _all_shared_items(parts: list[RankCounts]) -> ItemCounts | None:
    """Return the shared items of all parts; None where no part shares its items."""
    shared = [part.shared for part in parts if part.shared is not None]
    if 0 < len(shared) < len(parts):
        raise DesignError("counts of shared and of own items must not be added; estimate apart")
    return ItemCounts.merge(shared) if shared else None


def _check_shared(counts: RankCounts, shared: ItemCounts, *, where: str) -> None:
    """Refuse items that do not beat targets as often as their ranks imply.

    At rank r, r - 1 items beat a target. So t targets of this rank are beaten t (r - 1) times, and
    at most t times by any one item.
    """
    same = (counts.sampled == shared.sampled).all()
    refuse_unless(same, f"{where} must share the items of its sample, got {shared.sampled}")
    if not shared.known or (counts.low != counts.high).any():
        return
    of_cells = np.stack([counts.low, counts.relevant, counts.position], axis=1)
    of_items = np.stack([shared.rank, shared.relevant, shared.position], axis=1)
    kinds, index = distinct_rows(np.concatenate([of_cells, of_items]).astype(np.int64))
    kind_of_cell, kind_of_item = np.split(index, [len(counts)])
    targets = np.zeros(len(kinds), dtype=np.int64)
    np.add.at(targets, kind_of_cell, counts.count)
    times_beaten = np.zeros(len(kinds), dtype=np.int64)
    np.add.at(times_beaten, kind_of_item, shared.count)
    implied = targets * (kinds[:, 0] - 1)
    good = np.array_equal(times_beaten, implied)
    good &= bool((shared.count <= targets[kind_of_item]).all())
    rule = "must hold that r - 1 different shared items beat each target of rank r"
    refuse_unless(good, f"{where} {rule}, got other outcomes")
