"""Tables through the command: every source is read, and bad input gets one clear line."""

import json

import numpy as np
import polars as pl
import pytest

from tests.doors import scored_rows
from unsample.evidence import RankCounts
from unsample.tables import sql

RANKS = [1, 1, 2, 5, 9, 10]
DESIGN = ["--items", "100", "--sampled", "9"]


@pytest.fixture
def ranks(tmp_path):
    path = tmp_path / "ranks.csv"
    pl.DataFrame({"user": list("abcdef"), "rank": RANKS}).write_csv(path)
    return path


def test_pooled_models_are_warned_of_in_one_line(tmp_path, run):
    path = tmp_path / "ranks.csv"
    path.write_text("user,model,rank\na,X,1\nb,X,2\na,Y,3\nb,Y,4\n")
    code, _, err = run("estimate", path, *DESIGN)
    assert code == 0
    assert "warning: column 'model' of " in err
    assert "pass by='model'" in err


def test_standard_input_and_saved_counts(ranks, tmp_path, run):
    code, out, _ = run("estimate", "-", *DESIGN, "--json", stdin=ranks.read_bytes())
    assert code == 0
    assert json.loads(out)["users"] == 6
    saved = tmp_path / "counts.npz"
    RankCounts.from_ranks(RANKS, items=100, sampled=9).save(saved)
    code, out, _ = run("estimate", saved, "--json")
    assert (code, json.loads(out)["items"]) == (0, 100)
    code, _, err = run("estimate", saved, *DESIGN)
    assert code == 2
    assert "left out" in err


def test_the_printed_query_is_read_as_its_rows_are(tmp_path, run):
    duckdb = pytest.importorskip("duckdb")
    scored_rows(10).write_parquet(tmp_path / "scores.parquet")
    given = f"'{tmp_path}/scores.parquet'"
    text = sql(items=50, rows="scores", columns={"item": "item"}, table=given)
    with duckdb.connect() as connection:
        table = connection.sql(text)
        table.write_csv(str(tmp_path / "counts.csv"))
        table.write_parquet(str(tmp_path / "counts.parquet"))
    answers = {
        run("estimate", tmp_path / name, *options, "--json")[:2]
        for name, *options in (
            ("counts.csv",), ("counts.parquet",), ("scores.parquet", "--items", 50)
        )
    }  # fmt: skip
    assert len(answers) == 1
    assert json.loads(answers.pop()[1])["users"] == 60


def test_patterns_by_model(tmp_path, run):
    ranks = np.random.default_rng(0).integers(1, 11, 400)
    for part in range(2):
        models = np.where(np.arange(200) % 2, "A", "B")
        frame = pl.DataFrame({"m": models, "place": ranks[part * 200 :][:200]})
        frame.write_parquet(tmp_path / f"run{part}.parquet")
    code, out, err = run(
        "estimate", tmp_path / "*.parquet", "--items", 50, "--sampled", 9, "--by", "m",
        "--column", "rank=place", "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    groups = json.loads(out)["groups"]
    assert [(group["m"], group["users"]) for group in groups] == [("A", 200), ("B", 200)]


def test_bad_files_get_one_clear_line(ranks, tmp_path, run):
    (tmp_path / "word.csv").write_text("rank\n1\nx\n")
    (tmp_path / "empty").mkdir()
    for kind in ("parquet", "npz"):
        whole = tmp_path / f"whole.{kind}"
        if kind == "npz":
            np.savez(whole, rank=np.array(RANKS))
        else:
            pl.DataFrame({"rank": RANKS}).write_parquet(whole)
        (tmp_path / f"cut.{kind}").write_bytes(whole.read_bytes()[:-30])
    for name, words in {
        "word.csv": "must hold numbers, got 'x' in line 3",
        "rank.csv": "did you mean ranks.csv",
        "empty": "there is no file in the folder",
        "cut.parquet": "cannot read",
        "cut.npz": "cannot read",
    }.items():
        code, out, err = run("estimate", tmp_path / name, *DESIGN)
        assert (code, out) == (2, "")
        assert words in err
        assert err.startswith("unsample: ")
        assert err.count("\n") == 1
