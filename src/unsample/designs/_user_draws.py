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

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample._rounding import rounded_up
from unsample.bounds import Drawn, DrawnError, DrawnMean, UserStratum
from unsample.counts import Targets
from unsample.designs._findings import DesignNotes, Situation
from unsample.designs._user_values import OpenValues
from unsample.metrics import Metric

#: The level of the interval whose half-width is the error.
LEVEL = 0.95
#: Full rankings that each stratum gets first, and the maximum number of strata.
_FIRST_OF_STRATUM, _MAX_STRATA = 5, 20
#: The minimum number of users of a pilot in all, and of each stratum.
FEWEST_PILOT, PILOT_OF_STRATUM = 40, 10
#: The variance of a stratum of the pilot is averaged with this many users that have the variance of
#: all strata.
_POOLED = 10.0
#: All metrics together shall be within the error sought with this probability. It is estimated from
#: this number of bootstrap replicates of the pilot.
_CONFIDENCE, _REPLICATES = 0.97, 400
#: The weight of each user of a pilot in a replicate (below 1: the second draw varies as well), and
#: of each of two more users: one with the maximum loss, and one without a loss.
_OF_PILOT, _OF_OTHERS = 0.8, 0.5
#: Users in a round of the draw: the minimum, and the part of all users not yet drawn. After each
#: round the half-width so far is known.
_ROUND, _ROUND_SHARE = 16, 0.125


def strata_of(keys: tuple[FloatArray, ...], deviation: FloatArray, max_strata: int) -> IntArray:
    """Return groups of users, from 0: sorted by the first key, then by the second.

    All groups have about the same sum of standard deviations, so equally many users are drawn from
    each. Users with equal keys are in one group.
    """
    rounded = np.stack([key.round(9) for key in keys])
    key = np.unique(rounded, axis=1, return_inverse=True)[1].reshape(-1)
    total = np.bincount(key, deviation)
    number = min(max(max_strata, 1), _MAX_STRATA, max(len(total), 1))
    middle = (np.cumsum(total) - total / 2.0) / max(total.sum(), 1e-300)
    group = np.minimum((middle * number).astype(np.int64), number - 1)
    return np.unique(group, return_inverse=True)[1].reshape(-1)[key]


def draw_order_of(stratum: IntArray, deviation: FloatArray) -> IntArray:
    """Return the number of each user in the draw, from 1; ``stratum`` has users in random order.

    The first few users of every stratum come first, so that each has a mean and a variance. Then
    strata get draws in proportion to the sum of their standard deviations.
    """
    time = np.empty(len(stratum))
    for number in np.unique(stratum):
        inside = np.flatnonzero(stratum == number)
        rank = np.arange(1, len(inside) + 1)
        share = max(float(deviation[inside].sum()), 1e-300)
        first = rank <= _FIRST_OF_STRATUM
        time[inside] = np.where(first, rank / _FIRST_OF_STRATUM - 2.0, rank / share)
    draw_order = np.empty(len(stratum), dtype=np.int64)
    draw_order[np.lexsort([stratum, time])] = np.arange(1, len(stratum) + 1)
    return draw_order


def next_in_draw_order(now: Situation, goal: IntArray) -> IntArray:
    """Continue with the users drawn so far; when they are ranked, draw the next ones.

    As many users as certainly fit into the budget are ranked together. The rest follow one by one.
    The user at whom the budget ends does not count as drawn.
    """
    notes, left = now.notes, math.inf
    if now.allowed is not None:
        left = now.allowed - int(now.scored.sum())
    while left > 0 and not ((goal > now.scored) & (notes.draw_order > 0)).any():
        waiting = np.flatnonzero((notes.draw_order < 0) & (notes.reserved > 0))
        if not len(waiting):
            break
        waiting = waiting[np.argsort(-notes.draw_order[waiting], kind="stable")]
        numbers = -notes.draw_order[waiting]
        fit = int(np.searchsorted(np.cumsum(notes.reserved[waiting]), left, side="right"))
        together = max(_ROUND, math.ceil(_ROUND_SHARE * len(waiting)))
        last = int(numbers[-1] if fit == len(numbers) else max(numbers[fit] - 1, numbers[0]))
        last = min(last, int(numbers[min(together, len(numbers)) - 1]))
        order = notes.draw_order
        notes = replace(notes, draw_order=np.where(-order <= last, np.abs(order), order))
    step = np.where(notes.draw_order > 0, np.maximum(goal - now.scored, 0), 0)
    spent = np.minimum(np.cumsum(step), left).astype(np.int64)
    if left <= 0:
        ended = np.unique(now.users[step > 0])
        order = np.where(np.isin(now.users, ended), 0, notes.draw_order)
        notes = replace(notes, draw_order=order)
    now.notes = notes
    return np.asarray(now.scored + np.diff(spent, prepend=0))


