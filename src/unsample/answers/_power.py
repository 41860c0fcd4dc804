"""The power of designs: how often `compare` would name the better of two models.

Both models are evaluated many times, each time on other users, by the design itself; what comes
out is compared by the code that `compare` runs, and verdicts for the better model are counted.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from unsample.answers._chances import Chances
from unsample.answers._compare import why_unmatched
from unsample.answers._comparison import ALL, Difference
from unsample.answers._duels import Duels
from unsample.answers._estimate import estimate_counts
from unsample.answers._evaluate import certified_targets
from unsample.answers._model import Model
from unsample.answers._pair import Pair
from unsample.answers._planner import IN_HAND, planned_method, setting_of
from unsample.answers._question import Question
from unsample.answers._result import Estimates
from unsample.answers._verdicts import corrected
from unsample.designs import Adaptive, Certified, Design, Exact, Findings, Fixed, Guided
from unsample.errors import BudgetError
from unsample.estimators import Observed
from unsample.evidence import group_catalogues

#: Users that are simulated at most; more users have more power.
_MOST_USERS = 20_000
#: The standard error of a power that is shown, and of one on the way to a budget or a difference.
_SHOWN, _ON_THE_WAY = 0.05, 0.12
#: The fewest evaluations behind a power, and by how many standard errors it is clearly another.
_FEWEST, _CLEARLY = 8, 2.0
#: How often the budget is halved (on a logarithmic scale) on the search for the least.
_SEARCHED = 4
#: Scores for each target that the search starts from, and the fewest users ranked exactly.
_CHEAPEST, _FEWEST_USERS = 8, 20
#: The deviate that a verdict needs, about: where no difference is, as good as none is found.
_VERDICT = 2.0
#: How near the deviate of a power must be to the one that is sought to stop looking.
_NEAR = 0.4
#: Differences that are looked at, on the way to the one that is detected.
_DIFFERENCES = 3
#: Users that "more users" may add: so many times those there are.
_MANY_TIMES = 20
#: Users behind the mean cost of certifying one.
_COSTED = 20_000
#: Proofs take long. They are given up where the first so many all had p-values above this.
_TRIED_IN_VAIN, _HOPELESS = 5, 0.9
#: With fewer targets it may be that chances are no verdicts: `compare` decides.
_MANY_TARGETS = 100
#: The sample size with which more users are evaluated, where none is known.
_USUAL_SAMPLE = 99

MORE_USERS = "more users"


@dataclass(frozen=True)
class PowerOutcome:
    """What a design would cost for two models together, and how often it tells them apart."""

    #: What it is called: the design, or "more users".
    label: str
    #: What goes into ``evaluate(design=...)``.
    design: Design
    #: How many users to evaluate, drawn at random; all but for exact designs and more users.
    users: int
    #: Scores asked for in all, of both models, as expected.
    cost: float
    #: The method that was simulated, as in `Outcome`; None for exact designs.
    method: str | None
    #: The chance that `compare` names the better model, and how many evaluations showed it.
    power: float
    evaluations: int
    #: The least difference that is told apart as often as is sought; None where none is.
    detectable: float | None = None

    @property
    def name(self) -> str:
        """Return the name of the design."""
        return self.design.name

    @property
    def setting(self) -> str:
        """Return the design's parameters in words."""
        more = f" of {self.users:,} users" if self.label == MORE_USERS else ""
        return setting_of(self.design, self.users) + more

    @property
    def error(self) -> float:
        """Return the standard error of the power."""
        return _error_of(self.power * self.evaluations, self.evaluations)


