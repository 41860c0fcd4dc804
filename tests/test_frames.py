"""One code path over every engine: the same counts, and the same errors, to the last one."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines import (
    ENGINES,
    cases,
    compare_slowly,
    documented,
    in_engine,
    need,
    run_documented,
    scored_rows,
)
from unsample.designs.ranking import ranks_against
from unsample.errors import DesignError, InputError, RankError, ScoreError
from unsample.evidence import Comparisons, RankCounts
from unsample.tables import read_counts
from unsample.tables.frames import is_frame

CASES = cases()
#: A Dask query takes seconds to plan, however small the table: one of each kind is fast enough.
SLOW = {"dask": [pytest.mark.slow]}


@pytest.fixture(params=[pytest.param(name, marks=SLOW.get(name, [])) for name in ENGINES])
def engine(request):
    return request.param


@pytest.mark.parametrize("case", CASES)
def test_every_engine_counts_alike(engine, case):
    CASES[case].check(in_engine(engine, CASES[case].frame))


@pytest.mark.parametrize(
    "case", ["designs and counts by row", "scores of several models, ties at random"]
)
def test_dask_counts_alike(case):
    CASES[case].check(in_engine("dask", CASES[case].frame))


def test_weights_add_up_in_the_engine(engine):
    frame = pl.DataFrame({"rank": [1, 1, 3], "share": [0.5, 0.25, 1.0], "count": [2, 1, 1]})
    counts = read_counts(
        in_engine(engine, frame), items=50, sampled=9, columns={"weight": "share"}
    )[""]
    assert counts.count.tolist() == [3, 1]
    assert counts.weight.tolist() == [1.25, 1.0]
    assert counts.weight_squared.tolist() == [0.5625, 1.0]


def test_weights_and_catalogues_of_scored_rows_are_those_of_the_target(engine):
    frame = pl.DataFrame(
        {
            "user": [1, 1, 2, 2],
            "score": [1.0, 2.0, 3.0, 0.0],
            "target": [1, 0, 1, 0],
            "weight": [0.5, 9.0, 0.25, 9.0],
            "items": [40, 7, 50, 7],
        }
    )
    counts = read_counts(in_engine(engine, frame))[""]
    assert counts.items.tolist() == [40, 50]
    assert counts.low.tolist() == [2, 1]
    assert counts.weight.tolist() == [0.5, 0.25]


FLAGS = {
    "words": ["True", "false", "FALSE", "true"],
    "digits": ["1", "0", "0", "1"],
    "numbers": [1, 0, 0, 1],
}


@pytest.mark.parametrize("flags", FLAGS)
def test_the_target_may_be_flagged_by_words_and_numbers(engine, flags):
    frame = pl.DataFrame({"user": [1, 1, 2, 2], "score": [1, 2, 2, 1], "target": FLAGS[flags]})
    counts = read_counts(in_engine(engine, frame), items=50)[""]
    assert (counts.low.tolist(), counts.count.tolist()) == ([2], [2])


def test_infinite_scores_are_scores(engine):
    frame = pl.DataFrame(
        {"user": [1] * 3, "score": [0.0, -np.inf, np.inf], "target": [True, False, False]}
    )
    assert read_counts(in_engine(engine, frame), items=50)[""].low.tolist() == [2]


SCORED = {"user": ["a", "a", "b", "b"], "score": [1.0, 2.0, 3.0, 4.0], "target": [1, 0, 1, 0]}
BAD = {
    "null rank": ({"rank": [1, None]}, RankError, "column 'rank'"),
    "negative rank": ({"rank": [1, -1]}, RankError, "from 1 to 10 (sampled + 1), got -1"),
    "rank zero": ({"rank": [1, 0]}, RankError, "got 0"),
    "fractional rank": ({"rank": [1.0, 2.5]}, RankError, "got 2.5"),
    "NaN rank": ({"rank": [1.0, np.nan]}, RankError, "got NaN"),
    "rank beyond the sample": ({"rank": [1, 11]}, RankError, "unsample.exact"),
    "words for ranks": ({"rank": ["1", "x"]}, InputError, "must hold numbers, its type is String"),
    "no rank": ({"rnk": [1]}, InputError, "no column 'rank'; its columns are: rnk; did you mean"),
    "ranks and scores": ({"rank": [1], "score": [1.0]}, InputError, "clash; say which to read"),
    "negative count": ({"rank": [1, 2], "count": [1, -2]}, RankError, "column 'count'"),
    "half a target": ({"rank": [1, 2], "count": [1.0, 0.5]}, RankError, "got 0.5"),
    "null count": ({"rank": [1, 2], "count": [1, None]}, RankError, "column 'count'"),
    "null weight": ({"rank": [1, 2], "weight": [1.0, None]}, InputError, "column 'weight'"),
    "infinite weight": ({"rank": [1, 2], "weight": [1.0, np.inf]}, InputError, "got inf"),
    "null sampled": ({"rank": [1, 2], "sampled": [9, None]}, DesignError, "column 'sampled'"),
    "items of one": ({"rank": [1, 2], "items": [50, 1]}, DesignError, "from 2 to"),
    "too many ties": (
        {"better": [0, 5], "tied": [0, 5], "sampled": [9, 9]},
        RankError,
        "better and tied together",
    ),
    "no target": (SCORED | {"target": [1, 0, 0, 0]}, InputError, "user 'b' has none"),
    "two targets": (SCORED | {"target": [1, 0, 1, 1]}, InputError, "user 'b' has 2"),
    "flag of 2": (SCORED | {"target": [1, 0, 2, 0]}, InputError, "got 2"),
    "null flag": (SCORED | {"target": [1, 0, 1, None]}, InputError, "column 'target'"),
    "NaN score": (SCORED | {"score": [1.0, np.nan, 3.0, 4.0]}, ScoreError, "got NaN"),
    "null score": (SCORED | {"score": [1.0, None, 3.0, 4.0]}, ScoreError, "column 'score'"),
    "null user": (SCORED | {"user": ["a", "a", "b", None]}, InputError, "column 'user'"),
    "null item": (SCORED | {"item": [1, None, 1, 2]}, InputError, "column 'item'"),
    "target alone": (
        {"user": ["a", "a", "b"], "score": [1.0, 2.0, 3.0], "target": [1, 0, 1]},
        DesignError,
        "user 'b' has the target's row alone",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_named(engine, case):
    columns, error, words = BAD[case]
    frame = pl.DataFrame(columns)
    number = None if {"user", "better"} & set(columns) else 9
    if "sampled" in columns:
        number = None
    items = None if "items" in columns else 50
    with pytest.raises(error) as caught:
        read_counts(in_engine(engine, frame), items=items, sampled=number)[""]
    assert words in str(caught.value)
    ordered = engine not in {"duckdb", "dask"}
    if ordered and "got " in str(caught.value):
        assert (
            "in row 2" in str(caught.value)
            or "in row 3" in str(caught.value)
            or ("in row 4" in str(caught.value))
        )


def test_labels_must_be_there(engine):
    frame = pl.DataFrame({"rank": [1, 2], "model": ["A", None]})
    with pytest.raises(InputError, match="column 'model' of the frame must hold a name"):
        read_counts(in_engine(engine, frame), by="model", items=50, sampled=9)


def test_empty_tables_are_refused(engine):
    frame = pl.DataFrame({"rank": []}, schema={"rank": pl.Int64})
    with pytest.raises(InputError, match="the frame has no rows"):
        read_counts(in_engine(engine, frame), items=50, sampled=9)[""]


def test_calls_that_contradict_the_table():
    ranks, scores = pl.DataFrame({"rank": [1], "items": [50]}), pl.DataFrame(SCORED)
    with pytest.raises(DesignError, match="items is 60 by argument but 50 in column 'items'"):
        read_counts(ranks, items=60, sampled=9)[""]
    with pytest.raises(DesignError, match="sampled must be given"):
        read_counts(ranks)[""]
    with pytest.raises(DesignError, match="items must be given"):
        read_counts(scores)[""]
    with pytest.raises(DesignError, match="sampled is 5 by argument, but user 'a'"):
        read_counts(scores, items=50, sampled=5)[""]
    with pytest.raises(InputError, match="did you mean rank"):
        read_counts(ranks, sampled=9, columns={"rnk": "rank"})[""]
    with pytest.raises(InputError, match="no column 'place'"):
        read_counts(ranks, sampled=9, columns={"rank": "place"})[""]
    with pytest.raises(InputError, match="roles of scores rows"):
        read_counts(scores, items=50, rows="scores", columns={"rank": "score"})[""]
    with pytest.raises(InputError, match="did you mean scores"):
        read_counts(scores, items=50, rows="score")[""]
    with pytest.raises(InputError, match="did you mean user"):
        read_counts(scores, by="usr", items=50)
    with pytest.raises(InputError, match="ties must be one of"):
        read_counts(scores, items=50, ties="fair")[""]
    with pytest.raises(InputError, match="data frame of pandas, Polars"):
        read_counts([1, 2, 3], items=50, sampled=9)[""]


def test_two_columns_of_one_name_are_refused():
    twice = pd.DataFrame([[1, 1]], columns=["rank", "rank"])
    with pytest.raises(InputError, match="different names"):
        read_counts(twice, items=50, sampled=9)[""]


def test_columns_that_are_called_like_ours_inside_do_no_harm(engine):
    frame = pl.DataFrame(SCORED).rename({"user": "label"})
    frame = frame.with_columns(bad=1, targets=2, better_than=3)
    counts = read_counts(in_engine(engine, frame), items=50, columns={"user": "label"})[""]
    assert counts.total == 2


def test_nullable_types_of_pandas():
    frame = pd.DataFrame({"rank": pd.array([1, 2, None], dtype="Int64")})
    with pytest.raises(RankError, match="got null in row 3"):
        read_counts(frame, items=50, sampled=9)[""]
    good = read_counts(frame.dropna(), items=50, sampled=9)[""]
    assert good == RankCounts.from_ranks([1, 2], items=50, sampled=9)


@pytest.mark.parametrize("ties", ["optimistic", "pessimistic"])
def test_ties_are_those_of_the_ranking_room(ties):
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 4, (80, 30)).astype(float)
    targets, negatives = rng.integers(0, 30, 80), rng.integers(0, 30, (80, 12))
    local = ranks_against(
        lambda users, items: scores[users[:, None], items],
        np.arange(80), targets, negatives, ties=ties,
    )  # fmt: skip
    items = np.column_stack([targets, negatives])
    frame = pl.DataFrame(
        {
            "user": np.repeat(np.arange(80), 13),
            "item": items.ravel(),
            "score": scores[np.arange(80)[:, None], items].ravel(),
            "target": np.tile(np.arange(13) == 0, 80),
        }
    )
    expected = RankCounts.from_ranks(local.ranks, items=30, sampled=local.sampled)
    assert read_counts(frame, items=30, ties=ties)[""] == expected


def test_random_ties_are_uniform_and_realistic_ones_are_refused():
    frame = pl.DataFrame({"better": [2], "tied": [3], "count": [40_000], "sampled": [9]})
    counts = read_counts(frame, items=50, rng=1)[""]
    assert counts.low.tolist() == [3, 4, 5, 6]
    # Binomial with p = 1/4: five standard deviations.
    assert np.abs(counts.count - 10_000).max() < 5 * np.sqrt(40_000 * 3 / 16)
    with pytest.raises(RankError, match=r"lies between two ranks, such as 4\.5"):
        read_counts(frame, items=50, ties="realistic")[""]
    even = frame.with_columns(tied=2)
    assert read_counts(even, items=50, ties="realistic")[""].low.tolist() == [4]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), parts=st.integers(1, 5))
def test_order_and_partitions_do_not_matter(seed, parts):
    compared = compare_slowly(scored_rows(seed % 97))
    columns = np.array([row[1:] for row in compared])
    whole = Comparisons.of_targets(columns[:, 1], columns[:, 2], items=50, sampled=columns[:, 0])
    mixed = np.random.default_rng(seed).permutation(columns)
    merged = Comparisons.merge(
        Comparisons.of_targets(part[:, 1], part[:, 2], items=50, sampled=part[:, 0])
        for part in np.array_split(mixed, parts)
    )
    first = RankCounts.from_comparisons(whole, rng=seed)
    assert RankCounts.from_comparisons(merged, rng=seed) == first


def test_what_is_a_frame():
    frame = pl.DataFrame({"rank": [1]})
    assert all(is_frame(in_engine(name, frame)) for name in ENGINES)
    assert not any(is_frame(value) for value in ([1], np.array([1]), frame["rank"], {"rank": [1]}))


def test_counts_accumulate_over_a_stream():
    batches = [[1, 2], [], [2, 10], [3]]
    whole = RankCounts.from_ranks([1, 2, 2, 10, 3], items=50, sampled=9)
    parts = [RankCounts.from_ranks(b, items=50, sampled=9) for b in batches if b]
    assert RankCounts.merge(parts) == whole
    with pytest.raises(InputError, match="at least one"):
        RankCounts.merge([])
    with pytest.raises(DesignError, match="agree on replacement"):
        whole + RankCounts.from_ranks([1], items=50, sampled=9, replacement=False)


def test_weights_are_asked_of_targets_only(engine):
    frame = pl.DataFrame(SCORED | {"weight": [0.5, None, 0.25, -1.0]})
    counts = read_counts(in_engine(engine, frame), items=50)[""]
    assert sorted(counts.weight.tolist()) == [0.75]
    bad = pl.DataFrame(SCORED | {"weight": [0.5, 1.0, -0.25, 1.0]})
    with pytest.raises(InputError, match="column 'weight' of the frame must hold finite numbers"):
        read_counts(in_engine(engine, bad), items=50)[""]


def test_numbers_beyond_all_types_are_refused():
    frame = pl.DataFrame({"rank": [1, 2**63]}, schema={"rank": pl.UInt64})
    with pytest.raises(RankError, match="got 9223372036854775808 in row 2"):
        read_counts(frame, items=50, sampled=9)[""]


def test_many_groups(engine):
    users = np.arange(300)
    frame = pl.DataFrame({"user": users, "rank": users % 10 + 1})
    groups = read_counts(in_engine(engine, frame), by="user", items=50, sampled=9)
    assert len(groups) == 300
    assert groups["17"].low.tolist() == [8]


@pytest.mark.parametrize("engine", ["pandas", "Polars", "DuckDB"])
def test_the_documented_lines_run(engine, tmp_path):
    need(engine.lower(), "frames")
    found = run_documented(engine, tmp_path)
    assert list(found) == ["NDCG@10", "Recall@50"]
    lines = documented(engine).splitlines()
    assert lines[-2:] == documented("pandas").splitlines()[-2:]


def test_counting_loads_no_engine_before_a_frame_comes():
    code = (
        "import sys, unsample; unsample.RankCounts.from_ranks([1], items=50, sampled=9);"
        "from unsample.tables import rankfiles;"
        "engines = {'narwhals', 'polars', 'pandas', 'pyarrow', 'duckdb', 'pyspark'};"
        "loaded = engines & {*sys.modules};"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_ties_of_few_targets_are_uniform_too():
    users = np.arange(8000)
    # Every target has a catalogue of its own, so each is a cell of one target with three ties.
    cells_ = Comparisons.of_targets(
        np.zeros(8000), np.full(8000, 3), items=100 + users, sampled=9, weights=np.full(8000, 0.5)
    )
    counts = RankCounts.from_comparisons(cells_, rng=2)
    assert counts.total == 8000
    assert counts.weight.sum() == 4000
    times = np.bincount(counts.low, minlength=5)[1:]
    # Binomial with p = 1/4: five standard deviations.
    assert np.abs(times - 2000).max() < 5 * np.sqrt(8000 * 3 / 16)


def test_a_model_that_ties_everything_is_counted_quickly():
    cells_ = Comparisons.of_targets([0, 0], [10**9, 10**9], items=10**9 + 1, sampled=10**9)
    assert RankCounts.from_comparisons(cells_, rng=3).total == 2
