"""`Uncertain`: a number, and how far it may be from the truth.

Every number that a result shows is of one of three kinds: read from draws, a mean with its error,
or between bounds. All answer the same questions. The answers of one number cannot contradict each
other, because interval, probability and value are read from one distribution.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from unsample._checks import FloatArray, check_level, check_real
from unsample.uncertainty._quantiles import DEFAULT_LEVEL, quantile

#: Beyond this number of draws from either end the distribution is extrapolated, ...
_OUTERMOST = 20
#: ... by the slope between this draw and another one, this many times as far from the end.
_SLOPE_OVER = 10


class Uncertain(ABC):
    """A number that is not known exactly.

    >>> number = MeanWithError(value=0.30, error=0.02)
    >>> low, high = number.interval(0.95)
    >>> round(low, 4), round(high, 4), round(number.probability_above(0.28), 3)
    (0.2608, 0.3392, 0.841)
    """

    #: The estimate.
    value: float

    @abstractmethod
    def quantile(self, probability: float) -> float:
        """Return the limit that the number is below with this probability."""

    @abstractmethod
    def probability_above(self, limit: float) -> float:
        """Return the probability that the number is greater; NaN where only bounds are known."""

    def interval(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the two ends between which the number is with the probability ``level``."""
        tail = (1.0 - check_level(level)) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)


