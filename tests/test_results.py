"""One contract for what every question returns, and every step of an answer taken once."""

import functools
import importlib.util
import inspect
import json
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import unsample
from unsample.answers import Estimates, Result, _estimate
from unsample.confidence import Certainty
from unsample.errors import InputError, UnsampleWarning
from unsample.estimators import Observed
from unsample.evidence import RankCounts, Targets
from unsample.law import Law

ITEMS, SAMPLED, METRICS = 120, 30, ["hr@20", "NDCG@60", "MRR"]
NAMES = ["HR@20", "NDCG@60", "MRR"]
BACKENDS = [name for name in ("polars", "pandas", "pyarrow") if importlib.util.find_spec(name)]


def _full(seed, users=400):
    share = np.random.default_rng(seed).beta(0.5, 3.0, users)
    return np.ceil(ITEMS * share).astype(int).clip(1)


def _sampled(seed):
    return Law(ITEMS, SAMPLED).draw(_full(seed), rng=seed)


def _negatives():
    return np.random.default_rng(0).integers(ITEMS, size=(50, 10)) // 2


def _evaluate():
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(60, 6)), rng.normal(size=(ITEMS, 6))
    pairs = np.arange(60), rng.integers(ITEMS, size=60)
    return unsample.evaluate(
        (users, items), pairs, items=ITEMS, design="fixed", budget=3000, metrics=METRICS
    )


def _guided():
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(200, 6)), rng.normal(size=(ITEMS, 6))
    pairs = np.arange(200), rng.integers(ITEMS, size=200)
    options = {"items": ITEMS, "metrics": ["hr@20", "NDCG@60", "MRR@60"], "budget": 16_000}
    return unsample.evaluate((users, items), pairs, design="guided", **options)


def _together():
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(200, 6)), rng.normal(size=(ITEMS, 6))
    pairs = np.arange(200), rng.integers(ITEMS, size=200)
    models = {"A": (users, items), "B": (users + rng.normal(size=users.shape), items)}
    options = {"items": ITEMS, "metrics": ["hr@20", "NDCG@60", "MRR@60"], "budget": 32_000}
    return unsample.evaluate(models, pairs, design="guided", **options)


_DESIGN = {"items": ITEMS, "sampled": SAMPLED}
_TWO = {"A": _sampled(0), "B": _sampled(1)}
#: A result of every kind.
RESULTS = {
    "estimate": lambda: unsample.estimate(_sampled(0), **_DESIGN, metrics=METRICS),
    "methods": lambda: unsample.estimate(
        _sampled(0), **_DESIGN, metrics=METRICS, method=["mle", "bv", "naive"]
    ),
    "exact": lambda: unsample.exact(_full(0), items=ITEMS, metrics=METRICS),
    "evaluate": _evaluate,
    "guided": _guided,
    "together": _together,
    "published": lambda: unsample.published(
        {"HR@1": 0.18, "HR@10": 0.69}, items=3706, sampled=99, users=6040, metrics=METRICS
    ),
    "compare": lambda: unsample.compare(_TWO, **_DESIGN, metrics=METRICS),
    "plan": lambda: unsample.plan(items=500, users=1000, metrics="NDCG@10", budget=100_000),
    "audit": lambda: unsample.audit(_negatives(), items=ITEMS),
}
WITH_METRICS = ["estimate", "methods", "exact", "evaluate", "published"]


