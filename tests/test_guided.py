"""Guides and guided designs: a guide decides what is met first, and never what is found."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unsample
from tests.test_evaluate import METRICS, World
from unsample.bounds import Drawn, DrawnError
from unsample.designs import Guided, Run, _guided, as_guide
from unsample.designs import _user_draws as _draws
from unsample.designs._guides import Orders
from unsample.designs._item_orders import target_keys
from unsample.designs._simulation import simulated
from unsample.errors import DesignError, InputError
from unsample.metrics import parse, parse_all
from unsample.questions.evaluate.ask import estimates_of, evaluate
from unsample.scoring import Candidates, RowScores

NEVER = np.iinfo(np.int64).max


@pytest.fixture(scope="module")
def world():
    return World(users=600, items=1500, seed=1)


@pytest.fixture(scope="module")
def full(world):
    return world.run("exact")


def guides(world):
    """Return guides of every kind: good ones, a useless one, and one that is as bad as can be."""
    scores = world.left @ world.right.T
    return {
        "by default": None,
        "one score for each item": scores.mean(axis=0),
        "factors": (world.left, world.right),
        "a recommender": RowScores(lambda users: scores[users]),
        "noise": np.random.default_rng(0).normal(size=world.items),
        "in reverse": (-world.left, world.right),
    }


NAMES = list(guides(World(users=3, items=60)))


# -- orders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("filtered", [False, True])
def test_a_guided_order_meets_every_candidate_once(kind, filtered):
    small = World(users=8, items=60, share_seen=0.2)
    users = np.concatenate([small.targets[0], [3, 3]])
    free = np.flatnonzero(small.exclude.toarray()[3] == 0)
    more = [item for item in free if item != small.targets[1][3]][:2]
    targets = np.concatenate([small.targets[1], more])
    candidates = Candidates.check((users, targets), 60, small.exclude, filtered=filtered)
    guide = as_guide(guides(small)[kind], candidates)
    orders = Orders(candidates, target_keys(0, users, targets), guide)
    for row in range(len(users)):
        size = int(candidates.others[row])
        met = orders.items(np.array([row]), np.zeros(1, dtype=np.int64), count=size)[0]
        left_out = set(small.exclude.toarray()[users[row]].nonzero()[0])
        left_out |= set(targets[users == users[row]]) if filtered else {targets[row]}
        assert sorted(met) == sorted(set(range(60)) - left_out)
        # Any stretch of it is the same, however it is cut.
        cut = [
            orders.items(np.array([row]), np.array([start]), count=min(7, size - start))[0]
            for start in range(0, size, 7)
        ]
        assert np.array_equal(np.concatenate(cut), met)
    several = orders.items(np.arange(len(users)), np.arange(len(users)), count=5)
    for row, found in enumerate(several):
        assert np.array_equal(found, orders.items(np.array([row]), np.array([row]), count=5)[0])


def test_items_come_as_the_guide_has_them():
    small = World(users=5, items=40, share_seen=0.1)
    candidates = Candidates.check(small.targets, 40, small.exclude)
    scores = np.random.default_rng(1).normal(size=(5, 40))
    popular = np.asarray(small.exclude.sum(axis=0)).ravel()
    keys = target_keys(0, *small.targets)
    for guide, strength in (
        (scores, scores),
        (scores[0], np.tile(scores[0], (5, 1))),
        (None, np.tile(popular, (5, 1))),
    ):
        orders = Orders(candidates, keys, as_guide(guide, candidates))
        for row in range(5):
            size = int(candidates.others[row])
            met = orders.items(np.array([row]), np.zeros(1, dtype=np.int64), count=size)[0]
            assert (np.diff(strength[row, met]) <= 0).all()


# -- what is found --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NAMES)
def test_ranks_are_certain_and_the_budget_is_used_whatever_the_guide(world, full, kind):
    budget = 90_000
    found = world.run("guided", guide=guides(world)[kind], budget=budget)
    assert found.scored == budget
    assert (found.ranks <= full.ranks).all()
    assert (full.ranks <= found.highest).all()
    for metric in METRICS:
        low, high = found[metric].interval(0.999, population=False)
        assert low - 1e-12 <= full[metric].value <= high + 1e-12
        least, most = found[metric].interval(0.999)
        assert least <= low <= found[metric].value <= high <= most
    entry = found["NDCG@10"]
    assert (entry.method, entry.source) == ("guided", "mean")
    assert (entry.bounds(), entry.bounds(0.9)) == (entry.interval(), entry.interval(0.9))


def test_users_with_several_targets_are_drawn_as_a_whole():
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(60, 350))
    users = np.sort(rng.integers(60, size=200))
    order = np.argsort(-scores, axis=1)
    positions = np.floor(350 ** rng.random(200)).astype(int) - 1
    pairs = np.unique(np.stack([users, order[users, positions]]), axis=1)
    given = {
        "scorer": lambda who, items: scores[who, items],
        "targets": (*pairs, rng.integers(1, 4, size=pairs.shape[1])),
        "items": 350,
        "metrics": ["Recall@10", "NDCG@10", "AP@10", "HR@10"],
    }
    exact = evaluate(design="exact", **given)
    noisy = scores + rng.normal(scale=0.5, size=scores.shape)
    for seed in range(12):
        found = evaluate(budget=15_000, guide=noisy, rng=seed, **given)
        assert found.scored <= 15_000
        assert set(found.methods) == {"guided"}
        for metric in given["metrics"]:
            low, high = found[metric].interval(0.9999, population=False)
            assert low - 1e-12 <= exact[metric].value <= high + 1e-12


# -- ties ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the error sought was not reached")
@pytest.mark.parametrize("ties", ["random", "optimistic", "pessimistic"])
@pytest.mark.parametrize("several", [False, True], ids=["one target", "several targets"])
def test_a_pilot_ranks_its_users_as_the_result_does(ties, several, monkeypatch):
    tied = World(users=400, items=700, seed=2, levels=1)
    users = np.arange(400) // 2 if several else np.arange(400)
    # Of the two targets of a user, one is an even item and one is odd.
    targets = users, tied.targets[1] // 2 * 2 + np.arange(400) % 2
    right, pilots = _guided.second_draw, []

    def second_draw(now, *given, **named):
        complete = now.scored == now.others
        pilots.append((complete & (now.notes.pilot > 0), now.ranks))
        return right(now, *given, **named)

    monkeypatch.setattr(_guided, "second_draw", second_draw)
    options = {"targets": targets, "exclude": None, "metrics": METRICS, "run": Run(ties=ties)}
    found = tied.run("guided", scorer=tied.scores, error=0.2, **options)
    ((complete, ranks),) = pilots
    assert complete.sum() > 10
    assert np.array_equal(ranks[complete], found.ranks[complete])
    full = tied.run("exact", **options)
    assert np.array_equal(ranks[complete], full.ranks[complete])


@pytest.mark.filterwarnings("ignore:the error sought was not reached")
def test_an_error_is_reached_though_scores_tie(world):
    def rounded(users, items):
        return np.round(world.scores(users, items))

    options = {"scorer": rounded, "metrics": "NDCG@10", "error": 0.15}
    found = [world.run("guided", rng=seed, **options) for seed in range(5)]
    assert sum(each.reached for each in found) >= 4


@pytest.mark.parametrize("half_width", [0.0501, 0.5, 0.9949, 0.9999, 1.0, 300.0, np.inf, np.nan])
def test_the_error_so_far_is_a_plain_number(half_width):
    text = _draws.within("NDCG@10", half_width)
    if half_width < 1.0:
        number = text.removeprefix("NDCG@10 within ").removesuffix(" % so far")
        assert set(number) <= set("0123456789.")
        assert 100 * half_width <= float(number) <= 100 * half_width + 1
    else:
        assert text == "NDCG@10 not within 100 % yet"


def test_a_draw_may_reach_everyone():
    share, sizes = np.array([1.0, 1e-12, 0.5]), np.array([10, 300, 40])
    assert _draws._allocated(350, share, sizes=sizes).tolist() == [10, 300, 40]
    assert _draws._allocated(20, share, sizes=sizes).tolist() == [10, 5, 10]
    assert _draws._allocated(60, share, sizes=sizes).tolist() == [10, 10, 40]


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guide", "words"),
    [
        (np.ones(1499), r"a number for each of the 1,500 items, got 1,499"),
        (
            np.where(np.arange(1500) == 7, np.nan, 1.0),
            r"not be NaN, got 1 NaN, the first for item 7",
        ),
        (np.full((600, 1500), np.nan), "scores must not be NaN"),
        (lambda users, items: np.ones(len(items)), "which scores single pairs"),
        ((np.ones((5, 2)), np.ones((1500, 2))), "score every user and item"),
        ((np.ones((600, 2)), np.ones((7, 2))), "as many as the scorer has, got 1500"),
        ("popular", "guide must be a number for each item .*got str"),
    ],
)
def test_bad_guides_are_refused(world, guide, words):
    with pytest.raises(InputError, match=words):
        world.run("guided", guide=guide, budget=60_000)


def test_a_guide_needs_a_design_that_can_be_guided(world):
    for given in ({"guide": np.ones(world.items)}, {"error": 0.1}):
        with pytest.raises(DesignError, match=r"must be left out with design='fixed'"):
            world.run("fixed", **given)
    with pytest.raises(DesignError, match=r"left .* targets open"):
        unsample.estimate(Guided().simulate(np.arange(1, 301), items=2000, budget=9000))
    with pytest.raises(InputError, match="odds must be"):
        Guided().simulate([1, 2], items=10, odds=0.0)


# -- the statistics -------------------------------------------------------------------------------


def _error(losses, size, *, max_loss=1.0, metric="Recall@10"):
    """Return the mean and error of one stratum, of which the first few users were drawn."""
    drawn = np.arange(size) < len(losses)
    values = np.where(drawn, max_loss - np.pad(losses, (0, size - len(losses))), 0.0)
    users = Drawn(np.ones(size), np.ones(size, dtype=np.int64), drawn, drawn)
    return DrawnError.of_drawn(
        users, np.zeros(size), np.full(size, max_loss), values, parse(metric)
    )


@pytest.mark.parametrize(("size", "drawn"), [(1000, 20), (100, 50), (60, 50)])
def test_without_a_loss_limits_are_those_of_a_draw_that_misses_them_all(size, drawn):
    draw = _error(np.zeros(drawn), size).draw
    assert draw.value == 1.0
    low, high = draw.interval(0.95)
    assert high == 1.0

    def missed(lost):
        """Return the probability to draw none of so many users that lose all."""
        return math.comb(size - lost, drawn) / math.comb(size, drawn)

    first_excluded = math.floor((1.0 - low) * size) + 1
    assert missed(first_excluded) < 0.05
    assert missed(math.floor(0.8 * (first_excluded - 1))) > 0.025


def test_few_draws_that_look_alike_are_not_trusted():
    low, high = _error(np.full(4, 0.3), 200).draw.interval(0.95)
    assert low < 0.3
    assert high > 0.95
    nothing = _error(np.empty(0), 50).draw
    assert (nothing.value, nothing.interval(0.95)) == (0.5, (0.0, 1.0))


def _costly_top(count, k=5):
    """Return ranks and where beaters stand: targets in the top K are costly, others leave early."""
    rng = np.random.default_rng(0)
    ranks = np.where(rng.random(count) < 0.3, rng.integers(1, k + 1, count), 1 + 40 * k)
    positions = np.full((count, k), NEVER)
    for target, rank in enumerate(ranks):
        beaters = min(rank - 1, k)
        positions[target, :beaters] = np.sort(rng.choice(np.arange(8, 60), beaters, replace=False))
    return ranks, positions


def test_estimates_are_unbiased_though_the_budget_ends_at_a_costly_user():
    draws = 250
    (ranks, positions), metrics = _costly_top(60), parse_all("Recall@5")
    options = {"budget": 6000, "metrics": metrics, "positions": positions}
    values = [
        estimates_of(simulated(Guided(), ranks, 400, seed, **options), metrics)["Recall@5"].value
        for seed in range(draws)
    ]
    error = np.std(values, ddof=1) / math.sqrt(draws)
    assert abs(np.mean(values) - (ranks <= 5).mean()) < 4 * error
