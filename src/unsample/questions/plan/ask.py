"""`plan`: which design to use in an evaluation, before anything is scored.

A certified or exact design on a part of the users has the error of drawing these users, a formula.
A fixed sample has the interval that `estimate` gives for the ranks that P(R) leads one to expect,
and tells apart what joint draws of two models with these ranks tell apart. So has a small sample
beside which some users are ranked in full, which is planned where it takes fewer scores. A guided
design runs as in `evaluate`, on ranks drawn from P(R).
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray, check_integer, check_real
from unsample._threads import cached_property
from unsample.counts import RankCounts
from unsample.designs import Certified, Design, Exact, Findings, Fixed, Guided
from unsample.errors import BudgetError, DesignError, InputError, MetricError
from unsample.metrics import Metric
from unsample.posterior import CAUTION, joint_draws
from unsample.questions.estimate.ask import estimate_counts
from unsample.questions.estimate.prior_choice import check_protocol
from unsample.questions.estimate.result import PRIOR
from unsample.questions.evaluate.ask import estimates_of
from unsample.questions.plan.assumed_ranks import (
    draw_ranks,
    expected_counts,
    expected_full,
    from_pilot,
    power_law,
)
from unsample.questions.plan.result import Outcome, Plan
from unsample.sampling import LARGEST_URN, RankDistribution, SamplingModel, bin_weights
from unsample.uncertainty import DEFAULT_LEVEL, FromDraws, quantile, two_sided

_ERROR = 0.05
#: The K of the Recall that is guessed for metrics without K.
_USUAL_K = 10
#: How good popularity is as a guide: its odds are 19 for EASE on ml-1m and 6 on citeulike-a, by
#: ``benchmarks/guided.py``.
_USUAL_ODDS = 10.0
#: The most users that are simulated, and the most places of items that a guide lists for them. The
#: half-width for more users falls with the square root of their number.
_SIMULATED, _PLACES = 10_000, 2_000_000
#: The seed of simulated users, so that a plan is the same each time.
_SEED = 5874934615388537135
#: The fewest users that an exact design is planned for: fewer do not show how much users vary.
_FEWEST = 20
#: The cost of a certified evaluation is random: the reserve, in standard deviations.
_IN_HAND = 3.0
#: The cost of a guided evaluation is random too: the part of its cost to allow for.
_ALLOWED = 1.5
#: The largest fixed sample, the largest as a part of the catalogue (beyond it, rank in full), and
#: the factor between sizes that are tried.
_LARGEST_SAMPLE, _LARGEST_PART, _STEP = 100_000, 0.5, 1.05
#: The sample beside which some users are ranked in full, and the factor between numbers of users.
_BESIDE, _STEP_IN_FULL = 99, 1.1
#: The least and the largest error that a guided design is asked for.
_LEAST_ERROR, _LARGEST_ERROR = 1e-3, 0.9


def plan(
    *,
    items: int,
    users: int,
    metrics: str | Metric | Iterable[str | Metric] = "NDCG@10",
    budget: int | None = None,
    error: float | None = None,
    difference: float | str | None = None,
    pilot: RankDistribution | None = None,
    recall: float | None = None,
    odds: float | None = None,
    protocol: str | None = None,
) -> Plan:
    """Tell what each design costs and how sure the metric would be, before any item is scored.

    The designs are ``fixed``, ``guided`` and ``certified`` (``exact`` for metrics without a K). The
    last is exact for a user, and evaluates as many users as are needed. A fixed design may rank
    some users in full beside 99 items for each of the others, where that needs fewer scores than a
    larger sample. The half-width is that of
    ``interval(population=False)`` of the result of `evaluate`: the metric of these users.

    Parameters
    ----------
    items, users
        The size of the catalogue and the number of users to evaluate, with one target each. (If
        users have several, costs are as many times as high.)
    metrics
        The metric that matters, such as ``"NDCG@10"``.
    budget
        How many scores may be asked for, as in `evaluate`. By default as many as a design needs.
    error
        The wanted half-width of the interval, relative to the metric, as in `evaluate`; 0.05 by
        default.
    difference
        Instead of ``error``: the difference of two models that should be told apart, such as
        ``0.01``, or ``"5%"`` of the metric. Both have the same P(R) on one data set, and the
        difference is half the width of the interval of `compare`, where what users do under one
        model tells nothing of the other. (Models agree on users: `compare` pairs them, and tells
        smaller differences apart.) Costs are those of one model.
    pilot
        P(R) as far as it is known, such as ``distribution()`` of an earlier result.
    recall
        Without a pilot, a guess of Recall@K: P(R) is the power law that gives it. By default 0.1,
        or 1 - (1 - K/items)^2 if that is more, as in small catalogues.
    odds
        How good the guide is: the odds that an item that beats the target comes before one that
        does not. By default 10, as popularity often has; 1 is a random order. For EASE on ml-1m
        popularity has 19, itemKNN 56.
    protocol
        How targets are ranked, as in `unsample.estimate`; intervals of samples depend on it.

    >>> result = plan(items=1000, users=5000, error=0.1)
    >>> result.best.half_width / result.value <= 0.1, result.best.cost < 0.2 * 1000 * 5000
    (True, True)
    """
    items = check_integer("items", items, minimum=2, maximum=LARGEST_URN - 1, error=DesignError)
    users = check_integer("users", users, minimum=1, hint="the number of users to evaluate")
    metric = _only_metric(metrics, items)
    if budget is not None:
        hint = "each target is scored, and at least one item beside it"
        budget = check_integer("budget", budget, minimum=2 * users, hint=hint)
    if error is not None and difference is not None:
        raise InputError(
            f"error must be left out where difference says what is wanted, got {error!r}"
        )
    error = _ERROR if error is None else error
    error = check_real("error", error, low=0.0, high=1.0, open_low=True, open_high=True)
    odds = check_real("odds", _USUAL_ODDS if odds is None else odds, low=0.0, open_low=True)
    check_protocol(protocol)
    k = metric.k or min(_USUAL_K, items - 1)
    guess, source = power_law(items, k, recall) if pilot is None else from_pilot(pilot, items, k)
    planner = _Planner(items, users, metric, guess, odds, protocol, error, difference)
    return Plan(
        catalogue=items,
        users=users,
        metric=metric,
        guess=source,
        value=planner.value,
        odds=odds,
        error=error,
        difference=planner.apart,
        allowed=budget,
        outcomes=planner.needed() if budget is None else planner.within(budget),
    )


def _only_metric(metrics: str | Metric | Iterable[str | Metric], items: int) -> Metric:
    wanted = _metrics.parse_all(metrics)
    if len(wanted) != 1:
        raise MetricError(
            f"metrics must be one metric to plan for, got {', '.join(map(str, wanted))}; plan for "
            "the one that is hardest to know: the smallest K"
        )
    metric = wanted[0]
    if (metric.k or 0) > items:
        raise MetricError(f"the K of metrics must be at most items = {items}, got {metric}")
    if metric.k is None and (metric.family.uses_items or not metric.family.bounded):
        raise MetricError(
            f"metrics must be one of the top of the list to plan for, got {metric}, which a small "
            "sample shows without bias: use design='fixed'"
        )
    return metric


@dataclass(frozen=True, eq=False)
class _Planner:
    """What each design would find, on users with ranks from a guess of P(R)."""

    items: int
    users: int
    metric: Metric
    guess: RankDistribution
    odds: float
    protocol: str | None
    error: float
    difference: float | str | None

    # -- what is wanted ---------------------------------------------------------------------

    @cached_property
    def value(self) -> float:
        """Return the value of the metric under the guess."""
        value = float(self.guess.mass @ self._weights)
        if value <= 0.0:
            raise InputError(
                f"pilot must have some targets in the top {self.metric.k}, got none: an error "
                f"relative to {self.metric} = 0 has no meaning"
            )
        return value

    @cached_property
    def apart(self) -> float | None:
        """Return the difference to tell: a number as it is, a percentage as a part of the value."""
        if self.difference is None:
            return None
        text, number = str(self.difference).strip(), self.difference
        with contextlib.suppress(ValueError):
            number = float(text.removesuffix("%"))
        hint = "a difference of the metric such as 0.01, or '5%' of it"
        found = check_real("difference", number, low=0.0, open_low=True, hint=hint)
        found *= self.value / 100.0 if text.endswith("%") else 1.0
        if self._users_for(found) > self.users:
            raise InputError(
                f"difference must be one that full rankings of {self.users:,} users tell apart, "
                f"unpaired, got {found:.4g}: that takes about {self._users_for(found):,} users"
            )
        return found

    def _users_for(self, apart: float) -> int:
        """Return how many users tell a difference apart, ranked in full under both models."""
        return math.ceil(2.0 * (self._z_of_verdicts * self._sd / apart) ** 2 - 1e-9)

    @cached_property
    def _weights(self) -> FloatArray:
        return bin_weights(self.metric, self.guess.grid, self.items)

    @cached_property
    def _sd(self) -> float:
        """Return the standard deviation of the metric over users."""
        square = float(self.guess.mass @ self._weights**2)
        return math.sqrt(max(square - self.value**2, 1e-24))

    @cached_property
    def _z(self) -> float:
        return quantile(DEFAULT_LEVEL)

    @cached_property
    def _z_of_verdicts(self) -> float:
        """Return how many errors a difference must have to be significant."""
        return math.sqrt(CAUTION) * quantile(two_sided(DEFAULT_LEVEL))

    # -- all designs ------------------------------------------------------------------------

    def within(self, budget: int) -> tuple[Outcome, ...]:
        """Return each design for which the budget is enough."""
        sampled = min(budget // self.users - 1, self._sizes[-1])
        fixed = self._fixed(sampled)
        full = min(self._in_full_for(budget), self.users // 2)
        if full >= _FEWEST:
            mixed = self._fixed(_BESIDE, full=full)
            fixed = min(fixed, mixed, key=lambda each: each.half_width)
        found = [fixed, self._guided(budget=min(budget, self.items * self.users))]
        users = bisect_right(range(1, self.users + 1), budget, key=self._budget_for)
        found += [self._of_users(users)] if users >= min(_FEWEST, self.users) else []
        return tuple(each for each in found if each is not None)

    def needed(self) -> tuple[Outcome, ...]:
        """Return each design at the cost that it needs."""
        enough = bisect_left(self._sizes, True, key=lambda size: self._fixed(size).enough)
        fixed = self._fixed(self._sizes[min(enough, len(self._sizes) - 1)])
        fixed = self._with_some_in_full(fixed) or fixed
        guided = self._guided(error=min(max(self._error_sought, _LEAST_ERROR), _LARGEST_ERROR))
        share = (self._error_sought * self.value / (self._z * self._sd)) ** 2 + 1.0 / self.users
        users = math.ceil(1.0 / share - 1e-9)
        exact = self._of_users(max(users, min(_FEWEST, self.users)))
        return tuple(each for each in (fixed, guided, exact) if each is not None)

    @property
    def _error_sought(self) -> float:
        """Return the relative half-width for these users that does what was asked for."""
        if self.apart is None:
            return self.error
        whole = (self.apart / (self._z_of_verdicts * math.sqrt(2.0))) ** 2
        draw = math.sqrt(max(whole - self._sd**2 / self.users, 0.0))
        return self._z * draw / self.value

    def _tells_apart(self, half_width: float) -> float:
        """Return the smallest difference that is told apart, where values are means over users."""
        # For users like these, what users vary by comes on top.
        error = math.hypot(half_width / self._z, self._sd / math.sqrt(self.users))
        return self._z_of_verdicts * math.sqrt(2.0) * error

    # -- an exact design, on a part of the users --------------------------------------------

    def _of_users(self, users: int) -> Outcome:
        """Return an exact design: the mean of m of M users varies by sd^2 (1/m - 1/M)."""
        design, mean, _ = self._exact
        half_width = self._z * self._sd * math.sqrt(max(1.0 / users - 1.0 / self.users, 0.0))
        apart, budget = self._tells_apart(half_width), self._budget_for(users)
        return Outcome(design, budget, users * mean, users, half_width, apart)

    def _budget_for(self, users: int) -> int:
        """Return which budget is almost surely enough for so many users."""
        _, mean, sd = self._exact
        return math.ceil(users * min(mean + _IN_HAND * sd / math.sqrt(users), self.items))

    @cached_property
    def _exact(self) -> tuple[Design, float, float]:
        """Return the exact design, and how many scores a target needs: mean and deviation."""
        if self.metric.k is None:
            return Exact(), float(self.items), 0.0
        design = Certified(self.metric.k)
        met = self._simulate(design).met
        return design, float(met.mean() + 1.0), float(met.std())

    # -- sampled designs --------------------------------------------------------------------

    @cached_property
    def _sizes(self) -> list[int]:
        """Return the sizes of fixed samples that are tried."""
        largest = min(max(int(_LARGEST_PART * self.items), 1), _LARGEST_SAMPLE)
        steps = math.ceil(math.log(largest, _STEP)) + 1
        return [int(size) for size in np.unique(np.geomspace(1, largest, steps).round())]

    def _in_full_for(self, budget: float) -> int:
        """Return how many users can be ranked in full beside a small sample for each of the others.

        >>> grid = power_law(1000, 10, 0.1)[0]
        >>> planner = _Planner(1000, 500, _metrics.NDCG @ 10, grid, 1.0, None, 0.1, None)
        >>> planner._in_full_for(500 * 100 + 40 * 900)        # 900 more scores for each of 40 users
        40
        """
        more = self.items - (_BESIDE + 1)
        return int((budget - self.users * (_BESIDE + 1)) // more) if more > 0 else 0

    def _with_some_in_full(self, fixed: Outcome) -> Outcome | None:
        """Return a small sample with as many users in full as are needed; None if that costs more.

        ``fixed`` is the sample for all users that does what was asked for, if it does.
        """
        most = self.users // 2
        if fixed.enough:
            most = min(most, self._in_full_for(fixed.cost) - 1)
        if most < _FEWEST:
            return None
        steps = math.ceil(math.log(most / _FEWEST) / math.log(_STEP_IN_FULL)) + 1
        numbers = np.unique(np.geomspace(_FEWEST, most, steps).round()).astype(int).tolist()

        def is_enough(full: int) -> bool:
            return self._fixed(_BESIDE, full=full).enough

        if not is_enough(most):
            return None
        return self._fixed(_BESIDE, full=numbers[bisect_left(numbers[:-1], True, key=is_enough)])

    def _fixed(self, sampled: int, *, full: int = 0) -> Outcome:
        """Return a fixed sample, with some users in full: the interval for the expected ranks."""
        counts = expected_counts(self.guess, SamplingModel(self.items, sampled), self.users - full)
        if full:
            counts = RankCounts.merge([counts, expected_full(self.guess, self.items, full)])
        (entry,) = estimate_counts(counts, metrics=self.metric, protocol=self.protocol).entries
        low, high = entry.interval(population=False)
        apart = high - low
        if entry.source == PRIOR and entry.cloud is not None:
            draws = joint_draws({"A": entry.cloud, "B": entry.cloud}, [self.metric])
            of_both = draws[self.metric.name]
            difference = FromDraws.of(of_both[:, 0] - of_both[:, 1])
            ends = difference.interval(two_sided(DEFAULT_LEVEL))
            apart = (ends[1] - ends[0]) / 2.0
        cost = (self.users - full) * (sampled + 1) + full * self.items
        half_width = (high - low) / 2.0
        enough = half_width <= self.error * self.value
        if self.apart is not None:
            enough = apart <= self.apart
        design = Fixed(sampled, full=full)
        return Outcome(design, cost, float(cost), self.users, half_width, apart, enough)

    def _guided(self, budget: int | None = None, error: float | None = None) -> Outcome | None:
        """Return what a guided design finds on simulated users; None if it cannot be used.

        It needs a K, and a budget that is not too small.

        Where fewer users are simulated than there are, all of them take the guided part, and as
        many are ranked in full: the error of a draw depends on its own size.
        """
        if self.metric.k is None:
            return None
        size = len(self._ranks)
        allowed = None if budget is None else budget * size // self.users
        try:
            found = self._simulate(Guided(error=error), allowed)
        except BudgetError:
            return None
        (entry,) = estimates_of(found, (self.metric,)).entries
        low, high = entry.interval(population=False)
        half_width, more = (high - low) / 2.0, self.users / size
        if error is None:
            cost, half_width = found.scored * more, half_width / math.sqrt(more)
        else:
            drawn = found.notes.draw_order > 0
            before = np.asarray(found.items) - 1 - found.notes.reserved
            in_full = float((found.met - before)[drawn].sum())
            cost = (found.scored - in_full) * more + in_full
        limit = budget if budget is not None else math.ceil(_ALLOWED * cost)
        apart = self._tells_apart(half_width)
        return Outcome(found.design, limit, cost, self.users, half_width, apart)

    def _simulate(self, design: Design, budget: int | None = None) -> Findings:
        # The same random numbers for every budget, so that widths fall as it grows.
        return design.simulate(
            self._ranks,
            items=self.items,
            rng=np.random.default_rng([_SEED, 0]),
            metrics=self.metric,
            odds=self.odds,
            budget=budget,
        )

    @cached_property
    def _ranks(self) -> IntArray:
        """Return the ranks of simulated users among all items."""
        size = min(self.users, _SIMULATED, max(_FEWEST, _PLACES // (self.metric.k or 1)))
        return draw_ranks(self.guess, size, np.random.default_rng(_SEED))
