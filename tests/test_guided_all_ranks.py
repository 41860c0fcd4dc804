"""Guided designs of metrics without a K, and how targets are grouped before some are drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.test_evaluate import World
from unsample.answers import certified_targets
from unsample.designs import Guided
from unsample.designs._guided import _PRIOR, Moved, _gains, _groups
from unsample.errors import DesignError
from unsample.metrics import parse_all

NEVER = np.iinfo(np.int64).max
METRICS = ["MRR", "NDCG", "MR", "Hits@5"]


@pytest.fixture(scope="module")
def world():
    return World(users=400, items=700, seed=3)


@pytest.fixture(scope="module")
def full(world):
    return world.run("exact", metrics=METRICS)


def test_the_plain_call_finds_how_deep_to_look(world, full):
    noisy = world.left + np.random.default_rng(0).normal(scale=0.7, size=world.left.shape)
    values, budget = [], 40_000
    for seed in range(12):
        found = world.run(
            "guided", metrics=METRICS, guide=(noisy, world.right), budget=budget, rng=seed
        )
        assert (found.design.k, found.design.beyond, found.scored) == (10, True, budget)
        assert found.drawn
        assert (found.ranks <= full.ranks).all()
        assert (full.ranks <= found.highest).all()
        values.append([found[metric].value for metric in METRICS])
        for metric in METRICS:
            low, high = found[metric].interval(0.9999, population=False)
            assert low < high
            assert low <= full[metric].value <= high
    truth = np.array([full[metric].value for metric in METRICS])
    error = np.std(values, axis=0, ddof=1) / math.sqrt(len(values))
    assert (np.abs(np.mean(values, axis=0) - truth) < 5 * error).all()


def test_enough_budget_is_exact_and_so_is_none(world, full):
    for budget in (None, 400 * 700):
        found = world.run("guided", metrics=METRICS, budget=budget)
        assert not found.drawn
        for metric in METRICS:
            assert found[metric].value == pytest.approx(full[metric].value, abs=1e-12)


@pytest.mark.parametrize(("k", "metrics", "deep"), [(None, "MRR", 10), (4, "MRR", 4)])
def test_k_says_how_deep_to_look(k, metrics, deep):
    assert Guided(k).for_metrics(parse_all(metrics), 1).k == deep
    both = parse_all(["MRR", "Hits@20"])
    assert Guided().for_metrics(both, 1).k == 20
    with pytest.raises(DesignError, match="k must be at least the largest K of the metrics, 20"):
        Guided(7).for_metrics(both, 1)


def test_gains_are_what_metrics_give_to_ranks():
    ranks = np.arange(1, 7)
    found = _gains(parse_all(["MRR", "NDCG@3", "MR", "Recall@2", "RPrec"]), 5)
    parts = [
        1 / ranks, (ranks <= 3) / np.log2(ranks + 1), np.ones(6), ranks <= 2, ranks <= 5,
    ]  # fmt: skip
    assert found == pytest.approx(np.mean(parts, axis=0))


def test_spreads_are_those_of_targets_beaten_as_often_with_such_scores():
    rng = np.random.default_rng(0)
    gains = np.array(_gains(parse_all("MRR@3"), 3))
    before = rng.integers(0, 5, 1200)
    own = rng.normal(size=1200)
    after = before + (rng.random(1200) < 1 / (1 + np.exp(3 * own)))
    moved = Moved.between(before, after, own, gains)
    loss = gains[np.minimum(before, 3)] - gains[np.minimum(after, 3)]
    was_open = before < 3
    of_all = (loss[was_open] ** 2).sum() / (gains[before[was_open]] ** 2).sum()
    for beaten in range(3):
        mine = np.flatnonzero(before == beaten)
        mine = mine[np.argsort(own[mine])]
        groups = len(mine) // 50
        assert len(moved.variances[beaten]) == groups > 2
        for number in range(groups):
            some = [t for place, t in enumerate(mine) if place * groups // len(mine) == number]
            squares = ((loss[some] - loss[some].mean()) ** 2).sum()
            wanted = (squares + _PRIOR * of_all * gains[beaten] ** 2) / (len(some) + _PRIOR)
            assert moved.variances[beaten][number] == pytest.approx(wanted)
            assert moved.means[beaten][number] == pytest.approx(loss[some].mean())
        first, last = moved.spreads(np.array([beaten] * 2), np.array([-9.0, 9.0])) ** 2
        assert first == pytest.approx(moved.variances[beaten][0])
        assert last == pytest.approx(moved.variances[beaten][-1])
        first, last = moved.losses(np.array([beaten] * 2), np.array([-9.0, 9.0]))
        assert first > 2 * last
    assert moved.spreads(np.array([3, 4]), np.zeros(2)).tolist() == [0.0, 0.0]
    alike = Moved.between(before, after, np.zeros(1200), gains)
    assert [len(each) for each in alike.variances] == [1, 1, 1]


def test_groups_have_equal_parts_of_the_spread():
    rng = np.random.default_rng(1)
    key, spread = rng.random(1000), rng.random(1000) ** 4
    group = _groups((key,), spread, 8)
    sums = np.bincount(group, spread)
    assert len(sums) == 8
    assert sums == pytest.approx(np.full(8, spread.sum() / 8), rel=0.1)
    order = np.argsort(key)
    assert (np.diff(group[order]) >= 0).all()
    assert len(set(_groups((np.zeros(50),), np.ones(50), 8).tolist())) == 1


def test_own_scores_that_tell_ranks_make_the_error_smaller():
    rng = np.random.default_rng(2)
    ranks = np.where(rng.random(2000) < 0.5, 1, rng.integers(2, 1000, 2000))
    # Nothing is met early that beats a target, but for half of those at lower ranks.
    places = np.full((2000, 10), NEVER)
    early = (ranks > 1) & (rng.random(2000) < 0.8)
    places[early, 0] = rng.integers(1, 60, early.sum())
    late = ranks > 1
    places[late & ~early, 0] = rng.integers(400, 990, int((late & ~early).sum()))
    own = rng.normal(size=2000) + 3.0 * (ranks == 1)
    options = {"items": 1000, "budget": 120_000, "metrics": parse_all("MRR"), "places": places}
    wide = []
    for given in (None, own):
        found = Guided().simulate(ranks, own=given, **options)
        low, high = certified_targets(found, options["metrics"], None)["MRR"].interval(
            population=False
        )
        assert low <= (1.0 / ranks).mean() <= high
        wide.append(high - low)
    assert wide[1] < 0.8 * wide[0]


def test_values_stay_within_what_is_certain():
    """A few users may stand for more than all can lose; a mean below zero was shown once."""
    rng = np.random.default_rng(0)
    ranks = rng.integers(1, 501, size=60)
    metrics, values = parse_all("MRR"), []
    for seed in range(20):
        found = Guided().simulate(ranks, items=500, budget=6_000, rng=seed, metrics="MRR")
        entry = certified_targets(found, metrics, None).entries[0]
        low, high = entry.interval(population=False)
        assert 0.0 <= low <= entry.value <= high
        values.append(entry.value)
    assert np.ptp(values) > 0.0
