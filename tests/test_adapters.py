"""Adapters: one contract over every library that is installed, and the parts they share.

`make libraries` runs this file once with each real library, in an environment of its own.
"""

import ast
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tools.library_metrics import LIBRARIES as ASKED
from tools.library_metrics import Problem

import unsample
from tests.libraries import LIBRARIES, need_library, ours
from unsample import adapters
from unsample.adapters import (
    INSTALL,
    ModelScores,
    Task,
    cornac,
    implicit,
    lenskit,
    pykeen,
    ranx,
    recbole,
    rectools,
    trec,
)  # fmt: skip
from unsample.adapters._lists import numbered
from unsample.adapters._tasks import require
from unsample.designs import FactorScores, ItemItemScores
from unsample.errors import DesignError, FileError, InputError, MissingExtraError, ScoreError

HOME = Path(__file__).parents[1]
EXAMPLES = HOME / "examples" / "adapters"
NAMES = sorted(path.stem.removeprefix("with_") for path in EXAMPLES.glob("with_*.py"))
foreign = pytest.mark.filterwarnings("ignore")  # the libraries' own warnings


def evaluate(task, design="exact", metrics=("Recall@10",), ties="random"):
    """Evaluate a task on the whole catalogue."""
    return unsample.evaluate(
        task.scorer, task.targets, items=task.items, exclude=task.exclude,
        design=design, metrics=list(metrics), ties=ties, resamples=0,
    )  # fmt: skip


# -- the contract, with the real libraries ---------------------------------------------------------


@cache
def library(name):
    need_library(name)
    return LIBRARIES[name]()


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """RecBole writes logs to where it is run."""
    monkeypatch.chdir(tmp_path)


def kinds(attribute):
    return [
        pytest.param(name, kind, id=f"{name}-{kind}")
        for name in LIBRARIES
        for kind in getattr(LIBRARIES[name], attribute)
    ]


@foreign
@pytest.mark.parametrize(("name", "kind"), kinds("tasks"))
def test_a_task_gives_the_metrics_of_the_library(name, kind):
    asked = library(name).task(kind)
    cut = [metric for metric in asked.wanted if "@" in metric]  # a certificate needs a K
    low, high, certified = (
        evaluate(asked.task, design, metrics, ties)
        for design, metrics, ties in (
            ("exact", asked.wanted, "pessimistic"),
            ("exact", asked.wanted, "optimistic"),
            ("certified", cut, "pessimistic"),
        )
    )
    for metric, wanted in asked.wanted.items():
        rounded = asked.rounded * max(1.0, abs(wanted))
        assert low[metric].value - rounded <= wanted <= high[metric].value + rounded
        assert asked.ties or low[metric].value >= high[metric].value - 2 * rounded
    for metric in cut:
        assert certified[metric].value == pytest.approx(low[metric].value, rel=0, abs=1e-12)
    if asked.factors is not None:
        assert isinstance(
            asked.task.scorer, FactorScores if asked.factors else ModelScores | ItemItemScores
        )
    assert len(asked.task.item_ids) == asked.task.items
    assert len(asked.task.user_ids) > asked.task.targets[0].max()


@foreign
@pytest.mark.parametrize(("name", "kind"), kinds("ranked"))
def test_targets_are_the_ranks_that_a_loop_finds(name, kind):
    wanted = library(name).targets(kind)
    found = {rule: wanted.targets(ties=rule) for rule in ("optimistic", "random", "pessimistic")}
    best, drawn, worst = (found[rule].ranks for rule in found)
    assert np.array_equal(best, 1 + wanted.better)
    assert np.array_equal(worst, 1 + wanted.better + wanted.tied)
    assert ((best <= drawn) & (drawn <= worst)).all()
    assert np.array_equal(found["random"].items, wanted.items)
    assert (found["random"].sampled == wanted.sampled).all()
    assert found["random"].counts.total == len(drawn)


