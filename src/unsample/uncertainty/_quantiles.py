"""Limits of means that hold for any number of targets, and quantiles."""

from __future__ import annotations

import math

import numpy as np

from unsample._checks import FloatArray, check_level

#: The level of intervals where none is given.
DEFAULT_LEVEL = 0.95


def quantile(level: float, df: float = math.inf) -> float:
    """Return how many standard errors a two-sided interval reaches (t or normal)."""
    from scipy.special import ndtri, stdtrit

    end = (1.0 + check_level(level)) / 2.0
    return float(ndtri(end) if math.isinf(df) else stdtrit(df, end))


def clopper_pearson(
    low: FloatArray, high: FloatArray, targets: float | FloatArray, part: float
) -> tuple[FloatArray, FloatArray]:
    """Return limits of a probability whose observed share is in ``low..high``."""
    from scipy.special import betaincinv

    below, above = low * targets, (1.0 - high) * targets
    lower = betaincinv(np.maximum(below, 1e-9), targets - below + 1.0, part)
    upper = betaincinv(targets - above + 1.0, np.maximum(above, 1e-9), 1.0 - part)
    return np.where(below > 1e-9, lower, 0.0), np.where(above > 1e-9, upper, 1.0)


def hoeffding(
    low: FloatArray, high: FloatArray, targets: float, part: float
) -> tuple[FloatArray, FloatArray]:
    """Return limits of the mean of variables in 0..1 whose observed mean is in ``low..high``.

    The mean of M such variables exceeds x with probability at most exp(-M KL(x, mean)), so the
    limits are the means at which this is ``part``; bisection finds them.
    """
    from scipy.special import rel_entr

    budget = -np.log(part) / targets

    def furthest(start: FloatArray, end: float) -> FloatArray:
        inside, outside = start.copy(), np.full(len(start), end)
        # Halvings of an interval of length one: enough for all digits that a limit needs.
        for _ in range(50):
            middle = (inside + outside) / 2.0
            near = rel_entr(start, middle) + rel_entr(1.0 - start, 1.0 - middle) <= budget
            inside, outside = np.where(near, middle, inside), np.where(near, outside, middle)
        return outside

    return furthest(low, 0.0), furthest(high, 1.0)
