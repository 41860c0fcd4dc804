"""`plan`: which design to use in an evaluation, before anything is scored.

A certified or exact design on a part of the users has the error of drawing these users, for which
there is a formula. A fixed sample has the interval that `estimate` gives for the ranks that are
expected under P(R); joint draws of two models with these ranks give the difference that is
significant. A small sample with some users ranked in full is planned in the same way, if it takes
fewer scores. A guided design runs as in `evaluate`, on ranks drawn from P(R).
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
from unsample.questions.estimate.result import PRIOR, Estimate
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

#: The error sought by default.
_ERROR = 0.05
#: The K of the Recall that is guessed for metrics without K.
_USUAL_K = 10
#: The odds of popularity as a guide, about: they are 19 for EASE on ml-1m and 6 on citeulike-a, by
#: ``benchmarks/guided.py``.
_USUAL_ODDS = 10.0
#: The most users that are simulated. The half-width for more users falls with the square root of
#: their number.
_MAX_SIMULATED = 10_000
#: The most items that a guide lists for all simulated users together.
_MAX_LISTED = 2_000_000
#: The seed of simulated users, so that a plan is the same each time.
_SEED = 5874934615388537135
#: The fewest users that an exact design is planned for: fewer do not show how much users vary.
_MIN_USERS = 20
#: The cost of a certified evaluation is random: the reserve, in standard deviations.
_RESERVE = 3.0
#: The cost of a guided evaluation is random too: the multiple of its cost to allow for.
_ALLOWED = 1.5
#: The largest fixed sample, ...
_MAX_SAMPLE = 100_000
#: ... and its largest part of the catalogue: beyond it, rank in full.
_MAX_PART = 0.5
#: The factor between the sizes of samples that are tried.
_STEP = 1.05
#: The sample of users who are not ranked in full, where some are.
_BESIDE = 99
#: The factor between the numbers of users in full that are tried.
_STEP_IN_FULL = 1.1
#: The smallest and the largest error that a guided design is asked for.
_MIN_ERROR = 1e-3
_MAX_ERROR = 0.9
#: The smallest variance over users, so that errors are positive.
_MIN_VARIANCE = 1e-24
#: Rounding errors above a whole number of users are not rounded up to the next user.
_ROUNDING = 1e-9


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
    """Return the cost of each design and the width of its interval, before any item is scored.

    The designs are ``fixed``, ``guided`` and ``certified`` (``exact`` for metrics without a K). The
    last is exact for a user, and evaluates as many users as are needed. A fixed design may rank
    some users in full and give 99 items to each of the others, if that needs fewer scores than a
    larger sample. The half-width is the one of ``interval(population=False)`` of the result of
    `evaluate`: for the metric of these users.

    Parameters
    ----------
    items, users
        The size of the catalogue and the number of users to evaluate, with one target each. (With
        m targets of each user, costs are m times as high.)
    metrics
        The metric that matters, such as ``"NDCG@10"``.
    budget
        How many scores may be asked for, as in `evaluate`; by default as many as a design needs.
    error
        The half-width sought, relative to the metric, as in `evaluate`; by default 0.05.
    difference
        Instead of ``error``: the difference of two models that should be significant, such as
        ``0.01``, or ``"5%"`` of the metric. It is half the width of the interval of `compare`, for
        two models with the same P(R) on one data set whose users are independent. (In fact users
        have much in common under two models. `compare` pairs them, so that smaller differences are
        significant.) Costs are for one model.
    pilot
        P(R) as far as it is known, such as ``distribution()`` of an earlier result.
    recall
        Without a pilot, a guess of Recall@K: P(R) is the power law that gives it. By default 0.1,
        or 1 - (1 - K/items)^2 if that is more, as in small catalogues.
    odds
        How good the guide is: the odds that an item that beats the target comes before an item that
        does not. By default 10, as for many guides by popularity; 1 is a random order. For EASE on
        ml-1m popularity has the odds 19, itemKNN 56.
    protocol
        How targets are ranked, as in `unsample.estimate`; intervals of samples depend on it.

    Returns
    -------
    Plan
        The outcome of each design, and the best of them.

    Raises
    ------
    MetricError
        If there is not exactly one metric, or a small sample shows it without bias.
    DesignError, InputError
        If another argument cannot be, or does not go with the others; the message names it.

    >>> result = plan(items=1000, users=5000, error=0.1)
    >>> best = result.best
    >>> best.name, round(best.half_width / result.value, 1)
    ('guided', 0.1)
    >>> bool(best.cost < 0.05 * result.full)               # of the scores of a full ranking
    True
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
    odds = _USUAL_ODDS if odds is None else odds
    odds = check_real("odds", odds, low=0.0, open_low=True)
    check_protocol(protocol)
    k = metric.k or min(_USUAL_K, items - 1)
    if pilot is None:
        guess, source = power_law(items, k, recall=recall)
    else:
        guess, source = from_pilot(pilot, items, k=k)
    planner = _Planner(
        items=items,
        users=users,
        metric=metric,
        guess=guess,
        odds=odds,
        protocol=protocol,
        error=error,
        difference=difference,
    )
    return Plan(
        catalogue=items,
        users=users,
        metric=metric,
        guess=source,
        value=planner.value,
        odds=odds,
        error=error,
        difference=planner.difference_sought,
        allowed=budget,
        outcomes=planner.needed() if budget is None else planner.within(budget),
    )


