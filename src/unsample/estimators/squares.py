"""Least squares: distances to the histogram (MES) or to the metric (CLS, BV, MN).

BV and MN choose a matrix W (cells x bins) and set P(R) = sum_r p(r) W[r, R]. That P(R) is a signed
measure which sums to about one; metrics follow from it like from any other, and are clipped into
their range where the signs let them leave it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unsample._checks import FloatArray, check_choice, check_real
from unsample._threads import one_thread
from unsample.counts import distinct_rows
from unsample.errors import MethodError
from unsample.estimators._estimator import DistributionEstimator, Estimator, Fit, clipped_to_range
from unsample.estimators._least_squares import MaximumEntropy, monotone_least_squares
from unsample.estimators.maximum_likelihood import MLE
from unsample.likelihood import CLOSED_FORM, Observed, Solution, check_system
from unsample.metrics import Metric

#: Added to diagonals: a sampled rank that the P(R) in use cannot give has a row of zeros.
_NEVER_SINGULAR = 1e-290
#: The gamma of the papers, by prior.
_GAMMAS = {"uniform": 0.1, "mle": 0.01, "mes": 0.01}


@dataclass(frozen=True)
class MES(DistributionEstimator):
    r"""Maximum entropy with a squared distance to the histogram.

    .. math:: \max_\pi \; \eta H(\pi) - \sum_r \tilde P(r)
              \Big(\sum_R P(r|R) \pi_R - \tilde P(r)\Big)^2

    The printed eta, 0.001, gives less variance than the paper's tables show; eta = 0.0001 gives
    theirs. The authors' later public code has an eta of 0.01/n.

    Catalogues of several sizes are pooled: their common histogram is compared with its
    expectation. Samples of several sizes n are compared one by one, and the distances averaged
    over the targets.

    References: Jin et al., AAAI 2021; Li et al., AAAI 2023.
    """

    name: ClassVar[str] = "mes"
    eta: float = 0.001

    def __post_init__(self) -> None:
        check_real("eta", self.eta, low=0.0, open_low=True, error=MethodError)

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin by Newton's method on the dual."""
        used = observed.shares.any(axis=0)
        keys = np.stack([observed.counts.sampled, observed.counts.low], axis=1)
        check_system(self.name, len(distinct_rows(keys[used])[0]))
        matrices = []
        targets = []
        weights = []
        for matrix, shares in observed.pools(self.name):
            # Ranks without any target have no weight, and so no part in the system.
            used = shares.any(axis=0)
            of_sample_size = np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
            matrices.append(matrix[used])
            targets.append(shares[:, used] / of_sample_size)
            weights.append(shares[:, used])
        target = np.concatenate(targets, axis=1)
        weight = np.concatenate(weights, axis=1)
        problem = MaximumEntropy(
            likelihood=np.concatenate(matrices),
            widths=observed.widths,
            eta=self.eta,
            steepest=float(weight.max()),
        )
        fits = [problem.fit(*histogram) for histogram in zip(target, weight, strict=True)]
        masses = np.stack([mass for mass, _ in fits])
        _, certificate = fits[0]
        return Solution(masses, certificate)


@dataclass(frozen=True)
class CLS(Estimator):
    r"""Least squares over uniform P(R), with the corrected metric kept in order.

    .. math:: \min_x \sum_R \tfrac1N \Big(\sum_r P(r|R)\, x_r - w_K(R)\Big)^2,
              \qquad x_1 \ge \dots \ge x_n \ge 0

    Where catalogues differ by user, P(r|R) is averaged over them. A value outside the metric's
    range is clipped into it.

    Reference: Krichene, Rendle, KDD 2020; the order constraint reproduces the tables of Jin et
    al., AAAI 2021.
    """

    name: ClassVar[str] = "cls"

    @one_thread()
    def evaluate(self, observed: Observed, metrics: Sequence[Metric]) -> Fit:
        """Solve one least-squares problem for each metric and sample size."""
        self.require(metrics)
        known = observed.shares @ observed.known_weights(metrics)
        if observed.known.all():
            return Fit(known, known, certificate=CLOSED_FORM)
        rest = observed.unknown_part()
        targets = rest.bin_weights(metrics)
        values = np.zeros_like(known)
        certificates = []
        for matrix, shares in rest.pools(self.name):
            solved = [
                monotone_least_squares(matrix.T, rest.uniform, target=target)
                for target in targets.T
            ]
            values += shares @ np.stack([x for x, _ in solved], axis=1)
            certificates += [certificate for _, certificate in solved]
        worst = max(certificates, key=lambda proof: (not proof.usable, proof.gap))
        values *= (1.0 - observed.known_share)[:, None]
        return Fit(
            known + clipped_to_range(values, observed, weights=targets),
            known + values,
            certificate=worst,
        )


