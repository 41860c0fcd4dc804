"""One contract for what every question returns, and every step of an answer taken once."""

import importlib.util
import inspect
import json
import pickle
import warnings
from collections.abc import Mapping

import numpy as np
import pytest

import unsample
from tests import pages
from unsample.counts import RankCounts
from unsample.errors import InputError, UnsampleWarning
from unsample.questions.estimate.ask import estimate_counts
from unsample.questions.estimate.result import Estimates
from unsample.report import Result
from unsample.tables import Asked, read_counts

BACKENDS = [name for name in ("polars", "pandas", "pyarrow") if importlib.util.find_spec(name)]
NAMES = list(pages.METRICS)
#: Groups are a dict of results.
KINDS = [kind for kind in pages.KINDS if kind != "groups"]
WITH_METRICS = ["estimate", "methods", "exact", "guided", "published"]
#: Modules of which no result may hold an object.
NOT_INSIDE = ("pandas", "polars", "pyarrow", "duckdb", "scipy.sparse", "torch", "_log_density")


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_keeps_the_contract(kind):
    """It prints, and is a plain record that travels and holds no solver and no data."""
    result = pages.result(kind)
    assert isinstance(result, Result)
    text = str(result)
    assert text == repr(result)
    assert isinstance(result.warnings, tuple)
    for warning in result.warnings:
        assert warning in " ".join(text.split())
    assert "<table" in result._repr_html_()
    assert json.loads(result.to_json(), parse_constant=pytest.fail) == result.to_dict()
    assert result.to_dict().get("warnings", []) == list(result.warnings)
    assert "\\toprule" in result.to_latex()
    assert "| --" in result.to_markdown() or "|--" in result.to_markdown()
    packed = pickle.dumps(result)
    again = pickle.loads(packed)
    assert type(again) is type(result)
    assert (again.to_json(), str(again)) == (result.to_json(), text)
    if isinstance(result, Estimates):
        for entry, copy in zip(result.entries, again.entries, strict=True):
            low, high = entry.interval()
            assert copy.interval(0.8) == entry.interval(0.8)
            assert entry.resolved == ((high - low) / 2 <= 0.25 * entry.value)
            assert f"[{low:.4f} .. {high:.4f}]" in str(entry)
            assert repr(entry) == str(entry)
            assert "95 % interval)" in repr(entry) or "95 % bounds)" in repr(entry)
    assert len(packed) < 3_000_000
    assert [each for each in NOT_INSIDE if each in packed.decode("latin1")] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_is_a_frame_of_every_library(kind):
    rows = pages.result(kind).rows()
    for backend in (None, *BACKENDS):
        frame = pages.result(kind).to_frame(backend)
        names = frame.column_names if backend == "pyarrow" else list(frame.columns)
        assert (frame.shape[0], names) == (len(rows), list(rows[0]))
    assert all(list(row) == names for row in rows)
    with pytest.raises(InputError, match="one of polars, pandas, pyarrow"):
        pages.result(kind).to_frame("excel")


@pytest.mark.parametrize("kind", WITH_METRICS)
def test_results_with_metrics_are_mappings_of_their_names(kind):
    result = pages.result(kind)
    assert isinstance(result, Mapping)
    assert list(result) == NAMES == list(dict(result.items())) == [str(m) for m in result.metrics]
    assert len(result) == len(list(result.values())) == 3
    assert len(result.entries) == 3 * len(result.methods)
    assert result.get("NDCG@7") is None
    first = result["Recall@5"]
    assert first is result["HR@5"] is result[unsample.metrics.Recall @ 5] is result.get("hr@5")
    assert first.method == result.methods[0]
    for method in result.methods:
        assert result["Recall@5", method].method == method
        assert ("Recall@5", method) in result
    for missing in ("NDCG@7", "foo", 7, ("Recall@5", "rank")):
        assert missing not in result
        with pytest.raises(KeyError, match="there are Recall@5, Recall@50, NDCG@50 by"):
            result[missing]


def test_no_kind_of_result_escapes():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    for name in unsample.__all__:  # which loads them all
        getattr(unsample, name)
    kinds = {kind for kind in below(Result) if kind.__module__.startswith("unsample.questions")}
    whole = {kind for kind in kinds if not inspect.isabstract(kind)}
    assert {type(pages.result(kind)) for kind in KINDS} == whole