def _only_metric(metrics: str | Metric | Iterable[str | Metric], items: int) -> Metric:
    """Return the only metric; refuse several, and metrics that need no plan."""
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
    """The outcomes of designs, on users whose ranks come from a guess of P(R)."""

    items: int
    users: int
    metric: Metric
    guess: RankDistribution
    odds: float
    protocol: str | None
    error: float
    difference: float | str | None

    # -- the metric, and what is sought -----------------------------------------------------

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
    def difference_sought(self) -> float | None:
        """Return the difference that should be significant; a percentage is a part of the value."""
        if self.difference is None:
            return None
        text = str(self.difference).strip()
        number = self.difference
        with contextlib.suppress(ValueError):
            number = float(text.removesuffix("%"))
        hint = "a difference of the metric such as 0.01, or '5%' of it"
        difference = check_real("difference", number, low=0.0, open_low=True, hint=hint)
        if text.endswith("%"):
            difference *= self.value / 100.0
        users = self._users_for(difference)
        if users > self.users:
            raise InputError(
                f"difference must be one that full rankings of {self.users:,} users tell apart, "
                f"unpaired, got {difference:.4g}: that takes about {users:,} users"
            )
        return difference

    def _users_for(self, difference: float) -> int:
        """Return how many users make a difference significant, if two models rank them in full.

        The error of the difference of two means over m users is sd sqrt(2/m).
        """
        users = 2.0 * (self._z_of_verdicts * self._sd / difference) ** 2
        return math.ceil(users - _ROUNDING)

    @cached_property
    def _weights(self) -> FloatArray:
        """Return the metric of a target in each bin of the guess."""
        return bin_weights(self.metric, self.guess.grid, items=self.items)

    @cached_property
    def _sd(self) -> float:
        """Return the standard deviation of the metric over users."""
        square = float(self.guess.mass @ self._weights**2)
        return math.sqrt(max(square - self.value**2, _MIN_VARIANCE))

    @cached_property
    def _z(self) -> float:
        """Return the half-width of a 95 % interval, in standard errors."""
        return quantile(DEFAULT_LEVEL)

    @cached_property
    def _z_of_verdicts(self) -> float:
        """Return how many standard errors a significant difference has."""
        return math.sqrt(CAUTION) * quantile(two_sided(DEFAULT_LEVEL))

    # -- all designs ------------------------------------------------------------------------

    def within(self, budget: int) -> tuple[Outcome, ...]:
        """Return each design for which the budget is enough."""
        sampled = min(budget // self.users - 1, self._sizes[-1])
        fixed = self._fixed(sampled)
        in_full = min(self._in_full_for(budget), self.users // 2)
        if in_full >= _MIN_USERS:
            mixed = self._fixed(_BESIDE, full=in_full)
            fixed = min(fixed, mixed, key=lambda outcome: outcome.half_width)
        outcomes = [fixed]
        guided = self._guided(budget=min(budget, self.items * self.users))
        if guided is not None:
            outcomes.append(guided)
        users = bisect_right(range(1, self.users + 1), budget, key=self._budget_for)
        if users >= min(_MIN_USERS, self.users):
            outcomes.append(self._exact_for(users))
        return tuple(outcomes)

    def needed(self) -> tuple[Outcome, ...]:
        """Return each design at the cost that it needs."""
        first = bisect_left(self._sizes, True, key=lambda size: self._fixed(size).enough)
        fixed = self._fixed(self._sizes[min(first, len(self._sizes) - 1)])
        outcomes = [self._with_some_in_full(fixed) or fixed]
        guided = self._guided(error=min(max(self._error_sought, _MIN_ERROR), _MAX_ERROR))
        if guided is not None:
            outcomes.append(guided)
        # The variance of the mean of m of M users is sd^2 (1/m - 1/M).
        variance = (self._error_sought * self.value / (self._z * self._sd)) ** 2
        users = math.ceil(1.0 / (variance + 1.0 / self.users) - _ROUNDING)
        outcomes.append(self._exact_for(max(users, min(_MIN_USERS, self.users))))
        return tuple(outcomes)

    @property
    def _error_sought(self) -> float:
        """Return the relative half-width for these users at which the aim is reached.

        The aim is this error, or that a difference is significant. The variance of a mean over
        users like these is the variance of the draw and sd^2 / M, for M users.
        """
        if self.difference_sought is None:
            return self.error
        variance = (self.difference_sought / (self._z_of_verdicts * math.sqrt(2.0))) ** 2
        of_draw = max(variance - self._sd**2 / self.users, 0.0)
        return self._z * math.sqrt(of_draw) / self.value

    def _smallest_difference(self, half_width: float) -> float:
        """Return the smallest significant difference, if values are means over users."""
        # For users like these, the variation of users is added.
        error = math.hypot(half_width / self._z, self._sd / math.sqrt(self.users))
        return self._z_of_verdicts * math.sqrt(2.0) * error

    # -- an exact design, on a part of the users --------------------------------------------

    def _exact_for(self, users: int) -> Outcome:
        """Return an exact design for m of M users: their mean has the variance sd^2 (1/m - 1/M)."""
        design, mean_cost, _ = self._exact
        half_width = self._z * self._sd * math.sqrt(max(1.0 / users - 1.0 / self.users, 0.0))
        return Outcome(
            design,
            budget=self._budget_for(users),
            cost=users * mean_cost,
            users=users,
            half_width=half_width,
            smallest_difference=self._smallest_difference(half_width),
        )

    def _budget_for(self, users: int) -> int:
        """Return a budget that is almost surely enough for so many users."""
        _, mean_cost, sd = self._exact
        for_each = min(mean_cost + _RESERVE * sd / math.sqrt(users), self.items)
        return math.ceil(users * for_each)

    @cached_property
    def _exact(self) -> tuple[Design, float, float]:
        """Return the exact design, and the mean and the deviation of the scores of a target."""
        if self.metric.k is None:
            return Exact(), float(self.items), 0.0
        design = Certified(self.metric.k)
        met = self._simulate(design).met
        # Beside the items that a target meets, it is scored itself.
        return design, float(met.mean() + 1.0), float(met.std())

    # -- sampled designs --------------------------------------------------------------------

    @cached_property
    def _sizes(self) -> list[int]:
        """Return the sizes of fixed samples that are tried."""
        largest = min(max(int(_MAX_PART * self.items), 1), _MAX_SAMPLE)
        steps = math.ceil(math.log(largest, _STEP)) + 1
        return [int(size) for size in np.unique(np.geomspace(1, largest, steps).round())]

    def _in_full_for(self, budget: float) -> int:
        """Return how many users can be ranked in full if each of the others has a small sample.

        >>> guess, _ = power_law(1000, 10, recall=0.1)
        >>> planner = _Planner(
        ...     items=1000, users=500, metric=_metrics.NDCG @ 10, guess=guess, odds=1.0,
        ...     protocol=None, error=0.1, difference=None,
        ... )
        >>> planner._in_full_for(500 * 100 + 40 * 900)        # 900 more scores for each of 40 users
        40
        """
        in_sample = _BESIDE + 1
        more_in_full = self.items - in_sample
        if more_in_full <= 0:
            return 0
        return int((budget - self.users * in_sample) // more_in_full)

    def _with_some_in_full(self, fixed: Outcome) -> Outcome | None:
        """Return a small sample with as many users in full as are needed; None if that costs more.

        ``fixed`` is the sample for all users that reaches the aim, if one does.
        """
        largest = self.users // 2
        if fixed.enough:
            largest = min(largest, self._in_full_for(fixed.cost) - 1)
        if largest < _MIN_USERS:
            return None
        steps = math.ceil(math.log(largest / _MIN_USERS) / math.log(_STEP_IN_FULL)) + 1
        numbers = np.unique(np.geomspace(_MIN_USERS, largest, steps).round()).astype(int).tolist()

        def is_enough(full: int) -> bool:
            return self._fixed(_BESIDE, full=full).enough

        if not is_enough(largest):
            return None
        smallest = numbers[bisect_left(numbers[:-1], True, key=is_enough)]
        return self._fixed(_BESIDE, full=smallest)

    def _fixed(self, sampled: int, *, full: int = 0) -> Outcome:
        """Return a fixed sample, with some users in full: the interval for the expected ranks."""
        in_samples = self.users - full
        counts = expected_counts(self.guess, SamplingModel(self.items, sampled), targets=in_samples)
        if full:
            of_full = expected_full(self.guess, self.items, targets=full)
            counts = RankCounts.merge([counts, of_full])
        (entry,) = estimate_counts(counts, metrics=self.metric, protocol=self.protocol).entries
        low, high = entry.interval(population=False)
        half_width = (high - low) / 2.0
        smallest_difference = self._half_width_of_difference(entry)
        if self.difference_sought is None:
            enough = half_width <= self.error * self.value
        else:
            enough = smallest_difference <= self.difference_sought
        cost = in_samples * (sampled + 1) + full * self.items
        return Outcome(
            Fixed(sampled, full=full),
            budget=cost,
            cost=float(cost),
            users=self.users,
            half_width=half_width,
            smallest_difference=smallest_difference,
            enough=enough,
        )

    def _half_width_of_difference(self, entry: Estimate) -> float:
        """Return half the width of the interval of a difference, of two models with these ranks."""
        if entry.source == PRIOR and entry.cloud is not None:
            draws = joint_draws({"A": entry.cloud, "B": entry.cloud}, [self.metric])
            of_both = draws[self.metric.name]
            difference = FromDraws.of(of_both[:, 0] - of_both[:, 1])
            low, high = difference.interval(two_sided(DEFAULT_LEVEL))
            return (high - low) / 2.0
        # Of two models between bounds, the difference has the sum of both half-widths.
        low, high = entry.interval(population=False)
        return high - low

    def _guided(self, *, budget: int | None = None, error: float | None = None) -> Outcome | None:
        """Return the outcome of a guided design on simulated users; None if it cannot be used.

        It needs a K, and a budget that is not too small.

        If fewer users are simulated than there are, all of them take the guided part, and the same
        number of users is ranked in full: the error of a draw depends on its own size.
        """
        if self.metric.k is None:
            return None
        simulated = len(self._ranks)
        budget_of_simulated = None if budget is None else budget * simulated // self.users
        try:
            findings = self._simulate(Guided(error=error), budget=budget_of_simulated)
        except BudgetError:
            return None
        (entry,) = estimates_of(findings, (self.metric,)).entries
        low, high = entry.interval(population=False)
        half_width = (high - low) / 2.0
        times_as_many = self.users / simulated
        if error is None:
            cost = findings.scored * times_as_many
            half_width /= math.sqrt(times_as_many)
        else:
            drawn = findings.notes.draw_order > 0
            before_draw = np.asarray(findings.items) - 1 - findings.notes.reserved
            in_full = float((findings.met - before_draw)[drawn].sum())
            cost = (findings.scored - in_full) * times_as_many + in_full
        return Outcome(
            findings.design,
            budget=math.ceil(_ALLOWED * cost) if budget is None else budget,
            cost=cost,
            users=self.users,
            half_width=half_width,
            smallest_difference=self._smallest_difference(half_width),
        )

    def _simulate(self, design: Design, *, budget: int | None = None) -> Findings:
        """Run a design on simulated users."""
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
        largest = max(_MIN_USERS, _MAX_LISTED // (self.metric.k or 1))
        size = min(self.users, _MAX_SIMULATED, largest)
        return draw_ranks(self.guess, size, rng=np.random.default_rng(_SEED))
