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

#: Sizes within this factor of each other share one P(R).
_ONE_RANGE = 1.25
#: The largest number of ranges; where sizes differ more, ranges are wider.
_MAX_RANGES = 12
#: Up to this number of different sizes, all stay as they are.
FEW_SIZES = 32
#: Where there are more, sizes up to this one stay as they are, and larger ones go onto a grid.
SMALL_CATALOGUE = 1000
#: Neighbours on the grid differ by one part in this number.
SIZE_STEPS = 256


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
    """Return whether some targets were ranked among all items, as ``sampled = items - 1`` says.

    It says so where samples differ in size: nobody draws just this number with replacement. Where
    all samples have one size, a small catalogue may have that size by accident.

    >>> some_in_full(np.array([500, 500]), np.array([99, 499]))
    True
    >>> some_in_full(np.array([500, 100]), np.array([99, 99]))
    False
    """
    differ = bool((sampled != sampled[:1]).any())
    return differ and bool((sampled == items - 1).any())


def sizes_on_grid(items: IntArray, sampled: IntArray, *, keep_full: bool) -> IntArray:
    """Return the sizes on the grid that many sizes go onto, given the numbers of drawn items.

    With ``keep_full`` a catalogue keeps its size where all its items were compared, and elsewhere
    no size is rounded so far down that all items seem to have been compared.

    >>> sizes, drawn = np.array([3010, 3010, 3010]), np.array([99, 3009, 3004])
    >>> sizes_on_grid(sizes, drawn, keep_full=True).tolist()
    [3004, 3010, 3006]
    """
    grid = size_on_grid(items)
    if not keep_full:
        return grid
    return np.where(items - 1 > sampled, np.maximum(grid, sampled + 2), items)


def are_many(items: IntArray, *, smallest: IntArray, largest: IntArray) -> bool:
    """Return whether cells have many sizes: some are rounded, or more than a few are not."""
    rounded = (smallest != items) | (largest != items)
    return bool(rounded.any()) or len(np.unique(items)) > FEW_SIZES


def design_columns(
    items: npt.ArrayLike, sampled: npt.ArrayLike, *, size: int, replacement: bool
) -> dict[str, IntArray]:
    """Return the design of each target; many sizes go onto a grid, beside the true ones.

    >>> columns = design_columns(3706, [99, 3705], size=2, replacement=True)
    >>> columns["sampled"].tolist(), columns["items"].tolist()
    ([99, 3705], [3706, 3706])
    """
    drawn = as_column("sampled", sampled, size=size)
    sizes = as_column("items", items, size=size)
    if np.ndim(items) == 0 or not are_many(sizes, smallest=sizes, largest=sizes):
        return {"sampled": drawn, "items": sizes}
    keep_full = not replacement or some_in_full(sizes, drawn)
    grid = sizes_on_grid(sizes, drawn, keep_full=keep_full)
    return {"sampled": drawn, "items": grid, "smallest": sizes, "largest": sizes}
