"""One contract over every reader: the same table gives the same counts, users, pairs, messages."""

import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import unsample.tables
from tests.readers import (
    DESIGN,
    HOSTILE,
    READERS,
    as_csv,
    cases,
    cells,
    check_hostile_data_sets,
    check_hostile_models,
    compare_slowly,
    read_counts,
    read_models,
    read_targets,
    scored_rows,
    sql,
)
from unsample.counts import ModelCounts, RankCounts, Targets
from unsample.errors import (
    DesignError,
    FileError,
    InputError,
    RankError,
    ScoreError,
    UnsampleError,
    UnsampleWarning,
)
from unsample.tables import Asked, Read, is_table

CASES = cases()


@pytest.fixture(params=READERS)
def reader(request, tmp_path, monkeypatch):
    """Give a function from a Polars frame to a source that one reader takes, and its name."""

    def give(frame):
        return READERS[request.param](frame, tmp_path, monkeypatch)

    give.name = request.param
    return give


# -- counts, users, pairs ------------------------------------------------------------------------


def test_every_reader_counts_alike(reader):
    for case in CASES.values():
        case.check(reader(case.frame))


def test_pairs_are_those_of_arrays(reader):
    rng = np.random.default_rng(2)
    users, ranks = rng.integers(0, 90, 600), rng.integers(1, 400, 600)
    frame = pl.DataFrame({"model": list("AB") * 300, "user": users, "rank": ranks})
    found = read_models(reader(frame), items=5000, sampled=399, by="model")
    targets = {
        name: Targets(ranks[at::2], 5000, 399, users=users[at::2]) for at, name in enumerate("AB")
    }
    expected = ModelCounts.of_targets(targets)
    assert dict(found) == dict(expected)
    assert dict(found.between) == dict(expected.between)
    assert [found[name].clusters for name in "AB"] == [expected[name].clusters for name in "AB"]


def test_targets_of_scores_are_sorted_by_user(reader):
    frame = scored_rows(4)
    found = read_targets(reader(frame), items=50, ties="pessimistic")
    slow = sorted(compare_slowly(frame), key=lambda row: row[1])
    assert np.asarray(found.users).tolist() == [user for _, user, *_ in slow]
    assert found.ranks.tolist() == [1 + better + tied for *_, better, tied in slow]
    assert found.sampled.tolist() == [sampled for _, _, sampled, _, _ in slow]


# -- columns that tell parts of a table apart ----------------------------------------------------

PARTS = pl.DataFrame(
    {
        "dataset": ["one", "two"] * 60,
        "model": ["A"] * 60 + ["B"] * 60,
        "user": [f"u{number % 60 // 2}" for number in range(120)],
        "rank": [1 + number * 7 % 10 for number in range(120)],
    }
)


def test_data_sets_are_never_pooled(reader):
    source = reader(PARTS)
    for options, pair, advice in (
        ({}, False, "estimate for each: by='dataset'"),
        ({"by": "model"}, False, "take the rows of one at a time"),
        ({"by": "model", "runs": True}, True, "by the means over them: across='dataset'"),
    ):
        with pytest.raises(InputError) as caught:
            read_models(reader(PARTS), pair=pair, **DESIGN, **options)
        text = str(caught.value)
        assert "must hold one data set, got several, such as 'one' and 'two'; " in text
        assert text.endswith(advice)
    if reader.name != "standard input":  # which is read once
        with pytest.warns(UnsampleWarning, match="column 'model' .* take the rows of one"):
            found = read_counts(source, by="dataset", **DESIGN)
        assert [int(each.total) for each in found.values()] == [60, 60]


def test_one_data_set_is_no_matter(reader):
    some = PARTS.filter(pl.col("dataset") == "one")
    assert set(read_counts(reader(some), by="model", **DESIGN)) == {"A", "B"}


@pytest.mark.parametrize("part", [pl.Utf8, pl.Float64])
def test_rows_without_a_data_set_are_not_those_of_another(reader, part):
    """A file without the column, put beside others, has no value there."""
    one = pl.col("dataset") == "one"
    some = PARTS.with_columns(dataset=pl.when(one).then(pl.lit(1)).cast(part))
    with pytest.raises(InputError, match=r"must hold one data set, got several, such as '' and '1"):
        read_counts(reader(some), by="model", **DESIGN)
    seeds = some.rename({"dataset": "seed"})
    with pytest.warns(UnsampleWarning, match="column 'seed' .* such as '' and '1"):
        read_counts(reader(seeds), by="model", **DESIGN)


