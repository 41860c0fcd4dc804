"""How many items each target is compared with: four designs, each a frozen set of parameters.

A design looks at what is known of every target and says how far each should go next. What it says
depends on the scores of items already met and on nothing else; that is why the likelihood of a
target's sampled rank stays that of its own sample size, however the design came to stop there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from unsample._checks import FloatArray, IntArray, check_choice, check_integer, check_real
from unsample.errors import BudgetError, DesignError, InputError
from unsample.metrics import Metric

__all__ = ["DESIGNS", "Adaptive", "Certified", "Design", "Exact", "Fixed", "Standing", "as_design"]

#: The part of the budget with which an adaptive design starts on every target.
_START_SHARE = 0.03
_SMALLEST_START = 4
#: A certified scan goes this part of the way to where it expects to be done, then looks again.
_CERTIFIED_STEP = 0.25


@dataclass(frozen=True, eq=False)
class Standing:
    """What a design sees of the targets between two rounds.

    ``scored`` items they met, ``beaten`` by how many, of ``others`` candidates beside themselves;
    ``lot`` is a random order of the targets.
    """

    scored: IntArray
    beaten: IntArray
    others: IntArray
    lot: IntArray


@dataclass(frozen=True)
class Design(ABC):
    """What every design does; ``budget`` is the mean number of items to score for a target."""

    name: ClassVar[str]
    #: Whether ranks come out as they are in the whole catalogue, as far as metrics look.
    exact: ClassVar[bool] = False

    @property
    def with_replacement(self) -> bool:
        """Return whether an item may be met twice."""
        return False

    def fit_to(self, metrics: Sequence[Metric], others: IntArray) -> Self:
        """Return this design with what was left open decided, or say why it cannot keep its word.

        ``others`` is the number of candidates beside the target, for each target.
        """
        return self

    @abstractmethod
    def goal(self, now: Standing) -> IntArray:
        """Return how many items each target is to have met after the next round.

        A target that is done keeps what it has; when all are, the evaluation ends.
        """


@dataclass(frozen=True)
class Exact(Design):
    """Every target is compared with all its candidates."""

    name: ClassVar[str] = "exact"
    exact: ClassVar[bool] = True
    budget: int | None = None

    def fit_to(self, metrics: Sequence[Metric], others: IntArray) -> Self:
        """Refuse a budget below a full ranking."""
        _check_budget(self.budget, minimum=1)
        if self.budget is not None and self.budget < others.mean():
            raise BudgetError(
                f"budget must be at least {math.ceil(others.mean())} items a target to rank all "
                f"candidates, got {self.budget}; design='certified' needs less for metrics@K, "
                "design='adaptive' keeps to any budget"
            )
        return self

    def goal(self, now: Standing) -> IntArray:
        """Go to the end."""
        return now.others


@dataclass(frozen=True)
class Fixed(Design):
    """Every target is compared with the same number of sampled items.

    ``sampled`` does not count the target (99, not 100); a budget stands for it.
    """

    name: ClassVar[str] = "fixed"
    sampled: int | None = None
    replacement: bool = True
    budget: int | None = None

    def __post_init__(self) -> None:
        _check_optional("sampled", self.sampled, minimum=1)
        _check_budget(self.budget, minimum=1)
        if self.sampled is not None and self.budget is not None:
            raise DesignError("budget must be left out with sampled, which says the same, got both")

    @property
    def with_replacement(self) -> bool:
        """Return whether an item may be met twice."""
        return self.replacement

    def fit_to(self, metrics: Sequence[Metric], others: IntArray) -> Self:
        """Take the budget for the sample; refuse samples beyond a target's candidates."""
        sampled = self.sampled or self.budget or 99
        if not self.replacement and sampled > others.min():
            raise DesignError(
                f"sampled must be at most a target's other candidates without replacement, got "
                f"{sampled} where one has {int(others.min())}; sample fewer, or with replacement"
            )
        return replace(self, sampled=sampled, budget=None)

    def goal(self, now: Standing) -> IntArray:
        """Sample as many for everyone."""
        assert self.sampled is not None
        return np.full(len(now.scored), self.sampled)


