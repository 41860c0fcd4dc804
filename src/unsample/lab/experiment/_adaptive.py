"""The tables once more, with adaptive samples in place of fixed ones of the same cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from unsample import estimators as _estimators
from unsample._checks import FloatArray, IntArray
from unsample.answers.evaluation import ADAPTIVE_METHOD, Adaptive, draw_by_design, merged_sizes
from unsample.estimators import Observed
from unsample.evidence import RankCounts
from unsample.lab.experiment._cells import Ranks
from unsample.lab.experiment._results import Row
from unsample.lab.experiment._spec import Cell, Spec, label_of
from unsample.metrics import Metric

__all__ = ["AdaptiveCell", "adaptive_winner_rows", "compute_adaptive_cell"]

#: (metrics of every repeat, mean number of items scored for a target)
AdaptiveCell = tuple[FloatArray, float]


def compute_adaptive_cell(spec: Spec, cell: Cell, ranks: Ranks) -> AdaptiveCell:
    """Evaluate the targets ``spec.repeats`` times at the cost of ``cell.sampled`` items each."""
    design = Adaptive(budget=cell.sampled).fit_to(spec.columns, ranks.items - 1)
    streams = cell.seed_sequence(spec.seed).spawn(spec.repeats)
    # As in an evaluation with one seed, all models let the same targets go on.
    shared = replace(cell, recommender="").seed_sequence(spec.seed).spawn(spec.repeats)
    drawn = [
        draw_by_design(
            design,
            ranks.ranks,
            ranks.items,
            np.random.default_rng(stream),
            lot=np.random.default_rng(common).permutation(len(ranks.ranks)),
        )
        for stream, common in zip(streams, shared, strict=True)
    ]
    found, sampled = (np.stack(one) for one in zip(*drawn, strict=True))
    counts, histograms = _count(found, ranks.items, sampled)
    cutoffs = [metric.cutoff(counts.largest_catalogue) for metric in spec.columns]
    observed = Observed.prepare(counts, resampled=histograms, cutoffs=cutoffs)
    batch = replace(observed, shares=observed.shares[1:])
    values = _estimators.parse(ADAPTIVE_METHOD).evaluate(batch, spec.columns).values
    return values, float(sampled.mean())


def adaptive_winner_rows(
    spec: Spec,
    cells: Mapping[Cell, AdaptiveCell],
    exact: Mapping[Cell, FloatArray],
) -> list[Row]:
    """Return in how many repeats adaptive estimates name the recommender that is truly best."""
    rows: list[Row] = []
    for dataset in spec.datasets:
        for protocol in spec.protocols:
            some = [Cell(dataset, protocol, r, spec.sampled) for r in spec.recommenders]
            for column, metric in enumerate(spec.columns):
                winner = int(np.argmax([exact[cell][column] for cell in some]))
                estimates = np.stack([cells[cell][0][:, column] for cell in some])
                correct = int((estimates.argmax(axis=0) == winner).sum())
                rows.append(_row(spec, some[winner], metric, estimates.shape[1], correct))
    return rows


def _row(spec: Spec, best: Cell, metric: Metric, repeats: int, correct: int) -> Row:
    return {
        "dataset": best.dataset,
        "protocol": best.protocol,
        "metric": metric.family.name,
        "k": metric.k,
        "estimator": "Adaptive",
        "repeats": repeats,
        "true_winner": label_of(best.recommender),
        "correct": correct,
    }


def _count(ranks: IntArray, items: IntArray, sampled: IntArray) -> tuple[RankCounts, FloatArray]:
    """Return the cells that any repeat reached, and a histogram over them for each repeat."""
    sizes = np.stack([merged_sizes(items, row, replacement=False) for row in sampled])
    base = int(max(sizes.max(), sampled.max(), ranks.max())) + 1
    keys = (sampled * base + sizes) * base + ranks
    found, where = np.unique(keys, return_inverse=True)
    places = where.reshape(ranks.shape)
    histograms = np.stack([np.bincount(row, minlength=len(found)) for row in places])
    mean = histograms.mean(axis=0)
    counts = RankCounts(
        sampled=found // base**2,
        items=found // base % base,
        low=found % base,
        high=found % base,
        count=histograms.sum(axis=0),
        weight=mean,
        weight_squared=mean,
        replacement=False,
    )
    # Sorted keys are in the order in which counts keep their cells.
    return counts, histograms.astype(np.float64)
