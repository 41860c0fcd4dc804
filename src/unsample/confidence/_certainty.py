"""`Certainty`: bounds without assumptions, and intervals that hold under a stated shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray, check_level, check_real
from unsample.confidence._direct import DirectMean
from unsample.confidence._limits import MeanLimits, evidence_grid, gather
from unsample.confidence._program import SHAPES, InfeasibleError, Program, Shape
from unsample.estimators import Observed, mean_weights
from unsample.evidence import RankCounts
from unsample.law import RankGrid
from unsample.metrics import Metric

#: With fewer targets a mean of scores is not near enough to normal: the exact limits stand.
_FEW_TARGETS = 50
#: Regions of a lower level are not used: no P(R) need be in them, however true the model is.
_LEAST_LEVEL = 0.95
#: How many targets may stand for others on the top K.
_DOZENS = 30
#: Neighbouring K that are tried in search of a precision differ by about this factor.
_STEP = 1.12


@dataclass(frozen=True, eq=False)
class AffineBound:
    """A bound that is an offset plus a mean over targets of scores of their sampled ranks.

    For every P(R) of the shape the metric is at least (``side`` -1) or at most (``side`` +1)
    the bound's expectation, so its only error is that of a mean.
    """

    side: int
    counts: RankCounts
    offset: float
    evidence: tuple[MeanLimits, ...]
    scores: tuple[FloatArray, ...]
    #: P(R) at which the bound is attained, and the metric's weights there.
    mass: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)

    @property
    def expected(self) -> float:
        """Return the bound of the users' metric before the error of the mean is allowed for."""
        means = sum(
            float(part.observed @ score)
            for part, score in zip(self.evidence, self.scores, strict=True)
        )
        return self.counts.scale * (self.offset + means)

    def standard_error(self, *, population: bool = True) -> float:
        """Return the standard error of the mean.

        For the ``population`` of users like these it is that of targets drawn anew. For these
        users alone the metric to be covered is their own, whose chance variation the scores
        share: only the sampling of items, and what the scores miss of the metric, is left.
        """
        total = sum(part.targets for part in self.evidence)
        variance = seen = 0.0
        for part, score in zip(self.evidence, self.scores, strict=True):
            if population:
                at_bound = _variance(score, part.expected @ self.mass)
                observed = _variance(score, part.observed)
                single = max(at_bound, observed)
                seen += observed / part.targets
            else:
                share = part.targets / total
                difference = score[:, None] - share * self.weights[None, :]
                single = _variance(difference, part.expected * self.mass)
            variance += single / part.targets
        counts = self.counts
        if seen > 0.0 and counts.whose is not None and counts.stop is None:
            # How far targets of one user depend on each other, the data tell.
            scores = self.of_ranks(counts.low, counts.sampled, counts.weight)
            return math.sqrt(counts.variance_of_mean(scores) * variance / seen)
        return counts.scale * math.sqrt(variance)

    def of_ranks(self, ranks: IntArray, sampled: IntArray, weights: FloatArray) -> FloatArray:
        """Return the score of each target, for comparisons target by target."""
        result = np.full(len(ranks), self.offset)
        for part, score in zip(self.evidence, self.scores, strict=True):
            chosen = sampled == part.sampled
            # A target of this sample size stands for all sizes: the scores of the parts add up.
            scale = weights.sum() / max(weights[chosen].sum(), 1e-300)
            result[chosen] += score[part.locate(ranks[chosen])] * scale
        return result


@dataclass(frozen=True, eq=False)
class Certainty:
    """How sure the sampled ranks make us of any metric, under a stated shape of P(R)."""

    counts: RankCounts
    grid: RankGrid
    evidence: tuple[MeanLimits, ...]
    shape: Shape
    _programs: dict[tuple[Shape, float], Program] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, counts: RankCounts, cutoffs: Iterable[int], shape: Shape) -> Certainty:
        """Prepare the evidence of the counts; ``cutoffs`` are the K that will be asked for.

        Every catalogue size costs time: `group_catalogues` first where users have many.
        """
        wanted = sorted(set(cutoffs))
        grid = evidence_grid(counts, wanted)
        evidence = gather(Observed.prepare(counts, grid=grid), wanted)
        if counts.pools is not None:
            from unsample.confidence._pooled import PooledCertainty

            return PooledCertainty(counts, grid, evidence, shape)
        return cls(counts, grid, evidence, shape)

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
        direct = DirectMean.of(metric, self.counts)
        if direct is not None:
            return direct.bounds(check_level(level))
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
        direct = DirectMean.of(metric, self.counts)
        if direct is not None:
            few = self.few
            return direct.bounds(level) if few else direct.interval(level, population=population)
        shape = self.shape_in_use()
        if shape is None:
            return self.bounds(metric, level)
        widest = self._both_sides(metric, shape, level)
        # Without a shape the ends hang on few targets, whose mean is not normal.
        if self.few or shape.limits_nothing:
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
            self.counts,
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
        offset = float(weights[best])
        return AffineBound(side, self.counts, offset, self.evidence, nothing, mass, weights)

    def _both_sides(self, metric: Metric, shape: Shape, level: float) -> tuple[float, float]:
        weights, scale = self._weights(metric), self.counts.scale
        most = min(scale * float(weights.max()), self.counts.ceiling(metric))
        widest = scale * float(weights.min()), most
        try:
            program = self._program(shape, level)
            low, high = program.lowest(weights), program.lowest(-weights)
        except InfeasibleError:
            return widest
        least, most = max(scale * low.value, widest[0]), min(-scale * high.value, widest[1])
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
        return mean_weights(metric, self.grid, self.counts)