@dataclass(frozen=True)
class Adaptive(Design):
    """Samples grow until enough items beat the target: the budget goes where metrics are decided.

    Parameters
    ----------
    start
        Items that every target is compared with at first; with a budget, 3 % of it by default,
        else 16.
    growth
        By what factor the sample of a target grows from round to round.
    stop
        A target is left alone once so many items beat it.
    cap
        Most items for a target; None for all its candidates.
    replacement
        Whether an item may be met twice. Without replacement a target that met all its
        candidates has a known rank.
    budget
        Mean number of items to score for a target. It is spread over the rounds; where it does
        not suffice for all targets, those that go on are drawn by lot.
    """

    name: ClassVar[str] = "adaptive"
    start: int | None = None
    growth: float = 1.5
    stop: int = 1
    cap: int | None = None
    replacement: bool = False
    budget: int | None = None

    def __post_init__(self) -> None:
        _check_optional("start", self.start, minimum=1)
        check_real("growth", self.growth, low=1.0, open_low=True, error=DesignError)
        check_integer("stop", self.stop, minimum=1, error=DesignError)
        _check_optional("cap", self.cap, minimum=1)
        _check_budget(self.budget, minimum=1)
        start, cap, budget = (value or math.inf for value in (self.start, self.cap, self.budget))
        if self.start is not None and start > min(cap, budget):
            raise DesignError(
                f"start must be at most cap and budget, got {self.start} with cap={self.cap} and "
                f"budget={self.budget}"
            )
        if self.replacement and self.cap is None and self.budget is None:
            raise DesignError(
                "cap or budget must be given with replacement, got neither; nothing would stop "
                "the sample of a target that no item beats"
            )

    @property
    def with_replacement(self) -> bool:
        """Return whether an item may be met twice."""
        return self.replacement

    def fit_to(self, metrics: Sequence[Metric], others: IntArray) -> Self:
        """Choose the start; refuse a cap with which nothing can be said about the top K."""
        largest = max((metric.k or 0 for metric in metrics), default=0)
        if self.cap is not None and self.cap < largest:
            raise DesignError(
                f"cap must be at least the largest K = {largest}, got {self.cap}; a target that "
                "met fewer items says nothing about the top K"
            )
        start = self.start
        if start is None:
            start = 16 if self.budget is None else round(_START_SHARE * self.budget)
            start = max(start, _SMALLEST_START)
            start = min(start, self.budget or start, self.cap or start)
        return replace(self, start=start)

    def goal(self, now: Standing) -> IntArray:
        """Let the samples grow of those not yet beaten often enough, as far as the budget goes."""
        assert self.start is not None
        most = np.full(len(now.scored), self.cap or np.iinfo(np.int64).max)
        if not self.replacement:
            most = np.minimum(most, now.others)
        reached = int(now.scored.max())
        # Who is behind the others was left behind by lot, for good.
        going_on = (now.beaten < self.stop) & (now.scored < most) & (now.scored == reached)
        size = max(self.start, math.ceil(reached * self.growth))
        step = np.where(going_on, np.minimum(size, most) - now.scored, 0)
        if self.budget is not None:
            step = self._affordable(step, size, now)
        return now.scored + step

    def _affordable(self, step: IntArray, size: int, now: Standing) -> IntArray:
        """Let only so many targets go on, by lot, that the budget lasts to the last round.

        Those drawn stand for those left behind: the top ranks are then seen on a part of the
        targets instead of being guessed for all of them.
        """
        assert self.budget is not None
        left = self.budget * len(step) - int(now.scored.sum())
        if now.scored.any():
            last = max(int(now.others.max()) if self.cap is None else self.cap, size)
            rounds = 1 + math.ceil(math.log(last / size) / math.log(self.growth) - 1e-9)
            left = left // rounds
        affordable = np.cumsum(step[now.lot]) <= left
        kept = np.zeros(len(step), dtype=bool)
        kept[now.lot[affordable]] = True
        return np.where(kept, step, 0)


