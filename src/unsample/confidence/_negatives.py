"""How items were drawn: tests of laws of drawing, from counts of items and of lists.

Two draws coincide if they are of the same item. How often draws of *different* lists coincide tells
how equal the chances of the items are. How often draws of *one* list coincide tells whether an item
may come twice. Means and variances below are exact where nothing is excluded, so the tests hold for
few draws as well as for many; see docs/audit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from unsample._checks import BoolArray, FloatArray, IntArray, as_index
from unsample.confidence._limits import quantile
from unsample.evidence import ListCounts, Negatives

#: The expected count that chi-square tests need in every cell.
_LEAST_EXPECTED = 5.0
#: The most groups of lists for which a law of draws without replacement is computed.
_MOST_GROUPS, _CELLS_OF_GROUPS = 32, 1 << 22
_LARGEST_EXPONENT = 20.0
#: Lists of so many items are equal by chance only if all draws are of very few items.
_LONG_LIST = 5


@dataclass(frozen=True)
class CountTest:
    """A count, what is expected of it, and how surprising it is."""

    value: float
    expected: float
    p_value: float


@dataclass(frozen=True, eq=False)
class DrawnLists:
    """Lists of draws, added up: what was found, and what equal chances would give."""

    #: How often each item was drawn.
    counts: IntArray
    #: Draws of each list, the items it could draw, and its pairs of equal items.
    sizes: IntArray
    candidates: IntArray
    pairs: IntArray
    #: How often an item would be drawn if chances were equal, and the variance of that.
    expected: FloatArray
    variance: FloatArray
    replacement: bool

    @classmethod
    def of(
        cls,
        negatives: Negatives,
        found: ListCounts,
        kept: BoolArray,
        *,
        seen_out: bool,
        targets_out: bool,
        there: BoolArray | None = None,
    ) -> DrawnLists:
        """Add up the lists that are kept.

        ``seen_out`` and ``targets_out`` say what lists leave out; ``there`` tells the items that
        can be drawn at all.
        """
        could = np.ones(negatives.items, dtype=bool) if there is None else there
        candidates = np.full(len(negatives), int(could.sum()))
        if seen_out:
            candidates -= negatives.weight_left_out(could.astype(np.float64)).astype(np.int64)
        if targets_out and negatives.target_lists is not None:
            mine = could[negatives.target_items].astype(np.float64)
            candidates -= np.bincount(negatives.target_lists, mine, len(negatives)).astype(np.int64)
        replacement = bool(found.repeats[kept].any())

        def over_items(weights: FloatArray) -> FloatArray:
            weights = np.where(kept, weights, 0.0)
            out = negatives.left_out(weights, seen=seen_out, targets=targets_out)
            return np.where(could, np.maximum(float(weights.sum()) - out, 0.0), 0.0)

        return cls(
            negatives.count(None if kept.all() else kept),
            negatives.sizes[kept],
            candidates[kept],
            found.pairs[kept],
            over_items(rate_of(negatives.sizes, candidates)),
            over_items(spread_of(negatives.sizes, candidates, replacement)),
            replacement,
        )

    @property
    def draws(self) -> int:
        """Return the number of draws."""
        return int(self.sizes.sum())

    @cached_property
    def rate(self) -> FloatArray:
        """Return the chance of a candidate to be drawn into each list, if chances are equal."""
        return rate_of(self.sizes, self.candidates)

    @cached_property
    def pairs_between(self) -> float:
        """Return the number of pairs of draws that are of different lists."""
        total = float(self.draws)
        return 0.5 * (total * total - float((self.sizes.astype(float) ** 2).sum()))

    @cached_property
    def coincidences(self) -> float:
        """Return the pairs of equal draws that are of different lists."""
        times = self.counts.astype(np.float64)
        return float(0.5 * (times * (times - 1.0)).sum() - self.pairs.sum())

    @cached_property
    def uniformity(self) -> CountTest | None:
        """Test whether all candidates have equal chances, by coincidences between lists.

        The test adds the squares of count minus expectation, without the parts of single lists. So
        it is a sum of products of independent lists, and its mean and variance are known exactly.
        """
        if len(self.sizes) < 2 or self.pairs_between < 1.0:
            return None
        own = self.sizes + 2 * self.pairs - self.rate * self.sizes
        excess = 0.5 * float(((self.counts - self.expected) ** 2).sum() - own.sum())
        alike = 0.5 * float((self.expected**2).sum() - (self.rate * self.sizes).sum())
        spread = spread_of(self.sizes, self.candidates, self.replacement)
        last = 1.0 - 1.0 / float(self.candidates.mean())
        total = float((self.variance**2).sum() - (self.candidates * spread**2).sum())
        variance = 0.5 * last * total
        if alike <= 0.0 or variance <= 1e-9 * alike:
            return None
        third = last * float((self.variance**3).sum()) + variance * self._skew_of_pairs
        return CountTest(alike + excess, alike, two_sided(alike + excess, alike, variance, third))

    @property
    def _skew_of_pairs(self) -> float:
        """Return how much of the skewness of rare coincidences is left where lists are long."""
        share = float(self.rate.mean()) if not self.replacement else 0.0
        return (1.0 - 2.0 * min(share, 0.5)) ** 2

    @cached_property
    def slope(self) -> CountTest | None:
        """Test whether low or high item numbers were drawn more often: the mean number."""
        number = np.arange(len(self.counts), dtype=np.float64)
        total = float(self.variance.sum())
        if total <= 0.0:
            return None
        middle = float((self.variance * number).sum()) / total
        variance = float((self.variance * (number - middle) ** 2).sum())
        if variance <= 0.0:
            return None
        score = float(((self.counts - self.expected) * (number - middle)).sum())
        p_value = 2.0 * float(special.ndtr(-abs(score) / math.sqrt(variance)))
        expected = float((self.expected * number).sum()) / self.draws
        return CountTest(float((self.counts * number).sum()) / self.draws, expected, p_value)

    def repeated(self, chance: FloatArray) -> CountTest:
        """Test pairs of equal draws in lists, where two draws of a list are equal by ``chance``.

        The probability that there is no pair at all is exact for equal chances.
        """
        sizes = self.sizes.astype(np.float64)
        expected = float((0.5 * sizes * (sizes - 1.0) * chance).sum())
        found = float(self.pairs.sum())
        if found == 0.0:
            return CountTest(0.0, expected, float(np.exp(self._none_repeated(chance))))
        triples = float((sizes * (sizes - 1.0) * (sizes - 2.0) * chance**2).sum())
        p_value = two_sided(found, expected, expected, expected + triples)
        return CountTest(found, expected, p_value)

    def _none_repeated(self, chance: FloatArray) -> float:
        """Return the logarithm of the probability that no list has an item twice."""
        number = 1.0 / np.maximum(chance, 1e-300)
        if (self.sizes > number).any():
            return -math.inf
        sizes = self.sizes.astype(np.float64)
        terms = special.gammaln(number + 1.0) - special.gammaln(number - sizes + 1.0)
        return float(min(0.0, (terms - sizes * np.log(number)).sum()))

    def never_drawn(self, expected: FloatArray) -> CountTest:
        """Test how many items were never drawn, where each was expected so often."""
        share = np.minimum(expected / max(len(self.sizes), 1), 1.0)
        if self.replacement:
            chance = np.exp(-expected)
        else:
            with np.errstate(divide="ignore"):
                chance = np.exp(len(self.sizes) * np.log1p(-share))
        mean = float(chance.sum())
        found = float((self.counts == 0).sum())
        # Items that are never drawn are negatively dependent: Poisson's law is on the safe side.
        p_value = float(special.gammainc(found, mean)) if found > 0 else 1.0
        return CountTest(found, mean, p_value)


def rate_of(sizes: IntArray, candidates: IntArray) -> FloatArray:
    """Return the chance of a candidate to be drawn into each list, if chances are equal."""
    return np.asarray(sizes / np.maximum(candidates, 1), dtype=np.float64)


def spread_of(sizes: IntArray, candidates: IntArray, replacement: bool) -> FloatArray:
    """Return the variance of a candidate's draws in each list, if chances are equal."""
    rate = rate_of(sizes, candidates)
    if replacement:
        return rate
    return np.asarray(rate * (1.0 - rate) * candidates / np.maximum(candidates - 1, 1))


