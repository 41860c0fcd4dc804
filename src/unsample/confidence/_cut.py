"""`CutCertainty`: how sure a corpus that was cut down by chance makes us of a metric.

Targets are in groups by how many kept documents beat them. Of each group a program finds the scores
of a bound, as for any sampled ranks; the bound of the metric is the mean over queries of the sum of
their targets' scores. Its error has two parts: that of the queries, and that of the documents
drawn, which all queries share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from unsample._checks import FloatArray, IntArray, check_level
from unsample.confidence._certainty import RESOLVED, AffineBound, Certainty
from unsample.confidence._limits import (
    MeanLimits,
    OverBins,
    Spread,
    evidence_grid,
    group_ends,
    hoeffding,
)
from unsample.confidence._program import SHAPES, InfeasibleError, Lowest, Program, Shape
from unsample.confidence._shared import PooledError, PooledLimits, proved_rows
from unsample.confidence._unequal import StratumBehind
from unsample.evidence import CutTargets, Weighed, variance_of_mean
from unsample.law import RankGrid, RankPoints
from unsample.metrics import Metric

#: The level at which a shape is tested, as for own items.
_TESTED = 0.95
#: Of the error of a proved limit, the part of how many targets each group has.
_OF_SHARES = 0.1


@dataclass(frozen=True, eq=False)
class CutLaw:
    """What is expected of the hits of targets at each rank, in groups; the same for all metrics."""

    grid: RankGrid
    ends: IntArray
    expected: OverBins

    @classmethod
    def of(cls, found: CutTargets, metrics: Iterable[Metric]) -> CutLaw:
        """Prepare the law for metrics at their K, less what may be ahead."""
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
    """Limits from which scores are found: those of own documents where errors are not known.

    Any scores are valid; whether the error of the bound is known is asked of all groups together.
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
class CutCertainty(Certainty):
    """How sure we are of one metric of queries whose corpus was cut down.

    As in `PooledCertainty`, an end of an interval is estimated where enough documents make up its
    error, and else allows for any dependence; no end goes beyond the bounds that are proved.
    """

    weighed: Weighed = field(kw_only=True)
    _programs: dict[tuple[object, ...], Program] = field(default_factory=dict, repr=False)

    @classmethod
    def of_metric(cls, weighed: Weighed, law: CutLaw, shape: Shape) -> CutCertainty:
        """Prepare the evidence of targets that are weighed as they count in a metric."""
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
        """Return this one: it is that of one metric."""
        return self

    @property
    def assumes(self) -> str:
        """Return the assumption behind the intervals, as the end of a sentence."""
        return f"{self.shape_in_use()}, where R is the rank among documents that were not kept"

    def fits(self, shape: Shape | None = None) -> bool:
        """Return whether some P(R) of the shape agrees with the data, whatever the dependence."""
        tried = self.shape if shape is None else shape
        programs = (self._proving(each, tried, _TESTED, True) for each in range(len(self.strata)))
        return all(program.feasible for program in programs)

    def doubt(self, metric: Metric) -> float:
        """Return how near the data are to refuting the shape in use: 0 far from it, 1 there."""
        shape = self.shape_in_use()
        if shape is None or shape.limits_nothing:
            return 0.0
        shares = np.array([stratum.share for stratum in self.strata])
        doubts = [
            stratum.doubt_of(self._estimating(place, shape, _TESTED))
            for place, stratum in enumerate(self.strata)
        ]
        return float(shares @ doubts / shares.sum()) if doubts else 0.0

    @cached_property
    def few(self) -> bool:
        """Return whether there are too few queries to know how far they differ."""
        return self.weighed.found.size < 2

    def bounds(self, metric: Metric, level: float = 0.95) -> tuple[float, float]:
        """Return the metric's least and greatest value over every P(R) the data allow."""
        return self._proved_ends(metric, SHAPES["none"], check_level(level), at_once=True)

    def interval(
        self, metric: Metric, level: float = 0.95, *, population: bool = True
    ) -> tuple[float, float]:
        """Return an interval that covers the metric, the draw of the documents included.

        The metric is that of queries like these (``population``), or of these queries.
        """
        level = check_level(level)
        shape = self.shape_in_use()
        if shape is None:
            return self.bounds(metric, level)
        low, high = (self._estimated_end(metric, side, level, population) for side in (-1, 1))
        if low is not None and high is not None and low > high:
            # The two ends are means of different scores: the data hardly fit the shape.
            low = high = None
        least, most = self._proved_ends(metric, shape, level, at_once=True, population=population)
        if low is None or high is None:
            looser = self._proved_ends(metric, shape, level, at_once=False, population=population)
            low = looser[0] if low is None else low
            high = looser[1] if high is None else high
        return self._doubted((max(low, least), min(high, most)), metric, level)

    def resolves(self, metric: Metric) -> bool:
        """Return whether the documents drawn settle the metric, but for chance."""
        low, high = sorted(self._side(metric, side, _TESTED)[0] for side in (-1, 1))
        return high - low <= RESOLVED * (max(low, 0.0) + high)

    # -- ends that are estimated --

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
            tuple(self._behind(each, side).weights(metric).mean for each in self.strata),
        )
        if not bound.normal:
            return None
        # Rare events that decide may be missing from what was seen.
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
        """Return the lower (-1) or upper (+1) bound, as the mean of scores that it is."""
        hits = np.arange(self.weighed.found.depth + 1)
        scores, found = [], []
        for place, stratum in enumerate(self.strata):
            shape = self._reaching(place, metric)
            solved = self._least_of(place, self._estimating(place, shape, level), metric, side)
            part = stratum.evidence[0]
            scores.append(-side * (solved.offset + solved.scores[0][part.locate(hits + 1)]))
            found.append(solved)
        return float(self.weighed.totals(scores).mean()), scores, found

    def _variance_of_these(self, metric: Metric, side: int, solved: list[Lowest]) -> float:
        """Return the variance of the bound less the metric of these queries, at the bound.

        Given the ranks, hits vary by the draw; that targets of a query share what was drawn is in
        the part of the documents. What scores miss of the metric at a rank is taken to be the same
        for all targets of a query.
        """
        found, variance = self.weighed.found, 0.0
        missed = np.zeros(found.size)
        for stratum, group, lowest in zip(self.strata, self.weighed.groups, solved, strict=True):
            expected, score = stratum.evidence[0].expected.mean, -side * lowest.scores[0]
            mean = score @ expected
            within = float((score**2 @ expected - mean**2) @ lowest.mass)
            apart = mean - self._behind(stratum, side).weights(metric).mean
            off = math.sqrt(Spread.of(apart, lowest.mass, 1.0).variance)
            parts = self.weighed.part[group.rows]
            variance += float(parts @ parts) * max(within, 0.0)
            missed += np.bincount(found.queries[group.rows], parts * off, minlength=found.size)
        return (variance + float(missed @ missed)) / found.size**2

    def _reaching(self, place: int, metric: Metric) -> Shape:
        """Return the shape in use, for a group: further down where K is and the data agree."""
        shape = self.shape_in_use() or SHAPES["none"]
        return self.strata[place].reaching(shape, metric, 1.0 - _TESTED)

    def _estimating(self, place: int, shape: Shape, level: float) -> Program:
        """Return the program of a group whose multipliers give the scores of the ends."""
        key = (place, shape, max(level, _TESTED))
        if key not in self._programs:
            part, alone = self.strata[place].evidence[0], self.weighed.only(place)
            ranks = np.arange(self.weighed.found.depth + 1) + 1
            errors = []
            for end in part.ends:
                seen = [(ranks <= end).astype(np.float64)]
                errors.append(PooledError(alone.variance(seen, ratio=True), alone.items_part(seen)))
            self._programs[key] = self._program(place, _Limits.of(part, errors), shape, key[-1])
        return self._programs[key]

    # -- ends that are proved --

    def _proving(self, place: int, shape: Shape, level: float, at_once: bool) -> Program:
        key = (place, shape, max(level, _TESTED), at_once)
        if key not in self._programs:
            # One error pays for a bound that is a sum; a region must hold in all groups at once.
            alpha = (1.0 - key[2]) / (len(self.strata) if at_once else 1)
            rows = proved_rows(self.strata[place].evidence[0], alpha, at_once=at_once)
            self._programs[key] = self._program(place, rows, shape, key[2])
        return self._programs[key]

    def _proved_ends(
        self, metric: Metric, shape: Shape, level: float, *, at_once: bool, population: bool = True
    ) -> tuple[float, float]:
        found = self.weighed.found
        most = metric.weights(found.ranks, found.documents) * self.weighed.part
        means = [np.bincount(found.queries, most).mean()]
        for side in (-1, 1):
            values = [
                np.full(
                    found.depth + 1, -side * self._least(place, metric, side, shape, level, at_once)
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

    def _least(
        self, place: int, metric: Metric, side: int, shape: Shape, level: float, at_once: bool
    ) -> float:
        for every in dict.fromkeys((at_once, True)):
            program = self._proving(place, shape, level, every)
            try:
                return self._least_of(place, program, metric, side, proved=True).value
            except InfeasibleError:
                continue
        return self._behind(self.strata[place], side).lowest(metric, side, None, 1.0).value

    def _program(self, place: int, limits: MeanLimits, shape: Shape, level: float) -> Program:
        part = replace(self.strata[place], evidence=(limits,), _programs={})
        return part.program(shape, 1.0 - level)

    def _least_of(
        self, place: int, program: Program, metric: Metric, side: int, *, proved: bool = False
    ) -> Lowest:
        """Return the least value of a group's metric, or minus the greatest."""
        stratum = self._behind(self.strata[place], side)
        weights = stratum.weights(metric)
        try:
            return program.lowest(weights if side < 0 else -weights)
        except InfeasibleError:
            if proved:
                raise
            return stratum.lowest(metric, side, None, 1.0)

    @staticmethod
    def _behind(stratum: object, side: int) -> StratumBehind:
        """Return a group as if all its targets had the fewest ahead, or the most."""
        assert isinstance(stratum, StratumBehind)
        return replace(stratum, ahead=stratum.span[1] if side < 0 else stratum.span[0])
