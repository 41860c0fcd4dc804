"""The synthetic generator: reproducible, of the stated size, and worth learning from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unsample.errors import InputError
from unsample.lab.datasets import leave_random_out, synthetic


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(6, 60), st.integers(0, 10), st.data())
def test_the_size_is_as_asked(users, items, seed, data):
    pairs = data.draw(st.integers(3 * users, (items // 2) * users))
    made = synthetic(users, items, pairs=pairs, rng=seed)
    assert (made.users, made.items, len(made), made.merged) == (users, items, pairs, 0)
    counts = made.count_by_user()
    assert counts.min() >= 3
    assert counts.max() <= items // 2
    assert made.time is not None
    assert sorted(made.time) == list(range(pairs))


def test_the_same_seed_gives_the_same_data():
    first, second, other = (synthetic(50, 70, rng=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.pair_keys(), second.pair_keys())
    np.testing.assert_array_equal(first.time, second.time)
    assert not np.array_equal(first.pair_keys(), other.pair_keys())


def test_few_items_are_popular_and_few_users_busy():
    made = synthetic(3000, 1500, pairs=90_000, rng=0)
    popularity = np.sort(made.count_by_item())[::-1]
    activity = made.count_by_user()
    assert popularity[:150].sum() > 0.35 * len(made)
    # On a log-log scale popularity falls close to a line through its middle.
    places = np.arange(10, 700)
    slope, _ = np.polyfit(np.log(places + 1), np.log(popularity[places]), 1)
    assert -1.2 < slope < -0.3
    assert 1.3 < activity.mean() / np.median(activity) < 1.7
    assert np.log(activity[activity > 3]).std() == pytest.approx(0.85, abs=0.15)


def test_item_ids_say_nothing_about_popularity():
    counts = synthetic(2000, 1000, rng=0).count_by_item()
    assert abs(np.corrcoef(np.arange(1000), counts)[0, 1]) < 0.1


def test_popularity_zero_makes_items_alike():
    made = synthetic(2000, 200, pairs=40_000, popularity=0.0, taste=0.0, rng=0)
    counts = made.count_by_item()
    # Binomial with mean 200: the spread is that of chance.
    assert counts.std() == pytest.approx(np.sqrt(200 * 0.9), rel=0.3)


def hit_rate(scores, split, k=10):
    scores = scores.copy()
    scores[split.train.user, split.train.item] = -np.inf
    target = scores[split.target_user, split.target_item]
    ranks = 1 + (scores[split.target_user] > target[:, None]).sum(axis=1)
    return (ranks <= k).mean()


def ease(split, regularisation):
    seen = split.train.matrix().toarray().astype(np.float64)
    inverse = np.linalg.inv(seen.T @ seen + regularisation * np.eye(seen.shape[1]))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return seen @ weights


def test_tastes_can_be_learnt_and_without_them_popularity_is_best():
    split = leave_random_out(synthetic(1000, 400, pairs=30_000, rng=0), rng=0)
    popular = np.tile(split.train.count_by_item().astype(float), (1000, 1))
    assert hit_rate(ease(split, 100.0), split) > 1.3 * hit_rate(popular, split)
    split = leave_random_out(synthetic(1000, 400, pairs=30_000, taste=0.0, rng=0), rng=0)
    popular = np.tile(split.train.count_by_item().astype(float), (1000, 1))
    assert hit_rate(ease(split, 100.0), split) <= 1.05 * hit_rate(popular, split)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"users": 0, "items": 10}, "users must be an integer of at least 1"),
        ({"users": 10, "items": 1}, "items must be an integer of at least 2"),
        ({"users": 10, "items": 10, "pairs": 20}, r"pairs must be .*at least 30 and at most 50"),
        ({"users": 10, "items": 10, "pairs": 51}, r"a user has 3 \(fewest\) to 5 \(half"),
        ({"users": 10, "items": 10, "fewest": 6}, "fewest must be .* at most 5"),
        ({"users": 10, "items": 10, "taste": -1.0}, "taste must be a finite number of at least 0"),
        ({"users": 10, "items": 10, "factors": 0}, "factors must be"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        synthetic(**options, rng=0)
