"""The power of designs: how often `compare` would name the better of two models.

The design evaluates both models many times, each time on other users. The results are compared by
the code that `compare` runs, and verdicts for the better model are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from unsample.answers._chances import Chances
from unsample.answers._compare import why_unmatched
from unsample.answers._comparison import ALL, Difference
from unsample.answers._duels import Duels
from unsample.answers._evaluate import estimates_of
from unsample.answers._model import Model
from unsample.answers._pair import Pair
from unsample.answers._paired import Pairing
from unsample.answers._planned import (
    MORE_USERS,
    PowerOutcome,
    PowerPlan,
    error_of_share,
    least_of,
)
from unsample.answers._planner import Asked, Price, planned_method
from unsample.answers._question import Question
from unsample.answers._verdicts import corrected
from unsample.designs import Certified, Design, Exact, Findings, Fixed, Guided
from unsample.errors import BudgetError
from unsample.estimators import Observed
from unsample.evidence import group_catalogues

#: The most users that are simulated; more users have more power.
_MOST_USERS = 20_000
#: The standard error of a power that is shown, and in the search for a budget or a difference.
_SHOWN, _ON_THE_WAY = 0.05, 0.12
#: The fewest evaluations for a power, and how many standard errors make it clearly different.
_FEWEST, _CLEARLY = 8, 2.0
#: Bisection steps (on a log scale) in the search for the least budget.
_SEARCHED = 4
#: The search starts from this many scores for each target, or this many users ranked exactly.
_CHEAPEST, _FEWEST_USERS = 8, 20
#: About the normal deviate that a verdict needs: if there is no difference, hardly any is found.
_VERDICT = 2.0
#: The search stops if the deviate of a power is this near to that of the wanted power.
_NEAR = 0.4
#: The most differences that are tried to find the one that is detected.
_DIFFERENCES = 3
#: The most users of "more users", as a multiple of the users there are.
_MANY_TIMES = 20
#: Users from which the mean cost of ranking one exactly is computed.
_PRICED = 20_000
#: Proofs are slow. No more are tried after this many, if all their p-values were above this.
_TRIED_IN_VAIN, _HOPELESS = 5, 0.9
#: With fewer targets, a chance may not be enough for a verdict: `compare` decides.
_MANY_TARGETS = 100
#: The sample size of "more users", if none is known.
_USUAL_SAMPLE = 99


@dataclass(frozen=True, eq=False)
class Powers:
    """Two models, the users, and how often each design names the better model."""

    asked: Asked
    pair: Pair
    level: float
    #: The wanted power.
    sought: float
    candidates: str | None
    #: The sample size of "more users".
    sampled: int | None
    repeats: int
    seed: tuple[int, ...]
    _tried: list[PowerOutcome] = field(default_factory=list)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return the names of the designs that can be planned, and "more users"."""
        by_k = [] if self.pair.metric.k is None else [Certified.name]
        more = [MORE_USERS] if self._sample < self.pair.items - 1 else []
        return (Fixed.name, *more, *self.asked.guided, *by_k, Exact.name)

    @property
    def curves(self) -> tuple[PowerOutcome, ...]:
        """Return everything that was tried: each design at growing costs."""
        order = {label: place for place, label in enumerate(self.labels)}
        return tuple(sorted(self._tried, key=lambda each: (order[each.label], each.cost)))

    @property
    def full_cost(self) -> float:
        """Return how many scores full rankings of all users by both models need."""
        return 2.0 * self.pair.items * self._each

    @property
    def _each(self) -> float:
        """Return the number of targets of all users."""
        return self.asked.users * self.asked.of_user

    @cached_property
    def at_most(self) -> PowerOutcome:
        """Return the outcome of full rankings of all users."""
        found = self.trial(Exact.name, math.ceil(self.full_cost), self.pair, _ON_THE_WAY)
        assert found is not None
        return found

    def outcome(self, label: str, budget: int) -> PowerOutcome | None:
        """Return the power for this budget, and the least difference that would be detected."""
        found = self.trial(label, budget, self.pair, _SHOWN)
        return found and replace(found, detectable=self._detectable(found, budget))

    def needed(self, label: str) -> float | None:
        """Return the budget that gives the wanted power; None if no budget does."""
        most = self._most(label)
        # Exact and guided designs end in full rankings; others are tried with the largest budget.
        certain = label in {*self._exact, Guided.name}
        top = (
            self.at_most if certain else self.trial(label, math.ceil(most), self.pair, _ON_THE_WAY)
        )
        assert top is not None
        if top.power < self.sought:
            return None
        low, high = math.log(self._least(label)), math.log(most)
        below, above = None, top
        for _ in range(_SEARCHED):
            middle = (low + high) / 2.0
            found = self.trial(label, math.ceil(math.exp(middle)), self.pair, _ON_THE_WAY)
            if found is None or found.power < self.sought:
                low, below = middle, found
            else:
                high, above = middle, found
        if below is None:
            return math.exp(high)
        # Between the two, assume that the deviate of the power is linear in the log of the budget.
        start, end = _deviate(below), _deviate(above)
        share = (normal_deviate(self.sought) - start) / max(end - start, 1e-9)
        return math.exp(low + min(max(share, 0.0), 1.0) * (high - low))

    def plan(self, budget: int | None) -> PowerPlan:
        """Return the plan: what each design needs, and what it gives for the budget."""
        needed, pair = {label: self.needed(label) for label in self.labels}, self.pair
        least = least_of(needed)[1]
        if budget is None:
            budget = math.ceil(least or self.full_cost)
        found = [self.outcome(label, budget) for label in self.labels]
        return PowerPlan(
            items=pair.items,
            users=self.asked.users,
            targets=self.asked.targets,
            metric=pair.metric,
            guess=pair.source,
            budget=budget,
            outcomes=tuple(each for each in found if each is not None),
            curves=self.curves,
            needed=needed,
            repeats=self.repeats,
            models=pair.names,
            values=pair.values,
            correlation=pair.correlation,
            level=self.level,
            power=self.sought,
            users_needed=None if least else self.users_needed(),
        )

    def users_needed(self) -> int:
        """Return about how many users full rankings would need for the wanted power."""
        ratio = (_VERDICT + normal_deviate(self.sought)) / max(
            _VERDICT + _deviate(self.at_most), 0.1
        )
        return math.ceil(self.at_most.users * ratio**2)

    def trial(self, label: str, budget: int, pair: Pair, error: float) -> PowerOutcome | None:
        """Evaluate and compare both models until the power is known to within ``error``.

        None if the budget is too small for the design.
        """
        evaluation = self._evaluation(label, budget)
        if evaluation is None:
            return None
        design, users, simulated, part = evaluation
        wins, cost, count = 0, 0.0, 0
        for count, (won, scored) in enumerate(
            self._verdicts(label, design, pair, simulated, part), 1
        ):
            wins, cost = wins + won, cost + scored
            known = error_of_share(wins, count)
            if count >= _FEWEST and (
                known <= error
                or (
                    error > _SHOWN
                    and abs((wins + 1) / (count + 2) - self.sought) > _CLEARLY * known
                )
            ):
                break
        cost = self.asked.of_user * users / simulated * cost / count
        method = planned_method(design)
        found = PowerOutcome(label, design, users, cost, method, wins / count, count)
        if pair is self.pair:
            self._tried.append(found)
        return found

    # -- one evaluation of both models, and the verdict -------------------------------------------

    def _verdicts(
        self, label: str, design: Design, pair: Pair, users: int, part: int
    ) -> Iterator[tuple[bool, int]]:
        """Yield for each evaluation whether the better model was named, and the cost."""
        tried, near = 0, 0
        for number in range(self.repeats):
            found = self._found(label, design, pair, users, part, number)
            named = None if design.certifies else self._named_by_chance(pair, found)
            if named is None and (design.certifies or near or tried < _TRIED_IN_VAIN):
                verdict = self._verdict(pair, found)
                named, tried = verdict.winner, tried + 1
                near += verdict.p_value < _HOPELESS
            yield named == pair.winner, sum(each.scored for each in found)

    def _found(
        self, label: str, design: Design, pair: Pair, users: int, part: int, number: int
    ) -> list[Findings]:
        """Return what the design finds for both models on the users of one evaluation."""
        ranks = pair.draw(users, np.random.default_rng([*self.seed, number]))
        rng = np.random.default_rng([*self.seed, number, self.labels.index(label)])
        # Models that are evaluated together use the same order of users.
        shuffle = rng.permutation(users)
        budget = None if design.exact else part
        return [self.asked.simulate(design, each, rng, budget, shuffle) for each in ranks]

    def half_width(self, label: str, budget: int) -> float:
        """Return half the width of the interval of the difference in one evaluation."""
        evaluation = self._evaluation(label, budget)
        if evaluation is None:
            return math.inf
        design, users, simulated, part = evaluation
        found = self._found(label, design, self.pair, simulated, part, 0)
        verdict = self._verdict(self.pair, found)
        return (verdict.high - verdict.low) / 2.0 * math.sqrt(simulated / users)

    def _verdict(self, pair: Pair, found: list[Findings]) -> Difference:
        """Return what `compare` says about the two models."""
        estimates = {
            name: estimates_of(
                each,
                (pair.metric,),
                method=planned_method(each.design),
                candidates=self.candidates,
                errors="delta",
            )
            for name, each in zip(pair.names, found, strict=True)
        }
        models = [
            Model(name, estimates[name].counts, each)
            for name, each in zip(pair.names, found, strict=True)
        ]
        pairing = Pairing() if why_unmatched(models) else Pairing.of_models(models)
        chances = Chances.of(estimates, [pair.metric])
        duels = Duels(models, estimates, pairing, self.level, ALL, chances)
        return duels.verdicts(pair.metric, "holm")[0]

    def _named_by_chance(self, pair: Pair, found: list[Findings]) -> str | None:
        """Return the winner by its chance alone; no proof is tried, because proofs are slower."""
        method = planned_method(found[0].design) or ()
        question = Question.parse(pair.metric, method, self.candidates, None)
        cutoffs = question.cutoffs(pair.items)
        observed = [
            Observed.prepare(
                group_catalogues(each.counts), cutoffs=cutoffs, candidates=question.usual_candidates
            )
            for each in found
        ]
        held = [question.calibrated(each) for each in observed]
        known = [each for each in held if each is not None and pair.metric in each.metrics]
        if len(known) < len(held) or len(found[0].ranks) < _MANY_TARGETS:
            return None
        targets = [each.targets(each.observed) for each in known]
        chances = Chances.under(known[0], pair.names, [pair.metric], observed, targets)
        chance = chances.beats(*pair.names, pair.metric.name)
        assert chance is not None
        unproven = Difference(
            pair.metric.name, *pair.names, 0.0, -1.0, 1.0, 0.0, 1.0, chance, 1.0, None
        )
        return corrected([unproven], "holm", self.level, 1, by_chance=True)[0].winner

    # -- what a budget buys -----------------------------------------------------------------------

    @property
    def _sample(self) -> int:
        return self.sampled or _USUAL_SAMPLE

    def _most(self, label: str) -> float:
        """Return the largest budget that a design can use."""
        if label == MORE_USERS:
            return 2.0 * (self._sample + 1) * _MANY_TIMES * self._each
        return self.full_cost

    def _least(self, label: str) -> float:
        """Return the budget from which the search starts."""
        few = min(_FEWEST_USERS, self.asked.users) * self.asked.of_user
        if label in self._exact:
            return few * self._prices[label].mean
        if label == MORE_USERS:
            return 2.0 * (self._sample + 1) * few
        return min(2.0 * _CHEAPEST * self._each, self.full_cost)

    def _evaluation(self, label: str, budget: int) -> tuple[Design, int, int, int] | None:
        """Return the design for a budget, its users, the simulated users and their budget.

        The last number is what one model may spend on one target of each simulated user. None if
        the budget is too small.
        """
        part = int(min(budget, self._most(label)) / 2.0 / self.asked.of_user)
        users = self.asked.users
        if label == MORE_USERS:
            design: Design = Fixed(self._sample, replacement=False)
            users = part // (self._sample + 1)
        elif label in self._exact:
            design = self._exact[label]
            users = self._prices[label].affords(2.0 * part, users)
        else:
            simulated = min(users, _MOST_USERS)
            try:
                design = self.asked.fit(label, part * simulated // users, simulated)
            except BudgetError:
                return None
        simulated = min(users, _MOST_USERS)
        return (design, users, simulated, part * simulated // users) if users else None

    @cached_property
    def _exact(self) -> dict[str, Design]:
        return {Certified.name: Certified(self.pair.metric.k), Exact.name: Exact()}

    @cached_property
    def _prices(self) -> dict[str, Price]:
        """Return what the exact metric of a target costs for both models together."""
        rng = np.random.default_rng(self.seed)
        ranks = self.pair.draw(_PRICED, rng)
        return {
            label: self.asked.price(design, ranks, rng)
            for label, design in self._exact.items()
            if label in self.labels
        }

    def _detectable(self, found: PowerOutcome, budget: int) -> float | None:
        """Return the difference that would be detected with the wanted power.

        The deviate of the power is assumed to be linear in the difference; each guess is tried.
        """
        sought = _VERDICT + normal_deviate(self.sought)
        difference, power = self.pair.difference, found
        slope = weight = 0.0
        for _ in range(_DIFFERENCES):
            slope += power.evaluations * difference * max(_VERDICT + _deviate(power), 0.25)
            weight += power.evaluations * difference**2
            difference = sought * weight / slope
            if difference >= self.pair.largest_difference:
                return None
            if abs(_deviate(power) - normal_deviate(self.sought)) < _NEAR:
                break
            tried = self.trial(found.label, budget, self.pair.apart(difference), _ON_THE_WAY)
            assert tried is not None
            power = tried
        return difference


def _deviate(found: PowerOutcome) -> float:
    """Return the normal deviate of a power; it is always finite."""
    return normal_deviate((found.power * found.evaluations + 0.5) / (found.evaluations + 1.0))


def normal_deviate(share: float) -> float:
    """Return the normal deviate below which this share of the distribution lies."""
    from scipy.special import ndtri

    return float(ndtri(share))
