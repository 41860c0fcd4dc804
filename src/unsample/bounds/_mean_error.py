"""The error of a plain mean over users, also of few users and of rare hits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, IntArray, check_level
from unsample.counts import RankCounts, variance_of_mean
from unsample.metrics import Metric
from unsample.uncertainty import clopper_pearson, quantile

#: With fewer users that have a hit, or fewer that have none, limits of a share are taken.
_FEW = 10.0


@dataclass(frozen=True)
class MeanError:
    """The standard error of a mean over users, and an interval for users like these."""

    population: float
    #: Degrees of freedom: fewer where few users make up most of the variance.
    df: float
    #: How many equally weighted users there are.
    users: float
    #: The largest value that a user could have; infinite where that is not known.
    max_value: float
    #: Whether each user has either 0 or the largest value.
    all_or_nothing: bool
    #: The value that most users have, and the share of users that have another one.
    usual: float = math.nan
    other_share: float = 1.0

    @classmethod
    def of_cells(cls, values: FloatArray, counts: RankCounts, metric: Metric) -> MeanError:
        """Return the error of the mean of the cells' values, over the users of their targets."""
        if counts.clusters is None:
            weights = counts.weight / np.maximum(counts.count, 1)
            return cls.of(values * weights, weights, metric=metric, times=counts.count)
        error = math.sqrt(variance_of_mean(counts, values)) if counts.users > 1 else math.nan
        df = float(max(counts.users - 1, 1))
        return cls(
            population=error,
            df=df,
            users=counts.effective_users,
            max_value=max_user_value(metric),
            all_or_nothing=False,
        )

    @classmethod
    def of(
        cls,
        totals: FloatArray,
        weights: FloatArray,
        metric: Metric,
        times: IntArray | None = None,
    ) -> MeanError:
        """Return the error of ``totals.sum() / weights.sum()``, each user counted ``times``.

        Three of four users of weight 1 have a hit. The variance of the mean is the sum of squared
        deviations, 3 (1/4)^2 + (3/4)^2 = 3/4, divided by 4 (4 - 1).

        >>> from unsample.metrics import parse
        >>> hits = np.array([1.0, 1.0, 1.0, 0.0])
        >>> error = MeanError.of(hits, np.ones(4), parse("HR@10"))
        >>> round(error.population**2, 9), error.usual, error.other_share, error.all_or_nothing
        (0.0625, 1.0, 0.25, True)
        """
        there = weights > 0
        totals = totals[there]
        weights = weights[there]
        times = np.ones(len(weights), dtype=np.int64) if times is None else times[there]
        count = int(times.sum())
        total = float(times @ weights)
        deviations = (totals - float(times @ totals) / total * weights) / total
        small_sample = math.sqrt(count / (count - 1)) if count > 1 else math.nan
        values, index = np.unique(totals / weights, return_inverse=True)
        shares = np.bincount(index.reshape(-1), times * weights) / total
        return cls(
            population=small_sample * math.sqrt(float(times @ deviations**2)),
            df=degrees_of_freedom(deviations, times),
            users=total**2 / float(times @ weights**2),
            max_value=max_user_value(metric),
            all_or_nothing=bool(np.isin(values, (0.0, max_user_value(metric))).all()),
            usual=float(values[shares.argmax()]),
            other_share=max(1.0 - float(shares.max()), 0.0),
        )

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return limits of the mean.

        A share has the limits of Clopper and Pearson. These also hold for means of values between 0
        and the largest value, which vary less. They are used where hits are so rare that they show
        no variance. Otherwise limits follow the t distribution. Where nearly all users have the
        same value, others are rare: as many users as the limits of a share allow could have 0, or
        the largest value.

        >>> error = MeanError(
        ...     population=0.02, df=99.0, users=100.0, max_value=1.0, all_or_nothing=False
        ... )
        >>> low, high = error.interval(0.5, level=0.95)              # 0.5 +- 1.984 * 0.02
        >>> round(low, 4), round(high, 4)
        (0.4603, 0.5397)
        """
        level = check_level(level)
        bounded = math.isfinite(self.max_value)
        share = value / self.max_value
        rare = self.users * min(share, 1.0 - share) < _FEW
        if bounded and (rare or self.all_or_nothing):
            low, high = self._of_share(min(max(share, 0.0), 1.0), level)
            return self.max_value * low, self.max_value * high
        if math.isnan(self.population):
            return math.nan, math.nan
        reach = quantile(level, self.df) * self.population
        low = value - reach
        high = min(value + reach, max(self.max_value, value))
        if bounded and self.users * self.other_share < _FEW:
            _, others = self._of_share(self.other_share, level)
            low = min(low, self.usual * (1.0 - others))
            high = max(high, self.usual + (self.max_value - self.usual) * others)
        return low, high

    def _of_share(self, share: float, level: float) -> tuple[float, float]:
        """Return limits of a probability whose observed share among the users this is."""
        observed = np.array([share])
        low, high = clopper_pearson(
            observed, observed, targets=self.users, part=(1.0 - level) / 2.0
        )
        return float(low[0]), float(high[0])


def max_user_value(metric: Metric) -> float:
    """Return the largest value that a user could have."""
    return 1.0 if metric.family.bounded else math.inf


def degrees_of_freedom(deviations: FloatArray, times: FloatArray | IntArray | None = None) -> float:
    """Return the degrees of freedom of a sum of squares; each square is counted ``times``.

    They follow from the variance of the sum, so from fourth powers (Satterthwaite 1946). Deviations
    of equal size give n - 1, and a single one that dominates gives few.

    >>> degrees_of_freedom(np.array([1.0, -1.0, 1.0, -1.0]))
    3.0
    >>> round(degrees_of_freedom(np.array([100.0] + [1.0] * 99)), 2)
    2.06
    """
    times = np.ones(len(deviations)) if times is None else times
    squares = float(times @ deviations**2)
    fourths = float(times @ deviations**4)
    effective = squares**2 / fourths if fourths > 0.0 else 1.0
    count = max(round(float(times.sum())), 1)
    kurtosis = 1.0 / max(effective, 1.0) - 1.0 / count
    return 2.0 / max(kurtosis, 2.0 / max(count - 1, 1))
