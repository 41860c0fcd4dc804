"""Who is ranked in full in a guided evaluation: strata, the draw order, and how many are drawn.

**A draw that a budget ends** has an order that is fixed before the first user is ranked. Each
stratum gets draws in proportion to its size times the standard deviation of its values (Neyman
1934). The user at whom the budget ends is left out: this user is likely to be costly, near the top.
The mean over the users before is unbiased, whatever the costs are: the budget was enough for all of
them in any order, so each of them is equally likely to have come first, and the first user is a
uniform draw from the stratum (as in inverse sampling, Haldane 1945).

**A draw that an error settles** begins with a pilot: the first users of each stratum. Their values
tell how many users a second draw needs. Users of the pilot stand for themselves only. The rest of a
stratum is estimated from the second draw alone, so its estimate is unbiased whatever the pilot
showed. (A pooled estimate would be biased: where a pilot happens to vary little, few more users are
drawn, and the mean of the pilot keeps its weight.)
A pilot is small, so its variances are uncertain. Its users get random weights many times (the
Bayesian bootstrap, Rubin 1981), with the same weights for every metric of every model. The share of
replicates in which all metrics are within the error is the probability that they will be, however
they depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample._rounding import rounded_up
from unsample.bounds import Drawn, DrawnError, DrawnMean, UserStratum
from unsample.counts import Targets
from unsample.designs._findings import DesignNotes, Situation, Step
from unsample.designs._user_values import OpenValues
from unsample.metrics import Metric

#: The level of the interval whose half-width is the error.
LEVEL = 0.95
#: Full rankings that each stratum gets first.
_FIRST_OF_STRATUM = 5
_MAX_STRATA = 20
#: The minimum number of users of a pilot in all, and of each stratum.
FEWEST_PILOT = 40
PILOT_OF_STRATUM = 10
#: The variance of a stratum of the pilot is averaged with this many users that have the variance of
#: all strata.
_POOLED = 10.0
#: All metrics together shall be within the error sought with this probability.
_CONFIDENCE = 0.97
#: The number of bootstrap replicates of the pilot from which the probability is estimated.
_REPLICATES = 400
#: The weight of each user of a pilot in a replicate (below 1: the second draw varies as well).
_OF_PILOT = 0.8
#: The weight of each of two more users in a replicate: one with the maximum loss, and one without a
#: loss.
_OF_OTHERS = 0.5
#: Users in a round of the draw: the minimum, and the part of all users not yet drawn. After each
#: round the half-width so far is known.
_ROUND = 16
_ROUND_SHARE = 0.125


# -- strata, and the order of the draw -------------------------------------------------------------


def strata_of(keys: tuple[FloatArray, ...], deviation: FloatArray, *, max_strata: int) -> IntArray:
    """Return groups of users, from 0: sorted by the first key, then by the second.

    All groups have about the same sum of standard deviations, so equally many users are drawn from
    each. Users with equal keys are in one group.

    >>> deviation = np.array([1.0, 1.0, 2.0, 2.0, 2.0])
    >>> strata_of((np.array([0.1, 0.1, 0.2, 0.3, 0.4]),), deviation, max_strata=2)
    array([0, 0, 0, 1, 1])
    """
    rounded = np.stack([key.round(9) for key in keys])
    # Users with equal keys are one kind of users; kinds are sorted by their keys.
    kind = np.unique(rounded, axis=1, return_inverse=True)[1].reshape(-1)
    total = np.bincount(kind, deviation)
    groups = min(max(max_strata, 1), _MAX_STRATA, max(len(total), 1))
    # The middle of each kind, when the sums of all kinds are laid end to end on a line from 0 to 1.
    middle = (np.cumsum(total) - total / 2.0) / max(total.sum(), 1e-300)
    group = np.minimum((middle * groups).astype(np.int64), groups - 1)
    without_gaps = np.unique(group, return_inverse=True)[1].reshape(-1)
    return without_gaps[kind]


def draw_order_of(stratum: IntArray, deviation: FloatArray) -> IntArray:
    """Return the number of each user in the draw, from 1; ``stratum`` has users in random order.

    The first few users of every stratum come first, so that each has a mean and a variance. Then
    strata get draws in proportion to the sum of their standard deviations.

    Here both strata have seven users, and users of the second vary twice as much. After the first
    five users of both, the second stratum gets its draws sooner:

    >>> stratum = np.repeat([1, 2], 7)
    >>> draw_order_of(stratum, np.repeat([1.0, 2.0], 7)).reshape(2, 7)
    array([[ 1,  3,  5,  7,  9, 13, 14],
           [ 2,  4,  6,  8, 10, 11, 12]])
    """
    # Users are drawn by time: each stratum sends its first users between the times -2 and -1, and
    # the others from time 0 on, at a rate in proportion to its sum of standard deviations.
    time = np.empty(len(stratum))
    for number in np.unique(stratum):
        inside = np.flatnonzero(stratum == number)
        rank = np.arange(1, len(inside) + 1)
        rate = max(float(deviation[inside].sum()), 1e-300)
        is_first = rank <= _FIRST_OF_STRATUM
        time[inside] = np.where(is_first, rank / _FIRST_OF_STRATUM - 2.0, rank / rate)
    draw_order = np.empty(len(stratum), dtype=np.int64)
    draw_order[np.lexsort([stratum, time])] = np.arange(1, len(stratum) + 1)
    return draw_order


def next_in_draw_order(
    now: Situation, notes: DesignNotes, *, to_end: IntArray, message: str = ""
) -> Step:
    """Continue with the users drawn so far; when they are ranked, draw the next ones.

    ``to_end`` is how far each target would go next. As many users as certainly fit into the budget
    are ranked together. The rest follow one by one. The user at whom the budget ends does not count
    as drawn.
    """
    left = now.left
    while left > 0 and not ((to_end > now.scored) & (notes.draw_order > 0)).any():
        last = _last_of_round(notes, left)
        if last is None:
            break
        order = notes.draw_order
        drawn_now = (order < 0) & (-order <= last)
        notes = replace(notes, draw_order=np.where(drawn_now, -order, order))
    further = np.where(notes.draw_order > 0, np.maximum(to_end - now.scored, 0), 0)
    if left <= 0:
        ended = np.isin(now.users, np.unique(now.users[further > 0]))
        notes = replace(notes, draw_order=np.where(ended, 0, notes.draw_order))
    # The targets take what they need one after the other, until nothing is left.
    spent = np.minimum(np.cumsum(further), left).astype(np.int64)
    goal = np.asarray(now.scored + np.diff(spent, prepend=0))
    return Step(goal, notes, message=message)


def _last_of_round(notes: DesignNotes, left: float) -> int | None:
    """Return the number of the last user who is drawn next; None if nobody waits.

    All users of a round fit into what is ``left`` of the budget, but a round has at least one user.

    >>> nothing = DesignNotes.empty(4)
    >>> waiting = replace(nothing, draw_order=-np.arange(1, 5), reserved=np.full(4, 100))
    >>> _last_of_round(waiting, 1000), _last_of_round(waiting, 250), _last_of_round(waiting, 50)
    (4, 2, 1)
    """
    waiting = np.flatnonzero((notes.draw_order < 0) & (notes.reserved > 0))
    if not len(waiting):
        return None
    in_order = waiting[np.argsort(-notes.draw_order[waiting], kind="stable")]
    numbers = -notes.draw_order[in_order]
    costs = np.cumsum(notes.reserved[in_order])
    affordable = int(np.searchsorted(costs, left, side="right"))
    last = numbers[-1]
    if affordable < len(numbers):
        # The first target that does not fit belongs to this user, who waits.
        last = max(numbers[affordable] - 1, numbers[0])
    together = max(_ROUND, math.ceil(_ROUND_SHARE * len(waiting)))
    last_together = numbers[min(together, len(numbers)) - 1]
    return int(min(last, last_together))


# -- what is known so far --------------------------------------------------------------------------


def drawn_users(
    notes: DesignNotes, users: IntArray, unknown: BoolArray, weights: FloatArray
) -> Drawn:
    """Return which users were drawn, and which of them stand for others.

    Parameters
    ----------
    notes
        The notes of the design: strata, draw order and pilot.
    users
        The user of each target, as numbers from 0.
    unknown
        Which targets may or may not be in the top K.
    weights
        How much each user counts.
    """
    stratum = np.zeros(len(weights), dtype=np.int64)
    draw_order = np.zeros(len(weights), dtype=np.int64)
    in_pilot = np.zeros(len(weights), dtype=bool)
    stratum[users] = notes.stratum
    draw_order[users] = notes.draw_order
    in_pilot[users] = notes.pilot > 0
    return Drawn(
        weights=weights,
        stratum=np.where(in_pilot, 0, stratum),
        counted=(draw_order > 0) & ~in_pilot,
        known=np.bincount(users, unknown, minlength=len(weights)) == 0,
    )


def so_far(now: Situation, metric: Metric, unknown: BoolArray) -> str:
    """Return the half-width that the draw has reached, for the first model."""
    first = now.of_models()[0]
    values = _values_of(now, first, metrics=[metric], unknown=unknown)
    notes = now.notes.take(first)
    drawn = drawn_users(notes, now.users[first], unknown=unknown[first], weights=values.weights)
    error = DrawnError.of_drawn(
        drawn,
        min_values=values.minimum[:, 0],
        max_values=values.maximum[:, 0],
        values=values.values[:, 0],
        metric=metric,
    )
    return within(metric.name, error.draw.half_width(LEVEL))


def within(name: str, half_width: float) -> str:
    """Return how precisely a metric is known, in words.

    >>> within("HR@10", 0.0531), within("HR@10", 1.002)
    ('HR@10 within 5.4 % so far', 'HR@10 not within 100 % yet')
    """
    if not half_width < 1.0:
        return f"{name} not within 100 % yet"
    return f"{name} within {rounded_up(100.0 * half_width)} % so far"


def _values_of(
    now: Situation, model: slice, *, metrics: Sequence[Metric], unknown: BoolArray
) -> OpenValues:
    """Return what is known of each user's metrics under one model."""
    items = now.others + 1
    ranks = np.where(unknown, items, now.ranks)
    targets = Targets(
        ranks[model],
        items[model],
        sampled=now.others[model],
        users=now.users[model],
        filtered=now.filtered,
    )
    return OpenValues.of(targets, now.notes.take(model), metrics=metrics, relevance=now.relevance)


