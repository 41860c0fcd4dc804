"""`Bounds`: the least and the greatest value of a metric, whatever P(R) is.

What a sample shows of P(R) are the shares of targets up to each sampled rank. Each has limits that
hold for any number of targets, and the bounds are the extreme values over all P(R) within them. No
more is assumed: not how P(R) falls, and not that users or data sets resemble others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from unsample._checks import FloatArray, IntArray, check_level
from unsample.bounds._direct import DirectMean
from unsample.bounds._limits import clopper_pearson
from unsample.bounds._program import (
    MeanLimits,
    chances_up_to,
    extremes,
    is_feasible,
    least_value,
)
from unsample.estimators import over_catalogues
from unsample.evidence import RankCounts, size_ranges
from unsample.law import Law, RankGrid
from unsample.metrics import Metric

#: Below this level the limits are those of this level: a region for few targets is coarse anyway.
_LEAST_LEVEL = 0.95
#: Ends of neighbouring groups of sampled ranks differ by at least this factor. Finer groups differ
#: by less than their noise, and only widen a region that must hold for all of them.
_GROUP_RATIO = 1.5


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of any metric; ``of`` prepares what is common to all of them.

    >>> counts = RankCounts.from_ranks([1, 1, 2, 5, 40] * 20, items=1000, sampled=99)
    >>> from unsample.metrics import parse
    >>> low, high = Bounds.of(counts, [50]).of_metric(parse("Recall@50"))
    >>> low < 0.5 < high
    True
    """

    counts: RankCounts
    #: The targets by the size of their catalogues, each with a P(R) of its own.
    strata: tuple[Stratum, ...]

    @classmethod
    def of(cls, counts: RankCounts, cutoffs: Iterable[int]) -> Bounds:
        """Prepare the evidence of the counts; ``cutoffs`` are the K that will be asked for."""
        wanted = sorted(set(cutoffs))
        number = size_ranges(counts.items)
        if counts.shared is not None:
            number = np.zeros_like(number)
        parts = [counts.take(number == each) for each in range(int(number.max()) + 1)]
        if len(parts) == 1:
            parts = [counts]
        kept = [part for part in parts if part.weight.sum() > 0]
        return cls(counts, tuple(Stratum.of(part, wanted) for part in kept))

    def of_metric(self, metric: Metric, level: float = 0.95) -> tuple[float, float]:
        """Return the metric's least and greatest value over every P(R) the data allow."""
        level, counts = check_level(level), self.counts
        direct = DirectMean.of(metric, counts)
        if direct is not None and counts.shared is None:
            return direct.bounds(level)
        low, high = (-side * self._lowest(metric, side, level) for side in (-1, 1))
        most = counts.ceiling(metric)
        # Both are solved to a tolerance: where they should be equal, they may change places.
        low, high = sorted((counts.scale * low, counts.scale * high))
        return min(low, most), min(high, most)

    @cached_property
    def feasible(self) -> bool:
        """Return whether some P(R) fits the data at 95 %; if not, the bounds are the extremes."""
        alpha = self._alpha(_LEAST_LEVEL)
        return all(stratum.feasible(alpha) for stratum in self.strata)

    def _alpha(self, level: float) -> float:
        """Return the error of each part of the evidence; the sizes of strata are a part, too."""
        parts = sum(len(stratum.evidence) for stratum in self.strata) + (len(self.strata) > 1)
        return (1.0 - max(level, _LEAST_LEVEL)) / parts

    def _lowest(self, metric: Metric, side: int, level: float) -> float:
        """Return the least (``side`` -1) value of the metric, or minus the greatest (+1)."""
        alpha = self._alpha(level)
        values = np.array([stratum.lowest(metric, side, alpha) for stratum in self.strata])
        if len(values) == 1:
            return float(values[0])
        # How many targets are in each stratum varies by chance, too: as much weight as possible
        # goes to the least of the values.
        weights = np.array([float(stratum.counts.weight.sum()) for stratum in self.strata])
        shares = weights / weights.sum()
        least, most = clopper_pearson(
            shares, shares, self.counts.effective, alpha / (2 * len(values))
        )
        order = np.argsort(values)
        left = np.diff(np.minimum(np.cumsum((most - least)[order]), 1.0 - least.sum()), prepend=0.0)
        return float((least[order] + left) @ values[order])


