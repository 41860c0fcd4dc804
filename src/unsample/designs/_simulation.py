"""Designs on targets with known full ranks: what beats them is drawn, and nothing is scored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, Seed, as_rng, check_real
from unsample.designs._designs import Design
from unsample.designs._findings import Findings, Notes, Situation
from unsample.errors import DesignError, RankError
from unsample.law import LARGEST_URN, as_better
from unsample.metrics import Metric


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
    places: IntArray | None = None,
) -> Findings:
    """Return what `Design.simulate` returns.

    ``order`` is that in which users are drawn; by default it is random. ``places`` are those of
    the first K items that beat each target in the order of a guide, from 1: a row for each target,
    and the largest integer where fewer than K items beat it. By default the ``odds`` tell.
    """
    better, others = as_better(ranks, items)
    size = len(better)
    if not size:
        raise RankError("ranks must hold at least one rank, got none")
    if others.max() >= LARGEST_URN:
        raise DesignError(f"items must be at most {LARGEST_URN:,} to simulate, got more")
    fitted, allowed, checked = design.fit(metrics, others, budget)
    rng, odds = as_rng(rng), check_real("odds", odds, low=0.0, open_low=True)
    order = rng.permutation(size) if order is None else order
    k = getattr(fitted, "k", None)
    if places is None and k is not None and odds != 1.0:
        places = _draw_places(better, others, k, odds, rng)
    scored, beaten = np.zeros_like(others), np.zeros_like(others)
    now = Situation(scored, beaten, others, allowed, np.arange(size), order, Notes.empty(size))
    while True:
        goal = fitted.step(now)
        rows = np.flatnonzero(goal > scored)
        if not len(rows):
            break
        goal, left = goal[rows], better[rows] - beaten[rows]
        count = goal - scored[rows]
        if places is not None:
            beaten[rows] = (places[rows] <= goal[:, None]).sum(axis=1)
        elif fitted.with_replacement:
            beaten[rows] += rng.binomial(count, better[rows] / others[rows])
        else:
            rest = others[rows] - scored[rows] - left
            beaten[rows] += rng.hypergeometric(left, rest, count)
        scored[rows] = goal
    total = size + checked + int(scored.sum())
    return fitted.findings(1 + beaten, 1 + better, scored, others, scored=total, notes=now.notes)


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
