"""The error of a mean over users of whom some were drawn at random to be ranked in full.

For a user who was not drawn, a least and a greatest value are known. So only the loss is estimated,
the greatest value minus the true one: its mean over a stratum is that of the users drawn from it
(the difference estimator of survey sampling). The error comes from drawing alone, for any P(R).

**No false certainty.** Where all drawn users of a stratum are alike, its variance seems to be zero.
So one more user is assumed, who lost all that could be lost. Limits are those of a share of so many
outcomes as would have the variance (Korn and Graubard 1998), and stay within what is possible. With
fewer than ten users drawn no variance is trusted: each counts as one outcome of all or nothing.

**Two models, one draw.** ``totals`` give every user a number: what is expected of the user, minus
the surprise of those drawn, times how many users each stands for. Their mean is the estimate, and
they vary from user to user as it varies from draw to draw and from users to other users. So the
error of a difference is that of the mean of the users' differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray, check_level
from unsample.bounds._limits import quantile
from unsample.bounds._means import MeanError, degrees_of_freedom, most_of
from unsample.metrics import Metric

#: With fewer users drawn, no variance is trusted.
FEW_DRAWN = 10


@dataclass(frozen=True, eq=False)
class Drawn:
    """Users of whom some were drawn: what their values may be, and what they are where known."""

    #: How much each user counts.
    weights: FloatArray
    #: The stratum of each user, from 1; 0 for those whose value was known without a draw.
    stratum: IntArray
    #: Who was drawn and stands for the stratum.
    counted: BoolArray
    #: Whose value is known.
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

    #: The mean if nobody loses anything, how much all may lose, and the estimated share of that
    #: which is lost.
    best: float
    stake: float
    lost: float
    #: The standard error, and its degrees of freedom.
    error: float
    freedom: float
    #: How many users were drawn that stand for others, and how many outcomes of all or nothing they
    #: count as where none of them lost anything.
    drawn: int
    alike: float
    #: The greatest value that a user could have.
    most: float

    @classmethod
    def of(
        cls, strata: Sequence[Stratum], sure: float, weight: float, drawn: int, metric: Metric
    ) -> DrawnMean:
        """Return the mean of ``sure`` (what is known for certain) and strata, over a ``weight``."""
        best = sure + sum(part.best for part in strata)
        stake = sum(part.stake for part in strata)
        # Few users may stand for more than can be lost: the mean stays within what is certain.
        lost = min(max(sum(part.lost for part in strata), 0.0), stake)
        seen, assumed = sum(part.seen for part in strata), sum(part.assumed for part in strata)
        squares = sum(part.seen**2 / part.freedom for part in strata)
        return cls(
            best=best / weight,
            stake=stake / weight,
            lost=lost / stake if stake > 0 else 0.0,
            error=math.sqrt(seen + assumed) / weight,
            freedom=seen**2 / squares if squares > 0 else float(max(drawn - 1, 1)),
            drawn=drawn,
            # If no loss was seen, the assumed user is all of the variance.
            alike=stake**2 / (drawn * assumed) if assumed * drawn > 0 else math.inf,
            most=most_of(metric),
        )

    @property
    def value(self) -> float:
        """Return the estimate."""
        return self.best - self.lost * self.stake

    def interval(self, level: float) -> tuple[float, float]:
        """Return limits of the mean."""
        level, value = check_level(level), self.value
        if self.stake <= 0.0 or self.error <= 0.0:
            return value, value
        if not self.drawn:
            return self.best - self.stake, min(self.best, self.most)
        low, high = _limits_of_share(self.lost, self._outcomes(level), (1.0 - level) / 2.0)
        ends = self.best - self.stake * high, self.best - self.stake * low
        return min(ends[0], value), max(min(ends[1], self.most), value)

    def half_width(self, level: float) -> float:
        """Return half the width of the interval, relative to the value."""
        low, high = self.interval(level)
        return (high - low) / 2.0 / max(abs(self.value), 1e-300)

    def _outcomes(self, level: float) -> float:
        """Return how many outcomes of all or nothing would have the variance."""
        # The assumed user is on both sides of the ratio.
        square = self.lost * (1.0 - self.lost) + 1.0 / self.drawn
        found = square * (self.stake / self.error) ** 2
        if self.drawn < FEW_DRAWN:
            return min(found, self.alike)
        return found * (quantile(level) / quantile(level, self.freedom)) ** 2


@dataclass(frozen=True)
class DrawnError:
    """The errors of a mean over users of whom some were drawn, and the interval for others."""

    #: The standard error for users like these, and its part if all were ranked in full.
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
        least: FloatArray,
        most: FloatArray,
        values: FloatArray,
        metric: Metric,
    ) -> DrawnError:
        """Return the error of a mean over users.

        ``least`` and ``most`` limit what users may have (their weight times their metric), and
        ``values`` is what they have. Values count only where they are known.
        """
        sure = ~np.isin(drawn.stratum, drawn.open_strata)
        parts, totals = [], values.astype(np.float64)
        stands_for = drawn.known.astype(np.float64)
        for number in drawn.open_strata:
            here = drawn.stratum == number
            part, totals[here], stands_for[here] = _stratum(
                drawn.counted[here], least[here], most[here], values[here], drawn.users
            )
            parts.append(part)
        draw = DrawnMean.of(
            parts, float(values[sure].sum()), float(drawn.weights.sum()), drawn.users, metric
        )
        middle = np.where(drawn.known, values, (least + most) / 2.0)
        usual = _of_users(drawn.weights, stands_for, middle, draw.value, metric)
        return cls(math.hypot(usual.population, draw.error), usual, draw, totals)

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return limits of the mean for users like these.

        Two independent errors add up. At each end, each error reaches as far as its own limits (Zou
        and Donner 2008).
        """
        ends = zip(self.of_users.interval(value, level), self.draw.interval(level), strict=True)
        low, high = (math.hypot(value - users, value - these) for users, these in ends)
        return max(value - low, 0.0), min(value + high, self.of_users.most)


