"""The error of a mean over users of whom some were drawn at random to be ranked in full.

For a user who was not drawn, a smallest and a largest value are known. Only the loss is estimated,
the largest value minus the true one: its mean over a stratum is that of the users drawn from it
(the difference estimator of survey sampling). The error comes from drawing alone, for any P(R).

**No false certainty.** Where all drawn users of a stratum are alike, its variance seems to be zero.
So one more user is assumed, with the largest loss. Limits are those of a share of as many outcomes
as would have the variance (Korn and Graubard 1998), and stay within the possible values. With fewer
than ten users drawn no variance is trusted: each counts as one outcome of all or nothing.

**Two models, one draw.** ``totals`` give every user a number: the expected value, less the
unexpected loss of a drawn user, times the number of users that this user stands for. Their mean is
the estimate, and they vary between users as it varies between draws and between sets of users. So
the error of a difference is that of the mean of the users' differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray, check_level
from unsample.bounds._mean_error import MeanError, degrees_of_freedom, max_user_value
from unsample.metrics import Metric
from unsample.uncertainty import quantile

#: With fewer users drawn, no variance is trusted.
FEW_DRAWN = 10


@dataclass(frozen=True, eq=False)
class Drawn:
    """Users of whom some were drawn: weights, strata, and whose value is known."""

    #: How much each user counts.
    weights: FloatArray
    #: The stratum of each user, from 1; 0 for those whose value was known without a draw.
    stratum: IntArray
    #: Whether a user was drawn to stand for the stratum.
    counted: BoolArray
    #: Whether the value of a user is known.
    known: BoolArray

    @property
    def open_strata(self) -> list[int]:
        """Return the strata in which not everything is known."""
        return np.unique(self.stratum[~self.known]).tolist()  # type: ignore[no-any-return]

    @property
    def users(self) -> int:
        """Return how many users were drawn that stand for others."""
        return int((self.counted & np.isin(self.stratum, self.open_strata)).sum())


@dataclass(frozen=True)
class DrawnMean:
    """The mean of these users, of whom some were drawn: over other draws from them."""

    #: The mean if nobody loses anything, the largest loss, and the estimated share of it that is
    #: lost: the value is ``best - loss_share * range``.
    best: float
    range: float
    loss_share: float
    #: The standard error, and its degrees of freedom.
    error: float
    df: float
    #: How many users were drawn that stand for others, and the number of outcomes of all or nothing
    #: that they count as where none of them lost anything.
    drawn: int
    outcomes_without_loss: float
    #: The largest value that a user could have.
    max_value: float

    @classmethod
    def of(
        cls, strata: Sequence[UserStratum], sure: float, weight: float, drawn: int, metric: Metric
    ) -> DrawnMean:
        """Return the mean of ``sure`` (the total of known values) and strata, over a ``weight``."""
        best = sure + sum(part.best for part in strata)
        range_ = sum(part.range for part in strata)
        # Few users may stand for a loss beyond the range: the mean stays within what is certain.
        loss = min(max(sum(part.loss for part in strata), 0.0), range_)
        drawn_variance = sum(part.drawn_variance for part in strata)
        assumed_variance = sum(part.assumed_variance for part in strata)
        squares = sum(part.drawn_variance**2 / part.df for part in strata)
        return cls(
            best=best / weight,
            range=range_ / weight,
            loss_share=loss / range_ if range_ > 0 else 0.0,
            error=math.sqrt(drawn_variance + assumed_variance) / weight,
            df=drawn_variance**2 / squares if squares > 0 else float(max(drawn - 1, 1)),
            drawn=drawn,
            # Without any loss among those drawn, the assumed user is all of the variance.
            outcomes_without_loss=(
                range_**2 / (drawn * assumed_variance) if assumed_variance * drawn > 0 else math.inf
            ),
            max_value=max_user_value(metric),
        )

    @property
    def value(self) -> float:
        """Return the estimate."""
        return self.best - self.loss_share * self.range

    def interval(self, level: float) -> tuple[float, float]:
        """Return limits of the mean."""
        level, value = check_level(level), self.value
        if self.range <= 0.0 or self.error <= 0.0:
            return value, value
        if not self.drawn:
            return self.best - self.range, min(self.best, self.max_value)
        low, high = _limits_of_share(
            self.loss_share, self._outcomes(level), part=(1.0 - level) / 2.0
        )
        ends = self.best - self.range * high, self.best - self.range * low
        return min(ends[0], value), max(min(ends[1], self.max_value), value)

    def half_width(self, level: float) -> float:
        """Return half the width of the interval, relative to the value."""
        low, high = self.interval(level)
        return (high - low) / 2.0 / max(abs(self.value), 1e-300)

    def _outcomes(self, level: float) -> float:
        """Return the number of outcomes of all or nothing that would have the variance."""
        # The assumed user is on both sides of the ratio.
        square = self.loss_share * (1.0 - self.loss_share) + 1.0 / self.drawn
        outcomes = square * (self.range / self.error) ** 2
        if self.drawn < FEW_DRAWN:
            return min(outcomes, self.outcomes_without_loss)
        return outcomes * (quantile(level) / quantile(level, self.df)) ** 2


@dataclass(frozen=True)
class DrawnError:
    """The errors of a mean over users of whom some were drawn, and the interval for others."""

    #: The standard error for users like these, and the error if all these had been ranked in full.
    population: float
    of_users: MeanError
    #: The mean of these users alone.
    draw: DrawnMean
    #: What each user adds to the estimate.
    totals: FloatArray = field(repr=False, compare=False)

    @classmethod
    def of_drawn(
        cls,
        drawn: Drawn,
        min_values: FloatArray,
        max_values: FloatArray,
        values: FloatArray,
        metric: Metric,
    ) -> DrawnError:
        """Return the error of a mean over users.

        ``min_values`` and ``max_values`` limit what users add (their weight times their metric);
        ``values`` is what they add, where it is known, and is not used elsewhere.
        """
        sure = ~np.isin(drawn.stratum, drawn.open_strata)
        parts, totals = [], values.astype(np.float64)
        stands_for = drawn.known.astype(np.float64)
        for number in drawn.open_strata:
            here = drawn.stratum == number
            part, totals[here], stands_for[here] = _stratum(
                drawn.counted[here],
                min_values=min_values[here],
                max_values=max_values[here],
                values=values[here],
                drawn=drawn.users,
            )
            parts.append(part)
        draw = DrawnMean.of(
            parts, float(values[sure].sum()), float(drawn.weights.sum()), drawn.users, metric
        )
        middle = np.where(drawn.known, values, (min_values + max_values) / 2.0)
        of_users = _of_users(
            drawn.weights, stands_for, values=middle, mean=draw.value, metric=metric
        )
        return cls(
            population=math.hypot(of_users.population, draw.error),
            of_users=of_users,
            draw=draw,
            totals=totals,
        )

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return limits of the mean for users like these.

        Two independent errors add up. At each end, each error reaches as far as its own limits (Zou
        and Donner 2008).
        """
        ends = zip(self.of_users.interval(value, level), self.draw.interval(level), strict=True)
        low, high = (math.hypot(value - users, value - these) for users, these in ends)
        return max(value - low, 0.0), min(value + high, self.of_users.max_value)


