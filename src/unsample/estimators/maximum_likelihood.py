"""Maximum likelihood: of any P(R), plain and weighted, and of a Beta distribution.

EM starts from the uniform distribution. The sample cannot distinguish some ranks; these keep the
proportions of the start after any number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray, check_choice, check_integer
from unsample.errors import MethodError
from unsample.estimators._estimator import DistributionEstimator
from unsample.likelihood import Certificate, LogDensity, Observed, Solution, Status
from unsample.sampling import mean_over

_TINY = 1e-300
#: A distribution is fitted under a standard normal prior of its parameters, as if there were this
#: number of targets. So the prior changes no digit, but keeps parameters finite where all ranks
#: are equal.
_TARGETS = 1e9


@dataclass(frozen=True)
class MLE(DistributionEstimator):
    r"""Maximum likelihood by EM from the uniform distribution.

    .. math:: \pi_R \leftarrow \sum_r \tilde P(r)\,
              \frac{\pi_R P(r|R)}{\sum_j \pi_j P(r|j)}

    The tables of the paper come from 100 iterations, which is the default. The number of iterations
    regularises: more of them give less bias towards a flat P(R), and more variance. The certificate
    says how far from the maximum the likelihood still is.

    Reference: Jin et al., AAAI 2021.
    """

    name: ClassVar[str] = "mle"
    joint: ClassVar[bool] = True
    iterations: int = 100

    def __post_init__(self) -> None:
        number = check_integer("iterations", self.iterations, minimum=1, error=MethodError)
        object.__setattr__(self, "iterations", number)

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin by EM."""
        return em(
            observed.likelihood,
            observed.shares,
            start=observed.uniform,
            iterations=self.iterations,
        )


@dataclass(frozen=True)
class WMLE(DistributionEstimator):
    r"""Weighted maximum likelihood: small sampled ranks count more.

    EM as in `MLE`, with :math:`\tilde P(r)` replaced by :math:`\tilde P(r) w(r)`, normalised.

    ``weight`` names w(r):

    ``"tables"``
        1/log2(r + 101), which reproduces the ratios to MLE in the paper's tables (default);
    ``"ndcg"``
        1/log2(r/10 + 1), as printed in the paper. It inflates Recall@10 several-fold and cannot be
        what made the tables;
    ``"ap"``
        10/r, as printed.

    Reference: Jin et al., AAAI 2021.
    """

    name: ClassVar[str] = "wmle"
    joint: ClassVar[bool] = True
    weight: str = "tables"
    iterations: int = 100

    def __post_init__(self) -> None:
        check_choice("weight", self.weight, ("tables", "ndcg", "ap"), error=MethodError)
        number = check_integer("iterations", self.iterations, minimum=1, error=MethodError)
        object.__setattr__(self, "iterations", number)

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
        return em(observed.likelihood, shares, start=observed.uniform, iterations=self.iterations)

    def _weights(self, ranks: FloatArray) -> FloatArray:
        """Return w(r)."""
        if self.weight == "tables":
            return 1.0 / np.log2(ranks + 101.0)
        if self.weight == "ndcg":
            return 1.0 / np.log2(ranks / 10.0 + 1.0)
        return 10.0 / ranks


@dataclass(frozen=True)
class Beta(DistributionEstimator):
    r"""Ranks whose relative position follows a Beta distribution, fitted by maximum likelihood.

    .. math:: P(R) \propto \Big(\frac{R - 1/2}{N}\Big)^{a-1} \Big(\frac{N - R + 1/2}{N}\Big)^{b-1}

    Two parameters: little variance, and a bias wherever ranks are not of this shape. As a
    distribution on whole ranks it needs no a > 0, so P(R) may fall faster than 1/R.

    Reference: Li et al., "On Sampling Top-K Recommendation Evaluation", KDD 2020, who model the
    rank distribution by a Beta distribution.
    """

    name: ClassVar[str] = "beta"

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin at the maximum of the likelihood, by Newton's method."""
        grid = observed.grid

        def log_share_above(ranks: FloatArray) -> FloatArray:
            return np.log((ranks - 0.5) / grid.items)

        def log_share_below(ranks: FloatArray) -> FloatArray:
            return np.log((grid.items - ranks + 0.5) / grid.items)

        statistics = [
            mean_over(log_share, low=grid.low, high=grid.high)
            for log_share in (log_share_above, log_share_below)
        ]
        shapes = np.stack(statistics, axis=1)
        log_widths = np.log(observed.widths)
        fits = [
            LogDensity(
                likelihood=observed.likelihood,
                shares=share,
                targets=_TARGETS,
                shapes=shapes,
                log_base=log_widths,
            ).fit()
            for share in observed.shares
        ]
        return Solution(np.stack([fit.weights for fit in fits]), fits[0].certificate)


def em(
    likelihood: FloatArray, shares: FloatArray, *, start: FloatArray, iterations: int
) -> Solution:
    r"""Take a fixed number of EM steps from ``start``, for all rows of ``shares`` together.

    They climb :math:`F(\pi) = \sum_i p_i \log (A \pi)_i`, for a likelihood matrix A (cells x bins)
    and shares p. The iteration count is part of the estimate (it regularises), so the status says
    so. With g = A'(p / A pi), concavity gives F* - F(pi) <= max_b g_b - 1, which is the gap.

    Two cells show two bins without error: one step gives the shares of the cells.

    >>> shares, uniform = np.array([[0.8, 0.2]]), np.array([0.5, 0.5])
    >>> em(np.eye(2), shares, start=uniform, iterations=1).weights.tolist()
    [[0.8, 0.2]]
    """
    used = shares.any(axis=0)
    likelihood = likelihood[used]
    shares = shares[:, used]
    # The first step divides by the scale of the start.
    weights = np.broadcast_to(start, (len(shares), likelihood.shape[1])).copy()
    ratio = np.empty_like(shares)
    factor = np.empty_like(weights)
    for _ in range(iterations):
        np.matmul(weights, likelihood.T, out=ratio)
        np.divide(shares, np.maximum(ratio, _TINY, out=ratio), out=ratio)
        # The new weights sum to what the shares sum to: no step needs to be renormalised.
        weights *= np.matmul(ratio, likelihood, out=factor)
    weights /= weights.sum(axis=1, keepdims=True)
    first = shares[0]
    mixture = np.maximum(likelihood @ weights[0], _TINY)
    objective = float(first @ np.log(mixture))
    gap = float(((first / mixture) @ likelihood).max() - first.sum())
    return Solution(
        weights,
        Certificate(status=Status.STOPPED, objective=objective, gap=gap, iterations=iterations),
    )
