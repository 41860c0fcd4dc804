"""The learned prior: posteriors against importance sampling, learning, calibration, files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from unsample.estimators.prior import History, Learned, Prior, shipped
from unsample.estimators.prior._learn import learn
from unsample.estimators.prior._posterior import Prepared, together
from unsample.estimators.prior._shapes import SIZE, shapes_on

from unsample.errors import FileError, InputError
from unsample.estimators import Observed
from unsample.evidence import RankCounts
from unsample.law import Law, RankGrid
from unsample.metrics import parse_all

METRICS = parse_all(["NDCG@5", "Recall@5", "Recall@1"])


def seen(ranks: np.ndarray, items: int, sampled: int, *, rng: int = 0) -> Observed:
    drawn = Law(items, sampled).draw(ranks, rng=rng)
    counts = RankCounts.from_ranks(drawn, items=items, sampled=sampled)
    return Observed.prepare(counts, cutoffs=(1, 5))


def ranks_like(items: int, size: int, slope: float, seed: int = 0) -> np.ndarray:
    places = np.arange(1, items + 1)
    mass = places**-slope
    return np.random.default_rng(seed).choice(places, size, p=mass / mass.sum())


@pytest.fixture(scope="module")
def small() -> Learned:
    return shipped().learned["unseen"]


def slow_posterior(
    prepared: Prepared, learned: Learned, draws: int = 60_000
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the metrics' logarithms, by importance sampling.

    The proposal is a t law around the mode; weights are posterior over proposal, so that any
    proposal gives the same answer in the end.
    """
    density, fit = prepared._fit(learned)
    rng = np.random.default_rng(3)
    spread = 1.1 * np.linalg.cholesky(np.linalg.inv(fit.information[0]))
    freedom = 30.0
    normal = rng.standard_normal((draws, SIZE))
    stretch = np.sqrt(freedom / rng.chisquare(freedom, draws))[:, None]
    standard = normal * stretch
    points = fit.coefficients[0] + standard @ spread.T
    mass, value = density.value(points)
    log_proposal = -0.5 * (freedom + SIZE) * np.log1p((standard**2).sum(axis=1) / freedom)
    log_weight = value - log_proposal
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert 1.0 / (weight**2).sum() > 2000  # as many independent draws, effectively
    likelihood, shares = density.likelihood, density.shares[0]
    mixture = mass @ likelihood.T
    expected = mass * ((shares / mixture) @ likelihood)
    logs = np.log(expected @ prepared.weights)
    mean = weight @ logs
    typical = weight @ mass
    chance = np.zeros(logs.shape[1])
    for cell, share in enumerate(shares):
        joint = likelihood[cell] * typical / (likelihood[cell] @ typical)
        spread_of = joint @ prepared.weights**2 - (joint @ prepared.weights) ** 2
        chance += share * spread_of / prepared.targets
    return mean, weight @ (logs - mean) ** 2 + chance / np.exp(mean) ** 2


def test_the_posterior_is_that_of_importance_sampling(small):
    observed = seen(ranks_like(300, 800, 0.7), 300, 19)
    prepared = Prepared.of(observed, METRICS, observed.targets)
    mean, variance = slow_posterior(prepared, small)
    fast = prepared.moments(small)
    deviation = np.sqrt(variance)
    assert (np.abs(fast.mean[0] - mean) < 0.2 * deviation).all()
    assert np.sqrt(fast.variance[0]) == pytest.approx(deviation, rel=0.12)
    # The reference sees an error: a prior with half the deviations gives another posterior.
    narrow = replace(small, between=small.between / 4, within=small.within / 4)
    wrong = np.sqrt(prepared.moments(narrow).variance[0])
    assert wrong[2] < 0.85 * deviation[2]