def two_sided(value: float, mean: float, variance: float, third: float) -> float:
    """Return how surprising a count is, by a gamma law with its first three moments.

    With many draws it is the law of chi-square, and with few coincidences it is close to Poisson's.
    Half a count is added on either side, because counts are whole.
    """
    if variance <= 0.0:
        return 1.0
    skew = max(third / variance**1.5, 1e-6)
    shape = 4.0 / skew**2
    scale = math.sqrt(variance / shape)

    def below(count: float) -> tuple[float, float]:
        at = max((count - mean) / scale + shape, 0.0)
        return float(special.gammainc(shape, at)), float(special.gammaincc(shape, at))

    return min(1.0, 2.0 * min(below(value + 0.5)[0], below(value - 0.5)[1]))


def too_few(found: float, expected: float) -> float:
    """Return the probability of so few or fewer rare events."""
    return float(special.gammaincc(found + 1.0, expected)) if expected > 0.0 else 1.0


def too_many(found: float, expected: float) -> float:
    """Return the probability of so many or more rare events."""
    return float(special.gammainc(found, expected)) if found > 0.0 else 1.0


# -- lists beside each other ----------------------------------------------------------------------


def same_lists(found: ListCounts, negatives: Negatives) -> CountTest | None:
    """Test how many pairs of lists hold the same items; None for a single list."""
    if len(negatives) < 2:
        return None
    times = np.bincount(as_index(found.same))
    pairs = float((0.5 * times * (times - 1.0)).sum())
    sizes, number = np.unique(negatives.sizes, return_counts=True)
    chance = np.full(len(sizes), 1.0 / negatives.items)
    if pairs:
        # Equal long lists count once: lists that are shared would make their items look likely.
        # Short lists are often equal by chance.
        long = sizes >= _LONG_LIST
        alike = _coincide(negatives.count()), _coincide(negatives.count(found.first))
        chance = np.maximum(chance, np.where(long, alike[1], alike[0]))
    equal = np.minimum(special.gammaln(sizes + 1.0) + sizes * np.log(chance), 0.0)
    expected = float((0.5 * number * (number - 1.0) * np.exp(equal)).sum())
    return CountTest(pairs, expected, too_many(pairs, expected))


