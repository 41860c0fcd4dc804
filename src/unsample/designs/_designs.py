"""How to look: designs, each a frozen set of parameters that says when a target has met enough.

A design looks at what is known of every target and says how far each should go next. What it says
depends on the scores of items already met and on nothing else; that is why the likelihood of a
target's sampled rank stays that of its own sample size, however the design came to stop there.

A design runs on a scorer (`unsample.evaluate`), and is simulated on known ranks (`simulate`), where
what it meets is drawn from the law instead of being scored. Both ask the same methods of it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_rng,
    check_integer,
    check_real,
)
from unsample.designs._findings import Findings, Notes, Situation, Step
from unsample.errors import BudgetError, DesignError, RankError
from unsample.law import LARGEST_URN, as_better
from unsample.metrics import Metric

#: The part of the budget with which an adaptive design starts on every target.
_START_SHARE = 0.03
_SMALLEST_START = 4
#: Own scores that are asked for twice, to find out a scorer that contradicts itself: so many, and
#: no more than this part of all scores.
_CHECKED, _CHECKED_SHARE = 16, 0.01
#: Places of items that beat a target which are looked at first.
_FEW_PLACES = 16


@dataclass(frozen=True)
class Design(ABC):
    """What every design does."""

    name: ClassVar[str]
    #: Whether ranks come out as they are in the whole catalogue, as far as metrics look.
    exact: ClassVar[bool] = False
    #: Whether a target is followed to its K-th beater or its end, so that its rank holds in the
    #: whole catalogue, or that it is beyond K: of all targets, or of some of them.
    certifies: ClassVar[bool] = False
    #: Whether items may come in the order of a guide instead of a random one.
    guided: ClassVar[bool] = False
    #: What to do instead where a budget does not suffice.
    instead: ClassVar[str] = "raise it, or evaluate fewer targets"

    @property
    def with_replacement(self) -> bool:
        """Return whether an item may be met twice."""
        return bool(getattr(self, "replacement", False))

    @property
    def stops_after(self) -> int | None:
        """Return after how many items that beat it a sample stops growing; None: for none."""
        return getattr(self, "stop", None)

    def fit(
        self,
        metrics: Sequence[Metric],
        others: IntArray,
        budget: int | None = None,
        *,
        relevant: int = 1,
        models: int = 1,
    ) -> tuple[Self, int | None, int]:
        """Return this design with what was left open decided, and what the budget leaves it.

        That is, how many items may be scored (None: any number), and how many own scores may be
        asked for twice. ``others`` is the number of candidates beside the target, for each target;
        ``relevant`` the most targets that one user has. Of ``models`` that share the budget it is
        what one of them has. A budget with which the design cannot keep its word is refused.
        """
        if budget is not None:
            budget = check_integer("budget", budget, minimum=1, hint="all scores in total")
            given, budget = budget, budget // models
        design = self.for_metrics(metrics, relevant)
        targets = len(others)
        total = int(others.sum()) + targets if budget is None else budget
        checked = min(_CHECKED, targets, int(_CHECKED_SHARE * total))
        if budget is None:
            return design.within(math.inf, others), None, checked
        least = targets + design.least(others)
        if budget < least:
            each = f" of {models} models" if models > 1 else ""
            raise BudgetError(
                f"budget must be at least {models * least:,} scores for {design.name} and "
                f"{targets:,} targets{each}, got {given:,}; {design.instead}"
            )
        checked = min(checked, budget - least)
        left = budget - targets - checked
        return design.within((budget - checked) / targets - 1, others), left, checked

    @abstractmethod
    def goal(self, now: Situation) -> IntArray:
        """Return how many items each target is to have met after the next round.

        A target that is done keeps what it has; when all are, the evaluation ends.
        """

    def step(self, now: Situation) -> Step:
        """Return the goal of the next round, and what the design notes down for later ones."""
        return Step(self.goal(now), now.notes)

    def simulate(
        self,
        ranks: npt.ArrayLike,
        *,
        items: npt.ArrayLike,
        rng: Seed = 0,
        budget: int | None = None,
        metrics: str | Metric | Iterable[str | Metric] = "NDCG@10",
        shuffle: IntArray | None = None,
        odds: float = 1.0,
        places: IntArray | None = None,
        own: FloatArray | None = None,
        listed: IntArray | None = None,
    ) -> Findings:
        """Return what this design would find of targets whose full ranks are known.

        Nothing is scored: how many of the items met beat a target is drawn from its law. The
        result goes into `unsample.estimate`.

        Parameters
        ----------
        ranks
            The rank of each target among all its candidates.
        items
            The number of candidates, the target included: one number, or one for each target.
        rng
            Seed or Generator.
        budget
            All scores that may be asked for, as in `unsample.evaluate`.
        metrics
            The metrics that are to be known: a certified design looks as far as their K.
        shuffle
            A random order of the targets, where several models are to share it; by default drawn.
        odds
            How good the guide of a guided or certified design is: the odds with which an item that
            beats the target comes next, against one that does not. 1 is a random order.
        places
            Instead of ``odds``, where the first K items that beat each target come under a guide:
            a row for each target, numbers from 1, and the largest integer where there are fewer.
        own
            The scores of the targets themselves, by which a guided design groups them.
        listed
            How many items each target meets as ``places`` say; all others come in random order.
            By default the guide orders all items.

        >>> found = Adaptive().simulate([1, 500, 20], items=1000)
        >>> found.ranks[0], found.scored < 3 * 1000
        (np.int64(1), True)
        """
        better, others = as_better(ranks, items)
        if not len(better):
            raise RankError("ranks must hold at least one rank, got none")
        if others.max() >= LARGEST_URN:
            raise DesignError(f"items must be at most {LARGEST_URN:,} to simulate, got more")
        design, allowed, checked = self.fit(_metrics.parse_all(metrics), others, budget)
        rng = as_rng(rng)
        if shuffle is None:
            shuffle = rng.permutation(len(better))
        met = _Met.draw(design, better, others, rng, odds, places, listed)
        scored, beaten = (np.zeros(len(better), dtype=np.int64) for _ in range(2))
        notes, users = Notes.empty(len(better)), np.arange(len(better))
        own = np.zeros(len(better)) if own is None else np.asarray(own, dtype=np.float64)
        chance = rng.random(len(better)) if getattr(design, "reciprocal", False) else own * 0.0
        while True:
            now = Situation(
                scored, beaten, others, shuffle, allowed, users, shuffle, notes, own, met.listed,
                chance,
            )  # fmt: skip
            plan = design.step(now)
            notes, rows = plan.notes, np.flatnonzero(plan.goal > scored)
            if not len(rows):
                break
            goal, before = plan.goal[rows], beaten[rows]
            beaten[rows] = before + met.beaters(rows, scored[rows], goal, before)
            scored[rows] = goal
        total = len(better) + checked + int(scored.sum())
        return design.findings(
            1 + beaten, scored == others, 1 + better, scored, others, scored=total, notes=notes
        )

    def findings(
        self,
        lowest: IntArray,
        complete: BoolArray,
        full: IntArray,
        met: IntArray,
        others: IntArray,
        *,
        scored: int,
        notes: Notes,
        users: IntArray | None = None,
        filtered: bool = False,
    ) -> Findings:
        """Return ranks among the items met; those of a design that certifies are full ones.

        ``full`` are the ranks of targets that are ``complete``; the others of such a design may
        have any rank from ``lowest`` on.
        """
        ranks, sampled = lowest, met
        if self.certifies:
            lowest = np.where(complete, full, lowest)
            ranks, sampled = np.where(complete, full, others + 1), others
        return Findings(
            ranks=ranks,
            items=others + 1,
            sampled=sampled,
            users=users,
            filtered=filtered,
            replacement=self.with_replacement,
            stop=self.stops_after,
            design=self,
            lowest=lowest,
            met=met,
            scored=scored,
            notes=notes,
        )

    # What differs between designs before they start.

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        """Return the design for these metrics, or say why it cannot give them."""
        return self

    def least(self, others: IntArray) -> int:
        """Return the fewest items that must be scored in all."""
        return len(others)

    def within(self, each: float, others: IntArray) -> Self:
        """Return the design that scores so many items for a target on average, at most."""
        return self


@dataclass(frozen=True)
class Exact(Design):
    """Every target is compared with all its candidates."""

    name: ClassVar[str] = "exact"
    exact: ClassVar[bool] = True
    certifies: ClassVar[bool] = True
    instead: ClassVar[str] = (
        "design='certified' needs less for metrics@K, design='guided' keeps to a budget"
    )

    def goal(self, now: Situation) -> IntArray:
        """Go to the end."""
        return now.others

    def least(self, others: IntArray) -> int:
        """Return the number of all candidates."""
        return int(others.sum())


@dataclass(frozen=True)
class Fixed(Design):
    """Every target is compared with the same number of sampled items.

    ``sampled`` does not count the target (99, not 100); by default what the budget allows, or 99.
    """

    name: ClassVar[str] = "fixed"
    sampled: int | None = None
    replacement: bool = True

    def __post_init__(self) -> None:
        check_optional("sampled", self.sampled)

    def goal(self, now: Situation) -> IntArray:
        """Sample as many for everyone."""
        assert self.sampled is not None
        return np.full(len(now.scored), self.sampled)

    def least(self, others: IntArray) -> int:
        """Return the size of all samples."""
        return (self.sampled or 1) * len(others)

    def within(self, each: float, others: IntArray) -> Self:
        """Sample what the budget allows; refuse samples beyond a target's candidates."""
        fewest = int(others.min())
        if self.sampled is not None:
            if not self.replacement and self.sampled > fewest:
                raise DesignError(
                    f"sampled must be at most a target's other candidates without replacement, got "
                    f"{self.sampled} where one has {fewest}; sample fewer, or with replacement"
                )
            return self
        sampled = 99 if math.isinf(each) else max(1, math.floor(each))
        return replace(self, sampled=min(sampled, fewest))


