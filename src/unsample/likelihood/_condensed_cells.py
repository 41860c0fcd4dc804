"""The targets of a model in few cells, and which cells the targets of one user are in.

A sample shows the share theta of better items with the standard error sqrt(theta (1 - theta)/n),
which is constant along arcsin(sqrt(theta)). Sampled ranks that are closer than half a standard
error are joined: n = 100 gives some 60 cells. Known ranks are cells of their own. Where samples of
many sizes occur, neighbouring sizes have their cells in common, and a target is divided among the
cells of the ranks that it would have among fewer items (`in_smaller_sample`). Each stratum has a
curve of its own (`Strata`).

Variances of means are quadratic in the scores of cells. Let a user u add w(u, i) to the weight of
cell i, and w(u, 0) to the number that the mean is taken over. With a score s(i) for each cell and
minus the mean as s(0), the user adds sum_i s(i) w(u, i) to the deviation of the mean, times that
number. The sum of its squares over users is the sum over pairs of cells of s(i) s(j) times the sum
over users of w(u, i) w(u, j). ``user_products`` holds these sums; the cell 0 comes last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.counts import (
    PAIR_KEYS,
    ItemCounts,
    PairCounts,
    RankCounts,
    Strata,
    in_smaller_sample,
    sample_groups,
)
from unsample.likelihood._observed import Observed
from unsample.metrics import Metric
from unsample.sampling import RankGrid

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: More targets do not change a curve, and their information is too large for floating point.
_MAX_TARGETS = 1e9
#: The first ranks have cells of their own.
_FIRST_SINGLE = 10
#: The width of further cells, in standard errors.
_SHARE_OF_STANDARD_ERROR = 0.5
#: Cutoffs of the usual metrics, which get bins of their own.
_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True, eq=False)
class _SizeCells:
    """The cells of one group of sample sizes; the fields are as in `StratumCells`."""

    likelihood: FloatArray
    shares: FloatArray
    sampled: IntArray
    first: IntArray

    @classmethod
    def of_known(cls, mass: FloatArray, grid: RankGrid) -> _SizeCells:
        """Return a cell for each bin that known ranks are in; ``mass`` is their share by bin.

        >>> grid = RankGrid(low=np.array([1, 2, 5]), items=10)
        >>> cells = _SizeCells.of_known(np.array([0.0, 0.1, 0.3]), grid)
        >>> cells.first.tolist(), cells.shares.tolist()
        ([2, 5], [0.1, 0.3])
        >>> cells.likelihood.tolist()                     # 0.4 of all targets have known ranks
        [[0.0, 0.4, 0.0], [0.0, 0.0, 0.4]]
        """
        bins = np.flatnonzero(mass)
        # A known rank lies in its bin for certain.
        is_bin = bins[:, None] == np.arange(len(grid))
        return cls(
            likelihood=mass.sum() * is_bin,
            shares=mass[bins],
            sampled=np.zeros_like(bins),
            first=grid.low[bins],
        )

    @classmethod
    def of_group(cls, unknown: Observed, sizes: IntArray, *, share: float) -> _SizeCells:
        """Return the cells of ranks in neighbouring sizes of samples.

        ``unknown`` has all targets of unknown rank, which are this ``share`` of the stratum.
        """
        smallest = int(sizes.min())
        if len(sizes) == 1:
            low, high = _condensed_ranges(*unknown.ranges(smallest), n=smallest + 1)
            matrix, pooled = unknown.pool(smallest, low=low, high=high, grid=unknown.grid)
        else:
            low, high = _usual_ranges(smallest + 1)
            matrix, pooled = unknown.pool_sizes(sizes, low=low, high=high, grid=unknown.grid)
        shares = pooled[0] * share
        return cls(
            # P(cell and sample size | bin): the expected shares of all cells sum to one.
            likelihood=matrix * shares.sum(),
            shares=shares,
            sampled=np.full(len(low), smallest),
            first=low,
        )


@dataclass(frozen=True, eq=False)
class StratumCells:
    """Targets with one curve: P(cell | bin) and the share of each cell.

    >>> counts = RankCounts.from_ranks([1, 1, 40, 800], items=1000, sampled=[99, 99, 99, 999])
    >>> stratum = StratumCells.of(counts, part=1.0)
    >>> seen = stratum.shares > 0                        # rank 800 is known, and comes first
    >>> stratum.sampled[seen].tolist(), stratum.shares[seen].tolist()
    ([0, 99, 99], [0.25, 0.5, 0.25])
    """

    grid: RankGrid
    #: P(cell | bin): a row for each cell, a column for each bin of the grid.
    likelihood: FloatArray
    #: The share of the targets in each cell.
    shares: FloatArray
    #: The share of these targets among all.
    part: float
    #: The size of the sample of each cell: 0 for known ranks, whose cells come first, and the
    #: smallest size of its group for others.
    sampled: IntArray
    #: The first rank of each cell.
    first: IntArray
    #: The sizes of samples that occur, and the smallest size of the group of each.
    sizes: IntArray
    group: IntArray
    #: Whether the cells are printed numbers, which hold no single targets.
    printed: bool = False

    @classmethod
    def of(cls, counts: RankCounts, part: float) -> StratumCells:
        """Condense counts of targets with one curve, which are this ``part`` of all targets."""
        sharpest = int(counts.sampled[~counts.full].max(initial=0))
        grid = RankGrid.coarse(counts.largest_catalogue, sampled=sharpest, cutoffs=_CUTOFFS)
        observed = Observed.prepare(counts, grid=grid)
        known_mass = observed.known_mass()[0]
        cells = [_SizeCells.of_known(known_mass, grid)]
        sizes = np.array([], dtype=np.int64)
        group = sizes
        if not counts.known.all():
            unknown = observed.unknown_part()
            sizes = np.array(unknown.sample_sizes, dtype=np.int64)
            # Only single ranks have known probabilities in a smaller sample.
            single = bool((unknown.counts.low == unknown.counts.high).all())
            group = sample_groups(sizes) if single else sizes
            share = 1.0 - known_mass.sum()
            for smallest in np.unique(group):
                of_group = sizes[group == smallest]
                cells.append(_SizeCells.of_group(unknown, of_group, share=share))
        return cls(
            grid=grid,
            likelihood=np.concatenate([block.likelihood for block in cells]),
            shares=np.concatenate([block.shares for block in cells]),
            part=part,
            sampled=np.concatenate([block.sampled for block in cells]),
            first=np.concatenate([block.first for block in cells]),
            sizes=sizes,
            group=group,
        )

    def cell_shares(self, sampled: IntArray, ranks: IntArray, *, full: BoolArray) -> csr_array:
        """Return which part of each target is in each cell (targets x cells).

        A target is wholly in one cell, unless its rank is taken among fewer items than were
        sampled for it. ``full`` marks ranks among all candidates.
        """
        from scipy.sparse import coo_array, csr_array

        smallest = np.zeros_like(sampled)
        if len(self.sizes):
            index = np.searchsorted(self.sizes, sampled).clip(max=len(self.sizes) - 1)
            smallest = np.where(full, 0, self.group[index])
        shape = (len(ranks), len(self.sampled))
        table = csr_array(shape)
        for size in np.unique(smallest).tolist():
            targets = np.flatnonzero(smallest == size)
            cells = np.flatnonzero(self.sampled == size)
            if (sampled[targets] == size).all() or size == 0:
                if not len(cells):
                    # A range of ranks among all candidates has no cell: the first one will do.
                    cells = np.zeros(1, dtype=np.int64)
                index = np.searchsorted(self.first[cells], ranks[targets], side="right") - 1
                probabilities = np.ones(len(targets))
                row = targets
                column = cells[np.maximum(index, 0)]
            else:
                divided = in_smaller_sample(
                    sampled[targets], ranks[targets], smaller=size, starts=self.first[cells]
                ).tocoo()
                probabilities = divided.data
                row = targets[divided.row]
                column = cells[divided.col]
            table = table + csr_array(coo_array((probabilities, (row, column)), shape=shape))
        return csr_array(table)


@dataclass(frozen=True, eq=False)
class CellProducts:
    """Sums over users of products of their targets' numbers, for each pair of cells.

    >>> products = CellProducts(np.array([0, 1]), np.array([1, 1]), np.array([2.0, 3.0]))
    >>> products.between(np.array([1.0, 10.0]), np.array([0.0, 5.0]))    # 1*2*5 + 10*3*5
    160.0
    """

    row: IntArray
    column: IntArray
    total: FloatArray

    @classmethod
    def of(cls, matrix: csr_array) -> CellProducts:
        """Keep the entries of a matrix (cells x cells), and nothing of its library."""
        entries = matrix.tocoo()
        return cls(entries.row.astype(np.int64), entries.col.astype(np.int64), total=entries.data)

    def transposed(self) -> CellProducts:
        """Return the products with the second cell first."""
        return CellProducts(self.column, self.row, total=self.total)

    def between(self, first: FloatArray, second: FloatArray) -> float:
        """Return the sum over users of the product of two sums of scores.

        ``first`` and ``second`` have a score for each cell. A user's sums weigh it by what the
        user's targets add to the cell.
        """
        return float((first[self.row] * self.total) @ second[self.column])


@dataclass(frozen=True, eq=False)
class SharedItems:
    """What each shared item changes: the weights of cells with it, less those without it."""

    #: The numbers of the items that beat any target.
    names: IntArray
    #: The change of the weight of each cell by each of them (items x cells).
    effects: FloatArray
    #: The part of the sum of their squares that comes from each target's own noise (cells x
    #: cells). The spread over users has it as well.
    noise: FloatArray
    #: How many items were drawn.
    drawn: int
    #: The share of the catalogue that was not drawn.
    left: float
    #: The covariance of the cells' weights over draws of items (cells x cells).
    covariance: FloatArray

    def covariance_with(self, other: SharedItems) -> FloatArray:
        """Return the covariance of two models' weights of cells that comes from common items."""
        _, my_rows, their_rows = np.intersect1d(self.names, other.names, return_indices=True)
        mine = self.effects - self.effects.sum(axis=0) / self.drawn
        theirs = other.effects - other.effects.sum(axis=0) / other.drawn
        factor = math.sqrt(self.left * other.left) * (1.0 - 1.0 / self.drawn)
        return np.asarray(factor * mine[my_rows].T @ theirs[their_rows])

    @property
    def weight_covariance(self) -> FloatArray:
        """Return the covariance of the cells' weights that comes from the draw of items.

        It is the jackknife over items (Efron and Stein 1981), less the part that the products of
        users hold too. The rest is kept from being negative in any direction.
        """
        squares = _squares_around_mean(self.effects, self.drawn)
        values, vectors = np.linalg.eigh(squares - self.noise)
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return np.asarray(self.left * (1.0 - 1.0 / self.drawn) * positive)


