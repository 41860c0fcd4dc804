"""The code of docs/libraries.md, with each library that is installed; and what adapters promise.

`make libraries` runs this file once with each real library, in an environment of its own.
"""

import pkgutil
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import unsample
from tests.libraries import ONE_TARGET, SECTIONS, SEVERAL, need_library, recbole_objects
from unsample import adapters
from unsample.adapters import INSTALL, lenskit, pykeen, recbole, trec
from unsample.adapters._install import require
from unsample.counts import RankCounts
from unsample.errors import FileError, InputError, MissingExtraError, UnsampleWarning

HOME = Path(__file__).parents[1]
PAGE = (HOME / "docs" / "libraries.md").read_text(encoding="utf-8")
foreign = pytest.mark.filterwarnings("ignore")  # the libraries' own warnings


def sections():
    """Return the code of each section of the page."""
    parts = re.split(r"^##+ (.+)$", PAGE, flags=re.MULTILINE)
    code = {
        title: "".join(re.findall(r"```python\n(.*?)```", body, re.DOTALL))
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {title: body for title, body in code.items() if body}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """Libraries write logs to where they are run, and one block reads files there."""
    monkeypatch.chdir(tmp_path)


# -- the page --------------------------------------------------------------------------------------


def test_every_section_with_code_is_run():
    assert set(sections()) == {*SECTIONS, "Spark"}  # which tests/test_spark.py runs
    shown = {found.name for found in pkgutil.iter_modules(adapters.__path__)}
    assert {name for name in shown if not name.startswith("_")} == set(INSTALL)
    assert set(INSTALL) <= {word.casefold() for title in sections() for word in title.split()}


@foreign
@pytest.mark.parametrize("title", SECTIONS)
def test_the_code_of_the_page_finds_what_the_library_finds(title):
    names = SECTIONS[title]() | {"unsample": unsample}
    exec(compile(sections()[title], f"libraries.md, {title}", "exec"), names)
    names["check"](names)


def test_scores_of_anything_are_enough():
    names = {}
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], names)
    assert 0 < names["result"]["NDCG@50"].value < 1


# -- how libraries are got -------------------------------------------------------------------------


def test_what_is_missing_is_named_with_the_line_that_installs_it():
    with pytest.raises(MissingExtraError, match=r"pip install recbole==1\.2\.1 'numpy<2'"):
        require("recbole", "a_module_that_does_not_exist")


def test_adapters_import_no_library():
    code = (
        "import sys, importlib, unsample.adapters as a\n"
        "for name in set(a.INSTALL) - {'torchmetrics'}:\n"
        "    importlib.import_module(f'unsample.adapters.{name}')\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & "
        "{*a.INSTALL, 'ir_measures', 'torch', 'pandas', 'pyspark'}))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lenskit.targets({}, 0, items=9), "scored must be an ItemListCollection .* dict"),
        (lambda: pykeen.targets(0), "evaluator must be a SampledRankBasedEvaluator, got int"),
        (lambda: recbole.task("EASE", 0), "model must be a model of recbole, got str"),
        (lambda: recbole.watch("EASE"), "trainer must be a trainer of recbole, got str"),
        (lambda: recbole.targets("EASE", 0, ties="realistic"), "ties must be one of random, opt"),
    ],
)
def test_objects_of_another_kind_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def refuses(message, call, *given, **named):
    with pytest.raises(InputError, match=message):
        call(*given, **named)


# -- RecBole ---------------------------------------------------------------------------------------


