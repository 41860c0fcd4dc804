"""Spark in local mode gives the counts of the local path, to the last one."""

import os
import sys

import numpy as np
import polars as pl
import pytest
import scipy.sparse

import unsample
from tests.machine import need_program
from tests.readers import (
    HOSTILE,
    cases,
    check_hostile_data_sets,
    check_hostile_models,
    hostile_rows,
    read_counts,
    read_models,
    sql,
)
from tests.test_libraries import sections
from unsample.adapters import spark
from unsample.designs import Fixed
from unsample.errors import DesignError, InputError, ScoreError, UnsampleWarning
from unsample.scoring import FactorScores, RowScores
from unsample.tables import Asked
from unsample.tables._sql import DIALECTS

pytestmark = [
    # Said by Spark of the pandas that is installed; nothing here goes through pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
CASES = cases()


@pytest.fixture(scope="session")
def session():
    need_program("Java")
    if not os.environ.get("CI"):  # which runs every engine
        pytest.importorskip("pyspark")
    arguments = {
        "spark.master": "local[2]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # Several partitions, however small what is counted.
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    flags = " ".join(f'--conf "{name}={value}"' for name, value in arguments.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{flags} pyspark-shell"
    os.environ["PYSPARK_PYTHON"] = sys.executable  # another one on the path may lack numpy
    from pyspark.sql import SparkSession

    started = SparkSession.builder.appName("unsample").getOrCreate()
    yield started
    started.stop()


def given(session, frame):
    return session.createDataFrame(frame.to_arrow()).repartition(3)


@pytest.mark.parametrize("case", ["designs by row", "scores of several models, ties at random"])
def test_spark_counts_as_every_reader(session, case):
    CASES[case].check(given(session, CASES[case].frame))


DESIGN = {"items": 5000, "sampled": 399, "by": "model"}


def random_ranks():
    rng = np.random.default_rng(3)
    users, ranks = rng.integers(0, 60, 300), rng.integers(1, 399, 300)
    return pl.DataFrame({"model": list("AB") * 150, "user": users, "rank": ranks})


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_models_in_frames_of_their_own_are_compared(session):
    frame, options = random_ranks(), {"items": 5000, "sampled": 399, "metrics": "AUC"}
    frames = {name: frame.filter(pl.col("model") == name).drop("model") for name in "AB"}
    there = unsample.compare({n: given(session, each) for n, each in frames.items()}, **options)
    assert there.to_dict() == unsample.compare(frames, **options).to_dict()
    with pytest.raises(InputError, match="must all be in Spark, or none"):
        unsample.compare(frames | {"A": given(session, frames["A"])}, **options)


def test_pairs_and_the_printed_query_give_what_every_reader_gives(session):
    frame = random_ranks()
    given(session, frame).createOrReplaceTempView("ranks")
    text = sql(pair=True, dialect="spark", **DESIGN)
    here = read_models(frame, **DESIGN)
    for there in (read_models(session.sql(text)), read_models(given(session, frame), **DESIGN)):
        assert dict(there) == dict(here)
        assert dict(there.between) == dict(here.between)


def test_data_sets_are_not_pooled_in_spark_either(session):
    frame = random_ranks().with_columns(dataset=pl.col("model"), seed=pl.col("user") % 2)
    with pytest.raises(InputError, match=r"one data set, got several, such as 'A' and 'B'"):
        read_models(given(session, frame), items=5000, sampled=399)
    with pytest.warns(UnsampleWarning, match="column 'seed' .* such as '0' and '1'"):
        read_models(given(session, frame), **DESIGN)


def test_names_in_data_and_of_columns_are_no_part_of_a_query(session):
    java = session.sparkContext._jvm.java.lang.System
    java.clearProperty("pwn")
    check_hostile_models(lambda frame: given(session, frame))
    check_hostile_data_sets(lambda frame: given(session, frame), HOSTILE[:4])
    frames = {name: given(session, hostile_rows([name]).drop("model")) for name in HOSTILE[:3]}
    asked = Asked(500, 99)
    assert [*unsample.tables.read_models(frames, asked)] == [*frames]
    for name in set(HOSTILE) - {"${env:HOME}"}:
        # To plan a query runs what is constant in it.
        rows = f"(SELECT 1 AS {DIALECTS['spark'].name(name)}, 'a' AS user)"
        query = {"columns": {"rank": name, "user": "user"}, "dialect": "spark", "table": rows}
        session.sql(sql(items=50, sampled=9, **query)).explain("simple")
    assert java.getProperty("pwn") is None
    frame = given(session, pl.DataFrame({"${env:HOME}": [1]}))
    with pytest.raises(InputError, match=r"columns must have names without '\$\{' here"):
        read_counts(frame, columns={"rank": "${env:HOME}"}, items=50, sampled=9)


# -- evaluation on the workers -------------------------------------------------------------------

ITEMS, USERS = 60, 200


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(2)
    # Coarse factors, so that many scores tie.
    return FactorScores(rng.integers(-1, 2, (USERS, 3)) / 2, rng.integers(-1, 2, (ITEMS, 3)) / 2)


@pytest.fixture(scope="module")
def pairs():
    # Every other user has two targets.
    users = np.concatenate([np.arange(USERS), np.arange(0, USERS, 2)])
    return users, (7 * users + np.arange(len(users)) // USERS) % ITEMS


@pytest.fixture(scope="module")
def targets(session, pairs):
    return session.createDataFrame(pl.DataFrame(pairs, ["user", "target"]).to_arrow())


@pytest.mark.parametrize("design", ["exact", "certified", Fixed(9), Fixed(9, replacement=False)])
def test_spark_counts_as_evaluate(targets, pairs, model, design):
    seen = scipy.sparse.random_array((USERS, ITEMS), density=0.1, rng=3).tolil()
    seen[pairs] = 0
    options = {"items": ITEMS, "exclude": seen.tocsr(), "rng": 7, "design": design}
    local = unsample.evaluate(model, pairs, **options)
    assert spark.counts(targets, model, **options) == local.counts


def test_the_code_of_the_page_runs(session):
    rng = np.random.default_rng(0)
    pairs = np.arange(60), rng.integers(0, 3706, 60)
    targets = pl.DataFrame({"user": pairs[0], "target": pairs[1]}).to_arrow()
    model = FactorScores(rng.normal(size=(60, 4)), rng.normal(size=(3706, 4)))
    names = {"unsample": unsample, "targets": session.createDataFrame(targets), "model": model}
    exec(sections()["Spark"], names)
    assert names["counts"].total == 60
    local = unsample.evaluate(model, pairs, items=3706, metrics="NDCG@50")
    assert names["result"]["NDCG@50"].value == local["NDCG@50"].value


def test_errors_of_workers_come_back_and_bad_frames_are_named(targets, model):
    nothing = RowScores(lambda users: np.full((len(users), ITEMS), np.nan))
    with pytest.raises(ScoreError, match="scores must not be NaN"):
        spark.counts(targets, nothing, items=ITEMS)
    with pytest.raises(DesignError, match="got 'guided', which draws from all users"):
        spark.counts(targets, model, items=ITEMS, design="guided")
    nulls = targets.selectExpr("user", "nullif(target, target) AS target")
    for frame, message in (
        (nulls, "targets must be whole numbers, got nan"),
        (targets.drop("user"), "targets must have the columns"),
        (targets.limit(0), "targets must hold at least one row"),
    ):
        with pytest.raises(InputError, match=message):
            spark.counts(frame, model, items=ITEMS, design=Fixed(5))