@pytest.mark.parametrize("name", ["Dataset", "data_set", "data set", "DATASET", "dataset_name"])
def test_data_sets_are_known_however_they_are_written(name):
    with pytest.raises(InputError, match=f"{name}.* must hold one data set, got several"):
        read_counts(PARTS.rename({"dataset": name}), by="model", **DESIGN)
    # A column that is named is what it is said to be.
    frame = PARTS.drop("user").rename({"dataset": name})
    read_counts(frame, by="model", columns={"user": name}, **DESIGN)


@pytest.mark.parametrize(
    "column",
    ["model", "run", "seed", "fold", "split", "day", "Fold", "run_id", "fold_id", "algorithm"],
)
def test_other_parts_are_named_where_they_are_pooled(column):
    frame = PARTS.filter(pl.col("model") == "A").drop("model").rename({"dataset": column})
    with pytest.warns(UnsampleWarning, match=f"column '{column}' .* pooled .* pass by='{column}'"):
        read_counts(frame, **DESIGN)
    # A warning would be an error here.
    read_counts(frame, by=column, **DESIGN)
    read_counts(frame.with_columns(pl.lit("A").alias(column)), **DESIGN)


@pytest.mark.parametrize("column", ["user_id", "userId", "uid", "query", "qid"])
def test_users_of_another_name_are_not_passed_over(column):
    """Each row would count as a user: another metric, and too narrow an interval."""
    frame = pl.DataFrame({column: list("aabbc"), "rank": [1, 2, 3, 4, 5]})
    wanted = rf"such as 'a', .* user of its own; .* columns=\{{'user': '{column}'\}}"
    with pytest.warns(UnsampleWarning, match=wanted):
        read_counts(frame, **DESIGN)
    # A warning would be an error here.
    assert read_counts(frame, columns={"user": column}, **DESIGN)[""].several
    read_counts(frame.with_columns(user=pl.Series(list("vwxyz"))), **DESIGN)
    read_counts(frame.with_columns(pl.Series(column, list("vwxyz"))), **DESIGN)
    models = frame[:4].with_columns(model=pl.Series(list("ABAB")))
    read_counts(models, by="model", **DESIGN)
    same = models.with_columns(pl.Series(column, list("aabb")[::-1]), model=pl.lit("A"))
    with pytest.warns(UnsampleWarning, match="user of its own"):
        read_counts(same, by="model", **DESIGN)


def test_tables_of_counts_are_of_one_data_set():
    query = sql(by="model", table="frame", **DESIGN)
    frame = PARTS.drop("dataset")  # noqa: F841 - the query reads it
    counts = duckdb.sql(query).pl()
    assert set(read_counts(counts)) == {"A", "B"}
    both = pl.concat([counts.with_columns(dataset=pl.lit(name)) for name in ("one", "two")])
    with pytest.raises(InputError, match=r"must hold one data set.*take the rows of one at a time"):
        read_counts(both)


def test_parts_are_pooled_only_within_what_is_told_apart():
    """Model A was trained with one seed and model B with another: no seeds are pooled."""
    seeds = PARTS.drop("dataset").with_columns(
        seed=pl.when(pl.col("model") == "A").then(1).otherwise(2)
    )
    read_counts(seeds, by="model", **DESIGN)
    seeds = PARTS.rename({"dataset": "seed"})
    asked = {"by": "model", "runs": True}
    with pytest.warns(UnsampleWarning, match=r"pass columns=\{'run': 'seed'\} \(--column run=seed"):
        read_models(seeds, **asked, **DESIGN)
    found = read_models(seeds, columns={"run": "seed"}, **asked, **DESIGN)
    assert [f"{model} / run {seed}" for model in "AB" for seed in ("one", "two")] == list(found)
    read_models(PARTS.rename({"dataset": "run"}), **asked, **DESIGN)
    days = PARTS.rename({"dataset": "day"})
    with pytest.warns(UnsampleWarning, match="to compare on each, pass across='day'"):
        read_models(days, **asked, **DESIGN)


