"""The printed query makes the counts that `from_frame` makes, and `estimate` reads its table."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import polars as pl
import pytest

from tests.engines import cells, need, scored_rows
from unsample.cli._sql import sql_command
from unsample.errors import InputError, RankError
from unsample.tables import read_counts
from unsample.tables.frames import DIALECTS, counts_query


@pytest.fixture
def duck():
    need("duckdb", "frames")
    import duckdb

    with duckdb.connect() as connection:
        yield connection


def _register(connection, frame):
    connection.register("scores", frame.to_arrow())


@pytest.mark.parametrize("dialect", ["ansi", "duckdb"])
@pytest.mark.parametrize("with_items", [True, False])
def test_scores_in_duckdb(duck, dialect, with_items):
    frame = scored_rows(8, ("A", "B"))
    _register(duck, frame)
    columns = {"item": "item"} if with_items else {}
    query = counts_query("scores", by="model", columns=columns, dialect=dialect)
    groups = read_counts(duck.sql(query), by="model", items=50, rng=3)
    kept = frame if with_items else frame.drop("item")
    assert cells(groups) == cells(read_counts(kept, by="model", items=50, rng=3))


def test_weights_and_catalogues_come_from_the_target(duck):
    rows = {"user": [1, 1, 2, 2], "score": [1.0, 2.0, 3.0, 0.0], "target": [1, 0, 1, 0]}
    frame = pl.DataFrame(rows | {"w": [0.5, 9.0, 0.25, 9.0], "items": [40, 7, 50, 7]})
    _register(duck, frame)
    columns = {"weight": "w", "items": "items"}
    counts = read_counts(duck.sql(counts_query("scores", columns=columns)))[""]
    assert counts == read_counts(frame, columns={"weight": "w"})[""]


def test_ranks_in_duckdb(duck):
    frame = pl.DataFrame({"model": list("ABA"), "place": [1, 2, 1], "n": [2, 1, 3]})
    _register(duck, frame)
    query = counts_query(
        "scores", rows="ranks", by="model", columns={"rank": "place", "count": "n"}
    )
    groups = read_counts(duck.sql(query), by="model", items=50, sampled=9)
    assert cells(groups) == {("A", 9, 50, 1): 5, ("B", 9, 50, 2): 1}


def test_standard_sql_runs_elsewhere():
    frame = scored_rows(9).with_columns(pl.col("target").cast(pl.Int64))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE scores (user TEXT, item INT, target INT, score REAL)")
        rows = frame.select("user", "item", "target", "score").rows()
        connection.executemany("INSERT INTO scores VALUES (?, ?, ?, ?)", rows)
        found = connection.execute(counts_query("scores", columns={"item": "item"}))
        names = [column[0] for column in found.description]
        table = pl.DataFrame(found.fetchall(), schema=names, orient="row")
    assert read_counts(table, items=50)[""] == read_counts(frame, items=50)[""]


@pytest.mark.parametrize(
    "change",
    [
        {"target": [1, 0, 0, 0]},
        {"target": [1, 0, 1, 1]},
        {"score": [1.0, None, 3.0, 4.0]},
        {"score": [1.0, np.nan, 3.0, 4.0]},
    ],
)
def test_users_who_cannot_be_ranked_are_not_dropped(duck, change):
    rows = {"user": ["a", "a", "b", "b"], "score": [1.0, 2.0, 3.0, 4.0], "target": [1, 0, 1, 0]}
    _register(duck, pl.DataFrame(rows | change))
    table = duck.sql(counts_query("scores", dialect="duckdb"))
    with pytest.raises(RankError, match="column 'better'"):
        read_counts(table, items=50)[""]


def test_names_are_quoted(duck):
    frame = pl.DataFrame({'my "model"': ["A"], "rank of it": [1]})
    _register(duck, frame)
    query = counts_query(
        "scores", rows="ranks", by='my "model"', columns={"rank": "rank of it"}, dialect="duckdb"
    )
    assert duck.sql(query).fetchall() == [("A", 1, 1)]


def test_estimate_reads_the_counts_table(duck, tmp_path, run):
    frame = scored_rows(10)
    _register(duck, frame)
    table = duck.sql(counts_query("scores", columns={"item": "item"}, dialect="duckdb"))
    table.write_csv(str(tmp_path / "counts.csv"))
    table.write_parquet(str(tmp_path / "counts.parquet"))
    frame.write_parquet(tmp_path / "scores.parquet")
    answers = set()
    for name in ("counts.csv", "counts.parquet", "scores.parquet"):
        code, out, _ = run("estimate", tmp_path / name, "--items", 50, "--json")
        assert code == 0
        answers.add(out)
    code, out, _ = run(
        "estimate", "-", "--items", 50, "--json", stdin=(tmp_path / "counts.csv").read_bytes()
    )
    assert code == 0
    answers.add(out)
    assert len(answers) == 1
    assert json.loads(out)["users"] == 60


def test_the_plain_reader_refuses_bad_comparisons(tmp_path, run):
    path = tmp_path / "counts.csv"
    problems = {
        "better,tied,sampled\n-1,0,9\n": "better must not be negative, got -1",
        "better,tied,sampled\n5,5,9\n": "at most sampled + 1",
        "better,tied,sampled\n1,,9\n": "line 2: tied must be a number, got ''",
        "better,sampled\n1,9\n": "has no column 'tied'",
        "better,tied,sampled\n1.5,0,9\n": "whole numbers, got 1.5",
    }
    for text, words in problems.items():
        path.write_text(text)
        code, _, err = run("estimate", path, "--items", 50, "--ties", "pessimistic")
        assert code == 2
        assert words in err


def test_bad_calls():
    for options, words in (
        ({"rows": "comparisons"}, "rows must be one of"),
        ({"dialect": "duck"}, "did you mean duckdb"),
        ({"columns": {"rank": "r"}}, "roles of scores rows"),
    ):
        with pytest.raises(InputError, match=words):
            counts_query("scores", **options)
    with pytest.raises(InputError, match="table must name"):
        counts_query("  ")


def test_the_command_prints_the_query(capsys):
    for dialect in DIALECTS:
        sql_command("scores", rows="scores", by="model", column=["item"], dialect=dialect)
        expected = counts_query("scores", by="model", columns={"item": "item"}, dialect=dialect)
        assert capsys.readouterr().out == expected + "\n"
