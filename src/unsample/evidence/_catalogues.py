"""Catalogues of nearly equal size as one, and ranges of sizes apart: the rules, in one place.

Leaving out each user's own training items makes hundreds of catalogue sizes that differ by a few
items, and a likelihood for each of them. But a sample only shows theta = (R - 1)/(N - 1), and that
blurred. Sizes within four per cent of each other move theta by two at most, up for some users and
down for others. Where that is less than half a standard error of theta, and sizes are many, nearly
equal ones become their mean.

Catalogues of very different size are another matter: markets of a shop, relations of a knowledge
graph. Ranks go with the size there, and one P(R) for all would be wrong. So sizes are cut into
ranges, and each range has a P(R) of its own.
"""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.evidence._counts import RankCounts

#: Up to so many designs are left as they are.
_MANY_DESIGNS = 32
#: Catalogue sizes within this factor of each other are one (theta moves by half of it).
_SAME_SIZE = 0.04
#: Sizes within this factor of each other share one P(R). There are at most so many ranges.
_ONE_RANGE, _MOST_RANGES = 1.25, 12
#: Below this sampled share of the catalogue, its size only scales the ranks.
_SPARSE = 0.05


def size_ranges(items: IntArray) -> IntArray:
    """Return the range of sizes of each catalogue; the largest is in range 0.

    >>> size_ranges(np.array([5000, 4500, 500]))
    array([0, 0, 1])
    """
    sizes = items.astype(np.float64)
    steps = np.log(sizes.max() / sizes)
    width = max(np.log(_ONE_RANGE), float(steps.max()) * (1.0 + 1e-9) / _MOST_RANGES)
    return np.unique(np.floor(steps / width), return_inverse=True)[1].reshape(-1)


def group_catalogues(counts: RankCounts) -> RankCounts:
    """Give nearly equal catalogues their common mean size, where users have many different ones."""
    return counts.in_catalogues(_typical_sizes(counts))


def group_with_shares(counts: RankCounts, shares: FloatArray) -> tuple[RankCounts, FloatArray]:
    """Return grouped counts, and histograms over the cells of ``counts`` moved to their cells."""
    items = _typical_sizes(counts)
    grouped = counts.in_catalogues(items)
    # Grouped counts are sorted again: each old cell went to the place of its new key.
    keys = np.stack([counts.sampled, items, counts.low, counts.high, counts.relevant, counts.place])
    place = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
    grouped_shares = np.zeros((len(shares), len(grouped)))
    np.add.at(grouped_shares.T, place, shares.T)
    return grouped, grouped_shares


def _typical_sizes(counts: RankCounts) -> IntArray:
    """Return the size that is used for each cell: its own, or the mean of nearly equal ones.

    The standard error of theta is at least 1/sqrt(n) of it for theta <= 1/2, less the share of the
    catalogue that was compared, if no item is drawn twice. For sharper samples the factor is halved
    until it is small enough. In a sparse sample the size only scales the ranks. Where all
    candidates were compared the rank is known, and the cell keeps its size.
    """
    items, sampled = counts.items, counts.sampled
    if np.unique(np.stack([sampled, items]), axis=1).shape[1] <= _MANY_DESIGNS:
        return items
    left = np.ones(len(items)) if counts.replacement else 1.0 - sampled / (items - 1)
    blurred = sampled < _SPARSE * items
    error = np.where(blurred, _SAME_SIZE, np.sqrt(left / sampled))
    merged = left > 0
    halvings = np.ceil(np.log2(_SAME_SIZE / error[merged])).clip(min=0)
    label = np.round(np.log(items[merged]) / (_SAME_SIZE * 0.5**halvings))
    _, group = np.unique(np.stack([halvings, label]), axis=1, return_inverse=True)
    group, parts = group.reshape(-1), counts.weight[merged] + 1e-300
    means = np.bincount(group, parts * items[merged]) / np.bincount(group, parts)
    sizes = items.copy()
    sizes[merged] = np.rint(means).astype(np.int64)[group]
    if not counts.replacement:
        # A target that was not compared with all candidates must not seem to have been.
        sizes[merged] = np.maximum(sizes[merged], sampled[merged] + 2)
    return sizes
