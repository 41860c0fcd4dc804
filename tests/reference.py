"""Slow, dense, direct implementations of what the package does fast. Only for the tests."""

from __future__ import annotations

from functools import cache

import mpmath
import numpy as np
from scipy import optimize, stats

from tests import user_metrics
from unsample.sampling import RankGrid, SamplingModel


def pmf(design: SamplingModel, r: int, rank: int) -> mpmath.mpf:
    """P(r | R) in 60 digits."""
    mpmath.mp.dps = 60
    x, better, others = r - 1, rank - 1, design.items - 1
    if design.replacement:
        theta = mpmath.mpf(better) / others
        return mpmath.binomial(design.sampled, x) * theta**x * (1 - theta) ** (design.sampled - x)
    worse = others - better
    if x > better or design.sampled - x > worse:
        return mpmath.mpf(0)
    hits = mpmath.binomial(better, x) * mpmath.binomial(worse, design.sampled - x)
    return hits / mpmath.binomial(others, design.sampled)


def dense_grid(items: int) -> RankGrid:
    """Every rank in a bin of its own."""
    return RankGrid(np.arange(1, items + 1), items)


def matrix(design: SamplingModel) -> np.ndarray:
    """A[R, r] = P(r | R) by scipy.stats, every rank of the catalogue."""
    r = np.arange(1, design.n + 1)
    ranks = np.arange(1, design.items + 1)[:, None]
    if design.replacement:
        return stats.binom.pmf(r - 1, design.sampled, (ranks - 1) / (design.items - 1))
    return stats.hypergeom.pmf(r - 1, design.items - 1, ranks - 1, design.sampled)


@cache
def metric_weights(name: str, k: int, items: int) -> np.ndarray:
    """w(R) for R = 1..N: the metric of a user whose one relevant item is there."""
    lists = [user_metrics.listed([rank], items) for rank in range(1, min(k, items) + 1)]
    inside = [user_metrics.value(f"{name}@{k}", each) for each in lists]
    return np.pad(inside, (0, items - len(inside)))


def em(likelihood: np.ndarray, histogram: np.ndarray, iterations: int) -> np.ndarray:
    """The paper's update, one rank r at a time."""
    items = len(likelihood)
    pi = np.full(items, 1.0 / items)
    for _ in range(iterations):
        new = np.zeros(items)
        for r, share in enumerate(histogram):
            if share > 0:
                joint = pi * likelihood[:, r]
                new += share * joint / joint.sum()
        pi = new
    return pi


def wmle_weights(kind: str, n: int, c: float = 10.0) -> np.ndarray:
    r = np.arange(1, n + 1)
    return {
        "tables": 1 / np.log2(r + 1 + 100),
        "ndcg": 1 / np.log2(r / c + 1),
        "ap": c / r,
    }[kind]


def mes(likelihood: np.ndarray, histogram: np.ndarray, eta: float) -> np.ndarray:
    """Mirror descent on the primal: slow, and nothing like Newton on the dual."""
    pi = np.full(len(likelihood), 1.0 / len(likelihood))
    for _ in range(200_000):
        residual = pi @ likelihood - histogram
        gradient = 2 * likelihood @ (histogram * residual) + eta * (np.log(pi) + 1)
        step = pi * np.exp(-0.3 / max(eta, 0.015) * (gradient - gradient.min()))
        step /= step.sum()
        if np.abs(step - pi).sum() < 1e-13:
            break
        pi = step
    return pi


def bv(
    likelihood: np.ndarray,
    histogram: np.ndarray,
    weights: np.ndarray,
    gamma: float,
    prior: np.ndarray,
) -> float:
    """The printed closed form with A, b and c written out."""
    a = np.sqrt(prior)[:, None] * likelihood
    b = np.sqrt(prior) * weights
    c = prior @ likelihood
    corrected = np.linalg.solve((1 - gamma) * a.T @ a + gamma * np.diag(c), a.T @ b)
    return float(histogram @ corrected)


def mn(
    likelihood: np.ndarray,
    histogram: np.ndarray,
    weights: np.ndarray,
    users: float,
    prior: np.ndarray,
) -> float:
    d = np.diag(prior)
    a = likelihood
    system = a.T @ d @ a - a.T @ a / users + np.diag(a.sum(axis=0)) / users
    return float(histogram @ np.linalg.solve(system, a.T @ d @ weights))


def cls(likelihood: np.ndarray, histogram: np.ndarray, weights: np.ndarray) -> float:
    """Steps between the values, none of them negative, by a trust-region solver."""
    lift = np.triu(np.ones((likelihood.shape[1], likelihood.shape[1])))
    steps = optimize.lsq_linear(likelihood @ lift, weights, (0.0, np.inf), tol=1e-14).x
    return float(histogram @ (lift @ steps))


def beta_mass(items: int, a: float, b: float) -> np.ndarray:
    ranks = np.arange(1, items + 1)
    mass = ((ranks - 0.5) / items) ** (a - 1) * ((items - ranks + 0.5) / items) ** (b - 1)
    return mass / mass.sum()


def beta(likelihood: np.ndarray, histogram: np.ndarray) -> np.ndarray:
    items = len(likelihood)
    found = optimize.minimize(
        lambda p: -np.sum(histogram * np.log(beta_mass(items, p[0], p[1]) @ likelihood)),
        [1.0, 1.0],
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 10_000},
    )
    return beta_mass(items, found.x[0], found.x[1])
