"""`Observed`: rank counts prepared for estimation, with one row for each histogram of a batch.

Row 0 is the data; further rows are resamples or repeats over the same cells. Targets whose
whole catalogue was ranked (`Design.full`) are set apart: their rank is known, and no estimator
guesses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray, check_choice
from unsample.errors import DesignError, InputError, RankError
from unsample.evidence import DesignCells, RankCounts, group_with_shares
from unsample.law import RankGrid, bin_weights
from unsample.metrics import Metric

__all__ = ["CANDIDATES", "Observed", "Pool", "fill_gaps", "sharpest_sample"]

#: What became of the items that a user had seen in training: left out of the candidates (the
#: everyday protocol), or kept among them (that of Jin et al., AAAI 2021).
CANDIDATES = ("unseen", "all")

#: Smaller likelihoods are set to zero: they cannot change a result, and their products underflow
#: into subnormal numbers, which are an order of magnitude slower.
_NEGLIGIBLE = 1e-70
#: Largest n for estimators that solve a dense system with one unknown for each sampled rank.
LARGEST_SYSTEM = 5000


@dataclass(frozen=True, eq=False)
class Pool:
    """Histograms over a partition ``low..high`` of the sampled ranks, and their expectation.

    ``matrix`` holds P(cell | bin), ``shares`` one row for each histogram of the batch.
    """

    low: IntArray
    high: IntArray
    matrix: FloatArray
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Observed:
    """Counts, the weights of a batch of histograms over their cells, and the rank grid.

    ``shares`` has one row for each histogram, over the cells of ``counts``, and rows sum to one.
    ``targets`` is the number of targets behind a histogram (the effective one under weights).
    ``candidates`` says whether the candidates were without the items that a user had already seen
    (``"unseen"``) or with them (``"all"``, which fills the top with them); only estimators that
    assume something about the top ask for it.
    """

    counts: RankCounts
    shares: FloatArray
    grid: RankGrid
    candidates: str = "unseen"

    @classmethod
    def prepare(
        cls,
        counts: RankCounts,
        *,
        resampled: FloatArray | None = None,
        cutoffs: Iterable[int] = (),
        grid: RankGrid | None = None,
        candidates: str = "unseen",
    ) -> Observed:
        """Prepare counts and any resamples of their cells, for metrics with these cutoffs."""
        check_choice("candidates", candidates, CANDIDATES)
        weights = counts.weight[None, :]
        if resampled is not None:
            weights = np.concatenate([weights, resampled])
        totals = weights.sum(axis=1, keepdims=True)
        if not (totals > 0).all():
            raise InputError("every histogram must hold some weight, got an empty one")
        counts, shares = group_with_shares(counts, weights / totals)
        if grid is None:
            grid = RankGrid.build(
                counts.largest_catalogue, sampled=sharpest_sample(counts), cutoffs=cutoffs
            )
        return cls(counts, shares, grid, candidates)

    @property
    def targets(self) -> float:
        """Return how many equally weighted targets a histogram stands for."""
        return self.counts.effective

    @cached_property
    def designs(self) -> tuple[DesignCells, ...]:
        """Return the cells design by design."""
        return tuple(self.counts.by_design())

    @cached_property
    def widths(self) -> FloatArray:
        """Return the number of ranks in each bin, as floats."""
        return np.asarray(self.grid.width, dtype=np.float64)

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
        rows = [cells.design.matrix(cells.low, cells.high, self.grid) for cells in self.designs]
        matrix = np.concatenate(rows)
        matrix[matrix < _NEGLIGIBLE] = 0.0
        self._refuse_impossible(matrix)
        return matrix

    def _refuse_impossible(self, likelihood: FloatArray) -> None:
        """Refuse targets at sampled ranks that no global rank can give, whatever P(R) is."""
        impossible = ~likelihood.any(axis=1) & self.shares.any(axis=0)
        if impossible.any():
            where, counts = int(np.argmax(impossible)), self.counts
            raise RankError(
                f"ranks must be possible under the design, got {counts.low[where]} among "
                f"{counts.sampled[where] + 1} where {counts.sampled[where]} of "
                f"{counts.items[where]} items are sampled: no global rank gives it; check items, "
                "sampled and replacement"
            )

    def unknown_part(self) -> Observed:
        """Return the same batch without the targets whose rank is known, shares rescaled."""
        if not self.known.any():
            return self
        kept = ~self.known
        left = self.shares[:, kept].sum(axis=1, keepdims=True)
        # A histogram that is known as a whole has nothing left; any shares will do, for they
        # are weighted by the zero that is left.
        shares = np.where(
            left > 0, self.shares[:, kept] / np.maximum(left, 1e-300), 1.0 / kept.sum()
        )
        return replace(self, counts=_take(self.counts, kept), shares=shares)

    def known_mass(self) -> FloatArray:
        """Return, for each histogram, the share of known ranks in each bin."""
        mass = np.zeros((len(self.shares), len(self.grid)))
        bins = self.grid.locate(self.counts.low[self.known])
        np.add.at(mass.T, bins, self.shares[:, self.known].T)
        return mass

    def known_metric(self, metric: Metric) -> FloatArray:
        """Return what the targets of known rank add to the metric, for each histogram."""
        ranks, items = self.counts.low[self.known], self.counts.items[self.known]
        weights = np.empty(len(ranks))
        for size in np.unique(items):
            chosen = items == size
            weights[chosen] = metric.weights(ranks[chosen], int(size))
        return np.asarray(self.shares[:, self.known] @ weights)

    def bin_weights(self, metric: Metric) -> FloatArray:
        """Return w(R) averaged over each bin, and over the catalogues where it depends on them."""
        if not metric.family.uses_items:
            return bin_weights(metric, self.grid)
        sizes, where = np.unique(self.counts.items, return_inverse=True)
        shares = np.bincount(where.reshape(-1), self.counts.weight)
        rows = [bin_weights(metric, self.grid, int(size)) for size in sizes]
        return np.asarray(np.average(rows, axis=0, weights=shares))

    def pools(self, method: str) -> Iterator[Pool]:
        """Yield the histograms of sampled ranks, pooled over catalogue sizes, by sample size.

        For estimators that compare a histogram with its expectation and need every rank 1..n of
        it, candidates or not. The expectation averages over the catalogues of the targets.
        """
        for sampled in np.unique(self.counts.sampled):
            members = [cells for cells in self.designs if cells.design.sampled == sampled]
            yield _pool(self, members, int(sampled), method)


def sharpest_sample(counts: RankCounts) -> int:
    """Return the size of a sample with replacement that sees ranks as sharply as the best here.

    Without replacement the variance falls by the share of items not sampled. Known ranks need no
    grid at all.
    """
    partly = ~counts.full
    if not partly.any():
        return 0
    sampled, others = counts.sampled[partly], counts.items[partly] - 1
    left = np.ones(len(sampled)) if counts.replacement else (others - sampled) / others
    return int((sampled / left).max())


def _take(counts: RankCounts, kept: BoolArray) -> RankCounts:
    names = ("sampled", "items", "low", "high", "count", "weight", "weight_squared")
    return replace(counts, **{name: getattr(counts, name)[kept] for name in names})


def _pool(observed: Observed, members: list[DesignCells], sampled: int, method: str) -> Pool:
    chosen = observed.counts.sampled == sampled
    present = np.unique(
        np.stack([observed.counts.low[chosen], observed.counts.high[chosen]]), axis=1
    )
    low, high = _complete(present[0], present[1], sampled + 1, method)
    shares = np.zeros((len(observed.shares), len(low)))
    matrix = np.zeros((len(low), len(observed.grid)))
    total = observed.counts.weight[chosen].sum()
    for cells in members:
        places = np.searchsorted(low, cells.low)
        shares[:, places] += observed.shares[:, cells.columns]
        part = observed.counts.weight[cells.columns].sum() / total
        expected = cells.design.matrix(low, high, observed.grid)
        # Ranks beyond a user's own catalogue act as its last rank: without this, mass placed there
        # would vanish from the expectation, and an estimator could hide it for free.
        reach = np.minimum(observed.grid.high, cells.design.items) - observed.grid.low + 1
        expected[-1] += 1.0 - reach.clip(min=0) / observed.grid.width
        matrix += part * expected
    matrix[matrix < _NEGLIGIBLE] = 0.0
    return Pool(low, high, matrix, shares)


def _complete(low: IntArray, high: IntArray, n: int, method: str) -> tuple[IntArray, IntArray]:
    """Return these sorted ranges with the gaps between them filled, covering the ranks 1..n.

    Single ranks are completed by single ranks, as the formulas have them; ranges by ranges.
    """
    if (low[1:] <= high[:-1]).any():
        raise DesignError(
            f"ranges of ranks must not overlap for {method}, got some that do, such as "
            f"{low[0]}..{high[0]}; merge them with RankCounts.merge_ranks"
        )
    if n > LARGEST_SYSTEM and len(low) > 1:
        raise DesignError(
            f"{method} solves a system with one unknown for each sampled rank, at most "
            f"{LARGEST_SYSTEM}, got n = {n}; use mle, which has no such limit"
        )
    if (low == high).all():
        ranks = np.arange(1, n + 1)
        return ranks, ranks
    return fill_gaps(low, high, n)


def fill_gaps(low: IntArray, high: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return these sorted ranges, and those between them that they leave out of 1..n.

    Ranks at which no target was seen are part of what could have been seen.
    """
    gap_low = np.concatenate([[1], np.maximum.accumulate(high) + 1])
    gap_high = np.concatenate([low - 1, [n]])
    gaps = gap_low <= gap_high
    order = np.argsort(np.concatenate([low, gap_low[gaps]]), kind="stable")
    return (
        np.concatenate([low, gap_low[gaps]])[order],
        np.concatenate([high, gap_high[gaps]])[order],
    )
