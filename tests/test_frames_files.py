"""Patterns and folders of files: streamed, compared with each other, and named when bad."""

import importlib.util
import json

import numpy as np
import polars as pl
import pytest

from tests.engines import cells, need, scored_rows
from unsample.errors import FileError, InputError, MissingExtraError, RankError, UnsampleError
from unsample.evidence import RankCounts
from unsample.tables import rankfiles, read_counts

DESIGN = {"items": 50, "sampled": 9}
WRITERS = {
    "csv": lambda frame, path: frame.write_csv(path),
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "jsonl": lambda frame, path: frame.write_ndjson(path),
    "parquet": lambda frame, path: frame.write_parquet(path),
}


@pytest.fixture(params=["duckdb", "polars"])
def engine(request):
    need(request.param, "frames")
    return request.param


@pytest.fixture
def write(tmp_path):
    def write_file(name, columns):
        frame = columns if isinstance(columns, pl.DataFrame) else pl.DataFrame(columns)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[path.suffix[1:]](frame, path)
        return path

    return write_file


@pytest.mark.parametrize("kind", WRITERS)
def test_patterns_are_one_table(write, tmp_path, engine, kind):
    write(f"runs/a.{kind}", {"model": ["A", "B"], "rank": [1, 2]})
    write(f"runs/b.{kind}", {"model": ["B", "B"], "rank": [2, 10]})
    write("runs/_SUCCESS.csv", {"rank": [7]})
    expected = {
        "A": RankCounts.from_ranks([1], **DESIGN),
        "B": RankCounts.from_ranks([2, 2, 10], **DESIGN),
    }
    for pattern in (f"runs/*.{kind}", f"*/[ab].{kind}", f"**/?.{kind}", "runs"):
        path = str(tmp_path / pattern)
        groups = rankfiles.read_grouped_counts(path, by="model", engine=engine, **DESIGN)
        assert groups == expected


@pytest.mark.parametrize("kind", WRITERS)
def test_scored_rows_in_files_are_those_in_a_frame(write, tmp_path, engine, kind):
    frame = scored_rows(5, ("A", "B"))
    write(f"a.{kind}", frame[:100])
    write(f"b.{kind}", frame[100:])
    groups = rankfiles.read_grouped_counts(
        str(tmp_path / f"*.{kind}"), by="model", items=50, engine=engine, rng=3
    )
    assert cells(groups) == cells(read_counts(frame, by="model", items=50, rng=3))


def test_one_file_of_scores_needs_no_engine_to_be_named(write):
    frame = scored_rows(6)
    expected = read_counts(frame, items=50)[""]
    for kind in WRITERS:
        assert rankfiles.read_counts(str(write(f"scores.{kind}", frame)), items=50) == expected


def test_folders_that_name_a_column(write, tmp_path, engine):
    write("runs/model=A/part.parquet", {"rank": [1, 2]})
    write("runs/model=B/part.parquet", {"rank": [3]})
    groups = rankfiles.read_grouped_counts(
        str(tmp_path / "runs"), by="model", engine=engine, **DESIGN
    )
    assert {label: counts.total for label, counts in groups.items()} == {"A": 2, "B": 1}


def test_widths_of_numbers_may_differ_between_files(write, tmp_path, engine):
    write("a.parquet", pl.DataFrame({"rank": [1, 2]}, schema={"rank": pl.Int16}))
    write("b.parquet", pl.DataFrame({"rank": [2, 3], "note": ["x", "y"]}))
    write("c.parquet", pl.DataFrame({"rank": [4.0]}))
    counts = rankfiles.read_counts(str(tmp_path / "*.parquet"), engine=engine, **DESIGN)
    assert counts == RankCounts.from_ranks([1, 2, 2, 3, 4], **DESIGN)


def test_files_of_ranks_without_a_header(tmp_path, engine):
    for name, text in (("a.txt", "1\n2\n"), ("b.txt", "2\n10")):
        (tmp_path / name).write_text(text)
    counts = rankfiles.read_counts(str(tmp_path / "*.txt"), engine=engine, **DESIGN)
    assert counts == RankCounts.from_ranks([1, 2, 2, 10], **DESIGN)
    (tmp_path / "c.txt").write_text("rank\n1\n")
    with pytest.raises(FileError, match="must have a header, or none"):
        rankfiles.read_counts(str(tmp_path / "*.txt"), engine=engine, **DESIGN)