@dataclass(frozen=True)
class UserStratum:
    """The estimated total over the users of a stratum, and its variance."""

    #: The total if nobody loses anything, the largest loss of all together, and the estimated loss.
    best: float
    range: float
    loss: float
    #: The variance of the estimate: that of the drawn users, and that of the assumed one.
    drawn_variance: float
    assumed_variance: float
    df: int = 1

    @classmethod
    def of(
        cls,
        max_values: FloatArray,
        ranges: FloatArray,
        counted: int,
        mean: float,
        variance: float,
        drawn: int,
    ) -> UserStratum:
        """Return a stratum from which so many users are ``counted``, of all that are ``drawn``.

        ``max_values`` and ``ranges`` are the largest values and the largest losses of its users;
        ``mean`` and ``variance`` are those of the losses of the users that are counted.
        """
        size, best, range_ = len(max_values), float(max_values.sum()), float(ranges.sum())
        if not counted:
            return cls(
                best=best,
                range=range_,
                loss=range_ / 2.0,
                drawn_variance=0.0,
                assumed_variance=range_**2 / 4.0,
            )
        share = counted / size
        # A draw misses all of m users with probability (1 - share)^m. Independent outcomes would
        # do so about as often if there were more of them by this factor.
        missed = share / -math.log1p(-share) if share < 1.0 else 0.0
        return cls(
            best=best,
            range=range_,
            loss=size * mean,
            drawn_variance=size**2 * (1.0 - share) / counted * variance,
            assumed_variance=size**2 * missed / counted * float((ranges**2).mean()) / drawn,
            df=max(counted - 1, 1),
        )