@dataclass(frozen=True, eq=False)
class Stratum:
    """Targets whose catalogues are in one range of sizes, and what they tell about their P(R)."""

    counts: RankCounts
    grid: RankGrid
    #: For each sample size, the last ranks of its groups and the limits of their shares.
    evidence: tuple[tuple[IntArray, MeanLimits], ...]

    @classmethod
    def of(cls, counts: RankCounts, cutoffs: list[int]) -> Stratum:
        """Prepare the evidence of targets whose catalogues differ little."""
        grid, sizes = bounds_grid(counts, cutoffs), np.unique(counts.sampled)
        evidence = tuple(_gather(counts, int(size), grid, cutoffs) for size in sizes)
        return cls(counts, grid, evidence)

    def lowest(self, metric: Metric, side: int, alpha: float) -> float:
        """Return the least value (``side`` -1), or minus the greatest (+1)."""

        def weights(ranks: IntArray) -> FloatArray:
            return over_catalogues(metric, self.counts, lambda size: metric.weights(ranks, size))

        low, high = extremes(weights, self.grid)
        return least_value(low if side < 0 else -high, *self._region(alpha))

    def feasible(self, alpha: float) -> bool:
        """Return whether some P(R) fits the data."""
        return is_feasible(*self._region(alpha))

    def _region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the rows of the program, and what they are at most."""
        shared = self.counts.shared is not None
        found = [
            limits.proved(alpha, ends) if shared else limits.rows(alpha)
            for ends, limits in self.evidence
        ]
        return np.concatenate([each[0] for each in found]), np.concatenate(
            [each[1] for each in found]
        )


def bounds_grid(counts: RankCounts, cutoffs: Iterable[int]) -> RankGrid:
    """Return the grid of global ranks that programs are solved on."""
    items = counts.largest_catalogue
    # The last ranks stand alone too: their targets come last in every sample.
    from_the_end = [items - 2**power for power in range(items.bit_length() - 1)]
    cutoffs = [*cutoffs, *from_the_end]
    return RankGrid.coarse(items, sampled=counts.largest_sample, cutoffs=cutoffs)


def _gather(
    counts: RankCounts, sampled: int, grid: RankGrid, cutoffs: list[int]
) -> tuple[IntArray, MeanLimits]:
    """Return the evidence of one sample size, with groups that suit the cutoffs.

    How ranks depend on the sizes of catalogues is not known, so chances in a bin are least in the
    smallest catalogue and greatest in the largest.
    """
    some = counts.sampled == sampled
    low, high, weight = counts.low[some], counts.high[some], counts.weight[some]
    # The sampled ranks at which targets at the cutoffs are expected.
    wanted = [1 + ((k - 1) * sampled) // (counts.largest_catalogue - 1) for k in cutoffs]
    ends = _group_ends(_places_to_end(low, high, sampled + 1), wanted)
    starts, lasts = np.concatenate([[1], ends + 1]), np.append(ends, sampled + 1)
    smallest, largest = (
        Law(size if counts.replacement else max(size, sampled + 1), sampled, counts.replacement)
        for size in (int(counts.items.min()), counts.largest_catalogue)
    )
    least, _ = extremes(partial(chances_up_to, smallest, starts, lasts), grid)
    _, most = extremes(partial(chances_up_to, largest, starts, lasts), grid)
    total = max(float(weight.sum()), 1e-300)
    shares = np.bincount(np.searchsorted(ends, low), weight / total, minlength=len(starts))
    targets = max(counts.effective * total / float(counts.weight.sum()), 1e-9)
    return ends, MeanLimits.of_shares(np.asarray(shares, np.float64), least, most, targets)


def _places_to_end(low: IntArray, high: IntArray, n: int) -> IntArray:
    """Return the ranks where a group may end: never inside the range of ranks of one cell."""
    ranges = low < high
    allowed = np.ones(n + 1, dtype=bool)
    allowed[[0, n]] = False
    for first, last in np.unique(np.stack([low[ranges], high[ranges]]), axis=1).T:
        allowed[first:last] = False
    return np.flatnonzero(allowed)


def _group_ends(allowed: IntArray, wanted: list[int]) -> IntArray:
    """Return ends in growing steps, and all that are wanted and allowed."""
    ends: list[int] = []
    last = 0
    for end in allowed.tolist():
        if end >= max(last + 1, round(last * _GROUP_RATIO)):
            ends.append(end)
            last = end
    return np.union1d(ends, np.intersect1d(allowed, wanted)).astype(np.int64)
