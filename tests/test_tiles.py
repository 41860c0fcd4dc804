"""Full ranks of factors, tile by tile, against one row at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import random_array
from threadpoolctl import threadpool_limits

from unsample.designs import Candidates, FactorScores, _blocks, exact_ranks

USERS, ITEMS = 700, 5000


def plain(model: FactorScores, candidates: Candidates) -> tuple[np.ndarray, np.ndarray]:
    """Count one target at a time, in whole numbers, which no product rounds."""
    better, equal = [], []
    left, right = model.folded
    for user, target in zip(candidates.users, candidates.targets, strict=True):
        scores = right @ left[user]
        kept = np.ones(ITEMS, dtype=bool)
        if candidates.exclude is not None:
            kept[candidates.exclude[[user]].indices] = False
        kept[target] = False
        better.append((scores[kept] > scores[target]).sum())
        equal.append((scores[kept] == scores[target]).sum())
    return np.array(better), np.array(equal)


def whole(rng, shape, kind):
    """Return small whole numbers, so that products are exact and ties are many."""
    return rng.integers(-3, 4, size=shape).astype(kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("excluding", [False, True])
@pytest.mark.parametrize("order", ["sorted", "shuffled", "repeated"])
def test_blocks_count_as_single_rows_do(monkeypatch, kind, threads, excluding, order):
    rng = np.random.default_rng(0)
    bias = whole(rng, ITEMS, kind)
    model = FactorScores(whole(rng, (USERS, 6), kind), whole(rng, (ITEMS, 6), kind), bias)
    users = {
        "sorted": np.arange(USERS),
        "shuffled": rng.permutation(USERS),
        "repeated": rng.integers(USERS // 3, size=USERS),
    }[order]
    targets = rng.integers(ITEMS, size=USERS)
    exclude = random_array((USERS, ITEMS), density=0.01, rng=rng).tocsr() if excluding else None
    candidates = Candidates.check((users, targets), ITEMS, exclude)
    assert _blocks.can_tile(model)
    again, rows = [], _blocks.count_rows
    monkeypatch.setattr(
        _blocks, "count_rows", lambda *given: again.append(len(given[1])) or rows(*given)
    )
    with threadpool_limits(threads, user_api="blas"):
        parts = list(_blocks.count_tiles(model, candidates))
    better, equal = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
    expected = plain(model, candidates)
    assert np.array_equal(better, expected[0])
    assert np.array_equal(equal, expected[1])
    assert not any(again)  # whole numbers are rounded nowhere


def test_a_target_that_its_tile_rounds_otherwise_is_ranked_again(monkeypatch):
    rng = np.random.default_rng(1)
    model = FactorScores(whole(rng, (USERS, 6), np.float32), whole(rng, (ITEMS, 6), np.float32))
    targets = np.arange(USERS), rng.integers(ITEMS, size=USERS)
    expected = exact_ranks(model, targets, items=ITEMS).ranks
    own = _blocks._own_scores

    # Every third target is a bit off, as if it had been rounded in another way.
    def off(*given):
        return np.where(np.arange(len(given[-1])) % 3 == 0, np.float32(0.5), own(*given))

    monkeypatch.setattr(_blocks, "_own_scores", off)
    again = []
    rows = _blocks.count_rows
    monkeypatch.setattr(
        _blocks, "count_rows", lambda *given: again.append(len(given[1])) or rows(*given)
    )
    assert np.array_equal(exact_ranks(model, targets, items=ITEMS).ranks, expected)
    assert sum(again) > USERS / 4


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.ones((2, 2), dtype=np.longdouble), np.ones((3, 2), dtype=np.longdouble)),
        (np.full((2, 2), 1e30, dtype=np.float32), np.full((3, 2), 1e30, dtype=np.float32)),
        (np.array([[np.nan, 1.0]]), np.ones((3, 2))),
    ],
    ids=["long", "overflow", "nan"],
)
def test_factors_whose_products_may_not_be_numbers_are_left_to_rows(left, right):
    assert not _blocks.can_tile(FactorScores(left, right))
