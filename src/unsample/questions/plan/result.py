"""What `plan` returns: what each design costs, and how wide its interval would be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from unsample._rounding import percent, percent_at_most, rounded_up
from unsample.designs import Design, Fixed, Guided
from unsample.metrics import Metric
from unsample.report import Result


@dataclass(frozen=True)
class Outcome:
    """A design at some cost: how sure the metric would be."""

    #: What goes into ``evaluate(design=...)``.
    design: Design
    #: How many scores to allow for, as in ``evaluate(budget=...)``, and how many are expected.
    budget: int
    cost: float
    #: How many users to evaluate, drawn at random: all of them, except for exact designs.
    users: int
    #: Half the width of the interval for the metric of these users.
    half_width: float
    #: The smallest difference of two models that is told apart, if each is evaluated so.
    smallest_difference: float
    #: Whether it does what was asked for, where no budget is named: a fixed sample may not.
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
    """What each design costs and how wide its interval would be, and which design to use.

    ``evaluate(scorer, targets, items=..., design=plan.best.design, budget=plan.budget)`` runs the
    recommended design.
    """

    shown_by: ClassVar[str] = "unsample.questions.plan.view:view_of_plan"

    #: The size of the catalogue.
    catalogue: int
    users: int
    metric: Metric
    #: Where P(R) comes from, in words, and the value of the metric under it.
    guess: str
    value: float
    #: How good the guide is taken to be.
    odds: float
    #: The wanted half-width of the interval, relative to the metric, if no difference is wanted.
    error: float
    #: The difference of two models that should be told apart, if that was asked for.
    difference: float | None
    #: The scores that may be asked for, if that was stated.
    allowed: int | None
    #: Each design within the allowed scores, or at the cost that it needs.
    outcomes: tuple[Outcome, ...]

    @property
    def best(self) -> Outcome:
        """Return the design to use: the narrowest within a budget, else the cheapest that does."""
        if self.allowed is not None:
            return min(self.outcomes, key=lambda each: (each.half_width, each.cost))
        able = [each for each in self.outcomes if each.enough]
        return min(able, key=lambda each: each.cost)

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
        """Return what to do, in a sentence or two."""
        best = self.best
        share = percent_at_most(best.half_width / self.value)
        sure = f"to within {share}, if P(R) is as guessed" if best.half_width > 0.0 else "exactly"
        text = (
            f"Use design={best.name!r} ({best.setting}): {best.cost:,.0f} scores "
            f"({percent(best.cost / self.full)} of a full ranking) for {self.metric} "
            f"{sure}."
        )
        if best.users < self.users:
            text += f" Evaluate {best.users:,} of the {self.users:,} users, drawn at random."
        if self.difference is not None:
            least = rounded_up(best.smallest_difference, 4)
            text += f" As guessed, it tells apart two models that differ by {least} or more."
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
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
