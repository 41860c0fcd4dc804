"""`PairCounts`: which ranks go together, because they are those of one user.

Targets of one user are not independent, and neither are two models' ranks of one target. All that
variances and covariances of means need is, for each pair of cells, how many pairs of targets of the
same user lie in both. This adds up over parts of the users and names none of them. The sum over
users of the square of their targets' summed scores is then that over pairs of cells of the pair's
count times both scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray
from unsample.errors import FileError
from unsample.evidence._columns import distinct_rows, read_columns
from unsample.metrics import Metric

#: What tells pair cells apart.
PAIR_KEYS = ("sampled", "items", "bin", "relevant", "place")
#: Ranks up to this stand alone; after it a bin is one part in so many of its rank.
RANKS_ALONE, RANK_STEPS = 128, 32


def rank_bin(ranks: npt.ArrayLike) -> IntArray:
    """Return the first rank of the bin of each rank: ranks up to 128 are bins of their own.

    >>> rank_bin([1, 128, 129, 133, 134, 1000])
    array([  1, 128, 129, 129, 134, 984])
    """
    rank = np.asarray(ranks, dtype=np.int64)
    first = RANKS_ALONE + 1
    step = np.floor(RANK_STEPS * np.log(np.maximum(rank, first) / first))
    start = np.ceil(first * np.exp(step / RANK_STEPS)).astype(np.int64)
    return np.where(rank <= RANKS_ALONE, rank, start)


def pair_keys(columns: Mapping[str, Any]) -> IntArray:
    """Return the pair cell of each row, given the columns of cells."""
    ranks: IntArray = columns["high"]
    ones = np.ones(len(ranks), dtype=np.int64)
    found = dict(columns) | {"bin": rank_bin(ranks)}
    return np.stack([np.asarray(found.get(name, ones), dtype=np.int64) for name in PAIR_KEYS], 1)


def shares_in(metric: Metric | None, relevant: IntArray, place: IntArray) -> FloatArray:
    """Return how much targets count in the metric of their user; each 1 without a metric."""
    return np.ones(len(relevant)) if metric is None else metric.shares(relevant, place)


def pairs_between(
    sides: Mapping[str, tuple[npt.ArrayLike, IntArray]],
) -> dict[tuple[str, str], PairCounts]:
    """Return the pairs of each two models, given the user and the cell of each target."""
    return {
        (a, b): PairCounts.of_users(*sides[a], other=sides[b]) for a, b in combinations(sides, 2)
    }


@dataclass(frozen=True, eq=False)
class PairCounts:
    """For each pair of cells, how many pairs of targets of one user lie in them.

    Pairs are ordered, and a target is paired with itself too. ``keys`` has a row for each cell that
    occurs, with the columns `PAIR_KEYS`; ``left`` and ``right`` are rows of it.

    >>> cells = np.array([[9, 50, 1, 2, 0], [9, 50, 3, 2, 0]])
    >>> pairs = PairCounts.of_users([7, 7, 8], cells[[0, 1, 0]])
    >>> pairs.count.tolist(), pairs.second[:, 2].tolist()
    ([2, 1, 1, 1], [1, 3, 1, 3])
    """

    keys: IntArray
    left: IntArray
    right: IntArray
    count: IntArray

    @classmethod
    def of_cells(cls, first: IntArray, second: IntArray, count: npt.ArrayLike) -> PairCounts:
        """Take a row of keys for the first and for the second cell of each pair; equal ones add."""
        times = np.asarray(count, dtype=np.int64)
        keys, place = distinct_rows(np.concatenate([first, second]))
        pair = place[: len(times)] * len(keys) + place[len(times) :]
        found, where = np.unique(pair, return_inverse=True)
        total = np.zeros(len(found), dtype=np.int64)
        np.add.at(total, where.reshape(-1), times)
        left, right = np.divmod(found, max(len(keys), 1))
        return cls(keys, left.astype(np.int64), right.astype(np.int64), total)

    @classmethod
    def of_users(
        cls,
        users: npt.ArrayLike,
        cells: IntArray,
        other: tuple[npt.ArrayLike, IntArray] | None = None,
    ) -> PairCounts:
        """Count pairs of targets of one user, given the user and the cell of each target.

        With ``other``, the second cell of a pair is that of another model's target, whose users and
        cells these are. Users that only one of them has are in no pair.
        """
        from scipy.sparse import csr_array

        sides = [(users, cells), other or (users, cells)]
        names = np.concatenate([np.asarray(side[0]) for side in sides])
        number = np.unique(names, return_inverse=True)[1].reshape(-1)
        numbers = np.split(number, [len(cells)])
        tables: list[Any] = []
        keys = []
        for (_, each), who in zip(sides, numbers, strict=True):
            found, cell = distinct_rows(each)
            shape = (int(number.max(initial=0)) + 1, len(found))
            tables.append(csr_array((np.ones(len(who), dtype=np.int64), (who, cell)), shape=shape))
            keys.append(found)
        products = (tables[0].T @ tables[1]).tocoo()
        return cls.of_cells(keys[0][products.row], keys[1][products.col], products.data)

    @classmethod
    def merge(cls, parts: Iterable[PairCounts]) -> PairCounts:
        """Add up pairs that were counted in parts, each user being in one of them."""
        each = list(parts)
        return cls.of_cells(
            np.concatenate([part.first for part in each]),
            np.concatenate([part.second for part in each]),
            np.concatenate([part.count for part in each]),
        )

    @property
    def first(self) -> IntArray:
        """Return the keys of the first cell of each pair."""
        return np.asarray(self.keys[self.left])

    @property
    def second(self) -> IntArray:
        """Return the keys of the second cell of each pair."""
        return np.asarray(self.keys[self.right])

    def __len__(self) -> int:
        return len(self.count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairCounts):
            return NotImplemented
        mine, others = self.arrays(), other.arrays()
        return all(np.array_equal(mine[name], others[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def inner(self, first: FloatArray, second: FloatArray) -> float:
        """Return the sum over users of the product of their two summed scores.

        Scores are one for each of the cells: ``first`` of the first of a pair, ``second`` of the
        other.
        """
        return float(self.count @ (first[self.left] * second[self.right]))

    @property
    def users(self) -> float:
        """Return the number of users."""
        shares = 1.0 / self.keys[:, 3]
        return self.inner(shares, shares)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a file keeps."""
        names = ("keys", "left", "right", "count")
        return {name: getattr(self, name).reshape(-1) for name in names}

    @classmethod
    def from_arrays(cls, fields: Mapping[str, Any], source: str) -> PairCounts:
        """Take what `arrays` gave, and check it; ``source`` is for messages."""
        found = read_columns(fields, source, ("keys", "left", "right", "count"))
        keys, left, right, count = found.values()
        cells = len(keys) // len(PAIR_KEYS)
        sides = np.concatenate([left, right])
        good = len(left) == len(right) == len(count) and cells * len(PAIR_KEYS) == len(keys)
        if not good or not ((sides >= 0) & (sides < cells)).all() or (count < 0).any():
            raise FileError(f"{source} must hold pairs of cells and their counts, got others")
        keys = keys.reshape(-1, len(PAIR_KEYS))
        return cls.of_cells(keys[left], keys[right], count)
