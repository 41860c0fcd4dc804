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
from unsample.designs._designs import (
    Design,
    expected_in_the_end,
    largest_k,
    towards_the_kth,
)
from unsample.designs._findings import DesignNotes, Situation, Step
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
#: Full rankings for each stratum on average, where a budget ends the draw.
_FOR_STRATUM = 10
#: The same where a pilot settles the draw, which takes some of them.
_FOR_PILOT = 4 * PILOT_OF_STRATUM
#: A pilot may take this part of what a budget leaves; else the budget alone ends the draw.
_PART_OF_PILOT = 0.25


@dataclass(frozen=True)
class Guided(Design):
    """Unbiased metrics within a budget or an error: a guide finds who is not in the top K.

    Items come in the order of a guide, and a target stops when K items beat it. Of the users with
    other targets, a random part is ranked in full: as far as the budget goes, or as many as the
    error needs. If all of them are ranked, metrics are exact.

    Metrics without a K, such as MRR, depend on all ranks: write MRR@10, or use another design.

    Parameters
    ----------
    k
        How many items must beat a target before it stops; by default the largest K of the metrics.
    error
        How far each metric may be from the full ranking of these users: half the width of the 95 %
        interval, relative to the metric. 0.05 is within 5 %.

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

    @property
    def cheaper(self) -> str:
        return "use design='fixed'"

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        instead = "use design='exact' or 'fixed'"
        if self.error is not None:
            instead = f"leave error out and {instead}"
        k = largest_k(self, metrics, relevant=relevant, instead=instead)
        return replace(self, k=k, metrics=tuple(metrics))

    def min_scores(self, others: IntArray) -> int:
        assert self.k is not None
        first = int(np.minimum(self.k, others).sum())
        return min(first + 2 * int(others.max()), int(others.sum()))

    def step(self, now: Situation) -> Step:
        """Continue the stage, begin the next one, or rank the next users in full."""
        assert self.k is not None
        to_end = towards_the_kth(now, self.k)
        if now.allowed is None and self.error is None:
            return Step(to_end, now.notes)
        outlook = _Outlook(now, self)
        if now.notes.draw_order.any():
            return self._next_users(now, to_end, outlook=outlook)
        stage = _stage(self.k, outlook.reached)
        if (outlook.open & (now.scored < np.minimum(stage, now.others))).any():
            return Step(np.minimum(to_end, stage), now.notes)
        after = _stage(self.k, stage + 1)
        if outlook.is_worth(after):
            notes = replace(now.notes, before=now.beaten.copy(), earlier=now.notes.before)
            return Step(np.minimum(to_end, after), notes)
        return next_in_draw_order(now, outlook.draw(), to_end=to_end)

    def _next_users(self, now: Situation, to_end: IntArray, *, outlook: _Outlook) -> Step:
        """Rank the users of the draw in full, and make the second draw when the pilot is over."""
        notes = now.notes
        message = ""
        if self.error is not None and pilot_is_over(now, to_end):
            notes, message = second_draw(now, self.metrics, unknown=outlook.open, error=self.error)
        elif now.watched and not (to_end > now.scored)[notes.draw_order > 0].any():
            message = so_far(now, self.metrics[0], unknown=outlook.open)
        return next_in_draw_order(now, notes, to_end=to_end, message=message)

    def foreseen(self, now: Situation, goal: IntArray) -> int:
        """Return the budget, or how many items the users who were drawn will have taken.

        Before the second draw nobody knows how many users an error needs. Until then it is the cost
        of ranking all users with an open target.
        """
        assert self.k is not None
        if now.allowed is not None and self.error is None:
            return min(now.allowed, int(now.others.sum()))
        in_the_end = expected_in_the_end(now, self.k)
        chosen = now.notes.draw_order != 0
        if chosen[now.notes.pilot == 0].any():
            in_the_end = np.where(chosen, in_the_end, now.scored)
        scores = int(in_the_end.sum())
        return scores if now.allowed is None else min(scores, now.allowed)


def _stage(k: int, reached: int) -> int:
    """Return the end of the first stage that has at least ``reached`` items.

    >>> _stage(10, 0), _stage(10, 11), _stage(10, 16)
    (10, 15, 23)
    """
    end = k
    while end < reached:
        end = math.ceil(_GROWTH * end)
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
        return _gains(self.design.metrics, self.k)

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

    @cached_property
    def left(self) -> float:
        """Return how many items may still be scored."""
        return self.now.left

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
        if not self.open.any() or self.missing.sum() <= self.left < math.inf:
            return False
        to_stage = np.minimum(end, self.now.others) - self.now.scored
        cost = int(np.where(self.open, to_stage, 0).sum())
        full_ranking = float(self.costs.max())
        kept_back = min(_ENOUGH * full_ranking, self.left / 2)
        if not cost or cost >= self.left - kept_back:
            return False
        if self.design.error is not None:
            if self.reached < _FORESEEABLE * self.k:
                return True
            usual_cost = float(self.costs[self.costs > 0].mean())
            now_in_all = self._needed(stages=0) * usual_cost
            then_in_all = cost + self._needed(stages=1) * usual_cost
            if now_in_all < self.left:
                return then_in_all < now_in_all
        variance, part = self._variance_and_part
        many = self.left / full_ranking
        fewer = (self.left - cost) / full_ranking
        return variance * part / fewer + 1.0 / fewer**2 < variance / many + 1.0 / many**2

    def _needed(self, *, stages: int) -> float:
        """Return how many users the error needs, some stages from now.

        Each stage lowers the value of the open targets by a share, and from stage to stage this
        share falls by a factor: `_Course` foresees it from the last two stages. The result is at
        most the number of users who are then still open.
        """
        assert self.design.error is not None
        now = self.now
        users = np.count_nonzero(self.costs)
        course = _Course(
            earlier=self._value(now.notes.earlier),
            before=self._value(now.notes.before),
            now=self._value(now.beaten),
            stages_left=math.ceil(self._stages_left),
        )
        if course.now <= 0.0 or not users:
            return float(users)
        # The half-width that is sought, as a standard error of the sum over all users.
        sought = self.design.error * course.at_end / quantile(LEVEL)
        value_range = float(self.gains[np.minimum(now.beaten, self.k)[self.open]].sum())
        relative_variance, _ = self._variance_and_part
        variance = relative_variance * value_range**2 * course.variance_after(stages)
        needed = _users_for_error(sought, variance, value_range=value_range)
        return min(needed, users * course.open_after(stages))

    def _value(self, beaten: IntArray) -> float:
        """Return the largest value that all targets may have in sum, if so many items beat them."""
        return float(self.gains[np.minimum(beaten, self.k)].sum())

    @property
    def _stages_left(self) -> float:
        """Return how many stages there are to the end of the catalogue."""
        far = max(float(self.now.others.max()) / max(self.reached, 1), _GROWTH)
        return math.log(far) / math.log(_GROWTH)

    @cached_property
    def _variance_and_part(self) -> tuple[float, float]:
        """Return (standard deviation / range)^2, and the part of it that a stage leaves."""
        notes = self.now.notes
        beaten = self.now.beaten[self.open]
        last = float(self.deviations[beaten].sum())
        relative_variance = float(last / self.gains[beaten].sum()) ** 2
        usually_left = _USUALLY_LEFT * (1.0 - 1.0 / (self._stages_left + 1.0))
        if self.reached <= self.k:
            return relative_variance, usually_left
        deviations = _deviations(notes.earlier, notes.before, gains=self.gains)
        one_stage_ago = float(deviations[notes.before[notes.before < self.k]].sum())
        if one_stage_ago <= 0.0:
            return relative_variance, 1.0
        return relative_variance, last / one_stage_ago * math.sqrt(usually_left)

    @cached_property
    def deviations(self) -> FloatArray:
        """Return the standard deviation of the values of targets, by how often they were beaten."""
        return _deviations(self.now.notes.before, self.now.beaten, gains=self.gains)

    def draw(self) -> DesignNotes:
        """Put users with open targets into strata, and fix the order in which they are ranked."""
        now = self.now
        is_open = self.costs > 0
        deviation, square_range = self._deviation_and_square_range
        stratum = np.zeros(len(is_open), dtype=np.int64)
        stratum[is_open] = 1 + strata_of(
            (self._open_models[is_open], -square_range[is_open]),
            deviation[is_open],
            max_strata=round(self._affordable_draws / self._draws_of_stratum),
        )
        draw_order = np.zeros(len(is_open), dtype=np.int64)
        in_random_order = now.user_order[is_open[now.user_order]]
        draw_order[in_random_order] = draw_order_of(
            stratum[in_random_order], deviation[in_random_order]
        )
        notes = replace(
            now.notes,
            before=now.beaten.copy(),
            stratum=stratum[now.users],
            draw_order=-draw_order[now.users],
            reserved=self.missing,
        )
        return pilot_of(notes, now) if self._has_pilot(int(stratum.max())) else notes

    @property
    def _draws_of_stratum(self) -> int:
        """Return how many users are drawn from each stratum on average."""
        return _FOR_STRATUM if self.design.error is None else _FOR_PILOT

    @cached_property
    def _affordable_draws(self) -> float:
        """Return how many users can be drawn, or how many the error needs if these are fewer."""
        affordable = self.left // max(float(self.costs.max()), 1.0)
        if self.design.error is not None:
            affordable = min(self._needed(stages=0), affordable)
        return max(affordable, 1.0)

    @property
    def _deviation_and_square_range(self) -> tuple[FloatArray, FloatArray]:
        """Return the standard deviation of each user's value, and the square of its range."""
        beaten = np.minimum(self.now.beaten, self.k)
        of_open = np.where(self.open, self.deviations[beaten] ** 2, 0.0)
        variance = self.now.of_users(of_open)
        square_range = self.now.of_users(np.where(self.open, self.gains[beaten] ** 2, 0.0))
        # A user may have the minimum, although all users like this one still have the maximum.
        of_assumed = _ASSUMED * square_range / self._affordable_draws
        return np.sqrt(variance + of_assumed), square_range

    @property
    def _open_models(self) -> FloatArray:
        """Return a number for each user: of several models, under which ones the user is open.

        Users who are open under the same models are alike.
        """
        now = self.now
        bit = np.repeat(2.0 ** np.arange(now.models), len(now.users) // now.models)
        return now.of_users(self.open * bit) * (now.models > 1)

    def _has_pilot(self, strata: int) -> bool:
        """Return whether a pilot settles the draw: if an error is sought, and it costs little."""
        if self.design.error is None:
            return False
        users = max(FEWEST_PILOT, PILOT_OF_STRATUM * strata)
        return users * float(self.costs.max()) <= _PART_OF_PILOT * self.left


@dataclass(frozen=True)
class _Course:
    """How the value of the open targets falls from stage to stage, to the end of the catalogue.

    Two stages ago it was 100, then 80, and now it is 72: the last stage took a tenth, and the one
    before took a fifth. So each stage takes half as large a part as the stage before: the next one
    takes 5 %, and then 2.5 %.

    >>> course = _Course(earlier=100.0, before=80.0, now=72.0, stages_left=2)
    >>> course.factors.tolist(), round(course.at_end, 2)
    ([0.5, 0.25], 66.69)
    """

    earlier: float
    before: float
    now: float
    stages_left: int

    @property
    def loss(self) -> float:
        """Return the part that the last stage took."""
        return 1.0 - self.now / self.before

    @property
    def factors(self) -> FloatArray:
        """Return the part that each stage to come takes, relative to the part of the last stage."""
        loss_before = 1.0 - self.before / self.earlier
        slower = min(self.loss / loss_before, 1.0) if loss_before > 0.0 else 0.0
        return np.asarray(slower ** np.arange(1, self.stages_left + 1))

    def open_after(self, stages: int) -> float:
        """Return the part of today's value that some stages leave."""
        return float(np.prod(1.0 - self.loss * self.factors[:stages]))

    @property
    def at_end(self) -> float:
        """Return the value at the end of the catalogue, which only targets in the top K have."""
        return self.now * float(np.prod(1.0 - self.loss * self.factors))

    def variance_after(self, stages: int) -> float:
        """Return the variance of the losses after some stages, relative to the last stage."""
        return float(self.factors[stages:].sum())


def _users_for_error(sought: float, variance: float, *, value_range: float) -> float:
    """Return how many users n must be drawn for a standard error of a sum over all users.

    Its square is ``variance / n + value_range**2 / n**2``. The second part belongs to one more
    user, who is assumed to have the minimum. Solved for n, this is the larger root of a quadratic
    equation.

    >>> n = _users_for_error(2.0, 300.0, value_range=50.0)
    >>> round(n, 1), round(300.0 / n + 50.0**2 / n**2, 6)
    (82.6, 4.0)
    """
    square = sought**2
    root = math.sqrt(variance**2 + 4.0 * value_range**2 * square)
    return (variance + root) / (2.0 * square)


def _gains(metrics: Sequence[Metric], k: int) -> FloatArray:
    """Return the largest value of a target beaten b times, for b = 0..K: see `_Outlook.gains`.

    >>> from unsample.metrics import parse_all
    >>> _gains(parse_all(["NDCG@3", "HR@2"]), 3).round(3)
    array([1.   , 0.815, 0.25 , 0.   ])
    """
    ranks = np.arange(1, k + 2)
    gains = np.zeros(k + 1)
    for metric in metrics:
        is_flat = metric.family.uses_items or metric.k is None
        weights = np.ones(k + 1) if is_flat else metric.weights(ranks, k + 1)
        relative = np.where(ranks <= (metric.k or k), weights / weights[0], 0.0)
        gains += relative / len(metrics)
    return gains


def _deviations(before: IntArray, after: IntArray, *, gains: FloatArray) -> FloatArray:
    """Return the standard deviation of losses between two stages, by how often targets were beaten.

    They were beaten so often ``before`` the stage. Later losses are smaller, but likely in the same
    proportion. Targets beaten K times do not change any more.

    For HR@2 a target is worth 1 until two items beat it. Of ten targets that none had beaten, two
    lost everything:

    >>> after = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2])
    >>> _deviations(np.zeros(10, dtype=int), after, gains=np.array([1.0, 1.0, 0.0])).round(3)
    array([0.416, 0.447, 0.   ])
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
