"""Lists of negatives: what is counted in them, and what uniform draws would give.

Two draws coincide if they are of the same item. How often draws of *different* lists coincide tells
how equal the probabilities of the items are; how often draws of *one* list coincide tells whether
an item may come twice. Both have known moments if draws are uniform, so the tests hold for few
draws as well as for many.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unsample._checks import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Tested(NamedTuple):
    """What was counted, its mean if lists are own, uniform draws of all items, and the p-value."""

    value: float
    expected: float
    p_value: float


class Lists:
    """Lists of negatives, and what uniform draws among the candidates of each list would give.

    Matrices are of lists x items: ``drawn`` is how often each list holds each item, ``seen`` what
    was not to be drawn, where that is known.
    """

    def __init__(self, drawn: csr_array, seen: csr_array | None = None) -> None:
        self.drawn, self.items = drawn, int(drawn.shape[1])
        self.seen = None if seen is None else seen.astype(bool).astype(np.int64)
        self.sizes: IntArray = np.asarray(drawn.sum(axis=1), dtype=np.int64)
        self.counts: FloatArray = np.asarray(drawn.sum(axis=0), dtype=np.float64)
        # Pairs of equal items in each list.
        self.pairs: IntArray = np.asarray(drawn.power(2).sum(axis=1) - self.sizes) // 2
        # What lists leave out: seen items, if none of them occurs.
        self.out: csr_array = 0 * drawn
        if self.seen is not None and not drawn.multiply(self.seen).sum():
            self.out = self.seen
        self.candidates: FloatArray = self.items - np.asarray(self.out.sum(axis=1), np.float64)
        # How often a list draws one of its candidates: mean and variance.
        self.rate: FloatArray = self.sizes / np.maximum(self.candidates, 1.0)
        self.variance = self.rate
        if not self.pairs.any():
            left = self.candidates / np.maximum(self.candidates - 1.0, 1.0)
            self.variance = self.rate * (1.0 - self.rate) * left

    def by_item(self, weights: FloatArray) -> FloatArray:
        """Return for each item the weight of the lists that could draw it."""
        return np.asarray(float(weights.sum()) - self.out.T @ weights)

    def distinct(self) -> Lists:
        """Return each list once; what is known of users belongs to no shared list."""
        # Sums of random numbers, one for each item, differ where lists do.
        limits = np.iinfo(np.int64)
        marks = np.random.default_rng(0).integers(limits.min, limits.max, self.items)
        _, first = np.unique(self.drawn @ marks, return_index=True)
        return Lists(self.drawn[np.sort(first)])

    @property
    def telling(self) -> bool:
        """Return whether lists tell how likely items are: several lists, and not of all items."""
        return len(self.sizes) > 1 and bool((self.sizes < self.candidates - 1.0).any())

    def uniform(self) -> Tested:
        """Test whether all candidates have equal probabilities, by coincidences between lists.

        They are the squares of count minus expectation, added up, less the parts of single lists:
        a sum of products of independent lists. Its third moment has a part of three lists that
        coincide, and one of two. One item more or less is neglected in the moments.
        """
        expected, v = self.by_item(self.rate), self.variance
        alone = self.sizes + 2 * self.pairs - self.rate * self.sizes
        excess = 0.5 * float(((self.counts - expected) ** 2).sum() - alone.sum())
        mean = 0.5 * float((expected**2).sum() - (self.rate * self.sizes).sum())
        one, two, three = (self.by_item(v**power) for power in (1, 2, 3))
        variance = 0.5 * float((one**2 - two).sum())
        third = float((one**3 - 3.0 * one * two + 2.0 * three).sum()) + variance
        p_value = two_sided(mean + excess, mean, variance, third) if self.telling else 1.0
        return Tested(mean + excess, mean, p_value)

    def replacement(self) -> Tested:
        """Test whether an item may come twice: how likely it is that none does.

        Where probabilities are not equal, it is less likely than this.
        """
        expected = float((0.5 * self.sizes * (self.sizes - 1.0) / self.candidates).sum())
        found = float(self.pairs.sum())
        return Tested(found, expected, 1.0 if found else math.exp(-expected))

    def left_out(self) -> Tested | None:
        """Test whether fewer draws are of seen items than by chance."""
        from scipy.special import gammaincc

        if self.seen is None:
            return None
        expected = float((self.seen.sum(axis=1) / self.items * self.sizes).sum())
        found = float(self.drawn.multiply(self.seen).sum())
        p_value = float(gammaincc(found + 1.0, expected)) if expected > 0.0 else 1.0
        return Tested(found, expected, p_value)

    def shared(self) -> Tested | None:
        """Test whether more lists come again than by chance; None if all are of all items."""
        from scipy.special import gammainc, gammaln

        distinct = self.distinct()
        sizes, times = np.unique(self.sizes, return_counts=True)
        partial = sizes < self.items - 1
        sizes, times = sizes[partial], times[partial]
        if int(times.sum()) < 2:
            return None
        # Lists without repeats, of items that are likely, are equal most often.
        number = 1.0 / max(distinct.coincidences(), 1.0 / self.items)
        orders = gammaln(sizes + 1.0) + gammaln(np.maximum(number - sizes, 0.0) + 1.0)
        probability = np.exp(np.minimum(orders - gammaln(number + 1.0), 0.0))
        expected = float((0.5 * times * (times - 1.0) * probability).sum())
        found = float(times.sum() - np.isin(distinct.sizes, sizes).sum())
        return Tested(found, expected, float(gammainc(found, expected)) if found else 1.0)

    def coincidences(self) -> float:
        """Return which share of the pairs of draws of different lists is of the same item."""
        pairs = float(self.sizes.sum()) ** 2 - float((self.sizes.astype(float) ** 2).sum())
        equal = float((self.counts**2).sum()) - float((self.drawn.data.astype(float) ** 2).sum())
        return equal / pairs if pairs > 0.0 else 0.0


def two_sided(value: float, mean: float, variance: float, third: float) -> float:
    """Return how surprising a count is, by a gamma distribution with its first three moments.

    With many draws it is the distribution of chi-square, and with few coincidences it is close to
    Poisson's. Half a count is added on either side, because counts are whole.
    """
    from scipy.special import gammainc, gammaincc

    shape = 4.0 / max(third / variance**1.5, 1e-6) ** 2
    scale = math.sqrt(variance / shape)
    low, high = (max((value + half - mean) / scale + shape, 0.0) for half in (0.5, -0.5))
    return min(1.0, 2.0 * min(float(gammainc(shape, low)), float(gammaincc(shape, high))))
