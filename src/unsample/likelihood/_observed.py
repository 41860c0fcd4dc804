"""The input of estimators: rank counts on a grid, with one row for each histogram of a batch.

A batch is the data alone, or repeats over the same cells. Targets whose rank is known, because all
their candidates were ranked, are kept separate: their rank is not estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray, as_index
from unsample._threads import cached_property
from unsample.counts import DesignCells, RankCounts, in_smaller_sample
from unsample.errors import DesignError, InputError, RankError
from unsample.metrics import Metric
from unsample.sampling import RankGrid, SamplingModel, bin_weights, few_sizes

#: Whether items that a user had seen in training were left out of the candidates (the usual
#: protocol), or kept among them (that of Jin et al., AAAI 2021).

#: Smaller likelihoods are set to zero: they cannot change a result, and their products underflow
#: into subnormal numbers, which processors handle ten times more slowly.
_NEGLIGIBLE = 1e-70
_TINY = 1e-300
#: Largest n for which the ranks of a range are computed one by one.
_ALL_RANKS = 2000
#: Largest n for estimators that solve a dense system with one unknown for each sampled rank.
_LARGEST_SYSTEM = 5000


@dataclass(frozen=True, eq=False)
class Observed:
    """Counts, the weights of a batch of histograms over their cells, and the rank grid.

    ``shares`` has one row for each histogram, over the cells of ``counts``, and rows sum to one.
    """

    counts: RankCounts
    shares: FloatArray
    grid: RankGrid

    @classmethod
    def prepare(
        cls,
        counts: RankCounts,
        *,
        histograms: FloatArray | None = None,
        cutoffs: Iterable[int] = (),
        grid: RankGrid | None = None,
    ) -> Observed:
        """Prepare counts, or ``histograms`` over their cells, for metrics with these cutoffs."""
        weights = counts.weight[None, :] if histograms is None else histograms
        totals = weights.sum(axis=1, keepdims=True)
        if not (totals > 0).all():
            raise InputError("every histogram must hold some weight, got an empty one")
        if grid is None:
            grid = RankGrid.fine(
                counts.largest_catalogue, sampled=_sharpest_sample(counts), cutoffs=cutoffs
            )
        return cls(counts, weights / totals, grid=grid)

    @cached_property
    def designs(self) -> tuple[DesignCells, ...]:
        """Return the cells design by design."""
        return tuple(self.counts.by_design())

    @cached_property
    def widths(self) -> FloatArray:
        """Return the number of ranks in each bin, as floats."""
        return np.asarray(self.grid.width, dtype=np.float64)

    @property
    def uniform(self) -> FloatArray:
        """Return the mass of each bin where all ranks are equally likely."""
        return self.widths / self.grid.items

    @cached_property
    def known(self) -> BoolArray:
        """Return which cells hold targets whose global rank is known."""
        return self.counts.known

    @cached_property
    def known_share(self) -> FloatArray:
        """Return, for each histogram, the share of targets whose rank is known."""
        return np.asarray(self.shares[:, self.known].sum(axis=1))

    @cached_property
    def likelihood(self) -> FloatArray:
        """Return P(cell | bin): one row for each cell, one column for each bin."""
        rows = [
            cells.design.matrix(cells.low, cells.high, grid=self.grid) for cells in self.designs
        ]
        matrix = np.concatenate(rows)
        matrix[matrix < _NEGLIGIBLE] = 0.0
        impossible = ~matrix.any(axis=1) & self.shares.any(axis=0)
        if impossible.any():
            where, counts = int(np.argmax(impossible)), self.counts
            raise RankError(
                f"ranks must be possible under the design, got {counts.low[where]} among "
                f"{counts.sampled[where] + 1} where {counts.sampled[where]} of "
                f"{counts.largest[where]} items are sampled: no global rank gives it; check items, "
                "sampled and replacement"
            )
        return matrix

    def unknown_part(self) -> Observed:
        """Return the same batch without the targets whose rank is known, shares rescaled."""
        if not self.known.any():
            return self
        kept = ~self.known
        left = self.shares[:, kept].sum(axis=1, keepdims=True)
        # If all of a histogram is known, nothing is left: any shares will do, with weight zero.
        shares = np.where(left > 0, self.shares[:, kept] / np.maximum(left, _TINY), 1 / kept.sum())
        return replace(self, counts=self.counts.take(kept), shares=shares)

    def known_mass(self) -> FloatArray:
        """Return, for each histogram, the share of known ranks in each bin."""
        mass = np.zeros((len(self.shares), len(self.grid)))
        bins = self.grid.locate(self.counts.low[self.known])
        np.add.at(mass.T, bins, self.shares[:, self.known].T)
        return mass

    def known_weights(self, metrics: Sequence[Metric]) -> FloatArray:
        """Return w(R) of the cells of known rank (cells x metrics), and zero for the others."""
        weights = np.zeros((len(self.counts), len(metrics)))
        for cells in self.designs:
            for column, metric in enumerate(metrics if cells.design.full else ()):
                weights[cells.columns, column] = metric.weights(cells.low, cells.design.items)
        return np.where(self.known[:, None], weights, 0.0)

    def bin_weights(self, metrics: Sequence[Metric]) -> FloatArray:
        """Return w(R) of each metric, averaged over each bin (bins x metrics)."""
        columns = [
            over_catalogues(metric, self.counts, weights=partial(bin_weights, metric, self.grid))
            for metric in metrics
        ]
        return np.array(columns).reshape(len(metrics), len(self.grid)).T

    @property
    def sample_sizes(self) -> list[int]:
        """Return the numbers of sampled items that occur, in order."""
        return [int(sampled) for sampled in np.unique(self.counts.sampled)]

    def pools(self, method: str) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the `pool` of all ranks 1..n of each sample size.

        This is for estimators that compare a histogram with its expectation at every rank 1..n,
        whether a target was there or not.
        """
        require_single_ranks(self.counts.low, self.counts.high, method=method)
        for sampled in self.sample_sizes:
            check_system(method, sampled + 1)
            ranks = np.arange(1, sampled + 2)
            yield self.pool(sampled, low=ranks, high=ranks, grid=self.grid)

    def ranges(self, sampled: int) -> tuple[IntArray, IntArray]:
        """Return the ranges of sampled ranks that occur at one sample size, each once, sorted."""
        chosen = self.counts.sampled == sampled
        found = np.stack([self.counts.low[chosen], self.counts.high[chosen]])
        low, high = np.unique(found, axis=1)
        return low, high

    def pool(
        self, sampled: int, low: IntArray, high: IntArray, grid: RankGrid
    ) -> tuple[FloatArray, FloatArray]:
        """Pool the targets of one sample size in ranges, each of their cells inside one range.

        Returns P(range | bin), averaged over the catalogues of the targets, and the share of each
        range (a row for each histogram of the batch).
        """
        members = [cells for cells in self.designs if cells.design.sampled == sampled]
        shares = np.zeros((len(self.shares), len(low)))
        for cells in members:
            np.add.at(
                shares.T, _range_of_cells(low, high, cells=cells), self.shares[:, cells.columns].T
            )
        return self._expected_in(
            self.counts.sampled == sampled, sampled, low=low, high=high, grid=grid
        ), shares

    def pool_sizes(
        self, sizes: IntArray, low: IntArray, high: IntArray, grid: RankGrid
    ) -> tuple[FloatArray, FloatArray]:
        """Pool the targets of several sample sizes as if only the smallest number were sampled.

        Returns what `pool` does; the ranges cover all ranks of the smallest sample.
        """
        counts, smallest = self.counts, int(sizes.min())
        chosen = np.isin(counts.sampled, sizes)
        probabilities = in_smaller_sample(
            counts.sampled[chosen], counts.low[chosen], smaller=smallest, starts=low
        )
        shares = self.shares[:, chosen] @ probabilities
        return self._expected_in(chosen, smallest, low=low, high=high, grid=grid), np.asarray(
            shares
        )

    def _expected_in(
        self, chosen: BoolArray, sampled: int, low: IntArray, high: IntArray, grid: RankGrid
    ) -> FloatArray:
        """Return P(range | bin) in a sample of this size, over the catalogues of some cells."""
        sizes, index = np.unique(self.counts.items[chosen], return_inverse=True)
        weights = np.bincount(index.reshape(-1), self.counts.weight[chosen])
        matrix = _mean_expected(
            SamplingModel(int(sizes[0]), sampled, replacement=self.counts.replacement),
            sizes,
            parts=weights / (weights.sum() + _TINY),
            low=low,
            high=high,
            grid=grid,
        )
        matrix[matrix < _NEGLIGIBLE] = 0.0
        return matrix


