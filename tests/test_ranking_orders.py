"""The keyed orders: permutations, alike in law to shuffles, and the same however they are asked."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, hypergeom

from unsample.designs.ranking import Orders
from unsample.designs.ranking._orders import target_keys


def orders(sizes, seed=0):
    rows = np.arange(len(sizes))
    return Orders(np.asarray(sizes, dtype=np.int64), target_keys(seed, rows, rows))


def from_start(some, count):
    return some.positions(np.zeros(len(some.size), dtype=np.int64), count)


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 2000), min_size=1, max_size=8),
    seed=st.integers(0, 2**63 - 1),
)
def test_every_order_holds_every_place_once(sizes, seed):
    some = orders(sizes, seed)
    places = from_start(some, max(sizes))
    for size, row in zip(sizes, places, strict=True):
        assert (np.sort(row[:size]) == np.arange(size)).all()


@pytest.mark.parametrize("size", [255, 256, 257, 65_535, 65_536, 65_537, 10**6, 2**32])
def test_orders_of_any_size_stay_inside_and_never_repeat(size):
    places = from_start(orders([size]), min(size, 20_000))[0]
    assert places.min() >= 0
    assert places.max() < size
    assert len(np.unique(places)) == len(places)


def test_an_order_does_not_depend_on_how_much_is_asked_at_a_time():
    some = orders([10, 300, 5000, 10**6])
    whole = from_start(some, 60)
    parts = [some.positions(np.full(4, start), 20) for start in (0, 20, 40)]
    inside = np.arange(60) < some.size[:, None]
    assert (np.concatenate(parts, axis=1) == whole)[inside].all()
    one = Orders(some.size[2:3], some.keys[2:3])
    assert (from_start(one, 60) == whole[2]).all()


@pytest.mark.parametrize("size", [3, 4, 5])
def test_all_orders_of_a_few_items_are_equally_likely(size):
    rows = 24_000
    places = from_start(orders(np.full(rows, size)), size)
    found, times = np.unique(places @ size ** np.arange(size), return_counts=True)
    expected = rows / factorial(size)
    statistic = ((times - expected) ** 2 / expected).sum() + expected * (
        factorial(size) - len(found)
    )
    assert statistic < chi2.ppf(0.9999, factorial(size) - 1)


@pytest.mark.parametrize(
    ("size", "better", "sampled"), [(100, 30, 20), (1000, 10, 200), (16_979, 200, 500)]
)
def test_how_many_of_the_better_items_come_first_follows_the_hypergeometric_law(
    size, better, sampled
):
    rows = 20_000
    beaten = np.concatenate(
        [
            (from_start(orders(np.full(1000, size), seed), sampled) < better).sum(axis=1)
            for seed in range(rows // 1000)
        ]
    )
    times = np.bincount(beaten, minlength=better + 1)
    expected = rows * hypergeom.pmf(np.arange(better + 1), size, better, sampled)
    kept = expected > 10
    statistic = ((times[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    assert statistic < chi2.ppf(0.9999, kept.sum() - 1)


def test_neighbours_in_an_order_are_independent():
    # Where the first item stands says nothing on where the second and the hundredth stand.
    places = from_start(orders(np.full(40_000, 3000)), 100) / 3000
    for other in (1, 2, 99):
        correlation = np.corrcoef(places[:, 0], places[:, other])[0, 1]
        assert abs(correlation) < 5 / np.sqrt(len(places))
        table, _, _ = np.histogram2d(places[:, 0], places[:, other], bins=10, range=[[0, 1]] * 2)
        assert ((table - 400) ** 2 / 400).sum() < chi2.ppf(0.9999, 81) * 1.2


def test_draws_are_uniform_and_counted():
    some = orders(np.full(500, 7))
    drawn = some.draws(np.zeros(500, dtype=np.int64), 40)
    again = np.concatenate([some.draws(np.full(500, k), 10) for k in (0, 10, 20, 30)], axis=1)
    assert (drawn == again).all()
    times = np.bincount(drawn.ravel(), minlength=7)
    expected = drawn.size / 7
    assert ((times - expected) ** 2 / expected).sum() < chi2.ppf(0.9999, 6)


def test_keys_differ_by_seed_user_and_target():
    users, targets = np.divmod(np.arange(10_000), 100)
    keys = np.concatenate([target_keys(seed, users, targets) for seed in range(3)])
    assert len(np.unique(keys)) == 30_000


def test_a_target_takes_any_place_among_its_ties_and_ties_agree():
    some = orders(np.full(4000, 50))
    row = np.repeat(np.arange(4000), 3)
    item = np.tile(np.arange(3), 4000)
    lost = some.tie_is_lost(row, item)
    assert (lost == some.tie_is_lost(row, item)).all()
    times = np.bincount(lost.reshape(-1, 3).sum(axis=1), minlength=4)
    assert ((times - 1000) ** 2 / 1000).sum() < chi2.ppf(0.9999, 3)
