"""What repeated evaluations add: the spread of a model's runs, and that of data sets.

The mean of k repeats errs by their spread over the root of k, with k - 1 degrees of freedom. A part
of the spread is the error of each repeat by itself, which is counted already.
"""

from __future__ import annotations

import math

import numpy as np

from unsample._checks import FloatArray


def spread_of(values: FloatArray, draws: FloatArray) -> tuple[float, float]:
    """Return the squared error of the mean of repeats by their spread, and its degrees of freedom.

    ``draws`` (draws x repeats) are what each repeat may be. The part of the spread that they show
    is taken off, but never more than leaves the end of an interval where the spread alone puts it.

    >>> nothing_drawn = np.zeros((100, 3))
    >>> spread_of(np.array([0.1, 0.2, 0.3]), nothing_drawn)
    (0.0033333333333333327, 2.0)
    """
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return 0.0, 1.0
    # The mean over pairs of half the variance of their difference.
    apart = count * float(draws.var(axis=0).sum()) - float(draws.sum(axis=1).var())
    alone = apart / (count * (count - 1))
    few = (float(stdtrit(count - 1, 0.975)) / 1.959964) ** 2
    spread = float(np.var(values, ddof=1))
    return max(spread - alone / few, 0.0) / count, count - 1.0


def with_spread(
    draws: FloatArray, spread: tuple[float, float], normals: FloatArray, *, caution: bool
) -> FloatArray:
    """Return draws of a mean to which the spread of its repeats is added, as a t variable.

    In comparisons the end of its one-sided interval of 95 % is where that of the two-sided one is:
    two equal models would have a verdict too often.
    """
    from scipy.special import ndtr, stdtrit

    square, df = spread
    if square == 0.0:
        return draws
    error = math.sqrt(square)
    if caution:
        error *= float(stdtrit(df, 0.975) / stdtrit(df, 0.95))
    return np.asarray(draws + error * stdtrit(df, ndtr(normals)))
