"""Users with several relevant items: estimates, errors, comparisons and plans count users."""

import math

import numpy as np
import pytest

import unsample
from unsample.counts import Targets
from unsample.designs import Fixed
from unsample.errors import (
    DesignError,
    InputError,
    MetricError,
    RankError,
)
from unsample.sampling import draw_sampled_ranks
from unsample.scoring import RowScores

ITEMS, USERS = 300, 400


@pytest.fixture(scope="module")
def world():
    """Make scores, and one to five relevant items for each user, likely ones."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(USERS, 6)) @ rng.normal(size=(6, ITEMS)) + rng.normal(size=ITEMS)
    count = rng.integers(1, 6, USERS)
    likely = np.exp(0.7 * (scores - scores.max(axis=1, keepdims=True)))
    chosen = [
        rng.choice(ITEMS, m, replace=False, p=row / row.sum())
        for m, row in zip(count, likely, strict=True)
    ]
    return scores, np.repeat(np.arange(USERS), count), np.concatenate(chosen)


@pytest.fixture(scope="module")
def model(world):
    scores = world[0]
    return RowScores(scores.__getitem__)


def _rows(world, sampled, seed=0):
    """Put all relevant items of a user and so many others into one scored list."""
    scores, users, targets = world
    rng = np.random.default_rng(seed)
    columns = {name: [] for name in ("user", "item", "target", "score")}
    for user in range(USERS):
        mine = targets[users == user]
        others = rng.permutation(np.setdiff1d(np.arange(ITEMS), mine))[:sampled]
        listed = np.concatenate([mine, others])
        columns["user"].append(np.full(len(listed), user))
        columns["item"].append(listed)
        columns["target"].append(np.arange(len(listed)) < len(mine))
        columns["score"].append(scores[user, listed])
    return {name: np.concatenate(parts) for name, parts in columns.items()}


# -- from sampled ranks --------------------------------------------------------------------------


def test_sums_over_targets_are_weighed_as_each_metric_has_it(world):
    users = world[1]
    ranks = np.random.default_rng(1).integers(1, 22, len(users))
    names = ["Recall@5", "Recall(norm=min)@2", "Precision@5", "NDCG@5", "AUC"]
    found = unsample.estimate(
        ranks, items=ITEMS, sampled=20, users=users, metrics=names, method="naive"
    )
    slow = dict.fromkeys(names, 0.0)
    for user in range(USERS):
        mine = ranks[users == user]
        m, hits = len(mine), mine <= 5
        ideal = sum(1 / math.log2(position + 1) for position in range(1, min(5, m) + 1))
        slow["Recall@5"] += hits.sum() / m / USERS
        slow["Recall(norm=min)@2"] += (mine <= 2).sum() / min(m, 2) / USERS
        slow["Precision@5"] += hits.sum() / 5 / USERS
        slow["NDCG@5"] += (hits / np.log2(mine + 1)).sum() / ideal / USERS
        beaten = (mine - 1) / 20 * (ITEMS - 1)
        slow["AUC"] += (1 - (beaten - (m - 1) / 2) / (ITEMS - m)).mean() / USERS
    assert {name: found[name].value for name in names} == pytest.approx(slow, rel=1e-12)
    assert found.counts.users == USERS
    assert found.to_dict()["targets"] == len(users)


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_no_metric_is_limited_by_what_another_could_reach():
    users, ranks = np.repeat(np.arange(50), 4), np.tile([1, 2, 3, 4], 50)
    for names in (["Recall@2", "Recall@20"], ["Recall@20", "Recall@2"]):
        found = unsample.estimate(
            ranks,
            items=31,
            sampled=30,
            negatives=unsample.Negatives(replacement=False),
            users=users,
            metrics=names,
        )
        assert found["Recall@20"].value == pytest.approx(1.0)
        assert found["Recall@2"].value == pytest.approx(0.5)


def test_what_users_decide_jointly_is_refused_before_a_score_is_asked(world):
    def never(users, items):
        raise AssertionError("nothing must be scored")

    for name in ("HR@10", "MRR@10", "AP@10", "AP(norm=min)@10", "RPrec"):
        with pytest.raises(MetricError, match=r"needs the(ir| ranks of all) .* design='certified'"):
            unsample.evaluate(never, world[1:], items=ITEMS, design="fixed", metrics=name)
    with pytest.raises(MetricError, match="HR@10 of users with several"):
        unsample.estimate([1, 2, 3], items=9, sampled=4, users=[1, 1, 2], metrics="HR@10")
    with pytest.raises(DesignError, match="relevance must be left out with design='fixed'"):
        unsample.evaluate(never, (*world[1:], np.ones(len(world[1]))), items=ITEMS, design="fixed")


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_default_metrics_are_those_that_can_be_told(world, model):
    plain = unsample.estimate([1, 2, 3], items=9, sampled=4, users=[1, 2, 3])
    assert list(plain) == ["Recall@10", "NDCG@10", "Recall@50"]
    several = unsample.estimate([1, 2, 3], items=9, sampled=4, users=[1, 1, 2])
    assert list(several) == ["Recall@10", "NDCG@10"]
    sampled = unsample.evaluate(model, world[1:], items=ITEMS, design=Fixed(9))
    assert list(sampled) == ["Recall@10", "NDCG@10"]
    lists = unsample.estimate(
        _rows(world, 20), items=ITEMS, negatives=unsample.Negatives(replacement=False)
    )
    assert list(lists) == ["Recall@10", "NDCG@10", "AP@10"]


# -- lists ---------------------------------------------------------------------------------------

ALL = ["Recall@20", "HR@20", "Precision@20", "NDCG@20", "AP@20", "MRR@20", "AUC"]


def test_whole_lists_give_exact_metrics(world, model):
    full = unsample.evaluate(model, world[1:], items=ITEMS, design="exact", metrics=ALL)
    lists = unsample.estimate(
        _rows(world, ITEMS),
        items=ITEMS,
        negatives=unsample.Negatives(replacement=False),
        metrics=ALL,
    )
    for name in ALL:
        assert lists[name].value == pytest.approx(full[name].value, rel=1e-12)
        assert lists[name].source == "mean"
        assert lists[name].interval(population=False) == (lists[name].value,) * 2


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_ten_equal_targets_of_a_user_inform_as_one():
    full = np.ceil(400 * np.random.default_rng(1).beta(0.5, 2.0, 300)).astype(int)
    ranks = draw_sampled_ranks(full, items=400, sampled=40, rng=1)
    users = np.repeat(np.arange(300), 10)
    options = {"items": 400, "sampled": 40, "metrics": "Recall@80"}
    alone = unsample.estimate(ranks, **options)["Recall@80"]
    ten = unsample.estimate(np.repeat(ranks, 10), users=users, **options)["Recall@80"]
    assert ten.value == pytest.approx(alone.value, rel=1e-4)
    assert ten.interval() == pytest.approx(alone.interval(), rel=0.02)
    assert ten.bounds() == pytest.approx(alone.bounds(), rel=0.02)


# -- other forms ---------------------------------------------------------------------------------


def test_full_ranks_and_grades_come_in_a_table():
    table = {"user": list("aabbc"), "rank": [1, 4, 2, 9, 30], "relevance": [2, 1, 1, 0, 3]}
    found = unsample.exact(table, items=100, metrics=["NDCG@10", "NDCG(gain=exp)@10", "RPrec"])
    log = np.log2
    first = (2 + 1 / log(5)) / (2 + 1 / log(3))
    assert found["NDCG@10"].value == pytest.approx((first + 1 / log(3)) / 3)
    steep = (3 + 1 / log(5)) / (3 + 1 / log(3))
    assert found["NDCG(gain=exp)@10"].value == pytest.approx((steep + 1 / log(3)) / 3)
    assert found["RPrec"].value == pytest.approx(0.5 / 3)
    sizes = table | {"items": [50] * 5}
    assert unsample.exact(sizes, metrics="RPrec")["RPrec"].value == found["RPrec"].value
    for wrong, words in (
        ({"users": list("aabbc")}, "must be left out with a table"),
        ({"items": None}, "items must be given"),
    ):
        with pytest.raises(InputError, match=words):
            unsample.exact(table, **({"items": 100} | wrong))
    with pytest.raises(RankError, match="at most items, got 30"):
        unsample.exact(table, items=20)
    with pytest.raises(InputError, match="must hold 1 where ranks are sampled, got 0 in 1 row"):
        unsample.estimate(table, items=100, sampled=40)
    for bad in ([1, -1], [1, np.nan], [1]):
        with pytest.raises(InputError, match="relevance must"):
            unsample.exact([1, 2], items=10, relevance=bad)
    with pytest.raises(InputError, match="above 0 for at least one"):
        unsample.exact([1, 2], items=10, relevance=[0, 0])


def test_auc_is_a_mean_whatever_the_catalogues():
    rng = np.random.default_rng(5)
    # Users with large catalogues have good ranks: P(R) alone would mislead.
    items = np.repeat([100, 4000], 2000)
    full = np.concatenate([rng.integers(1, 101, 2000), rng.integers(1, 401, 2000)])
    ranks = draw_sampled_ranks(full, items=items, sampled=50, rng=rng)
    truth = unsample.exact(full, items=items, metrics="AUC")["AUC"].value
    found = unsample.estimate(ranks, items=items, sampled=50, metrics="AUC")["AUC"]
    assert found.value == pytest.approx((1 - (ranks - 1) / 50).mean(), rel=1e-12)
    (low, high), narrow = found.interval(), found.interval(population=False)
    assert found.bounds()[0] < low < narrow[0] <= truth <= narrow[1] < high < found.bounds()[1]
    assert high - low < 0.03


def test_targets_know_their_places_where_all_ranks_are_full():
    found = Targets(np.array([5, 2, 7]), 10, 9, users=["a", "a", "b"], replacement=False)
    relevant, position = found.relevant_and_position
    assert (relevant.tolist(), position.tolist()) == ([2, 2, 1], [2, 1, 1])
    known = unsample.estimate(found, metrics=["HR@4", "MRR"])
    assert known["HR@4"].value == pytest.approx(0.5)
    assert known["MRR"].value == pytest.approx((1 / 2 + 1 / 7) / 2)


def test_wrong_users_and_targets_get_one_message(world, model):
    for users in ([None, "a", "b"], ["a", 1, None]):
        with pytest.raises(InputError, match="users must all be text or all be numbers"):
            unsample.estimate([1, 2, 3], items=9, sampled=4, users=users)
    twice = np.tile(world[1], 2), np.tile(world[2], 2)
    with pytest.raises(InputError, match="targets must name each item of a user once"):
        unsample.evaluate(model, twice, items=ITEMS, design="exact")


def test_targets_of_no_relevance_are_no_targets(world, model):
    users, targets = world[1:]
    relevance = np.arange(len(users)) % 3
    kept = relevance > 0
    options = {"items": ITEMS, "design": "certified", "metrics": "NDCG@5"}
    graded = unsample.evaluate(model, (users, targets, relevance), **options)
    alone = unsample.evaluate(model, (users[kept], targets[kept], relevance[kept]), **options)
    assert graded["NDCG@5"].value == alone["NDCG@5"].value