@foreign
@pytest.mark.parametrize("kind", ["BPR", "SASRec"])
def test_recbole_tasks_give_the_metrics_of_recbole(kind):
    need_library("recbole")
    trainer, model, train, test = recbole_objects(kind, "full", SEVERAL)
    trainer.fit(train, saved=False, verbose=False)
    theirs = {}
    for name, value in trainer.evaluate(test, load_best_model=False).items():
        family, k = name.split("@")
        theirs[f"{recbole._OURS[family]}@{k}"] = value
    task = recbole.task(model, test)
    # The history of a sequential model stays among the candidates.
    assert (task["exclude"] is None) == (kind == "SASRec")
    low, high = (
        unsample.evaluate(**task, design="exact", metrics=list(theirs), ties=rule)
        for rule in ("pessimistic", "optimistic")
    )
    for metric, value in theirs.items():
        assert low[metric].value - 1e-9 <= value <= high[metric].value + 1e-9


@foreign
def test_recbole_targets_are_ranked_among_what_was_drawn_for_their_user():
    need_library("recbole")
    _, model, _, full = recbole_objects("BPR", "full", SEVERAL)
    task = recbole.task(model, full)
    *_, loader = recbole_objects("BPR", "uni50", SEVERAL)
    found = recbole.targets(model, loader)
    user = task["targets"][0]
    order = np.argsort(found.users.astype(int), kind="stable")  # of the task's users
    assert np.array_equal(found.sampled[order], 50 * np.bincount(user)[user])
    # What a user knows was not drawn: N is what a full ranking leaves.
    left = task["items"] - np.diff(task["exclude"].indptr)[user]
    assert np.array_equal(found.items[order], left)
    assert found.counts.several


@foreign
@pytest.mark.parametrize("seed", range(3))
def test_recbole_defaults_with_several_targets_a_user_are_estimated(seed, recwarn):
    """Its default split and metrics: lists grow with the number of targets of a user."""
    need_library("recbole")
    default = {"RS": [0.8, 0.1, 0.1]}
    trainer, model, train, loader = recbole_objects("BPR", "uni100", default, seed=seed)
    trainer.fit(train, saved=False, verbose=False)
    plain, *_, full = recbole_objects("BPR", "full", default, seed=seed)
    plain.model = model
    theirs = plain.evaluate(full, load_best_model=False)
    recwarn.clear()
    found = recbole.watch(trainer).evaluate(loader, load_best_model=False)
    assert [each for each in recwarn if issubclass(each.category, UnsampleWarning)] == []
    assert trainer.full_catalogue.warnings == ()
    sizes = np.unique(recbole.targets(model, loader).sampled)
    assert len(sizes) > 3
    names = [name for name in theirs if name.endswith("@10")]  # its default cutoff
    assert len(names) == 6
    for name in names:
        low, high = found[f"{name}_low"], found[f"{name}_high"]
        assert low <= theirs[name] <= high
        assert high - low < 0.75


@foreign
def test_recbole_loaders_that_do_not_tell_are_refused():
    need_library("recbole")
    trainer, model, _, full = recbole_objects("EASE", "full", ONE_TARGET)
    *_, uniform = recbole_objects("EASE", "uni50", ONE_TARGET)
    *_, popular = recbole_objects("EASE", "pop50", ONE_TARGET)
    refuses("must draw items uniformly, got 'popularity'", recbole.targets, model, popular)
    refuses("must be made under mode: uniN .*, got FullSort", recbole.targets, model, full)
    refuses("must be made under mode: full .*, got NegSample", recbole.task, model, uniform)
    trainer.config["single_spec"] = False
    refuses("must evaluate in one process", recbole.watch(trainer).evaluate, uniform)


# -- PyKEEN ----------------------------------------------------------------------------------------


