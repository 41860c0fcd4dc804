"""Samples of many sizes: ranks in smaller samples, groups of sizes, and what they cost."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import unsample
from unsample.counts import _sample_sizes as samples
from unsample.counts import in_smaller_sample, sample_groups
from unsample.errors import DesignError
from unsample.sampling import SamplingModel, draw_sampled_ranks

pytestmark = pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")

ITEMS = 3000
METRICS = ["NDCG@10", "Recall@10", "Recall@50", "MRR", "Recall@300"]


def _full_ranks(size: int, rng: np.random.Generator) -> np.ndarray:
    return np.ceil(ITEMS * rng.beta(0.4, 2.0, size)).astype(np.int64).clip(1, ITEMS)


def _drawn(sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    full = _full_ranks(len(sizes), rng)
    return 1 + rng.binomial(sizes, (full - 1) / (ITEMS - 1))


# -- a sample of a sample -------------------------------------------------------------------------


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize(("size", "smaller"), [(40, 40), (40, 39), (60, 41), (300, 40)])
def test_a_sample_of_a_sample_is_a_sample(size, smaller, replacement):
    rank, ranks = np.array([1.0, 2.0, 7.0, 60.0, 333.0, 400.0]), np.arange(1, size + 2)
    starts = np.array([1, 2, 3, 8, 20, 36])
    probabilities = in_smaller_sample(np.full(size + 1, size), ranks, smaller, starts).toarray()
    found = probabilities.T @ SamplingModel(400, size, replacement).pmf(ranks[:, None], rank)
    every = SamplingModel(400, smaller, replacement).pmf(np.arange(1, smaller + 2)[:, None], rank)
    assert found == pytest.approx(np.add.reduceat(every, starts - 1, axis=0), abs=1e-9)


def test_probabilities_do_not_depend_on_how_many_are_computed_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = rng.integers(100, 110, 300)
    ranks, starts = rng.integers(1, 102, 300), np.arange(1, 102)
    whole = in_smaller_sample(sizes, ranks, 100, starts).toarray()
    monkeypatch.setattr(samples, "_ROOM", 50)
    assert in_smaller_sample(sizes, ranks, 100, starts).toarray() == pytest.approx(whole, abs=1e-14)
    assert whole.sum(axis=1) == pytest.approx(1.0)
    at_least = np.maximum(1, ranks - (sizes - 100))
    assert (whole.argmax(axis=1) + 1 >= at_least).all()
    assert (whole.argmax(axis=1) + 1 <= ranks).all()


def test_few_sizes_stand_alone_and_many_in_narrow_groups():
    few = np.arange(50, 800, 50)
    assert (sample_groups(few) == few).all()
    many = np.arange(99, 1099)
    group = sample_groups(many)
    assert len(np.unique(group)) <= 32
    assert (group <= many).all()
    assert (many / group < 1.09).all()
    assert (many / sample_groups(many)).mean() < 1.04


# -- one posterior and one set of bounds from many sizes -------------------------------------------


def test_groups_of_sizes_give_the_numbers_of_single_sizes(monkeypatch):
    rng = np.random.default_rng(1)
    sizes = rng.choice(np.arange(50, 451, 8), 1000)
    ranks = _drawn(sizes, rng)

    def found() -> list[np.ndarray]:
        result = unsample.estimate(
            ranks, items=ITEMS, sampled=sizes, protocol="unseen", metrics=METRICS
        )
        rows = [(each.value, *each.interval(), *each.bounds()) for each in result.entries]
        return np.split(np.transpose(rows), [3])

    (value, low, high), (least, most) = found()
    monkeypatch.setattr(samples, "_FEW_SIZES", 10**9)
    (exact, exact_low, exact_high), _ = found()
    half = (exact_high - exact_low) / 2.0
    assert np.abs(value - exact) / half == pytest.approx(0.0, abs=0.06)
    assert (high - low) / (2.0 * half) == pytest.approx(1.0, abs=0.04)
    assert (least <= value).all()
    assert (value <= most).all()


def test_bounds_of_groups_hold_where_sizes_go_with_ranks():
    """Those ranked first have the largest samples, so that no one size tells of all targets."""
    rng = np.random.default_rng(2)
    full = np.sort(_full_ranks(4000, rng))[::-1]
    sizes = np.linspace(400, 425, 4000).astype(np.int64)
    ranks = 1 + rng.binomial(sizes, (full - 1) / (ITEMS - 1))
    result = unsample.estimate(
        ranks, items=ITEMS, sampled=sizes, metrics=["Recall@50", "Recall@300"]
    )
    for name, cutoff in (("Recall@50", 50), ("Recall@300", 300)):
        low, high = result[name].bounds()
        assert low <= (full <= cutoff).mean() <= high
        assert high - low < 0.5


# -- memory ---------------------------------------------------------------------------------------


def _peak(call) -> float:
    """Return the memory in MB that a call needs at most."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _one_by_one(rng):
    """Return 1,000 rows, each with a sample of its own size."""
    sizes = np.arange(99, 1099)
    return {"ranks": _drawn(sizes, rng), "items": ITEMS, "sampled": sizes}


