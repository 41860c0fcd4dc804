"""`estimate` and `exact`: values, intervals, what is refused and what is said beside."""

import json
import math
import re
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import unsample
from unsample import Read
from unsample.answers._doubts import outside
from unsample.errors import (
    BiasedMethodWarning,
    DesignError,
    InputError,
    MethodError,
    MetricError,
)
from unsample.lab import load_ranks
from unsample.law import draw_sampled_ranks
from unsample.metrics import parse, parse_all


@pytest.fixture(scope="module")
def ranks(design, full_ranks):
    return design.draw(full_ranks, rng=5)


@pytest.fixture(scope="module")
def result(ranks):
    return unsample.estimate(
        ranks, items=400, sampled=30, metrics=["HR@5", "NDCG@40"], method=["mle", "bv"]
    )


@pytest.mark.parametrize("level", [0, 1, math.nan, "95"])
def test_levels_outside_are_refused(result, level):
    with pytest.raises(InputError, match="level must be"):
        result.entries[0].interval(level)


def test_small_cutoffs_are_not_resolved_and_no_warning_says_so(ranks):
    names = ["Recall@1", "Recall@60", "AUC"]
    result = unsample.estimate(ranks, items=400, sampled=30, metrics=names)
    assert [e.resolved for e in result.entries] == [False, True, True]
    assert [e.source for e in result.entries] == ["prior", "prior", "mean"]
    assert result.warnings == ()


def test_the_naive_metric_is_marked_as_biased(ranks):
    with pytest.warns(BiasedMethodWarning, match="do not report it"):
        unsample.estimate(ranks, items=400, sampled=30, metrics="Recall@40", method="naive")


def test_exact_has_intervals_and_a_distribution(full_ranks):
    result = unsample.exact(full_ranks, items=400, metrics=["Recall@10", "NDCG"])
    low, high = result["Recall@10"].interval()
    spread = math.sqrt(result["Recall@10"].value * (1 - result["Recall@10"].value) / 3000)
    assert (high - low) / 3.92 == pytest.approx(spread, rel=0.25)
    for metric, entry in result.items():
        assert result.distribution().expect(metric) == pytest.approx(entry.value, rel=1e-12)


def test_errors_count_users_where_they_are_given(full_ranks):
    twice = {"full_ranks": np.repeat(full_ranks, 2), "items": 400, "metrics": "Recall@10"}
    users = np.repeat(np.arange(len(full_ranks)), 2)
    alone = unsample.exact(full_ranks, items=400, metrics="Recall@10")["Recall@10"]
    unknown = unsample.exact(**twice)["Recall@10"]
    known = unsample.exact(**twice, users=users, filtered=True)["Recall@10"]
    widths = [np.ptp(each.interval()) for each in (alone, unknown, known)]
    assert widths[1] == pytest.approx(widths[0] / math.sqrt(2), rel=0.05)
    assert widths[2] == pytest.approx(widths[0], rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"items": None}, DesignError, "items must be given"),
        ({"sampled": None}, DesignError, "sampled must be given"),
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
    assert not {"numpy", "scipy", "duckdb", "click"} & set(loaded)


def test_a_method_outside_the_bounds_is_told(result):
    entry = result["NDCG@40", "bv"]
    assert outside(entry) == []
    (note,) = outside(replace(entry, value=0.99))
    assert re.match(r"bv.* gives NDCG@40 = 0\.99, outside the bounds 0\.\d+ \.\. 0\.\d+", note.text)


def test_an_exact_value_says_so_in_a_line():
    line = str(unsample.exact([3], items=10, metrics="HR@5")["HR@5"])
    assert line == "HR@5 = 1.0000 [0.0250 .. 1.0000] (exact)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"full_ranks": [11]}, r"got 11 at position 1 of 1; check items$"),
        (
            {"full_ranks": [3, 3], "users": [1, 1]},
            "ranks of one user must differ, .* pass filtered",
        ),
        ({"full_ranks": [3], "items": None}, "items must be given with ranks"),
    ],
)
def test_bad_full_ranks_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        unsample.exact(**{"items": 10} | given)


def test_a_kind_and_a_prior_of_ones_own_are_taken(tmp_path):
    bundled = load_ranks("ml-1m", "ease", candidates="unseen")
    drawn = draw_sampled_ranks(bundled.ranks, items=3706, sampled=99, rng=0)

    def width(**options):
        found = unsample.estimate(
            drawn, items=3706, sampled=99, metrics="NDCG@10", **{"candidates": "unseen", **options}
        )
        return np.ptp(np.log(found["NDCG@10"].interval()))

    known = width()
    assert width(candidates=None) > known
    assert width(kind="graph") != known
    others = [load_ranks("ml-1m", name, candidates="unseen").ranks for name in ("itemknn", "als")]
    own = unsample.Prior.learn(others, items=3706)
    assert width(prior=own) < known
    own.save(tmp_path / "prior.npz")
    assert width(prior=tmp_path / "prior.npz") == pytest.approx(width(prior=own), rel=1e-4)
    for bad, words in (
        ({"kind": "movies"}, "kind must be one of"),
        ({"prior": 5}, "must be a Prior"),
    ):
        with pytest.raises(InputError, match=words):
            width(**bad)


