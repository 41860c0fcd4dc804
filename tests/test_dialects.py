"""Queries for other engines, read by sqlglot, written as DuckDB and run: the counts are equal.

sqlglot knows what the syntax of each engine means, and is no part of unsample. What it reads must
count as unsample itself does. BigQuery and Snowflake are never run in a test.
"""

from __future__ import annotations

from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pytest

from tests.readers import read_models, scored_rows, sql
from unsample.tables._sql import DIALECTS

sqlglot = pytest.importorskip("sqlglot")

OTHERS = [name for name in DIALECTS if name != "duckdb"]
#: What DuckDB lacks, for the numbers that the queries ask for; anything else becomes null.
MACROS = """
CREATE MACRO conv(digits, base, into_base) AS
    CASE WHEN base = 16 AND into_base = 10 THEN CAST(CAST('0x' || digits AS BIGINT) AS VARCHAR) END;
CREATE MACRO to_number(digits, format) AS
    CASE WHEN format = REPEAT('X', LENGTH(digits)) THEN CAST('0x' || digits AS BIGINT) END;
"""


def as_duckdb(text: str, dialect: str) -> str:
    """Return a query of another engine in the words of DuckDB."""
    tree = sqlglot.parse_one(text, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    tree = tree.transform(_to_number_as_a_function)
    return tree.sql("duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)


def _to_number_as_a_function(node):
    """Keep the format of TO_NUMBER, which sqlglot would leave out for DuckDB."""
    if not isinstance(node, sqlglot.exp.ToNumber):
        return node
    return sqlglot.exp.Anonymous(this="to_number", expressions=[node.this, node.args["format"]])


def counted(frame: pl.DataFrame, text: str) -> object:
    """Return what DuckDB makes of a table called ``given``."""
    with duckdb.connect() as connection:
        connection.execute(MACROS)
        connection.register("given", frame.to_arrow())
        return connection.sql(text).to_arrow_table()


def ranks(rows: int = 4000) -> pl.DataFrame:
    """Make ranks of two models, several to some users, over many sizes of catalogues."""
    rng = np.random.default_rng(1)
    sampled = rng.choice([99, 300], rows)
    return pl.DataFrame(
        {
            "model": rng.choice(["A", "B"], rows),
            "user": rng.integers(0, rows // 3, rows),
            "rank": rng.integers(1, sampled + 2),
            "sampled": sampled,
            "items": rng.integers(3000, 5000, rows),
        }
    )


RANKS = {"by": "model", "columns": {"user": "user"}}
ONE_DESIGN = {**RANKS, "sampled": 300, "items": 5000}
SCORES = {**RANKS, "rows": "scores", "items": 50}
BY_ITEM = {**SCORES, "columns": {"user": "user", "item": "item"}}
#: What is asked of a table of ranks or of scores.
SCORED = scored_rows(5, ("A", "B"))
ASKED = {
    "ranks without users": (ranks().drop("user"), {"by": "model"}),
    "ranks of one design": (
        ranks().drop("sampled", "items"),
        {**RANKS, "sampled": 300, "items": 5000},
    ),
    "ranks, a size of catalogue in each row": (ranks(), RANKS),
    "scores, ties at random": (SCORED, {**BY_ITEM, "rng": 7}),
    "scores, ties for the target": (SCORED, {**BY_ITEM, "ties": "optimistic"}),
    "scores, ties against it": (SCORED, {**BY_ITEM, "ties": "pessimistic"}),
    "scores without items": (SCORED.drop("item"), {**SCORES, "rng": 7}),
}


def counts_of(case: str, dialect: str):
    """Return the counts that a dialect's query gives, and those of unsample itself."""
    frame, asked = ASKED[case]
    pair = "columns" in asked
    text = sql(**asked, pair=pair, dialect=dialect, table="given")
    there = read_models(counted(frame, as_duckdb(text, dialect)))
    return there, read_models(frame, **asked, pair=pair)


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize("case", ASKED)
@pytest.mark.parametrize("dialect", OTHERS)
def test_every_dialect_counts_as_unsample_does(dialect, case):
    there, here = counts_of(case, dialect)
    assert dict(there) == dict(here)
    assert dict(there.between) == dict(here.between)
    assert sum(counts.users for counts in here.values()) > 100


#: Errors in a dialect: a digit less, the first one left out, a format that fits no digits.
WRONG = {
    "spark": "CAST(CONV(LEFT(MD5({0}), 12), 16, 10) AS BIGINT)",
    "bigquery": "CAST(CONCAT('0x', SUBSTR(TO_HEX(MD5({0})), 2, 13)) AS INT64)",
    "snowflake": "TO_NUMBER(LEFT(MD5({0}), 13), 'XXXXXXXXXXXX')",
}


@pytest.mark.parametrize("dialect", OTHERS)
def test_a_wrong_word_of_a_dialect_is_found(dialect, monkeypatch):
    def rows():
        frame, asked = ASKED["scores, ties at random"]
        text = sql(**asked, dialect=dialect, table="given")
        return sorted(map(str, counted(frame, as_duckdb(text, dialect)).to_pylist()))

    right = rows()
    assert right == rows()
    wrong = replace(DIALECTS[dialect], digest=WRONG[dialect])
    monkeypatch.setitem(DIALECTS, dialect, wrong)
    assert right != rows()
