"""P(R) as a smooth curve: what the sample cannot see continues what it can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray
from unsample.estimators._base import DistributionEstimator
from unsample.estimators._condensed import Condensed, probit
from unsample.estimators._observed import Observed
from unsample.simplex import LogDensity, LogDensityFit, Solution

__all__ = ["Smooth"]

#: Places where the curve may bend, evenly spaced along the probit of the rank.
_BENDS = 40
#: Combinations of bends that are told apart; the others are too faint to matter.
_SHAPES = 24
#: Standard deviations of a bend, from hardly any to as much as the data want.
_LOOSENESS = 10.0 ** np.arange(-1.5, 1.6, 0.5)
#: How fast a bend's standard deviation falls towards the top, for each unit of the probit ...
_STIFFENING = 0.75
#: ... from here on.
_LOOSEST = -2.0
#: Standard deviations of the slope and the curvature at the top: wide, the data know them.
_SLOPE, _CURVATURE = 2.0, 2.0


@dataclass(frozen=True)
class Smooth(DistributionEstimator):
    r"""A smooth log-density along the probit of the rank, as stiff as the data say.

    Let :math:`z = -\Phi^{-1}((R - 1/2)/N)` be how far up the catalogue a rank is, in standard
    deviations of a normal law. Then

    .. math:: \log P(R) = a z + \tfrac b2 z^2
              + \sum_j u_j \sigma_j \tfrac12 (z_j - z)_+^2 + \mathrm{const},
              \qquad u_j \sim N(0, 1)

    With all u = 0 this is the binormal model of signal detection: the scores of targets and of
    other items are two normal laws, which makes recall as a function of K a "binormal" curve. The
    bends u let P(R) depart from it, freely at the bottom of the catalogue (where recommenders
    leave heaps of unscored items), less and less towards the top, where the sample sees little:
    :math:`\sigma_j = s\, e^{-0.75 z_j}`. Above the ranks that the sample resolves, the curve goes on
    with the slope and the curvature that it has there.

    The coefficients maximise the posterior, by Newton's method. The scale s is not chosen: the
    distributions for seven values from 0.03 to 30 are averaged, weighted by their evidence
    (Laplace's approximation to the probability of the data).

    References: the binormal model is that of Dorfman and Alf, "Maximum-likelihood estimation of
    parameters of signal-detection theory", 1969; a penalised log-density for mixtures is Efron's,
    "Empirical Bayes deconvolution estimates", Biometrika 2016. The rest is our own.
    """

    name: ClassVar[str] = "smooth"
    joint: ClassVar[bool] = True

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin, averaged over the looseness by evidence."""
        condensed = Condensed.of(observed)
        shapes = _Shapes.along(probit(condensed.grid))
        fits = _ladder(shapes, condensed, observed.targets)
        share = _by_evidence(np.stack([fit.log_evidence for fit in fits], axis=1))
        z, place = probit(observed.grid), condensed.grid.locate(observed.grid.low)
        rest = np.zeros((len(observed.shares), len(observed.grid)))
        for fit, part, looseness in zip(fits, share.T, _LOOSENESS, strict=True):
            exponent = fit.coefficients @ shapes.at(z, looseness).T
            mass = np.exp(exponent - exponent.max(axis=1, keepdims=True)) * observed.widths
            mass /= mass.sum(axis=1, keepdims=True)
            mass *= condensed.expected_unknown(fit.solution.weights)[:, place]
            left = (1.0 - observed.known_share)[:, None]
            rest += part[:, None] * left * mass / mass.sum(axis=1, keepdims=True)
        return _averaged(fits, share, observed.known_mass() + rest)


@dataclass(frozen=True, eq=False)
class _Shapes:
    """The curves that add up to a log-density: slope, curvature, and combinations of bends."""

    bends: FloatArray
    scale: FloatArray
    combinations: FloatArray

    @classmethod
    def along(cls, z: FloatArray) -> _Shapes:
        bends = np.linspace(z.min(), z.max(), _BENDS + 2)[1:-1]
        spacing = np.sqrt(bends[1] - bends[0])
        scale = spacing * np.exp(-_STIFFENING * np.maximum(bends, _LOOSEST))
        curves = _parabolas(bends, z) * scale
        centred = curves - curves.mean(axis=0)
        _, _, rotation = np.linalg.svd(centred, full_matrices=False)
        return cls(bends, scale, rotation[:_SHAPES].T)

    def at(self, z: FloatArray, looseness: float) -> FloatArray:
        """Return the shapes (places x coefficients), with unit variance a priori."""
        curves = (_parabolas(self.bends, z) * self.scale) @ self.combinations
        return np.column_stack([_SLOPE * z, _CURVATURE * z * z / 2.0, looseness * curves])


def _parabolas(bends: FloatArray, z: FloatArray) -> FloatArray:
    return 0.5 * np.maximum(bends[None, :] - z[:, None], 0.0) ** 2


def _ladder(shapes: _Shapes, condensed: Condensed, targets: float) -> list[LogDensityFit]:
    """Fit from stiff to loose, each start being the last answer."""
    fits: list[LogDensityFit] = []
    z = probit(condensed.grid)
    log_widths = np.log(condensed.grid.width)
    for looseness in _LOOSENESS:
        curves = shapes.at(z, looseness)
        size = curves.shape[1]
        problem = LogDensity(
            condensed.likelihood,
            condensed.shares,
            targets,
            curves,
            log_widths,
            np.zeros(size),
            np.ones(size),
        )
        fits.append(problem.fit())
    return fits


def _by_evidence(log_evidence: FloatArray) -> FloatArray:
    share = np.exp(log_evidence - log_evidence.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _averaged(fits: list[LogDensityFit], share: FloatArray, weights: FloatArray) -> Solution:
    """Return averaged weights with the certificate of the worst fit that counts for each row."""
    counts = share > 1e-6
    gap = np.stack([fit.solution.gap for fit in fits], axis=1)
    worst = np.where(counts, gap, -1.0).argmax(axis=1)
    rows = np.arange(len(weights))

    def of_worst(name: str) -> FloatArray:
        return np.stack([getattr(fit.solution, name) for fit in fits], axis=1)[rows, worst]

    return Solution(
        weights,
        of_worst("objective"),
        of_worst("gap"),
        of_worst("residual"),
        of_worst("iterations"),
        tuple(fits[rung].solution.status[row] for row, rung in enumerate(worst)),
    )
