"""Computing one cell: draw every repeat, fit every estimator on all repeats in one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.counts import RankCounts
from unsample.estimators import parse
from unsample.lab.paper._exhibits import ESTIMATORS, METRICS, SAMPLED, Cell, figures
from unsample.likelihood import Observed
from unsample.metrics import Metric, Recall
from unsample.sampling import draw_sampled_ranks

#: Up to this many sizes of catalogues are kept.
_MANY_SIZES = 32
#: Of more, sizes within this factor become one.
_SAME_SIZE = 0.04
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
    counts, histograms = count_repeats(drawn, items, sampled=cell.sampled)
    wanted = _Wanted.of(cell)
    depth = min(wanted.depth, int(items.max()))
    curve = tuple(Recall @ rank for rank in range(1, depth + 1))
    cutoffs = [metric.cutoff(counts.largest_catalogue) for metric in (*METRICS, *curve)]
    batch = Observed.prepare(counts, histograms=histograms, cutoffs=cutoffs)
    values: dict[str, FloatArray] = {}
    cdf: dict[str, FloatArray] = {}
    for label in wanted.labels:
        shown = curve if label in wanted.with_curves else ()
        estimates = parse(ESTIMATORS[label]).evaluate(batch, (*METRICS, *shown)).values
        values[label] = estimates[:, : len(METRICS)]
        if shown:
            cdf[label] = estimates[:, len(METRICS) :].mean(axis=0)
    if curve:
        cdf["exact"] = exact_values(ranks, items, metrics=curve)
    return CellResult(exact_values(ranks, items, metrics=METRICS), values, cdf=cdf)


@dataclass(frozen=True)
class _Wanted:
    """What tables and figures show of a cell."""

    #: The estimators, and those whose curves are shown.
    labels: list[str]
    with_curves: set[str]
    #: How many ranks of the curves are shown.
    depth: int

    @classmethod
    def of(cls, cell: Cell) -> Self:
        sweeps = _settings_of("sweep", cell)
        curves = _settings_of("distributions", cell)
        with_curves = {label for about in curves for label in about["estimators"]}
        in_figures = with_curves | {label for about in sweeps for label in about["estimators"]}
        in_tables = cell.sampled == SAMPLED
        return cls(
            labels=[label for label in ESTIMATORS if in_tables or label in in_figures],
            with_curves=with_curves,
            depth=max((about["ranks"] for about in curves), default=0),
        )


def _settings_of(kind: str, cell: Cell) -> list[Mapping[str, Any]]:
    """Return the settings of the figures of a kind that show this cell."""
    return [figure.settings for figure in figures(kind, [cell.dataset]) if cell in figure.cells()]


def exact_values(ranks: IntArray, items: IntArray, *, metrics: tuple[Metric, ...]) -> FloatArray:
    """Return the metrics of the global ranks themselves, each among its own number of items.

    >>> ranks, items = np.array([1, 3, 7, 20]), np.full(4, 100)
    >>> exact_values(ranks, items, metrics=(Recall @ 1, Recall @ 10))
    array([0.25, 0.75])
    """
    distinct, times = np.unique(ranks, return_counts=True)
    largest = int(items.max())
    return np.array(
        [np.average(metric.weights(distinct, largest), weights=times) for metric in metrics]
    )


def count_repeats(
    drawn: IntArray, items: IntArray, *, sampled: int
) -> tuple[RankCounts, FloatArray]:
    """Return the cells that any repeat reached, and one histogram over them for each repeat.

    The counts weigh a cell by its mean over the repeats, so that they stand for as many targets
    as one repeat has. Nearly equal catalogues are one: see `typical_sizes`.

    Two repeats of three targets among 100 items. Ranks 1, 2 and 3 of ten are reached:

    >>> drawn = np.array([[1, 1, 2], [1, 2, 3]])
    >>> counts, histograms = count_repeats(drawn, np.full(3, 100), sampled=9)
    >>> histograms.tolist(), counts.weight.tolist()
    ([[2.0, 1.0, 0.0], [1.0, 1.0, 1.0]], [1.5, 1.0, 0.5])
    """
    repeats = len(drawn)
    n = sampled + 1
    sizes, where = np.unique(items, return_inverse=True)
    cell_index = (where.reshape(-1) * n - 1)[None, :] + drawn
    # Where each user has another number of items, no repeat reaches most cells.
    reached = np.flatnonzero(np.bincount(cell_index.ravel(), minlength=len(sizes) * n))
    histograms = np.empty((repeats, len(reached)))
    for repeat, cells in enumerate(cell_index):
        histograms[repeat] = np.bincount(cells, minlength=len(sizes) * n)[reached]
    mean = histograms.mean(axis=0)
    rank = reached % n + 1
    typical = typical_sizes(sizes[reached // n], mean, sampled=sampled)
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


def typical_sizes(items: IntArray, weight: FloatArray, *, sampled: int) -> IntArray:
    """Return the size that is used for each cell: the mean of nearly equal ones, if many.

    Repeats reach nearly every rank among every size, each with its own likelihood. But a sample
    shows only theta = (R - 1)/(N - 1), with a standard error of at least 1/sqrt(n) of it for
    theta <= 1/2. So sizes within four per cent of each other become one, or of half as much until
    that is less than the error, unless the sample is sparse: then a size only scales ranks.

    A hundred sizes from 1,000 to 1,099 become three:

    >>> np.unique(typical_sizes(np.arange(1000, 1100), np.ones(100), sampled=9))
    array([1016, 1054, 1087])
    """
    if len(np.unique(items)) <= _MANY_SIZES:
        return items
    error = np.where(sampled < _SPARSE * items, _SAME_SIZE, np.sqrt(1.0 / sampled))
    halvings = np.ceil(np.log2(_SAME_SIZE / error)).clip(min=0)
    label = np.round(np.log(items) / (_SAME_SIZE * 0.5**halvings))
    group = np.unique(np.stack([halvings, label]), axis=1, return_inverse=True)[1].reshape(-1)
    means = np.bincount(group, weight * items) / np.bincount(group, weight)
    return np.asarray(np.rint(means).astype(np.int64)[group])
