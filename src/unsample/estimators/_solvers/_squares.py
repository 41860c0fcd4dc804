r"""Squared distances: to the histogram with maximum entropy (MES), to a metric in order (CLS).

1. For a likelihood matrix A (cells x bins), cell weights v and targets p, widths w and eta > 0:

.. math:: \min_{\pi \in \Delta} \; \sum_i v_i ((A \pi)_i - p_i)^2
          + \eta \sum_b \pi_b \log(\pi_b / w_b)

Its dual has one unknown for each cell. With lambda_i = sqrt(v_i) t_i,

.. math:: D(t) = -\sum_i \sqrt{v_i}\, p_i t_i - \tfrac14 \sum_i t_i^2
          - \eta \log \sum_b w_b \exp(-(A' \lambda)_b / \eta)

is concave, with a Hessian never flatter than -1/2, so Newton's method with backtracking converges
from t = 0. The weights follow from t, and primal minus dual objective is the gap reported.

2. For a non-negative matrix A (ranks x cells), weights d and targets b:

.. math:: F(x) = \sum_R d_R ((A x)_R - b_R)^2 \to \min \quad \text{subject to} \quad
          x_1 \ge \dots \ge x_n \ge 0

It is solved by non-negative least squares. With s the steps of x, g half the slope of F in s and m
that of sum_R d_R (A x)_R, convexity gives F(s) - F(s*) <= 2 g's - 2 g's*. The best
fit is no longer than its target, so m's* <= sqrt(sum d) |b|, and -g's* is at most that times the
largest -g_j / m_j. This is the gap reported, whatever algorithm found s; lengths are those with
weights d.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.estimators._solvers import Certificate, Solution, Status

_BATCH_NUMBERS = 2_000_000
#: Curvature that a Newton step may neglect, compared with 1/2.
_FLAT = 1e-6


def maximum_entropy(
    likelihood: FloatArray,
    targets: FloatArray,
    *,
    cell_weights: FloatArray,
    widths: FloatArray,
    eta: float,
    tolerance: float = 1e-12,
    max_iterations: int = 200,
) -> Solution:
    """Solve the first problem for each row of ``targets``, to a gap of ``tolerance``."""
    used = (cell_weights > 0).any(axis=0)
    basis, core = _steep_part(likelihood[used], float(cell_weights.max()) / eta)
    problem = _Dual(
        likelihood[used],
        targets[:, used],
        np.sqrt(cell_weights[:, used]),
        np.log(widths),
        eta,
        basis,
        core,
    )
    step = max(1, _BATCH_NUMBERS // problem.likelihood.size)
    parts = [
        _newton(problem.rows(slice(first, first + step)), tolerance, max_iterations)
        for first in range(0, len(targets), step)
    ]
    dual, iterations = (np.concatenate(column) for column in zip(*parts, strict=True))
    weights, dual_value = problem.weights_and_value(dual)
    primal = problem.primal(weights)
    gap = np.maximum(primal - dual_value, 0.0)
    return Solution(weights, primal, gap, iterations, Status.where(gap <= 10 * tolerance))


@dataclass(frozen=True, eq=False)
class _Dual:
    """The dual problem for a batch of histograms; rows are problems, ``root`` is sqrt(v)."""

    likelihood: FloatArray
    targets: FloatArray
    root: FloatArray
    log_widths: FloatArray
    eta: float
    basis: FloatArray
    core: FloatArray

    def rows(self, chosen: slice | IntArray) -> _Dual:
        return replace(self, targets=self.targets[chosen], root=self.root[chosen])

    def weights_and_value(self, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        exponent = self.log_widths - (self.root * dual) @ self.likelihood / self.eta
        peak = exponent.max(axis=1, keepdims=True)
        unnormalised = np.exp(exponent - peak)
        total = unnormalised.sum(axis=1, keepdims=True)
        log_total = (peak + np.log(total))[:, 0]
        linear = (self.root * self.targets * dual).sum(axis=1) + 0.25 * (dual * dual).sum(axis=1)
        return unnormalised / total, -linear - self.eta * log_total

    def gradient(self, dual: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(self.root * (weights @ self.likelihood.T - self.targets) - 0.5 * dual)

    def newton_step(self, weights: FloatArray, gradient: FloatArray) -> FloatArray:
        """Solve minus the Hessian times x = gradient, in the span where the Hessian is steep.

        Minus the Hessian is 1/2 + V Q C Q' V / eta, with V = diag(root), A = Q B and C the
        covariance of B under the weights; Woodbury's identity needs systems of Q's width alone.
        """
        mean = weights @ self.core.T
        spread = (self.core * weights[:, None, :]) @ self.core.T
        spread = (spread - mean[:, :, None] * mean[:, None, :]) / self.eta
        inner = (self.basis.T * (self.root**2)[:, None, :]) @ self.basis
        system = 2.0 * inner @ spread
        diagonal = np.arange(system.shape[1])
        system[:, diagonal, diagonal] += 1.0
        projected = (self.root * gradient) @ self.basis
        solved = spread @ np.linalg.solve(system, projected[..., None])
        return np.asarray(2.0 * gradient - 4.0 * self.root * (solved[..., 0] @ self.basis.T))

    def primal(self, weights: FloatArray) -> FloatArray:
        residual = self.root * (weights @ self.likelihood.T - self.targets)
        distance = (residual * residual).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(weights > 0, weights * (np.log(weights) - self.log_widths), 0.0)
        return np.asarray(distance + self.eta * terms.sum(axis=1))


def _steep_part(likelihood: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return Q (orthonormal columns) and B with A ~ Q B, without what cannot bend the dual.

    Blurred by the sample, neighbouring ranks have nearly the same likelihood, so a few dozen
    directions hold all the curvature that matters beside the constant 1/2. The gradient uses all
    of A: leaving the rest out of the Hessian can only cost steps, never change the answer.
    """
    eigenvalues, vectors = np.linalg.eigh(likelihood @ likelihood.T)
    basis = vectors[:, eigenvalues * scale > _FLAT]
    return basis, basis.T @ likelihood


