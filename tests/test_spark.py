"""Spark in local mode gives the counts of the local path, to the last one."""

import os
import shutil

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from tests.doors import cases, documented, need, run_documented
from unsample.adapters import spark
from unsample.adapters._comparers import FullComparer, SampledComparer
from unsample.designs.ranking import FactorScores, exact_ranks
from unsample.errors import DesignError, InputError, ScoreError
from unsample.evidence import RankCounts
from unsample.law import Law
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
    started = spark.spark_session()
    yield started
    started.stop()


def test_the_session_is_local_and_shared(session):
    assert spark.spark_session() is session
    assert session.conf.get("spark.driver.host") == "127.0.0.1"


@pytest.mark.parametrize(
    "case",
    ["designs and counts by row", "comparisons", "scores of several models, ties at random"],
)
def test_spark_counts_as_every_door(session, case):
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


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(2)
    # Coarse factors, so that many scores tie.
    return FactorScores(rng.integers(-1, 2, (USERS, 3)) / 2, rng.integers(-1, 2, (ITEMS, 3)) / 2)


@pytest.fixture(scope="module")
def seen():
    return scipy.sparse.random_array((USERS, ITEMS), density=0.1, rng=3, format="csr")


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(4)
    return np.arange(USERS), rng.integers(0, ITEMS, USERS)


@pytest.fixture(scope="module")
def targets(session, pairs):
    table = pl.DataFrame({"user": pairs[0], "target": pairs[1]}).to_arrow()
    return session.createDataFrame(table).repartition(5)


@pytest.mark.parametrize("ties", ["random", "pessimistic"])
def test_exact_evaluation_is_the_local_one(targets, pairs, model, seen, ties):
    counts = spark.exact_counts(targets, model, items=ITEMS, exclude=seen, ties=ties, rng=6)
    local = FullComparer(model, ITEMS, seen).compare(*pairs, None)
    assert counts == RankCounts.from_comparisons(local, ties=ties, rng=6, replacement=False)
    if ties == "pessimistic":
        ranked = exact_ranks(model, *pairs, items=ITEMS, exclude=seen, ties=ties)
        assert counts == RankCounts.from_ranks(
            ranked.ranks, items=ranked.items, sampled=ranked.items - 1, replacement=False
        )


def test_sampled_evaluation_depends_on_no_partition(targets, pairs, model, seen):
    options = {"items": ITEMS, "sampled": 9, "exclude": seen, "rng": 7}
    whole = spark.sampled_counts(targets, model.score, **options)
    cut = spark.sampled_counts(targets.coalesce(1), model.score, **options)
    local = SampledComparer(model.score, ITEMS, 9, True, 7, seen).compare(*pairs, None)
    assert whole == cut == RankCounts.from_comparisons(local, rng=7)


def test_any_function_can_score_and_its_errors_come_back(targets, model):
    weighted = spark.sampled_counts(
        targets.selectExpr("user", "target", "0.5D as share"),
        lambda users, items: -items.astype(float),
        items=ITEMS, sampled=5, replacement=False, weight="share",
    )  # fmt: skip
    assert weighted.weight.sum() == USERS / 2
    with pytest.raises(ScoreError, match="scores must not be NaN"):
        spark.exact_counts(targets, lambda users: np.full((len(users), ITEMS), np.nan), items=ITEMS)
    with pytest.raises(DesignError, match="at most a target's other candidates"):
        spark.sampled_counts(targets, model.score, items=ITEMS, sampled=60, replacement=False)
    with pytest.raises(InputError, match="targets must have the columns"):
        spark.exact_counts(targets.drop("user"), model, items=ITEMS)


# -- what the workers do, without Spark ----------------------------------------------------------


def test_drawn_items_are_candidates_and_follow_the_design(pairs):
    rng = np.random.default_rng(8)
    scores = rng.normal(size=ITEMS)
    target = int(np.argsort(-scores)[19])  # its rank among all is 20
    drawn = []

    def score(users, items):
        drawn.append(items)
        return scores[items]

    users = np.arange(4000)
    comparer = SampledComparer(score, ITEMS, 9, True, 1, None)
    cells_ = comparer.compare(users, np.full(4000, target), None)
    items = np.concatenate(drawn)
    assert (items[:, 0] == target).all()
    assert not (items[:, 1:] == target).any()
    times = np.bincount(items[:, 1:].ravel(), minlength=ITEMS)
    # Each of the others is drawn 36000 / 59 times; six standard deviations.
    assert np.abs(np.delete(times, target) - 36_000 / 59).max() < 6 * np.sqrt(36_000 / 59)
    expected = 4000 * Law(ITEMS, 9).pmf(np.arange(1, 11), 20)
    observed = np.zeros(10)
    observed[cells_.better] = cells_.count
    assert np.abs(observed - expected).max() < 6 * np.sqrt(expected.max())


def test_seen_items_are_never_drawn(pairs, seen):
    drawn = []

    def score(users, items):
        drawn.append((users, items))
        return np.zeros(items.shape)

    for replacement in (True, False):
        comparer = SampledComparer(score, ITEMS, 20, replacement, 1, seen)
        found = comparer.compare(*pairs, None)
        users, items = drawn.pop()
        assert (seen.toarray()[users[:, None], items[:, 1:]] == 0).all()
        others = ITEMS - (seen.toarray() != 0).sum(axis=1)
        assert set(found.items) <= {*others, *(others + 1)}
        if not replacement:
            assert all(len(set(row)) == 21 for row in items.tolist())
    with pytest.raises(InputError, match="targets must be items from 0 to 59"):
        comparer.compare(np.array([0]), np.array([60]), None)
