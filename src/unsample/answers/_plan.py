"""`plan`: which design to use in an evaluation, before anything is scored.

Exact designs on a part of the users have the error of drawing these users, a formula. A fixed
sample has the interval that `estimate` gives for the histogram that P(R) leads one to expect, and
tells apart what the law of two models with that histogram tells apart. A guided design runs as in
`evaluate`, on ranks drawn from P(R).
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import (
    FloatArray,
    IntArray,
    Seed,
    as_rng,
    check_choice,
    check_integer,
    check_real,
)
from unsample._gone import refuses_gone
from unsample.answers._evaluate import estimates_of
from unsample.answers._guess import draw_ranks, expected_counts, from_pilot, power_law
from unsample.answers._planned import Outcome, Plan
from unsample.answers._result import DEFAULT_LEVEL
from unsample.answers._verdicts import two_sided
from unsample.bounds import Bounds, quantile
from unsample.designs import Certified, Design, Exact, Findings, Fixed, Guided
from unsample.errors import BudgetError, DesignError, InputError, MetricError
from unsample.estimators import CANDIDATES
from unsample.evidence import RankCounts
from unsample.law import LARGEST_URN, Law, RankDistribution, bin_weights, mean_over
from unsample.metrics import Metric
from unsample.prior import CAUTION, FEWEST_USERS, Posterior, shipped

_ERROR = 0.05
#: The K of the Recall that is guessed for metrics without K.
_USUAL_K = 10
#: How good popularity is as a guide: its odds are 19 for EASE on ml-1m and 6 on citeulike-a, by
#: ``benchmarks/guided.py``.
_USUAL_ODDS = 10.0
#: The most users that are simulated, and the most places of items that a guide lists for them. The
#: half-width for more users falls with the square root of their number.
_SIMULATED, _PLACES = 10_000, 2_000_000
#: The fewest users that an exact design is planned for: fewer do not show how much users vary.
_FEWEST = 20
#: The cost of a certified evaluation is random: the reserve, in standard deviations.
_IN_HAND = 3.0
#: The largest fixed sample, and the largest as a part of the catalogue: beyond it, rank in full.
_LARGEST_SAMPLE, _LARGEST_PART = 100_000, 0.5
#: The search for the least cost: most trials, and the part of what is wanted that is close enough.
_TRIALS, _CLOSE = 8, 0.95
#: The factor between the costs of a curve, and between the errors of a guided one.
_STEP = 4
#: The cost of a guided evaluation is random too: the part of its cost to allow for.
_ALLOWED = 1.5
#: The least and the largest error that a guided design is asked for.
_LEAST_ERROR, _LARGEST_ERROR = 1e-3, 0.9


@refuses_gone
def plan(
    *,
    items: int,
    users: int,
    metrics: str | Metric | Iterable[str | Metric] = "NDCG@10",
    budget: int | None = None,
    error: float | None = None,
    difference: float | str | None = None,
    pilot: RankCounts | RankDistribution | npt.ArrayLike | None = None,
    recall: float | None = None,
    odds: float | None = None,
    candidates: str | None = None,
    rng: Seed = 0,
) -> Plan:
    """Tell what each design costs and how sure the metric would be, before any item is scored.

    The designs are ``fixed``, ``guided``, ``certified`` and ``exact``. The last two are exact for a
    user, and evaluate as many users as are needed. The half-width is that of
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
        What is known about P(R): `RankCounts` of sampled ranks, a `RankDistribution`, or ranks
        among all items.
    recall
        Without a pilot, a guess of Recall@K: P(R) is the power law that gives it. By default 0.1,
        or 1 - (1 - K/items)^2 if that is more, as in small catalogues.
    odds
        How good the guide is: the odds that an item that beats the target comes before one that
        does not. By default 10, as popularity often has; 1 is a random order. For EASE on ml-1m
        popularity has 19, itemKNN 56.
    candidates
        ``"unseen"`` or ``"all"``, as in `unsample.estimate`; intervals of samples depend on it.
    rng
        Seed or Generator of the ranks that guided designs are tried on.

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
    if candidates is not None:
        check_choice("candidates", candidates, CANDIDATES)
    k = metric.k or min(_USUAL_K, items - 1)
    if isinstance(pilot, RankCounts):
        pilot = pilot.for_metric(metric)
    guess, source = power_law(items, k, recall) if pilot is None else from_pilot(pilot, items, k)
    planner = _Planner(
        items=items,
        users=users,
        metric=metric,
        guess=guess,
        odds=odds,
        candidates=candidates,
        seed=int(as_rng(rng).integers(2**63)),
        error=error,
        difference=difference,
    )
    return Plan(
        items=items,
        users=users,
        metric=metric,
        guess=source,
        value=planner.value,
        error=error,
        difference=planner.apart,
        users_needed=planner.users_needed,
        allowed=budget,
        outcomes=planner.needed() if budget is None else planner.within(budget),
        curves=planner.curves(),
    )