def _of_many_users(rng):
    sizes = rng.integers(50, 1001, 10_000)
    return {"ranks": _drawn(sizes, rng), "items": ITEMS, "sampled": sizes}


def _of_several_targets(rng):
    """Return users with lists of their own sizes, and up to five targets in each."""
    users = np.repeat(np.arange(1000), rng.integers(1, 6, 1000))
    sizes = rng.integers(50, 1001, 1000)[users]
    return {"ranks": _drawn(sizes, rng), "items": ITEMS, "sampled": sizes, "users": users}


def _of_many_catalogues(rng):
    """Return a tenth of each user's own catalogue, which all differ."""
    items = rng.integers(1000, 4_000, 1000)
    full = 1 + np.floor((items - 1) * rng.beta(0.4, 2.0, 1000)).astype(np.int64)
    sizes = items // 10
    ranks = 1 + rng.binomial(sizes, (full - 1) / (items - 1))
    return {"ranks": ranks, "items": items, "sampled": sizes}


@pytest.mark.parametrize(
    "draw", [_one_by_one, _of_many_users, _of_several_targets, _of_many_catalogues]
)
def test_samples_of_many_sizes_take_little_memory(draw):
    given = draw(np.random.default_rng(3))
    metrics = "NDCG@10"
    assert _peak(lambda: unsample.estimate(**given, protocol="unseen", metrics=metrics)) < 300.0


def test_a_comparison_of_samples_of_many_sizes_takes_little_memory():
    rng = np.random.default_rng(4)
    given = _one_by_one(rng)
    models = {"a": given.pop("ranks"), "b": _drawn(given["sampled"], rng)}
    call = lambda: unsample.compare(models, **given, protocol="unseen", metrics="NDCG@10")  # noqa: E731
    assert _peak(call) < 500.0


def test_maximum_entropy_refuses_more_ranks_than_it_can_solve_for():
    rng = np.random.default_rng(5)
    given = _of_many_users(rng)
    with pytest.raises(DesignError, match=r"mes solves a system .* at most 5000, got \d+; use mle"):
        unsample.estimate(**given, metrics="Recall@50", method="mes")


def test_sampled_ranks_of_full_lists_are_known_beside_samples_of_many_sizes():
    """Some users ranked in full are known, however many sizes of samples the others have."""
    rng = np.random.default_rng(6)
    full = _full_ranks(1500, rng)
    sizes = np.where(np.arange(1500) < 500, ITEMS - 1, rng.integers(50, 400, 1500))
    ranks = np.concatenate([
        full[:500],
        [draw_sampled_ranks(r, items=ITEMS, sampled=int(n), replacement=False, rng=rng)
         for r, n in zip(full[500:], sizes[500:], strict=True)],
    ])  # fmt: skip
    result = unsample.estimate(
        ranks,
        items=ITEMS,
        sampled=sizes,
        negatives=unsample.Negatives(replacement=False),
        metrics="Recall@50",
    )
    low, high = result["Recall@50"].interval(0.99)
    assert low <= (full <= 50).mean() <= high


# -- lists that grow with the number of targets ----------------------------------------------------


def _growing_lists(seed, *, negatives: int, users: int = 1200):
    """Return scored lists with so many items for each of a user's targets, and the true metrics.

    Users have one to five targets. Their lists are drawn from what is not a target of theirs.
    """
    rng = np.random.default_rng(seed)
    several = rng.integers(1, 6, users)
    parts, best, hits = [], [], []
    for user, count in enumerate(several.tolist()):
        own = np.unique(_full_ranks(count, rng))
        others = np.setdiff1d(np.arange(1, ITEMS + 1), own)
        drawn = rng.choice(others, negatives * len(own), replace=False)
        target = np.repeat([True, False], [len(own), len(drawn)])
        parts.append((np.full(len(target), user), -np.append(own, drawn), target))
        best.append(own.min())
        hits.append((own <= 10).mean())
    user, score, target = (np.concatenate(each) for each in zip(*parts, strict=True))
    first = np.array(best)
    true = {"HR@10": (first <= 10).mean(), "MRR": (1 / first).mean(), "Recall@10": np.mean(hits)}
    return {"user": user, "score": score.astype(float), "target": target}, true


@pytest.mark.parametrize("seed", range(3))
def test_lists_that_grow_with_the_number_of_targets_are_estimated(seed):
    """The best of five ranks is better than the best of two: one P(R) would contradict both."""
    table, true = _growing_lists(seed, negatives=100)
    result = unsample.estimate(table, items=ITEMS, protocol="unseen", metrics=list(true))
    assert result.warnings == ()
    for name, truth in true.items():
        low, high = result[name].interval(0.99)
        assert low <= truth <= high
        assert high - low < 0.15
