"""Guided: compare all targets in the order of a guide, then rank some users in full.

First all targets are compared with items in the order of a guide, stage by stage. A target stops
when K items beat it: it is not in the top K, whatever the guide is. The other targets are called
open. Then some of the users with an open target are drawn at random and ranked in full. All that is
estimated is a mean over users drawn at random. So no shape of P(R) is needed, and a bad guide makes
intervals wider, and they still hold.

**Strata** are groups of users whose open targets were beaten about equally often. Values within a
stratum differ little, so a few users give its mean. `_user_draws` chooses the users.

Several models are evaluated together: a user who is drawn is ranked in full under all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray, check_real
from unsample._threads import cached_property
from unsample.designs._designs import Design, largest_k, towards_the_kth
from unsample.designs._findings import DesignNotes, Situation
from unsample.designs._user_draws import (
    FEWEST_PILOT,
    LEVEL,
    PILOT_OF_STRATUM,
    draw_order_of,
    next_in_draw_order,
    pilot_is_over,
    pilot_of,
    second_draw,
    so_far,
    strata_of,
)
from unsample.errors import DesignError
from unsample.metrics import Metric
from unsample.uncertainty import quantile

#: The length of a stage relative to the one before.
_GROWTH = 1.5
#: A stage must leave budget for this many full rankings, or half of the budget.
_ENOUGH = 20
#: The part of the variance that a stage usually leaves, far from the end of the catalogue. The last
#: stage is a noisy measure of it, so the next one is expected between the two.
_USUALLY_LEFT = 0.5
#: How many times K items all targets are compared with before anything is foreseen, from two
#: stages.
_FORESEEABLE = _GROWTH**2
#: How many drawn users are assumed to have the minimum. Intervals assume one. A smaller number
#: leaves more draws for users who are likely to be below their maximum.
_ASSUMED = 0.5
#: The variance of targets that were beaten equally often is averaged with this many targets that
#: have the variance of all targets.
_PRIOR = 5.0
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
    ``error`` needs, half the width of the 95 % interval for these users relative to the metric
    (0.05: within 5 % of the full ranking). If all of them are ranked, metrics are exact. ``k`` is
    the largest K of the metrics, if it is not given.

    Metrics without a K, such as MRR, depend on all ranks: write MRR@10, or use another design.

    >>> ranks = np.random.default_rng(0).integers(1, 2001, size=1000)
    >>> found = Guided().simulate(ranks, items=2000, budget=100_000, odds=20.0)
    >>> found.scored <= 100_000, bool((found.lowest <= ranks).all())
    (True, True)
    """

    name: ClassVar[str] = "guided"
    certifies: ClassVar[bool] = True
    guided: ClassVar[bool] = True
    draws_users: ClassVar[bool] = True
    k: int | None = None
    error: float | None = None
    #: What is estimated; `for_metrics` sets it.
    metrics: tuple[Metric, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.error is not None:
            hint = "0.05 is within 5 % of the full ranking of these users"
            check_real(
                "error", self.error, low=0.0, high=1.0, open_low=True, open_high=True, hint=hint,
                error=DesignError,
            )  # fmt: skip

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        k = largest_k(self.k, metrics, relevant)
        return replace(self, k=k, metrics=tuple(metrics))

    def min_scores(self, others: IntArray) -> int:
        assert self.k is not None
        first = int(np.minimum(self.k, others).sum())
        return min(first + 2 * int(others.max()), int(others.sum()))

    def step(self, now: Situation) -> IntArray:
        """Continue the stage, begin the next one, or rank the next users in full."""
        assert self.k is not None
        to_end = towards_the_kth(now, self.k)
        if now.allowed is None and self.error is None:
            return to_end
        outlook = _Outlook(now, self)
        if now.notes.draw_order.any():
            if self.error is not None and pilot_is_over(now, to_end):
                now.notes = second_draw(now, self.metrics, outlook.open, self.error)
            elif now.watched and not (to_end > now.scored)[now.notes.draw_order > 0].any():
                now.said = so_far(now, self.metrics[0], outlook.open)
            return next_in_draw_order(now, to_end)
        stage = _stage(self.k, outlook.reached)
        if (outlook.open & (now.scored < np.minimum(stage, now.others))).any():
            return np.minimum(to_end, stage)
        after = _stage(self.k, stage + 1)
        if outlook.is_worth(after):
            now.notes = replace(now.notes, before=now.beaten.copy(), earlier=now.notes.before)
            return np.minimum(to_end, after)
        now.notes = outlook.draw()
        return next_in_draw_order(now, to_end)


def _stage(k: int, reached: int) -> int:
    """Return the end of the first stage that has at least ``reached`` items."""
    end = k
    while end < reached:
        end = int(np.ceil(_GROWTH * end))
    return end


@dataclass(frozen=True, eq=False)
class _Outlook:
    """What is known about open targets, what a further stage would bring, and who is drawn."""

    now: Situation
    design: Guided

    @property
    def k(self) -> int:
        assert self.design.k is not None
        return self.design.k

    @cached_property
    def gains(self) -> FloatArray:
        """Return the largest value that a target beaten b times may still have, for b = 0..K.

        It is the mean over the metrics, relative to rank 1. Only the draw of users depends on it. A
        metric that is not a weight of the rank alone counts the same at all ranks up to K.
        """
        k, metrics = self.k, self.design.metrics
        found, ranks = np.zeros(k + 1), np.arange(1, k + 2)
        for metric in metrics:
            flat = metric.family.uses_items or metric.k is None
            weights = np.ones(k + 1) if flat else metric.weights(ranks, k + 1)
            found += np.where(ranks <= (metric.k or k), weights / weights[0], 0.0) / len(metrics)
        return found

    @cached_property
    def open(self) -> BoolArray:
        """Return which targets may or may not be in the top K."""
        return np.asarray((self.now.beaten < self.k) & (self.now.scored < self.now.others))

    @cached_property
    def missing(self) -> IntArray:
        """Return with how many items each open target has not been compared."""
        return np.where(self.open, self.now.others - self.now.scored, 0)

    @cached_property
    def costs(self) -> FloatArray:
        """Return what it costs to rank each user in full."""
        return self.now.of_users(self.missing)

    @property
    def left(self) -> float:
        """Return how many items may still be scored."""
        allowed = self.now.allowed
        return math.inf if allowed is None else allowed - int(self.now.scored.sum())

    @property
    def reached(self) -> int:
        """Return with how many items every open target was compared at least."""
        return int(self.now.scored[self.open].min(initial=int(self.now.scored.max())))

    def is_worth(self, end: int) -> bool:
        """Return whether a further stage is better than full rankings now.

        The variance of n full rankings is (sum of the standard deviations of all open targets)^2
        / n. One more user, who is assumed to have the minimum, adds (sum of the ranges of all open
        targets)^2 / n^2. A stage lowers the first sum, about as much as the last stage did. It is
        worth its cost if the error then needs fewer scores in all, or, where a budget ends the
        draw, if the variance is smaller although fewer users are drawn.
        """
        now, left = self.now, self.left
        if not self.open.any() or self.missing.sum() <= left < math.inf:
            return False
        cost = int(np.where(self.open, np.minimum(end, now.others) - now.scored, 0).sum())
        each = float(self.costs.max())
        if not cost or cost >= left - min(_ENOUGH * each, left / 2):
            return False
        if self.design.error is not None:
            if self.reached < _FORESEEABLE * self.k:
                return True
            usual = float(self.costs[self.costs > 0].mean())
            before, after = self._needed(0) * usual, self._needed(1) * usual
            if before < left:
                return cost + after < before
        variance, part = self._variance_and_part
        many, fewer = left / each, (left - cost) / each
        return variance * part / fewer + 1.0 / fewer**2 < variance / many + 1.0 / many**2

    def _needed(self, stages: int) -> float:
        """Return how many users the error needs, some stages from now.

        Each stage lowers the value of the open targets by a share. From stage to stage this share
        falls by the factor that the last two stages showed. The result is at most the number of
        users who are then still open.
        """
        assert self.design.error is not None
        now, notes = self.now, self.now.notes
        earlier, before, value = (
            float(self.gains[np.minimum(each, self.k)].sum())
            for each in (notes.earlier, notes.before, now.beaten)
        )
        users = np.count_nonzero(self.costs)
        if value <= 0.0 or not users:
            return float(users)
        loss, loss_before = 1.0 - value / before, 1.0 - before / earlier
        slower = min(loss / loss_before, 1.0) if loss_before > 0.0 else 0.0
        to_come = slower ** np.arange(1, math.ceil(self._stages_left) + 1)
        at_end = value * float(np.prod(1.0 - loss * to_come))
        value_range = float(self.gains[np.minimum(now.beaten, self.k)[self.open]].sum())
        seek = (self.design.error * at_end / quantile(LEVEL)) ** 2
        square = self._variance_and_part[0] * value_range**2 * float(to_come[stages:].sum())
        found = (square + math.sqrt(square**2 + 4.0 * value_range**2 * seek)) / (2.0 * seek)
        return min(found, users * float(np.prod(1.0 - loss * to_come[:stages])))

    @property
    def _stages_left(self) -> float:
        """Return how many stages there are to the end of the catalogue."""
        far = max(float(self.now.others.max()) / max(self.reached, 1), _GROWTH)
        return math.log(far) / math.log(_GROWTH)

    @cached_property
    def _variance_and_part(self) -> tuple[float, float]:
        """Return (standard deviation / range)^2, and the part of it that a stage leaves."""
        notes, beaten = self.now.notes, self.now.beaten[self.open]
        last = float(self.deviations[beaten].sum())
        square = float(last / self.gains[beaten].sum()) ** 2
        part = usual = _USUALLY_LEFT * (1.0 - 1.0 / (self._stages_left + 1.0))
        if self.reached > self.k:
            earlier = _deviations(notes.earlier, notes.before, self.gains)
            total = float(earlier[notes.before[notes.before < self.k]].sum())
            part = last / total * math.sqrt(usual) if total > 0 else 1.0
        return square, part

    @cached_property
    def deviations(self) -> FloatArray:
        """Return the standard deviation of the values of targets, by how often they were beaten."""
        return _deviations(self.now.notes.before, self.now.beaten, self.gains)

    def draw(self) -> DesignNotes:
        """Put users with open targets into strata, and fix the order in which they are ranked."""
        now, error = self.now, self.design.error
        beaten, users = np.minimum(now.beaten, self.k), len(now.user_order)
        affordable = self.left // max(float(self.costs.max()), 1.0)
        draws = max(affordable if error is None else min(self._needed(0), affordable), 1.0)
        variance, square_range = (
            now.of_users(np.where(self.open, each[beaten] ** 2, 0.0))
            for each in (self.deviations, self.gains)
        )
        # A user may have the minimum, although all users like this one still have the maximum.
        deviation = np.sqrt(variance + _ASSUMED * square_range / draws)
        # Of several models, users who are open under the same ones are alike.
        number = np.repeat(2.0 ** np.arange(now.models), len(now.users) // now.models)
        models = now.of_users(self.open * number) * (now.models > 1)
        waiting = self.costs > 0
        max_strata = round(draws / (_FOR_STRATUM if error is None else _FOR_PILOT))
        stratum, draw_order = (np.zeros(users, dtype=np.int64) for _ in range(2))
        keys = (models[waiting], -square_range[waiting])
        stratum[waiting] = 1 + strata_of(keys, deviation[waiting], max_strata)
        in_order = now.user_order[waiting[now.user_order]]
        draw_order[in_order] = draw_order_of(stratum[in_order], deviation[in_order])
        notes = replace(
            now.notes,
            before=now.beaten.copy(),
            stratum=stratum[now.users],
            draw_order=-draw_order[now.users],
            reserved=self.missing,
        )
        pilot = max(FEWEST_PILOT, PILOT_OF_STRATUM * int(stratum.max())) * float(self.costs.max())
        settled = error is not None and pilot <= _PART_OF_PILOT * self.left
        return pilot_of(notes, now) if settled else notes


def _deviations(before: IntArray, after: IntArray, gains: FloatArray) -> FloatArray:
    """Return the standard deviation of losses between two stages, by how often targets were beaten.

    They were beaten so often ``before`` the stage. Later losses are smaller, but likely in the same
    proportion. Targets beaten K times do not change any more.
    """
    k = len(gains) - 1
    changing = before < k
    start = before[changing]
    loss = gains[start] - gains[np.minimum(after[changing], k)]
    of_all = float((loss**2).sum() / max((gains[start] ** 2).sum(), 1e-300))
    count = np.bincount(start, minlength=k + 1)
    mean = np.bincount(start, loss, minlength=k + 1) / np.maximum(count, 1)
    squares = np.bincount(start, (loss - mean[start]) ** 2, minlength=k + 1)
    variance = (squares + _PRIOR * of_all * gains**2) / (count + _PRIOR)
    return np.sqrt(variance)