@pytest.mark.parametrize(
    ("dataset", "recommender", "share"),
    [("citeulike-a", "multivae", 0.25), ("citeulike-a", "ease", 0.6), ("pinterest-20", "als", 0.8)],
)
def test_errors_of_auto_are_well_below_those_of_mle(dataset, recommender, share):
    bundled = load_ranks(dataset, recommender)
    names = ["Recall@10", "NDCG@10", "AP@10"]
    truth = unsample.exact(bundled.ranks, items=bundled.items, metrics=names)
    drawn = draw_sampled_ranks(bundled.ranks, items=bundled.items, sampled=99, rng=1)
    found = unsample.estimate(
        drawn, items=bundled.items, sampled=99, metrics=names, method=["auto", "mle"]
    )
    for name in names:
        ours, theirs = (
            abs(np.log(found[name, method].value / truth[name].value)) for method in ("auto", "mle")
        )
        assert ours < share * theirs


# -- what is hardly meant is said, and what is nearly right is understood --------------------------

#: Ranks against 99 negatives, and the design of somebody who counts the target as one of them.
UNIFORM = np.random.default_rng(0).integers(1, 101, 3000)
HUNDRED = {"items": 5000, "sampled": 100}


@pytest.mark.parametrize(
    ("ranks", "options", "wanted"),
    [
        (range(1, 100), {"sampled": 99}, "must be less than items .* got 99 draws from 50"),
        ([1, 4, 10], {"metrics": "NDCG@51"}, r"K must be at most items = 50 .* got NDCG@51"),
        ([1, 4, 10], {"metrics": "NDCG@50"}, None),
        (
            UNIFORM,
            HUNDRED,
            r"none of 3,000 ranks is 101, .* 99 negatives make 100 ranks; give .* 99",
        ),
        (UNIFORM, HUNDRED | {"sampled": 99}, None),
        (UNIFORM[:200], HUNDRED, None),  # too few to tell
        (np.minimum(UNIFORM, 60), HUNDRED, None),  # nobody near the end
        (np.repeat(np.arange(1, 101), np.arange(100, 0, -1)), HUNDRED, None),  # numbers that fall
    ],
)
def test_what_is_hardly_meant_is_said_once(ranks, options, wanted):
    options = {"items": 50, "sampled": 9, "metrics": "Recall@5", **options}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        unsample.estimate(list(ranks), **options)
    texts = [str(each.message) for each in caught]
    said = [text for text in texts if "must be" in text or "drawn beside" in text]
    assert len(said) == (wanted is not None)
    assert wanted is None or re.search(wanted, said[0])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("ndcg10", "NDCG@10"), ("ndcg_at_10", "NDCG@10"), ("ndgc@10", "NDCG@10"),
        ("R@10", "Recall@10"), ("recall@k=10", "Recall@10"), ("Recall top 20", "Recall@20"),
        ("hit_rate@5", "HitRate@5"), ("Hit Ratio@5", "HR@5"), ("MAP10", "MAP@10"), ("p10", "P@10"),
        ("mean average precision@10", "MAP@10"), ("ndcg@", "NDCG"),
        ("NDCG(gain=ex)@5", "NDCG(gain=exp)"),
    ],
)  # fmt: skip
def test_suggestions_make_sense(written, meant):
    with pytest.raises(MetricError, match=re.escape(f"got {written!r}; did you mean {meant}?")):
        parse(written)


@pytest.mark.filterwarnings("ignore:.* users are few")
def test_metrics_may_be_listed_with_commas(run, tmp_path):
    names = ["NDCG@5", "AP(norm=min)@3", "AUC"]
    result = unsample.estimate(
        [1, 2, 10], items=50, sampled=9, metrics="NDCG@5, AP(norm=min)@3,AUC"
    )
    assert [metric.name for metric in result.metrics] == names
    (tmp_path / "ranks.csv").write_text("rank\n1\n2\n10\n")
    listed = ("-m", "NDCG@5,AP(norm=min)@3", "-m", "AUC")
    options = ("--items=50", "--sampled=9", "--json", *listed)
    code, out, _ = run("estimate", tmp_path / "ranks.csv", *options)
    assert (code, [row["metric"] for row in json.loads(out)["estimates"]]) == (0, names)
    with pytest.raises(MetricError, match="got ''"):
        parse_all("NDCG@5,")
    with pytest.raises(MetricError, match=r"got 'F1@10'$"):
        parse("F1@10")
