"""How a global rank becomes a sampled rank: P(r | R).

A target stands at rank R among N items; ``sampled`` of the N - 1 others are drawn uniformly, and
r - 1 of the drawn items beat the target. With replacement r - 1 is binomial with success
probability theta = (R - 1) / (N - 1); without replacement it is hypergeometric.

Accuracy. Both distributions are written through h(c) = log c! - c log c + c, which stays small, and
through terms cell * log(cell / expected) whose arguments are formed from an exact integer
difference. Nothing of the size of log N! is ever subtracted, so the relative error stays near 1e-12
where log-gamma formulas lose six digits (N = 10^9). Ranks need not be whole: the bins of a rank
grid are averaged at fractional ranks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    LARGEST_CATALOGUE,
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_integer_array,
    as_rng,
    check_flag,
    check_integer,
)
from unsample.errors import DesignError, RankError
from unsample.sampling._rank_grid import RankGrid, mean_over

#: Below this, h(c) is taken from log-gamma; above, from Stirling's series (error < 1e-16).
_STIRLING_FROM = 16.0
#: Wider bins are evaluated at a few ranks, even where the distribution is not smooth.
_WIDE = 64
#: The distribution is treated as not smooth for at least this number of ranks at either end.
_MIN_REACH = 64
#: For bins wider than this number of standard errors of a rank, three ranks are not enough.
_TOO_WIDE = 3.0
#: Minus the logarithm of a negligible probability.
_NEVER = 37.0
#: The hypergeometric distribution of numpy needs fewer items of either kind than this.
LARGEST_URN = 1_000_000_000
#: The largest block of numbers when probabilities of ranges of ranks are summed.
_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True)
class SamplingModel:
    """A sampled evaluation: ``sampled`` of the other ``items - 1`` items are drawn for a target.

    Parameters
    ----------
    items
        N, the number of candidates a full ranking would have, the target included.
    sampled
        How many other items are drawn; the target is ranked among n = sampled + 1.
    replacement
        Whether the same item may be drawn twice.

    >>> SamplingModel(items=3706, sampled=99).pmf(1, [1, 38, 375]).round(4)
    array([1.    , 0.3702, 0.    ])
    """

    items: int
    sampled: int
    replacement: bool = True

    def __post_init__(self) -> None:
        items = check_integer(
            "items",
            self.items,
            minimum=2,
            maximum=LARGEST_CATALOGUE,
            hint="items counts the whole catalogue, the target included",
            error=DesignError,
        )
        sampled = check_integer(
            "sampled",
            self.sampled,
            minimum=1,
            hint="sampled counts the drawn items without the target (99, not 100)",
            error=DesignError,
        )
        object.__setattr__(self, "replacement", check_flag("replacement", self.replacement))
        if not self.replacement and sampled > items - 1:
            raise DesignError(
                f"sampled must be at most items - 1 = {items - 1} without replacement, got "
                f"{sampled}; check items (swapped with sampled?), or sample with replacement"
            )
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "sampled", sampled)

    @property
    def n(self) -> int:
        """Return among how many items each target is ranked, itself included."""
        return self.sampled + 1

    @property
    def full(self) -> bool:
        """Return whether every other item is drawn, so that a sampled rank is the global rank."""
        return not self.replacement and self.sampled == self.items - 1

    def log_pmf(self, sampled_rank: npt.ArrayLike, rank: npt.ArrayLike) -> FloatArray:
        """Return log P(r | R), broadcasting ``sampled_rank`` against ``rank``."""
        r = np.asarray(sampled_rank, dtype=np.float64)
        big_r = np.asarray(rank, dtype=np.float64)
        log_distribution = _log_binomial if self.replacement else _log_hypergeometric
        with np.errstate(divide="ignore", invalid="ignore"):
            result = log_distribution(
                r - 1.0, big_r - 1.0, float(self.sampled), float(self.items - 1)
            )
        possible = (r >= 1) & (r <= self.n) & (big_r >= 1) & (big_r <= self.items)
        return np.where(possible, result, -np.inf)

    def pmf(self, sampled_rank: npt.ArrayLike, rank: npt.ArrayLike) -> FloatArray:
        """Return P(r | R), broadcasting ``sampled_rank`` against ``rank``."""
        return np.exp(self.log_pmf(sampled_rank, rank))

    def range_pmf(self, low: IntArray, high: IntArray, rank: FloatArray) -> FloatArray:
        """Return P(low <= r <= high | R): one row for each range, one column for each rank.

        At rank 3 of 5 each of two draws is a better item with probability 1/2.

        >>> model = SamplingModel(items=5, sampled=2)
        >>> model.range_pmf(np.array([1, 2]), np.array([1, 3]), np.array([3.0])).tolist()
        [[0.25], [0.75]]
        """
        low = np.asarray(low, dtype=np.int64)
        high = np.asarray(high, dtype=np.int64)
        if self.full:
            return ((low[:, None] <= rank) & (rank <= high[:, None])).astype(np.float64)
        if np.array_equal(low, high):
            return self.pmf(low[:, None], rank[None, :])
        if self.replacement:
            return self._range_binomial(low, high, rank=rank)
        lowest, highest = self._reachable(rank)
        result = np.zeros((len(low), len(rank)))
        for row, (first, last) in enumerate(zip(low, high, strict=True)):
            near = np.flatnonzero((last >= lowest) & (first <= highest))
            step = max(1, _BLOCK // max(len(near), 1))
            for start in range(first, last + 1, step):
                block = np.arange(start, min(start + step, last + 1))
                result[row, near] += self.pmf(block[:, None], rank[None, near]).sum(axis=0)
        return result

    def _range_binomial(self, low: IntArray, high: IntArray, rank: FloatArray) -> FloatArray:
        """Return `range_pmf` with replacement, from the nearer tail at each end of a range.

        So the small probability of a distant range is not a difference of two numbers near one.
        """
        from scipy.special import betainc

        ends, index = np.unique(np.concatenate([low - 1, high]), return_inverse=True)
        lowest, highest = self._reachable(rank)
        # Only between these columns is the tail at an end neither 0 nor 1.
        row, column = np.nonzero((ends[:, None] >= lowest) & (ends[:, None] <= highest))
        end = ends[row].astype(np.float64)
        better = (rank[column] - 1.0) / (self.items - 1.0)
        worse = (self.items - rank[column]) / (self.items - 1.0)
        below_mean = end - 1.0 < self.sampled * better
        inside = (end >= 1) & (end <= self.sampled)
        # P(r <= end) below the mean, and minus P(r > end) above it.
        draws_beyond = np.maximum(self.sampled - end + 1.0, 1e-9)
        draws_before = np.maximum(end, 1e-9)
        lower_tail = betainc(draws_beyond, draws_before, np.where(below_mean, worse, 0.0))
        upper_tail = betainc(draws_before, draws_beyond, np.where(below_mean, 0.0, better))
        tails = np.zeros((len(ends), len(rank)))
        tails[row, column] = np.where(inside, np.where(below_mean, lower_tail, -upper_tail), 0.0)
        is_below = ends[:, None] - 1.0 < self.sampled * ((rank - 1.0) / (self.items - 1.0))
        before_first, last = np.split(index.reshape(-1), 2)
        # The two tails of a range around the mean add up to 1 less its probability.
        around_mean = is_below[before_first] & ~is_below[last]
        return np.asarray(np.maximum(tails[last] - tails[before_first] + around_mean, 0.0))

    def _reachable(self, rank: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest sampled rank that each rank can give.

        By Bernstein's inequality all others have a probability below e^-161, or 1e-70.
        """
        share = (rank - 1.0) / (self.items - 1.0)
        deviation = np.sqrt(self.sampled * share * (1.0 - share))
        mean = 1.0 + self.sampled * share
        reach = 18.0 * deviation + 110.0
        return mean - reach, mean + reach

    def matrix(
        self,
        low: IntArray,
        high: IntArray,
        grid: RankGrid,
        *,
        beyond: Literal["impossible", "last"] = "impossible",
    ) -> FloatArray:
        """Return the mean of P(low <= r <= high | R) over the ranks of each bin.

        Where users have fewer candidates than others, the grid reaches beyond this catalogue.
        Ranks above ``items`` are ``"impossible"`` and count as zeros, or they act as the ``"last"``
        rank, whose sampled rank is always n. Expectations need the latter: otherwise mass
        beyond would vanish, and an estimator could hide mass there.

        >>> grid = RankGrid(low=np.array([1, 2, 4]), items=5)
        >>> ranks = np.array([1, 2, 3])
        >>> SamplingModel(items=5, sampled=2).matrix(ranks, ranks, grid).round(6).tolist()
        [[1.0, 0.40625, 0.03125], [0.0, 0.4375, 0.1875], [0.0, 0.15625, 0.78125]]
        """
        inside = grid.low <= self.items
        reach = np.minimum(grid.high, self.items)
        share = (reach - grid.low + 1).clip(min=0) / grid.width
        if self.full:
            # P(r | R) is 1 when r = R: the share of each bin's ranks that lies in each range.
            first = np.maximum(low[:, None], grid.low)
            last = np.minimum(high[:, None], grid.high)
            result = np.asarray((last - first + 1).clip(min=0) / grid.width)
        else:
            result = np.zeros((len(low), len(grid)))
            result[:, inside] = mean_over(
                lambda ranks: self.range_pmf(low, high, rank=ranks),
                grid.low[inside],
                high=reach[inside],
                one_by_one=self._has_kinks(grid.low[inside], reach[inside]),
            )
            result *= share
        if beyond == "last":
            result[high == self.n] += 1.0 - share
        return result

    def _has_kinks(self, first: IntArray, last: IntArray) -> BoolArray:
        """Return the bins over which P(r | R) is not smooth, if narrow enough to visit each rank.

        Without replacement r - 1 <= R - 1 and n - r <= N - R. Where a share f of the items is
        sampled, these bounds are reached with probability f^(R-1) and f^(N-R), so the distribution
        is not smooth near either end; nor is it across bins of several standard errors of a rank.
        """
        if self.replacement:
            return np.zeros(len(first), dtype=bool)
        narrow = last - first < _WIDE
        sampled = self.sampled / (self.items - 1.0)
        reach = max(_MIN_REACH, _NEVER / -math.log(sampled))
        near = (first <= reach) | (last > self.items - reach)
        share = ((first + last) / 2.0 - 1.0) / (self.items - 1.0)
        error = self.items * np.sqrt(share * (1.0 - share) * (1.0 - sampled) / self.sampled)
        return np.asarray(narrow & (near | (last - first > _TOO_WIDE * error)))

    def draw(
        self, ranks: npt.ArrayLike, *, rng: Seed = None, size: tuple[int, ...] = ()
    ) -> IntArray:
        """Draw sampled ranks of targets at global ``ranks``; ``size`` leads the shape.

        >>> SamplingModel(items=100, sampled=9).draw([1, 40, 100], rng=0).tolist()
        [1, 5, 10]
        """
        return draw_sampled_ranks(
            ranks,
            items=self.items,
            sampled=self.sampled,
            replacement=self.replacement,
            rng=rng,
            size=size,
        )


