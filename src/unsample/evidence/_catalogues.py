"""Ranges of catalogue sizes: the rule, in one place.

Catalogues of very different size are those of markets of a shop, or of relations of a knowledge
graph. Ranks go with the size there, and one P(R) for all would be wrong. So sizes are cut into
ranges, and each range has a P(R) of its own.
"""

from __future__ import annotations

import numpy as np

from unsample._checks import IntArray

#: Sizes within this factor of each other share one P(R). There are at most so many ranges.
_ONE_RANGE, _MOST_RANGES = 1.25, 12


def size_ranges(items: IntArray) -> IntArray:
    """Return the range of sizes of each catalogue; the largest is in range 0.

    >>> size_ranges(np.array([5000, 4500, 500]))
    array([0, 0, 1])
    """
    sizes = items.astype(np.float64)
    steps = np.log(sizes.max() / sizes)
    width = max(np.log(_ONE_RANGE), float(steps.max()) * (1.0 + 1e-9) / _MOST_RANGES)
    return np.unique(np.floor(steps / width), return_inverse=True)[1].reshape(-1)
