"""Designs: each is a frozen set of parameters that says how far to compare each target.

After each round a design sees what is known of every target, and says how far each goes next. It
decides by the scores of items that were already compared, and by nothing else. So the likelihood of
a sampled rank is that of its sample size, whatever made the design stop there.

A design runs on scorers (`unsample.evaluate`) or is simulated on known ranks (`simulate`). A
simulation draws the comparisons from their law instead of scoring. Both use the same methods.
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
from unsample._checks import FloatArray, IntArray, Seed, as_rng, check_integer, check_real
from unsample.designs._findings import Findings, Notes, Situation, Step
from unsample.errors import BudgetError, DesignError, RankError
from unsample.law import LARGEST_URN, as_better
from unsample.metrics import Metric

#: Scores of targets that are asked for twice, to detect a scorer that is not deterministic: at most
#: this number, and at most this part of all scores.
_CHECKED, _CHECKED_SHARE = 16, 0.01
#: The part of the expected way to the K-th item that beats a target that one round takes.
_CERTIFIED_STEP = 0.25


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
    #: What to do if the budget is too small.
    instead: ClassVar[str] = "raise it, or evaluate fewer targets"

    def __post_init__(self) -> None:
        for name in ("sampled", "k"):
            value = getattr(self, name, None)
            if value is not None:
                check_integer(name, value, minimum=1, error=DesignError)

    @property
    def with_replacement(self) -> bool:
        """Return whether an item may be drawn twice."""
        return bool(getattr(self, "replacement", False))

    def fit(
        self,
        metrics: Sequence[Metric],
        others: IntArray,
        budget: int | None = None,
        *,
        relevant: int = 1,
    ) -> tuple[Self, int | None, int]:
        """Return this design with all parameters set, and what the budget allows.

        The second value is how many items may be scored (None: any number). The third is how many
        targets may be scored twice. ``others`` is the number of candidates of each target of each
        model, without the target. ``relevant`` is the largest number of targets of a user. A budget
        that is too small for the design is refused.
        """
        design, targets = self.for_metrics(metrics, relevant), len(others)
        total = int(others.sum()) + targets
        if budget is not None:
            total = check_integer("budget", budget, minimum=1, hint="all scores in total")
        checked = min(_CHECKED, targets, int(_CHECKED_SHARE * total))
        if budget is None:
            return design.within(math.inf, others), None, checked
        least = targets + design.least(others)
        if budget < least:
            raise BudgetError(
                f"budget must be at least {least:,} scores for {design.name} and {targets:,} "
                f"targets (of all models), got {budget:,}; {design.instead}"
            )
        checked = min(checked, budget - least)
        left = budget - targets - checked
        return design.within((budget - checked) / targets - 1, others), left, checked

    @abstractmethod
    def step(self, now: Situation) -> Step:
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
        users: IntArray | None = None,
        shuffle: IntArray | None = None,
        odds: float = 1.0,
        places: IntArray | None = None,
        own: FloatArray | None = None,
    ) -> Findings:
        """Return what this design would find for targets whose full ranks are known.

        Nothing is scored. How many items beat a target is drawn from the law of the design. The
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
            The total number of scores, as in `unsample.evaluate`.
        metrics
            The metrics to be found. Certified designs need their K.
        users
            The user of each target, numbers from 0; by default every target has its own.
        shuffle
            A random order of the users. By default it is drawn.
        odds
            How good the guide of a guided or certified design is: the odds that an item that beats
            the target comes before one that does not. 1 is a random order.
        places
            Instead of ``odds``: the places of the first K items that beat each target in the order
            of the guide. One row for each target, places from 1, and the largest integer where
            fewer than K items beat the target.
        own
            The scores of the targets. A guided design groups targets by them.

        >>> found = Fixed(99).simulate([1, 500, 20], items=1000)
        >>> found.ranks[0], found.scored < 3 * 1000
        (np.int64(1), True)
        """
        better, others = as_better(ranks, items)
        size = len(better)
        if not size:
            raise RankError("ranks must hold at least one rank, got none")
        if others.max() >= LARGEST_URN:
            raise DesignError(f"items must be at most {LARGEST_URN:,} to simulate, got more")
        design, allowed, checked = self.fit(_metrics.parse_all(metrics), others, budget)
        rng = as_rng(rng)
        number = np.arange(size) if users is None else users
        if shuffle is None:
            shuffle = rng.permutation(int(number.max()) + 1)
        odds, k = check_real("odds", odds, low=0.0, open_low=True), getattr(design, "k", None)
        if not design.guided:
            places = None
        elif places is None and odds != 1.0 and k is not None:
            places = _draw_places(better, others, k, odds, rng)
        met = _Met(better, others, rng, design.with_replacement, places)
        scored, beaten = (np.zeros(size, dtype=np.int64) for _ in range(2))
        notes = Notes.empty(size)
        own = np.zeros(size) if own is None else np.asarray(own, dtype=np.float64)
        while True:
            now = Situation(scored, beaten, others, allowed, number, shuffle, notes, own)
            plan = design.step(now)
            notes, rows = plan.notes, np.flatnonzero(plan.goal > scored)
            if not len(rows):
                break
            goal, before = plan.goal[rows], beaten[rows]
            beaten[rows] = before + met.beaters(rows, scored[rows], goal, before)
            scored[rows] = goal
        total = size + checked + int(scored.sum())
        return design.findings(
            1 + beaten, 1 + better, scored, others, scored=total, notes=notes, users=users
        )

    def findings(
        self,
        lowest: IntArray,
        full: IntArray,
        met: IntArray,
        others: IntArray,
        *,
        scored: int,
        notes: Notes,
        users: IntArray | None = None,
        filtered: bool = False,
        infinite: int = 0,
    ) -> Findings:
        """Return ranks among the ``met`` items, or full ranks of targets that are certified.

        ``full`` is the rank of targets that were compared with all ``others``. Every other
        certified target may have any rank from ``lowest`` on.
        """
        complete = self.certifies & (met == others)
        last = others + 1 if self.certifies else lowest
        return Findings(
            ranks=np.where(complete, full, last),
            items=others + 1,
            sampled=others if self.certifies else met,
            users=users,
            filtered=filtered,
            replacement=self.with_replacement,
            design=self,
            lowest=np.where(complete, full, lowest),
            met=met,
            scored=scored,
            notes=notes,
            infinite=infinite,
        )

    # What differs between designs before they start.

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        """Return the design for these metrics; refuse metrics that it cannot give."""
        return self

    @abstractmethod
    def least(self, others: IntArray) -> int:
        """Return the smallest number of items that must be scored in total."""

    def within(self, each: float, others: IntArray) -> Self:
        """Return the design that scores at most ``each`` items for a target on average."""
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

    def step(self, now: Situation) -> Step:
        return Step(now.others, now.notes)

    def least(self, others: IntArray) -> int:
        return int(others.sum())


@dataclass(frozen=True)
class Fixed(Design):
    """Every target is compared with the same number of sampled items.

    ``sampled`` does not count the target (99, not 100). By default it is what the budget allows, or
    99 without a budget.
    """

    name: ClassVar[str] = "fixed"
    sampled: int | None = None
    replacement: bool = True

    def step(self, now: Situation) -> Step:
        assert self.sampled is not None
        return Step(np.full(len(now.scored), self.sampled), now.notes)

    def least(self, others: IntArray) -> int:
        return (self.sampled or 1) * len(others)

    def within(self, each: float, others: IntArray) -> Self:
        fewest = int(others.min())
        if self.sampled is not None:
            if not self.replacement and self.sampled > fewest:
                raise DesignError(
                    f"sampled must be at most a target's other candidates without replacement, got "
                    f"{self.sampled} for a target with {fewest}; sample fewer, or with replacement"
                )
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
    too small is an error. ``k`` is by default the largest K of the metrics.

    >>> found = Certified().simulate([1, 500, 20], items=1000)
    >>> found.lowest[0], found.ranks[0], found.scored < 3 * 1000
    (np.int64(1), np.int64(1), True)
    """

    name: ClassVar[str] = "certified"
    exact: ClassVar[bool] = True
    certifies: ClassVar[bool] = True
    guided: ClassVar[bool] = True
    instead: ClassVar[str] = "raise it, or use design='guided'"
    k: int | None = None

    def step(self, now: Situation) -> Step:
        assert self.k is not None
        goal, expected = towards_the_kth(now, self.k)
        if now.allowed is not None and goal.sum() > now.allowed:
            still = int(np.count_nonzero(goal > now.scored))
            about = max(np.minimum(expected, now.others).sum(), goal.sum())
            raise BudgetError(
                f"budget must suffice to certify K = {self.k} for every target, got one that "
                f"leaves {still:,} of {len(goal):,} targets open; about "
                f"{len(goal) + math.ceil(about):,} scores should suffice"
            )
        return Step(goal, now.notes)

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        return replace(self, k=largest_k(self.k, metrics, relevant))

    def least(self, others: IntArray) -> int:
        assert self.k is not None
        return int(np.minimum(self.k, others).sum())


