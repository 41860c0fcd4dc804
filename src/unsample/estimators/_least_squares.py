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

It is solved by non-negative least squares. Let s be the steps of x, g half the slope of F in s,
and m the slope of sum_R d_R (A x)_R in s. Convexity gives F(s) - F(s*) <= 2 g's - 2 g's*. The best
fit is no longer than its target, so m's* <= sqrt(sum d) |b|, with lengths weighted by d. So -g's*
is at most sqrt(sum d) |b| times the largest -g_j / m_j. This is the gap reported, whatever
algorithm found s.
"""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray
from unsample.likelihood import Certificate, Status

#: Curvature that a Newton step may neglect, compared with 1/2.
_FLAT = 1e-6


class MaximumEntropy:
    """The first problem for a matrix of likelihoods, widths and eta, and any histogram.

    Blurred by the sample, neighbouring ranks have nearly the same likelihood. So a few dozen
    directions Q hold all the curvature that matters beside the constant 1/2, up to cell weights of
    ``steepest``. The gradient uses all of A: leaving the rest out of the Hessian can only cost
    steps, never change the answer.

    Two cells show two bins without error, and the targets are 0.8 and 0.2. Entropy draws the
    weights towards the widths, which are equal: the less, the smaller eta is.

    >>> for eta in (0.1, 0.001):
    ...     problem = MaximumEntropy(np.eye(2), np.full(2, 0.5), eta=eta, steepest=1.0)
    ...     weights, _ = problem.fit(np.array([0.8, 0.2]), np.ones(2))
    ...     print(weights.round(3).tolist())
    [0.77, 0.23]
    [0.8, 0.2]
    """

    def __init__(
        self, likelihood: FloatArray, widths: FloatArray, eta: float, steepest: float
    ) -> None:
        self.likelihood = likelihood
        self.log_widths = np.log(widths)
        self.eta = eta
        eigenvalues, vectors = np.linalg.eigh(likelihood @ likelihood.T)
        self.basis = vectors[:, eigenvalues * steepest / eta > _FLAT]
        self.core = self.basis.T @ likelihood

    def fit(
        self,
        targets: FloatArray,
        cell_weights: FloatArray,
        *,
        tolerance: float = 1e-12,
        max_iterations: int = 200,
    ) -> tuple[FloatArray, Certificate]:
        """Return the weights of the bins, to a gap of ``tolerance``."""
        root = np.sqrt(cell_weights)
        dual = np.zeros(len(root))
        iterations = 0
        weights, value = self._at(dual, root, targets=targets)
        while True:
            gradient = root * (self.likelihood @ weights - targets) - 0.5 * dual
            move = self._newton_step(weights, gradient, root=root)
            promise = float(gradient @ move)
            # The squared length of the gradient is the gap between primal and dual. Where a whole
            # Newton step promises less than rounding errors, no more can be gained.
            arrived = gradient @ gradient <= 0.5 * tolerance or promise <= 1e-20
            if arrived or iterations == max_iterations:
                break
            for step in 0.5 ** np.arange(40):
                weights, reached = self._at(dual + step * move, root, targets=targets)
                if reached >= value + 1e-4 * step * promise - 1e-15:
                    break
            dual = dual + step * move
            value = reached
            iterations += 1
        residual = root * (self.likelihood @ weights - targets)
        entropy = weights @ (np.log(np.maximum(weights, 1e-300)) - self.log_widths)
        primal = float(residual @ residual + self.eta * entropy)
        gap = max(primal - value, 0.0)
        status = Status.OPTIMAL if gap <= 10 * tolerance else Status.NOT_CONVERGED
        return weights, Certificate(status=status, objective=primal, gap=gap, iterations=iterations)

    def _at(
        self, dual: FloatArray, root: FloatArray, *, targets: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return the weights that follow from a dual point, and the dual objective."""
        exponent = self.log_widths - (root * dual) @ self.likelihood / self.eta
        peak = exponent.max()
        unnormalised = np.exp(exponent - peak)
        total = unnormalised.sum()
        linear = (root * targets) @ dual + 0.25 * (dual @ dual)
        return unnormalised / total, float(-linear - self.eta * (peak + np.log(total)))

    def _newton_step(
        self, weights: FloatArray, gradient: FloatArray, *, root: FloatArray
    ) -> FloatArray:
        """Solve minus the Hessian times x = gradient, in the span where the Hessian is steep.

        Minus the Hessian is 1/2 + V Q C Q' V / eta, with V = diag(root), A = Q B and C the
        covariance of B under the weights; Woodbury's identity needs systems of Q's width alone.
        """
        mean = self.core @ weights
        covariance = ((self.core * weights) @ self.core.T - np.outer(mean, mean)) / self.eta
        inner = (self.basis.T * root**2) @ self.basis
        system = np.eye(len(mean)) + 2.0 * inner @ covariance
        solved = covariance @ np.linalg.solve(system, (root * gradient) @ self.basis)
        return np.asarray(2.0 * gradient - 4.0 * root * (self.basis @ solved))


def monotone_least_squares(
    matrix: FloatArray,
    weights: FloatArray,
    target: FloatArray,
    *,
    tolerance: float = 1e-6,
) -> tuple[FloatArray, Certificate]:
    """Solve the second problem; a non-increasing x is a sum of non-negative steps.

    It is solved where the gap is at most ``tolerance`` of F(0), whatever the units of b.

    The targets 1, 0, 2 are not in order: the best non-increasing x is their mean.

    >>> x, _ = monotone_least_squares(np.eye(3), np.ones(3), np.array([1.0, 0.0, 2.0]))
    >>> x.round(6).tolist()
    [1.0, 1.0, 1.0]
    """
    from scipy.optimize import nnls

    root = np.sqrt(weights)
    cells = matrix.shape[1]
    # An orthogonal reduction leaves the problem unchanged and `cells + 1` rows of it.
    stacked = np.column_stack([matrix, target]) * root[:, None]
    reduced = np.asarray(np.linalg.qr(stacked, mode="r"))
    # In the basis whose column j lifts x_1..x_j together, order is non-negativity.
    columns = np.cumsum(reduced[:, :cells], axis=1)
    mass = np.cumsum(weights @ matrix)
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
    return x, Certificate(
        status=status, objective=float(fitted @ fitted), gap=gap, iterations=cells
    )
