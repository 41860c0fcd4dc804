"""Certified: exact metrics@K. A target that K items beat is not in the top K."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray
from unsample.designs._designs import Design
from unsample.designs._findings import Situation, Step
from unsample.errors import BudgetError, DesignError
from unsample.metrics import Metric

#: The part of the expected way to the K-th item that beats a target that one round takes.
_CERTIFIED_STEP = 0.25


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
