"""`Condensed`: a batch of histograms over few cells and few bins, for smooth distributions.

A sample sees the share theta of better items with a standard error of sqrt(theta (1 - theta)/n),
which is even along arcsin(sqrt(theta)), and nearly even along the probit of theta. Sampled ranks
closer than half a standard error, and global ranks closer than that, may stand together for any
P(R) that is smooth on this scale: some 60 cells and 170 bins are left of n = 100 and N = 25,815.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.estimators._observed import Observed, fill_gaps, sharpest_sample
from unsample.evidence import DesignCells
from unsample.law import Law, RankGrid

__all__ = ["Condensed"]

#: Widest bin along the probit of the rank.
_WIDEST_BIN = 0.05
#: Sampled ranks that always stand alone.
_FIRST_SINGLE = 10
#: Widths in units of the standard error of a sampled or a global rank.
_SHARE_OF_STANDARD_ERROR = 0.5
#: Catalogues whose sizes differ by less than this share are one where many are pooled.
_SAME_SIZE = 0.04
#: Largest n for which the ranks of a range are computed one by one, in one go.
_ALL_RANKS = 2000
_NEGLIGIBLE = 1e-70
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Condensed:
    """Histograms ``shares`` over cells with P(cell | bin) = ``likelihood``, on a coarse grid.

    The first ``known`` cells hold known global ranks, the others sampled ones.
    """

    grid: RankGrid
    likelihood: FloatArray
    shares: FloatArray
    known: int

    @classmethod
    def of(cls, observed: Observed) -> Condensed:
        """Condense the cells and the grid of ``observed``."""
        unknown = observed.unknown_part()
        # Where all items are drawn there is no sharper sample than that.
        sharpest = sharpest_sample(unknown.counts) or int(unknown.counts.sampled.max())
        grid = _coarse_grid(observed.grid.items, sharpest)
        known, known_shares = _known_rows(observed, grid)
        parts = [(known * observed.known_share.mean(), known_shares)]
        left = (1.0 - observed.known_share)[:, None]
        for sampled in np.unique(unknown.counts.sampled):
            members = [cells for cells in unknown.designs if cells.design.sampled == sampled]
            matrix, shares = _pool(unknown, members, int(sampled), grid)
            shares = shares * left
            # P(cell and sample size | bin): what is expected of all cells together sums to one.
            parts.append((matrix * shares.sum(axis=1).mean(), shares))
        likelihood = np.concatenate([matrix for matrix, _ in parts])
        likelihood[likelihood < _NEGLIGIBLE] = 0.0
        return cls(grid, likelihood, np.concatenate([s for _, s in parts], axis=1), len(known))

    def expected_unknown(self, weights: FloatArray) -> FloatArray:
        """Return, relative to ``weights``, where targets of unknown rank are, given their ranks."""
        likelihood, shares = self.likelihood[self.known :], self.shares[:, self.known :]
        mixture = np.maximum(weights @ likelihood.T, _TINY)
        return np.asarray((shares / mixture) @ likelihood)


def _coarse_grid(items: int, sampled: int) -> RankGrid:
    from scipy.special import ndtr, ndtri

    # The standard error of the probit is 1.25/sqrt(n) in the middle, and larger elsewhere.
    step = min(_WIDEST_BIN, _SHARE_OF_STANDARD_ERROR * 1.25 / math.sqrt(sampled))
    # From the middle of the first rank to that of the last: no start can fall outside 1..N.
    top = -float(ndtri(0.5 / items))
    share = ndtr(np.arange(-top, top, step))
    starts = np.floor(items * share).astype(np.int64) + 1
    return RankGrid(np.unique(starts), items)


def _known_rows(observed: Observed, grid: RankGrid) -> tuple[FloatArray, FloatArray]:
    """Return one cell for each coarse bin that holds known ranks."""
    bins = grid.locate(observed.counts.low[observed.known])
    used, where = np.unique(bins, return_inverse=True)
    shares = np.zeros((len(observed.shares), len(used)))
    np.add.at(shares.T, where, observed.shares[:, observed.known].T)
    return np.eye(len(grid))[used], shares


def _pool(
    observed: Observed, members: list[DesignCells], sampled: int, grid: RankGrid
) -> tuple[FloatArray, FloatArray]:
    """Return P(cell | bin) averaged over the catalogues of the targets, and the shares."""
    low, high = _ranges(members, sampled + 1)
    shares = np.zeros((len(observed.shares), len(low)))
    for cells in members:
        np.add.at(shares.T, _places(low, high, cells), observed.shares[:, cells.columns].T)
    weights = [float(observed.counts.weight[cells.columns].sum()) for cells in members]
    matrix = np.zeros((len(low), len(grid)))
    for design, part in _typical_designs([cells.design for cells in members], weights):
        matrix += part * _range_matrix(design, low, high, grid)
    return matrix, shares


def _typical_designs(designs: list[Law], weights: list[float]) -> list[tuple[Law, float]]:
    """Return designs with the shares of the targets they stand for.

    Catalogues whose sizes the sample cannot tell apart are given their mean size.
    """
    groups: dict[int, list[tuple[int, float]]] = {}
    for design, weight in zip(designs, weights, strict=True):
        step = min(_SAME_SIZE, _SHARE_OF_STANDARD_ERROR / math.sqrt(design.sampled))
        dense = not design.replacement and design.sampled > step * design.items
        label = design.items if dense else -round(math.log(design.items) / step)
        groups.setdefault(label, []).append((design.items, weight + _TINY))
    total = sum(weight for group in groups.values() for _, weight in group)
    result = []
    for group in groups.values():
        sizes, parts = zip(*group, strict=True)
        size = round(float(np.average(sizes, weights=parts)))
        result.append((replace(designs[0], items=size), sum(parts) / total))
    return result


def _ranges(members: list[DesignCells], n: int) -> tuple[IntArray, IntArray]:
    """Return ranges that cover 1..n: half a standard error wide, or as they came, gaps filled."""
    low = np.concatenate([cells.low for cells in members])
    high = np.concatenate([cells.high for cells in members])
    if (low < high).any():
        ranges = np.unique(np.stack([low, high]), axis=1)
        return fill_gaps(ranges[0], ranges[1], n)
    angle = np.arange(0.0, math.pi / 2, _SHARE_OF_STANDARD_ERROR * 0.5 / math.sqrt(n))
    starts = np.floor(n * np.sin(angle) ** 2).astype(np.int64) + 1
    starts = np.union1d(np.arange(1, min(_FIRST_SINGLE, n) + 1), starts[starts <= n])
    return starts, np.append(starts[1:] - 1, n)


def _places(low: IntArray, high: IntArray, cells: DesignCells) -> IntArray:
    if (low[1:] > high[:-1]).all():
        return np.searchsorted(low, cells.low, side="right") - 1
    keys = {key: at for at, key in enumerate(zip(low.tolist(), high.tolist(), strict=True))}
    return np.array([keys[k] for k in zip(cells.low.tolist(), cells.high.tolist(), strict=True)])


def _range_matrix(design: Law, low: IntArray, high: IntArray, grid: RankGrid) -> FloatArray:
    """Return P(low <= r <= high | bin), for ranges that cover 1..n.

    Ranks beyond this catalogue act as its last one.
    """
    if design.n <= _ALL_RANKS and (low[1:] > high[:-1]).all():
        ranks = np.arange(1, design.n + 1)
        result = np.add.reduceat(design.matrix(ranks, ranks, grid), low - 1, axis=0)
    else:
        result = design.matrix(low, high, grid)
    reach = np.minimum(grid.high, design.items) - grid.low + 1
    result[high == design.n] += 1.0 - reach.clip(min=0) / grid.width
    return result
