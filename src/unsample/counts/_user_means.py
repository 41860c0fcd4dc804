"""Means over users: the part of each target, and variances by pairs of targets of a user."""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.counts._columns import distinct_rows
from unsample.counts._rank_counts import RankCounts
from unsample.counts._user_pairs import pair_keys, shares_in
from unsample.metrics import AUC


def on_pair_cells(counts: RankCounts, scores: FloatArray, keys: IntArray) -> FloatArray:
    """Return the part of a target in each of the pair cells in its user's value, less the mean.

    ``scores`` are those of the cells of the counts. The weights of a metric are included. A user
    with ``relevant`` targets has that many parts of the mean to lose.
    """
    mean = float(counts.weight @ scores) / counts.users_weight
    asked = keys
    if counts.metric is not None:
        asked = keys.copy()
        asked[:, 4] = 1
        if counts.metric.family is not AUC:
            asked[:, 3] = 1
    found, index = distinct_rows(np.concatenate([asked, pair_keys(vars(counts))]))
    own = index[len(keys) :]
    weight = np.bincount(own, counts.weight, minlength=len(found))
    total = np.bincount(own, counts.weight * scores, minlength=len(found))
    score = np.divide(total, weight, out=np.zeros(len(found)), where=weight > 0)
    shares = shares_in(counts.metric, relevant=keys[:, 3], position=keys[:, 4])
    added = shares * score[index[: len(keys)]] - mean / keys[:, 3]
    return np.asarray(added / counts.users_weight)


def variance_of_mean(counts: RankCounts, scores: FloatArray) -> float:
    """Return the variance, for newly drawn users, of the mean over users of the cells' scores.

    Where users have several targets, the scores of a user's targets add up by their weights.
    """
    if counts.clusters is not None:
        added = on_pair_cells(counts, scores, keys=counts.clusters.keys)
        few = counts.users / max(counts.users - 1, 1)
        return max(counts.clusters.inner(added, added), 0.0) * few
    total = float(counts.weight.sum())
    deviations = scores - counts.weight @ scores / total
    return counts.weight_per_user**2 * float(counts.squared_weights @ deviations**2) / total**2
