"""`CutCertainty`: how sure we are of a metric if the corpus was cut down by chance.

Targets are grouped by how many kept documents beat them. For each group a program finds the scores
of a bound, as for any sampled ranks. The bound of the metric is the mean over queries of the sum of
their targets' scores. Its error has two parts: one from the queries, and one from the documents
drawn, which all queries share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.confidence._certainty import RESOLVED, AffineBound, Certainty
from unsample.confidence._limits import (
    MeanLimits,
    OverBins,
    Spread,
    evidence_grid,
    group_ends,
    hoeffding,
)
from unsample.confidence._pooled import TESTED, SharedCertainty
from unsample.confidence._program import SHAPES, Lowest, Shape
from unsample.confidence._shared import PooledError, PooledLimits
from unsample.confidence._unequal import StratumBehind
from unsample.evidence import CutTargets, Weighed, variance_of_mean
from unsample.law import RankGrid, RankPoints
from unsample.metrics import Metric

#: The part of the error of a proved limit that is for the number of targets in each group.
_OF_SHARES = 0.1


@dataclass(frozen=True, eq=False)
class CutLaw:
    """How many hits targets at each rank are expected to have, in groups; for all metrics."""

    grid: RankGrid
    ends: IntArray
    expected: OverBins

    @classmethod
    def of(cls, found: CutTargets, metrics: Iterable[Metric]) -> CutLaw:
        """Prepare the law for metrics at their K."""
        counts, items = found.counts(), int(found.rest.max()) + 1
        single = max(metric.cutoff(items) for metric in metrics)
        grid = evidence_grid(counts, list(range(1, min(single, items) + 1)))
        cutoffs = {metric.cutoff(items) for metric in metrics}
        wanted = [1 + ((k - 1) * found.drawn) // (items - 1) for k in cutoffs]
        ends = group_ends(np.arange(1, found.depth + 1), wanted)

        def groups(rest: int, places: RankGrid | RankPoints) -> FloatArray:
            below = found.expected(rest, places).cumsum(axis=0)[ends - 1]
            return np.diff(below, axis=0, prepend=0.0, append=1.0)

        rest = found.rest
        expected = OverBins(
            groups(round(float(rest.mean())), grid),
            groups(int(rest.max()), grid.firsts),
            groups(int(rest.min()), grid.lasts),
        )
        return cls(grid, ends, expected)


@dataclass(frozen=True, eq=False)
class _Limits(PooledLimits):
    """Limits from which scores are found. Where an error is not known, documents count as own.

    Any scores are valid. Whether the error of the bound is known is decided for all groups at once.
    """

    def region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        known = (self.low * (1.0 - self.low) > 0) & (self.variances > 0) & (self.freedom > 0)
        pooled, plain = super().region(alpha), MeanLimits.region(self, alpha)
        low, high = (np.where(known, *ends) for ends in zip(pooled, plain, strict=True))
        return low, high


@dataclass(frozen=True, eq=False)
class CutBound:
    """The least or the greatest value of a metric, as the mean of scores that it is."""

    expected: float
    #: By group, a score for each number of hits.
    scores: list[FloatArray]
    weighed: Weighed
    #: The variance of the mean over queries.
    queries: float
    solved: list[Lowest]

    @property
    def varies(self) -> bool:
        """Return whether the bound depends on what was drawn."""
        return any(np.ptp(each) > 0.0 for each in self.scores)

    @property
    def error(self) -> PooledError:
        """Return its error, of queries and of documents."""
        return PooledError(self.queries, self.weighed.items_part(self.scores))

    def error_less(self, other: CutBound) -> PooledError:
        """Return the error of its difference to a bound of another model, on the same draw."""
        mine, theirs = (each.weighed.totals(each.scores) for each in (self, other))
        alike = np.ones(len(mine))
        queries = variance_of_mean(mine - theirs, alike)
        seen = variance_of_mean(mine, alike) + variance_of_mean(theirs, alike)
        if seen > 0.0:
            # Rare events that were not seen count as those of each model alone do.
            queries *= max((self.queries + other.queries) / seen, 1.0)
        part = self.weighed.difference_part(self.scores, other.weighed, other.scores)
        return PooledError(queries, part)


@dataclass(frozen=True, eq=False)
class CutCertainty(SharedCertainty):
    """How sure we are of one metric of queries whose corpus was cut down.

    The variance that comes with the documents is known where enough of them make it up.
    """

    limits: ClassVar[type[PooledLimits]] = _Limits
    weighed: Weighed = field(kw_only=True)

    @classmethod
    def of_metric(cls, weighed: Weighed, law: CutLaw, shape: Shape) -> CutCertainty:
        """Prepare the evidence of targets, weighed as they count in a metric."""
        found = weighed.found
        sizes = int(found.rest.min()) + 1, int(found.rest.max()) + 1
        strata = []
        for group, share in zip(weighed.groups, weighed.shares, strict=True):
            counts = weighed.counts(group)
            shares = np.bincount(
                np.searchsorted(law.ends, found.hits[group.rows] + 1),
                weighed.part[group.rows],
                minlength=len(law.ends) + 1,
            )
            limits = MeanLimits.of_shares(
                found.drawn, law.ends, shares / shares.sum(), law.expected, counts.effective
            )
            strata.append(
                StratumBehind(counts, law.grid, (limits,), float(share), sizes, span=group.span)
            )
        return cls(found.counts(), tuple(strata), shape, weighed=weighed)

    def at(self, counts: object, cutoffs: Iterable[int]) -> Certainty:
        """Return this object: it is for one metric only."""
        return self

    @property
    def assumes(self) -> str:
        """Return the assumption behind the intervals, as the end of a sentence."""
        return f"{self.shape_in_use()}, where R is the rank among documents that were not kept"

    @cached_property
    def few(self) -> bool:
        """Return whether there are too few queries to know how far they differ."""
        return self.weighed.found.size < 2

    def resolves(self, metric: Metric) -> bool:
        """Return whether the documents drawn settle the metric, chance aside."""
        low, high = sorted(self._side(metric, side, TESTED)[0] for side in (-1, 1))
        return high - low <= RESOLVED * (max(low, 0.0) + high)

    def side(self, metric: Metric, side: int, level: float) -> CutBound | None:
        """Return the lower (-1) or upper (+1) bound; None where its error is not known."""
        if self.few:
            return None
        expected, scores, solved = self._side(metric, side, level)
        bound = AffineBound(
            side,
            self.counts,
            self.strata,
            tuple(solved),
            tuple(-side * each.weights_for(metric, side).mean for each in self.strata),
        )
        if not bound.normal:
            return None
        # The events that decide may be rare, and missing from what was seen.
        queries = max(self.weighed.variance(scores), bound.variance_at_bound)
        return CutBound(expected, scores, self.weighed, queries, solved)

    def _estimated_end(
        self, metric: Metric, side: int, level: float, population: bool
    ) -> float | None:
        bound = self.side(metric, side, level)
        if bound is None:
            return None
        queries = bound.queries
        if not population:
            queries = min(queries, self._variance_of_these(metric, side, bound.solved))
        error = PooledError(queries, self.weighed.items_part(bound.scores))
        if not error.trusted and bound.varies:
            return None
        return bound.expected + side * error.reach(level, side)

    def _side(
        self, metric: Metric, side: int, level: float
    ) -> tuple[float, list[FloatArray], list[Lowest]]:
        """Return the lower (-1) or upper (+1) bound, its scores, and the programs' results."""
        hits = np.arange(self.weighed.found.depth + 1)
        scores, found = [], []
        for place, stratum in enumerate(self.strata):
            shape = self._reaching(place, metric)
            solved = self._lowest(place, self._estimating(place, shape, level), metric, side)
            if solved is None:
                solved = stratum.lowest(metric, side, None, 1.0)
            part = stratum.evidence[0]
            scores.append(-side * (solved.offset + solved.scores[0][part.locate(hits + 1)]))
            found.append(solved)
        return float(self.weighed.totals(scores).mean()), scores, found

    def _variance_of_these(self, metric: Metric, side: int, solved: list[Lowest]) -> float:
        """Return the variance of the bound minus the metric of these queries, at the bound.

        Given the ranks, hits vary by the draw. That the targets of a query share this draw is part
        of the documents' variance. What scores miss of the metric at a rank is assumed to be the
        same for all targets of a query.
        """
        found, variance = self.weighed.found, 0.0
        missed = np.zeros(found.size)
        for stratum, group, lowest in zip(self.strata, self.weighed.groups, solved, strict=True):
            expected, score = stratum.evidence[0].expected.mean, -side * lowest.scores[0]
            mean = score @ expected
            within = float((score**2 @ expected - mean**2) @ lowest.mass)
            apart = mean + side * stratum.weights_for(metric, side).mean
            off = math.sqrt(Spread.of(apart, lowest.mass, 1.0).variance)
            parts = self.weighed.part[group.rows]
            variance += float(parts @ parts) * max(within, 0.0)
            missed += np.bincount(found.queries[group.rows], parts * off, minlength=found.size)
        return (variance + float(missed @ missed)) / found.size**2

    def _reaching(self, place: int, metric: Metric) -> Shape:
        """Return the shape in use for a group; it reaches down to K where the data agree."""
        shape = self.shape_in_use() or SHAPES["none"]
        return self.strata[place].reaching(shape, metric, 1.0 - TESTED)

    def _errors_of_shares(self, place: int) -> list[PooledError]:
        alone, ranks = self.weighed.only(place), np.arange(self.weighed.found.depth + 1) + 1
        errors = []
        for end in self.strata[place].evidence[0].ends:
            seen = [(ranks <= end).astype(np.float64)]
            errors.append(PooledError(alone.variance(seen, ratio=True), alone.items_part(seen)))
        return errors

    def _proved_ends(
        self, metric: Metric, shape: Shape, level: float, *, at_once: bool, population: bool = True
    ) -> tuple[float, float]:
        found = self.weighed.found
        most = metric.weights(found.ranks, found.documents) * self.weighed.part
        means = [np.bincount(found.queries, most).mean()]
        for side in (-1, 1):
            values = [
                np.full(
                    found.depth + 1, self._proved_end(place, metric, side, shape, level, at_once)
                )
                for place in range(len(self.strata))
            ]
            means.append(self.weighed.totals(values).mean())
        each = np.array(means).clip(0.0, 1.0)
        least, greatest = each, each
        if population:
            # Other queries would have other shares of targets in each group.
            least, greatest = hoeffding(each, each, found.size, _OF_SHARES * (1.0 - level))
        return float(least[1]), float(min(greatest[2], greatest[0]))
