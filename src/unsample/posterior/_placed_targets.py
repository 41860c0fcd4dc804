"""These users: the targets at hand, put inside their cells at random.

A full ranking of the same users would put each target at one rank. Given a curve, the targets of a
cell are spread over the ranks as P(R | cell) says, each by itself: their numbers in the bins follow
a multinomial distribution. So a metric of few users may be 0, and its values are steps.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from unsample._checks import FloatArray
from unsample.likelihood import CondensedCells

#: Bins in which a target of a cell is less often than this are left out.
_RARE = 1e-9
_TINY = 1e-300
#: Of a metric without a K, the first ranks are placed one by one.
_PLACED_RANKS = 100


def placed_targets(
    cells: CondensedCells, curves: Sequence[FloatArray], weights: Sequence[FloatArray]
) -> FloatArray:
    """Return the mean over targets of the weight of their bin, for each draw.

    ``curves`` (draws x bins) and ``weights`` (bins) are those of each stratum. A cell has as many
    targets as would have its variance if they weighed the same. The numbers are the same for every
    metric: Recall@5 is never above Recall@10. Of a metric without a K the ranks beyond a hundred
    add a sum of many small weights, which is close to normal.
    """
    found = np.zeros(len(curves[0]))
    targets_in_cell = cells.targets_in_cell
    start = 0
    for number, (stratum, curve, weight) in enumerate(
        zip(cells.strata, curves, weights, strict=True)
    ):
        shared = stratum.part * stratum.shares
        asked = np.flatnonzero(weight)
        last = int(asked[-1]) + 1 if len(asked) else 0
        if last == len(weight):
            last = min(last, int(np.searchsorted(stratum.grid.low, _PLACED_RANKS, side="right")))
        # Known ranks need no draw: their cells allow one bin each.
        single = np.count_nonzero(stratum.likelihood, axis=1) == 1
        found += shared[single] @ weight[stratum.likelihood[single].argmax(axis=1)]
        drawn = np.flatnonzero((shared > 0.0) & ~single)
        expected = np.maximum(curve @ stratum.likelihood[drawn].T, _TINY)
        further = bool(weight[last:].any())
        mean, deviation = _beyond(curve, weight, stratum.likelihood[drawn], last)
        for column, cell in enumerate(drawn.tolist()):
            inside = curve[:, :last] * stratum.likelihood[cell, :last]
            probabilities = inside / expected[:, column, None]
            targets = max(round(targets_in_cell[start + cell]), 1)
            seed = zlib.crc32(f"{number} {cell}".encode())
            placed = _placed(probabilities, targets, seed=seed)
            total = placed @ weight[:last]
            if further:
                left = targets - placed.sum(axis=1)
                normals = np.random.default_rng([seed, len(weight)]).standard_normal(len(left))
                rest = left * mean[:, column] + np.sqrt(left) * deviation[:, column] * normals
                total += np.maximum(rest, 0.0)
            found += shared[cell] / targets * total
        start += len(stratum.shares)
    return found


def _beyond(
    curve: FloatArray, weight: FloatArray, likelihood: FloatArray, last: int
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of the weight of targets beyond the ``last`` bins.

    They are those of each draw and cell (draws x cells); zeros where no bin beyond has a weight.
    """
    if not weight[last:].any():
        none = np.zeros((len(curve), len(likelihood)))
        return none, none
    beyond = curve[:, last:]
    cells = likelihood[:, last:].T
    mass = np.maximum(beyond @ cells, _TINY)
    mean = (beyond * weight[last:]) @ cells / mass
    square = (beyond * weight[last:] ** 2) @ cells / mass
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _placed(probabilities: FloatArray, targets: int, *, seed: int) -> FloatArray:
    """Return how many of the targets are in each bin, bin after bin from the top (draws x bins)."""
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
