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
        if designs.count == 1:
            parts = [counts]
        else:
            stratum_of_cell = designs.of_cells(counts)
            parts = [counts.take(stratum_of_cell == number) for number in range(designs.count)]
        there = [part for part in parts if part.weight.sum() > 0]
        return cls(counts, tuple(StratumBounds.of(part, wanted) for part in there))

    def of_metric(self, metric: Metric, level: float = 0.95) -> tuple[float, float]:
        """Return the metric's smallest and largest value over every P(R) the data allow."""
        level = check_level(level)
        counts = self.counts
        direct = DirectMean.of(metric, counts)
        if direct is not None and counts.shared is None:
            return direct.bounds(level)
        smallest = self._minimum(metric, level=level)
        largest = -self._minimum(metric, level=level, negated=True)
        # Both are solved to a tolerance: where they should be equal, their order may be wrong.
        low, high = sorted((counts.weight_per_user * smallest, counts.weight_per_user * largest))
        ceiling = counts.ceiling(metric)
        return min(low, ceiling), min(high, ceiling)

    @cached_property
    def feasible(self) -> bool:
        """Return whether some P(R) fits the data at 95 %; if not, the bounds are the extremes."""
        alpha = self._alpha(_MIN_LEVEL)
        return all(stratum.feasible(alpha) for stratum in self.strata)

    def _alpha(self, level: float) -> float:
        """Return the error of each part of the evidence; the sizes of strata are one part, too."""
        parts = sum(len(stratum.evidence) for stratum in self.strata)
        if len(self.strata) > 1:
            parts += 1
        return (1.0 - max(level, _MIN_LEVEL)) / parts

    def _minimum(self, metric: Metric, *, level: float, negated: bool = False) -> float:
        """Return the smallest value of the metric, or of minus the metric if ``negated``."""
        alpha = self._alpha(level)
        values = np.array(
            [stratum.minimum(metric, alpha=alpha, negated=negated) for stratum in self.strata]
        )
        if len(values) == 1:
            return float(values[0])
        # The share of targets in each stratum is random, too.
        weights = np.array([float(stratum.counts.weight.sum()) for stratum in self.strata])
        shares = weights / weights.sum()
        lower, upper = clopper_pearson(
            shares, shares, targets=self.counts.effective, part=alpha / (2 * len(values))
        )
        return _smallest_mean(values, lower=lower, upper=upper)


