"""A partition of the ranks 1..N into bins: single ranks at the top, wider bins further down.

A metric@K looks at single ranks near the top, and a sample of n - 1 items sees the rest only
blurred. So the first ranks and every K in use stand alone, and beyond them a bin is as wide as
``ratio`` of its rank, but never wider than a fraction of the sampling error of the rank there.
The number of bins then grows with log N and the square root of n, not with N.

Averages over a bin are exact for polynomials up to degree five in the rank (`mean_over`), so a
smooth function is averaged over a bin to about (width / rank)^6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unsample._checks import LARGEST_CATALOGUE, BoolArray, FloatArray, IntArray, check_integer
from unsample.errors import DesignError

__all__ = ["RankGrid", "mean_over"]

#: Ranks that always stand alone.
FIRST_SINGLE_RANKS = 64
#: Width of a bin relative to its rank.
RATIO = 0.0125
#: Widest bin in units of the standard error of a rank seen through the sample.
SHARE_OF_STANDARD_ERROR = 0.2


@dataclass(frozen=True, eq=False)
class RankGrid:
    """Bins ``low[b]..high[b]`` that cover the ranks ``1..items`` without gap or overlap."""

    low: IntArray
    items: int

    @classmethod
    def build(
        cls,
        items: int,
        *,
        sampled: int = 0,
        cutoffs: Iterable[int] = (),
        ratio: float = RATIO,
        single: int = FIRST_SINGLE_RANKS,
        blur: float = SHARE_OF_STANDARD_ERROR,
    ) -> RankGrid:
        """Build the grid for a catalogue, the largest sample in use, and the cutoffs K in use.

        The first ``single`` ranks stand alone; further bins are at most as wide as ``ratio`` of
        their rank, and ``blur`` times the standard error of a rank seen through the sample.
        """
        items = check_integer(
            "items", items, minimum=1, maximum=LARGEST_CATALOGUE, error=DesignError
        )
        lows = np.array(_bin_starts(items, sampled, ratio, single, blur), dtype=np.int64)
        kept = np.array([k + shift for k in cutoffs for shift in (0, 1)], dtype=np.int64)
        kept = kept[(kept >= 1) & (kept <= items)]
        return cls(np.union1d(lows, kept), items)

    @classmethod
    def dense(cls, items: int) -> RankGrid:
        """Return the grid on which every rank stands alone."""
        return cls(np.arange(1, items + 1, dtype=np.int64), items)

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def high(self) -> IntArray:
        """Return the last rank of each bin."""
        return np.append(self.low[1:] - 1, self.items)

    @cached_property
    def width(self) -> IntArray:
        """Return how many ranks each bin holds."""
        return self.high - self.low + 1

    def locate(self, ranks: IntArray) -> IntArray:
        """Return the bin that holds each rank."""
        return np.searchsorted(self.low, ranks, side="right") - 1


def mean_over(
    function: Callable[[FloatArray], FloatArray],
    low: IntArray,
    high: IntArray,
    *,
    one_by_one: BoolArray | None = None,
) -> FloatArray:
    """Return the mean of ``function`` over the integers ``low..high``, for many ranges at once.

    The last axis of what ``function`` returns must follow the ranks it is given. The rule has
    three points: their weights and places match the first six moments of the uniform
    distribution on ``high - low + 1`` consecutive integers. It is exact up to three integers.
    Ranges marked ``one_by_one`` are summed over all their integers instead, for functions that
    are not smooth there.
    """
    result = _three_point_mean(function, low, high)
    if one_by_one is not None and one_by_one.any():
        result[..., one_by_one] = _plain_mean(function, low[one_by_one], high[one_by_one])
    return result


def _plain_mean(
    function: Callable[[FloatArray], FloatArray], low: IntArray, high: IntArray
) -> FloatArray:
    count = high - low + 1
    starts = np.cumsum(count) - count
    ranks = np.arange(count.sum()) - np.repeat(starts - low, count)
    sums = np.add.reduceat(function(ranks.astype(np.float64)), starts, axis=-1)
    return np.asarray(sums / count)


def _three_point_mean(
    function: Callable[[FloatArray], FloatArray], low: IntArray, high: IntArray
) -> FloatArray:
    count = (high - low + 1).astype(np.float64)
    middle = (low + high) / 2.0
    # A single rank would need an imaginary offset: it is looked at in its own place only.
    offset = np.sqrt(np.maximum(3.0 * count * count - 7.0, 1.0) / 20.0)
    weight = (count * count - 1.0) / (24.0 * offset * offset)
    outer = function(np.where(count > 1, middle - offset, middle))
    outer = outer + function(np.where(count > 1, middle + offset, middle))
    return weight * outer + (1.0 - 2.0 * weight) * function(middle)


def _bin_starts(items: int, sampled: int, ratio: float, single: int, blur: float) -> list[int]:
    """Walk down the ranks, each bin as wide as its rank and the sample allow."""
    starts = list(range(1, min(single, items) + 1))
    others = max(items - 1, 1)
    low = len(starts) + 1
    while low <= items:
        starts.append(low)
        width = ratio * low
        if sampled > 0:
            share = (low - 1) / others
            # Below one part in `sampled` from either end the sample sees no finer than that.
            spread = max(share * (1.0 - share), 1.0 / sampled)
            standard_error = others * math.sqrt(spread / sampled)
            width = min(width, blur * standard_error)
        low += max(1, int(width))
    return starts