@dataclass(frozen=True)
class Resolution:
    """From which K on a metric is known to a precision, and what stands in the way below it."""

    metric: str
    precision: float
    #: The smallest such K; None if there is none.
    k: int | None
    #: The rank above which no sampled item falls on average, about N/n.
    blind_rank: float

    @classmethod
    def find(
        cls,
        counts: RankCounts,
        certainty_at: Callable[[Iterable[int]], Certainty | None],
        precision: float,
        metric: str,
        level: float,
    ) -> Resolution:
        """Search the K at which half the interval is at most ``precision`` of its middle.

        ``certainty_at`` prepares what the data say for a list of K; it has none for full ranks.
        """
        precision = check_real("precision", precision, low=0.0, high=1.0, open_low=True)
        level = check_level(level)
        blind = blind_rank(counts)
        steps = int(np.log(counts.largest_catalogue) / np.log(_STEP)) + 2
        ladder = np.unique(np.geomspace(1, counts.largest_catalogue, steps).astype(np.int64))
        certainty = certainty_at(ladder.tolist())
        if certainty is None:
            return cls(metric, precision, 1, blind)
        # The relative width falls with K, but for noise: bisection finds where it passes.
        low, high = -1, len(ladder)
        while high - low > 1:
            middle = (low + high) // 2
            wide = certainty.interval(_metrics.parse(f"{metric}@{ladder[middle]}"), level)
            if wide[1] - wide[0] <= precision * (wide[0] + wide[1]):
                high = middle
            else:
                low = middle
        k = int(ladder[high]) if high < len(ladder) else None
        return cls(metric, precision, k, blind)

    def __str__(self) -> str:
        goal = f"{self.metric}@K within {self.precision:.0%}"
        found = f"no K gives {goal}" if self.k is None else f"{goal} needs K >= {self.k:,}"
        return (
            f"{found}; on average one sampled item falls into the top {self.blind_rank:,.0f}, "
            "and what lies above that is blurred"
        )


def blind_rank(counts: RankCounts) -> float:
    """Return the rank K down to which one sampled item falls on average.

    With n - 1 of N - 1 items sampled that is (N - 1)/(n - 1), about N/n; where designs differ, the
    number of sampled items in the top K is averaged over the targets.
    """
    return 1.0 / counts.sampled_in_top


def is_resolved(metric: Metric, counts: RankCounts) -> bool:
    """Return whether the sample can tell ranks up to the metric's K from those below.

    The rule: on average at least one sampled item must fall into the top K. With fewer, most
    targets in the top K and many below it are alike unbeaten (r = 1): at K equal to the blind
    rank a target just outside the top K still has r = 1 with probability 1/e. What the estimate
    then says about the top K comes from the estimator's assumption, not from the data.

    Where samples stop growing once a target is beaten, it takes as many items of all targets that
    were not, which may be in the top K; or of some dozens of targets, which stand for those that
    were left behind at random.
    """
    cutoff = metric.cutoff(counts.largest_catalogue)
    if counts.stop is not None:
        enough = cutoff * counts.sampled / (counts.items - 1) >= 1.0 - 1e-12
        unbeaten = (counts.low <= counts.stop) & (counts.count > 0)
        return bool(counts.count[enough].sum() >= _DOZENS or enough[unbeaten].all())
    return bool(cutoff * counts.sampled_in_top >= 1.0 - 1e-12)


def _variance(values: FloatArray, mass: FloatArray) -> float:
    mean = float((mass * values).sum())
    return max(float((mass * values * values).sum()) - mean * mean, 0.0)