@functools.cache
def made(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        return RESULTS[kind]()


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_keeps_the_contract(kind, tmp_path):
    result = made(kind)
    assert isinstance(result, Result)
    text = str(result)
    assert text == repr(result)
    assert isinstance(result.warnings, tuple)
    for warning in result.warnings:
        assert warning in text
    assert "<table" in result._repr_html_()
    assert json.loads(result.to_json()) == json.loads(json.dumps(result.to_dict()))
    assert result.to_dict().get("warnings", []) == list(result.warnings)
    assert "\\toprule" in result.to_latex()
    assert "| --" in result.to_markdown() or "|--" in result.to_markdown()
    path = result.to_html(tmp_path / "page.html")
    assert isinstance(path, Path)
    assert path.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_is_a_frame_of_every_library(kind):
    rows = made(kind).rows()
    for backend in (None, *BACKENDS):
        frame = made(kind).to_frame(backend)
        names = frame.column_names if backend == "pyarrow" else list(frame.columns)
        assert (frame.shape[0], names) == (len(rows), list(rows[0]))
    assert all(list(row) == names for row in rows)
    with pytest.raises(InputError, match="one of polars, pandas, pyarrow"):
        made(kind).to_frame("excel")


@pytest.mark.parametrize("kind", WITH_METRICS)
def test_results_with_metrics_are_mappings_of_their_names(kind):
    result = made(kind)
    assert isinstance(result, Mapping)
    assert list(result) == NAMES == list(dict(result.items())) == [str(m) for m in result.metrics]
    assert len(result) == len(list(result.values())) == 3
    assert len(result.entries) == 3 * len(result.methods)
    assert "foo" not in result
    assert "NDCG@7" not in result
    assert 7 not in result
    assert result.get("NDCG@7") is None
    first = result["HR@20"]
    assert (
        first is result["Recall@20"] is result[unsample.metrics.Recall @ 20] is result.get("hr@20")
    )
    assert first.method == result.methods[0]
    for method in result.methods:
        assert result["HR@20", method].method == method
        assert ("HR@20", method) in result
    assert ("HR@20", "rank") not in result
    for missing in ("NDCG@7", "foo", ("HR@20", "rank")):
        with pytest.raises(KeyError, match="there are HR@20, NDCG@60, MRR by"):
            result[missing]


def test_no_kind_of_result_escapes():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    kinds = {kind for kind in below(Result) if kind.__module__.startswith("unsample.answers")}
    whole = {kind for kind in kinds if not inspect.isabstract(kind)}
    assert {type(made(kind)) for kind in RESULTS} == whole


def test_json_has_the_promised_fields():
    data = made("methods").to_dict()
    first = ["items", "sampled", "users", "estimates", "warnings", "candidates", "assumes"]
    assert list(data) == [*first, "explanations", "targets", "filtered", "negatives"]
    assert (data["items"], data["sampled"], data["users"]) == (ITEMS, SAMPLED, 400)
    assert [(row["metric"], row["method"]) for row in data["estimates"]][2:5] == [
        ("MRR", "mle"), ("HR@20", "bv"), ("NDCG@60", "bv"),
    ]  # fmt: skip
    assert list(data["estimates"][0]) == [
        "metric", "method", "value", "low", "high", "guaranteed_low", "guaranteed_high",
        "bound_low", "bound_high", "resolved", "standard_error", "solver",
    ]  # fmt: skip
    assert set(made("published").to_dict()) == {*data, "published"}


def test_the_truth_stands_beside_the_estimates():
    from dataclasses import replace

    result = replace(made("estimate"), truth={"HR@20": 0.5, "NDCG@60": 0.25, "MRR": 0.0})
    row = result.rows()[0]
    assert (row["exact"], row["error"]) == (0.5, pytest.approx(row["value"] - 0.5))
    assert row["relative_error"] == pytest.approx(row["value"] / 0.5 - 1)
    assert result.rows()[2]["relative_error"] is None


# -- every step once ------------------------------------------------------------------------------


@pytest.fixture
def steps(monkeypatch):
    """Count how often each step of an answer is taken."""
    taken = dict.fromkeys(("group", "prepare", "certainty", "evaluate"), 0)

    def count(owner, name, step):
        real = getattr(owner, name)

        def counted(*arguments, **options):
            taken[step] += 1
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, counted)

    count(_estimate, "group_catalogues", "group")
    count(Observed, "prepare", "prepare")
    count(Certainty, "of", "certainty")
    count(unsample.estimators.MLE, "evaluate", "evaluate")
    return taken


def test_an_estimate_takes_every_step_once_and_no_other_before_it_is_asked(steps):
    result = unsample.estimate(_sampled(0), **_DESIGN, metrics=METRICS, method="mle")
    str(result)
    # Estimators and bounds each have a grid of their own to prepare for.
    assert steps == {
        "group": 1, "prepare": 2, "certainty": 1, "evaluate": 1
    }  # fmt: skip
    errors = [entry.standard_error for entry in result.values()]
    assert all(error > 0 for error in errors)
    result.to_dict()
    assert (steps["evaluate"], steps["prepare"]) == (2, 3)