@dataclass(frozen=True)
class Certified(Design):
    """Exact metrics@K: a target beaten K times is out of the top K, and is followed no further.

    Items come in random order without replacement. A target stops at the K-th item that beats it
    or at its last candidate, so every rank up to K is known, and of the others that they are
    beyond. On average it costs about min(1, K/R) of a full ranking.

    Parameters
    ----------
    k
        The K; by default the largest of the metrics.
    budget
        Mean number of items to score for a target at most; an error if it does not suffice.
    """

    name: ClassVar[str] = "certified"
    exact: ClassVar[bool] = True
    k: int | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        _check_optional("k", self.k, minimum=1)
        _check_budget(self.budget, minimum=1)

    def fit_to(self, metrics: Sequence[Metric], others: IntArray) -> Self:
        """Find K; refuse metrics that look beyond it and budgets that cannot suffice."""
        unlimited = [metric.name for metric in metrics if metric.k is None]
        if unlimited:
            raise DesignError(
                f"metrics must have a K to be certified, got {', '.join(unlimited)}; write "
                f"{unlimited[0]}@10, or use design='exact'"
            )
        largest = max(metric.k or 0 for metric in metrics)
        k = self.k or largest
        if k < largest:
            raise DesignError(
                f"k must be at least the largest K of the metrics, {largest}, got {k}; leave it out"
            )
        fewest = int(np.minimum(k, others).mean())
        if self.budget is not None and self.budget < fewest:
            raise BudgetError(
                f"budget must be at least {fewest} items a target to certify K = {k} (a target "
                f"must be beaten {k} times), got {self.budget}; raise it, or use design='adaptive'"
            )
        return replace(self, k=k)

    def goal(self, now: Standing) -> IntArray:
        """Go part of the way to the expected K-th item that beats, but never too short a way.

        K - b further items cannot be too many where b of the K are found.
        """
        assert self.k is not None
        scored, beaten, others = now.scored, now.beaten, now.others
        needed = np.maximum(self.k - beaten, 0)
        expected = needed * (scored + 1) / (beaten + 1)
        step = np.maximum(needed, np.floor(_CERTIFIED_STEP * expected).astype(np.int64))
        goal = np.minimum(scored + step, others)
        if self.budget is not None and goal.sum() > self.budget * len(scored):
            raise BudgetError(
                f"budget must suffice to certify K = {self.k} for every target, got {self.budget} "
                f"items a target, with which {int(np.count_nonzero(goal > scored))} of "
                f"{len(scored)} targets are still open; about "
                f"{math.ceil(_expected_total(scored, expected, others) / len(scored))} should do"
            )
        return goal


#: Name -> design with default parameters.
DESIGNS: dict[str, type[Design]] = {
    design.name: design for design in (Exact, Fixed, Adaptive, Certified)
}


def as_design(design: str | Design, budget: int | None) -> Design:
    """Return the design that was named, or given, with the budget."""
    if isinstance(design, Design):
        if budget is None:
            return design
        return replace(design, budget=budget)  # type: ignore[call-arg]
    if not isinstance(design, str):
        raise InputError(
            f"design must be a name or a design such as Adaptive(start=64), got {design!r}"
        )
    check_choice("design", design, DESIGNS, error=DesignError)
    return DESIGNS[design](budget=budget)  # type: ignore[call-arg]


def _expected_total(scored: IntArray, expected: FloatArray, others: IntArray) -> float:
    return float(np.minimum(scored + expected, others).sum())


def _check_budget(budget: int | None, *, minimum: int) -> None:
    hint = "it is the mean number of items scored for a target"
    if budget is not None:
        check_integer("budget", budget, minimum=minimum, hint=hint, error=DesignError)


def _check_optional(name: str, value: int | None, *, minimum: int) -> None:
    if value is not None:
        check_integer(name, value, minimum=minimum, error=DesignError)
