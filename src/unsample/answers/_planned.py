"""What `plan` returns: designs at the same cost, compared by their error or by their power."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from unsample.answers._result import Result, percent
from unsample.designs import Design, Fixed, Guided
from unsample.metrics import Metric

MORE_USERS = "more users"


@dataclass(frozen=True)
class Outcome:
    """What a design would cost."""

    #: The name of the design, or "more users".
    label: str
    #: What goes into ``evaluate(design=...)``.
    design: Design
    #: How many users to evaluate, drawn at random: all, except for exact designs and more users.
    users: int
    #: The expected number of scores in total.
    cost: float
    #: The method that was simulated; None for exact designs. It is the default of `evaluate`,
    #: except for large fixed samples, where it goes into ``evaluate(method=...)``.
    method: str | None

    @property
    def name(self) -> str:
        """Return the name of the design."""
        return self.design.name

    @property
    def setting(self) -> str:
        """Return the design's parameters in words."""
        if isinstance(self.design, Fixed):
            more = f" of {self.users:,} users" if self.label == MORE_USERS else ""
            return f"{self.design.sampled:,} items for each target{more}"
        if isinstance(self.design, Guided):
            return "strong items first, a random part of who is left ranked in full"
        return f"exact for {self.users:,} users"


@dataclass(frozen=True)
class ErrorOutcome(Outcome):
    """What a design would cost, and its error for the metric of these users."""

    bias: float
    sd: float

    @property
    def rmse(self) -> float:
        """Return the root of the expected squared error."""
        return math.hypot(self.bias, self.sd)


@dataclass(frozen=True)
class PowerOutcome(Outcome):
    """What a design would cost for two models together, and how often it names the better one."""

    #: The probability that `compare` names the better model, and how many evaluations were run.
    power: float
    evaluations: int
    #: The least difference that is detected with the wanted power; None if there is none.
    detectable: float | None = None

    @property
    def error(self) -> float:
        """Return the standard error of the power."""
        return error_of_share(self.power * self.evaluations, self.evaluations)


def error_of_share(wins: float, count: int) -> float:
    """Return the standard error of a share; it is never zero."""
    share = (wins + 1.0) / (count + 2.0)
    return math.sqrt(share * (1.0 - share) / (count + 2.0))


