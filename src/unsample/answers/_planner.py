"""What each design would give, before anything is scored: a guess of P(R), and evaluations of it.

Users are drawn from the guess, and each design is simulated on them as `evaluate` would run it: the
same classes, the same budget, the same estimator.
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unsample import estimators as _estimators
from unsample._checks import FloatArray, IntArray, as_integer_array, check_real
from unsample.answers._chosen import is_of_the_top
from unsample.answers._estimate import DEFAULT_METHOD
from unsample.answers._evaluate import certified_targets, method_of
from unsample.designs import Adaptive, Certified, Design, Exact, Findings, Fixed, Guided
from unsample.errors import BudgetError, InputError, RankError
from unsample.estimators import Observed
from unsample.evidence import RankCounts
from unsample.law import RankDistribution, RankGrid, bin_weights, mean_over
from unsample.metrics import Metric

#: Bins of a guess: ranks stand alone up to K, then a bin is this wide relative to its rank.
_RATIO = 0.05
_SINGLE_RANKS = 24
#: The steepest power law that is tried.
_STEEPEST = 4.0
_BISECTIONS = 60
#: The K whose Recall is guessed for metrics without K, and the guess where nothing is known.
_USUAL_K = 10
_DEFAULT_RECALL = 0.1
#: Users that are simulated. For more of them the bias hardly moves, and the standard deviation
#: falls with the square root of their number. (`auto` trusts more users more: 1,000 are too few.)
_MOST_USERS = 4000
#: Sampled ranks are exact up to here, or K, then rounded to a share of themselves, less than their
#: noise; and beyond the last number they are taken from a thinner sample.
_SINGLE, _ROUNDED, _FAR = 16, 0.06, 300
#: Larger fixed samples are estimated by `mle`: `auto` takes long, and gains little on them.
_LARGEST_AUTO = 1000
#: Costs at which designs are tried, from this for each user up to a full ranking.
_CHEAPEST = 16.0
_MOST_COSTS = 5
#: Samples beyond this are not simulated.
_LARGEST_SAMPLE = 1e6
#: How often a cost is read off the curves and tried, by how much it is raised at least after one
#: that failed, and which share of the error sought, and of the cost, is close enough.
_ATTEMPTS = 5
_NEXT_COST = 1.25
_CLOSE, _CLOSER = 0.85, 0.95
#: Errors below this share of the one that is sought are as good as none.
_NEGLIGIBLE = 0.01
#: A certified evaluation costs what it costs: so many standard deviations are kept in hand.
IN_HAND = 3.0


@dataclass(frozen=True)
class Outcome:
    """What a design would cost, and how far off the metric of these users it would be."""

    #: What goes into ``evaluate(design=...)``.
    design: Design
    #: How many of the users to evaluate, drawn at random; all but for exact designs.
    users: int
    #: Scores asked for in all, as expected.
    cost: float
    bias: float
    sd: float
    #: The method that was simulated; None for exact designs. It is the one that `evaluate` uses by
    #: default, but for large fixed samples, where it goes into ``evaluate(method=...)``.
    method: str | None

    @property
    def name(self) -> str:
        """Return the name of the design."""
        return self.design.name

    @property
    def rmse(self) -> float:
        """Return the root of the expected squared error."""
        return math.hypot(self.bias, self.sd)

    @property
    def setting(self) -> str:
        """Return the design's parameters in words."""
        return setting_of(self.design, self.users)


def setting_of(design: Design, users: int) -> str:
    """Return the parameters of a design in words."""
    if isinstance(design, Fixed):
        return f"{design.sampled:,} items for each target"
    if isinstance(design, Adaptive):
        return f"{design.start:,} items at first, more for targets that none beats"
    if isinstance(design, Guided):
        return "strong items first, a random part of who is left ranked in full"
    return f"exact for {users:,} users"


def best_of(outcomes: Iterable[Outcome]) -> Outcome:
    return min(outcomes, key=lambda outcome: (outcome.rmse, outcome.cost))


def planned_method(design: Design) -> str:
    large = isinstance(design, Fixed) and (design.sampled or 0) > _LARGEST_AUTO
    return "mle" if large else method_of(design)


# -- the guess -------------------------------------------------------------------------------------


def usual_k(metric: Metric, items: int) -> int:
    """Return the K whose Recall is guessed: that of the metric, or a usual one."""
    return metric.k or min(_USUAL_K, items - 1)


