"""Computing one cell: draw every repeat, fit every estimator on all repeats in one batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.counts import RankCounts
from unsample.estimators import parse
from unsample.lab.paper._exhibits import ESTIMATORS, METRICS, SAMPLED, Cell, figures
from unsample.likelihood import Observed
from unsample.metrics import Metric, Recall
from unsample.sampling import draw_sampled_ranks

#: Up to this many sizes of catalogues are kept. Of more, sizes within this factor become one.
_MANY_SIZES, _SAME_SIZE = 32, 0.04
#: Below this sampled share of the catalogue, its size only scales the ranks.
_SPARSE = 0.05


@dataclass(frozen=True, eq=False)
class CellResult:
    """What a cell found: metrics of every repeat, and curves where a figure shows them.

    ``values[label]`` is (repeats x metrics), ``exact`` holds one value for each metric, and
    ``cdf[label]`` is P(R <= rank) for rank = 1, 2, ..., the mean over repeats; the label
    ``"exact"`` stands for the true one.
    """

    exact: FloatArray
    values: dict[str, FloatArray]
    cdf: dict[str, FloatArray]


def compute_cell(
    cell: Cell, ranks: IntArray, items: IntArray, *, repeats: int, rng: int
) -> CellResult:
    """Sample the targets ``repeats`` times and estimate every metric from each sample."""
    seed = cell.seed_sequence(rng)
    drawn = draw_sampled_ranks(ranks, items=items, sampled=cell.sampled, rng=seed, size=(repeats,))
    counts, histograms = count_repeats(drawn, items, cell.sampled)
    labels, depth, drawn_labels = _wanted(cell)
    curve = tuple(Recall @ rank for rank in range(1, min(depth, int(items.max())) + 1))
    cutoffs = [metric.cutoff(counts.largest_catalogue) for metric in (*METRICS, *curve)]
    batch = Observed.prepare(counts, histograms=histograms, cutoffs=cutoffs)
    values, cdf = {}, {}
    for label in labels:
        shown = curve if label in drawn_labels else ()
        found = parse(ESTIMATORS[label]).evaluate(batch, (*METRICS, *shown)).values
        values[label] = found[:, : len(METRICS)]
        if shown:
            cdf[label] = found[:, len(METRICS) :].mean(axis=0)
    if curve:
        cdf["exact"] = exact_values(ranks, items, curve)
    return CellResult(exact_values(ranks, items, METRICS), values, cdf)


def _wanted(cell: Cell) -> tuple[list[str], int, set[str]]:
    """Return the estimators of a cell, how many ranks figures show, and of which estimators."""
    sweeps, curves = (
        [figure.settings for figure in figures(kind, [cell.dataset]) if cell in figure.cells()]
        for kind in ("sweep", "distributions")
    )
    swept = {label for about in sweeps for label in about["estimators"]}
    drawn = {label for about in curves for label in about["estimators"]}
    labels = [label for label in ESTIMATORS if cell.sampled == SAMPLED or label in swept | drawn]
    return labels, max((about["ranks"] for about in curves), default=0), drawn


def exact_values(ranks: IntArray, items: IntArray, metrics: tuple[Metric, ...]) -> FloatArray:
    """Return the metrics of the global ranks themselves, each among its own number of items."""
    found, times = np.unique(ranks, return_counts=True)
    largest = int(items.max())
    return np.array([np.average(m.weights(found, largest), weights=times) for m in metrics])


def count_repeats(drawn: IntArray, items: IntArray, sampled: int) -> tuple[RankCounts, FloatArray]:
    """Return the cells that any repeat reached, and one histogram over them for each repeat.

    The counts weigh a cell by its mean over the repeats, so that they stand for as many targets
    as one repeat has. Nearly equal catalogues are one: see `typical_sizes`.
    """
    repeats, n = len(drawn), sampled + 1
    sizes, where = np.unique(items, return_inverse=True)
    cell_index = (where.reshape(-1) * n - 1)[None, :] + drawn
    # Where each user has another number of items, no repeat reaches most cells.
    reached = np.flatnonzero(np.bincount(cell_index.ravel(), minlength=len(sizes) * n))
    histograms = np.empty((repeats, len(reached)))
    for row, at in enumerate(cell_index):
        histograms[row] = np.bincount(at, minlength=len(sizes) * n)[reached]
    mean = histograms.mean(axis=0)
    rank = reached % n + 1
    typical = typical_sizes(sizes[reached // n], mean, sampled)
    counts = RankCounts(
        sampled=np.full(len(reached), sampled),
        items=typical,
        low=rank,
        high=rank,
        count=histograms.sum(axis=0).astype(np.int64),
        weight=mean,
    )
    # The counts merge cells with equal sizes and ranks, and sort them. So do the histograms.
    merged = np.unique(typical * n + reached % n, return_inverse=True)[1].reshape(-1)
    joined = np.zeros((repeats, len(counts)))
    np.add.at(joined.T, merged, histograms.T)
    return counts, joined


def typical_sizes(items: IntArray, weight: FloatArray, sampled: int) -> IntArray:
    """Return the size that is used for each cell: the mean of nearly equal ones, if many.

    Repeats reach nearly every rank among every size, each with its own likelihood. But a sample
    shows only theta = (R - 1)/(N - 1), with a standard error of at least 1/sqrt(n) of it for
    theta <= 1/2. So sizes within four per cent of each other become one, or of half as much until
    that is less than the error, unless the sample is sparse: then a size only scales ranks.
    """
    if len(np.unique(items)) <= _MANY_SIZES:
        return items
    error = np.where(sampled < _SPARSE * items, _SAME_SIZE, np.sqrt(1.0 / sampled))
    halvings = np.ceil(np.log2(_SAME_SIZE / error)).clip(min=0)
    label = np.round(np.log(items) / (_SAME_SIZE * 0.5**halvings))
    group = np.unique(np.stack([halvings, label]), axis=1, return_inverse=True)[1].reshape(-1)
    means = np.bincount(group, weight * items) / np.bincount(group, weight)
    return np.asarray(np.rint(means).astype(np.int64)[group])
