r"""A distribution whose log-density is a few smooth shapes, under a Gaussian prior.

The problem, for a likelihood matrix A (cells x bins), cell shares p of M targets, shapes X (bins x
J) and a base measure w:

.. math:: \max_c \; M \sum_i p_i \log (A \pi(c))_i - \tfrac12 \sum_j c_j^2,
          \qquad \pi(c) \propto w \, e^{X c}

It is solved by Newton's method. Where the observed information is not positive, Fisher's takes its
place, so that every step climbs. The problem need not be concave: the certificate is the gain that
one more step would promise. The log evidence is Laplace's approximation of the log of the integral
over c of likelihood times prior. It compares shapes on the same data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.estimators._solvers import Solution, Status

_TINY = 1e-300
#: Most numbers in the products of one block of rows.
_BLOCK_NUMBERS = 4_000_000
#: Promised gains in log posterior: below the first a row is done, above the second it has failed.
_DONE, _FAILED = 1e-9, 1e-5


@dataclass(frozen=True, eq=False)
class LogDensityFit:
    """The best coefficients for each histogram, with weights, certificate and precision.

    ``information`` is the posterior precision of the coefficients.
    """

    coefficients: FloatArray
    solution: Solution
    log_evidence: FloatArray
    information: FloatArray


@dataclass(frozen=True, eq=False)
class LogDensity:
    """The problem above; ``shares`` holds one histogram a row."""

    likelihood: FloatArray
    shares: FloatArray
    targets: float
    shapes: FloatArray
    log_base: FloatArray

    def fit(self, *, max_iterations: int = 100) -> LogDensityFit:
        """Solve it for each row."""
        rows = len(self.shares)
        climb = _Climb(self, np.zeros((rows, self.shapes.shape[1])))
        step = max(1, _BLOCK_NUMBERS // (self.shapes.size + self.likelihood.size))
        for block in np.split(np.arange(rows), range(step, rows, step)):
            climb.steps(block, max_iterations)
        solution = Solution(
            climb.weights,
            climb.value / self.targets,
            0.5 * climb.promise / self.targets,
            climb.iterations,
            Status.where(climb.promise <= _FAILED),
        )
        volume = np.linalg.slogdet(climb.information)[1]
        return LogDensityFit(
            climb.coefficients,
            solution,
            climb.value - 0.5 * volume,
            climb.information,
        )

    def value(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights and the log posterior, up to a constant, for each row."""
        exponent = coefficients @ self.shapes.T + self.log_base
        weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        mixture = np.maximum(weights @ self.likelihood.T, _TINY)
        prior = 0.5 * (coefficients**2).sum(axis=1)
        return weights, self.targets * (self.shares * np.log(mixture)).sum(axis=1) - prior

    def gradient(self, coefficients: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the slope of the log posterior."""
        mixture = np.maximum(weights @ self.likelihood.T, _TINY)
        posterior = weights * ((self.shares / mixture) @ self.likelihood)
        # Shares sum to one, and so do posterior and weights.
        return np.asarray(self.targets * ((posterior - weights) @ self.shapes) - coefficients)

    def information(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, with the prior precision added, Fisher's information and the observed one.

        Fisher's is that of the expected histogram, and positive. The observed one is minus the
        Hessian of the log posterior, which may bend the other way far from a maximum.
        """
        mixture = np.maximum(weights @ self.likelihood.T, _TINY)
        mean = weights @ self.shapes
        # The expected shapes, given each cell.
        expected = self.likelihood @ (weights[:, :, None] * self.shapes) / mixture[:, :, None]
        centred = expected - mean[:, None, :]
        fisher = (centred * mixture[:, :, None]).swapaxes(1, 2) @ centred
        posterior = weights * ((self.shares / mixture) @ self.likelihood)
        observed = self.shapes.T @ ((weights - posterior)[:, :, None] * self.shapes)
        observed += (expected * self.shares[:, :, None]).swapaxes(1, 2) @ expected
        observed -= mean[:, :, None] * mean[:, None, :]
        prior = np.eye(self.shapes.shape[1])
        return self.targets * fisher + prior, self.targets * observed + prior


class _Climb:
    """The current point of each row of a problem, and the steps from there."""

    def __init__(self, problem: LogDensity, start: FloatArray) -> None:
        rows, size = start.shape
        self.problem, self.coefficients = problem, start
        self.weights, self.value = problem.value(start)
        self.information, self.promise = np.zeros((rows, size, size)), np.full(rows, np.inf)
        self.iterations = np.zeros(rows, dtype=np.int64)

    def steps(self, rows: IntArray, most: int) -> None:
        """Move rows until no step promises a gain."""
        for _ in range(most):
            part = replace(self.problem, shares=self.problem.shares[rows])
            move, promise = self._newton_move(part, rows)
            going = promise > _DONE
            rows = rows[going]
            if rows.size == 0:
                return
            rows = rows[~self._go(rows, move[going], promise[going])]

    def _newton_move(self, part: LogDensity, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return moves by the observed information where that is safe.

        It gives Newton's quadratic convergence near a maximum. Fisher's always points upwards.
        """
        gradient = part.gradient(self.coefficients[rows], self.weights[rows])
        fisher, observed = part.information(self.weights[rows])
        safe = np.linalg.eigvalsh(observed)[:, 0] > 0.1
        matrix = np.where(safe[:, None, None], observed, fisher)
        move = np.asarray(np.linalg.solve(matrix, gradient[..., None])[..., 0], dtype=np.float64)
        promise = (gradient * move).sum(axis=1)
        self.information[rows], self.promise[rows] = fisher, promise
        return move, promise

    def _go(self, rows: IntArray, move: FloatArray, promise: FloatArray) -> BoolArray:
        """Move rows by the largest step of 1, 1/2, 1/4, ... that gains; return which cannot."""
        part = replace(self.problem, shares=self.problem.shares[rows])
        step = np.ones((len(rows), 1))
        before = self.value[rows]
        slack = 1e-13 * np.abs(before)
        for _ in range(40):
            reached = self.coefficients[rows] + step * move
            weights, value = part.value(reached)
            short = value < before + 1e-4 * step[:, 0] * promise - slack
            if not short.any():
                break
            step[short] *= 0.5
        kept = rows[~short]
        self.coefficients[kept] = reached[~short]
        self.weights[kept] = weights[~short]
        self.value[kept] = value[~short]
        self.iterations[kept] += 1
        return np.asarray(short)
