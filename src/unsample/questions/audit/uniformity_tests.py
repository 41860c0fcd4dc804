"""Tests of lists of negatives: counts of them, compared with what uniform draws would give.

Two draws coincide if they are of the same item. Coincidences between *different* lists show how
equal the probabilities of the items are. Coincidences within *one* list show whether an item may
come twice. Both have known moments if draws are uniform, so the tests hold for few draws as well as
for many.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unsample._checks import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Tested(NamedTuple):
    """A count, its mean if each list is a uniform draw of its own, and the p-value."""

    value: float
    expected: float
    p_value: float


class Lists:
    """Lists of negatives, and what uniform draws among the candidates of each list would give.

    Parameters
    ----------
    drawn
        How often each list holds each item (lists x items).
    seen
        The items that were not to be drawn, in the same shape; None if they are not known.

    >>> from scipy.sparse import csr_array
    >>> lists = Lists(csr_array([[1, 1, 0, 0], [2, 0, 0, 0], [0, 0, 1, 1]]))
    >>> lists.counts.tolist(), lists.pairs.tolist()      # the second list has an item twice
    ([3.0, 1.0, 1.0, 1.0], [0, 1, 0])
    >>> lists.uniform().value, lists.uniform().expected  # of lists 1 and 2, 1 * 2 pairs of draws
    (2.0, 3.0)
    """

    def __init__(self, drawn: csr_array, seen: csr_array | None = None) -> None:
        self.drawn = drawn
        self.items = int(drawn.shape[1])
        self.seen = None if seen is None else seen.astype(bool).astype(np.int64)
        self.sizes: IntArray = np.asarray(drawn.sum(axis=1), dtype=np.int64)
        self.counts: FloatArray = np.asarray(drawn.sum(axis=0), dtype=np.float64)
        # How many pairs of equal items each list has.
        self.pairs: IntArray = np.asarray(drawn.power(2).sum(axis=1) - self.sizes) // 2
        # The items that lists leave out: seen items, if none of them occurs.
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
        """Return, for each item, the sum of weights over the lists that could draw it."""
        return np.asarray(float(weights.sum()) - self.out.T @ weights)

    def distinct(self) -> Lists:
        """Return each list once, without seen items: a shared list belongs to no user."""
        # Sums of random numbers, one for each item, differ where lists do.
        limits = np.iinfo(np.int64)
        marks = np.random.default_rng(0).integers(limits.min, limits.max, self.items)
        _, first = np.unique(self.drawn @ marks, return_index=True)
        return Lists(self.drawn[np.sort(first)])

    @property
    def telling(self) -> bool:
        """Return whether lists can show how likely items are: several lists, not of all items."""
        return len(self.sizes) > 1 and bool((self.sizes < self.candidates - 1.0).any())

    def uniform(self) -> Tested:
        """Test whether all candidates have equal probabilities, by coincidences between lists.

        Let c be the count of an item, e its expectation, and c_l and e_l the same in list l. Then

            (c - e)^2 = sum over lists of (c_l - e_l)^2 + twice the products of different lists.

        The products are sums over pairs of independent lists, so their mean is 0. Their third
        moment has a part of three lists that coincide and a part of two. One item more or less is
        neglected in the moments.
        """
        expected = self.by_item(self.rate)
        within_lists = self.sizes + 2 * self.pairs - self.rate * self.sizes
        excess = 0.5 * float(((self.counts - expected) ** 2).sum() - within_lists.sum())
        mean = 0.5 * float((expected**2).sum() - (self.rate * self.sizes).sum())
        one = self.by_item(self.variance)
        two = self.by_item(self.variance**2)
        three = self.by_item(self.variance**3)
        variance = 0.5 * float((one**2 - two).sum())
        third = float((one**3 - 3.0 * one * two + 2.0 * three).sum()) + variance
        p_value = 1.0
        if self.telling:
            p_value = two_sided(mean + excess, mean=mean, variance=variance, third=third)
        return Tested(mean + excess, mean, p_value=p_value)

    def replacement(self) -> Tested:
        """Test whether an item may come twice in a list: how likely it is that none does.

        If probabilities are not equal, it is even less likely.
        """
        expected = float((0.5 * self.sizes * (self.sizes - 1.0) / self.candidates).sum())
        pairs = float(self.pairs.sum())
        return Tested(pairs, expected, p_value=1.0 if pairs else math.exp(-expected))

    def left_out(self) -> Tested | None:
        """Test whether fewer draws are of seen items than by chance; None if they are not known."""
        from scipy.special import gammaincc

        if self.seen is None:
            return None
        expected = float((self.seen.sum(axis=1) / self.items * self.sizes).sum())
        draws_of_seen = float(self.drawn.multiply(self.seen).sum())
        p_value = float(gammaincc(draws_of_seen + 1.0, expected)) if expected > 0.0 else 1.0
        return Tested(draws_of_seen, expected, p_value=p_value)

    def shared(self) -> Tested | None:
        """Test whether more lists repeat than by chance; None if all lists hold all items."""
        from scipy.special import gammainc, gammaln

        distinct = self.distinct()
        sizes, times = np.unique(self.sizes, return_counts=True)
        partial = sizes < self.items - 1
        sizes = sizes[partial]
        times = times[partial]
        if int(times.sum()) < 2:
            return None
        # Lists without repeats, of items that are likely, are equal most often. So many items of
        # equal probability would coincide as often as these do.
        number = 1.0 / max(distinct.coincidences(), 1.0 / self.items)
        orders = gammaln(sizes + 1.0) + gammaln(np.maximum(number - sizes, 0.0) + 1.0)
        probability = np.exp(np.minimum(orders - gammaln(number + 1.0), 0.0))
        expected = float((0.5 * times * (times - 1.0) * probability).sum())
        repeated = float(times.sum() - np.isin(distinct.sizes, sizes).sum())
        p_value = float(gammainc(repeated, expected)) if repeated else 1.0
        return Tested(repeated, expected, p_value=p_value)

    def coincidences(self) -> float:
        """Return the share of pairs of draws of different lists that are of the same item."""
        pairs = float(self.sizes.sum()) ** 2 - float((self.sizes.astype(float) ** 2).sum())
        equal = float((self.counts**2).sum()) - float((self.drawn.data.astype(float) ** 2).sum())
        return equal / pairs if pairs > 0.0 else 0.0


def two_sided(value: float, *, mean: float, variance: float, third: float) -> float:
    """Return the two-sided p-value of a count, by a gamma distribution with its first moments.

    With many draws this is the distribution of chi-square, and with few coincidences it is close to
    Poisson's. Half a count is added on either side, because counts are whole.

    >>> round(two_sided(130.0, mean=100.0, variance=100.0, third=100.0), 4)
    0.0046
    """
    from scipy.special import gammainc, gammaincc

    shape = 4.0 / max(third / variance**1.5, 1e-6) ** 2
    scale = math.sqrt(variance / shape)
    low, high = (max((value + half - mean) / scale + shape, 0.0) for half in (0.5, -0.5))
    return min(1.0, 2.0 * min(float(gammainc(shape, low)), float(gammaincc(shape, high))))
