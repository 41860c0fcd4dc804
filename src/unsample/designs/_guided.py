"""Guided: compare all targets in the order of a guide, then rank some users in full.

First all targets are compared with items in the order of a guide. A target stops when K items beat
it: it is not in the top K, whatever the guide is. The other targets are called open. Then some of
the users with an open target are drawn at random and ranked in full. All that is estimated is a
mean over users drawn at random. So no shape of P(R) is needed, and a bad guide makes intervals
wider, never wrong.

* **Strata** are groups of users whose open targets were beaten about equally often and have similar
  scores. (Of two targets that nothing beat so far, the one with the lower score is more likely to
  be beaten later.) Values within a stratum differ little, so a few users give its mean.
* **The order of the draw** is fixed before the first user is ranked. Each stratum gets draws in
  proportion to its size times the spread of its values (Neyman 1934). The spread is guessed from
  how the values of such targets changed in the last stage.
* **The budget** ends the draw, and is spent to the last score. The user at whom it ends is likely
  to be a costly one, near the top, and is left out. The mean over the users before is unbiased,
  whatever the costs are: the budget was enough for all of them in any order, so each of them is
  equally likely to have come first, and the first user is a uniform draw from the stratum (as in
  inverse sampling, Haldane 1945).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.designs._certified import largest_k, towards_the_kth
from unsample.designs._designs import Design
from unsample.designs._findings import Notes, Situation, Step
from unsample.metrics import Metric

#: The length of a stage relative to the one before.
_GROWTH = 1.5
#: A stage must leave budget for this many full rankings, or half of the budget.
_ENOUGH = 20
#: The part of the variance that a stage usually leaves, far from the end of the catalogue. The last
#: stage is a noisy measure of it, so the next one is expected between the two.
_USUALLY_LEFT = 0.5
#: The spread of targets that were beaten equally often is averaged with this many targets that have
#: the spread of all targets.
_PRIOR = 5.0
#: K for metrics that have none. Targets beaten more often count little, and wait.
_DEEP = 10
#: The spread of values beyond K as a part of their range.
_WITHIN_RANGE = 0.15
#: About this many targets with similar scores, all beaten equally often, form a group; and the
#: largest number of such groups.
_ALIKE, _MOST_GROUPS = 50, 16
#: The number of drawn users that are assumed to lose everything. Intervals assume one. A smaller
#: number leaves more draws for users who are likely to lose.
_ASSUMED = 0.5
#: Full rankings for each stratum on average, those that each stratum gets first, and most strata.
_FOR_STRATUM, _FIRST_OF_STRATUM, _MOST_STRATA = 10, 5, 20


@dataclass(frozen=True)
class Guided(Design):
    """Unbiased metrics within a budget: a guide finds targets outside the top K, others are drawn.

    Items come in the order of a guide, and a target stops when K items beat it. Of the users with
    other targets, a random part is ranked in full, as far as the budget goes. If it suffices for
    all of them, metrics are exact. ``k`` is by default the largest K of the metrics.

    Metrics without a K, such as MRR, depend on all ranks. Then a target that K items beat (by
    default 10) waits, and may be drawn later. It has little left to lose, so few such targets are
    drawn.

    >>> ranks = np.random.default_rng(0).integers(1, 2001, size=1000)
    >>> found = Guided().simulate(ranks, items=2000, budget=100_000, odds=20.0)
    >>> found.scored <= 100_000, bool((found.lowest <= ranks).all())
    (True, True)
    """

    name: ClassVar[str] = "guided"
    certifies: ClassVar[bool] = True
    guided: ClassVar[bool] = True
    instead: ClassVar[str] = "raise it, or use design='fixed'"
    k: int | None = None
    #: Whether metrics depend on ranks beyond K, and the value of a target beaten 0, 1, .. K times.
    #: `for_metrics` sets both.
    beyond: bool = field(default=False, repr=False, compare=False)
    gains: tuple[float, ...] = field(default=(), repr=False, compare=False)

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        limited = [metric for metric in metrics if not _looks_at_all_ranks(metric)]
        beyond = len(limited) < len(metrics)
        k = max(self.k or _DEEP, 1) if beyond else None
        if limited:
            k = max(largest_k(self.k, limited, relevant, name="guided"), k or 1)
        assert k is not None
        return replace(self, k=k, beyond=beyond, gains=_gains(metrics, k))

    def least(self, others: IntArray) -> int:
        assert self.k is not None
        first = int(np.minimum(self.k, others).sum())
        return min(first + 2 * int(others.max()), int(others.sum()))

    def step(self, now: Situation) -> Step:
        """Continue the stage, begin the next one, or rank the next users in full."""
        assert self.k is not None
        last = int(now.others.max()) + 1 if self.beyond else self.k
        to_end, _ = towards_the_kth(now, last)
        if now.allowed is None:
            return Step(to_end, now.notes)
        if now.notes.turn.any():
            return _next_in_turn(now, to_end)
        look = Look(now, self, now.allowed)
        goal, _ = towards_the_kth(now, self.k)
        stage = _stage(self.k, look.reached)
        if (look.open & (now.scored < np.minimum(stage, now.others))).any():
            return Step(np.minimum(goal, stage), now.notes)
        after = _stage(self.k, stage + 1)
        if look.is_worth(after):
            notes = replace(now.notes, before=now.beaten.copy(), earlier=now.notes.before)
            return Step(np.minimum(goal, after), notes)
        return _next_in_turn(replace(now, notes=look.draw()), to_end)


def _stage(k: int, reached: int) -> int:
    """Return the end of the first stage that has at least ``reached`` items."""
    end = k
    while end < reached:
        end = int(np.ceil(_GROWTH * end))
    return end


def _next_in_turn(now: Situation, goal: IntArray) -> Step:
    """Continue with the users whose turn it is; when they are done, with the next ones.

    As many users as certainly fit into the budget are ranked together. The rest follow one by one.
    """
    assert now.allowed is not None
    notes, left = now.notes, now.allowed - int(now.scored.sum())
    while not ((goal > now.scored) & (notes.turn > 0)).any():
        waiting = np.flatnonzero((notes.turn < 0) & (notes.reserved > 0))
        if not len(waiting):
            break
        waiting = waiting[np.argsort(-notes.turn[waiting], kind="stable")]
        turns = -notes.turn[waiting]
        fit = int(np.searchsorted(np.cumsum(notes.reserved[waiting]), left, side="right"))
        last = int(turns[-1] if fit == len(turns) else max(turns[fit] - 1, turns[0]))
        notes = replace(notes, turn=np.where(-notes.turn <= last, np.abs(notes.turn), notes.turn))
    step = np.where(notes.turn > 0, np.maximum(goal - now.scored, 0), 0)
    spent = np.minimum(np.cumsum(step), left)
    return Step(now.scored + np.diff(spent, prepend=0), notes)


def _of_users(now: Situation, values: FloatArray | IntArray | BoolArray) -> FloatArray:
    """Return the sum of the values of each user's targets."""
    found = np.bincount(now.users, values, minlength=len(now.user_order))
    return found.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Look:
    """What is known about open targets and their users."""

    now: Situation
    design: Guided
    allowed: int

    @property
    def k(self) -> int:
        assert self.design.k is not None
        return self.design.k

    @property
    def gains(self) -> FloatArray:
        return np.array(self.design.gains)

    @property
    def open(self) -> BoolArray:
        """Return which targets may or may not be in the top K."""
        return (self.now.beaten < self.k) & (self.now.scored < self.now.others)

    @property
    def unknown(self) -> BoolArray:
        """Return which targets have an unknown value: open ones, and with MRR those beyond K."""
        return (self.now.scored < self.now.others) if self.design.beyond else self.open

    @property
    def missing(self) -> IntArray:
        """Return how many items each unknown target has not met."""
        return np.where(self.unknown, self.now.others - self.now.scored, 0)

    @property
    def left(self) -> int:
        return self.allowed - int(self.now.scored.sum())

    @property
    def reached(self) -> int:
        """Return with how many items every open target was compared at least."""
        return int(self.now.scored[self.open].min(initial=int(self.now.scored.max())))

    def is_worth(self, end: int) -> bool:
        """Return whether a further stage is better than full rankings now.

        The variance of n full rankings is (sum of the spreads of all open targets)^2 / n. One more
        user who might have lost everything adds (sum of what may be lost)^2 / n^2. A stage lowers
        the first sum, about as much as the last stage did, and leaves a smaller n.
        """
        now, left = self.now, self.left
        if self.missing.sum() <= left:
            return False
        cost = int(np.where(self.open, np.minimum(end, now.others) - now.scored, 0).sum())
        each = float(_of_users(now, self.missing).max())
        if not cost or cost >= left - min(_ENOUGH * each, left / 2):
            return False
        spread, part = self._spread_and_part()
        many, fewer = left / each, (left - cost) / each
        return spread * part / fewer + 1.0 / fewer**2 < spread / many + 1.0 / many**2

    def _spread_and_part(self) -> tuple[float, float]:
        """Return (spread / what may be lost)^2, and the part of it that a stage leaves."""
        now, notes = self.now, self.now.notes
        stages = np.log(max(now.others.max() / self.reached, _GROWTH)) / np.log(_GROWTH)
        usual = _USUALLY_LEFT * (1.0 - 1.0 / (stages + 1.0))
        beaten = np.minimum(now.beaten, self.k)
        spreads = np.where(self.unknown, self.moved.spreads(now.beaten, now.own), 0.0)
        beyond, last = (float(spreads[part].sum()) for part in (beaten == self.k, beaten < self.k))
        whole = last + beyond
        square = float(whole / self.gains[beaten[self.unknown]].sum()) ** 2
        part = float(usual)
        if self.reached > self.k:
            moved = Moved.between(notes.earlier, notes.before, now.own, self.gains)
            spread = float(moved.spreads(notes.before, now.own)[notes.before < self.k].sum())
            part = float(last / spread * np.sqrt(usual)) if spread > 0 else 1.0
        if not beyond:
            return square, part
        # Targets beyond K are not compared with more items in a stage.
        return square, ((np.sqrt(part) * last + beyond) / whole) ** 2

    @property
    def moved(self) -> Moved:
        now = self.now
        return Moved.between(now.notes.before, now.beaten, now.own, self.gains)

    def draw(self) -> Notes:
        """Put users with open targets into strata, and fix the order in which they are ranked."""
        now, users = self.now, len(self.now.user_order)
        beaten = np.minimum(now.beaten, self.k)
        costs = _of_users(now, self.missing)
        waiting = np.flatnonzero(costs)
        affordable = int(self.left // max(float(costs.max(initial=1.0)), 1.0))
        moved, known = self.moved, (now.beaten, now.own)
        squares, stakes = moved.spreads(*known) ** 2, self.gains[beaten] ** 2
        seen, stake, loss = (
            _of_users(now, np.where(self.unknown, each, 0.0))
            for each in (squares, stakes, moved.losses(*known))
        )
        # A user may lose everything although no user like this one lost anything so far.
        spread = np.sqrt(seen + _ASSUMED * stake / max(affordable, 1))
        stratum, turn = (np.zeros(users, dtype=np.int64) for _ in range(2))
        # What targets beyond K can lose differs by metric, so they have strata of their own.
        beyond = _of_users(now, self.open.astype(np.int64)) == 0
        for part in (waiting[~beyond[waiting]], waiting[beyond[waiting]]):
            share = float(spread[part].sum() / max(spread[waiting].sum(), 1e-300))
            keys = -stake[part], -loss[part]
            groups = _groups(keys, spread[part], round(share * affordable / _FOR_STRATUM))
            stratum[part] = 1 + groups + stratum.max()
        in_order = now.user_order[stratum[now.user_order] > 0]
        turn[in_order] = _turns(stratum[in_order], spread[in_order])
        return replace(
            now.notes,
            before=now.beaten.copy(),
            stratum=stratum[now.users],
            turn=-turn[now.users],
            reserved=self.missing,
        )


def _looks_at_all_ranks(metric: Metric) -> bool:
    """Return whether a metric has no K; the K of R-precision is the number of relevant items."""
    return metric.k is None and metric.family is not _metrics.RPrec


def _gains(metrics: Sequence[Metric], k: int) -> tuple[float, ...]:
    """Return the largest value that a target beaten b times may still have, for b = 0..K.

    It is the mean over the metrics, relative to rank 1. Only the draw of users depends on it. A
    metric that is not bounded, or not a weight of the rank alone, counts the same at all ranks.
    """
    found = np.zeros(k + 1)
    ranks = np.arange(1, k + 2)
    for metric in metrics:
        family = metric.family
        last = k + 1 if _looks_at_all_ranks(metric) else metric.k or k
        flat = family.uses_items or not family.bounded or family is _metrics.RPrec
        weights = np.ones(k + 1) if flat else metric.weights(ranks, k + 1)
        found += np.where(ranks <= last, weights / weights[0], 0.0) / len(metrics)
    return tuple(found.tolist())


@dataclass(frozen=True, eq=False)
class Moved:
    """How the values of targets changed between two stages, by how often they were beaten before.

    Later changes are smaller, but likely in the same proportion. Of two targets beaten equally
    often, the one with the higher score is less likely to be beaten later. So targets beaten
    equally often are grouped by their scores. Scores need not be comparable between users: if they
    are not, the groups are merely useless.
    """

    gains: FloatArray
    #: For targets beaten 0..K - 1 times: their sorted scores, and the mean and the variance of the
    #: losses of each group.
    own: list[FloatArray]
    means: list[FloatArray]
    variances: list[FloatArray]

    @classmethod
    def between(
        cls, before: IntArray, after: IntArray, own: FloatArray, gains: FloatArray
    ) -> Moved:
        k = len(gains) - 1
        open_then = np.flatnonzero(before < k)
        open_then = open_then[np.lexsort([own[open_then], before[open_then]])]
        start, end = before[open_then], np.minimum(after[open_then], k)
        loss = gains[start] - gains[end]
        of_all = float((loss**2).sum() / max((gains[start] ** 2).sum(), 1e-300))
        ends = np.searchsorted(start, np.arange(k + 1))
        scores, means, variances = [], [], []
        for beaten, (first, last) in enumerate(pairwise(ends.tolist())):
            size = int(last - first)
            mine = own[open_then[first:last]]
            groups = min(max(size // _ALIKE, 1), _MOST_GROUPS) if size and mine[0] < mine[-1] else 1
            group = np.arange(size) * groups // max(size, 1)
            lost, count = loss[first:last], np.bincount(group, minlength=1)
            mean = np.bincount(group, lost, minlength=1) / np.maximum(count, 1)
            squares = np.bincount(group, (lost - mean[group]) ** 2, minlength=1)
            likely = _PRIOR * of_all * gains[beaten] ** 2
            scores.append(mine)
            means.append(mean)
            variances.append((squares + likely) / (count + _PRIOR))
        return cls(gains, scores, means, variances)

    def spreads(self, beaten: IntArray, own: FloatArray) -> FloatArray:
        """Return the standard deviation of the changes of such targets.

        Targets beaten K times did not change any more. Only the range of their values is known.
        """
        beyond = (_WITHIN_RANGE * self.gains[-1]) ** 2
        return np.sqrt(self._between_groups(self.variances, beaten, own, beyond))

    def losses(self, beaten: IntArray, own: FloatArray) -> FloatArray:
        """Return the mean loss of such targets."""
        return self._between_groups(self.means, beaten, own, 0.0)

    def _between_groups(
        self, values: list[FloatArray], beaten: IntArray, own: FloatArray, beyond: float
    ) -> FloatArray:
        found = np.full(len(beaten), beyond)
        for times, (scores, of_groups) in enumerate(zip(self.own, values, strict=True)):
            here = np.flatnonzero(beaten == times)
            place = np.searchsorted(scores, own[here]) * len(of_groups) / max(len(scores), 1)
            found[here] = np.interp(place, np.arange(len(of_groups)) + 0.5, of_groups)
        return found


def _groups(keys: tuple[FloatArray, ...], spread: FloatArray, most: int) -> IntArray:
    """Return groups of users with similar keys; they are sorted by the first key, then the second.

    All groups have about the same sum of spreads, so equally many users are drawn from each. Users
    with equal keys are in one group.
    """
    rounded = np.stack([key.round(9) for key in keys])
    place = np.unique(rounded, axis=1, return_inverse=True)[1]
    total = np.bincount(place.reshape(-1), spread)
    number = min(max(most, 1), _MOST_STRATA, max(len(total), 1))
    middle = (np.cumsum(total) - total / 2.0) / max(total.sum(), 1e-300)
    group = np.minimum((middle * number).astype(np.int64), number - 1)
    return np.unique(group, return_inverse=True)[1].reshape(-1)[place.reshape(-1)]


def _turns(stratum: IntArray, spread: FloatArray) -> IntArray:
    """Return the place of each user in the draw, from 1; ``stratum`` has users in random order.

    The first few users of every stratum come first, so that each has a mean and a variance. Then
    strata get draws in proportion to the sum of their spreads.
    """
    time = np.empty(len(stratum))
    for number in np.unique(stratum):
        inside = np.flatnonzero(stratum == number)
        place = np.arange(1, len(inside) + 1)
        share = max(float(spread[inside].sum()), 1e-300)
        time[inside] = np.where(
            place <= _FIRST_OF_STRATUM, place / _FIRST_OF_STRATUM - 2.0, place / share
        )
    turn = np.empty(len(stratum), dtype=np.int64)
    turn[np.lexsort([stratum, time])] = np.arange(1, len(stratum) + 1)
    return turn