def _coincide(counts: FloatArray | IntArray) -> float:
    """Return the chance that two draws are of the same item, by how often each was drawn."""
    total = float(counts.sum())
    return float((counts / max(total, 1.0)) @ (counts / max(total, 1.0)))


def permuted(overlap: IntArray, rng: np.random.Generator, times: int = 999) -> CountTest:
    """Test whether the two lists of a pair have more items in common than other lists.

    ``overlap[i, j]`` is what the left list of pair i and the right list of pair j have in common.
    If lists are drawn independently, every assignment of right lists to left lists is as likely.
    """
    size = len(overlap)
    found = float(np.trace(overlap))
    rows = np.arange(size)
    drawn = np.array([float(overlap[rows, rng.permutation(size)].sum()) for _ in range(times)])
    p_value = (1.0 + float((drawn >= found).sum())) / (1.0 + times)
    return CountTest(found / size, float(drawn.mean()) / size, p_value)


# -- popularity -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Power:
    """Chances that are a power of popularity: the exponent, its error, and how well it fits."""

    exponent: float
    standard_error: float
    #: How well it fits: chi-square, its degrees of freedom, and the p-value.
    statistic: float
    freedom: int
    p_value: float
    #: The root mean square difference between counts and the law, chance aside.
    misfit: float
    #: The items that have a popularity, and how often each of them would be drawn.
    there: BoolArray
    expected: FloatArray

    def interval(self, level: float) -> tuple[float, float]:
        """Return the range that holds the exponent at this level."""
        far = quantile(level) * self.standard_error
        return self.exponent - far, self.exponent + far

    @property
    def p_of_uniform(self) -> float:
        """Return how surprising the exponent is if chances do not depend on popularity."""
        if self.standard_error <= 0.0:
            return 1.0
        return 2.0 * float(special.ndtr(-abs(self.exponent) / self.standard_error))


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """The law by which the chance of an item is a power of its popularity.

    Similar lists are grouped. Without replacement the chance of an item to be in a list is
    1 - exp(-s q), with an s that gives lists their length (Rosén's approximation of draws one after
    the other). So counts of items are all that is needed.
    """

    #: The items that have a popularity; all below is of them.
    there: BoolArray
    counts: FloatArray
    #: Logarithms of popularity.
    log_popularity: FloatArray
    #: Lists of each group that can draw each item (groups x items), and the draws of each group.
    open_lists: FloatArray
    draws: FloatArray
    replacement: bool

    def fit(self) -> Power | None:
        """Return the exponent of greatest likelihood; None where the items are all alike."""
        if len(self.counts) < 3 or float(np.ptp(self.log_popularity)) <= 0.0:
            return None
        exponent = 0.0
        for _ in range(100):
            expected, variance, slope = self.moments(exponent)
            information = float((slope**2 / variance).sum())
            if information <= 0.0:
                return None
            score = (self.counts - expected) * slope / variance
            step = float(score.sum()) / information
            exponent += min(max(step, -1.0), 1.0)
            if abs(exponent) > _LARGEST_EXPONENT:
                return None
            if abs(step) < 1e-9:
                break
        return self.judge(exponent, fitted=1)

    def judge(self, exponent: float, *, fitted: int = 0) -> Power:
        """Return how well an exponent fits; ``fitted`` is how many exponents were learned."""
        expected, variance, slope = self.moments(exponent)
        information = max(float((slope**2 / variance).sum()), 1e-300)
        # Where the law does not fit well, its exponent is less certain.
        loose = float((((self.counts - expected) * slope / variance) ** 2).sum())
        error = math.sqrt(max(information, loose)) / information
        statistic, cells = self._distance(expected, variance)
        freedom = max(cells - 1 - fitted, 0)
        p_value = float(special.gammaincc(0.5 * freedom, 0.5 * statistic)) if freedom else 1.0
        misfit = math.sqrt(max(statistic - freedom, 0.0) / float(self.draws.sum()))
        return Power(exponent, error, statistic, freedom, p_value, misfit, self.there, expected)

    def moments(self, exponent: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return mean, variance and derivative by the exponent of each item's count."""
        power = exponent * self.log_popularity
        chance = np.exp(power - power.max())[None, :]
        reach = self._reach(chance)
        if self.replacement:
            inside = growth = self.open_lists * reach * chance
            variance = inside.sum(axis=0)
        else:
            out = np.exp(-reach * chance)
            inside = self.open_lists * (1.0 - out)
            growth = self.open_lists * out * reach * chance
            variance = (inside * out).sum(axis=0)
        middle = (growth * self.log_popularity).sum(axis=1) / growth.sum(axis=1)
        slope = (growth * (self.log_popularity[None, :] - middle[:, None])).sum(axis=0)
        mean = inside.sum(axis=0)
        return mean, np.maximum(variance, 1e-12 * mean.max()), slope

    def _reach(self, chance: FloatArray) -> FloatArray:
        """Return the factor of each group that makes the expected draws equal to its draws."""
        reach = self.draws / (self.open_lists * chance).sum(axis=1)
        if self.replacement:
            return np.asarray(reach[:, None])
        for _ in range(100):
            out = self.open_lists * np.exp(-reach[:, None] * chance)
            short = self.draws - (self.open_lists.sum(axis=1) - out.sum(axis=1))
            # The sum is concave, so Newton's steps stay below the solution.
            reach = reach + np.maximum(short, 0.0) / (out * chance).sum(axis=1)
            if (short <= 1e-10 * self.draws).all():
                break
        return np.asarray(reach[:, None])

    def _distance(self, expected: FloatArray, variance: FloatArray) -> tuple[float, int]:
        """Return chi-square and its number of cells; rare items share a cell."""
        order = np.argsort(expected)
        cells = np.minimum(
            np.floor(np.cumsum(expected[order]) / _LEAST_EXPECTED),
            max(math.floor(float(expected.sum()) / _LEAST_EXPECTED) - 1, 0),
        )
        _, cell = np.unique(cells, return_inverse=True)
        gap = np.bincount(cell, (self.counts - expected)[order])
        spread = np.bincount(cell, variance[order])
        return float((gap**2 / spread).sum()), len(gap)


def power_law(
    negatives: Negatives, lists: DrawnLists, kept: BoolArray, popularity: FloatArray, *, out: bool
) -> PowerLaw | None:
    """Return the law of draws by popularity; None where there is nothing to learn it from.

    Items without any popularity are ignored. ``out`` says whether lists leave out seen items.
    """
    there = (popularity > 0.0) & (lists.expected > 0.0)
    counts = lists.counts[there].astype(np.float64)
    if counts.sum() <= 0.0 or (lists.sizes >= lists.candidates).any():
        return None
    share = negatives.weight_left_out(popularity / popularity.sum()) * out
    group = _groups(negatives.sizes, share, int(there.sum()))
    number = int(group.max()) + 1
    open_lists = np.empty((number, int(there.sum())))
    for place in range(number):
        mine = ((group == place) & kept).astype(np.float64)
        missing = negatives.left_out(mine, seen=out, targets=False)
        open_lists[place] = (mine.sum() - missing)[there]
    draws = np.bincount(group[kept], negatives.sizes[kept], number)
    some = draws > 0
    return PowerLaw(
        there,
        counts,
        np.log(popularity[there]),
        open_lists[some],
        draws[some] * float(counts.sum()) / lists.draws,
        lists.replacement,
    )


def _groups(sizes: IntArray, share: FloatArray, items: int) -> IntArray:
    """Return the group of each list: lists of similar size that leave out a similar share."""
    most = int(min(max(_CELLS_OF_GROUPS // max(items, 1), 1), _MOST_GROUPS))
    rate = sizes / np.maximum(1.0 - share, 1e-6)
    edges = np.unique(np.quantile(rate, np.linspace(0.0, 1.0, most + 1)[1:-1]))
    return np.searchsorted(edges, rate, side="left")
