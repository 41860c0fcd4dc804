"""What others would write: dense numpy EM, and MES through a modelling language."""

from __future__ import annotations

import numpy as np


def dense_likelihood(items: int, sampled: int) -> np.ndarray:
    """P(r | R) for every rank of the catalogue (items x n)."""
    from scipy.stats import binom

    ranks = np.arange(items)[:, None]
    return binom.pmf(np.arange(sampled + 1), sampled, ranks / (items - 1))


def dense_em(likelihood: np.ndarray, shares: np.ndarray, iterations: int = 100) -> np.ndarray:
    """EM on one histogram, O(nN) an iteration."""
    pi = np.full(len(likelihood), 1.0 / len(likelihood))
    for _ in range(iterations):
        pi = pi * (likelihood @ (shares / (pi @ likelihood)))
    return pi


def dense_em_batched(
    likelihood: np.ndarray, shares: np.ndarray, iterations: int = 100
) -> np.ndarray:
    """The same for all histograms at once, as matrix products."""
    pi = np.full((len(shares), len(likelihood)), 1.0 / len(likelihood))
    for _ in range(iterations):
        pi *= (shares / (pi @ likelihood)) @ likelihood.T
    return pi


def cvxpy_mes(likelihood: np.ndarray, shares: np.ndarray, eta: float) -> np.ndarray:
    """The printed MES problem, solved by Clarabel."""
    import cvxpy as cp

    pi = cp.Variable(len(likelihood), nonneg=True)
    residual = likelihood.T @ pi - shares
    distance = cp.sum(cp.multiply(shares, cp.square(residual)))
    problem = cp.Problem(cp.Maximize(eta * cp.sum(cp.entr(pi)) - distance), [cp.sum(pi) == 1])
    problem.solve(solver=cp.CLARABEL)
    return np.asarray(pi.value)


def mes_objective(pi: np.ndarray, likelihood: np.ndarray, shares: np.ndarray, eta: float) -> float:
    """What MES minimises."""
    positive = np.maximum(pi, 1e-300)
    distance = np.sum(shares * (pi @ likelihood - shares) ** 2)
    return float(distance + eta * np.sum(pi * np.log(positive)))