# -- columns -------------------------------------------------------------------------------------


def test_infinite_scores_and_types_of_pandas():
    scores = {"user": [1] * 3, "score": [0.0, -np.inf, np.inf], "target": [True, False, False]}
    assert read_counts(pl.DataFrame(scores), items=50)[""].low.tolist() == [2]
    frame = pd.DataFrame({"rank": pd.array([1, 2, None], dtype="Int64")})
    frame["user"] = pd.Categorical(["a", "b", "a"])
    with pytest.raises(RankError, match="got no value in 1 row"):
        read_counts(frame, **DESIGN)
    good = RankCounts.from_ranks([1, 2], users=["a", "b"], **DESIGN)
    assert read_counts(frame.dropna(), **DESIGN)[""] == good
    mixed = pd.DataFrame({"rank": [1, 2], "user": ["a", 3]})  # Arrow has no type for it
    assert read_targets(mixed, **DESIGN).users.tolist() == ["a", "3"]


def test_what_is_a_source(tmp_path, monkeypatch):
    frame = pl.DataFrame({"rank": [1]})
    for name in ("pandas", "polars-lazy", "duckdb"):
        assert is_table(READERS[name](frame, tmp_path, monkeypatch))
    for source in ([1, 2, 3], np.array([1]), 5, None, []):
        with pytest.raises(InputError, match="data frame of pandas, Polars"):
            read_counts(source, **DESIGN)
    with pytest.raises(InputError, match="two columns of one name"):
        read_counts(pd.DataFrame([[1, 1]], columns=["rank", "rank"]), **DESIGN)


# -- bad tables ----------------------------------------------------------------------------------

SCORED = {"user": ["a", "a", "b", "b"], "score": [1.0, 2.0, 3.0, 4.0], "target": [1, 0, 1, 0]}
RANK = "'rank' of T must hold whole numbers from 1 to 10 (sampled + 1), got {} in 1 row"
BAD = {
    "null rank": ({"rank": [1, None], "x": [0, 0]}, RankError, RANK.format("no value")),
    "rank zero": ({"rank": [1, 0]}, RankError, "got 0 in 1 row; ranks start at 1, the best; add 1"),
    "half a rank": ({"rank": [1.0, 2.5]}, RankError, RANK.format("2.5") + "; break ties at random"),
    "rank beyond the sample": ({"rank": [1, 11]}, RankError, RANK.format("11")),
    "ranks of words": ({"rank": ["1", "x", "x"]}, FileError, "must hold numbers, got 'x' in 2 row"),
    "no rank": ({"rnk": [1]}, InputError, "T has no column 'rank'; its columns are: rnk; did you"),
    "ranks and scores": ({"rank": [1], "score": [1.0]}, InputError, "clash; say which to read"),
    "null sampled": ({"rank": [1, 2], "sampled": [9, None]}, DesignError, "'sampled' of T must ho"),
    "items of one": ({"rank": [1, 2], "items": [50, 1]}, DesignError, "from 2 to 1000000000000"),
    "null user": ({"rank": [1, 2], "user": ["a", None]}, InputError, "must hold a name in every r"),
    "null label": ({"rank": [1, 2], "m": ["A", None]}, InputError, "column 'm' of T must hold a"),
    "no target": (SCORED | {"target": [1, 0, 0, 0]}, InputError, "have a target, user 'b' has no"),
    "targets alone": (SCORED | {"target": [1, 0, 1, 1]}, DesignError, "user 'b' has the target's"),
    "flag of 2": (SCORED | {"target": [1, 0, 2, 0]}, InputError, "(or 1 and 0), got 2 in 1 row"),
    "flag of words": (SCORED | {"target": ["yes", "no"] * 2}, InputError, "got 'no' in 2 rows"),
    "NaN score": (SCORED | {"score": [1.0, np.nan, 3.0, 4.0]}, ScoreError, "got no value in 1 row"),
    "null item": (SCORED | {"item": [1, None, 1, 2]}, InputError, "column 'item' of T must hold"),
    "empty": ({"rank": pl.Series([], dtype=pl.Int64)}, InputError, "T has no rows"),
}


