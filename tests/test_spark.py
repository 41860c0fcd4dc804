"""Spark in local mode gives the counts of the local path, to the last one."""

import os
import sys

import numpy as np
import polars as pl
import pytest
import scipy.sparse

import unsample
from tests.doors import cases, documented, need, run_documented
from tests.machine import need_program
from tests.test_libraries import sections
from unsample.adapters import spark
from unsample.designs import Exact, FactorScores, Fixed, Scorer
from unsample.errors import DesignError, InputError, ScoreError
from unsample.tables import read_counts, read_targets

pytestmark = [
    # Said by Spark of the pandas that is installed; nothing here goes through pandas.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
CASES = cases()


@pytest.fixture(scope="session")
def session():
    need("pyspark", "spark")
    need_program("Java")
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


def test_spark_counts_as_every_door(session):
    for case in ("designs and counts by row", "scores of several models, ties at random"):
        CASES[case].check(session.createDataFrame(CASES[case].frame.to_arrow()).repartition(3))


def test_bad_rows_are_named_by_their_values(session):
    scored = {"user": ["a", "a"], "score": [1.0, float("nan")], "target": [True, False]}
    words = "got no value in the row with user='a', target=0"
    with pytest.raises(ScoreError, match=words):
        read_counts(session.createDataFrame(pl.DataFrame(scored).to_arrow()), items=50)


def test_users_and_pairs_come_through_spark(session):
    frame = pl.DataFrame({"model": list("ABAB"), "user": [1, 1, 2, 1], "rank": [1, 4, 4, 2]})
    native = session.createDataFrame(frame.to_arrow())
    design = {"items": 50, "sampled": 9, "by": "model"}
    assert read_counts(native, **design) == read_counts(frame, **design)
    there, here = read_targets(native, **design), read_targets(frame, **design)
    for label in "AB":
        assert sorted(zip(there[label].users, there[label].ranks, strict=True)) == sorted(
            zip(here[label].users, here[label].ranks, strict=True)
        )


def test_the_documented_lines_run_on_spark(session, tmp_path):
    found = run_documented("Spark", tmp_path)
    assert found == run_documented("pandas", tmp_path)
    assert documented("Spark").splitlines()[-1] == documented("pandas").splitlines()[-1]


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
    first, second = (
        np.random.default_rng(4).permuted(np.tile(np.arange(ITEMS), (USERS, 1)), axis=1)[:, :2].T
    )
    return users, np.concatenate([first, second[::2]])


@pytest.fixture(scope="module")
def seen(pairs):
    matrix = scipy.sparse.random_array((USERS, ITEMS), density=0.1, rng=3).tolil()
    matrix[pairs] = 0
    return matrix.tocsr()


@pytest.fixture(scope="module")
def targets(session, pairs):
    columns = {"user": pairs[0], "target": pairs[1], "share": 0.25 + pairs[0] % 2}
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
@pytest.mark.parametrize("sampled", [None, 9])
def test_spark_counts_as_evaluate_on_any_partitions(targets, pairs, model, seen, sampled):
    options = {"items": ITEMS, "exclude": seen, "rng": 7}
    found = spark.counts(targets, model, sampled=sampled, replacement=False, **options)
    design = Exact() if sampled is None else Fixed(sampled, replacement=False)
    local = unsample.evaluate(model, pairs, design=design, metrics="Recall@10", **options)
    assert found == local.counts


def test_the_code_of_the_page_runs(session):
    rng = np.random.default_rng(0)
    pairs = np.arange(40), rng.integers(0, 3706, 40)
    targets = pl.DataFrame({"user": pairs[0], "target": pairs[1]}).to_arrow()
    names = {
        "unsample": unsample, "session": session, "targets": session.createDataFrame(targets),
        "model": FactorScores(rng.normal(size=(40, 4)), rng.normal(size=(3706, 4))), "pairs": pairs,
    }  # fmt: skip
    exec(sections()["Spark"], names)
    assert names["counts"].total == 40
    assert names["guided"].scored <= 50_000


def test_any_function_can_score_and_its_errors_come_back(targets, model):
    backwards = spark.counts(targets, lambda users, items: -items, items=ITEMS, sampled=5)
    assert backwards.total == targets.count()
    nothing = Scorer(score_all=lambda users: np.full((len(users), ITEMS), np.nan))
    with pytest.raises(ScoreError, match="scores must not be NaN"):
        spark.counts(targets, nothing, items=ITEMS)
    with pytest.raises(DesignError, match="at most a target's other candidates"):
        spark.counts(targets, model, items=ITEMS, sampled=60, replacement=False)
    halves = targets.withColumn("target", targets["share"])
    nulls = targets.selectExpr("user", "nullif(target, target) AS target")
    for frame, options, message in (
        (halves, {}, "targets must be whole numbers, got 1.25"),
        (nulls, {}, "targets must be whole numbers, got nan"),
        (targets.drop("user"), {}, "targets must have the columns"),
        (targets.limit(0), {}, "targets must hold at least one row"),
        (targets, {"rng": -1}, "rng must be an integer of at least 0"),
        (targets, {"ties": "realistic"}, "ties must be one of random, optimistic, pessimistic"),
    ):
        with pytest.raises(InputError, match=message):
            spark.counts(frame, model, items=ITEMS, sampled=5, **options)


def test_designs_that_look_at_all_targets_score_on_the_cluster(session, pairs, model, seen):
    options = {"items": ITEMS, "exclude": seen, "design": "guided", "budget": 9000}
    options |= {"metrics": ["Recall@5", "NDCG@5"], "batch": 1 << 22}
    local = unsample.evaluate(model, pairs, **options)
    with spark.scorer(session, model, items=ITEMS) as scores:
        found = unsample.evaluate(scores, pairs, **options)
        with pytest.raises(InputError, match=r"items must be in 0..59"):
            scores(np.arange(3), np.full((3, 2), ITEMS))
    assert np.array_equal(found.ranks, local.ranks)
    assert np.array_equal(found.highest, local.highest)
    assert found.scored == local.scored
    for metric in options["metrics"]:
        assert found[metric].value == local[metric].value