# -- a draw that an error settles: the pilot, and the second draw ----------------------------------


def pilot_of(notes: DesignNotes, now: Situation) -> DesignNotes:
    """Return the notes of a draw that has only the first users of each stratum."""
    stratum = now.by_user(notes.stratum)
    draw_order = now.by_user(notes.draw_order)
    strata = int(stratum.max())
    of_stratum = max(PILOT_OF_STRATUM, math.ceil(FEWEST_PILOT / max(strata, 1)))
    pilot = np.zeros(len(stratum), dtype=np.int64)
    for number in range(1, strata + 1):
        inside = np.flatnonzero(stratum == number)
        in_order = inside[np.argsort(-draw_order[inside], kind="stable")]
        pilot[in_order[:of_stratum]] = 1
    of_targets = pilot[now.users]
    return replace(notes, draw_order=notes.draw_order * of_targets, pilot=of_targets)


def pilot_is_over(now: Situation, to_end: IntArray) -> bool:
    """Return whether all users of the pilot are ranked, and no others have been drawn yet."""
    draw_order = now.notes.draw_order
    pilot = now.notes.pilot > 0
    if not pilot.any() or draw_order[~pilot].any():
        return False
    ranked = (draw_order[pilot] > 0) & (to_end[pilot] <= now.scored[pilot])
    return bool(ranked.all())


