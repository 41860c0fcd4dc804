"""Designs: each is a frozen set of parameters that says how far to compare each target.

After each round a design sees what is known of every target, and says how far each goes next. It
decides by the scores of items that were already compared, and by nothing else. So the likelihood of
a sampled rank depends on its sample size only, and not on why the design stopped there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import BoolArray, FloatArray, IntArray, Seed, check_flag, check_integer
from unsample._rules import ONCE
from unsample.designs._findings import DesignNotes, Findings, Situation, Step
from unsample.errors import BudgetError, DesignError
from unsample.metrics import Metric
from unsample.sampling import refuse_overdrawn

#: One round goes this part of the expected way to the K-th item that beats a target.
_CERTIFIED_STEP = 0.25
#: Scores of targets that are asked for twice, to detect a scorer that is not deterministic: at most
#: this number, and at most this part of all scores.
_MAX_CHECKED = 16
_MAX_CHECKED_SHARE = 0.01
#: No evaluation takes more scores. A larger budget is treated as this one, which integers of 64
#: bits can hold.
_LARGEST_BUDGET = 1 << 62


@dataclass(frozen=True, eq=False)
class FittedDesign:
    """A design with all its parameters set, and what the budget allows."""

    design: Design
    #: How many items may be scored, without the targets themselves; None for any number.
    allowed: int | None
    #: How many targets are scored twice, to check that scores repeat.
    checked: int


@dataclass(frozen=True)
class Design(ABC):
    """What every design does."""

    name: ClassVar[str]
    #: Whether all ranks that the metrics use are ranks of the full catalogue.
    exact: ClassVar[bool] = False
    #: Whether some targets at least are compared until K items beat them or none is left. Then the
    #: full rank is known, or it is known to be beyond K.
    certifies: ClassVar[bool] = False
    #: Whether items may come in the order of a guide.
    guided: ClassVar[bool] = False
    #: Whether some users are drawn to be ranked in full.
    draws_users: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("sampled", "k"):
            value = getattr(self, name, None)
            if value is not None:
                number = check_integer(name, value, minimum=1, error=DesignError)
                object.__setattr__(self, name, number)
        check_flag("replacement", self.with_replacement)

    @property
    def with_replacement(self) -> bool:
        """Return whether an item may be drawn twice."""
        return getattr(self, "replacement", False)

    def in_full(self, users: IntArray, user_order: IntArray) -> BoolArray | None:
        """Return which targets are of users who are ranked in full beside samples of the others.

        ``user_order`` is a random order of the users. None where nobody was asked for.
        """
        return None

    def fit(
        self,
        metrics: Sequence[Metric],
        others: IntArray,
        *,
        budget: int | None = None,
        relevant: int = 1,
        in_full: BoolArray | None = None,
    ) -> FittedDesign:
        """Return this design with all parameters set, and what the budget allows.

        Parameters
        ----------
        metrics
            The metrics to be found.
        others
            The number of candidates of each target of each model, without the target.
        budget
            The total number of scores, the targets' own included; None for any number.
        relevant
            The largest number of targets of a user.
        in_full
            What `in_full` returned.

        Raises
        ------
        BudgetError
            If the budget is too small for this design.

        >>> fitted = Fixed().fit([], np.array([999, 999, 999]), budget=63)
        >>> fitted.design, fitted.allowed, fitted.checked
        (Fixed(sampled=20, replacement=True, full=0), 60, 0)
        """
        design = self.for_metrics(metrics, relevant)
        targets = len(others)
        of_all = int(others.sum()) + targets
        if budget is not None:
            budget = check_integer("budget", budget, minimum=1, hint="all scores in total")
            budget = min(budget, _LARGEST_BUDGET)
        total = of_all if budget is None else budget
        checked = min(_MAX_CHECKED, targets, int(_MAX_CHECKED_SHARE * total))
        all_in_full = in_full is not None and bool(in_full.all())
        # The candidates of targets that are sampled; of all if none is.
        rest = others if in_full is None or all_in_full else others[~in_full]
        if budget is None:
            return FittedDesign(design.within(math.inf, rest), None, checked=checked)
        # Each target takes a score of its own, too.
        of_full_rankings = of_all - int(rest.sum()) - len(rest)
        minimum = of_full_rankings + len(rest) + design.min_scores(rest)
        if all_in_full:
            minimum = of_all
        if budget < minimum:
            cheaper = design.cheaper if in_full is None else "rank fewer users in full"
            ways = ["raise it", "evaluate fewer targets", *filter(None, [cheaper])]
            raise BudgetError(
                f"budget must be at least {minimum:,} scores for {design.name} and {targets:,} "
                f"targets (of all models), got {budget:,}; {', '.join(ways[:-1])}, or {ways[-1]}"
            )
        checked = min(checked, budget - minimum)
        for_each = (budget - checked - of_full_rankings) / len(rest) - 1
        fitted = design.within(for_each, rest)
        return FittedDesign(fitted, budget - targets - checked, checked=checked)

    @abstractmethod
    def step(self, now: Situation) -> Step:
        """Return how far each target goes in the next round, and what to remember.

        The evaluation ends when no target goes further. A step depends on its argument only, and
        changes nothing.
        """

    def foreseen(self, now: Situation, goal: IntArray) -> int:
        """Return how many items will have been scored in the end, as far as can be told now.

        ``goal`` is how far each target goes in this round.
        """
        return int(goal.sum())

    def simulate(
        self,
        ranks: npt.ArrayLike,
        *,
        items: npt.ArrayLike,
        rng: Seed = 0,
        budget: int | None = None,
        metrics: str | Metric | Iterable[str | Metric] = "NDCG@10",
        odds: float = 1.0,
    ) -> Findings:
        """Return what this design would find for targets whose full ranks are known.

        Nothing is scored: how many items beat a target is drawn from the distribution of the
        design. The result goes into `unsample.estimate`.

        Parameters
        ----------
        ranks
            The rank of each target among all its candidates.
        items
            The number of candidates, the target included: one number, or one for each target.
        rng
            Seed or Generator.
        budget
            The total number of scores, as in `unsample.evaluate`.
        metrics
            The metrics to be found. Certified designs need their K.
        odds
            How good the guide of a guided or certified design is: the odds that an item that beats
            the target comes before one that does not. 1 is a random order.

        Returns
        -------
        Findings
            What is known of each rank, and ``scored``, the number of scores that it took.

        Raises
        ------
        RankError
            If a rank is no whole number from 1 to ``items``.
        BudgetError
            If the budget is too small for the design.

        >>> found = Fixed(99).simulate([1, 500, 20], items=1000)
        >>> found.ranks[0], found.scored < 3 * 1000
        (np.int64(1), True)
        """
        with ONCE:
            from unsample.designs._simulation import simulated

        wanted = _metrics.parse_all(metrics)
        options: dict[str, Any] = {"budget": budget, "metrics": wanted, "odds": odds}
        return simulated(self, ranks, items=items, rng=rng, **options)

    def findings(
        self,
        *,
        lowest: IntArray,
        full: IntArray,
        met: IntArray,
        others: IntArray,
        scored: int,
        notes: DesignNotes,
        users: IntArray | None = None,
        filtered: bool = False,
    ) -> Findings:
        """Return ranks among the ``met`` items, or full ranks of targets that are certified.

        ``full`` is the rank of targets that were compared with all ``others``. Every other
        certified target may have any rank from ``lowest`` on.
        """
        complete = self.certifies & (met == others)
        # Where all users are ranked in full nothing was drawn.
        all_in_full = getattr(self, "full", 0) > 0 and bool((met == others).all())
        replacement = self.with_replacement and not all_in_full
        last = others + 1 if self.certifies else lowest
        return Findings(
            ranks=np.where(complete, full, last),
            items=others + 1,
            sampled=others if self.certifies else met,
            users=users,
            filtered=filtered,
            replacement=replacement,
            design=self,
            lowest=np.where(complete, full, lowest),
            met=met,
            scored=scored,
            notes=notes,
        )

    # What differs between designs before they start.

    @property
    def cheaper(self) -> str:
        """Return advice for a budget that is too small for this design; empty if there is none."""
        return "use design='guided' or 'fixed'"

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        """Return the design for these metrics; refuse metrics that it cannot give."""
        return self

    @abstractmethod
    def min_scores(self, others: IntArray) -> int:
        """Return how many items must be scored in total at least."""

    def within(self, for_each: float, others: IntArray) -> Self:
        """Return the design that scores at most ``for_each`` items for a target on average."""
        return self


@dataclass(frozen=True)
class Exact(Design):
    """Every target is compared with all its candidates.

    >>> found = Exact().simulate([1, 500, 20], items=1000)
    >>> found.ranks.tolist(), found.scored
    ([1, 500, 20], 3003)
    """

    name: ClassVar[str] = "exact"
    exact: ClassVar[bool] = True
    certifies: ClassVar[bool] = True

    def step(self, now: Situation) -> Step:
        return Step(now.others, now.notes)

    def min_scores(self, others: IntArray) -> int:
        return int(others.sum())


@dataclass(frozen=True)
class Fixed(Design):
    """Every target is compared with the same number of sampled items.

    Parameters
    ----------
    sampled
        How many items are sampled for each target, without the target itself (99, not 100). By
        default as many as the budget allows, or 99 without a budget.
    replacement
        Whether an item may be drawn twice for a target.
    full
        How many users, drawn at random, are compared with all their candidates instead, under every
        model. Their ranks show the top, which no sample does.

    >>> found = Fixed(99, full=2).simulate([1, 500, 20, 8], items=1000, rng=1)
    >>> found.met.tolist(), found.ranks[found.met == 999].tolist()
    ([999, 999, 99, 99], [1, 500])
    """

    name: ClassVar[str] = "fixed"
    sampled: int | None = None
    replacement: bool = True
    full: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        number = check_integer("full", self.full, minimum=0, error=DesignError)
        object.__setattr__(self, "full", number)

    def in_full(self, users: IntArray, user_order: IntArray) -> BoolArray | None:
        """Return which targets are of the first users in a random order."""
        return np.isin(users, user_order[: self.full]) if self.full else None

    def step(self, now: Situation) -> Step:
        assert self.sampled is not None
        in_full = self.in_full(now.users, now.user_order)
        goal = np.full(len(now.scored), self.sampled)
        if in_full is not None:
            goal = np.where(in_full, now.others, self.sampled)
        return Step(goal, now.notes)

    @property
    def cheaper(self) -> str:
        return "" if self.sampled is None else "sample fewer items"

    def min_scores(self, others: IntArray) -> int:
        return (self.sampled or 1) * len(others)

    def within(self, for_each: float, others: IntArray) -> Self:
        fewest = int(others.min())
        if self.sampled is not None:
            if not self.replacement and self.sampled > fewest:
                raise DesignError(
                    f"sampled must be at most a target's other candidates without replacement, got "
                    f"{self.sampled} for a target with {fewest}; sample fewer, or with replacement"
                )
            refuse_overdrawn(others + 1, self.sampled)
            return self
        sampled = 99 if math.isinf(for_each) else max(1, math.floor(for_each))
        return replace(self, sampled=min(sampled, fewest))


@dataclass(frozen=True)
class Certified(Design):
    """Exact metrics@K: a target that K items beat is not in the top K, and needs no more scores.

    Items come without replacement, in the order of a guide or in random order. A target stops at
    the K-th item that beats it, or at its last candidate. So every rank up to K is known, and all
    others are known to be beyond K. In random order this costs about min(1, K/R) of a full ranking.
    With a good guide it costs little more than the share of targets in the top K. A budget that is
    too small is an error.

    Parameters
    ----------
    k
        How many items must beat a target before it stops; by default the largest K of the metrics.

    >>> found = Certified().simulate([1, 500, 20], items=1000)
    >>> found.lowest[0], found.ranks[0], found.scored < 3 * 1000
    (np.int64(1), np.int64(1), True)
    """

    name: ClassVar[str] = "certified"
    exact: ClassVar[bool] = True
    certifies: ClassVar[bool] = True
    guided: ClassVar[bool] = True
    k: int | None = None

    def step(self, now: Situation) -> Step:
        assert self.k is not None
        goal = towards_the_kth(now, self.k)
        if now.allowed is not None and goal.sum() > now.allowed:
            still = int(np.count_nonzero(goal > now.scored))
            raise BudgetError(
                f"budget must suffice to certify K = {self.k} for every target, got one that "
                f"leaves {still:,} of {len(goal):,} targets open; raise it, or use design='guided'"
            )
        return Step(goal, now.notes)

    def foreseen(self, now: Situation, goal: IntArray) -> int:
        assert self.k is not None
        return int(expected_in_the_end(now, self.k).sum())

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        instead = "use design='exact' or 'fixed'"
        return replace(self, k=largest_k(self, metrics, relevant=relevant, instead=instead))

    def min_scores(self, others: IntArray) -> int:
        assert self.k is not None
        return int(np.minimum(self.k, others).sum())


def largest_k(design: Design, metrics: Sequence[Metric], *, relevant: int, instead: str) -> int:
    """Return the largest K of the metrics, or the K of the design if it is larger.

    The K of R-precision is the number of relevant items. Metrics without a K are refused, and
    ``instead`` is the advice of the message.

    >>> from unsample.metrics import parse_all
    >>> largest_k(Certified(), parse_all(["HR@10", "NDCG@5"]), relevant=1, instead="")
    10
    """
    cutoffs = {
        metric.name: relevant if metric.family is _metrics.RPrec else metric.k for metric in metrics
    }
    without = [name for name, cutoff in cutoffs.items() if cutoff is None]
    if without:
        raise DesignError(
            f"metrics must have a K with design={design.name!r}, got {', '.join(without)}; write "
            f"{without[0]}@10, or {instead}"
        )
    at_least: int = getattr(design, "k", None) or 1
    return max(at_least, *(cutoff or 1 for cutoff in cutoffs.values()))


def towards_the_kth(now: Situation, k: int) -> IntArray:
    """Return how far each target goes next, towards the K-th item that beats it.

    The step is a part of the expected way. If b items beat the target so far, it takes at least
    K - b further items, so a step is never shorter.
    """
    needed = np.maximum(k - now.beaten, 0)
    part = _CERTIFIED_STEP * expected_way(needed, now.scored, beaten=now.beaten)
    step = np.maximum(needed, np.floor(part).astype(np.int64))
    return np.asarray(np.minimum(now.scored + step, now.others))


def expected_in_the_end(now: Situation, k: int) -> FloatArray:
    """Return with how many items each target will be compared until K items beat it, or all."""
    needed = np.maximum(k - now.beaten, 0)
    way = expected_way(needed, now.scored, beaten=now.beaten)
    return np.minimum(now.scored + way, now.others)


def expected_way(needed: IntArray, scored: IntArray, *, beaten: IntArray) -> FloatArray:
    """Return after how many more items the ``needed`` number of them is expected to beat a target.

    Of s items b beat the target so far: expect one of the next (s + 1)/(b + 1) items to beat it.
    Nothing is known of the first target, 4 of 99 items beat the second, and the third needs none:

    >>> scored, beaten = np.array([0, 99, 99]), np.array([0, 4, 5])
    >>> expected_way(np.array([5, 1, 0]), scored, beaten=beaten)
    array([ 5., 20.,  0.])
    """
    return np.asarray(needed * (scored + 1) / (beaten + 1))
