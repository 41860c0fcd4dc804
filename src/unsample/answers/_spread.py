"""How far a number may be from the truth: plain records that give an interval at any level.

What the posterior says is a `LogSpread` of its law; the others are here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unsample.bounds import DrawnError, MeanError, quantile


class Spread(Protocol):
    """What a metric may be."""

    def interval(self, level: float) -> tuple[float, float]:
        """Return the least and the greatest value at this level."""


@dataclass(frozen=True)
class MeanSpread:
    """A mean over users, all known as in full rankings, or of whom some were drawn."""

    value: float
    error: MeanError | DrawnError

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval, for users like these."""
        return self.error.interval(self.value, level)


@dataclass(frozen=True)
class TSpread:
    """A t law, between two limits: of an unbiased mean, a mean of runs, a difference of means."""

    value: float
    error: float
    freedom: float = math.inf
    least: float = -math.inf
    most: float = math.inf

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval."""
        reach = quantile(level, self.freedom) * self.error
        return max(self.value - reach, self.least), min(self.value + reach, self.most)

    @property
    def chance(self) -> float:
        """Return the chance to be positive; one half where nothing varies and there is nothing."""
        return 1.0 - self.below(0.0)

    def below(self, value: float) -> float:
        """Return the chance to be less than this."""
        from scipy.special import stdtr

        if self.error == 0.0:
            return 0.5 + 0.5 * float(np.sign(value - self.value))
        return float(stdtr(self.freedom, (value - self.value) / self.error))
