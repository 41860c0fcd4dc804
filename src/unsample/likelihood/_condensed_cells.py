"""The targets of a model in few cells, and which cells the targets of one user are in.

A sample shows the share theta of better items with the standard error sqrt(theta (1 - theta)/n),
which is constant along arcsin(sqrt(theta)). Sampled ranks that are closer than half a standard
error are joined: n = 100 gives some 60 cells. Known ranks are cells of their own. Where samples of
many sizes occur, neighbouring sizes have their cells in common, and a target is shared out among
the cells of the ranks that it would have among fewer items (`in_smaller_sample`). Each stratum has
a curve of its own (`Strata`).

All that variances need is quadratic in scores of cells: the sum over users of the products of
what their targets add. ``user_products`` holds it for every two cells that a user has targets in,
with a last row for the constant that centring subtracts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.counts import (
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
#: The first ranks have cells of their own; the width of further cells in standard errors.
_FIRST_SINGLE, _SHARE_OF_STANDARD_ERROR = 10, 0.5
#: Cutoffs of the usual metrics, which get bins of their own.
_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True, eq=False)
class StratumCells:
    """Targets with one curve: P(cell | bin) and the share of each cell.

    ``part`` is their share of all targets. ``sampled`` and ``first`` are the size of the sample and
    the first rank of each cell. Cells of known ranks come first, with the size 0. Cells of a
    group of sizes have the smallest of them, which ``group`` gives for each of the ``sizes``.
    """

    grid: RankGrid
    likelihood: FloatArray
    shares: FloatArray
    part: float
    sampled: IntArray
    first: IntArray
    sizes: IntArray
    group: IntArray
    #: Whether the cells are printed numbers, which hold no single targets.
    printed: bool = False

    @classmethod
    def of(cls, counts: RankCounts, part: float) -> StratumCells:
        """Condense counts of targets with one curve."""
        sharpest = int(counts.sampled[~counts.full].max(initial=0))
        grid = RankGrid.coarse(counts.largest_catalogue, sampled=sharpest, cutoffs=_CUTOFFS)
        observed = Observed.prepare(counts, grid=grid)
        known = observed.known_mass()[0]
        bins = np.flatnonzero(known)
        likelihood = [known.sum() * (bins[:, None] == np.arange(len(grid)))]
        shares, sampled, first = [known[bins]], [np.zeros_like(bins)], [grid.low[bins]]
        unknown = observed if counts.known.all() else observed.unknown_part()
        sizes = np.array([] if counts.known.all() else unknown.sample_sizes, dtype=np.int64)
        # Ranges of ranks have no rank in a smaller sample.
        single = bool((unknown.counts.low == unknown.counts.high).all())
        group = sample_groups(sizes) if single else sizes
        for smallest in np.unique(group).tolist():
            of_group = sizes[group == smallest]
            if len(of_group) == 1:
                low, high = _condensed_ranges(*unknown.ranges(smallest), smallest + 1)
                matrix, pooled = unknown.pool(smallest, low=low, high=high, grid=grid)
            else:
                low, high = _usual_ranges(smallest + 1)
                matrix, pooled = unknown.pool_sizes(of_group, low=low, high=high, grid=grid)
            share = pooled[0] * (1.0 - known.sum())
            # P(cell and sample size | bin): the expected shares of all cells sum to one.
            likelihood.append(matrix * share.sum())
            shares.append(share)
            sampled.append(np.full(len(low), smallest))
            first.append(low)
        return cls(
            grid=grid,
            likelihood=np.concatenate(likelihood),
            shares=np.concatenate(shares),
            part=part,
            sampled=np.concatenate(sampled),
            first=np.concatenate(first),
            sizes=sizes,
            group=group,
        )

    def cell_shares(self, sampled: IntArray, ranks: IntArray, full: BoolArray) -> csr_array:
        """Return which part of each target is in each cell (targets x cells).

        ``full`` marks ranks among all candidates.
        """
        from scipy.sparse import coo_array, csr_array

        smallest = np.zeros_like(sampled)
        if len(self.sizes):
            index = np.searchsorted(self.sizes, sampled).clip(max=len(self.sizes) - 1)
            smallest = np.where(full, 0, self.group[index])
        shape = (len(ranks), len(self.sampled))
        found = csr_array(shape)
        for size in np.unique(smallest).tolist():
            here, cell = np.flatnonzero(smallest == size), np.flatnonzero(self.sampled == size)
            if (sampled[here] == size).all() or size == 0:
                # Nothing is known of a range of ranks among all candidates: the first cell will do.
                cell = cell if len(cell) else np.zeros(1, dtype=np.int64)
                index = np.searchsorted(self.first[cell], ranks[here], side="right") - 1
                probabilities = np.ones(len(here))
                row, column = here, cell[np.maximum(index, 0)]
            else:
                part = in_smaller_sample(
                    sampled[here], ranks[here], smaller=size, starts=self.first[cell]
                )
                entries = part.tocoo()
                probabilities, row, column = entries.data, here[entries.row], cell[entries.col]
            found = found + csr_array(coo_array((probabilities, (row, column)), shape=shape))
        return csr_array(found)


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
        """Return the products of the second's cells with the first's."""
        return CellProducts(self.column, self.row, total=self.total)

    def between(self, first: FloatArray, second: FloatArray) -> float:
        """Return the sum over users of products of two sums of scores, one score for each cell."""
        return float((first[self.row] * self.total) @ second[self.column])


@dataclass(frozen=True, eq=False)
class SharedItems:
    """The effect of each shared item: the change of the weight of cells without it (items x cells).

    ``noise`` (cells x cells) is the part of their squares that comes from each target's own noise:
    the spread over users has it as well. ``left`` is the share of the catalogue not drawn.
    ``covariance`` (cells x cells) is that of the cells' weights over draws of items.
    """

    names: IntArray
    effects: FloatArray
    noise: FloatArray
    drawn: int
    left: float
    covariance: FloatArray

    def covariance_with(self, other: SharedItems) -> FloatArray:
        """Return the covariance of the weights of two models' cells, by the items of both."""
        _, left, right = np.intersect1d(self.names, other.names, return_indices=True)
        mine, theirs = (
            each.effects - each.effects.sum(axis=0) / each.drawn for each in (self, other)
        )
        factor = math.sqrt(self.left * other.left) * (1.0 - 1.0 / self.drawn)
        return np.asarray(factor * mine[left].T @ theirs[right])

    @property
    def weight_covariance(self) -> FloatArray:
        """Return the covariance of the cells' weights that comes from the draw of items.

        It is the jackknife over items (Efron and Stein 1981), less the part that the products of
        users hold too; what is left of it may not be negative in any direction.
        """
        mean = self.effects.sum(axis=0) / self.drawn
        squares = self.effects.T @ self.effects - self.drawn * np.outer(mean, mean)
        values, vectors = np.linalg.eigh(squares - self.noise)
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return np.asarray(self.left * (1.0 - 1.0 / self.drawn) * positive)


