"""The evidence of samples that grew until enough items beat the target.

How many items a target was compared with then depends on its rank, so the sample sizes are not
samples of all targets. What can be read off is how many targets survive each stage, that is, have
been beaten fewer than ``stop`` times by its end. Some are left behind on the way, by lot or at a
cap; that has nothing to do with their rank, given that they survived so far. So the share that
survives is the product over the stages of the shares of those looked at (Kaplan and Meier 1958).
Survival to a stage depends on the rank as it does under a fixed sample of that size.

Without replacement, those that met all their candidates have known ranks; they split what survived.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.confidence._evidence import Evidence, catalogue_sizes
from unsample.errors import DesignError
from unsample.evidence import RankCounts
from unsample.law import Law, RankGrid

__all__ = ["gather_staged"]

#: Ends of neighbouring groups differ by this factor at least.
_GROUP_RATIO = 1.5


@dataclass(frozen=True, eq=False)
class _Stages:
    """The counts seen as stages: their sizes, who is known to the end, and who stopped."""

    counts: RankCounts
    stop: int

    @cached_property
    def known(self) -> BoolArray:
        """Return which cells hold targets that met all their candidates."""
        if self.counts.replacement:
            return np.zeros(len(self.counts), dtype=bool)
        return np.asarray(self.counts.sampled == self.counts.items - 1)

    @cached_property
    def sizes(self) -> IntArray:
        """Return the sizes at which targets stopped or were left behind."""
        return np.unique(self.counts.sampled[~self.known])

    @cached_property
    def stopped(self) -> BoolArray:
        """Return which cells hold targets that were beaten often enough."""
        return np.asarray(~self.known & (self.counts.low > self.stop))

    def survival(self, size: int, grid: RankGrid) -> FloatArray:
        """Return P(beaten fewer than ``stop`` times by so many items | bin)."""
        return self.sampled_rank(size, 1, self.stop, grid)

    def sampled_rank(self, size: int, low: int, high: int, grid: RankGrid) -> FloatArray:
        """Return P(sampled rank in ``low..high`` | bin), averaged over the catalogues."""
        sizes, weights = self.catalogues
        wide = sizes > size + 1
        if not wide.any():
            wide = sizes == sizes.max()
        result = np.zeros(len(grid))
        for items, weight in zip(sizes[wide].tolist(), weights[wide], strict=True):
            design = Law(items, min(size, items - 1), self.counts.replacement)
            one = design.matrix(np.array([low]), np.array([high]), grid)[0]
            result += weight / weights[wide].sum() * one
        return result

    @cached_property
    def catalogues(self) -> tuple[IntArray, FloatArray]:
        """Return the sizes of the catalogues, nearly equal ones as one, and their weights."""
        # Survival to a stage is that of any sample of its size, so nearly equal sizes may merge.
        return catalogue_sizes(self.counts.items, self.counts.weight, merge=True)


def gather_staged(counts: RankCounts, grid: RankGrid, stop: int) -> tuple[Evidence, ...]:
    """Return the evidence of counts whose samples grew until ``stop`` items beat the target."""
    stages = _Stages(counts, stop)
    if (counts.low < counts.high).any():
        raise DesignError("stop needs single sampled ranks, got ranges of ranks")
    masses: list[float] = []
    expected: list[FloatArray] = []
    survivors, variance, targets = 1.0, 0.0, counts.effective
    before = np.ones(len(grid))
    effective = [targets]
    for number, size in enumerate(stages.sizes.tolist()):
        hazard, at_risk = _hazard(stages, size)
        after = before * 0.0 if hazard >= 1.0 else stages.survival(size, grid)
        if number == 0:
            split, rows = _first_stage(stages, size, grid, before - after)
        else:
            split, rows = [1.0], [before - after]
        masses = [survivors * hazard * share for share in split] + masses
        expected = rows + expected
        survivors *= 1.0 - hazard
        before = after
        if 0.0 < hazard < 1.0:
            looked_at = targets * at_risk
            variance += hazard / ((1.0 - hazard) * looked_at)
            # As many targets, all looked at, would leave as much chance in the survivors.
            effective.append((1.0 - survivors) / (survivors * variance))
    split, rows = _to_the_end(stages, grid, before)
    masses = [survivors * share for share in split] + masses
    expected = rows + expected
    return (
        Evidence.of_shares(
            0,
            np.arange(1, len(masses)),
            np.array(masses),
            np.stack(expected),
            min(effective),
        ),
    )


def _hazard(stages: _Stages, size: int) -> tuple[float, float]:
    """Return the share of those looked at that stop at this size, and how many are looked at."""
    counts = stages.counts
    looked_at = np.where(stages.known, counts.items - 1 > size, counts.sampled >= size)
    at_risk = counts.weight[looked_at].sum()
    stops = counts.weight[stages.stopped & (counts.sampled == size)].sum()
    return float(stops / at_risk), float(at_risk / counts.weight.sum())


def _first_stage(
    stages: _Stages, size: int, grid: RankGrid, stopped: FloatArray
) -> tuple[list[float], list[FloatArray]]:
    """Split those that stop at the first stage, which all targets went through, by their rank."""
    counts = stages.counts
    here = stages.stopped & (counts.sampled == size)
    if not here.any():
        return [1.0], [stopped]
    ends = _growing(stages.stop, size + 1)
    weight = counts.weight[here]
    group = np.searchsorted(ends, counts.low[here])
    shares = np.bincount(group, weight, minlength=len(ends)) / weight.sum()
    starts = np.concatenate([[stages.stop + 1], ends[:-1] + 1])
    rows = [
        stages.sampled_rank(size, int(low), int(high), grid)
        for low, high in zip(starts, ends, strict=True)
    ]
    # Ranks beyond a catalogue's end have no law of their own: they stop with the last.
    rows[-1] = rows[-1] + np.maximum(stopped - np.sum(rows, axis=0), 0.0)
    return shares.tolist(), rows


def _to_the_end(
    stages: _Stages, grid: RankGrid, before: FloatArray
) -> tuple[list[float], list[FloatArray]]:
    """Split those that survive every stage by their known ranks, where they have them."""
    counts = stages.counts
    known = stages.known & (counts.weight > 0)
    if not known.any():
        return [1.0], [before]
    ends = _growing(0, counts.largest_catalogue)
    weight = counts.weight[known]
    group = np.searchsorted(ends, counts.low[known])
    shares = np.bincount(group, weight, minlength=len(ends)) / weight.sum()
    bins = np.searchsorted(ends, grid.high)
    rows = [before * (bins == number) for number in range(len(ends))]
    return shares.tolist(), rows


def _growing(last: int, n: int) -> IntArray:
    """Return ends of ranges of the ranks after ``last``: growing steps up to ``n``."""
    ends = [last + 1]
    while ends[-1] < n:
        ends.append(min(n, max(ends[-1] + 1, round(ends[-1] * _GROUP_RATIO))))
    return np.array(ends, dtype=np.int64)
