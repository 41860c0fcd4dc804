"""The adapters' registry, their shared parts, and runs and qrels: TREC files and ranx."""

import subprocess
import sys

import numpy as np
import pytest

import unsample
from tests.libraries import need_library, rank_slowly
from unsample import adapters
from unsample.adapters import REGISTRY, ModelScores, Task, ranx, trec
from unsample.adapters._lists import ListedItems, rank_in_lists
from unsample.adapters._names import numbers_of
from unsample.errors import (
    DesignError,
    FileError,
    InputError,
    MissingExtraError,
    ScoreError,
)
from unsample.evidence import Targets

RUN = {
    "q1": {"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.1},
    "q2": {"a": 0.2, "b": 0.3, "e": 0.9, "f": 0.4},
}
QRELS = {"q1": {"b": 1, "x": 0}, "q2": {"e": 2, "a": 0}}


# -- the registry --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGISTRY)
def test_an_adapter_offers_what_its_module_does(name):
    adapter = REGISTRY[name]
    if name in {"spark", "torchmetrics"}:  # the two that import their library at once
        need_library(name, adapter.distribution)
    public = set(adapter.load().__all__)
    assert set(adapter.offers) == {one for one in public if not one.isupper()}


def test_every_module_is_in_the_registry():
    import pkgutil

    modules = {found.name for found in pkgutil.iter_modules(adapters.__path__)}
    assert {name for name in modules if not name.startswith("_")} == set(REGISTRY)


def test_reading_the_registry_imports_no_library():
    code = (
        "import sys, unsample.adapters as a; [a.REGISTRY[n].load() for n in a.REGISTRY "
        "if n not in ('spark', 'torchmetrics')]; "
        "print(sorted({m.partition('.')[0] for m in sys.modules} & "
        "{'cornac','implicit','lenskit','pykeen','ranx','recbole','rectools','torch','pandas',"
        "'ir_measures','pyspark'}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_missing_library_names_the_line_that_installs_it():
    adapter = REGISTRY["recbole"]
    with pytest.raises(MissingExtraError, match=r"RecBole.*pip install 'recbole==1.2.1' 'numpy<2'"):
        adapter.require("a_module_that_does_not_exist")


def test_versions_are_told_without_importing():
    need_library("trec", "ir_measures")
    assert REGISTRY["trec"].installed()
    nothing = adapters.Adapter("x", "X", "no-such-distribution", {}, install="x", tried="1")
    assert nothing.installed() is None


# -- scores and tasks ----------------------------------------------------------------------------


def test_items_without_a_score_come_last_and_tie():
    table = np.array([[0.5, np.nan, -3.0, np.nan]])
    scores = ModelScores(lambda users: table[users], 4)
    asked = np.array([[1, 2, 3]])
    ordered = scores.score(np.array([0]), asked)[0]
    assert ordered[0] == ordered[2] < ordered[1]
    assert np.isfinite(scores.score_all(np.array([0]))).all()


def test_models_that_score_all_items_are_asked_in_blocks(monkeypatch):
    import unsample.adapters._protocol as protocol

    table = np.random.default_rng(0).normal(size=(50, 7))
    asked = []

    def score_all(users):
        asked.append(len(users))
        return table[users]

    monkeypatch.setattr(protocol, "_ROOM", 7 * 12)
    users, items = np.arange(50), np.random.default_rng(1).integers(0, 7, (50, 3))
    found = ModelScores(score_all, 7).score(users, items)
    assert np.array_equal(found, table[users[:, None], items])
    assert max(asked) == 12


def test_a_user_counts_once_in_a_task():
    targets = np.array([0, 0, 2]), np.array([1, 2, 0])
    scores = ModelScores(lambda users: np.zeros((len(users), 3)), 3)
    task = Task(scores, targets, 3, None, np.arange(3), np.arange(3))
    assert task.weights.tolist() == [0.5, 0.5, 1.0]
    assert repr(task) == "Task(3 targets, 2 users, 3 items)"


def test_names_are_found_whatever_array_they_come_in():
    known = np.array(["b", "a", "c"])
    place = {"what": "item", "here": "test", "there": "train"}
    for kind in (str, object):
        asked = np.array(["c", "b"], dtype=kind)
        assert numbers_of(asked, known.astype(object), **place).tolist() == [2, 0]
    with pytest.raises(
        InputError, match=r"each item of test must be known to train, got 1 of 2.*z"
    ):
        numbers_of(np.array(["a", "z"]), known, **place)
    with pytest.raises(InputError, match=r"test and train must name each item alike, got .*1.*'b'"):
        numbers_of(np.array([1, 2]), known, **place)
    with pytest.raises(InputError, match=r"each item must be named by text .*, got 0.5"):
        numbers_of(np.array(["a", 0.5], dtype=object), known, **place)


# -- lists ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_lists_are_ranked_as_a_loop_would(seed):
    rng = np.random.default_rng(seed)
    run = {
        f"q{q}": {
            f"d{d}": float(rng.integers(0, 6))  # few levels: many ties
            for d in rng.choice(40, rng.integers(8, 15), replace=False)
        }
        for q in range(30)
    }
    qrels = {
        query: dict.fromkeys(rng.choice(list(docs), rng.integers(1, 4), replace=False).tolist(), 1)
        for query, docs in run.items()
    }
    best = trec.targets(run, qrels, items=90, ties="optimistic", each="target")
    worst = trec.targets(run, qrels, items=90, ties="pessimistic")
    drawn = trec.targets(run, qrels, items=90, rng=seed)
    wanted = [
        (query, *rank_slowly(run[query], set(docs), doc), 90 - len(docs) + 1, 1 / len(docs))
        for query, docs in sorted(qrels.items())
        for doc in sorted(docs)
    ]
    users, better, tied, sampled, items, weights = map(np.array, zip(*wanted, strict=True))
    assert np.array_equal(best.users, users)
    assert np.array_equal(best.ranks, 1 + better)
    assert np.array_equal(worst.ranks, 1 + better + tied)
    assert ((best.ranks <= drawn.ranks) & (drawn.ranks <= worst.ranks)).all()
    assert (drawn.ranks != best.ranks).any()
    assert np.array_equal(best.sampled, sampled)
    assert np.array_equal(best.items, items)
    assert np.allclose(worst.weights, weights)
    assert best.weights is None
    assert not best.replacement


def test_lists_give_an_estimate_and_a_comparison():
    rng = np.random.default_rng(0)
    models, qrels = {"A": {}, "B": {}}, {}
    for query in range(200):
        docs = [f"d{d}" for d in rng.choice(5000, 100, replace=False)]
        qrels[f"q{query}"] = {docs[0]: 1}
        for name, lift in (("A", 3.0), ("B", 0.0)):
            scores = rng.normal(size=100) + lift * (np.arange(100) == 0)
            models[name][f"q{query}"] = dict(zip(docs, scores.tolist(), strict=True))
    found = {name: trec.targets(run, qrels, items=5000, sampled=99) for name, run in models.items()}
    estimates = unsample.estimate(found["A"].counts, metrics="Recall@500", resamples=0)
    # A relevant document is above a share Phi(z) of the others, z normal with mean 3: P(z > 1.28).
    assert estimates["Recall@500"].value == pytest.approx(0.957, abs=0.04)
    compared = unsample.compare(found, metrics="Recall@500")
    assert compared.paired


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"items": 1}, DesignError, "items must be an integer of at least 2"),
        ({"items": {"q1": 50}}, DesignError, "items must hold a number for each query.*'q2'"),
        ({"sampled": 5}, DesignError, "run must hold sampled = 5 items .* got 3 for query q1"),
        ({"ties": "realistic"}, InputError, "ties must be random, optimistic or pessimistic"),
        ({"ties": "randon"}, InputError, "did you mean random"),
        ({"each": "query"}, InputError, "each must be one of user, target"),
        ({"relevance": -1}, InputError, "relevance must be"),
        ({"relevance": 3}, InputError, "qrels must hold at least one row"),
        ({"run": {}}, InputError, "run must hold at least one row, got none"),
        ({"run": {"q1": RUN["q1"]}}, InputError, "run must hold every target, got 1 of 2.*item e"),
        ({"run": {"q1": ["a", "b"]}}, InputError, "run must map each query to a dict"),
        ({"run": {"q1": {"b": "high"}}}, ScoreError, "run must have a number for each item"),
        ({"run": {**RUN, "q1": {"a": 1.0, "b": float("nan")}}}, ScoreError, "must not be NaN"),
        ({"run": {**RUN, "q1": {"b": 1.0}}}, DesignError, "at least one item beside the targets"),
        ({"run": {1: {2: 1.0, 3: 0.5}}}, InputError, "must name each query alike, got .*1"),
    ],
)
@pytest.mark.parametrize("adapter", [trec, ranx])
def test_bad_runs_get_one_clear_message(adapter, change, error, message):
    given = {"run": RUN, "qrels": QRELS, "items": 50} | change
    with pytest.raises(error, match=message):
        adapter.targets(**given)


