"""Pilot: a few sampled items for every target, and full ranks of some users drawn at random.

Estimates from the sampled ranks are corrected by their error among the users with full ranks
(prediction-powered inference, `unsample.confidence`). No shape of P(R) and no guide is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from unsample._checks import BoolArray, IntArray, check_real
from unsample.designs._certified import largest_k, towards_the_kth
from unsample.designs._designs import Design
from unsample.designs._findings import Notes, Situation, Step
from unsample.designs._guided import next_in_turn
from unsample.errors import DesignError
from unsample.metrics import Metric

#: The part of a budget that goes into the samples of all targets, and the part of the users that
#: are in the pilot if there is no budget.
_SAMPLED_SHARE, _USUAL_SHARE = 0.1, 0.1
#: Users that a budget must suffice to rank in full: ten that count, and the one where it ends.
_FEWEST = 11


@dataclass(frozen=True)
class Pilot(Design):
    """Every target is sampled, and the targets of some users are certified. No guide is needed.

    Every target is compared with the same number of items, in random order and without replacement.
    Then users are drawn at random. Their targets are compared until K items beat them, or with all
    candidates. These users correct the estimates from the samples of the others. Users must have
    one target each. For metrics without a K the pilot is ranked in full.

    Parameters
    ----------
    sampled
        Items for every target. By default a tenth of the budget, or 99 without a budget.
    share
        The largest part of the users in the pilot. By default as many as the budget allows, or a
        tenth without a budget.
    k
        By default the largest K of the metrics.

    >>> ranks = np.random.default_rng(0).integers(1, 2001, size=1000)
    >>> found = Pilot().simulate(ranks, items=2000, budget=40_000)
    >>> found.scored, int((found.sampled == 1999).sum()) >= 10
    (40000, True)
    """

    name: ClassVar[str] = "pilot"
    certifies: ClassVar[bool] = True
    instead: ClassVar[str] = "raise it, or use design='adaptive'"
    sampled: int | None = None
    share: float | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None:
            check_real("share", self.share, low=0.0, high=1.0, open_low=True, error=DesignError)

    def for_metrics(self, metrics: Sequence[Metric], relevant: int) -> Self:
        if relevant > 1:
            raise DesignError(
                f"users must have one target each with design='pilot', got one with {relevant}; "
                "use design='guided'"
            )
        if any(metric.k is None for metric in metrics):
            return replace(self, k=None)
        return replace(self, k=largest_k(self.k, metrics, relevant, name="pilot"))

    def least(self, others: IntArray) -> int:
        samples = (self.sampled or 1) * len(others)
        return min(samples + _FEWEST * int(others.max()), int(others.sum()))

    def within(self, each: float, others: IntArray) -> Self:
        fewest, kept = int(others.min()), _FEWEST * int(others.max()) / len(others)
        if self.sampled is not None:
            if self.sampled > fewest:
                raise DesignError(
                    f"sampled must be at most a target's other candidates, got {self.sampled} "
                    f"for a target with {fewest}; sample fewer"
                )
            return self
        sampled = 99 if math.isinf(each) else math.floor(min(_SAMPLED_SHARE * each, each - kept))
        return replace(self, sampled=min(max(sampled, 1), fewest))

    def step(self, now: Situation) -> Step:
        """Sample every target; then rank users in random order, as far as the budget goes."""
        assert self.sampled is not None
        if (now.scored < self.sampled).any():
            return Step(np.maximum(now.scored, self.sampled), now.notes)
        if not now.notes.turn.any():
            now = replace(now, notes=self._draw(now))
        k = self.k or int(now.others.max()) + 1
        goal, _ = towards_the_kth(now, k)
        if now.allowed is not None:
            return next_in_turn(now, goal)
        turn = np.abs(now.notes.turn)
        return Step(np.where(turn > 0, goal, now.scored), replace(now.notes, turn=turn))

    def _draw(self, now: Situation) -> Notes:
        users = len(now.user_order)
        share = self.share or (_USUAL_SHARE if now.allowed is None else 1.0)
        turn = np.zeros(users, dtype=np.int64)
        drawn = now.user_order[: max(round(share * users), min(users, _FEWEST))]
        turn[drawn] = -1 - np.arange(len(drawn))
        still_open = self._is_open(now.beaten, now.scored, now.others)
        return replace(
            now.notes,
            before=now.beaten.copy(),
            stratum=np.ones_like(now.notes.stratum),
            turn=turn[now.users],
            reserved=np.where(still_open, now.others - now.scored, 0),
        )

    def _is_open(self, beaten: IntArray, scored: IntArray, others: IntArray) -> BoolArray:
        return (scored < others) & (beaten < (self.k or np.iinfo(np.int64).max))

    def certified(
        self, beaten: IntArray, met: IntArray, others: IntArray, notes: Notes
    ) -> BoolArray:
        return (notes.turn > 0) & ~self._is_open(beaten, met, others)