def _options(columns):
    options = {"items": None if "items" in columns else 50, "by": "m" if "m" in columns else None}
    return options | ({} if {"score", "sampled"} & set(columns) else {"sampled": 9})


def test_every_reader_says_the_same_of_a_bad_table(reader):
    # Of those that end in the same engine by the same code, one is asked everything.
    whole = reader.name in {"csv", "npz", "parquet", "pandas"}
    for case in BAD if whole else ("rank zero", "NaN score"):
        columns, error, words = BAD[case]
        with pytest.raises(error) as caught:
            read_counts(reader(pl.DataFrame(columns)), **_options(columns))
        named = r"(the frame|the table|standard input|('[^']*/[^']*'(, )?)+)"
        # Only text has lines, which test_messages.py looks at.
        said = re.sub(r" \((first in )?line \d+\)", "", re.sub(named, "T", str(caught.value)))
        assert words in said, case


def test_calls_that_contradict_the_table():
    ranks, scores = pl.DataFrame({"rank": [1], "items": [50]}), pl.DataFrame(SCORED)
    for frame, options, error, words in (
        (ranks, {"items": 60, "sampled": 9}, DesignError, "must hold 60, the number given as item"),
        (ranks, {}, DesignError, "sampled must be given: pass sampled, or add a column"),
        (scores, {}, DesignError, "items must be given"),
        (scores, {"items": 50, "sampled": 5}, DesignError, "sampled is 5 by argument, but user 'a"),
        (ranks, {"sampled": 9, "columns": {"rnk": "rank"}}, InputError, "did you mean rank"),
        (ranks, {"sampled": 9, "columns": {"rank": "place"}}, InputError, "no column 'place'"),
        (scores, {"rows": "scores", "columns": {"rank": "x"}}, InputError, "must be one of score"),
        (scores, {"rows": "score"}, InputError, "did you mean scores"),
        (scores, {"by": "usr", "items": 50}, InputError, "did you mean user"),
    ):
        with pytest.raises(error, match=re.escape(words)):
            read_counts(frame, **options)


# -- files ---------------------------------------------------------------------------------------


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str | bytes):
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        elif path.suffix == ".parquet":
            pl.DataFrame(content).write_parquet(path)
        elif path.suffix == ".jsonl":
            pl.DataFrame(content).write_ndjson(path)
        else:
            path.write_bytes(as_csv(pl.DataFrame(content)))
        return str(path)

    return write_file


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_patterns_and_folders_are_one_table(write, tmp_path, kind):
    write(f"runs/a.{kind}", {"model": ["A", "B"], "rank": [1, 2]})
    write(f"runs/deep/b.{kind}", {"rank": [2, 10], "model": ["B", "B"], "note": ["x", "y"]})
    write("runs/_SUCCESS.csv", {"rank": [7]})
    expected = {
        "A": RankCounts.from_ranks([1], **DESIGN),
        "B": RankCounts.from_ranks([2, 2, 10], **DESIGN),
    }
    both = [tmp_path / f"runs/a.{kind}", tmp_path / f"runs/deep/b.{kind}"]
    for source in (tmp_path / f"**/[ab].{kind}", tmp_path / "runs", both):
        assert read_counts(source, by="model", **DESIGN) == expected
    write(f"a.{kind}", {"rank": [1], "user": [1]})
    write(f"b.{kind}", {"rank": [1]})
    with pytest.raises(InputError, match=r"b\.\w+' has no column 'user', and '.*a\.\w+' has it"):
        read_counts(tmp_path / f"*.{kind}", **DESIGN)


def test_files_may_differ_in_types_and_folders_name_a_column(write, tmp_path):
    write("a.parquet", {"rank": pl.Series([1, 2], dtype=pl.Int16), "user": [1, 2]})
    write("b.parquet", {"rank": [2, 3], "user": ["1", "x"], "note": ["x", "y"]})
    write("c.parquet", {"rank": [4.0], "user": ["y"]})
    targets = read_targets(tmp_path / "*.parquet", **DESIGN)
    assert targets.ranks.tolist() == [1, 2, 2, 3, 4]
    assert targets.users.tolist() == ["1", "2", "1", "x", "y"]
    write("runs/model=A/part.parquet", {"rank": [1, 2]})
    write("runs/model=B/part.parquet", {"rank": [3]})
    groups = read_counts(tmp_path / "runs", by="model", **DESIGN)
    assert {label: counts.total for label, counts in groups.items()} == {"A": 2, "B": 1}


