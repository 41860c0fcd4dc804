"""`PairCounts`: the number of pairs of ranks that one user has.

Targets of one user are not independent, and neither are two models' ranks of one target. For
variances and covariances of means it is enough to know, for each pair of cells, how many pairs of
targets of the same user lie in them. This adds up over parts of the users and names none of them.
The sum over users of the square of their targets' summed scores is then that over pairs of cells of
the pair's count times both scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import LARGEST_CATALOGUE, FloatArray, IntArray
from unsample._fields import Field, read_fields, refuse_unless
from unsample.counts._catalogues import sizes_on_grid
from unsample.counts._columns import distinct_rows
from unsample.metrics import Metric

#: The columns that identify a pair cell.
PAIR_KEYS = ("sampled", "items", "bin", "relevant", "position")
#: Ranks up to the first number have bins of their own; further bins have the width rank / second.
RANKS_ALONE, RANK_STEPS = 128, 32
#: A file holds no pair of cells more often than this: sums of such counts are whole in 64 bits.
_MAX_PAIRS = 10**15
#: Keys of a cell -> how many targets it has.
TargetsByKey: TypeAlias = Mapping[tuple[int, ...], int]


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


def shares_in(metric: Metric | None, relevant: IntArray, position: IntArray) -> FloatArray:
    """Return how much targets count in the metric of their user; each 1 without a metric."""
    return np.ones(len(relevant)) if metric is None else metric.shares(relevant, position)


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
        keys, index = distinct_rows(np.concatenate([first, second]))
        pair = index[: len(times)] * len(keys) + index[len(times) :]
        found, where = np.unique(pair, return_inverse=True)
        total = np.zeros(len(found), dtype=np.int64)
        np.add.at(total, where.reshape(-1), times)
        left, right = np.divmod(found, max(len(keys), 1))
        return cls(keys=keys, left=left.astype(np.int64), right=right.astype(np.int64), count=total)

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

    def on_grid(self, *, keep_full: bool, first: bool = True, second: bool = True) -> PairCounts:
        """Return the pairs with the catalogues of their first or second cells on the grid."""
        if not (first or second):
            return self
        sampled, items = self.keys[:, 0], self.keys[:, 1]
        grid = sizes_on_grid(items, sampled, keep_full=keep_full)
        if (grid == items).all():
            return self
        moved = np.column_stack([sampled, grid, self.keys[:, 2:]])
        one, other = (moved if moves else self.keys for moves in (first, second))
        return PairCounts.of_cells(one[self.left], other[self.right], self.count)

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

    @property
    def total(self) -> int:
        """Return the number of pairs of targets."""
        return int(self.count.sum())

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
        size, rest = divmod(np.size(fields.get("keys", ())), len(PAIR_KEYS))
        refuse_unless(not rest, f"the pairs of {source} must hold {len(PAIR_KEYS)} keys a cell")
        row = Field(kind="whole", shape=("pairs",), low=0, high=size - 1)
        described = {
            "keys": Field(
                kind="whole", shape=(size * len(PAIR_KEYS),), low=0, high=LARGEST_CATALOGUE + 1
            ),
            "left": row,
            "right": row,
            "count": Field(kind="whole", shape=("pairs",), low=1, high=_MAX_PAIRS),
        }
        found = read_fields(fields, described, where=f"the pairs of {source}")
        keys, left, right, count = found.values()
        keys = keys.reshape(-1, len(PAIR_KEYS))
        return cls.of_cells(keys[left], keys[right], count)

    def check_cells(self, first: TargetsByKey, second: TargetsByKey, *, where: str) -> None:
        """Refuse pairs that targets counted so often by the keys of their cells cannot give."""
        # Both may be large: their product is one of floats.
        largest = self._targets(first)[self.left].astype(np.float64)
        largest *= self._targets(second)[self.right]
        good = (largest > 0).all()
        refuse_unless(good, f"{where} must hold pairs of the cells that it counts, got others")
        rule = "must hold at most as many pairs of targets as there are"
        refuse_unless((self.count <= largest).all(), f"{where} {rule}, got {self.count.max()}")

    def _targets(self, targets: TargetsByKey) -> IntArray:
        """Return how many targets each cell has."""
        found = [targets.get(tuple(key), 0) for key in self.keys.tolist()]
        return np.array(found, dtype=np.int64)

    def check_users(self, targets: TargetsByKey, *, where: str) -> None:
        """Refuse pairs that are not those of all targets of users with themselves.

        Of a user's m relevant targets, each is in m pairs. Where ``relevant`` is 1 for all, other
        targets of a user were left out, and each is in one pair at least.
        """
        self.check_cells(targets, targets, where=where)
        rule = f"{where} must hold the pairs of all targets of its users, got"
        mirror = PairCounts.of_cells(self.second, self.first, self.count)
        refuse_unless(mirror == self, f"{rule} pairs that differ in their order")
        count = self._targets(targets)
        refuse_unless(len(targets) == len(self.keys), f"{rule} cells without any")
        relevant = self.keys[:, PAIR_KEYS.index("relevant")]
        total = np.zeros(len(self.keys), dtype=np.int64)
        np.add.at(total, self.left, self.count)
        alone = self.left == self.right
        own = np.zeros(len(self.keys), dtype=np.int64)
        own[self.left[alone]] = self.count[alone]
        good = own >= count
        if (relevant > 1).any():
            good &= total == relevant * count
        refuse_unless(good.all(), f"{rule} {total[np.argmin(good)]} of {count[np.argmin(good)]}")