@dataclass(frozen=True)
class Adaptive(Design):
    """Samples grow until enough items beat the target: the budget goes where metrics are decided.

    A budget is spread over the rounds; where it does not suffice for all targets, those that are
    followed further are drawn at random, and stand for the others.

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
    """

    name: ClassVar[str] = "adaptive"
    start: int | None = None
    growth: float = 1.5
    stop: int = 1
    cap: int | None = None
    replacement: bool = False

    def __post_init__(self) -> None:
        check_optional("start", self.start)
        check_optional("cap", self.cap)
        check_integer("stop", self.stop, minimum=1, error=DesignError)
        check_real("growth", self.growth, low=1.0, open_low=True, error=DesignError)
        if self.start is not None and self.cap is not None and self.start > self.cap:
            raise DesignError(f"start must be at most cap = {self.cap}, got {self.start}")

    def goal(self, now: Situation) -> IntArray:
        """Let the samples grow of those not yet beaten often enough, as far as the budget goes."""
        assert self.start is not None
        rows = np.flatnonzero(now.beaten < self.stop)
        reached = now.scored[rows]
        most = np.full(len(rows), self.cap or np.iinfo(np.int64).max)
        if not self.replacement:
            most = now.others[rows] if self.cap is None else np.minimum(most, now.others[rows])
        still = reached < most
        # Who is behind the others was not drawn to be followed: only if the budget outlasts them.
        while still.any():
            level = int(reached[still].max())
            size = max(self.start, math.ceil(level * self.growth))
            here = np.flatnonzero(still & (reached == level))
            chosen, step = rows[here], np.minimum(size, most[here]) - level
            if now.allowed is not None:
                left = now.allowed - int(now.scored.sum())
                chosen, step = self._affordable(chosen, step, size, left, now)
            if len(chosen):
                goal = now.scored.copy()
                goal[chosen] += step
                return goal
            still[here] = False
        return now.scored

    def _affordable(
        self, rows: IntArray, step: IntArray, size: int, left: int, now: Situation
    ) -> tuple[IntArray, IntArray]:
        """Let only so many targets, drawn at random, take a step that the budget lasts to the end.

        Those drawn stand for those left behind: the top ranks are then seen on a part of the
        targets instead of being guessed for all of them. One at least goes on if it can.
        """
        spread = left
        if now.scored.any():
            last = max(int(now.others.max()) if self.cap is None else self.cap, size)
            rounds = 1 + math.ceil(math.log(last / size) / math.log(self.growth) - 1e-9)
            spread = left // rounds
        if int(step.sum()) <= spread:
            return rows, step
        if int(step.min()) > left or len(rows) == 1:
            fits = step <= left
            return rows[fits], step[fits]
        steps = np.zeros(len(now.scored), dtype=np.int64)
        steps[rows] = step
        steps = steps[now.shuffle]
        order = np.flatnonzero(steps)
        cost = np.cumsum(steps[order])
        kept = order[(cost <= spread) | ((cost <= left) & (cost == cost[:1]))]
        return now.shuffle[kept], steps[kept]

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        """Refuse a cap with which nothing can be said about the top K."""
        largest = max((metric.k or 0 for metric in metrics), default=0)
        if self.cap is not None and self.cap < largest:
            raise DesignError(
                f"cap must be at least the largest K = {largest}, got {self.cap}; a target that "
                "met fewer items says nothing about the top K"
            )
        return self

    def least(self, others: IntArray) -> int:
        """Return what the first round takes."""
        return (self.start or 1) * len(others)

    def within(self, each: float, others: IntArray) -> Self:
        """Choose the start."""
        if self.replacement and self.cap is None and math.isinf(each):
            raise DesignError(
                "cap or budget must be given with replacement, got neither; nothing would stop "
                "the sample of a target that no item beats"
            )
        start = 16 if math.isinf(each) else max(round(_START_SHARE * each), _SMALLEST_START)
        start = int(min(start, each, self.cap or start))
        return replace(self, start=self.start or start)


