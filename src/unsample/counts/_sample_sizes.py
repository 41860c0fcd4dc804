"""Sizes of samples: neighbouring ones in groups, and ranks in a smaller sample.

Where every target has a sample of its own size, each size would need cells of its own. So sizes
that differ little form a group, and all its targets are ranked among as many items as the smallest
size of the group. This needs no draw: a sample of a sample is a sample. If r - 1 of n sampled items
beat a target, then r' - 1 of the first m of them do, with a hypergeometric probability that does
not depend on the target. So a target is shared out among the ranks r' by these probabilities. The
expected numbers are exactly those of m sampled items, for any P(R).

The n - m further items are lost: with the steps below 3 % of them on average (and up to 9 % where
sizes differ by a factor of more than seven), so that the noise of a rank grows by 1.5 % (4 %).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from unsample._checks import FloatArray, IntArray
from unsample.counts._columns import distinct_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: The largest number of sizes that are kept. More are put into groups: the step of the logarithm of
#: the size, and the largest number of groups.
_FEW_SIZES, _STEP, _MAX_GROUPS = 16, 1.0 / 16.0, 32
#: Ranks are left out beyond this number of standard deviations, plus this number of ranks.
_DEVIATIONS, _MORE = 7.0, 6
#: How many probabilities are computed at a time.
_ROOM = 1 << 20


def sample_groups(sizes: IntArray) -> IntArray:
    """Return for each size of a sample the smallest size of its group.

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

    ``sampled`` and ``ranks`` are those of the targets, and ``starts`` the first rank of each range;
    the ranges cover the ranks 1 to ``smaller`` + 1.

    >>> one, three = np.array([3]), np.array([1, 2, 3])
    >>> in_smaller_sample(one, np.array([2]), 2, three).toarray().round(3).tolist()
    [[0.333, 0.667, 0.0]]
    """
    from scipy.sparse import coo_array, csr_array

    kinds, kind = distinct_rows(np.stack([sampled, ranks], axis=1))
    size, better = kinds[:, 0], kinds[:, 1] - 1
    middle = better * smaller / size
    variance = middle * (1.0 - better / size) * (size - smaller) / np.maximum(size - 1, 1)
    reach = np.where(size > smaller, _DEVIATIONS * np.sqrt(variance) + _MORE, 0.0)
    low = np.maximum(np.floor(middle - reach), np.maximum(0, smaller - size + better))
    high = np.minimum(np.ceil(middle + reach), np.minimum(smaller, better))
    width = (high - low + 1.0).astype(np.int64)
    parts = []
    steps = np.flatnonzero(np.diff(np.cumsum(width) // _ROOM, prepend=-1))
    for rows in np.split(np.arange(len(kinds)), steps[1:]):
        row = np.repeat(rows, width[rows])
        offset = np.arange(len(row)) - np.repeat(np.cumsum(width[rows]) - width[rows], width[rows])
        beaten = low[row] + offset
        probability = np.exp(_log_probability(beaten, better[row], size=size[row], smaller=smaller))
        column = np.searchsorted(starts, beaten + 1.0, side="right") - 1
        shape = (len(kinds), len(starts))
        parts.append(csr_array(coo_array((probability, (row, column)), shape=shape)))
    table = parts[0]
    for part in parts[1:]:
        table = table + part
    # The probability of the ranks left out is shared among the others.
    table = csr_array(table.multiply(1.0 / table.sum(axis=1)[:, None]))
    return csr_array(table[kind])


def _log_probability(
    beaten: FloatArray, better: IntArray, size: IntArray, smaller: int
) -> FloatArray:
    """Return the log probability that so many of ``better`` are in the smaller sample."""

    def ways(of: FloatArray | IntArray, taken: FloatArray | float) -> FloatArray:
        return np.asarray(gammaln(of + 1.0) - gammaln(taken + 1.0) - gammaln(of - taken + 1.0))

    worse = size - better
    return ways(better, beaten) + ways(worse, smaller - beaten) - ways(size, float(smaller))
