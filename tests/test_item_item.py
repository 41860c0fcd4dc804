"""Item-item models: scores, exact ranks in blocks of rows, and what hands them over."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, random_array
from threadpoolctl import threadpool_limits

from unsample.answers import evaluate
from unsample.designs import (
    Candidates,
    ItemItemScores,
    RowScores,
    Run,
    _blocks,
    as_scorer,
    count_all,
    exact_ranks,
)
from unsample.errors import InputError, ScoreError

USERS, ITEMS = 700, 900


def model(kind=np.float32, *, sparse=False, extras=True, seed=0) -> ItemItemScores:
    """Return a model in which every item has a twin; some users have nothing."""
    rng = np.random.default_rng(seed)
    history = random_array((USERS, ITEMS), density=0.02, rng=rng).tolil()
    history[5] = history[ITEMS // 2] = 0.0
    history = csr_array(history, dtype=kind)
    weights = rng.normal(size=(ITEMS, ITEMS)).astype(kind)
    if sparse:
        weights *= rng.random((ITEMS, ITEMS)) < 0.05
    weights[:, ITEMS // 2 :] = weights[:, : ITEMS // 2]
    bias = np.where(np.arange(ITEMS) % 10 == 0, np.finfo(kind).min / 4, 0.0) if extras else None
    newcomers = rng.integers(5, size=ITEMS) if extras else None
    return ItemItemScores(history, csr_array(weights) if sparse else weights, bias, newcomers)


def slow_scores(held: ItemItemScores, user: int) -> np.ndarray:
    """Add up the weights of one user's items, one after the other."""
    weights = held.weights if isinstance(held.weights, np.ndarray) else held.weights.toarray()
    row = held.history[[user]]
    scores = np.zeros(ITEMS, dtype=weights.dtype)
    for item, value in zip(row.indices, row.data, strict=True):
        scores = scores + value * weights[item]
    if held.item_bias is not None:
        scores = scores + held.item_bias
    if held.newcomers is not None and not row.nnz:
        scores = held.newcomers
    return scores


def slow_ranks(held, candidates):
    """Rank one target at a time."""
    better, equal = [], []
    for user, target in zip(candidates.users, candidates.targets, strict=True):
        scores = slow_scores(held, user)
        kept = np.ones(ITEMS, dtype=bool)
        if candidates.exclude is not None:
            kept[candidates.exclude[[user]].indices] = False
        kept[target] = False
        better.append((scores[kept] > scores[target]).sum())
        equal.append((scores[kept] == scores[target]).sum())
    return np.array(better), np.array(equal)


def by_rows(held: ItemItemScores) -> RowScores:
    """Return the same scores as those of any function."""
    return RowScores(lambda users: held.rows(users, ITEMS))


def some_targets(*, repeated=True, seed=1):
    rng = np.random.default_rng(seed)
    users = np.sort(rng.integers(USERS, size=600)) if repeated else np.arange(600)
    return users, rng.integers(ITEMS, size=600)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("extras", [False, True])
def test_blocks_rank_as_single_sums_do(monkeypatch, kind, sparse, extras):
    monkeypatch.setattr(_blocks, "_BLOCK", 96 * ITEMS)
    held = model(kind, sparse=sparse, extras=extras)
    exclude = random_array((USERS, ITEMS), density=0.02, rng=2).tocsr()
    for excluded in (None, exclude):
        candidates = Candidates.check(some_targets(repeated=excluded is None), ITEMS, excluded)
        expected = slow_ranks(held, candidates)
        for threads in (1, 3):
            with threadpool_limits(threads, user_api="blas"):
                parts = list(count_all(held, candidates))
            better, equal = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
            assert len(parts) == 7
            assert np.array_equal(better, expected[0])
            assert np.array_equal(equal, expected[1])
    assert equal.sum() > 300


