"""What the data say about P(R): limits of means over targets of functions of their sampled ranks.

Where every rank is known, the functions are indicators of growing ranges of ranks, and their means
are known. A paper that prints HR@10 and NDCG@10 gives the means of two functions, each up to
rounding. Either way the means of the same functions under P(R) are limited, and the limits are
those of a mean of so many targets.

Where samples grew until enough items beat the target, how many items it was compared with depends
on its rank, so the sample sizes are not samples of all targets. What can be read off is how many
targets survive each stage, that is, have been beaten fewer than ``stop`` times by its end. Some are
left behind on the way, by a draw or at a cap; that has nothing to do with their rank, given that
they survived so far. So the share that survives is the product over the stages of the shares of
those looked at (Kaplan and Meier 1958). Survival to a stage depends on the rank as it does under a
fixed sample of that size. Without replacement, those that met all their candidates have known
ranks; they split what survived.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.errors import DesignError
from unsample.estimators import Observed
from unsample.evidence import RankCounts, group_catalogues
from unsample.law import Law, RankGrid

#: Ends of neighbouring groups of sampled ranks differ by this factor at least: finer groups
#: differ by less than their noise and only loosen a region that must hold for all of them.
_GROUP_RATIO = 1.5
#: Bins of the programs' grid: finer ones move intervals by less than one per cent of their width.
_BIN_RATIO = 0.12
_SINGLE_RANKS = 8
_BLUR = 0.8
#: Limits from more targets are as fine as linear programs are solved, and as scipy can find them.
_MOST_TARGETS = 1e10


@dataclass(frozen=True, eq=False)
class MeanLimits:
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
    ) -> MeanLimits:
        """Return the limits of known shares: all cumulated shares are known."""
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
        exact = clopper_pearson(low, high, targets, part)
        bounded = hoeffding(low, high, targets, part)
        lower, upper = (
            least + span * np.where(indicator, *ends) for ends in zip(exact, bounded, strict=True)
        )
        return lower, upper

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


def gather(observed: Observed, cutoffs: list[int]) -> tuple[MeanLimits, ...]:
    """Return the evidence of each sample size in the counts, with groups that suit the cutoffs."""
    counts, found = observed.counts, []
    if counts.stop is not None:
        return (_gather_staged(counts, observed.grid, counts.stop),)
    for sampled in observed.sample_sizes:
        low, high = observed.ranges(sampled)
        ends = _group_ends(
            _places_to_end(low, high, sampled + 1),
            # The sampled ranks at which targets at the cutoffs are expected.
            [1 + ((k - 1) * sampled) // (counts.largest_catalogue - 1) for k in cutoffs],
        )
        starts, lasts = np.concatenate([[1], ends + 1]), np.append(ends, sampled + 1)
        pool = observed.pool(sampled, starts, lasts, observed.grid)
        (shares,) = pool.shares
        weight = shares.sum()
        if weight > 0:
            targets = float(observed.targets * weight)
            found.append(MeanLimits.of_shares(sampled, ends, shares / weight, pool.matrix, targets))
    return tuple(found)


def _places_to_end(low: IntArray, high: IntArray, n: int) -> IntArray:
    """Return the ranks where a group may end: never inside the range of ranks of one cell."""
    ranges = low < high
    allowed = np.ones(n + 1, dtype=bool)
    allowed[[0, n]] = False
    for first, last in np.unique(np.stack([low[ranges], high[ranges]]), axis=1).T:
        allowed[first:last] = False
    return np.flatnonzero(allowed)


def _group_ends(allowed: IntArray, wanted: list[int]) -> IntArray:
    """Return ends in growing steps, and all that are wanted and allowed."""
    ends: list[int] = []
    last = 0
    for end in allowed.tolist():
        if end >= max(last + 1, round(last * _GROUP_RATIO)):
            ends.append(end)
            last = end
    return np.union1d(ends, np.intersect1d(allowed, wanted)).astype(np.int64)


def clopper_pearson(
    low: FloatArray, high: FloatArray, targets: float | FloatArray, part: float
) -> tuple[FloatArray, FloatArray]:
    """Return limits of a probability whose observed share is in ``low..high``."""
    from scipy.special import betaincinv

    below, above = low * targets, (1.0 - high) * targets
    least = betaincinv(np.maximum(below, 1e-9), targets - below + 1.0, part)
    most = betaincinv(targets - above + 1.0, np.maximum(above, 1e-9), 1.0 - part)
    return np.where(below > 1e-9, least, 0.0), np.where(above > 1e-9, most, 1.0)


def hoeffding(
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


def _gather_staged(counts: RankCounts, grid: RankGrid, stop: int) -> MeanLimits:
    """Return the evidence of counts whose samples grew until ``stop`` items beat the target."""
    if (counts.low < counts.high).any():
        raise DesignError("stop needs single sampled ranks, got ranges of ranks")
    # Survival to a stage is that of any sample of its size, known ranks or not.
    alike = np.ones_like(counts.sampled)
    catalogues = group_catalogues(replace(counts, sampled=alike, low=alike, high=alike))
    known = counts.known
    stopped = ~known & (counts.low > stop)
    survivors, variance, targets = 1.0, 0.0, [counts.effective]
    before = np.ones(len(grid))
    #: The share of targets in each group, and P(group | bin); those that went furthest come first.
    groups: list[tuple[float, FloatArray]] = []
    for size in np.unique(counts.sampled[~known]).tolist():
        at_risk = np.where(known, counts.items - 1 > size, counts.sampled >= size)
        looked_at = float(counts.weight[at_risk].sum())
        here = stopped & (counts.sampled == size)
        hazard = float(counts.weight[here].sum()) / looked_at
        after = before * 0.0 if hazard >= 1.0 else _chance(1, stop, size, catalogues, grid)
        split = [(1.0, before - after)]
        if not groups and here.any():
            # All targets went through the first stage: who stops there is known by rank.
            ends = _growing(stop, size + 1)
            starts = [stop + 1, *(ends[:-1] + 1)]
            rows = [
                _chance(low, high, size, catalogues, grid)
                for low, high in zip(starts, ends, strict=True)
            ]
            # Ranks beyond a catalogue's end have no law of their own: they stop with the last.
            rows[-1] = rows[-1] + np.maximum(before - after - np.sum(rows, axis=0), 0.0)
            split = list(zip(_shares(counts, here, ends), rows, strict=True))
        groups = [(survivors * hazard * share, row) for share, row in split] + groups
        survivors *= 1.0 - hazard
        before = after
        if 0.0 < hazard < 1.0:
            share = looked_at / float(counts.weight.sum())
            variance += hazard / ((1.0 - hazard) * counts.effective * share)
            # As many targets, all looked at, would leave as much chance in the survivors.
            targets.append((1.0 - survivors) / (survivors * variance))
    split = [(1.0, before)]
    complete = known & (counts.weight > 0)
    if complete.any():
        # Those that survive every stage are split by their known ranks.
        ends = _growing(0, counts.largest_catalogue)
        bins = np.searchsorted(ends, grid.high)
        split = [
            (share, before * (bins == number))
            for number, share in enumerate(_shares(counts, complete, ends))
        ]
    groups = [(survivors * share, row) for share, row in split] + groups
    masses, expected = zip(*groups, strict=True)
    ends = np.arange(1, len(groups))
    return MeanLimits.of_shares(0, ends, np.array(masses), np.stack(expected), min(targets))


def _chance(low: int, high: int, size: int, catalogues: RankCounts, grid: RankGrid) -> FloatArray:
    """Return P(rank among so many sampled items in ``low..high`` | bin), mean over catalogues."""
    wide = (catalogues.items > size + 1) & (catalogues.weight > 0)
    if not wide.any():
        wide = catalogues.items == catalogues.items[catalogues.weight > 0].max()
    laws = [Law(n, min(size, n - 1), catalogues.replacement) for n in catalogues.items[wide]]
    rows = [law.matrix(np.array([low]), np.array([high]), grid)[0] for law in laws]
    return np.asarray(np.average(rows, axis=0, weights=catalogues.weight[wide]))


def _shares(counts: RankCounts, chosen: BoolArray, ends: IntArray) -> list[float]:
    """Return the shares of the chosen cells' weight in the ranges that end at ``ends``."""
    weight, group = counts.weight[chosen], np.searchsorted(ends, counts.low[chosen])
    return list(np.bincount(group, weight, minlength=len(ends)) / weight.sum())


def _growing(last: int, n: int) -> IntArray:
    """Return ends of ranges of the ranks after ``last``: growing steps up to ``n``."""
    ends = [last + 1]
    while ends[-1] < n:
        ends.append(min(n, max(ends[-1] + 1, round(ends[-1] * _GROUP_RATIO))))
    return np.array(ends, dtype=np.int64)
