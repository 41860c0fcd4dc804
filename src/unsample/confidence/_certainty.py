"""`Certainty`: bounds without assumptions, and intervals that hold under a stated shape."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unsample._checks import FloatArray, IntArray, check_level
from unsample.confidence._evidence import Evidence, evidence_grid, gather
from unsample.confidence._program import InfeasibleError, Lowest, Program
from unsample.confidence._resolution import blind_rank
from unsample.confidence._shape import SHAPES, Shape
from unsample.confidence._staged import gather_staged
from unsample.estimators import Observed
from unsample.evidence import RankCounts, group_catalogues
from unsample.law import RankGrid
from unsample.metrics import Metric

__all__ = ["AffineBound", "Certainty"]

#: With fewer targets a mean of scores is not near enough to normal: the exact limits stand.
_FEW_TARGETS = 50
#: Regions of a lower level are not used: no P(R) need be in them, however true the model is.
_LEAST_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class AffineBound:
    """A bound that is an offset plus a mean over targets of scores of their sampled ranks.

    For every P(R) of the shape the metric is at least (``side`` -1) or at most (``side`` +1)
    the bound's expectation, so its only error is that of a mean.
    """

    side: int
    value: float
    offset: float
    evidence: tuple[Evidence, ...]
    scores: tuple[FloatArray, ...]
    #: P(R) at which the bound is attained, and the metric's weights there.
    mass: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)

    @property
    def expected(self) -> float:
        """Return the bound before the error of the mean is allowed for."""
        means = sum(
            float(part.observed @ score)
            for part, score in zip(self.evidence, self.scores, strict=True)
        )
        return self.offset + means

    def standard_error(self, *, population: bool = True) -> float:
        """Return the standard error of the mean.

        For the ``population`` of users like these it is that of targets drawn anew. For these
        users alone the metric to be covered is their own, whose chance variation the scores
        share: only the sampling of items, and what the scores miss of the metric, is left.
        """
        total = sum(part.targets for part in self.evidence)
        variance = 0.0
        for part, score in zip(self.evidence, self.scores, strict=True):
            if population:
                at_bound = _variance(score, part.expected @ self.mass)
                one = max(at_bound, _variance(score, part.observed))
            else:
                share = part.targets / total
                difference = score[:, None] - share * self.weights[None, :]
                one = _variance(difference, part.expected * self.mass)
            variance += one / part.targets
        return math.sqrt(variance)

    def of_ranks(self, ranks: IntArray, sampled: IntArray) -> FloatArray:
        """Return the score of each target, for comparisons target by target."""
        result = np.zeros(len(ranks))
        for part, score in zip(self.evidence, self.scores, strict=True):
            chosen = sampled == part.sampled
            # A target of this sample size stands for all sizes: the scores of the parts add up.
            scale = len(ranks) / max(int(chosen.sum()), 1)
            result[chosen] = score[part.locate(ranks[chosen])] * scale
        return result


@dataclass(frozen=True, eq=False)
class Certainty:
    """How sure the sampled ranks make us of any metric, under a stated shape of P(R)."""

    counts: RankCounts
    grid: RankGrid
    evidence: tuple[Evidence, ...]
    shape: Shape
    _programs: dict[tuple[Shape, float], Program] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, counts: RankCounts, cutoffs: Iterable[int], shape: Shape) -> Certainty:
        """Prepare the evidence of the counts; ``cutoffs`` are the K that will be asked for."""
        grouped = group_catalogues(counts)
        wanted = sorted(set(cutoffs))
        grid = evidence_grid(grouped, wanted)
        if grouped.stop is None:
            evidence = gather(grouped, grid, wanted)
        else:
            evidence = gather_staged(grouped, grid, grouped.stop)
        return cls(grouped, grid, evidence, shape)

    def fits(self, shape: Shape | None = None) -> bool:
        """Return whether some P(R) of the shape agrees with the data, tested at 5 %."""
        return self._program(self.shape if shape is None else shape, _LEAST_LEVEL).feasible

    def shape_in_use(self) -> Shape | None:
        """Return the shape that intervals use: none other than the bounds' where it is refuted.

        None where the data fit no P(R) at all.
        """
        for shape in (self.shape, SHAPES["none"]):
            if self.fits(shape):
                return shape
        return None

    def bounds(self, metric: Metric, level: float = 0.95) -> tuple[float, float]:
        """Return the metric's least and greatest value over every P(R) the data allow."""
        return self._both_sides(metric, SHAPES["none"], check_level(level))

    def interval(
        self, metric: Metric, level: float = 0.95, *, population: bool = True
    ) -> tuple[float, float]:
        """Return an interval that covers the metric, bias included, if the shape holds.

        The metric is that of the ``population`` of users like these, or of these users alone.
        Where the data refute the shape, these are the bounds without it.
        """
        from scipy.special import ndtri

        level = check_level(level)
        shape = self.shape_in_use()
        if shape is None:
            return self.bounds(metric, level)
        widest = self._both_sides(metric, shape, level)
        if self.few:
            return widest
        z = float(ndtri((1.0 + level) / 2.0))
        low, high = (
            end.expected + end.side * z * end.standard_error(population=population)
            for end in (self.affine_bound(metric, side, level) for side in (-1, 1))
        )
        low, high = max(low, widest[0]), min(high, widest[1])
        # The two ends are means of different scores. Where they pass each other, the data hardly
        # fit the shape, and only the region can be trusted.
        return (low, high) if low <= high else widest

    @property
    def few(self) -> bool:
        """Return whether there are too few targets for the error of a mean to be normal."""
        return self.counts.effective < _FEW_TARGETS

    def affine_bound(self, metric: Metric, side: int, level: float = 0.95) -> AffineBound:
        """Return the lower (-1) or upper (+1) bound as a mean of scores."""
        weights = self._weights(metric)
        shape = self.shape_in_use()
        if shape is None:
            return self._trivial_bound(weights, side)
        solved = self._program(shape, level).lowest(-side * weights)
        return AffineBound(
            side,
            -side * solved.value,
            -side * solved.offset,
            self.evidence,
            tuple(side * score for score in solved.scores),
            solved.mass,
            weights,
        )

    def _trivial_bound(self, weights: FloatArray, side: int) -> AffineBound:
        """Return the bound that needs no data: the metric's own least or greatest value."""
        best = int(weights.argmin() if side < 0 else weights.argmax())
        mass = np.zeros(len(weights))
        mass[best] = 1.0
        nothing = tuple(np.zeros_like(part.observed) for part in self.evidence)
        value = float(weights[best])
        return AffineBound(side, value, value, self.evidence, nothing, mass, weights)

    def _both_sides(self, metric: Metric, shape: Shape, level: float) -> tuple[float, float]:
        weights = self._weights(metric)
        widest = float(weights.min()), float(weights.max())
        try:
            program = self._program(shape, level)
            low: Lowest = program.lowest(weights)
            high: Lowest = program.lowest(-weights)
        except InfeasibleError:
            return widest
        least, most = max(low.value, widest[0]), min(-high.value, widest[1])
        # Both are solved to a tolerance: where they should meet, they may pass each other.
        return min(least, most), max(least, most)

    def _program(self, shape: Shape, level: float) -> Program:
        level = max(level, _LEAST_LEVEL)
        key = (shape, level)
        if key not in self._programs:
            blind = blind_rank(self.counts)
            self._programs[key] = Program(self.grid, self.evidence, shape, blind, 1.0 - level)
        return self._programs[key]

    def _weights(self, metric: Metric) -> FloatArray:
        return np.asarray(self._observed.bin_weights(metric))

    @cached_property
    def _observed(self) -> Observed:
        return Observed.prepare(self.counts, grid=self.grid)


def _variance(values: FloatArray, mass: FloatArray) -> float:
    mean = float((mass * values).sum())
    return max(float((mass * values * values).sum()) - mean * mean, 0.0)
