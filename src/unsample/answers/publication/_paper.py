"""`Paper`: printed numbers together with the evaluation they come from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray
from unsample.answers.publication._numbers import Printed, SampledRanks
from unsample.confidence import Certainty, MeanLimits, Shape, evidence_grid
from unsample.evidence import RankCounts
from unsample.law import Law

__all__ = ["Paper"]

#: Steps in which ranks are picked where not every rank is needed.
_STEPS = 16


@dataclass(frozen=True, eq=False)
class Paper:
    """The numbers of a paper and the evaluation they come from."""

    design: Law
    users: int
    numbers: tuple[Printed, ...]
    ranks: SampledRanks = field(repr=False)

    @property
    def features(self) -> FloatArray:
        """Return the weights of the printed metrics (rows) at the sampled ranks."""
        return self.ranks.features(self.numbers)

    @property
    def means(self) -> FloatArray:
        """Return the printed values."""
        return np.array([number.value for number in self.numbers])

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of what rounding hides of each value."""
        return np.array([number.half_unit for number in self.numbers]) / math.sqrt(3.0)

    @property
    def first_cut(self) -> int:
        """Return the last of the first ranks that no number tells apart."""
        return self.ranks.first_cut(self.numbers)

    @property
    def smallest_k(self) -> float:
        """Return the K from which on the numbers can tell ranks up to K from those below.

        For numbers that tell rank 1 apart that is `unsample.confidence.is_resolved`: one sampled
        item falls into the top K. Numbers that see no rank above the tenth need ten of them.
        """
        return self.first_cut * self.design.blind_rank - 1e-9

    def nudged_means(self) -> FloatArray:
        """Return the means with one target more at each rank in turn, one row each."""
        return np.asarray((self.means * self.users + self.features.T) / (self.users + 1.0))

    def some_groups(self) -> IntArray:
        """Return groups of ranks on both sides of every K, and others in growing steps."""
        groups = len(self.ranks.low)
        steps = np.geomspace(1, groups, min(groups, _STEPS)).astype(np.int64)
        ends = [number.metric.cutoff(self.design.n) for number in self.numbers]
        wanted = np.concatenate([steps, ends, np.add(ends, 1)])
        return np.unique(wanted[wanted <= groups]) - 1

    @cached_property
    def counts(self) -> RankCounts:
        """Return the targets between the K of the hit rates, whole numbers of them."""
        hits = {n.metric.k: n.value for n in self.numbers if n.metric.family is _metrics.Recall}
        ends = sorted(k for k in hits if k is not None)
        # Rounding can turn two equal hit rates round; a share never falls as K grows.
        shares = np.maximum.accumulate(np.clip([hits[k] for k in ends], 0.0, 1.0))
        below = np.rint(np.append(shares, 1.0) * self.users).astype(np.int64)
        edges = np.array([0, *ends, self.design.n])
        return RankCounts.from_ranges(
            edges[:-1] + 1, edges[1:], np.diff(below, prepend=0), self.design
        )

    def refined_counts(self, histogram: FloatArray) -> RankCounts:
        """Return counts of every rank that the numbers tell apart, as the fit has them."""
        weight = histogram * self.users
        groups = len(weight)
        return RankCounts(
            sampled=np.full(groups, self.design.sampled),
            items=np.full(groups, self.design.items),
            low=self.ranks.low,
            high=self.ranks.high,
            count=np.rint(weight).astype(np.int64),
            weight=weight,
            weight_squared=weight,
            replacement=self.design.replacement,
        )

    def certainty(self, histogram: FloatArray, cutoffs: Iterable[int], shape: Shape) -> Certainty:
        """Return what the numbers say of metrics at the ``cutoffs``.

        ``histogram`` is a likely one behind the numbers: it tells how much their mean varies.
        """
        grid = evidence_grid(self.counts, sorted(set(cutoffs)))
        evidence = MeanLimits(
            sampled=self.design.sampled,
            ends=self.ranks.high[:-1],
            observed=histogram,
            expected=self.design.matrix(self.ranks.low, self.ranks.high, grid),
            targets=float(self.users),
            features=self.features,
            low=np.array([number.low for number in self.numbers]),
            high=np.array([number.high for number in self.numbers]),
        )
        return Certainty(self.counts, grid, (evidence,), shape)
