"""Ways to spend scored items: what each costs, and what it shows of a target at rank R."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unsample._checks import IntArray
from unsample.law import Law, RankDistribution

__all__ = ["SampledDesign", "Seen", "adaptive_design", "certified_cost", "fixed_design"]

#: The first stage of an adaptive sample: smaller ones save little.
_START = 20
_GROWTH = 2


@dataclass(frozen=True, eq=False)
class Seen:
    """For each target, how many items were sampled, and its rank among them and itself."""

    sampled: IntArray
    rank: IntArray


@dataclass(frozen=True)
class SampledDesign:
    """Stages of growing samples; a target is done after the first with ``beats`` items above it.

    ``stages`` are total numbers of sampled items, none drawn twice; the last stage ends it for
    every target. A fixed sample has one stage.
    """

    stages: tuple[int, ...]
    beats: int = 1

    @property
    def adaptive(self) -> bool:
        """Return whether targets may be done at different stages."""
        return len(self.stages) > 1

    def expected_cost(self, ranks: RankDistribution) -> float:
        """Return the expected number of items scored for a target, itself included."""
        grid, items = ranks.grid, ranks.items
        middle = (grid.low + grid.high) / 2.0
        cost, before, unfinished = 1.0, 0, np.ones(len(grid))
        for stage in self.stages:
            cost += (stage - before) * float(ranks.mass @ unfinished)
            before = stage
            if stage < self.stages[-1]:
                fewer = np.arange(1, min(self.beats, stage + 1) + 1)
                chances = Law(items, stage, replacement=False).pmf(fewer[:, None], middle)
                unfinished = chances.sum(axis=0)
        return cost

    def see(self, ranks: IntArray, items: int, rng: np.random.Generator) -> Seen:
        """Draw what targets at these global ranks show."""
        better = ranks.ravel() - 1
        above, sampled = np.zeros_like(better), np.zeros_like(better)
        running = np.arange(better.size)
        before = 0
        for stage in self.stages:
            left = better[running] - above[running]
            worse = items - 1 - before - left
            above[running] += rng.hypergeometric(left, worse, stage - before)
            sampled[running] = before = stage
            running = running[above[running] < self.beats]
            if running.size == 0:
                break
        return Seen(sampled.reshape(ranks.shape), above.reshape(ranks.shape) + 1)

    def describe(self, items: int) -> str:
        """Return the setting in words."""
        if not self.adaptive:
            return f"{self.stages[0]:,} items"
        last = self.stages[-1]
        end = "all" if last == items - 1 else f"{last:,}"
        beat = "1 beats" if self.beats == 1 else f"{self.beats} beat"
        return f"{self.stages[0]:,} items, doubled until {beat} the target or {end} are scored"


def fixed_design(cost: float, items: int) -> SampledDesign:
    """Return the fixed sample that scores at most ``cost`` items a target."""
    return SampledDesign((min(max(math.floor(cost) - 1, 1), items - 1),))


def adaptive_design(cost: float, ranks: RankDistribution, k: int) -> SampledDesign:
    """Return an adaptive sample that costs at most ``cost`` in expectation.

    It is worth more to follow targets to the end than to see several items above each: so the
    cap comes first, and only when all items may be scored, more items must beat the target. With
    K of them the metric@K is exact.
    """
    last = ranks.items - 1
    start = min(_START, max(math.floor(cost) - 1, 1), last)

    def affordable(beats: int, cap: int) -> bool:
        return SampledDesign(_stages(start, cap), beats).expected_cost(ranks) <= cost

    if not affordable(1, last):
        return SampledDesign(_stages(start, _largest(start, last, lambda cap: affordable(1, cap))))
    beats = _largest(1, min(k, last) + 1, lambda count: affordable(count, last))
    return SampledDesign(_stages(start, last), beats)


def certified_cost(ranks: RankDistribution, k: int) -> float:
    """Return the expected cost of a target's exact metric@K.

    Items are scored in random order until K of them beat the target, which takes K N/R of them on
    average; a target in the top K needs all.
    """
    grid, items = ranks.grid, ranks.items
    middle = (grid.low + grid.high) / 2.0
    cost = np.where(grid.low <= k, items, np.minimum(1.0 + k * items / middle, items))
    return float(ranks.mass @ cost)


def _stages(start: int, cap: int) -> tuple[int, ...]:
    stages = [start]
    while stages[-1] < cap:
        stages.append(min(stages[-1] * _GROWTH, cap))
    return tuple(stages)


def _largest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the largest number from ``low`` to below ``high`` that holds, by bisection."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
