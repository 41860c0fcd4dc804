"""What cells of counts must hold, and which metrics can be computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, at_position
from unsample.errors import DesignError, MetricError, RankError
from unsample.evidence._columns import refuse_where
from unsample.law import Law
from unsample.metrics import Metric, RPrec

if TYPE_CHECKING:
    from unsample.evidence._counts import RankCounts

#: What to do about a rank that is not whole: a mean over ties of unknown number is no rank.
WHOLE = "break ties at random, as unsample.sampled_ranks does, or give scores"
#: Nobody draws so many times the catalogue in order to save scores.
_FAR_MORE = 5
#: Ranks that are counted at a time: few enough for the processor's cache.
_CHUNK = 1 << 16


@dataclass(frozen=True)
class DesignCells:
    """The cells of one design; ``columns`` is their place in the counts."""

    design: Law
    low: IntArray
    high: IntArray
    columns: slice


def refuse_joint(metric: Metric, *, places: bool = False) -> None:
    """Refuse a metric that needs all targets of a user together.

    If the ``places`` of a user's targets are known, only R-precision is such a metric.
    """
    several = f"{metric} of users with several relevant items needs"
    if metric.family is RPrec:
        raise MetricError(
            f"{several} their full ranks, got sampled ones; ask for Recall, or rank with "
            "design='certified' or 'exact'"
        )
    if metric.family.uses_places and not places:
        raise MetricError(
            f"{several} the ranks of all of them among the same items, got ranks that were sampled "
            "one by one; ask for Recall, NDCG or Precision, give scored lists (user, item, score, "
            "target), or rank with design='certified' or 'exact'"
        )


def check_cells(cells: RankCounts) -> None:
    """Refuse columns that no evaluation could give, naming the rule and a value."""
    if not len(cells):
        raise RankError("rank counts must hold at least one cell, got none")
    refuse_where(cells.items < 2, "items must be at least 2", cells.items, DesignError)
    refuse_where(cells.sampled < 1, "sampled must be at least 1", cells.sampled, DesignError)
    if not cells.replacement:
        too_many = cells.sampled > cells.items - 1
        rule = "sampled must be at most items - 1 without replacement"
        refuse_where(too_many, rule, cells.sampled, DesignError)
    below, above = cells.low < 1, cells.high > cells.sampled + 1
    refuse_where(below, "ranks must be at least 1", cells.low, RankError, rank_hint(0))
    rule = "ranks must be at most sampled + 1"
    refuse_where(above, rule, cells.high, RankError, rank_hint(np.inf))
    refuse_where(cells.low > cells.high, "low must not exceed high", cells.low, RankError)
    refuse_where(cells.count < 0, "counts must not be negative", cells.count, RankError)
    if not cells.count.any():
        raise RankError("counts must not all be zero: there is nothing to estimate from")
    refuse_where(cells.relevant < 1, "relevant must be at least 1", cells.relevant, RankError)
    outside = (cells.place < 0) | (cells.place > cells.relevant)
    refuse_where(outside, "place must be in 0..relevant", cells.place, RankError)
    _refuse_swapped(cells)


def _refuse_swapped(cells: RankCounts) -> None:
    """Refuse items and sampled that seem to be swapped: so many draws would give higher ranks.

    With far more draws than items, ranks are 1, or at least about ``sampled / items``.
    """
    items, sampled = int(cells.items.max()), int(cells.sampled.min())
    if sampled > _FAR_MORE * items and 1 < cells.high.max() <= items + 1:
        raise DesignError(
            f"items must be the catalogue's size, got {items} with sampled = {sampled}; swapped?"
        )


def count_ranks(ranks: npt.NDArray[np.integer[Any]], design: Law) -> IntArray:
    """Count the ranks 1..n in one pass, and refuse others."""
    total = np.zeros(design.n + 1, dtype=np.int64)
    for start in range(0, len(ranks), _CHUNK):
        chunk = ranks[start : start + _CHUNK]
        if chunk.min() < 1 or chunk.max() > design.n:
            where = int(np.argmax((chunk < 1) | (chunk > design.n)))
            raise RankError(
                f"ranks must be in 1..{design.n} (sampled + 1), got {chunk[where]} "
                f"{at_position(start + where, len(ranks))}; {rank_hint(chunk[where])}"
            )
        total += np.bincount(chunk.astype(np.intp, copy=False), minlength=design.n + 1)
    return total[1:]


def rank_hint(rank: float) -> str:
    """Return what to do about a rank that is out of range."""
    if rank % 1 > 0:
        return WHOLE
    if rank < 1:
        return "ranks start at 1, the best; add 1 if yours start at 0"
    return "these may be full-catalogue ranks (use unsample.exact), or sampled is too small"


def span(values: IntArray) -> str:
    """Return the values as text: one number, or the least and the greatest."""
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low}..{high}"
