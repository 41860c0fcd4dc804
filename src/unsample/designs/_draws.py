"""Who is ranked in full in a guided evaluation: strata, turns, and how many are drawn.

**A draw that a budget ends** has an order that is fixed before the first user is ranked. Each
stratum gets draws in proportion to its size times the spread of its values (Neyman 1934). The user
at whom the budget ends is likely to be a costly one, near the top, and is left out. The mean over
the users before is unbiased, whatever the costs are: the budget was enough for all of them in any
order, so each of them is equally likely to have come first, and the first user is a uniform draw
from the stratum (as in inverse sampling, Haldane 1945).

**A draw that an error settles** begins with a pilot: the first users of each stratum. Their values
tell how many users a second draw needs. Those of the pilot stand for themselves only. The rest of a
stratum is estimated from the second draw alone, so it is unbiased whatever the pilot showed.
(Pooling both is not: where a pilot happens to vary little, little is drawn, and its mean stays.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.bounds import Drawn, DrawnError, DrawnMean, Stratum
from unsample.designs._findings import Notes, Situation
from unsample.designs._values import OpenValues
from unsample.evidence import Targets
from unsample.metrics import Metric

#: The level of the interval whose half-width is the error.
LEVEL = 0.95
#: Full rankings that each stratum gets first, and most strata.
_FIRST_OF_STRATUM, _MOST_STRATA = 5, 20
#: The fewest users of a pilot in all, and of each stratum.
FEWEST_PILOT, PILOT_OF_STRATUM = 40, 10
#: The variance of a stratum of the pilot is averaged with this many users that have that of all.
_POOLED = 10.0
#: The part of the error sought that is foreseen: what the second draw shows varies by the rest.
_FORESEEN = 0.72
#: Users in a round of the draw: the least, and as a part of those who wait. After each round the
#: half-width so far is known.
_ROUND, _ROUND_SHARE = 16, 0.125


def strata_of(keys: tuple[FloatArray, ...], spread: FloatArray, most: int) -> IntArray:
    """Return groups of users, from 0: sorted by the first key, then by the second.

    All groups have about the same sum of spreads, so equally many users are drawn from each. Users
    with equal keys are in one group.
    """
    rounded = np.stack([key.round(9) for key in keys])
    place = np.unique(rounded, axis=1, return_inverse=True)[1].reshape(-1)
    total = np.bincount(place, spread)
    number = min(max(most, 1), _MOST_STRATA, max(len(total), 1))
    middle = (np.cumsum(total) - total / 2.0) / max(total.sum(), 1e-300)
    group = np.minimum((middle * number).astype(np.int64), number - 1)
    return np.unique(group, return_inverse=True)[1].reshape(-1)[place]


def turns_of(stratum: IntArray, spread: FloatArray) -> IntArray:
    """Return the place of each user in the draw, from 1; ``stratum`` has users in random order.

    The first few users of every stratum come first, so that each has a mean and a variance. Then
    strata get draws in proportion to the sum of their spreads.
    """
    time = np.empty(len(stratum))
    for number in np.unique(stratum):
        inside = np.flatnonzero(stratum == number)
        place = np.arange(1, len(inside) + 1)
        share = max(float(spread[inside].sum()), 1e-300)
        first = place <= _FIRST_OF_STRATUM
        time[inside] = np.where(first, place / _FIRST_OF_STRATUM - 2.0, place / share)
    turn = np.empty(len(stratum), dtype=np.int64)
    turn[np.lexsort([stratum, time])] = np.arange(1, len(stratum) + 1)
    return turn


def next_in_turn(now: Situation, goal: IntArray) -> IntArray:
    """Continue with the users whose turn it is; when they are done, with the next ones.

    As many users as certainly fit into the budget are ranked together. The rest follow one by one.
    When the budget ends, the user at whom it ended is not drawn.
    """
    notes, left = now.notes, math.inf
    if now.allowed is not None:
        left = now.allowed - int(now.scored.sum())
    while not ((goal > now.scored) & (notes.turn > 0)).any():
        waiting = np.flatnonzero((notes.turn < 0) & (notes.reserved > 0))
        if not len(waiting):
            break
        waiting = waiting[np.argsort(-notes.turn[waiting], kind="stable")]
        turns = -notes.turn[waiting]
        fit = int(np.searchsorted(np.cumsum(notes.reserved[waiting]), left, side="right"))
        together = max(_ROUND, math.ceil(_ROUND_SHARE * len(waiting)))
        last = int(turns[-1] if fit == len(turns) else max(turns[fit] - 1, turns[0]))
        last = min(last, int(turns[min(together, len(turns)) - 1]))
        notes = replace(notes, turn=np.where(-notes.turn <= last, np.abs(notes.turn), notes.turn))
    step = np.where(notes.turn > 0, np.maximum(goal - now.scored, 0), 0)
    spent = np.minimum(np.cumsum(step), left).astype(np.int64)
    if left <= 0:
        ended = np.unique(now.users[step > 0])
        notes = replace(notes, turn=np.where(np.isin(now.users, ended), 0, notes.turn))
    now.notes = notes
    return np.asarray(now.scored + np.diff(spent, prepend=0))


def drawn_users(notes: Notes, users: IntArray, unknown: BoolArray, weights: FloatArray) -> Drawn:
    """Return which users were drawn, and which of them stand for others."""
    stratum, turn, pilot = (np.zeros(len(weights), dtype=np.int64) for _ in range(3))
    stratum[users], turn[users], pilot[users] = notes.stratum, notes.turn, notes.pilot
    known = np.bincount(users, unknown, minlength=len(weights)) == 0
    alone = pilot > 0
    return Drawn(weights, np.where(alone, 0, stratum), (turn > 0) & ~alone, known)


def so_far(now: Situation, metric: Metric, unknown: BoolArray) -> str:
    """Return the half-width that the draw has come to, for the first model."""
    values, first = _values(now, [metric], unknown)[0], now.of_models()[0]
    drawn = drawn_users(now.notes.take(first), now.users[first], unknown[first], values.weights)
    least, most, known = (each[:, 0] for each in (values.least, values.most, values.values))
    share = DrawnError.of_drawn(drawn, least, most, known, metric).draw.half_width(LEVEL)
    return f"{metric} within {100.0 * share:.2g} % so far"


def pilot_of(notes: Notes, now: Situation) -> Notes:
    """Return the notes of a draw of which only the first users of each stratum have their turn."""
    stratum, turn = now.by_user(notes.stratum), now.by_user(notes.turn)
    each = max(PILOT_OF_STRATUM, math.ceil(FEWEST_PILOT / max(int(stratum.max()), 1)))
    pilot = np.zeros(len(stratum), dtype=np.int64)
    for number in range(1, int(stratum.max()) + 1):
        inside = np.flatnonzero(stratum == number)
        pilot[inside[np.argsort(-turn[inside], kind="stable")[:each]]] = 1
    pilot = pilot[now.users]
    return replace(notes, turn=notes.turn * pilot, pilot=pilot)


def pilot_is_over(now: Situation, goal: IntArray) -> bool:
    """Return whether all users of the pilot are ranked, and no others have their turn yet."""
    turn, pilot = now.notes.turn, now.notes.pilot > 0
    ranked = (turn > 0) & (goal <= now.scored)
    return bool(pilot.any() and ranked[pilot].all() and not turn[~pilot].any())


def second_draw(
    now: Situation, metrics: Sequence[Metric], unknown: BoolArray, error: float
) -> Notes:
    """Give as many users their turn as every metric of every model needs for the error sought."""
    notes = now.notes
    stratum, pilot = now.by_user(notes.stratum), now.by_user(notes.pilot) > 0
    reserved = now.of_users(np.where(unknown, notes.reserved, 0))
    numbers = np.unique(stratum[(stratum > 0) & (reserved > 0) & ~pilot])
    if not len(numbers):
        return notes
    rests = [np.flatnonzero((stratum == each) & ~pilot) for each in numbers]
    firsts = [np.flatnonzero((stratum == each) & pilot) for each in numbers]
    foreseen = [
        _Foreseen.of(values, place, metric, rests, firsts)
        for values in _values(now, metrics, unknown)
        for place, metric in enumerate(metrics)
    ]
    # Each stratum in proportion to its size times the spread of its values, over all metrics.
    share = np.sqrt(sum(each.shares**2 for each in foreseen)) + 1e-12
    sizes = np.array([len(rest) for rest in rests])
    low, high = 0, int(sizes.sum())
    while high - low > 1:
        middle = (low + high) // 2
        draws = _allocated(middle, share, sizes)
        enough = all(each.half_width(draws) <= _FORESEEN * error for each in foreseen)
        low, high = (low, middle) if enough else (middle, high)
    draws = _allocated(high, share, sizes)
    place, time = np.argsort(now.user_order), np.full(len(stratum), np.inf)
    for rest, count in zip(rests, draws.tolist(), strict=True):
        chosen = rest[np.argsort(place[rest], kind="stable")[:count]]
        time[chosen] = (np.arange(count) + 0.5) / count
    chosen, turn = np.flatnonzero(np.isfinite(time)), np.zeros(len(stratum), dtype=np.int64)
    turn[chosen[np.lexsort([place[chosen], time[chosen]])]] = np.arange(1, len(chosen) + 1)
    turn[chosen] += int(notes.turn.max())
    cost = int(reserved[chosen].sum())
    now.said = f"{len(chosen):,} of {int(sizes.sum()):,} open users, at most {cost:,} scores more"
    return replace(notes, turn=np.where(notes.pilot > 0, notes.turn, -turn[now.users]))


def _allocated(total: int, share: FloatArray, sizes: IntArray) -> IntArray:
    """Return how many users each stratum gets: at least a few, and at most all."""
    wanted = np.ceil(total * share / share.sum()).astype(np.int64)
    return np.asarray(np.minimum(np.maximum(wanted, _FIRST_OF_STRATUM), sizes))


def _values(now: Situation, metrics: Sequence[Metric], unknown: BoolArray) -> list[OpenValues]:
    """Return what is known of each user's metrics, model by model."""
    items = now.others + 1
    ranks, found = np.where(unknown, items, 1 + now.beaten), []
    for here in now.of_models():
        mine = Targets(
            ranks[here], items[here], now.others[here], now.users[here], filtered=now.filtered
        )
        found.append(OpenValues.of(mine, now.notes.take(here), metrics, now.relevance))
    return found


