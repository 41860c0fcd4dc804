"""Numbers of papers compared: which claims they support, and from which K on."""

from __future__ import annotations

import functools
import json
import warnings

import pytest

import unsample
from unsample.answers._claims import claims_of
from unsample.answers._comparison import Difference
from unsample.errors import DesignError, InputError, UnsampleWarning
from unsample.lab import load_ranks
from unsample.law import draw_sampled_ranks
from unsample.metrics import parse_all

DESIGN = {"items": 3706, "users": 6040}
METRICS = ("Recall@10", "Recall@100", "Recall@500", "NDCG@100")


def read(numbers, sampled=99, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        return unsample.published(
            numbers, sampled=sampled, **{"metrics": METRICS, **DESIGN, **options}
        )


@functools.cache
def papers():
    return {
        "low": read({"HR@1": "0.180", "HR@5": "0.480", "HR@10": "0.600"}),
        "high": read({"HR@1": "0.310", "HR@5": "0.770", "HR@10": "0.900"}, sampled=100),
    }


@functools.cache
def compared():
    return unsample.compare(papers())


def test_numbers_of_two_papers_are_compared_on_what_was_asked_of_them():
    result = compared()
    assert [metric.name for metric in result.metrics] == list(METRICS)
    assert not result.paired
    assert all(result.estimates[name] is held for name, held in papers().items())
    text = str(result)
    assert "low: from HR@1 = 0.180, HR@5 = 0.480, HR@10 = 0.600; 6,040 targets, 99 of" in text
    assert "high: from HR@1 = 0.310, HR@5 = 0.770, HR@10 = 0.900; 6,040 targets, 100 of" in text
    assert "do not match" not in text
    for claim in result.claims:
        assert str(claim) in text


def test_a_verdict_is_a_chance_that_the_correction_leaves():
    result = compared()
    assert result.winner("Recall@100") == result.winner("Recall@500") == "high"
    for pair in result.differences:
        assert (pair.winner is not None) == (max(pair.chance, 1 - pair.chance) >= 0.95)
        assert pair.winner in (None, "high")


def test_claims_say_from_which_k_on_they_are_supported():
    result = compared()
    told = {(claim.a, claim.metric): claim.supported_from for claim in result.claims}
    assert told["high", "Recall"] <= 100
    supported = result.supported_from("high", "low", "HR")
    assert supported is not None
    assert supported <= 100
    assert result.supported_from("low", "high") is None
    with pytest.raises(KeyError, match="no comparison on AP at any K; there are Recall@10"):
        result.supported_from("high", "low", "AP")
    with pytest.raises(KeyError, match="no difference of high and nobody"):
        result.supported_from("high", "nobody")


def test_a_claim_is_supported_where_no_larger_k_speaks_against_it():
    def pair(k, winner):
        return Difference(f"Recall@{k}", "A", "B", 0.1, 0, 1, 0.9, winner, None)

    metrics = parse_all(["Recall@5", "Recall@10", "Recall@20", "Recall@50", "MRR"])
    (claim,) = claims_of(metrics, [pair(5, "A"), pair(10, None), pair(20, "A"), pair(50, "A")])
    assert (claim.supported_from, claim.cutoffs) == (20, (5, 10, 20, 50))
    assert str(claim) == "Recall@K: A is better than B from K = 20 on (of K = 5, 10, 20, 50)"
    (open_one,) = claims_of(metrics, [pair(5, "A"), pair(50, None)])
    assert (open_one.supported_from, open_one.a) == (None, "A")
    assert "A and B are not told apart" in str(open_one)


def test_ranks_are_compared_with_the_numbers_of_a_paper():
    full = load_ranks("ml-1m", "neumf", candidates="all").ranks[:2000]
    ranks = draw_sampled_ranks(full, items=3706, sampled=99, rng=0)
    given = {"mine": ranks, "theirs": papers()["high"]}
    options = {"items": 3706, "sampled": 99, "metrics": ["Recall@500"]}
    result = unsample.compare(given, **options)
    assert result.winner("Recall@500") == "theirs"
    assert result.warnings == ()
    with pytest.raises(InputError, match=r"paired needs .* no two models whose users are known"):
        unsample.compare(given, **options, paired=True)


def test_other_catalogues_candidates_and_metrics_are_refused():
    other = read({"HR@10": "0.8245"}, items=3416)
    with pytest.raises(DesignError, match=r"one catalogue to be compared, got low 3,706 and x 3,4"):
        unsample.compare({"low": papers()["low"], "x": other})
    some, every = (read({"HR@10": "0.82"}, candidates=said) for said in ("unseen", "all"))
    with pytest.raises(DesignError, match="same candidates to be compared, got a unseen and b all"):
        unsample.compare({"a": some, "b": every})
    with pytest.raises(InputError, match=r"got Recall@7; call published for these too"):
        unsample.compare(papers(), metrics="Recall@7")


# -- on the command line --------------------------------------------------------------------------

CALL = ("published", "--items", 3706, "--users", 6040)


def test_a_reviewer_compares_two_papers(run):
    models = ("NCF:99:HR@10=0.730,NDCG@10=0.447", "SASRec:100:HR@10=0.8245,NDCG@10=0.5905")
    code, out, err = run(*CALL, *models, "--json", "-q")
    assert code == 0, err
    found = json.loads(out)
    assert found["models"] == ["NCF", "SASRec"]
    cutoffs = [10, 20, 50, 100]
    assert [claim["cutoffs"] for claim in found["claims"]] == [cutoffs, cutoffs]
    same = {
        "NCF": read({"HR@10": "0.730", "NDCG@10": "0.447"}, metrics="Recall@100"),
        "SASRec": read({"HR@10": "0.8245", "NDCG@10": "0.5905"}, 100, metrics="Recall@100"),
    }
    (pair,) = unsample.compare(same).differences
    (asked,) = json.loads(run(*CALL, *models, "-m", "Recall@100", "--json", "-q")[1])["differences"]
    assert asked["value"] == pytest.approx(pair.value)
    code, out, _ = run(*CALL, *models, "-m", "Recall@100", "--latex", "-q")
    assert code == 0
    assert r"\textbf{" in out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["HR@10=0.7"], "sampled must be given with printed numbers"),
        (["A:99:HR@10=0.7"], "at least two to be compared, got 'A' alone; for one, say --sampled"),
        (["A:99:HR@10=0.7", "HR@1=0.1"], "got 'HR@1=0.1' and 'A:99:HR@10=0.7'"),
        (["A:x:HR@10=0.7", "B:99:HR@10=0.7"], "a model must be given as NAME:SAMPLED:METRIC"),
        ([f"A:{'9' * 5000}:HR@10=0.7", "B:99:HR@10=0.7"], "a model must be given as NAME:SAMPLED"),
        (["A:0:HR@10=0.7", "B:99:HR@10=0.7"], "sampled of A must be an integer of at least 1"),
        (["A:99:", "B:99:HR@10=0.7"], "a number must be given as METRIC=VALUE"),
        (["A:99:HR@10=0,7", "B:99:HR@10=0.7"], "a number must be given as METRIC=VALUE"),
        (["A:99:HR@10=0.7", "A:99:HR@10=0.8"], "once by each name, got 'A' twice"),
        (["A:99:HR@10=0.7", "B:9:HR@10=0.8"], "B: K of HR@10 must be at most sampled = 9"),
        (["A:99:HR@1=0.9,HR@10=0.7", "B:99:HR@10=0.8"], "A: HR@1 = 0.9 and HR@10 = 0.7 contradict"),
        (["A:99:HR@10=0.7", "B:99:HR@10=0.8", "--sampled", 99], "sampled must be left out"),
    ],
)  # fmt: skip
def test_wrong_claims_get_one_message(run, given, message):
    code, out, err = run(*CALL, *given)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_names_may_hold_colons(run):
    code, out, _ = run(*CALL, "A:1:99:HR@10=0.7", "B:99:HR@10=0.8", "-m", "Recall@50", "--json")
    assert code == 0
    assert json.loads(out)["models"] == ["A:1", "B"]


# -- on ranks whose truth is known ----------------------------------------------------------------
