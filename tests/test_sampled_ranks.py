"""Ranks from the scores of targets and of the items sampled for them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unsample import sampled_ranks
from unsample.errors import InputError, ScoreError

#: Few values, so that ties are common, and the infinite ones among them.
SCORES = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf])
SHAPES = st.tuples(st.integers(1, 6), st.integers(1, 7))


@st.composite
def scored(draw):
    rows, columns = draw(SHAPES)
    return draw(arrays(float, rows, elements=SCORES)), draw(
        arrays(float, (rows, columns), elements=SCORES)
    )


def slow(own, others):
    """Return the best and the worst rank of each target, by a loop."""
    return [
        (1 + sum(x > aim for x in row), 1 + sum(x >= aim for x in row))
        for aim, row in zip(own.tolist(), others.tolist(), strict=True)
    ]


@given(scored(), st.integers(0, 99))
def test_ranks_are_those_of_a_loop(given_scores, seed):
    best, worst = zip(*slow(*given_scores), strict=True)
    assert sampled_ranks(*given_scores, ties="optimistic").tolist() == list(best)
    assert sampled_ranks(*given_scores, ties="pessimistic").tolist() == list(worst)
    drawn = sampled_ranks(*given_scores, rng=seed)
    assert drawn.dtype == np.int64
    assert ((np.array(best) <= drawn) & (drawn <= worst)).all()
    assert np.array_equal(drawn, sampled_ranks(*given_scores, rng=seed))


@given(scored())
def test_only_the_order_of_scores_and_no_order_of_items_matters(given_scores):
    own, others = given_scores
    for same in ((np.arctan(own), np.arctan(others)), (own, others[:, ::-1])):
        assert np.array_equal(sampled_ranks(*same), sampled_ranks(own, others))


def test_a_tied_target_is_placed_anywhere_among_its_ties():
    ranks = sampled_ranks(np.zeros(20_000), np.zeros((20_000, 9)), rng=1)
    # Each of ten places takes a tenth; five standard deviations.
    assert np.abs(np.bincount(ranks, minlength=11)[1:] - 2000).max() < 5 * np.sqrt(20_000 * 0.09)


def test_arrays_tensors_and_lists_give_the_same():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    own, others = rng.normal(size=30).astype(np.float32), rng.normal(size=(30, 9))
    wanted = sampled_ranks(own, others)
    assert np.array_equal(sampled_ranks(own.tolist(), others.tolist()), wanted)
    tensors = torch.tensor(own, requires_grad=True), torch.as_tensor(others)
    assert np.array_equal(sampled_ranks(*tensors), wanted)
    half = [each.bfloat16() for each in tensors]
    assert np.array_equal(sampled_ranks(*half), sampled_ranks(*(each.float() for each in half)))


@pytest.mark.parametrize(
    ("own", "others", "message"),
    [
        ([[1.0]], [[1.0]], r"target_scores must be a list of one score .* got shape \(1, 1\)"),
        ([], [[1.0]], r"target_scores must be a list .* got shape \(0,\)"),
        ([1.0, 2.0], [1.0, 2.0], r"a row for each of 2 targets, got shape \(2,\).*'shared'"),
        ([1.0, 2.0], [[1.0, 2.0]], r"a row for each of 2 targets, got shape \(1, 2\)"),
        ([1.0], [[]], r"a row for each of 1 targets, got shape \(1, 0\)"),
        ([1.0, 2.0], [[1.0], [1.0, 2.0]], "negative_scores must be .* rows of one length"),
        ([np.nan], [[1.0]], "target_scores must not be NaN, got 1 of 1"),
        ([1.0, 1.0], [[1.0], [np.nan]], "negative_scores must not be NaN.*in row 1; -inf may"),
        (["a"], [[1.0]], "target_scores must be real numbers, got values of type <U1"),
        ([1j], [[1.0]], "target_scores must be real numbers, got values of type complex"),
    ],
)
def test_bad_scores_are_named(own, others, message):
    with pytest.raises(ScoreError, match=message):
        sampled_ranks(own, others)


def test_bad_rules_are_named():
    for options in ({"ties": "realistic"}, {"ties": "randm"}, {"rng": -1}):
        with pytest.raises(InputError, match=r"ties must be one of|rng must be"):
            sampled_ranks([1.0], [[1.0]], **options)
