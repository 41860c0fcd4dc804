"""Ranks from scores, against slow references and in law."""

from __future__ import annotations

import textwrap
from math import factorial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from scipy.stats import chi2, hypergeom

from unsample.designs import (
    Candidates,
    Exact,
    FactorScores,
    Fixed,
    PairScores,
    RowScores,
    Scorer,
    _blocks,
    as_scorer,
    exact_ranks,
    run,
)
from unsample.designs._orders import Orders, target_keys
from unsample.designs._scorers import EXAMPLE
from unsample.errors import InputError, ScoreError
from unsample.evidence import TIE_RULES
from unsample.law import Law


def rank(scores, users, targets, **options):
    """Rank by a table of scores of all items."""
    return exact_ranks(RowScores(scores.__getitem__), (users, targets), **options)


def places(scores, user, target, seen):
    """The slow reference: how many beat and tie with a target, one user at a time."""
    own = scores[user, target]
    others = [
        score
        for item, score in enumerate(scores[user])
        if item != target and (seen is None or not seen[user, item])
    ]
    return sum(score > own for score in others), others.count(own), len(others) + 1


#: Scores that differ in the last bit, are subnormal, zeros of both signs, or infinite.
DELICATE = {
    np.float64: [0.0, -0.0, 5e-324, -5e-324, 1.0, np.nextafter(1.0, 2.0), np.inf, -np.inf],
    np.float32: [0.0, -0.0, 1e-45, -1e-45, 1.0, np.nextafter(np.float32(1), 2), np.inf, -np.inf],
}


@st.composite
def worlds(draw):
    users, items = draw(st.integers(1, 6)), draw(st.integers(1, 20))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    levels = draw(st.sampled_from([None, 1, 2, 5, 1000]))  # few levels make many ties
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    if levels is None:
        scores = rng.choice(np.array(DELICATE[dtype], dtype=dtype), (users, items))
    else:
        scores = rng.integers(0, levels, (users, items)).astype(dtype)
    seen = None
    if draw(st.booleans()):
        seen = rng.random((users, items)) < draw(st.sampled_from([0.0, 0.3, 0.9]))
    targets = draw(st.integers(1, 12))
    return scores, rng.integers(users, size=targets), rng.integers(items, size=targets), seen


@settings(deadline=None)
@given(world=worlds(), ties=st.sampled_from(TIE_RULES))
def test_exact_ranks_equal_the_slow_reference_under_every_tie_rule(world, ties):
    scores, users, targets, seen = world
    exclude = None if seen is None else csr_array(seen)
    result = rank(scores, users, targets, items=scores.shape[1], exclude=exclude, ties=ties)
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


def test_random_ties_are_uniform_seeded_and_independent_of_the_chunk(monkeypatch):
    scores = np.zeros((4000, 5), dtype=np.float32)
    users, targets = np.arange(4000), np.full(4000, 3)
    first = rank(scores, users, targets, items=5, rng=7)
    monkeypatch.setattr(_blocks, "_BLOCK", 65)
    again = rank(scores, users, targets, items=5, rng=7)
    assert np.array_equal(first.ranks, again.ranks)
    counts = np.bincount(first.ranks, minlength=6)[1:]
    assert chi_square(counts, np.full(5, 800.0)) > 0.001


def test_counts_beyond_one_byte_are_exact():
    # More than 255 words of eight columns, all of them better: the bytes would overflow.
    items = 8 * 255 * 3 + 5
    scores = np.ones((2, items), dtype=np.float32)
    scores[:, 0] = 0.0
    result = rank(scores, [0, 1], [0, 0], items=items)
    assert result.ranks.tolist() == [items, items]


def test_factor_scores_are_products_plus_bias():
    rng = np.random.default_rng(0)
    left, right, bias = rng.random((5, 3)), rng.random((7, 3)), rng.random(7)
    model = FactorScores(left, right, bias)
    expected = left @ right.T + bias
    np.testing.assert_allclose(model.rows(np.arange(5), 7), expected)
    users, items = rng.integers(5, size=20), rng.integers(7, size=20)
    np.testing.assert_allclose(model.pairs(users, items), expected[users, items])
    np.testing.assert_allclose(model.pairs(np.array([2]), np.array([6])), expected[[2], [6]])


