"""One contract for what every question returns, and every step of an answer taken once."""

import importlib.util
import inspect
import json
import pickle
import re
import warnings
from collections.abc import Mapping
from functools import partial
from operator import attrgetter

import pytest

import unsample
from tests import pages
from unsample._gone import GONE
from unsample.answers import Estimates, Result
from unsample.errors import GoneError, InputError, UnsampleWarning
from unsample.evidence import RankCounts
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
        assert warning in text
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
    assert len(packed) < 1_000_000
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

    kinds = {kind for kind in below(Result) if kind.__module__.startswith("unsample.answers")}
    whole = {kind for kind in kinds if not inspect.isabstract(kind)}
    assert {type(pages.result(kind)) for kind in KINDS} == whole


def test_json_has_the_promised_fields():
    data = pages.result("methods").to_dict()
    first = ["items", "sampled", "users", "targets", "estimates", "warnings", "candidates"]
    assert list(data) == [*first, "filtered", "negatives"]
    assert (data["items"], data["sampled"], data["users"]) == (400, 30, 1500)
    assert [(row["metric"], row["method"]) for row in data["estimates"]][2:5] == [
        ("NDCG@50", "naive"), ("Recall@5", "mle"), ("Recall@50", "mle"),
    ]  # fmt: skip
    assert list(data["estimates"][0]) == [
        "metric", "method", "value", "low", "high", "bound_low", "bound_high", "source", "resolved",
    ]  # fmt: skip
    assert set(pages.result("published").to_dict()) == {*data, "published"}


def test_warnings_of_every_front_door_stand_in_its_result():
    few = pages.sampled_ranks()[:20]
    design = {"items": pages.ITEMS, "sampled": pages.SAMPLED}
    options = design | {"metrics": "Recall@2"}
    with pytest.warns(UnsampleWarning, match="20 users are few") as caught:
        result = unsample.estimate(few, **options)
    assert tuple(str(note.message) for note in caught) == result.warnings
    assert [note.name for note in result.notes] == ["few users"]
    with pytest.warns(UnsampleWarning) as caught:
        both = unsample.compare({"A": few, "B": few}, **options)
    # What holds for both models is said once.
    assert tuple(str(note.message) for note in caught) == both.warnings == result.warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counts = RankCounts.from_ranks(few, **design)
        quiet = unsample.answers.estimate_counts(counts, metrics="Recall@2")
    assert quiet.warnings == result.warnings


def test_the_surface_is_what_it_was():
    assert unsample.__all__ == sorted(unsample.__all__)
    assert set(unsample.__all__) == {
        "Across", "Audit", "Comparison", "Estimates", "Evaluation", "Plan", "Prior", "Published",
        "RankCounts", "Read", "Run", "adapters", "audit", "compare", "designs", "errors",
        "estimate", "estimators", "evaluate", "exact", "lab", "metrics", "plan", "published",
        "sampled_ranks", "sql",
    }  # fmt: skip
    for name in (*unsample.__all__, "bounds", "law"):
        assert getattr(unsample, name) is not None
    assert set(dir(unsample)) >= set(unsample.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = unsample.nothing


# -- what went says what to use instead -----------------------------------------------------------


def _attribute(key):
    module, _, name = key.rpartition(".")
    getattr(importlib.import_module(module), name)


def _argument(key):
    function, _, rest = key.partition("(")
    attrgetter(function)(unsample.answers)([1], **{rest.removesuffix("=)"): None})


def _value(key):
    argument, _, value = key.partition("=")
    call = {
        "design": partial(unsample.evaluate, ([[1.0]], [[1.0], [2.0]]), ([0], [0]), items=2),
        "metrics": partial(unsample.estimate, [1], items=9, sampled=3),
        "method": partial(unsample.estimate, [1], items=9, sampled=3),
        "columns": lambda columns: read_counts({"rank": [1], columns: [2]}, Asked(9, 3)),
        "rows": lambda rows: read_counts({"rank": [1]}, Asked(read=unsample.Read(rows=rows))),
    }[argument]
    call(**{argument: value.strip("'")})


@pytest.mark.parametrize("key", GONE)
def test_what_went_says_what_to_use_instead(key, run):
    said = f"{key} went with version 0.3; {GONE[key]}"
    if key.startswith("unsample "):
        code, out, err = run(*key.split()[1:])
        assert (code, out) == (2, "")
        assert said in " ".join(err.split())
        return
    use = _attribute if key.startswith("unsample.") else _value
    with pytest.raises(GoneError, match=re.escape(said)):
        (_argument if key.endswith("=)") else use)(key)
