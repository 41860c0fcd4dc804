"""The error of a plain mean over users, also of few users and of rare hits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray, IntArray, check_level
from unsample.confidence._items import freedom_of
from unsample.confidence._limits import clopper_pearson, quantile
from unsample.evidence import RankCounts
from unsample.metrics import Metric

#: With fewer users on either side of a share, limits are those of a share.
_FEW = 10.0


@dataclass(frozen=True)
class MeanError:
    """The standard error of a mean over users, and an interval for users like these."""

    #: Whether some users were drawn to be ranked in full, and stand for others.
    of_draw: ClassVar[bool] = False

    population: float
    #: Degrees of freedom: fewer where few users make up most of the variance.
    freedom: float
    #: How many equally weighted users there are.
    users: float
    #: The greatest value that a user could have; infinite where that is not known.
    most: float
    #: Whether users have nothing or the most.
    all_or_nothing: bool
    #: The value that most users have, and the share of users that have another one.
    usual: float = math.nan
    apart: float = 1.0

    @classmethod
    def of_cells(cls, values: FloatArray, counts: RankCounts, metric: Metric) -> MeanError:
        """Return the error of the mean of the cells' values, over the users of their targets."""
        if counts.clusters is None:
            weights = counts.weight / np.maximum(counts.count, 1)
            return cls.of(values * weights, weights, metric, counts.count)
        return cls(
            math.sqrt(counts.variance_of_mean(values)) if counts.users > 1 else math.nan,
            float(max(counts.users - 1, 1)),
            counts.effective_users,
            1.0 if metric.family.bounded else math.inf,
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
        """Return the error of ``totals.sum() / weights.sum()``, each so many ``times``."""
        kept = weights > 0
        totals, weights = totals[kept], weights[kept]
        times = np.ones(len(weights), dtype=np.int64) if times is None else times[kept]
        count, total = int(times.sum()), float(times @ weights)
        deviations = (totals - float(times @ totals) / total * weights) / total
        values = totals / weights
        most = 1.0 if metric.family.bounded else math.inf
        few = math.sqrt(count / (count - 1)) if count > 1 else math.nan
        different, place = np.unique(values, return_inverse=True)
        shares = np.bincount(place.reshape(-1), times * weights) / total
        return cls(
            few * math.sqrt(float(times @ deviations**2)),
            degrees_of_freedom(deviations, times),
            total**2 / float(times @ weights**2),
            most,
            bool(np.isin(values, (0.0, most)).all()),
            float(different[shares.argmax()]),
            max(1.0 - float(shares.max()), 0.0),
        )

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return limits of the mean.

        For a share they are those of Clopper and Pearson. These also hold for means of values
        between nothing and the most, which vary less. They are used where hits are so rare that
        they show no variance. Otherwise limits are those of t. Where nearly all users have the same
        value, other values are rare: as many users as the limits of a share allow could have
        nothing, or the most.
        """
        level = check_level(level)
        share = value / self.most
        if is_rare(self, value) or (math.isfinite(self.most) and self.all_or_nothing):
            mean = np.array([min(max(share, 0.0), 1.0)])
            low, high = clopper_pearson(mean, mean, self.users, (1.0 - level) / 2.0)
            return self.most * float(low[0]), self.most * float(high[0])
        if math.isnan(self.population):
            return math.nan, math.nan
        reach = quantile(level, self.freedom) * self.population
        ends = value - reach, min(value + reach, max(self.most, value))
        if math.isfinite(self.most) and self.users * self.apart < _FEW:
            apart = np.array([self.apart])
            others = float(clopper_pearson(apart, apart, self.users, (1.0 - level) / 2.0)[1][0])
            ends = (
                min(ends[0], self.usual * (1.0 - others)),
                max(ends[1], self.usual + (self.most - self.usual) * others),
            )
        return ends

    def of_these(self, value: float, level: float) -> tuple[float, float]:
        """Return limits of the mean of these users, whose values are all known."""
        return value, value


def is_rare(error: MeanError, value: float) -> bool:
    """Return whether there are too few users on either side of a share to show a variance."""
    share = value / error.most
    return math.isfinite(error.most) and error.users * min(share, 1.0 - share) < _FEW


def degrees_of_freedom(deviations: FloatArray, times: IntArray | None = None) -> float:
    """Return the degrees of freedom of a sum of squares, each counted so many ``times``."""
    times = np.ones(len(deviations), dtype=np.int64) if times is None else times
    squares, fourths = float(times @ deviations**2), float(times @ deviations**4)
    return freedom_of(squares**2 / fourths if fourths > 0.0 else 1.0, int(times.sum()))


def holm(p_values: Sequence[float], family: int | None = None) -> list[float]:
    """Return p-values corrected for their number, by Holm's steps.

    ``family`` is how many might have been tested. The steps also hold for a part of a family: when
    the first true hypothesis is rejected, those before it were false, so at most the rest of the
    family can be true.

    >>> holm([0.01, 0.04, 0.02])
    [0.03, 0.04, 0.04]
    """
    size = len(p_values) if family is None else family
    found, largest = list(p_values), 0.0
    for position, place in enumerate(sorted(range(len(found)), key=lambda each: p_values[each])):
        largest = max(largest, min(1.0, (size - position) * p_values[place]))
        found[place] = largest
    return found