@dataclass(frozen=True, eq=False)
class CondensedCells:
    """The condensed targets of one model.

    ``weight`` is that of each cell, ``total`` their sum, ``norm`` what the mean of scores is taken
    over (users, or targets). ``user_products`` is described above. ``independent`` is the number of
    independent targets, ``users`` the effective number of users.
    """

    strata: tuple[StratumCells, ...]
    designs: Strata
    weight: FloatArray
    total: float
    norm: float
    independent: float
    users: float
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
        designs, total = Strata.of(counts), float(counts.weight.sum())
        number = designs.of_cells(counts)
        strata, weight = [], []
        for each in range(designs.count):
            some = counts.take(number == each)
            part = float(some.weight.sum()) / total
            strata.append(StratumCells.of(some, part))
            weight.append(strata[-1].shares * part * total)
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
        """Return the geometric mean of the sizes of samples, without targets that are known."""
        sampled = np.concatenate([stratum.sampled for stratum in self.strata])
        some = sampled > 0
        total = float(self.weight[some].sum())
        if total <= 0.0:
            return 1.0
        return float(np.exp(self.weight[some] @ np.log(sampled[some]) / total))

    @property
    def targets_in_cell(self) -> FloatArray:
        """Return how many equal targets would give each cell's weight the variance that it has."""
        products = self.user_products
        same = products.row == products.column
        squares = np.zeros(len(self.weight) + 1)
        np.add.at(squares, products.row[same], products.total[same])
        return np.asarray(self.weight**2 / np.maximum(squares[:-1], 1e-300))

    def _products(self, counts: RankCounts) -> CellProducts:
        if counts.clusters is not None:
            few = counts.users / max(counts.users - 1, 1)
            products = self.crossed(self, counts.clusters)
            return replace(products, total=few * products.total)
        keys = np.stack(
            [counts.sampled, counts.items, counts.high, counts.relevant, counts.position], axis=1
        )
        added = self._added(keys, np.ones(len(keys)), constant=np.ones(len(keys)))
        return CellProducts.of(_product(added, counts.squared_weights, second=added))

    def _items(self, counts: RankCounts) -> SharedItems | None:
        """Return the effect of each shared item; None where it is not known."""
        shared, stratum = counts.shared, self.strata[0]
        if shared is None or not shared.known:
            return None
        own = stratum.sampled == shared.sampled
        first = stratum.first[own]
        last = np.append(first[1:] - 1, shared.sampled + 1)
        ranks = np.arange(1, shared.sampled + 2)
        # Scores of single ranks are interpolated between the cells around them.
        between, probabilities = np.zeros((2, len(ranks), len(self.weight)))
        for cell, unit in zip(np.flatnonzero(own), np.eye(len(first)), strict=True):
            between[:, cell] = np.interp(ranks, (first + last) / 2.0, unit)
        # A target is in a cell by a probability that changes smoothly with the items that beat it.
        share = (ranks - 1.0)[:, None] / shared.sampled
        probabilities[:, own] = np.diff(
            bdtr(last - 1.0, shared.sampled, share), axis=1, prepend=0.0
        )
        names, effects, noise = self._moved(counts, shared, steps=np.diff(between, axis=0))
        left = 1.0
        if not counts.replacement:
            left = max(1.0 - shared.sampled / (counts.largest_catalogue - 1), 0.0)
        _, smooth, own_noise = self._moved(counts, shared, steps=np.diff(probabilities, axis=0))
        mean = smooth.sum(axis=0) / shared.sampled
        squares = smooth.T @ smooth - shared.sampled * np.outer(mean, mean)
        covariance = left * (1.0 - 1.0 / shared.sampled) * (squares - own_noise)
        return SharedItems(
            names=names,
            effects=effects,
            noise=noise,
            drawn=shared.sampled,
            left=left,
            covariance=covariance,
        )

    def _moved(
        self, counts: RankCounts, shared: ItemCounts, steps: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the items, how each moves weight between cells, and the noise in the squares.

        ``steps`` (ranks x cells) are how a target moves that is one rank lower.
        """
        names, index = np.unique(shared.item, return_inverse=True)
        effects = np.zeros((len(names), len(self.weight)))
        np.add.at(effects, index.reshape(-1), shared.count[:, None] * steps[shared.rank - 2])
        squares = counts.squared_weights
        if counts.clusters is not None:
            # Each target has noise of its own, whoever its user is.
            squares = counts.weight**2 / np.maximum(counts.count, 1)
        beaten = counts.low - 1.0
        noise = squares * beaten * (shared.sampled - beaten) / shared.sampled
        rise = steps[np.maximum(counts.low - 2, 0)] * (counts.low > 1)[:, None]
        return names, effects, (rise * noise[:, None]).T @ rise

    def crossed(
        self,
        other: CondensedCells,
        pairs: PairCounts,
        *,
        groups: tuple[IntArray, IntArray] | None = None,
    ) -> CellProducts:
        """Return the sums over users of products of the two models' targets.

        With the group of each cell of both, products are those of groups; the last one is that of
        the constant.
        """
        from scipy.sparse import coo_array, csr_array

        mine, left = np.unique(pairs.left, return_inverse=True)
        theirs, right = np.unique(pairs.right, return_inverse=True)
        cells = left.reshape(-1), right.reshape(-1)
        shape = (len(mine), len(theirs))
        together = csr_array(coo_array((pairs.count.astype(np.float64), cells), shape=shape))
        first, second = self._of_pairs(pairs.keys[mine]), other._of_pairs(pairs.keys[theirs])
        if groups is not None:
            first, second = (
                _summed(each, group) for each, group in zip((first, second), groups, strict=True)
            )
        return CellProducts.of(csr_array(first.T @ together @ second))

    def _of_pairs(self, keys: IntArray) -> csr_array:
        """Return the weights that a target in each pair cell adds, as `_added` does."""
        shares = np.ones(len(keys))
        if self.metric is not None:
            shares = self.metric.shares(keys[:, 3], keys[:, 4])
        return self._added(keys, shares, constant=1.0 / keys[:, 3])

    def _added(self, keys: IntArray, shares: FloatArray, constant: FloatArray) -> csr_array:
        """Return the weights that targets add to cells, and in a last column to the constant.

        ``keys`` are pair cells (sampled, items, rank, relevant, position), and ``shares`` the
        sum over cells that a target of each adds.
        """
        from scipy.sparse import coo_array, csr_array

        sampled, items, ranks = keys[:, 0], keys[:, 1], keys[:, 2]
        full = (sampled == items - 1) & self.tells_full
        number = self.designs.of_designs(sampled, items, full=full)
        shape = (len(keys), len(self.weight) + 1)
        last = np.full(len(keys), len(self.weight))
        added = csr_array(coo_array((constant, (np.arange(len(keys)), last)), shape=shape))
        start = 0
        for each, stratum in enumerate(self.strata):
            here = np.flatnonzero(number == each)
            part = stratum.cell_shares(sampled[here], ranks[here], full=full[here]).tocoo()
            values, rows = part.data * shares[here][part.row], here[part.row]
            added = added + csr_array(coo_array((values, (rows, start + part.col)), shape=shape))
            start += len(stratum.shares)
        return csr_array(added)

    def centred(self, scores: FloatArray) -> FloatArray:
        """Return scores of cells, and as a last one what centring subtracts."""
        return np.append(scores, -(scores @ self.weight) / self.norm)


def _summed(added: csr_array, group: IntArray) -> csr_array:
    """Return what targets add to groups of cells, and in a last column to the constant."""
    from scipy.sparse import coo_array, csr_array

    number = np.append(group, group.max() + 1)
    places = np.arange(len(number)), number
    which = coo_array((np.ones(len(number)), places), shape=(len(number), int(number[-1]) + 1))
    return csr_array(added @ csr_array(which))


def _product(first: csr_array, weights: FloatArray, second: csr_array) -> csr_array:
    """Return the weighted sum of the products of weights that targets add (cells x cells)."""
    from scipy.sparse import csr_array

    return csr_array(first.T @ second.multiply(weights[:, None]))


def _condensed_ranges(low: IntArray, high: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return ranges that cover 1..n: half a standard error wide, or as they came, gaps filled."""
    if (low < high).any():
        # A target could have had any of the other ranks as well.
        gap_low = np.concatenate([[1], np.maximum.accumulate(high) + 1])
        gap_high = np.concatenate([low - 1, [n]])
        gaps = gap_low <= gap_high
        starts = np.concatenate([low, gap_low[gaps]])
        order = np.argsort(starts, kind="stable")
        return starts[order], np.concatenate([high, gap_high[gaps]])[order]
    return _usual_ranges(n)


def _usual_ranges(n: int) -> tuple[IntArray, IntArray]:
    """Return ranges that cover 1..n, half a standard error wide, the first ranks alone."""
    angle = np.arange(0.0, math.pi / 2, _SHARE_OF_STANDARD_ERROR * 0.5 / math.sqrt(n))
    starts = np.floor(n * np.sin(angle) ** 2).astype(np.int64) + 1
    starts = np.union1d(np.arange(1, min(_FIRST_SINGLE, n) + 1), starts[starts <= n])
    return starts, np.append(starts[1:] - 1, n)