@foreign
@pytest.mark.parametrize("name", LIBRARIES)
def test_what_does_not_fit_is_refused_with_one_clear_message(name):
    for message, (call, *given) in library(name).refusals().items():
        with pytest.raises(InputError, match=message):
            call(*given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cornac.task("MF", "split"), "method must be an evaluation method of cornac"),
        (lambda: implicit.task("ALS", np.ones((2, 2)), 0), r"train must be a scipy .* got ndarray"),
        (lambda: lenskit.task("ALS", 0, 0), "pipeline must be a pipeline of lenskit, got str"),
        (lambda: lenskit.targets({}, 0, items=9), "scored must be an ItemListCollection .* dict"),
        (lambda: pykeen.task("TransE", 0), "model must be a model of pykeen, got str"),
        (lambda: pykeen.targets(0), "must be a SampledRankBasedEvaluator, got int; the ranks of"),
        (lambda: recbole.task("EASE", 0), "model must be a model of recbole, got str"),
        (lambda: recbole.targets("EASE", 0, ties="realistic"), "ties must be one of random, opt"),
        (lambda: rectools.task("model", 0, 0), "model must be a model of rectools, got str"),
        (lambda: rectools.targets([], 0, items=9), "reco must be a pandas frame, got list"),
    ],
)
def test_objects_of_another_kind_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@foreign
@pytest.mark.parametrize("several", [False, True])
def test_recbole_targets_are_ranked_among_what_was_drawn_for_their_user(several):
    from scipy import stats

    made = library("recbole")
    split = made.several if several else made.one_target
    model, test, _ = made.train("EASE", "full", split)
    task = recbole.task(model, test)
    exact = evaluate(task).ranks
    _, _, loader = made.prepare("EASE", "uni50", split)
    found = [recbole.targets(model, loader, rng=seed) for seed in range(40)]
    user = task.targets[0]
    size = np.bincount(user)
    assert np.array_equal(found[0].sampled, 50 * size[user])
    assert (size.max() > 1) == several
    # What a user knows was not drawn: N is what a full ranking leaves.
    assert np.array_equal(found[0].items, task.items - np.diff(task.exclude.indptr)[user])
    # Over many passes, ranks have the means that the full ranks and the binomial law give. Of each
    # user together: the loader has the targets of a user in another order.
    wanted = np.bincount(user, (exact - 1) / (found[0].items - 1))
    drawn = np.array([np.bincount(user, (one.ranks - 1) / one.sampled) for one in found])
    spread = drawn.std(axis=0, ddof=1)
    z = (drawn.mean(axis=0) - wanted)[spread > 0] / spread[spread > 0] * np.sqrt(len(found))
    assert len(z) > 80
    assert stats.kstest(z, stats.t(len(found) - 1).cdf).pvalue > 1e-3
    if several:
        # As RecBole has it, all targets of a user stand in one list.
        assert all(one.counts.several for one in found)
        assert np.array_equal(np.bincount(user, found[0].places), size * (size + 1) / 2)


@foreign
def test_recbole_sequences_and_printed_metrics():
    made = library("recbole")
    model, full, _ = made.train("SASRec", "full", made.one_target)
    assert recbole.task(model, full).exclude is None  # the history stays among the candidates
    _, _, loader = made.prepare("SASRec", "uni50", made.one_target)
    assert (recbole.targets(model, loader).items == loader.dataset.item_num - 1).all()
    model, test, results = made.train("EASE", "uni50", made.one_target)
    _, full, _ = made.train("EASE", "full", made.one_target)
    low, high = recbole.published(results, test, metrics="Recall@20")["Recall@20"].interval(0.99)
    truth = evaluate(recbole.task(model, full), metrics=["Recall@20"])["Recall@20"].value
    assert low <= truth <= high


# -- how libraries are got -------------------------------------------------------------------------


def test_every_module_has_an_example_and_says_how_to_install_its_library():
    modules = {found.name for found in pkgutil.iter_modules(adapters.__path__)}
    assert {name for name in modules if not name.startswith("_")} == set(INSTALL)
    assert set(NAMES) == set(INSTALL) - {"spark"}  # an example each; docs/frames.md shows Spark's
    with pytest.raises(MissingExtraError, match=r"pip install recbole==1\.2\.1 'numpy<2'"):
        require("recbole", "a_module_that_does_not_exist")