def second_draw(
    now: Situation, metrics: Sequence[Metric], *, unknown: BoolArray, error: float
) -> tuple[DesignNotes, str]:
    """Draw as many users as every metric of every model needs for the error sought.

    Returns
    -------
    The notes with the draw, and a sentence about its size: empty if there is nobody to draw.
    """
    strata = _OpenStrata.of(now, unknown)
    if not strata.rests:
        return now.notes, ""
    foreseen = [
        _Foreseen.of(values, column, metric=metric, strata=strata)
        for values in (
            _values_of(now, model, metrics=metrics, unknown=unknown) for model in now.of_models()
        )
        for column, metric in enumerate(metrics)
    ]
    draws = _fewest_draws(foreseen, strata, error=error)
    numbers = _numbers_of_draw(strata.rests, draws, random_order=now.user_order)
    chosen = numbers > 0
    of_users = np.where(chosen, numbers + int(now.notes.draw_order.max()), 0)
    # Numbers are negative until users are drawn; the pilot keeps its own.
    of_targets = np.where(now.notes.pilot > 0, now.notes.draw_order, -of_users[now.users])
    cost = int(strata.reserved[chosen].sum())
    message = (
        f"{np.count_nonzero(chosen):,} of {int(strata.sizes.sum()):,} open users, at most "
        f"{cost:,} scores more"
    )
    return replace(now.notes, draw_order=of_targets), message