def largest_k(
    k: int | None, metrics: Sequence[Metric], relevant: int, *, name: str = "certified"
) -> int:
    """Return the largest K of the metrics; refuse metrics without a K, and a smaller ``k``."""
    last = [relevant if metric.family is _metrics.RPrec else metric.k for metric in metrics]
    pairs = zip(metrics, last, strict=True)
    unlimited = [metric.name for metric, found in pairs if found is None]
    if unlimited:
        raise DesignError(
            f"metrics must have a K to be {name}, got {', '.join(unlimited)}; write "
            f"{unlimited[0]}@10, or use design='exact'"
        )
    largest = max(found or 0 for found in last)
    if k is not None and k < largest:
        raise DesignError(
            f"k must be at least the largest K of the metrics, {largest}, got {k}; leave it out"
        )
    return k or largest


def towards_the_kth(now: Situation, k: int) -> tuple[IntArray, FloatArray]:
    """Return how far each target goes next, and where its K-th item that beats it is expected.

    The step is a part of the expected way. If b items beat the target so far, it takes at least
    K - b further items, so a step is never shorter.
    """
    needed = np.maximum(k - now.beaten, 0)
    expected = needed * (now.scored + 1) / (now.beaten + 1)
    step = np.maximum(needed, np.floor(_CERTIFIED_STEP * expected).astype(np.int64))
    return np.minimum(now.scored + step, now.others), now.scored + expected


