"""Full rankings, scorers and keyed orders, against slow references and in distribution."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, random_array
from scipy.stats import chi2
from threadpoolctl import threadpool_limits

from unsample.counts import TIE_RULES
from unsample.designs import Fixed, run
from unsample.designs._item_orders import positions, target_keys
from unsample.errors import InputError, ScoreError
from unsample.sampling import SamplingModel
from unsample.scoring import (
    Candidates,
    FactorScores,
    ItemItemScores,
    PairScores,
    RowScores,
    as_scorer,
    count_all,
    exact_ranks,
)
from unsample.scoring import (
    _full_rankings as _full,
)
from unsample.scoring._scorers import EXAMPLE

USERS, ITEMS = 700, 5000


def places(scores, target, left_out=()):
    """Return how many beat and tie with a target, one item at a time: the slow reference."""
    kept = [score for item, score in enumerate(scores) if item not in {target, *left_out}]
    own = scores[target]
    return sum(score > own for score in kept), kept.count(own), len(kept) + 1


# -- full rankings --------------------------------------------------------------------------------

#: Scores that differ in the last bit, are subnormal, zeros of both signs, or infinite.
DELICATE = {
    np.float64: [0.0, -0.0, 5e-324, -5e-324, 1.0, np.nextafter(1.0, 2.0), np.inf, -np.inf],
    np.float32: [0.0, -0.0, 1e-45, -1e-45, 1.0, np.nextafter(np.float32(1), 2), np.inf, -np.inf],
}


@st.composite
def worlds(draw):
    users, items = draw(st.integers(1, 6)), draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
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
    result = exact_ranks(
        scores, (users, targets), items=scores.shape[1], exclude=exclude, ties=ties
    )
    pairs = list(zip(users.tolist(), targets.tolist(), strict=True))
    # Targets that are excluded are in no other list than their own.
    listed = {pair for pair in pairs if seen is None or not seen[pair]}
    for row, (user, target) in enumerate(pairs):
        left_out = () if seen is None else np.flatnonzero(seen[user]).tolist()
        better, equal, items = places(scores[user].tolist(), target, left_out)
        assert (result.items[row], result.ties[row]) == (items, equal)
        # Other targets of the user that tie: one of all comes first, and one comes last.
        own = scores[user, target]
        mine = [item for who, item in listed if who == user and scores[who, item] == own]
        rivals = len(mine) - 1 if (user, target) in listed else 0
        low, high = {
            "random": (1 + better, 1 + better + equal),
            "realistic": (1 + better + equal / 2,) * 2,
            "optimistic": (1 + better, 1 + better + rivals),
            "pessimistic": (1 + better + equal - rivals, 1 + better + equal),
        }[ties]
        assert low <= result.ranks[row] <= high
    if ties != "realistic":
        ranked = {(*pair, rank) for pair, rank in zip(pairs, result.ranks, strict=True)}
        places_of = [(user, rank) for user, target, rank in ranked if (user, target) in listed]
        assert len(places_of) == len(set(places_of)) == len(listed)


def whole(rng, shape, kind):
    """Return small whole numbers, so that products are exact and ties are many."""
    return rng.integers(-3, 4, size=shape).astype(kind)


def item_item(rng, kind, *, sparse=False):
    """Return a model with a bias, in which some users have nothing."""
    history = random_array((USERS, 60), density=0.05, rng=rng, data_sampler=None).tolil()
    history[5] = 0.0
    history = csr_array(history.astype(bool).astype(kind))
    weights = whole(rng, (60, ITEMS), kind)
    bias, newcomers = whole(rng, ITEMS, kind), whole(rng, ITEMS, kind)
    return ItemItemScores(history, csr_array(weights) if sparse else weights, bias, newcomers)


CHEAP = {
    "factors": lambda rng, kind: FactorScores(*(whole(rng, (n, 6), kind) for n in (USERS, ITEMS))),
    "item-item": item_item,
    "sparse item-item": lambda rng, kind: item_item(rng, kind, sparse=True),
    "matrix": lambda rng, kind: as_scorer(whole(rng, (USERS, ITEMS), kind), ITEMS),
}


@pytest.mark.parametrize("name", CHEAP)
@pytest.mark.parametrize(("kind", "threads"), [(np.float32, 3), (np.float64, 1)])
@pytest.mark.parametrize("order", ["sorted", "repeated"])
def test_blocks_count_as_single_rows_do(monkeypatch, name, kind, threads, order):
    monkeypatch.setattr(_full, "_BLOCK", 96 * ITEMS)
    rng = np.random.default_rng(0)
    model = CHEAP[name](rng, kind)
    users = np.arange(USERS) if order == "sorted" else rng.integers(USERS // 3, size=USERS)
    exclude = random_array((USERS, ITEMS), density=0.01, rng=rng).tocsr()
    targets = users, rng.integers(ITEMS, size=USERS)
    for excluded in (None, exclude):
        candidates = Candidates.check(targets, ITEMS, excluded)
        with threadpool_limits(threads, user_api="blas"):
            parts = list(count_all(model, candidates))
        better, equal, own = (np.concatenate([part[at] for part in parts]) for at in (1, 2, 3))
        assert len(parts) > 2
        for row in range(0, USERS, 23):
            scores = model.rows(users[[row]], ITEMS)[0]
            left_out = [] if excluded is None else excluded[[users[row]]].indices.tolist()
            expected = places(scores.tolist(), targets[1][row], left_out)
            assert (better[row], equal[row]) == expected[:2]
            assert own[row] == scores[targets[1][row]]


def test_a_target_that_its_tile_rounds_otherwise_is_ranked_again(monkeypatch):
    rng = np.random.default_rng(1)
    model = CHEAP["factors"](rng, np.float32)
    targets = np.arange(USERS), rng.integers(ITEMS, size=USERS)
    expected = exact_ranks(model, targets, items=ITEMS).ranks
    own, rows, again = _full._own_scores, _full.count_rows, []

    # Every third target is a bit off, as if it had been rounded in another way.
    def off(*given, targets, **named):
        shifted = np.arange(len(targets)) % 3 == 0
        return np.where(shifted, np.float32(0.5), own(*given, targets=targets, **named))

    def counted(scorer, candidates):
        again.append(len(candidates))
        return rows(scorer, candidates)

    monkeypatch.setattr(_full, "_own_scores", off)
    monkeypatch.setattr(_full, "count_rows", counted)
    assert np.array_equal(exact_ranks(model, targets, items=ITEMS).ranks, expected)
    assert sum(again) > USERS / 4


def test_random_ties_are_uniform_seeded_and_independent_of_the_chunk(monkeypatch):
    scores, targets = np.zeros((4000, 5), dtype=np.float32), (np.arange(4000), np.full(4000, 3))
    first = exact_ranks(scores, targets, items=5, rng=7)
    monkeypatch.setattr(_full, "_BLOCK", 65)
    again = exact_ranks(scores, targets, items=5, rng=7)
    assert np.array_equal(first.ranks, again.ranks)
    assert chi_square(np.bincount(first.ranks, minlength=6)[1:], np.full(5, 800.0)) > 0.001


def test_counts_beyond_one_byte_are_exact():
    # More than 255 words of eight columns, all of them better: the bytes would overflow.
    items = 8 * 255 * 3 + 5
    scores = np.ones((2, items), dtype=np.float32)
    scores[:, 0] = 0.0
    result = exact_ranks(scores, ([0, 1], [0, 0]), items=items)
    assert result.ranks.tolist() == [items, items]


# -- scorers --------------------------------------------------------------------------------------

THREE = np.eye(3)


def test_factor_scores_of_a_pair_do_not_depend_on_what_is_asked_with_it():
    rng = np.random.default_rng(0)
    for dim, kind in ((3, np.float64), (17, np.float32), (64, np.float32), (130, np.float64)):
        left, right = (rng.normal(size=(40, dim)).astype(kind) for _ in range(2))
        model = FactorScores(left, right)
        users, items = rng.integers(40, size=(2, 1300))
        alone = model.pairs(users, items)
        for start, size in ((0, 1), (7, 2), (90, 5), (500, 64), (3, 1290)):
            some = rng.permutation(1300)[start : start + size]
            assert np.array_equal(model.pairs(users[some], items[some]), alone[some])


def test_matrices_of_other_kinds_become_those_that_are_needed():
    rows = csr_matrix(np.array([[1, 0, 2], [0, 0, 0]]))
    twice = csr_array((np.ones(3), [0, 2, 2], [0, 3, 3]), shape=(2, 3))
    for history in (rows, twice, rows.toarray()):
        held = ItemItemScores(history, np.arange(9).reshape(3, 3))
        assert held.rows(np.array([0]), 3).tolist() == [[12.0, 15.0, 18.0]]
    seen = csr_array(([1.0, 1.0, 0.0], ([0, 0, 0], [1, 1, 2])), shape=(1, 4))
    found = exact_ranks(np.array([[0.0, 1.0, 2.0, 3.0]]), ([0], [0]), items=4, exclude=seen)
    assert (found.ranks[0], found.items[0]) == (3, 3)  # given twice, or as zero
    pairs = csr_array(np.array([[0, 1, 0], [1, 0, 1]]))
    assert exact_ranks(np.arange(6).reshape(2, 3), pairs, items=3).ranks.tolist() == [2, 3, 1]


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (lambda users, items: 0.5, r"of the 3 pairs .* shape \(\)"),
        (lambda users, items: THREE[users[:, None], items], r"of the 3 pairs .* shape \(3, 3\)"),
        (lambda users: np.zeros(len(users)), "two vectors of one length.*TypeError"),
    ],
    ids=["one number", "matrix contract", "one argument"],
)
def test_a_function_of_another_contract_gets_the_example(scorer, message):
    users = items = np.arange(3)
    with pytest.raises(ScoreError, match=message) as told:
        as_scorer(scorer, 3).pairs(users, items)
    assert EXAMPLE in str(told.value)


def _raises(problem):
    raise problem


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (
            lambda users, items: _raises(ValueError("no weights")),
            r"^scorer failed with ValueError.* 3 pairs, of users 0 to 2 and items 4",
        ),
        (
            lambda users, items: np.zeros(2)[users],
            r"scorer failed with IndexError.* targets are \(users, items\), in this order$",
        ),
        (lambda users, items: users + "a", "scorer failed with .*Error.* 3 pairs"),
        (lambda users, items: {}[7], r"scorer failed with KeyError\(7\)"),
        (
            RowScores(lambda users: _raises(ValueError("no weights"))),
            r"^score_all failed with ValueError\('no weights'\) when .* 3 rows, of users 0 to 2$",
        ),
    ],
    ids=["value", "index", "type", "key", "rows"],
)
def test_an_error_within_a_scorer_is_its_own(scorer, message):
    with pytest.raises(ScoreError, match=message) as told:
        as_scorer(scorer, 7).pairs(np.arange(3), np.arange(4, 7))
    assert "two vectors" not in str(told.value)
    assert told.value.__cause__ is not None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"targets": ([0], [3])}, InputError, r"targets must be in 0\.\.2 .* got 3 at position 1"),
        ({"targets": ([-1], [0])}, InputError, "users must be at least 0, got -1"),
        ({"targets": ([0, 1], [0])}, InputError, "same length, got 2 and 1"),
        ({"targets": ([], [])}, InputError, "at least one target"),
        ({"targets": ([0.5], [0])}, InputError, "whole numbers"),
        ({"targets": "everything"}, InputError, "targets must be a pair"),
        ({"ties": "optimist"}, InputError, "did you mean optimistic"),
        ({"items": 4}, InputError, "items must be 3, as many as the scorer has, got 4"),
        ({"exclude": np.eye(3)}, InputError, "scipy sparse matrix"),
        ({"exclude": csr_array((3, 4))}, InputError, "3 columns, one for each item, got 4"),
        ({"exclude": csr_array((2, 3)), "targets": ([2], [0])}, InputError, "2 rows of exclude"),
        ({"scorer": RowScores(lambda users: [["a", "b", "c"]])}, ScoreError, "real numbers"),
        ({"scorer": RowScores(THREE[:, :2].__getitem__)}, ScoreError, r"got shape \(1, 2\)"),
        ({"scorer": THREE * np.nan}, ScoreError, "got 3 NaN .* first for user 0 and item 0"),
        ({"scorer": (np.ones((4, 3)), np.ones((3, 2)))}, InputError, "columns, got 3 and 2"),
        ({"scorer": (np.ones(4), THREE)}, InputError, "user_factors must be a matrix"),
        ({"scorer": (csr_array(THREE), np.ones((2, 3)))}, InputError, "row for each of the 3"),
        ({"scorer": "a name"}, InputError, r"a function scorer\(users, items\) -> scores.* got "),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    usual = {"scorer": THREE, "targets": ([0], [0]), "items": 3}
    with pytest.raises(error, match=message):
        exact_ranks(**usual | arguments)


# -- candidates -----------------------------------------------------------------------------------


# -- samples --------------------------------------------------------------------------------------


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
@pytest.mark.parametrize(("replacement", "sampled"), [(True, 34), (False, 22)])
def test_sampled_ranks_follow_the_design(replacement, sampled, exclude, levels):
    """Sampled ranks of a target, over many seeds, follow P(r | R)."""
    rng = np.random.default_rng(11)
    users, items, repeats = 6, 60, 3000
    scores = rng.integers(0, levels, (users, items)).astype(np.float32)
    targets = rng.integers(items, size=users)
    seen = random_array((users, items), density=0.4, rng=rng).tocsr() if exclude else None
    pairs = np.arange(users), targets
    exact = exact_ranks(scores, pairs, items=items, exclude=seen, ties="optimistic")
    # Keys depend on the user: many users that score alike are many repeats.
    many = np.tile(np.arange(users), repeats)
    pairs = np.arange(len(many)), targets[many]
    candidates = Candidates.check(pairs, items, None if seen is None else seen[many])
    scorer = PairScores(lambda some, wanted: scores[many[some], wanted])
    drawn = run(Fixed(sampled, replacement), [scorer], candidates, rng=5)[0].ranks
    drawn, values = drawn.reshape(repeats, users), []
    assert np.array_equal(candidates.others[:users] + 1, exact.items)
    for user in range(users):
        design = SamplingModel(int(exact.items[user]), sampled, replacement)
        places = exact.ranks[user] + np.arange(exact.ties[user] + 1)
        distribution = design.pmf(np.arange(1, design.n + 1)[:, None], places).mean(axis=1)
        counts = np.bincount(drawn[:, user], minlength=design.n + 1)[1:]
        assert counts[distribution == 0].sum() == 0
        values.append(chi_square(*merged(counts, distribution * repeats)))
    # A right program fails one of the 8 tests with probability 0.001.
    assert min(values) > 0.001 / len(values) / 8


# -- keyed orders ---------------------------------------------------------------------------------


def from_start(sizes, count):
    """Return the first places of orders of some sizes, each with a key of its own."""
    rows = np.arange(len(sizes))
    return positions(sizes, target_keys(0, rows, rows), np.zeros_like(rows), count)


@pytest.mark.parametrize("size", [1, 2, 3, 60, 1999, 65_535, 65_536, 65_537, 10**6, 2**32])
def test_orders_of_any_size_stay_inside_and_never_repeat(size):
    places = from_start(np.full(5, size), min(size, 20_000))
    assert places.min() >= 0
    assert places.max() < size
    for row in places:
        assert len(np.unique(row)) == len(row)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_all_orders_of_a_few_items_are_equally_likely(size):
    rows = 24_000
    places = from_start(np.full(rows, size), size)
    found, times = np.unique(places @ size ** np.arange(size), return_counts=True)
    assert len(found) == factorial(size)
    assert chi_square(times, np.full(len(found), rows / factorial(size))) > 1e-4
