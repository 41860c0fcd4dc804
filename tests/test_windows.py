"""Rounds by products find what rounds of single pairs find, to the last tie."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from scipy.sparse import random_array
from threadpoolctl import threadpool_limits

from unsample import metrics
from unsample.designs import (
    Candidates,
    Certified,
    FactorScores,
    Guide,
    Guided,
    Scorer,
    Tally,
    _windows,
    as_guide,
    as_scorer,
    run,
)

USERS, ITEMS, DIM = 150, 1200, 24
CERTIFIED = Certified(5)


def twins(kind, *, whole=False, seed=0) -> FactorScores:
    """Return a model in which every item has a twin, so that every target ties with one."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(USERS, DIM)), rng.normal(size=(ITEMS, DIM))
    right[ITEMS // 2 :] = right[: ITEMS // 2]
    if whole:
        left, right = left.round(), right.round()
    left[3] = 0.0  # ties with everything
    return FactorScores(left.astype(kind), right.astype(kind), right[:, 0].astype(kind))


def some_targets(rng):
    """Return pairs of users, some of whom come twice, and items that are good for them."""
    model = twins(np.float64)
    users = np.sort(rng.integers(USERS, size=200))
    place = np.floor((ITEMS / 4) ** rng.random(200)).astype(np.int64)
    items = np.argsort(-model(users), axis=1)[np.arange(200), place]
    pairs = np.unique(np.column_stack([users, items]), axis=0)
    return pairs[:, 0], pairs[:, 1]


def world(*, excluding=True, guide="order", seed=0):
    """Return candidates, and a guide with an order of all items, lists of users, or both."""
    rng = np.random.default_rng(seed)
    users, items = some_targets(rng)
    exclude = None
    if excluding:
        exclude = random_array((USERS, ITEMS), density=0.02, rng=rng).tolil()
        exclude[users, items] = 0.0
        exclude = exclude.tocsr()
    candidates = Candidates.check((users, items), ITEMS, exclude)
    order = rng.permutation(ITEMS)
    if guide == "lists":
        lists = {user: rng.integers(ITEMS, size=rng.integers(60)) for user in range(0, USERS, 2)}
        held = as_guide(lists, candidates)
        return candidates, Guide(order, held.lists, held.listed)
    return candidates, Guide(order) if guide == "order" else Guide()


def both(model, candidates, guide, design=CERTIFIED, **options):
    """Return what products find, and what single pairs find."""
    return [
        found(scorer, candidates, guide, design, **options)
        for scorer in (as_scorer(model, ITEMS), Scorer(model.score))
    ]


def found(scorer, candidates, guide, design=CERTIFIED, **options):
    metric = metrics.parse_all("NDCG@5")
    return run(design, scorer, candidates, metrics=metric, guide=guide, **options)


def differences(first, second):
    """Return the names of what differs."""
    (found, tally), (other, pairs) = first, second
    names = [
        n.name
        for n in fields(Tally)
        if not np.array_equal(getattr(tally, n.name), getattr(pairs, n.name))
    ]
    more = ("ranks", "lowest", "met", "scored")
    return names + [n for n in more if not np.array_equal(getattr(found, n), getattr(other, n))]


@pytest.mark.parametrize(
    ("kind", "whole", "excluding"),
    [(np.float32, False, True), (np.float32, True, False), (np.float64, False, False)],
)
@pytest.mark.parametrize("guide", ["order", "lists", "learned"])
@pytest.mark.parametrize("design", [Certified(5), Guided(5)], ids=["certified", "guided"])
def test_products_find_what_single_pairs_find(kind, whole, excluding, guide, design):
    model = twins(kind, whole=whole)
    candidates, held = world(excluding=excluding, guide=guide)
    budget = 40_000 if design.name == "guided" else None
    products, pairs = both(model, candidates, held, design, budget=budget)
    assert not differences(products, pairs)
    assert products[1].equal.sum() > 20
    assert (products[1].lost_ties < products[1].equal).any()


def test_products_are_used(monkeypatch):
    """Scores of single pairs are asked for own scores, and where rounding might decide."""
    model = twins(np.float32)
    candidates, held = world()
    asked = []
    score = FactorScores.score
    monkeypatch.setattr(
        FactorScores,
        "score",
        lambda self, *given: asked.append(given[1].size) or score(self, *given),
    )
    products, _ = found(as_scorer(model, ITEMS), candidates, held)
    assert sum(asked) < products.scored / 10


def test_rounding_decides_where_no_pair_is_scored_again(monkeypatch):
    """The comparison above would see it if products alone decided."""
    model = twins(np.float32)
    candidates, held = world()
    monkeypatch.setattr(_windows, "rounding", lambda *_: 0.0)
    products, pairs = both(model, candidates, held)
    assert "equal" in differences(products, pairs)


def test_sums_of_products_stay_within_the_rounding():
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-20, 1e15):
        left, right = (
            (
                rng.normal(size=(300, 50)) * scale * 10.0 ** rng.integers(-3, 4, size=(300, 50))
            ).astype(np.float32)
            for _ in range(2)
        )
        lengths = [np.linalg.norm(each.astype(np.float64), axis=1) for each in (left, right)]
        limit = _windows.rounding(np.dtype(np.float32), 50) * np.outer(*lengths)
        model = FactorScores(left, right)
        single = model.score(np.arange(300), np.broadcast_to(np.arange(300), (300, 300)))
        apart = np.abs((left @ right.T).astype(np.float64) - single)
        assert (apart <= limit).all()
        assert apart.any()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [7, 64])
def test_tiles_and_threads_change_nothing(monkeypatch, threads, rows):
    model = twins(np.float32)
    candidates, held = world(guide="lists")
    expected = found(Scorer(model.score), candidates, held)
    monkeypatch.setattr(_windows, "_FEWEST_COLUMNS", rows)
    monkeypatch.setattr(_windows, "_FOUND_AT_ONCE", 3 * rows)
    advance = _windows.advance_in_order
    monkeypatch.setattr(
        _windows, "advance_in_order", lambda *given, **how: advance(*given, **how, rows=rows)
    )
    with threadpool_limits(threads, user_api="blas"):
        products = found(as_scorer(model, ITEMS), candidates, held)
    assert not differences(products, expected)


@pytest.mark.parametrize("excluding", [False, True])
@pytest.mark.parametrize("count", [1, 2, 40])
def test_items_that_follow_each_other_are_those_at_their_places(excluding, count):
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
    found = kept.items_from(first, count)
    assert np.array_equal(found, kept.items_at(places))
    for row, (user, target) in enumerate(zip(kept.users, kept.targets, strict=True)):
        left_out = set() if held is None else set(held[[user]].indices.tolist())
        others = [item for item in range(60) if item not in left_out | {target}]
        assert found[row].tolist() == [others[place] for place in places[row]]
