"""Metrics: names and how they are read, means over bins of ranks, and what is refused."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unsample
from unsample import metrics
from unsample._checks import as_index
from unsample.errors import MetricError
from unsample.sampling import RankDistribution, RankGrid, bin_starts, bin_weights

FAMILIES = list(metrics.REGISTRY.values())
AT_K = [family for family in FAMILIES if not family.whole]


@given(
    name=st.sampled_from([(family, label) for family in FAMILIES for label in family.names]),
    k=st.none() | st.integers(1, 10**6),
)
def test_names_round_trip(name, k):
    family, label = name
    k = None if family.whole else k
    metric = metrics.Metric(family, k, label)
    again = metrics.parse(str(metric))
    assert again == metric == pickle.loads(pickle.dumps(metric))
    assert hash(again) == hash(metric)
    assert str(again) == str(metric) == repr(metric) == label + (f"@{k}" if k else "")


@pytest.mark.parametrize(
    ("asked", "name", "same"),
    [
        ("hr@10", "HR@10", metrics.Recall @ 10),
        ("HIT@5", "Hit@5", metrics.Recall @ 5),
        ("mrr", "MRR", metrics.AP()),
        (" ndcg @ +10 ", "NDCG@10", metrics.NDCG @ 10),
    ],
)
def test_a_metric_prints_as_it_was_asked_for(asked, name, same):
    metric = metrics.parse(asked)
    assert str(metric) == metric.name == name
    assert metric.same_as(same)
    assert same.same_as(metric)
    assert metric.same_as(same, several=True) == (metric.family is same.family)
    assert (metric == same) == (name == same.name)
    assert not metric.same_as(metrics.NDCG @ 7)
    assert np.array_equal(metric.weights([1, 5, 50], 90), same.weights([1, 5, 50], 90))


def test_every_name_that_was_asked_for_is_kept_once():
    asked = ["HR@10", "Recall@10", "AP@10", "MRR@10", "hr @ 10"]
    assert [m.name for m in metrics.parse_all(asked)] == asked[:4]
    with pytest.raises(MetricError, match="label must be one of NDCG, got 'HR'"):
        metrics.Metric(metrics.NDCG, 10, "HR")


def test_a_cutoff_is_a_whole_number_however_it_is_spelt():
    assert type((metrics.Recall @ 10.0).k) is int
    assert str(metrics.Recall @ np.int64(10)) == str(metrics.Recall(10.0)) == "Recall@10"
    for k in (0, -3, 1.5):
        with pytest.raises(MetricError, match="K of Recall must be an integer of at least 1"):
            metrics.Recall @ k


@pytest.mark.parametrize("family", [*AT_K, metrics.custom("Own", np.sqrt)], ids=lambda f: f.name)
def test_families_say_whether_the_catalogue_matters_at_a_cutoff(family):
    ranks = np.arange(1.0, 8.0)
    same = np.array_equal((family @ 7).weights(ranks, 100), (family @ 7).weights(ranks, 200))
    assert family.uses_items == (not same)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
@pytest.mark.parametrize("k", [None, 1, 70, 333])
def test_bin_weights_are_means_over_bins(family, k):
    k = None if family.whole else k
    grid = RankGrid.fine(3000, sampled=99, cutoffs=[k] if k else [])
    dense = family(k).weights(np.arange(1, 3001), 3000)
    expected = np.add.reduceat(dense, as_index(grid.low - 1)) / grid.width
    assert np.allclose(bin_weights(family(k), grid, grid.items), expected, rtol=1e-9, atol=1e-15)


def test_a_cutoff_inside_a_bin_counts_its_share():
    grid = RankGrid(bin_starts(1000, single=4, ratio=0.5), 1000)
    distribution = RankDistribution(grid, grid.width / 1000)
    for k in (5, 37, 480, 1000, 5000):
        assert distribution.expect(f"Recall@{k}") == pytest.approx(min(k, 1000) / 1000)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NDGC@10", r"did you mean NDCG@10\?"),
        ("hit-ratio@5", r"did you mean HR@5\?"),
        ("precsion", r"did you mean Precision\?"),
        ("NDCG@0", "at least 1"),
        ("NDCG@", "metric must be"),
        ("", "metric must be"),
        ("10@NDCG", "metric must be"),
        ("MR@10", "K of MR must be left out, got 10"),
        (17, "metric must be"),
    ],
)
def test_bad_names_are_refused(name, words):
    with pytest.raises(MetricError, match=words):
        metrics.parse(name)


def test_names_are_read_whatever_their_spaces_and_quotes():
    assert metrics.parse("recall()@5") == metrics.parse("Recall@5")
    assert str(metrics.parse("AP( norm = 'min' )@10")) == "AP(norm=min)@10"


def test_bad_custom_weights_are_refused():
    with pytest.raises(MetricError, match="name must be"):
        metrics.custom("no spaces", lambda rank: rank)
    family = metrics.custom("Broken", lambda rank: np.log(rank - 1))
    with np.errstate(divide="ignore"), pytest.raises(MetricError, match="with 1 values not finite"):
        (family @ 3).weights([1, 2], 10)
    with pytest.raises(MetricError, match=r"got shape \(1,\)"):
        (metrics.custom("Short", lambda rank: rank[:1]) @ 3).weights([1, 2], 10)
    with pytest.raises(MetricError, match="at least one"):
        metrics.parse_all([])


def test_the_mean_rank_is_the_mean_of_ranks_and_says_what_the_auc_says(full_ranks):
    found = unsample.exact(full_ranks, items=400, metrics=["MR", "AUC"])
    assert found["MR"].value == full_ranks.mean()
    assert found["AUC"].value == pytest.approx((400 - found["MR"].value) / 399)
    with pytest.raises(MetricError, match="use AUC"):
        unsample.compare({"A": full_ranks, "B": full_ranks}, items=400, sampled=399, metrics="MR")