def test_adapters_import_no_library():
    code = (
        "import sys, importlib, unsample.adapters as a\n"
        "for name in set(a.INSTALL) - {'spark', 'torchmetrics'}:\n"
        "    importlib.import_module(f'unsample.adapters.{name}')\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & "
        "{*a.INSTALL, 'torch', 'pandas', 'pytorch_lightning', 'pyspark'}))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


# -- scores and tasks ------------------------------------------------------------------------------


def test_models_that_score_all_items_are_asked_in_blocks(monkeypatch):
    table = np.random.default_rng(0).normal(size=(50, 7))
    table[:, 5] = np.nan
    asked = []

    def score_all(users):
        asked.append(len(users))
        return table[users]

    monkeypatch.setattr("unsample.adapters._tasks._ROOM", 7 * 12)
    users, items = np.arange(50), np.random.default_rng(1).integers(0, 7, (50, 3))
    found = ModelScores(score_all, 7).score(users, items)
    # Items without a score come last, and tie.
    last = np.finfo(np.float64).min
    assert np.array_equal(found, np.nan_to_num(table, nan=last)[users[:, None], items])
    assert max(asked) == 12


def test_a_task_has_each_target_once():
    scores = ModelScores(lambda users: np.zeros((len(users), 3)), 3)
    held_out = np.array([2, 0, 0, 0]), np.array([0, 2, 1, 2])
    seen = np.array([1, 1, 2]), np.array([0, 0, 2])
    task = Task.of_pairs(scores, held_out, seen, (np.arange(3), np.arange(3)))
    assert [column.tolist() for column in task.targets] == [[0, 0, 2], [1, 2, 0]]
    assert task.exclude.toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert repr(task) == "Task(3 targets, 2 users, 3 items)"


def test_names_are_found_whatever_array_they_come_in():
    ids = np.array([7, 5, 6]), np.array(["b", "a", "c"], dtype=object)
    place = {"here": "test", "there": "train"}
    for kind in (str, object):
        pairs = np.array([5, 5]), np.array(["c", "b"], dtype=kind)
        assert [found.tolist() for found in numbered(pairs, ids, **place)] == [[1, 1], [2, 0]]
    for strange, message in (
        (np.array(["a", "z"]), "each item of test must be known to train, got 1 of 2.*z"),
        (np.array([1, 2]), "test and train must name each item alike, got .*1.*'b'"),
        (np.array(["a", 0.5], dtype=object), "each item must be named by text .*, got 0.5"),
        (np.array(["a", 5], dtype=object), "each item must be named by text .*, got both"),
    ):
        with pytest.raises(InputError, match=message):
            numbered((np.array([5, 5]), strange), ids, **place)


# -- lists: TREC files, ir_measures and ranx -------------------------------------------------------

RUN = {
    "q1": {"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.1},
    "q2": {"a": 0.2, "b": 0.3, "e": 0.9, "f": 0.4},
}
QRELS = {"q1": {"b": 1, "x": 0}, "q2": {"e": 2, "a": 0}}
ROW = SimpleNamespace(query_id="q", doc_id="a", score=1.0)


@pytest.mark.parametrize("seed", range(3))
def test_lists_are_ranked_as_a_loop_would(seed):
    rng = np.random.default_rng(seed)
    run, qrels, wanted = {}, {}, []
    for query in sorted(f"q{number}" for number in range(30)):
        docs = rng.choice(40, rng.integers(8, 15), replace=False)
        # Few levels of scores: many ties.
        run[query] = {f"d{doc}": float(rng.integers(0, 6)) for doc in docs}
        qrels[query] = dict.fromkeys(rng.choice(list(run[query]), rng.integers(1, 4), False), 1)
        others = [score for doc, score in run[query].items() if doc not in qrels[query]]
        for doc in sorted(qrels[query]):
            better = sum(score > run[query][doc] for score in others)
            tied = sum(score == run[query][doc] for score in others)
            size = len(qrels[query])
            wanted.append((query, better, tied, len(others), 90 - size + 1, size))
    users, better, tied, sampled, items, relevant = map(np.array, zip(*wanted, strict=True))
    best, worst, drawn = (
        trec.targets(run, qrels, items=90, ties=rule, rng=seed, filtered=True)
        for rule in ("optimistic", "pessimistic", "random")
    )
    assert np.array_equal(best.ranks, 1 + better)
    assert np.array_equal(worst.ranks, 1 + better + tied)
    assert ((best.ranks <= drawn.ranks) & (drawn.ranks <= worst.ranks)).all()
    assert (drawn.ranks != best.ranks).any()
    for found, values in ((best.users, users), (best.sampled, sampled), (best.items, items)):
        assert np.array_equal(found, values)
    assert not best.replacement
    assert not best.counts.several
    lists = trec.targets(run, qrels, items=90, rng=seed)
    assert lists.items.tolist() == [90] * len(users)
    assert lists.counts.relevant.max() == relevant.max()
    alone = relevant == 1
    assert (lists.places[alone] == 1).all()
    assert np.array_equal(lists.ranks[alone], drawn.ranks[alone])
    # The order of a query's targets is that of their scores.
    scores = [(query, -run[query][doc]) for query in sorted(qrels) for doc in sorted(qrels[query])]
    for query in set(users.tolist()):
        mine = np.flatnonzero(users == query)
        order = sorted(mine, key=lambda row: lists.places[row])
        assert [scores[row][1] for row in order] == sorted(scores[row][1] for row in mine)


def test_lists_give_a_comparison_of_models_by_query():
    rng = np.random.default_rng(0)
    runs, qrels = {"A": {}, "B": {}}, {}
    for query in map(str, range(200)):
        qrels[query] = {"0": 1}
        for name, lift in (("A", 3.0), ("B", 0.0)):
            scores = rng.normal(size=100) + lift * (np.arange(100) == 0)
            runs[name][query] = {str(doc): score for doc, score in enumerate(scores.tolist())}
    found = {name: trec.targets(run, qrels, items=5000, sampled=99) for name, run in runs.items()}
    estimates = unsample.estimate(found["A"].counts, metrics="Recall@500", resamples=0)
    # A relevant document is above a share Phi(z) of the others, z normal with mean 3: P(z > 1.28).
    assert estimates["Recall@500"].value == pytest.approx(0.957, abs=0.04)
    assert unsample.compare(found, metrics="Recall@500").paired


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"items": 1}, DesignError, "items must be an integer of at least 2"),
        ({"items": {"q1": 50}}, DesignError, "items must hold a number for each query.*'q2'"),
        ({"sampled": 5}, DesignError, "run must hold sampled = 5 items .* got 3 for query q1"),
        ({"ties": "realistic"}, InputError, "ties must be one of random, optimistic, pessimistic"),
        ({"relevance": -1}, InputError, "relevance must be"),
        ({"relevance": 3}, InputError, "qrels must hold at least one row"),
        ({"run": {}}, InputError, "run must hold at least one row, got none"),
        ({"run": {"q1": RUN["q1"]}}, InputError, "run must hold every target, got 1 of 2.*item e"),
        ({"run": {"q1": ["a", "b"]}}, InputError, "run must map each query to a dict"),
        ({"run": {"q1": {"b": "high"}}}, ScoreError, "run must have a number for each item"),
        ({"run": {**RUN, "q1": {"a": 1.0, "b": float("nan")}}}, ScoreError, "must not be NaN"),
        ({"run": {**RUN, "q1": {"b": 1.0}}}, DesignError, "at least one item beside the targets"),
        ({"run": {1: {2: 1.0, 3: 0.5}}}, InputError, "must name each query alike, got .*1"),
        ({"run": 7}, InputError, r"run must be a path, a ranx.Run .*, got int"),
        ({"run": [1, 2]}, InputError, "got rows without query_id, doc_id, score"),
        ({"run": [ROW, ROW], "qrels": {"q": {"a": 1}}}, InputError, "got item a of query q again"),
    ],
)
def test_bad_runs_get_one_clear_message(change, error, message):
    given = {"run": RUN, "qrels": QRELS, "items": 50} | change
    with pytest.raises(error, match=message):
        trec.targets(**given)


