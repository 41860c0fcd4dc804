"""What `estimate` and `compare` take: every form of the same ranks gives the same answer."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import unsample
from tests.readers import read_models
from unsample import RankCounts
from unsample.errors import InputError, UnsampleWarning
from unsample.evidence import ModelCounts, Targets

DESIGN = {"items": 400, "sampled": 30}
OPTIONS = {**DESIGN, "metrics": "Recall@50"}
NAMES = ("A", "B")


def _frame(name):
    rng = np.random.default_rng(NAMES.index(name))
    ranks = np.minimum(rng.geometric(0.2 + 0.1 * NAMES.index(name), 300), 31)
    return pd.DataFrame({"user": np.arange(300), "rank": ranks})


FRAMES = {name: _frame(name) for name in NAMES}
TABLE = pd.concat([frame.assign(model=name) for name, frame in FRAMES.items()])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, frame in FRAMES.items():
        frame.to_csv(f"{name}.csv", index=False)
    TABLE.to_parquet("both.parquet")
    read_models(TABLE, by="model", **DESIGN).save("both.npz")


#: Forms of one model's ranks, and of both; tests of tables read the other forms of a table.
ONE = {
    "series": lambda frame: frame["rank"],
    "table": lambda frame: frame,
    "counts": lambda frame: RankCounts.from_ranks(frame["rank"], **DESIGN),
    "targets": lambda frame: Targets(frame["rank"].to_numpy(), 400, 30),
    "path": lambda _: "A.csv",
}
BOTH = {
    "dict of arrays": lambda: {name: frame["rank"].to_numpy() for name, frame in FRAMES.items()},
    "dict of frames": lambda: FRAMES,
    "dict of anything": lambda: {"A": "A.csv", "B": pl.from_pandas(FRAMES["B"])},
    "table": lambda: TABLE,
    "path": lambda: "both.parquet",
    "counts of models": lambda: read_models(TABLE, by="model", **DESIGN),
    "saved counts": lambda: "both.npz",
}


@pytest.mark.parametrize("form", ONE)
def test_every_form_of_ranks_gives_the_same_estimate(form, folder):
    expected = unsample.estimate(FRAMES["A"]["rank"].to_numpy(), **OPTIONS).to_dict()
    design = {} if form in {"counts", "targets"} else DESIGN
    found = unsample.estimate(ONE[form](FRAMES["A"]), **design, metrics="Recall@50")
    assert found.to_dict() == expected


@pytest.mark.parametrize("form", BOTH)
def test_every_form_of_models_gives_the_same_answers(form, folder):
    given, options = BOTH[form](), dict(OPTIONS)
    counted = isinstance(given, ModelCounts) or form == "saved counts"
    if counted:
        del options["items"], options["sampled"]
    by = None if isinstance(given, dict) or counted else "model"
    estimates = unsample.estimate(given, by=by, **options)
    assert list(estimates) == list(NAMES)
    expected = unsample.compare(FRAMES, **OPTIONS)
    for name in NAMES:
        alone = unsample.estimate(FRAMES[name], **OPTIONS)
        assert estimates[name].to_dict() == alone.to_dict()
    found = unsample.compare(given, by=by, **options)
    assert found.paired
    (one,), (other,) = found.rows(), expected.rows()
    assert one == pytest.approx(other)


def test_the_query_that_the_command_prints_gives_counts_that_it_takes(folder, run):
    """What a warehouse would run, run here."""
    code, out, _ = run(
        "compare", "'both.parquet'", "--items=400", "--sampled=30", "--print-sql=duckdb"
    )
    assert code == 0
    duckdb.sql(out).write_parquet("counts.parquet")
    (found,) = unsample.compare("counts.parquet", metrics="Recall@50").rows()
    (expected,) = unsample.compare(TABLE, **OPTIONS).rows()
    assert found == pytest.approx(expected)
    code, _, err = run("compare", "A.csv", "B.csv", "--print-sql=duckdb")
    assert (code, "--print-sql must be asked for one table" in err) == (2, True)


def test_files_name_models_by_their_stems_unless_these_are_equal(folder):
    found = unsample.compare(["A.csv", "B.csv"], **OPTIONS)
    assert (found.models, found.matched) == (NAMES, "user")
    with pytest.raises(InputError, match=r"'A\.csv' and 'runs/A\.csv'; name them yourself"):
        unsample.compare(["A.csv", "runs/A.csv"], **OPTIONS)


def test_tables_must_have_the_same_columns(folder):
    for name, frame in FRAMES.items():
        frame[["rank"]].to_csv(f"ranks{name}.csv", index=False)
    assert unsample.compare(["ranksA.csv", "ranksB.csv"], **OPTIONS).matched == "position"
    with pytest.raises(InputError, match=r"column 'user' of .* got no value in 300 rows"):
        unsample.compare(["A.csv", "ranksB.csv"], **OPTIONS)
    with pytest.raises(InputError, match="must hold ranks or scores to be compared, got counts"):
        unsample.compare(["A.csv", "both.npz"], **OPTIONS)


def test_a_table_without_users_is_compared_unpaired():
    with pytest.warns(UnsampleWarning, match="no user is known"):
        assert not unsample.compare(TABLE.drop(columns="user"), **OPTIONS).paired


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: unsample.estimate([1, 2], by="model", **DESIGN), "by must be left out with ranks"),
        (lambda: unsample.estimate(TABLE, users=[1], **DESIGN), "give it a column user"),
        (lambda: unsample.estimate(RankCounts.from_ranks([1], **DESIGN), items=9), "which know it"),
        (lambda: unsample.estimate(Targets([1], 9, 3), negatives="shared"), "which know it"),
        (lambda: unsample.estimate({}, **DESIGN), "got an empty dict"),
        (
            lambda: unsample.compare({"A": FRAMES["A"], "B": FRAMES["B"]["rank"]}, **DESIGN),
            "all be tables, .*, got A: tables, B: arrays; give all of them in one form",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
