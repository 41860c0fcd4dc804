"""`Certainty`: bounds without assumptions, and intervals that hold under a stated shape."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from unsample._checks import FloatArray, IntArray, check_level
from unsample.confidence._direct import DirectMean
from unsample.confidence._limits import Spread, clopper_pearson, quantile
from unsample.confidence._program import SHAPES, Lowest, Shape
from unsample.confidence._strata import Stratum, strata_of
from unsample.evidence import RankCounts
from unsample.metrics import Metric

#: With fewer targets, or fewer rare events that decide, a mean is not near enough to normal: the
#: exact limits stand.
_FEW_TARGETS, _FEW_EVENTS = 50, 5.0
#: Regions of a lower level are not used: no P(R) need be in them, however true the model is.
_LEAST_LEVEL = 0.95
#: A metric is resolved if data and shape leave no more open than this share of it, up or down.
RESOLVED = 0.25


@dataclass(frozen=True, eq=False)
class AffineBound:
    """A bound that is a mean over targets of scores of their sampled ranks.

    For every P(R) of the shape the metric is at least (``side`` -1) or at most (``side`` +1)
    the bound's expectation, so its only error is that of a mean. Each range of catalogue sizes has
    its own scores.
    """

    side: int
    counts: RankCounts
    strata: tuple[Stratum, ...]
    #: What the program of each stratum found: the least of the metric, or of minus the metric.
    solved: tuple[Lowest, ...]
    #: The metric at the ranks of each stratum.
    weights: tuple[FloatArray, ...] = field(repr=False)

    @property
    def expected(self) -> float:
        """Return the bound of the users' metric before the error of the mean is allowed for."""
        shares = np.array([stratum.share for stratum in self.strata])
        return self.counts.scale * float(shares @ self._means())

    def _means(self) -> FloatArray:
        """Return the mean score of each stratum, the offset included."""
        return np.array(
            [
                -self.side
                * (
                    solved.offset
                    + sum(
                        float(part.observed @ score)
                        for part, score in zip(stratum.evidence, solved.scores, strict=True)
                    )
                )
                for stratum, solved in zip(self.strata, self.solved, strict=True)
            ]
        )

    def standard_error(self, *, population: bool = True) -> float:
        """Return the standard error of the mean.

        For the ``population`` of users like these, targets are drawn anew. For these users alone,
        the metric is their own, and the scores vary together with it. Only the sampling of items
        is left then, and what the scores miss of the metric.
        """
        seen, at_bound, alone = self._spreads()
        if not population:
            return self.counts.scale * math.sqrt(alone)
        between, counts = self._between(), self.counts
        variance = max(seen.variance, at_bound.variance) + between
        if seen.variance + between > 0.0 and counts.clusters is not None:
            # The data tell how far targets of one user depend on each other.
            scores = self.of_ranks(counts.low, counts.sampled, counts.items, counts.weight)
            grown = variance / (seen.variance + between)
            return math.sqrt(counts.variance_of_mean(scores) * grown)
        return counts.scale * math.sqrt(variance)

    @property
    def normal(self) -> bool:
        """Return whether enough events decide the mean for its error to be nearly normal."""
        seen, at_bound, _ = self._spreads()
        events = (each.events for each in (seen, at_bound) if each.variance > 0.0)
        return min(events, default=math.inf) >= _FEW_EVENTS

    def _spreads(self) -> tuple[Spread, Spread, float]:
        """Return how the mean varies as observed, how it varies at the bound, and a variance.

        The variance is that for these users alone.
        """
        seen, at_bound, alone = Spread(), Spread(), 0.0
        for stratum, solved, weights in zip(self.strata, self.solved, self.weights, strict=True):
            total = sum(part.targets for part in stratum.evidence)
            for part, score in zip(stratum.evidence, solved.scores, strict=True):
                expected = part.expected.mean @ solved.mass
                seen += part.spread(score, part.observed).scaled(stratum.share)
                at_bound += part.spread(score, expected).scaled(stratum.share)
                share = part.targets / total
                these = part.variance_of_these(-self.side * score, share * weights, solved.mass)
                alone += stratum.share**2 * these
        return seen, at_bound, alone

    def _between(self) -> float:
        """Return the variance that comes from the number of targets in each stratum."""
        means, shares = self._means(), np.array([stratum.share for stratum in self.strata])
        spread = max(float(shares @ means**2) - float(shares @ means) ** 2, 0.0)
        return spread / max(self.counts.effective, 1.0)

    @property
    def error_of_ranks(self) -> float:
        """Return the standard error of the metric at this P(R) if every rank were known."""
        first = second = 0.0
        for stratum, solved, weights in zip(self.strata, self.solved, self.weights, strict=True):
            first += stratum.share * float(weights @ solved.mass)
            second += stratum.share * float(weights**2 @ solved.mass)
        variance = max(second - first**2, 0.0) / max(self.counts.effective, 1.0)
        return self.counts.scale * math.sqrt(variance)

    def of_ranks(
        self, ranks: IntArray, sampled: IntArray, items: IntArray, weights: FloatArray
    ) -> FloatArray:
        """Return the score of each target, for comparisons target by target."""
        result = np.zeros(len(ranks))
        largest = np.array([stratum.sizes[1] for stratum in self.strata[::-1]])
        place = len(self.strata) - 1 - np.searchsorted(largest, items).clip(max=len(largest) - 1)
        for number, (stratum, solved) in enumerate(zip(self.strata, self.solved, strict=True)):
            here = place == number
            result[here] = -self.side * solved.offset
            for part, score in zip(stratum.evidence, solved.scores, strict=True):
                chosen = here & (sampled == part.sampled)
                # A target of this sample size stands for all sizes: the scores of the parts add up.
                scale = weights[here].sum() / max(weights[chosen].sum(), 1e-300)
                result[chosen] -= self.side * score[part.locate(ranks[chosen])] * scale
        return result


