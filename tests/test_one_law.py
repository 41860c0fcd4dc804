"""What one posterior promises: nothing that follows from it contradicts anything else."""

from dataclasses import replace

import numpy as np
import pytest

import unsample
from unsample.lab import load_ranks
from unsample.law import draw_sampled_ranks

pytestmark = pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
METRICS = ["Recall@10", "NDCG@10", "Recall@100", "AUC"]
LEVELS = (0.6, 0.8, 0.95, 0.99)
USERS = 2000
OPTIONS = {"items": 3706, "sampled": 99, "candidates": "all", "metrics": METRICS}


@pytest.fixture(scope="module")
def ranks():
    """Sampled ranks of three models on the same users, with as many candidates for each."""
    names = ("ease", "als", "neumf")
    full = {name: load_ranks("ml-1m", name, candidates="all").ranks[:USERS] for name in names}
    return {
        name: draw_sampled_ranks(each, items=3706, sampled=99, rng=place)
        for place, (name, each) in enumerate(full.items())
    }


@pytest.fixture(scope="module")
def result(ranks):
    return unsample.compare(ranks, **OPTIONS)


def contradictions(result):
    """Return where a comparison says two things that cannot both be true."""
    found = []
    for pair in result.differences:
        values = [result.estimates[name][pair.metric].value for name in (pair.a, pair.b)]
        if not np.isclose(pair.value, values[0] - values[1], rtol=1e-9, atol=1e-12):
            found.append(f"{pair}: values {values}")
        if pair.chance is None:
            continue
        for level in LEVELS:
            low, high = pair.interval(level)
            passes = max(pair.chance, 1 - pair.chance) > level
            if passes != (low > 0 or high < 0):
                found.append(f"{pair}: {low}, {high} at {level}")
    for row in result.standings:
        if (row.low, row.high) != result.estimates[row.model][row.metric].interval(result.level):
            found.append(f"{row}: another interval than that of the estimate")
        if not row.low - 1e-12 <= row.value <= row.high + 1e-12:
            found.append(f"{row}: outside its interval")
        for other in result.models:
            if row.chance is not None and other != row.model:
                chance = result.chance(row.model, other, row.metric)
                if row.chance > chance + 1e-12:
                    found.append(f"{row}: best more often than better than {other}, {chance}")
    return found


def test_nothing_that_is_said_contradicts_anything_else(result, ranks):
    assert contradictions(result) == []
    alone = unsample.estimate(ranks["als"], **OPTIONS)
    assert result.estimates["als"].to_json() == alone.to_json()
    for metric in METRICS:
        best = [row.chance for row in result.standings if row.metric == metric]
        assert sum(best) == pytest.approx(1.0, abs=0.02)


def test_a_contradiction_would_be_seen(result):
    pair = result.difference("ease", "neumf", "NDCG@10")
    planted = replace(pair, chance=0.999)
    assert contradictions(replace(result, differences=(planted,), standings=()))


def test_a_third_model_and_the_order_change_nothing(result, ranks):
    two = {"neumf": ranks["neumf"], "ease": ranks["ease"]}
    again = unsample.compare(two, **OPTIONS)
    for metric in METRICS:
        pair = again.difference("ease", "neumf", metric)
        before = result.difference("ease", "neumf", metric)
        assert pair.chance == pytest.approx(before.chance, abs=1e-9)
        assert (pair.low, pair.high) == pytest.approx((before.low, before.high), abs=1e-7)
    assert contradictions(again) == []


@pytest.mark.parametrize("metric", ["Recall@100", "AUC"])
def test_pairs_are_of_users_in_whatever_order_they_come(ranks, metric):
    mixed = np.random.default_rng(1).permutation(USERS)
    models = {"ease": ranks["ease"], "als": ranks["als"][mixed]}
    (paired,), (apart,) = (
        unsample.compare(models, users=users, **OPTIONS | {"metrics": metric}).differences
        for users in ({"ease": np.arange(USERS), "als": mixed}, None)
    )
    assert np.ptp(paired.interval()) < 0.95 * np.ptp(apart.interval())
    two = {name: ranks[name] for name in models}
    again = unsample.compare(two, **OPTIONS | {"metrics": metric}).differences[0]
    assert again.chance == pytest.approx(paired.chance, abs=1e-9)


def test_few_users_have_bounds_and_withhold_the_chances_of_their_model_alone(ranks):
    some = {"ease": ranks["ease"], "als": ranks["als"], "few": ranks["neumf"][:40]}
    users = {name: np.arange(len(each)) for name, each in some.items()}
    found = unsample.compare(some, users=users, **OPTIONS)
    for metric in METRICS:
        entry = found.estimates["few"][metric]
        assert entry.source == "bounds"
        assert entry.interval() == entry.interval(population=False) == entry.bounds()
        assert found.chance("few", "ease", metric) is None
        assert 0 < found.chance("ease", "als", metric) < 1
    pair = found.difference("ease", "few", "NDCG@10")
    assert pair.low < pair.value < pair.high
    assert found.to_dict()["differences"][1]["chance"] is None
    assert contradictions(found) == []


def test_without_a_prior_intervals_are_the_bounds(ranks):
    found = unsample.estimate(ranks["ease"], **OPTIONS, prior=None)
    assert found.methods == ("mle",)
    assert [entry.source for entry in found.values()] == ["bounds"] * 3 + ["mean"]
    assert found["NDCG@10"].interval(0.9) == found["NDCG@10"].bounds(0.9)
    apart = unsample.compare(ranks, **OPTIONS | {"metrics": "Recall@1000"}, prior=None)
    assert all(pair.chance is None for pair in apart.differences)


def test_the_interval_is_that_of_the_metric_and_asked_for_later_it_is_the_same(ranks):
    found = unsample.estimate(ranks["ease"], **OPTIONS, method=["auto", "mle", "naive"])
    for metric in METRICS:
        assert len({found[metric, name].interval() for name in found.methods}) == 1
    assert found["NDCG@10", "naive"].value > found["NDCG@10"].interval()[1]
    assert found.distribution("mle").expect("NDCG@10") == pytest.approx(
        found["NDCG@10", "mle"].value
    )
    with pytest.raises(unsample.errors.MethodError, match="one of auto, mle"):
        found.distribution("rank")
    for method in ("auto", "mle"):
        later = unsample.estimate(ranks["ease"], **OPTIONS | {"metrics": "AUC", "method": method})
        for metric in METRICS:
            one, other = later.metric(metric), found[metric, method]
            assert one.to_dict() == pytest.approx(other.to_dict())
            assert one.interval(0.8) == other.interval(0.8)
    naive = unsample.estimate(ranks["ease"], **OPTIONS, method="naive")
    with pytest.raises(unsample.errors.MetricError, match="naive has no P"):
        naive.metric("Recall@37")
    with pytest.raises(unsample.errors.MetricError, match="must be asked for with the ranks"):
        unsample.exact([1, 2, 9], items=10, metrics="MRR").metric("Recall@3")