def test_the_engines_and_the_plain_reader_agree(write, engine):
    frame = pl.DataFrame({"rank": [1, 2, 2, 9], "count": [3, 1, 0, 2], "weight": [1.0, 0.5, 1, 2]})
    path = str(write("ranks.csv", frame))
    plain = rankfiles.read_counts(path, **DESIGN)
    streamed = rankfiles.read_counts(path, engine=engine, **DESIGN)
    assert plain.count.sum() == streamed.count.sum() == 6
    assert plain.weight.sum() == streamed.weight.sum() == 7.5


def test_large_text_files_are_streamed(write, monkeypatch):
    path = str(write("ranks.csv", {"rank": [1, 2]}))
    monkeypatch.setattr("unsample.tables.rankfiles._read._LARGE_TEXT", 1)
    monkeypatch.setattr(
        "unsample.tables.rankfiles._read.read_bytes", lambda path: pytest.fail("read at once")
    )
    assert rankfiles.read_counts(path, **DESIGN).total == 2


def test_saved_counts_of_a_pattern_add_up(tmp_path, run):
    for name, ranks in (("a.npz", [1, 2]), ("b.npz", [2])):
        RankCounts.from_ranks(ranks, **DESIGN).save(tmp_path / name)
    pattern = str(tmp_path / "*.npz")
    assert rankfiles.read_counts(pattern) == RankCounts.from_ranks([1, 2, 2], **DESIGN)
    code, _, err = run("estimate", pattern, "--items", 50)
    assert code == 2
    assert "left out" in err


# -- bad input: the message names the file, the column and the row -------------------------------


@pytest.mark.parametrize("kind", WRITERS)
def test_a_bad_rank_is_found_in_its_file(write, tmp_path, engine, kind):
    write(f"a.{kind}", {"rank": [1, 2]})
    bad = write(f"b.{kind}", {"rank": [1, 2, 11, 12]})
    with pytest.raises(RankError) as caught:
        rankfiles.read_counts(str(tmp_path / f"*.{kind}"), engine=engine, **DESIGN)
    assert f"column 'rank' of {str(bad)!r} must hold whole numbers from 1 to 10" in str(
        caught.value
    )
    assert ("got 11.0 in row 3" if kind in {"csv", "tsv"} else "got 11 in row 3") in str(
        caught.value
    )


def test_a_word_among_numbers_is_found_in_its_file(tmp_path, engine):
    (tmp_path / "a.csv").write_text("rank,user\n1,x\n2,y\n")
    (tmp_path / "b.csv").write_text("rank,user\n1,x\ntwo,y\n")
    with pytest.raises(FileError) as caught:
        rankfiles.read_counts(str(tmp_path / "*.csv"), engine=engine, **DESIGN)
    bad = str(tmp_path / "b.csv")
    assert f"column 'rank' of {bad!r} must hold numbers, got 'two' in row 2" in str(caught.value)


def test_an_empty_cell_is_a_null(tmp_path, engine):
    (tmp_path / "a.csv").write_text("rank,user\n1,x\n,y\n")
    with pytest.raises(RankError, match="got null in row 2"):
        rankfiles.read_counts(str(tmp_path / "a.csv"), engine=engine, **DESIGN)


def test_types_must_agree_between_files(write, tmp_path, engine):
    write("a.parquet", {"user": [1, 1], "score": [1.0, 2.0], "target": [True, False]})
    write("b.parquet", {"user": ["u", "u"], "score": [1.0, 2.0], "target": [True, False]})
    with pytest.raises(
        FileError, match="column 'user' must be of one type in all files, got Int64"
    ):
        rankfiles.read_counts(str(tmp_path / "*.parquet"), items=50, engine=engine)
    write("b.parquet", {"user": [1, 1], "score": ["1", "2"], "target": [True, False]})
    with pytest.raises(FileError, match=r"b\.parquet' must hold numbers, its type is String"):
        rankfiles.read_counts(str(tmp_path / "*.parquet"), items=50, engine=engine)


