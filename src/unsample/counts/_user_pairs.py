"""`PairCounts`: how many pairs of targets of one user lie in each pair of cells.

Targets of one user are not independent, and neither are two models' ranks of one target. Variances
and covariances of means need sums over users: let every target have a score, and let S be the sum
of the scores of a user's targets. The sum of S^2 over users is a sum over pairs of targets of one
user, of the product of their scores. Scores depend on the cell alone. So it is enough to know how
many pairs lie in each pair of cells.

These counts add up over parts of the users, and name no user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import LARGEST_CATALOGUE, FloatArray, IntArray
from unsample._fields import Field, read_fields, refuse_unless
from unsample.counts._catalogues import sizes_on_grid
from unsample.counts._columns import distinct_rows
from unsample.metrics import Metric

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from unsample.counts._rank_counts import RankCounts

#: The columns that identify a pair cell.
PAIR_KEYS = ("sampled", "items", "bin", "relevant", "position")
#: Ranks up to this one have bins of their own.
RANKS_ALONE = 128
#: Beyond, a bin is this part of its first rank wide: one 32nd.
RANK_STEPS = 32
#: A file holds no pair of cells more often than this: sums of such counts are whole in 64 bits.
_MAX_PAIRS = 10**15
#: The keys of a cell -> its number of targets.
TargetsByKey: TypeAlias = Mapping[tuple[int, ...], int]


def rank_bin(ranks: npt.ArrayLike) -> IntArray:
    """Return the first rank of the bin of each rank: ranks up to 128 are bins of their own.

    >>> rank_bin([1, 128, 129, 133, 134, 1000])
    array([  1, 128, 129, 129, 134, 984])
    """
    rank = np.asarray(ranks, dtype=np.int64)
    first_wide = RANKS_ALONE + 1
    step = np.floor(RANK_STEPS * np.log(np.maximum(rank, first_wide) / first_wide))
    start = np.ceil(first_wide * np.exp(step / RANK_STEPS)).astype(np.int64)
    return np.where(rank <= RANKS_ALONE, rank, start)


def pair_keys(columns: Mapping[str, Any]) -> IntArray:
    """Return the pair cell of each row (rows x `PAIR_KEYS`), given the columns of cells.

    The bin follows from the column ``high``, the last rank. A key without a column is 1.

    >>> design = {"sampled": np.array([99, 99]), "items": np.array([5000, 5000])}
    >>> pair_keys({**design, "high": np.array([3, 1000])}).tolist()
    [[99, 5000, 3, 1, 1], [99, 5000, 984, 1, 1]]
    """
    last_rank: IntArray = columns["high"]
    ones = np.ones(len(last_rank), dtype=np.int64)
    known = {**columns, "bin": rank_bin(last_rank)}
    keys = [np.asarray(known.get(name, ones), dtype=np.int64) for name in PAIR_KEYS]
    return np.stack(keys, axis=1)


def shares_in(metric: Metric | None, *, relevant: IntArray, position: IntArray) -> FloatArray:
    """Return the share of each target in its user's metric; each is 1 without a metric."""
    return np.ones(len(relevant)) if metric is None else metric.shares(relevant, position)


