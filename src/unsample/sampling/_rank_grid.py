"""Ranks 1..N in bins, single at the top and wider further down, and distributions on them.

A metric@K depends on single ranks near the top, and a sample of n - 1 items shows the rest only
blurred. So the first ranks and every K in use have their own bins. Further down a bin is as wide as
a fraction of its rank, but never wider than a fraction of the sampling error of the rank there. So
the number of bins grows with log N and the square root of n, not with N. There are two grids:
`RankGrid.fine` and `RankGrid.coarse`.

Averages over a bin are exact for polynomials up to degree five in the rank (`mean_over`), so a
smooth function is averaged over a bin to about (width / rank)^6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    LARGEST_CATALOGUE,
    BoolArray,
    FloatArray,
    IntArray,
    as_index,
    check_integer,
    check_real,
)
from unsample._threads import cached_property
from unsample.errors import DesignError, InputError
from unsample.metrics import Metric, parse


@dataclass(frozen=True, eq=False)
class RankGrid:
    """Bins ``low[b]..high[b]`` that cover the ranks ``1..items`` without gap or overlap.

    >>> grid = RankGrid(low=np.array([1, 2, 5]), items=10)
    >>> grid.high.tolist(), grid.width.tolist(), grid.locate(np.array([4, 5])).tolist()
    ([1, 4, 10], [1, 3, 6], [1, 2])
    """

    low: IntArray
    items: int

    @classmethod
    def fine(cls, items: int, *, sampled: int = 0, cutoffs: Iterable[int] = ()) -> RankGrid:
        """Return the bins of the papers' methods, which learn the mass of each bin separately.

        ``sampled`` is the sharpest sample in use, ``cutoffs`` are the K in use.
        """
        starts = bin_starts(items, single=64, ratio=0.0125, blur=0.2, sampled=sampled)
        return cls._isolating(cutoffs, starts, items=int(items))

    @classmethod
    def coarse(cls, items: int, *, sampled: int = 0, cutoffs: Iterable[int] = ()) -> RankGrid:
        """Return the bins of smooth curves and of limits, which need no finer ones."""
        starts = bin_starts(items, single=24, ratio=0.05, blur=0.5, sampled=sampled)
        return cls._isolating(cutoffs, starts, items=int(items))

    @classmethod
    def _isolating(cls, cutoffs: Iterable[int], starts: IntArray, items: int) -> RankGrid:
        """Return a grid on which each cutoff has a bin of its own."""
        kept = np.array([k + shift for k in cutoffs for shift in (0, 1)], dtype=np.int64)
        kept = kept[(kept >= 1) & (kept <= items)]
        return cls(np.union1d(starts, kept), items)

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def high(self) -> IntArray:
        """Return the last rank of each bin."""
        return np.append(self.low[1:] - 1, self.items)

    @cached_property
    def width(self) -> IntArray:
        """Return how many ranks each bin holds."""
        return self.high - self.low + 1

    def locate(self, ranks: IntArray) -> IntArray:
        """Return the bin that holds each rank."""
        return np.searchsorted(self.low, ranks, side="right") - 1


@dataclass(frozen=True, eq=False)
class RankDistribution:
    """A distribution on the ranks 1..items, spread evenly inside each bin of a grid.

    ``mass`` sums to one. It may be negative in some bins for the estimators that are linear in the
    data (BV, MN), whose P(R) is a signed measure.

    >>> ranks = RankDistribution.from_ranks([1, 2, 2, 40], items=100)
    >>> ranks.expect("Recall@10"), float(ranks.cdf(2)), int(ranks.quantile(0.5))
    (0.75, 0.75, 2)
    """

    grid: RankGrid
    mass: FloatArray

    @classmethod
    def from_ranks(cls, ranks: npt.ArrayLike, *, items: int) -> RankDistribution:
        """Return the empirical distribution of full-catalogue ranks."""
        values, counts = np.unique(np.asarray(ranks, dtype=np.int64), return_counts=True)
        if values.size == 0 or values[0] < 1 or values[-1] > items:
            raise InputError(
                f"ranks must hold values in 1..{items}, got "
                + (f"{values[0]}..{values[-1]}" if values.size else "none")
            )
        grid = RankGrid.fine(items, cutoffs=values.tolist())
        mass = np.zeros(len(grid))
        mass[grid.locate(values)] = counts / counts.sum()
        return cls(grid, mass)

    @property
    def items(self) -> int:
        """Return the size of the catalogue."""
        return self.grid.items

    def pmf(self, ranks: npt.ArrayLike) -> FloatArray:
        """Return P(R = rank); zero outside 1..items."""
        values = np.asarray(ranks, dtype=np.int64)
        inside = (values >= 1) & (values <= self.items)
        return np.where(inside, self._per_rank[self.grid.locate(values)], 0.0)

    def cdf(self, ranks: npt.ArrayLike) -> FloatArray:
        """Return P(R <= rank).

        >>> ranks = RankDistribution.from_ranks([1, 2, 2, 40], items=100)
        >>> ranks.cdf([0, 1, 39, 40]).tolist()
        [0.0, 0.25, 0.75, 1.0]
        """
        values = np.clip(np.floor(np.asarray(ranks, dtype=np.float64)), 0, self.items)
        whole = values.astype(np.int64)
        bins = self.grid.locate(whole)
        before = np.concatenate([[0.0], self._cumulative])[bins]
        within = (whole - self.grid.low[bins] + 1) * self._per_rank[bins]
        return np.where(whole == 0, 0.0, before + within)[()]

    def quantile(self, level: npt.ArrayLike) -> IntArray:
        """Return the smallest rank whose cdf reaches ``level``.

        >>> ranks = RankDistribution.from_ranks([1, 2, 2, 40], items=100)
        >>> ranks.quantile([0.25, 0.5, 0.9]).tolist()
        [1, 2, 40]
        """
        levels = np.asarray(level, dtype=np.float64)
        for value in levels.ravel():
            check_real("level", float(value), low=0.0, high=1.0)
        # Negative masses make the cdf fall; a level is first reached by its running maximum.
        cumulative = np.maximum.accumulate(self._cumulative)
        bins = np.minimum(np.searchsorted(cumulative, levels - 1e-12), len(self.grid) - 1)
        before = np.concatenate([[0.0], cumulative])[bins]
        gain = np.maximum(cumulative[bins] - before, 1e-300)
        share = np.clip((levels - 1e-12 - before) / gain, 0.0, 1.0)
        steps = np.ceil(share * self.grid.width[bins]).astype(np.int64)
        ranks = self.grid.low[bins] + np.clip(steps, 1, self.grid.width[bins]) - 1
        return np.asarray(ranks)[()]

    def expect(self, metric: str | Metric) -> float:
        """Return the metric of users whose global ranks follow this distribution."""
        return float(self.mass @ bin_weights(parse(metric), self.grid, items=self.items))

    @cached_property
    def _per_rank(self) -> FloatArray:
        return self.mass / self.grid.width

    @cached_property
    def _cumulative(self) -> FloatArray:
        return np.cumsum(self.mass)

    def __repr__(self) -> str:
        median = self.quantile(0.5)
        return f"RankDistribution(items={self.items}, bins={len(self.grid)}, median rank={median})"


def bin_weights(metric: Metric, grid: RankGrid, items: int) -> FloatArray:
    """Return the mean of w(R) over the ranks of each bin; ranks beyond the cutoff count as 0.

    One of the three ranks 2, 3 and 4 is within the cutoff 2.

    >>> grid = RankGrid(low=np.array([1, 2, 5]), items=10)
    >>> bin_weights(parse("Recall@2"), grid, items=10).round(3).tolist()
    [1.0, 0.333, 0.0]
    """
    reach = np.minimum(grid.high, metric.cutoff(items))
    inside = reach >= grid.low
    weights = np.zeros(len(grid))
    weights[inside] = mean_over(
        lambda ranks: metric.uncut(ranks, items), low=grid.low[inside], high=reach[inside]
    )
    return np.asarray(weights * ((reach - grid.low + 1).clip(min=0) / grid.width))


def mean_over(
    function: Callable[[FloatArray], FloatArray],
    low: IntArray,
    high: IntArray,
    *,
    one_by_one: BoolArray | None = None,
) -> FloatArray:
    """Return the mean of ``function`` over the integers ``low..high``, for many ranges at once.

    The last axis of the result of ``function`` must follow its ranks. The rule has
    three points: their weights and positions match the first six moments of the uniform
    distribution on ``high - low + 1`` consecutive integers. It is exact up to three integers.
    Ranges marked ``one_by_one`` are summed over all their integers instead, for functions that
    are not smooth there.

    >>> low, high = np.array([1, 11]), np.array([10, 11])
    >>> mean_over(lambda ranks: ranks**2, low, high).round(9).tolist()    # 385 / 10, and 11^2
    [38.5, 121.0]
    """
    count = (high - low + 1).astype(np.float64)
    middle = (low + high) / 2.0
    # A single rank would need an imaginary offset: it is evaluated at itself only.
    offset = np.sqrt(np.maximum(3.0 * count * count - 7.0, 1.0) / 20.0)
    weight = (count * count - 1.0) / (24.0 * offset * offset)
    outer = function(np.where(count > 1, middle - offset, middle))
    outer = outer + function(np.where(count > 1, middle + offset, middle))
    result = weight * outer + (1.0 - 2.0 * weight) * function(middle)
    if one_by_one is not None and one_by_one.any():
        result[..., one_by_one] = _plain_mean(function, low=low[one_by_one], high=high[one_by_one])
    return result


def _plain_mean(
    function: Callable[[FloatArray], FloatArray], low: IntArray, high: IntArray
) -> FloatArray:
    """Return the mean of ``function`` over the integers of each range, from all of them.

    >>> _plain_mean(lambda ranks: ranks**2, np.array([1, 4]), np.array([3, 4])).round(3).tolist()
    [4.667, 16.0]
    """
    count = as_index(high - low + 1)
    starts = np.cumsum(count) - count
    ranks = np.arange(count.sum()) - np.repeat(starts - low, count)
    sums = np.add.reduceat(function(ranks.astype(np.float64)), starts, axis=-1)
    return np.asarray(sums / count)


def bin_starts(
    items: int, *, single: int, ratio: float, blur: float = 1.0, sampled: int = 0
) -> IntArray:
    """Return the first rank of each bin.

    The first ``single`` ranks have bins of their own. Further bins are at most as wide as ``ratio``
    of their rank and, where there is a sample, ``blur`` times the standard error of a rank in it.

    >>> bin_starts(100, single=3, ratio=0.5).tolist()
    [1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 63, 94]
    """
    items = check_integer("items", items, minimum=1, maximum=LARGEST_CATALOGUE, error=DesignError)
    starts = list(range(1, min(single, items) + 1))
    others = max(items - 1, 1)
    low = len(starts) + 1
    while low <= items:
        starts.append(low)
        width = ratio * low
        if sampled > 0:
            share = (low - 1) / others
            # Within 1/sampled of either end, the sample shows nothing finer.
            variance = max(share * (1.0 - share), 1.0 / sampled)
            standard_error = others * math.sqrt(variance / sampled)
            width = min(width, blur * standard_error)
        low += max(1, int(width))
    return np.array(starts, dtype=np.int64)
