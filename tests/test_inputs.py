"""What breaks a rule is refused at every door, before any work, in one clear sentence."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import unsample
from unsample import Read, Run
from unsample.adapters import trec
from unsample.counts import RankCounts
from unsample.designs import Certified, Fixed, Guided
from unsample.errors import DesignError, FileError, InputError
from unsample.estimators import MLE
from unsample.sampling import SamplingModel

RANKS = [1, 5, 40, 2, 17, 60]
PAIRS = (np.arange(50), np.arange(50))
SCORES = np.random.default_rng(0).normal(size=(50, 50))


def scores(users, items):
    return SCORES[users, items]


# -- more draws than items -------------------------------------------------------------------------

OVERDRAWN = {"items": 50, "sampled": 99}
TABLE = {"user": np.arange(6), "rank": np.array(RANKS)}
DOORS_OF_RANKS = {
    "estimate": lambda: unsample.estimate(RANKS, **OVERDRAWN),
    "estimate, a size for each": lambda: unsample.estimate(RANKS, items=[50] * 6, sampled=99),
    "estimate, a table": lambda: unsample.estimate(TABLE, **OVERDRAWN),
    "estimate, columns": lambda: unsample.estimate(
        TABLE | {key: np.full(6, value) for key, value in OVERDRAWN.items()}
    ),
    "estimate, counts": lambda: unsample.estimate(RankCounts.from_ranks(RANKS, **OVERDRAWN)),
    "compare": lambda: unsample.compare({"A": RANKS, "B": RANKS}, **OVERDRAWN),
    "published": lambda: unsample.published({"HR@1": 0.2}, users=60, **OVERDRAWN),
    "sql": lambda: unsample.sql(table="ranks", **OVERDRAWN),
    "evaluate": lambda: unsample.evaluate(
        scores, PAIRS, items=50, metrics="NDCG@5", design=Fixed(sampled=99)
    ),
    "simulate": lambda: Fixed(sampled=99).simulate([1, 3], items=50),
}


@pytest.mark.parametrize("door", DOORS_OF_RANKS)
def test_more_draws_than_items_are_refused(door):
    with pytest.raises(DesignError, match="sampled must be less than items, got 99 draws from 50"):
        DOORS_OF_RANKS[door]()


@pytest.mark.parametrize("verb", ["estimate", "compare"])
def test_the_command_refuses_more_draws_than_items(verb, run, tmp_path):
    file = tmp_path / "ranks.csv"
    file.write_text("model,rank\n" + "A,1\nB,2\n" * 30)
    code, out, err = run(verb, file, "--items", 50, "--sampled", 99)
    assert (code, out) == (2, "")
    assert err.startswith("unsample: --sampled must be less than items, got 99 draws from 50 items")


def test_a_part_of_the_targets_may_have_more_draws_than_items():
    rng = np.random.default_rng(0)
    sizes = np.repeat([12, 5000], 100)
    ranks = np.ceil(sizes * rng.beta(0.5, 2.0, 200)).astype(np.int64)
    drawn = [
        SamplingModel(items=size, sampled=99).draw(ranks[sizes == size], rng=rng)
        for size in (12, 5000)
    ]
    found = unsample.estimate(np.concatenate(drawn), items=sizes, sampled=99, metrics="Recall@10")
    assert found.counts.total == 200


# -- grades too large to add up --------------------------------------------------------------------

RANKED = [1, 4, 2]
OF_USERS = ["a", "a", "b"]


def graded(metric, relevance):
    return unsample.exact(RANKED, items=50, metrics=metric, users=OF_USERS, relevance=relevance)


def test_grades_whose_gain_is_no_number_are_refused():
    wanted = (
        r"relevance must be at most 1000 for NDCG\(gain=exp\)@10, got 1100.0 at position 2 of 3"
    )
    with pytest.raises(InputError, match=wanted):
        graded("NDCG(gain=exp)@10", [3, 1100, 1])
    with pytest.raises(InputError, match=r"relevance must be at most 1e\+100 for NDCG@10"):
        graded("NDCG@10", [3, 1e200, 1])


def test_a_scorer_is_not_asked_before_grades_are_checked():
    def never(users, items):
        raise AssertionError("asked")

    with pytest.raises(InputError, match="relevance must be at most 1000"):
        unsample.evaluate(never, (*PAIRS, np.full(50, 1100)), items=50, metrics="NDCG(gain=exp)@5")


@pytest.mark.parametrize("metric", ["NDCG@10", "NDCG(gain=exp)@10", "NDCG(discount=jk)@10"])
@pytest.mark.parametrize("grade", [1e-300, 1e-17, 1.0, 1000.0])
def test_equal_grades_weigh_as_no_grades_do(metric, grade):
    plain = unsample.exact(RANKED, items=50, metrics=metric, users=OF_USERS)[metric].value
    assert graded(metric, [grade] * 3)[metric].value == pytest.approx(plain, rel=1e-12)


def test_other_metrics_take_any_grade():
    found = graded("Recall@10", [3, 1e200, 1])
    assert found["Recall@10"].value == 1.0


# -- settings --------------------------------------------------------------------------------------

SETTINGS = [
    (Run, {"batch": 0}, "batch must be an integer of at least 1, got 0"),
    (Run, {"workers": "2"}, "workers must be an integer"),
    (Run, {"device": 0}, "device must be the name of one of torch, got 0"),
    (Run, {"precision": "float16"}, "precision must be one of float32, bfloat16"),
    (Run, {"checkpoint": 3}, "checkpoint must be a path, got 3; such as 'run.npz'"),
    (Run, {"ties": "best"}, "ties must be one of random, optimistic, pessimistic, got 'best'"),
    (Run, {"checkpoint": "run.pkl"}, "checkpoint must end in .npz"),
    (Run, {"progress": True}, "progress must be a function .* got True; by default there is a bar"),
    (Run, {"progress": lambda done: None}, r"progress must be a function .* takes \(done\)"),
    (Read, {"columns": ["rank"]}, r"columns must be a dict of names, got \['rank'\]; such as"),
    (Read, {"columns": {"rank": 3}}, "columns must be a dict of names"),
    (Read, {"rows": "score"}, "rows must be one of ranks, scores, got 'score'; did you mean"),
    (Read, {"ties": "best"}, "ties must be one of random, optimistic, pessimistic, got 'best'"),
    (Read, {"ties": "realistic"}, "the mean position among ties"),
    (Read, {"rng": "seed"}, "rng must be an integer of at least 0, got 'seed'"),
    (Fixed, {"sampled": 0}, "sampled must be an integer of at least 1"),
    (Fixed, {"full": -1}, "full must be an integer of at least 0, got -1"),
    (Fixed, {"replacement": "no"}, "replacement must be True or False, got 'no'"),
    (Certified, {"k": "10"}, "k must be an integer"),
    (Guided, {"k": 0}, "k must be an integer of at least 1"),
    (Guided, {"error": 5}, r"error must be a number in \(0, 1\), got 5"),
    (MLE, {"iterations": 1.5}, "iterations must be an integer"),
]


@pytest.mark.parametrize(("kind", "given", "wanted"), SETTINGS)
def test_settings_are_checked_when_they_are_made(kind, given, wanted):
    with pytest.raises(InputError, match=wanted):
        kind(**given)


def test_every_field_of_settings_is_checked():
    tested = {(kind, name) for kind, given, _ in SETTINGS for name in given}
    for kind in (Run, Read, Fixed, Certified, Guided):
        fields = [each.name for each in dataclasses.fields(kind) if each.repr]
        assert {(kind, name) for name in fields} <= tested


def test_whole_numbers_that_are_floats_are_taken_as_integers():
    settings = (Fixed(sampled=99.0).sampled, Certified(k=10.0).k, MLE(iterations=5.0).iterations)
    assert [repr(each) for each in (*settings, Run(batch=8.0).batch)] == ["99", "10", "5", "8"]


def test_a_function_that_tells_nothing_of_its_arguments_may_show_progress():
    assert Run(progress=max).progress is max


def test_settings_must_be_those_of_the_package():
    with pytest.raises(InputError, match=r"run must be an unsample\.Run, got 4; such as"):
        unsample.evaluate(scores, PAIRS, items=50, run=4)
    with pytest.raises(InputError, match=r"read must be an unsample\.Read, got 'scores'; such as"):
        unsample.estimate(RANKS, items=500, sampled=99, read="scores")


# -- yes or no -------------------------------------------------------------------------------------

DESIGN = {"items": 500, "sampled": 99}


def across():
    rng = np.random.default_rng(0)
    shares = {name: {"A": rng.beta(0.5, 2.0, 300), "B": rng.beta(0.5, 3.0, 300)} for name in "xy"}
    distribution = SamplingModel(**DESIGN)
    sets = {
        name: {
            model: distribution.draw(np.ceil(distribution.items * each).astype(np.int64), rng=rng)
            for model, each in of.items()
        }
        for name, of in shares.items()
    }
    return unsample.compare(sets, across="set", metrics="NDCG@10", **DESIGN)


FLAGS = {
    "estimate": lambda flag: unsample.estimate(
        RANKS, negatives=unsample.Negatives(replacement=flag), **DESIGN
    ),
    "compare": lambda flag: unsample.compare(
        {"A": RANKS, "B": RANKS}, negatives=unsample.Negatives(shared=flag), **DESIGN
    ),
    "published, percent": lambda flag: unsample.published(
        {"HR@1": 20}, users=60, percent=flag, **DESIGN
    ),
    "exact": lambda flag: unsample.exact(RANKS, items=500, filtered=flag),
    "evaluate": lambda flag: unsample.evaluate(scores, PAIRS, items=50, filtered=flag),
    "sql, pair": lambda flag: unsample.sql(pair=flag, **DESIGN),
    "RankCounts.from_ranks": lambda flag: RankCounts.from_ranks(RANKS, replacement=flag, **DESIGN),
    "trec": lambda flag: trec.targets(
        {"q": {"a": 1.0, "b": 2.0}}, {"q": {"a": 1}}, items=500, filtered=flag
    ),
    "interval": lambda flag: unsample.exact(RANKS, items=500).entries[0].interval(population=flag),
    "Across.difference": lambda flag: across().difference("A", "B", "NDCG@10", like=flag),
    "Across.winner": lambda flag: across().winner("NDCG@10", like=flag),
}


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize("door", FLAGS)
def test_a_word_is_neither_true_nor_false(door):
    with pytest.raises(InputError, match="must be True or False, got 'no'"):
        FLAGS[door]("no")
    FLAGS[door](np.True_)  # that of numpy is


# -- sources ---------------------------------------------------------------------------------------


def test_no_prior_has_a_name_in_python_too():
    unnamed = unsample.estimate(RANKS * 60, prior=None, **DESIGN)
    named = unsample.estimate(RANKS * 60, prior="none", **DESIGN)
    assert named.to_dict() == unnamed.to_dict()


@pytest.mark.parametrize(
    ("prior", "wanted"),
    [
        (
            "missing.npz",
            "cannot read the prior 'missing.npz': .*; give a file that",
        ),
        (".", "cannot read the prior '.': Is a directory"),
        ("a\0b", "cannot read the prior .*: embedded null byte; give a file"),
        (3, "prior must be a Prior, its file, 'shipped', or None, got 3; learn one"),
    ],
)
def test_a_prior_that_is_not_there_is_refused(prior, wanted):
    with pytest.raises(InputError, match=wanted):
        unsample.estimate(RANKS, prior=prior, **DESIGN)


@pytest.mark.parametrize("texts", [["1", "2", "x"], ("a",)])
def test_texts_in_a_list_are_said_to_be_files(texts):
    wanted = f"there is no file '{texts[0]}'.*; texts in a list are files, and ranks are numbers"
    with pytest.raises(FileError, match=wanted):
        unsample.estimate(texts, **DESIGN)


def test_a_list_of_files_of_which_one_is_missing_is_a_list_of_files(tmp_path):
    there = tmp_path / "ranks.csv"
    there.write_text("rank\n1\n")
    with pytest.raises(FileError, match=r"there is no file '.*other.csv'; .*$") as caught:
        unsample.estimate([there, tmp_path / "other.csv"], **DESIGN)
    assert "texts in a list" not in str(caught.value)


def _masked(values):
    """Return numbers as DuckDB gives a column that has a null: another number stands below it."""
    return np.ma.masked_array(values, mask=np.arange(len(values)) == 3)


WITHOUT_VALUE = {
    "ranks": lambda: unsample.estimate(_masked(RANKS), **DESIGN),
    "ranks of counts": lambda: unsample.RankCounts.from_ranks(_masked(RANKS), **DESIGN),
    "ranks of models": lambda: unsample.compare({"a": RANKS, "b": _masked(RANKS)}, **DESIGN),
    "full ranks": lambda: unsample.exact(_masked(RANKS), items=DESIGN["items"]),
    "items": lambda: unsample.estimate(RANKS, items=_masked([100] * len(RANKS)), sampled=9),
    "users": lambda: unsample.estimate(RANKS, users=_masked(range(len(RANKS))), **DESIGN),
    "grades": lambda: unsample.exact(
        RANKS, items=100, relevance=_masked([1.0] * len(RANKS)), metrics="NDCG@10"
    ),
    "scores": lambda: unsample.sampled_ranks(_masked([1.0] * 5), np.ones((5, 3))),
    "negatives": lambda: unsample.audit(np.ma.stack([_masked(range(4))] * 3), items=9),
    "table": lambda: unsample.estimate({"rank": _masked(RANKS)}, **DESIGN),
}


@pytest.mark.parametrize("door", WITHOUT_VALUE)
def test_what_a_mask_hides_is_no_value(door):
    with pytest.raises(InputError, match=r"must .* got .*(masked|no value)"):
        WITHOUT_VALUE[door]()


class RanxRun:
    """Stands for a run or judgements of ranx, which are known by the name of their module."""

    __module__ = "ranx.data_structures.run"

    def __init__(self, rows):
        self.rows = rows

    def to_dict(self):
        return self.rows

    def __getitem__(self, query):
        raise KeyError(query)  # as a typed dict of numba does


def test_a_run_of_ranx_is_refused_as_ranks_and_ranked_by_its_scores():
    run = RanxRun({"q": {"a": 0.5, "b": 0.9, "c": 0.1}})
    for call in (lambda: unsample.estimate(run, **DESIGN), lambda: unsample.exact(run, items=9)):
        with pytest.raises(InputError, match="got a RanxRun of ranx; rank its documents: unsample"):
            call()
    found = trec.targets(run, RanxRun({"q": {"a": 1}}), items=500)
    assert found.ranks.tolist() == [2]


class Stubborn:
    def __array__(self, *_, **__):
        raise RuntimeError("no array")


def test_an_object_that_cannot_be_an_array_is_refused():
    with pytest.raises(InputError, match="ranks must be a flat sequence of integers, got <"):
        unsample.estimate(Stubborn(), **DESIGN)


ARROW = {
    "Dataset": lambda table, ds: ds.dataset(table),
    "Scanner": lambda table, ds: ds.dataset(table).scanner(),
    "Scanner of some columns": lambda table, ds: ds.dataset(table).scanner(["rank", "user"]),
    "Scanner of batches": lambda table, ds: ds.Scanner.from_batches(
        iter(table.to_batches()), schema=table.schema
    ),
    "RecordBatchReader": lambda table, ds: table.to_reader(max_chunksize=7),
}


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize("form", ARROW)
def test_streams_of_arrow_are_tables(form):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import dataset

    columns = {"user": [f"u{n}" for n in range(180)], "rank": [*RANKS, 9, 31, 2] * 20}
    whole = pa.table(columns | {"note": ["x"] * 180})
    expected = unsample.estimate(columns, **DESIGN)
    found = unsample.estimate(ARROW[form](whole, dataset), **DESIGN)
    assert found.to_dict() == expected.to_dict()


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize("form", ARROW)
def test_streams_of_arrow_are_compared(form):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import dataset

    whole = {
        name: pa.table({"user": list(range(180)), "rank": ranks * 30})
        for name, ranks in (("A", RANKS), ("B", RANKS[::-1]))
    }
    streams = {name: ARROW[form](table, dataset) for name, table in whole.items()}
    found = unsample.compare(streams, metrics="NDCG@10", **DESIGN)
    assert found.to_dict() == unsample.compare(whole, metrics="NDCG@10", **DESIGN).to_dict()


def test_a_stream_of_arrow_that_was_read_before_has_no_rows():
    pa = pytest.importorskip("pyarrow")
    reader = pa.table({"rank": RANKS}).to_reader()
    reader.read_all()
    with pytest.raises(InputError, match="the table has no rows"):
        unsample.estimate(reader, **DESIGN)


def test_a_column_that_a_stream_of_arrow_does_not_have_is_named():
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="the table has no column 'rank'; its columns are: place"):
        unsample.estimate(pa.table({"place": RANKS}).to_reader(), **DESIGN)
