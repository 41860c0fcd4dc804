"""Certified: exact metrics@K, because a target that K items beat is not in the top K."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray
from unsample.designs._designs import Design, check_optional
from unsample.designs._findings import Situation
from unsample.errors import BudgetError, DesignError
from unsample.metrics import Metric

#: A certified scan goes this part of the way to where it expects to be done, then looks again.
_CERTIFIED_STEP = 0.25


def largest_k(
    k: int | None, metrics: Sequence[Metric], relevant: int, *, name: str = "certified"
) -> int:
    """Return the K beyond which no metric looks; refuse metrics without one, and a lower ``k``."""
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
    """Return how far each target goes next on its way to its K-th beater, and how far that may be.

    It goes part of the way to where that is expected, but never too short a way: K - b further
    items cannot be too many where b of the K are found.
    """
    needed = np.maximum(k - now.beaten, 0)
    expected = needed * (now.scored + 1) / (now.beaten + 1)
    step = np.maximum(needed, np.floor(_CERTIFIED_STEP * expected).astype(np.int64))
    return np.minimum(now.scored + step, now.others), now.scored + expected


@dataclass(frozen=True)
class Certified(Design):
    """Exact metrics@K: a target beaten K times is out of the top K, and is followed no further.

    Items come without replacement, in the order of a guide or in random order. A target stops at
    the K-th item that beats it or at its last candidate, so every rank up to K is known, and of the
    others that they are beyond. In random order that costs about min(1, K/R) of a full ranking; a
    good guide leaves little more than the share of targets in the top K. A budget that does not
    suffice is an error. ``k`` is by default the largest K of the metrics.

    >>> found = Certified().simulate([1, 500, 20], items=1000)
    >>> found.lowest[0], found.ranks[0], found.scored < 3 * 1000
    (np.int64(1), np.int64(1), True)
    """

    name: ClassVar[str] = "certified"
    exact: ClassVar[bool] = True
    certifies: ClassVar[bool] = True
    guided: ClassVar[bool] = True
    instead: ClassVar[str] = "raise it, or use design='guided' or 'adaptive'"
    k: int | None = None

    def __post_init__(self) -> None:
        check_optional("k", self.k)

    def goal(self, now: Situation) -> IntArray:
        """Go towards the K-th item that beats, and refuse to go on where the budget ends."""
        assert self.k is not None
        goal, expected = towards_the_kth(now, self.k)
        if now.allowed is not None and goal.sum() > now.allowed:
            still = int(np.count_nonzero(goal > now.scored))
            about = max(np.minimum(expected, now.others).sum(), goal.sum())
            raise BudgetError(
                f"budget must suffice to certify K = {self.k} for every target, got one with which "
                f"{still:,} of {len(goal):,} targets are still open; about "
                f"{len(goal) + math.ceil(about):,} scores should do"
            )
        return goal

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        """Find K; refuse metrics that look beyond it."""
        return replace(self, k=largest_k(self.k, metrics, relevant))

    def least(self, others: IntArray) -> int:
        """Return what it takes if the first items all beat their targets."""
        assert self.k is not None
        return int(np.minimum(self.k, others).sum())
