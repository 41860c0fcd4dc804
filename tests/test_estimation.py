"""`estimate` and `exact`: values, intervals, what is refused and what is said beside."""

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
from unsample.errors import BiasedMethodWarning, InputError, MetricError
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


def test_the_naive_metric_is_marked_as_biased(ranks):
    with pytest.warns(BiasedMethodWarning, match="do not report it"):
        unsample.estimate(ranks, items=400, sampled=30, metrics="Recall@40", method="naive")


def test_exact_has_intervals_and_a_distribution_and_knows_its_ranks(full_ranks):
    result = unsample.exact(full_ranks, items=400, metrics=["Recall@10", "NDCG"])
    low, high = result["Recall@10"].interval()
    spread = math.sqrt(result["Recall@10"].value * (1 - result["Recall@10"].value) / 3000)
    assert (high - low) / 3.92 == pytest.approx(spread, rel=0.25)
    for metric, entry in result.items():
        assert result.distribution().expect(metric) == pytest.approx(entry.value, rel=1e-12)
    line = str(unsample.exact([3], items=10, metrics="HR@5")["HR@5"])
    assert line == "HR@5 = 1.0000 [0.0250 .. 1.0000] (exact)"
    for given, message in (
        ({"full_ranks": [11]}, r"got 11 at position 1 of 1; check items$"),
        ({"full_ranks": [3, 3], "users": [1, 1]}, "one user must differ, .* pass filtered"),
        ({"full_ranks": [3], "items": None}, "items must be given with ranks"),
    ):
        with pytest.raises(InputError, match=message):
            unsample.exact(**{"items": 10} | given)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"items": None}, "items must be given"),
        ({"sampled": None}, "sampled must be given"),
        ({"metrics": []}, "at least one metric"),
        ({"method": []}, "at least one estimator"),
        ({"method": "recall_map", "metrics": "AP@5"}, "recall_map can give"),
        ({"kind": "movies"}, "kind must be one of"),
        ({"prior": 5}, "must be a Prior"),
        ({"read": Read(rng="seed")}, "rng"),
        ({"read": Read(ties="rand")}, "did you mean random"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(InputError, match=words):
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


def test_the_prior_is_that_of_what_is_stated_or_ones_own(tmp_path):
    bundled = load_ranks("ml-1m", "ease", candidates="unseen")
    drawn = draw_sampled_ranks(bundled.ranks, items=3706, sampled=99, rng=0)

    def width(**options):
        given = {"items": 3706, "sampled": 99, "metrics": "NDCG@10", "candidates": "unseen"}
        return np.ptp(np.log(unsample.estimate(drawn, **given | options)["NDCG@10"].interval()))

    known = width()
    assert width(candidates=None) > known
    assert width(kind="graph") != known
    others = [load_ranks("ml-1m", name, candidates="unseen").ranks for name in ("itemknn", "als")]
    own = unsample.Prior.learn(others, items=3706)
    assert width(prior=own) < known
    own.save(tmp_path / "prior.npz")
    assert width(prior=tmp_path / "prior.npz") == pytest.approx(width(prior=own), rel=1e-4)


# -- what is hardly meant is said, and what is nearly right is understood --------------------------

#: Ranks against 99 negatives, and the design of somebody who counts the target as one of them.
UNIFORM = np.random.default_rng(0).integers(1, 101, 3000)
HUNDRED = {"items": 5000, "sampled": 100}


@pytest.mark.parametrize(
    ("ranks", "options", "wanted"),
    [
        (range(1, 100), {"sampled": 99}, "must be less than items .* got 99 draws from 50"),
        ([1, 4, 10], {"metrics": "NDCG@51"}, r"K must be at most items = 50 .* got NDCG@51"),
        (UNIFORM, HUNDRED, "none of 3,000 ranks is 101, .* make 100 ranks; give .* 99"),
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
        ("ndcg10", "NDCG@10"), ("ndcg_at_10", "NDCG@10"), ("R@10", "Recall@10"),
        ("recall@k=10", "Recall@10"), ("Recall top 20", "Recall@20"), ("Hit Ratio@5", "HR@5"),
        ("p10", "P@10"), ("mean average precision@10", "MAP@10"), ("ndcg@", "NDCG"),
        ("NDCG(gain=ex)@5", "NDCG(gain=exp)"),
    ],
)  # fmt: skip
def test_suggestions_make_sense(written, meant):
    with pytest.raises(MetricError, match=re.escape(f"got {written!r}; did you mean {meant}?")):
        parse(written)


def test_metrics_may_be_listed_with_commas():
    names = [metric.name for metric in parse_all("NDCG@5, AP(norm=min)@3,AUC")]
    assert names == ["NDCG@5", "AP(norm=min)@3", "AUC"]
    with pytest.raises(MetricError, match="got ''"):
        parse_all("NDCG@5,")
    with pytest.raises(MetricError, match=r"got 'F1@10'$"):
        parse("F1@10")
