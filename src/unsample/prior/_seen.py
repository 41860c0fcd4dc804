"""What was seen of a model's targets, condensed: few cells, and how users spread over them.

A sample sees the share theta of better items with the standard error sqrt(theta (1 - theta)/n),
which is constant along arcsin(sqrt(theta)). Sampled ranks that are closer than half a standard
error are joined: n = 100 gives some 60 cells. Catalogues of very different size are strata of
their own; they share the coefficients of the curve. Known ranks are cells of their own.

All that variances need is quadratic in scores of cells: the sum over users of the products of
what their targets add. ``spread`` holds it for every two cells, with a last row for the constant
that centring subtracts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.estimators._observed import Observed, _condensed_ranges
from unsample.evidence import PairCounts, RankCounts, size_ranges
from unsample.law import RankGrid
from unsample.metrics import Metric

#: Cutoffs of the usual metrics, which get bins of their own.
_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True, eq=False)
class Stratum:
    """Targets with catalogues of about one size: P(cell | bin) and the share of each cell.

    ``part`` is their share of all targets. The first ``known`` cells hold known ranks, the others
    sampled ones: ``sampled`` and ``first`` are the size of the sample and the first rank of each.
    """

    grid: RankGrid
    likelihood: FloatArray
    shares: FloatArray
    part: float
    known: int
    sampled: IntArray
    first: IntArray
    #: Whether the cells are numbers of a paper, which say nothing of single targets.
    printed: bool = False

    @classmethod
    def of(cls, counts: RankCounts, part: float) -> Stratum:
        """Condense counts whose catalogues are of about one size."""
        sharpest = int(counts.sampled[~counts.full].max(initial=0))
        grid = RankGrid.coarse(counts.largest_catalogue, sampled=sharpest, cutoffs=_CUTOFFS)
        observed = Observed.prepare(counts, grid=grid)
        known = observed.known_mass()[0]
        bins = np.flatnonzero(known)
        likelihood = [np.eye(len(grid))[bins] * known.sum()]
        shares, sampled, first = [known[bins]], [np.zeros_like(bins)], [grid.low[bins]]
        unknown = observed.unknown_part() if not counts.known.all() else None
        for size in [] if unknown is None else unknown.sample_sizes:
            low, high = _condensed_ranges(*unknown.ranges(size), size + 1)
            pool = unknown.pool(size, low, high, grid)
            share = pool.shares[0] * (1.0 - known.sum())
            # P(cell and sample size | bin): what is expected of all cells together sums to one.
            likelihood.append(pool.matrix * share.sum())
            shares.append(share)
            sampled.append(np.full(len(low), size))
            first.append(low)
        return cls(
            grid,
            np.concatenate(likelihood),
            np.concatenate(shares),
            part,
            len(bins),
            np.concatenate(sampled),
            np.concatenate(first),
        )

    def locate(self, sampled: IntArray, ranks: IntArray, full: BoolArray) -> IntArray:
        """Return the cell of each sampled rank; ``full`` marks ranks among all candidates."""
        cells = np.maximum(np.searchsorted(self.first[: self.known], ranks, side="right") - 1, 0)
        for size in np.unique(self.sampled[self.known :]):
            cell = np.flatnonzero(
                (self.sampled == size) & (np.arange(len(self.first)) >= self.known)
            )
            chosen = (sampled == size) & ~full
            place = np.searchsorted(self.first[cell], ranks[chosen], side="right") - 1
            cells[chosen] = cell[np.maximum(place, 0)]
        return cells


@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen of one model.

    ``weight`` is that of each cell, ``total`` their sum, ``norm`` what the mean of scores is taken
    over (users, or targets). ``spread`` is described above. ``beaten`` (shared items x cells) is
    how a cell's weight changes without the item, ``both`` (cells) the part of that which users'
    spread has as well. ``independent`` is the number of independent targets.
    """

    strata: tuple[Stratum, ...]
    sizes: FloatArray
    weight: FloatArray
    total: float
    norm: float
    independent: float
    users: float
    spread: FloatArray
    scale: float = 1.0
    ceiling: float = math.inf
    metric: Metric | None = None
    replacement: bool = True
    #: Whether targets shared their sampled items, and what each of these does (or nothing).
    shared: bool = False
    item: IntArray | None = None
    beaten: FloatArray | None = None

    @classmethod
    def of(cls, counts: RankCounts) -> Seen:
        """Condense the counts of a model."""
        grouped = counts
        number, total = size_ranges(grouped.items), float(grouped.weight.sum())
        strata, sizes, weight = [], [], []
        for each in range(int(number.max()) + 1):
            some = grouped.take(number == each)
            part = float(some.weight.sum()) / total
            strata.append(Stratum.of(some, part))
            sizes.append(float(some.items.min()))
            weight.append(strata[-1].shares * part * total)
        clustered = counts.clusters is not None
        users = total / counts.scale
        if counts.metric is None:
            users = float((counts.weight / counts.relevant).sum())
        seen = cls(
            tuple(strata),
            np.array(sizes),
            np.concatenate(weight),
            total,
            users if clustered else total,
            min(counts.effective, float(counts.users)),
            counts.effective_users,
            np.zeros((0, 0)),
            counts.scale,
            counts.ceiling(counts.metric) if counts.metric is not None else math.inf,
            counts.metric,
            counts.replacement,
            counts.shared is not None,
        )
        return seen._with_spread(grouped)

    def _with_spread(self, counts: RankCounts) -> Seen:
        if counts.clusters is not None:
            few = counts.users / max(counts.users - 1, 1)
            return replace(self, spread=few * self.crossed(self, counts.clusters))
        keys = np.stack(
            [counts.sampled, counts.items, counts.high, counts.relevant, counts.place], axis=1
        )
        cells = self._cells(keys)
        size = len(self.weight) + 1
        spread = np.zeros((size, size))
        np.add.at(spread, (cells, cells), counts.weight_squared)
        spread[-1, :-1] = spread[:-1, -1] = np.diag(spread)[:-1]
        spread[-1, -1] = counts.weight_squared.sum()
        return replace(self, spread=spread)

    def crossed(self, other: Seen, pairs: PairCounts) -> FloatArray:
        """Return the sums over users of products of what their targets add (cells x cells)."""
        first, second = pairs.keys[pairs.left], pairs.keys[pairs.right]
        mine, theirs = self._features(first), other._features(second)
        shape = len(self.weight) + 1, len(other.weight) + 1
        result = np.zeros(shape)
        for row, left in mine:
            for column, right in theirs:
                place = row * shape[1] + column
                products = pairs.count * left * right
                result += np.bincount(place, products, minlength=result.size).reshape(shape)
        return result

    def _features(self, keys: IntArray) -> list[tuple[IntArray, FloatArray]]:
        """Return where a target in each pair cell adds what: in its cell, and to the constant."""
        shares = np.ones(len(keys))
        if self.metric is not None:
            shares = self.metric.shares(keys[:, 3], keys[:, 4])
        last = np.full(len(keys), len(self.weight))
        return [(self._cells(keys), shares), (last, 1.0 / keys[:, 3])]

    def _cells(self, keys: IntArray) -> IntArray:
        """Return the cell of each pair cell (sampled, items, rank, relevant, place)."""
        sampled, items, ranks = keys[:, 0], keys[:, 1], keys[:, 2]
        full = (sampled == items - 1) & (not self.replacement)
        stratum = np.searchsorted(-self.sizes, -1.02 * items)
        stratum = np.minimum(stratum, len(self.sizes) - 1)
        cells = np.zeros(len(keys), dtype=np.int64)
        start = 0
        for number, each in enumerate(self.strata):
            here = stratum == number
            cells[here] = start + each.locate(sampled[here], ranks[here], full[here])
            start += len(each.shares)
        return cells

    def centred(self, scores: FloatArray) -> FloatArray:
        """Return scores of cells (rows), with what centring subtracts as a last column."""
        mean = scores @ self.weight / self.norm
        return np.concatenate([scores, -mean[:, None]], axis=1)
