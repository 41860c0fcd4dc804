r"""A distribution whose log-density is a few smooth shapes, under a Gaussian prior.

The problem, for a likelihood matrix A (cells x bins), cell shares p of M targets, shapes X (bins x
J) and a base measure w:

.. math:: \max_c \; M \sum_i p_i \log (A \pi(c))_i - \tfrac12 \sum_j c_j^2,
          \qquad \pi(c) \propto w \, e^{X c}

It is solved by Newton's method. Where the observed information is not positive, Fisher's is used
instead, so that every step climbs. The problem need not be concave: the certificate is the expected
gain of one more step. The log evidence is Laplace's approximation of the log of the integral over c
of likelihood times prior. It compares shapes on the same data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray
from unsample.likelihood._certificates import Certificate, Status

_TINY = 1e-300
#: The fit is done where one more step promises less gain in log posterior than this.
_DONE = 1e-9
#: It has failed where more gain than this is promised, and cannot be had.
_FAILED = 1e-5


@dataclass(frozen=True, eq=False)
class LogDensityFit:
    """The best coefficients and the weights of bins there, with certificate and precision.

    ``information`` is the posterior precision of the coefficients.
    """

    coefficients: FloatArray
    weights: FloatArray
    information: FloatArray
    log_evidence: float
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class LogDensity:
    """The problem above.

    Of 100 targets half lie in each of two cells, which show two bins without error. The base
    measure is 4 : 1, and one shape tilts it. The best tilt evens the bins: e^-1.33 times 4 is near
    1, and the prior keeps it from being equal.

    >>> problem = LogDensity(
    ...     likelihood=np.eye(2),
    ...     shares=np.array([0.5, 0.5]),
    ...     targets=100.0,
    ...     shapes=np.array([[1.0], [0.0]]),
    ...     log_base=np.log([0.8, 0.2]),
    ... )
    >>> fit = problem.fit()
    >>> fit.coefficients.round(2).tolist(), fit.weights.round(2).tolist()
    ([-1.33], [0.51, 0.49])
    """

    #: A, P(cell | bin), and p, the share of each cell.
    likelihood: FloatArray
    shares: FloatArray
    #: M, the number of targets.
    targets: float
    #: X (bins x shapes), and log w.
    shapes: FloatArray
    log_base: FloatArray

    def fit(self, *, start: FloatArray | None = None, max_iterations: int = 100) -> LogDensityFit:
        """Solve it, from coefficients of zero or from a point that may be near."""
        coefficients: FloatArray = np.zeros(self.shapes.shape[1]) if start is None else start
        weights, value = self.value(coefficients)
        iterations = 0
        while True:
            gradient = self.gradient(coefficients, weights)
            fisher, observed = self.information(weights)
            # The observed information gives Newton's quadratic convergence near a maximum;
            # Fisher's always points upwards.
            safe = np.linalg.eigvalsh(observed)[0] > 0.1
            move = np.asarray(np.linalg.solve(observed if safe else fisher, gradient))
            promise = float(gradient @ move)
            if promise <= _DONE or iterations == max_iterations:
                break
            reached = self._climbed(coefficients, move, value=value, promise=promise)
            if reached is None:
                break
            coefficients, weights, value = reached
            iterations += 1
        certificate = Certificate(
            status=Status.OPTIMAL if promise <= _FAILED else Status.NOT_CONVERGED,
            objective=value / self.targets,
            gap=0.5 * promise / self.targets,
            iterations=iterations,
        )
        evidence = value - 0.5 * float(np.linalg.slogdet(fisher)[1])
        return LogDensityFit(
            coefficients=coefficients,
            weights=weights,
            information=fisher,
            log_evidence=evidence,
            certificate=certificate,
        )

    def _climbed(
        self, start: FloatArray, move: FloatArray, *, value: float, promise: float
    ) -> tuple[FloatArray, FloatArray, float] | None:
        """Return coefficients, weights and value after the largest step that gains enough.

        Steps are 1, 1/2, 1/4, ... of the move. Enough is a small part of the promised gain. None
        if no step gains it.
        """
        for step in 0.5 ** np.arange(40):
            coefficients = start + step * move
            weights, reached = self.value(coefficients)
            if reached >= value + 1e-4 * step * promise - 1e-13 * abs(value):
                return coefficients, weights, reached
        return None

    def value(self, coefficients: FloatArray) -> tuple[FloatArray, float]:
        """Return the weights and the log posterior, up to a constant."""
        exponent = self.shapes @ coefficients + self.log_base
        weights = np.exp(exponent - exponent.max())
        weights /= weights.sum()
        fit = self.shares @ np.log(np.maximum(self.likelihood @ weights, _TINY))
        return weights, float(self.targets * fit - 0.5 * coefficients @ coefficients)

    def gradient(self, coefficients: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the slope of the log posterior."""
        # Shares sum to one, and so do posterior and weights.
        change = self._posterior(weights) - weights
        return np.asarray(self.targets * (change @ self.shapes) - coefficients)

    def scores(self, weights: FloatArray) -> FloatArray:
        """Return the slope of the log-likelihood of one target in each cell (cells x shapes)."""
        mixture = np.maximum(self.likelihood @ weights, _TINY)
        shapes_in_cell = (self.likelihood * weights) @ self.shapes / mixture[:, None]
        return np.asarray(shapes_in_cell - weights @ self.shapes)

    def information(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, with the prior precision added, Fisher's information and the observed one.

        Fisher's belongs to the expected histogram, and is positive. The observed one is minus the
        Hessian of the log posterior, which need not be positive far from a maximum.
        """
        mixture = np.maximum(self.likelihood @ weights, _TINY)
        mean = weights @ self.shapes
        # The expected shapes, given each cell.
        expected = (self.likelihood * weights) @ self.shapes / mixture[:, None]
        centred = expected - mean
        fisher = (centred * mixture[:, None]).T @ centred
        observed = (self.shapes * (weights - self._posterior(weights))[:, None]).T @ self.shapes
        observed += (expected * self.shares[:, None]).T @ expected - np.outer(mean, mean)
        prior = np.eye(self.shapes.shape[1])
        return self.targets * fisher + prior, self.targets * observed + prior

    def _posterior(self, weights: FloatArray) -> FloatArray:
        """Return where the targets are, given their cells."""
        mixture = np.maximum(self.likelihood @ weights, _TINY)
        return np.asarray(weights * ((self.shares / mixture) @ self.likelihood))
