"""What each design would give, before anything is scored: evaluations of users that are guessed.

Users are drawn from a guess of P(R), and each design is simulated on them as `evaluate` would run
it: the same classes, the same budget, the same estimator.
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
from unsample.answers._chosen import is_of_the_top
from unsample.answers._estimate import DEFAULT_METHOD
from unsample.answers._evaluate import certified_targets, method_of
from unsample.answers._guess import draw_ranks
from unsample.answers._planned import ErrorOutcome, Plan
from unsample.designs import Adaptive, Certified, Design, Exact, Findings, Fixed, Guided
from unsample.errors import BudgetError, InputError
from unsample.estimators import Observed
from unsample.evidence import RankCounts
from unsample.law import RankDistribution, bin_weights
from unsample.metrics import Metric

#: Users that are simulated. For more of them the bias hardly moves, and the standard deviation
#: falls with the square root of their number. (`auto` trusts more users more: 1,000 are too few.)
_MOST_USERS = 4000
#: Users that are looked at together; more would not fit into the cache.
_AT_ONCE = 20_000
#: Sampled ranks are exact up to here, or K, then rounded to a share of themselves, less than their
#: noise; and beyond the last number they are taken from a thinner sample.
_SINGLE, _ROUNDED, _FAR = 16, 0.06, 300
#: Larger fixed samples are estimated by `mle`: `auto` takes long, and gains little on them.
_LARGEST_AUTO = 1000
#: Costs for each target at which designs are tried: the first, and from one to the next.
_USUAL_COST, _STEP = 80.0, 5.0
#: Samples beyond this are not simulated.
_LARGEST_SAMPLE = 1e6
#: How often a cost is read off the curves and tried, by how much it is raised at least after one
#: that failed, which share of the error sought is aimed at, and which share of it, and of the
#: cost, is close enough.
_ATTEMPTS = 5
_NEXT_COST = 1.25
_AIMED, _CLOSE, _CLOSER = 0.93, 0.85, 0.95
#: Errors below this share of the one that is sought are as good as none.
_NEGLIGIBLE = 0.01
#: Targets behind the mean cost of an exact one.
_PRICED = 20_000
#: A certified evaluation costs what it costs: so many standard deviations are kept in hand.
_IN_HAND = 3.0


@dataclass(frozen=True, eq=False)
class Asked:
    """What is planned for: a metric of users, and how good a guide there is."""

    items: int
    metric: Metric
    users: int
    #: How many targets a user has. All of them are ranked, and they may be alike.
    of_user: float = 1.0
    #: How good the guide is, as in `Design.simulate`; None where there is none.
    odds: float | None = None

    @property
    def targets(self) -> int:
        """Return how many targets there are in all."""
        return round(self.users * self.of_user)

    @property
    def guided(self) -> list[str]:
        """Return the design that follows a guide, where there is one and it can."""
        can = self.odds is not None and is_of_the_top(self.metric)
        return [Guided.name] if can else []

    def fit(self, name: str, budget: int, targets: int) -> Design:
        """Return the design, fixed, adaptive or guided, that spends a budget on so many targets."""
        chosen = {Fixed.name: Fixed(replacement=False), Adaptive.name: Adaptive()}
        others = np.broadcast_to(np.int64(self.items - 1), targets)
        return chosen.get(name, Guided()).fit([self.metric], others, budget)[0]

    def simulate(
        self,
        design: Design,
        ranks: IntArray,
        rng: np.random.Generator,
        budget: int | None = None,
        shuffle: IntArray | None = None,
    ) -> Findings:
        """Return what the design finds of targets with these ranks."""
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
        """Return what an exact metric of a target costs under models that rank it so, together."""
        met = [self.simulate(design, each, rng).met + 1.0 for each in ranks]
        each = np.sum(met, axis=0)
        return Price(float(each.mean()), float(each.std()), float(self.items) * len(met))


@dataclass(frozen=True)
class Price:
    """The scores of a target's exact metric: their mean, standard deviation and maximum."""

    mean: float
    sd: float
    most: float

    def of(self, targets: int) -> float:
        """Return a budget that suffices for so many targets, but for very bad luck."""
        in_hand = _IN_HAND * math.sqrt(targets) * self.sd
        return min(targets * self.mean + in_hand, targets * self.most)

    def affords(self, budget: float, most: int) -> int:
        """Return how many targets a budget suffices for, of so many."""
        return bisect_right(range(most + 1), budget, key=self.of) - 1


def planned_method(design: Design) -> str | None:
    """Return the method by which a design is estimated; None where it needs none."""
    if design.certifies:
        return None
    large = isinstance(design, Fixed) and (design.sampled or 0) > _LARGEST_AUTO
    return "mle" if large else method_of(design)