def test_an_item_twice_in_a_list_is_refused():
    twice = ListedItems.of_rows("run", [("q", "a", 1.0), ("q", "a", 0.5), ("q", "b", 0.1)])
    wanted = ListedItems.of_rows("qrels", [("q", "b", 1)])
    with pytest.raises(InputError, match="each item of a query once, got item a of query q again"):
        rank_in_lists(twice, wanted, items=50)


# -- TREC files and ir_measures ------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    need_library("trec", "ir_measures")
    rows = [f"{q} Q0 {d} 0 {s} tag" for q, docs in RUN.items() for d, s in docs.items()]
    judged = [f"{q} 0 {d} {r}" for q, docs in QRELS.items() for d, r in docs.items()]
    run, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    run.write_text("\n".join(rows))
    qrels.write_text("\n".join(judged))
    return run, qrels


def same(one: Targets, other: Targets) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("ranks", "items", "sampled", "users")
    )


def test_files_rows_frames_and_dicts_say_the_same(files):
    import ir_measures
    import pandas as pd

    run, qrels = files
    wanted = trec.targets(RUN, QRELS, items=50, ties="pessimistic")
    assert wanted.ranks.tolist() == [3, 1]
    rows = [list(read(str(path))) for read, path in
            ((ir_measures.read_trec_run, run), (ir_measures.read_trec_qrels, qrels))]  # fmt: skip
    frames = [pd.DataFrame(one) for one in rows]
    objects = [one.astype({"query_id": object, "doc_id": object}) for one in frames]
    for given in (files, map(str, files), rows, frames, objects):
        assert same(trec.targets(*given, items=50, ties="pessimistic"), wanted)


