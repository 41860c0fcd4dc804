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
from scipy.special import bdtr

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.estimators import Observed
from unsample.evidence import ItemCounts, PairCounts, RankCounts, size_ranges
from unsample.law import RankGrid
from unsample.metrics import Metric

#: More targets tell nothing more of a curve, and their information is beyond all digits.
_MOST_TARGETS = 1e9
#: Sampled ranks that always stand alone, and the width of further cells in standard errors.
_FIRST_SINGLE, _SHARE_OF_STANDARD_ERROR = 10, 0.5
#: Cutoffs of the usual metrics, which get bins of their own.
_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True, eq=False)
class Stratum:
    """Targets with catalogues of about one size: P(cell | bin) and the share of each cell.

    ``part`` is their share of all targets. ``sampled`` and ``first`` are the size of the sample and
    the first rank of each cell; cells of known ranks come first, and their size is 0.
    """

    grid: RankGrid
    likelihood: FloatArray
    shares: FloatArray
    part: float
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
        unknown = observed if counts.known.all() else observed.unknown_part()
        for size in [] if counts.known.all() else unknown.sample_sizes:
            some_low, some_high = unknown.ranges(size)
            low, high = _condensed_ranges(some_low, some_high, size + 1)
            matrix, pooled = unknown.pool(size, low, high, grid)
            share = pooled[0] * (1.0 - known.sum())
            # P(cell and sample size | bin): what is expected of all cells together sums to one.
            likelihood.append(matrix * share.sum())
            shares.append(share)
            sampled.append(np.full(len(low), size))
            first.append(low)
        return cls(
            grid,
            np.concatenate(likelihood),
            np.concatenate(shares),
            part,
            np.concatenate(sampled),
            np.concatenate(first),
        )

    def locate(self, sampled: IntArray, ranks: IntArray, full: BoolArray) -> IntArray:
        """Return the cell of each sampled rank; ``full`` marks ranks among all candidates."""
        cells = np.zeros(len(ranks), dtype=np.int64)
        for size in np.unique(self.sampled):
            cell = np.flatnonzero(self.sampled == size)
            chosen = full if size == 0 else (sampled == size) & ~full
            place = np.searchsorted(self.first[cell], ranks[chosen], side="right") - 1
            cells[chosen] = cell[np.maximum(place, 0)]
        return cells


