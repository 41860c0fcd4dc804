"""`Bounds`: the smallest and the largest value of a metric, whatever P(R) is.

A sample shows the share of targets up to each sampled rank. Each share has limits that hold for any
number of targets, and the bounds are the extreme values over all P(R) within these limits. Nothing
else is assumed: no shape of P(R), and no likeness between users or data sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray, check_level
from unsample._threads import cached_property
from unsample.bounds._linear_program import (
    MeanLimits,
    extremes,
    is_feasible,
    minimum_value,
    probabilities_up_to,
)
from unsample.bounds._unbiased_means import DirectMean
from unsample.counts import RankCounts, Strata, sample_groups
from unsample.likelihood import over_catalogues
from unsample.metrics import Metric
from unsample.sampling import RankGrid, SamplingModel
from unsample.uncertainty import clopper_pearson

#: Lower levels get the limits of this level: a region for few targets is coarse anyway.
_MIN_LEVEL = 0.95
#: Ends of neighbouring groups of sampled ranks differ by at least this factor. Finer groups differ
#: by less than their noise, and only widen a region that must hold for all of them.
_GROUP_RATIO = 1.5


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of any metric; ``of`` prepares the part that all metrics share.

    >>> counts = RankCounts.from_ranks([1, 1, 2, 5, 40] * 20, items=1000, sampled=99)
    >>> from unsample.metrics import parse
    >>> low, high = Bounds.of(counts, [50]).of_metric(parse("Recall@50"))
    >>> low < 0.5 < high
    True
    """

    counts: RankCounts
    #: The targets with a P(R) of their own.
    strata: tuple[StratumBounds, ...]

    @classmethod
    def of(cls, counts: RankCounts, cutoffs: Iterable[int]) -> Bounds:
        """Prepare the evidence of the counts; ``cutoffs`` are the K that will be asked for."""
        wanted = sorted(set(cutoffs))
        designs = Strata.of(counts)
        number = designs.of_cells(counts)
        parts = [counts.take(number == each) for each in range(designs.count)]
        if len(parts) == 1:
            parts = [counts]
        kept = [part for part in parts if part.weight.sum() > 0]
        return cls(counts, tuple(StratumBounds.of(part, wanted) for part in kept))

    def of_metric(self, metric: Metric, level: float = 0.95) -> tuple[float, float]:
        """Return the metric's smallest and largest value over every P(R) the data allow."""
        level, counts = check_level(level), self.counts
        direct = DirectMean.of(metric, counts)
        if direct is not None and counts.shared is None:
            return direct.bounds(level)
        low, high = (-side * self._lowest(metric, side, level=level) for side in (-1, 1))
        ceiling = counts.ceiling(metric)
        # Both are solved to a tolerance: where they should be equal, their order may be wrong.
        low, high = sorted((counts.weight_per_user * low, counts.weight_per_user * high))
        return min(low, ceiling), min(high, ceiling)

    @cached_property
    def feasible(self) -> bool:
        """Return whether some P(R) fits the data at 95 %; if not, the bounds are the extremes."""
        alpha = self._alpha(_MIN_LEVEL)
        return all(stratum.feasible(alpha) for stratum in self.strata)

    def _alpha(self, level: float) -> float:
        """Return the error of each part of the evidence; the sizes of strata are one part, too."""
        parts = sum(len(stratum.evidence) for stratum in self.strata) + (len(self.strata) > 1)
        return (1.0 - max(level, _MIN_LEVEL)) / parts

    def _lowest(self, metric: Metric, side: int, level: float) -> float:
        """Return the smallest value of the metric (``side`` -1), or minus the largest (+1)."""
        alpha = self._alpha(level)
        values = np.array([stratum.lowest(metric, side, alpha=alpha) for stratum in self.strata])
        if len(values) == 1:
            return float(values[0])
        # The share of targets in each stratum is random, too: as much weight as possible goes to
        # the smallest values.
        weights = np.array([float(stratum.counts.weight.sum()) for stratum in self.strata])
        shares = weights / weights.sum()
        lower, upper = clopper_pearson(
            shares, shares, targets=self.counts.effective, part=alpha / (2 * len(values))
        )
        order = np.argsort(values)
        left = np.diff(
            np.minimum(np.cumsum((upper - lower)[order]), 1.0 - lower.sum()), prepend=0.0
        )
        return float((lower[order] + left) @ values[order])