def test_what_a_pykeen_evaluator_has_collected_is_taken():
    rng = np.random.default_rng(0)
    test = np.column_stack([np.arange(120), rng.integers(0, 4, 120), 150 + np.arange(120)])
    ranks = rng.integers(1, 14, 120)
    evaluator = SimpleNamespace(
        negative_samples={},
        ranks={("head", "optimistic"): [ranks], ("head", "pessimistic"): [ranks]},
        num_candidates={"head": [np.full(120, 13)]}, num_entities=300,
        triple_to_index={tuple(row): place for place, row in enumerate(test.tolist())},
    )  # fmt: skip
    found = pykeen.targets(evaluator, side="head")
    assert np.array_equal(found.ranks, ranks)
    assert (found.items == 300).all()
    # Another head of the first triple is known to be true: it was no candidate.
    known = np.array([[7, test[0, 1], test[0, 2]]])
    assert pykeen.targets(evaluator, known=known, side="head").items[:2].tolist() == [299, 300]
    refuses("120 triples once, got 0 ranks for side 'tail'", pykeen.targets, evaluator, side="tail")
    refuses("known must be a triples factory", pykeen.targets, evaluator, known=np.zeros((4, 2)))
    # 290 other heads of the first two questions are known, so PyKEEN repeated some of the others.
    heads = np.setdiff1d(np.arange(290), [0, 1])
    dense = np.vstack(
        [np.insert(np.tile(test[row, 1:], (288, 1)), 0, heads, axis=1) for row in (0, 1)]
    )
    words = r"^2 of 120 questions are left out.* drew 12, and fewer may .* draw 11 entities at most"
    with pytest.warns(UnsampleWarning, match=words):
        sparse = pykeen.targets(evaluator, known=dense, side="head")
    assert np.array_equal(sparse.ranks, found.ranks[2:])
    assert np.array_equal(sparse.users, np.arange(2, 120))
    assert set(sparse.items) == {300}
    assert set(sparse.sampled) == {12}
    assert sparse.counts.count.sum() == 118
    evaluator.num_entities = 12
    refuses("negatives must be different", pykeen.targets, evaluator, side="head")
    evaluator.ranks = {}
    refuses("evaluator must hold ranks, got none", pykeen.targets, evaluator)


# -- TREC files and the rows of ir_measures --------------------------------------------------------

RUN = {
    "q1": {"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.1},
    "q2": {"a": 0.2, "b": 0.3, "e": 0.9, "f": 0.4},
}
QRELS = {"q1": {"b": 1, "x": 0}, "q2": {"e": 2, "a": 0}}
ROW = SimpleNamespace(query_id="q", doc_id="a", score=1.0)


def test_lists_are_ranked_as_a_loop_would():
    rng = np.random.default_rng(0)
    run, qrels, wanted = {}, {}, []
    for query in sorted(f"q{number}" for number in range(30)):
        docs = rng.choice(40, rng.integers(8, 15), replace=False)
        # Few levels of scores: many ties.
        run[query] = {f"d{doc}": float(rng.integers(0, 6)) for doc in docs}
        qrels[query] = dict.fromkeys(rng.choice(list(run[query]), rng.integers(1, 4), False), 1)
        others = [score for doc, score in run[query].items() if doc not in qrels[query]]
        for doc in qrels[query]:
            better = sum(score > run[query][doc] for score in others)
            tied = sum(score == run[query][doc] for score in others)
            size = len(qrels[query])
            wanted.append((query, better, tied, len(others), 90 - size + 1, size))
    users, better, tied, sampled, items, relevant = map(np.array, zip(*sorted(wanted), strict=True))
    best, worst, drawn = (
        trec.targets(run, qrels, items=90, ties=rule, filtered=True)
        for rule in ("optimistic", "pessimistic", "random")
    )
    order = np.lexsort([best.ranks, best.users])
    assert np.array_equal(best.ranks[order], 1 + better)
    assert np.array_equal(np.sort(worst.ranks), np.sort(1 + better + tied))
    assert ((best.ranks <= drawn.ranks) & (drawn.ranks <= worst.ranks)).all()
    assert (drawn.ranks != best.ranks).any()
    for found, values in ((best.users, users), (best.sampled, sampled), (best.items, items)):
        assert np.array_equal(found[order], values)
    assert not best.replacement
    assert not best.counts.several
    lists = trec.targets(run, qrels, items=90)
    assert lists.items.tolist() == [90] * len(users)
    assert lists.counts.relevant.max() == relevant.max()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": {"q1": 50}}, "items must hold a number for each query.*'q2'"),
        ({"ties": "realistic"}, "ties must be one of random, optimistic, pessimistic"),
        ({"relevance": 3}, "qrels must hold a row of relevance 3 or more"),
        ({"run": {"q1": RUN["q1"]}}, "must hold every target, got none for item 'e'"),
        ({"run": {**RUN, "q1": {"b": 1.0}}}, "at least one item beside the targets"),
        ({"run": {"q1": {"b": "high"}}}, "run must be a path, a dict .* 'high'"),
        ({"run": [1, 2]}, "with query_id, doc_id, score, got list"),
        ({"run": [ROW, ROW], "qrels": {"q": {"a": 1}}}, "got document 'a' .* again"),
    ],
)
def test_bad_runs_get_one_clear_message(change, message):
    refuses(message, trec.targets, **{"run": RUN, "qrels": QRELS, "items": 50} | change)