def pairs_between(
    sides: Mapping[str, tuple[npt.ArrayLike, IntArray]],
) -> dict[tuple[str, str], PairCounts]:
    """Return the pairs of each two models, given the user and the cell of each target.

    >>> one = np.array([[9, 50, 1, 1, 1]])
    >>> pairs_between({"A": ([7], one), "B": ([7], one), "C": ([8], one)})["A", "B"].total
    1
    """
    return {
        (a, b): PairCounts.of_users(*sides[a], other=sides[b]) for a, b in combinations(sides, 2)
    }


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How many pairs of targets of one user lie in each pair of cells.

    Pairs are ordered, and a target is paired with itself too. ``keys`` has a row for each cell that
    occurs, with the columns `PAIR_KEYS`; ``left`` and ``right`` are rows of it.

    Here user 7 has targets at the ranks 1 and 3, and user 8 has one at rank 1. Two pairs have both
    targets at rank 1: each of these two targets is paired with itself.

    >>> cells = np.array([[9, 50, 1, 2, 0], [9, 50, 3, 2, 0]])
    >>> pairs = PairCounts.of_users([7, 7, 8], cells[[0, 1, 0]])
    >>> pairs.count.tolist(), pairs.first[:, 2].tolist(), pairs.second[:, 2].tolist()
    ([2, 1, 1, 1], [1, 1, 3, 3], [1, 3, 1, 3])
    """

    keys: IntArray
    left: IntArray
    right: IntArray
    count: IntArray

    @classmethod
    def of_cells(cls, first: IntArray, second: IntArray, count: npt.ArrayLike) -> PairCounts:
        """Take the keys of the first and of the second cell of each pair; equal pairs add up.

        >>> cells = np.array([[9, 50, 1, 1, 1], [9, 50, 3, 1, 1], [9, 50, 1, 1, 1]])
        >>> PairCounts.of_cells(cells, cells, count=[10, 20, 5]).count.tolist()
        [15, 20]
        """
        times = np.asarray(count, dtype=np.int64)
        keys, row = distinct_rows(np.concatenate([first, second]))
        left, right = np.split(row, [len(times)])
        pair, index = np.unique(left * len(keys) + right, return_inverse=True)
        total = np.zeros(len(pair), dtype=np.int64)
        np.add.at(total, index.reshape(-1), times)
        left, right = np.divmod(pair, max(len(keys), 1))
        return cls(keys, left.astype(np.int64), right=right.astype(np.int64), count=total)

    @classmethod
    def of_users(
        cls,
        users: npt.ArrayLike,
        cells: IntArray,
        other: tuple[npt.ArrayLike, IntArray] | None = None,
    ) -> PairCounts:
        """Count pairs of targets of one user, given the user and the cell of each target.

        Let T have a row for each user, a column for each cell, and the number of the user's targets
        in the cell. Then T'T holds the number of pairs of each two cells.

        With ``other``, users and cells of another model's targets, the second target of a pair is
        of that model: the numbers are T'S, with the table S of the other. Users that only one of
        them has are in no pair.

        >>> cells = np.array([[9, 50, 1, 1, 1], [9, 50, 3, 1, 1]])
        >>> pairs = PairCounts.of_users(["ann", "bob"], cells, other=(["bob", "eve"], cells))
        >>> pairs.first.tolist(), pairs.second.tolist(), pairs.count.tolist()
        ([[9, 50, 3, 1, 1]], [[9, 50, 1, 1, 1]], [1])
        """
        other_users, other_cells = (users, cells) if other is None else other
        names = np.concatenate([np.asarray(users), np.asarray(other_users)])
        number = np.unique(names, return_inverse=True)[1].reshape(-1)
        rows = int(number.max(initial=0)) + 1
        first_user, second_user = np.split(number, [len(cells)])
        first_keys, first_table = _targets_by_user(first_user, cells, rows=rows)
        if other is None:
            second_keys = first_keys
            second_table = first_table
        else:
            second_keys, second_table = _targets_by_user(second_user, other_cells, rows=rows)
        pairs = (first_table.T @ second_table).tocoo()
        return cls.of_cells(first_keys[pairs.row], second_keys[pairs.col], count=pairs.data)

    @classmethod
    def merge(cls, parts: Iterable[PairCounts]) -> PairCounts:
        """Add up pairs that were counted in parts, each user being in one of them."""
        counts = list(parts)
        return cls.of_cells(
            np.concatenate([part.first for part in counts]),
            np.concatenate([part.second for part in counts]),
            count=np.concatenate([part.count for part in counts]),
        )

    def swapped(self) -> PairCounts:
        """Return the pairs with the second cell first.

        >>> cells = np.array([[9, 50, 1, 1, 1], [9, 50, 3, 1, 1]])
        >>> pairs = PairCounts.of_cells(cells[:1], cells[1:], count=[10])
        >>> pairs.swapped().first[:, 2].tolist(), pairs.swapped().second[:, 2].tolist()
        ([3], [1])
        """
        return PairCounts.of_cells(self.second, self.first, count=self.count)

    def rounded_like(self, first: RankCounts, second: RankCounts) -> PairCounts:
        """Return the pairs with catalogues on the grid, as in the counts of their two models.

        A model has its sizes on the grid where it has many of them.
        """
        if not (first.many_sizes or second.many_sizes):
            return self
        first_keys = self._keys_like(first)
        second_keys = self._keys_like(second)
        return PairCounts.of_cells(first_keys[self.left], second_keys[self.right], count=self.count)

    def _keys_like(self, counts: RankCounts) -> IntArray:
        """Return the keys with catalogues on the grid, if the counts have them there."""
        if not counts.many_sizes:
            return self.keys
        sampled = self.keys[:, 0]
        items = sizes_on_grid(self.keys[:, 1], sampled, keep_full=counts.tells_full)
        return np.column_stack([sampled, items, self.keys[:, 2:]])

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
        others = other.arrays()
        return all(np.array_equal(mine, others[name]) for name, mine in self.arrays().items())

    __hash__ = None  # type: ignore[assignment]

    def inner(self, first: FloatArray, second: FloatArray) -> float:
        """Return the sum over users of a product of two sums of scores.

        ``first`` and ``second`` have a score for each row of ``keys``. A user's first sum is over
        the first targets of the pairs, the second sum over the second ones.

        One user has scores of 10 and 20, another one has 10: 30^2 + 10^2 = 1000.

        >>> cells = np.array([[9, 50, 1, 2, 0], [9, 50, 3, 2, 0]])
        >>> pairs = PairCounts.of_users([7, 7, 8], cells[[0, 1, 0]])
        >>> scores = np.array([10.0, 20.0])
        >>> pairs.inner(scores, scores)         # 2*10*10 + 10*20 + 20*10 + 20*20
        1000.0
        """
        return float(self.count @ (first[self.left] * second[self.right]))

    @property
    def users(self) -> float:
        """Return the sum of the squared weights of users, each target weighing 1 / ``relevant``.

        It is the number of users where all their relevant items are counted.
        """
        weights = 1.0 / self.keys[:, PAIR_KEYS.index("relevant")]
        return self.inner(weights, weights)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a file keeps."""
        names = ("keys", "left", "right", "count")
        return {name: getattr(self, name).reshape(-1) for name in names}

    @classmethod
    def from_arrays(cls, fields: Mapping[str, Any], source: str) -> PairCounts:
        """Take what `arrays` gave, and check it; ``source`` is for messages."""
        width = len(PAIR_KEYS)
        cells, rest = divmod(np.size(fields.get("keys", ())), width)
        refuse_unless(not rest, f"the pairs of {source} must hold {width} keys a cell")
        row = Field("whole", ("pairs",), low=0, high=cells - 1)
        described = {
            "keys": Field("whole", (cells * width,), low=0, high=LARGEST_CATALOGUE + 1),
            "left": row,
            "right": row,
            "count": Field("whole", ("pairs",), low=1, high=_MAX_PAIRS),
        }
        arrays = read_fields(fields, described, where=f"the pairs of {source}")
        keys = arrays["keys"].reshape(-1, width)
        return cls.of_cells(keys[arrays["left"]], keys[arrays["right"]], count=arrays["count"])

    def check_cells(self, first: TargetsByKey, second: TargetsByKey, *, where: str) -> None:
        """Refuse pairs that cannot occur, given the number of targets in each cell."""
        # Both factors may be large: their product is one of floats.
        possible = self._targets(first)[self.left].astype(np.float64)
        possible *= self._targets(second)[self.right]
        there = (possible > 0).all()
        refuse_unless(there, f"{where} must hold pairs of the cells that it counts, got others")
        rule = "must hold at most as many pairs of targets as there are"
        few = (self.count <= possible).all()
        refuse_unless(few, f"{where} {rule}, got {self.count.max()}")

    def _targets(self, targets: TargetsByKey) -> IntArray:
        """Return the number of targets in each cell."""
        numbers = [targets.get(tuple(key), 0) for key in self.keys.tolist()]
        return np.array(numbers, dtype=np.int64)

    def check_users(self, targets: TargetsByKey, *, where: str) -> None:
        """Refuse pairs within a model that do not pair all targets of each user.

        A target of a user with m relevant items is in m pairs. Where ``relevant`` is 1 for all,
        other targets of a user were left out, and each target is in one pair at least: with itself.
        """
        self.check_cells(targets, targets, where=where)
        rule = f"{where} must hold the pairs of all targets of its users, got"
        refuse_unless(self.swapped() == self, f"{rule} pairs that differ in their order")
        refuse_unless(len(targets) == len(self.keys), f"{rule} cells without any")
        count = self._targets(targets)
        pairs_of_cell = np.zeros(len(self.keys), dtype=np.int64)
        np.add.at(pairs_of_cell, self.left, self.count)
        same_cell = self.left == self.right
        pairs_within = np.zeros(len(self.keys), dtype=np.int64)
        pairs_within[self.left[same_cell]] = self.count[same_cell]
        good = pairs_within >= count
        relevant = self.keys[:, PAIR_KEYS.index("relevant")]
        if (relevant > 1).any():
            good &= pairs_of_cell == relevant * count
        worst = np.argmin(good)
        refuse_unless(good.all(), f"{rule} {pairs_of_cell[worst]} of {count[worst]}")


def _targets_by_user(user: IntArray, cells: IntArray, *, rows: int) -> tuple[IntArray, csr_array]:
    """Return the different cells, and how many targets each user has in each (users x cells).

    >>> cells = np.array([[9, 50, 3, 1, 1], [9, 50, 1, 1, 1], [9, 50, 3, 1, 1]])
    >>> keys, table = _targets_by_user(np.array([0, 0, 1]), cells, rows=2)
    >>> keys[:, 2].tolist(), table.toarray().tolist()
    ([1, 3], [[1, 1], [0, 1]])
    """
    from scipy.sparse import csr_array

    keys, cell = distinct_rows(cells)
    ones = np.ones(len(user), dtype=np.int64)
    return keys, csr_array((ones, (user, cell)), shape=(rows, len(keys)))
