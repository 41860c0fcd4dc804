"""Simulated evaluations: the error of each design, before anything is scored.

Ranks of users are drawn from a guess of P(R). Each design is simulated on them as `evaluate` would
run it: with the same classes, the same budget and the same estimator.
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from unsample import estimators as _estimators
from unsample._checks import FloatArray, IntArray
from unsample.answers._estimate import DEFAULT_METHOD
from unsample.answers._evaluate import certified_targets
from unsample.answers._guess import draw_ranks
from unsample.answers._planned import ErrorOutcome, Plan
from unsample.designs import Certified, Design, Exact, Findings, Fixed, Guided
from unsample.errors import BudgetError, InputError
from unsample.estimators import Observed
from unsample.evidence import RankCounts
from unsample.law import RankDistribution, bin_weights
from unsample.metrics import Metric

#: The most users that are simulated. With more, the bias hardly changes, and the standard deviation
#: falls with the square root of their number. (`auto` trusts more users more: 1,000 are too few.)
_MOST_USERS = 4000
#: Users that are simulated together; more would not fit into the cache.
_AT_ONCE = 20_000
#: Sampled ranks stay exact up to the first number, or K. Larger ones are rounded by a share of
#: themselves that is less than their noise. Beyond the last number a thinner sample is used.
_SINGLE, _ROUNDED, _FAR = 16, 0.06, 300
#: Larger fixed samples are estimated by `mle`: `auto` is slow there, and hardly better.
_LARGEST_AUTO = 1000
#: The first cost for each target at which designs are tried, and the factor to the next cost.
_USUAL_COST, _STEP = 80.0, 5.0
#: Larger samples are not simulated.
_LARGEST_SAMPLE = 1e6
#: The search for the least cost: how many costs from the curve are tried at most, the least factor
#: by which a cost is raised after one that failed, the share of the wanted error that is aimed at,
#: and the shares of that error and of the cost that are close enough.
_ATTEMPTS = 5
_NEXT_COST = 1.25
_AIMED, _CLOSE, _CLOSER = 0.93, 0.85, 0.95
#: Errors below this share of the wanted error count as zero.
_NEGLIGIBLE = 0.01
#: Targets from which the mean cost of an exact metric is computed.
_PRICED = 20_000
#: The cost of a certified evaluation is random: the reserve, in standard deviations.
_IN_HAND = 3.0


@dataclass(frozen=True, eq=False)
class Asked:
    """What to plan for: a metric, the users, and how good the guide is."""

    items: int
    metric: Metric
    users: int
    #: How many targets a user has. All of them are ranked; they may be alike.
    of_user: float = 1.0
    #: How good the guide is, as in `Design.simulate`; None if there is none.
    odds: float | None = None

    @property
    def targets(self) -> int:
        """Return the number of targets of all users."""
        return round(self.users * self.of_user)

    @property
    def guided(self) -> list[str]:
        """Return the guided design, if there is a guide and the metric allows it."""
        can = self.odds is not None and _is_of_the_top(self.metric)
        return [Guided.name] if can else []

    def fit(self, name: str, budget: int, targets: int) -> Design:
        """Return the fixed or guided design that spends the budget on these targets."""
        chosen = Fixed(replacement=False) if name == Fixed.name else Guided()
        others = np.broadcast_to(np.int64(self.items - 1), targets)
        return chosen.fit([self.metric], others, budget)[0]

    def simulate(
        self,
        design: Design,
        ranks: IntArray,
        rng: np.random.Generator,
        budget: int | None = None,
        shuffle: IntArray | None = None,
    ) -> Findings:
        """Return what the design finds for targets with these ranks."""
        odds = 1.0 if self.odds is None else self.odds
        return design.simulate(
            ranks,
            items=self.items,
            rng=rng,
            budget=budget,
            metrics=self.metric,
            shuffle=shuffle,
            odds=odds,
        )

    def price(self, design: Design, ranks: Sequence[IntArray], rng: np.random.Generator) -> Price:
        """Return the cost of one target's exact metric, summed over models with these ranks."""
        met = [self.simulate(design, each, rng).met + 1.0 for each in ranks]
        each = np.sum(met, axis=0)
        return Price(float(each.mean()), float(each.std()), float(self.items) * len(met))