def test_factor_scores_of_a_pair_do_not_depend_on_what_is_asked_with_it():
    rng = np.random.default_rng(0)
    for dim, kind in ((3, np.float64), (17, np.float32), (64, np.float32), (130, np.float64)):
        left, right = (rng.normal(size=(40, dim)).astype(kind) for _ in range(2))
        model = FactorScores(left, right)
        users, items = rng.integers(40, size=(2, 1300))
        whole = model.pairs(users, items)
        for start, size in ((0, 1), (7, 2), (90, 5), (500, 64), (3, 1290)):
            some = rng.permutation(1300)[start : start + size]
            assert np.array_equal(model.pairs(users[some], items[some]), whole[some])


def test_progress_reports_every_chunk(monkeypatch):
    calls = []
    monkeypatch.setattr(_blocks, "_FEWEST_ROWS", 2)
    monkeypatch.setattr(_blocks, "_BLOCK", 8)
    report = lambda done, total, note="": calls.append((done, total))  # noqa: E731
    rank(np.eye(4), np.arange(4), np.arange(4), items=4, progress=report)
    assert calls == [(2, 4), (4, 4)]


def test_a_callable_of_users_and_items_ranks_in_full_too():
    scores = np.random.default_rng(0).random((5, 30))
    pairs = np.arange(5), np.arange(5)
    asked = exact_ranks(lambda users, items: scores[users, items], pairs, items=30)
    assert np.array_equal(asked.ranks, rank(scores, *pairs, items=30).ranks)
    with pytest.raises(InputError, match="device must be left out"):
        exact_ranks(lambda users, items: items, pairs, items=30, device="cpu")


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
@pytest.mark.parametrize(("replacement", "sampled"), [(True, 70), (False, 22)])
def test_drawn_ranks_follow_the_design(replacement, sampled, exclude, levels):
    """Drawn ranks of a target, over many seeds, follow P(r | R)."""
    rng = np.random.default_rng(11)
    users, items, repeats = 6, 60, 3000
    scores = rng.integers(0, levels, (users, items)).astype(np.float32)
    targets = rng.integers(items, size=users)
    seen = random_array((users, items), density=0.4, rng=rng).tocsr() if exclude else None
    exact = rank(scores, np.arange(users), targets, items=items, exclude=seen, ties="optimistic")
    # Keys depend on the user: many users that score alike are many repeats.
    many = np.tile(np.arange(users), repeats)
    pairs = np.arange(len(many)), targets[many]
    candidates = Candidates.check(pairs, items, None if seen is None else seen[many])
    scorer = PairScores(lambda some, wanted: scores[many[some], wanted])
    drawn = run(Fixed(sampled, replacement), [scorer], candidates, rng=5)[0].ranks
    drawn = drawn.reshape(repeats, users)
    assert np.array_equal(candidates.others[:users] + 1, exact.items)
    values = []
    for user in range(users):
        design = Law(int(exact.items[user]), sampled, replacement)
        places = exact.ranks[user] + np.arange(exact.ties[user] + 1)
        law = design.pmf(np.arange(1, design.n + 1)[:, None], places).mean(axis=1)
        counts = np.bincount(drawn[:, user], minlength=design.n + 1)[1:]
        assert counts[law == 0].sum() == 0
        values.append(chi_square(*merged(counts, law * repeats)))
    # A right program fails one of the 8 tests with probability 0.001.
    assert min(values) > 0.001 / len(values) / 8


def test_a_part_of_the_targets_has_the_ranks_it_has_among_all():
    rng = np.random.default_rng(0)
    model = FactorScores(rng.random((50, 4)), rng.random((400, 4)))
    scorer, targets = PairScores(model.pairs), rng.integers(400, size=50)
    for design in (Fixed(30), Fixed(30, replacement=False), Exact()):
        whole, parts = (
            [
                run(design, [scorer], Candidates.check((rows, targets[rows]), 400), rng=3)[0].ranks
                for rows in split
            ]
            for split in ([np.arange(50)], [np.arange(20), np.arange(20, 50)])
        )
        assert np.array_equal(whole[0], np.concatenate(parts))


def test_a_tie_drawn_twice_beats_twice_or_not_at_all():
    # One rival, tied: with replacement it is drawn nine times.
    candidates = Candidates.check((np.arange(500), np.zeros(500, dtype=int)), 2)
    scorer = PairScores(lambda users, items: np.zeros(items.shape))
    values, counts = np.unique(run(Fixed(9), [scorer], candidates)[0].ranks, return_counts=True)
    assert values.tolist() == [1, 10]
    assert abs(counts[0] - 250) < 60


