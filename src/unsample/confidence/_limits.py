"""What the data say about P(R): limits of means over targets of functions of their sampled ranks.

Where every rank is known, the functions are indicators of growing ranges of ranks, and their means
are known. A paper that prints HR@10 and NDCG@10 gives the means of two functions, each up to
rounding. Either way the means of the same functions under P(R) are limited, and the limits are
those of a mean of so many targets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray, check_level
from unsample.estimators import Observed
from unsample.evidence import RankCounts
from unsample.law import Law, RankGrid, RankPoints

#: Ends of neighbouring groups of sampled ranks differ by at least this factor. Finer groups differ
#: by less than their noise, and only widen a region that must hold for all of them.
_GROUP_RATIO = 1.5
#: So many of the first ranks stand alone.
_SINGLE_RANKS = 64
#: With more targets, limits would be finer than what linear programs and scipy can resolve.
_MOST_TARGETS = 1e10


@dataclass(frozen=True, eq=False)
class OverBins:
    """Functions of the rank on each bin: the mean over its ranks, and at the first and the last.

    Inside a bin a function that falls or rises along the ranks stays between its ends.
    """

    mean: FloatArray
    first: FloatArray
    last: FloatArray

    @classmethod
    def build(cls, function: Callable[[RankGrid | RankPoints], FloatArray], grid: RankGrid) -> Self:
        """Return a function that gives its mean over each bin of a grid, or its value at points."""
        return cls(function(grid), function(grid.firsts), function(grid.lasts))

    def apply(self, change: Callable[[FloatArray], FloatArray]) -> OverBins:
        """Return functions made from these."""
        return OverBins(change(self.mean), change(self.first), change(self.last))

    def __neg__(self) -> OverBins:
        return self.apply(np.negative)

    def hull(self, leaning: Leaning) -> tuple[FloatArray, FloatArray]:
        """Return the least and greatest value in each bin, if P(R) may lean to its ends."""
        first = np.where(leaning.to_first, self.first, self.mean)
        last = np.where(leaning.to_last, self.last, self.mean)
        ends = np.stack([first, last, self.mean])
        return ends.min(axis=0), ends.max(axis=0)


@dataclass(frozen=True, eq=False)
class Leaning:
    """In which bins P(R) may be concentrated at the first ranks, and in which at the last."""

    to_first: BoolArray
    to_last: BoolArray


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a program: for each, a mean over targets of a function of their group has a limit."""

    #: The functions, one row each with a number for each group.
    features: FloatArray
    #: What their means are at most, and what was observed of them.
    limits: FloatArray
    seen: FloatArray


@dataclass(frozen=True, eq=False)
class MeanLimits:
    """Targets of one sample size, in groups of sampled ranks ``..ends[0], ..ends[1], .., ..n``."""

    sampled: int
    ends: IntArray
    #: The share of targets in each group; where only means are known, shares that fit them.
    observed: FloatArray
    #: P(group | rank): one row for each group, one column for each bin of the grid.
    expected: OverBins
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
        expected: OverBins,
        targets: float,
    ) -> MeanLimits:
        """Return the limits of shares that are all known."""
        below = np.tri(len(ends), len(ends) + 1)
        means = (below @ observed).clip(0.0, 1.0)
        return cls(sampled, ends, observed, expected, targets, below, means, means)

    def rows(self, alpha: float) -> Rows:
        """Return limits of all means, from which the scores of a bound are found."""
        low, high = self.region(alpha)
        return Rows(
            np.concatenate([self.features, -self.features]),
            np.concatenate([high, -low]),
            np.concatenate([self.high, -self.low]),
        )

    def least(self, features: FloatArray, leaning: Leaning) -> FloatArray:
        """Return the least that targets of each bin add to the mean of a feature.

        A feature is a weighted sum of cumulated groups. P(up to a group | R) falls along the ranks,
        so that it is least at one end of a bin and greatest at the other.
        """
        low, high = self.expected.apply(lambda values: values.cumsum(axis=0)[:-1]).hull(leaning)
        factors = features[:, :-1] - features[:, 1:]
        return np.asarray(
            np.maximum(factors, 0.0) @ low + np.minimum(factors, 0.0) @ high + features[:, -1:]
        )

    def region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return limits that hold all expected features at once, with error ``alpha``.

        Each feature takes an equal part of the error. Indicators have Clopper-Pearson limits, other
        functions those of Hoeffding, which hold for any bounded variable. So the region holds for
        any number of targets. It also holds for a fixed set of users, whose counts vary less than
        binomial ones.
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

    def spread(self, scores: FloatArray, chances: FloatArray) -> Spread:
        """Return how the mean score varies, given the chance of each group."""
        return Spread.of(scores, chances, self.targets)

    def variance_of_these(self, scores: FloatArray, weights: FloatArray, mass: FloatArray) -> float:
        """Return the variance of the mean score less the mean weight of these targets' own ranks.

        ``weights`` are those of the bins, and ``mass`` is P(R).
        """
        apart = scores[:, None] - weights[None, :]
        return Spread.of(apart, self.expected.mean * mass, self.targets).variance

    def locate(self, ranks: IntArray) -> IntArray:
        """Return the group that holds each sampled rank."""
        return np.searchsorted(self.ends, ranks)


