"""Splits: what is held out, what is left, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsample.errors import DatasetError, InputError
from unsample.lab.datasets import Interactions, Split, leave_latest_out, leave_random_out, synthetic


@st.composite
def interactions(draw):
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(0, 8), st.integers(0, 4)),
            min_size=1,
            max_size=50,
        )
    )
    user, item, time = zip(*rows, strict=True)
    return Interactions.from_pairs(user, item, time=time, users=6, items=9)


def pairs_of(user, item):
    return set(zip(user.tolist(), item.tolist(), strict=True))


def check_partition(split: Split, whole: Interactions):
    """Targets, validation and training are disjoint and together everything."""
    parts = [
        pairs_of(split.train.user, split.train.item),
        pairs_of(split.target_user, split.target_item),
    ]
    if split.validation_user is not None:
        assert split.validation_item is not None
        parts.append(pairs_of(split.validation_user, split.validation_item))
    assert sum(map(len, parts)) == len(whole)
    assert set.union(*parts) == pairs_of(whole.user, whole.item)


@given(interactions(), st.integers(1, 3), st.booleans(), st.integers(0, 3))
@pytest.mark.parametrize("leave_out", [leave_random_out, leave_latest_out])
def test_splits_are_partitions(leave_out, rows, per_user, validation, seed):
    counts = rows.count_by_user()
    if counts.max() <= per_user:
        with pytest.raises(DatasetError, match=f"more than {per_user} pairs"):
            leave_out(rows, per_user, rng=seed, validation=validation)
        return
    split = leave_out(rows, per_user, rng=seed, validation=validation)
    check_partition(split, rows)
    expected = np.where(counts > per_user, per_user, 0)
    np.testing.assert_array_equal(np.bincount(split.target_user, minlength=6), expected)
    assert split.users_without_target == int((expected == 0).sum())
    assert (np.diff(split.target_user) >= 0).all()
    left = counts - expected
    if validation:
        assert split.validation_user is not None
        held = np.bincount(split.validation_user, minlength=6)
        np.testing.assert_array_equal(held, (left > 1).astype(int))
    np.testing.assert_array_equal(split.train.count_by_user() > 0, counts > 0)
    assert (split.train.users, split.train.items) == (6, 9)
    assert split.seed == seed


@given(interactions(), st.integers(1, 2), st.integers(0, 3))
def test_the_latest_are_held_out(rows, per_user, seed):
    if rows.count_by_user().max() <= per_user:
        return
    split = leave_latest_out(rows, per_user, rng=seed, validation=True)
    time = dict(zip(zip(rows.user, rows.item, strict=True), rows.time, strict=True))
    targets = list(zip(split.target_user, split.target_item, strict=True))
    assert split.validation_user is not None
    assert split.validation_item is not None
    held_back = list(zip(split.validation_user, split.validation_item, strict=True))
    trained = list(zip(split.train.user, split.train.item, strict=True))
    for user in range(6):
        order = [
            [time[pair] for pair in part if pair[0] == user]
            for part in (trained, held_back, targets)
        ]
        for earlier, later in [(0, 1), (1, 2), (0, 2)]:
            if order[earlier] and order[later]:
                assert max(order[earlier]) <= min(order[later])


@pytest.mark.parametrize("leave_out", [leave_random_out, leave_latest_out])
def test_the_targets_do_not_depend_on_validation(leave_out):
    rows = synthetic(40, 60, pairs=500, rng=1)
    plain, with_validation = (leave_out(rows, rng=3, validation=v) for v in (False, True))
    np.testing.assert_array_equal(plain.target_item, with_validation.target_item)


def test_the_same_seed_gives_the_same_split():
    rows = synthetic(40, 60, pairs=500, rng=1)
    first, second, other = (leave_random_out(rows, 2, rng=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.target_item, second.target_item)
    assert (first.target_item != other.target_item).any()
    assert leave_random_out(rows, rng=np.random.default_rng(5)).seed is None


def test_equal_times_are_ordered_at_random():
    rows = Interactions.from_pairs(
        np.repeat(np.arange(3000), 4), np.tile(np.arange(4), 3000), time=np.zeros(12_000)
    )
    held_out = np.bincount(leave_latest_out(rows).target_item)
    # 3,000 draws of four items: 750 each, standard deviation 23.7.
    assert np.abs(held_out - 750).max() < 5 * 23.7


def test_random_targets_are_uniform_over_the_pairs_of_a_user():
    rows = Interactions.from_pairs(np.repeat(np.arange(3000), 4), np.tile(np.arange(4), 3000))
    held_out = np.bincount(leave_random_out(rows, rng=0).target_item)
    assert np.abs(held_out - 750).max() < 5 * 23.7


def test_unseen_targets_and_users_without_target_are_counted_and_printed():
    rows = Interactions.from_pairs([0, 0, 1], [0, 1, 1], time=[5, 9, 1], users=3)
    split = leave_latest_out(rows)
    assert (split.users_without_target, split.unseen_targets) == (2, 0)
    assert "2 users without a target" in repr(split)
    rows = Interactions.from_pairs([0, 0], [0, 1], time=[5, 9], name="mine")
    split = leave_latest_out(rows)
    assert split.unseen_targets == 1
    assert repr(split) == (
        "Split(mine leave-latest-out, 1 targets, 1 training pairs, 1 targets unseen in training)"
    )


def test_splits_of_a_part_say_so():
    rows = Interactions.from_pairs([0, 0], [0, 1], complete=False, note="a tenth of it")
    split = leave_random_out(rows, rng=0)
    assert not split.complete
    assert split.note == "a tenth of it"
    assert "INCOMPLETE: a tenth of it" in repr(split)


def test_without_times_the_latest_cannot_be_held_out():
    with pytest.raises(DatasetError, match=r"mine must have times.*use leave_random_out"):
        leave_latest_out(Interactions.from_pairs([0, 0], [0, 1], name="mine"))


def test_bad_numbers_are_refused():
    rows = Interactions.from_pairs([0, 0], [0, 1])
    with pytest.raises(InputError, match="per_user must be an integer of at least 1, got 0"):
        leave_random_out(rows, 0, rng=0)
    with pytest.raises(InputError, match="rng must be"):
        leave_random_out(rows, rng=-1)


def test_parts_of_a_split_must_fit():
    train = Interactions.from_pairs([0], [0])
    one, two = np.array([0]), np.array([0, 1])
    with pytest.raises(InputError, match="equally long, got 1 and 2"):
        Split(train=train, target_user=one, target_item=two)
    with pytest.raises(InputError, match="given together"):
        Split(train=train, target_user=one, target_item=one, validation_user=one)
    with pytest.raises(InputError, match="a row for each of the 1 targets, got 2"):
        Split(train=train, target_user=one, target_item=one, negatives=np.zeros((2, 9), int))