@dataclass(frozen=True)
class Price:
    """How many scores the exact metric of a target needs: mean, standard deviation, maximum."""

    mean: float
    sd: float
    most: float

    def of(self, targets: int) -> float:
        """Return a budget that is almost surely enough for this number of targets."""
        in_hand = _IN_HAND * math.sqrt(targets) * self.sd
        return min(targets * self.mean + in_hand, targets * self.most)

    def affords(self, budget: float, most: int) -> int:
        """Return how many targets the budget is enough for, ``most`` at most."""
        return bisect_right(range(most + 1), budget, key=self.of) - 1


def _is_of_the_top(metric: Metric) -> bool:
    """Return whether the top ranks decide the metric: not for mean rank and AUC without K."""
    return metric.k is not None or (metric.family.bounded and not metric.family.uses_items)


def planned_method(design: Design) -> str | None:
    """Return the method that estimates from a design's findings; None if none is needed."""
    if design.certifies:
        return None
    large = isinstance(design, Fixed) and (design.sampled or 0) > _LARGEST_AUTO
    return "mle" if large else DEFAULT_METHOD


@dataclass(frozen=True, eq=False)
class Planner:
    """Many sets of users with ranks from a guess, and the error of each design on them."""

    asked: Asked
    guess: RankDistribution
    repeats: int
    seed: np.random.SeedSequence
    precision: float
    _tried: dict[tuple[str, int], ErrorOutcome | None] = field(default_factory=dict)

    @cached_property
    def exact(self) -> Design:
        """Return the exact design, which is run on a part of the users."""
        k = self.asked.metric.k
        return Exact() if k is None else Certified(k)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the designs."""
        return (Fixed.name, *self.asked.guided, self.exact.name)

    @cached_property
    def value(self) -> float:
        """Return the value of the metric under the guess."""
        value, metric = float(self.guess.mass @ self._weights), self.asked.metric
        if value <= 0.0:
            raise InputError(
                f"the pilot must have some targets in the top {metric.k}, got none: an error "
                f"relative to {metric} = 0 has no meaning"
            )
        return value

    @property
    def sought(self) -> float:
        """Return the wanted error."""
        return self.precision * self.value

    @cached_property
    def _weights(self) -> FloatArray:
        return bin_weights(self.asked.metric, self.guess.grid, self.guess.items)

    @cached_property
    def _sd_of_users(self) -> float:
        square = float(self.guess.mass @ self._weights**2)
        return math.sqrt(self.asked.of_user * max(square - self.value**2, 0.0))

    def plan(self, budget: int | None, source: str) -> Plan:
        """Return the plan: each design within the budget, and at costs near what it needs.

        If no budget is given, it is the least one found that gives some design the precision.
        """
        asked, held = self.asked, math.ceil(self.needed(self.exact.name))
        start = budget or min(held, round(_USUAL_COST * asked.targets))
        for name in self.names[-2::-1]:
            self._bracket(name, start)
            if budget is None:
                start = held = self._least(name, held)
        budget = budget or held
        outcomes = self.within(budget)
        needed = {name: self.needed(name) for name in self.names}
        best = min(outcomes, key=lambda outcome: outcome.rmse)
        if best.rmse <= self.sought:
            # A trial is more reliable than the curve between two trials.
            needed[best.name] = min(needed[best.name], best.cost)
        found = [each for each in self._tried.values() if each is not None]
        exact = [self._of_exact(cost) for cost in {each for _, each in self._tried}]
        curves = [*found, *self._whole, *(each for each in exact if each is not None)]
        return Plan(
            items=asked.items,
            users=asked.users,
            targets=asked.targets,
            metric=asked.metric,
            guess=source,
            budget=budget,
            outcomes=outcomes,
            curves=tuple(sorted(curves, key=lambda outcome: (outcome.name, outcome.cost))),
            needed=needed,
            repeats=self.repeats,
            value=self.value,
            precision=self.precision,
        )

    def _bracket(self, name: str, budget: int) -> None:
        """Try larger or smaller budgets until one of them is enough and another is not.

        A budget is enough if the error is clearly below the wanted error.
        """
        targets, up = self.asked.targets, not self._suffices(name, budget)
        most = round(min(self.asked.items / 2.0, _LARGEST_SAMPLE) * targets)
        while True:
            after = round(budget * _STEP if up else budget / _STEP)
            after = min(after, most) if up else max(after, 2 * targets)
            if after == budget or (after > budget) != up:
                return
            budget = after
            if self._suffices(name, budget) == up:
                return

    def _suffices(self, name: str, budget: int) -> bool:
        found = self._at(name, budget)
        return found is not None and found.rmse <= _AIMED * self.sought

    def _least(self, name: str, held: int) -> int:
        """Return the least budget found that gives the precision; ``held`` if none is lower.

        Each trial takes the cost that the curve promises, with a margin, and improves the curve.
        """
        failed = 0.0
        for _ in range(_ATTEMPTS):
            # Rounds come in steps, so a slightly higher cost may not help: raise it by a factor.
            cost = max(self.needed(name, _AIMED), _NEXT_COST * failed)
            if cost >= _CLOSER * held:
                break
            budget = max(math.ceil(cost), 2 * self.asked.targets)
            found = self._at(name, budget)
            if found is None or found.rmse > self.sought:
                failed = budget
                continue
            held = budget
            if found.rmse >= _CLOSE * self.sought:
                break
        return held

    def needed(self, name: str, part: float = 1.0) -> float:
        """Return the cost at which the error of a design is ``part`` of the wanted error."""
        if name == self.exact.name:
            # Around the mean of all M users, the mean of m has the variance sd^2 (1/m - 1/M).
            share = (self.sought / self._sd_of_users) ** 2 + 1.0 / self.asked.targets
            return self._price.of(math.ceil(1.0 / share - 1e-9))
        known = (*self._tried.values(), *self._whole)
        curve = sorted((each.cost, each.rmse) for each in known if each and each.name == name)
        cost, error = np.transpose(curve)
        # Apart from noise, errors fall with the cost: take the largest error from each cost on.
        worst = np.maximum.accumulate(error[::-1])[::-1]
        ratio = np.maximum(worst / (part * self.sought), _NEGLIGIBLE)
        return float(np.exp(np.interp(0.0, -np.log(ratio), np.log(cost))))

    def within(self, budget: int) -> tuple[ErrorOutcome, ...]:
        """Return the outcome of each design for which this budget is enough."""
        found = [*(self._at(name, budget) for name in self.names[:-1]), self._of_exact(budget)]
        return tuple(each for each in found if each is not None)

    def _at(self, name: str, budget: int) -> ErrorOutcome | None:
        """Return the outcome of a sampled design; None if the budget is too small."""
        budget = min(budget, self.asked.items * self.asked.targets)
        if (name, budget) not in self._tried:
            found = None
            with contextlib.suppress(BudgetError):  # too small for the simulated users
                found = self._simulated(name, budget)
            self._tried[name, budget] = found
        return self._tried[name, budget]

    def _of_exact(self, budget: int) -> ErrorOutcome | None:
        """Return the outcome of the exact design; None if the budget is too small."""
        some = self._price.affords(budget, self.asked.targets)
        if not some:
            return None
        sd = self._sd_of_users * math.sqrt(1.0 / some - 1.0 / self.asked.targets)
        users, cost = max(1, int(some / self.asked.of_user)), some * self._price.mean
        return ErrorOutcome(self.exact.name, self.exact, users, cost, None, 0.0, sd)

    @cached_property
    def _whole(self) -> list[ErrorOutcome]:
        """Return the sampled designs at the cost of full rankings, where they have no error."""
        last, users = self.asked.items - 1, self.asked.users
        full = float(self.asked.items) * self.asked.targets
        designs = (
            Fixed(last, replacement=False),
            Guided(self.asked.metric.k),
        )
        return [
            ErrorOutcome(each.name, each, users, full, planned_method(each), 0.0, 0.0)
            for each in designs
            if each.name in self.names
        ]

    @cached_property
    def _price(self) -> Price:
        some = self._ranks[: max(1, _PRICED // self._ranks.shape[1])].ravel()
        return self.asked.price(self.exact, [some], self._rng(0))

    # -- sampled designs --

    @cached_property
    def _ranks(self) -> IntArray:
        """Return ranks among all items: one row for each set of users."""
        size = (self.repeats, min(self.asked.targets, _MOST_USERS))
        return draw_ranks(self.guess, size, np.random.default_rng(self.seed))

    @cached_property
    def _truth(self) -> FloatArray:
        return np.asarray(self.asked.metric.weights(self._ranks, self.asked.items).mean(axis=1))

    def _rng(self, *key: int) -> np.random.Generator:
        """Return a stream for each use, so that no result depends on earlier ones."""
        return np.random.default_rng([*self.seed.generate_state(2).tolist(), *key])

    def _simulated(self, name: str, budget: int) -> ErrorOutcome:
        """Return the error of a design: simulate each set of users, and compare with the truth."""
        simulated, targets = self._ranks.shape[1], self.asked.targets
        part = -(-budget * simulated // targets)
        design = self.asked.fit(name, part, simulated)
        rng = self._rng(budget, self.names.index(name))
        method = planned_method(design)
        if method is None:
            found = [self.asked.simulate(design, row, rng, part) for row in self._ranks]
            made = (certified_targets(each, (self.asked.metric,), None, 0, 0) for each in found)
            values = np.array([each.entries[0].value for each in made])
        else:
            # What is found for a target does not depend on others, except where the budget ends.
            # So several sets of users are simulated as one, with the sum of their budgets.
            some = max(1, _AT_ONCE // simulated)
            rows = (self._ranks[at : at + some] for at in range(0, self.repeats, some))
            found = [
                self.asked.simulate(design, each.ravel(), rng, part * len(each)) for each in rows
            ]
            values = self._estimates(found, method)
        errors = values - self._truth
        mean, sd = float(errors.mean()), float(errors.std(ddof=1))
        # The mean of few repeats is not zero, by chance: only what is beyond chance is bias. A
        # guided design has no bias.
        beyond = math.sqrt(max(mean**2 - sd**2 / self.repeats, 0.0)) if method else 0.0
        return ErrorOutcome(
            name,
            design,
            self.asked.users,
            sum(each.scored for each in found) / self._ranks.size * targets,
            method,
            math.copysign(beyond, mean) if beyond else 0.0,
            sd * math.sqrt(simulated / targets),
        )

    def _estimates(self, found: list[Findings], method: str) -> FloatArray:
        """Return the estimate of the metric for each set of users, all from one fit."""
        ranks = np.concatenate([each.ranks for each in found])
        sampled = np.concatenate([np.asarray(each.sampled) for each in found])
        base = int(ranks.max()) + 1
        cells, where = np.unique(sampled * base + ranks, return_inverse=True)
        if method != DEFAULT_METHOD:
            k = self.asked.metric.cutoff(self.asked.items)
            fewer, thinner = _simplified(cells % base, cells // base, k, self.asked.items)
            base = int(fewer.max()) + 1
            cells, place = np.unique(thinner * base + fewer, return_inverse=True)
            where = place[where]
        size = self.repeats * len(cells)
        each = where.reshape(self._ranks.shape) + np.arange(0, size, len(cells))[:, None]
        times = np.bincount(each.ravel(), minlength=size).reshape(self.repeats, len(cells))
        total = times.sum(axis=0)
        counts = RankCounts(
            sampled=cells // base,
            items=np.full(len(cells), self.asked.items),
            low=cells % base,
            high=cells % base,
            count=total,
            weight=total / self.repeats,
            weight_squared=total / self.repeats,
            replacement=found[0].replacement,
        )
        observed = Observed(counts, times / self._ranks.shape[1], self.guess.grid)
        return _estimators.parse(method).evaluate(observed, [self.asked.metric]).values[:, 0]


def _simplified(
    ranks: IntArray, sampled: IntArray, k: int, items: int
) -> tuple[IntArray, IntArray]:
    """Return rounded ranks and thinner samples where it does not matter: fewer cells to fit.

    Known ranks stay exact up to K, others while their noise is large. Larger ranks are rounded to
    half of the noise at K. Far from the top a thinner sample is used: it places the target well
    enough.
    """
    exact = np.where(sampled >= items - 1, max(k, _SINGLE), _SINGLE)
    far = np.maximum(_FAR, 4 * k * sampled // items)
    noise = 1.0 / np.sqrt(np.maximum(k * sampled / items, 1.0))
    step = np.log1p(np.where(ranks <= far, np.minimum(_ROUNDED, 0.5 * noise), _ROUNDED))
    rounded = np.rint(np.exp(step * np.rint(np.log(ranks) / step))).astype(np.int64)
    rounded = np.where(ranks <= exact, ranks, np.clip(rounded, exact + 1, sampled + 1))
    thinner = np.rint(sampled * far / rounded).astype(np.int64)
    beyond = rounded > far
    return np.where(beyond, far, rounded), np.where(beyond, thinner, sampled)
