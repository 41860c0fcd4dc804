"""Designs: each is a frozen set of parameters that says how far to compare each target.

After each round a design sees what is known of every target, and says how far each goes next. It
decides by the scores of items that were already compared, and by nothing else. So the likelihood of
a sampled rank is that of its sample size, whatever made the design stop there.
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
from unsample._checks import BoolArray, IntArray, Seed, check_flag, check_integer
from unsample._rules import ONCE
from unsample.designs._findings import DesignNotes, Findings, Situation
from unsample.errors import BudgetError, DesignError
from unsample.metrics import Metric
from unsample.sampling import refuse_overdrawn

#: One round goes this part of the expected way to the K-th item that beats a target.
_CERTIFIED_STEP = 0.25
#: Scores of targets that are asked for twice, to detect a scorer that is not deterministic: at most
#: this number, and at most this part of all scores.
_CHECKED, _CHECKED_SHARE = 16, 0.01


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
            given = getattr(self, name, None)
            if given is not None:
                number = check_integer(name, given, minimum=1, error=DesignError)
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
        budget: int | None = None,
        *,
        relevant: int = 1,
        in_full: BoolArray | None = None,
    ) -> tuple[Self, int | None, int]:
        """Return this design with all parameters set, and what the budget allows.

        The second value is how many items may be scored (None: any number). The third is how many
        targets may be scored twice. ``others`` is the number of candidates of each target of each
        model, without the target. ``relevant`` is the largest number of targets of a user, and
        ``in_full`` is what `in_full` returned. A budget that is too small is refused.
        """
        design, targets = self.for_metrics(metrics, relevant), len(others)
        total = int(others.sum()) + targets
        if budget is not None:
            total = check_integer("budget", budget, minimum=1, hint="all scores in total")
        checked = min(_CHECKED, targets, int(_CHECKED_SHARE * total))
        rest, whole = others, 0
        if in_full is not None and not in_full.all():
            rest = others[~in_full]
            # Each target that is ranked in full takes a score of its own, too.
            whole = int(others[in_full].sum()) + targets - len(rest)
        if budget is None:
            return design.within(math.inf, rest), None, checked
        if in_full is not None and in_full.all():
            minimum = targets + int(others.sum())
        else:
            minimum = whole + len(rest) + design.min_scores(rest)
        if budget < minimum:
            hint = "use design='guided' or 'fixed'"
            hint = hint if in_full is None else "rank fewer users in full"
            raise BudgetError(
                f"budget must be at least {minimum:,} scores for {design.name} and {targets:,} "
                f"targets (of all models), got {budget:,}; raise it, evaluate fewer targets, or "
                f"{hint}"
            )
        checked = min(checked, budget - minimum)
        left = budget - targets - checked
        return design.within((budget - checked - whole) / len(rest) - 1, rest), left, checked

    @abstractmethod
    def step(self, now: Situation) -> IntArray:
        """Return how many items each target will have been compared with after the next round.

        The evaluation ends when no target goes further.
        """

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

        >>> found = Fixed(99).simulate([1, 500, 20], items=1000)
        >>> found.ranks[0], found.scored < 3 * 1000
        (np.int64(1), True)
        """
        with ONCE:
            from unsample.designs._simulation import simulated

        wanted = _metrics.parse_all(metrics)
        return simulated(self, ranks, items, rng, budget=budget, metrics=wanted, odds=odds)

    def findings(
        self,
        lowest: IntArray,
        full: IntArray,
        met: IntArray,
        others: IntArray,
        *,
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

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        """Return the design for these metrics; refuse metrics that it cannot give."""
        return self

    @abstractmethod
    def min_scores(self, others: IntArray) -> int:
        """Return how many items must be scored in total at least."""

    def within(self, each: float, others: IntArray) -> Self:
        """Return the design that scores at most ``each`` items for a target on average."""
        return self


@dataclass(frozen=True)
class Exact(Design):
    """Every target is compared with all its candidates."""

    name: ClassVar[str] = "exact"
    exact: ClassVar[bool] = True
    certifies: ClassVar[bool] = True

    def step(self, now: Situation) -> IntArray:
        return now.others

    def min_scores(self, others: IntArray) -> int:
        return int(others.sum())


@dataclass(frozen=True)
class Fixed(Design):
    """Every target is compared with the same number of sampled items.

    ``sampled`` does not count the target (99, not 100). By default it is what the budget allows, or
    99 without a budget. As many users as ``full`` says, drawn at random, are compared with all
    their candidates instead, under every model: their ranks show the top, which no sample does.

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

    def step(self, now: Situation) -> IntArray:
        assert self.sampled is not None
        in_full = self.in_full(now.users, now.user_order)
        if in_full is None:
            return np.full(len(now.scored), self.sampled)
        return np.where(in_full, now.others, self.sampled)

    def min_scores(self, others: IntArray) -> int:
        return (self.sampled or 1) * len(others)

    def within(self, each: float, others: IntArray) -> Self:
        fewest = int(others.min())
        if self.sampled is not None:
            if not self.replacement and self.sampled > fewest:
                raise DesignError(
                    f"sampled must be at most a target's other candidates without replacement, got "
                    f"{self.sampled} for a target with {fewest}; sample fewer, or with replacement"
                )
            refuse_overdrawn(others + 1, self.sampled)
            return self
        sampled = 99 if math.isinf(each) else max(1, math.floor(each))
        return replace(self, sampled=min(sampled, fewest))


@dataclass(frozen=True)
class Certified(Design):
    """Exact metrics@K: a target that K items beat is not in the top K, and needs no more scores.

    Items come without replacement, in the order of a guide or in random order. A target stops at
    the K-th item that beats it, or at its last candidate. So every rank up to K is known, and all
    others are known to be beyond K. In random order this costs about min(1, K/R) of a full ranking.
    With a good guide it costs little more than the share of targets in the top K. A budget that is
    too small is an error. ``k`` is the largest K of the metrics, if it is not given.

    >>> found = Certified().simulate([1, 500, 20], items=1000)
    >>> found.lowest[0], found.ranks[0], found.scored < 3 * 1000
    (np.int64(1), np.int64(1), True)
    """

    name: ClassVar[str] = "certified"
    exact: ClassVar[bool] = True
    certifies: ClassVar[bool] = True
    guided: ClassVar[bool] = True
    k: int | None = None

    def step(self, now: Situation) -> IntArray:
        assert self.k is not None
        goal = towards_the_kth(now, self.k)
        if now.allowed is not None and goal.sum() > now.allowed:
            still = int(np.count_nonzero(goal > now.scored))
            raise BudgetError(
                f"budget must suffice to certify K = {self.k} for every target, got one that "
                f"leaves {still:,} of {len(goal):,} targets open; raise it, or use design='guided'"
            )
        return goal

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        return replace(self, k=largest_k(self.k, metrics, relevant))

    def min_scores(self, others: IntArray) -> int:
        assert self.k is not None
        return int(np.minimum(self.k, others).sum())


def largest_k(k: int | None, metrics: Sequence[Metric], relevant: int) -> int:
    """Return the largest K of the metrics, or ``k`` if it is larger; refuse metrics without one.

    The K of R-precision is the number of relevant items.
    """
    last = [relevant if each.family is _metrics.RPrec else each.k for each in metrics]
    unlimited = [each.name for each, found in zip(metrics, last, strict=True) if found is None]
    if unlimited:
        raise DesignError(
            f"metrics must have a K to be certified, got {', '.join(unlimited)}; write "
            f"{unlimited[0]}@10, or use design='exact' or 'fixed'"
        )
    return max(k or 1, *(found or 1 for found in last))


def towards_the_kth(now: Situation, k: int) -> IntArray:
    """Return how far each target goes next, towards the K-th item that beats it.

    The step is a part of the expected way. If b items beat the target so far, it takes at least
    K - b further items, so a step is never shorter.
    """
    needed = np.maximum(k - now.beaten, 0)
    expected = needed * (now.scored + 1) / (now.beaten + 1)
    step = np.maximum(needed, np.floor(_CERTIFIED_STEP * expected).astype(np.int64))
    return np.asarray(np.minimum(now.scored + step, now.others))