def test_saved_counts_are_read(tmp_path):
    counts = RankCounts.from_ranks([1, 2], **DESIGN)
    counts.save(tmp_path / "a.npz")
    assert read_counts(tmp_path / "a.npz") == {"": counts}
    with pytest.raises(FileError, match="must be read by itself; add up"):
        read_counts([tmp_path / "a.npz"] * 2)
    assert read_counts(tmp_path / "a.npz", **DESIGN) == {"": counts}
    for told, words in (({"columns": {"rank": "r"}}, "columns"), ({"rows": "ranks"}, "rows")):
        with pytest.raises(InputError, match=f"{words} must be left out with .* counts and no r"):
            read_counts(tmp_path / "a.npz", **told)
    with pytest.raises(InputError, match="to be grouped by 'model', got those of one"):
        read_counts(tmp_path / "a.npz", by="model")


def test_a_single_value_of_an_archive_stands_for_all_rows(tmp_path):
    path = tmp_path / "ranks.npz"
    np.savez(path, rank=np.array([1, 4]), items=50, sampled=np.array([9]))
    assert read_counts(path)[""] == RankCounts.from_ranks([1, 4], **DESIGN)
    np.savez(path, rank=np.array([1, 2, 3]), user=np.array(["a", "b"]))
    with pytest.raises(FileError, match=r"equally long, or single values, got rank \(3,\), user"):
        read_counts(path, **DESIGN)


TEXTS = {
    "byte-order mark": ("t.csv", "\ufeffrank,user\n1,a\n", [1]),
    "quoted cells": ("t.csv", '"rank","user"\r\n"1","x, ""y"""\r\n2,"two\nlines"\r\n', [1, 2]),
    "empty lines": ("t.csv", "\n\nrank\n\n1\n\n2\n", [1, 2]),
    "spaces": ("t.csv", " rank , user\n 1,a\n2 ,b\n", [1, 2]),
    "ranks alone": ("t.txt", "2\n10", [2, 10]),
    "ranks alone in JSON lines": ("t.jsonl", "1\n2.0\n", [1, 2]),
    "JSON by content": ("t.txt", '{"rank": 4}\n', [4]),
}  # fmt: skip


def test_text_as_it_comes(write):
    for case, (name, text, ranks) in TEXTS.items():
        assert read_targets(write(name, text), **DESIGN).ranks.tolist() == ranks, case


