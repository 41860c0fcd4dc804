"""Ranks from scores, against slow references and in law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from scipy.stats import chi2

from unsample.designs.ranking import (
    TIE_RULES,
    FactorScores,
    exact_ranks,
    ranks_against,
    sampled_ranks,
)
from unsample.errors import DesignError, InputError, ScoreError
from unsample.law import Law


def candidates_of(scores, user, target, seen):
    """The slow reference: the scores of the target and of its rivals, one user at a time."""
    kept = [
        item
        for item in range(scores.shape[1])
        if item != target and (seen is None or not seen[user, item])
    ]
    return scores[user, target], scores[user, kept]


def places(scores, user, target, seen):
    own, others = candidates_of(scores, user, target, seen)
    better, equal = int((others > own).sum()), int((others == own).sum())
    return better, equal, len(others) + 1


@st.composite
def worlds(draw):
    users, items = draw(st.integers(1, 6)), draw(st.integers(1, 20))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    levels = draw(st.sampled_from([1, 2, 5, 1000]))  # few levels make many ties
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    scores = rng.integers(0, levels, (users, items)).astype(dtype)
    seen = None
    if draw(st.booleans()):
        seen = rng.random((users, items)) < draw(st.sampled_from([0.0, 0.3, 0.9]))
    targets = draw(st.integers(1, 12))
    return scores, rng.integers(users, size=targets), rng.integers(items, size=targets), seen


@settings(deadline=None)
@given(world=worlds(), ties=st.sampled_from(TIE_RULES), chunk=st.sampled_from([None, 1, 3]))
def test_exact_ranks_equal_the_slow_reference_under_every_tie_rule(world, ties, chunk):
    scores, users, targets, seen = world
    result = exact_ranks(
        lambda asked: scores[asked],
        users,
        targets,
        items=scores.shape[1],
        exclude=None if seen is None else csr_array(seen),
        ties=ties,
        chunk=chunk,
    )
    for row, (user, target) in enumerate(zip(users, targets, strict=True)):
        better, equal, items = places(scores, user, target, seen)
        assert result.items[row] == items
        assert result.ties[row] == equal
        low, high = {
            "random": (1 + better, 1 + better + equal),
            "realistic": (1 + better + equal / 2,) * 2,
            "optimistic": (1 + better,) * 2,
            "pessimistic": (1 + better + equal,) * 2,
        }[ties]
        assert low <= result.ranks[row] <= high


def test_random_ties_are_uniform_seeded_and_independent_of_the_chunk():
    scores = np.zeros((4000, 5), dtype=np.float32)
    users, targets = np.arange(4000), np.full(4000, 3)
    first = exact_ranks(scores.__getitem__, users, targets, items=5, rng=7)
    again = exact_ranks(scores.__getitem__, users, targets, items=5, rng=7, chunk=13)
    assert np.array_equal(first.ranks, again.ranks)
    counts = np.bincount(first.ranks, minlength=6)[1:]
    assert chi_square(counts, np.full(5, 800.0)) > 0.001


def test_counts_beyond_one_byte_are_exact():
    # More than 255 words of eight columns, all of them better: the bytes would overflow.
    items = 8 * 255 * 3 + 5
    scores = np.ones((2, items), dtype=np.float32)
    scores[:, 0] = 0.0
    result = exact_ranks(scores.__getitem__, [0, 1], [0, 0], items=items)
    assert result.ranks.tolist() == [items, items]


def test_infinite_scores_can_be_ranked():
    scores = np.array([[-np.inf, 1.0, np.inf, -np.inf]])
    assert exact_ranks(
        scores.__getitem__, [0, 0], [1, 0], items=4, ties="realistic"
    ).ranks.tolist() == [
        2.0,
        3.5,
    ]


def test_factor_scores_are_products_plus_bias():
    rng = np.random.default_rng(0)
    left, right, bias = rng.random((5, 3)), rng.random((7, 3)), rng.random(7)
    model = FactorScores(left, right, bias)
    expected = left @ right.T + bias
    np.testing.assert_allclose(model(np.arange(5)), expected)
    items = rng.integers(7, size=(5, 4))
    np.testing.assert_allclose(
        model.score(np.arange(5), items), np.take_along_axis(expected, items, axis=1)
    )
    np.testing.assert_allclose(model.score(np.array([2]), np.array([6])), expected[2, 6])


def test_progress_reports_every_chunk():
    calls = []
    exact_ranks(
        np.eye(4).__getitem__,
        np.arange(4),
        np.arange(4),
        items=4,
        chunk=2,
        progress=lambda done, total, note="": calls.append((done, total)),
    )
    assert calls == [(2, 4), (4, 4)]


# -- sampled ----------------------------------------------------------------------------------


def chi_square(observed, expected):
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(chi2.sf(statistic, len(observed) - 1))


def merged(observed, expected, least=8.0):
    """Merge neighbouring cells until each expects enough."""
    cells, seen_count, due = [], 0.0, 0.0
    for count, mean in zip(observed, expected, strict=True):
        seen_count, due = seen_count + count, due + mean
        if due >= least:
            cells.append([seen_count, due])
            seen_count, due = 0.0, 0.0
    cells[-1][0] += seen_count
    cells[-1][1] += due
    return np.array(cells).T


@pytest.mark.parametrize("levels", [4, 10**6], ids=["ties", "no ties"])
@pytest.mark.parametrize("exclude", [False, True], ids=["kept", "excluded"])
@pytest.mark.parametrize(
    ("replacement", "sampled"), [(True, 9), (False, 9), (True, 70), (False, 22)]
)
def test_drawn_ranks_follow_the_design(replacement, sampled, exclude, levels):
    """Every user's drawn ranks follow P(r | R), and so do draws from the exact ranks."""
    rng = np.random.default_rng(11)
    users, items, repeats = 12, 60, 10_000
    scores = rng.integers(0, levels, (users, items)).astype(np.float32)
    targets = rng.integers(items, size=users)
    seen = random_array((users, items), density=0.4, rng=rng).tocsr() if exclude else None
    drawn = sampled_ranks(
        scores.__getitem__,
        np.arange(users),
        targets,
        items=items,
        sampled=sampled,
        replacement=replacement,
        exclude=seen,
        repeats=repeats,
        rng=5,
        workers=2,
    )
    exact = exact_ranks(
        scores.__getitem__, np.arange(users), targets, items=items, exclude=seen, ties="optimistic"
    )
    assert np.array_equal(drawn.items, exact.items)
    values = []
    for user in range(users):
        design = Law(int(exact.items[user]), sampled, replacement)
        places = exact.ranks[user] + np.arange(exact.ties[user] + 1)
        law = design.pmf(np.arange(1, design.n + 1)[:, None], places).mean(axis=1)
        counts = np.bincount(drawn.ranks[:, user], minlength=design.n + 1)[1:]
        assert counts[law == 0].sum() == 0
        values.append(chi_square(*merged(counts, law * repeats)))
        from_design = design.draw(rng.choice(places, repeats), rng=user)
        both = np.bincount(from_design, minlength=design.n + 1)[1:]
        values.append(chi_square(*merged(both, law * repeats)))
    # A right program fails one of the 16 tests with probability 0.001.
    assert min(values) > 0.001 / len(values) / 16