def test_the_signs_of_eigenvectors_change_nothing(small, monkeypatch):
    """They are those that a machine's library happens to give."""
    observed = seen(ranks_like(300, 800, 0.7), 300, 19)
    prepared = Prepared.of(observed, METRICS, observed.targets)
    usual = prepared.moments(small)
    covariance = small.between + small.within
    assert small.root @ small.root.T == pytest.approx(covariance, rel=1e-9, abs=1e-9)
    plain, signs = np.linalg.eigh, np.where(np.arange(SIZE) % 3 == 0, -1.0, 1.0)

    def turned(matrix):
        values, vectors = plain(matrix)
        return values, vectors * signs

    monkeypatch.setattr(np.linalg, "eigh", turned)
    fresh = replace(small)  # roots may be kept
    assert prepared.moments(fresh).mean == pytest.approx(usual.mean, rel=1e-9)
    assert prepared.moments(fresh).variance == pytest.approx(usual.variance, rel=1e-9)


def test_known_ranks_leave_nothing_open():
    ranks = ranks_like(300, 500, 0.9)
    counts = RankCounts.from_ranks(ranks, items=300, sampled=299, replacement=False)
    posterior = shipped().posterior(Observed.prepare(counts, cutoffs=(1, 5)), METRICS)
    truth = [metric.weights(ranks, 300).mean() for metric in METRICS]
    low, high = posterior.interval()
    assert posterior.values[0] == pytest.approx(truth, rel=1e-6)
    assert low[0] == pytest.approx(truth, rel=1e-4)
    assert high[0] == pytest.approx(truth, rel=1e-4)


def test_more_targets_and_more_items_make_it_surer():
    ranks = ranks_like(3000, 5000, 0.8)
    few, many = seen(ranks, 3000, 20), seen(ranks, 3000, 500)
    widths = []
    for observed, targets in ((few, 500.0), (few, None), (many, None)):
        low, high = shipped().posterior(observed, METRICS, targets=targets).interval()
        widths.append(np.log(high / low)[0, 0])
    assert widths[0] > widths[1] > widths[2]


def test_kinds_are_told_apart_by_what_is_stated_and_by_evidence():
    observed = seen(ranks_like(1000, 2000, 0.8), 1000, 50)
    assert shipped().posterior(observed, METRICS).kinds == ("unseen", "graph")
    kept = replace(observed, candidates="all")
    assert set(shipped().posterior(kept, METRICS).kinds) == {"all", "repeats", "graph"}
    assert shipped().posterior(kept, METRICS, kind="graph").kinds == ("graph",)
    with pytest.raises(InputError, match="kind must be"):
        shipped().posterior(observed, METRICS, kind="sessions")


@pytest.mark.parametrize("items", [12, 150, 10**7])
def test_any_catalogue_has_a_posterior(items):
    ranks = np.random.default_rng(0).integers(1, items + 1, 200)
    posterior = shipped().posterior(seen(ranks, items, 10), METRICS)
    low, high = posterior.interval()
    assert (low < posterior.values).all()
    assert (posterior.values < high).all()
    assert np.isfinite(high).all()


# -- several models ---------------------------------------------------------------------------


def test_chances_of_winning_add_up_and_know_the_better_model():
    good, bad = ranks_like(2000, 5000, 1.1, seed=1), ranks_like(2000, 5000, 0.5, seed=2)
    observed = [seen(each, 2000, 99, rng=at) for at, each in enumerate((good, bad, good))]
    joint = shipped().joint(observed, METRICS)
    assert (joint.chance(0, 1) > 0.99).all()
    assert joint.chance(0, 1) + joint.chance(1, 0) == pytest.approx(1.0)
    assert (np.abs(joint.chance(0, 2) - 0.5) < 0.45).all()  # two samples of the same ranks


def test_joint_posteriors_agree_with_dense_algebra(small):
    """Two models: the product of the joint prior with both likelihoods, written out."""
    observed = [seen(ranks_like(400, 900, slope, seed=7), 400, 19) for slope in (0.6, 0.8)]
    parts = [Prepared.of(each, METRICS, each.targets).moments(small) for each in observed]
    mean, covariance = together(parts, small)
    root = small.root
    inverse = np.linalg.inv(root)
    shared = inverse @ small.between @ inverse.T
    prior = np.block([[np.eye(SIZE), shared], [shared, np.eye(SIZE)]])
    precision = np.linalg.inv(prior)
    shift = np.zeros(2 * SIZE)
    for at, part in enumerate(parts):
        block = slice(at * SIZE, (at + 1) * SIZE)
        precision[block, block] += part.information[0] - np.eye(SIZE)
        shift[block] = part.information[0] @ part.mode[0]
    spread = np.linalg.inv(precision)
    moved = spread @ shift
    for metric in range(len(METRICS)):
        slopes = [part.slope[0, metric] for part in parts]
        across = slopes[0] @ spread[:SIZE, SIZE:] @ slopes[1]
        assert covariance[metric, 0, 1] == pytest.approx(across, rel=1e-4, abs=1e-9)
        first = parts[0].mean[0, metric] + slopes[0] @ (moved[:SIZE] - parts[0].mode[0])
        assert mean[0, metric] == pytest.approx(first, rel=1e-5)
    assert (covariance[:, 0, 1] > 0).all()  # what is common to the data set is common to both


