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

    >>> counts = RankCounts.from_ranks([1, 1, 3], items=1000, sampled=9)
    >>> observed = Observed.prepare(counts, cutoffs=[10])
    >>> observed.shares.round(3).tolist(), observed.likelihood.shape == (2, len(observed.grid))
    ([[0.667, 0.333]], True)
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
            cell = int(np.argmax(impossible))
            rank = self.counts.low[cell]
            sampled = self.counts.sampled[cell]
            items = self.counts.largest[cell]
            raise RankError(
                f"ranks must be possible under the design, got {rank} among {sampled + 1} where "
                f"{sampled} of {items} items are sampled: no global rank gives it; check items, "
                "sampled and replacement"
            )
        return matrix

    def unknown_part(self) -> Observed:
        """Return the same batch without the targets whose rank is known, shares rescaled."""
        if not self.known.any():
            return self
        unknown = ~self.known
        shares = self.shares[:, unknown]
        total = shares.sum(axis=1, keepdims=True)
        # If all of a histogram is known, nothing is left: any shares will do, with weight zero.
        equal = 1 / unknown.sum()
        rescaled = np.where(total > 0, shares / np.maximum(total, _TINY), equal)
        return replace(self, counts=self.counts.take(unknown), shares=rescaled)

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
            if not cells.design.full:
                continue
            for column, metric in enumerate(metrics):
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
        ranges = np.stack([self.counts.low[chosen], self.counts.high[chosen]])
        low, high = np.unique(ranges, axis=1)
        return low, high

    def pool(
        self, sampled: int, *, low: IntArray, high: IntArray, grid: RankGrid
    ) -> tuple[FloatArray, FloatArray]:
        """Pool the targets of one sample size in ranges of ranks; no cell is in two ranges.

        Returns P(range | bin), averaged over the catalogues of the targets (ranges x bins), and the
        share of each range (histograms x ranges).

        >>> counts = RankCounts.from_ranks([1, 1, 3, 8], items=1000, sampled=9)
        >>> observed = Observed.prepare(counts)
        >>> low, high = np.array([1, 3]), np.array([2, 10])
        >>> matrix, shares = observed.pool(9, low=low, high=high, grid=observed.grid)
        >>> shares.tolist(), matrix.sum(axis=0).min().round(6)
        ([[0.5, 0.5]], np.float64(1.0))
        """
        members = [cells for cells in self.designs if cells.design.sampled == sampled]
        shares = np.zeros((len(self.shares), len(low)))
        for cells in members:
            ranges = _range_of_cells(low, high, cells=cells)
            np.add.at(shares.T, ranges, self.shares[:, cells.columns].T)
        chosen = self.counts.sampled == sampled
        return self._expected_in(chosen, sampled, low=low, high=high, grid=grid), shares

    def pool_sizes(
        self, sizes: IntArray, *, low: IntArray, high: IntArray, grid: RankGrid
    ) -> tuple[FloatArray, FloatArray]:
        """Pool the targets of several sample sizes as if only the smallest number were sampled.

        The ranges cover all ranks of the smallest sample. Returns the same two as `pool`.
        """
        smallest = int(sizes.min())
        chosen = np.isin(self.counts.sampled, sizes)
        probabilities = in_smaller_sample(
            self.counts.sampled[chosen], self.counts.low[chosen], smaller=smallest, starts=low
        )
        shares = np.asarray(self.shares[:, chosen] @ probabilities)
        return self._expected_in(chosen, smallest, low=low, high=high, grid=grid), shares

    def _expected_in(
        self, chosen: BoolArray, sampled: int, *, low: IntArray, high: IntArray, grid: RankGrid
    ) -> FloatArray:
        """Return P(range | bin) in a sample of this size, averaged over the chosen cells."""
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
    """Return the metric's ``weights``, averaged over catalogues if they depend on their size.

    The AUC of rank 2 is 8/9 among 10 items and 98/99 among 100.

    >>> from unsample.metrics import parse
    >>> counts = RankCounts.from_ranks([1, 1], items=[10, 100], sampled=5)
    >>> metric = parse("AUC")
    >>> mean = over_catalogues(metric, counts, lambda size: metric.weights([2], size))
    >>> mean.round(4)                                                # (0.8889 + 0.9899) / 2
    array([0.9394])
    """
    if not metric.family.uses_items:
        return weights(counts.largest_catalogue)
    sizes, index = np.unique(counts.items, return_inverse=True)
    targets = np.bincount(index.reshape(-1), counts.weight)
    by_size = [weights(int(size)) for size in sizes]
    return np.asarray(np.average(by_size, axis=0, weights=targets))


def _sharpest_sample(counts: RankCounts) -> int:
    """Return the size of a sample with replacement that is as precise as the best one here.

    Without replacement the variance is multiplied by the share of items not sampled. Known ranks
    need no grid.

    >>> counts = RankCounts.from_ranks([1], items=101, sampled=50, replacement=False)
    >>> _sharpest_sample(counts)                                     # half of 100 are sampled
    100
    """
    drawn = ~counts.full
    sampled = counts.sampled[drawn]
    others = counts.items[drawn] - 1
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
    ranges = zip(low.tolist(), high.tolist(), strict=True)
    number = {ends: index for index, ends in enumerate(ranges)}
    ranges_of_cells = zip(cells.low.tolist(), cells.high.tolist(), strict=True)
    return np.array([number[ends] for ends in ranges_of_cells])


def _mean_expected(
    design: SamplingModel,
    sizes: IntArray,
    *,
    parts: FloatArray,
    low: IntArray,
    high: IntArray,
    grid: RankGrid,
) -> FloatArray:
    """Return the mean of `_expected` over catalogues of several sizes; ``parts`` sum to one."""
    left = 1.0 if design.replacement else 1.0 - design.sampled / (sizes.min() - 1.0)
    sharpness = design.sampled / left if left > 0.0 else math.inf
    nodes, weights = few_sizes(sizes, parts, sharpness=sharpness)
    matrix = np.zeros((len(low), len(grid)))
    for size, weight in zip(nodes.tolist(), weights, strict=True):
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
