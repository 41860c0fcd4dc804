"""What the data say about P(R): means over targets of functions of their sampled ranks.

Where every rank is known, the functions are indicators of growing ranges of ranks, and their means
are known. A paper that prints HR@10 and NDCG@10 gives the means of two functions, each up to
rounding. Either way the means of the same functions under P(R) are limited, and the limits are
those of a mean of so many targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.evidence import RankCounts
from unsample.law import Law, RankGrid

__all__ = ["Evidence", "catalogue_sizes", "evidence_grid", "gather"]

#: Ends of neighbouring groups of sampled ranks differ by this factor at least: finer groups
#: differ by less than their noise and only loosen a region that must hold for all of them.
_GROUP_RATIO = 1.5
#: Bins of the programs' grid: finer ones move intervals by less than one per cent of their width.
_BIN_RATIO = 0.12
_SINGLE_RANKS = 8
_BLUR = 0.8
#: Beyond so many sizes of catalogues, those within this factor of each other are one.
_MANY_SIZES = 32
_SAME_SIZE = 0.04
#: Limits from more targets are as fine as linear programs are solved, and as scipy can find them.
_MOST_TARGETS = 1e10


@dataclass(frozen=True, eq=False)
class Evidence:
    """Targets of one sample size, in groups of sampled ranks ``..ends[0], ..ends[1], .., ..n``."""

    sampled: int
    ends: IntArray
    #: The share of targets in each group; a likely one where only the means are known.
    observed: FloatArray
    #: P(group | bin): one row for each group, one column for each bin of the grid.
    expected: FloatArray
    #: How many equally weighted targets the shares stand for.
    targets: float
    #: Functions of the group, one row each, whose means over these targets are in ``low..high``.
    features: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of_shares(
        cls,
        sampled: int,
        ends: IntArray,
        observed: FloatArray,
        expected: FloatArray,
        targets: float,
    ) -> Evidence:
        """Return the evidence of known shares: all cumulated shares are known."""
        below = np.tri(len(ends), len(ends) + 1)
        means = (below @ observed).clip(0.0, 1.0)
        return cls(sampled, ends, observed, expected, targets, below, means, means)

    def region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return limits that hold all expected features at once, with error ``alpha``.

        Each feature takes an equal part of the error. For indicators they are Clopper-Pearson
        limits, for other functions those of Hoeffding, which hold for any bounded variable. So
        the region holds for any number of targets; and for a fixed set of users, whose counts vary
        less than binomial ones, it holds as well.
        """
        part = alpha / (2 * max(len(self.features), 1))
        targets = min(self.targets, _MOST_TARGETS)
        least, most = self.features.min(axis=1), self.features.max(axis=1)
        span = np.maximum(most - least, 1e-300)
        low = ((self.low - least) / span).clip(0.0, 1.0)
        high = ((self.high - least) / span).clip(0.0, 1.0)
        indicator = np.isin(self.features, (0.0, 1.0)).all(axis=1)
        exact = _clopper_pearson(low, high, targets, part)
        bounded = _hoeffding(low, high, targets, part)
        lower, upper = (
            least + span * np.where(indicator, one, other)
            for one, other in zip(exact, bounded, strict=True)
        )
        return lower, upper

    @property
    def expected_features(self) -> FloatArray:
        """Return the mean of each feature given the bin: one row each."""
        return np.asarray(self.features @ self.expected)

    def allowance(self, multipliers: FloatArray) -> float:
        """Return how far ``multipliers @ features`` of these targets may exceed that observed.

        It is zero where the means are known, and what rounding hides where they are not.
        """
        known = self.features @ self.observed
        above, below = np.maximum(self.high - known, 0.0), np.maximum(known - self.low, 0.0)
        return float(np.where(multipliers > 0, above, below) @ np.abs(multipliers))

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
            Evidence.of_shares(
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
    items, weight = counts.items[chosen], counts.weight[chosen]
    # Without replacement the end of a catalogue matters: sizes are left as they are.
    sizes, parts = catalogue_sizes(items, weight, merge=counts.replacement)
    matrix = np.zeros((len(low), len(grid)))
    for size, part in zip(sizes.tolist(), parts, strict=True):
        one = Law(size, sampled, counts.replacement).matrix(low, high, grid)
        # Ranks beyond a user's own catalogue act as its last rank.
        reach = (np.minimum(grid.high, size) - grid.low + 1).clip(min=0)
        one[-1] += 1.0 - reach / grid.width
        matrix += part * one
    return matrix


def catalogue_sizes(
    items: IntArray, weight: FloatArray, *, merge: bool
) -> tuple[IntArray, FloatArray]:
    """Return the sizes of catalogues and their shares; of many, nearly equal ones may be one."""
    labels = items
    if merge and len(np.unique(items)) > _MANY_SIZES:
        labels = np.round(np.log(items) / _SAME_SIZE).astype(np.int64)
    _, where = np.unique(labels, return_inverse=True)
    where = where.reshape(-1)
    weights = np.bincount(where, weight)
    means = np.bincount(where, weight * items) / np.maximum(weights, 1e-300)
    kept = weights > 0
    return np.rint(means[kept]).astype(np.int64), weights[kept] / weight.sum()


def _clopper_pearson(
    low: FloatArray, high: FloatArray, targets: float, part: float
) -> tuple[FloatArray, FloatArray]:
    """Return limits of a probability whose observed share is in ``low..high``."""
    from scipy.special import betaincinv

    below, above = low * targets, (1.0 - high) * targets
    least = betaincinv(np.maximum(below, 1e-9), targets - below + 1.0, part)
    most = betaincinv(targets - above + 1.0, np.maximum(above, 1e-9), 1.0 - part)
    return np.where(below > 1e-9, least, 0.0), np.where(above > 1e-9, most, 1.0)


def _hoeffding(
    low: FloatArray, high: FloatArray, targets: float, part: float
) -> tuple[FloatArray, FloatArray]:
    """Return limits of the mean of variables in 0..1 whose observed mean is in ``low..high``.

    The mean of M such variables exceeds x with probability at most exp(-M KL(x, mean)), so the
    limits are the means at which this is ``part``; bisection finds them.
    """
    from scipy.special import rel_entr

    budget = -np.log(part) / targets

    def furthest(start: FloatArray, end: float) -> FloatArray:
        inside, outside = start.copy(), np.full(len(start), end)
        # Halvings of an interval of length one: enough for all digits that a limit needs.
        for _ in range(50):
            middle = (inside + outside) / 2.0
            near = rel_entr(start, middle) + rel_entr(1.0 - start, 1.0 - middle) <= budget
            inside, outside = np.where(near, middle, inside), np.where(near, outside, middle)
        return outside

    return furthest(low, 0.0), furthest(high, 1.0)
