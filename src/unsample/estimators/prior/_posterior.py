"""The posterior of metrics, of one model and of several, from evidence and a learned prior.

For each kind the coefficients of the shapes have a normal prior. The mode of their posterior is
found by Newton's method (`LogDensity`), and its covariance is Laplace's. The logarithm of a metric
is evaluated at fixed points around the mode that have exactly that mean and covariance. So its mean
and variance are exact to second order, and the same numbers come out every time.

The metric is that of the targets at hand. What their sampled ranks tell about them is used, and
what they leave open adds to the variance. Where nothing is left open the metric is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from unsample._checks import FloatArray
from unsample.estimators._observed import Condensed, Observed, mean_weights
from unsample.estimators._solvers._log_density import LogDensity, LogDensityFit
from unsample.estimators.prior._learn import Learned
from unsample.estimators.prior._shapes import SIZE, shapes_on
from unsample.law import RankGrid
from unsample.metrics import Metric

#: Sets of points, each of as many pairs as there are shapes.
_POINT_SETS = 4
_TINY = 1e-300
#: Metrics below this are raised to it before taking the logarithm.
_LEAST = 1e-12
#: Relative variances are at most this, which means that nothing is known.
_MOST_VARIANCE = 1.0
#: More targets tell nothing new about a curve: the error left is that P(R) is not a curve.
_MOST_TARGETS = 1e6


@dataclass(frozen=True, eq=False)
class Moments:
    """What the evidence tells under one kind: rows of a batch x metrics, unless stated otherwise.

    ``mean`` and ``variance`` are those of the logarithm of each metric. ``slope`` (rows x metrics x
    shapes) is its derivative by the standardised coefficients, whose mode and information are kept
    for comparisons of models. ``mass`` (rows x bins) is where targets of unknown rank are expected.
    ``varies`` is the relative variance of each metric between single targets.
    """

    mean: FloatArray
    variance: FloatArray
    slope: FloatArray
    mass: FloatArray
    varies: FloatArray
    log_evidence: FloatArray
    mode: FloatArray
    information: FloatArray
    failures: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """Evidence on the grid of the shapes, and the weights of the metrics there (bins x metrics).

    ``targets`` is how many independent targets a histogram stands for.
    """

    condensed: Condensed
    shapes: FloatArray
    weights: FloatArray
    targets: float

    @classmethod
    def of(cls, observed: Observed, metrics: Sequence[Metric], targets: float) -> Prepared:
        """Prepare a batch of histograms for these metrics."""
        counts = observed.counts
        sharpest = int(counts.sampled[~counts.full].max(initial=0))
        cutoffs = [metric.cutoff(observed.grid.items) for metric in metrics]
        grid = RankGrid.coarse(observed.grid.items, sampled=sharpest, cutoffs=cutoffs)
        columns = [mean_weights(metric, grid, counts) for metric in metrics]
        weights = np.array(columns).reshape(len(metrics), len(grid)).T
        return cls(Condensed.of(observed, grid), shapes_on(grid), weights, targets)

    def moments(self, learned: Learned) -> Moments:
        """Return the posterior of the metrics' logarithms for each histogram of the batch."""
        density, fit = self._fit(learned)
        rows = [
            self._look(density, *row)
            for row in zip(density.shares, fit.coefficients, fit.information, strict=True)
        ]
        mean, variance, slope, mass, varies = (np.stack(part) for part in zip(*rows, strict=True))
        return Moments(
            mean,
            variance,
            slope,
            mass,
            varies,
            fit.log_evidence,
            fit.coefficients,
            fit.information,
            fit.solution.failures,
        )

    def _fit(self, learned: Learned) -> tuple[LogDensity, LogDensityFit]:
        density = LogDensity(
            self.condensed.likelihood,
            self.condensed.shares,
            min(self.targets, _MOST_TARGETS),
            self.shapes @ learned.root,
            self.shapes @ learned.mean + np.log(self.condensed.grid.width),
        )
        return density, density.fit()

    def _look(
        self, density: LogDensity, shares: FloatArray, mode: FloatArray, information: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        likelihood, points = density.likelihood, _points()
        spread = np.linalg.cholesky(np.linalg.inv(information))
        exponent = (mode + points @ spread.T) @ density.shapes.T + density.log_base
        mass = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        mass /= mass.sum(axis=1, keepdims=True)
        mixture = np.maximum(mass @ likelihood.T, _TINY)
        # Where the targets are, given their sampled ranks.
        expected = mass * ((shares / mixture) @ likelihood)
        logs = np.log(np.maximum(expected @ self.weights, _LEAST))
        mean = logs.mean(axis=0)
        slope = (logs - mean).T @ points / len(points)
        chance = self._chance(mass, shares, np.exp(mean))
        # From the points to the standardised coefficients.
        slope = np.linalg.solve(spread.T, slope.T).T
        middle = left = _middle(expected)
        hidden = np.where(np.arange(len(shares)) < self.condensed.known, 0.0, shares)
        if self.condensed.known:
            left = _middle(mass * ((hidden / mixture) @ likelihood))
        first, second = middle @ self.weights, middle @ self.weights**2
        varies = np.maximum(second / np.maximum(first, _LEAST) ** 2 - 1.0, 0.0)
        varies[first <= _LEAST] = 0.0
        return mean, logs.var(axis=0) + chance, slope, hidden.sum() * left, varies

    def _chance(self, masses: FloatArray, shares: FloatArray, value: FloatArray) -> FloatArray:
        """Return the relative variance of the metrics of as many targets, given sampled ranks."""
        if not len(value):
            return value
        joint = self.condensed.likelihood * _middle(masses)
        total = np.maximum(joint.sum(axis=1, keepdims=True), _TINY)
        first, second = joint @ self.weights / total, joint @ self.weights**2 / total
        variance = shares @ np.maximum(second - first**2, 0.0) / max(self.targets, 1.0)
        return np.asarray(np.minimum(variance / np.maximum(value, _LEAST) ** 2, _MOST_VARIANCE))

    def refined(self, mass: FloatArray, wanted: RankGrid) -> FloatArray:
        """Return mass (rows x bins) on another grid, spread evenly inside the bins of this one."""
        coarse = self.condensed.grid
        fine = RankGrid(np.union1d(coarse.low, wanted.low), coarse.items)
        inside = coarse.locate(fine.low)
        spread = mass[:, inside] * (fine.width / coarse.width[inside])
        return np.asarray(np.add.reduceat(spread, fine.locate(wanted.low), axis=1))


def _middle(masses: FloatArray) -> FloatArray:
    """Return the geometric mean of distributions (points x bins), as a distribution."""
    mass = np.exp(np.log(np.maximum(masses, _TINY)).mean(axis=0))
    return np.asarray(mass / mass.sum())


@cache
def _points() -> FloatArray:
    """Return fixed points with mean zero and the identity for covariance: pairs +-x, rotated."""
    rng = np.random.default_rng(20)
    sets = [np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0] for _ in range(_POINT_SETS)]
    half = math.sqrt(SIZE) * np.concatenate(sets)
    return np.concatenate([half, -half])


