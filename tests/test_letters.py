"""Letters and places of models, against what they mean."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unsample
from unsample.answers._letters import letter_display
from unsample.errors import InputError

NAMES = "ABCDEF"
PAIRS = list(combinations(NAMES, 2))


def shared(letters, a, b):
    """Tell whether two names have a letter in common, which may have two signs (b2)."""
    return bool(set(letters[a]) & set(letters[b]))


@given(st.sets(st.sampled_from(PAIRS)))
def test_names_share_a_letter_unless_they_are_told_apart(apart):
    letters = letter_display(NAMES, apart)
    for pair in PAIRS:
        assert shared(letters, *pair) == (pair not in apart)


def test_letters_follow_the_order_of_names():
    assert letter_display("ABC", [("A", "C")]) == {"A": "a", "B": "ab", "C": "b"}
    assert letter_display("ABC", []) == {"A": "a", "B": "a", "C": "a"}
    assert letter_display("AB", [("A", "B")]) == {"A": "a", "B": "b"}


def test_no_letter_is_said_twice():
    """As many letters as there are sets of names that belong together, and no more."""
    letters = letter_display("ABCD", [("A", "D"), ("A", "C"), ("B", "D")])
    assert letters == {"A": "a", "B": "ab", "C": "bc", "D": "c"}


def test_more_than_26_letters_are_numbered():
    names = [f"m{at:02d}" for at in range(30)]
    letters = letter_display(names, combinations(names, 2))
    assert letters["m00"] == "a"
    assert letters["m25"] == "z"
    assert letters["m26"] == "a2"
    assert len(set(letters.values())) == 30


@pytest.fixture(scope="module")
def compared():
    rng = np.random.default_rng(0)
    full = {"good": 200, "fair": 210, "bad": 2000}
    ranks = {
        name: unsample.law.draw_sampled_ranks(
            rng.integers(1, most, size=3000), items=3000, sampled=99, rng=rng
        )
        for name, most in full.items()
    }
    return unsample.compare(ranks, items=3000, sampled=99, metrics=["Recall@300", "Recall@10"])


def test_places_and_letters_follow_the_verdicts(compared):
    assert compared.winner("Recall@300") is None or compared.places("Recall@300")["good"] == (1, 1)
    for metric in ("Recall@300", "Recall@10"):
        places, letters = compared.places(metric), compared.letters(metric)
        for a, b in combinations(compared.models, 2):
            winner = compared.difference(a, b, metric).winner
            assert shared(letters, a, b) == (winner is None)
            if winner is not None:
                loser = b if winner == a else a
                assert places[winner][0] < places[loser][1]
        assert all(1 <= first <= last <= 3 for first, last in places.values())
    assert compared.places("Recall@300")["bad"] == (3, 3)


def test_tables_of_three_models_show_them(compared):
    assert "places, like:" in str(compared)


def test_letters_need_all_pairs():
    ranks = {name: [1, 2, 3, 9, 40] * 20 for name in "ABC"}
    found = unsample.compare(ranks, items=500, sampled=99, metrics="Recall@50", against="A")
    with pytest.raises(InputError, match="all pairs"):
        found.letters("Recall@50")
    assert "places, like:" not in str(found)