def drawn_users(
    notes: DesignNotes, users: IntArray, unknown: BoolArray, weights: FloatArray
) -> Drawn:
    """Return which users were drawn, and which of them stand for others."""
    stratum, draw_order, pilot = (np.zeros(len(weights), dtype=np.int64) for _ in range(3))
    stratum[users] = notes.stratum
    draw_order[users] = notes.draw_order
    pilot[users] = notes.pilot
    known = np.bincount(users, unknown, minlength=len(weights)) == 0
    alone = pilot > 0
    return Drawn(weights, np.where(alone, 0, stratum), (draw_order > 0) & ~alone, known)


def so_far(now: Situation, metric: Metric, unknown: BoolArray) -> str:
    """Return the half-width that the draw has reached, for the first model."""
    values, first = _values(now, [metric], unknown)[0], now.of_models()[0]
    drawn = drawn_users(now.notes.take(first), now.users[first], unknown[first], values.weights)
    columns = (values.minimum, values.maximum, values.values)
    minimum, maximum, known = (each[:, 0] for each in columns)
    share = DrawnError.of_drawn(drawn, minimum, maximum, known, metric).draw.half_width(LEVEL)
    return f"{metric} within {rounded_up(100.0 * share)} % so far"


def pilot_of(notes: DesignNotes, now: Situation) -> DesignNotes:
    """Return the notes of a draw that has only the first users of each stratum."""
    stratum, draw_order = now.by_user(notes.stratum), now.by_user(notes.draw_order)
    each = max(PILOT_OF_STRATUM, math.ceil(FEWEST_PILOT / max(int(stratum.max()), 1)))
    pilot = np.zeros(len(stratum), dtype=np.int64)
    for number in range(1, int(stratum.max()) + 1):
        inside = np.flatnonzero(stratum == number)
        pilot[inside[np.argsort(-draw_order[inside], kind="stable")[:each]]] = 1
    pilot = pilot[now.users]
    return replace(notes, draw_order=notes.draw_order * pilot, pilot=pilot)


def pilot_is_over(now: Situation, goal: IntArray) -> bool:
    """Return whether all users of the pilot are ranked, and no others have been drawn yet."""
    draw_order, pilot = now.notes.draw_order, now.notes.pilot > 0
    ranked = (draw_order > 0) & (goal <= now.scored)
    return bool(pilot.any() and ranked[pilot].all() and not draw_order[~pilot].any())


