"""The prior and its posterior: against brute force and planted laws, kinds, learning, files."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from unsample.errors import FileError, InputError
from unsample.evidence import RankCounts
from unsample.lab import load_ranks
from unsample.law import Law, bin_weights, draw_sampled_ranks
from unsample.metrics import parse, parse_all
from unsample.prior import Law as PosteriorLaw
from unsample.prior import Posterior, Prior, shipped
from unsample.prior._seen import _condensed_ranges
from unsample.prior._shapes import shapes_on

METRICS = parse_all(["NDCG@5", "Recall@5", "Recall@1"])
ITEMS, SAMPLED = 2000, 99


@cache
def real() -> RankCounts:
    """Return sampled ranks of a recommender."""
    full = load_ranks("ml-1m", "ease", candidates="unseen")
    return seen(full.ranks, int(np.max(full.items)), SAMPLED)


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


def zipf(size: int, rng: np.random.Generator) -> np.ndarray:
    weights = 1.0 / (np.arange(1, ITEMS + 1) + 5.0)
    return rng.choice(np.arange(1, ITEMS + 1), size=size, p=weights / weights.sum())


# -- against brute force --------------------------------------------------------------------------


def test_the_posterior_is_that_of_weighted_curves() -> None:
    """Curves drawn from the prior, weighted by their likelihood, have these moments."""
    rng = np.random.default_rng(3)
    counts = seen(zipf(80, rng), ITEMS, SAMPLED, rng=3)
    prior = shipped().calibrated(dict.fromkeys(shipped().learned, (1.0, 1.0)))
    found = Posterior.of(counts, prior, kind="unseen")
    law = found.law("Recall@50", population=False)
    learned, stratum = prior.learned["unseen"], found.seen[0].strata[0]
    drawn = learned.mean + rng.standard_normal((60_000, len(learned.mean))) @ learned.root
    exponent = drawn @ shapes_on(stratum.grid).T + np.log(stratum.grid.width)
    mass = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    mass /= mass.sum(axis=1, keepdims=True)
    mixture = mass @ stratum.likelihood.T
    fit = 80 * (np.log(mixture) @ stratum.shares)
    weight = np.exp(fit - fit.max())
    weight /= weight.sum()
    assert 1.0 / (weight**2).sum() > 200
    metric = bin_weights(parse("Recall@50"), stratum.grid, ITEMS)
    given = mass * ((stratum.shares / mixture) @ stratum.likelihood)
    logs = np.log(given @ metric)
    mean = float(weight @ logs)
    variance = float(weight @ (logs - mean) ** 2)
    open_variance = float(law.users[0, 0] + law.prior[0, 0]) - variance
    assert law.mean[0] == pytest.approx(mean, abs=0.3 * np.sqrt(variance))
    # What is left is what the cells leave open of these users' own ranks.
    cells = stratum.likelihood * (weight @ mass)
    first = cells @ metric / cells.sum(axis=1)
    second = cells @ metric**2 / cells.sum(axis=1)
    expected = float(stratum.shares @ (second - first**2)) / 80 / np.exp(2 * mean)
    assert open_variance == pytest.approx(expected, abs=0.35 * (variance + expected))


def test_exact_ranks_leave_nothing_open() -> None:
    ranks = zipf(500, np.random.default_rng(9))
    counts = RankCounts.from_ranks(ranks, items=ITEMS, sampled=ITEMS - 1, replacement=False)
    found = Posterior.of(counts, shipped(), kind="unseen")
    low, high = found.law("Recall@100", population=False).interval()
    share = float((ranks <= 100).mean())
    assert low == pytest.approx(share, rel=2e-3)
    assert high == pytest.approx(share, rel=2e-3)
    low, high = found.law("Recall@100").interval()
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt(share * (1 - share) / 500), rel=0.1)


# -- kinds, sizes, and whether it fits ------------------------------------------------------------


def test_kinds_are_told_apart_by_what_is_stated():
    counts = seen(ranks_like(1000, 2000, 0.8), 1000, 50)
    assert Posterior.of(counts, shipped(), candidates="unseen").kinds == ("unseen",)
    assert set(Posterior.of(counts, shipped(), candidates="all").kinds) == {"all", "repeats"}
    assert Posterior.of(counts, shipped(), kind="graph").kinds == ("graph",)
    with pytest.raises(InputError, match="kind must be"):
        Posterior.of(counts, shipped(), kind="sessions")


def test_data_unlike_the_bank_get_bounds() -> None:
    full = load_ranks("ml-1m", "ease", candidates="unseen")
    items = int(np.max(full.items))
    ranks = full.ranks.astype(np.int64).copy()
    ranks[: int(0.4 * len(ranks))] = 61
    drawn = draw_sampled_ranks(ranks, items=items, sampled=SAMPLED, rng=0)
    strange = RankCounts.from_ranks(drawn, items=items, sampled=SAMPLED)
    few = RankCounts.from_ranks(drawn[:40], items=items, sampled=SAMPLED)
    sources = [
        Posterior.of(each, shipped(), candidates="unseen").law("NDCG@10").sources[0]
        for each in (real(), strange, few)
    ]
    assert sources == ["prior", "bounds", "bounds"]


@pytest.mark.parametrize("n", [3, 31, 3000])
def test_sampled_ranks_stand_together_within_half_a_standard_error(n):
    low, high = _condensed_ranges(*np.array([[1, n], [1, n]]), n)
    assert (low[0], high[-1]) == (1, n)
    assert (low[1:] == high[:-1] + 1).all()
    assert (low[:10] == np.arange(1, min(n, 10) + 1)).all()
    # The angle arcsin(sqrt(theta)) has the standard error 1/(2 sqrt(n)) everywhere.
    angle = np.arcsin(np.sqrt(np.append(low - 1, n) / n))
    assert (np.diff(angle)[high > low] <= 2 * 0.25 / np.sqrt(n)).all()
    # Ranges as they came are kept, and gaps are filled.
    mixed = _condensed_ranges(np.array([1, 2]), np.array([1, 3]), 4)
    assert np.transpose(mixed).tolist() == [[1, 1], [2, 3], [4, 4]]


# -- learning and files ---------------------------------------------------------------------------


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