@dataclass(frozen=True, eq=False)
class _OpenStrata:
    """The strata with users who are still open after the pilot."""

    #: Of each stratum, the users beyond the pilot, and the users of the pilot.
    rests: list[IntArray]
    pilots: list[IntArray]
    #: What it costs at most to rank each of all users in full.
    reserved: FloatArray

    @classmethod
    def of(cls, now: Situation, unknown: BoolArray) -> Self:
        stratum = now.by_user(now.notes.stratum)
        in_pilot = now.by_user(now.notes.pilot) > 0
        reserved = now.of_users(np.where(unknown, now.notes.reserved, 0))
        is_open = (stratum > 0) & (reserved > 0) & ~in_pilot
        numbers = np.unique(stratum[is_open])
        return cls(
            rests=[np.flatnonzero((stratum == number) & ~in_pilot) for number in numbers],
            pilots=[np.flatnonzero((stratum == number) & in_pilot) for number in numbers],
            reserved=reserved,
        )

    @property
    def sizes(self) -> IntArray:
        """Return how many users beyond the pilot each stratum has."""
        return np.array([len(rest) for rest in self.rests])


def _fewest_draws(foreseen: Sequence[_Foreseen], strata: _OpenStrata, *, error: float) -> IntArray:
    """Return the fewest draws from each stratum with which all metrics are likely within an error.

    The probability is the share of replicates of the pilot in which all of them are.
    """
    replicates = _replicates([len(pilot) for pilot in strata.pilots])
    # Draws of a stratum are in proportion to its size times the standard deviation of its values,
    # over all metrics.
    share = np.sqrt(sum(metric.shares**2 for metric in foreseen)) + 1e-12
    sizes = strata.sizes
    low, high = 0, int(sizes.sum())
    while high - low > 1:
        middle = (low + high) // 2
        draws = _allocated(middle, share, sizes=sizes)
        widths = np.array([metric.half_widths(draws, replicates) for metric in foreseen])
        probability = float((widths.max(axis=0) <= error).mean())
        if probability >= _CONFIDENCE:
            high = middle
        else:
            low = middle
    return _allocated(high, share, sizes=sizes)


def _allocated(total: int, share: FloatArray, *, sizes: IntArray) -> IntArray:
    """Return how many users each stratum gets, of a total: the allocation of Neyman (1934).

    Strata get draws in proportion to ``share``, which is the size of a stratum times the standard
    deviation of its values: so the mean of all strata has the smallest variance. A stratum gets at
    least a few users, and at most all. Draws for which it has no users go to the other strata, so
    that all users may be drawn.

    Three strata of 100, 100 and 8 users have the standard deviations 0.1, 0.3 and 2.5, so the
    shares are 10, 30 and 20. Of 60 draws the third stratum would get 20, but it has only 8 users.
    The other 52 draws are divided as 10 to 30:

    >>> sizes = np.array([100, 100, 8])
    >>> _allocated(60, sizes * np.array([0.1, 0.3, 2.5]), sizes=sizes)
    array([13, 39,  8])
    """
    draws = sizes.astype(np.float64)
    left = float(total)
    # Strata of which not all users are drawn.
    partial = np.ones(len(sizes), dtype=bool)
    while partial.any():
        wanted = left * share / share[partial].sum()
        full = partial & (wanted >= sizes)
        if not full.any():
            draws[partial] = np.ceil(wanted[partial])
            break
        left -= float(sizes[full].sum())
        partial &= ~full
    return np.minimum(np.maximum(draws.astype(np.int64), _FIRST_OF_STRATUM), sizes)