@dataclass(frozen=True, eq=False)
class Certainty:
    """How sure we are of any metric, given sampled ranks and a stated shape of P(R)."""

    counts: RankCounts
    #: The targets by the size of their catalogues, each with a P(R) of its own.
    strata: tuple[Stratum, ...]
    shape: Shape

    @classmethod
    def of(cls, counts: RankCounts, cutoffs: Iterable[int], shape: Shape) -> Certainty:
        """Prepare the evidence of the counts; ``cutoffs`` are the K that will be asked for."""
        strata = strata_of(counts, cutoffs)
        if counts.shared is not None:
            from unsample.confidence._pooled import PooledCertainty

            return PooledCertainty(counts, strata, shape)
        return cls(counts, strata, shape)

    @property
    def assumes(self) -> str:
        """Return the assumption behind the intervals, as the end of a sentence."""
        ranges = len(self.strata)
        where = "" if ranges == 1 else f", in each of {ranges} ranges of catalogue sizes"
        return f"{self.shape_in_use()}{where}"

    def fits(self, shape: Shape | None = None) -> bool:
        """Return whether some P(R) of the shape agrees with the data, tested at 5 %."""
        tried, alpha = self.shape if shape is None else shape, self._alpha(_LEAST_LEVEL)
        return all(stratum.program(tried, alpha).feasible for stratum in self.strata)

    def shape_in_use(self) -> Shape | None:
        """Return the shape that intervals use.

        Where the data refute the stated shape, it is that of the bounds, which limits nothing. It
        is None where the data fit no P(R) at all.
        """
        return next((shape for shape in (self.shape, SHAPES["none"]) if self.fits(shape)), None)

    @property
    def doubt(self) -> float:
        """Return how near the data are to refuting the shape in use: 0 far from it, 1 there.

        It is the same for every metric: only data at ease let the shape reach further down.
        """
        shape, alpha = self.shape_in_use(), self._alpha(_LEAST_LEVEL)
        if shape is None or shape.limits_nothing:
            return 0.0
        return sum(each.share * each.doubt(shape, alpha) for each in self.strata)

    @property
    def usual(self) -> bool:
        """Return whether there are enough targets, and no doubt about the shape of P(R).

        This holds for 99 of 100 real data sets. The prior was learned from such data sets, and says
        nothing about others.
        """
        return not self.few and self.fits() and self.doubt == 0.0

    def bounds(self, metric: Metric, level: float = 0.95) -> tuple[float, float]:
        """Return the metric's least and greatest value over every P(R) the data allow."""
        level = check_level(level)
        direct = DirectMean.of(metric, self.counts)
        if direct is not None:
            return direct.bounds(level)
        return self._both_sides(metric, SHAPES["none"], level)

    def interval(
        self, metric: Metric, level: float = 0.95, *, population: bool = True
    ) -> tuple[float, float]:
        """Return an interval that covers the metric, bias included, if the shape holds.

        The metric is that of the ``population`` of users like these, or of these users alone.
        Where the data refute the shape, these are the bounds. Where they nearly refute it, the ends
        move towards the bounds: a shape that hardly fits allows few P(R), and the interval would be
        narrow for the wrong reason. It is never narrower than that of as many known ranks, nor
        wider than the bounds.
        """
        level = check_level(level)
        direct = DirectMean.of(metric, self.counts)
        if direct is not None:
            few = self.few
            return direct.bounds(level) if few else direct.interval(level, population=population)
        shape = self.shape_in_use()
        if shape is None or shape.limits_nothing:
            return self.bounds(metric, level)
        low, high = self._both_sides(metric, shape, level)
        if not self.few:
            least, most = self._normal_ends(metric, level, population)
            low, high = max(low, least), min(high, most)
        ends = self._doubted((low, high), metric, level)
        wider = self._not_too_sure(ends, metric, level) if population else ends
        if wider == ends:
            return ends
        least, most = self.bounds(metric, level)
        return max(wider[0], least), min(wider[1], most)

    def _doubted(
        self, ends: tuple[float, float], metric: Metric, level: float
    ) -> tuple[float, float]:
        """Return the ends, moved towards the bounds as far as the shape is in doubt."""
        doubt = self.doubt
        low, high = sorted(ends)
        if doubt > 0.0:
            least, most = self.bounds(metric, level)
            low, high = low + doubt * min(least - low, 0.0), high + doubt * max(most - high, 0.0)
        return low, high

    def _normal_ends(self, metric: Metric, level: float, population: bool) -> tuple[float, float]:
        """Return the ends as means of scores with a normal error on either side.

        The two are means of different scores, and may change places by chance. Then nothing is
        known between them, and the errors are added outside of both.
        """
        z = quantile(level)
        low, high = (self.affine_bound(metric, side, level) for side in (-1, 1))
        least, most = sorted((low.expected, high.expected))
        return (
            least - z * low.standard_error(population=population) if low.normal else -math.inf,
            most + z * high.standard_error(population=population) if high.normal else math.inf,
        )

    def _not_too_sure(
        self, ends: tuple[float, float], metric: Metric, level: float
    ) -> tuple[float, float]:
        """Return the ends, at least as far apart as those of as many known ranks would be."""
        errors = [self.affine_bound(metric, side, level).error_of_ranks for side in (-1, 1)]
        reach, middle = quantile(level) * min(errors), sum(ends) / 2.0
        return min(ends[0], middle - reach), max(ends[1], middle + reach)

    def resolves(self, metric: Metric) -> bool:
        """Return whether the sample settles the metric, the chance of so many targets aside.

        Without that chance, the ends of the interval show what P(R) of the shape can make of these
        sampled ranks. Where they are more than a quarter of their middle away from it, the estimate
        comes from the method's assumption and not from the data. More sampled items help there,
        more targets do not.
        """
        if DirectMean.of(metric, self.counts) is not None:
            return True
        low, high = sorted(self.affine_bound(metric, side).expected for side in (-1, 1))
        return high - low <= RESOLVED * (max(low, 0.0) + high)

    @property
    def few(self) -> bool:
        """Return whether there are too few targets for the error of a mean to be normal."""
        return self.counts.effective < _FEW_TARGETS

    def affine_bound(self, metric: Metric, side: int, level: float = 0.95) -> AffineBound:
        """Return the lower (-1) or upper (+1) bound as a mean of scores."""
        shape = self.shape_in_use()
        return AffineBound(
            side,
            self.counts,
            self.strata,
            self._solved(metric, side, shape, level),
            tuple(stratum.weights(metric).mean for stratum in self.strata),
        )

    def reach_is_clear(self, metric: Metric) -> bool:
        """Return whether it is known how far down the shape holds for K up to that of a metric."""
        shape, tested = self.shape_in_use(), self._alpha(_LEAST_LEVEL)
        return shape is None or all(
            each.reach_is_clear(shape, metric, tested) for each in self.strata
        )

    def _solved(
        self, metric: Metric, side: int, shape: Shape | None, level: float
    ) -> tuple[Lowest, ...]:
        alpha, tested = self._alpha(level), self._alpha(_LEAST_LEVEL)
        shapes = (shape and each.reaching(shape, metric, tested) for each in self.strata)
        return tuple(
            stratum.lowest(metric, side, reaching, alpha)
            for stratum, reaching in zip(self.strata, shapes, strict=True)
        )

    def _both_sides(self, metric: Metric, shape: Shape, level: float) -> tuple[float, float]:
        """Return the least and the greatest value that are proved."""
        low, high = (
            -side
            * self._mixed([each.value for each in self._solved(metric, side, shape, level)], level)
            for side in (-1, 1)
        )
        scale, most = self.counts.scale, self.counts.ceiling(metric)
        # Both are solved to a tolerance: where they should be equal, they may change places.
        low, high = sorted((scale * low, scale * high))
        return min(low, most), min(high, most)

    def _mixed(self, values: list[float], level: float) -> float:
        """Return the least mean of the strata's values: their numbers of targets vary by chance."""
        if len(values) == 1:
            return values[0]
        shares = np.array([stratum.share for stratum in self.strata])
        part = self._alpha(level) / (2 * len(values))
        least, most = clopper_pearson(shares, shares, self.counts.effective, part)
        order = np.argsort(values)
        # As much weight as possible goes to the least of the values.
        left = np.diff(np.minimum(np.cumsum((most - least)[order]), 1.0 - least.sum()), prepend=0.0)
        return float((least[order] + left) @ np.array(values)[order])

    def _alpha(self, level: float) -> float:
        """Return the error of each part of the evidence; the sizes of strata are a part, too."""
        parts = sum(len(stratum.evidence) for stratum in self.strata) + (len(self.strata) > 1)
        return (1.0 - max(level, _LEAST_LEVEL)) / parts