@dataclass(frozen=True, eq=False)
class CondensedCells:
    """The condensed targets of one model.

    Here two users have the recalls 1/2 and 1 at rank 1: one has targets at the ranks 1 and 3. The
    variance of the mean of two users is ((1/4)^2 + (1/4)^2) / 2^2, times 2 / (2 - 1).

    >>> from unsample.metrics import parse
    >>> counts = RankCounts.from_ranks([1, 3, 1], items=50, sampled=9, users=[7, 7, 8])
    >>> cells = CondensedCells.of(counts.for_metric(parse("Recall@1")))
    >>> is_first = (cells.strata[0].first == 1).astype(float)
    >>> scores = cells.centred(is_first)
    >>> round(cells.user_products.between(scores, scores) / cells.norm**2, 12)
    0.0625
    """

    strata: tuple[StratumCells, ...]
    designs: Strata
    #: The weight of each cell, and the sum of all.
    weight: FloatArray
    total: float
    #: The number that means of scores are taken over: users, or targets.
    norm: float
    #: The number of independent targets.
    independent: float
    #: The effective number of users.
    users: float
    #: The sums of products described at the top of this file.
    user_products: CellProducts
    weight_per_user: float = 1.0
    ceiling: float = math.inf
    metric: Metric | None = None
    #: Whether ranks among as many items as there are are known (`RankCounts.tells_full`).
    tells_full: bool = False
    #: Whether targets shared their sampled items, and the effects of these, if they are known.
    shared: bool = False
    items: SharedItems | None = None

    @classmethod
    def of(cls, counts: RankCounts) -> CondensedCells:
        """Condense the counts of a model."""
        designs = Strata.of(counts)
        total = float(counts.weight.sum())
        stratum_of_cell = designs.of_cells(counts)
        strata = []
        weight = []
        for number in range(designs.count):
            of_stratum = counts.take(stratum_of_cell == number)
            part = float(of_stratum.weight.sum()) / total
            stratum = StratumCells.of(of_stratum, part)
            strata.append(stratum)
            weight.append(stratum.shares * part * total)
        users = total / counts.weight_per_user
        if counts.metric is None:
            users = float((counts.weight / counts.relevant).sum())
        no_cells = np.zeros(0, dtype=np.int64)
        cells = cls(
            strata=tuple(strata),
            designs=designs,
            weight=np.concatenate(weight),
            total=total,
            norm=total if counts.clusters is None else users,
            independent=min(counts.effective, float(counts.users), _MAX_TARGETS),
            users=counts.effective_users,
            user_products=CellProducts(row=no_cells, column=no_cells, total=np.zeros(0)),
            weight_per_user=counts.weight_per_user,
            ceiling=math.inf if counts.metric is None else counts.ceiling(counts.metric),
            metric=counts.metric,
            tells_full=counts.tells_full,
            shared=counts.shared is not None,
        )
        return replace(cells, user_products=cells._products(counts), items=cells._items(counts))

    @property
    def usual_sample(self) -> float:
        """Return the geometric mean of the sizes of samples, without targets of known rank."""
        sampled = np.concatenate([stratum.sampled for stratum in self.strata])
        drawn = sampled > 0
        total = float(self.weight[drawn].sum())
        if total <= 0.0:
            return 1.0
        return float(np.exp(self.weight[drawn] @ np.log(sampled[drawn]) / total))

    @property
    def targets_in_cell(self) -> FloatArray:
        """Return how many equally weighted targets would give each cell's weight its variance."""
        products = self.user_products
        same = products.row == products.column
        squares = np.zeros(len(self.weight) + 1)
        np.add.at(squares, products.row[same], products.total[same])
        return np.asarray(self.weight**2 / np.maximum(squares[:-1], 1e-300))

    def _products(self, counts: RankCounts) -> CellProducts:
        """Return the sums over users of products of their targets' weights."""
        if counts.clusters is not None:
            # As n - 1 in the variance of a sample.
            small_sample = counts.users / max(counts.users - 1, 1)
            products = self.crossed(self, counts.clusters)
            return replace(products, total=small_sample * products.total)
        keys = np.stack(
            [counts.sampled, counts.items, counts.high, counts.relevant, counts.position], axis=1
        )
        added = self._added(keys, np.ones(len(keys)), constant=np.ones(len(keys)))
        return CellProducts.of(_product(added, counts.squared_weights, second=added))

    def _items(self, counts: RankCounts) -> SharedItems | None:
        """Return the effect of each shared item; None where it is not known."""
        shared = counts.shared
        if shared is None or not shared.known:
            return None
        stratum = self.strata[0]
        of_sample = stratum.sampled == shared.sampled
        first = stratum.first[of_sample]
        last = np.append(first[1:] - 1, shared.sampled + 1)
        ranks = np.arange(1, shared.sampled + 2)
        between = np.zeros((len(ranks), len(self.weight)))
        between[:, of_sample] = _interpolated(ranks, (first + last) / 2.0)
        smooth = np.zeros((len(ranks), len(self.weight)))
        smooth[:, of_sample] = _smoothed(ranks, last, sampled=shared.sampled)
        left = 1.0
        if not counts.replacement:
            left = max(1.0 - shared.sampled / (counts.largest_catalogue - 1), 0.0)
        names, index = np.unique(shared.item, return_inverse=True)
        steps = np.diff(between, axis=0)
        smooth_steps = np.diff(smooth, axis=0)
        smooth_effects = self._effects(shared, index, steps=smooth_steps)
        squares = _squares_around_mean(smooth_effects, shared.sampled)
        squares_of_items = squares - self._noise(counts, shared, steps=smooth_steps)
        return SharedItems(
            names=names,
            effects=self._effects(shared, index, steps=steps),
            noise=self._noise(counts, shared, steps=steps),
            drawn=shared.sampled,
            left=left,
            covariance=left * (1.0 - 1.0 / shared.sampled) * squares_of_items,
        )

    def _effects(
        self, shared: ItemCounts, index: npt.NDArray[np.intp], *, steps: FloatArray
    ) -> FloatArray:
        """Return how much weight each item moves to each cell (items x cells).

        ``index`` is the item of each row of ``shared``. ``steps`` (ranks x cells) are how a target
        moves between cells when its rank grows by one.
        """
        effects = np.zeros((int(index.max()) + 1, len(self.weight)))
        np.add.at(effects, index.reshape(-1), shared.count[:, None] * steps[shared.rank - 2])
        return effects

    def _noise(self, counts: RankCounts, shared: ItemCounts, *, steps: FloatArray) -> FloatArray:
        """Return the part of squared effects that comes from targets' own noise (cells x cells).

        Given its share of better items, a target of rank r is beaten by r - 1 of n items at random.
        So the sum of squares around the mean is (r - 1)(n - r + 1)/n for this target alone.
        """
        squares = counts.squared_weights
        if counts.clusters is not None:
            # Each target has noise of its own, whoever its user is.
            squares = counts.weight**2 / np.maximum(counts.count, 1)
        beaten = counts.low - 1.0
        noise = squares * beaten * (shared.sampled - beaten) / shared.sampled
        rise = steps[np.maximum(counts.low - 2, 0)] * (counts.low > 1)[:, None]
        return np.asarray((rise * noise[:, None]).T @ rise)

    def crossed(
        self,
        other: CondensedCells,
        pairs: PairCounts,
        *,
        groups: tuple[IntArray, IntArray] | None = None,
    ) -> CellProducts:
        """Return the sums over users of products of the two models' weights of cells.

        Let A have a row for each pair cell, and what one of its targets adds to each cell here; B
        likewise for the other model. With the numbers of pairs P these are A'PB.

        ``groups`` are the numbers of a group for each cell of both models. Weights are then summed
        by group. The constant comes last, as a group of its own.
        """
        from scipy.sparse import coo_array, csr_array

        mine, left = np.unique(pairs.left, return_inverse=True)
        theirs, right = np.unique(pairs.right, return_inverse=True)
        numbers = pairs.count.astype(np.float64)
        cells = (left.reshape(-1), right.reshape(-1))
        together = csr_array(coo_array((numbers, cells), shape=(len(mine), len(theirs))))
        first = self._of_pairs(pairs.keys[mine])
        second = other._of_pairs(pairs.keys[theirs])
        if groups is not None:
            my_groups, their_groups = groups
            first = _summed(first, my_groups)
            second = _summed(second, their_groups)
        return CellProducts.of(csr_array(first.T @ together @ second))

    def _of_pairs(self, keys: IntArray) -> csr_array:
        """Return the weights that a target in each pair cell adds, as `_added` does."""
        relevant = keys[:, PAIR_KEYS.index("relevant")]
        position = keys[:, PAIR_KEYS.index("position")]
        shares = np.ones(len(keys))
        if self.metric is not None:
            shares = self.metric.shares(relevant, position)
        return self._added(keys, shares, constant=1.0 / relevant)

    def _added(self, keys: IntArray, shares: FloatArray, *, constant: FloatArray) -> csr_array:
        """Return the weights that targets add to cells (targets x cells), and to the constant.

        ``keys`` are pair cells (`PAIR_KEYS`). A target of each adds its ``shares`` to the cells in
        all, and ``constant`` to the last column.
        """
        from scipy.sparse import coo_array, csr_array

        sampled, items, ranks = keys.T[:3]
        full = (sampled == items - 1) & self.tells_full
        number = self.designs.of_designs(sampled, items, full=full)
        shape = (len(keys), len(self.weight) + 1)
        last_column = np.full(len(keys), len(self.weight))
        every_row = np.arange(len(keys))
        added = csr_array(coo_array((constant, (every_row, last_column)), shape=shape))
        first_column = 0
        for stratum_number, stratum in enumerate(self.strata):
            here = np.flatnonzero(number == stratum_number)
            parts = stratum.cell_shares(sampled[here], ranks[here], full=full[here]).tocoo()
            values = parts.data * shares[here][parts.row]
            places = (here[parts.row], first_column + parts.col)
            added = added + csr_array(coo_array((values, places), shape=shape))
            first_column += len(stratum.shares)
        return csr_array(added)

    def centred(self, scores: FloatArray) -> FloatArray:
        """Return scores of cells, and last minus their mean: the score of the constant."""
        return np.append(scores, -(scores @ self.weight) / self.norm)


