"""Sizes of catalogues: their ranges, and a grid where there are many different ones.

Markets of a shop, or relations of a knowledge graph, have catalogues of very different size. Ranks
depend on the size there, and one P(R) for all would be wrong. So sizes are cut into ranges, and
each range has a P(R) of its own.

Where seen items are left out, nearly every user has a catalogue of another size. The work would
grow with their number, so many sizes are rounded to a grid. A cell keeps the true smallest and
largest size of its targets, which show whether a size was rounded. So parts add up: counts of
parts, merged, are the counts of all, whichever parts had many sizes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.counts._columns import as_column

#: Sizes within this factor of each other share one P(R); the largest number of ranges.
_ONE_RANGE, _MAX_RANGES = 1.25, 12
#: So many different sizes stay as they are. Of more, those up to a thousand do, and others go onto
#: a grid of one part in so many.
FEW_SIZES, SMALL_CATALOGUE, SIZE_STEPS = 32, 1000, 256


def size_ranges(items: IntArray) -> IntArray:
    """Return the range of sizes of each catalogue; the largest is in range 0.

    >>> size_ranges(np.array([5000, 4500, 500]))
    array([0, 0, 1])
    """
    sizes = items.astype(np.float64)
    steps = np.log(sizes.max() / sizes)
    width = max(np.log(_ONE_RANGE), float(steps.max()) * (1.0 + 1e-9) / _MAX_RANGES)
    return np.unique(np.floor(steps / width), return_inverse=True)[1].reshape(-1)


def size_on_grid(items: npt.ArrayLike) -> IntArray:
    """Return sizes of catalogues on a fixed geometric grid.

    >>> size_on_grid([1000, 3000, 3010, 3100])
    array([1000, 3004, 3004, 3100])
    """
    size = np.asarray(items, dtype=np.int64)
    grid = np.rint(np.exp(np.rint(np.log(np.maximum(size, 1)) * SIZE_STEPS) / SIZE_STEPS))
    return np.where(size > SMALL_CATALOGUE, grid.astype(np.int64), size)


def some_in_full(items: IntArray, sampled: IntArray) -> bool:
    """Return whether ``sampled = items - 1`` says that a target was ranked among all items.

    It does where samples differ in size: nobody draws just so many with replacement. One size of
    sample for all targets says nothing, for a small catalogue may have that size by accident.

    >>> some_in_full(np.array([500, 500]), np.array([99, 499]))
    True
    >>> some_in_full(np.array([500, 100]), np.array([99, 99]))
    False
    """
    differ = bool((sampled != sampled[:1]).any())
    return differ and bool((sampled == items - 1).any())


def sizes_on_grid(items: IntArray, sampled: IntArray, *, keep_full: bool) -> IntArray:
    """Return the sizes on the grid that many sizes go onto, given how many items were drawn.

    With ``keep_full`` a catalogue of which all was compared keeps its size, and no other seems to
    be such a one.
    """
    grid = size_on_grid(items)
    if not keep_full:
        return grid
    return np.where(items - 1 > sampled, np.maximum(grid, sampled + 2), items)


def are_many(items: IntArray, smallest: IntArray, largest: IntArray) -> bool:
    """Return whether cells have many sizes: some was rounded, or too many are there as they are."""
    rounded = (smallest != items) | (largest != items)
    return bool(rounded.any()) or len(np.unique(items)) > FEW_SIZES


def design_columns(
    items: npt.ArrayLike, sampled: npt.ArrayLike, size: int, replacement: bool
) -> dict[str, IntArray]:
    """Return the design of each target; many sizes go onto a grid, beside the true ones."""
    drawn, sizes = as_column("sampled", sampled, size=size), as_column("items", items, size=size)
    if np.ndim(items) == 0 or not are_many(sizes, sizes, largest=sizes):
        return {"sampled": drawn, "items": sizes}
    keep_full = not replacement or some_in_full(sizes, drawn)
    grid = sizes_on_grid(sizes, drawn, keep_full=keep_full)
    return {"sampled": drawn, "items": grid, "smallest": sizes, "largest": sizes}