class LinearEstimator(DistributionEstimator):
    """Solve one system for each sample size (and each histogram, where the prior differs)."""

    prior: str

    def prior_mass(self, observed: Observed) -> FloatArray:
        """Return P(R) by bin that weights the bias: one row, or one for each histogram."""
        if self.prior == "uniform":
            return observed.uniform[None, :]
        learned = MLE() if self.prior == "mle" else MES()
        return learned.solve(observed).weights

    def solve(self, observed: Observed) -> Solution:
        """Return p'W for each histogram."""
        prior = self.prior_mass(observed)
        masses = np.zeros((len(observed.shares), len(observed.grid)))
        for matrix, shares in observed.pools(self.name):
            if len(prior) == 1:
                system = self.system(matrix, prior[0], observed=observed)
                masses += _solve(system, shares.T).T @ matrix * prior
                continue
            for row, weights in enumerate(prior):
                # p' (system^-1) first, then the long side.
                solved = _solve(self.system(matrix, weights, observed=observed), shares[row])
                masses[row] += solved @ matrix * weights
        return Solution(masses, CLOSED_FORM)

    @abstractmethod
    def system(self, matrix: FloatArray, prior: FloatArray, observed: Observed) -> FloatArray:
        """Return the matrix whose inverse makes W."""


def _solve(system: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solution of a system of equations, whose diagonal is changed in place."""
    system[np.diag_indices_from(system)] += _NEVER_SINGULAR
    return np.asarray(np.linalg.solve(system, right))


@dataclass(frozen=True)
class BV(LinearEstimator):
    r"""Bias-variance trade-off, on average over a prior D of ranks.

    .. math:: \hat P = \tilde p^\top \big((1-\gamma) A^\top D A + \gamma\,
              \mathrm{diag}(1^\top D A)\big)^{-1} A^\top D

    with A[R, r] = P(r|R). The metrics of this P(R) are the BV estimates of the metrics.

    ``prior`` names D: ``"uniform"`` is I/N; ``"mle"`` and ``"mes"`` are diag(P(R)) learned from the
    same data by `MLE` and `MES`. The public code of Li et al. takes P(R) from the mean over 100
    repeats, which a single evaluation never has; this is the one-shot version. Where ``gamma`` is
    not given it is that of the papers: 0.1 with the uniform prior, 0.01 with a learned one.

    References: Krichene, Rendle, KDD 2020 (the metric estimator, gamma 0.1); Jin et al., AAAI
    2021, equation for P(R) by BV, gamma 0.1 and 0.01; Li et al., "Towards Reliable Item Sampling
    for Recommendation Evaluation", AAAI 2023 (learned priors, gamma 0.01).
    """

    name: ClassVar[str] = "bv"
    gamma: float | None = None
    prior: str = "uniform"

    def __post_init__(self) -> None:
        check_choice("prior", self.prior, _GAMMAS, error=MethodError)
        if self.gamma is None:
            object.__setattr__(self, "gamma", _GAMMAS[self.prior])
        check_real(
            "gamma",
            self.gamma,
            low=0.0,
            high=1.0,
            open_low=True,
            hint="the paper uses 0.1 and 0.01",
            error=MethodError,
        )

    def defaults(self) -> dict[str, Any]:
        """Return the default of each parameter; the default of gamma depends on the prior."""
        return super().defaults() | {"gamma": _GAMMAS[self.prior]}

    def system(self, matrix: FloatArray, prior: FloatArray, observed: Observed) -> FloatArray:
        """Return (1 - gamma) A'DA + gamma diag(1'DA)."""
        assert self.gamma is not None
        system = (1.0 - self.gamma) * (matrix * prior) @ matrix.T
        system[np.diag_indices_from(system)] += self.gamma * (matrix @ prior)
        return np.asarray(system)


@dataclass(frozen=True)
class MN(LinearEstimator):
    r"""Minimal expected squared error of P(R) over multinomial samples, given a learned P(R).

    .. math:: W = \big(A^\top D A - \tfrac1M A^\top A + \tfrac1M \mathrm{diag}(1^\top A)\big)^{-1}
              A^\top D

    BV with a weight 1/(M P(R)) on the variance that differs by rank: no constant to choose.
    ``prior``, ``"mle"`` or ``"mes"``, is as in `BV`.

    Reference: Li et al., AAAI 2023; one-shot, see `BV`.
    """

    name: ClassVar[str] = "mn"
    prior: str = "mle"

    def __post_init__(self) -> None:
        check_choice("prior", self.prior, ("mle", "mes"), error=MethodError)

    def system(self, matrix: FloatArray, prior: FloatArray, observed: Observed) -> FloatArray:
        """Return A'DA - A'A/M + diag(1'A)/M."""
        probability = observed.widths / observed.counts.effective
        system = (matrix * (prior - probability)) @ matrix.T
        system[np.diag_indices_from(system)] += matrix @ probability
        return np.asarray(system)
