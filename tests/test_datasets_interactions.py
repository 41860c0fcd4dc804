"""`Interactions`: merging, ranges, filters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsample.errors import DatasetError, InputError
from unsample.lab.datasets import Interactions

pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=40)


@given(pairs)
def test_repeated_pairs_are_merged_and_counted(rows):
    user, item = zip(*rows, strict=True)
    merged = Interactions.from_pairs(user, item)
    assert list(zip(merged.user, merged.item, strict=True)) == sorted(set(rows))
    assert len(merged) + merged.merged == len(rows)


@given(pairs, st.data())
def test_the_latest_of_repeated_pairs_is_kept(rows, data):
    times = data.draw(st.lists(st.integers(0, 50), min_size=len(rows), max_size=len(rows)))
    user, item = zip(*rows, strict=True)
    merged = Interactions.from_pairs(user, item, time=times, rating=np.arange(len(rows)))
    latest: dict[tuple[int, int], tuple[int, int]] = {}
    for row, (pair, time) in enumerate(zip(rows, times, strict=True)):
        latest[pair] = max(latest.get(pair, (-1, -1)), (time, row))
    assert merged.time is not None
    assert merged.rating is not None
    assert merged.time.tolist() == [latest[pair][0] for pair in sorted(latest)]
    assert merged.rating.tolist() == [latest[pair][1] for pair in sorted(latest)]


def test_without_times_the_last_row_is_kept():
    merged = Interactions.from_pairs([0, 0, 0], [1, 1, 1], rating=[3.0, 1.0, 2.0])
    assert merged.rating is not None
    assert merged.rating.tolist() == [2.0]
    assert merged.merged == 2


def test_the_matrix_has_a_one_for_each_pair():
    matrix = Interactions.from_pairs([0, 2], [1, 0], users=4, items=3).matrix()
    assert matrix.shape == (4, 3)
    assert matrix.dtype == np.float32
    assert matrix.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_counts_cover_users_and_items_without_pairs():
    rows = Interactions.from_pairs([0, 2, 2], [1, 0, 1], users=4, items=3)
    assert rows.count_by_user().tolist() == [1, 0, 2, 0]
    assert rows.count_by_item().tolist() == [1, 2, 0]
    assert rows.density == 3 / 12


@given(pairs, st.integers(1, 4), st.integers(1, 4))
def test_at_least_leaves_nobody_below(rows, per_user, per_item):
    user, item = zip(*rows, strict=True)
    before = Interactions.from_pairs(user, item)
    try:
        after = before.at_least(per_user=per_user, per_item=per_item)
    except DatasetError:
        return
    assert after.count_by_user().min() >= per_user
    assert after.count_by_item().min() >= per_item
    assert after.user_ids is not None
    assert after.item_ids is not None
    kept = set(zip(after.user_ids[after.user], after.item_ids[after.item], strict=True))
    assert kept <= set(rows)


def test_a_filter_that_leaves_nothing_says_so():
    with pytest.raises(DatasetError, match=r"mine must keep some of its 2 pairs.*per_user=3"):
        Interactions.from_pairs([0, 1], [0, 0], name="mine").at_least(per_user=3)


def test_filters_compose_the_former_ids():
    rows = Interactions.from_pairs([0, 1, 1, 2, 2], [0, 1, 2, 1, 2], user_ids=np.array([7, 8, 9]))
    kept = rows.at_least(per_user=2).at_least(per_item=2)
    assert kept.user_ids is not None
    assert kept.user_ids.tolist() == [8, 9]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"user": [0, -1], "item": [0, 1]}, r"user must be in 0..users-1.*got -1 at position 1"),
        ({"user": [0, 1], "item": [0, 5], "items": 3}, r"item must be in .*0\.\.2, got 5"),
        ({"user": [0, 1], "item": [0]}, r"item must have shape \(2,\)"),
        ({"user": [0.5], "item": [0]}, "user must be whole numbers"),
        ({"user": [0], "item": [0], "rating": [1.0, 2.0]}, "rating must have shape"),
        ({"user": [0], "item": [0], "user_ids": np.array([1, 2])}, "user_ids must have shape"),
        ({"user": [], "item": []}, "must hold at least one pair"),
    ],
)
def test_bad_pairs_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Interactions.from_pairs(**arguments)


def test_the_text_tells_what_is_missing():
    rows = Interactions.from_pairs([0, 0], [0, 0], name="part", complete=False, note="half of it")
    assert "1 repeated row merged" in repr(rows)
    assert "INCOMPLETE: half of it" in repr(rows)
