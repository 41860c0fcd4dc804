"""`PooledCertainty`: bounds and intervals where targets share their sampled items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unsample._checks import FloatArray, check_level
from unsample.confidence._certainty import AffineBound, Certainty
from unsample.confidence._direct import DirectMean
from unsample.confidence._items import items_part
from unsample.confidence._limits import MeanLimits
from unsample.confidence._program import SHAPES, InfeasibleError, Lowest, Program, Shape
from unsample.confidence._shared import PooledError, PooledLimits, proved_rows
from unsample.confidence._strata import Stratum
from unsample.errors import DesignError
from unsample.evidence import ItemCounts
from unsample.metrics import Metric

#: The level at which a shape is tested, as for own items.
_TESTED = 0.95


@dataclass(frozen=True, eq=False)
class PooledSide:
    """One bound of a metric: its expected value, a score for each sampled rank, and its error."""

    expected: float
    #: One number for each sampled rank; the bound is an offset plus the mean of them.
    scores: FloatArray
    error: PooledError


@dataclass(frozen=True, eq=False)
class PooledCertainty(Certainty):
    """How sure ranks against shared items make us of any metric.

    The variance that comes with the items is known from outcomes by item. An end of an interval is
    estimated where it is known well enough. Otherwise it allows for any dependence, its multipliers
    taken as given. No end lies outside the bounds under the same shape, which are proved. Which
    users these are is part of the error: intervals of these users alone are not narrower.
    """

    _programs: dict[tuple[object, ...], Program] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if len(self.stratum.evidence) != 1:
            raise DesignError(
                "targets that share their items must all have as many of them, got several sizes"
            )

    @property
    def shared(self) -> ItemCounts:
        """Return what is known of the shared items."""
        assert self.counts.shared is not None
        return self.counts.shared

    @property
    def stratum(self) -> Stratum:
        """Return all targets: where items are shared, catalogue sizes are not told apart."""
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
        return self.shared.known

    @property
    def caveat(self) -> str:
        """Return what to record, where the intervals are only what can be proved."""
        if self.estimable:
            return ""
        return (
            "targets share their sampled items, and it is not known which item beats which target: "
            "the intervals are bounds, which allow for any dependence, and are wide; record "
            "outcomes by item (rows of user, item, score, target), or draw items for each target"
        )

    @property
    def few(self) -> bool:
        """Return whether errors cannot be estimated, so that only what is proved is used."""
        return not self.estimable or self.counts.users < 2

    def fits(self, shape: Shape | None = None) -> bool:
        """Return whether some P(R) of the shape agrees with the data, whatever the dependence."""
        return self._proving(self.shape if shape is None else shape, _TESTED, True).feasible

    @property
    def doubt(self) -> float:
        """Return how near the data are to refuting the shape in use: 0 far from it, 1 there.

        Limits that hold for any dependence are wide. Estimated ones tell more, and are used here.
        """
        shape = self.shape_in_use()
        if shape is None or shape.limits_nothing or not self.estimable:
            return 0.0
        return self.stratum.doubt_of(self._estimating(shape, _TESTED))

    def bounds(self, metric: Metric, level: float = 0.95) -> tuple[float, float]:
        """Return the metric's least and greatest value over every P(R) the data allow."""
        return self._proved_ends(metric, SHAPES["none"], check_level(level), at_once=True)

    def interval(
        self, metric: Metric, level: float = 0.95, *, population: bool = True
    ) -> tuple[float, float]:
        """Return an interval that covers the metric of users like these, the draw included."""
        level = check_level(level)
        shape = self.shape_in_use()
        if shape is None or not self.estimable:
            return self.bounds(metric, level)
        low, high = (self._estimated_end(metric, side, level) for side in (-1, 1))
        if low is not None and high is not None and low > high:
            # The two ends are means of different scores: the data hardly fit the shape.
            low = high = None
        least, most = self._proved_ends(metric, shape, level, at_once=True)
        if low is None or high is None:
            ends = self._proved_ends(metric, shape, level, at_once=False)
            low = ends[0] if low is None else low
            high = ends[1] if high is None else high
        return self._doubted((max(low, least), min(high, most)), metric, level)

    def side(self, metric: Metric, side: int, level: float) -> PooledSide | None:
        """Return the lower (-1) or upper (+1) bound as a mean of scores; None where it cannot be.

        It cannot be where the data refute the shape, or where the error cannot be estimated.
        """
        if not self.estimable:
            return None
        counts, ranks = self.counts, np.arange(1, self.shared.sampled + 2)
        direct = DirectMean.of(metric, counts)
        if direct is not None:
            expected = direct.value
            scores = 1.0 - (ranks - 1) / self.shared.sampled
            targets = counts.variance_of_mean(direct.values)
        else:
            program = self._estimating(self.shape_in_use() or SHAPES["none"], level)
            solved = self._lowest(program, metric, side)
            if solved is None:
                return None
            weights = self.stratum.weights(metric)
            bound = AffineBound(side, counts, self.strata, (solved,), (weights.mean,))
            expected = bound.expected
            scores = -side * counts.scale * solved.scores[0][self.part.locate(ranks)]
            targets = bound.standard_error() ** 2
        error = self._error(scores, targets)
        return PooledSide(expected, scores, error) if error.trusted else None

    def _estimated_end(self, metric: Metric, side: int, level: float) -> float | None:
        """Return the lower (-1) or upper (+1) end; None where its error is not known."""
        found = self.side(metric, side, level)
        return None if found is None else found.expected + side * found.error.reach(level, side)

    def _proved_ends(
        self, metric: Metric, shape: Shape, level: float, *, at_once: bool
    ) -> tuple[float, float]:
        """Return ends that hold whatever the dependence; see `proved_rows` for ``at_once``."""
        scale = self.counts.scale
        low, high = (
            scale * self._proved_end(metric, side, shape, level, at_once) for side in (-1, 1)
        )
        return low, min(high, self.counts.ceiling(metric))

    def _proved_end(
        self, metric: Metric, side: int, shape: Shape, level: float, at_once: bool
    ) -> float:
        """Return the least (``side`` -1) or the greatest value of the metric."""
        least = self.stratum.lowest(metric, side, None, 1.0).value
        for every in dict.fromkeys((at_once, True)):
            found = self._lowest(self._proving(shape, level, every), metric, side)
            if found is not None:
                return -side * max(found.value, least)
        return -side * least

    def _estimating(self, shape: Shape, level: float) -> Program:
        """Return the program whose multipliers give the scores of the ends."""
        key = (shape, max(level, _TESTED))
        if key not in self._programs:
            limits = PooledLimits.of(self.part, self._errors_of_shares())
            self._programs[key] = self._program(limits, *key)
        return self._programs[key]

    def _proving(self, shape: Shape, level: float, at_once: bool) -> Program:
        """Return the program with limits that are proved."""
        key = (shape, max(level, _TESTED), at_once)
        if key not in self._programs:
            rows = proved_rows(self.part, 1.0 - key[1], at_once=at_once)
            self._programs[key] = self._program(rows, *key[:2])
        return self._programs[key]

    def _program(self, limits: MeanLimits, shape: Shape, level: float) -> Program:
        part = replace(self.stratum, evidence=(limits,), _programs={})
        return part.program(shape, 1.0 - level)

    def _lowest(self, program: Program, metric: Metric, side: int) -> Lowest | None:
        """Return the least of the metric, or of minus it; None where nothing fits."""
        try:
            return program.lowest(self.stratum.weights_for(metric, side))
        except InfeasibleError:
            return None

    def _errors_of_shares(self) -> list[PooledError]:
        """Return the error of each cumulated share of targets."""
        ranks, counts = np.arange(1, self.shared.sampled + 2), self.counts
        return [
            self._error(
                (ranks <= end).astype(np.float64),
                counts.variance_of_mean((counts.low <= end).astype(np.float64)) / counts.scale**2,
            )
            for end in self.part.ends
        ]

    def _error(self, scores: FloatArray, targets: float) -> PooledError:
        return PooledError(targets, items_part(self.counts, scores, left=self.left))
