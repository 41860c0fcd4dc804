"""`plan(compare=...)`: which design tells two models apart, how often, and for how much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from unsample.answers._power import MORE_USERS, PowerOutcome, Powers
from unsample.answers._result import Result, percent
from unsample.metrics import Metric


@dataclass(frozen=True, eq=False, repr=False)
class PowerPlan(Result):
    """How often each design would tell two models apart, and which one does it for the least.

    ``evaluate(scorers, targets, items=..., design=plan.best.design, budget=plan.budget)`` does what
    is recommended, for a dict of both scorers.
    """

    items: int
    users: int
    #: Relevant items of all users together: what is ranked.
    targets: int
    metric: Metric
    #: The two models, the metric that each is taken to have, and where that comes from.
    models: tuple[str, str]
    values: tuple[float, float]
    guess: str
    #: The correlation of the models' ranks, as normal deviates.
    correlation: float
    #: The level of the verdicts, and the power that is sought.
    level: float
    power: float
    #: Scores that may be asked for, of both models together; what the recommended design needs
    #: where none was given.
    budget: int
    #: Each design at (or just below) this cost.
    outcomes: tuple[PowerOutcome, ...]
    #: Each design at growing costs, for a plot.
    curves: tuple[PowerOutcome, ...]
    #: The scores that each design needs to reach the power; None where no budget suffices.
    needed: dict[str, float | None]
    #: The users that must be ranked in full to reach it, where there are too few of them.
    users_needed: int | None
    repeats: int

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return nothing: the plan itself says what it guesses."""
        return ()

    @property
    def difference(self) -> float:
        """Return by how much the better model is better."""
        return abs(self.values[0] - self.values[1])

    @property
    def best(self) -> PowerOutcome:
        """Return the design that tells the models apart for the least; else the most powerful.

        Designs that take more users than there are do not count.
        """
        there = [each for each in self.outcomes if each.label != MORE_USERS]
        able = [each for each in there if each.power >= self.power - each.error]
        if able:
            return min(able, key=lambda each: (self.needed[each.label] or math.inf, each.cost))
        return max(there, key=lambda each: (each.power, -each.cost))

    @property
    def least(self) -> float | None:
        """Return the least budget that tells the models apart as often as is sought."""
        found = [cost for label, cost in self.needed.items() if cost and label != MORE_USERS]
        return min(found, default=None)

    @property
    def recommendation(self) -> str:
        """Return what to do, in a sentence or two."""
        best, full = self.best, 2.0 * self.items * self.targets
        text = (
            f"Use design={best.name!r} ({best.setting}): {best.cost:,.0f} scores for both models "
            f"({percent(best.cost / full)} of full rankings) name the better one with a power of "
            f"{100 * best.power:.0f} %."
        )
        if best.users < self.users:
            text += f" Evaluate {best.users:,} of the {self.users:,} users, drawn at random."
        if self.least is None:
            return (
                f"{text} Full rankings of all users do not reach {100 * self.power:.0f} %: that "
                f"takes about {self.users_needed:,} users."
            )
        if best.power < self.power and self.least > self.budget:
            cheapest = min(self.needed, key=lambda name: self.needed[name] or math.inf)
            text += (
                f" A power of {100 * self.power:.0f} % needs about {self.least:,.0f} scores "
                f"({cheapest})."
            )
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "items": self.items,
            "users": self.users,
            "targets": self.targets,
            "metric": self.metric.name,
            "models": dict(zip(self.models, self.values, strict=True)),
            "difference": self.difference,
            "guess": self.guess,
            "correlation": self.correlation,
            "level": self.level,
            "power": self.power,
            "budget": self.budget,
            "designs": self.rows(),
            "curves": [self._row(outcome) for outcome in self.curves],
            "recommended": self.best.name,
            "recommendation": self.recommendation,
            "least": self.least,
            "users_needed": self.users_needed,
            "repeats": self.repeats,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each design."""
        return [self._row(outcome) for outcome in self.outcomes]

    def _row(self, outcome: PowerOutcome) -> dict[str, Any]:
        names = ("setting", "users", "cost", "method", "power", "error", "evaluations")
        return {
            "label": outcome.label,
            "design": outcome.name,
            **{name: getattr(outcome, name) for name in names},
            "detectable": outcome.detectable,
            "share_of_full": outcome.cost / (2.0 * self.items * self.targets),
            "cost_for_power": self.needed[outcome.label],
        }


def plan_comparison(powers: Powers, budget: int | None) -> PowerPlan:
    """Return the plan: what each design needs, and what it gives for the budget."""
    pair = powers.pair
    needed = {label: powers.needed(label) for label in powers.labels}
    there = [cost for label, cost in needed.items() if cost is not None and label != MORE_USERS]
    if budget is None:
        budget = math.ceil(min(there, default=powers.full_cost))
    found = [powers.outcome(label, budget) for label in powers.labels]
    return PowerPlan(
        pair.items,
        powers.users,
        round(powers.users * powers.of_user),
        pair.metric,
        pair.names,
        pair.values,
        pair.source,
        pair.correlation,
        powers.level,
        powers.sought,
        budget,
        tuple(each for each in found if each is not None),
        powers.curves,
        needed,
        None if there else powers.users_needed(),
        powers.repeats,
    )
