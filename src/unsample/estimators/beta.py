"""Parametric estimators: a Beta law of ranks, and the mapping f(k) of sampled to full recall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray, IntArray, check_choice, check_real
from unsample.errors import MethodError
from unsample.estimators._base import DistributionEstimator, MetricEstimator, single_ranks
from unsample.estimators._observed import Observed
from unsample.estimators._solvers import Certificate, Solution, Status
from unsample.evidence import DesignCells
from unsample.law import Law, mean_over
from unsample.metrics import Metric

__all__ = ["Beta", "RecallMap", "fit_beta", "fit_power_law"]

_CLOSED_FORM = Certificate(Status.CLOSED_FORM, 0.0, 0.0, 0.0, 0)
_MAX_ITERATIONS = 200
_TOLERANCE = 1e-10
_HALVINGS, _DOUBLINGS = 40, 20
#: Directions in which the statistics vary by less than this share of the most are left alone.
_SAME_STATISTICS = 1e-13


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
        return fit_beta(observed)


@dataclass(frozen=True)
class RecallMap(MetricEstimator):
    r"""Recall by a mapping of cutoffs: Recall@f(k) is read off the sampled Recall@k.

    ``kind`` names f:

    ``"linear"``
        f(k) = 1 + (k - 1)(N - 1)/(n - 1);
    ``"bound"``
        the rank that is as likely as not to be sampled into the top k, P(r <= k | f(k)) = 1/2;
    ``"beta"``
        f(k) = N * S(k)^(1/a), where S(k) is the sampled Recall@k of ranks with theta ~ Beta(a, 1):
        exact if they follow that law. ``a=1`` (uniform ranks) gives f(k) = N k/n.

    Between the f(k) recall is interpolated, linearly in the rank. Gives Recall and Precision only.

    Reference: Li et al., KDD 2020. Their text states the three ideas; the boundary condition of
    ``"bound"`` is our reading of the second.
    """

    name: ClassVar[str] = "recall_map"
    kind: str = "beta"
    a: float = 0.5

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("linear", "bound", "beta"), error=MethodError)
        check_real("a", self.a, low=0.0, open_low=True, error=MethodError)

    def supports(self, metric: Metric) -> bool:
        """Return whether the metric is a multiple of recall."""
        return metric.family.name in ("Recall", "Precision")

    def mapping(self, design: Law) -> FloatArray:
        """Return f(1), ..., f(n) as real ranks that do not decrease."""
        k = np.arange(1, design.n + 1)
        if self.kind == "linear":
            ranks = 1.0 + (k - 1) * (design.items - 1) / design.sampled
        elif self.kind == "bound":
            ranks = _median_ranks(k, design)
        else:
            ranks = design.items * _sampled_recall(k, design.sampled, self.a) ** (1.0 / self.a)
        return np.maximum.accumulate(np.minimum(ranks, design.items))

    def correct(
        self, cells: DesignCells, metrics: Sequence[Metric]
    ) -> tuple[FloatArray, Certificate]:
        """Return for each sampled rank how much of it the interpolated recall counts."""
        single_ranks(cells, self.name)
        ranks = np.concatenate([[0.0], self.mapping(cells.design)])
        columns = []
        for metric in metrics:
            cutoff = metric.cutoff(cells.design.items)
            # Sampled recall at the fractional k with f(k) = K counts ranks up to k wholly and the
            # next one in part, which is linear in the histogram.
            k = np.interp(cutoff, ranks, np.arange(len(ranks)))
            counted = np.clip(k - (cells.low - 1), 0.0, 1.0)
            columns.append(counted * metric.weights(1, cells.design.items))
        return np.stack(columns, axis=1), _CLOSED_FORM


def fit_beta(observed: Observed) -> Solution:
    """Return the mass of each bin under the Beta law that fits best."""
    items, low, high = observed.grid.items, observed.grid.low, observed.grid.high
    from_end = mean_over(lambda ranks: np.log((items - ranks + 0.5) / items), low, high)
    return _fit(observed, [_log_ranks(observed), from_end])


def fit_power_law(observed: Observed) -> Solution:
    """Return the mass of each bin under the power law of R that fits best."""
    return _fit(observed, [_log_ranks(observed)])


def _log_ranks(observed: Observed) -> FloatArray:
    items, low, high = observed.grid.items, observed.grid.low, observed.grid.high
    return mean_over(lambda ranks: np.log((ranks - 0.5) / items), low, high)


def _fit(observed: Observed, statistics: list[FloatArray]) -> Solution:
    return _exponential_family(
        observed.likelihood, observed.shares, np.stack(statistics), np.log(observed.widths)
    )


def _sampled_recall(k: IntArray, sampled: int, a: float) -> FloatArray:
    """Return P(r <= k) when theta ~ Beta(a, 1): a sum of beta-binomial probabilities."""
    from scipy.special import gammaln

    x = np.arange(sampled + 1)
    # Beta(a, 1): C(s, x) B(x + a, s - x + 1) / B(a, 1), with s! and (s - x)! cancelled.
    log_terms = gammaln(x + a) - gammaln(x + 1) + gammaln(sampled + 1) - gammaln(sampled + a + 1)
    return np.asarray(np.cumsum(a * np.exp(log_terms))[k - 1])


def _median_ranks(k: IntArray, design: Law) -> FloatArray:
    """Return for each k the rank R with P(r <= k | R) = 1/2 under the binomial law."""
    from scipy.special import betaincinv

    inside = k <= design.sampled
    theta = np.ones(len(k))
    # P(Bin(s, theta) <= k - 1) = 1 - I_theta(k, s - k + 1).
    theta[inside] = betaincinv(k[inside], design.sampled - k[inside] + 1.0, 0.5)
    return 1.0 + theta * (design.items - 1)


def _exponential_family(
    likelihood: FloatArray, shares: FloatArray, statistics: FloatArray, log_base: FloatArray
) -> Solution:
    """Maximise sum_i p_i log (A pi)_i over pi = softmax(c'T + log_base), row by row of ``shares``.

    Newton's method with the observed information where that is positive, and with the prior
    covariance, which is never negative, where it is not. Steps are halved until the likelihood
    gains, and doubled as long as it gains more: ranks that are all alike are explained best by a
    law on one rank, which lies at infinity.
    """
    rows, size = len(shares), len(statistics)
    parameters = np.zeros((rows, size))
    iterations = np.zeros(rows, dtype=np.int64)
    weights, value = _family_value(likelihood, shares, statistics, log_base, parameters)
    residual = np.full(rows, np.inf)
    for _ in range(_MAX_ITERATIONS):
        gradient, information = _family_slopes(likelihood, shares, statistics, weights)
        residual = np.abs(gradient).max(axis=1)
        going = residual > _TOLERANCE
        if not going.any():
            break
        # Of two ranks, or near one rank, two statistics tell the same: no plain inverse exists.
        inverse = np.linalg.pinv(information, rcond=_SAME_STATISTICS, hermitian=True)
        move = (inverse @ gradient[..., None])[..., 0] * going[:, None]
        parameters, weights, value = _best_along(
            lambda at: _family_value(likelihood, shares, statistics, log_base, at),
            parameters,
            move,
            value,
        )
        iterations += going
    status = tuple(Status.OPTIMAL if r <= 1e-7 else Status.NOT_CONVERGED for r in residual)
    # The family is not concave: the residual is the evidence, and there is no gap to report.
    return Solution(weights, value, np.zeros(rows), residual, iterations, status)


def _best_along(
    evaluate: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    start: FloatArray,
    move: FloatArray,
    value: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return better parameters on the way ``move`` of each row, with their weights and values."""
    weights, reached = evaluate(start + move)
    for _ in range(_HALVINGS):
        short = reached < value - 1e-14 * np.abs(value)
        if not short.any():
            break
        move = np.where(short[:, None], 0.5 * move, move)
        weights, reached = evaluate(start + move)
    else:
        # Nothing on this way is better: stay.
        move = np.where(short[:, None], 0.0, move)
        weights, reached = evaluate(start + move)
    for _ in range(_DOUBLINGS):
        further, there = evaluate(start + 2.0 * move)
        better = there > reached + 1e-14 * np.abs(reached)
        if not better.any():
            break
        move = np.where(better[:, None], 2.0 * move, move)
        weights = np.where(better[:, None], further, weights)
        reached = np.where(better, there, reached)
    return start + move, weights, reached


def _family_value(
    likelihood: FloatArray,
    shares: FloatArray,
    statistics: FloatArray,
    log_base: FloatArray,
    parameters: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    exponent = parameters @ statistics + log_base
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    mixture = np.maximum(weights @ likelihood.T, 1e-300)
    return weights, np.asarray((shares * np.log(mixture)).sum(axis=1))


def _family_slopes(
    likelihood: FloatArray, shares: FloatArray, statistics: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    mixture = np.maximum(weights @ likelihood.T, 1e-300)
    posterior = weights * ((shares / mixture) @ likelihood)
    prior_mean = weights @ statistics.T
    gradient = posterior @ statistics.T - prior_mean
    prior_second = np.einsum("bg,ig,jg->bij", weights, statistics, statistics)
    prior_cov = prior_second - prior_mean[:, :, None] * prior_mean[:, None, :]
    cell_mean = np.stack([(weights * t) @ likelihood.T for t in statistics], axis=2)
    cell_mean /= mixture[:, :, None]
    between = np.einsum("bc,bci,bcj->bij", shares, cell_mean, cell_mean)
    within = np.einsum("bg,ig,jg->bij", posterior, statistics, statistics) - between
    information = prior_cov - within
    smallest = np.linalg.eigvalsh(information)[:, :1, None]
    floor = 1e-6 * np.linalg.eigvalsh(prior_cov)[:, -1:, None]
    return gradient, np.where(smallest > floor, information, prior_cov)