# -- bad input --------------------------------------------------------------------------------


THREE = np.eye(3)


def call(score_all=THREE.__getitem__, users=(0,), targets=(0,), items=3, **options):
    pairs = np.array(users), np.array(targets)
    return exact_ranks(RowScores(score_all), pairs, items=items, **options)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"targets": [3]}, InputError, r"targets must be in 0\.\.2 .* got 3 at position 1 of 1"),
        ({"users": [-1]}, InputError, "users must be at least 0, got -1"),
        ({"users": [0, 1]}, InputError, "same length, got 2 and 1"),
        ({"users": [], "targets": []}, InputError, "at least one target"),
        ({"users": [0.5]}, InputError, "whole numbers"),
        ({"ties": "optimist"}, InputError, "did you mean optimistic"),
        ({"items": 4}, ScoreError, r"matrix of shape \(1, 4\).* got shape \(1, 3\)"),
        ({"exclude": np.eye(3)}, InputError, "scipy sparse matrix"),
        ({"exclude": csr_array((3, 4))}, InputError, "3 columns, one for each item, got 4"),
        ({"exclude": csr_array((2, 3)), "users": [2]}, InputError, "2 rows of exclude"),
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
        rank(scores, np.arange(3), [0, 0, 0], items=4)


def matrix_of_rows(users, items):
    """Score rows of items for each user, as functions did before version 0.3."""
    return THREE[users[:, None], items]


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (lambda users, items: np.zeros((len(users), 2)), r"of the 3 pairs .* shape \(3, 2\)"),
        (lambda users, items: np.zeros(2), r"of the 3 pairs .* shape \(2,\)"),
        (lambda users, items: 0.5, r"of the 3 pairs .* shape \(\)"),
        (matrix_of_rows, r"of the 3 pairs .* shape \(3, 3\)"),
        (lambda users, items: np.zeros(items.shape[1]), "two vectors of one length.*IndexError"),
        (lambda users: np.zeros(len(users)), "two vectors of one length.*TypeError"),
    ],
    ids=["columns", "too few", "one number", "matrix contract", "second axis", "one argument"],
)
def test_a_function_of_another_contract_gets_the_example(scorer, message):
    users = items = np.arange(3)
    found = as_scorer(scorer, 3)
    with pytest.raises(ScoreError, match=message) as told:
        found.pairs(users, items)
    assert EXAMPLE in str(told.value)
    with pytest.raises(ScoreError, match="for example:"):
        exact_ranks(scorer, (users, items), items=3)


def test_the_example_of_the_message_scores():
    rng, names = np.random.default_rng(0), {}
    names["user_factors"], names["item_factors"] = rng.random((4, 2)), rng.random((5, 2))
    exec(textwrap.dedent(EXAMPLE.partition("\n")[2]), names)
    users, items = rng.integers(4, size=9), rng.integers(5, size=9)
    model = FactorScores(names["user_factors"], names["item_factors"])
    found = as_scorer(names["scorer"], 5).pairs(users, items)
    np.testing.assert_allclose(found, model.pairs(users, items))


def test_one_column_is_a_vector_and_an_error_of_the_model_is_its_own():
    users, items = np.array([0, 2, 1]), np.array([1, 2, 0])
    column = PairScores(lambda users, items: THREE[users, items][:, None])
    assert column.pairs(users, items).tolist() == [0.0, 1.0, 0.0]

    def out_of_memory(users, items):
        raise MemoryError

    with pytest.raises(MemoryError):
        PairScores(out_of_memory).pairs(users, items)


def test_nan_of_pairs_is_named_by_its_user_and_item():
    users, items = np.array([4, 5, 6]), np.array([9, 8, 7])
    scorer = PairScores(lambda users, items: np.where(items == 8, np.nan, 1.0))
    with pytest.raises(ScoreError, match=r"got 1 NaN of 3 scores, the first for user 5 and item 8"):
        scorer.pairs(users, items)


@pytest.mark.parametrize("given", ["a name", 7, None, {1, 2}, THREE[0]])
def test_what_is_no_scorer_is_told_what_one_is(given):
    with pytest.raises(InputError, match=r"a function scorer\(users, items\) -> scores.* got "):
        as_scorer(given, 3)


