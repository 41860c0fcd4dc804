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
    Scorer,
    _tiles,
    as_scorer,
    exact_ranks,
)
from unsample.designs._ranking import count_all
from unsample.errors import InputError, ScoreError

USERS, ITEMS = 700, 900


def model(kind=np.float32, *, sparse=False, extras=True, whole=False, seed=0) -> ItemItemScores:
    """Return a model in which every item has a twin; some users have nothing."""
    rng = np.random.default_rng(seed)
    history = random_array((USERS, ITEMS), density=0.02, rng=rng).tolil()
    history[5] = history[ITEMS // 2] = 0.0
    history = csr_array(history, dtype=kind)
    weights = rng.normal(size=(ITEMS, ITEMS)).astype(kind)
    if sparse:
        weights *= rng.random((ITEMS, ITEMS)) < 0.05
    if whole:
        weights, history.data = weights.round(), np.ones_like(history.data)
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


def some_targets(*, repeated=True, seed=1):
    rng = np.random.default_rng(seed)
    users = np.sort(rng.integers(USERS, size=600)) if repeated else np.arange(600)
    return users, rng.integers(ITEMS, size=600)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("extras", [False, True])
def test_blocks_rank_as_single_sums_do(monkeypatch, kind, sparse, extras):
    monkeypatch.setattr(_tiles, "_BLOCK", 96 * ITEMS)
    held = model(kind, sparse=sparse, extras=extras)
    exclude = random_array((USERS, ITEMS), density=0.02, rng=2).tocsr()
    for excluded in (None, exclude):
        candidates = Candidates.check(some_targets(repeated=excluded is None), ITEMS, excluded)
        expected = slow_ranks(held, candidates)
        for threads in (1, 3):
            with threadpool_limits(threads, user_api="blas"):
                parts = list(count_all(as_scorer(held, ITEMS), candidates))
            better, equal = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
            assert len(parts) == 7
            assert np.array_equal(better, expected[0])
            assert np.array_equal(equal, expected[1])
    assert equal.sum() > 300


def test_weights_stored_by_column_give_the_same_scores():
    held = model()
    other = ItemItemScores(
        held.history, np.asfortranarray(held.weights), held.item_bias, held.newcomers
    )
    assert np.array_equal(held(np.arange(20)), other(np.arange(20)))


@pytest.mark.parametrize("sparse", [False, True])
def test_scores_are_sums_in_the_order_of_items(sparse):
    held = model(sparse=sparse)
    users = np.array([0, 5, 3, 3])
    expected = np.stack([slow_scores(held, user) for user in users])
    assert np.array_equal(held(users), expected)
    items = np.array([[1, 2], [3, 4], [5, 6], [7, 5]])
    assert np.array_equal(held.score(users, items), np.take_along_axis(expected, items, axis=1))
    assert np.array_equal(held.score(users, items[:, 0]), expected[np.arange(4), items[:, 0]])


def test_every_way_to_pass_it_gives_the_same_ranks():
    held = model()
    given = {"items": ITEMS, "ties": "pessimistic"}
    expected = exact_ranks(Scorer(score_all=held), some_targets(), **given).ranks

    class Handing:
        item_item = held
        score, score_all = held.score, held.__call__

    for scorer in (held, Handing(), as_scorer(held, ITEMS)):
        assert as_scorer(scorer, ITEMS).item_item is held
        assert np.array_equal(exact_ranks(scorer, some_targets(), **given).ranks, expected)
    users, items = some_targets(repeated=False)
    both = [
        evaluate(each, (users, items), items=ITEMS, design="certified", metrics="NDCG@5")
        for each in (held, Scorer(score_all=held))
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
        expected = exact_ranks(
            Scorer(score_all=held), (users, items), items=ITEMS, ties="optimistic"
        ).ranks
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
        assert held(np.array([0])).tolist() == [[12.0, 15.0, 18.0]]
    with pytest.raises(InputError, match="number of columns of the item-item weights, 3, got 4"):
        as_scorer(held, 4)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("sparse", [False, True])
def test_ranks_on_a_device_are_those_of_numpy(device, sparse):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    held = model(sparse=sparse, whole=True)  # which no order of additions rounds
    exclude = random_array((USERS, ITEMS), density=0.02, rng=2).tocsr()
    for excluded in (None, exclude):
        given = {"items": ITEMS, "ties": "pessimistic", "exclude": excluded}
        expected = exact_ranks(held, some_targets(), **given)
        found = exact_ranks(held, some_targets(), device=device, **given)
        assert np.array_equal(found.ranks, expected.ranks)
        assert np.array_equal(found.ties, expected.ties)
    users, items = some_targets(repeated=False)
    given = {"items": ITEMS, "design": "exact", "ties": "pessimistic"}
    here, there = (evaluate(held, (users, items), device=d, **given) for d in (None, device))
    assert np.array_equal(here.ranks, there.ranks)
    with pytest.raises(InputError, match="precision must be 'float32' unless factors"):
        exact_ranks(held, some_targets(), items=ITEMS, device=device, precision="bfloat16")
    with pytest.raises(InputError, match="device must be left out"):
        evaluate(held, (users, items), items=ITEMS, design="certified", device=device)