@dataclass(frozen=True, eq=False)
class _Foreseen:
    """What the pilot tells of one metric: how far it will be known from so many draws."""

    metric: Metric
    sure: float
    weight: float
    #: For each stratum, of its users beyond the pilot: the most they may have, what they may lose,
    #: and the mean and the variance of their losses.
    most: list[FloatArray]
    stakes: list[FloatArray]
    mean: FloatArray
    variance: FloatArray

    @classmethod
    def of(
        cls,
        values: OpenValues,
        place: int,
        metric: Metric,
        rests: Sequence[IntArray],
        firsts: Sequence[IntArray],
    ) -> _Foreseen:
        known, most = values.values[:, place], values.most[:, place]
        stakes = most - values.least[:, place]
        losses = [(most - known)[each] for each in firsts]
        squares = np.array([float(((each - each.mean()) ** 2).sum()) for each in losses])
        spare = np.array([len(each) - 1 for each in losses])
        at_stake = np.array([float((stakes[each] ** 2).mean()) for each in rests])
        # The variance of all strata, relative to what may be lost; one more user may lose all.
        of_all = (squares.sum() + at_stake.mean()) / (float(spare @ at_stake) + at_stake.mean())
        return cls(
            metric,
            float(known.sum() - known[np.concatenate(rests)].sum()),
            float(values.weights.sum()),
            [most[each] for each in rests],
            [stakes[each] for each in rests],
            np.array([float(each.mean()) for each in losses]),
            (squares + _POOLED * of_all * at_stake) / (spare + _POOLED),
        )

    @property
    def shares(self) -> FloatArray:
        """Return the size of each stratum times its spread, relative to the metric."""
        sizes = np.array([len(each) for each in self.most])
        total = self.sure + sum(float(each.sum()) for each in self.most) - float(sizes @ self.mean)
        # A pilot may show nothing but zeros: then strata count by their spread alone.
        return np.asarray(sizes * np.sqrt(self.variance) / max(abs(total), 1e-9 * self.weight))

    def half_width(self, draws: IntArray) -> float:
        """Return half the width of the interval relative to the value, after so many draws."""
        total = int(draws.sum())
        strata = zip(self.most, self.stakes, draws, self.mean, self.variance, strict=True)
        parts = [
            Stratum.of(most, stakes, int(count), float(mean), float(variance), total)
            for most, stakes, count, mean, variance in strata
        ]
        return DrawnMean.of(parts, self.sure, self.weight, total, self.metric).half_width(LEVEL)
