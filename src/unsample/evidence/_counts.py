"""The class `RankCounts`, cells of one design, and targets one by one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_integer_array,
    as_rng,
    check_integer,
)
from unsample._files import read_arrays, write_atomically
from unsample.errors import DesignError, FileError, InputError, RankError
from unsample.evidence._columns import (
    FLOAT_FIELDS,
    INTEGER_FIELDS,
    as_column,
    as_weights,
    check_cells,
    count_ranks,
    span,
    weight_of_user,
)
from unsample.evidence._saved import as_fields, checked_fields
from unsample.evidence._ties import Comparisons
from unsample.law import Law


@dataclass(frozen=True)
class DesignCells:
    """The cells of one design: ``columns`` is where they stand in the counts."""

    design: Law
    low: IntArray
    high: IntArray
    columns: slice


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets one by one, for comparisons that pair them by user; all else needs only counts."""

    ranks: IntArray
    items: npt.ArrayLike
    sampled: npt.ArrayLike
    weights: npt.ArrayLike | None = None
    users: npt.ArrayLike | None = None
    replacement: bool = True
    #: After how many items that beat the target its sample stopped growing, as in `RankCounts`.
    stop: int | None = None

    @property
    def counts(self) -> RankCounts:
        """Return how many targets were seen at each rank."""
        return RankCounts.from_ranks(
            self.ranks,
            items=self.items,
            sampled=self.sampled,
            weights=self.weights,
            users=self.users,
            replacement=self.replacement,
            stop=self.stop,
        )


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
    #: Samples grew until so many items beat the target, or until a limit that has nothing to do
    #: with its rank. None where the size of a sample has nothing to do with what was found in it.
    stop: int | None = None

    def __post_init__(self) -> None:
        check_cells(self)
        order = np.lexsort((self.high, self.low, self.items, self.sampled))
        keys = np.stack([self.sampled, self.items, self.low, self.high])[:, order]
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (np.diff(keys, axis=1) != 0).any(axis=0)
        starts = np.flatnonzero(fresh)
        for name, values in zip(INTEGER_FIELDS, keys[:, starts], strict=False):
            object.__setattr__(self, name, values)
        for name in ("count", *FLOAT_FIELDS):
            sums = np.add.reduceat(getattr(self, name)[order], starts)
            object.__setattr__(self, name, sums)

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
        replacement: bool = True,
        stop: int | None = None,
    ) -> RankCounts:
        """Count sampled ranks (1 = best, at most sampled + 1), one for each target.

        ``items`` and ``sampled`` are single numbers, or one for each rank; ``weights`` say how
        much a target counts, and ``count`` how many targets a rank stands for. With ``users``,
        whose target each rank is, the targets of one user inform no more than one target does.
        ``stop`` says after how many items that beat the target its sample stopped growing.
        """
        array = as_integer_array("ranks", ranks, hint="ranks start at 1")
        if array.size == 0:
            raise RankError("ranks must hold at least one rank, got none")
        plain = weights is None and count is None and users is None and stop is None
        if plain and np.ndim(items) == 0 and np.ndim(sampled) == 0:
            design = Law(items, sampled, replacement)  # type: ignore[arg-type]
            return cls.from_histogram(count_ranks(array, design), design)
        columns = [
            as_column("sampled", sampled, array.size, minimum=1),
            as_column("items", items, array.size, minimum=2),
            array.astype(np.int64, copy=False),
        ]
        weight = as_weights(weights, array.size)
        times = np.ones(array.size, dtype=np.int64)
        if count is not None:
            times = as_column("count", count, array.size, minimum=0)
        return cls(
            sampled=columns[0],
            items=columns[1],
            low=columns[2],
            high=columns[2],
            count=times,
            weight=times * weight,
            weight_squared=times * weight * weight_of_user(times * weight, weight, users),
            replacement=replacement,
            stop=stop,
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
        """Count targets of which it is known how many sampled items beat them and tie with them."""
        columns = comparisons.ranked(ties, rng)
        ranks = columns.pop("rank")
        return cls(**columns, low=ranks, high=ranks, replacement=replacement)

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
                "counts must agree on replacement to be added, got one with and one without; "
                "estimate them separately"
            )
        stops = {part.stop for part in counts}
        if len(stops) > 1:
            raise DesignError(
                "counts must agree on when samples stop growing to be added, got stop = "
                f"{' and '.join(sorted(map(str, stops)))}; estimate them separately"
            )
        fields = (*INTEGER_FIELDS, *FLOAT_FIELDS)
        joined = {f: np.concatenate([getattr(part, f) for part in counts]) for f in fields}
        return cls(**joined, replacement=counts[0].replacement, stop=counts[0].stop)

    def update(
        self,
        ranks: npt.ArrayLike,
        *,
        items: npt.ArrayLike | None = None,
        sampled: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> RankCounts:
        """Return these counts and those of further ranks, as a stream goes on.

        The design is that of the counts so far, unless it is given. An empty batch adds nothing.

        >>> counts = RankCounts.from_ranks([1, 3], items=50, sampled=9)
        >>> counts.update([3, 10]).count.tolist()
        [1, 2, 1]
        """
        if np.size(ranks) == 0:
            return self
        batch = RankCounts.from_ranks(
            ranks,
            items=self._only("items", items),
            sampled=self._only("sampled", sampled),
            weights=weights,
            replacement=self.replacement,
            stop=self.stop,
        )
        return self + batch

    def _only(self, name: str, given: npt.ArrayLike | None) -> npt.ArrayLike:
        values: IntArray = getattr(self, name)
        if given is None and values.min() != values.max():
            raise DesignError(
                f"{name} must be given: the counts so far hold designs from {values.min()} to "
                f"{values.max()} of them"
            )
        return int(values[0]) if given is None else given

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
    def sampled_in_top(self) -> float:
        """Return how many sampled items fall on one rank, averaged over targets: (n-1)/(N-1)."""
        return float(np.average(self.sampled / (self.items - 1), weights=self.weight))

    @property
    def full(self) -> BoolArray:
        """Return which cells hold targets that were compared with all their candidates."""
        return np.asarray((self.sampled == self.items - 1) & (not self.replacement))

    @property
    def known(self) -> BoolArray:
        """Return which cells hold known global ranks: all candidates were met, none is left out."""
        return self.full & (self.low == self.high)

    def by_design(self) -> Iterator[DesignCells]:
        """Yield the cells of each design in turn."""
        change = (np.diff(self.sampled) != 0) | (np.diff(self.items) != 0)
        edges = np.concatenate([[0], np.flatnonzero(change) + 1, [len(self)]])
        for first, last in pairwise(edges):
            design = Law(int(self.items[first]), int(self.sampled[first]), self.replacement)
            columns = slice(int(first), int(last))
            yield DesignCells(design, self.low[columns], self.high[columns], columns)

    # -- changing ---------------------------------------------------------------------------

    def resample(self, size: int, *, rng: Seed = None) -> FloatArray:
        """Draw ``size`` bootstrap samples of the targets; return their weights, one row each.

        A cell of weight w and squared weight q acts as w^2/q targets of weight q/w, which keeps
        the mean and the variance of its weight; without weights this is the plain multinomial.
        """
        size = check_integer("size", size, minimum=1)
        units = np.divide(
            self.weight**2,
            self.weight_squared,
            out=np.zeros(len(self)),
            where=self.weight_squared > 0,
        )
        each = np.divide(self.weight, units, out=np.zeros(len(self)), where=units > 0)
        draws = max(1, round(float(units.sum())))
        drawn = as_rng(rng).multinomial(draws, units / units.sum(), size=size)
        return np.asarray(drawn * each, dtype=np.float64)

    def merge_ranks(self, last_ranks: npt.ArrayLike) -> RankCounts:
        """Merge ranks into ranges that end at ``last_ranks`` (and at the last rank of all)."""
        ends = np.unique(as_integer_array("last_ranks", last_ranks))
        start = np.searchsorted(ends, self.low)
        if (start != np.searchsorted(ends, self.high)).any():
            raise RankError(
                f"last_ranks must not cut ranges that are merged already, got {ends.tolist()}"
            )
        lower = np.concatenate([[0], ends])[start] + 1
        upper = np.append(ends, np.iinfo(np.int64).max)[start]
        fields = {f: getattr(self, f) for f in (*INTEGER_FIELDS, *FLOAT_FIELDS)}
        fields |= {"low": lower, "high": np.minimum(upper, self.sampled + 1)}
        return RankCounts(**fields, replacement=self.replacement, stop=self.stop)

    # -- saving -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to ``.npz`` or ``.json``, by the ending of the name, all or nothing."""
        target, fields = Path(path), as_fields(self)
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
        """Read the JSON text that `save` wrote; ``source`` names it in messages."""
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise FileError(f"{source} is not JSON: {problem}") from problem
        if not isinstance(fields, dict):
            raise FileError(f"{source} must hold a JSON object, got {type(fields).__name__}")
        return cls.from_arrays(fields, source)

    @classmethod
    def from_arrays(cls, fields: Mapping[str, Any], source: str) -> RankCounts:
        """Take the fields that `save` wrote, checking all of them."""
        return cls(**checked_fields(fields, source))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RankCounts):
            return NotImplemented
        fields = (*INTEGER_FIELDS, *FLOAT_FIELDS)
        return (self.replacement, self.stop) == (other.replacement, other.stop) and all(
            np.array_equal(getattr(self, f), getattr(other, f)) for f in fields
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        how = "with" if self.replacement else "without"
        return (
            f"RankCounts({self.total} targets, {len(self)} cells, items={span(self.items)}, "
            f"sampled={span(self.sampled)}, {how} replacement"
            + ("" if self.stop is None else f", stop={self.stop}")
            + ")"
        )
