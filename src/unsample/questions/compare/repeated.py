"""What repeated evaluations add to an error: the spread of a model's runs, or of data sets.

The mean of k repeats varies by their standard deviation over the root of k, with k - 1 degrees of
freedom. A part of the spread is the error of each repeat by itself, which is counted already.
"""

from __future__ import annotations

import math

import numpy as np

from unsample._checks import FloatArray

#: The quantile of a normal distribution that ends its two-sided interval of 95 %.
_NORMAL_END = 1.959964


def spread_of(values: FloatArray, draws: FloatArray) -> tuple[float, float]:
    """Return the squared error that the spread of repeats adds to their mean, and its df.

    ``draws`` (draws x repeats) show how uncertain each repeat is by itself. The part of the spread
    that comes from this is subtracted, but never so much that the interval would become shorter
    than the spread alone makes it.

    Three repeats that are known exactly have the variance 0.01, so their mean has 0.01 / 3:

    >>> known = np.zeros((100, 3))
    >>> square, df = spread_of(np.array([0.1, 0.2, 0.3]), known)
    >>> round(square, 5), df
    (0.00333, 2.0)

    If each repeat is uncertain by itself, the spread adds less:

    >>> draws = np.random.default_rng(0).normal(0.0, 0.1, size=(10_000, 3))
    >>> round(spread_of(np.array([0.1, 0.2, 0.3]), draws)[0], 5)
    0.00265
    """
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return 0.0, 1.0
    # The mean over pairs of repeats of half the variance of their difference.
    sum_of_variances = float(draws.var(axis=0).sum())
    variance_of_sum = float(draws.sum(axis=1).var())
    alone = (count * sum_of_variances - variance_of_sum) / (count * (count - 1))
    # How much wider a squared interval is with so few degrees of freedom.
    widening = (float(stdtrit(count - 1, 0.975)) / _NORMAL_END) ** 2
    spread = float(np.var(values, ddof=1))
    return max(spread - alone / widening, 0.0) / count, count - 1.0


def with_spread(
    draws: FloatArray, spread: tuple[float, float], *, normals: FloatArray, caution: bool
) -> FloatArray:
    """Return draws of a mean to which the spread of its repeats is added, as a t variable.

    Parameters
    ----------
    draws
        The draws of the mean.
    spread
        What `spread_of` returns: the squared error of the mean, and its degrees of freedom.
    normals
        A standard normal number for each draw.
    caution
        Whether the error is widened for comparisons, so that the one-sided interval of 95 % ends
        where the two-sided one does. Otherwise two equal models would have a verdict too often.

    >>> normals = np.array([-1.0, 0.0, 1.0])
    >>> draws = np.full(3, 0.2)
    >>> with_spread(draws, (0.01, 4.0), normals=normals, caution=False).round(3).tolist()
    [0.086, 0.2, 0.314]
    >>> with_spread(draws, (0.01, 4.0), normals=normals, caution=True).round(3).tolist()
    [0.051, 0.2, 0.349]
    """
    from scipy.special import ndtr, stdtrit

    square, df = spread
    if square == 0.0:
        return draws
    error = math.sqrt(square)
    if caution:
        error *= float(stdtrit(df, 0.975) / stdtrit(df, 0.95))
    return np.asarray(draws + error * stdtrit(df, ndtr(normals)))