def power_law(items: int, k: int, recall: float | None) -> tuple[RankDistribution, str]:
    """Return P(R) proportional to R^-a, with the a that makes Recall@k as given, and so in words.

    Without a recall it is 0.1, or what two lists of K find by luck where that is more.
    """
    if k >= items:
        raise InputError(
            f"K must be below items = {items} where no pilot is given, got {k}: Recall@{k} is 1 "
            "whatever P(R) is, so it cannot be guessed from that"
        )
    if recall is None:
        recall = max(_DEFAULT_RECALL, 1.0 - (1.0 - k / items) ** 2)
    check_real("recall", recall, low=0.0, high=1.0, open_low=True, open_high=True)
    grid = _guess_grid(items, k)

    def mass(exponent: float) -> FloatArray:
        found = mean_over(lambda ranks: ranks**-exponent, grid.low, grid.high) * grid.width
        return np.asarray(found / found.sum())

    def at_top(exponent: float) -> float:
        return float(mass(exponent)[grid.high <= k].sum())

    if not at_top(0.0) <= recall <= at_top(_STEEPEST):
        raise InputError(
            f"recall must be in {at_top(0.0):.4g}..{at_top(_STEEPEST):.4g}, what power laws from "
            f"R^0 to R^-{_STEEPEST:g} give at K = {k} of {items} items, got {recall:g}; or give a "
            "pilot instead"
        )
    low, high = 0.0, _STEEPEST
    for _ in range(_BISECTIONS):
        exponent = (low + high) / 2.0
        low, high = (exponent, high) if at_top(exponent) < recall else (low, exponent)
    text = f"P(R) falls as R^-{high:.2f}, so that Recall@{k} is {recall:.4g}"
    return RankDistribution(grid, mass(high)), text


def from_pilot(
    pilot: RankCounts | RankDistribution | npt.ArrayLike, items: int, k: int
) -> tuple[RankDistribution, str]:
    """Return the P(R) of sampled ranks (fitted by `mle`), or of ranks among all items."""
    if isinstance(pilot, RankDistribution):
        found, text = pilot, "the given P(R)"
    elif isinstance(pilot, RankCounts):
        found = _estimators.MLE().fit(pilot, cutoffs=[k])
        text = f"P(R) fitted to a pilot of {pilot.total:,} sampled ranks"
    else:
        ranks = as_integer_array("pilot", pilot, hint="ranks among all items start at 1")
        if ranks.size == 0:
            raise RankError("pilot must hold at least one rank, got none")
        found = RankDistribution.from_ranks(ranks, items=items)
        text = f"a pilot of {len(ranks):,} ranks among all items"
    if found.items != items:
        raise InputError(
            f"pilot must rank among items = {items}, got one among {found.items} items"
        )
    grid = _guess_grid(items, k)
    # Some estimators give bins a mass below zero.
    mass = np.maximum(np.diff(found.cdf(grid.high), prepend=0.0), 0.0)
    return RankDistribution(grid, mass / mass.sum()), text


def draw_ranks(
    guess: RankDistribution, size: tuple[int, ...], rng: np.random.Generator
) -> IntArray:
    """Draw global ranks from a guess."""
    bins = rng.choice(len(guess.grid), size=size, p=guess.mass)
    return np.asarray(guess.grid.low[bins] + rng.integers(guess.grid.width[bins]))


def _guess_grid(items: int, k: int) -> RankGrid:
    single = max(_SINGLE_RANKS, min(k, 4 * _SINGLE_RANKS))
    return RankGrid.build(items, cutoffs=[k], ratio=_RATIO, single=single)


