"""`plan`: which design to use in an evaluation, before anything is scored.

Exact designs on a part of the users have the error of drawing these users, a formula. Fixed samples
have the interval that `estimate` gives for the histogram that P(R) leads one to expect. Guided
designs are simulated on ranks drawn from P(R), by the code that `evaluate` runs.
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

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
    check_level,
    check_real,
)
from unsample._gone import refuses_gone
from unsample.answers._estimate import estimate_counts
from unsample.answers._evaluate import estimates_of
from unsample.answers._guess import draw_ranks, expected_counts, from_pilot, power_law, usual_k
from unsample.answers._planned import Outcome, Plan
from unsample.answers._result import DEFAULT_LEVEL
from unsample.designs import Certified, Design, Exact, Findings, Fixed, Guided
from unsample.errors import BudgetError, DesignError, InputError, MetricError
from unsample.estimators import CANDIDATES
from unsample.evidence import RankCounts
from unsample.law import LARGEST_URN, Law, RankDistribution, bin_weights, mean_over
from unsample.metrics import Metric

_PRECISION = 0.05
#: The most users that are simulated, and the most places of items that a guide lists for them. The
#: half-width for more users falls with the square root of their number.
_SIMULATED, _PLACES = 2000, 2_000_000
#: How often users are simulated: half-widths vary from draw to draw.
_SETS = 2
#: The fewest users that an exact design is planned for: fewer do not show how much users vary.
_FEWEST = 20
#: The cost of a certified evaluation is random: the reserve, in standard deviations.
_IN_HAND = 3.0
#: The largest fixed sample, and the largest as a part of the catalogue: beyond it, rank in full.
_LARGEST_SAMPLE, _LARGEST_PART = 100_000, 0.5
#: The search for the least cost: the scores for each target at which it starts, the factor from one
#: trial to the next, the trials between two of these, and the costs that are close enough.
_USUAL_COST, _STEP, _CLOSER, _CLOSE = 100, 4, 4, 1.05
#: The part of the wanted half-width that is aimed at.
_AIMED = 0.98

#: A sampled design at a budget; None if the budget is too small for it.
_At: TypeAlias = Callable[[int], Outcome | None]


@refuses_gone
def plan(
    *,
    items: int,
    users: int,
    targets: int | None = None,
    metrics: str | Metric | Iterable[str | Metric] = "NDCG@10",
    budget: int | None = None,
    precision: float | None = None,
    difference: float | str | None = None,
    pilot: RankCounts | RankDistribution | npt.ArrayLike | None = None,
    recall: float | None = None,
    odds: float | None = None,
    level: float = DEFAULT_LEVEL,
    candidates: str | None = None,
    rng: Seed = 0,
) -> Plan:
    """Tell what each design costs and how sure the metric would be, before any item is scored.

    The designs are ``fixed``, ``guided``, ``certified`` and ``exact``. The last two are exact for a
    user; they evaluate as many users as are needed, drawn at random. The half-width is that of the
    interval for the metric of these users, ``interval(population=False)`` of the result of
    `evaluate`: what full rankings of all of them would give.

    Parameters
    ----------
    items, users
        The size of the catalogue and the number of users to evaluate.
    targets
        The number of targets, if users have several; by default one for each user. Errors count
        users: the targets of one user are assumed to be alike.
    metrics
        The metric that matters, such as ``"NDCG@10"``.
    budget
        The total number of scores that may be asked for, as in `evaluate`. By default each design
        is planned at the cost that it needs for the precision, or for the difference.
    precision
        The wanted half-width of the interval, relative to the metric; 0.05 by default.
    difference
        Instead of ``precision``: the difference of two models that should be told apart, such as
        ``0.01``, or ``"5%"`` of the metric. A difference is told apart if it is larger than its own
        half-width, z * sqrt(2) * (the standard error of a model for users like these), as if each
        model had other users. Costs are those of one model.
    pilot
        What is known about P(R): `RankCounts` of sampled ranks, a `RankDistribution`, or ranks
        among all items.
    recall
        Without a pilot, a guess of Recall@K on the full catalogue. P(R) is the power law that
        gives it. By default 0.1, or 1 - (1 - K/items)^2 if that is more, as in small catalogues.
    odds
        How good the guide is: the odds that an item that beats the target comes before one that
        does not. For EASE on ml-1m and citeulike-a, popularity has 19 and 6, itemKNN 56 and 570
        (``python benchmarks/guided.py``). By default 1: there is no guide, and the order is random.
    level
        The level of the intervals, and at which two models are told apart.
    candidates
        ``"unseen"`` or ``"all"``, as in `unsample.estimate`; intervals of samples depend on it.
    rng
        Seed or Generator of the simulation.

    >>> result = plan(items=1000, users=5000, precision=0.1)
    >>> result.best.design.name, round(result.best.half_width / result.value, 1)
    ('guided', 0.1)
    """
    items = check_integer("items", items, minimum=2, maximum=LARGEST_URN - 1, error=DesignError)
    users = check_integer("users", users, minimum=1, hint="the number of users to evaluate")
    least = "each user has one at least"
    targets = check_integer("targets", targets or users, minimum=users, hint=least)
    metric, level = _only_metric(metrics, items), check_level(level)
    if budget is not None:
        hint = "each target is scored, and at least one item beside it"
        budget = check_integer("budget", budget, minimum=2 * targets, hint=hint)
    if precision is not None and difference is not None:
        raise InputError(
            f"precision must be left out where difference says what is wanted, got {precision!r}"
        )
    precision = _PRECISION if precision is None else precision
    precision = check_real("precision", precision, low=0.0, high=1.0, open_low=True, open_high=True)
    odds = check_real("odds", 1.0 if odds is None else odds, low=0.0, open_low=True)
    if candidates is not None:
        check_choice("candidates", candidates, CANDIDATES)
    k = usual_k(metric, items)
    if isinstance(pilot, RankCounts):
        pilot = pilot.for_metric(metric)
    guess, source = power_law(items, k, recall) if pilot is None else from_pilot(pilot, items, k)
    planner = _Planner(
        items=items,
        users=users,
        targets=targets,
        metric=metric,
        guess=guess,
        level=level,
        odds=odds,
        candidates=candidates,
        seed=int(as_rng(rng).integers(2**63)),
    )
    apart = None if difference is None else _as_difference(difference, planner.value)
    sought, users_needed = precision * planner.value, None
    if apart is not None:
        sought, users_needed = planner.for_difference(apart, sought)
    return Plan(
        items=items,
        users=users,
        targets=targets,
        metric=metric,
        guess=source,
        value=planner.value,
        level=level,
        precision=sought / planner.value,
        difference=apart,
        users_needed=users_needed,
        allowed=budget,
        outcomes=planner.needed(sought) if budget is None else planner.within(budget),
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


def _as_difference(given: float | str, value: float) -> float:
    """Return the difference: a number as it is, a percentage as a part of the metric."""
    number: float | str = given
    share = 1.0
    if isinstance(given, str):
        text = given.strip()
        share = value / 100.0 if text.endswith("%") else 1.0
        with contextlib.suppress(ValueError):
            number = float(text.removesuffix("%"))
    hint = "a difference of the metric such as 0.01, or '5%' of it"
    return share * check_real("difference", number, low=0.0, open_low=True, hint=hint)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Planner:
    """What each design would find, on users with ranks from a guess of P(R)."""

    items: int
    users: int
    targets: int
    metric: Metric
    guess: RankDistribution
    level: float
    odds: float
    candidates: str | None
    seed: int
    #: The sampled designs at each budget that was tried; None where it was too small.
    _tried: dict[tuple[str, int], Outcome | None] = field(default_factory=dict)

    # -- what is wanted --

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
    def _weights(self) -> FloatArray:
        return bin_weights(self.metric, self.guess.grid, self.items)

    @cached_property
    def _sd_of_users(self) -> float:
        square = float(self.guess.mass @ self._weights**2)
        return math.sqrt(max(square - self.value**2, 0.0))

    @property
    def _is_linear(self) -> bool:
        """Return whether the metric is linear in R, as mean rank and AUC are: not of the top."""
        return self.metric.k is None and not (
            self.metric.family.bounded and not self.metric.family.uses_items
        )

    @cached_property
    def _z(self) -> float:
        from scipy.special import ndtri

        return float(ndtri((1.0 + self.level) / 2.0))

    def for_difference(self, difference: float, otherwise: float) -> tuple[float, int | None]:
        """Return the half-width that tells two models apart.

        If there are too few users for any half-width, return ``otherwise`` and how many it takes.
        """
        error = difference / (self._z * math.sqrt(2.0))
        left = error**2 - self._sd_of_users**2 / self.users
        if left > 0.0:
            return self._z * math.sqrt(left), None
        return otherwise, math.ceil((self._sd_of_users / error) ** 2) + 1

    def within(self, budget: int) -> tuple[Outcome, ...]:
        """Return each design for which the budget is enough."""
        found = []
        for at, most in self._sampled:
            for cost in (budget // _STEP, _STEP * budget):  # for the plot
                at(min(max(cost, 2 * self.targets), most))
            found.append(at(min(budget, most)))
        for design in self._exact:
            users = self._affordable(design, budget)
            enough = users >= min(_FEWEST, self.users)
            found.append(self._of_users(design, users) if enough else None)
        return tuple(each for each in found if each is not None)

    def needed(self, sought: float) -> tuple[Outcome, ...]:
        """Return each design at the cost that it needs; none that is too expensive from the start.

        A guided design scores K items for each target before it knows anything.
        """
        found: list[Outcome] = []
        for at, most in self._sampled:
            first = self.targets * (self.metric.k or 1) if at == self._guided else 0
            if not any(_is_narrow(each, sought) and each.cost < first for each in found):
                found.append(self._search(at, most, sought))
        found += [self._of_users(each, self._enough(sought)) for each in self._exact]
        return tuple(found)

    def curves(self) -> tuple[Outcome, ...]:
        """Return each design at growing costs: what was tried, and exact designs on more users."""
        found = [each for each in self._tried.values() if each is not None]
        users = self.users
        while users >= _FEWEST:
            found += [self._of_users(each, users) for each in self._exact]
            users //= _STEP
        return tuple(sorted(found, key=lambda each: (each.name, each.cost)))

    def _outcome(
        self, design: Design, half_width: float, *, budget: int, cost: float, users: int
    ) -> Outcome:
        # For users like these, what users vary by comes on top.
        error = math.hypot(half_width / self._z, self._sd_of_users / math.sqrt(self.users))
        apart = self._z * math.sqrt(2.0) * error
        return Outcome(design, budget, cost, users, half_width, apart)

    # -- exact designs, on a part of the users --

    @cached_property
    def _exact(self) -> tuple[Design, ...]:
        k = self.metric.k
        return (Exact(),) if k is None else (Certified(k), Exact())

    def _enough(self, half_width: float) -> int:
        """Return how many users must be known: the mean of m of M varies by sd^2 (1/m - 1/M)."""
        share = (half_width / self._z / max(self._sd_of_users, 1e-12)) ** 2 + 1.0 / self.users
        return max(math.ceil(1.0 / share - 1e-9), min(_FEWEST, self.users))

    def _of_users(self, design: Design, users: int) -> Outcome:
        variance = self._sd_of_users**2 * (1.0 / users - 1.0 / self.users)
        cost = users * self.targets / self.users * self._price(design)[0]
        half_width = self._z * math.sqrt(max(variance, 0.0))
        budget = self._budget(design, users)
        return self._outcome(design, half_width, budget=budget, cost=cost, users=users)

    def _budget(self, design: Design, users: int) -> int:
        """Return a budget that is almost surely enough for so many users."""
        mean, sd = self._price(design)
        targets = users * self.targets / self.users
        return math.ceil(targets * min(mean + _IN_HAND * sd / math.sqrt(targets), self.items))

    def _affordable(self, design: Design, budget: int) -> int:
        """Return for how many users the budget is enough."""
        users = range(1, self.users + 1)
        return bisect_right(users, budget, key=lambda each: self._budget(design, each))

    def _price(self, design: Design) -> tuple[float, float]:
        """Return how many scores the exact metric of a target needs: mean, standard deviation."""
        return self._certified_price if isinstance(design, Certified) else (self.items, 0.0)

    @cached_property
    def _certified_price(self) -> tuple[float, float]:
        found = self._simulate(Certified(self.metric.k), self._ranks.ravel())
        return float(found.met.mean() + 1.0), float(found.met.std())

    # -- sampled designs --

    @cached_property
    def _sampled(self) -> list[tuple[_At, int]]:
        """Return the sampled designs, and the most that each can use."""
        found: list[tuple[_At, int]] = [(self._fixed, (self._largest_sample + 1) * self.targets)]
        if not self._is_linear:
            found.append((self._guided, self.items * self.targets))
        return found

    def _search(self, at: _At, most: int, sought: float) -> Outcome:
        """Return the design at the least cost found that is narrow enough, else at the most."""
        low = high = min(_USUAL_COST * self.targets, most)
        while not _is_narrow(at(high), sought) and high < most:
            low, high = high, min(_STEP * high, most)
        while _is_narrow(at(low), sought) and low > 2 * self.targets:
            low, high = max(low // _STEP, 2 * self.targets), low
        for step in range(_CLOSER):
            if high <= _CLOSE * low or not _is_narrow(at(high), sought):
                break
            middle = round(math.sqrt(low * high))
            if step % 2 == 0:  # what was interpolated may be just too little
                middle = _between(at(low), at(high), sought) or middle
            low, high = (low, middle) if _is_narrow(at(middle), sought) else (middle, high)
        found = at(high)
        assert found is not None  # the most is enough for any design
        return found

    @property
    def _largest_sample(self) -> int:
        return min(max(int(_LARGEST_PART * self.items), 1), _LARGEST_SAMPLE)

    def _fixed(self, budget: int) -> Outcome | None:
        sampled = min(budget // self.targets - 1, self._largest_sample)
        cost = self.targets * (sampled + 1)
        key = Fixed.name, cost
        if key not in self._tried:
            width, options = self._width_of_sample(sampled), {"budget": cost, "users": self.users}
            self._tried[key] = self._outcome(Fixed(sampled), width, cost=float(cost), **options)
        return self._tried[key]

    def _width_of_sample(self, sampled: int) -> float:
        """Return the half-width for the histogram that the guess leads one to expect."""
        if self._is_linear:  # so the mean of sampled ranks has no bias
            span = float(np.ptp(self.metric.weights(np.array([1, self.items]), self.items)))
            last, grid = self.items - 1.0, self.guess.grid
            share = mean_over(lambda r: (r - 1.0) * (self.items - r) / last**2, grid.low, grid.high)
            return self._z * span * math.sqrt(self.guess.mass @ share / sampled / self.users)
        counts = expected_counts(self.guess, Law(self.items, sampled), self.users)
        found = estimate_counts(counts, metrics=self.metric, candidates=self.candidates)[
            self.metric
        ]
        low, high = found.interval(self.level, population=False)
        return (high - low) / 2.0

    def _guided(self, budget: int) -> Outcome | None:
        key = Guided.name, budget
        if key not in self._tried:
            found = None
            with contextlib.suppress(BudgetError):  # too small for the simulated users
                found = self._simulated(budget)
            self._tried[key] = found
        return self._tried[key]

    def _simulated(self, budget: int) -> Outcome:
        """Return what a guided design finds on sets of simulated users, each as if it were all."""
        size = self._ranks.shape[1]
        part = budget * size // self.targets
        found = [
            self._simulate(Guided(), ranks, part, place) for place, ranks in enumerate(self._ranks)
        ]
        entries = (estimates_of(each, (self.metric,)).entries[0] for each in found)
        ends = np.array([each.interval(self.level, population=False) for each in entries])
        width = float(np.diff(ends).mean()) / 2.0 * math.sqrt(size / self.users)
        cost = sum(each.scored for each in found) / self._ranks.size * self.targets
        return self._outcome(found[0].design, width, budget=budget, cost=cost, users=self.users)

    def _simulate(
        self, design: Design, ranks: IntArray, budget: int | None = None, place: int = 0
    ) -> Findings:
        # The same random numbers for every budget, so that widths fall as it grows.
        rng = np.random.default_rng([self.seed, place])
        options: dict[str, Any] = {"metrics": self.metric, "odds": self.odds, "budget": budget}
        return design.simulate(ranks, items=self.items, rng=rng, **options)

    @cached_property
    def _ranks(self) -> IntArray:
        """Return the ranks of simulated users among all items: one row for each set of them."""
        size = min(self.users, _SIMULATED, max(_FEWEST, _PLACES // (self.metric.k or 1)))
        return draw_ranks(self.guess, (_SETS, size), np.random.default_rng(self.seed))


def _is_narrow(found: Outcome | None, sought: float) -> bool:
    return found is not None and found.half_width <= sought


def _between(low: Outcome | None, high: Outcome | None, sought: float) -> int | None:
    """Return the budget at which the half-width is expected, if it falls as a power of the cost."""
    if low is None or high is None or not 0.0 < high.half_width < low.half_width:
        return None
    fall = math.log(low.half_width / high.half_width)
    share = min(max(math.log(low.half_width / (_AIMED * sought)) / fall, 0.05), 0.95)
    return round(math.exp((1.0 - share) * math.log(low.budget) + share * math.log(high.budget)))
