"""`Plan`: the cost of each design, and the width that its interval would have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from unsample._rounding import percent, percent_at_most, rounded_up
from unsample.designs import Design, Fixed, Guided
from unsample.metrics import Metric
from unsample.report import Result
from unsample.uncertainty import DEFAULT_LEVEL


@dataclass(frozen=True)
class Outcome:
    """A design, its cost, and how certain it would make the metric."""

    #: The design for ``evaluate(design=...)``.
    design: Design
    #: How many scores to allow for, as in ``evaluate(budget=...)``.
    budget: int
    #: The expected number of scores.
    cost: float
    #: How many users to evaluate, drawn at random: all of them, except for exact designs.
    users: int
    #: Half the width of the interval for the metric of these users.
    half_width: float
    #: The smallest significant difference of two models, if each is evaluated in this way.
    smallest_difference: float
    #: Whether the design reaches the error or the difference sought; a fixed sample may not.
    enough: bool = True

    @property
    def name(self) -> str:
        """Return the name of the design."""
        return self.design.name

    @property
    def setting(self) -> str:
        """Return the design's parameters in words."""
        if isinstance(self.design, Fixed):
            full = f", {self.design.full:,} users in full" if self.design.full else ""
            return f"{self.design.sampled:,} items for each target{full}"
        if isinstance(self.design, Guided):
            return "strong items first, a random part of who is left ranked in full"
        return f"exact for {self.users:,} users"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan(Result):
    """The cost of each design and the width of its interval, and which design to use.

    ``evaluate(scorer, targets, items=..., design=plan.best.design, budget=plan.budget)`` runs the
    recommended design.

    >>> import unsample
    >>> result = unsample.plan(items=1000, users=5000, error=0.1)
    >>> [outcome.name for outcome in result.outcomes]
    ['fixed', 'guided', 'certified']
    >>> result.best.name, round(result.best.half_width / result.value, 1)
    ('guided', 0.1)
    """

    shown_by: ClassVar[str] = "unsample.questions.plan.view:view_of_plan"

    #: The size of the catalogue.
    catalogue: int
    users: int
    metric: Metric
    #: The source of P(R) in words.
    guess: str
    #: The value of the metric if P(R) is as guessed.
    value: float
    #: The assumed odds of the guide.
    odds: float
    #: The half-width sought, relative to the metric; it counts if no difference is sought.
    error: float
    #: The difference of two models that is sought, if there is one.
    difference: float | None
    #: The budget, if there is one.
    allowed: int | None
    #: Each design within the budget, or at the cost that it needs.
    outcomes: tuple[Outcome, ...]

    @property
    def best(self) -> Outcome:
        """Return the design to use.

        It has the narrowest interval within the budget. Without a budget it is the cheapest design
        that reaches the error or the difference sought.
        """
        if self.allowed is not None:
            return min(self.outcomes, key=lambda outcome: (outcome.half_width, outcome.cost))
        enough = [outcome for outcome in self.outcomes if outcome.enough]
        return min(enough, key=lambda outcome: outcome.cost)

    @property
    def budget(self) -> int:
        """Return how many scores to allow for the recommended design."""
        return self.best.budget if self.allowed is None else self.allowed

    @property
    def full(self) -> float:
        """Return how many scores full rankings need."""
        return float(self.catalogue) * self.users

    @property
    def recommendation(self) -> str:
        """Return a recommendation in a sentence or two."""
        best = self.best
        accuracy = "exactly"
        if best.half_width > 0.0:
            share = percent_at_most(best.half_width / self.value)
            accuracy = f"to within {share}, if P(R) is as guessed"
        text = (
            f"Use design={best.name!r} ({best.setting}): {best.cost:,.0f} scores "
            f"({percent(best.cost / self.full)} of a full ranking) for {self.metric} "
            f"{accuracy}."
        )
        if best.users < self.users:
            text += f" Evaluate {best.users:,} of the {self.users:,} users, drawn at random."
        if self.difference is not None:
            smallest = rounded_up(best.smallest_difference, 4)
            text += f" As guessed, it tells apart two models that differ by {smallest} or more."
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, as ``--json`` prints it."""
        return self.header() | {
            "level": DEFAULT_LEVEL,
            "metric": self.metric.name,
            "items": self.catalogue,
            "users": self.users,
            "guess": self.guess,
            "value": self.value,
            "odds": self.odds,
            "error": self.error,
            "difference": self.difference,
            "budget": self.budget,
            "designs": self.rows(),
            "recommended": self.best.name,
            "recommendation": self.recommendation,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each design."""
        names = ("setting", "users", "budget", "cost", "half_width", "smallest_difference")
        return [
            {
                "design": outcome.name,
                **{name: getattr(outcome, name) for name in names},
                "share_of_full": outcome.cost / self.full,
                "relative_half_width": outcome.half_width / self.value,
            }
            for outcome in self.outcomes
        ]