# -- the simulation --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Planner:
    """Many sets of users with ranks from a guess, and what designs make of them."""

    guess: RankDistribution
    #: How many targets there are in all.
    targets: int
    metric: Metric
    repeats: int
    seed: np.random.SeedSequence
    precision: float
    #: How many targets a user has; an exact design ranks all of them, and they may be alike.
    of_user: float = 1.0
    #: How good the guide is, as in `Design.simulate`; None where there is none.
    odds: float | None = None

    @property
    def users(self) -> int:
        """Return the number of users."""
        return round(self.targets / self.of_user)

    @cached_property
    def items(self) -> int:
        """Return the size of the catalogue."""
        return self.guess.items

    @cached_property
    def exact(self) -> Design:
        """Return the design that is run on some of the users."""
        return Exact() if self.metric.k is None else Certified(self.metric.k)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the designs."""
        guided = self.odds is not None and is_of_the_top(self.metric)
        return ("fixed", "adaptive", *(["guided"] if guided else []), self.exact.name)

    @cached_property
    def value(self) -> float:
        """Return the metric of the guess."""
        value = float(self.guess.mass @ self._weights)
        if value <= 0.0:
            raise InputError(
                f"the pilot must have some targets in the top {self.metric.k}, got none: an error "
                f"relative to {self.metric} = 0 has no meaning"
            )
        return value

    @property
    def sought(self) -> float:
        """Return the error that is sought."""
        return self.precision * self.value

    @cached_property
    def _weights(self) -> FloatArray:
        return bin_weights(self.metric, self.guess.grid, self.guess.items)

    @cached_property
    def _sd_of_users(self) -> float:
        square = float(self.guess.mass @ self._weights**2)
        return math.sqrt(self.of_user * max(square - self.value**2, 0.0))

    def compare(self, budget: int | None) -> tuple[int, tuple[Outcome, ...], list[Outcome]]:
        """Return a budget, each design within it, and each at growing costs.

        The budget is the one given, or the least found at which a design has the precision.
        """
        last = min(self.items / 2.0, _LARGEST_SAMPLE)
        each = np.geomspace(max(2.0, min(_CHEAPEST, last)), max(2.0, last), _MOST_COSTS)
        curves = [found for cost in each for found in self.within(round(cost * self.targets))]
        full = float(self.items) * self.targets
        curves += [
            Outcome(design, self.users, full, 0.0, 0.0, planned_method(design))
            for design in (Fixed(self.items - 1, replacement=False), Adaptive(start=self.items - 1))
        ]
        if "guided" in self.names:
            guided = Guided(self.metric.k)
            curves.append(Outcome(guided, self.users, full, 0.0, 0.0, None))
        if budget is None:
            return (*self._at_precision(curves), curves)
        outcomes = self.within(budget)
        return budget, outcomes, [*curves, *outcomes]

    def _at_precision(self, curves: list[Outcome]) -> tuple[int, tuple[Outcome, ...]]:
        """Try the budget that the curves promise, learn from it; return the least that held."""
        held = math.ceil(self.needed(self.exact.name, curves))
        outcomes = self.within(held)
        curves += outcomes
        cost = 0.0
        for _ in range(_ATTEMPTS):
            # Rounds come in steps, so a cost in between may buy nothing: try a higher one.
            cost = max(min(self.needed(name, curves) for name in self.names), _NEXT_COST * cost)
            if cost >= _CLOSER * held:
                break
            budget = max(math.ceil(cost), 2 * self.targets)
            tried = self.within(budget)
            curves += tried
            error = best_of(tried).rmse
            if error <= self.sought:
                held, outcomes, cost = budget, tried, 0.0
            if _CLOSE * self.sought <= error <= self.sought:
                break
        return held, outcomes

    def needed(self, name: str, curves: Iterable[Outcome]) -> float:
        """Return the cost at which a design reaches the precision."""
        if name == self.exact.name:
            # The variance of a mean of m of M users about the mean of all is sd^2 (1/m - 1/M).
            share = (self.sought / self._sd_of_users) ** 2 + 1.0 / self.targets
            return self._cost_of_exact(math.ceil(1.0 / share - 1e-9))
        curve = sorted((each.cost, each.rmse) for each in curves if each.name == name)
        cost, error = np.transpose(curve)
        # Noise aside, errors fall with the cost; what counts is the worst from there on.
        worst = np.maximum.accumulate(error[::-1])[::-1]
        ratio = np.maximum(worst / self.sought, _NEGLIGIBLE)
        return float(np.exp(np.interp(0.0, -np.log(ratio), np.log(cost))))

    def within(self, budget: int) -> tuple[Outcome, ...]:
        """Return what each design gives for this budget; an exact one only if it allows a user."""
        budget = min(budget, self.items * self.targets)
        others = np.broadcast_to(np.int64(self.items - 1), self.targets)
        fixed, adaptive = (
            design.fit([self.metric], others, budget)[0]
            for design in (Fixed(replacement=False), Adaptive())
        )
        designs: list[Design] = [fixed, adaptive]
        if "guided" in self.names:
            simulated = others[: self._ranks.shape[1]]
            with contextlib.suppress(BudgetError):  # too small for those that are simulated
                designs.append(Guided().fit([self.metric], simulated, self._part_of(budget))[0])
        outcomes = [self._simulated(design, budget) for design in designs]
        some = bisect_right(range(self.targets + 1), float(budget), key=self._cost_of_exact) - 1
        if some:
            sd = self._sd_of_users * math.sqrt(1.0 / some - 1.0 / self.targets)
            cost = some * self._cost_of_user[0]
            users = max(1, int(some / self.of_user))
            outcomes.append(Outcome(self.exact, users, cost, 0.0, sd, None))
        return tuple(outcomes)

    def _cost_of_exact(self, users: int) -> float:
        """Return a budget that suffices for so many users, but for very bad luck."""
        mean, sd = self._cost_of_user
        return min(users * mean + IN_HAND * math.sqrt(users) * sd, float(self.items) * users)

    @cached_property
    def _cost_of_user(self) -> tuple[float, float]:
        """Return the mean and the standard deviation of the scores of a user's exact metric."""
        ranks = self._ranks[: max(1, 20_000 // self._ranks.shape[1])].ravel()
        found = self.exact.simulate(
            ranks,
            items=self.items,
            rng=self._rng(0),
            metrics=self.metric,
            odds=1.0 if self.odds is None else self.odds,
        )
        return float(found.met.mean()) + 1.0, float(found.met.std())

    # -- sampled designs --

    @cached_property
    def _ranks(self) -> IntArray:
        """Return global ranks: one row for each set of users."""
        size = (self.repeats, min(self.targets, _MOST_USERS))
        return draw_ranks(self.guess, size, np.random.default_rng(self.seed))

    @cached_property
    def _truth(self) -> FloatArray:
        return np.asarray(self.metric.weights(self._ranks, self.items).mean(axis=1))

    def _rng(self, *key: int) -> np.random.Generator:
        """Return a stream for each use, so that none depends on what ran before."""
        return np.random.default_rng([*self.seed.generate_state(2).tolist(), *key])

    def _part_of(self, budget: int) -> int:
        """Return what the users that are simulated may spend."""
        return -(-budget * int(self._ranks.shape[1]) // self.targets)

    def _simulated(self, design: Design, budget: int) -> Outcome:
        """Evaluate every set of users by the design, estimate, and compare with the truth."""
        users, part = self._ranks.shape[1], self._part_of(budget)
        rng = self._rng(budget, self.names.index(design.name))
        odds = 1.0 if self.odds is None else self.odds
        found = [
            design.simulate(
                row, items=self.items, rng=rng, budget=part, metrics=self.metric, odds=odds
            )
            for row in self._ranks
        ]
        method = None if design.certifies else planned_method(design)
        errors = self._estimates(found, method) - self._truth
        mean, sd = float(errors.mean()), float(errors.std(ddof=1))
        # A mean of few repeats is off by chance: only what goes beyond that is a bias. A guided
        # design has none.
        beyond = math.sqrt(max(mean**2 - sd**2 / self.repeats, 0.0)) if method else 0.0
        return Outcome(
            design,
            self.users,
            float(np.mean([each.scored for each in found])) * self.targets / users,
            math.copysign(beyond, mean) if beyond else 0.0,
            sd * math.sqrt(users / self.targets),
            method,
        )

    def _estimates(self, found: list[Findings], method: str | None) -> FloatArray:
        """Return the metric of each set of users as the method estimates it, all in one fit."""
        if method is None:
            values = (certified_targets(each, (self.metric,), None, 0, 0) for each in found)
            return np.array([each.entries[0].value for each in values])
        ranks = np.stack([each.ranks for each in found])
        sampled = np.stack([np.asarray(each.sampled) for each in found])
        base = int(ranks.max()) + 1
        cells, where = np.unique(sampled * base + ranks, return_inverse=True)
        if method != DEFAULT_METHOD:
            k = self.metric.cutoff(self.items)
            fewer, thinner = _simplified(cells % base, cells // base, k, self.items)
            base = int(fewer.max()) + 1
            cells, place = np.unique(thinner * base + fewer, return_inverse=True)
            where = place[where]
        places = where.reshape(ranks.shape) + np.arange(len(found))[:, None] * len(cells)
        times = np.bincount(places.ravel(), minlength=len(found) * len(cells))
        times = times.reshape(len(found), len(cells))
        total = times.sum(axis=0)
        counts = RankCounts(
            sampled=cells // base,
            items=np.full(len(cells), self.items),
            low=cells % base,
            high=cells % base,
            count=total,
            weight=total / len(found),
            weight_squared=total / len(found),
            replacement=found[0].replacement,
            stop=found[0].stop,
        )
        observed = Observed(counts, times / ranks.shape[1], self.guess.grid)
        return _estimators.parse(method).evaluate(observed, [self.metric]).values[:, 0]


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
