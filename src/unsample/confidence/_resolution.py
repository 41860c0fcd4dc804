"""What the sample can resolve, and intervals from bootstrap replicates."""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray, check_level
from unsample.evidence import RankCounts
from unsample.metrics import Metric

__all__ = ["blind_rank", "is_resolved", "percentile_interval"]


def percentile_interval(replicates: FloatArray, level: float) -> tuple[float, float]:
    """Return the central interval that holds ``level`` of the bootstrap replicates."""
    level = check_level(level)
    if len(replicates) == 0:
        return (float("nan"), float("nan"))
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def blind_rank(counts: RankCounts) -> float:
    """Return the rank K down to which one sampled item falls on average.

    With n - 1 of N - 1 items sampled that is (N - 1)/(n - 1), about N/n; where designs differ, the
    number of sampled items in the top K is averaged over the targets.
    """
    return 1.0 / counts.sampled_in_top


def is_resolved(metric: Metric, counts: RankCounts) -> bool:
    """Return whether the sample can tell ranks up to the metric's K from those below.

    The rule: on average at least one sampled item must fall into the top K. With fewer, most
    targets in the top K and many below it are alike unbeaten (r = 1): at K equal to the blind
    rank a target just outside the top K still has r = 1 with probability 1/e. What the estimate
    then says about the top K comes from the estimator's assumption, not from the data.
    """
    cutoff = metric.cutoff(counts.largest_catalogue)
    return bool(cutoff * counts.sampled_in_top >= 1.0 - 1e-12)
