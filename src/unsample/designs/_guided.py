"""Guided: compare all targets in the order of a guide, then rank some users in full.

First all targets are compared with items in the order of a guide. A target stops when K items beat
it: it is not in the top K, whatever the guide is. The other targets are called open. Then some of
the users with an open target are drawn at random and ranked in full. All that is estimated is a
mean over users drawn at random. So no shape of P(R) is needed, and a bad guide makes intervals
wider, never wrong.

**Strata** are groups of users whose open targets were beaten about equally often and have similar
scores. (Of two targets that nothing beat so far, the one with the lower score is more likely to be
beaten later.) Values within a stratum differ little, so a few users give its mean. `_draws` says
who is drawn, and how many.

Several models are evaluated together: a user who is drawn is ranked in full under all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import BoolArray, FloatArray, IntArray, check_level, check_real
from unsample.bounds import quantile
from unsample.designs._designs import Design, largest_k, towards_the_kth
from unsample.designs._draws import (
    FEWEST_PILOT,
    PILOT_OF_STRATUM,
    Moved,
    groups_of,
    next_in_turn,
    of_users,
    pilot_is_over,
    pilot_of,
    second_draw,
    so_far,
    turns_of,
)
from unsample.designs._findings import Notes, Situation, Step
from unsample.errors import DesignError
from unsample.metrics import Metric

#: The length of a stage relative to the one before.
_GROWTH = 1.5
#: A stage must leave budget for this many full rankings, or half of the budget.
_ENOUGH = 20
#: The part of the variance that a stage usually leaves, far from the end of the catalogue. The last
#: stage is a noisy measure of it, so the next one is expected between the two.
_USUALLY_LEFT = 0.5
#: How many times K items all targets meet before anything is foreseen, from two stages.
_FORESEEABLE = _GROWTH**2
#: K for metrics that have none. Targets beaten more often count little, and wait.
_DEEP = 10
#: The number of drawn users that are assumed to lose everything. Intervals assume one. A smaller
#: number leaves more draws for users who are likely to lose.
_ASSUMED = 0.5
#: Full rankings for each stratum on average: where a budget ends the draw, and where a pilot
#: settles it, which takes some of them.
_FOR_STRATUM, _FOR_PILOT = 10, 4 * PILOT_OF_STRATUM
#: A pilot may take this part of what a budget leaves; else the budget alone ends the draw.
_PART_OF_PILOT = 0.25


@dataclass(frozen=True)
class Guided(Design):
    """Unbiased metrics within a budget or an error: a guide finds who is not in the top K.

    Items come in the order of a guide, and a target stops when K items beat it. Of the users with
    other targets, a random part is ranked in full: as far as the budget goes, or as many as the
    ``error`` needs, half the width of the interval for these users relative to the metric (0.05:
    within 5 % of the full ranking). If all of them are ranked, metrics are exact. ``k`` is by
    default the largest K of the metrics.

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
    error: float | None = None
    level: float = 0.95
    #: What is estimated, and whether it depends on ranks beyond K. `for_metrics` sets both.
    metrics: tuple[Metric, ...] = field(default=(), repr=False, compare=False)
    beyond: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_level(self.level)
        if self.error is not None:
            hint = "0.05 is within 5 % of the full ranking of these users"
            check_real(
                "error", self.error, low=0.0, high=1.0, open_low=True, open_high=True, hint=hint,
                error=DesignError,
            )  # fmt: skip

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        limited = [metric for metric in metrics if not _looks_at_all_ranks(metric)]
        beyond = len(limited) < len(metrics)
        k = max(self.k or _DEEP, 1) if beyond else None
        if limited:
            k = max(largest_k(self.k, limited, relevant, name="guided"), k or 1)
        assert k is not None
        return replace(self, k=k, beyond=beyond, metrics=tuple(metrics))

    def least(self, others: IntArray) -> int:
        assert self.k is not None
        first = int(np.minimum(self.k, others).sum())
        return min(first + 2 * int(others.max()), int(others.sum()))

    def step(self, now: Situation) -> Step:
        """Continue the stage, begin the next one, or rank the next users in full."""
        assert self.k is not None
        last = int(now.others.max()) + 1 if self.beyond else self.k
        to_end, _ = towards_the_kth(now, last)
        if now.allowed is None and self.error is None:
            return Step(to_end, now.notes)
        look = Look(now, self)
        if now.notes.turn.any():
            if self.error is None or not pilot_is_over(now, to_end):
                idle = now.watched and not (to_end > now.scored)[now.notes.turn > 0].any()
                said = so_far(now, self.metrics[0], look.unknown, self.level) if idle else ""
                return next_in_turn(now, to_end, said)
            settled, said = second_draw(now, self.metrics, look.unknown, self.error, self.level)
            return next_in_turn(replace(now, notes=settled), to_end, said)
        goal, _ = towards_the_kth(now, self.k)
        stage = _stage(self.k, look.reached)
        if (look.open & (now.scored < np.minimum(stage, now.others))).any():
            return Step(np.minimum(goal, stage), now.notes)
        after = _stage(self.k, stage + 1)
        if look.is_worth(after):
            notes = replace(now.notes, before=now.beaten.copy(), earlier=now.notes.before)
            return Step(np.minimum(goal, after), notes)
        return next_in_turn(replace(now, notes=look.draw()), to_end)


