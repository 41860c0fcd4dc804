"""Designs on targets with known full ranks: what beats them is drawn, and nothing is scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, IntArray, Seed, as_rng, check_real
from unsample.designs._designs import Design
from unsample.designs._findings import DesignNotes, Findings, Situation
from unsample.errors import DesignError, RankError
from unsample.metrics import Metric
from unsample.sampling import LARGEST_URN, as_better


def simulated(
    design: Design,
    ranks: npt.ArrayLike,
    items: npt.ArrayLike,
    rng: Seed,
    *,
    metrics: Sequence[Metric],
    budget: int | None = None,
    odds: float = 1.0,
    order: IntArray | None = None,
    positions: IntArray | None = None,
) -> Findings:
    """Return what `Design.simulate` returns.

    Parameters
    ----------
    order
        The order in which users are drawn; by default it is random.
    positions
        A row for each target: where the first K items that beat it stand in the order of a guide,
        from 1. Where fewer than K items beat it, the rest is the largest integer. By default the
        positions are drawn by the ``odds``.
    """
    better, others = as_better(ranks, items)
    size = len(better)
    if not size:
        raise RankError("ranks must hold at least one rank, got none")
    if others.max() >= LARGEST_URN:
        raise DesignError(f"items must be at most {LARGEST_URN:,} to simulate, got more")
    rng = as_rng(rng)
    odds = check_real("odds", odds, low=0.0, open_low=True)
    order = rng.permutation(size) if order is None else order
    in_full = design.in_full(np.arange(size), order)
    fitted = design.fit(metrics, others, budget=budget, in_full=in_full)
    k = getattr(fitted.design, "k", None)
    if positions is None and k is not None and odds != 1.0:
        positions = _draw_positions(better, others, k=k, odds=odds, rng=rng)
    source = _Source(
        better,
        others,
        with_replacement=fitted.design.with_replacement,
        in_full=in_full,
        positions=positions,
        rng=rng,
    )
    now = Situation(
        scored=np.zeros_like(others),
        beaten=np.zeros_like(others),
        others=others,
        allowed=fitted.allowed,
        users=np.arange(size),
        user_order=order,
        notes=DesignNotes.empty(size),
    )
    while True:
        step = fitted.design.step(now)
        rows = np.flatnonzero(step.goal > now.scored)
        if not len(rows):
            break
        beaten = source.beaten_at(step.goal, now, rows=rows)
        scored = now.scored.copy()
        scored[rows] = step.goal[rows]
        now = replace(now, scored=scored, beaten=beaten, notes=step.notes)
    return fitted.design.findings(
        lowest=1 + now.beaten,
        full=1 + better,
        met=now.scored,
        others=others,
        scored=size + fitted.checked + int(now.scored.sum()),
        notes=step.notes,
    )


@dataclass(frozen=True, eq=False)
class _Source:
    """What draws how many of a target's next items beat it."""

    #: How many items beat each target, and how many items there are beside it.
    better: IntArray
    others: IntArray
    with_replacement: bool
    in_full: BoolArray | None
    #: As in `simulated`.
    positions: IntArray | None
    rng: np.random.Generator

    def beaten_at(self, goal: IntArray, now: Situation, *, rows: IntArray) -> IntArray:
        """Return how many items beat each target when some of them have reached the goal."""
        beaten = now.beaten.copy()
        better = self.better[rows]
        count = goal[rows] - now.scored[rows]
        if self.positions is not None:
            beaten[rows] = (self.positions[rows] <= goal[rows][:, None]).sum(axis=1)
        elif self.with_replacement:
            beaten[rows] += self.rng.binomial(count, better / self.others[rows])
            if self.in_full is not None:
                beaten = np.where(self.in_full, self.better, beaten)
        else:
            not_met = better - beaten[rows]
            rest = self.others[rows] - now.scored[rows] - not_met
            beaten[rows] += self.rng.hypergeometric(not_met, rest, nsample=count)
        return beaten


def _draw_positions(
    better: IntArray, others: IntArray, *, k: int, odds: float, rng: np.random.Generator
) -> IntArray:
    """Draw the positions of the first ``k`` items that beat each target under a guide.

    Every item has a random arrival time: exponential with rate ``odds`` if it beats the target, and
    with rate 1 if not. So these are the odds that the next item beats the target.

    Two items beat the first target, and a guide with large odds finds them at once. Nothing beats
    the second target:

    >>> rng = np.random.default_rng(0)
    >>> positions = _draw_positions(np.array([2, 0]), np.array([9, 9]), k=3, odds=1e9, rng=rng)
    >>> np.where(positions > 9, -1, positions)
    array([[ 1,  2, -1],
           [-1, -1, -1]])
    """
    positions = np.full((len(better), k), np.iinfo(np.int64).max)
    before = np.zeros(len(better), dtype=np.int64)
    slower = others - better
    for number in range(min(k, int(better.max(initial=0)))):
        left = np.maximum(better - number, 0)
        step = rng.exponential(size=len(better)) / np.maximum(odds * left, 1e-300)
        # Each of the other items arrives in this time with probability 1 - exp(-step).
        before = before + rng.binomial(slower - before, -np.expm1(-np.minimum(step, 700.0)))
        positions[:, number] = np.where(left > 0, before + number + 1, positions[:, number])
    return positions
