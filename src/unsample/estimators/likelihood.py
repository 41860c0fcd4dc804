"""Maximum likelihood: of any P(R), plain and weighted, and of a Beta law.

EM starts from the uniform distribution. Ranks that the sample cannot tell apart keep its
proportions, however many steps are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray, check_choice, check_integer, check_real
from unsample.errors import MethodError
from unsample.estimators._base import DistributionEstimator
from unsample.estimators._observed import Observed
from unsample.estimators._solvers import Solution
from unsample.estimators._solvers._log_density import LogDensity
from unsample.estimators._solvers._mixture import em, maximum_likelihood
from unsample.law import mean_over

_CONVERGED = "converged"
#: A law is fitted under a standard normal prior of its parameters, as if there were so many
#: targets. So the prior changes no digit, but keeps parameters finite where all ranks are equal.
_TARGETS = 1e9


@dataclass(frozen=True)
class MLE(DistributionEstimator):
    r"""Maximum likelihood by EM from the uniform distribution.

    .. math:: \pi_R \leftarrow \sum_r \tilde P(r)\,
              \frac{\pi_R P(r|R)}{\sum_j \pi_j P(r|j)}

    The tables of the paper come from 100 iterations, which is the default. The number of iterations
    regularises: more of them give less bias towards a flat P(R), and more variance.
    ``iterations="converged"`` gives the true maximiser, which has at most n support points.

    Reference: Jin et al., AAAI 2021.
    """

    name: ClassVar[str] = "mle"
    joint: ClassVar[bool] = True
    iterations: int | str = 100

    def __post_init__(self) -> None:
        _check_iterations(self.iterations)

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin by EM, or at the maximum."""
        return _climb(observed, observed.shares, self.iterations)


@dataclass(frozen=True)
class WMLE(DistributionEstimator):
    r"""Weighted maximum likelihood: small sampled ranks count more.

    EM as in `MLE`, with :math:`\tilde P(r)` replaced by :math:`\tilde P(r) w(r)`, normalised.

    ``weight`` names w(r):

    ``"tables"``
        1/log2(r + 101), which reproduces the ratios to MLE in the paper's tables (default);
    ``"ndcg"``
        1/log2(r/C + 1), as printed in the paper with C = 10. It inflates Recall@10 several-fold
        and cannot be what made the tables;
    ``"ap"``
        C/r, as printed.

    Reference: Jin et al., AAAI 2021.
    """

    name: ClassVar[str] = "wmle"
    joint: ClassVar[bool] = True
    weight: str = "tables"
    c: float = 10.0
    iterations: int | str = 100

    def __post_init__(self) -> None:
        check_choice("weight", self.weight, ("tables", "ndcg", "ap"), error=MethodError)
        check_real("c", self.c, low=0.0, open_low=True, error=MethodError)
        _check_iterations(self.iterations)

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin for reweighted histograms."""
        middle = (observed.counts.low + observed.counts.high) / 2.0
        # Known ranks get no emphasis, and must count as much as before.
        emphasis = np.where(observed.known, 1.0, self._weights(middle))
        shares = observed.shares * emphasis
        unknown = ~observed.known
        before = observed.shares[:, unknown].sum(axis=1, keepdims=True)
        after = shares[:, unknown].sum(axis=1, keepdims=True)
        shares[:, unknown] *= before / np.maximum(after, 1e-300)
        return _climb(observed, shares, self.iterations)

    def _weights(self, ranks: FloatArray) -> FloatArray:
        if self.weight == "tables":
            return 1.0 / np.log2(ranks + 101.0)
        if self.weight == "ndcg":
            return 1.0 / np.log2(ranks / self.c + 1.0)
        return self.c / ranks


@dataclass(frozen=True)
class Beta(DistributionEstimator):
    r"""Ranks whose relative position follows a Beta law, fitted by maximum likelihood.

    .. math:: P(R) \propto \Big(\frac{R - 1/2}{N}\Big)^{a-1} \Big(\frac{N - R + 1/2}{N}\Big)^{b-1}

    Two parameters: little variance, and a bias wherever ranks are not of this shape. As a law on
    whole ranks it needs no a > 0, so P(R) may fall faster than 1/R.

    Reference: Li et al., "On Sampling Top-K Recommendation Evaluation", KDD 2020, who model the
    rank distribution by a Beta law.
    """

    name: ClassVar[str] = "beta"

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin at the maximum of the likelihood, by Newton's method."""
        items, low, high = observed.grid.items, observed.grid.low, observed.grid.high
        statistics = [
            mean_over(lambda ranks: np.log((ranks - 0.5) / items), low, high),
            mean_over(lambda ranks: np.log((items - ranks + 0.5) / items), low, high),
        ]
        shapes, base = np.stack(statistics, axis=1), np.log(observed.widths)
        problem = LogDensity(observed.likelihood, observed.shares, _TARGETS, shapes, base)
        return problem.fit().solution


def _climb(observed: Observed, shares: FloatArray, iterations: int | str) -> Solution:
    if iterations == _CONVERGED:
        return maximum_likelihood(observed.likelihood, shares)
    start = observed.uniform
    return em(observed.likelihood, shares, start=start, iterations=int(iterations))


def _check_iterations(iterations: int | str) -> None:
    if iterations != _CONVERGED:
        check_integer(
            "iterations",
            iterations,
            minimum=1,
            hint="or 'converged' for the maximum itself",
            error=MethodError,
        )