def _newton(whole: _Dual, tolerance: float, max_iterations: int) -> tuple[FloatArray, IntArray]:
    dual = np.zeros_like(whole.targets)
    iterations = np.zeros(len(dual), dtype=np.int64)
    active = np.arange(len(dual))
    for _ in range(max_iterations):
        problem = whole.rows(active)
        weights, value = problem.weights_and_value(dual[active])
        gradient = problem.gradient(dual[active], weights)
        move = problem.newton_step(weights, gradient)
        promise = (gradient * move).sum(axis=1)
        # The squared length of the gradient IS the gap between primal and dual; once even a whole
        # Newton step promises less than rounding, no more can be had.
        going = ((gradient * gradient).sum(axis=1) > 0.5 * tolerance) & (promise > 1e-20)
        if not going.any():
            break
        active, move, value, promise = active[going], move[going], value[going], promise[going]
        dual[active] += _backtrack(whole.rows(active), dual[active], move, value, promise) * move
        iterations[active] += 1
    return dual, iterations


def _backtrack(
    problem: _Dual, dual: FloatArray, move: FloatArray, value: FloatArray, promise: FloatArray
) -> FloatArray:
    """Return for each row the largest step of 1, 1/2, 1/4, ... that gains its due."""
    step = np.ones((len(dual), 1))
    for _ in range(40):
        _, reached = problem.weights_and_value(dual + step * move)
        short = reached < value + 1e-4 * step[:, 0] * promise - 1e-15
        if not short.any():
            break
        step[short] *= 0.5
    return step


def monotone_least_squares(
    matrix: FloatArray,
    weights: FloatArray,
    target: FloatArray,
    *,
    tolerance: float = 1e-6,
) -> tuple[FloatArray, Certificate]:
    """Solve the second problem; a non-increasing x is a sum of non-negative steps.

    It is solved where the gap is at most ``tolerance`` of F(0), whatever the units of b.
    """
    from scipy.optimize import nnls

    root = np.sqrt(weights)
    cells = matrix.shape[1]
    # An orthogonal reduction leaves the problem unchanged and `cells + 1` rows of it.
    stacked = np.column_stack([matrix, target]) * root[:, None]
    reduced = np.asarray(np.linalg.qr(stacked, mode="r"))
    # In the basis whose column j lifts x_1..x_j together, order is non-negativity.
    columns, mass = np.cumsum(reduced[:, :cells], axis=1), np.cumsum(weights @ matrix)
    right = reduced[:, cells]
    steps, _ = nnls(columns, right, maxiter=30 * cells)
    x = np.cumsum(steps[::-1])[::-1]
    fitted = columns @ steps - right
    gradient = columns.T @ fitted
    rising = np.maximum(-gradient, 0.0)
    rising = np.divide(rising, mass, out=rising, where=rising > 0)
    size = float(right @ right)
    reach = np.sqrt(weights.sum() * size)
    gap = 2.0 * max(float(gradient @ steps + rising.max() * reach), 0.0)
    status = Status.OPTIMAL if gap <= tolerance * size else Status.NOT_CONVERGED
    return x, Certificate(status, float(fitted @ fitted), gap, cells)