@dataclass(frozen=True, eq=False)
class StratumBounds:
    """Targets with one P(R), and the limits that they set to it."""

    counts: RankCounts
    grid: RankGrid
    #: For each group of sample sizes, the last ranks of its groups and the limits of their shares.
    evidence: tuple[tuple[IntArray, MeanLimits], ...]

    @classmethod
    def of(cls, counts: RankCounts, cutoffs: list[int]) -> StratumBounds:
        """Prepare the evidence of targets with one P(R)."""
        grid = bounds_grid(counts, cutoffs)
        evidence = []
        # Ranks among all items say something else than those of samples with replacement.
        full = counts.full & counts.mixed
        for some in (~full, full):
            sizes = np.unique(counts.sampled[some])
            group = sample_groups(sizes)
            evidence += [
                _gather(counts, some & np.isin(counts.sampled, near), grid=grid, cutoffs=cutoffs)
                for near in (sizes[group == smallest] for smallest in np.unique(group))
            ]
        return cls(counts, grid, evidence=tuple(evidence))

    def lowest(self, metric: Metric, side: int, alpha: float) -> float:
        """Return the smallest value (``side`` -1), or minus the largest (+1)."""

        def weights(ranks: IntArray) -> FloatArray:
            return over_catalogues(
                metric, self.counts, weights=lambda size: metric.weights(ranks, size)
            )

        low, high = extremes(weights, self.grid)
        return minimum_value(low if side < 0 else -high, *self._region(alpha))

    def feasible(self, alpha: float) -> bool:
        """Return whether some P(R) fits the data."""
        return is_feasible(*self._region(alpha))

    def _region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the rows of the program, and their upper limits."""
        if alpha in self._regions:
            return self._regions[alpha]
        shared = self.counts.shared is not None
        found = [
            limits.proved(alpha, ends) if shared else limits.rows(alpha)
            for ends, limits in self.evidence
        ]
        rows = np.concatenate([each[0] for each in found])
        limits = np.concatenate([each[1] for each in found])
        return self._regions.setdefault(alpha, (rows, limits))

    @cached_property
    def _regions(self) -> dict[float, tuple[FloatArray, FloatArray]]:
        """Return the programs that are known, by their error: all metrics share them."""
        return {}


def bounds_grid(counts: RankCounts, cutoffs: Iterable[int]) -> RankGrid:
    """Return the grid of global ranks that programs are solved on."""
    items = counts.largest_catalogue
    # The last ranks have bins of their own too: their targets come last in every sample.
    from_the_end = [items - 2**power for power in range(items.bit_length() - 1)]
    cutoffs = [*cutoffs, *from_the_end]
    return RankGrid.coarse(items, sampled=counts.largest_sample, cutoffs=cutoffs)


def _gather(
    counts: RankCounts, some: BoolArray, grid: RankGrid, cutoffs: list[int]
) -> tuple[IntArray, MeanLimits]:
    """Return the evidence of cells of neighbouring sample sizes, with groups that suit the cutoffs.

    How ranks depend on the sizes of catalogues and samples is not known. So probabilities in a bin
    are smallest in the smallest catalogue and the largest sample, and largest in the opposite case.
    """
    sizes = counts.sampled[some]
    sampled = int(sizes.max())
    replacement = counts.replacement and not bool((counts.full & some).any())
    low, high, weight = counts.low[some], counts.high[some], counts.weight[some]
    # The sampled ranks at which targets at the cutoffs are expected.
    wanted = [1 + ((k - 1) * sampled) // (counts.largest_catalogue - 1) for k in cutoffs]
    ends = _group_ends(_possible_ends(low, high, n=sampled + 1), wanted)
    starts, lasts = np.concatenate([[1], ends + 1]), np.append(ends, sampled + 1)

    def distribution(items: int, drawn: int) -> SamplingModel:
        size = items if replacement else max(items, drawn + 1)
        return SamplingModel(size, drawn, replacement=replacement)

    lowest, highest = (
        distribution(int(counts.items.min()), sampled),
        distribution(counts.largest_catalogue, int(sizes.min())),
    )
    minima, _ = extremes(partial(probabilities_up_to, lowest, starts, lasts), grid)
    _, maxima = extremes(partial(probabilities_up_to, highest, starts, lasts), grid)
    total = max(float(weight.sum()), 1e-300)
    shares = np.bincount(np.searchsorted(ends, low), weight / total, minlength=len(starts))
    targets = max(counts.effective * total / float(counts.weight.sum()), 1e-9)
    return ends, MeanLimits.of_shares(
        np.asarray(shares, np.float64),
        min_probability=minima,
        max_probability=maxima,
        targets=targets,
    )


def _possible_ends(low: IntArray, high: IntArray, n: int) -> IntArray:
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
    at = 0
    while at < len(allowed):
        last = int(allowed[at])
        ends.append(last)
        at = int(np.searchsorted(allowed, max(last + 1, round(last * _GROUP_RATIO))))
    return np.union1d(ends, np.intersect1d(allowed, wanted)).astype(np.int64)