@dataclass(frozen=True, eq=False)
class StratumBounds:
    """Targets with one P(R), and the limits that they set to it."""

    counts: RankCounts
    grid: RankGrid
    #: For each group of sample sizes: the last ranks of groups of ranks, and the limits of the
    #: shares of targets up to them.
    evidence: tuple[tuple[IntArray, MeanLimits], ...]

    @classmethod
    def of(cls, counts: RankCounts, cutoffs: list[int]) -> StratumBounds:
        """Prepare the evidence of targets with one P(R)."""
        grid = bounds_grid(counts, cutoffs)
        evidence = []
        # Ranks among all items do not depend on a draw, as ranks in samples do.
        full = counts.full & counts.mixed
        for cells in (~full, full):
            sizes = np.unique(counts.sampled[cells])
            group = sample_groups(sizes)
            for smallest in np.unique(group):
                of_group = cells & np.isin(counts.sampled, sizes[group == smallest])
                evidence.append(_evidence_of(counts, of_group, grid=grid, cutoffs=cutoffs))
        return cls(counts, grid, evidence=tuple(evidence))

    def minimum(self, metric: Metric, *, alpha: float, negated: bool = False) -> float:
        """Return the smallest value of the metric, or of minus the metric if ``negated``.

        The limits of each part of the evidence are wrong with probability ``alpha`` at most.
        """

        def weights(ranks: IntArray) -> FloatArray:
            return over_catalogues(
                metric, self.counts, weights=lambda size: metric.weights(ranks, size)
            )

        low, high = extremes(weights, self.grid)
        rows, limits = self._region(alpha)
        return minimum_value(-high if negated else low, rows, limits=limits)

    def feasible(self, alpha: float) -> bool:
        """Return whether some P(R) fits the data."""
        return is_feasible(*self._region(alpha))

    def _region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the rows of the program, and their upper limits."""
        if alpha in self._regions:
            return self._regions[alpha]
        all_rows = []
        all_limits = []
        for ends, of_means in self.evidence:
            if self.counts.shared is None:
                rows, limits = of_means.rows(alpha)
            else:
                rows, limits = of_means.proved(alpha, ends)
            all_rows.append(rows)
            all_limits.append(limits)
        region = (np.concatenate(all_rows), np.concatenate(all_limits))
        return self._regions.setdefault(alpha, region)

    @cached_property
    def _regions(self) -> dict[float, tuple[FloatArray, FloatArray]]:
        """Return the programs that were made so far, by ``alpha``: all metrics share them."""
        return {}


def _smallest_mean(values: FloatArray, *, lower: FloatArray, upper: FloatArray) -> float:
    """Return the smallest mean over shares that sum to one and lie between limits.

    Each value has its lower limit, and the rest goes to the smallest values as far as their upper
    limits allow. Here the value 0.1 gets 0.6, and the value 0.5 is left with 0.4.

    >>> values, lower, upper = np.array([0.5, 0.1]), np.array([0.3, 0.2]), np.array([0.8, 0.6])
    >>> round(_smallest_mean(values, lower=lower, upper=upper), 9)
    0.26
    """
    order = np.argsort(values)
    room = np.cumsum((upper - lower)[order])
    added = np.diff(np.minimum(room, 1.0 - lower.sum()), prepend=0.0)
    return float((lower[order] + added) @ values[order])


def bounds_grid(counts: RankCounts, cutoffs: Iterable[int]) -> RankGrid:
    """Return the grid of global ranks that programs are solved on."""
    items = counts.largest_catalogue
    # The last ranks have bins of their own too: their targets come last in every sample.
    from_the_end = [items - 2**power for power in range(items.bit_length() - 1)]
    cutoffs = [*cutoffs, *from_the_end]
    return RankGrid.coarse(items, sampled=counts.largest_sample, cutoffs=cutoffs)


def _evidence_of(
    counts: RankCounts, cells: BoolArray, *, grid: RankGrid, cutoffs: list[int]
) -> tuple[IntArray, MeanLimits]:
    """Return the evidence of cells of neighbouring sample sizes, with groups that suit the cutoffs.

    It consists of the last sampled rank of each group but the last, and of limits for the shares of
    targets up to these ranks.

    How ranks depend on the sizes of catalogues and samples is not known. So probabilities in a bin
    are smallest in the smallest catalogue and the largest sample, and largest in the opposite case.
    """
    low = counts.low[cells]
    high = counts.high[cells]
    weight = counts.weight[cells]
    smallest_sample = int(counts.sampled[cells].min())
    largest_sample = int(counts.sampled[cells].max())
    replacement = counts.replacement and not bool((counts.full & cells).any())
    # The sampled ranks at which targets at the cutoffs are expected.
    others = counts.largest_catalogue - 1
    wanted = [1 + ((k - 1) * largest_sample) // others for k in cutoffs]
    ends = _group_ends(_possible_ends(low, high, n=largest_sample + 1), wanted)
    starts = np.concatenate([[1], ends + 1])
    lasts = np.append(ends, largest_sample + 1)

    def distribution(items: int, sampled: int) -> SamplingModel:
        size = items if replacement else max(items, sampled + 1)
        return SamplingModel(size, sampled, replacement=replacement)

    least_likely = distribution(int(counts.items.min()), largest_sample)
    most_likely = distribution(counts.largest_catalogue, smallest_sample)
    minima, _ = extremes(partial(probabilities_up_to, least_likely, starts, lasts), grid)
    _, maxima = extremes(partial(probabilities_up_to, most_likely, starts, lasts), grid)
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
    """Return the ranks where a group may end: never inside the range of ranks of one cell.

    >>> _possible_ends(np.array([1, 3]), np.array([1, 5]), n=6)
    array([1, 2, 5])
    """
    ranges = low < high
    allowed = np.ones(n + 1, dtype=bool)
    allowed[[0, n]] = False
    for first, last in np.unique(np.stack([low[ranges], high[ranges]]), axis=1).T:
        allowed[first:last] = False
    return np.flatnonzero(allowed)


def _group_ends(allowed: IntArray, wanted: list[int]) -> IntArray:
    """Return ends in growing steps, and all that are wanted and allowed.

    >>> _group_ends(np.arange(1, 20), wanted=[10])
    array([ 1,  2,  3,  4,  6,  9, 10, 14])
    """
    ends: list[int] = []
    index = 0
    while index < len(allowed):
        end = int(allowed[index])
        ends.append(end)
        next_end = max(end + 1, round(end * _GROUP_RATIO))
        index = int(np.searchsorted(allowed, next_end))
    return np.union1d(ends, np.intersect1d(allowed, wanted)).astype(np.int64)