def _only_metric(metrics: str | Metric | Iterable[str | Metric], items: int) -> Metric:
    wanted = _metrics.parse_all(metrics)
    if len(wanted) != 1:
        raise MetricError(
            f"metrics must be one metric to plan for, got {', '.join(map(str, wanted))}; plan for "
            "the one that is hardest to know: the smallest K"
        )
    if (wanted[0].k or 0) > items:
        raise MetricError(f"the K of metrics must be at most items = {items}, got {wanted[0]}")
    return wanted[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Planner:
    """What each design would find, on users with ranks from a guess of P(R)."""

    items: int
    users: int
    metric: Metric
    guess: RankDistribution
    odds: float
    candidates: str | None
    seed: int
    error: float
    difference: float | str | None
    #: The sampled designs at each cost that was tried.
    _tried: dict[tuple[str, int], Outcome] = field(default_factory=dict)

    # -- what is wanted ---------------------------------------------------------------------

    @cached_property
    def value(self) -> float:
        """Return the value of the metric under the guess."""
        value = float(self.guess.mass @ self._weights)
        if value <= 0.0:
            raise InputError(
                f"the pilot must have some targets in the top {self.metric.k}, got none: an error "
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
        return found * self.value / 100.0 if text.endswith("%") else found

    @cached_property
    def users_needed(self) -> int | None:
        """Return how many users it takes, if full rankings do not tell the difference apart."""
        found = 0 if self.apart is None else self._users_for(self.apart)
        return found if found > self.users else None

    def _users_for(self, apart: float) -> int:
        return math.ceil(2.0 * (self._z_of_verdicts * self._sd / apart) ** 2 - 1e-9)

    def _left(self, outcome: Outcome) -> float:
        """Return what is wanted over what a design gives: at least 1 if it is enough."""
        if self.apart is not None and self.users_needed is None:
            return self.apart / max(outcome.smallest_difference, 1e-300)
        return self.error * self.value / max(outcome.half_width, 1e-300)

    @cached_property
    def _weights(self) -> FloatArray:
        return bin_weights(self.metric, self.guess.grid, self.items)

    @cached_property
    def _sd(self) -> float:
        """Return the standard deviation of the metric over users."""
        square = float(self.guess.mass @ self._weights**2)
        return math.sqrt(max(square - self.value**2, 1e-24))

    @property
    def _is_linear(self) -> bool:
        """Return whether the metric is linear in R, as mean rank and AUC are: not of the top."""
        family = self.metric.family
        return self.metric.k is None and (family.uses_items or not family.bounded)

    @cached_property
    def _z(self) -> float:
        return quantile(DEFAULT_LEVEL)

    @cached_property
    def _z_of_verdicts(self) -> float:
        """Return how many errors tell two models apart: one is better with a chance of level."""
        return math.sqrt(CAUTION) * quantile(two_sided(DEFAULT_LEVEL))

    # -- all designs ------------------------------------------------------------------------

    def within(self, budget: int) -> tuple[Outcome, ...]:
        """Return each design for which the budget is enough."""
        most = self._most_fixed
        for cost in (budget // _STEP, _STEP * budget):  # for the curves
            self._fixed(min(max(cost, 2 * self.users), most))
        found: list[Outcome | None] = [self._fixed(min(budget, most))]
        if not self._is_linear:
            whole = self.items * self.users
            found.append(self._guided(budget=min(budget, whole)))
            for cost in (budget // _STEP, _STEP * budget):
                self._guided(budget=min(cost, whole))
        for design in self._exact:
            users = bisect_right(range(1, self.users + 1), budget, key=self._budget_of(design))
            enough = users >= min(_FEWEST, self.users)
            found.append(self._of_users(design, users) if enough else None)
        return tuple(each for each in found if each is not None)

    def needed(self) -> tuple[Outcome, ...]:
        """Return each design at the cost that it needs."""
        found = [self._cheapest_sample()]
        # A guided design scores K items for each target before it knows anything.
        first = self.users * (self.metric.k or 1)
        if not (self._is_linear or (found[0].enough and found[0].cost < first)):
            error = min(max(self._error_sought, _LEAST_ERROR), _LARGEST_ERROR)
            guided = self._guided(error=error)
            assert guided is not None
            found.append(guided)
            for part in (2.0, 4.0):  # for the curves
                self._guided(error=min(part * error, _LARGEST_ERROR))
        share = (self.error * self.value / (self._z * self._sd)) ** 2 + 1.0 / self.users
        users = math.ceil(1.0 / share - 1e-9)
        if self.apart is not None and self.users_needed is None:
            users = self._users_for(self.apart)
        users = max(users, min(_FEWEST, self.users))
        return tuple(found + [self._of_users(each, users) for each in self._exact])

    @property
    def _error_sought(self) -> float:
        """Return the relative half-width for these users that does what was asked for."""
        if self.apart is None or self.users_needed is not None:
            return self.error
        whole = (self.apart / (self._z_of_verdicts * math.sqrt(2.0))) ** 2
        draw = math.sqrt(max(whole - self._sd**2 / self.users, 0.0))
        return self._z * draw / self.value

    def curves(self) -> tuple[Outcome, ...]:
        """Return each design at growing costs: what was tried, and exact designs on more users."""
        found = list(self._tried.values())
        users = self.users
        while users >= _FEWEST:
            found += [self._of_users(each, users) for each in self._exact]
            users //= _STEP
        return tuple(sorted(found, key=lambda each: (each.name, each.cost)))

    def _outcome(
        self,
        design: Design,
        half_width: float,
        budget: int,
        cost: float,
        users: int,
        apart: float | None = None,
    ) -> Outcome:
        """Return a design; ``apart`` follows from the half-width where the value is a mean."""
        if apart is None:  # for users like these, what users vary by comes on top
            error = math.hypot(half_width / self._z, self._sd / math.sqrt(self.users))
            apart = self._z_of_verdicts * math.sqrt(2.0) * error
        found = Outcome(design, budget, cost, users, half_width, apart)
        return replace(found, enough=self._left(found) >= 1.0 - 1e-9)

    # -- exact designs, on a part of the users ----------------------------------------------

    def _of_users(self, design: Design, users: int) -> Outcome:
        """Return an exact design: the mean of m of M users varies by sd^2 (1/m - 1/M)."""
        half_width = self._z * self._sd * math.sqrt(max(1.0 / users - 1.0 / self.users, 0.0))
        cost = users * self._exact[design][0]
        return self._outcome(design, half_width, self._budget_of(design)(users), cost, users)

    def _budget_of(self, design: Design) -> Callable[[int], int]:
        """Return which budget is almost surely enough for so many users."""
        mean, sd = self._exact[design]

        def budget(users: int) -> int:
            return math.ceil(users * min(mean + _IN_HAND * sd / math.sqrt(users), self.items))

        return budget

    @cached_property
    def _exact(self) -> dict[Design, tuple[float, float]]:
        """Return the exact designs, and how many scores a target needs: mean, deviation."""
        full: dict[Design, tuple[float, float]] = {Exact(): (float(self.items), 0.0)}
        if self.metric.k is None:
            return full
        design = Certified(self.metric.k)
        met = self._simulate(design).met
        return {design: (float(met.mean() + 1.0), float(met.std())), **full}

    # -- sampled designs --------------------------------------------------------------------

    @property
    def _most_fixed(self) -> int:
        """Return the largest budget of a fixed sample."""
        largest = min(max(int(_LARGEST_PART * self.items), 1), _LARGEST_SAMPLE)
        return (largest + 1) * self.users

    def _cheapest_sample(self) -> Outcome:
        """Return the fixed sample at the least cost that is enough, else at the most.

        Half-widths fall about as a power of the cost, so trials are interpolated on logarithms.
        """
        low, high = 2 * self.users, self._most_fixed
        below, found = self._fixed(low), self._fixed(high)
        if below.enough:
            return below
        for _ in range(_TRIALS):
            if not found.enough or self._left(found) <= 1.0 / _CLOSE or high <= low + self.users:
                break
            over, under = -math.log(self._left(below)), math.log(self._left(found))
            share = min(max((over + 0.02) / (over + under), 0.05), 0.95)
            middle = round(math.exp((1.0 - share) * math.log(low) + share * math.log(high)))
            tried = self._fixed(middle)
            if tried.enough:
                found, high = tried, middle
            else:
                below, low = tried, middle
        return found

    def _fixed(self, budget: int) -> Outcome:
        sampled = budget // self.users - 1
        cost = self.users * (sampled + 1)
        key = Fixed.name, cost
        if key not in self._tried:
            design, (width, apart) = Fixed(sampled), self._of_sample(sampled)
            self._tried[key] = self._outcome(design, width, cost, float(cost), self.users, apart)
        return self._tried[key]

    def _of_sample(self, sampled: int) -> tuple[float, float | None]:
        """Return the half-width for the histogram to be expected, and what it tells apart."""
        if self._is_linear:  # so the mean of sampled ranks has no bias
            span = float(np.ptp(self.metric.weights(np.array([1, self.items]), self.items)))
            last, grid = self.items - 1.0, self.guess.grid
            share = mean_over(lambda r: (r - 1.0) * (self.items - r) / last**2, grid.low, grid.high)
            return self._z * span * math.sqrt(self.guess.mass @ share / sampled / self.users), None
        counts = expected_counts(self.guess, Law(self.items, sampled), self.users)
        if self.users < FEWEST_USERS:
            bounds = Bounds.of(counts, [self.metric.cutoff(self.items)])
            low, high = bounds.of_metric(self.metric, DEFAULT_LEVEL)
            return (high - low) / 2.0, high - low
        one = Posterior.of(counts, shipped(), candidates=self.candidates)
        own = one.law(self.metric, population=False).interval(level=DEFAULT_LEVEL)
        both = Posterior.joined({"A": one, "B": one}, {}).law(self.metric)
        ends = both.difference("A", "B").interval(two_sided(DEFAULT_LEVEL))
        return (own[1] - own[0]) / 2.0, (ends[1] - ends[0]) / 2.0

    def _guided(self, budget: int | None = None, error: float | None = None) -> Outcome | None:
        """Return what a guided design finds on simulated users; None if the budget is too small.

        Where fewer users are simulated than there are, all of them take the guided part, and as
        many are ranked in full: the error of a draw depends on its own size.
        """
        size = len(self._ranks)
        allowed = None if budget is None else budget * size // self.users
        try:
            found = self._simulate(Guided(error=error), allowed)
        except BudgetError:
            return None
        (entry,) = estimates_of(found, (self.metric,)).entries
        low, high = entry.interval(population=False)
        drawn = found.notes.turn > 0
        before = np.asarray(found.items) - 1 - found.notes.reserved
        in_full = float((found.met - before)[drawn].sum())
        width, more = (high - low) / 2.0, self.users / size
        if error is None:
            cost, width = found.scored * more, width * math.sqrt(size / self.users)
        else:
            cost = (found.scored - in_full) * more + in_full
        limit = budget if budget is not None else math.ceil(_ALLOWED * cost)
        made = self._outcome(found.design, width, limit, cost, self.users)
        # With an error, `evaluate` draws until it is reached.
        made = made if error is None else replace(made, enough=True)
        self._tried[Guided.name, round(cost)] = made
        return made

    def _simulate(self, design: Design, budget: int | None = None) -> Findings:
        # The same random numbers for every budget, so that widths fall as it grows.
        return design.simulate(
            self._ranks,
            items=self.items,
            rng=np.random.default_rng([self.seed, 0]),
            metrics=self.metric,
            odds=self.odds,
            budget=budget,
        )

    @cached_property
    def _ranks(self) -> IntArray:
        """Return the ranks of simulated users among all items."""
        size = min(self.users, _SIMULATED, max(_FEWEST, _PLACES // (self.metric.k or 1)))
        return draw_ranks(self.guess, size, np.random.default_rng(self.seed))