def _interpolated(ranks: IntArray, middles: FloatArray) -> FloatArray:
    """Return the parts of a target that lie in the cells around its rank (ranks x cells).

    >>> _interpolated(np.array([1, 2, 3]), np.array([1.0, 3.0])).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    """
    units = np.eye(len(middles))
    return np.stack([np.interp(ranks, middles, unit) for unit in units], axis=1)


def _smoothed(ranks: IntArray, last: IntArray, *, sampled: int) -> FloatArray:
    """Return the probability of each cell in another sample, at the sampled share of better items.

    It changes smoothly with the number of items that beat a target (ranks x cells).

    >>> _smoothed(np.array([1, 2, 3]), np.array([1, 3]), sampled=2).tolist()
    [[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]]
    """
    share = (ranks - 1.0)[:, None] / sampled
    return np.asarray(np.diff(bdtr(last - 1.0, sampled, share), axis=1, prepend=0.0))


def _squares_around_mean(effects: FloatArray, drawn: int) -> FloatArray:
    """Return the sums of products of effects around their mean, over all ``drawn`` items.

    Items without a row have no effect. Of three items here one has an effect of 3: the mean is 1,
    and 2^2 + 1^2 + 1^2 = 6.

    >>> _squares_around_mean(np.array([[3.0]]), 3).tolist()
    [[6.0]]
    """
    mean = effects.sum(axis=0) / drawn
    return np.asarray(effects.T @ effects - drawn * np.outer(mean, mean))


