import numpy as np
import pytest
from scipy import optimize

from tests import reference
from unsample.errors import InputError
from unsample.estimators._solvers import (
    Status,
    em,
    maximum_entropy,
    maximum_likelihood,
    monotone_least_squares,
)
from unsample.law import Law, RankGrid


@pytest.fixture(scope="module")
def problem():
    design = Law(400, 30)
    rng = np.random.default_rng(4)
    ranks = np.ceil(400 * rng.beta(0.5, 2, size=(3, 2000))).astype(int).clip(1)
    drawn = design.draw(ranks, rng=rng)
    shares = np.stack([np.bincount(row - 1, minlength=31) for row in drawn]) / 2000
    grid = RankGrid.dense(400)
    r = np.arange(1, 32)
    return design.matrix(r, r, grid), shares


def test_em_is_the_papers_update(problem):
    likelihood, shares = problem
    solution = em(likelihood, shares, start=np.ones(400), iterations=37)
    for row in range(3):
        expected = reference.em(likelihood.T, shares[row], 37)
        assert np.allclose(solution.weights[row], expected, rtol=1e-10)
    assert set(solution.status) == {Status.STOPPED}


def test_em_climbs_and_its_gap_bounds_what_is_left(problem):
    likelihood, shares = problem
    best = maximum_likelihood(likelihood, shares)
    before = -np.inf
    for iterations in (1, 10, 100, 1000):
        solution = em(likelihood, shares, start=np.ones(400), iterations=iterations)
        assert (solution.objective > before).all()
        assert (best.objective - solution.objective <= solution.gap + 1e-9).all()
        before = solution.objective


def test_maximum_likelihood_is_certified_and_beats_long_em(problem):
    likelihood, shares = problem
    solution = maximum_likelihood(likelihood, shares, tolerance=1e-10)
    assert set(solution.status) == {Status.OPTIMAL}
    assert (solution.gap <= 1e-9).all()
    assert (solution.residual <= 1e-6).all()
    long_run = em(likelihood, shares, start=np.ones(400), iterations=20_000)
    assert (solution.objective >= long_run.objective - 1e-9).all()
    # The likelihood's maximiser has at most as many support points as there are cells.
    assert ((solution.weights > 1e-6).sum(axis=1) <= 2 * 31).all()


def test_more_cells_than_bins_takes_the_other_side_of_woodbury():
    rng = np.random.default_rng(0)
    likelihood = rng.random((50, 12))
    shares = rng.dirichlet(np.ones(50), size=2)
    solution = maximum_likelihood(likelihood, shares)
    assert set(solution.status) == {Status.OPTIMAL}
    long_run = em(likelihood, shares, start=np.ones(12), iterations=50_000)
    assert (solution.objective >= long_run.objective - 1e-9).all()


def test_a_prior_pulls_to_its_centre_and_matches_a_general_optimiser(problem):
    likelihood, shares = problem
    likelihood = likelihood[:, ::20]
    prior = np.full(20, 0.3 / 20)
    solution = maximum_likelihood(likelihood, shares[:1], prior=prior)
    assert solution.status == (Status.OPTIMAL,)

    def loss(logits: np.ndarray) -> float:
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        fit = np.sum(shares[0] * np.log(likelihood @ weights))
        return float(-fit - np.sum(prior * np.log(weights)))

    found = optimize.minimize(loss, np.zeros(20), method="BFGS", options={"gtol": 1e-9})
    assert solution.objective[0] == pytest.approx(-found.fun, abs=1e-8)
    strong = maximum_likelihood(likelihood, shares[:1], prior=np.full(20, 1e4))
    assert np.allclose(strong.weights, 1 / 20, atol=1e-4)


@pytest.mark.parametrize("eta", [1e-2, 1e-3, 1e-4, 1e-6])
def test_maximum_entropy_closes_its_gap(problem, eta):
    likelihood, shares = problem
    solution = maximum_entropy(
        likelihood, shares, cell_weights=shares, widths=np.ones(400), eta=eta
    )
    assert set(solution.status) == {Status.OPTIMAL}
    assert (solution.gap <= 1e-11).all()
    for row in range(3):
        objective = reference.mes_objective(solution.weights[row], likelihood.T, shares[row], eta)
        assert solution.objective[row] == pytest.approx(objective, abs=1e-12)


def test_maximum_entropy_matches_mirror_descent(problem):
    likelihood, shares = problem
    solution = maximum_entropy(
        likelihood, shares[:1], cell_weights=shares[:1], widths=np.ones(400), eta=1e-2
    )
    expected = reference.mes(likelihood.T, shares[0], 1e-2, 1.0)
    assert np.allclose(solution.weights[0], expected, rtol=1e-5)


def test_monotone_least_squares_keeps_order_and_its_conditions():
    rng = np.random.default_rng(1)
    matrix, target = rng.random((60, 8)), np.linspace(1, 0, 60) + rng.normal(size=60)
    x, certificate = monotone_least_squares(matrix, np.ones(60), target)
    assert certificate.status is Status.OPTIMAL
    assert (np.diff(x) <= 1e-12).all()
    assert x.min() >= 0
    for _ in range(200):
        other = np.sort(np.abs(x + 0.1 * rng.normal(size=8)))[::-1]
        assert np.sum((matrix @ x - target) ** 2) <= np.sum((matrix @ other - target) ** 2) + 1e-12


@pytest.mark.parametrize("possible", [0.0, 1.0])
def test_impossible_cells_are_refused(possible):
    likelihood = np.array([[possible] * 3, [0.0] * 3])
    with pytest.raises(InputError, match="probability zero"):
        em(likelihood, np.array([[0.5, 0.5]]), start=np.ones(3), iterations=1)
    with pytest.raises(InputError, match="probability zero"):
        maximum_likelihood(likelihood, np.array([[0.5, 0.5]]))
