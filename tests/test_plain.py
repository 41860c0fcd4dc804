"""Results are plain records: they travel through a pickle, and hold no solver and no data."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import unsample
from unsample.designs import Fixed
from unsample.law import draw_sampled_ranks

#: Modules of which no result may hold an object.
NOT_INSIDE = ("pandas", "polars", "pyarrow", "duckdb", "scipy.sparse", "torch", "_solvers")
RNG = np.random.default_rng(0)
FULL = np.ceil(3000 ** RNG.random((2, 300))).astype(int)
RANKS, OTHERS = (draw_sampled_ranks(each, items=3000, sampled=99, rng=RNG) for each in FULL)
SAMPLE = {"items": 3000, "sampled": 99, "metrics": ["NDCG@10", "AUC"]}
FACTORS = tuple(RNG.normal(size=(2, 300, 8)))
TARGETS = (np.arange(300), np.arange(300))


def _evaluate(model=FACTORS, **how):
    return unsample.evaluate(model, TARGETS, items=300, metrics="NDCG@10", **how)


RESULTS = {
    "estimate": lambda: unsample.estimate(RANKS, method=["auto", "mle", "bv"], **SAMPLE),
    "estimate of users": lambda: unsample.estimate(RANKS, users=np.arange(300) // 2, **SAMPLE),
    "estimate of few": lambda: unsample.estimate(RANKS[:20], **SAMPLE),
    "compare": lambda: unsample.compare({"A": RANKS, "B": OTHERS}, **SAMPLE),
    "compare without prior": lambda: unsample.compare(
        {"A": RANKS, "B": OTHERS}, prior=None, **SAMPLE
    ),
    "published": lambda: unsample.published(
        {"HR@10": 0.71, "NDCG@10": 0.42}, items=3706, sampled=99, users=6040
    ),
    "exact": lambda: unsample.exact(RANKS, items=3000),
    "exact design": lambda: _evaluate(design="exact"),
    "certified design": lambda: _evaluate(design="certified"),
    "guided design": lambda: _evaluate(design="guided", budget=12_000),
    "fixed design": lambda: _evaluate(design=Fixed(50)),
    "models together": lambda: _evaluate({"A": FACTORS, "B": (FACTORS[0] + 0.5, FACTORS[1])}),
    "plan": lambda: unsample.plan(items=1000, users=500, budget=60_000),
    "audit": lambda: unsample.audit(RNG.integers(0, 1000, size=(100, 50)), items=1000),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_the_same_after_a_pickle(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = RESULTS[name]()
    packed = pickle.dumps(result)
    again = pickle.loads(packed)
    assert again.to_dict() == result.to_dict()
    assert str(again) == str(result)
    assert len(packed) < 1_000_000
    held = packed.decode("latin1")
    assert [each for each in NOT_INSIDE if each in held] == []


@pytest.mark.filterwarnings("ignore:these sampled ranks are unlike")
def test_an_estimate_answers_further_questions_after_a_pickle():
    result = RESULTS["estimate"]()
    again = pickle.loads(pickle.dumps(result))
    assert again["NDCG@10"].interval(0.8) == result["NDCG@10"].interval(0.8)
    assert again.metric("Recall@37").value == result.metric("Recall@37").value


def test_an_evaluation_keeps_what_was_found_of_each_target():
    result = RESULTS["certified design"]()
    full = RESULTS["exact design"]()
    assert (result.ranks <= full.ranks).all()
    assert (full.ranks <= result.highest).all()
    assert result.users.tolist() == result.targets.tolist() == list(range(300))
