"""Limits of means that hold for any number of targets, and quantiles."""

from __future__ import annotations

import math

import numpy as np

from unsample._checks import FloatArray, check_level

#: The level of intervals where none is given.
DEFAULT_LEVEL = 0.95


def quantile(level: float, df: float = math.inf) -> float:
    """Return how many standard errors a two-sided interval reaches (t or normal).

    >>> round(quantile(0.95), 3), round(quantile(0.95, df=4), 3)
    (1.96, 2.776)
    """
    from scipy.special import ndtri, stdtrit

    end = (1.0 + check_level(level)) / 2.0
    return float(ndtri(end) if math.isinf(df) else stdtrit(df, end))


def clopper_pearson(
    low: FloatArray, high: FloatArray, targets: float | FloatArray, part: float
) -> tuple[FloatArray, FloatArray]:
    """Return limits of a probability whose observed share is in ``low..high``.

    Parameters
    ----------
    low, high
        The smallest and the largest share of targets that may have been observed.
    targets
        The number of targets.
    part
        The probability that each limit may be wrong with.

    With 2 hits among 10 the limits at 95 % are those of the usual tables:

    >>> share = np.array([0.2])
    >>> lower, upper = clopper_pearson(share, share, targets=10, part=0.025)
    >>> lower.round(4).tolist(), upper.round(4).tolist()
    ([0.0252], [0.5561])
    """
    from scipy.special import betaincinv

    hits = low * targets
    misses = (1.0 - high) * targets
    lower = betaincinv(np.maximum(hits, 1e-9), targets - hits + 1.0, part)
    upper = betaincinv(targets - misses + 1.0, np.maximum(misses, 1e-9), 1.0 - part)
    return np.where(hits > 1e-9, lower, 0.0), np.where(misses > 1e-9, upper, 1.0)


def hoeffding(
    low: FloatArray, high: FloatArray, targets: float, part: float
) -> tuple[FloatArray, FloatArray]:
    """Return limits of the mean of variables in 0..1 whose observed mean is in ``low..high``.

    The mean of M such variables exceeds x with probability at most exp(-M KL(x, mean)). The limits
    are the means at which this is ``part``, found by bisection. Parameters are as in
    `clopper_pearson`.

    >>> mean = np.array([0.2])
    >>> lower, upper = hoeffding(mean, mean, targets=10, part=0.025)
    >>> lower.round(4).tolist(), upper.round(4).tolist()
    ([0.0137], [0.6198])
    """
    from scipy.special import rel_entr

    budget = -np.log(part) / targets

    def furthest(start: FloatArray, end: float) -> FloatArray:
        """Return the mean between start and end at which the probability is used up."""
        inside = start.copy()
        outside = np.full(len(start), end)
        # Halvings of an interval of length one: enough for all digits that a limit needs.
        for _ in range(50):
            middle = (inside + outside) / 2.0
            divergence = rel_entr(start, middle) + rel_entr(1.0 - start, 1.0 - middle)
            near = divergence <= budget
            inside = np.where(near, middle, inside)
            outside = np.where(near, outside, middle)
        return outside

    return furthest(low, 0.0), furthest(high, 1.0)