def _summed(added: csr_array, group: IntArray) -> csr_array:
    """Return what targets add to groups of cells, and in a last column to the constant.

    >>> from scipy.sparse import csr_array
    >>> added = csr_array(np.array([[0.5, 0.3, 0.2, 1.0]]))
    >>> _summed(added, np.array([0, 1, 1])).toarray().tolist()
    [[0.5, 0.5, 1.0]]
    """
    from scipy.sparse import coo_array, csr_array

    number = np.append(group, group.max() + 1)
    places = (np.arange(len(number)), number)
    shape = (len(number), int(number[-1]) + 1)
    in_group = csr_array(coo_array((np.ones(len(number)), places), shape=shape))
    return csr_array(added @ in_group)


def _product(first: csr_array, weights: FloatArray, second: csr_array) -> csr_array:
    """Return the weighted sum over targets of products of what they add (cells x cells)."""
    from scipy.sparse import csr_array

    return csr_array(first.T @ second.multiply(weights[:, None]))


def _condensed_ranges(low: IntArray, high: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return ranges that cover 1..n: the usual ones, or observed ranges with gaps filled.

    >>> _condensed_ranges(np.array([1, 8]), np.array([5, 10]), n=20)
    (array([ 1,  6,  8, 11]), array([ 5,  7, 10, 20]))
    """
    if (low == high).all():
        return _usual_ranges(n)
    # A target could have had any of the other ranks as well.
    gap_low = np.concatenate([[1], np.maximum.accumulate(high) + 1])
    gap_high = np.concatenate([low - 1, [n]])
    gaps = gap_low <= gap_high
    starts = np.concatenate([low, gap_low[gaps]])
    ends = np.concatenate([high, gap_high[gaps]])
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order]


def _usual_ranges(n: int) -> tuple[IntArray, IntArray]:
    """Return ranges that cover 1..n, half a standard error wide, the first ranks alone.

    >>> first, last = _usual_ranges(100)
    >>> len(first), first[9:13].tolist(), last[9:13].tolist()
    (56, [10, 11, 12, 14], [10, 11, 13, 15])
    """
    angle = np.arange(0.0, math.pi / 2, _SHARE_OF_STANDARD_ERROR * 0.5 / math.sqrt(n))
    starts = np.floor(n * np.sin(angle) ** 2).astype(np.int64) + 1
    starts = np.union1d(np.arange(1, min(_FIRST_SINGLE, n) + 1), starts[starts <= n])
    return starts, np.append(starts[1:] - 1, n)
