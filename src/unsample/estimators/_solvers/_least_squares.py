r"""Least squares with order constraints, by non-negative least squares.

The problem, for a non-negative matrix A (ranks x cells), weights d and targets b:

.. math:: F(x) = \sum_R d_R ((A x)_R - b_R)^2 \to \min \quad \text{subject to} \quad
          x_1 \ge \dots \ge x_n \ge 0 \;\; \text{(monotone) or} \;\; x \ge 0 \;\; \text{(not)}

With s the steps of x (or x itself), g half the slope of F in s and m that of sum_R d_R (A x)_R,
convexity gives F(s) - F(s*) <= 2 g's - 2 g's*. The best fit is no longer than its target, so
m's* <= sqrt(sum d) |b|, and -g's* is at most that times the largest -g_j / m_j. This is the gap
reported, whatever algorithm found s; lengths are those with weights d.
"""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray
from unsample.estimators._solvers._solution import Certificate, Status

__all__ = ["monotone_least_squares"]


def monotone_least_squares(
    matrix: FloatArray,
    weights: FloatArray,
    target: FloatArray,
    *,
    monotone: bool = True,
    tolerance: float = 1e-6,
) -> tuple[FloatArray, Certificate]:
    """Solve the problem above; a non-increasing x is a sum of non-negative steps.

    It is solved where the gap is at most ``tolerance`` of F(0), whatever the units of b.
    """
    from scipy.optimize import nnls

    root = np.sqrt(weights)
    cells = matrix.shape[1]
    # An orthogonal reduction leaves the problem unchanged and `cells + 1` rows of it.
    stacked = np.column_stack([matrix, target]) * root[:, None]
    reduced = np.asarray(np.linalg.qr(stacked, mode="r"))
    columns, right = reduced[:, :cells], reduced[:, cells]
    mass = weights @ matrix
    x, _ = nnls(columns, right, maxiter=30 * cells)
    steps = x
    if monotone:
        # In the basis whose column j lifts x_1..x_j together, order is non-negativity. Often the
        # answer without the order has it already, and is then the answer with it.
        columns, mass = np.cumsum(columns, axis=1), np.cumsum(mass)
        steps = -np.diff(x, append=0.0)
        if steps.min() < -1e-10 * x.max():
            steps, _ = nnls(columns, right, maxiter=30 * cells)
        steps = np.maximum(steps, 0.0)
        x = np.cumsum(steps[::-1])[::-1]
    fitted = columns @ steps - right
    gradient = columns.T @ fitted
    residual = float(max(np.abs(gradient * steps).max(), -gradient.min()))
    rising = np.maximum(-gradient, 0.0)
    rising = np.divide(rising, mass, out=rising, where=rising > 0)
    size = float(right @ right)
    reach = np.sqrt(weights.sum() * size)
    gap = 2.0 * max(float(gradient @ steps + rising.max() * reach), 0.0)
    status = Status.OPTIMAL if gap <= tolerance * size else Status.NOT_CONVERGED
    return x, Certificate(status, float(fitted @ fitted), gap, residual, cells)