def test_json_has_the_promised_fields():
    data = pages.result("methods").to_dict()
    first = ["schema", "unsample", "items", "sampled", "users", "targets", "estimates", "warnings"]
    assert list(data) == [*first, "level", "protocol", "filtered", "negatives", "P(R)"]
    assert (data["schema"], data["unsample"]) == (1, unsample.__version__)
    assert (data["items"], data["sampled"], data["users"]) == (400, 30, 1500)
    assert [(row["metric"], row["method"]) for row in data["estimates"]][2:5] == [
        ("NDCG@50", "naive"), ("Recall@5", "mle"), ("Recall@50", "mle"),
    ]  # fmt: skip
    assert list(data["estimates"][0]) == [
        "metric", "method", "value", "low", "high", "bound_low", "bound_high", "source", "resolved",
    ]  # fmt: skip
    assert set(pages.result("published").to_dict()) == {*data, "published"}


def test_warnings_of_every_front_door_stand_in_its_result():
    some = pages.sampled_ranks()[:200]
    design = {"items": pages.ITEMS, "sampled": pages.SAMPLED}
    options = design | {"metrics": "Recall@500"}
    with pytest.warns(UnsampleWarning, match="K must be at most items") as caught:
        result = unsample.estimate(some, **options)
    assert tuple(str(note.message) for note in caught) == result.warnings
    assert [note.name for note in result.notes] == ["beyond"]
    with pytest.warns(UnsampleWarning) as caught:
        both = unsample.compare({"A": some, "B": some}, **options)
    # What holds for both models is said once.
    assert tuple(str(note.message) for note in caught) == both.warnings == result.warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = RankCounts.from_ranks(some, **design)
        quiet = estimate_counts(counts, metrics="Recall@500")
    assert quiet.warnings == result.warnings


def test_the_surface_is_what_it_was():
    assert unsample.__all__ == sorted(unsample.__all__)
    assert set(unsample.__all__) == {
        "Across", "Audit", "Comparison", "Estimates", "Evaluation", "Leaderboard", "Negatives",
        "Plan", "Prior", "Published", "RankCounts", "Read", "Run", "adapters", "audit", "compare",
        "designs", "errors", "estimate", "estimators", "evaluate", "exact", "metrics", "plan",
        "published", "report", "sampled_ranks", "scoring", "sql",
    }  # fmt: skip
    for name in (*unsample.__all__, "bounds", "lab", "sampling"):
        assert getattr(unsample, name) is not None
    assert set(dir(unsample)) >= set(unsample.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = unsample.nothing


@pytest.mark.parametrize(
    "module", ["", ".adapters", ".designs", ".errors", ".lab", ".metrics", ".questions", ".report"]
)
@pytest.mark.parametrize("name", ["Shape", "Adaptive", "retrieval", "nothing", "__wrapped__"])
def test_whether_a_module_has_a_name_can_be_asked(module, name):
    assert not hasattr(importlib.import_module(f"unsample{module}"), name)


def test_an_unknown_argument_is_a_type_error():
    for function in (unsample.estimate, unsample.compare, unsample.evaluate, unsample.plan):
        with pytest.raises(TypeError, match="unexpected keyword argument 'shape'"):
            function(shape="smooth")


def test_a_column_that_would_weigh_rows_is_not_passed_over():
    for column in ("weight", "count"):
        with pytest.raises(InputError, match=f"a row for each target, got a column '{column}'"):
            unsample.estimate({"rank": [1], column: [2]}, items=9, sampled=3)


# -- warnings -------------------------------------------------------------------------------------


def _warned_calls():
    """Return calls that warn, each on one line."""
    few, design = [1, 2, 3, 30] * 10, {"items": 31, "sampled": 30}
    table = {"rank": few, "model": ["a", "b"] * 20}
    beyond = {"items": 9, "metrics": "Recall@10"}
    scores = np.arange(81.0).reshape(9, 9)
    paper = {"HR@50": 0.001, "HR@51": 0.9}
    of_paper = {"items": 3706, "sampled": 99, "users": 6040}
    return {
        "estimate": lambda: unsample.estimate(few, method="naive", **design),
        "dict": lambda: unsample.estimate({"a": few}, method="naive", **design),
        "table": lambda: unsample.estimate(table, **design),
        "counts": lambda: read_counts(table, Asked(31, 30)),
        "compare": lambda: unsample.compare({"a": few, "b": [31] * 40}, **design),
        "exact": lambda: unsample.exact([1, 9], **beyond),
        "evaluate": lambda: unsample.evaluate(scores, ([0, 1], [2, 3]), **beyond),
        "published": lambda: unsample.published(paper, **of_paper),
    }


@pytest.mark.parametrize("name", _warned_calls())
def test_a_warning_points_at_the_line_of_the_user(name):
    call = _warned_calls()[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    where = {(each.filename, each.lineno) for each in caught}
    assert where == {(__file__, call.__code__.co_firstlineno)}
