"""`RankDistribution`: P(R), the distribution of global ranks, and every metric of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, check_real
from unsample.errors import InputError
from unsample.law._grid import RankGrid, mean_over
from unsample.metrics import Metric, parse

__all__ = ["RankDistribution", "bin_weights"]

#: Most ranks that `RankDistribution.dense` writes out.
_LARGEST_DENSE = 10**8
#: The picture in a notebook, in pixels.
_PICTURE_WIDTH, _PICTURE_HEIGHT, _PICTURE_POINTS = 320, 120, 80


@dataclass(frozen=True, eq=False)
class RankDistribution:
    """A distribution on the ranks 1..items, spread evenly inside each bin of a grid.

    ``mass`` sums to one. It may be negative in places for the estimators that are linear in the
    data (BV, MN), whose P(R) is a signed measure.

    >>> ranks = RankDistribution.from_ranks([1, 2, 2, 40], items=100)
    >>> ranks.expect("Recall@10"), float(ranks.cdf(2)), int(ranks.quantile(0.5))
    (0.75, 0.75, 2)
    """

    grid: RankGrid
    mass: FloatArray

    @classmethod
    def from_ranks(cls, ranks: npt.ArrayLike, *, items: int) -> RankDistribution:
        """Return the empirical distribution of full-catalogue ranks."""
        values, counts = np.unique(np.asarray(ranks, dtype=np.int64), return_counts=True)
        if values.size == 0 or values[0] < 1 or values[-1] > items:
            raise InputError(
                f"ranks must hold values in 1..{items}, got "
                + (f"{values[0]}..{values[-1]}" if values.size else "none")
            )
        grid = RankGrid.build(items, cutoffs=values.tolist())
        mass = np.zeros(len(grid))
        mass[grid.locate(values)] = counts / counts.sum()
        return cls(grid, mass)

    @property
    def items(self) -> int:
        """Return the size of the catalogue."""
        return self.grid.items

    def pmf(self, ranks: npt.ArrayLike) -> FloatArray:
        """Return P(R = rank); zero outside 1..items."""
        values, inside = self._inside(ranks)
        return np.where(inside, self._per_rank[self.grid.locate(values)], 0.0)

    def cdf(self, ranks: npt.ArrayLike) -> FloatArray:
        """Return P(R <= rank)."""
        values = np.clip(np.floor(np.asarray(ranks, dtype=np.float64)), 0, self.items)
        whole = values.astype(np.int64)
        bins = np.maximum(self.grid.locate(whole), 0)
        before = np.concatenate([[0.0], self._cumulative])[bins]
        within = (whole - self.grid.low[bins] + 1) * self._per_rank[bins]
        return np.where(whole == 0, 0.0, before + within)[()]

    def quantile(self, level: npt.ArrayLike) -> IntArray:
        """Return the smallest rank whose cdf reaches ``level``."""
        levels = np.asarray(level, dtype=np.float64)
        for value in levels.ravel():
            check_real("level", float(value), low=0.0, high=1.0)
        # Negative masses make the cdf dip; its running maximum is what a level first crosses.
        cumulative = np.maximum.accumulate(self._cumulative)
        bins = np.minimum(np.searchsorted(cumulative, levels - 1e-12), len(self.grid) - 1)
        before = np.concatenate([[0.0], cumulative])[bins]
        gain = np.maximum(cumulative[bins] - before, 1e-300)
        share = np.clip((levels - 1e-12 - before) / gain, 0.0, 1.0)
        steps = np.ceil(share * self.grid.width[bins]).astype(np.int64)
        ranks = self.grid.low[bins] + np.clip(steps, 1, self.grid.width[bins]) - 1
        return np.asarray(ranks)[()]

    def expect(self, metric: str | Metric) -> float:
        """Return the metric of users whose global ranks follow this distribution."""
        return float(self.mass @ bin_weights(parse(metric), self.grid))

    def dense(self) -> FloatArray:
        """Return P(R) for R = 1..items as one array."""
        if self.items > _LARGEST_DENSE:
            raise InputError(
                f"items must be at most {_LARGEST_DENSE} to write out every rank, got "
                f"{self.items}; ask pmf or cdf for the ranks you need"
            )
        return np.repeat(self._per_rank, self.grid.width)

    @cached_property
    def _per_rank(self) -> FloatArray:
        return self.mass / self.grid.width

    @cached_property
    def _cumulative(self) -> FloatArray:
        return np.cumsum(self.mass)

    def _inside(self, ranks: npt.ArrayLike) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        values = np.asarray(ranks, dtype=np.int64)
        inside = (values >= 1) & (values <= self.items)
        return np.clip(values, 1, self.items), inside

    def __repr__(self) -> str:
        median = self.quantile(0.5)
        return f"RankDistribution(items={self.items}, bins={len(self.grid)}, median rank={median})"

    def _repr_html_(self) -> str:
        """Return a small picture of P(R <= rank) over the logarithm of the rank."""
        ranks = np.unique(np.geomspace(1, self.items, _PICTURE_POINTS).round())
        across = _PICTURE_WIDTH * np.log(ranks) / np.log(self.items)
        down = _PICTURE_HEIGHT * (1.0 - np.clip(self.cdf(ranks), 0.0, 1.0))
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
        caption = f"P(R ≤ rank), ranks 1 to {self.items:,}, median {self.quantile(0.5):,}"
        return (
            f'<figure><svg viewBox="-2 -2 {_PICTURE_WIDTH + 4} {_PICTURE_HEIGHT + 4}" '
            f'width="{_PICTURE_WIDTH}" role="img" aria-label="{caption}">'
            f'<polyline points="{points}" fill="none" stroke="#12938b" stroke-width="2"/>'
            f"</svg><figcaption>{caption}</figcaption></figure>"
        )


def bin_weights(metric: Metric, grid: RankGrid, items: int | None = None) -> FloatArray:
    """Return the mean of w(R) over the ranks of each bin, ranks beyond the cutoff counting zero."""
    catalogue = grid.items if items is None else items
    reach = np.minimum(grid.high, metric.cutoff(catalogue))
    inside = reach >= grid.low
    weights = np.zeros(len(grid))
    weights[inside] = mean_over(
        lambda ranks: metric.uncut(ranks, catalogue), grid.low[inside], reach[inside]
    )
    return np.asarray(weights * ((reach - grid.low + 1).clip(min=0) / grid.width))