@pytest.fixture
def files(tmp_path):
    need_library("trec")
    rows = [f"{q} Q0 {d} 0 {s} tag" for q, docs in RUN.items() for d, s in docs.items()]
    judged = [f"{q} 0 {d} {r}" for q, docs in QRELS.items() for d, r in docs.items()]
    run, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    run.write_text("\n".join(rows))
    qrels.write_text("\n".join(judged))
    return run, qrels


def test_files_rows_frames_and_dicts_say_the_same(files):
    import ir_measures
    import pandas as pd

    run, qrels = map(str, files)
    rows = [list(ir_measures.read_trec_run(run)), list(ir_measures.read_trec_qrels(qrels))]
    frames = [pd.DataFrame(table) for table in rows]
    objects = [table.astype({"query_id": object, "doc_id": object}) for table in frames]
    wanted = trec.targets(RUN, QRELS, items=50, ties="pessimistic")
    assert wanted.ranks.tolist() == [3, 1]
    # What ranx documents of Run and Qrels.
    as_ranx = [SimpleNamespace(to_dict=lambda found=lists: found) for lists in (RUN, QRELS)]
    for given in (files, (run, qrels), rows, frames, objects, as_ranx):
        found = ranx.targets(*given, items=50, ties="pessimistic")
        for name in ("ranks", "items", "sampled", "users"):
            assert np.array_equal(getattr(found, name), getattr(wanted, name))
    with pytest.raises(InputError, match="got rows without score"):
        trec.targets(frames[0].drop(columns="score"), QRELS, items=50)