def check_system(method: str, ranks: int) -> None:
    """Refuse systems that are too large to be solved."""
    if ranks > _LARGEST_SYSTEM:
        raise DesignError(
            f"{method} solves a system with one unknown for each sampled rank, at most "
            f"{_LARGEST_SYSTEM}, got {ranks}; use mle, which has no such limit"
        )


def over_catalogues(
    metric: Metric, counts: RankCounts, weights: Callable[[int], FloatArray]
) -> FloatArray:
    """Return the metric's ``weights`` in a catalogue, averaged over sizes if they depend on it."""
    if not metric.family.uses_items:
        return weights(counts.largest_catalogue)
    sizes, where = np.unique(counts.items, return_inverse=True)
    shares = np.bincount(where.reshape(-1), counts.weight)
    return np.asarray(np.average([weights(int(size)) for size in sizes], axis=0, weights=shares))


def _sharpest_sample(counts: RankCounts) -> int:
    """Return the size of a sample with replacement that is as precise as the best one here.

    Without replacement the variance is multiplied by the share of items not sampled. Known ranks
    need no grid.
    """
    partly = ~counts.full
    sampled, others = counts.sampled[partly], counts.items[partly] - 1
    left = np.ones(len(sampled)) if counts.replacement else (others - sampled) / others
    return int((sampled / left).max(initial=0))


