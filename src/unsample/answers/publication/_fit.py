r"""P(R) from means of functions of the sampled rank, by alternating projections.

.. math:: \min_{h, \pi \in \Delta} KL(h \,\|\, A\pi)
          + \sum_j \frac{((F h)_j - m_j)^2}{2 \sigma_j^2}

A holds P(sampled rank | bin), F the functions whose means m are printed, and h is the histogram
that nobody printed. The second term asks h to have these means; sigma is so small that it does,
to far less than the rounding, unless no histogram has exactly these means.

For fixed pi the best h is an exponential tilt of A pi, found on its dual; for fixed h one EM step
lowers the divergence. Both steps lower a jointly convex objective, and as alternating projections
they converge to its minimum (Csiszar and Tusnady 1984). Where only hit rates are printed, the tilt
is constant on the ranges between their K, and a step is exactly the EM step of `mle` on ranges. So
the same 100 steps are taken from the same start, and mean the same regularisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray
from unsample.estimators import Certificate, Status

__all__ = ["Fit", "fit_to_means", "tilt"]

#: EM steps, as many as the default of the estimator `mle`.
STEPS = 100
_NEWTON_STEPS = 60
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Fit:
    """Masses of the bins, and the histogram of sampled ranks: one row for each row of means."""

    mass: FloatArray
    histogram: FloatArray
    certificate: Certificate


def fit_to_means(
    likelihood: FloatArray,
    features: FloatArray,
    means: FloatArray,
    spread: FloatArray,
    *,
    start: FloatArray,
    steps: int = STEPS,
) -> Fit:
    """Fit P(R) to each row of ``means``, all rows together."""
    mass = np.broadcast_to(start / start.sum(), (len(means), len(start))).copy()
    dual = np.zeros_like(means)
    for _ in range(steps):
        implied = np.maximum(mass @ likelihood.T, _TINY)
        histogram, dual = tilt(implied, features, means, spread, dual)
        mass *= (histogram / implied) @ likelihood
    mass /= mass.sum(axis=1, keepdims=True)
    return Fit(mass, histogram, _certificate(likelihood, mass[0], histogram[0], steps))


def tilt(
    base: FloatArray,
    features: FloatArray,
    means: FloatArray,
    spread: FloatArray,
    dual: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    r"""Return the histograms nearest to ``base`` that have the means, and the dual they have.

    They are base * exp(F' x), normalised, where x minimises the strictly convex
    log sum base exp(F' x) - m'x + sum sigma^2 x^2 / 2. Newton's method with halved steps finds it
    from the ``dual`` of a problem nearby.
    """
    x = dual.copy()
    value, histogram = _dual_value(base, features, means, spread, x)
    for _ in range(_NEWTON_STEPS):
        present = histogram @ features.T
        gradient = present - means + spread**2 * x
        centred = features[None] - present[:, :, None]
        hessian = (centred * histogram[:, None, :]) @ centred.swapaxes(1, 2)
        hessian += np.eye(len(spread)) * spread**2
        move = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
        promised = -(gradient * move).sum(axis=1)
        if (promised <= 1e-14).all():
            break
        size = np.ones(len(x))
        for _ in range(40):
            tried = x + size[:, None] * move
            new_value, new_histogram = _dual_value(base, features, means, spread, tried)
            worse = new_value > value - 1e-4 * size * promised + 1e-13 * np.abs(value)
            if not worse.any():
                break
            size[worse] /= 2.0
        x, value, histogram = tried, new_value, new_histogram
    return histogram, x


def _dual_value(
    base: FloatArray, features: FloatArray, means: FloatArray, spread: FloatArray, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    logs = np.log(base) + x @ features
    top = logs.max(axis=1, keepdims=True)
    raised = np.exp(logs - top)
    total = raised.sum(axis=1, keepdims=True)
    penalty = 0.5 * (spread**2 * x**2).sum(axis=1)
    value = (top + np.log(total))[:, 0] - (means * x).sum(axis=1) + penalty
    return value, raised / total


def _certificate(
    likelihood: FloatArray, mass: FloatArray, histogram: FloatArray, steps: int
) -> Certificate:
    """Return how far the likelihood of the fitted histogram still is from its maximum."""
    mixture = np.maximum(likelihood @ mass, _TINY)
    gradient = (histogram / mixture) @ likelihood
    objective = float(histogram @ np.log(mixture))
    return Certificate(Status.STOPPED, objective, float(gradient.max() - 1.0), steps)
