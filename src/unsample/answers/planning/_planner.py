"""`Planner`: every design at any cost, and the cost at which each has a precision."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unsample._checks import FloatArray
from unsample.answers.planning._designs import adaptive_design, certified_cost, fixed_design
from unsample.answers.planning._simulate import Outcome, Simulation
from unsample.errors import InputError
from unsample.law import bin_weights

__all__ = ["DESIGNS", "Planner"]

#: The designs, by the names they have in results.
DESIGNS = ("fixed", "adaptive", "certified", "fewer users")
_SAMPLED = DESIGNS[:2]
#: Costs at which designs are tried, from this up to a full ranking.
_CHEAPEST = 16.0
_MOST_COSTS = 5
#: Costs of sampled designs beyond this are not simulated.
_DEAREST = 1e6
#: How often a cost is read off the curves and tried, by how much it is raised at least after one
#: that failed, and which share of the error sought is close enough.
_ATTEMPTS = 5
_NEXT_COST = 1.25
_CLOSE = 0.85
#: Errors below this share of the one that is sought are as good as none.
_NEGLIGIBLE = 0.01


@dataclass(frozen=True, eq=False)
class Planner:
    """The designs of one simulation at any cost."""

    simulation: Simulation
    k: int
    precision: float

    def compare(self, allowed: float | None) -> tuple[float, tuple[Outcome, ...], list[Outcome]]:
        """Return a cost, each design at this cost, and each at growing costs.

        The cost is the one allowed, or the least found at which a design has the precision.
        """
        curves = [one for cost in _costs(self.simulation.items) for one in self.at_cost(cost)]
        curves += self._full_ranking()
        if allowed is not None:
            cost, outcomes = allowed, self.at_cost(allowed)
            return cost, outcomes, [*curves, *outcomes]
        cost, outcomes = self._at_precision(curves)
        return cost, outcomes, curves

    def _at_precision(self, curves: list[Outcome]) -> tuple[float, tuple[Outcome, ...]]:
        """Try the cost that the curves promise, learn from it; return the cheapest that held."""
        target = self.precision * self.value
        held = self.needed("certified", curves)
        outcomes = self.at_cost(held)
        curves += outcomes
        cost = 0.0
        for _ in range(_ATTEMPTS):
            # Stages come in steps, so a cost in between may buy nothing: go on to a higher one.
            cost = max(min(self.needed(name, curves) for name in DESIGNS), _NEXT_COST * cost)
            if cost >= held:
                break
            tried = self.at_cost(cost)
            curves += tried
            error = min(outcome.rmse for outcome in tried)
            if error <= target:
                held, outcomes, cost = cost, tried, 0.0
            if _CLOSE * target <= error <= target:
                break
        return held, outcomes

    @cached_property
    def value(self) -> float:
        """Return the metric of the guess."""
        value = float(self.simulation.guess.distribution.mass @ self._weights)
        if value <= 0.0:
            raise InputError(
                f"the pilot must have some targets in the top {self.k}, got none: an error "
                f"relative to {self.simulation.metric} = 0 has no meaning"
            )
        return value

    def at_cost(self, cost: float) -> tuple[Outcome, ...]:
        """Return what each design gives for this many scored items a user."""
        ranks = self.simulation.guess.distribution
        sampled = [
            self.simulation.outcome(design, name)
            for name, design in zip(
                _SAMPLED,
                (fixed_design(cost, ranks.items), adaptive_design(cost, ranks, self.k)),
                strict=True,
            )
        ]
        exact = [
            self._exact_for_some(name, cost, each) for name, each in self._cost_of_exact.items()
        ]
        return (*sampled, *(outcome for outcome in exact if outcome is not None))

    def _full_ranking(self) -> tuple[Outcome, ...]:
        """Return where the curves of the sampled designs end: nothing is left to sample."""
        items = self.simulation.items
        return tuple(Outcome(name, "all items", float(items), 0.0, 0.0) for name in _SAMPLED)

    def needed(self, name: str, curves: Iterable[Outcome]) -> float:
        """Return the cost at which a design reaches the precision."""
        target = self.precision * self.value
        if name in _SAMPLED:
            return _crossing([outcome for outcome in curves if outcome.design == name], target)
        # The variance of a mean of m of M users about the mean of all is sd^2 (1/m - 1/M).
        users = self.simulation.users
        enough = math.ceil(1.0 / ((target / self._sd_of_users) ** 2 + 1.0 / users) - 1e-9)
        return enough / users * self._cost_of_exact[name]

    def _exact_for_some(self, name: str, cost: float, each: float) -> Outcome | None:
        """Return exact metrics of as many users as the cost allows; None if it allows no user."""
        users = self.simulation.users
        some = min(users, math.floor(cost * users / each + 1e-9))
        if some == 0:
            return None
        sd = self._sd_of_users * math.sqrt(1.0 / some - 1.0 / users)
        who = f"all {users:,} users" if some == users else f"{some:,} of {users:,} users"
        return Outcome(name, who, some / users * each, 0.0, sd)

    @cached_property
    def _cost_of_exact(self) -> dict[str, float]:
        ranks = self.simulation.guess.distribution
        return {"certified": certified_cost(ranks, self.k), "fewer users": float(ranks.items)}

    @cached_property
    def _weights(self) -> FloatArray:
        return bin_weights(self.simulation.metric, self.simulation.guess.distribution.grid)

    @cached_property
    def _sd_of_users(self) -> float:
        mass = self.simulation.guess.distribution.mass
        return math.sqrt(max(float(mass @ self._weights**2) - self.value**2, 0.0))


def _costs(items: int) -> FloatArray:
    """Return costs in equal ratios, up to below a full ranking."""
    last = min(items / 2.0, _DEAREST)
    return np.geomspace(min(_CHEAPEST, last), last, _MOST_COSTS)


def _crossing(curve: list[Outcome], target: float) -> float:
    """Return the cost at which the error falls to the target for good, between those tried."""
    curve = sorted(curve, key=lambda outcome: outcome.cost)
    cost = np.log([outcome.cost for outcome in curve])
    # Noise aside, errors fall with the cost; what counts is the worst from there on.
    worst = np.maximum.accumulate([outcome.rmse for outcome in curve][::-1])[::-1]
    error = np.log(np.maximum(worst, _NEGLIGIBLE * target) / target)
    return float(np.exp(np.interp(0.0, -error, cost)))