@dataclass(frozen=True)
class Stratum:
    """What is known, or foreseen, of the total over the users of a stratum."""

    #: The total if nobody loses anything, how much all may lose, and the estimated loss.
    best: float
    stake: float
    lost: float
    #: The variance of the estimate: that of the drawn users, and that of the assumed one.
    seen: float
    assumed: float
    freedom: int = 1

    @classmethod
    def of(
        cls,
        most: FloatArray,
        stakes: FloatArray,
        counted: int,
        mean: float,
        variance: float,
        drawn: int,
    ) -> Stratum:
        """Return a stratum from which so many users are ``counted``, of all that are ``drawn``.

        ``most`` and ``stakes`` are what its users may have, and may lose; ``mean`` and ``variance``
        are those of the losses of the users that are counted.
        """
        size, best, stake = len(most), float(most.sum()), float(stakes.sum())
        if not counted:
            return cls(best, stake, stake / 2.0, 0.0, stake**2 / 4.0)
        share = counted / size
        # A draw misses all of m users with probability (1 - share)^m. Independent outcomes would
        # do so about as often if there were more of them by this factor.
        missed = share / -math.log1p(-share) if share < 1.0 else 0.0
        return cls(
            best,
            stake,
            size * mean,
            size**2 * (1.0 - share) / counted * variance,
            size**2 * missed / counted * float((stakes**2).mean()) / drawn,
            max(counted - 1, 1),
        )


def _stratum(
    counted: BoolArray, least: FloatArray, most: FloatArray, values: FloatArray, drawn: int
) -> tuple[Stratum, FloatArray, FloatArray]:
    """Return what the users who are counted tell of their stratum, of all that are ``drawn``.

    Also what each user adds to the estimate, the surprise of those counted included, and for how
    many users each stands. Where nobody is counted, everyone stands for one.
    """
    stakes, losses = most - least, (most - values)[counted]
    size, count = len(most), len(losses)
    if not count:
        empty = Stratum.of(most, stakes, 0, 0.0, 0.0, drawn)
        return empty, (least + most) / 2.0, np.ones(size)
    mean, alone = float(losses.mean()), float((stakes**2).mean()) / 4.0
    variance = float(losses.var(ddof=1)) if count > 1 else alone
    few = math.sqrt(count / (count - 1)) if count > 1 else 1.0
    totals = most - mean
    totals[counted] -= size / count * few * (losses - mean)
    part = Stratum.of(most, stakes, count, mean, variance, drawn)
    return part, totals, counted * size / count


def _limits_of_share(share: float, outcomes: float, part: float) -> tuple[float, float]:
    """Return limits of a probability, from so many outcomes (the mid-p limits, Lancaster 1961).

    Each end leaves out half the chance of what was seen itself. So on average no end takes more
    than its part. Where nothing was seen, one end takes both parts.
    """
    from scipy.optimize import bisect
    from scipy.special import betainc

    hits, misses = share * outcomes, (1.0 - share) * outcomes

    def beyond(chance: float, wanted: float) -> float:
        """Return the chance of more hits, and half that of as many, less what is wanted."""
        at_least = betainc(hits, misses + 1.0, chance) if hits > 0 else 1.0
        more = betainc(hits + 1.0, misses, chance) if misses > 0 else 0.0
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
        few * math.sqrt(float(times @ deviations**2)),
        degrees_of_freedom(deviations, times),
        effective,
        most_of(metric),
        bool(np.isin(values / weights, (0.0, most_of(metric))).all()),
    )
