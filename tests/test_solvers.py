"""The solvers on problems small enough for general optimisers, differences and integrals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from unsample.estimators._solvers import Status
from unsample.estimators._solvers._log_density import LogDensity
from unsample.estimators._solvers._squares import maximum_entropy, monotone_least_squares
from unsample.estimators.likelihood import em


def _mixture(cells: int, bins: int, rows: int = 3):
    """Return P(cell | bin), whose columns sum to one, and histograms of mixtures of them."""
    rng = np.random.default_rng(cells)
    likelihood = rng.dirichlet(np.ones(cells), size=bins).T
    noise = rng.dirichlet(np.ones(cells), size=rows)
    shares = 0.8 * rng.dirichlet(np.ones(bins), size=rows) @ likelihood.T + 0.2 * noise
    return likelihood, shares


def _softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def _best(loss, bins):
    found = optimize.minimize(
        lambda x: loss(_softmax(x)), np.zeros(bins), method="BFGS", options={"gtol": 1e-10}
    )
    return float(found.fun)


# -- entropy --------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [0.5, 1e-2, 1e-4])
def test_maximum_entropy_is_the_minimum_of_its_objective(eta):
    likelihood, targets = _mixture(6, 5)
    rng = np.random.default_rng(1)
    cell_weights, widths = rng.random((3, 6)), rng.random(5) + 0.5
    cell_weights[:, 2] = 0.0
    solution = maximum_entropy(
        likelihood, targets, cell_weights=cell_weights, widths=widths, eta=eta
    )
    for row in range(3):

        def loss(weights, row=row):
            distance = cell_weights[row] @ (likelihood @ weights - targets[row]) ** 2
            return distance + eta * weights @ np.log(np.maximum(weights, 1e-300) / widths)

        assert solution.objective[row] == pytest.approx(loss(solution.weights[row]), abs=1e-12)
        assert solution.objective[row] == pytest.approx(_best(loss, 5), abs=1e-9)
    assert solution.weights.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-14)
    assert set(solution.status) == {Status.OPTIMAL}
    assert (solution.gap >= 0).all()
    # Newton's method that is right needs few steps.
    assert solution.iterations.max() <= 12


def test_maximum_entropy_says_when_it_has_not_arrived():
    likelihood, targets = _mixture(6, 5)
    options = {"cell_weights": targets, "widths": np.ones(5), "eta": 1e-5}
    best = maximum_entropy(likelihood, targets, **options)
    hasty = maximum_entropy(likelihood, targets, **options, max_iterations=1)
    assert set(hasty.status) == {Status.NOT_CONVERGED}
    assert not hasty.certificate().usable
    assert (hasty.iterations == 1).all()
    assert (hasty.objective - best.objective <= hasty.gap + 1e-12).all()


def test_em_climbs_and_its_gap_bounds_what_is_left():
    likelihood, shares = _mixture(7, 4)

    def left(weights, share):
        return -share @ np.log(likelihood @ weights)

    before, best = -np.inf, [-_best(lambda w, p=p: left(w, p), 4) for p in shares]
    for iterations in (1, 10, 100):
        solution = em(likelihood, shares, start=np.ones(4), iterations=iterations)
        assert solution.weights.sum(axis=1) == pytest.approx(1.0)
        assert (solution.objective > before).all()
        assert (best - solution.objective <= solution.gap + 1e-9).all()
        assert solution.certificate().status is Status.STOPPED
        assert (solution.iterations == iterations).all()
        before = solution.objective


# -- least squares --------------------------------------------------------------------------


LIFT = np.triu(np.ones((4, 4)))


def _squares(seed: int):
    """Return a problem of four steps, of which some bind and some do not."""
    rng = np.random.default_rng(seed)
    matrix, weights = rng.random((30, 4)), rng.random(30)
    ordered = [3.0, 1.0, 1.5, -0.5] if seed % 2 else [1.0, 2.0, 0.5, -0.5]
    return matrix, weights, matrix @ np.array(ordered) + 0.3 * rng.normal(size=30)


@pytest.mark.parametrize("seed", range(6))
def test_least_squares_meet_their_conditions(seed):
    matrix, weights, target = _squares(seed)
    x, certificate = monotone_least_squares(matrix, weights, target)
    found = optimize.lsq_linear(
        np.sqrt(weights)[:, None] * matrix @ LIFT, np.sqrt(weights) * target, (0, np.inf), tol=1e-14
    )
    assert x == pytest.approx(LIFT @ found.x, abs=1e-6)
    assert certificate.objective == pytest.approx(weights @ (matrix @ x - target) ** 2, rel=1e-10)
    assert certificate.status is Status.OPTIMAL
    assert 0 <= certificate.gap <= 1e-8
    assert certificate.iterations == 4
    _, doubtful = monotone_least_squares(matrix, weights, target, tolerance=-1.0)
    assert doubtful.status is Status.NOT_CONVERGED


#: What a solver of least squares may hand back that is not the answer.
WRONG = {
    "too little": lambda s: 0.9 * s,
    "too much": lambda s: 1.1 * s,
    "a part": lambda s: np.where(np.arange(len(s)) == s.argmax(), 0.0, s),
    "almost": lambda s: s + 0.02,
}


@pytest.mark.parametrize("how", WRONG)
def test_least_squares_certify_what_they_have_whoever_found_it(how, monkeypatch):
    matrix, weights, target = _squares(6)
    _, best = monotone_least_squares(matrix, weights, target)
    right = optimize.nnls

    def nnls(*arguments, **options):
        s, norm = right(*arguments, **options)
        return WRONG[how](s), norm

    monkeypatch.setattr(optimize, "nnls", nnls)
    x, certificate = monotone_least_squares(matrix, weights, target)
    assert certificate.status is Status.NOT_CONVERGED
    assert certificate.objective == pytest.approx(weights @ (matrix @ x - target) ** 2)
    assert certificate.objective - best.objective <= certificate.gap


def test_least_squares_with_nothing_to_fit_and_with_cells_that_fit_nothing():
    matrix = np.array([[0.0, 0.9, 0.0, 0.1], [0.0, 0.2, 0.0, 0.8], [0.0, 0.5, 0.0, 0.5]])
    x, certificate = monotone_least_squares(matrix, np.ones(3), np.zeros(3))
    assert x.tolist() == [0, 0, 0, 0]
    assert (certificate.status, certificate.gap) == (Status.OPTIMAL, 0)
    expected = matrix @ np.array([2.0, 2.0, 1.0, 1.0])
    x, certificate = monotone_least_squares(matrix, np.ones(3), expected)
    assert matrix @ x == pytest.approx(expected)
    assert certificate.status is Status.OPTIMAL
    assert certificate.gap <= 1e-12


# -- log-densities --------------------------------------------------------------------------


@pytest.fixture
def curve():
    likelihood, shares = _mixture(8, 12, rows=3)
    place = np.linspace(-1, 1, 12)
    return LogDensity(
        likelihood=likelihood,
        shares=shares,
        targets=300.0,
        shapes=np.column_stack([place / 3, 2 * place**2]),
        log_base=np.linspace(0.0, 0.5, 12) + 0.3 * place - 0.2 * place**2,
    )


def _log_posterior(curve, row, c):
    weights = _softmax(curve.shapes @ c + curve.log_base)
    fit = curve.targets * curve.shares[row] @ np.log(curve.likelihood @ weights)
    return float(fit - 0.5 * c @ c)


def _second_differences(f, c, step=1e-4):
    def across(a, b):
        return (f(c + a + b) - f(c + a - b) - f(c - a + b) + f(c - a - b)) / (4 * step**2)

    sides = step * np.eye(len(c))
    return np.array([[across(a, b) for b in sides] for a in sides])


def test_the_log_posterior_and_its_slopes(curve):
    at = np.array([[0.5, -1.0], [-0.3, 0.4], [0.0, 0.0]])
    weights, value = curve.value(at)
    gradient = curve.gradient(at, weights)
    fisher, observed = curve.information(weights)
    for row in range(3):

        def f(c, row=row):
            return _log_posterior(curve, row, c)

        def slope(c, row=row):
            return optimize.approx_fprime(c, lambda d: _log_posterior(curve, row, d), 1e-6)

        assert value[row] == pytest.approx(f(at[row]), rel=1e-12)
        assert gradient[row] == pytest.approx(slope(at[row]), rel=1e-3, abs=1e-2)
        hessian = _second_differences(f, at[row])
        assert observed[row] == pytest.approx(-hessian, rel=1e-3, abs=1e-2)
        # Fisher's information is the variance of the slope over what might have been seen.
        mixture = curve.likelihood @ weights[row]
        scores = (curve.likelihood * weights[row]) @ curve.shapes / mixture[:, None]
        scores = scores - weights[row] @ curve.shapes
        expected = curve.targets * (scores.T * mixture) @ scores + np.eye(2)
        assert fisher[row] == pytest.approx(expected, rel=1e-10)


def test_the_fit_is_the_maximum_and_its_evidence_the_integral(curve):
    fit = curve.fit()
    axis_a, axis_b = np.linspace(-5.4, 3.6, 121), np.linspace(-1.4, 1.6, 161)
    cells = (axis_a[1] - axis_a[0]) * (axis_b[1] - axis_b[0])
    everywhere = np.stack(np.meshgrid(axis_a, axis_b, indexing="ij"), axis=-1).reshape(-1, 2)
    for row in range(3):
        best = optimize.minimize(
            lambda c, row=row: -_log_posterior(curve, row, c), np.zeros(2), options={"gtol": 1e-6}
        )
        assert fit.coefficients[row] == pytest.approx(best.x, abs=1e-4)
        certificate = fit.solution.certificate(row)
        assert certificate.objective == pytest.approx(-best.fun / curve.targets, rel=1e-9)
        assert certificate.status is Status.OPTIMAL
        assert 0 <= certificate.gap <= 1e-11
        assert 2 <= certificate.iterations <= 15
        assert fit.solution.weights[row] == pytest.approx(
            _softmax(curve.shapes @ best.x + curve.log_base), abs=1e-5
        )
        rows = np.repeat(curve.shares[[row]], len(everywhere), axis=0)
        _, value = replace(curve, shares=rows).value(everywhere)
        volume = np.exp(value - value.max()).sum() * cells / (2 * np.pi)
        evidence = np.log(volume) + value.max()
        assert fit.log_evidence[row] == pytest.approx(evidence, abs=0.2)


@pytest.mark.parametrize("targets", [3e2, 1e6, 1e12])
def test_a_fit_that_is_called_optimal_is(curve, targets):
    many = replace(curve, targets=targets)
    best = many.fit().solution
    assert set(best.status) == {Status.OPTIMAL}
    assert best.iterations.max() <= 15
    called = set()
    for steps in range(1, 9):
        hasty = many.fit(max_iterations=steps).solution
        left = targets * (best.objective - hasty.objective)
        optimal = np.array([status is Status.OPTIMAL for status in hasty.status])
        assert (left[optimal] <= 1e-5 + 1e-15 * targets).all()
        called |= set(hasty.status)
    assert called == {Status.OPTIMAL, Status.NOT_CONVERGED}