def test_every_kind_of_scorer_gives_the_same_pairs_and_rows():
    rng = np.random.default_rng(0)
    left, right = rng.random((6, 3)), rng.random((9, 3))
    table = left @ right.T
    model = SimpleNamespace(user_factors=left, item_factors=right)
    given = {
        "function": lambda users, items: table[users, items],
        "score_all": SimpleNamespace(score_all=table.__getitem__),
        "matrix": table,
        "factors": (left, right),
        "model": model,
        "item-item": (csr_array(left), right.T),
        "scorer()": SimpleNamespace(scorer=lambda: model, score_all=None),
    }
    users, items = np.array([5, 0, 5, 2]), np.array([8, 0, 8, 3])
    for name, each in given.items():
        found = as_scorer(each, 9)
        assert found.whole == (name != "function")
        np.testing.assert_allclose(found.pairs(users, items), table[users, items])
        np.testing.assert_allclose(found.rows(users, 9), table[users])
    with pytest.raises(TypeError, match="abstract"):
        Scorer()


def test_whole_numbers_that_floats_would_confuse_are_refused():
    scores = np.array([[2**53, 2**53 + 1, 5]])
    with pytest.raises(ScoreError, match=r"below 2\^53"):
        exact_ranks(RowScores(scores.__getitem__), ([0], [0]), items=3)
    exact_ranks(RowScores((scores - 2**53).__getitem__), ([0], [0]), items=3)


def test_factors_must_fit_each_other():
    with pytest.raises(InputError, match="same number of columns, got 3 and 2"):
        FactorScores(np.ones((4, 3)), np.ones((5, 2)))
    with pytest.raises(InputError, match="item_bias must be 5 numbers"):
        FactorScores(np.ones((4, 3)), np.ones((5, 3)), np.ones(4))
    with pytest.raises(InputError, match="user_factors must be a matrix"):
        FactorScores(np.ones(4), np.ones((5, 3)))


@pytest.mark.parametrize("excluding", [False, True])
@pytest.mark.parametrize("count", [1, 2, 40])
def test_items_at_places_are_candidates_in_the_order_of_their_ids(excluding, count):
    rng = np.random.default_rng(0)
    exclude = random_array((50, 60), density=0.3, rng=rng).tolil()
    exclude[7] = 0.0
    exclude[8, 5:40] = 1.0
    held = exclude.tocsr() if excluding else None
    users = np.repeat(np.arange(50), 3)
    candidates = Candidates.check((users, rng.integers(60, size=150)), 60, held)
    kept = candidates.take(candidates.others >= count)
    first = rng.integers(kept.others - count + 1)
    places = first[:, None] + np.arange(count)
    found = kept.items_at(places)
    for row, (user, target) in enumerate(zip(kept.users, kept.targets, strict=True)):
        left_out = set() if held is None else set(held[[user]].indices.tolist())
        others = [item for item in range(60) if item not in left_out | {target}]
        assert found[row].tolist() == [others[place] for place in places[row]]


def test_seen_pairs_given_twice_or_as_zeros_count_once_or_not():
    seen = csr_array(([1.0, 1.0, 0.0], ([0, 0, 0], [1, 1, 2])), shape=(1, 4))
    result = call(np.array([[0.0, 1.0, 2.0, 3.0]]).__getitem__, items=4, exclude=seen)
    assert (result.ranks[0], result.items[0]) == (3, 3)


# -- keyed orders -----------------------------------------------------------------------------


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
    alone = Orders(some.size[2:3], some.keys[2:3])
    assert (from_start(alone, 60) == whole[2]).all()


@pytest.mark.parametrize("size", [3, 4, 5])
def test_all_orders_of_a_few_items_are_equally_likely(size):
    rows = 24_000
    places = from_start(orders(np.full(rows, size)), size)
    found, times = np.unique(places @ size ** np.arange(size), return_counts=True)
    expected = rows / factorial(size)
    assert len(found) == factorial(size)
    assert chi_square(times, np.full(len(found), expected)) > 1e-4


@pytest.mark.parametrize(("size", "better", "sampled"), [(1000, 10, 200), (16_979, 200, 500)])
def test_how_many_of_the_better_items_come_first_follows_the_hypergeometric_law(
    size, better, sampled
):
    rows = 10_000
    beaten = (from_start(orders(np.full(rows, size)), sampled) < better).sum(axis=1)
    times = np.bincount(beaten, minlength=better + 1)
    expected = rows * hypergeom.pmf(np.arange(better + 1), size, better, sampled)
    assert chi_square(*merged(times, expected)) > 1e-4


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
    assert chi_square(times, np.full(7, drawn.size / 7)) > 1e-4