def test_ranks_agree_with_the_metrics_of_ir_measures():
    need_library("trec", "ir_measures")
    import ir_measures
    from ir_measures import RR, R

    rng = np.random.default_rng(3)
    run = {
        f"q{q}": {f"d{d}": float(rng.normal()) for d in rng.choice(500, 21, replace=False)}
        for q in range(100)
    }
    qrels = {query: {next(iter(docs)): 1} for query, docs in run.items()}
    found = trec.targets(run, qrels, items=500, sampled=20)
    wanted = ir_measures.calc_aggregate([RR, R @ 5], qrels, run)
    assert (1 / found.ranks).mean() == pytest.approx(wanted[RR])
    assert (found.ranks <= 5).mean() == pytest.approx(wanted[R @ 5])


def test_bad_files_get_one_clear_message(files, tmp_path):
    run, qrels = files
    with pytest.raises(FileError, match=r"run must be a readable file, got .*nowhere"):
        trec.targets(tmp_path / "nowhere", qrels, items=50)
    with pytest.raises(FileError, match="run must be a TREC file of 6 columns"):
        trec.targets(qrels, qrels, items=50)
    with pytest.raises(FileError, match="qrels must be a TREC file of 4 columns"):
        trec.targets(run, run, items=50)
    with pytest.raises(InputError, match=r"run must be a path, a dict .*, got int"):
        trec.targets(7, qrels, items=50)
    with pytest.raises(InputError, match="got rows without query_id, doc_id, score"):
        trec.targets([1, 2], QRELS, items=50)


def test_a_frame_without_a_column_is_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"query_id": ["q1"], "doc_id": ["b"]})
    with pytest.raises(InputError, match="got rows without score"):
        trec.targets(frame, QRELS, items=50)
    with pytest.raises(InputError, match=r"run must be a ranx.Run or a dict .*, got DataFrame"):
        ranx.targets(frame, QRELS, items=50)


# -- ranx, by the structure that it documents ------------------------------------------------------


class StandIn:
    """What ranx documents of Run and Qrels: ``keys()`` and ``to_dict()``; not the library.

    The real ones are tested in test_adapters_ranx.py, in an environment of their own.
    """

    def __init__(self, lists):
        self.lists = lists

    def keys(self):
        return self.lists.keys()

    def to_dict(self):
        return {query: dict(docs) for query, docs in self.lists.items()}


def test_runs_and_qrels_are_read_by_their_documented_structure():
    found = ranx.targets(StandIn(RUN), StandIn(QRELS), items=50)
    assert same(found, trec.targets(RUN, QRELS, items=50))
    with pytest.raises(InputError, match=r"qrels must be a ranx.Qrels or a dict .*, got list"):
        ranx.targets(StandIn(RUN), [1], items=50)