@dataclass(frozen=True, eq=False)
class FromDraws(Uncertain):
    """A number that is known for each draw of a distribution; the value is the median.

    Beyond the outermost draws the distribution goes on as a normal one does: linearly in normal
    scores. Interval and probability use the same line. So an interval excludes a limit exactly
    where the probability to be beyond the limit is small enough.

    >>> number = FromDraws.of(np.linspace(0.0, 1.0, 1001))
    >>> number.value, round(number.quantile(0.9), 3), round(number.probability_above(0.25), 3)
    (0.5, 0.9, 0.75)
    """

    value: float
    ordered: FloatArray = field(repr=False)
    minimum: float = -math.inf
    maximum: float = math.inf

    @classmethod
    def of(
        cls, draws: FloatArray, *, minimum: float = -math.inf, maximum: float = math.inf
    ) -> FromDraws:
        """Take draws in any order; no quantile leaves the limits."""
        value = min(max(float(np.median(draws)), minimum), maximum)
        return cls(value=value, ordered=np.sort(draws), minimum=minimum, maximum=maximum)

    def quantile(self, probability: float) -> float:
        """Return the limit that this share of the draws is below."""
        check_real("probability", probability, low=0.0, high=1.0, open_low=True, open_high=True)
        scores, values = self._knots
        if self._outer_share < probability < 1.0 - self._outer_share:
            count = len(self.ordered)
            number = float(np.interp(probability * count - 0.5, np.arange(count), self.ordered))
        else:
            number = _line(_normal_score(probability), scores, values=values)
        return min(max(number, self.minimum), self.maximum)

    def probability_above(self, limit: float) -> float:
        """Return the share of draws above a limit; ties count half."""
        if not self.minimum <= limit <= self.maximum:
            return 1.0 if limit < self.minimum else 0.0
        scores, values = self._knots
        inner_low, inner_high = values[1], values[2]
        if not inner_low <= limit <= inner_high:
            return _tail_above(limit, scores, values=values)
        below = float(np.searchsorted(self.ordered, limit, side="left"))
        equal = float(np.searchsorted(self.ordered, limit, side="right")) - below
        if equal or below in (0.0, float(len(self.ordered))):
            return 1.0 - (below + equal / 2.0) / len(self.ordered)
        # The limit lies between two draws: where on the way from one to the next.
        before, after = self.ordered[int(below) - 1], self.ordered[int(below)]
        passed = below - 0.5 + float((limit - before) / (after - before))
        return 1.0 - passed / len(self.ordered)

    @property
    def _outer_share(self) -> float:
        """Return which share of the draws lies beyond the outermost one that is read."""
        return min(_OUTERMOST / len(self.ordered), 0.25)

    @property
    def _knots(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return normal scores and quantiles at which lines beyond the draws begin."""
        outer = self._outer_share
        inner = min(_SLOPE_OVER * outer, 0.4)
        shares = np.array([inner, outer, 1.0 - outer, 1.0 - inner])
        count = len(self.ordered)
        values = np.interp(shares * count - 0.5, np.arange(count), self.ordered)
        scores = [_normal_score(share) for share in shares.tolist()]
        return tuple(scores), tuple(values.tolist())


def _normal_score(probability: float) -> float:
    """Return the quantile of the standard normal distribution.

    >>> round(_normal_score(0.975), 3)
    1.96
    """
    from scipy.special import ndtri

    return float(ndtri(probability))


def _line(score: float, scores: tuple[float, ...], values: tuple[float, ...]) -> float:
    """Return the value at a normal score beyond the outermost knots.

    The knots are in the order low inner, low outer, high outer, high inner. Here values are ten
    times the scores.

    >>> _line(3.0, (-1.0, -2.0, 2.0, 1.0), (-10.0, -20.0, 20.0, 10.0))
    30.0
    """
    (inside, outside) = (0, 1) if score < 0.0 else (3, 2)
    slope = (values[outside] - values[inside]) / (scores[outside] - scores[inside])
    return values[outside] + slope * (score - scores[outside])


def _tail_above(limit: float, scores: tuple[float, ...], values: tuple[float, ...]) -> float:
    """Return the probability to be above a limit that lies beyond the outermost knots.

    >>> scores, values = (-1.0, -2.0, 2.0, 1.0), (-10.0, -20.0, 20.0, 10.0)
    >>> round(_tail_above(30.0, scores, values), 5)                  # at the normal score 3
    0.00135
    """
    from scipy.special import ndtr

    (inside, outside) = (0, 1) if limit < values[1] else (3, 2)
    rise = values[outside] - values[inside]
    if rise == 0.0:  # nothing varies there
        return 1.0 if limit < values[outside] else 0.0
    slope = (scores[outside] - scores[inside]) / rise
    return float(ndtr(-(scores[outside] + slope * (limit - values[outside]))))


class MeanInterval(Protocol):
    """The error of a mean that has limits of its own, as few users or rare hits need."""

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return the ends at a level."""


@dataclass(frozen=True)
class MeanWithError(Uncertain):
    """A mean that follows a t distribution around its value, between two limits."""

    value: float
    error: float
    df: float = math.inf
    minimum: float = -math.inf
    maximum: float = math.inf

    def quantile(self, probability: float) -> float:
        """Return the limit that the mean is below with this probability."""
        reach = 0.0
        if probability != 0.5:
            standard_errors = quantile(abs(2.0 * probability - 1.0), self.df)
            reach = math.copysign(standard_errors, probability - 0.5)
        return min(max(self.value + reach * self.error, self.minimum), self.maximum)

    def probability_above(self, limit: float) -> float:
        """Return the probability to be greater; one half where the value is surely the limit."""
        from scipy.special import stdtr

        if not self.minimum <= limit <= self.maximum:
            return 1.0 if limit < self.minimum else 0.0
        if self.error == 0.0:
            return 0.5 + 0.5 * float(np.sign(self.value - limit))
        return float(stdtr(self.df, (self.value - limit) / self.error))


@dataclass(frozen=True)
class MeanWithLimits(Uncertain):
    """A mean over users whose error gives its own limits, also for few users and rare hits.

    ``error`` may be a `MeanError`, for instance.
    """

    value: float
    error: MeanInterval = field(repr=False)

    def quantile(self, probability: float) -> float:
        """Return the end of the interval that leaves this probability below it."""
        if probability == 0.5:
            return self.value
        low, high = self.error.interval(self.value, abs(2.0 * probability - 1.0))
        return low if probability < 0.5 else high

    def probability_above(self, limit: float) -> float:
        """Return the probability whose quantile is the limit, by bisection; NaN without limits."""
        if math.isnan(self.quantile(0.75)):  # one user shows no variation
            return math.nan
        low, high = 1e-9, 1.0 - 1e-9
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.quantile(middle) < limit else (low, middle)
        return 1.0 - (low + high) / 2.0


@dataclass(frozen=True, eq=False)
class BetweenBounds(Uncertain):
    """A number that is only known to lie between two limits.

    ``limits`` gives the limits at a level: they allow for the error of the data as well.

    >>> number = BetweenBounds(value=0.3, limits=lambda level: (0.2, 0.6))
    >>> number.interval(0.95), number.probability_above(0.5)
    ((0.2, 0.6), nan)
    """

    value: float
    limits: Callable[[float], tuple[float, float]] = field(repr=False)

    def quantile(self, probability: float) -> float:
        """Return the limit on this side."""
        if probability == 0.5:
            return self.value
        low, high = self.limits(abs(2.0 * probability - 1.0))
        return low if probability < 0.5 else high

    def probability_above(self, limit: float) -> float:
        """Return NaN: bounds have no probabilities."""
        return math.nan
