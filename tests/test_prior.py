"""The learned prior: kinds, catalogues of any size, learning, and files."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from unsample.errors import FileError, InputError
from unsample.evidence import RankCounts
from unsample.law import Law, RankGrid
from unsample.metrics import parse_all
from unsample.prior import History, Posterior, Prior, shipped
from unsample.prior import Law as PosteriorLaw
from unsample.prior._learn import learn
from unsample.prior._shapes import SIZE, shapes_on

METRICS = parse_all(["NDCG@5", "Recall@5", "Recall@1"])


def seen(ranks: np.ndarray, items: int, sampled: int, *, rng: int = 0) -> RankCounts:
    drawn = Law(items, sampled).draw(ranks, rng=rng)
    return RankCounts.from_ranks(drawn, items=items, sampled=sampled)


def ranks_like(items: int, size: int, slope: float, seed: int = 0) -> np.ndarray:
    places = np.arange(1, items + 1)
    mass = places**-slope
    return np.random.default_rng(seed).choice(places, size, p=mass / mass.sum())


def _width(law: PosteriorLaw) -> float:
    low, high = law.interval()
    return float(np.log(high / low))


def test_the_signs_of_eigenvectors_change_nothing(monkeypatch):
    """They are those that a machine's library happens to give."""
    counts, learned = seen(ranks_like(300, 800, 0.7), 300, 19), shipped().learned["unseen"]
    own = Prior({"unseen": learned})
    usual = Posterior.of(counts, own, kind="unseen").law(METRICS[0])
    assert learned.root @ learned.root.T == pytest.approx(
        learned.between + learned.within, rel=1e-9, abs=1e-9
    )
    plain, signs = np.linalg.eigh, np.where(np.arange(SIZE) % 3 == 0, -1.0, 1.0)

    def turned(matrix):
        values, vectors = plain(matrix)
        return values, vectors * signs

    monkeypatch.setattr(np.linalg, "eigh", turned)
    fresh = replace(own, learned={"unseen": replace(learned)})  # roots may be kept
    again = Posterior.of(counts, fresh, kind="unseen").law(METRICS[0])
    assert again.mean == pytest.approx(usual.mean, rel=1e-9)
    assert again.interval() == pytest.approx(usual.interval(), rel=1e-9)


def test_more_targets_and_more_items_make_it_surer():
    ranks = ranks_like(3000, 5000, 0.8)
    samples = seen(ranks[:500], 3000, 20), seen(ranks, 3000, 20), seen(ranks, 3000, 500)
    widths = [_width(Posterior.of(each, shipped()).law("NDCG@5")) for each in samples]
    assert widths[0] > widths[1] > widths[2]


def test_kinds_are_told_apart_by_what_is_stated():
    counts = seen(ranks_like(1000, 2000, 0.8), 1000, 50)
    assert Posterior.of(counts, shipped(), candidates="unseen").kinds == ("unseen",)
    assert set(Posterior.of(counts, shipped(), candidates="all").kinds) == {"all", "repeats"}
    assert Posterior.of(counts, shipped(), kind="graph").kinds == ("graph",)
    with pytest.raises(InputError, match="kind must be"):
        Posterior.of(counts, shipped(), kind="sessions")


@pytest.mark.parametrize("items", [12, 150, 10**7])
def test_any_catalogue_has_a_posterior(items):
    ranks = np.random.default_rng(0).integers(1, items + 1, 200)
    posterior = Posterior.of(seen(ranks, items, 10), shipped())
    for metric in METRICS:
        law = posterior.law(metric)
        low, high = law.interval()
        assert 0.0 < low < law.value() < high < np.inf


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
    counts = seen(ranks[3], 3000, 20)
    plain, better = (
        [Posterior.of(counts, prior, kind="unseen").law(metric) for metric in METRICS]
        for prior in (shipped(), own)
    )
    truth = [metric.weights(ranks[3], 3000).mean() for metric in METRICS]
    errors = np.log([[law.value() for law in laws] for laws in (plain, better)] / np.array(truth))
    assert all(_width(a) > _width(b) for a, b in zip(plain, better, strict=True))
    assert np.abs(errors).max() < 0.1
    with pytest.raises(InputError, match="items must be"):
        Prior.learn(ranks[:3], items=[3000])
    with pytest.raises(InputError, match="at least one"):
        Prior.fit([])


# -- files ------------------------------------------------------------------------------------


def test_a_prior_reads_back_as_it_was_written(tmp_path):
    path = tmp_path / "own.npz"
    shipped().save(path)
    counts = seen(ranks_like(400, 300, 0.7), 400, 20)
    one, two = (
        Posterior.of(counts, prior).law("NDCG@5").value() for prior in (shipped(), Prior.load(path))
    )
    assert one == pytest.approx(two, rel=1e-6)
    assert Prior.load(path).note == shipped().note
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(FileError):
        Prior.load(path)
    np.savez(path, about=np.frombuffer(b'{"format": "another"}', np.uint8))
    with pytest.raises(FileError, match="unsample prior"):
        Prior.load(path)


def test_the_shipped_file_is_small():
    assert len((files("unsample.prior") / "learned.npz").read_bytes()) < 200_000
