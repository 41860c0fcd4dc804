"""Designs on targets with known full ranks: what beats them is drawn, and nothing is scored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng, check_real
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

    ``order`` is the order in which users are drawn; by default it is random. ``positions`` has a
    row for each target: where the first K items that beat it stand in the order of a guide, from 1.
    Where fewer than K items beat it, the rest is the largest integer. By default the positions are
    drawn by the ``odds``.
    """
    better, others = as_better(ranks, items)
    size = len(better)
    if not size:
        raise RankError("ranks must hold at least one rank, got none")
    if others.max() >= LARGEST_URN:
        raise DesignError(f"items must be at most {LARGEST_URN:,} to simulate, got more")
    rng, odds = as_rng(rng), check_real("odds", odds, low=0.0, open_low=True)
    order = rng.permutation(size) if order is None else order
    in_full = design.in_full(np.arange(size), order)
    fitted, allowed, checked = design.fit(metrics, others, budget, in_full=in_full)
    k = getattr(fitted, "k", None)
    if positions is None and k is not None and odds != 1.0:
        positions = _draw_positions(better, others, k, odds, rng)
    scored, beaten = np.zeros_like(others), np.zeros_like(others)
    now = Situation(
        scored, beaten, others, allowed, np.arange(size), order, DesignNotes.empty(size)
    )
    while True:
        goal = fitted.step(now)
        rows = np.flatnonzero(goal > scored)
        if not len(rows):
            break
        goal, left = goal[rows], better[rows] - beaten[rows]
        count = goal - scored[rows]
        if positions is not None:
            beaten[rows] = (positions[rows] <= goal[:, None]).sum(axis=1)
        elif fitted.with_replacement:
            beaten[rows] += rng.binomial(count, better[rows] / others[rows])
            if in_full is not None:
                beaten = np.where(in_full, better, beaten)
        else:
            rest = others[rows] - scored[rows] - left
            beaten[rows] += rng.hypergeometric(left, rest, count)
        scored[rows] = goal
    total = size + checked + int(scored.sum())
    return fitted.findings(1 + beaten, 1 + better, scored, others, scored=total, notes=now.notes)


def _draw_positions(
    better: IntArray, others: IntArray, k: int, odds: float, rng: np.random.Generator
) -> IntArray:
    """Draw the positions of the first ``k`` items that beat each target under a guide.

    Every item has a random arrival time: exponential with rate ``odds`` if it beats the target, and
    with rate 1 if not. So these are the odds that the next item beats the target.
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
