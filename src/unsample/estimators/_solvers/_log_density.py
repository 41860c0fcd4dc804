r"""A distribution whose log-density is a few smooth shapes, under a Gaussian prior.

The problem, for a likelihood matrix A (cells x bins), cell shares p of M targets, shapes X (bins x
J), a base measure w, and a prior with mean mu and precisions tau:

.. math:: \max_c \; M \sum_i p_i \log (A \pi(c))_i - \tfrac12 \sum_j \tau_j (c_j - \mu_j)^2,
          \qquad \pi(c) \propto w \, e^{X c}

Newton's method, with Fisher's information in place of the observed one where that is not positive,
so that every step climbs. The problem need not be concave: the certificate is the gradient that is
left, and the gain that one more step would promise. The log evidence is Laplace's, the log of the
integral over c of likelihood times prior, and compares priors on the same data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.estimators._solvers._solution import Solution, Status

__all__ = ["LogDensity", "LogDensityFit"]

_TINY = 1e-300
#: Most numbers in the products of one block of rows.
_BLOCK_NUMBERS = 4_000_000
#: Steps with one common information matrix before each row gets its own.
_SHARED_STEPS = 12
#: Promised gains in log posterior: below the first a row needs no more shared steps, below the
#: second it is done, above the third it has failed.
_NEAR, _DONE, _FAILED = 1e-4, 1e-9, 1e-5


@dataclass(frozen=True, eq=False)
class LogDensityFit:
    """The best coefficients for each histogram, its weights and certificate, and how sure they are.

    ``log_variance`` is the posterior variance of the logarithm of each weight, ``information`` the
    posterior precision of the coefficients.
    """

    coefficients: FloatArray
    solution: Solution
    log_evidence: FloatArray
    log_variance: FloatArray
    information: FloatArray


@dataclass(frozen=True, eq=False)
class LogDensity:
    """The problem above; ``shares`` holds one histogram a row."""

    likelihood: FloatArray
    shares: FloatArray
    targets: float
    shapes: FloatArray
    log_base: FloatArray
    mean: FloatArray
    precision: FloatArray

    def fit(self, near: LogDensityFit | None = None, *, max_iterations: int = 100) -> LogDensityFit:
        """Solve it for each row; ``near`` is the fit of one histogram that all rows resemble."""
        rows = len(self.shares)
        start = self.mean[None] if near is None else near.coefficients
        start = np.repeat(start, rows, axis=0)
        step = max(1, _BLOCK_NUMBERS // (self.shapes.size + self.likelihood.size))
        parts = []
        for first in range(0, rows, step):
            block = slice(first, first + step)
            climb = _Climb.begin(replace(self, shares=self.shares[block]), start[block])
            if near is not None:
                climb.shared_steps(near.information[0])
            climb.newton(max_iterations)
            parts.append(climb.result())
        return _joined(parts)

    def value(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights and the log posterior, up to a constant, for each row."""
        exponent = coefficients @ self.shapes.T + self.log_base
        weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        mixture = np.maximum(weights @ self.likelihood.T, _TINY)
        prior = 0.5 * (self.precision * (coefficients - self.mean) ** 2).sum(axis=1)
        return weights, self.targets * (self.shares * np.log(mixture)).sum(axis=1) - prior

    def gradient(self, coefficients: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the slope of the log posterior."""
        mixture = np.maximum(weights @ self.likelihood.T, _TINY)
        posterior = weights * ((self.shares / mixture) @ self.likelihood)
        # Shares sum to one, so posterior and weights do: what they expect of the shapes differs.
        climb = self.targets * ((posterior - weights) @ self.shapes)
        return np.asarray(climb - self.precision * (coefficients - self.mean))

    def information(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, with the prior precision added, Fisher's information and the observed one.

        Fisher's is that of the expected histogram, and positive. The observed one is minus the
        Hessian of the log posterior, which may bend the other way far from a maximum.
        """
        mixture = np.maximum(weights @ self.likelihood.T, _TINY)
        mean = weights @ self.shapes
        # What each cell expects of the shapes.
        expected = self.likelihood @ (weights[:, :, None] * self.shapes) / mixture[:, :, None]
        centred = expected - mean[:, None, :]
        fisher = (centred * mixture[:, :, None]).swapaxes(1, 2) @ centred
        posterior = weights * ((self.shares / mixture) @ self.likelihood)
        observed = self.shapes.T @ ((weights - posterior)[:, :, None] * self.shapes)
        observed += (expected * self.shares[:, :, None]).swapaxes(1, 2) @ expected
        observed -= mean[:, :, None] * mean[:, None, :]
        return self._with_prior(fisher), self._with_prior(observed)

    def _with_prior(self, information: FloatArray) -> FloatArray:
        result = self.targets * information
        diagonal = np.arange(len(self.precision))
        result[:, diagonal, diagonal] += self.precision
        return np.asarray(result)


@dataclass(eq=False)
class _Climb:
    """Where the rows of a problem stand, and how they go up from there."""

    problem: LogDensity
    coefficients: FloatArray
    weights: FloatArray
    value: FloatArray
    information: FloatArray
    promise: FloatArray
    iterations: IntArray

    @classmethod
    def begin(cls, problem: LogDensity, start: FloatArray) -> _Climb:
        weights, value = problem.value(start)
        rows, size = start.shape
        return cls(
            problem,
            start.copy(),
            weights,
            value,
            np.zeros((rows, size, size)),
            np.full(rows, np.inf),
            np.zeros(rows, dtype=np.int64),
        )

    def shared_steps(self, information: FloatArray) -> None:
        """Take cheap steps that use one information matrix for all rows, which are much alike."""
        inverse = np.linalg.inv(information)
        active = np.arange(len(self.coefficients))
        for _ in range(_SHARED_STEPS):
            part = replace(self.problem, shares=self.problem.shares[active])
            gradient = part.gradient(self.coefficients[active], self.weights[active])
            move = gradient @ inverse
            promise = (gradient * move).sum(axis=1)
            going = promise > _NEAR
            active, move, promise = active[going], move[going], promise[going]
            if active.size == 0:
                return
            stuck = self._go(active, move, promise)
            active = active[~stuck]

    def newton(self, max_iterations: int) -> None:
        """Take Newton steps until none of them promises anything."""
        active = np.arange(len(self.coefficients))
        for _ in range(max_iterations):
            part = replace(self.problem, shares=self.problem.shares[active])
            gradient = part.gradient(self.coefficients[active], self.weights[active])
            fisher, observed = part.information(self.weights[active])
            self.information[active] = fisher
            move, promise = _newton_move(fisher, observed, gradient)
            self.promise[active] = promise
            going = promise > _DONE
            active, move, promise = active[going], move[going], promise[going]
            if active.size == 0:
                return
            stuck = self._go(active, move, promise)
            active = active[~stuck]

    def _go(self, rows: IntArray, move: FloatArray, promise: FloatArray) -> BoolArray:
        """Move rows by the largest of 1, 1/2, 1/4, ... that gains; return which could not."""
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

    def result(self) -> LogDensityFit:
        problem = self.problem
        gradient = problem.gradient(self.coefficients, self.weights)
        volume = np.linalg.slogdet(self.information)[1] - np.log(problem.precision).sum()
        solution = Solution(
            self.weights,
            self.value / problem.targets,
            0.5 * self.promise / problem.targets,
            np.abs(gradient).max(axis=1) / problem.targets,
            self.iterations,
            tuple(
                Status.OPTIMAL if promise <= _FAILED else Status.NOT_CONVERGED
                for promise in self.promise
            ),
        )
        return LogDensityFit(
            self.coefficients,
            solution,
            self.value - 0.5 * volume,
            self._log_variance(),
            self.information,
        )

    def _log_variance(self) -> FloatArray:
        """Return x' C x for each row and bin, x the shapes about their mean, C the inverse."""
        shapes = self.problem.shapes
        mean = self.weights @ shapes
        covariance = np.linalg.inv(self.information)
        across = (covariance @ mean[:, :, None])[..., 0]
        own = ((shapes @ covariance) * shapes).sum(axis=2)
        shift = (mean * across).sum(axis=1, keepdims=True)
        return np.asarray(np.maximum(own - 2.0 * across @ shapes.T + shift, 0.0))


def _newton_move(
    fisher: FloatArray, observed: FloatArray, gradient: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return steps and what they promise: by the observed information where that is safe.

    It gives Newton's quadratic convergence near a maximum. Fisher's always points upwards.
    """
    safe = np.linalg.eigvalsh(observed)[:, 0] > 0.1
    matrix = np.where(safe[:, None, None], observed, fisher)
    move = np.asarray(np.linalg.solve(matrix, gradient[..., None])[..., 0], dtype=np.float64)
    return move, np.asarray((gradient * move).sum(axis=1))


def _joined(parts: list[LogDensityFit]) -> LogDensityFit:
    solutions = [part.solution for part in parts]
    return LogDensityFit(
        np.concatenate([part.coefficients for part in parts]),
        Solution(
            np.concatenate([s.weights for s in solutions]),
            np.concatenate([s.objective for s in solutions]),
            np.concatenate([s.gap for s in solutions]),
            np.concatenate([s.residual for s in solutions]),
            np.concatenate([s.iterations for s in solutions]),
            tuple(status for s in solutions for status in s.status),
        ),
        np.concatenate([part.log_evidence for part in parts]),
        np.concatenate([part.log_variance for part in parts]),
        np.concatenate([part.information for part in parts]),
    )