@dataclass(frozen=True, eq=False)
class Planner:
    """Many sets of users with ranks from a guess, and what designs make of them."""

    asked: Asked
    guess: RankDistribution
    repeats: int
    seed: np.random.SeedSequence
    precision: float
    _tried: dict[tuple[str, int], ErrorOutcome | None] = field(default_factory=dict)

    @cached_property
    def exact(self) -> Design:
        """Return the design that is run on some of the users."""
        k = self.asked.metric.k
        return Exact() if k is None else Certified(k)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the designs."""
        return (Fixed.name, Adaptive.name, *self.asked.guided, self.exact.name)

    @cached_property
    def value(self) -> float:
        """Return the metric of the guess."""
        value, metric = float(self.guess.mass @ self._weights), self.asked.metric
        if value <= 0.0:
            raise InputError(
                f"the pilot must have some targets in the top {metric.k}, got none: an error "
                f"relative to {metric} = 0 has no meaning"
            )
        return value

    @property
    def sought(self) -> float:
        """Return the error that is sought."""
        return self.precision * self.value

    @cached_property
    def _weights(self) -> FloatArray:
        return bin_weights(self.asked.metric, self.guess.grid, self.guess.items)

    @cached_property
    def _sd_of_users(self) -> float:
        square = float(self.guess.mass @ self._weights**2)
        return math.sqrt(self.asked.of_user * max(square - self.value**2, 0.0))

    def plan(self, budget: int | None, source: str) -> Plan:
        """Return the plan: each design within the budget, and at costs around what it needs.

        The budget is the one given, or the least found at which a design has the precision.
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
            # What was found by trying counts more than what the curve between two trials promises.
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
        """Try budgets from this one on, up or down, until one is below and one above what it takes.

        Above it is where the error is clearly less than the one that is sought.
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
        """Return the least budget found with which a design has the precision, if below one held.

        Tried is what the curve promises, with something to spare; it learns from that.
        """
        failed = 0.0
        for _ in range(_ATTEMPTS):
            # Rounds come in steps, so a cost in between may buy nothing: try a higher one.
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
        """Return the cost at which a design reaches the precision, or a part of its error."""
        if name == self.exact.name:
            # The variance of a mean of m of M users about the mean of all is sd^2 (1/m - 1/M).
            share = (self.sought / self._sd_of_users) ** 2 + 1.0 / self.asked.targets
            return self._price.of(math.ceil(1.0 / share - 1e-9))
        known = (*self._tried.values(), *self._whole)
        curve = sorted((each.cost, each.rmse) for each in known if each and each.name == name)
        cost, error = np.transpose(curve)
        # Noise aside, errors fall with the cost; what counts is the worst from there on.
        worst = np.maximum.accumulate(error[::-1])[::-1]
        ratio = np.maximum(worst / (part * self.sought), _NEGLIGIBLE)
        return float(np.exp(np.interp(0.0, -np.log(ratio), np.log(cost))))

    def within(self, budget: int) -> tuple[ErrorOutcome, ...]:
        """Return what each design gives for this budget, of those that it suffices for."""
        found = [*(self._at(name, budget) for name in self.names[:-1]), self._of_exact(budget)]
        return tuple(each for each in found if each is not None)

    def _at(self, name: str, budget: int) -> ErrorOutcome | None:
        """Return what a sampled design gives for a budget; None where that is too small."""
        budget = min(budget, self.asked.items * self.asked.targets)
        if (name, budget) not in self._tried:
            found = None
            with contextlib.suppress(BudgetError):  # too small for those that are simulated
                found = self._simulated(name, budget)
            self._tried[name, budget] = found
        return self._tried[name, budget]

    def _of_exact(self, budget: int) -> ErrorOutcome | None:
        """Return what an exact design gives for a budget, if it suffices for a user."""
        some = self._price.affords(budget, self.asked.targets)
        if not some:
            return None
        sd = self._sd_of_users * math.sqrt(1.0 / some - 1.0 / self.asked.targets)
        users, cost = max(1, int(some / self.asked.of_user)), some * self._price.mean
        return ErrorOutcome(self.exact.name, self.exact, users, cost, None, 0.0, sd)

    @cached_property
    def _whole(self) -> list[ErrorOutcome]:
        """Return what sampled designs give for a full ranking: no error."""
        last, users = self.asked.items - 1, self.asked.users
        full = float(self.asked.items) * self.asked.targets
        designs = (
            Fixed(last, replacement=False),
            Adaptive(start=last),
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
        """Return global ranks: one row for each set of users."""
        size = (self.repeats, min(self.asked.targets, _MOST_USERS))
        return draw_ranks(self.guess, size, np.random.default_rng(self.seed))

    @cached_property
    def _truth(self) -> FloatArray:
        return np.asarray(self.asked.metric.weights(self._ranks, self.asked.items).mean(axis=1))

    def _rng(self, *key: int) -> np.random.Generator:
        """Return a stream for each use, so that none depends on what ran before."""
        return np.random.default_rng([*self.seed.generate_state(2).tolist(), *key])

    def _simulated(self, name: str, budget: int) -> ErrorOutcome:
        """Evaluate every set of users by the design, estimate, and compare with the truth."""
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
            # What a target meets does not depend on others, but for where a budget ends: several
            # sets of users are looked at as one, with the budget of all.
            some = max(1, _AT_ONCE // simulated)
            rows = (self._ranks[at : at + some] for at in range(0, self.repeats, some))
            found = [
                self.asked.simulate(design, each.ravel(), rng, part * len(each)) for each in rows
            ]
            values = self._estimates(found, method)
        errors = values - self._truth
        mean, sd = float(errors.mean()), float(errors.std(ddof=1))
        # A mean of few repeats is off by chance: only what goes beyond that is a bias. A guided
        # design has none.
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
        """Return the metric of each set of users as the method estimates it, all in one fit."""
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
            stop=found[0].stop,
        )
        observed = Observed(counts, times / self._ranks.shape[1], self.guess.grid)
        return _estimators.parse(method).evaluate(observed, [self.asked.metric]).values[:, 0]


def _simplified(
    ranks: IntArray, sampled: IntArray, k: int, items: int
) -> tuple[IntArray, IntArray]:
    """Return ranks rounded, and samples thinned, where it cannot matter: fewer cells to fit.

    Known ranks are exact up to K, others for as long as their noise is large; further down they
    are rounded to half of the noise at K. Far from the top, a target is seen through a thinner
    sample that places it as well as need be.
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
