"""Guided: look where the top is, and rank a random part of what is left in full.

First all targets meet items in the order of a guide, and leave at their K-th beater: then they are
not in the top K, whatever the guide is. The guide decides nothing but how many are left. Of the
users that still have an open target, some are drawn and ranked in full. Everything up to the draw
is fixed, and after it nothing is estimated but a mean over users drawn at random. So no shape of
P(R) is needed, and a bad guide makes intervals wider, never wrong.

* **Strata** are groups of users whose open targets were beaten about as often. Their values differ
  little, so that few of each tell the mean.
* **Who is drawn when** is settled before the first of them is ranked: strata take turns in
  proportion to their size times the spread of their values (Neyman 1934), guessed from how values
  moved while the last items were met.
* **The budget** ends the draw, and is spent to the last score. The user at which it runs out is
  likely to be a costly one, that is, one at the top. The mean over those before it is unbiased,
  whatever the costs are: that the budget sufficed for them says nothing about who of them came
  first, so the first user, who is any of the stratum, has their mean as expectation (so it is in
  inverse sampling, Haldane 1945).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray, as_index
from unsample.designs._certified import largest_k, towards_the_kth
from unsample.designs._designs import Design, check_optional
from unsample.designs._findings import Notes, Situation, Step
from unsample.metrics import Metric

#: How far the next stage reaches, relative to the last.
_GROWTH = 1.5
#: A stage that leaves less than so many full rankings may take half of what is left at most.
_ENOUGH = 20
#: The part of the variance that a stage leaves far from the end of the catalogue. What the last one
#: left is as much a matter of luck as of the guide: the next is expected between the two.
_USUALLY_LEFT = 0.5
#: Targets beaten equally often count as so many more with the spread of all others.
_PRIOR = 5.0
#: Full rankings for each stratum on average, those that every stratum has first, and most strata.
_FOR_STRATUM, _FIRST_OF_STRATUM, _MOST_STRATA = 10, 5, 20


@dataclass(frozen=True)
class Guided(Design):
    """Unbiased metrics@K within a budget: beaten targets leave, some of the others are certified.

    Items come in the order of a guide, and a target leaves at the K-th that beats it. Of the users
    with targets left, a random part is ranked in full, as far as the budget goes. Where it goes so
    far that nobody is left, metrics are exact. ``k`` is by default the largest K of the metrics.

    >>> ranks = np.random.default_rng(0).integers(1, 2001, size=1000)
    >>> found = Guided().simulate(ranks, items=2000, budget=100_000, odds=20.0)
    >>> found.scored <= 100_000, bool((found.lowest <= ranks).all())
    (True, True)
    """

    name: ClassVar[str] = "guided"
    certifies: ClassVar[bool] = True
    guided: ClassVar[bool] = True
    instead: ClassVar[str] = "raise it, or use design='adaptive'"
    k: int | None = None

    def __post_init__(self) -> None:
        check_optional("k", self.k)

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        """Find K; refuse metrics that look beyond it."""
        return replace(self, k=largest_k(self.k, metrics, relevant, name="guided"))

    def least(self, others: IntArray) -> int:
        """Return the first stage of every target, and two of them ranked in full."""
        assert self.k is not None
        first = int(np.minimum(self.k, others).sum())
        return min(first + 2 * int(others.max()), int(others.sum()))

    def goal(self, now: Situation) -> IntArray:
        """Return how far each target goes next."""
        return self.step(now).goal

    def step(self, now: Situation) -> Step:
        """Go on with the stage, begin the next one, or rank users in full whose turn it is."""
        assert self.k is not None
        goal, _ = towards_the_kth(now, self.k)
        if now.allowed is None:
            return Step(goal, now.notes)
        look = Look(now, self.k, now.allowed)
        if now.notes.turn.any():
            return next_in_turn(now, goal, self.k)
        stage = _stage(self.k, look.reached)
        if (look.open & (now.scored < np.minimum(stage, now.others))).any():
            return Step(np.minimum(goal, stage), now.notes)
        after = _stage(self.k, stage + 1)
        if look.is_worth(after):
            notes = replace(now.notes, before=now.beaten.copy(), earlier=now.notes.before)
            return Step(np.minimum(goal, after), notes)
        return next_in_turn(replace(now, notes=look.draw()), goal, self.k)


def _stage(k: int, reached: int) -> int:
    """Return the end of the stage in which targets that met ``reached`` items are."""
    end = k
    while end < reached:
        end = int(np.ceil(_GROWTH * end))
    return end


def next_in_turn(now: Situation, goal: IntArray, k: int) -> Step:
    """Go on with users whose turn it is; when all of them are done, give turns to more of them.

    As many as certainly fit into the budget go on together, then one after the other.
    """
    assert now.allowed is not None
    look, notes = Look(now, k, now.allowed), now.notes
    if not (look.open & (notes.turn > 0)).any():
        waiting = np.where(notes.turn < 0, notes.reserved, 0)
        together = look.left // max(int(look.of_users(waiting).max()), 1)
        if waiting.sum() <= look.left:
            together = len(notes.turn)
        last = max(int(notes.turn.max(initial=0)), 0) + together
        last = max(last, int(np.abs(notes.turn[waiting > 0]).min(initial=len(notes.turn))))
        notes = replace(notes, turn=np.where(-notes.turn <= last, np.abs(notes.turn), notes.turn))
    step = np.where(notes.turn > 0, goal - now.scored, 0)
    spent = np.minimum(np.cumsum(step), look.left)
    return Step(now.scored + np.diff(spent, prepend=0), notes)


@dataclass(frozen=True, eq=False)
class Look:
    """What can be told of open targets, and of users who have some."""

    now: Situation
    k: int
    allowed: int

    @property
    def open(self) -> BoolArray:
        """Return which targets may or may not be in the top K."""
        return (self.now.beaten < self.k) & (self.now.scored < self.now.others)

    @property
    def left(self) -> int:
        """Return what the budget leaves."""
        return self.allowed - int(self.now.scored.sum())

    @property
    def reached(self) -> int:
        """Return how many items every open target has met at least."""
        return int(self.now.scored[self.open].min(initial=int(self.now.scored.max())))

    def of_users(self, values: FloatArray | IntArray) -> FloatArray:
        """Return the sum of the values of each user's targets."""
        found = np.bincount(self.now.users, values, minlength=len(self.now.user_order))
        return found.astype(np.float64)

    def is_worth(self, end: int) -> bool:
        """Return whether to spend on a further stage rather than on full rankings now.

        With n full rankings, the variance is (the sum of the spreads of all open targets)^2 / n,
        and that of one more user which might have lost all, (the sum of what may be lost)^2 / n^2.
        A stage lowers the first sum, about as the last one did, and leaves less for n.
        """
        now, left = self.now, self.left
        missing = np.where(self.open, now.others - now.scored, 0)
        if missing.sum() <= left:
            return False
        cost = int(np.where(self.open, np.minimum(end, now.others) - now.scored, 0).sum())
        each = float(self.of_users(missing).max())
        if cost >= left - min(_ENOUGH * each, left / 2):
            return False
        spread, part = self._spread_and_part()
        many, fewer = left / each, (left - cost) / each
        return spread * part / fewer + 1.0 / fewer**2 < spread / many + 1.0 / many**2

    def _spread_and_part(self) -> tuple[float, float]:
        """Return the squared spread relative to what may be lost, and what a stage leaves of it."""
        now, notes = self.now, self.now.notes
        stages = np.log(max(now.others.max() / self.reached, _GROWTH)) / np.log(_GROWTH)
        usual = _USUALLY_LEFT * (1.0 - 1.0 / (stages + 1.0))
        beaten = now.beaten[self.open]
        last = _spread(notes.before, now.beaten, self.k)[beaten].sum()
        square = float(last / _gains(self.k)[beaten].sum()) ** 2
        if self.reached <= self.k:
            return square, float(usual)
        was_open = notes.before < self.k
        spread = _spread(notes.earlier, notes.before, self.k)[notes.before[was_open]].sum()
        return square, float(last / spread * np.sqrt(usual)) if spread > 0 else 1.0

    def draw(self) -> Notes:
        """Put users with open targets into strata, and settle when the turn of each comes."""
        now, users = self.now, len(self.now.user_order)
        beaten = np.minimum(now.beaten, self.k)
        missing = np.where(self.open, now.others - now.scored, 0)
        gain = self.of_users(np.where(self.open, _gains(self.k)[beaten], 0.0))
        reserved = self.of_users(missing)
        waiting = np.flatnonzero(reserved)
        affordable = self.left // max(int(reserved.max(initial=1)), 1)
        squares = _spread(now.notes.before, now.beaten, self.k) ** 2
        # Of those drawn, one is always taken to lose all.
        squares = np.append(squares, 0.0) + _gains(self.k) ** 2 / max(affordable, 1)
        spread = np.sqrt(self.of_users(np.where(self.open, squares[beaten], 0.0)))
        stratum, turn = (np.zeros(users, dtype=np.int64) for _ in range(2))
        stratum[waiting] = 1 + _groups(-gain[waiting], int(affordable) // _FOR_STRATUM)
        in_order = now.user_order[stratum[now.user_order] > 0]
        turn[in_order] = _turns(stratum[in_order], spread[in_order])
        return replace(
            now.notes,
            before=now.beaten.copy(),
            stratum=stratum[now.users],
            turn=-turn[now.users],
            reserved=missing,
        )


def _gains(k: int) -> FloatArray:
    """Return what a target beaten b times may still be worth, for b = 0..K: nothing from K on.

    It is the mean of what Recall and NDCG give it. Only who is drawn depends on it.
    """
    discount = 1.0 / np.log2(np.arange(k) + 2.0)
    return np.append((1.0 + discount) / 2.0, 0.0)


def _spread(before: IntArray, after: IntArray, k: int) -> FloatArray:
    """Return how much values vary of targets that were beaten b times, for b = 0..K - 1.

    It is read off from how they moved between two stages. What is to come moves them less, but
    likely in the same proportion.
    """
    gains, was_open = _gains(k), before < k
    start, end = as_index(before[was_open]), np.minimum(after[was_open], k)
    loss = gains[start] - gains[end]
    count = np.bincount(start, minlength=k)
    mean = np.bincount(start, loss, minlength=k) / np.maximum(count, 1)
    squares = np.bincount(start, (loss - mean[start]) ** 2, minlength=k)
    of_all = float((loss**2).sum() / max((gains[start] ** 2).sum(), 1e-300))
    variance = (squares + _PRIOR * of_all * gains[:k] ** 2) / (count + _PRIOR)
    return np.asarray(np.sqrt(variance))


def _groups(keys: FloatArray, most: int) -> IntArray:
    """Return groups of neighbouring keys, about equally large; equal keys stay together."""
    different, place, count = np.unique(keys.round(9), return_inverse=True, return_counts=True)
    number = min(max(most, 1), _MOST_STRATA, max(len(different), 1))
    middle = (np.cumsum(count) - count / 2) / max(len(keys), 1)
    return np.unique((middle * number).astype(np.int64), return_inverse=True)[1].reshape(-1)[
        place.reshape(-1)
    ]


def _turns(stratum: IntArray, spread: FloatArray) -> IntArray:
    """Return when each user's turn comes, from 1; users stand in random order.

    The first few of every stratum come first, so that each has a mean and a variance. Then strata
    take turns in proportion to the sum of the spreads in them.
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