@pytest.mark.parametrize("sparse", [False, True])
def test_scores_are_sums_in_the_order_of_items(sparse):
    held = model(sparse=sparse)
    users = np.array([0, 5, 3, 3])
    expected = np.stack([slow_scores(held, user) for user in users])
    assert np.array_equal(held.rows(users, ITEMS), expected)
    row, items = np.array([3, 0, 0, 1, 2, 3, 1]), np.array([7, 2, 1, 3, 6, 5, 4])
    assert np.array_equal(held.pairs(users[row], items), expected[row, items])


def test_every_way_to_pass_it_gives_the_same_ranks():
    held = model()
    given = {"items": ITEMS, "ties": "pessimistic"}
    rows = by_rows(held)
    expected = exact_ranks(rows, some_targets(), **given).ranks

    class Handing:
        score_all = rows.score_all

        def scorer(self):
            return held

    assert as_scorer(held, ITEMS) is as_scorer(Handing(), ITEMS) is held
    plain = ItemItemScores(held.history, held.weights)
    pair = as_scorer((held.history, held.weights), ITEMS)
    assert isinstance(pair, ItemItemScores)
    users = np.arange(USERS)
    assert np.array_equal(pair.rows(users, ITEMS), plain.rows(users, ITEMS))
    for scorer in (held, Handing()):
        assert np.array_equal(exact_ranks(scorer, some_targets(), **given).ranks, expected)
    users, items = some_targets(repeated=False)
    both = [
        evaluate(each, (users, items), items=ITEMS, design="certified", metrics="NDCG@5")
        for each in (held, rows)
    ]
    assert both[0].scored == both[1].scored
    assert both[0]["NDCG@5"].value == both[1]["NDCG@5"].value


@pytest.mark.parametrize("sparse", [False, True])
def test_weights_that_are_no_numbers_are_refused(sparse):
    held = model(sparse=sparse)
    values = held.weights.data if sparse else held.weights
    values.flat[: values.size // 2] = np.nan
    with pytest.raises(ScoreError, match="must not be NaN"):
        exact_ranks(held, some_targets(), items=ITEMS)


def test_infinite_weights_rank_as_whole_rows_do():
    held = model(extras=False)
    held.weights[:, 17] = np.inf
    users, items = some_targets()
    items[items == 17] = 18
    with np.errstate(invalid="ignore"):
        found = exact_ranks(held, (users, items), items=ITEMS, ties="optimistic").ranks
        expected = exact_ranks(by_rows(held), (users, items), items=ITEMS, ties="optimistic").ranks
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"history": np.ones((2, 3))}, "history must be a scipy sparse matrix"),
        ({"weights": np.ones((2, 3))}, "a row for each of the 3 columns"),
        ({"item_bias": np.ones(2)}, "item_bias must be 3 numbers"),
        ({"newcomers": np.full(3, np.nan)}, "newcomers must be 3 numbers"),
    ],
)
def test_what_does_not_fit_is_refused(change, words):
    given = {"history": csr_array(np.eye(2, 3)), "weights": np.eye(3)}
    with pytest.raises(InputError, match=words):
        ItemItemScores(**given | change)


def test_matrices_of_other_kinds_become_those_that_are_needed():
    rows = csr_matrix(np.array([[1, 0, 2], [0, 0, 0]]))
    twice = csr_array((np.ones(3), [0, 2, 2], [0, 3, 3]), shape=(2, 3))
    for history in (rows, twice):
        held = ItemItemScores(history, np.arange(9).reshape(3, 3))
        assert held.rows(np.array([0]), 3).tolist() == [[12.0, 15.0, 18.0]]
    with pytest.raises(InputError, match="items must be 3, as many as the scorer has, got 4"):
        as_scorer(held, 4)


def test_a_device_is_refused():
    held = model()
    for call in (
        lambda: exact_ranks(held, some_targets(), items=ITEMS, device="cpu"),
        lambda: evaluate(
            held, some_targets(repeated=False), items=ITEMS, run=Run(device="cpu"), metrics="MRR"
        ),
    ):
        with pytest.raises(InputError, match="device must be left out unless factors are ranked"):
            call()
