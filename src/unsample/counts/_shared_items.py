"""`ItemCounts`: how many targets each shared item beats, by their sampled rank.

Where all targets are ranked against one draw of items, their sampled ranks depend on each other
through these items: a draw without any popular item improves all ranks at once. How much this
matters can be computed if it is known which item beat which target. Without item s, the targets
that it beat have a rank that is better by one. So a mean over targets of scores of their ranks
changes by

    A(s) = mean over targets i of  B(i, s) (score(r_i) - score(r_i - 1)),

where B(i, s) is 1 if item s beats target i, and 0 otherwise. All A(s) follow from how many targets
item s beats at each sampled rank r_i. `ItemCounts` hold these numbers. They add up over parts of
the targets, and their size does not depend on the number of targets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    LARGEST_CATALOGUE,
    FloatArray,
    IntArray,
    as_index,
    check_integer,
)
from unsample._fields import Field, read_fields
from unsample.counts._columns import (
    check_lengths,
    distinct_rows,
    joined,
    merge_equal,
    refuse_where,
)
from unsample.errors import DesignError, InputError, RankError
from unsample.metrics import Metric

_KEYS = ("item", "rank", "relevant", "position")
#: What a file holds.
_FIELDS = {
    "sampled": Field("whole", (1,), low=2, high=LARGEST_CATALOGUE),
    "item": Field("whole", ("rows",), low=-(2**63), high=2**63 - 1),
    "rank": Field("whole", ("rows",), low=2, high=LARGEST_CATALOGUE + 1),
    "relevant": Field("whole", ("rows",), low=1, high=LARGEST_CATALOGUE),
    "position": Field("whole", ("rows",), low=0, high=LARGEST_CATALOGUE),
    "count": Field("whole", ("rows",), low=1, high=LARGEST_CATALOGUE),
}


@dataclass(frozen=True, eq=False)
class ItemCounts:
    """How many targets at each sampled rank each shared item beats.

    Without any row, it is not known which item beats which target.

    Items 7 and 9 beat the first target, which therefore has rank 3; item 9 alone beats the second.

    >>> beats = np.array([[True, False, True], [False, False, True]])
    >>> counts = ItemCounts.from_outcomes(beats, items=[7, 8, 9])
    >>> counts.item.tolist(), counts.rank.tolist(), counts.count.tolist()
    ([7, 9, 9], [3, 2, 3], [1, 1, 1])
    """

    #: How many items were drawn.
    sampled: int
    item: IntArray
    #: The sampled rank of the beaten targets.
    rank: IntArray
    #: How many relevant items their users have, and their position among them: see `RankCounts`.
    relevant: IntArray
    position: IntArray
    #: How many targets these are; a metric may weigh them.
    count: IntArray | FloatArray

    def __post_init__(self) -> None:
        check_integer("sampled", self.sampled, minimum=2, error=DesignError)
        check_lengths(self, (*_KEYS, "count"))
        rule = "ranks must be at most sampled + 1"
        refuse_where(self.rank > self.sampled + 1, rule, values=self.rank, error=RankError)
        refuse_where(
            self.rank < 2, "a beaten target is not first", values=self.rank, error=RankError
        )
        merge_equal(self, _KEYS, sums=("count",))
        if len(np.unique(self.item)) > self.sampled:
            raise InputError(
                f"shared items must be at most sampled = {self.sampled}, got more; all targets "
                "must be ranked against the same draw"
            )

    @classmethod
    def from_outcomes(
        cls,
        beats: npt.ArrayLike,
        *,
        items: npt.ArrayLike | None = None,
        relevant: IntArray | None = None,
        position: IntArray | None = None,
    ) -> ItemCounts:
        """Count outcomes by item: one row for each target, one column for each drawn item.

        Parameters
        ----------
        beats
            Whether the item of a column beats the target of a row.
        items
            Numbers of the drawn items, by which two models are aligned; an item that was drawn
            twice needs two numbers. By default items are numbered by their columns.
        relevant, position
            As in `RankCounts`, where users have several targets.

        Raises
        ------
        InputError
            ``beats`` is not a matrix of at least two columns, or ``items`` are not different.

        >>> three_alike = np.array([[False, True]] * 3)
        >>> counts = ItemCounts.from_outcomes(three_alike)
        >>> counts.item.tolist(), counts.rank.tolist(), counts.count.tolist()
        ([1], [2], [3])
        """
        beaten = np.asarray(beats, dtype=bool)
        if beaten.ndim != 2 or beaten.shape[1] < 2:
            raise InputError(
                "beats must have a row for each target and a column for each of at least two "
                f"items, got shape {beaten.shape}"
            )
        targets, sampled = beaten.shape
        names = np.arange(sampled) if items is None else np.asarray(items, dtype=np.int64)
        if len(np.unique(names)) != sampled or names.shape != (sampled,):
            raise InputError(
                f"items must be {sampled} different numbers, one for each column of beats"
            )
        ones = np.ones(targets, dtype=np.int64)
        kind_columns = [
            beaten.sum(axis=1) + 1,
            ones if relevant is None else relevant,
            ones if position is None else position,
        ]
        kinds, kind_of_target = distinct_rows(np.stack(kind_columns, axis=1))
        target, column = np.nonzero(beaten)
        # One number for each pair of an item and a kind of target, to count all pairs at once.
        pair = as_index(column * len(kinds) + kind_of_target[target])
        by_item = np.bincount(pair, minlength=sampled * len(kinds)).reshape(sampled, -1)
        column, kind = np.nonzero(by_item)
        rank, relevant_items, positions = kinds[kind].T
        return cls(
            sampled=sampled,
            item=names[column],
            rank=rank,
            relevant=relevant_items,
            position=positions,
            count=by_item[column, kind],
        )

    @classmethod
    def without_outcomes(cls, sampled: int) -> ItemCounts:
        """Return counts for ranks alone: items were shared, and no outcome is known.

        >>> ItemCounts.without_outcomes(99).known
        False
        """
        columns: dict[str, Any] = {name: np.empty(0, dtype=np.int64) for name in (*_KEYS, "count")}
        return cls(sampled, **columns)

    @classmethod
    def merge(cls, parts: Iterable[ItemCounts]) -> ItemCounts:
        """Add up counts of parts of the targets, all ranked against the same draw.

        >>> part = ItemCounts.from_outcomes(np.array([[False, True]]))
        >>> ItemCounts.merge([part, part]).count.tolist()
        [2]
        """
        counts = list(parts)
        sizes = sorted({part.sampled for part in counts})
        if len(sizes) > 1:
            raise DesignError(
                f"targets must share one draw of items, got draws of {sizes[0]} and {sizes[1]}; "
                "estimate them separately"
            )
        if not all(part.known for part in counts):
            return cls.without_outcomes(sizes[0])
        return replace(counts[0], **joined(counts, (*_KEYS, "count")))

    @property
    def known(self) -> bool:
        """Return whether it is known which item beats which target."""
        return len(self.rank) > 0

    def for_metric(self, metric: Metric) -> ItemCounts:
        """Return the counts with each target weighed as it counts in the metric of its user."""
        ones = np.ones_like(self.rank)
        count = self.count * metric.shares(self.relevant, self.position)
        return replace(self, relevant=ones, position=ones, count=count)

    def effects(self, scores: FloatArray, total: float) -> tuple[IntArray, FloatArray]:
        """Return the items that beat any target, and A(s) of each.

        ``scores`` has one number for each rank, and ``total`` is the weight of all targets.

        Item 7 beats a target of rank 3, item 9 one of rank 2 and one of rank 3. The scores of the
        ranks 1, 2 and 3 are 1.0, 0.6 and 0.5: A(7) = -0.1 / 2 and A(9) = (-0.4 - 0.1) / 2.

        >>> beats = np.array([[True, False, True], [False, False, True]])
        >>> counts = ItemCounts.from_outcomes(beats, items=[7, 8, 9])
        >>> items, effects = counts.effects(np.array([1.0, 0.6, 0.5, 0.4]), total=2.0)
        >>> items.tolist(), effects.round(3).tolist()
        ([7, 9], [-0.05, -0.25])
        """
        items, index = np.unique(self.item, return_inverse=True)
        changes = self.count * np.diff(scores)[self.rank - 2]
        sums = np.bincount(as_index(index.reshape(-1)), changes, minlength=len(items))
        return items, np.asarray(sums / total, dtype=np.float64)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a file keeps."""
        size = np.array([self.sampled], dtype=np.int64)
        columns = {name: getattr(self, name) for name in (*_KEYS, "count")}
        return {"sampled": size, **columns}

    @classmethod
    def from_arrays(cls, fields: Mapping[str, Any], source: str) -> ItemCounts:
        """Take what `arrays` gave, and check it; ``source`` is its name in messages."""
        columns = read_fields(fields, _FIELDS, where=f"the shared items of {source}")
        return cls(int(columns.pop("sampled")[0]), **columns)


def numbered(names: npt.ArrayLike) -> IntArray:
    """Return a number for each name of an item, the same wherever the name occurs.

    >>> numbered([7, 8]).tolist()
    [7, 8]
    >>> ann, bob, again = numbered(["ann", "bob", "ann"]).tolist()
    >>> ann == again, ann == bob
    (True, False)
    """
    array = np.asarray(names)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    distinct, index = np.unique(array.astype(np.str_), return_inverse=True)
    digests = [hashlib.sha256(name.encode()).digest()[:8] for name in distinct.tolist()]
    codes = np.array([int.from_bytes(digest, "big") >> 1 for digest in digests], dtype=np.int64)
    return np.asarray(codes[index.reshape(-1)])
