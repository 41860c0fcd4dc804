import json
import math
import subprocess
import sys

import numpy as np
import pytest

import unsample
from unsample import Read
from unsample import metrics as metrics_room
from unsample.errors import (
    BiasedMethodWarning,
    DesignError,
    InputError,
    MethodError,
    MetricError,
    RankError,
    UnresolvedWarning,
)


@pytest.fixture(scope="module")
def ranks(design, full_ranks):
    return design.draw(full_ranks, rng=5)


@pytest.fixture(scope="module")
def result(ranks):
    return unsample.estimate(
        ranks, items=400, sampled=30, metrics=["HR@5", "NDCG@40"], method=["mle", "bv"]
    )


def test_a_standard_error_tells_how_a_value_varies(result):
    for entry in result.entries:
        low, high = entry.sampling_interval(0.95)
        assert low < entry.value < high
        assert entry.standard_error == pytest.approx((high - low) / 3.92, rel=0.25)


@pytest.mark.parametrize("level", [0, 1, math.nan, "95"])
def test_levels_outside_are_refused(result, level):
    with pytest.raises(InputError, match="level must be"):
        result.entries[0].interval(level)


def test_small_cutoffs_are_called_unresolved(ranks):
    names = ["Recall@5", "Recall@60", "NDCG@60", "MRR", "AUC"]
    with pytest.warns(UnresolvedWarning, match="falls into the top 14") as caught:
        result = unsample.estimate(ranks, items=400, sampled=30, metrics=names)
    assert len(caught) == 1
    # The reciprocal rank is decided by ranks that the sample cannot see, whatever its K.
    assert [e.resolved for e in result.entries] == [False, True, False, False, True]
    assert "Recall@5, NDCG@60, MRR are not resolved" in result.warnings[0]


def test_the_naive_metric_is_marked_as_biased(ranks):
    with pytest.warns(BiasedMethodWarning, match="do not report it"):
        unsample.estimate(ranks, items=400, sampled=30, metrics="Recall@40", method="naive")


def test_exact_matches_the_definition_and_has_intervals(full_ranks):
    result = unsample.exact(full_ranks, items=400, metrics=["Recall@10", "AUC"])
    assert result["Recall@10"].value == pytest.approx((full_ranks <= 10).mean(), rel=1e-12)
    assert result["AUC"].value == pytest.approx(((400 - full_ranks) / 399).mean(), rel=1e-12)
    low, high = result["Recall@10"].interval()
    spread = math.sqrt(result["Recall@10"].value * (1 - result["Recall@10"].value) / 3000)
    assert (high - low) / 3.92 == pytest.approx(spread, rel=0.25)
    assert result.distribution.cdf(10) == pytest.approx((full_ranks <= 10).mean())


def test_exact_takes_a_catalogue_for_each_target_and_every_rank_stands_alone():
    result = unsample.exact([2, 2], items=[3, 5], metrics=["AUC", "Recall@1"])
    assert result["AUC"].value == pytest.approx((0.5 + 0.75) / 2)
    with pytest.raises(RankError, match="items"):
        unsample.exact([6], items=5)
    ranks = np.random.default_rng(0).integers(1, 5001, size=300)
    result = unsample.exact(ranks, items=5000, metrics="NDCG")
    assert result.distribution.expect("NDCG") == pytest.approx(result["NDCG"].value, rel=1e-12)


def test_errors_count_users_where_they_are_given(full_ranks):
    options = {"items": 400, "metrics": "Recall@10"}
    alone = unsample.exact(full_ranks, **options)["Recall@10"]
    twice = unsample.exact(np.repeat(full_ranks, 2), **options)["Recall@10"]
    users = np.repeat(np.arange(len(full_ranks)), 2)
    with pytest.raises(RankError, match=r"ranks of one user must differ, .* pass filtered"):
        unsample.exact(np.repeat(full_ranks, 2), **options, users=users)
    known = unsample.exact(np.repeat(full_ranks, 2), **options, users=users, filtered=True)[
        "Recall@10"
    ]
    assert twice.standard_error == pytest.approx(alone.standard_error / math.sqrt(2), rel=0.2)
    assert known.standard_error == pytest.approx(alone.standard_error, rel=0.2)
    assert known.value == alone.value == twice.value


def test_one_target_says_next_to_nothing():
    result = unsample.estimate([3], items=400, sampled=30, metrics="Recall@40")
    low, high = result["Recall@40"].interval()
    assert low < 0.05
    assert high > 0.95
    assert math.isnan(result["Recall@40"].standard_error)
    assert json.loads(result.to_json())["estimates"][0]["standard_error"] is None


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"items": None}, DesignError, "items must be given"),
        ({"sampled": None}, DesignError, "sampled must be given"),
        ({"metrics": "NDGC@10"}, MetricError, "did you mean NDCG"),
        ({"metrics": []}, MetricError, "at least one metric"),
        ({"method": "mles"}, MethodError, "did you mean"),
        ({"method": []}, MethodError, "at least one estimator"),
        ({"method": "recall_map", "metrics": "AP@5"}, MetricError, "recall_map can give"),
        ({"read": Read(rng="seed")}, InputError, "rng"),
        ({"read": Read(ties="rand")}, InputError, "did you mean random"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        unsample.estimate([1, 2, 3], **({"items": 400, "sampled": 30} | arguments))


def test_import_loads_nothing_heavy():
    code = "import sys, unsample; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "scipy", "duckdb", "typer", "rich"} & set(loaded)


def test_an_estimate_says_in_a_line_what_is_wrong_with_it():
    options = {"items": 100, "sampled": 9, "metrics": "HR@10"}
    line = str(unsample.estimate([1], **options)["HR@10"])
    assert "NOT RESOLVED" in line
    naive = unsample.estimate([1] * 60 + [9] * 60, **options, method="naive")
    assert "OUTSIDE its interval" in str(naive["HR@10"])
    line = str(unsample.exact([3], items=10, metrics="HR@5")["HR@5"])
    assert line == "HR@5 = 1.0000 [0.0250 .. 1.0000] (exact)"
    decayed = metrics_room.custom("Decayed", lambda rank: 3.0 * 0.9**rank)
    line = str(unsample.exact([3], items=10, metrics=decayed @ 5)[decayed @ 5])
    assert "no interval: nothing varies" in line
    with pytest.raises(RankError, match=r"got 11 at position 1 of 1; check items$"):
        unsample.exact([11], items=10)
