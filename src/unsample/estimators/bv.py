"""Estimators linear in the histogram that trade bias for variance: BV and MN.

Both choose a matrix W (cells x bins) and set P(R) = sum_r p(r) W[r, R]. That P(R) is a signed
measure which sums to about one; metrics follow from it like from any other, and are clipped into
their range where the signs let them leave it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray, check_integer, check_real
from unsample.errors import MethodError
from unsample.estimators._base import DistributionEstimator
from unsample.estimators._observed import Observed
from unsample.estimators._solvers import Solution
from unsample.estimators.mes import MES
from unsample.estimators.mle import MLE

__all__ = ["BV", "BVwithMES", "BVwithMLE", "MNwithMES", "MNwithMLE"]


#: Added to diagonals: a sampled rank that no P(R) in use can give has a row of zeros.
_NEVER_SINGULAR = 1e-290


class _Linear(DistributionEstimator):
    """Solve one system for each sample size (and each histogram, where weights depend on it)."""

    monotone: ClassVar[bool] = False

    def solve(self, observed: Observed) -> Solution:
        """Return p'W for each histogram."""
        prior = self.prior(observed)
        masses = np.zeros((len(observed.shares), len(observed.grid)))
        for pool in observed.pools(self.name):
            if len(prior) == 1:
                system = self.system(pool.matrix, prior[0], observed)
                masses += _solve(system, pool.shares.T).T @ pool.matrix * prior
                continue
            for row, weights in enumerate(prior):
                # p' (system^-1) first, then the long side.
                system = self.system(pool.matrix, weights, observed)
                solved = _solve(system, pool.shares[row])
                masses[row] += solved @ pool.matrix * weights
        return Solution.closed_form(masses)

    @abstractmethod
    def prior(self, observed: Observed) -> FloatArray:
        """Return P(R) by bin that weights the bias: one row, or one for each histogram."""

    @abstractmethod
    def system(self, matrix: FloatArray, prior: FloatArray, observed: Observed) -> FloatArray:
        """Return the matrix whose inverse makes W."""


def _solve(system: FloatArray, right: FloatArray) -> FloatArray:
    system[np.diag_indices_from(system)] += _NEVER_SINGULAR
    return np.asarray(np.linalg.solve(system, right))


class _BiasVariance(_Linear):
    gamma: float

    def __post_init__(self) -> None:
        check_real(
            "gamma",
            self.gamma,
            low=0.0,
            high=1.0,
            open_low=True,
            hint="the paper uses 0.1 and 0.01",
            error=MethodError,
        )

    def system(self, matrix: FloatArray, prior: FloatArray, observed: Observed) -> FloatArray:
        """Return (1 - gamma) A'DA + gamma diag(1'DA)."""
        system = (1.0 - self.gamma) * (matrix * prior) @ matrix.T
        system[np.diag_indices_from(system)] += self.gamma * (matrix @ prior)
        return np.asarray(system)


class _MeanSquare(_Linear):
    def system(self, matrix: FloatArray, prior: FloatArray, observed: Observed) -> FloatArray:
        """Return A'DA - A'A/M + diag(1'A)/M."""
        system = (matrix * (prior - observed.widths / observed.targets)) @ matrix.T
        system[np.diag_indices_from(system)] += (matrix @ observed.widths) / observed.targets
        return np.asarray(system)


def _prior_by_mle(observed: Observed, iterations: int) -> FloatArray:
    return MLE(iterations=iterations).solve(observed).weights


def _prior_by_mes(observed: Observed, eta: float) -> FloatArray:
    return MES(eta=eta).solve(observed).weights


@dataclass(frozen=True)
class BV(_BiasVariance):
    r"""Bias-variance trade-off over uniform P(R).

    .. math:: \hat P = \tilde p^\top \big((1-\gamma) A^\top D A + \gamma\,
              \mathrm{diag}(1^\top D A)\big)^{-1} A^\top D, \qquad D = I/N

    with A[R, r] = P(r|R). The metrics of this P(R) are the BV estimates of the metrics.

    References: Krichene, Rendle, KDD 2020 (the metric estimator, gamma 0.1); Jin et al., AAAI
    2021, equation for P(R) by BV, gamma 0.1 and 0.01.
    """

    name: ClassVar[str] = "bv"
    gamma: float = 0.1

    def prior(self, observed: Observed) -> FloatArray:
        """Return the uniform distribution on all ranks."""
        return (observed.widths / observed.grid.items)[None, :]


@dataclass(frozen=True)
class BVwithMLE(_BiasVariance):
    """BV with D = diag(P(R)) from MLE on the same data.

    Reference: Li et al., "Towards Reliable Item Sampling for Recommendation Evaluation", AAAI
    2023, gamma 0.01. Their public code takes P(R) from the mean over 100 repeats, which a single
    evaluation never has; this is the one-shot version.
    """

    name: ClassVar[str] = "bv_mle"
    gamma: float = 0.01
    iterations: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("iterations", self.iterations, minimum=1, error=MethodError)

    def prior(self, observed: Observed) -> FloatArray:
        """Return P(R) by MLE, one for each histogram."""
        return _prior_by_mle(observed, self.iterations)


@dataclass(frozen=True)
class BVwithMES(_BiasVariance):
    """BV with D = diag(P(R)) from MES on the same data.

    Reference: Li et al., AAAI 2023, gamma 0.01; one-shot, see `BVwithMLE`.
    """

    name: ClassVar[str] = "bv_mes"
    gamma: float = 0.01
    eta: float = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("eta", self.eta, low=0.0, open_low=True, error=MethodError)

    def prior(self, observed: Observed) -> FloatArray:
        """Return P(R) by MES, one for each histogram."""
        return _prior_by_mes(observed, self.eta)


@dataclass(frozen=True)
class MNwithMLE(_MeanSquare):
    r"""Minimal expected squared error of P(R) over multinomial samples, given P(R) from MLE.

    .. math:: W = \big(A^\top D A - \tfrac1M A^\top A + \tfrac1M \mathrm{diag}(1^\top A)\big)^{-1}
              A^\top D

    BV with a weight 1/(M P(R)) on the variance that differs by rank: no constant to choose.
    Reference: Li et al., AAAI 2023; one-shot, see `BVwithMLE`.
    """

    name: ClassVar[str] = "mn_mle"
    iterations: int = 100

    def __post_init__(self) -> None:
        check_integer("iterations", self.iterations, minimum=1, error=MethodError)

    def prior(self, observed: Observed) -> FloatArray:
        """Return P(R) by MLE, one for each histogram."""
        return _prior_by_mle(observed, self.iterations)


@dataclass(frozen=True)
class MNwithMES(_MeanSquare):
    """MN, as in `MNwithMLE`, with P(R) from MES on the same data.

    Reference: Li et al., AAAI 2023; one-shot, see `BVwithMLE`.
    """

    name: ClassVar[str] = "mn_mes"
    eta: float = 0.001

    def __post_init__(self) -> None:
        check_real("eta", self.eta, low=0.0, open_low=True, error=MethodError)

    def prior(self, observed: Observed) -> FloatArray:
        """Return P(R) by MES, one for each histogram."""
        return _prior_by_mes(observed, self.eta)