def test_an_evaluation_takes_every_step_once(steps):
    factors = tuple(np.random.default_rng(0).normal(size=(2, 300, 4)))
    pairs = np.arange(300), np.arange(300)
    result = unsample.evaluate(factors, pairs, items=300, design="fixed", budget=9000, method="mle")
    str(result)
    assert steps == {
        "group": 1, "prepare": 2, "certainty": 1, "evaluate": 1
    }  # fmt: skip


def test_a_comparison_takes_every_step_once_for_each_model(steps):
    unsample.compare(_TWO, **_DESIGN, metrics=METRICS, method="mle")
    # Chances come from the posterior, and need no fits of their own.
    assert steps == {
        "group": 2, "prepare": 4, "certainty": 2, "evaluate": 2
    }  # fmt: skip


def test_printed_numbers_take_every_step_once(steps):
    numbers = {"HR@1": 0.18, "HR@10": 0.69}
    result = unsample.published(
        numbers, items=3706, sampled=99, users=6040, metrics="Recall@50", method="mle"
    )
    str(result)
    # The histogram behind the numbers, and what the hit rates tell.
    assert (steps["prepare"], steps["evaluate"]) == (2, 1)


def test_errors_do_not_depend_on_when_they_are_asked_for():
    options = {**_DESIGN, "metrics": METRICS, "method": ["auto", "mle"]}
    some = unsample.estimate(_sampled(0), **options)
    found, barrier = [], threading.Barrier(4)

    def ask(result, entry):
        barrier.wait()
        found.append((entry, result.entries[entry].standard_error))

    again = unsample.estimate(_sampled(0), **options)
    threads = [threading.Thread(target=ask, args=(again, entry)) for entry in (5, 0, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dict(found) == {entry: some.entries[entry].standard_error for entry in (0, 2, 3, 5)}


def test_counts_targets_ranks_and_frames_give_the_same():
    ranks, options = _sampled(0), {"metrics": METRICS}
    given = [
        (ranks, _DESIGN),
        (RankCounts.from_ranks(ranks, **_DESIGN), {}),
        (Targets(ranks, ITEMS, SAMPLED), {}),
    ]
    if BACKENDS:
        given.append((made("estimate").to_frame(BACKENDS[0]).__class__({"rank": ranks}), _DESIGN))
    found = [unsample.estimate(data, **design, **options).to_dict() for data, design in given]
    assert all(answer == found[0] for answer in found)
    for data, _ in given[1:3]:
        with pytest.raises(InputError, match="items must be left out"):
            unsample.estimate(data, items=ITEMS)


def test_warnings_of_every_front_door_stand_in_its_result():
    options = {**_DESIGN, "metrics": "Recall@2"}
    with pytest.warns(UnsampleWarning, match="not resolved") as caught:
        result = unsample.estimate(_sampled(0), **options)
    assert tuple(str(note.message) for note in caught) == result.warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet = unsample.answers.estimate_counts(RankCounts.from_ranks(_sampled(0), **_DESIGN),
                                                 metrics="Recall@2")  # fmt: skip
    assert quiet.warnings == result.warnings
    assert isinstance(quiet, Estimates)


def test_the_surface_is_what_it_was():
    assert unsample.__all__ == sorted(unsample.__all__)
    assert set(unsample.__all__) == {
        "Audit", "Comparison", "Estimates", "Evaluation", "Plan", "Prior", "Published",
        "RankCounts", "Read", "adapters", "audit", "compare", "designs", "errors", "estimate",
        "estimators", "evaluate", "exact", "lab", "metrics", "plan", "published", "sampled_ranks",
        "sql",
    }  # fmt: skip
    for name in (*unsample.__all__, "confidence", "law"):
        assert getattr(unsample, name) is not None
    assert set(dir(unsample)) >= set(unsample.__all__)
    assert {"estimate_counts", "Result", "Difference"} <= set(unsample.answers.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = unsample.nothing
