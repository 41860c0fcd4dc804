"""Sizes of samples: neighbouring ones in groups, and ranks in a smaller sample.

Where every target has a sample of its own size, each size would need cells of its own. So sizes
that differ little form a group, and all its targets are ranked among as many items as the smallest
sample of the group has. This needs no draw, because a sample of a sample is a sample. If r - 1 of n
sampled items beat a target, then r' - 1 of the first m of them do with a hypergeometric
probability, which does not depend on the target. So a target is divided among the ranks r' by these
probabilities. The expected numbers are exactly those for m sampled items, for any P(R).

The other n - m items are lost: with the steps below, 3 % of the items on average, and up to 9 %
where sizes differ by a factor of more than seven. The noise of a rank grows by 1.5 % (4 %).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from unsample._checks import FloatArray, IntArray
from unsample.counts._columns import distinct_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: The largest number of sizes that are kept; more are put into groups.
_FEW_SIZES = 16
#: How far the logarithms of sizes in one group may differ.
_STEP = 1.0 / 16.0
#: The largest number of groups; where sizes differ more, groups are wider.
_MAX_GROUPS = 32
#: Ranks are left out beyond this number of standard deviations ...
_DEVIATIONS = 7.0
#: ... plus this number of ranks.
_MORE = 6
#: How many probabilities are computed at a time.
_ROOM = 1 << 20


def sample_groups(sizes: IntArray) -> IntArray:
    """Return the smallest size in the group of each size of a sample.

    >>> sample_groups(np.array([99, 100, 99]))
    array([ 99, 100,  99])
    >>> np.unique(sample_groups(np.arange(100, 120)))
    array([100, 107, 114])
    """
    distinct, index = np.unique(sizes, return_inverse=True)
    if len(distinct) <= _FEW_SIZES:
        return sizes
    steps = np.log(distinct / distinct[0])
    width = max(_STEP, float(steps[-1]) * (1.0 + 1e-9) / _MAX_GROUPS)
    _, first, group = np.unique(np.floor(steps / width), return_index=True, return_inverse=True)
    return np.asarray(distinct[first][group.reshape(-1)][index.reshape(-1)])


def in_smaller_sample(
    sampled: IntArray, ranks: IntArray, smaller: int, starts: IntArray
) -> csr_array:
    """Return the probability of each range of ranks in a smaller sample (targets x ranges).

    Parameters
    ----------
    sampled, ranks
        The number of sampled items and the sampled rank of each target.
    smaller
        The number of items of the smaller sample.
    starts
        The first rank of each range; the ranges cover the ranks 1 to ``smaller`` + 1.

    Examples
    --------
    One of three sampled items beats the target. It is one of the first two with probability 2/3,
    and the target then has rank 2 among them.

    >>> one, three = np.array([3]), np.array([1, 2, 3])
    >>> in_smaller_sample(one, np.array([2]), 2, three).toarray().round(3).tolist()
    [[0.333, 0.667, 0.0]]
    """
    from scipy.sparse import coo_array, csr_array

    kinds, kind = distinct_rows(np.stack([sampled, ranks], axis=1))
    size = kinds[:, 0]
    better = kinds[:, 1] - 1
    low, high = _likely_numbers(better, size, smaller=smaller)
    width = (high - low + 1.0).astype(np.int64)
    parts = []
    first_of_blocks = np.flatnonzero(np.diff(np.cumsum(width) // _ROOM, prepend=-1))
    for rows in np.split(np.arange(len(kinds)), first_of_blocks[1:]):
        row = np.repeat(rows, width[rows])
        starts_of_rows = np.cumsum(width[rows]) - width[rows]
        offset = np.arange(len(row)) - np.repeat(starts_of_rows, width[rows])
        better_there = low[row] + offset
        probability = np.exp(
            _log_probability(better_there, better[row], size=size[row], smaller=smaller)
        )
        column = np.searchsorted(starts, better_there + 1.0, side="right") - 1
        shape = (len(kinds), len(starts))
        parts.append(csr_array(coo_array((probability, (row, column)), shape=shape)))
    table = parts[0]
    for part in parts[1:]:
        table = table + part
    # The ranks that were left out give their probability to the others, in proportion.
    table = csr_array(table.multiply(1.0 / table.sum(axis=1)[:, None]))
    return csr_array(table[kind])


def _likely_numbers(
    better: IntArray, size: IntArray, *, smaller: int
) -> tuple[FloatArray, FloatArray]:
    """Return the fewest and the most of ``better`` items that the smaller sample may have.

    Numbers far from the hypergeometric mean are left out, and impossible ones.

    >>> _likely_numbers(np.array([500]), np.array([1000]), smaller=100)
    (array([10.]), array([90.]))
    """
    mean = better * smaller / size
    variance = mean * (1.0 - better / size) * (size - smaller) / np.maximum(size - 1, 1)
    reach = np.where(size > smaller, _DEVIATIONS * np.sqrt(variance) + _MORE, 0.0)
    fewest_possible = np.maximum(0, smaller - size + better)
    most_possible = np.minimum(smaller, better)
    low = np.maximum(np.floor(mean - reach), fewest_possible)
    high = np.minimum(np.ceil(mean + reach), most_possible)
    return low, high


def _log_probability(
    better_there: FloatArray, better: IntArray, *, size: IntArray, smaller: int
) -> FloatArray:
    """Return the log probability that this number of ``better`` items is in the smaller sample."""

    def log_ways(of: FloatArray | IntArray, taken: FloatArray | float) -> FloatArray:
        return np.asarray(gammaln(of + 1.0) - gammaln(taken + 1.0) - gammaln(of - taken + 1.0))

    chosen_better = log_ways(better, better_there)
    chosen_worse = log_ways(size - better, smaller - better_there)
    return chosen_better + chosen_worse - log_ways(size, float(smaller))
