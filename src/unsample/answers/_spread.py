"""How far a number may be from the truth: plain records that give an interval at any level.

What the posterior says is a `LogSpread` of its law; the others are here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

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
class DirectSpread:
    """An unbiased mean of sampled ranks, or a mean of runs, between two limits."""

    value: float
    standard_error: float
    least: float
    most: float
    freedom: float = math.inf

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval."""
        reach = quantile(level, self.freedom) * self.standard_error
        return max(self.value - reach, self.least), min(self.value + reach, self.most)