def second_draw(
    now: Situation, metrics: Sequence[Metric], unknown: BoolArray, error: float
) -> DesignNotes:
    """Draw as many users as every metric of every model needs for the error sought."""
    notes = now.notes
    stratum, pilot = now.by_user(notes.stratum), now.by_user(notes.pilot) > 0
    reserved = now.of_users(np.where(unknown, notes.reserved, 0))
    numbers = np.unique(stratum[(stratum > 0) & (reserved > 0) & ~pilot])
    if not len(numbers):
        return notes
    rests = [np.flatnonzero((stratum == each) & ~pilot) for each in numbers]
    firsts = [np.flatnonzero((stratum == each) & pilot) for each in numbers]
    foreseen = [
        _Foreseen.of(values, column, metric, rests, firsts)
        for values in _values(now, metrics, unknown)
        for column, metric in enumerate(metrics)
    ]
    replicates = _replicates([len(first) for first in firsts])
    # Draws of a stratum are in proportion to its size times the standard deviation of its values,
    # over all metrics.
    share = np.sqrt(sum(each.shares**2 for each in foreseen)) + 1e-12
    sizes = np.array([len(rest) for rest in rests])
    low, high = 0, int(sizes.sum())
    while high - low > 1:
        middle = (low + high) // 2
        draws = _allocated(middle, share, sizes)
        widths = np.array([each.half_widths(draws, replicates) for each in foreseen])
        enough = float((widths.max(axis=0) <= error).mean()) >= _CONFIDENCE
        low, high = (low, middle) if enough else (middle, high)
    draws = _allocated(high, share, sizes)
    rank, time = np.argsort(now.user_order), np.full(len(stratum), np.inf)
    for rest, count in zip(rests, draws.tolist(), strict=True):
        chosen = rest[np.argsort(rank[rest], kind="stable")[:count]]
        time[chosen] = (np.arange(count) + 0.5) / count
    chosen, draw_order = np.flatnonzero(np.isfinite(time)), np.zeros(len(stratum), dtype=np.int64)
    draw_order[chosen[np.lexsort([rank[chosen], time[chosen]])]] = np.arange(1, len(chosen) + 1)
    draw_order[chosen] += int(notes.draw_order.max())
    cost = int(reserved[chosen].sum())
    now.said = f"{len(chosen):,} of {int(sizes.sum()):,} open users, at most {cost:,} scores more"
    new_order = np.where(notes.pilot > 0, notes.draw_order, -draw_order[now.users])
    return replace(notes, draw_order=new_order)


def _allocated(total: int, share: FloatArray, sizes: IntArray) -> IntArray:
    """Return how many users each stratum gets: at least a few, and at most all.

    Draws for which a stratum has no users go to the other strata, so that all users may be drawn.
    """
    waiting = np.ones(len(sizes), dtype=bool)
    wanted, left = sizes.astype(np.float64), float(total)
    while waiting.any():
        part = left * share / share[waiting].sum()
        full = waiting & (part >= sizes)
        if not full.any():
            wanted[waiting] = np.ceil(part[waiting])
            break
        left -= float(sizes[full].sum())
        waiting &= ~full
    return np.minimum(np.maximum(wanted.astype(np.int64), _FIRST_OF_STRATUM), sizes)


def _values(now: Situation, metrics: Sequence[Metric], unknown: BoolArray) -> list[OpenValues]:
    """Return what is known of each user's metrics, model by model."""
    items = now.others + 1
    ranks, found = np.where(unknown, items, now.ranks), []
    for here in now.of_models():
        mine = Targets(
            ranks[here], items[here], now.others[here], now.users[here], filtered=now.filtered
        )
        found.append(OpenValues.of(mine, now.notes.take(here), metrics, now.relevance))
    return found


