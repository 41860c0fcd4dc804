"""Spark in local mode gives the counts of the local path, to the last one."""

import os
import shutil
import sys

import numpy as np
import polars as pl
import pytest
import scipy.sparse

import unsample
from tests.engines import cases, cells, documented, need, run_documented, scored_rows
from unsample.adapters import spark
from unsample.designs import Exact, FactorScores, Fixed, Scorer
from unsample.errors import DesignError, FileError, InputError, RankError, ScoreError
from unsample.evidence import RankCounts
from unsample.tables import frames, rankfiles

pytestmark = [
    # Said by Spark of the pandas that is installed; nothing here goes through pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
CASES = cases()


@pytest.fixture(scope="session")
def session():
    need("pyspark", "spark")
    if shutil.which("java") is None:
        reason = "needs Java 17: apt install openjdk-17-jre-headless"
        if os.environ.get("CI"):
            pytest.fail(f"CI runs Spark; this machine {reason}")
        pytest.skip(reason)
    arguments = {
        "spark.master": "local[2]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "3",
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


@pytest.mark.parametrize("case", CASES)
def test_spark_counts_as_every_engine(session, case):
    CASES[case].check(session.createDataFrame(CASES[case].frame.to_arrow()).repartition(3))


BAD = {
    "rank": ({"rank": [1, -1]}, RankError, "column 'rank' of the frame .* got -1"),
    "target": (
        {"user": ["a", "a", "b"], "score": [1.0, 2.0, 3.0], "target": [True, False, False]},
        InputError,
        "user 'b' has none",
    ),
    "score": (
        {"user": ["a", "a"], "score": [1.0, float("nan")], "target": [True, False]},
        ScoreError,
        "got NaN .in the row with user='a', target=0",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_named_by_their_values(session, case):
    columns, error, words = BAD[case]
    frame = session.createDataFrame(pl.DataFrame(columns).to_arrow())
    with pytest.raises(error, match=words):
        RankCounts.from_frame(frame, items=50, sampled=9 if case == "rank" else None)


def test_files_by_the_spark_engine(session, tmp_path, run):
    frame = scored_rows(11, ("A", "B"))
    frame[:90].write_parquet(tmp_path / "a.parquet")
    frame[90:].write_parquet(tmp_path / "b.parquet")
    frame.write_csv(tmp_path / "scores.csv")
    expected = cells(RankCounts.from_frame_by(frame, "model", items=50))
    for name in ("*.parquet", "scores.csv"):
        path = str(tmp_path / name)
        groups = rankfiles.read_grouped_counts(path, by="model", items=50, engine="spark")
        assert cells(groups) == expected
    answers = [
        run("estimate", tmp_path / "*.parquet", "--items", 50, "--by", "model", "--engine", engine)
        for engine in ("spark", "duckdb")
    ]
    assert answers[0] == answers[1]
    (tmp_path / "bad.csv").write_text("rank\n1\ntwo\n")
    with pytest.raises(FileError, match=r"bad\.csv' must hold numbers, got 'two'"):
        rankfiles.read_counts(str(tmp_path / "bad.csv"), items=50, sampled=9, engine="spark")


def test_the_printed_query_runs_on_spark(session):
    frame = scored_rows(12, ("A", "B"))
    session.createDataFrame(frame.to_arrow()).createOrReplaceTempView("scores")
    query = frames.counts_query("scores", by="model", columns={"item": "item"}, dialect="spark")
    groups = RankCounts.from_frame_by(session.sql(query), "model", items=50)
    assert cells(groups) == cells(RankCounts.from_frame_by(frame, "model", items=50))


def test_the_documented_lines_run_on_spark(session, tmp_path):
    found = run_documented("Spark", tmp_path)
    assert found == run_documented("pandas", tmp_path)
    assert documented("Spark").splitlines()[-2:] == documented("pandas").splitlines()[-2:]


# -- evaluation on the workers -------------------------------------------------------------------

ITEMS, USERS = 60, 200
PARTITIONING = ("shuffle.partitions", "adaptive.enabled")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(2)
    # Coarse factors, so that many scores tie.
    return FactorScores(rng.integers(-1, 2, (USERS, 3)) / 2, rng.integers(-1, 2, (ITEMS, 3)) / 2)


@pytest.fixture(scope="module")
def pairs():
    # Every other user has two targets.
    users = np.concatenate([np.arange(USERS), np.arange(0, USERS, 2)])
    return users, np.random.default_rng(4).integers(0, ITEMS, len(users))


@pytest.fixture(scope="module")
def seen(pairs):
    matrix = scipy.sparse.random_array((USERS, ITEMS), density=0.1, rng=3).tolil()
    matrix[pairs] = 0
    return matrix.tocsr()


@pytest.fixture(scope="module")
def targets(session, pairs):
    columns = {"user": pairs[0], "target": pairs[1], "share": np.resize([0.5, 0.25], len(pairs[0]))}
    return session.createDataFrame(pl.DataFrame(columns).to_arrow())


@pytest.fixture(params=[1, 4])
def partitions(session, request):
    """Cut what is counted into so many partitions, however small."""
    before = {name: session.conf.get(f"spark.sql.{name}") for name in PARTITIONING}
    for name, value in zip(PARTITIONING, (request.param, "false"), strict=True):
        session.conf.set(f"spark.sql.{name}", value)
    yield request.param
    for name, value in before.items():
        session.conf.set(f"spark.sql.{name}", value)


@pytest.mark.usefixtures("partitions")
@pytest.mark.parametrize("ties", ["random", "pessimistic"])
@pytest.mark.parametrize("replacement", [None, True, False], ids=["exact", "with", "without"])
def test_spark_counts_as_evaluate_on_any_partitions(targets, pairs, model, seen, ties, replacement):
    options = {"items": ITEMS, "exclude": seen, "ties": ties, "rng": 7}
    drawn = {} if replacement is None else {"sampled": 9, "replacement": replacement}
    found = spark.counts(targets, model, weight="share", **options, **drawn)
    local = unsample.evaluate(
        model, pairs, design=Fixed(**drawn) if drawn else Exact(), resamples=0,
        metrics="Recall@10", weights=np.resize([0.5, 0.25], len(pairs[0])), **options,
    )  # fmt: skip
    assert found == local.counts


def test_any_function_can_score_and_its_errors_come_back(targets, model):
    backwards = spark.counts(targets, lambda users, items: -items, items=ITEMS, sampled=5)
    assert backwards.total == targets.count()
    nothing = Scorer(score_all=lambda users: np.full((len(users), ITEMS), np.nan))
    with pytest.raises(ScoreError, match="scores must not be NaN"):
        spark.counts(targets, nothing, items=ITEMS)
    with pytest.raises(DesignError, match="at most a target's other candidates"):
        spark.counts(targets, model, items=ITEMS, sampled=60, replacement=False)
    for frame, options, message in (
        (targets.drop("user"), {}, "targets must have the columns"),
        (targets.limit(0), {}, "targets must hold at least one row"),
        (targets, {"rng": -1}, "rng must be an integer of at least 0"),
        (targets, {"ties": "realistic"}, "ties must be one of random, optimistic, pessimistic"),
    ):
        with pytest.raises(InputError, match=message):
            spark.counts(frame, model, items=ITEMS, sampled=5, **options)


def test_workers_refuse_targets_that_are_no_numbers():
    pyarrow = pytest.importorskip("pyarrow")
    for target, message in (([1.5], "hold whole numbers, got"), ([None], "not hold nulls")):
        table = pyarrow.table({"user": [0], "target": target})
        with pytest.raises(InputError, match=f"column 'target' of targets must {message}"):
            spark._as_columns(table)
