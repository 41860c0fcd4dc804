"""The error of a plain mean over users, few of them or rare hits included."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, check_level
from unsample.confidence._limits import clopper_pearson
from unsample.evidence import deviations_of_mean, freedom_of
from unsample.metrics import Metric

#: With fewer users that count on either side, limits are those of a share.
_FEW = 10.0


@dataclass(frozen=True)
class MeanError:
    """The standard error of a mean over users, and an interval for users like these."""

    population: float
    #: Degrees of freedom: fewer where few users make up most of the variance.
    freedom: float
    #: How many equally weighted users there are.
    users: float
    #: The greatest value that a user could have; infinite where that is not known.
    most: float
    #: Whether users have nothing or the most.
    all_or_nothing: bool

    @classmethod
    def of(cls, totals: FloatArray, weights: FloatArray, metric: Metric) -> MeanError:
        """Return the error of ``totals.sum() / weights.sum()``."""
        kept = weights > 0
        totals, weights = totals[kept], weights[kept]
        count, total = len(weights), float(weights.sum())
        deviations = deviations_of_mean(totals, weights)
        values = totals / weights
        most = 1.0 if metric.family.bounded else math.inf
        few = math.sqrt(count / (count - 1)) if count > 1 else math.nan
        return cls(
            few * math.sqrt(float(deviations @ deviations)),
            degrees_of_freedom(deviations),
            total**2 / float(weights @ weights),
            most,
            bool(np.isin(values, (0.0, most)).all()),
        )

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return limits of the mean.

        Of a share they are those of Clopper and Pearson. These also hold for means of values
        between nothing and the most, which vary less; and they stand where hits are so rare that
        no variance can be told from them. Otherwise they are those of t.
        """
        from scipy.special import stdtrit

        level = check_level(level)
        share = value / self.most
        rare = self.users * min(share, 1.0 - share) < _FEW
        if math.isfinite(self.most) and (rare or self.all_or_nothing):
            mean = np.array([min(max(share, 0.0), 1.0)])
            low, high = clopper_pearson(mean, mean, self.users, (1.0 - level) / 2.0)
            return self.most * float(low[0]), self.most * float(high[0])
        if math.isnan(self.population):
            return math.nan, math.nan
        reach = float(stdtrit(self.freedom, (1.0 + level) / 2.0)) * self.population
        return value - reach, min(value + reach, max(self.most, value))


def degrees_of_freedom(deviations: FloatArray) -> float:
    """Return the degrees of freedom of the sum of their squares."""
    squares, fourths = float((deviations**2).sum()), float((deviations**4).sum())
    return freedom_of(squares**2 / fourths if fourths > 0.0 else 1.0, len(deviations))