@pytest.fixture
def files(tmp_path):
    need_library("ir_measures")
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
    for given in (files, (run, qrels), rows, frames, objects):
        found = trec.targets(*given, items=50, ties="pessimistic")
        for name in ("ranks", "items", "sampled", "users"):
            assert np.array_equal(getattr(found, name), getattr(wanted, name))
    with pytest.raises(InputError, match=r"run must be .*no attribute 'score'"):
        trec.targets(frames[0].drop(columns="score"), QRELS, items=50)


def test_bad_files_get_one_clear_message(files, tmp_path):
    run, qrels = files
    for given, message in (
        ((tmp_path / "nowhere", qrels), r"run must be a TREC file, got .*nowhere"),
        ((qrels, qrels), "run must be a TREC file"),
        ((run, run), "qrels must be a TREC file"),
    ):
        with pytest.raises(FileError, match=message):
            trec.targets(*given, items=50)


# -- TorchMetrics: batches add up to the counts, over processes too --------------------------------

SCORES = np.random.default_rng(0).integers(0, 8, (300, 10)).astype(np.float32)


@pytest.fixture
def estimated():
    need_library("torchmetrics")
    from unsample.adapters.torchmetrics import EstimatedMetrics

    return partial(EstimatedMetrics, items=400, sampled=9, metrics=["Recall@50", "NDCG@50"])


@pytest.mark.parametrize("ties", ["optimistic", "pessimistic"])
def test_batches_add_up_to_the_ranks_of_all_rows(estimated, ties):
    import torch

    metric, elsewhere = estimated(ties=ties), estimated(ties=ties)
    for number, batch in enumerate(np.array_split(SCORES, 7)):
        (elsewhere if number % 2 else metric).update(torch.from_numpy(batch))
    metric.merge_state(elsewhere)  # as states of several processes are
    beats = np.greater if ties == "optimistic" else np.greater_equal
    ranks = 1 + beats(SCORES[:, 1:], SCORES[:, :1]).sum(axis=1)
    expected = RankCounts.from_ranks(ranks, items=400, sampled=9)
    assert metric.counts() == expected
    wanted = unsample.estimate(expected, metrics=["Recall@50", "NDCG@50"])
    computed = {name: float(value) for name, value in metric.compute().items()}
    assert computed == pytest.approx({name: wanted[name].value for name in wanted}, rel=1e-6)


@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")
def test_without_rows_nothing_is_known(estimated):
    import torch

    metric = estimated()
    metric.update(torch.zeros(0, 10))
    assert all(np.isnan(float(value)) for value in metric.compute().values())


def test_bad_batches(estimated):
    import torch

    metric, nan = estimated(), float("nan")
    for batch, words in (
        (torch.zeros(3, 9), r"sampled \+ 1 = 10 columns"),
        (torch.zeros(10), "got shape"),
        (torch.full((3, 10), nan), "must not be NaN"),
    ):
        with pytest.raises(InputError, match=words):
            metric.update(batch)
    with pytest.raises(InputError, match="ties must be one of random, optimistic, pessimistic"):
        estimated(ties="realistic")
