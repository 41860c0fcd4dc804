"""The solvers on problems small enough for general optimisers, differences and integrals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from unsample.estimators._least_squares import MaximumEntropy, monotone_least_squares
from unsample.likelihood import LogDensity, Status


def _mixture(cells: int, bins: int):
    """Return P(cell | bin), whose columns sum to one, and a histogram near a mixture of them."""
    rng = np.random.default_rng(cells)
    likelihood = rng.dirichlet(np.ones(cells), size=bins).T
    noise = rng.dirichlet(np.ones(cells))
    return likelihood, 0.8 * likelihood @ rng.dirichlet(np.ones(bins)) + 0.2 * noise


def _softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


@pytest.mark.parametrize("eta", [0.5, 1e-2, 1e-4])
def test_maximum_entropy_is_the_minimum_of_its_objective(eta):
    likelihood, targets = _mixture(6, 5)
    rng = np.random.default_rng(1)
    cell_weights, widths = rng.random(6), rng.random(5) + 0.5
    cell_weights[2] = 0.0

    def loss(weights):
        distance = cell_weights @ (likelihood @ weights - targets) ** 2
        return distance + eta * weights @ np.log(np.maximum(weights, 1e-300) / widths)

    problem = MaximumEntropy(likelihood, widths, eta, cell_weights.max())
    weights, certificate = problem.fit(targets, cell_weights)
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)
    assert certificate.status is Status.OPTIMAL
    assert certificate.objective == pytest.approx(loss(weights), abs=1e-12)
    best = optimize.minimize(lambda x: loss(_softmax(x)), np.zeros(5), options={"gtol": 1e-10})
    assert certificate.objective == pytest.approx(best.fun, abs=1e-9)
    # Newton's method that is right needs few steps.
    assert certificate.iterations <= 12
    _, hasty = problem.fit(targets, cell_weights, max_iterations=1, tolerance=1e-15)
    assert not hasty.usable
    assert hasty.iterations == 1
    assert hasty.objective - certificate.objective <= hasty.gap + 1e-12


#: What a solver of least squares may hand back that is not the answer.
WRONG = {
    "too little": lambda s: 0.9 * s,
    "too much": lambda s: 1.1 * s,
    "a part": lambda s: np.where(np.arange(len(s)) == s.argmax(), 0.0, s),
    "almost": lambda s: s + 0.02,
}


@pytest.mark.parametrize("how", WRONG)
def test_least_squares_certify_what_they_have_whoever_found_it(how, monkeypatch):
    rng = np.random.default_rng(6)
    matrix, weights = rng.random((30, 4)), rng.random(30)
    # Of these steps some bind and some do not.
    target = matrix @ np.array([1.0, 2.0, 0.5, -0.5]) + 0.3 * rng.normal(size=30)
    _, best = monotone_least_squares(matrix, weights, target)
    assert best.status is Status.OPTIMAL
    assert 0 <= best.gap <= 1e-8
    right = optimize.nnls

    def nnls(*arguments, **options):
        s, norm = right(*arguments, **options)
        return WRONG[how](s), norm

    monkeypatch.setattr(optimize, "nnls", nnls)
    x, certificate = monotone_least_squares(matrix, weights, target)
    assert certificate.status is Status.NOT_CONVERGED
    assert certificate.objective == pytest.approx(weights @ (matrix @ x - target) ** 2)
    assert certificate.objective - best.objective <= certificate.gap


@pytest.fixture
def curve():
    likelihood, shares = _mixture(8, 12)
    at = np.linspace(-1, 1, 12)
    return LogDensity(
        likelihood=likelihood,
        shares=shares,
        targets=300.0,
        shapes=np.column_stack([at / 3, 2 * at**2]),
        log_base=np.linspace(0.0, 0.5, 12) + 0.3 * at - 0.2 * at**2,
    )


def test_the_fit_is_the_maximum_and_its_evidence_the_integral(curve):
    def log_posterior(c):
        weights = _softmax(curve.shapes @ c + curve.log_base)
        fit = curve.targets * curve.shares @ np.log(curve.likelihood @ weights)
        return float(fit - 0.5 * c @ c)

    fit = curve.fit()
    best = optimize.minimize(lambda c: -log_posterior(c), np.zeros(2), options={"gtol": 1e-6})
    assert fit.coefficients == pytest.approx(best.x, abs=1e-4)
    assert fit.weights == pytest.approx(_softmax(curve.shapes @ best.x + curve.log_base), abs=1e-5)
    assert fit.certificate.objective == pytest.approx(-best.fun / curve.targets, rel=1e-9)
    axis_a, axis_b = np.linspace(-5.4, 3.6, 121), np.linspace(-1.4, 1.6, 161)
    values = np.array([[log_posterior(np.array([a, b])) for b in axis_b] for a in axis_a])
    cells = (axis_a[1] - axis_a[0]) * (axis_b[1] - axis_b[0])
    evidence = np.log(np.exp(values - values.max()).sum() * cells / (2 * np.pi)) + values.max()
    assert fit.log_evidence == pytest.approx(evidence, abs=0.2)
    # Fisher's information is the variance of the slope over what might have been seen.
    mixture = curve.likelihood @ fit.weights
    scores = (curve.likelihood * fit.weights) @ curve.shapes / mixture[:, None]
    scores = scores - fit.weights @ curve.shapes
    expected = curve.targets * (scores.T * mixture) @ scores + np.eye(2)
    assert fit.information == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("targets", [3e2, 1e6, 1e12])
def test_a_fit_that_is_called_optimal_is(curve, targets):
    many = replace(curve, targets=targets)
    best = many.fit().certificate
    assert best.status is Status.OPTIMAL
    # A wrong slope or Hessian would still climb, by many more steps.
    assert best.iterations <= 15
    called = set()
    for steps in range(1, 9):
        hasty = many.fit(max_iterations=steps).certificate
        left = targets * (best.objective - hasty.objective)
        assert not hasty.usable or left <= 1e-5 + 1e-15 * targets
        called.add(hasty.status)
    assert called == {Status.OPTIMAL, Status.NOT_CONVERGED}