@dataclass(frozen=True, eq=False)
class _Foreseen:
    """The half-width of one metric that the pilot predicts for a number of draws."""

    metric: Metric
    sure: float
    weight: float
    #: For each stratum, of its users beyond the pilot: their maximum values, the ranges of their
    #: values, and the mean and the variance of their losses (the maximum minus the value). Then the
    #: losses of the pilot itself, and the mean square of the ranges of the other users.
    maximum: list[FloatArray]
    ranges: list[FloatArray]
    mean: FloatArray
    variance: FloatArray
    losses: list[FloatArray]
    square_range: FloatArray

    @classmethod
    def of(
        cls,
        values: OpenValues,
        column: int,
        metric: Metric,
        rests: Sequence[IntArray],
        firsts: Sequence[IntArray],
    ) -> _Foreseen:
        known, maximum = values.values[:, column], values.maximum[:, column]
        ranges = maximum - values.minimum[:, column]
        losses = [(maximum - known)[each] for each in firsts]
        squares = np.array([float(((each - each.mean()) ** 2).sum()) for each in losses])
        spare = np.array([len(each) - 1 for each in losses])
        square_range = np.array([float((ranges[each] ** 2).mean()) for each in rests])
        return cls(
            metric,
            float(known.sum() - known[np.concatenate(rests)].sum()),
            float(values.weights.sum()),
            [maximum[each] for each in rests],
            [ranges[each] for each in rests],
            np.array([float(each.mean()) for each in losses]),
            _variance(squares, spare, square_range),
            losses,
            square_range,
        )

    @property
    def shares(self) -> FloatArray:
        """Return the size of each stratum times its standard deviation, relative to the metric.

        A pilot may show a value near zero of a rare metric, and then this metric would take all
        draws. So the divisor is at least the standard error of the pilot.
        """
        sizes, pilot = (
            np.array([len(each) for each in some]) for some in (self.maximum, self.losses)
        )
        deviation = sizes * np.sqrt(self.variance)
        error = math.sqrt(float((deviation**2 / pilot).sum()))
        divisor = max(float(self._total(self.mean)), error, 1e-9 * self.weight)
        return np.asarray(deviation / divisor)

    def half_widths(self, draws: IntArray, replicates: Sequence[FloatArray]) -> FloatArray:
        """Return the half-width in each bootstrap replicate of the pilot.

        It is the half-width that the pilot predicts, times the ratio of the standard error in the
        replicate to that in the pilot, relative to the value in the replicate.
        """
        sizes = np.array([len(each) for each in self.maximum])
        spare = np.array([len(each) - 1 for each in self.losses])
        mean, squares = np.empty((2, len(replicates[0]), len(sizes)))
        for number, (weights, losses) in enumerate(zip(replicates, self.losses, strict=True)):
            with_two = np.append(losses, [math.sqrt(self.square_range[number]), 0.0])
            mean[:, number] = weights @ with_two
            squares[:, number] = len(losses) * (weights @ with_two**2 - mean[:, number] ** 2)
        left = sizes * (sizes - draws) / draws
        error = math.sqrt(float(left @ self.variance))
        errors = np.sqrt(_variance(squares, spare, self.square_range) @ left)
        wider = errors / error if error > 0.0 else np.ones(len(errors))
        low, high = self._mean_after(draws).interval(LEVEL)
        values = self._total(mean) / self.weight
        return np.asarray((high - low) / 2.0 * wider / np.maximum(values, 1e-9))

    def _total(self, mean: FloatArray) -> FloatArray:
        """Return the sum of the values of all users, given mean losses (in the last dimension)."""
        sizes = np.array([len(each) for each in self.maximum])
        best = self.sure + sum(float(each.sum()) for each in self.maximum)
        return np.asarray(best - mean @ sizes)

    def _mean_after(self, draws: IntArray) -> DrawnMean:
        """Return the mean after so many draws, if means and variances are those of the pilot."""
        total = int(draws.sum())
        strata = zip(self.maximum, self.ranges, draws, self.mean, self.variance, strict=True)
        parts = [
            UserStratum.of(maximum, ranges, int(count), float(mean), float(variance), total)
            for maximum, ranges, count, mean, variance in strata
        ]
        return DrawnMean.of(parts, self.sure, self.weight, total, self.metric)


def _replicates(pilots: Sequence[int]) -> list[FloatArray]:
    """Return weights of the users of each stratum's pilot, and of two more: replicates x users.

    The weight of the two, summed over strata, does not depend on the number of strata.
    """
    rng, two = np.random.default_rng(0), np.full(2, _OF_OTHERS / len(pilots))
    return [
        rng.dirichlet(np.append(np.full(size, _OF_PILOT), two), size=_REPLICATES) for size in pilots
    ]


def _variance(squares: FloatArray, spare: IntArray, square_range: FloatArray) -> FloatArray:
    """Return the variance of the losses in each stratum, averaged with the variance of all strata.

    The variance of all strata is relative to the squared ranges. It includes one more user with the
    maximum loss. ``squares`` are sums of squared deviations, a column for each stratum.
    """
    one_more = square_range.mean()
    of_all = (squares.sum(axis=-1) + one_more) / (float(spare @ square_range) + one_more)
    others = _POOLED * of_all[..., None] * square_range
    return np.asarray((squares + others) / (spare + _POOLED))