# -- learning ---------------------------------------------------------------------------------


def planted(mean: np.ndarray, data_sets: int, models: int, seed: int) -> list[History]:
    """Return histories of a known law: data sets differ in slope, models a little more."""
    rng = np.random.default_rng(seed)
    histories = []
    for number in range(data_sets):
        items = int(rng.integers(800, 5000))
        grid = RankGrid.coarse(items)
        own = mean.copy()
        own[1] += 0.2 * rng.standard_normal()
        for _ in range(models):
            exponent = shapes_on(grid) @ own + np.log(grid.width)
            exponent += 0.1 * rng.standard_normal() * shapes_on(grid)[:, 1]
            mass = np.exp(exponent - exponent.max())
            counts = rng.multinomial(20_000, mass / mass.sum())
            histories.append(History(grid, counts, f"set {number}", "unseen"))
    return histories


def test_learning_finds_the_planted_law():
    mean = np.zeros(SIZE)
    mean[1], mean[0] = 0.7, 0.5
    histories = planted(mean, 16, 5, seed=1)
    learned = learn(histories, [each.evidence() for each in histories])["unseen"]
    grid = RankGrid.coarse(2000)
    curve = shapes_on(grid) @ (learned.mean - mean)
    middle = (grid.low > 1) & (grid.low < 1500)
    assert np.ptp(curve[middle]) < 0.8
    assert learned.mean[0] == pytest.approx(0.5, abs=0.15)
    between = shapes_on(grid) @ learned.between @ shapes_on(grid).T
    place = int(grid.locate(np.array([20]))[0]), int(grid.locate(np.array([1000]))[0])
    spread = between[place[0], place[0]] + between[place[1], place[1]] - 2 * between[place]
    # log 50 = 3.9 in the place v, with a standard deviation of 0.2 of the slope.
    assert np.sqrt(spread) == pytest.approx(0.2 * np.log(50), rel=0.6)


def test_a_history_of_ones_own_makes_the_next_model_surer():
    ranks = [ranks_like(3000, 8000, 1.25, seed=at) for at in range(4)]
    own = Prior.learn(ranks[:3], items=3000)
    observed = seen(ranks[3], 3000, 20)
    truth = np.log([metric.weights(ranks[3], 3000).mean() for metric in METRICS])
    plain = shipped().posterior(observed, METRICS, kind="unseen")
    better = own.posterior(observed, METRICS)
    assert (better.scale < plain.scale).all()
    errors = [np.abs(np.log(each.values[0]) - truth) for each in (plain, better)]
    assert errors[1].sum() < errors[0].sum()
    with pytest.raises(InputError, match="items must be"):
        Prior.learn(ranks[:3], items=[3000])
    with pytest.raises(InputError, match="at least one"):
        Prior.fit([])


# -- files ------------------------------------------------------------------------------------


def test_a_prior_reads_back_as_it_was_written(tmp_path):
    path = tmp_path / "own.npz"
    shipped().save(path)
    again = Prior.load(path)
    observed = seen(ranks_like(400, 300, 0.7), 400, 20)
    assert again.posterior(observed, METRICS).values == pytest.approx(
        shipped().posterior(observed, METRICS).values, rel=1e-6
    )
    np.savez(path, about=np.frombuffer(b'{"format": "another"}', np.uint8))
    with pytest.raises(FileError, match="unsample prior"):
        Prior.load(path)


def test_the_shipped_file_is_small():
    from importlib.resources import files

    path = files("unsample.estimators.prior") / "learned.npz"
    assert len(path.read_bytes()) < 200_000
