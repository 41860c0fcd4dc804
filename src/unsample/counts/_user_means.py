"""Variances of means over users, from the pairs of targets of one user."""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.counts._columns import distinct_rows
from unsample.counts._rank_counts import RankCounts
from unsample.counts._user_pairs import PAIR_KEYS, pair_keys, shares_in
from unsample.metrics import AUC


def on_pair_cells(counts: RankCounts, scores: FloatArray, keys: IntArray) -> FloatArray:
    """Return what a target in each pair cell adds to the deviation of the mean over users.

    ``scores`` has a number for each cell of the counts, and ``keys`` are pair cells. A user's value
    is the sum of the scores of the user's targets, weighed as in the metric. What all targets of a
    user add is this value less the mean, divided by the number of users. Each of a user's
    ``relevant`` targets takes an equal part of the mean.

    Rank 1 scores 1 and rank 3 scores 0. In Recall a user with targets at the ranks 1 and 3 has the
    value 1/2, and a user with one at rank 1 has 1. The mean is 3/4, and the targets of the first
    user add (1/2 - 3/8) / 2 and (0 - 3/8) / 2: together (1/2 - 3/4) / 2.

    >>> from unsample.metrics import parse
    >>> counts = RankCounts.from_ranks([1, 3, 1], items=50, sampled=9, users=[7, 7, 8])
    >>> pairs = counts.pairs()
    >>> pairs.keys[:, [2, 3]].tolist()                   # ranks, and relevant items of the user
    [[1, 1], [1, 2], [3, 2]]
    >>> weighed = counts.for_metric(parse("Recall"))
    >>> on_pair_cells(weighed, np.array([1.0, 0.0]), pairs.keys).tolist()
    [0.125, 0.0625, -0.1875]
    """
    mean = float(counts.weight @ scores) / counts.users_weight
    relevant = keys[:, PAIR_KEYS.index("relevant")]
    position = keys[:, PAIR_KEYS.index("position")]
    keys_in_counts = keys
    if counts.metric is not None:
        # Cells that a metric weighs no longer hold what its weights depend on.
        keys_in_counts = keys.copy()
        keys_in_counts[:, PAIR_KEYS.index("position")] = 1
        if counts.metric.family is not AUC:
            keys_in_counts[:, PAIR_KEYS.index("relevant")] = 1
    rows = np.concatenate([keys_in_counts, pair_keys(vars(counts))])
    distinct, index = distinct_rows(rows)
    of_key, of_cell = np.split(index, [len(keys)])
    weight = np.bincount(of_cell, counts.weight, minlength=len(distinct))
    total = np.bincount(of_cell, counts.weight * scores, minlength=len(distinct))
    mean_score = np.divide(total, weight, out=np.zeros(len(distinct)), where=weight > 0)
    shares = shares_in(counts.metric, relevant=relevant, position=position)
    added = shares * mean_score[of_key] - mean / relevant
    return np.asarray(added / counts.users_weight)


def variance_of_mean(counts: RankCounts, scores: FloatArray) -> float:
    """Return the variance, for newly drawn users, of the mean over users of the cells' scores.

    Where users have several targets, the scores of a user's targets add up by their weights.

    As in `on_pair_cells`, two users have the values 1/2 and 1. Their variance is 1/8, and that of
    the mean of two is 1/16.

    >>> from unsample.metrics import parse
    >>> counts = RankCounts.from_ranks([1, 3, 1], items=50, sampled=9, users=[7, 7, 8])
    >>> variance_of_mean(counts.for_metric(parse("Recall")), np.array([1.0, 0.0]))
    0.0625
    """
    if counts.clusters is not None:
        added = on_pair_cells(counts, scores, keys=counts.clusters.keys)
        # As n - 1 in the variance of a sample.
        small_sample = counts.users / max(counts.users - 1, 1)
        return max(counts.clusters.inner(added, added), 0.0) * small_sample
    total = float(counts.weight.sum())
    deviations = scores - counts.weight @ scores / total
    return counts.weight_per_user**2 * float(counts.squared_weights @ deviations**2) / total**2
