"""The error of a mean over users of whom some were drawn at random to be ranked in full.

For a user who was not drawn, a smallest and a largest value are known. The loss of a user is the
largest value minus the true one. Only losses are estimated: the mean loss in a stratum is taken
from the users drawn from it (the difference estimator of survey sampling). The error comes from
drawing alone, for any P(R).

**No false certainty.** Where all drawn users of a stratum are alike, its variance seems to be zero.
So one more user is assumed, with the largest loss. Limits are those of a share (Korn and Graubard
1998): of as many outcomes of all or nothing as have the variance. They stay within the possible
values. With fewer than ten users drawn no variance is trusted: each counts as one outcome.

**Two models, one draw.** ``totals`` has a number for every user: the expected value and, for a
drawn user, minus the unexpected part of the loss, times the number of users that this user stands
for. The mean of these numbers is the estimate. They vary between users as the estimate varies
between draws and between sets of users. So the error of a difference between two models is the
error of the mean of the users' differences.
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
    """Users of whom some were drawn: weights, strata, and whose value is known.

    User 0 was known without a draw. Users 1 to 3 are a stratum, from which user 1 was drawn.

    >>> drawn = Drawn(
    ...     weights=np.ones(4),
    ...     stratum=np.array([0, 1, 1, 1]),
    ...     counted=np.array([False, True, False, False]),
    ...     known=np.array([True, True, False, False]),
    ... )
    >>> drawn.open_strata, drawn.users
    ([1], 1)
    """

    #: How much each user counts.
    weights: FloatArray
    #: The stratum of each user, from 1; 0 where the value was known without a draw.
    stratum: IntArray
    #: Whether a user was drawn to stand for the stratum.
    counted: BoolArray
    #: Whether the value of a user is known.
    known: BoolArray

    @property
    def open_strata(self) -> list[int]:
        """Return the strata in which some value is not known."""
        return np.unique(self.stratum[~self.known]).tolist()  # type: ignore[no-any-return]

    @property
    def users(self) -> int:
        """Return how many users were drawn that stand for others."""
        return int((self.counted & np.isin(self.stratum, self.open_strata)).sum())


@dataclass(frozen=True)
class DrawnMean:
    """The mean over these users, and its error: how it would vary between draws from them."""

    #: The mean if nobody loses anything, and the largest possible loss.
    best: float
    range: float
    #: Which share of this is lost, as estimated: the value is ``best - loss_share * range``.
    loss_share: float
    #: The standard error, and its degrees of freedom.
    error: float
    df: float
    #: How many users were drawn that stand for others.
    drawn: int
    #: As how many outcomes of all or nothing they count where none of them lost anything.
    outcomes_without_loss: float
    #: The largest value that a user could have.
    max_value: float

    @classmethod
    def of(
        cls,
        strata: Sequence[UserStratum],
        sure: float,
        weight: float,
        drawn: int,
        metric: Metric,
    ) -> DrawnMean:
        """Return the mean over strata, and over users whose values are known without a draw.

        ``sure`` is the total of these known values, and ``weight`` the weight of all users.

        A stratum of ten users could add 10 and lose all of it. Two users were drawn, who lost half
        of it: the mean is 1/2. The variance of the total is 8 by the draw and 4 by the assumed
        user, and the standard error of the mean is sqrt(12) / 10.

        >>> from unsample.metrics import parse
        >>> stratum = UserStratum(
        ...     best=10.0, range=10.0, loss=5.0, drawn_variance=8.0, assumed_variance=4.0, df=1
        ... )
        >>> mean = DrawnMean.of([stratum], sure=0.0, weight=10.0, drawn=2, metric=parse("HR@10"))
        >>> mean.value, round(mean.error, 4), mean.df
        (0.5, 0.3464, 1.0)
        """
        best = sure + sum(stratum.best for stratum in strata)
        range_ = sum(stratum.range for stratum in strata)
        # Few users may stand for a loss beyond the range: the mean stays within what is certain.
        loss = min(max(sum(stratum.loss for stratum in strata), 0.0), range_)
        drawn_variance = sum(stratum.drawn_variance for stratum in strata)
        assumed_variance = sum(stratum.assumed_variance for stratum in strata)
        # Degrees of freedom of a sum of variances (Satterthwaite 1946).
        squares = sum(stratum.drawn_variance**2 / stratum.df for stratum in strata)
        outcomes_without_loss = math.inf
        if assumed_variance * drawn > 0:
            # Without any loss among the drawn users, the assumed user is all of the variance.
            outcomes_without_loss = range_**2 / (drawn * assumed_variance)
        return cls(
            best=best / weight,
            range=range_ / weight,
            loss_share=loss / range_ if range_ > 0 else 0.0,
            error=math.sqrt(drawn_variance + assumed_variance) / weight,
            df=drawn_variance**2 / squares if squares > 0 else float(max(drawn - 1, 1)),
            drawn=drawn,
            outcomes_without_loss=outcomes_without_loss,
            max_value=max_user_value(metric),
        )

    @property
    def value(self) -> float:
        """Return the estimate."""
        return self.best - self.loss_share * self.range

    def interval(self, level: float) -> tuple[float, float]:
        """Return limits of the mean."""
        level = check_level(level)
        value = self.value
        if self.range <= 0.0 or self.error <= 0.0:
            return value, value
        if not self.drawn:
            return self.best - self.range, min(self.best, self.max_value)
        least_lost, most_lost = _limits_of_share(
            self.loss_share, self._outcomes(level), part=(1.0 - level) / 2.0
        )
        low = self.best - self.range * most_lost
        high = min(self.best - self.range * least_lost, self.max_value)
        return min(low, value), max(high, value)

    def half_width(self, level: float) -> float:
        """Return half the width of the interval, relative to the value."""
        low, high = self.interval(level)
        return (high - low) / 2.0 / max(abs(self.value), 1e-300)

    def _outcomes(self, level: float) -> float:
        """Return the number of outcomes of all or nothing that would have the variance.

        A share s of M outcomes has the variance s (1 - s) / M. The estimated one is larger by the
        assumed user, who is one of the drawn users: this adds to s (1 - s) as well.
        """
        variance_of_outcome = self.loss_share * (1.0 - self.loss_share) + 1.0 / self.drawn
        outcomes = variance_of_outcome * (self.range / self.error) ** 2
        if self.drawn < FEW_DRAWN:
            return min(outcomes, self.outcomes_without_loss)
        return outcomes * (quantile(level) / quantile(level, self.df)) ** 2


@dataclass(frozen=True)
class DrawnError:
    """The errors of a mean over users of whom some were drawn, and the interval for others."""

    #: The standard error for users like these.
    population: float
    #: The error if all these users had been ranked in full.
    of_users: MeanError
    #: The mean over these users alone, with the error of the draw.
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

        Parameters
        ----------
        drawn
            The users, and which of them were drawn.
        min_values, max_values
            The least and the most that each user may add: the weight times the metric.
        values
            What each user adds where it is known; other values are not used.
        metric
            The metric, whose largest value limits the interval.

        Of four users with values between 0 and 1 two were drawn: they have the values 1 and 1/2.
        The mean loss is 1/4, and each user is expected to have 3/4. The drawn users add their
        unexpected losses of -1/4 and 1/4 for two users each, times sqrt(2 / (2 - 1)).

        >>> from unsample.metrics import parse
        >>> is_drawn = np.array([True, True, False, False])
        >>> users = Drawn(np.ones(4), np.ones(4, dtype=int), counted=is_drawn, known=is_drawn)
        >>> error = DrawnError.of_drawn(
        ...     users,
        ...     min_values=np.zeros(4),
        ...     max_values=np.ones(4),
        ...     values=np.array([1.0, 0.5, 0.0, 0.0]),
        ...     metric=parse("NDCG@10"),
        ... )
        >>> error.draw.value, error.totals.round(3).tolist()
        (0.75, [1.457, 0.043, 0.75, 0.75])
        """
        sure = ~np.isin(drawn.stratum, drawn.open_strata)
        strata = []
        totals = values.astype(np.float64)
        stands_for = drawn.known.astype(np.float64)
        for number in drawn.open_strata:
            here = drawn.stratum == number
            stratum, totals[here], stands_for[here] = _stratum(
                drawn.counted[here],
                min_values=min_values[here],
                max_values=max_values[here],
                values=values[here],
                drawn=drawn.users,
            )
            strata.append(stratum)
        draw = DrawnMean.of(
            strata,
            float(values[sure].sum()),
            weight=float(drawn.weights.sum()),
            drawn=drawn.users,
            metric=metric,
        )
        known_or_middle = np.where(drawn.known, values, (min_values + max_values) / 2.0)
        of_users = _of_users(
            drawn.weights, stands_for, values=known_or_middle, mean=draw.value, metric=metric
        )
        return cls(
            population=math.hypot(of_users.population, draw.error),
            of_users=of_users,
            draw=draw,
            totals=totals,
        )

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return limits of the mean for users like these.

        Two independent errors add up: of these users, and of the draw from them. At each end the
        squares of how far their own limits reach are added (Zou and Donner 2008).
        """
        low_of_users, high_of_users = self.of_users.interval(value, level)
        low_of_draw, high_of_draw = self.draw.interval(level)
        below = math.hypot(value - low_of_users, value - low_of_draw)
        above = math.hypot(value - high_of_users, value - high_of_draw)
        return max(value - below, 0.0), min(value + above, self.of_users.max_value)


@dataclass(frozen=True)
class UserStratum:
    """The estimated total over the users of a stratum, and its variance."""

    #: The total if nobody loses anything, and the largest loss of all users together.
    best: float
    range: float
    #: The estimated loss of all users together.
    loss: float
    #: The variance of the estimate that the drawn users show, and its degrees of freedom.
    drawn_variance: float
    #: The variance that the assumed user adds.
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
        """Return a stratum from the losses of the users that were drawn from it.

        Parameters
        ----------
        max_values, ranges
            The largest value and the largest loss of each user of the stratum.
        counted
            How many of them were drawn.
        mean, variance
            Mean and variance of the losses of the drawn users.
        drawn
            How many users were drawn from all strata.

        From 10 users 5 were drawn, with a mean loss of 0.2 and a variance of 0.1. The total loss
        is 10 * 0.2, with the variance 10^2 (1 - 5/10) / 5 * 0.1.

        >>> stratum = UserStratum.of(
        ...     np.ones(10), np.ones(10), counted=5, mean=0.2, variance=0.1, drawn=5
        ... )
        >>> stratum.best, stratum.loss, round(stratum.drawn_variance, 9), stratum.df
        (10.0, 2.0, 1.0, 4)
        """
        size = len(max_values)
        best = float(max_values.sum())
        range_ = float(ranges.sum())
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
        # miss them about as often if their number were divided by this factor.
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
    *,
    min_values: FloatArray,
    max_values: FloatArray,
    values: FloatArray,
    drawn: int,
) -> tuple[UserStratum, FloatArray, FloatArray]:
    """Return a stratum from its ``counted`` users; ``drawn`` is the number drawn from all strata.

    Also return what each user adds to the estimate, which includes the unexpected loss of counted
    users. Last is the number of users that each user stands for: each for one where nobody is
    counted.
    """
    ranges = max_values - min_values
    losses = (max_values - values)[counted]
    size = len(max_values)
    count = len(losses)
    if not count:
        empty = UserStratum.of(max_values, ranges, counted=0, mean=0.0, variance=0.0, drawn=drawn)
        return empty, (min_values + max_values) / 2.0, np.ones(size)
    mean = float(losses.mean())
    # One user shows no variance. The largest possible one is taken: half the users lose all.
    variance = float((ranges**2).mean()) / 4.0
    small_sample = 1.0
    if count > 1:
        variance = float(losses.var(ddof=1))
        small_sample = math.sqrt(count / (count - 1))
    totals = max_values - mean
    totals[counted] -= size / count * small_sample * (losses - mean)
    stratum = UserStratum.of(
        max_values, ranges, counted=count, mean=mean, variance=variance, drawn=drawn
    )
    return stratum, totals, counted * size / count


def _limits_of_share(share: float, outcomes: float, *, part: float) -> tuple[float, float]:
    """Return limits of a probability from the share of hits (the mid-p limits, Lancaster 1961).

    Each end leaves out half the probability of the observed number itself. So on average no end
    is missed more often than ``part`` allows. Without any hit, or any miss, one end takes both
    parts.

    >>> low, high = _limits_of_share(0.5, 10.0, part=0.025)
    >>> round(low, 3), round(high, 3)
    (0.212, 0.788)
    """
    from scipy.optimize import bisect
    from scipy.special import betainc

    hits = share * outcomes
    misses = (1.0 - share) * outcomes

    def beyond(probability: float, wanted: float) -> float:
        """Return P(more hits) + P(as many hits) / 2 - ``wanted``."""
        at_least = betainc(hits, misses + 1.0, probability) if hits > 0 else 1.0
        more = betainc(hits + 1.0, misses, probability) if misses > 0 else 0.0
        return float(at_least + more) / 2.0 - wanted

    low = bisect(beyond, 0.0, 1.0, args=(part,)) if hits > 0 else 0.0
    high = bisect(beyond, 0.0, 1.0, args=(1.0 - part,)) if misses > 0 else 1.0
    return float(low), float(high)


def _of_users(
    weights: FloatArray,
    stands_for: FloatArray,
    *,
    values: FloatArray,
    mean: float,
    metric: Metric,
) -> MeanError:
    """Return the error of drawing other users like these, if all values were known.

    A user ``stands_for`` a number of users. Users who stand for none, or weigh nothing, are left
    out.
    """
    total = float(weights.sum())
    effective_users = float(weights.sum() ** 2 / (weights @ weights))
    there = (stands_for > 0) & (weights > 0)
    times = stands_for[there]
    values = values[there]
    weights = weights[there]
    count = float(times.sum())
    deviations = (values - mean * weights) / total
    small_sample = math.sqrt(count / (count - 1)) if count > 1 else math.nan
    max_value = max_user_value(metric)
    return MeanError(
        population=small_sample * math.sqrt(float(times @ deviations**2)),
        df=degrees_of_freedom(deviations, times),
        users=effective_users,
        max_value=max_value,
        all_or_nothing=bool(np.isin(values / weights, (0.0, max_value)).all()),
    )
