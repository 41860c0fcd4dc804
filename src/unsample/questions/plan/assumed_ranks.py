"""A guess of P(R), from a power law or a pilot, and the ranks that it leads one to expect."""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray, IntArray, check_real
from unsample.counts import RankCounts, size_on_grid
from unsample.errors import InputError
from unsample.sampling import RankDistribution, RankGrid, SamplingModel, mean_over

#: Expected histograms have a cell for each rank up to this one, ...
_SINGLE_CELLS = 64
#: ... and then ranges, each so much longer than the one before.
_CELL_RATIO = 0.03
#: The exponent of the steepest power law that is tried.
_STEEPEST = 4.0
#: The guess of Recall@K if nothing is known.
_DEFAULT_RECALL = 0.1


def power_law(items: int, k: int, *, recall: float | None) -> tuple[RankDistribution, str]:
    """Return the P(R) proportional to R^-a that has this Recall@k, and a text about it.

    By default the recall is 0.1, or the recall of two random lists of K items if that is more.

    >>> guess, text = power_law(1000, 10, recall=0.5)
    >>> text
    'P(R) falls as R^-1.12, so that Recall@10 is 0.5'
    >>> round(float(guess.mass[guess.grid.high <= 10].sum()), 4)
    0.5
    """
    from scipy.optimize import brentq

    if k >= items:
        raise InputError(
            f"K must be below items = {items} where no pilot is given, got {k}: Recall@{k} is 1 "
            "whatever P(R) is, so it cannot be guessed from that"
        )
    if recall is None:
        recall = max(_DEFAULT_RECALL, 1.0 - (1.0 - k / items) ** 2)
    check_real("recall", recall, low=0.0, high=1.0, open_low=True, open_high=True)
    grid = RankGrid.coarse(items, cutoffs=[k])

    def mass(exponent: float) -> FloatArray:
        def density(ranks: FloatArray) -> FloatArray:
            return np.asarray(ranks**-exponent)

        of_bins = mean_over(density, grid.low, high=grid.high) * grid.width
        return np.asarray(of_bins / of_bins.sum())

    def at_top(exponent: float) -> float:
        return float(mass(exponent)[grid.high <= k].sum())

    if not at_top(0.0) <= recall <= at_top(_STEEPEST):
        raise InputError(
            f"recall must be in {at_top(0.0):.4g}..{at_top(_STEEPEST):.4g}, what power laws from "
            f"R^0 to R^-{_STEEPEST:g} give at K = {k} of {items} items, got {recall:g}; or give a "
            "pilot instead"
        )
    exponent = brentq(lambda steepness: at_top(steepness) - recall, 0.0, _STEEPEST, xtol=1e-12)
    text = f"P(R) falls as R^-{exponent:.2f}, so that Recall@{k} is {recall:.4g}"
    return RankDistribution(grid, mass(exponent)), text


def from_pilot(pilot: RankDistribution, items: int, *, k: int) -> tuple[RankDistribution, str]:
    """Return a known P(R) on the grid of a plan, and a text about it."""
    if not isinstance(pilot, RankDistribution):
        raise InputError(
            f"pilot must be a RankDistribution, got {type(pilot).__name__}; such as "
            "unsample.estimate(...).distribution()"
        )
    # If users have many sizes of catalogues, the size of the pilot is rounded.
    if pilot.items != items and size_on_grid(items) != pilot.items:
        raise InputError(
            f"pilot must rank among items = {items}, got one among {pilot.items} items"
        )
    grid = RankGrid.coarse(items, cutoffs=[k])
    ends = np.append(grid.high[:-1], max(items, pilot.items))
    # Some estimators give bins a negative mass.
    mass = np.maximum(np.diff(pilot.cdf(ends), prepend=0.0), 0.0)
    return RankDistribution(grid, mass / mass.sum()), "the P(R) of a pilot"


def draw_ranks(guess: RankDistribution, size: int, *, rng: np.random.Generator) -> IntArray:
    """Draw ranks among all items from a guess."""
    bins = rng.choice(len(guess.grid), size=size, p=guess.mass)
    return np.asarray(guess.grid.low[bins] + rng.integers(guess.grid.width[bins]))


def expected_counts(
    guess: RankDistribution, sampling: SamplingModel, *, targets: int
) -> RankCounts:
    """Return the expected histogram of the sampled ranks of so many targets.

    Ranks far down are grouped into ranges.

    >>> guess, _ = power_law(1000, 10, recall=0.5)
    >>> counts = expected_counts(guess, SamplingModel(items=1000, sampled=9), targets=20)
    >>> counts.low.tolist(), counts.count.tolist()
    ([1, 2, 3, 5, 8], [14, 3, 1, 1, 1])
    """
    starts = [*range(1, min(_SINGLE_CELLS, sampling.n) + 1)]
    while starts[-1] < sampling.n:
        starts.append(starts[-1] + max(1, int(_CELL_RATIO * starts[-1])))
    low = np.array([start for start in starts if start <= sampling.n])
    high = np.append(low[1:] - 1, sampling.n)
    probabilities = sampling.matrix(low, high, grid=guess.grid) @ guess.mass
    # Cumulated numbers are rounded, so that rare cells get their part.
    up_to_cell = np.rint(targets * np.cumsum(probabilities) / probabilities.sum())
    count = np.diff(up_to_cell, prepend=0.0).astype(np.int64)
    filled = count > 0
    return RankCounts.from_ranges(low[filled], high[filled], count=count[filled], design=sampling)


def expected_full(guess: RankDistribution, items: int, *, targets: int) -> RankCounts:
    """Return the full ranks of so many targets: quantiles of a guess.

    >>> guess, _ = power_law(1000, 10, recall=0.5)
    >>> expected_full(guess, 1000, targets=4).low.tolist()
    [1, 5, 26, 248]
    """
    cumulated = np.cumsum(guess.mass) / guess.mass.sum()
    probabilities = (np.arange(targets) + 0.5) / targets
    bins = np.searchsorted(cumulated, probabilities).clip(max=len(guess.grid) - 1)
    before = cumulated[bins] - guess.mass[bins] / guess.mass.sum()
    inside = (probabilities - before) / np.maximum(cumulated[bins] - before, 1e-300)
    ranks = guess.grid.low[bins] + np.floor(inside * guess.grid.width[bins])
    ranks = np.minimum(ranks.astype(np.int64), np.minimum(guess.grid.high[bins], items))
    return RankCounts.from_ranks(ranks, items=items, sampled=items - 1, replacement=False)