def test_drawn_ranks_of_different_repeats_and_users_are_uncorrelated():
    rng = np.random.default_rng(3)
    scores = np.tile(rng.random(200).astype(np.float32), (2, 1))
    drawn = sampled_ranks(
        scores.__getitem__, [0, 1], [50, 50], items=200, sampled=20, repeats=4000, rng=1
    ).ranks
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.06
    assert abs(np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]) < 0.06


@pytest.mark.parametrize("replacement", [True, False])
def test_drawn_ranks_do_not_depend_on_workers(replacement):
    rng = np.random.default_rng(0)
    model = FactorScores(rng.random((700, 4)), rng.random((4000, 4)))
    users, targets = np.arange(700), rng.integers(4000, size=700)
    first, second = (
        sampled_ranks(
            model,
            users,
            targets,
            items=4000,
            sampled=30,
            replacement=replacement,
            repeats=3,
            rng=2,
            workers=workers,
        ).ranks
        for workers in (1, 3)
    )
    assert first.shape == (3, 700)
    assert np.array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


@pytest.mark.parametrize("ties", TIE_RULES)
def test_drawing_everything_gives_the_exact_rank(ties):
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 6, (8, 30)).astype(np.float64)
    targets = rng.integers(30, size=8)
    common = {"items": 30, "ties": ties}
    exact = exact_ranks(scores.__getitem__, np.arange(8), targets, **common)
    drawn = sampled_ranks(
        scores.__getitem__,
        np.arange(8),
        targets,
        sampled=29,
        replacement=False,
        repeats=2,
        **common,
    )
    if ties == "random":
        low = exact_ranks(scores.__getitem__, np.arange(8), targets, items=30, ties="optimistic")
        assert ((drawn.ranks >= low.ranks) & (drawn.ranks <= low.ranks + low.ties)).all()
    else:
        assert (drawn.ranks == exact.ranks).all()


def test_a_tie_drawn_twice_beats_twice_or_not_at_all():
    # One rival, tied: with replacement it is drawn nine times.
    drawn = sampled_ranks(
        np.zeros((1, 2)).__getitem__, [0], [0], items=2, sampled=9, repeats=500, rng=0
    )
    values, counts = np.unique(drawn.ranks, return_counts=True)
    assert values.tolist() == [1, 10]
    assert abs(counts[0] - 250) < 60