@dataclass(frozen=True, eq=False)
class Powers:
    """Two models, the users there are, and how often each design tells the models apart."""

    pair: Pair
    users: int
    #: How many targets a user has.
    of_user: float
    level: float
    #: The power that is sought.
    sought: float
    #: How good a guide there is; None where there is none.
    odds: float | None
    candidates: str | None
    #: The sample size with which more users are evaluated.
    sampled: int | None
    repeats: int
    seed: tuple[int, ...]
    _tried: list[PowerOutcome] = field(default_factory=list)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return the designs that can be planned."""
        by_k = [] if self.pair.metric.k is None else [Certified.name]
        guided = [Guided.name] if by_k and self.odds is not None else []
        more = [MORE_USERS] if self._sample < self.pair.items - 1 else []
        return (Fixed.name, *more, Adaptive.name, *guided, *by_k, Exact.name)

    @property
    def curves(self) -> tuple[PowerOutcome, ...]:
        """Return what was tried on the way: each design at growing costs."""
        order = {label: place for place, label in enumerate(self.labels)}
        return tuple(sorted(self._tried, key=lambda each: (order[each.label], each.cost)))

    @property
    def full_cost(self) -> float:
        """Return the scores of full rankings of all users under both models."""
        return 2.0 * self.pair.items * self.users * self.of_user

    @cached_property
    def at_most(self) -> PowerOutcome:
        """Return what full rankings of all users would give."""
        found = self.trial(Exact.name, math.ceil(self.full_cost), self.pair, _ON_THE_WAY)
        assert found is not None
        return found

    def outcome(self, label: str, budget: int) -> PowerOutcome | None:
        """Return the power for this budget, and the least difference that would be detected."""
        found = self.trial(label, budget, self.pair, _SHOWN)
        return found and replace(found, detectable=self._detectable(found, budget))

    def needed(self, label: str) -> float | None:
        """Return the budget with which the power is as sought; None where none suffices."""
        most = self._most(label)
        # Exact and guided designs end in full rankings; others are tried with all there is.
        certain = label in {Exact.name, Certified.name, Guided.name}
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
        # Between the two the deviate of the power is taken to grow with the log of the budget.
        start, end = _deviate(below), _deviate(above)
        share = (_normal_deviate(self.sought) - start) / max(end - start, 1e-9)
        return math.exp(low + min(max(share, 0.0), 1.0) * (high - low))

    def users_needed(self) -> int:
        """Return about how many users must be ranked in full, were there so many."""
        ratio = (_VERDICT + _normal_deviate(self.sought)) / max(
            _VERDICT + _deviate(self.at_most), 0.1
        )
        return math.ceil(self.at_most.users * ratio**2)

    def trial(self, label: str, budget: int, pair: Pair, error: float) -> PowerOutcome | None:
        """Evaluate and compare both models until the power is known to within ``error``.

        None where the budget does not suffice for the design.
        """
        part = int(min(budget, self._most(label)) / 2.0 / self.of_user)
        try:
            design, users = self._fit(label, part)
        except BudgetError:
            return None
        if users < 1:
            return None
        wins, cost, count = 0, 0.0, 0
        simulated = min(users, _MOST_USERS)
        for count, (won, scored) in enumerate(
            self._verdicts(label, design, pair, simulated, part * simulated // users), 1
        ):
            wins, cost = wins + won, cost + scored
            known = _error_of(wins, count)
            if count >= _FEWEST and (
                known <= error
                or (
                    error > _SHOWN
                    and abs((wins + 1) / (count + 2) - self.sought) > _CLEARLY * known
                )
            ):
                break
        method = None if design.certifies else planned_method(design)
        scale = self.of_user * users / simulated
        found = PowerOutcome(
            label, design, users, scale * cost / count, method, wins / count, count
        )
        if pair is self.pair:
            self._tried.append(found)
        return found

    # -- one evaluation of both models, and the verdict -------------------------------------------

    def _verdicts(
        self, label: str, design: Design, pair: Pair, users: int, part: int
    ) -> Iterator[tuple[bool, int]]:
        """Yield whether the better model was named, and what that cost, again and again."""
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
        """Return what the design finds of both models on the users of one evaluation."""
        ranks = pair.draw(users, np.random.default_rng([*self.seed, number]))
        rng = np.random.default_rng([*self.seed, number, self.labels.index(label)])
        # Models that are evaluated together draw users in one order.
        shuffle = rng.permutation(users)
        return [
            design.simulate(
                each,
                items=pair.items,
                rng=rng,
                budget=None if design.exact else part,
                metrics=pair.metric,
                shuffle=shuffle,
                odds=1.0 if self.odds is None else self.odds,
            )
            for each in ranks
        ]

    def half_width(self, label: str, budget: int) -> float:
        """Return half the width of the interval of the difference, in a single evaluation."""
        part = int(min(budget, self._most(label)) / 2.0 / self.of_user)
        try:
            design, users = self._fit(label, part)
        except BudgetError:
            return math.inf
        simulated = min(users, _MOST_USERS)
        found = self._found(label, design, self.pair, simulated, part * simulated // users, 0)
        verdict = self._verdict(self.pair, found)
        return (verdict.high - verdict.low) / 2.0 * math.sqrt(simulated / users)

    def _verdict(self, pair: Pair, found: list[Findings]) -> Difference:
        """Return what `compare` says of the two models."""
        estimates = {
            name: self._estimates(pair, each) for name, each in zip(pair.names, found, strict=True)
        }
        models = [
            Model(name, estimates[name].counts, each)
            for name, each in zip(pair.names, found, strict=True)
        ]
        paired = not why_unmatched(models)
        chances = Chances.of(estimates, [pair.metric])
        duels = Duels(models, estimates, paired, self.level, ALL, chances)
        return duels.verdicts(pair.metric, "holm")[0]

    def _named_by_chance(self, pair: Pair, found: list[Findings]) -> str | None:
        """Return the winner by chance, before anything is proved: a proof takes longer."""
        question = Question.parse(
            pair.metric, planned_method(found[0].design), self.candidates, None
        )
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

    def _estimates(self, pair: Pair, found: Findings) -> Estimates:
        """Return what `evaluate` makes of the findings."""
        if found.design.certifies:
            return certified_targets(found, (pair.metric,), None, 0, 0)
        return estimate_counts(
            found.counts,
            metrics=pair.metric,
            method=planned_method(found.design),
            candidates=self.candidates,
            errors="delta",
            resamples=0,
        )

    # -- what a budget buys -----------------------------------------------------------------------

    @property
    def _sample(self) -> int:
        return self.sampled or _USUAL_SAMPLE

    def _cost_of_sample(self, users: float) -> float:
        """Return the scores of both models for samples of the size that there is."""
        return 2.0 * (self._sample + 1) * users * self.of_user

    def _most(self, label: str) -> float:
        """Return the largest budget that buys anything."""
        if label == MORE_USERS:
            return self._cost_of_sample(_MANY_TIMES * self.users)
        return self.full_cost

    def _least(self, label: str) -> float:
        """Return the budget from which the search starts."""
        if label in {Exact.name, Certified.name}:
            each = sum(self._cost_of_user(label)[:2])
            return min(_FEWEST_USERS, self.users) * self.of_user * each
        if label == MORE_USERS:
            return self._cost_of_sample(min(_FEWEST_USERS, self.users))
        return min(2.0 * _CHEAPEST * self.users * self.of_user, self.full_cost)

    def _fit(self, label: str, part: int) -> tuple[Design, int]:
        """Return the design that spends ``part`` on one target of each user, and for how many."""
        pair, metrics = self.pair, [self.pair.metric]
        if label == MORE_USERS:
            return Fixed(self._sample, replacement=False), part // (self._sample + 1)
        if label in {Exact.name, Certified.name}:
            design: Design = Exact() if label == Exact.name else Certified(pair.metric.k)
            (mean, other), sd = self._cost_of_user(label)[:2], self._cost_of_user(label)[2]
            some = bisect_right(
                range(self.users + 1),
                2.0 * part,
                key=lambda users: users * (mean + other) + IN_HAND * math.sqrt(users) * sd,
            )
            if 2 * part >= 2 * pair.items * self.users:
                return design, self.users
            return design, min(some - 1, self.users)
        others = np.broadcast_to(np.int64(pair.items - 1), min(self.users, _MOST_USERS))
        part = part * len(others) // self.users
        chosen = {Fixed.name: Fixed(replacement=False), Adaptive.name: Adaptive()}.get(
            label, Guided()
        )
        return chosen.fit(metrics, others, part)[0], self.users

    def _cost_of_user(self, label: str) -> tuple[float, float, float]:
        """Return the mean cost of a user under each model, and the deviation of their sum."""
        if label == Exact.name:
            return float(self.pair.items), float(self.pair.items), 0.0
        return self._cost_of_certified

    @cached_property
    def _cost_of_certified(self) -> tuple[float, float, float]:
        pair, rng = self.pair, np.random.default_rng(self.seed)
        odds = 1.0 if self.odds is None else self.odds
        met = [
            Certified(pair.metric.k)
            .simulate(each, items=pair.items, rng=rng, metrics=pair.metric, odds=odds)
            .met
            + 1.0
            for each in pair.draw(_COSTED, rng)
        ]
        return float(met[0].mean()), float(met[1].mean()), float((met[0] + met[1]).std())

    def _detectable(self, found: PowerOutcome, budget: int) -> float | None:
        """Return the difference that would be told apart as often as is sought.

        The deviate of the power is taken to be linear in the difference, and guesses are tried.
        """
        sought = _VERDICT + _normal_deviate(self.sought)
        difference, power = self.pair.difference, found
        slope = weight = 0.0
        for _ in range(_DIFFERENCES):
            slope += power.evaluations * difference * max(_VERDICT + _deviate(power), 0.25)
            weight += power.evaluations * difference**2
            difference = sought * weight / slope
            if difference >= self.pair.largest_difference:
                return None
            if abs(_deviate(power) - _normal_deviate(self.sought)) < _NEAR:
                break
            tried = self.trial(found.label, budget, self.pair.apart(difference), _ON_THE_WAY)
            assert tried is not None
            power = tried
        return difference


def _error_of(wins: float, count: int) -> float:
    """Return the standard error of a share, which is never none."""
    share = (wins + 1.0) / (count + 2.0)
    return math.sqrt(share * (1.0 - share) / (count + 2.0))


def _deviate(found: PowerOutcome) -> float:
    """Return the normal deviate of a power, which is neither none nor sure."""
    return _normal_deviate((found.power * found.evaluations + 0.5) / (found.evaluations + 1.0))


def _normal_deviate(share: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(share))
