"""Maximum likelihood: of any P(R), plain and weighted, and of a Beta distribution.

EM starts from the uniform distribution. The sample cannot distinguish some ranks; these keep the
proportions of the start after any number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray, check_choice, check_integer, check_real
from unsample.errors import MethodError
from unsample.estimators._estimator import DistributionEstimator
from unsample.likelihood import Certificate, LogDensity, Observed, Solution, Status
from unsample.sampling import mean_over

_TINY = 1e-300
#: More iterations than this take hours, and change no digit.
MOST_ITERATIONS = 1_000_000
#: A distribution is fitted under a standard normal prior of its parameters, as if there were this
#: number of targets. So the prior changes no digit, but keeps parameters finite where all ranks
#: are equal.
_TARGETS = 1e9
#: What is said in place of a number of iterations.
_CONVERGED = "converged"
#: How near the mean log-likelihood comes to its maximum by default where EM runs until it
#: converges: of ten thousand targets all together, to one unit.
_TOLERANCE = 1e-4
#: EM that has not converged after so many steps is given up. The gap is looked at now and then.
_MOST_STEPS = 1_000_000
_STEPS_BETWEEN = 100
#: The constant C by which the paper divides ranks before it weighs them.
_DIVISOR = 10.0


@dataclass(frozen=True)
class MLE(DistributionEstimator):
    r"""Maximum likelihood by EM from the uniform distribution.

    .. math:: \pi_R \leftarrow \sum_r \tilde P(r)\,
              \frac{\pi_R P(r|R)}{\sum_j \pi_j P(r|j)}

    The tables of the paper come from 100 iterations, which is the default. The number of iterations
    regularises: more of them give less bias towards a flat P(R), and more variance. The certificate
    says how far from the maximum the likelihood still is.

    The text of the paper lets EM converge: ``iterations="converged"`` takes steps until the mean
    log-likelihood is within ``tol`` of its maximum, which may be thousands of them.

    Reference: Jin et al., AAAI 2021.
    """

    name: ClassVar[str] = "mle"
    joint: ClassVar[bool] = True
    iterations: int | str = 100
    tol: float = _TOLERANCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "iterations", _checked_steps(self.iterations, self.tol))

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin by EM."""
        return em(
            observed.likelihood,
            observed.shares,
            start=observed.uniform,
            iterations=self.iterations,
            tol=self.tol,
        )


@dataclass(frozen=True)
class WMLE(DistributionEstimator):
    r"""Weighted maximum likelihood: small sampled ranks count more.

    EM as in `MLE`, with :math:`\tilde P(r)` replaced by :math:`\tilde P(r) w(r)`, normalised.

    ``weight`` names w(r):

    ``"tables"``
        1/log2(r + 101), which reproduces the ratios to MLE in the paper's tables (default);
    ``"ndcg"``
        1/log2(r/c + 1), as printed in the paper, with c = 10. It inflates Recall@10 several-fold
        and cannot be what made the tables;
    ``"ap"``
        c/r, as printed. All shares are normalised, so ``c`` changes nothing here.

    ``iterations`` and ``tol`` are those of `MLE`.

    Reference: Jin et al., AAAI 2021.
    """

    name: ClassVar[str] = "wmle"
    joint: ClassVar[bool] = True
    weight: str = "tables"
    iterations: int | str = 100
    c: float = _DIVISOR
    tol: float = _TOLERANCE

    def __post_init__(self) -> None:
        check_choice("weight", self.weight, ("tables", "ndcg", "ap"), error=MethodError)
        check_real("c", self.c, low=0.0, open_low=True, error=MethodError)
        if self.weight == "tables" and self.c != _DIVISOR:
            raise MethodError(
                f"c must be left out with weight=tables, which has none, got {self.c:g}; "
                "say weight=ndcg or weight=ap"
            )
        object.__setattr__(self, "iterations", _checked_steps(self.iterations, self.tol))

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
        return em(
            observed.likelihood,
            shares,
            start=observed.uniform,
            iterations=self.iterations,
            tol=self.tol,
        )

    def _weights(self, ranks: FloatArray) -> FloatArray:
        """Return w(r)."""
        if self.weight == "tables":
            return 1.0 / np.log2(ranks + 101.0)
        if self.weight == "ndcg":
            return 1.0 / np.log2(ranks / self.c + 1.0)
        return self.c / ranks


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