def _stratum(
    counted: BoolArray,
    min_values: FloatArray,
    max_values: FloatArray,
    values: FloatArray,
    drawn: int,
) -> tuple[UserStratum, FloatArray, FloatArray]:
    """Return a stratum from the users who are counted, of all users that are ``drawn``.

    Also return what each user adds to the estimate, with the unexpected loss of counted users, and
    the number of users that each stands for: one for everybody where nobody is counted.
    """
    ranges, losses = max_values - min_values, (max_values - values)[counted]
    size, count = len(max_values), len(losses)
    if not count:
        empty = UserStratum.of(max_values, ranges, counted=0, mean=0.0, variance=0.0, drawn=drawn)
        return empty, (min_values + max_values) / 2.0, np.ones(size)
    mean, alone = float(losses.mean()), float((ranges**2).mean()) / 4.0
    variance = float(losses.var(ddof=1)) if count > 1 else alone
    few = math.sqrt(count / (count - 1)) if count > 1 else 1.0
    totals = max_values - mean
    totals[counted] -= size / count * few * (losses - mean)
    part = UserStratum.of(
        max_values, ranges, counted=count, mean=mean, variance=variance, drawn=drawn
    )
    return part, totals, counted * size / count


def _limits_of_share(share: float, outcomes: float, part: float) -> tuple[float, float]:
    """Return limits of a probability, from so many outcomes (the mid-p limits, Lancaster 1961).

    Each end leaves out half the probability of the observed number itself. So on average no end
    takes more than its part. Without any hit, or any miss, one end takes both parts.
    """
    from scipy.optimize import bisect
    from scipy.special import betainc

    hits, misses = share * outcomes, (1.0 - share) * outcomes

    def beyond(probability: float, wanted: float) -> float:
        """Return the probability of more hits, plus half that of as many, minus ``wanted``."""
        at_least = betainc(hits, misses + 1.0, probability) if hits > 0 else 1.0
        more = betainc(hits + 1.0, misses, probability) if misses > 0 else 0.0
        return float(at_least + more) / 2.0 - wanted

    low = bisect(beyond, 0.0, 1.0, args=(part,)) if hits > 0 else 0.0
    high = bisect(beyond, 0.0, 1.0, args=(1.0 - part,)) if misses > 0 else 1.0
    return float(low), float(high)


def _of_users(
    weights: FloatArray, stands_for: FloatArray, values: FloatArray, mean: float, metric: Metric
) -> MeanError:
    """Return the error of drawing other users like these, if all values were known."""
    total, effective = float(weights.sum()), float(weights.sum() ** 2 / (weights @ weights))
    there = (stands_for > 0) & (weights > 0)
    times, values, weights = stands_for[there], values[there], weights[there]
    count = float(times.sum())
    deviations = (values - mean * weights) / total
    few = math.sqrt(count / (count - 1)) if count > 1 else math.nan
    return MeanError(
        population=few * math.sqrt(float(times @ deviations**2)),
        df=degrees_of_freedom(deviations, times),
        users=effective,
        max_value=max_user_value(metric),
        all_or_nothing=bool(np.isin(values / weights, (0.0, max_user_value(metric))).all()),
    )