def _numbers_of_draw(
    rests: Sequence[IntArray], draws: IntArray, *, random_order: IntArray
) -> IntArray:
    """Return the number of each user in the second draw, from 1; 0 for those who are not drawn.

    Of each stratum the first users in a random order are drawn, evenly spread over the draw. So a
    budget that ends the draw leaves each stratum about the same part of its users.

    >>> rests = [np.array([0, 1, 2]), np.array([3, 4, 5])]
    >>> _numbers_of_draw(rests, np.array([1, 3]), random_order=np.arange(6))
    array([2, 0, 0, 1, 3, 4])
    """
    place = np.argsort(random_order)
    time = np.full(len(place), np.inf)
    for rest, count in zip(rests, draws.tolist(), strict=True):
        chosen = rest[np.argsort(place[rest], kind="stable")[:count]]
        time[chosen] = (np.arange(count) + 0.5) / count
    drawn = np.flatnonzero(np.isfinite(time))
    in_turn = drawn[np.lexsort([place[drawn], time[drawn]])]
    numbers = np.zeros(len(place), dtype=np.int64)
    numbers[in_turn] = np.arange(1, len(in_turn) + 1)
    return numbers


@dataclass(frozen=True, eq=False)
class _Foreseen:
    """The half-width of one metric that the pilot predicts for a number of draws."""

    metric: Metric
    #: The sum of the known values of all users outside the open strata, and of the pilot.
    sure: float
    #: How much all users count.
    weight: float
    #: For each stratum, of its users beyond the pilot: their maximum values, and the ranges of
    #: their values.
    maximum: list[FloatArray]
    ranges: list[FloatArray]
    #: For each stratum, the mean and the variance of the losses of its users (a loss is the maximum
    #: minus the value), as the pilot shows them.
    mean: FloatArray
    variance: FloatArray
    #: For each stratum, the losses of its pilot.
    losses: list[FloatArray]
    #: For each stratum, the mean square of the ranges of its users beyond the pilot.
    square_range: FloatArray

    @classmethod
    def of(
        cls, values: OpenValues, column: int, *, metric: Metric, strata: _OpenStrata
    ) -> _Foreseen:
        known = values.values[:, column]
        maximum = values.maximum[:, column]
        ranges = maximum - values.minimum[:, column]
        losses = [(maximum - known)[pilot] for pilot in strata.pilots]
        squares = np.array([float(((loss - loss.mean()) ** 2).sum()) for loss in losses])
        square_range = np.array([float((ranges[rest] ** 2).mean()) for rest in strata.rests])
        freedom = _degrees_of_freedom(losses)
        return cls(
            metric=metric,
            sure=float(known.sum() - known[np.concatenate(strata.rests)].sum()),
            weight=float(values.weights.sum()),
            maximum=[maximum[rest] for rest in strata.rests],
            ranges=[ranges[rest] for rest in strata.rests],
            mean=np.array([float(loss.mean()) for loss in losses]),
            variance=_variance(squares, freedom, square_range=square_range),
            losses=losses,
            square_range=square_range,
        )

    @property
    def _sizes(self) -> IntArray:
        """Return how many users beyond the pilot each stratum has."""
        return np.array([len(values) for values in self.maximum])

    @property
    def shares(self) -> FloatArray:
        """Return the size of each stratum times its standard deviation, relative to the metric.

        A pilot may show a value near zero of a rare metric, and then this metric would take all
        draws. So the divisor is at least the standard error of the pilot.
        """
        in_pilot = np.array([len(losses) for losses in self.losses])
        deviation = self._sizes * np.sqrt(self.variance)
        error = math.sqrt(float((deviation**2 / in_pilot).sum()))
        divisor = max(float(self._total(self.mean)), error, 1e-9 * self.weight)
        return np.asarray(deviation / divisor)

    def half_widths(self, draws: IntArray, replicates: Sequence[FloatArray]) -> FloatArray:
        """Return the half-width in each bootstrap replicate of the pilot.

        It is the half-width that the pilot predicts, times the ratio of the standard error in the
        replicate to that in the pilot, relative to the value in the replicate.
        """
        mean, squares = self._in_replicates(replicates)
        sizes = self._sizes
        # The variance of the total of a stratum is this factor times the variance of its losses.
        factor = sizes * (sizes - draws) / draws
        error = math.sqrt(float(factor @ self.variance))
        freedom = _degrees_of_freedom(self.losses)
        variances = _variance(squares, freedom, square_range=self.square_range)
        errors = np.sqrt(variances @ factor)
        wider = errors / error if error > 0.0 else np.ones(len(errors))
        low, high = self._mean_after(draws).interval(LEVEL)
        values = self._total(mean) / self.weight
        return np.asarray((high - low) / 2.0 * wider / np.maximum(values, 1e-9))

    def _in_replicates(self, replicates: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Return the mean losses and their sums of squared deviations: replicates x strata."""
        shape = len(replicates[0]), len(self.losses)
        mean = np.empty(shape)
        squares = np.empty(shape)
        for number, (weights, losses) in enumerate(zip(replicates, self.losses, strict=True)):
            maximum_loss = math.sqrt(self.square_range[number])
            with_two = np.append(losses, [maximum_loss, 0.0])
            mean[:, number] = weights @ with_two
            squares[:, number] = len(losses) * (weights @ with_two**2 - mean[:, number] ** 2)
        return mean, squares

    def _total(self, mean: FloatArray) -> FloatArray:
        """Return the sum of the values of all users, given mean losses (in the last dimension)."""
        best = self.sure + sum(float(maximum.sum()) for maximum in self.maximum)
        return np.asarray(best - mean @ self._sizes)

    def _mean_after(self, draws: IntArray) -> DrawnMean:
        """Return the mean after so many draws, if they vary as the pilot does."""
        total = int(draws.sum())
        strata = [
            UserStratum.of(
                maximum,
                ranges,
                counted=int(count),
                mean=float(mean),
                variance=float(variance),
                drawn=total,
            )
            for maximum, ranges, count, mean, variance in zip(
                self.maximum, self.ranges, draws, self.mean, self.variance, strict=True
            )
        ]
        return DrawnMean.of(strata, self.sure, weight=self.weight, drawn=total, metric=self.metric)


def _degrees_of_freedom(losses: Sequence[FloatArray]) -> IntArray:
    """Return the degrees of freedom of the variance of each stratum's pilot."""
    return np.array([len(loss) - 1 for loss in losses])


def _replicates(pilots: Sequence[int]) -> list[FloatArray]:
    """Return weights of the users of each stratum's pilot, and of two more: replicates x users.

    The weight of the two, summed over strata, does not depend on the number of strata. The weights
    of a replicate add up to 1 in each stratum.

    >>> first, second = _replicates([10, 12])
    >>> first.shape, second.shape, bool(np.allclose(first.sum(axis=1), 1.0))
    ((400, 12), (400, 14), True)
    """
    rng = np.random.default_rng(0)
    two = np.full(2, _OF_OTHERS / len(pilots))
    return [
        rng.dirichlet(np.append(np.full(size, _OF_PILOT), two), size=_REPLICATES) for size in pilots
    ]


def _variance(squares: FloatArray, freedom: IntArray, *, square_range: FloatArray) -> FloatArray:
    """Return the variance of the losses in each stratum, averaged with the variance of all strata.

    The variance of all strata is relative to the squared ranges. It includes one more user with the
    maximum loss. ``squares`` are sums of squared deviations, a column for each stratum, with these
    degrees of freedom.

    Two strata of ranges 1 have sums of squares 0 and 1.8, with 9 degrees of freedom each. Together,
    with the maximum loss of one more user, the variance is (0 + 1.8 + 1)/(9 + 9 + 1) = 0.147. It
    counts as much as ten users, so the first stratum has (0 + 10 x 0.147)/(9 + 10) = 0.078:

    >>> _variance(np.array([0.0, 1.8]), np.array([9, 9]), square_range=np.ones(2)).round(3)
    array([0.078, 0.172])
    """
    one_more = square_range.mean()
    of_all = (squares.sum(axis=-1) + one_more) / (float(freedom @ square_range) + one_more)
    others = _POOLED * of_all[..., None] * square_range
    return np.asarray((squares + others) / (freedom + _POOLED))