Found = TypeVar("Found", bound=Outcome)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Planned(Result, Generic[Found]):
    """What plans have in common.

    ``evaluate(scorer, targets, items=..., design=plan.best.design, budget=plan.budget)`` runs the
    recommended design. For two models, give a dict of both scorers.
    """

    items: int
    users: int
    #: The relevant items of all users together, which are ranked.
    targets: int
    metric: Metric
    #: Where P(R) comes from, in words.
    guess: str
    #: How many scores all models together may ask for. By default, what the best design needs.
    budget: int
    #: Each design at (or just below) this cost.
    outcomes: tuple[Found, ...]
    #: Each design at growing costs, for a plot.
    curves: tuple[Found, ...]
    #: How many scores each design needs for the precision or power; None if no budget is enough.
    needed: Mapping[str, float | None]
    repeats: int

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return no warnings: the plan itself says what it guesses."""
        return ()

    @property
    @abstractmethod
    def best(self) -> Found:
        """Return the design to use."""

    @property
    def full(self) -> float:
        """Return how many scores full rankings need."""
        return float(self.items) * self.targets

    @property
    def recommendation(self) -> str:
        """Return what to do, in a sentence or two."""
        best = self.best
        text = f"Use design={best.name!r} ({best.setting}): {best.cost:,.0f} scores {self._gives()}"
        if best.users < self.users:
            text += f" Evaluate {best.users:,} of the {self.users:,} users, drawn at random."
        return text + self._lacks()

    @abstractmethod
    def _gives(self) -> str:
        """Return what the best design gives, as the end of a sentence."""

    @abstractmethod
    def _lacks(self) -> str:
        """Return what would be needed, if the best design does not reach what is wanted."""

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "items": self.items,
            "users": self.users,
            "targets": self.targets,
            "metric": self.metric.name,
            "guess": self.guess,
            **self._sought(),
            "budget": self.budget,
            "designs": self.rows(),
            "curves": [self._row(outcome) for outcome in self.curves],
            "recommended": self.best.name,
            "recommendation": self.recommendation,
            "repeats": self.repeats,
        }

    @abstractmethod
    def _sought(self) -> dict[str, Any]:
        """Return what is wanted, and of what."""

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each design."""
        return [self._row(outcome) for outcome in self.outcomes]

    def _row(self, outcome: Found) -> dict[str, Any]:
        names = ("setting", "users", "cost", "method")
        return {
            "design": outcome.name,
            **{name: getattr(outcome, name) for name in names},
            "share_of_full": outcome.cost / self.full,
            **self._found(outcome),
        }

    @abstractmethod
    def _found(self, outcome: Found) -> dict[str, Any]:
        """Return the part of a row that is about the error, or the power."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan(Planned[ErrorOutcome]):
    """The expected error of each design at the same cost, and which one to use."""

    needed: Mapping[str, float]
    #: The value of the metric under the guess of P(R).
    value: float
    #: The wanted error, relative to the metric.
    precision: float

    @property
    def best(self) -> ErrorOutcome:
        """Return the design with the least expected error at this cost."""
        return min(self.outcomes, key=lambda outcome: (outcome.rmse, outcome.cost))

    @property
    def shares(self) -> dict[str, float]:
        """Return the share of a full ranking that each design needs to reach the precision.

        For ``"fixed"`` it is the part of a corpus to keep, if a random part of it is kept.
        """
        return {name: cost / self.full for name, cost in self.needed.items()}

    def _gives(self) -> str:
        return (
            f"({percent(self.best.cost / self.full)} of a full ranking) for an expected error of "
            f"{percent(self.best.rmse / self.value)} of {self.metric}."
        )

    def _lacks(self) -> str:
        if self.best.rmse <= self.precision * self.value:
            return ""
        cheapest = min(self.needed, key=lambda name: self.needed[name])
        return (
            f" An error of {percent(self.precision)} needs about {self.needed[cheapest]:,.0f} "
            f"scores ({cheapest})."
        )

    def _sought(self) -> dict[str, Any]:
        return {"value": self.value, "precision": self.precision}

    def _found(self, outcome: ErrorOutcome) -> dict[str, Any]:
        return {
            **{name: getattr(outcome, name) for name in ("bias", "sd", "rmse")},
            "relative_error": outcome.rmse / self.value,
            "cost_for_precision": self.needed[outcome.label],
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PowerPlan(Planned[PowerOutcome]):
    """How often each design would name the better of two models, and which design costs least."""

    #: The two models, and the value of the metric that is assumed for each.
    models: tuple[str, str]
    values: tuple[float, float]
    #: The correlation of the models' ranks, as normal deviates.
    correlation: float
    #: The level of the verdicts, and the wanted power.
    level: float
    power: float
    #: How many users must be ranked in full to reach it, if there are too few users.
    users_needed: int | None

    @property
    def full(self) -> float:
        """Return how many scores full rankings by both models need."""
        return 2.0 * super().full

    @property
    def difference(self) -> float:
        """Return by how much the better model is better."""
        return abs(self.values[0] - self.values[1])

    @property
    def best(self) -> PowerOutcome:
        """Return the cheapest design with the wanted power; if none has it, the most powerful.

        Designs that need more users than there are do not count.
        """
        there = [each for each in self.outcomes if each.label != MORE_USERS]
        able = [each for each in there if each.power >= self.power - each.error]
        if able:
            return min(able, key=lambda each: (self.needed[each.label] or math.inf, each.cost))
        return max(there, key=lambda each: (each.power, -each.cost))

    @property
    def least(self) -> float | None:
        """Return the least budget that gives the wanted power; None if none does."""
        return least_of(self.needed)[1]

    def _gives(self) -> str:
        return (
            f"for both models ({percent(self.best.cost / self.full)} of full rankings) name the "
            f"better one with a power of {100 * self.best.power:.0f} %."
        )

    def _lacks(self) -> str:
        sought, (cheapest, least) = f"{100 * self.power:.0f} %", least_of(self.needed)
        if least is None:
            return (
                f" Full rankings of all users do not reach {sought}: that takes about "
                f"{self.users_needed:,} users."
            )
        if self.best.power < self.power and least > self.budget:
            return f" A power of {sought} needs about {least:,.0f} scores ({cheapest})."
        return ""

    def _sought(self) -> dict[str, Any]:
        return {
            "models": dict(zip(self.models, self.values, strict=True)),
            "difference": self.difference,
            "correlation": self.correlation,
            "level": self.level,
            "power": self.power,
            "least": self.least,
            "users_needed": self.users_needed,
        }

    def _found(self, outcome: PowerOutcome) -> dict[str, Any]:
        names = ("label", "power", "error", "evaluations", "detectable")
        return {
            **{name: getattr(outcome, name) for name in names},
            "cost_for_power": self.needed[outcome.label],
        }


def least_of(needed: Mapping[str, float | None]) -> tuple[str, float | None]:
    """Return the design that needs the least, and how much; None if these users are too few."""
    found = {label: cost for label, cost in needed.items() if cost and label != MORE_USERS}
    return min(found.items(), key=lambda each: each[1], default=("", None))