# -- published negatives ----------------------------------------------------------------------


def test_ranks_against_published_negatives():
    scores = np.array([[5.0, 4.0, 3.0, 2.0], [1.0, 1.0, 1.0, 9.0]])
    negatives = [[0, 3, 1], [3, 1, 0]]  # the second row holds the target itself

    def score(users, items):
        return scores[users[:, None], items]

    result = ranks_against(score, [0, 1], [2, 0], negatives, ties="pessimistic")
    assert result.ranks.tolist() == [3, 3]
    assert result.sampled.tolist() == [3, 2]
    kept = ranks_against(score, [0, 1], [2, 0], negatives, ties="pessimistic", on_target="tie")
    assert kept.ranks.tolist() == [3, 4]
    assert kept.sampled.tolist() == [3, 3]
    with pytest.raises(InputError, match="got it for 1 users, the first user 1"):
        ranks_against(score, [0, 1], [2, 0], negatives, on_target="refuse")


# -- bad input --------------------------------------------------------------------------------


THREE = np.eye(3)


def call(score_all=THREE.__getitem__, users=(0,), targets=(0,), items=3, **options):
    return exact_ranks(score_all, np.array(users), np.array(targets), items=items, **options)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"targets": [3]}, InputError, r"targets must be in 0\.\.2 .* got 3 at position 0"),
        ({"users": [-1]}, InputError, "users must be at least 0, got -1"),
        ({"users": [0, 1]}, InputError, "as long as each other, got 2 and 1"),
        ({"users": [], "targets": []}, InputError, "at least one target"),
        ({"users": [0.5]}, InputError, "whole numbers"),
        ({"ties": "optimist"}, InputError, "did you mean optimistic"),
        ({"items": 4}, ScoreError, r"shape \(1, 4\) for 1 users, got \(1, 3\)"),
        ({"exclude": np.eye(3)}, InputError, "scipy sparse matrix"),
        ({"exclude": csr_array((3, 4))}, InputError, "3 columns, one an item, got 4"),
        ({"exclude": csr_array((2, 3)), "users": [2]}, InputError, "2 rows of exclude"),
        ({"chunk": 0}, InputError, "chunk must be an integer of at least 1"),
        ({"score_all": lambda users: [["a", "b", "c"]]}, ScoreError, "real numbers"),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        call(**arguments)


def test_nan_scores_are_refused_with_their_number_and_the_first():
    scores = np.zeros((3, 4))
    scores[1, 2] = scores[2, 0] = np.nan
    with pytest.raises(ScoreError, match=r"got 2 NaN .* first for user 1 and item 2"):
        exact_ranks(scores.__getitem__, np.arange(3), [0, 0, 0], items=4)


def test_drawing_more_than_there_is_names_the_user():
    seen = csr_array(np.array([[0, 0, 0], [0, 1, 1]]))
    with pytest.raises(DesignError, match="got 2 for user 1, who has 0"):
        sampled_ranks(
            np.eye(3)[:2].__getitem__,
            [0, 1],
            [0, 0],
            items=3,
            sampled=2,
            replacement=False,
            exclude=seen,
        )


def test_factors_must_fit_each_other():
    with pytest.raises(InputError, match="as many columns as each other, got 3 and 2"):
        FactorScores(np.ones((4, 3)), np.ones((5, 2)))
    with pytest.raises(InputError, match="item_bias must be 5 numbers"):
        FactorScores(np.ones((4, 3)), np.ones((5, 3)), np.ones(4))
    with pytest.raises(InputError, match="user_factors must be a matrix"):
        FactorScores(np.ones(4), np.ones((5, 3)))


def test_negatives_must_be_a_matrix_of_items():
    with pytest.raises(InputError, match="a row for each target"):
        ranks_against(lambda users, items: items, [0, 1], [0, 1], [[1, 2]])
    with pytest.raises(InputError, match="did you mean drop"):
        ranks_against(lambda users, items: items, [0], [0], [[1]], on_target="dorp")


def test_seen_pairs_given_twice_or_as_zeros_count_once_or_not():
    seen = csr_array(([1.0, 1.0, 0.0], ([0, 0, 0], [1, 1, 2])), shape=(1, 4))
    result = call(np.array([[0.0, 1.0, 2.0, 3.0]]).__getitem__, items=4, exclude=seen)
    assert (result.ranks[0], result.items[0]) == (3, 3)


def test_results_print_themselves():
    assert repr(call()) == "FullRanks(1 targets, items=3..3, 0 targets with ties)"
    drawn = sampled_ranks(np.eye(3).__getitem__, [0], [0], items=3, sampled=2, repeats=4)
    assert repr(drawn) == "SampledRanks(1 targets, 4 repeats, sampled=2..2)"