def _draw_places(
    better: IntArray, others: IntArray, k: int, odds: float, rng: np.random.Generator
) -> IntArray:
    """Draw the places of the first ``k`` items that beat each target under a guide.

    Every item has a random arrival time: exponential with rate ``odds`` if it beats the target, and
    with rate 1 if not. So these are the odds that the next item beats the target.
    """
    places = np.full((len(better), k), np.iinfo(np.int64).max)
    before = np.zeros(len(better), dtype=np.int64)
    slower = others - better
    for number in range(min(k, int(better.max(initial=0)))):
        left = np.maximum(better - number, 0)
        step = rng.exponential(size=len(better)) / np.maximum(odds * left, 1e-300)
        # Each of the other items arrives in this time with probability 1 - exp(-step).
        before = before + rng.binomial(slower - before, -np.expm1(-np.minimum(step, 700.0)))
        places[:, number] = np.where(left > 0, before + number + 1, places[:, number])
    return places


@dataclass(frozen=True, eq=False)
class _Met:
    """What simulated targets meet."""

    better: IntArray
    others: IntArray
    rng: np.random.Generator
    replacement: bool
    #: The places of the first K items that beat each target; None if items come at random.
    places: IntArray | None

    def beaters(
        self, rows: IntArray, scored: IntArray, goal: IntArray, beaten: IntArray
    ) -> IntArray:
        """Return how many of the items between ``scored`` and ``goal`` beat each target."""
        better, others = self.better[rows], self.others[rows]
        if self.places is not None:
            met = (self.places[rows] <= goal[:, None]).sum(axis=1)
            return np.asarray(np.maximum(met - beaten, 0))
        if self.replacement:
            return self.rng.binomial(goal - scored, better / others)
        left = better - beaten
        rest = others - scored - left
        return np.asarray(self.rng.hypergeometric(left, rest, goal - scored))
