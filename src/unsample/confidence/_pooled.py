"""`PooledCertainty`: bounds and intervals where targets share their sampled items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unsample._checks import FloatArray, check_level
from unsample.confidence._certainty import AffineBound, Certainty
from unsample.confidence._direct import DirectMean
from unsample.confidence._limits import MeanLimits
from unsample.confidence._program import SHAPES, InfeasibleError, Program, Shape
from unsample.confidence._shared import PooledError, PooledLimits, proved_rows
from unsample.confidence._strata import Stratum
from unsample.errors import DesignError
from unsample.evidence import DrawnPart, PoolCounts
from unsample.metrics import Metric

#: The level at which a shape is tested, as for own items.
_TESTED = 0.95


@dataclass(frozen=True, eq=False)
class PooledSide:
    """One side of a metric: an expected value, a score for each sampled rank, and their errors."""

    expected: float
    #: One number for each sampled rank; the bound is an offset plus the mean of them.
    scores: FloatArray
    #: The variance with independent items.
    targets: float
    error: PooledError


@dataclass(frozen=True, eq=False)
class PooledCertainty(Certainty):
    """How sure ranks against shared items make us of any metric.

    An end of an interval is estimated where the variance that comes with the items is known well
    enough, from outcomes by item or from many pools. Otherwise it is one that allows for any
    dependence, its multipliers taken as given. No end goes further than the bounds under the same
    shape, which are proved.
    """

    _proved: dict[tuple[Shape, float, bool], Program] = field(default_factory=dict, repr=False)
    _estimated: dict[tuple[Shape, float], Program] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if len(self.stratum.evidence) != 1 or self.counts.stop is not None:
            raise DesignError(
                "targets that share their items must all have as many of them, got several sizes"
            )

    @property
    def pools(self) -> PoolCounts:
        """Return what is known of the shared items."""
        assert self.counts.pools is not None
        return self.counts.pools

    @property
    def stratum(self) -> Stratum:
        """Return all targets: those that share their items are not told apart by catalogues."""
        return self.strata[0]

    @property
    def part(self) -> MeanLimits:
        """Return the shares of targets at growing ranks."""
        return self.stratum.evidence[0]

    @property
    def left(self) -> float:
        """Return the share of the catalogue that a pool leaves out."""
        counts = self.counts
        if counts.replacement:
            return 1.0
        share = np.average(counts.sampled / (counts.items - 1), weights=counts.weight)
        return 1.0 - float(share)

    @property
    def estimable(self) -> bool:
        """Return whether anything is known of how far ranks depend on each other."""
        return self.pools.known or len(self.pools.pools) > 1

    @property
    def caveat(self) -> str:
        """Return what to record where the intervals are only what can be proved."""
        if self.estimable:
            return ""
        return (
            "all targets share one pool of sampled items, and it is not known which item beats "
            "which target: the intervals allow for any dependence, and are wide; record outcomes "
            "by item (rows of user, item, score, target), or draw items for each target"
        )

    def fits(self, shape: Shape | None = None) -> bool:
        """Return whether some P(R) of the shape agrees with the data, whatever the dependence."""
        return self._proving(self.shape if shape is None else shape, _TESTED, True).feasible

    def bounds(self, metric: Metric, level: float = 0.95) -> tuple[float, float]:
        """Return the metric's least and greatest value over every P(R) the data allow."""
        return self._proved_ends(metric, SHAPES["none"], check_level(level), at_once=True)

    def interval(
        self, metric: Metric, level: float = 0.95, *, population: bool = True
    ) -> tuple[float, float]:
        """Return an interval that covers the metric, the draw of the shared items included.

        Which users these are is part of its error either way: ``population`` changes nothing.
        """
        level = check_level(level)
        shape = self.shape_in_use()
        if shape is None:
            return self.bounds(metric, level)
        low, high = (self._estimated_end(metric, side, level) for side in (-1, 1))
        if low is not None and high is not None and low > high:
            # The two ends are means of different scores: the data hardly fit the shape.
            low = high = None
        least, most = self._proved_ends(metric, shape, level, at_once=True)
        if low is None or high is None:
            looser = self._proved_ends(metric, shape, level, at_once=False)
            low = looser[0] if low is None else max(low, least)
            high = looser[1] if high is None else min(high, most)
        else:
            low, high = max(low, least), min(high, most)
        return self._doubted((low, high), metric, level)

    @property
    def doubt(self) -> float:
        """Return how near the data are to refuting the shape in use: 0 far from it, 1 there.

        Limits that are proved for any dependence allow much; those that are estimated tell more.
        """
        shape = self.shape_in_use()
        if shape is None or shape.limits_nothing or not self.estimable:
            return 0.0
        return self.stratum.doubt_of(self._estimating_under(shape, _TESTED))

    @property
    def few(self) -> bool:
        """Return whether errors cannot be estimated, so that only what is proved stands."""
        return not self.estimable or self.counts.users < 2

    def side(self, metric: Metric, side: int, level: float) -> PooledSide | None:
        """Return the lower (-1) or upper (+1) bound as a mean of scores; None where it cannot be.

        That is where the data refute the shape, or the error cannot be estimated.
        """
        if not self.estimable:
            return None
        counts, ranks = self.counts, np.arange(1, self.pools.sampled + 2)
        direct = DirectMean.of(metric, counts)
        if direct is not None:
            expected = direct.value
            scores = 1.0 - (ranks - 1) / self.pools.sampled
            targets = counts.variance_of_mean(direct.values)
        else:
            weights = self.stratum.weights(metric)
            try:
                solved = self._estimating(level).lowest(weights if side < 0 else -weights)
            except InfeasibleError:
                return None
            bound = AffineBound(side, counts, self.strata, (solved,), (weights.mean,))
            expected = bound.expected
            scores = -side * counts.scale * solved.scores[0][self.part.locate(ranks)]
            targets = bound.standard_error() ** 2
        error = self._error(scores, targets)
        return PooledSide(expected, scores, targets, error) if error.trusted else None

    def _estimated_end(self, metric: Metric, side: int, level: float) -> float | None:
        found = self.side(metric, side, level)
        if found is None:
            return None
        return found.expected + side * found.error.reach(level, side)

    def _error(self, scores: FloatArray, targets: float) -> PooledError:
        return PooledError(
            targets if self.pools.known else 0.0, drawn_part(self.pools, scores, self.left)
        )

    def _estimating(self, level: float) -> Program:
        """Return the program whose multipliers give the scores of the ends."""
        return self._estimating_under(self.shape_in_use() or SHAPES["none"], level)

    def _estimating_under(self, shape: Shape, level: float) -> Program:
        key = (shape, max(level, _TESTED))
        if key not in self._estimated:
            ranks, cells = np.arange(1, self.pools.sampled + 2), self.counts.low
            errors = [
                self._error(
                    (ranks <= end).astype(np.float64),
                    self.counts.variance_of_mean((cells <= end).astype(np.float64))
                    / self.counts.scale**2,
                )
                for end in self.part.ends
            ]
            limits = PooledLimits.of(self.part, errors)
            self._estimated[key] = self._program_of(limits, shape, key[1])
        return self._estimated[key]

    def _proving(self, shape: Shape, level: float, at_once: bool) -> Program:
        key = (shape, max(level, _TESTED), at_once)
        if key not in self._proved:
            rows = proved_rows(self.part, 1.0 - key[1], at_once=at_once)
            self._proved[key] = self._program_of(rows, shape, key[1])
        return self._proved[key]

    def _proved_ends(
        self, metric: Metric, shape: Shape, level: float, *, at_once: bool
    ) -> tuple[float, float]:
        weights, scale = self.stratum.weights(metric), self.counts.scale
        least, most = (
            -side * self.stratum.lowest(metric, side, None, 1.0).value for side in (-1, 1)
        )
        widest = scale * least, min(scale * most, self.counts.ceiling(metric))
        for every in dict.fromkeys((at_once, True)):
            try:
                program = self._proving(shape, level, every)
                low, high = program.lowest(weights).value, -program.lowest(-weights).value
            except InfeasibleError:
                continue
            return max(scale * low, widest[0]), min(scale * high, widest[1])
        return widest

    def _program_of(self, limits: MeanLimits, shape: Shape, level: float) -> Program:
        return replace(self.stratum, evidence=(limits,), _programs={}).program(shape, 1.0 - level)


def drawn_part(pools: PoolCounts, scores: FloatArray, left: float) -> DrawnPart:
    """Return the part of the variance that comes with the items, or with the pools."""
    return pools.items_part(scores, left=left) if pools.known else pools.between_part(scores)
