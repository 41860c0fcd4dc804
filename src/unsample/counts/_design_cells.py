"""The rules that cells of counts keep, and the metrics that can be computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, at_position
from unsample.counts._catalogues import sizes_on_grid
from unsample.counts._columns import refuse_where
from unsample.errors import DesignError, MetricError, RankError
from unsample.metrics import Metric, RPrec
from unsample.sampling import SamplingModel

if TYPE_CHECKING:
    from unsample.counts._rank_counts import RankCounts

#: The hint for a rank that is not whole: a mean over an unknown number of ties is no rank.
WHOLE = "break ties at random, as unsample.sampled_ranks does, or give scores"
#: Ranks that are counted at a time: few enough for the processor's cache.
_CHUNK = 1 << 16


@dataclass(frozen=True)
class DesignCells:
    """The cells of one design; ``columns`` are their indices in the counts."""

    design: SamplingModel
    low: IntArray
    high: IntArray
    columns: slice


def refuse_joint(metric: Metric, *, positions: bool = False) -> None:
    """Refuse a metric that needs the ranks of all of a user's targets together.

    Where the ``positions`` of a user's targets are known, only R-precision needs the ranks.

    Raises
    ------
    MetricError
        The metric needs more than the counts hold.
    """
    several = f"{metric} of users with several relevant items needs"
    if metric.family is RPrec:
        raise MetricError(
            f"{several} their full ranks, got sampled ones; ask for Recall, or rank with "
            "design='certified' or 'exact'"
        )
    if metric.family.uses_positions and not positions:
        raise MetricError(
            f"{several} the ranks of all of them among the same items, got ranks that were sampled "
            "one by one; ask for Recall, NDCG or Precision, give scored lists (user, item, score, "
            "target), or rank with design='certified' or 'exact'; if each user should have one "
            "target, drop duplicate rows and tell models apart"
        )


def check_cells(cells: RankCounts) -> None:
    """Refuse columns that no evaluation could give, naming the rule and a value."""
    if not len(cells):
        raise RankError("rank counts must hold at least one cell, got none")
    refuse_where(cells.items < 2, "items must be at least 2", values=cells.items, error=DesignError)
    refuse_where(
        cells.sampled < 1, "sampled must be at least 1", values=cells.sampled, error=DesignError
    )
    if not cells.replacement:
        too_many = cells.sampled > cells.items - 1
        rule = "sampled must be at most items - 1 without replacement"
        refuse_where(too_many, rule, values=cells.sampled, error=DesignError)
    too_low = cells.low < 1
    rule = "ranks must be at least 1"
    refuse_where(too_low, rule, values=cells.low, error=RankError, hint=rank_hint(0))
    too_high = cells.high > cells.sampled + 1
    rule = "ranks must be at most sampled + 1"
    refuse_where(too_high, rule, values=cells.high, error=RankError, hint=rank_hint(np.inf))
    refuse_where(
        cells.low > cells.high, "low must not exceed high", values=cells.low, error=RankError
    )
    refuse_where(
        cells.count < 0, "counts must not be negative", values=cells.count, error=RankError
    )
    if not cells.count.any():
        raise RankError("counts must not all be zero: there is nothing to estimate from")
    refuse_where(
        cells.relevant < 1, "relevant must be at least 1", values=cells.relevant, error=RankError
    )
    outside = (cells.position < 0) | (cells.position > cells.relevant)
    refuse_where(outside, "position must be in 0..relevant", values=cells.position, error=RankError)
    _check_sizes(cells)


def _check_sizes(cells: RankCounts) -> None:
    """Refuse true sizes of catalogues that do not round to a cell's ``items``."""
    for sizes in (cells.smallest, cells.largest):
        wrong = sizes != cells.items
        for keep_full in (True, False) if cells.replacement else (True,):
            wrong &= sizes_on_grid(sizes, cells.sampled, keep_full=keep_full) != cells.items
        rule = "smallest and largest must be sizes that items stands for"
        refuse_where(wrong, rule, values=sizes, error=DesignError)
    wrong = cells.smallest > cells.largest
    refuse_where(
        wrong, "smallest must not exceed largest", values=cells.smallest, error=DesignError
    )


def count_ranks(ranks: npt.NDArray[np.integer[Any]], design: SamplingModel) -> IntArray:
    """Count the ranks 1..n in one pass, and refuse others.

    >>> count_ranks(np.array([1, 3, 3]), SamplingModel(items=50, sampled=3)).tolist()
    [1, 0, 2, 0]
    """
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
    """Return the hint for a rank that is out of range."""
    if rank % 1 > 0:
        return WHOLE
    if rank < 1:
        return "ranks start at 1, the best; add 1 if yours start at 0"
    return "these may be full-catalogue ranks (use unsample.exact), or sampled is too small"


def span(low: int, high: int) -> str:
    """Return the smallest and the largest value as text; one number where they are equal.

    >>> span(50, 90), span(50, 50)
    ('50..90', '50')
    """
    return str(low) if low == high else f"{low}..{high}"
