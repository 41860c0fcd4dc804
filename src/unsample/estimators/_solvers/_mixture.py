r"""Mixture weights by likelihood.

The problem, for a likelihood matrix A (cells x bins) and cell shares p:

.. math:: \max_{\pi \in \Delta} F(\pi) = \sum_i p_i \log (A \pi)_i

With g = A'(p / A pi), concavity gives F* - F(pi) <= max_b g_b - 1, which is the gap reported,
whatever algorithm found pi.
"""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.estimators._solvers import Solution, Status

_TINY = 1e-300
#: Most numbers in a batch of Newton matrices.
_BATCH_NUMBERS = 2_000_000
#: How far towards the border of the simplex a step may go.
_MARGIN = 0.995


def em(
    likelihood: FloatArray, shares: FloatArray, *, start: FloatArray, iterations: int
) -> Solution:
    """Take a fixed number of EM steps from ``start``, for all rows of ``shares`` together.

    The iteration count is part of the estimate (it regularises), so the status says so, and the
    gap tells how far from the maximum the likelihood still is.
    """
    used = shares.any(axis=0)
    likelihood, shares = likelihood[used], shares[:, used]
    # The first step divides by the scale of the start.
    weights = np.broadcast_to(start, (len(shares), likelihood.shape[1])).copy()
    ratio, factor = np.empty_like(shares), np.empty_like(weights)
    for _ in range(iterations):
        np.matmul(weights, likelihood.T, out=ratio)
        np.divide(shares, np.maximum(ratio, _TINY, out=ratio), out=ratio)
        # The new weights sum to what the shares sum to: no step needs to be renormalised.
        weights *= np.matmul(ratio, likelihood, out=factor)
    weights /= weights.sum(axis=1, keepdims=True)
    return Solution(
        weights,
        _objective(likelihood, shares, weights),
        _gap(likelihood, shares, weights),
        np.full(len(shares), iterations, dtype=np.int64),
        np.full(len(shares), Status.STOPPED),
    )


def maximum_likelihood(
    likelihood: FloatArray,
    shares: FloatArray,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 200,
) -> Solution:
    """Maximise F to a gap of ``tolerance`` by a primal-dual interior-point method.

    The simplex is traded for a penalty sum(pi), which leaves the maximiser in place. Newton's
    matrix is diagonal plus a product of rank min(cells, bins), so a step costs about
    min(cells, bins)^2 * max(cells, bins).
    """
    used = shares.any(axis=0)
    likelihood, shares = likelihood[used], shares[:, used]
    step = max(1, _BATCH_NUMBERS // (min(likelihood.shape) ** 2 + likelihood.size))
    weights = np.empty((len(shares), likelihood.shape[1]))
    counts = np.empty(len(shares), dtype=np.int64)
    for first in range(0, len(shares), step):
        rows = slice(first, first + step)
        weights[rows], counts[rows] = _interior_point(
            likelihood, shares[rows], tolerance, max_iterations
        )
    gap = _gap(likelihood, shares, weights)
    # Rounding may leave a converged run a little above the tolerance.
    status = Status.where(gap <= 10 * tolerance)
    return Solution(weights, _objective(likelihood, shares, weights), gap, counts, status)


def _interior_point(
    likelihood: FloatArray, shares: FloatArray, tolerance: float, max_iterations: int
) -> tuple[FloatArray, IntArray]:
    rows, bins = len(shares), likelihood.shape[1]
    weights, slack = np.full((rows, bins), 1.0 / bins), np.ones((rows, bins))
    counts = np.zeros(rows, dtype=np.int64)
    active = np.arange(rows)
    for _ in range(max_iterations):
        w, z, p = weights[active], slack[active], shares[active]
        mixture = np.maximum(w @ likelihood.T, _TINY)
        gradient = (p / mixture) @ likelihood
        # Aim well below the present complementarity, but not at zero: this stays near the centre.
        barrier = 0.1 * (w * z).mean(axis=1, keepdims=True)
        move = _newton(likelihood, p / mixture**2, z / w, barrier / w - (1.0 - gradient))
        slack_move = barrier / w - z - (z / w) * move
        weights[active] = w + _longest_step(w, move) * move
        slack[active] = z + _longest_step(z, slack_move) * slack_move
        counts[active] += 1
        found = weights[active] / weights[active].sum(axis=1, keepdims=True)
        active = active[_gap(likelihood, p, found) > tolerance]
        if active.size == 0:
            break
    return weights / weights.sum(axis=1, keepdims=True), counts


def _newton(
    likelihood: FloatArray, curvature: FloatArray, diagonal: FloatArray, right: FloatArray
) -> FloatArray:
    """Solve (A' diag(curvature) A + diag(diagonal)) x = right, whichever side is smaller."""
    cells, bins = likelihood.shape
    if bins <= cells:
        matrix = (likelihood.T * curvature[:, None, :]) @ likelihood
        matrix[:, np.arange(bins), np.arange(bins)] += diagonal
        return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0], dtype=np.float64)
    # Woodbury's identity, with the square root of the curvature inside, so that zeros are safe.
    root = np.sqrt(curvature)
    scaled = root[:, :, None] * likelihood
    core = (scaled / diagonal[:, None, :]) @ scaled.swapaxes(1, 2)
    core[:, np.arange(cells), np.arange(cells)] += 1.0
    solved = right / diagonal
    inner = np.linalg.solve(core, (scaled @ solved[..., None]))
    return solved - (scaled.swapaxes(1, 2) @ inner)[..., 0] / diagonal


def _longest_step(point: FloatArray, move: FloatArray) -> FloatArray:
    """Return the largest step up to 1 that keeps the point positive, with a margin."""
    fall = (-move / point).max(axis=1, keepdims=True)
    return np.asarray(_MARGIN / np.maximum(fall, _MARGIN))


def _objective(likelihood: FloatArray, shares: FloatArray, weights: FloatArray) -> FloatArray:
    mixture = np.maximum(weights @ likelihood.T, _TINY)
    return np.asarray((shares * np.log(mixture)).sum(axis=1))


def _gap(likelihood: FloatArray, shares: FloatArray, weights: FloatArray) -> FloatArray:
    mixture = np.maximum(weights @ likelihood.T, _TINY)
    gradient = (shares / mixture) @ likelihood
    return np.asarray(gradient.max(axis=1) - shares.sum(axis=1))