def refuse_overdrawn(items: npt.ArrayLike, sampled: npt.ArrayLike) -> None:
    """Refuse samples that for every target are larger than all other items together.

    With replacement such samples are possible, and small relations of a knowledge graph have them
    beside larger ones. Where no target has a larger catalogue, an argument is wrong.

    >>> refuse_overdrawn([50, 5000], sampled=99)
    """
    sizes, drawn = np.broadcast_arrays(np.asarray(items), np.asarray(sampled))
    if sizes.size and (drawn >= sizes).all():
        largest = int(np.argmax(sizes))
        raise DesignError(
            f"sampled must be less than items, got {drawn.flat[largest]:,} draws from "
            f"{sizes.flat[largest]:,} items; check items, the size of the whole catalogue (swapped "
            "with sampled?), and if all its items were ranked give unsample.exact the ranks"
        )


def as_better(ranks: npt.ArrayLike, items: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """Return how many candidates beat each target, and how many other candidates there are.

    ``ranks`` are full-catalogue ranks, ``items`` one number or one for each of them.

    >>> as_better([1, 4], items=10)
    (array([0, 3]), array([9, 9]))
    """
    try:
        full_ranks, sizes = np.broadcast_arrays(np.asarray(ranks), np.asarray(items))
    except ValueError as problem:
        raise DesignError(
            f"items must be one number or one for each of the {np.size(ranks)} ranks, got "
            f"{np.size(items)}"
        ) from problem
    flat_ranks = as_integer_array("ranks", full_ranks.ravel(), hint="ranks start at 1")
    flat_sizes = as_integer_array("items", sizes.ravel(), error=DesignError)
    better = flat_ranks.astype(np.int64) - 1
    others = flat_sizes.astype(np.int64) - 1
    if (others < 1).any():
        raise DesignError(f"items must be at least 2, got {others.min() + 1}")
    outside = (better < 0) | (better > others)
    if outside.any():
        where = int(np.argmax(outside))
        raise RankError(
            f"ranks must be in 1..items (1 is the best), got {better[where] + 1} where items is "
            f"{others[where] + 1}"
        )
    return better.reshape(full_ranks.shape), others.reshape(full_ranks.shape)


def draw_sampled_ranks(
    ranks: npt.ArrayLike,
    *,
    items: npt.ArrayLike,
    sampled: int,
    replacement: bool = True,
    rng: Seed = None,
    size: tuple[int, ...] = (),
) -> IntArray:
    """Draw sampled ranks of targets at global ``ranks``; ``items`` may differ by target.

    >>> draw_sampled_ranks([1, 40, 100], items=100, sampled=9, rng=0).tolist()
    [1, 5, 10]
    """
    generator = as_rng(rng)
    better, others = as_better(ranks, items)
    shape = (*size, *better.shape)
    if replacement:
        drawn = generator.binomial(sampled, better / others, size=shape)
    else:
        if others.max(initial=0) >= LARGEST_URN:
            raise DesignError(
                f"items must be at most {LARGEST_URN:,} to draw without replacement, got more; "
                "draw with replacement, which is the same for a catalogue of this size"
            )
        drawn = generator.hypergeometric(better, others - better, sampled, size=shape)
    return np.asarray(drawn + 1, dtype=np.int64)


def _log_binomial(x: FloatArray, better: FloatArray, draws: float, others: float) -> FloatArray:
    """Return log P(x of the draws are better items), drawn with replacement.

    Two of three draws are one of 4 better items among 8: 3 / 2^3.

    >>> np.exp(_log_binomial(np.array([2.0]), np.array([4.0]), 3.0, 8.0)).round(9).tolist()
    [0.375]
    """
    worse = others - better
    # x minus its mean, from whole numbers: exact below 2^53.
    difference = (x * others - draws * better) / others
    deviance = _scaled_log(x, difference, expected=draws * better / others)
    deviance = deviance + _scaled_log(draws - x, -difference, expected=draws * worse / others)
    return _h(np.float64(draws)) - _h(x) - _h(draws - x) - deviance


def _log_hypergeometric(
    x: FloatArray, better: FloatArray, draws: float, others: float
) -> FloatArray:
    """Return log P(x of the draws are better items), drawn without replacement.

    Two of three draws are one of 4 better items among 8: C(4, 2) C(4, 1) / C(8, 3) = 24 / 56.

    >>> np.exp(_log_hypergeometric(np.array([2.0]), np.array([4.0]), 3.0, 8.0)).round(6).tolist()
    [0.428571]
    """
    worse = others - better
    left = others - draws
    cells = (
        (x, better * draws / others, 1.0),
        (better - x, better * left / others, -1.0),
        (draws - x, worse * draws / others, -1.0),
        (worse - draws + x, worse * left / others, 1.0),
    )
    difference = (x * others - draws * better) / others
    margins = _h(better) + _h(worse) + _h(np.float64(draws)) + _h(np.float64(left))
    result = margins - _h(np.float64(others))
    impossible = np.zeros(np.broadcast(x, better).shape, dtype=bool)
    for cell, expected, sign in cells:
        impossible |= cell < 0
        kept = np.maximum(cell, 0.0)
        result = result - _h(kept) - _scaled_log(kept, sign * difference, expected=expected)
    return np.where(impossible, -np.inf, result)


def _scaled_log(cell: FloatArray, difference: FloatArray, expected: FloatArray) -> FloatArray:
    """Return cell * log(cell / expected), with cell = expected + difference and 0 log 0 = 0."""
    ratio = difference / expected
    return np.where(cell > 0, cell * np.log1p(ratio), 0.0)


def _h(count: FloatArray | np.float64) -> FloatArray:
    """Return log c! - c log c + c, which is 0 at c = 0 and grows like log(2 pi c) / 2.

    >>> _h(np.array([0.0, 1.0])).round(9).tolist()
    [0.0, 1.0]
    >>> bool(np.isclose(_h(np.float64(20)), math.lgamma(21) - 20 * math.log(20) + 20))
    True
    """
    c = np.asarray(count, dtype=np.float64)
    large = np.maximum(c, _STIRLING_FROM)
    inverse = 1.0 / large
    square = inverse * inverse
    series = 1 / 12 - square * (
        1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square * (1 / 1188)))
    )
    result = np.asarray(0.5 * np.log(2.0 * np.pi * large) + inverse * series)
    is_small = c < _STIRLING_FROM
    if is_small.any():
        from scipy.special import gammaln

        # The logarithm of a factorial is slow, so it is computed only where it is needed.
        small = np.maximum(c[is_small], 1e-300)
        result[is_small] = gammaln(small + 1.0) - small * np.log(small) + small
    return result
