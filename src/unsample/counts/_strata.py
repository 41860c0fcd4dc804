"""`Strata`: groups of targets whose global ranks are taken to have one distribution.

Ranks depend on the size of a catalogue, so catalogues of very different size have a P(R) each.

Where users have several targets, a list may grow with their number (100 negatives a target, say).
The best of five ranks is better than the best of two, and busy users differ from others. So ranks
depend on the size of the sample, and correct data would contradict one P(R) for all sizes. Sizes of
samples are cut into ranges as catalogues are, and each range has a P(R) of its own. Within a range
P(R) still differs a little; ranges are so narrow that a smooth curve would not show the difference.
Users with one target each do not decide how many items are drawn, and samples of all sizes have one
P(R).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unsample._checks import BoolArray, IntArray
from unsample.counts._catalogues import size_ranges

if TYPE_CHECKING:
    from unsample.counts._rank_counts import RankCounts


@dataclass(frozen=True, eq=False)
class Strata:
    """Ranges of sizes of catalogues and of samples; each pair that occurs is a stratum."""

    #: The smallest size in each range, the range of the largest sizes first.
    items: IntArray
    sampled: IntArray
    #: The stratum of each range of items (rows) and of samples (columns). Where there are several
    #: ranges of samples, targets that were compared with all candidates have a last column.
    numbers: IntArray
    count: int

    @classmethod
    def of(cls, counts: RankCounts) -> Strata:
        """Return the strata of a model's targets: a single one where all share their items.

        >>> from unsample.counts import RankCounts
        >>> counts = RankCounts.from_ranks([1, 1, 1], items=[5000, 4500, 500], sampled=9)
        >>> strata = Strata.of(counts)
        >>> strata.items.tolist(), strata.of_cells(counts).tolist()
        ([4500, 500], [1, 0, 0])
        """
        if counts.shared is not None:
            none = np.zeros(1, dtype=np.int64)
            return cls(items=none, sampled=none, numbers=np.zeros((1, 1), dtype=np.int64), count=1)
        items = _range_starts(counts.items)
        sampled = np.zeros(1, dtype=np.int64)
        drawn = counts.sampled[~counts.full]
        several_targets = counts.several or counts.metric is not None
        if several_targets and len(drawn):
            sampled = _range_starts(drawn)
        columns = len(sampled) + (len(sampled) > 1)
        unnumbered = cls(
            items=items,
            sampled=sampled,
            numbers=np.arange(len(items) * columns).reshape(-1, columns),
            count=0,
        )
        occurs = np.unique(unnumbered.of_designs(counts.sampled, counts.items, full=counts.full))
        # Ranges that do not occur are never asked for: they take the number of the next one.
        numbers = np.searchsorted(occurs, unnumbered.numbers).clip(max=len(occurs) - 1)
        return cls(
            items=items, sampled=sampled, numbers=numbers.astype(np.int64), count=len(occurs)
        )

    def of_designs(self, sampled: IntArray, items: IntArray, full: BoolArray) -> IntArray:
        """Return the stratum of each design; ``full`` marks comparisons with all candidates."""
        row = np.searchsorted(-self.items, -items).clip(max=len(self.items) - 1)
        column = np.searchsorted(-self.sampled, -sampled).clip(max=len(self.sampled) - 1)
        if len(self.sampled) > 1:
            column = np.where(full, len(self.sampled), column)
        return np.asarray(self.numbers[row, column])

    def of_cells(self, counts: RankCounts) -> IntArray:
        """Return the stratum of each cell of the counts."""
        return self.of_designs(counts.sampled, counts.items, full=counts.full)


def _range_starts(sizes: IntArray) -> IntArray:
    """Return the smallest size in each range, the range of the largest sizes first.

    >>> _range_starts(np.array([5000, 4500, 500]))
    array([4500,  500])
    """
    range_of_size = size_ranges(sizes)
    ranges = range(int(range_of_size.max()) + 1)
    return np.array([sizes[range_of_size == number].min() for number in ranges])
