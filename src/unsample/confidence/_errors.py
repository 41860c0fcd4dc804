"""How an estimate changes with one more target: the delta method, for any estimator.

Adding a little weight to one cell and solving again gives the influence of that cell: the
derivative of the estimate in its direction. One solution for each cell, all in one batch, gives the
standard error for which a bootstrap needs hundreds. It also tells two errors apart: that of drawing
other users like these, and that of drawing other items for these same users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample._threads import one_thread
from unsample.confidence._items import items_part
from unsample.confidence._limits import quantile
from unsample.estimators import Observed, em
from unsample.evidence import RankCounts, size_ranges

#: Steps of the fit of P(R) that splits the variance; the split depends little on it.
_STEPS = 100
#: Sampled ranks that are nudged alone, and how far the ranges of further ones reach.
_SINGLE_RANKS = 16
_RANGE = 1.15


@dataclass(frozen=True, eq=False)
class SamplingError:
    """Standard errors of an estimate: for users like these, and for these users alone."""

    population: float
    these: float
    #: The influence of one target on the estimate, by the design and rank it was seen at.
    sampled: IntArray = field(repr=False)
    rank: IntArray = field(repr=False)
    influence: FloatArray = field(repr=False)

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return the normal interval around a value, for users like these."""
        half = quantile(level) * self.population
        return value - half, value + half

    def of_ranks(self, ranks: IntArray, sampled: IntArray) -> FloatArray:
        """Return the influence of each target, for comparisons target by target."""
        stride = int(self.rank.max()) + 1
        known, first = np.unique(self.sampled * stride + self.rank, return_index=True)
        place = np.searchsorted(known, sampled * stride + ranks)
        return np.asarray(self.influence[first[place]])


def nudged(counts: RankCounts) -> FloatArray:
    """Return the weights of the cells with one target more in each group of cells in turn.

    Neighbouring ranks of one sample size move together where the sample hardly tells them apart,
    and so do equal ranks in catalogues of about the same size.
    """
    group = _nudge_groups(counts)
    one_target = counts.weight.sum() / counts.effective
    weight = np.bincount(group, counts.weight)[group]
    inside = group == np.arange(group.max() + 1)[:, None]
    # In a group without weight there is no target whose weight could grow.
    part = np.divide(counts.weight, weight, out=np.zeros(len(weight)), where=weight > 0)
    return np.asarray(counts.weight + inside * (one_target * part))


@one_thread()
def sampling_errors(values: FloatArray, observed: Observed) -> list[SamplingError]:
    """Return the errors of each column of ``values``.

    Row 0 holds the estimates; the other rows, those for the weights of `nudged`.
    """
    counts, targets = observed.counts, observed.targets
    group = _nudge_groups(counts)
    shares = np.bincount(group, observed.shares[0])
    influence = (values[1:] - values[0]) * (targets + 1.0)
    influence = influence - shares @ influence
    total = shares @ influence**2
    # Given the global rank, the rest of the variance comes from the sampled items.
    posterior = _posterior(observed)
    mass = observed.shares[0] @ posterior
    given_rank = (posterior * observed.shares[0][:, None]).T @ influence[group]
    given_rank /= np.maximum(mass, 1e-300)[:, None]
    between = mass @ given_rank**2
    scale = counts.scale
    population = [scale * math.sqrt(whole / targets) for whole in total]
    if counts.clusters is not None:
        cells = values[0] + influence[group]
        population = [math.sqrt(counts.variance_of_mean(scores)) for scores in cells.T]
    if counts.shared is not None:
        drawn = [
            _of_items(counts, scale * influence[group, column]) for column in range(len(total))
        ]
        population = [math.hypot(*each) for each in zip(population, drawn, strict=True)]
    return [
        SamplingError(
            population[column],
            scale * math.sqrt(max(whole - part, 0.0) / targets),
            counts.sampled,
            counts.low,
            influence[group, column],
        )
        for column, (whole, part) in enumerate(zip(total, between, strict=True))
    ]


def _of_items(counts: RankCounts, influence: FloatArray) -> float:
    """Return the standard error that comes from shared items; NaN where it cannot be known."""
    shared = counts.shared
    assert shared is not None
    if not shared.known:
        return math.nan
    order = np.argsort(counts.low, kind="stable")
    ranks = np.arange(1, shared.sampled + 2)
    scores = np.interp(ranks, counts.low[order], influence[order])
    left = 1.0 if counts.replacement else 1.0 - shared.sampled / (counts.largest_catalogue - 1)
    return math.sqrt(items_part(counts, scores, left=left).variance)


def _nudge_groups(counts: RankCounts) -> IntArray:
    """Return the group of each cell: first ranks alone, further ones in growing ranges."""
    step = np.where(
        counts.low <= _SINGLE_RANKS,
        counts.low,
        _SINGLE_RANKS + np.ceil(np.log(counts.low / _SINGLE_RANKS) / math.log(_RANGE)),
    )
    keys = np.stack([counts.sampled, step.astype(np.int64), size_ranges(counts.items)])
    _, group = np.unique(keys, axis=1, return_inverse=True)
    return group.reshape(-1)


def _posterior(observed: Observed) -> FloatArray:
    """Return P(bin | cell), one row for each cell, under an EM fit of P(R)."""
    start = observed.widths / observed.widths.sum()
    fit = em(observed.likelihood, observed.shares[:1], start=start, iterations=_STEPS)
    joint = observed.likelihood * fit.weights[0]
    return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300))