def check_optional(name: str, value: int | None) -> None:
    if value is not None:
        check_integer(name, value, minimum=1, error=DesignError)


@dataclass(frozen=True, eq=False)
class _Met:
    """What simulated targets meet: where the items that beat them come in their orders."""

    better: IntArray
    others: IntArray
    rng: np.random.Generator
    replacement: bool
    #: After how many items each of the first K that beat a target comes; None for a random order,
    #: in which it is drawn on the way.
    places: IntArray | None
    #: How many items come as ``places`` say; all others come in random order.
    listed: IntArray

    @classmethod
    def draw(
        cls,
        design: Design,
        better: IntArray,
        others: IntArray,
        rng: np.random.Generator,
        odds: float,
        places: IntArray | None,
        listed: IntArray | None,
    ) -> _Met:
        """Draw an order of items for each target if a guide makes it uneven.

        Items race: the time of an item that beats the target is exponential with rate ``odds``, of
        any other with rate 1. So the next to come is one that beats it with these odds.
        """
        odds = check_real("odds", odds, low=0.0, open_low=True)
        k = getattr(design, "k", None)
        if places is not None and design.guided:
            listed = others if listed is None else np.minimum(listed, others)
            return cls(better, others, rng, replacement=False, places=places, listed=listed)
        if odds == 1.0 or not design.guided or k is None:
            return cls(better, others, rng, design.with_replacement, None, 0 * others)
        places = np.full((len(better), k), np.iinfo(np.int64).max)
        before = np.zeros(len(better), dtype=np.int64)
        slower = others - better
        for number in range(min(k, int(better.max(initial=0)))):
            left = np.maximum(better - number, 0)
            step = rng.exponential(size=len(better)) / np.maximum(odds * left, 1e-300)
            # Of the others still to come, each has come by then with probability 1 - exp(-step).
            before = before + rng.binomial(slower - before, -np.expm1(-np.minimum(step, 700.0)))
            places[:, number] = np.where(left > 0, before + number + 1, places[:, number])
        return cls(better, others, rng, replacement=False, places=places, listed=others)

    def _up_to(self, rows: IntArray, end: IntArray) -> IntArray:
        """Return how many of the places of each target are not beyond ``end``."""
        assert self.places is not None
        found = (self.places[rows, :_FEW_PLACES] <= end[:, None]).sum(axis=1)
        full = np.flatnonzero(found == _FEW_PLACES)  # most targets have few
        found[full] = (self.places[rows[full]] <= end[full, None]).sum(axis=1)
        return np.asarray(found)

    def beaters(
        self, rows: IntArray, scored: IntArray, goal: IntArray, beaten: IntArray
    ) -> IntArray:
        """Return how many of the items between ``scored`` and ``goal`` beat each target."""
        listed, better, others = self.listed[rows], self.better[rows], self.others[rows]
        known = np.zeros_like(beaten)
        if self.places is not None:
            end = np.minimum(goal, listed)
            known = np.maximum(self._up_to(rows, end) - beaten, 0)
            if (goal <= listed).all():
                return np.asarray(known)
        if self.replacement:
            return self.rng.binomial(goal - scored, better / others)
        begin = np.minimum(np.maximum(scored, listed), goal)
        left = np.where(begin < goal, better - beaten - known, 0)
        rest = np.maximum(others - begin - left, 0)
        return np.asarray(known + self.rng.hypergeometric(left, rest, goal - begin))
