"""`RankCounts`: counts of targets by design and sampled rank."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_integer_array,
)
from unsample._files import write_atomically
from unsample.errors import DesignError, FileError, InputError, RankError
from unsample.evidence._cells import DesignCells, check_cells, count_ranks, refuse_joint, span
from unsample.evidence._columns import (
    SUMS,
    as_column,
    as_weights,
    check_lengths,
    check_weight_sums,
    joined,
    merge_equal,
    no_numbers,
    read_columns,
)
from unsample.evidence._pools import PoolCounts
from unsample.evidence._ties import Comparisons
from unsample.evidence._users import (
    Whose,
    as_arrays,
    number_users,
    relevant_and_place,
    weights_of_users,
)
from unsample.law import Law
from unsample.metrics import AUC, Metric

_KEYS = ("sampled", "items", "low", "high", "relevant", "place")
_COLUMNS = (*_KEYS, *SUMS)
#: Columns that files of the first format lack.
_NEW_KEYS = ("relevant", "place")
_FORMATS = ("unsample.RankCounts/2", "unsample.RankCounts/1")


@dataclass(frozen=True, eq=False)
class RankCounts:
    """Counts of targets by design and sampled rank; build one with a ``from_`` method.

    >>> counts = RankCounts.from_ranks([1, 1, 3], items=1000, sampled=9)
    >>> counts
    RankCounts(3 targets, 2 cells, items=1000, sampled=9, with replacement)
    >>> (counts + counts).total
    6
    """

    sampled: IntArray
    items: IntArray
    low: IntArray
    high: IntArray
    count: IntArray
    weight: FloatArray
    weight_squared: FloatArray
    replacement: bool = True
    #: How many relevant items the users of a cell have; by default one.
    relevant: IntArray = field(default_factory=no_numbers)
    #: The place of a cell's targets among those of their user; 0 where it is not known.
    place: IntArray = field(default_factory=no_numbers)
    #: Which targets belong to one user; None where each has its own user, or it is not known.
    whose: Whose | None = None
    #: The mean over users of the sum of their targets' weights, where weights are for a metric.
    scale: float = 1.0
    #: Numbers of relevant items, and the weight of users with so many, where users have several.
    sizes: tuple[tuple[int, float], ...] = ()
    #: What is known of the items that targets share; None where each target has its own items.
    pools: PoolCounts | None = None

    def __post_init__(self) -> None:
        if not len(self.relevant):
            object.__setattr__(self, "relevant", np.broadcast_to(np.int64(1), len(self.low)))
        if not len(self.place):
            object.__setattr__(self, "place", (self.relevant == 1).astype(np.int8))
        check_lengths(self, _COLUMNS)
        check_cells(self)
        check_weight_sums(self.weight, self.weight_squared)
        place = merge_equal(self, _KEYS)
        if self.whose is not None:
            object.__setattr__(self, "whose", self.whose.moved(place))

    # -- building ---------------------------------------------------------------------------

    @classmethod
    def from_ranks(
        cls,
        ranks: npt.ArrayLike,
        *,
        items: npt.ArrayLike,
        sampled: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        count: npt.ArrayLike | None = None,
        users: npt.ArrayLike | None = None,
        places: npt.ArrayLike | None = None,
        filtered: bool = False,
        lowest: npt.ArrayLike | None = None,
        replacement: bool = True,
    ) -> RankCounts:
        """Count sampled ranks (1 = best, at most sampled + 1), one for each target.

        ``items`` and ``sampled`` are single numbers, or one for each rank. ``weights`` say how much
        a target's user counts, and ``count`` how many targets a rank stands for. ``users`` names
        the user of each rank: metrics are per user, and errors count users. Where the user's other
        relevant items were left out (``filtered``), metrics are per target. ``places`` is the place
        of a target among those of its user, if all of them were ranked against the same items.
        Where a rank is only known to lie in a range, ``lowest`` is the first rank of the range and
        ``ranks`` the last.
        """
        array = as_integer_array("ranks", ranks, hint="ranks start at 1")
        if array.size == 0:
            raise RankError("ranks must hold at least one rank, got none")
        plain = all(each is None for each in (weights, count, users, lowest))
        if plain and np.ndim(items) == 0 and np.ndim(sampled) == 0:
            design = Law(items, sampled, replacement)  # type: ignore[arg-type]
            return cls.from_histogram(count_ranks(array, design), design)
        high = array.astype(np.int64, copy=False)
        weight = as_weights(weights, array.size)
        times = as_column("count", 1 if count is None else count, array.size)
        keys: dict[str, Any] = {
            "sampled": as_column("sampled", sampled, array.size),
            "items": as_column("items", items, array.size),
            "low": high if lowest is None else as_column("lowest", lowest, array.size),
            "high": high,
        }
        each = weight if count is None else times * weight
        squared, whose = each if weights is None else each * weight, None
        user = None if users is None else number_users(users, array.size)
        stands_for = None if count is None else times
        if user is not None and np.bincount(user, stands_for).max() > 1:
            full = not replacement and bool((keys["sampled"] == keys["items"] - 1).all())
            relevant, place = relevant_and_place(user, stands_for, high, places, full)
            if filtered:
                of_users: FloatArray = np.bincount(user, each).astype(np.float64)
            else:
                of_users = weights_of_users(weight, user, relevant)
                keys |= {"relevant": relevant, "place": place}
            # Each row is its own cell until equal cells are merged.
            whose = Whose(user, slice(None), each, of_users)  # type: ignore[arg-type]
            squared = each * np.bincount(user, each)[user]
        return cls(
            **keys,
            count=times,
            weight=each,
            weight_squared=squared,
            replacement=replacement,
            whose=whose,
        )

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
            weight=counts.astype(np.float64),
            weight_squared=counts.astype(np.float64),
            replacement=design.replacement,
        )

    @classmethod
    def from_comparisons(
        cls,
        comparisons: Comparisons,
        *,
        ties: str = "random",
        rng: Seed = 0,
        replacement: bool = True,
    ) -> RankCounts:
        """Count targets, given how many sampled items beat each and how many tie with it."""
        columns: dict[str, Any] = comparisons.ranked(ties, rng)
        ranks, weight = columns.pop("rank"), columns["count"].astype(np.float64)
        return cls(
            **columns,
            low=ranks,
            high=ranks,
            weight=weight,
            weight_squared=weight,
            replacement=replacement,
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
        whose = Whose.of_parts(counts) if any(part.whose for part in counts) else None
        shared = [part.pools for part in counts if part.pools is not None]
        if 0 < len(shared) < len(counts):
            raise DesignError("counts of shared and of own items must not be added; estimate apart")
        pools = PoolCounts.merge(shared) if shared else None
        return replace(counts[0], **joined(counts, _COLUMNS), whose=whose, pools=pools)

    def __add__(self, other: object) -> RankCounts:
        if not isinstance(other, RankCounts):
            return NotImplemented
        return RankCounts.merge((self, other))

    # -- looking ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.low)

    @property
    def total(self) -> int:
        """Return the number of targets."""
        return int(self.count.sum())

    @property
    def users(self) -> int:
        """Return the number of users; each target has its own user where users are not known."""
        if self.whose is not None:
            return len(self.whose.users)
        return round(float((self.count / self.relevant).sum()))

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
        whose = None if self.whose is None else self.whose.scaled(shares)
        users = float((self.weight / self.relevant).sum())
        squared = self.weight_squared * shares**2
        ones = np.ones_like(self.low)
        return replace(
            self,
            weight=weight,
            weight_squared=squared if whose is None else whose.squares(len(self)),
            # The AUC of a rank depends on the number of the user's relevant items.
            relevant=self.relevant if metric.family is AUC else ones,
            place=ones,
            whose=whose,
            scale=float(weight.sum()) / users,
            sizes=self._sizes(),
            pools=None if self.pools is None else self.pools.for_metric(metric),
        )

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
        columns = {name: getattr(self, name)[cells] for name in _COLUMNS}
        return replace(self, **columns, whose=None, pools=None)

    def variance_of_mean(self, scores: FloatArray) -> float:
        """Return the variance, for newly drawn users, of the mean over users of the cells' scores.

        Where users have several targets, the scores of a user's targets add up by their weights.
        """
        if self.whose is not None:
            return self.whose.variance(scores)
        total = float(self.weight.sum())
        deviations = scores - self.weight @ scores / total
        return self.scale**2 * float(self.weight_squared @ deviations**2) / total**2

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
        """Write to ``.npz`` or ``.json``, by the ending of the name, all or nothing."""
        target = Path(path)
        values = {"format": _FORMATS[0], "replacement": self.replacement}
        values |= {name: getattr(self, name) for name in _COLUMNS} | as_arrays(self.whose)
        if self.pools is not None:
            values |= {f"pools_{name}": each for name, each in self.pools.arrays().items()}
        fields: dict[str, Any] = {k: np.asarray(v) for k, v in values.items() if v is not None}
        if target.suffix == ".json":
            text = json.dumps({name: values.tolist() for name, values in fields.items()})
            write_atomically(target, lambda file: file.write(text.encode()))
        elif target.suffix == ".npz":
            write_atomically(target, lambda file: np.savez_compressed(file, **fields))
        else:
            raise FileError(f"path must end in .npz or .json, got {str(path)!r}")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RankCounts:
        """Read what `save` wrote."""
        source = repr(str(path))
        try:
            if Path(path).suffix == ".json":
                return cls.from_json(Path(path).read_text(encoding="utf-8"), source)
            with Path(path).open("rb") as file:
                return cls.from_arrays(read_arrays(file, f"rank counts from {source}"), source)
        except InputError:
            raise
        except (OSError, ValueError) as problem:
            raise FileError(f"cannot read rank counts from {source}: {problem}") from problem

    @classmethod
    def from_json(cls, text: str, source: str) -> RankCounts:
        """Read the JSON text that `save` wrote; ``source`` is its name in messages."""
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise FileError(f"{source} is not JSON: {problem}") from problem
        if not isinstance(fields, dict):
            raise FileError(f"{source} must hold a JSON object, got {type(fields).__name__}")
        return cls.from_arrays(fields, source)

    @classmethod
    def from_arrays(cls, fields: Mapping[str, Any], source: str) -> RankCounts:
        """Take the fields that `save` wrote, and check them; ``source`` is for messages."""
        marker = str(fields.get("format"))
        if marker not in _FORMATS:
            raise FileError(
                f"{source} must hold {_FORMATS[0]}, got {marker}; write it with RankCounts.save"
            )
        new = set(_NEW_KEYS) - set(fields) if marker == _FORMATS[1] else set()
        whole = [name for name in (*_KEYS, "count") if name not in new]
        arrays = read_columns(fields, source, whole=whole, reals=("weight", "weight_squared"))
        replacement = np.asarray(fields.get("replacement"))
        if replacement.shape != () or replacement.dtype != bool:
            raise FileError(f"{source} must say true or false for replacement, got {replacement}")
        if fields.get("stop") is not None:
            raise FileError(
                f"{source} must hold samples whose sizes do not depend on ranks, got samples that "
                "grew until the target was beaten; these went with version 0.3"
            )
        whose = Whose.from_arrays(fields, source, len(arrays["low"]))
        shared = {
            name.removeprefix("pools_"): each
            for name, each in fields.items()
            if name.startswith("pools_")
        }
        pools = PoolCounts.from_arrays(shared, source) if shared else None
        return cls(**arrays, replacement=bool(replacement), whose=whose, pools=pools)
