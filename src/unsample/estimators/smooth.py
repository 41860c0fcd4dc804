"""P(R) as a smooth curve: what the sample cannot see continues what it can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unsample.estimators._base import DistributionEstimator
from unsample.estimators._curves import Head, average_curves
from unsample.estimators._observed import Observed
from unsample.estimators._solvers import Solution

__all__ = ["Smooth"]


@dataclass(frozen=True)
class Smooth(DistributionEstimator):
    r"""A smooth log-density along the probit of the rank, as stiff as the data say.

    Let :math:`z = -\Phi^{-1}((R - 1/2)/N)` be how far up the catalogue a rank is, in standard
    deviations of a normal law. Then

    .. math:: \log P(R) = a z + \tfrac b2 z^2
              + \sum_j u_j \sigma_j \tfrac12 (z_j - z)_+^2 + \mathrm{const},
              \qquad u_j \sim N(0, 1)

    With all u = 0 this is the binormal model of signal detection: the scores of targets and of
    other items follow two normal laws. The bends u let P(R) depart from it, freely at the bottom
    of the catalogue (where recommenders leave heaps of unscored items), less and less towards the
    top, where the sample sees little: :math:`\sigma_j = s\, e^{-z_j}`. Above the ranks that
    the sample resolves, the curve goes on with the slope and the curvature that it has there.

    Coefficients maximise the posterior, by Newton's method. The scale s is not chosen: the
    distributions for seven values from 0.03 to 30 are averaged, weighted by their evidence (the
    probability of the data, by Laplace's approximation). Each mass is hedged: of a quantity
    known up to a factor e^s, e^(-1.5 s^2) times the median has the least squared relative error.

    References: Dorfman and Alf, "Maximum-likelihood estimation of parameters of signal-detection
    theory", 1969, for the binormal model; Efron, "Empirical Bayes deconvolution estimates",
    Biometrika 2016, for penalised log-densities of mixtures. The rest is our own.
    """

    name: ClassVar[str] = "smooth"
    joint: ClassVar[bool] = True

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin, averaged over the scale."""
        return average_curves(observed, [Head(level=0.0)], doubt=0.0)
