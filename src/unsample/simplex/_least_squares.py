r"""Least squares with order constraints, by non-negative least squares.

The problem, for a matrix A (ranks x cells), weights d and targets b:

.. math:: \min_x \; \sum_R d_R ((A x)_R - b_R)^2 \quad \text{subject to} \quad
          x_1 \ge \dots \ge x_n \ge 0 \;\; \text{(monotone) or} \;\; x \ge 0 \;\; \text{(not)}
"""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray
from unsample.simplex._solution import Certificate, Status

__all__ = ["monotone_least_squares"]


def monotone_least_squares(
    matrix: FloatArray,
    weights: FloatArray,
    target: FloatArray,
    *,
    monotone: bool = True,
    tolerance: float = 1e-8,
) -> tuple[FloatArray, Certificate]:
    """Solve the problem above; a non-increasing x is a sum of non-negative steps."""
    from scipy.optimize import nnls

    root = np.sqrt(weights)
    cells = matrix.shape[1]
    # An orthogonal reduction leaves the problem unchanged and `cells + 1` rows of it.
    stacked = np.column_stack([matrix, target]) * root[:, None]
    reduced = np.asarray(np.linalg.qr(stacked, mode="r"))
    columns, right = reduced[:, :cells], reduced[:, cells]
    x, _ = nnls(columns, right, maxiter=30 * cells)
    steps = x
    if monotone:
        # In the basis whose column j lifts x_1..x_j together, order is non-negativity. Often the
        # answer without the order has it already, and is then the answer with it.
        columns = np.cumsum(columns, axis=1)
        steps = -np.diff(x, append=0.0)
        if steps.min() < -1e-10 * max(x.max(), 1e-300):
            steps, _ = nnls(columns, right, maxiter=30 * cells)
        steps = np.maximum(steps, 0.0)
        x = np.cumsum(steps[::-1])[::-1]
    fitted = columns @ steps - right
    gradient = columns.T @ fitted
    scale = max(float(np.linalg.norm(right)), 1e-300)
    # Steps are at most about max(b), so this also bounds the gap to the optimum.
    residual = float(max(-gradient.min(initial=0.0), np.abs(gradient * steps).max(initial=0.0)))
    gap = float(max(0.0, -gradient.min(initial=0.0)) * steps.sum() + abs(gradient @ steps))
    status = Status.OPTIMAL if residual <= tolerance * max(scale, 1.0) else Status.NOT_CONVERGED
    return x, Certificate(status, float(fitted @ fitted), gap, residual, cells)