def together(parts: Sequence[Moments], learned: Learned) -> tuple[FloatArray, FloatArray]:
    """Return the joint posterior of several models on one data set, under one kind.

    These are the mean of each metric's logarithm (models x metrics) and its covariance (metrics x
    models x models). Models on one data set have the prior covariance ``between`` in common. The
    chance of their users is taken as independent between models, which is cautious for differences.
    """
    size, models = SIZE, len(parts)
    inverse = np.linalg.pinv(learned.root)
    shared = inverse @ learned.between @ inverse.T
    prior = np.eye(models * size)
    says = np.zeros_like(prior)
    for row, column in product(range(models), repeat=2):
        block = slice(row * size, (row + 1) * size), slice(column * size, (column + 1) * size)
        if row != column:
            prior[block] = shared
        else:
            says[block] = parts[row].information[0] - np.eye(size)
    modes = np.stack([part.mode[0] for part in parts])
    information = np.stack([part.information[0] for part in parts])
    # (prior^-1 + says)^-1, also where the prior is singular.
    covariance = np.linalg.solve(np.eye(len(prior)) + prior @ says, prior)
    shift = np.concatenate([each @ mode for each, mode in zip(information, modes, strict=True)])
    moved = (covariance @ shift).reshape(models, size) - modes
    slopes = np.stack([part.slope[0] for part in parts])
    mean = np.stack([part.mean[0] for part in parts]) + np.einsum("imj,ij->im", slopes, moved)
    blocks = covariance.reshape(models, size, models, size)
    joint = np.einsum("imj,ijkl,kml->mik", slopes, blocks, slopes)
    linear = np.einsum("imj,ijl,iml->im", slopes, np.linalg.inv(information), slopes)
    rest = np.stack([part.variance[0] for part in parts]) - linear
    joint += np.maximum(rest, 0.0).T[:, :, None] * np.eye(models)
    return mean, joint
