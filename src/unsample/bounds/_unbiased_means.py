"""Metrics that are linear in the rank: the sample's own mean is unbiased, and nothing is assumed.

On average the share of sampled items below a target is the share of all items below it, whatever
its rank and however many items its user has. So the AUC and the mean rank need no P(R). They are
means of known numbers, with the intervals of a mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.counts import ItemCounts, RankCounts, variance_of_mean
from unsample.metrics import AUC, MR, Metric
from unsample.uncertainty import hoeffding


@dataclass(frozen=True, eq=False)
class DirectMean:
    """A metric whose value is a mean over targets of a number for each cell.

    At sampled rank r of 11 the rank among 101 items is 1 + 10 (r - 1) on average: 1, 11 and 31.

    >>> counts = RankCounts.from_ranks([1, 2, 4], items=101, sampled=10)
    >>> mean = DirectMean.of(MR(), counts)
    >>> mean.values.tolist(), round(mean.value, 3), round(mean.error(), 3)
    ([1.0, 11.0, 31.0], 14.333, 7.201)
    """

    counts: RankCounts
    #: The number of each cell, and the smallest and the largest that targets could have.
    values: FloatArray
    min_value: float
    max_value: float

    @classmethod
    def of(cls, metric: Metric, counts: RankCounts) -> DirectMean | None:
        """Return the metric as a mean, or None where it is not one, or ranks are ranges."""
        single = bool((counts.low == counts.high).all())
        of_cells = {AUC.name: _auc, MR.name: _rank}.get(metric.family.name)
        if of_cells is None or metric.k is not None or not single:
            return None
        values = of_cells(counts, counts.low)
        at_first = of_cells(counts, np.ones_like(counts.low))
        at_last = of_cells(counts, counts.sampled + 1)
        either = np.concatenate([at_first, at_last])
        return cls(
            counts=counts,
            values=values,
            min_value=float(either.min()),
            max_value=float(either.max()),
        )

    @property
    def value(self) -> float:
        """Return the mean."""
        return float(np.average(self.values, weights=self.counts.weight))

    def error(self, *, population: bool = True) -> float | None:
        """Return the standard error of the mean: for users like these, or for these users alone.

        None where targets share their items, and it is not known which item beats which target.
        """
        counts = self.counts
        if counts.shared is not None and not counts.shared.known:
            return None
        left = 1.0
        if not counts.replacement:
            left -= float(np.average(counts.sampled / (counts.items - 1), weights=counts.weight))
        if population:
            variance = variance_of_mean(counts, self.values)
        else:
            variance = left * self._variance_of_own_items()
        if counts.shared is not None:
            variance += left * self._variance_of_shared_items(counts.shared)
        return math.sqrt(variance)

    def _variance_of_own_items(self) -> float:
        """Return the variance that comes from the draws of items for each target.

        With n items the share s of better ones has the estimated variance s (1 - s) / (n - 1).
        """
        counts = self.counts
        share = (counts.low - 1) / counts.sampled
        variance = (self.max_value - self.min_value) ** 2 * share * (1.0 - share)
        variance /= np.maximum(counts.sampled - 1, 1)
        if counts.mixed:
            variance = np.where(counts.full, 0.0, variance)
        total = float(counts.weight.sum())
        return float(counts.squared_weights @ variance) / total**2

    def _variance_of_shared_items(self, shared: ItemCounts) -> float:
        """Return the variance that comes from the draw of shared items.

        The mean is the sum of independent effects of the items; items that beat no target have
        none. With n effects the variance of their sum is n / (n - 1) times the squares around
        their mean.
        """
        scores = np.linspace(self.max_value, self.min_value, shared.sampled + 1)
        _, effects = shared.effects(scores, float(self.counts.weight.sum()))
        mean = float(effects.sum()) / shared.sampled
        squares = ((effects - mean) ** 2).sum() + (shared.sampled - len(effects)) * mean**2
        return float(squares) * shared.sampled / (shared.sampled - 1)

    def bounds(self, level: float) -> tuple[float, float]:
        """Return limits that hold for any number of users and any ranks."""
        span = max(self.max_value - self.min_value, 1e-300)
        mean = np.array([min(max((self.value - self.min_value) / span, 0.0), 1.0)])
        ends = hoeffding(mean, mean, targets=self.counts.effective, part=(1.0 - level) / 2.0)
        low, high = (self.min_value + span * float(end[0]) for end in ends)
        return low, high


def _rank(counts: RankCounts, ranks: IntArray) -> FloatArray:
    """Return the rank in the catalogue that these sampled ranks have on average."""
    return np.asarray(1.0 + (ranks - 1) / counts.sampled * (counts.items - 1))


def _auc(counts: RankCounts, ranks: IntArray) -> FloatArray:
    """Return the AUC of users whose targets all were at these sampled ranks.

    Of the N - 1 other items, m - 1 are relevant too. On average half of these stand above a target,
    and they are not among the items that it should beat.

    A target beats 8 of 10 sampled items, so that 20 of 100 other items are above it on average.

    >>> counts = RankCounts.from_ranks([3], items=101, sampled=10)
    >>> _auc(counts, counts.low).tolist()
    [0.8]
    """
    above = (ranks - 1) / counts.sampled * (counts.items - 1) - (counts.relevant - 1) / 2.0
    return np.asarray(1.0 - above / np.maximum(counts.items - counts.relevant, 1))