def _checked_steps(iterations: object, tol: object) -> int | str:
    """Return a number of EM steps, or that they end where EM has converged; check both settings."""
    check_real("tol", tol, low=0.0, open_low=True, error=MethodError)
    if iterations == _CONVERGED:
        return _CONVERGED
    if tol != _TOLERANCE:
        raise MethodError(
            f"tol must be left out with a number of iterations, got {tol:g}; "
            "say iterations=converged, or leave tol out"
        )
    hint = "or 'converged'"
    return check_integer(
        "iterations",
        iterations,
        minimum=1,
        maximum=MOST_ITERATIONS,
        hint=hint,
        error=MethodError,
    )


def em(
    likelihood: FloatArray,
    shares: FloatArray,
    *,
    start: FloatArray,
    iterations: int | str,
    tol: float = _TOLERANCE,
) -> Solution:
    r"""Take EM steps from ``start``, for all rows of ``shares`` together.

    They climb :math:`F(\pi) = \sum_i p_i \log (A \pi)_i`, for a likelihood matrix A (cells x bins)
    and shares p. A number of iterations is part of the estimate (it regularises), so the status
    says so. With g = A'(p / A pi), concavity gives F* - F(pi) <= max_b g_b - 1, which is the gap:
    where ``iterations`` is ``"converged"``, the steps of a row end when its gap is at most ``tol``.

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
    if isinstance(iterations, str):
        status, steps = _converge(weights, likelihood, shares=shares, tol=tol)
    else:
        status = Status.STOPPED
        steps = iterations
        _take_steps(weights, likelihood, shares=shares, steps=steps)
    weights /= weights.sum(axis=1, keepdims=True)
    first = weights[:1]
    mixture = np.maximum(likelihood @ first[0], _TINY)
    objective = float(shares[0] @ np.log(mixture))
    gap = float(_gaps(first, likelihood, shares=shares[:1])[0])
    return Solution(weights, Certificate(status, objective, gap=gap, iterations=steps))


def _converge(
    weights: FloatArray, likelihood: FloatArray, *, shares: FloatArray, tol: float
) -> tuple[Status, int]:
    """Take EM steps in each row of ``weights`` until it has converged.

    Returns how the first row ended, and how many steps it took. A row ends by itself: in a batch it
    is what it is alone.
    """
    open_rows = np.arange(len(weights))
    steps = 0
    taken = 0
    while len(open_rows) and steps < _MOST_STEPS:
        moved = weights[open_rows]
        _take_steps(moved, likelihood, shares=shares[open_rows], steps=_STEPS_BETWEEN)
        weights[open_rows] = moved
        steps += _STEPS_BETWEEN
        if open_rows[0] == 0:
            taken = steps
        open_rows = open_rows[_gaps(moved, likelihood, shares=shares[open_rows]) > tol]
    is_open = len(open_rows) > 0 and open_rows[0] == 0
    return Status.NOT_CONVERGED if is_open else Status.OPTIMAL, taken


def _take_steps(
    weights: FloatArray, likelihood: FloatArray, *, shares: FloatArray, steps: int
) -> None:
    """Move the mass of each bin, in each row of ``weights``, by some EM steps."""
    ratio = np.empty_like(shares)
    factor = np.empty_like(weights)
    for _ in range(steps):
        np.matmul(weights, likelihood.T, out=ratio)
        np.divide(shares, np.maximum(ratio, _TINY, out=ratio), out=ratio)
        # The new weights sum to what the shares sum to: no step needs to be renormalised.
        weights *= np.matmul(ratio, likelihood, out=factor)


def _gaps(weights: FloatArray, likelihood: FloatArray, *, shares: FloatArray) -> FloatArray:
    """Return for each row how far its mean log-likelihood is from the maximum, at most."""
    mixture = np.maximum(weights @ likelihood.T, _TINY)
    gradient = (shares / mixture) @ likelihood
    return np.asarray(gradient.max(axis=1) - shares.sum(axis=1))