def test_bad_files_get_one_clear_message(files, tmp_path):
    run, qrels = files
    for given, message in (
        ((tmp_path / "nowhere", qrels), r"run must be a readable file, got .*nowhere"),
        ((qrels, qrels), "run must be a TREC file of 6 columns"),
        ((run, run), "qrels must be a TREC file of 4 columns"),
    ):
        with pytest.raises(FileError, match=message):
            trec.targets(*given, items=50)


@foreign
@pytest.mark.parametrize("name", ["trec", "ranx"])
def test_ranks_agree_with_the_metrics_of_the_library(name):
    need_library(name)
    rng = np.random.default_rng(3)
    run = {
        f"q{q}": {f"d{d}": float(rng.normal()) for d in rng.choice(500, 21, replace=False)}
        for q in range(100)
    }
    qrels = {query: {next(iter(docs)): 1} for query, docs in run.items()}
    if name == "trec":
        from ir_measures import RR, R, calc_aggregate

        reciprocal, recall = map(calc_aggregate([RR, R @ 5], qrels, run).get, (RR, R @ 5))
    else:
        from ranx import Qrels, Run
        from ranx import evaluate as theirs

        run, qrels = Run(run), Qrels(qrels)
        reciprocal, recall = theirs(qrels, run, ["mrr", "hit_rate@5"]).values()
    found = ranx.targets(run, qrels, items=500, sampled=20)
    assert (1 / found.ranks).mean() == pytest.approx(reciprocal)
    assert (found.ranks <= 5).mean() == pytest.approx(recall)


@foreign
@pytest.mark.parametrize("name", ["trec", "ranx"])
def test_full_lists_give_what_the_library_prints(name):
    need_library(name)
    problem = Problem.random(1, users=30)
    said = ASKED[name][1](problem)
    for graded, qrels in ((False, problem.binary()), (True, problem.qrels())):
        # Of metrics with grades, those that are not rounded.
        wanted = ours(name, {theirs: number for theirs, number in said.items()
                             if theirs.startswith("graded ") == graded
                             and "exp-log2" not in theirs})  # fmt: skip
        found = ranx.targets(problem.run(), qrels, items=problem.items)
        exact = unsample.exact(
            found.ranks, items=found.items, users=found.users, relevance=found.relevance,
            metrics=list(wanted), resamples=0,
        )  # fmt: skip
        assert len(wanted) > 10
        assert (found.relevance is not None) == graded
        assert {m: exact[m].value for m in wanted} == pytest.approx(wanted, rel=0, abs=1e-9)
        if not graded:
            names = [metric for metric in wanted if metric != "RPrec"]  # which counts do not tell
            counted = unsample.estimate(found.counts, metrics=names, resamples=0)
            values = {metric: counted[metric].value for metric in names}
            assert values == pytest.approx({m: wanted[m] for m in names}, rel=0, abs=1e-9)


# -- the examples, and the page that shows them ----------------------------------------------------

#: The functions that lead from a library's objects to the whole catalogue.
WAYS = (
    "full_catalogue", "ask_the_model", "ask_the_pipeline", "from_printed_metrics", "in_one_line",
    "watched", "measured",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_ten_lines_are_enough(name):
    tree = ast.parse((EXAMPLES / f"with_{name}.py").read_text())
    ways = [part for part in tree.body if isinstance(part, ast.FunctionDef) and part.name in WAYS]
    assert ways
    for way in ways:
        assert way.end_lineno - way.body[0].end_lineno <= 10, way.name


@foreign
@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name):
    need_library(name)
    path = EXAMPLES / f"with_{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = [
        {name: float(getattr(value, "value", value)) for name, value in result.items()}
        for result in module.main()
    ]
    for values in found:
        assert values
        assert all(0 < value < 1 for value in values.values()), values
    # Two ways to the whole catalogue lead to the same place, sampling error aside.
    for metric in set.intersection(*map(set, found)):
        assert found[0][metric] == pytest.approx(found[-1][metric], abs=0.06), metric


BLOCK = re.compile(r"<!-- (examples/adapters/\S+) -->\n```python\n(.*?)```", re.DOTALL)


def test_the_page_shows_what_the_examples_run():
    text = (HOME / "docs" / "libraries.md").read_text()
    blocks = BLOCK.findall(text)
    assert {Path(path).name for path, _ in blocks} == {f"with_{name}.py" for name in NAMES}
    assert text.count("```python") == len(blocks)
    for path, block in blocks:
        shown, run = block.replace("result = ", "return "), (HOME / path).read_text()
        assert "".join(shown.split()) in "".join(run.split()), f"{path}: {block}"