@dataclass(frozen=True, eq=False)
class SharedItems:
    """What each shared item does: how the weight of cells changes without it (items x cells).

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

    def changes(self, scores: FloatArray) -> FloatArray:
        """Return what each item adds to the sum of scores of cells: their squares are a variance.

        It is the jackknife over items (Efron and Stein 1981), less what users count too. Items
        that beat no target come last.
        """
        changes = np.append(self.effects @ scores, np.zeros(self.drawn - len(self.effects)))
        centred = changes - changes.mean()
        squares = float(centred @ centred)
        rest = max(squares - float(scores @ self.noise @ scores), 0.0) * self.left
        rest *= 1.0 - 1.0 / self.drawn
        return np.asarray(centred * math.sqrt(rest / max(squares, 1e-300)))


@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen of one model.

    ``weight`` is that of each cell, ``total`` their sum, ``norm`` what the mean of scores is taken
    over (users, or targets). ``spread`` is described above. ``independent`` is the number of
    independent targets, ``users`` the effective number of users.
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
    #: Whether targets shared their sampled items, and what these do, if it is known.
    shared: bool = False
    items: SharedItems | None = None

    @classmethod
    def of(cls, counts: RankCounts) -> Seen:
        """Condense the counts of a model."""
        number, total = size_ranges(counts.items), float(counts.weight.sum())
        strata, sizes, weight = [], [], []
        for each in range(int(number.max()) + 1):
            some = counts.take(number == each)
            part = float(some.weight.sum()) / total
            strata.append(Stratum.of(some, part))
            sizes.append(float(some.items.min()))
            weight.append(strata[-1].shares * part * total)
        users = total / counts.scale
        if counts.metric is None:
            users = float((counts.weight / counts.relevant).sum())
        seen = cls(
            tuple(strata),
            np.array(sizes),
            np.concatenate(weight),
            total,
            total if counts.clusters is None else users,
            min(counts.effective, float(counts.users), _MOST_TARGETS),
            counts.effective_users,
            np.zeros((0, 0)),
            counts.scale,
            math.inf if counts.metric is None else counts.ceiling(counts.metric),
            counts.metric,
            counts.replacement,
            counts.shared is not None,
        )
        return replace(seen, spread=seen._own_spread(counts), items=seen._items(counts))

    def _own_spread(self, counts: RankCounts) -> FloatArray:
        if counts.clusters is not None:
            few = counts.users / max(counts.users - 1, 1)
            return few * self.crossed(self, counts.clusters)
        keys = np.stack(
            [counts.sampled, counts.items, counts.high, counts.relevant, counts.place], axis=1
        )
        squares = np.bincount(self._cells(keys), counts.weight_squared, len(self.weight))
        spread = np.diag(np.append(squares, squares.sum()))
        spread[-1, :-1] = spread[:-1, -1] = squares
        return spread

    def _items(self, counts: RankCounts) -> SharedItems | None:
        """Return what each shared item does; None where it is not known."""
        shared, stratum = counts.shared, self.strata[0]
        if shared is None or not shared.known:
            return None
        own = stratum.sampled == shared.sampled
        first = stratum.first[own]
        last = np.append(first[1:] - 1, shared.sampled + 1)
        ranks = np.arange(1, shared.sampled + 2)
        # Scores of single ranks lie between those of the cells around them.
        between, chances = np.zeros((2, len(ranks), len(self.weight)))
        for cell, unit in zip(np.flatnonzero(own), np.eye(len(first)), strict=True):
            between[:, cell] = np.interp(ranks, (first + last) / 2.0, unit)
        # A target is in a cell by a chance that changes smoothly with the items that beat it.
        share = (ranks - 1.0)[:, None] / shared.sampled
        chances[:, own] = np.diff(bdtr(last - 1.0, shared.sampled, share), axis=1, prepend=0.0)
        names, effects, noise = self._moved(counts, shared, np.diff(between, axis=0))
        left = 1.0
        if not counts.replacement:
            left = max(1.0 - shared.sampled / (counts.largest_catalogue - 1), 0.0)
        _, smooth, own_noise = self._moved(counts, shared, np.diff(chances, axis=0))
        mean = smooth.sum(axis=0) / shared.sampled
        squares = smooth.T @ smooth - shared.sampled * np.outer(mean, mean)
        covariance = left * (1.0 - 1.0 / shared.sampled) * (squares - own_noise)
        return SharedItems(names, effects, noise, shared.sampled, left, covariance)

    def _moved(
        self, counts: RankCounts, shared: ItemCounts, steps: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the items, how each moves weight between cells, and the noise in the squares.

        ``steps`` (ranks x cells) are how a target moves that is one rank lower.
        """
        names, place = np.unique(shared.item, return_inverse=True)
        effects = np.zeros((len(names), len(self.weight)))
        np.add.at(effects, place.reshape(-1), shared.count[:, None] * steps[shared.rank - 2])
        squares = counts.weight_squared
        if counts.clusters is not None:
            # Each target has noise of its own, whoever its user is.
            squares = counts.weight**2 / np.maximum(counts.count, 1)
        beaten = counts.low - 1.0
        noise = squares * beaten * (shared.sampled - beaten) / shared.sampled
        rise = steps[np.maximum(counts.low - 2, 0)] * (counts.low > 1)[:, None]
        return names, effects, (rise * noise[:, None]).T @ rise

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
        """Return scores of cells, and as a last one what centring subtracts."""
        return np.append(scores, -(scores @ self.weight) / self.norm)


def _condensed_ranges(low: IntArray, high: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return ranges that cover 1..n: half a standard error wide, or as they came, gaps filled."""
    if (low < high).any():
        # Ranks without any target could have been seen as well.
        gap_low = np.concatenate([[1], np.maximum.accumulate(high) + 1])
        gap_high = np.concatenate([low - 1, [n]])
        gaps = gap_low <= gap_high
        starts = np.concatenate([low, gap_low[gaps]])
        order = np.argsort(starts, kind="stable")
        return starts[order], np.concatenate([high, gap_high[gaps]])[order]
    angle = np.arange(0.0, math.pi / 2, _SHARE_OF_STANDARD_ERROR * 0.5 / math.sqrt(n))
    starts = np.floor(n * np.sin(angle) ** 2).astype(np.int64) + 1
    starts = np.union1d(np.arange(1, min(_FIRST_SINGLE, n) + 1), starts[starts <= n])
    return starts, np.append(starts[1:] - 1, n)