BAD_TEXTS = {
    "empty": ("t.csv", "", "T is empty"),
    "semicolons": ("t.csv", "user;rank\na;1\n", "the separator seems to be ';'"),
    "ragged": ("t.csv", "rank,user\n1,a\n2\n", "line 3 of T must have as many cells as there are"),
    "open quote": ("t.csv", 'rank\n"1\n', "cannot read line 2 of T: unexpected end"),
    "no text": ("t.csv", b"rank\n\xff\n", "is not UTF-8 text"),
    "packed": ("t.csv", b"\x1f\x8b\x08\x00", "is compressed; give a file whose name ends in .gz"),
    "not JSON": ("t.jsonl", '{"rank": 1}\n{"rank"\n', "line 2 of T must be an object of JSON"),
    "truth for a rank": ("t.jsonl", '{"rank": true}\n', "must hold numbers, got 'true' in 1 row"),
    "late column": (
        "t.jsonl", '{"rank": 1}\n' * 40_000 + '{"rank": 1, "user": 2}\n',
        "column 'user' of T must hold a name in every row, got no value in 40,000 rows"),
    "no Parquet": ("t.parquet", b"\x00\xff\x13" * 40, "cannot read T"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_bad_files_are_told_in_one_line(write, case):
    name, text, words = BAD_TEXTS[case]
    path = write(name, text)
    with pytest.raises(UnsampleError) as caught:
        read_counts(path, **DESIGN)
    message = str(caught.value)
    assert words in message.replace(repr(path), "T")
    assert "\n" not in message


def test_patterns_that_match_nothing_or_too_much(write, tmp_path):
    write("ranks.csv", {"rank": [1]})
    write("ranks.parquet", {"rank": [1]})
    for pattern, words in {
        "nowhere/*.csv": "no file matches",
        "rank??.csv": "did you mean ranks.csv",
        "rank.csv": "did you mean ranks",
        "*": r"must be files of one format, got .*\(csv\) and .*\(parquet\)",
        "[" * 2000: "at most 1,024 letters",
    }.items():
        with pytest.raises(FileError, match=words):
            read_counts(tmp_path / pattern, **DESIGN)


@pytest.mark.parametrize("users", [[1, 2, 1, 2], [1, 1, 2, 3]])
@pytest.mark.parametrize("form", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.lazy])
def test_models_and_data_sets_may_be_called_by_numbers(form, users):
    frame = pl.DataFrame({"rank": [1, 2, 3, 4], "set": [1.0, 1.0, 2.5, 2.5], "user": users})
    expected = {"1": RankCounts.from_ranks([1, 2], users=users[:2], **DESIGN)}
    expected["2.5"] = RankCounts.from_ranks([3, 4], users=users[2:], **DESIGN)
    assert read_counts(form(frame), by="set", **DESIGN) == expected
    both = pl.concat([frame.with_columns(model=pl.lit(each)) for each in (0.0, 2.0)])
    asked = Asked(**DESIGN, by="model")
    for name, each in unsample.tables.read_data_sets(form(both), asked, across="set").items():
        assert dict(each) == dict.fromkeys("02", expected[name])
    with pytest.raises(InputError, match="column 'set' of the frame must hold a name in every row"):
        read_counts(form(frame.with_columns(set=np.nan)), by="set", **DESIGN)


# -- names that would be something else in a query -----------------------------------------------


def test_names_of_models_are_no_part_of_a_query(reader):
    check_hostile_models(reader)


def test_names_of_data_sets_and_runs_are_no_part_of_a_query(reader):
    check_hostile_data_sets(reader, HOSTILE)


@pytest.mark.parametrize("name", HOSTILE)
def test_columns_and_tables_may_be_called_anything(name):
    frame = pl.DataFrame({name: [1, 2, 2], f"{name}u": list("abc")})
    options = DESIGN | {"columns": {"rank": name, "user": f"{name}u"}}
    expected = {("", 9, 50, 1): 1, ("", 9, 50, 2): 2}
    assert cells(read_counts(frame, **options)) == expected
    text = sql(**options, table="given")
    counted = duckdb.from_arrow(frame.to_arrow()).query("given", text)
    assert cells(read_counts(counted.to_arrow_table())) == expected
    asked = Asked(**DESIGN, read=Read(options["columns"]))
    both = unsample.tables.read_models({name: frame, "other": frame.to_arrow()}, asked)
    assert cells({"": both[name]}) == expected


@pytest.mark.parametrize("name", [name for name in HOSTILE if not {"/", "\n"} & {*name}])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_files_and_their_columns_may_be_called_anything(name, ending, write):
    # What looks like a pattern is none; behind a backslash DuckDB finds no such file.
    stem = name if "\\" in name else f"{name} [x]"
    path = write(f"{stem}.{ending}", {"rank": [1, 2], name: [0, 0], f"{name}u": ["a", "b"]})
    found = read_counts([path], columns={"user": f"{name}u"}, **DESIGN)
    assert cells(found) == {("", 9, 50, 1): 1, ("", 9, 50, 2): 1}


#: How an engine writes names, and what a letter after a backslash stands for in them, by dialect.
_QUOTES = {"duckdb": '"', "spark": "`", "bigquery": "`", "snowflake": '"'}
_ESCAPED = {"bigquery": {"\\": "\\", "`": "`", "n": "\n", "r": "\r"}}


def tokens(text, dialect):
    """Return the tokens of a query as an engine reads them: names without quotes, and the rest."""
    quote, escaped = _QUOTES[dialect], _ESCAPED.get(dialect)
    inner = rf"(?:[^\\{quote}\n]|\\.)*" if escaped else f"(?:[^{quote}]|{quote}{quote})*"
    found = []
    for token in re.findall(rf"--[^\n]*|'[^']*'|{quote}{inner}{quote}|\w+|\S", text):
        name = token[1:-1] if token[0] == quote else None
        if name is None:
            found.append(token)
        elif escaped:
            found.append((re.sub(r"\\(.)", lambda each: escaped[each[1]], name),))
        else:
            found.append((name.replace(quote * 2, quote),))
    return found


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("dialect", _QUOTES)
def test_names_of_columns_are_one_token_in_every_dialect(dialect, name):
    if dialect == "spark" and "${" in name:
        with pytest.raises(InputError, match="rename the column"):
            sql(columns={"rank": name}, dialect=dialect, items=50, sampled=9)
        return

    def printed(column):
        columns = {"rank": column, "user": f"{column}u"}
        text = sql(columns=columns, by=f"{column}m", dialect=dialect, items=50, sampled=9)
        return tokens(text, dialect)

    hostile, plain = printed(name), printed("plain")
    assert [token for token in plain if isinstance(token, tuple)]
    renamed = {("plain",): (name,), ("plainu",): (f"{name}u",), ("plainm",): (f"{name}m",)}
    assert hostile == [renamed.get(token, token) for token in plain]


# -- the query -----------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [False, True])
def test_the_printed_query_gives_the_same_counts(pair):
    frame = scored_rows(5, ("A", "B"))
    ranks = frame.select("model", "user", rank=pl.col("item") % 10 + 1)
    for rows, given, design in (("scores", frame, {}), ("ranks", ranks, {"sampled": 9})):
        columns = {"item": "item"} if rows == "scores" else {"user": "user"}
        asked = {"by": "model", "rows": rows, "items": 50, **design}
        text = sql(pair=pair, columns=columns, table="given", rng=7, **asked)
        table = duckdb.from_arrow(given.to_arrow()).query("given", text).to_arrow_table()
        found, expected = read_models(table), read_models(given, rng=7, pair=pair, **asked)
        assert dict(found) == dict(expected)
        assert dict(found.between) == dict(expected.between)
        for name in "AB" if pair else "":
            assert found[name].clusters == expected[name].clusters


def test_warehouses_have_queries_of_their_own():
    text = sql(by="model", pair=True, dialect="bigquery", items=50, sampled=9)
    assert text.startswith("-- Made for bigquery, and not run there")
    with pytest.raises(InputError, match="did you mean duckdb"):
        sql(dialect="duckbd")


def test_counts_of_broken_rows_are_refused():
    text = sql(items=50, sampled=9)
    for rank, words in ((11, "at most sampled"), (1.25, "ranks that are null")):
        frame = pl.DataFrame({"rank": [1.0, rank]}).to_arrow()
        table = duckdb.from_arrow(frame).query("ranks", text).to_arrow_table()
        with pytest.raises(InputError, match=words):
            read_counts(table)


@pytest.mark.parametrize("role", ["user", "model"])
@pytest.mark.parametrize("empty", [None, ""])
@pytest.mark.parametrize("rows", ["ranks", "scores"])
def test_counts_of_rows_without_a_name_are_refused(rows, empty, role):
    """No join leaves such rows out: the direct call refuses them."""
    given = scored_rows(5, ("A", "B")).with_columns(pl.col("user").cast(pl.String))
    design = {"sampled": 9} if rows == "ranks" else {}
    if rows == "ranks":
        given = given.select("model", "user", rank=pl.col("item") % 10 + 1)
    first = pl.int_range(pl.len()) < pl.len() // 4
    given = given.with_columns(pl.when(first).then(pl.lit(empty)).otherwise(role).alias(role))
    asked = {"by": "model", "rows": rows, "items": 50, **design}
    columns = {"user": "user"}
    for pair in (False, True):
        text = sql(pair=pair, columns=columns, table="given", **asked)
        table = duckdb.from_arrow(given.to_arrow()).query("given", text).to_arrow_table()
        with pytest.raises(InputError, match="ranks that are null: some rows broke a rule"):
            read_counts(table)
