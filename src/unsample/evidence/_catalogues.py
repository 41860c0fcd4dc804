"""Sizes of catalogues: their ranges, and a grid of not too many different ones.

Catalogues of very different size are those of markets of a shop, or of relations of a knowledge
graph. Ranks go with the size there, and one P(R) for all would be wrong. So sizes are cut into
ranges, and each range has a P(R) of its own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.evidence._columns import as_column

#: Sizes within this factor of each other share one P(R). There are at most so many ranges.
_ONE_RANGE, _MOST_RANGES = 1.25, 12
#: Sizes up to this stay as they are; others go onto a grid of one part in so many.
SMALL_CATALOGUE, SIZE_STEPS = 1000, 256


def size_ranges(items: IntArray) -> IntArray:
    """Return the range of sizes of each catalogue; the largest is in range 0.

    >>> size_ranges(np.array([5000, 4500, 500]))
    array([0, 0, 1])
    """
    sizes = items.astype(np.float64)
    steps = np.log(sizes.max() / sizes)
    width = max(np.log(_ONE_RANGE), float(steps.max()) * (1.0 + 1e-9) / _MOST_RANGES)
    return np.unique(np.floor(steps / width), return_inverse=True)[1].reshape(-1)


def size_on_grid(items: npt.ArrayLike) -> IntArray:
    """Return sizes of catalogues on a fixed geometric grid, so that there are not too many.

    >>> size_on_grid([1000, 3000, 3010, 3100])
    array([1000, 3004, 3004, 3100])
    """
    size = np.asarray(items, dtype=np.int64)
    grid = np.rint(np.exp(np.rint(np.log(np.maximum(size, 1)) * SIZE_STEPS) / SIZE_STEPS))
    return np.where(size > SMALL_CATALOGUE, grid.astype(np.int64), size)


def design_columns(
    items: npt.ArrayLike, sampled: npt.ArrayLike, size: int, replacement: bool
) -> dict[str, IntArray]:
    """Return the design of each target; sizes that were given one by one go onto a grid.

    A catalogue of which all was compared keeps its size, and no other seems to be such a one.
    """
    drawn, sizes = as_column("sampled", sampled, size), as_column("items", items, size)
    if np.ndim(items):
        grid = size_on_grid(sizes)
        if not replacement:
            grid = np.where(sizes - 1 > drawn, np.maximum(grid, drawn + 2), sizes)
        sizes = grid
    return {"sampled": drawn, "items": sizes}
