"""What the data say about P(R): shares of targets in groups of sampled ranks, and their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.counts import RankCounts
from unsample.grid import RankGrid
from unsample.sampling import Design

__all__ = ["Evidence", "evidence_grid", "gather"]

#: Ends of neighbouring groups of sampled ranks differ by this factor at least: finer groups
#: differ by less than their noise and only loosen a region that must hold for all of them.
_GROUP_RATIO = 1.5
#: Bins of the programs' grid: finer ones move intervals by less than one per cent of their width.
_BIN_RATIO = 0.12
_SINGLE_RANKS = 8
_BLUR = 0.8


@dataclass(frozen=True, eq=False)
class Evidence:
    """Targets of one sample size, in groups of sampled ranks ``..ends[0], ..ends[1], .., ..n``."""

    sampled: int
    ends: IntArray
    #: The share of targets in each group.
    observed: FloatArray
    #: P(group | bin): one row for each group, one column for each bin of the grid.
    expected: FloatArray
    #: How many equally weighted targets the shares stand for.
    targets: float

    def region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return limits that hold all cumulated expected shares at once, with error ``alpha``.

        They are Clopper-Pearson limits, each with an equal part of the error. So the region holds
        for any number of targets; and for a fixed set of users, whose counts vary less than
        binomial ones, it holds as well.
        """
        from scipy.special import betaincinv

        below = np.cumsum(self.observed)[:-1].clip(0.0, 1.0) * self.targets
        above = self.targets - below
        part = alpha / (2 * max(len(self.ends), 1))
        low = np.where(below > 1e-9, betaincinv(np.maximum(below, 1e-9), above + 1.0, part), 0.0)
        high = np.where(
            above > 1e-9, betaincinv(below + 1.0, np.maximum(above, 1e-9), 1.0 - part), 1.0
        )
        return low, high

    @property
    def cumulated(self) -> FloatArray:
        """Return P(sampled rank <= end | bin), one row for each end."""
        return np.asarray(np.cumsum(self.expected, axis=0)[:-1])

    def locate(self, ranks: IntArray) -> IntArray:
        """Return the group that holds each sampled rank."""
        return np.searchsorted(self.ends, ranks)


def evidence_grid(counts: RankCounts, cutoffs: list[int]) -> RankGrid:
    """Return the grid of global ranks that the programs are solved on."""
    items = counts.largest_catalogue
    # Targets that come last under every sample are a rank of their own as well.
    from_the_end = [items - 2**power for power in range(items.bit_length() - 1)]
    return RankGrid.build(
        items,
        sampled=counts.largest_sample,
        cutoffs=cutoffs + from_the_end,
        ratio=_BIN_RATIO,
        single=_SINGLE_RANKS,
        blur=_BLUR,
    )


def gather(counts: RankCounts, grid: RankGrid, cutoffs: list[int]) -> tuple[Evidence, ...]:
    """Return the evidence of each sample size in the counts, with groups that suit the cutoffs."""
    total = counts.weight.sum()
    found = []
    for sampled in np.unique(counts.sampled):
        chosen = counts.sampled == sampled
        weight = counts.weight[chosen].sum()
        if weight <= 0:
            continue
        ends = _group_ends(
            _places_to_end(counts.low[chosen], counts.high[chosen], int(sampled) + 1),
            _sampled_cutoffs(cutoffs, int(sampled), counts.largest_catalogue),
        )
        group = np.searchsorted(ends, counts.high[chosen])
        found.append(
            Evidence(
                int(sampled),
                ends,
                np.bincount(group, counts.weight[chosen], minlength=len(ends) + 1) / weight,
                _expected(counts, chosen, ends, grid),
                float(counts.effective * weight / total),
            )
        )
    return tuple(found)


def _places_to_end(low: IntArray, high: IntArray, n: int) -> IntArray:
    """Return the ranks where a group may end: never inside the range of ranks of one cell."""
    ranges = low < high
    allowed = np.ones(n + 1, dtype=bool)
    allowed[[0, n]] = False
    for first, last in np.unique(np.stack([low[ranges], high[ranges]]), axis=1).T:
        allowed[first:last] = False
    return np.flatnonzero(allowed)


def _sampled_cutoffs(cutoffs: list[int], sampled: int, items: int) -> IntArray:
    """Return the sampled ranks at which targets at the cutoffs are expected."""
    return np.unique([1 + ((k - 1) * sampled) // (items - 1) for k in cutoffs]).astype(np.int64)


def _group_ends(allowed: IntArray, wanted: IntArray) -> IntArray:
    """Return ends in growing steps, and all that are wanted and allowed."""
    ends: list[int] = []
    last = 0
    for end in allowed.tolist():
        if end >= max(last + 1, round(last * _GROUP_RATIO)):
            ends.append(end)
            last = end
    return np.union1d(ends, np.intersect1d(allowed, wanted)).astype(np.int64)


def _expected(counts: RankCounts, chosen: BoolArray, ends: IntArray, grid: RankGrid) -> FloatArray:
    """Return P(group | bin), averaged over the catalogues of the targets."""
    sampled = int(counts.sampled[chosen][0])
    low = np.concatenate([[1], ends + 1])
    high = np.append(ends, sampled + 1)
    sizes, where = np.unique(counts.items[chosen], return_inverse=True)
    parts = np.bincount(where.reshape(-1), counts.weight[chosen]) / counts.weight[chosen].sum()
    matrix = np.zeros((len(low), len(grid)))
    for items, part in zip(sizes.tolist(), parts, strict=True):
        one = Design(items, sampled, counts.replacement).matrix(low, high, grid)
        # Ranks beyond a user's own catalogue act as its last rank.
        reach = (np.minimum(grid.high, items) - grid.low + 1).clip(min=0)
        one[-1] += 1.0 - reach / grid.width
        matrix += part * one
    return matrix
