"""Means and spreads over repeated samples, against dense references on the same histograms.

The setting is that of the paper's tables: N = 3,706, n = 100, 6,040 users, 100 repeats, ranks with
Recall@10 of about 0.06.
"""

import numpy as np
import pytest
from scipy.optimize import nnls

from tests import reference
from unsample import estimators
from unsample.estimators import Observed
from unsample.evidence import RankCounts
from unsample.law import Law
from unsample.metrics import parse_all

REPEATS = 100
METRICS = parse_all(["Recall@10", "NDCG@10", "AP@10"])


@pytest.fixture(scope="module")
def repeats():
    rng = np.random.default_rng(17)
    design = Law(3706, 99)
    ranks = np.ceil(3706 * rng.beta(0.55, 2.2, size=6040)).astype(int).clip(1, 3706)
    drawn = design.draw(ranks, rng=rng, size=(REPEATS,))
    histograms = np.stack([np.bincount(row - 1, minlength=100) for row in drawn])
    return design, histograms, reference.matrix(design)


def _dense_em(shares, likelihood):
    pi = np.full((len(shares), len(likelihood)), 1 / len(likelihood))
    for _ in range(100):
        pi *= (shares / (pi @ likelihood)) @ likelihood.T
    return pi


def _dense_bv(gamma, likelihood, weights):
    a = likelihood / np.sqrt(3706)
    c = likelihood.mean(axis=0)
    system = (1 - gamma) * a.T @ a + gamma * np.diag(c)
    return np.linalg.solve(system, a.T @ weights / np.sqrt(3706))


def _dense_cls(likelihood, weights):
    steps = np.stack([nnls(np.cumsum(likelihood, axis=1), w, maxiter=5000)[0] for w in weights.T])
    return np.cumsum(steps[:, ::-1], axis=1)[:, ::-1].T


def _expected(method, shares, likelihood):
    weights = np.stack(
        [reference.metric_weights(m.family.name, m.k, 3706) for m in METRICS], axis=1
    )
    match method:
        case "mle":
            return _dense_em(shares, likelihood) @ weights
        case "wmle":
            weighted = shares * reference.wmle_weights("tables", 100, 10.0)
            return _dense_em(weighted / weighted.sum(axis=1, keepdims=True), likelihood) @ weights
        case "bv" | "bv(gamma=0.01)":
            gamma = 0.1 if method == "bv" else 0.01
            return shares @ _dense_bv(gamma, likelihood, weights)
        case "cls":
            return shares @ _dense_cls(likelihood, weights)
    raise AssertionError(method)


@pytest.mark.parametrize("method", ["cls", "bv", "bv(gamma=0.01)", "mle", "wmle"])
def test_means_and_spreads_agree_with_a_dense_reference(method, repeats):
    design, histograms, likelihood = repeats
    counts = RankCounts.from_histogram(histograms.sum(axis=0), design)
    drawn = histograms[:, counts.low - 1].astype(float)
    observed = Observed.prepare(counts, resampled=drawn, cutoffs=[10])
    got = estimators.parse(method).evaluate(observed, METRICS).values[1:]
    expected = _expected(method, histograms / 6040, likelihood)
    assert np.allclose(got.mean(axis=0), expected.mean(axis=0), rtol=1e-3)
    assert np.allclose(got.std(axis=0), expected.std(axis=0), rtol=5e-3)
