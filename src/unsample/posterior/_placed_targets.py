"""These users: each draw places their targets at random inside their cells.

A full ranking of the same users would put each target at one rank. Given a curve, the targets of a
cell have independent ranks, distributed as P(R | cell): the numbers of targets in the bins follow a
multinomial distribution. So a metric of few users may be 0, and takes steps.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from unsample._checks import FloatArray
from unsample.likelihood import CondensedCells

#: Bins where a target of a cell lies with less than this probability are left out.
_RARE = 1e-9
_TINY = 1e-300
#: For a metric without a K, targets are placed in so many first ranks.
_PLACED_RANKS = 100


def placed_targets(
    cells: CondensedCells, curves: Sequence[FloatArray], *, weights: Sequence[FloatArray]
) -> FloatArray:
    """Return the mean over targets of the weight of their bin, for each draw.

    Each stratum has its ``curves`` (draws x bins) and its ``weights`` (bins). If targets of a cell
    have different weights, it counts as so many equal targets as would have its variance. The
    random numbers are the same for every metric, so Recall@5 is never above Recall@10. Beyond a
    hundred ranks a metric without a K adds many small weights: their sum is nearly normal.

    One target of two has a known rank, 1. The other has rank 1 of 1 in each draw or not:

    >>> from unsample.counts import RankCounts
    >>> counts = RankCounts.from_ranks([1, 1], items=3, sampled=[2, 1])
    >>> cells = CondensedCells.of(counts)
    >>> curves = np.full((1000, 3), 1 / 3)
    >>> means = placed_targets(cells, [curves], weights=[np.array([1.0, 0.0, 0.0])])
    >>> np.unique(means).tolist()
    [0.5, 1.0]
    >>> bool(abs((means == 1.0).mean() - 2 / 3) < 0.05)          # of 1 + 1/2 + 0, the first is 2/3
    True
    """
    total = np.zeros(len(curves[0]))
    targets_in_cell = cells.targets_in_cell
    start = 0
    for number, (stratum, curve, weight) in enumerate(
        zip(cells.strata, curves, weights, strict=True)
    ):
        share_of_all = stratum.part * stratum.shares
        weighted_bins = np.flatnonzero(weight)
        end = int(weighted_bins[-1]) + 1 if len(weighted_bins) else 0
        if end == len(weight):
            end = min(end, int(np.searchsorted(stratum.grid.low, _PLACED_RANKS, side="right")))
        # Known ranks need no draw: their cells allow one bin each.
        known = np.count_nonzero(stratum.likelihood, axis=1) == 1
        total += share_of_all[known] @ weight[stratum.likelihood[known].argmax(axis=1)]
        drawn = np.flatnonzero((share_of_all > 0.0) & ~known)
        expected = np.maximum(curve @ stratum.likelihood[drawn].T, _TINY)
        has_rest = bool(weight[end:].any())
        mean, deviation = _moments_of_rest(
            curve[:, end:], weight[end:], likelihood=stratum.likelihood[drawn, end:]
        )
        for column, cell in enumerate(drawn.tolist()):
            inside = curve[:, :end] * stratum.likelihood[cell, :end]
            probabilities = inside / expected[:, column, None]
            targets = max(round(targets_in_cell[start + cell]), 1)
            seed = zlib.crc32(f"{number} {cell}".encode())
            placed = _placed(probabilities, targets, seed=seed)
            of_cell = placed @ weight[:end]
            if has_rest:
                left = targets - placed.sum(axis=1)
                normals = np.random.default_rng([seed, len(weight)]).standard_normal(len(left))
                rest = left * mean[:, column] + np.sqrt(left) * deviation[:, column] * normals
                of_cell += np.maximum(rest, 0.0)
            total += share_of_all[cell] / targets * of_cell
        start += len(stratum.shares)
    return total


def _moments_of_rest(
    curve: FloatArray, weight: FloatArray, *, likelihood: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of a target's weight in each cell (draws x cells).

    All arguments are cut to the same bins. Both are zeros where no bin has a weight. A target that
    is as likely in a bin of weight 4 as in one of weight 2:

    >>> mean, deviation = _moments_of_rest(
    ...     np.array([[0.1, 0.1]]), np.array([4.0, 2.0]), likelihood=np.array([[0.5, 0.5]])
    ... )
    >>> mean.round(6).tolist(), deviation.round(6).tolist()
    ([[3.0]], [[1.0]])
    """
    if not weight.any():
        zeros = np.zeros((len(curve), len(likelihood)))
        return zeros, zeros
    mass = np.maximum(curve @ likelihood.T, _TINY)
    mean = (curve * weight) @ likelihood.T / mass
    square = (curve * weight**2) @ likelihood.T / mass
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _placed(probabilities: FloatArray, targets: int, *, seed: int) -> FloatArray:
    """Return how many of the targets are in each bin (draws x bins), bin after bin from the top.

    Two bins with the probabilities 1/4 and 3/4 hold all of eight targets:

    >>> placed = _placed(np.array([[0.25, 0.75]]), targets=8, seed=0)
    >>> float(placed.sum())
    8.0
    """
    placed = np.zeros_like(probabilities)
    left = np.full(len(probabilities), targets)
    rest = np.ones(len(probabilities))
    for column in np.flatnonzero(probabilities.max(axis=0, initial=0.0) > _RARE).tolist():
        # A generator for each bin: what it holds does not depend on how many bins are asked for.
        rng = np.random.default_rng([seed, column])
        share = np.clip(probabilities[:, column] / np.maximum(rest, _TINY), 0.0, 1.0)
        placed[:, column] = rng.binomial(left, share)
        left = left - placed[:, column].astype(np.int64)
        rest = np.maximum(rest - probabilities[:, column], 0.0)
    return placed