@dataclass(frozen=True)
class Spread:
    """The variance of a mean, and how far its third moment is from zero."""

    variance: float = 0.0
    third: float = 0.0

    @classmethod
    def of(cls, values: FloatArray, chances: FloatArray, targets: float) -> Spread:
        """Return the spread of a mean of so many values that have these chances."""
        apart = values - float((chances * values).sum())
        second, third = (float((chances * apart**power).sum()) for power in (2, 3))
        return cls(max(second, 0.0) / targets, abs(third) / targets**2)

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.variance + other.variance, self.third + other.third)

    def scaled(self, factor: float) -> Spread:
        """Return the spread of a multiple of the mean."""
        return Spread(factor**2 * self.variance, abs(factor) ** 3 * self.third)

    @property
    def events(self) -> float:
        """Return how many rare events the mean depends on, if it is as skewed as their number."""
        return self.variance**3 / self.third**2 if self.third > 0.0 else np.inf


def evidence_grid(counts: RankCounts, cutoffs: list[int]) -> RankGrid:
    """Return the grid of global ranks that the programs are solved on."""
    items = counts.largest_catalogue
    # The last ranks stand alone too: their targets come last in every sample. And so do more of the
    # first ones, between which no metric is even.
    alone = [items - 2**power for power in range(items.bit_length() - 1)]
    alone += range(1, _SINGLE_RANKS + 1)
    return RankGrid.coarse(items, sampled=counts.largest_sample, cutoffs=cutoffs + alone)


def gather(
    observed: Observed, cutoffs: list[int], sizes: tuple[int, int]
) -> tuple[MeanLimits, ...]:
    """Return the evidence of each sample size in the counts, with groups that suit the cutoffs.

    ``sizes`` are the least and the greatest catalogue. How ranks depend on them is not known, so
    each end of a bin is taken from the catalogue that gives the most extreme value there.
    """
    counts, found = observed.counts, []
    for sampled in observed.sample_sizes:
        low, high = observed.ranges(sampled)
        ends = group_ends(
            _places_to_end(low, high, sampled + 1),
            # The sampled ranks at which targets at the cutoffs are expected.
            [1 + ((k - 1) * sampled) // (counts.largest_catalogue - 1) for k in cutoffs],
        )
        starts, lasts = np.concatenate([[1], ends + 1]), np.append(ends, sampled + 1)
        pool = observed.pool(sampled, starts, lasts, observed.grid)
        (shares,) = pool.shares
        weight = shares.sum()
        if weight > 0:
            smallest, largest = (
                Law(
                    size if counts.replacement else max(size, sampled + 1),
                    sampled,
                    counts.replacement,
                )
                for size in sizes
            )
            expected = OverBins(
                pool.matrix,
                largest.matrix(starts, lasts, observed.grid.firsts, beyond="last"),
                smallest.matrix(starts, lasts, observed.grid.lasts, beyond="last"),
            )
            targets = float(observed.targets * weight)
            found.append(MeanLimits.of_shares(sampled, ends, shares / weight, expected, targets))
    return tuple(found)


def _places_to_end(low: IntArray, high: IntArray, n: int) -> IntArray:
    """Return the ranks where a group may end: never inside the range of ranks of one cell."""
    ranges = low < high
    allowed = np.ones(n + 1, dtype=bool)
    allowed[[0, n]] = False
    for first, last in np.unique(np.stack([low[ranges], high[ranges]]), axis=1).T:
        allowed[first:last] = False
    return np.flatnonzero(allowed)


def group_ends(allowed: IntArray, wanted: list[int]) -> IntArray:
    """Return ends in growing steps, and all that are wanted and allowed."""
    ends: list[int] = []
    last = 0
    for end in allowed.tolist():
        if end >= max(last + 1, round(last * _GROUP_RATIO)):
            ends.append(end)
            last = end
    return np.union1d(ends, np.intersect1d(allowed, wanted)).astype(np.int64)


def quantile(level: float, freedom: float = math.inf) -> float:
    """Return how many standard errors a two-sided interval reaches, by the law of t or normal."""
    from scipy.special import ndtri, stdtrit

    end = (1.0 + check_level(level)) / 2.0
    return float(ndtri(end) if math.isinf(freedom) else stdtrit(freedom, end))


def skewed(reach: float, skewness: float) -> float:
    """Return how many standard errors a limit reaches on the side to which a mean is skewed.

    Such a mean errs further there (Johnson 1978). On the other side no less is allowed.
    """
    return reach + max(skewness, 0.0) * (2.0 * reach**2 + 1.0) / 6.0


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