def test_columns_must_be_in_every_file(write, tmp_path, engine):
    for kind in ("csv", "parquet"):
        write(f"a.{kind}", {"rank": [1], "model": ["A"]})
        write(f"b.{kind}", {"rank": [1], "name": ["A"]})
        with pytest.raises(FileError, match=r"b\.\w+' has no column 'model', which .*a\.\w+' has"):
            rankfiles.read_grouped_counts(
                str(tmp_path / f"*.{kind}"), by="model", engine=engine, **DESIGN
            )


def test_patterns_that_match_nothing_or_too_much(write, tmp_path, engine):
    write("ranks.csv", {"rank": [1]})
    write("ranks.parquet", {"rank": [1]})
    problems = {
        "nowhere/*.csv": "there is no folder",
        "*.xls": "no file matches",
        "rank??.csv": "did you mean ranks.csv",
        "*": "must match files of one format",
    }
    for pattern, words in problems.items():
        with pytest.raises(FileError, match=words):
            rankfiles.read_counts(str(tmp_path / pattern), engine=engine, **DESIGN)
    (tmp_path / "ranks.weird").write_text("rank\n1\n")
    with pytest.raises(FileError, match="must be told by its name"):
        rankfiles.read_counts(str(tmp_path / "*.weird"), engine=engine, **DESIGN)
    counts = rankfiles.read_counts(
        str(tmp_path / "*.weird"), engine=engine, file_format="csv", **DESIGN
    )
    assert counts.total == 1


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files_that_cannot_be_read(tmp_path, engine, kind):
    (tmp_path / f"a.{kind}").write_bytes(b"\x00\xff\x13" * 40)
    with pytest.raises(UnsampleError, match=f"a.{kind}"):
        rankfiles.read_counts(str(tmp_path / f"*.{kind}"), engine=engine, **DESIGN)


def test_an_engine_that_is_not_installed(write, monkeypatch):
    path = str(write("ranks.parquet", {"rank": [1]}))
    real = importlib.import_module

    def missing(name, *rest):
        if name.split(".")[0] in {"duckdb", "polars", "pyspark"}:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    for engine, extra in (("duckdb", "frames"), ("polars", "frames"), ("spark", "spark")):
        with pytest.raises(MissingExtraError, match=rf"pip install 'unsample\[{extra}\]'"):
            rankfiles.read_counts(path, engine=engine, **DESIGN)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="needs duckdb or polars, and none is installed"):
        rankfiles.read_counts(path, **DESIGN)


def test_standard_input_is_read_here():
    for option in ({"engine": "duckdb"}, {"columns": {"rank": "r"}}, {"rows": "ranks"}):
        with pytest.raises(InputError, match="left out with standard input"):
            rankfiles.read_counts("-", **DESIGN, **option)


# -- the command ---------------------------------------------------------------------------------


def test_the_command_reads_patterns_by_model(write, tmp_path, run, engine):
    ranks = np.random.default_rng(0).integers(1, 11, 400)
    for part in range(2):
        models = np.where(np.arange(200) % 2, "A", "B")
        write(f"run{part}.parquet", {"m": models, "place": ranks[part * 200 :][:200]})
    code, out, err = run(
        "estimate", tmp_path / "*.parquet", "--items", 50, "--sampled", 9, "--by", "m",
        "--column", "rank=place", "--engine", engine, "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    groups = json.loads(out)["groups"]
    assert [(group["m"], group["users"]) for group in groups] == [("A", 200), ("B", 200)]


def test_the_command_says_what_is_wrong_in_one_line(write, tmp_path, run):
    write("a.parquet", {"rank": [1]})
    calls = {
        ("--engine", "duck"): "did you mean duckdb",
        ("--column", "=x"): "ROLE=NAME",
        ("--column", "rank="): "ROLE=NAME",
        ("--rows", "rank"): "did you mean ranks",
        ("--ties", "rand", "--rows", "ranks"): "did you mean random",
    }
    for options, words in calls.items():
        code, out, err = run(
            "estimate", tmp_path / "*.parquet", "--items", 50, "--sampled", 9, *options
        )
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert words in err


def test_text_files_with_clashing_or_no_columns(tmp_path, engine):
    for text, words in (
        ("rank,rank\n1,1\n", "two columns of one name"),
        ("", "is empty"),
        ("rank\n", "has no rows"),
    ):
        (tmp_path / "ranks.csv").write_text(text)
        with pytest.raises(FileError, match=words):
            rankfiles.read_counts(str(tmp_path / "*.csv"), engine=engine, **DESIGN)
