r"""Mixture weights by likelihood.

The problem, for a likelihood matrix A (cells x bins), cell shares p and prior weights tau >= 0:

.. math:: \max_{\pi \in \Delta} F(\pi) = \sum_i p_i \log (A \pi)_i + \sum_b \tau_b \log \pi_b

With g = A'(p / A pi) + tau / pi, concavity gives F* - F(pi) <= max_b g_b - (1 + sum tau), which is
the gap reported, whatever algorithm found pi.
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
#: Cells in a block; the share of the bins, reached on average, up to which the product is computed
#: block by block; and the share, reached by every block, up to which Newton's matrix is a band.
_CELLS, _REACH, _BAND = 32, 0.5, 0.4


def em(
    likelihood: FloatArray,
    shares: FloatArray,
    *,
    start: FloatArray,
    iterations: int,
) -> Solution:
    """Take a fixed number of EM steps from ``start``, for all rows of ``shares`` together.

    ``start`` holds one row for all of them, or one for each.

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
    counts = np.full(len(shares), iterations, dtype=np.int64)
    return _certified(likelihood, shares, np.zeros(weights.shape[1]), weights, counts, None)


def maximum_likelihood(
    likelihood: FloatArray,
    shares: FloatArray,
    *,
    prior: FloatArray | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 200,
) -> Solution:
    """Maximise F to a gap of ``tolerance`` by a primal-dual interior-point method.

    The simplex is traded for a penalty (1 + sum tau) * sum(pi), which leaves the maximiser in
    place. Newton's matrix is diagonal plus a product of rank min(cells, bins), so a step costs
    about cells^2 * bins; where large samples place each target well, it is a band. With a prior the
    point sought is itself on the central path.
    """
    used = shares.any(axis=0)
    likelihood, shares = likelihood[used], shares[:, used]
    bins = likelihood.shape[1]
    tau = np.zeros(bins) if prior is None else prior
    size = min(likelihood.shape) ** 2 + likelihood.size
    step = max(1, _BATCH_NUMBERS // size)
    weights = np.empty((len(shares), bins))
    counts = np.empty(len(shares), dtype=np.int64)
    for first in range(0, len(shares), step):
        rows = slice(first, first + step)
        weights[rows], counts[rows] = _interior_point(
            likelihood, shares[rows], tau, tolerance, max_iterations
        )
    return _certified(likelihood, shares, tau, weights, counts, tolerance)


def _interior_point(
    likelihood: FloatArray,
    shares: FloatArray,
    tau: FloatArray,
    tolerance: float,
    max_iterations: int,
) -> tuple[FloatArray, IntArray]:
    rows, bins = len(shares), likelihood.shape[1]
    scale = 1.0 + tau.sum()
    weights = np.full((rows, bins), 1.0 / bins)
    slack = np.full((rows, bins), scale)
    counts = np.zeros(rows, dtype=np.int64)
    active = np.arange(rows)
    blocks = _blocks(likelihood)
    for _ in range(max_iterations):
        w, z, p = weights[active], slack[active], shares[active]
        mixture = np.maximum(w @ likelihood.T, _TINY)
        gradient = (p / mixture) @ likelihood
        excess = w * z - tau
        # Aim well below the present complementarity, but not at zero: this stays near the centre.
        barrier = 0.1 * np.maximum(excess, 0.0).mean(axis=1, keepdims=True) + tau
        right = barrier / w - (scale - gradient)
        move = _newton(likelihood, blocks, p / mixture**2, z / w, right)
        slack_move = barrier / w - z - (z / w) * move
        weights[active] = w + _longest_step(w, move) * move
        slack[active] = z + _longest_step(z, slack_move) * slack_move
        counts[active] += 1
        done = _gap(likelihood, p, tau, weights[active]) <= tolerance
        active = active[~done]
        if active.size == 0:
            break
    return weights / weights.sum(axis=1, keepdims=True), counts


def _blocks(likelihood: FloatArray) -> list[tuple[slice, slice]]:
    """Return blocks of neighbouring cells, each with the bins that it reaches; none if too many."""
    cells, bins = likelihood.shape
    found, widths = [], []
    for first in range(0, cells, _CELLS):
        reached = np.flatnonzero(likelihood[first : first + _CELLS].any(axis=0))
        columns = slice(reached[0], reached[-1] + 1) if len(reached) else slice(0, 0)
        found.append((slice(first, first + _CELLS), columns))
        widths.append(columns.stop - columns.start)
    few = np.mean(np.square(widths)) <= (_REACH * bins) ** 2
    return found if few else []


def _newton(
    likelihood: FloatArray,
    blocks: list[tuple[slice, slice]],
    curvature: FloatArray,
    diagonal: FloatArray,
    right: FloatArray,
) -> FloatArray:
    """Solve (A' diag(curvature) A + diag(diagonal)) x = right, whichever side is smaller."""
    cells, bins = likelihood.shape
    if blocks:
        rows = zip(curvature, diagonal, right, strict=True)
        return np.stack([_banded(likelihood, blocks, *row) for row in rows])
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


def _banded(
    likelihood: FloatArray,
    blocks: list[tuple[slice, slice]],
    curvature: FloatArray,
    diagonal: FloatArray,
    right: FloatArray,
) -> FloatArray:
    """Solve the same for one row, where each cell reaches few bins."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, solveh_banded

    bins = likelihood.shape[1]
    matrix = np.diag(diagonal)
    for rows, columns in blocks:
        part = likelihood[rows, columns]
        matrix[columns, columns] += (part.T * curvature[rows]) @ part
    width = max(columns.stop - columns.start for _, columns in blocks)
    try:
        if width > _BAND * bins:
            factor = cho_factor(matrix, lower=True, check_finite=False)
            return np.asarray(cho_solve(factor, right, check_finite=False))
        band = np.zeros((width, bins))
        for below in range(width):
            band[below, : bins - below] = np.diagonal(matrix, -below)
        return np.asarray(solveh_banded(band, right, lower=True, check_finite=False))
    except LinAlgError:  # by rounding, where weights are next to nothing
        return np.asarray(np.linalg.solve(matrix, right))


def _longest_step(point: FloatArray, move: FloatArray) -> FloatArray:
    """Return the largest step up to 1 that keeps the point positive, with a margin."""
    fall = (-move / point).max(axis=1, keepdims=True)
    return np.asarray(_MARGIN / np.maximum(fall, _MARGIN))


def _gap(
    likelihood: FloatArray, shares: FloatArray, tau: FloatArray, weights: FloatArray
) -> FloatArray:
    weights = weights / weights.sum(axis=1, keepdims=True)
    mixture = np.maximum(weights @ likelihood.T, _TINY)
    gradient = (shares / mixture) @ likelihood + tau / np.maximum(weights, _TINY)
    return np.asarray(gradient.max(axis=1) - shares.sum(axis=1) - tau.sum())


def _certified(
    likelihood: FloatArray,
    shares: FloatArray,
    tau: FloatArray,
    weights: FloatArray,
    iterations: IntArray,
    tolerance: float | None,
) -> Solution:
    mixture = np.maximum(weights @ likelihood.T, _TINY)
    objective = (shares * np.log(mixture)).sum(axis=1)
    objective += np.log(np.maximum(weights, _TINY)) @ tau
    gap = _gap(likelihood, shares, tau, weights)
    if tolerance is None:
        status = np.full(len(shares), Status.STOPPED)
    else:
        # Rounding may leave a converged run a little above the tolerance.
        status = Status.where(gap <= 10 * tolerance)
    return Solution(weights, objective, gap, iterations, status)