def require_single_ranks(low: IntArray, high: IntArray, method: str) -> None:
    """Refuse ranges of ranks for methods that need to know each one."""
    if not (low == high).all():
        wide = int(np.argmax(low != high))
        raise DesignError(
            f"{method} needs single sampled ranks, got the range {low[wide]}..{high[wide]}; use "
            "mle, which takes ranges"
        )


def _range_of_cells(low: IntArray, high: IntArray, cells: DesignCells) -> IntArray:
    """Return the range that holds each cell; where ranges overlap, the one that equals the cell."""
    if (low[1:] > high[:-1]).all():
        return np.searchsorted(low, cells.low, side="right") - 1
    keys = {key: at for at, key in enumerate(zip(low.tolist(), high.tolist(), strict=True))}
    return np.array([keys[k] for k in zip(cells.low.tolist(), cells.high.tolist(), strict=True)])


def _mean_expected(
    design: SamplingModel,
    sizes: IntArray,
    parts: FloatArray,
    low: IntArray,
    high: IntArray,
    grid: RankGrid,
) -> FloatArray:
    """Return the mean of `_expected` over catalogues of several sizes."""
    left = 1.0 if design.replacement else 1.0 - design.sampled / (sizes.min() - 1.0)
    sharpness = design.sampled / left if left > 0.0 else math.inf
    found, weights = few_sizes(sizes, parts, sharpness=sharpness)
    matrix = np.zeros((len(low), len(grid)))
    for size, weight in zip(found.tolist(), weights, strict=True):
        matrix += weight * _expected(replace(design, items=size), low=low, high=high, grid=grid)
    return matrix


def _expected(design: SamplingModel, low: IntArray, high: IntArray, grid: RankGrid) -> FloatArray:
    """Return P(low <= r <= high | bin), where ranks beyond this catalogue act as its last one."""
    if design.n > _ALL_RANKS or (low[1:] != high[:-1] + 1).any():
        return design.matrix(low, high, grid=grid, beyond="last")
    # Computing all ranks in one go is many times faster than range by range.
    ranks = np.arange(low[0], high[-1] + 1)
    matrix = design.matrix(ranks, ranks, grid=grid, beyond="last")
    return np.asarray(np.add.reduceat(matrix, as_index(low - low[0]), axis=0))