def _stage(k: int, reached: int) -> int:
    """Return the end of the first stage that has at least ``reached`` items."""
    end = k
    while end < reached:
        end = int(np.ceil(_GROWTH * end))
    return end


@dataclass(frozen=True, eq=False)
class Look:
    """What is known about open targets and their users."""

    now: Situation
    design: Guided

    @property
    def k(self) -> int:
        assert self.design.k is not None
        return self.design.k

    @cached_property
    def gains(self) -> FloatArray:
        return _gains(self.design.metrics, self.k)

    @cached_property
    def open(self) -> BoolArray:
        """Return which targets may or may not be in the top K."""
        return np.asarray((self.now.beaten < self.k) & (self.now.scored < self.now.others))

    @cached_property
    def unknown(self) -> BoolArray:
        """Return which targets have an unknown value: open ones, and with MRR those beyond K."""
        return (self.now.scored < self.now.others) if self.design.beyond else self.open

    @cached_property
    def missing(self) -> IntArray:
        """Return how many items each unknown target has not met."""
        return np.where(self.unknown, self.now.others - self.now.scored, 0)

    @property
    def left(self) -> float:
        """Return how many items may still be scored."""
        allowed = self.now.allowed
        return math.inf if allowed is None else allowed - int(self.now.scored.sum())

    @property
    def reached(self) -> int:
        """Return with how many items every open target was compared at least."""
        return int(self.now.scored[self.open].min(initial=int(self.now.scored.max())))

    @property
    def draws(self) -> float:
        """Return how many users will be ranked in full: what the error needs, or can be paid."""
        each = max(float(of_users(self.now, self.missing).max()), 1.0)
        affordable = self.left // each
        return affordable if self.design.error is None else min(self._needed(0), affordable)

    def is_worth(self, end: int) -> bool:
        """Return whether a further stage is better than full rankings now.

        The variance of n full rankings is (sum of the spreads of all open targets)^2 / n. One more
        user who might have lost everything adds (sum of what may be lost)^2 / n^2. A stage lowers
        the first sum, about as much as the last stage did. It is worth its cost if the error then
        needs fewer scores in all, or, where a budget ends the draw, if the variance is smaller
        although fewer users are drawn.
        """
        now, left = self.now, self.left
        if not self.open.any() or self.missing.sum() <= left < math.inf:
            return False
        cost = int(np.where(self.open, np.minimum(end, now.others) - now.scored, 0).sum())
        costs = of_users(now, self.missing)
        each = float(costs.max())
        if not cost or cost >= left - min(_ENOUGH * each, left / 2):
            return False
        if self.design.error is not None:
            if self.reached < _FORESEEABLE * self.k:
                return True
            usual = float(costs[costs > 0].mean())
            before, after = self._needed(0) * usual, self._needed(1) * usual
            if min(before, left) < left:
                return cost + after < before
        spread, part = self._spread_and_part
        many, fewer = left / each, (left - cost) / each
        return spread * part / fewer + 1.0 / fewer**2 < spread / many + 1.0 / many**2

    def _needed(self, stages: int) -> float:
        """Return how many users the error needs, some stages from now.

        In every stage to come targets lose a share of the value, each a part of the share before,
        as the last two stages had it. At most all users that are open then are ranked.
        """
        assert self.design.error is not None
        now, notes = self.now, self.now.notes
        earlier, before, value = (
            float(self.gains[np.minimum(each, self.k)].sum())
            for each in (notes.earlier, notes.before, now.beaten)
        )
        users = np.count_nonzero(of_users(now, self.missing))
        if value <= 0.0 or not users:
            return float(users)
        lost, lost_before = 1.0 - value / before, 1.0 - before / earlier
        slower = min(lost / lost_before, 1.0) if lost_before > 0.0 else 0.0
        to_come = slower ** np.arange(1, math.ceil(self._stages_left) + 1)
        at_end = value * float(np.prod(1.0 - lost * to_come))
        stake = float(self.gains[np.minimum(now.beaten, self.k)[self.unknown]].sum())
        seek = (self.design.error * at_end / quantile(self.design.level)) ** 2
        square = self._spread_and_part[0] * stake**2 * float(to_come[stages:].sum())
        found = (square + math.sqrt(square**2 + 4.0 * stake**2 * seek)) / (2.0 * seek)
        left_open = float(np.prod(1.0 - lost * to_come[:stages]))
        return min(found, left_open * users)

    @property
    def _stages_left(self) -> float:
        """Return how many stages there are to the end of the catalogue."""
        far = max(float(self.now.others.max()) / max(self.reached, 1), _GROWTH)
        return math.log(far) / math.log(_GROWTH)

    @cached_property
    def _spread_and_part(self) -> tuple[float, float]:
        """Return (spread / what may be lost)^2, and the part of it that a stage leaves."""
        now, notes = self.now, self.now.notes
        usual = _USUALLY_LEFT * (1.0 - 1.0 / (self._stages_left + 1.0))
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

    @cached_property
    def moved(self) -> Moved:
        now = self.now
        return Moved.between(now.notes.before, now.beaten, now.own, self.gains)

    def draw(self) -> Notes:
        """Put users with open targets into strata, and fix the order in which they are ranked."""
        now, users = self.now, len(self.now.user_order)
        beaten, draws = np.minimum(now.beaten, self.k), max(self.draws, 1.0)
        costs = of_users(now, self.missing)
        waiting = np.flatnonzero(costs)
        known = now.beaten, now.own
        squares, stakes = self.moved.spreads(*known) ** 2, self.gains[beaten] ** 2
        seen, stake, loss = (
            of_users(now, np.where(self.unknown, each, 0.0))
            for each in (squares, stakes, self.moved.losses(*known))
        )
        # A user may lose everything although no user like this one lost anything so far.
        spread = np.sqrt(seen + _ASSUMED * stake / draws)
        pilot = self.design.error is not None
        each = _FOR_PILOT if pilot else _FOR_STRATUM
        stratum, turn = (np.zeros(users, dtype=np.int64) for _ in range(2))
        # Of several models, users who are open under the same ones are alike.
        model = np.arange(len(now.users)) // (len(now.users) // now.models)
        models = of_users(now, self.unknown * 2.0**model) if now.models > 1 else np.zeros(users)
        # What targets beyond K can lose differs by metric, so they have strata of their own.
        beyond = of_users(now, self.open) == 0
        for part in (waiting[~beyond[waiting]], waiting[beyond[waiting]]):
            share = float(spread[part].sum() / max(spread[waiting].sum(), 1e-300))
            keys = models[part], -stake[part], -loss[part]
            groups = groups_of(keys, spread[part], round(share * draws / each))
            stratum[part] = 1 + groups + stratum.max()
        in_order = now.user_order[stratum[now.user_order] > 0]
        turn[in_order] = turns_of(stratum[in_order], spread[in_order])
        notes = replace(
            now.notes,
            before=now.beaten.copy(),
            stratum=stratum[now.users],
            turn=-turn[now.users],
            reserved=self.missing,
        )
        first = max(FEWEST_PILOT, PILOT_OF_STRATUM * int(stratum.max())) * float(costs.max())
        return pilot_of(notes, now) if pilot and first <= _PART_OF_PILOT * self.left else notes


def _looks_at_all_ranks(metric: Metric) -> bool:
    """Return whether a metric has no K; the K of R-precision is the number of relevant items."""
    return metric.k is None and metric.family is not _metrics.RPrec


def _gains(metrics: Sequence[Metric], k: int) -> FloatArray:
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
    return found
