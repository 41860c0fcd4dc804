"""Files of ranks: every format gives the same counts, and bad input one clear line."""

import contextlib
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unsample.errors import UnsampleError
from unsample.evidence import RankCounts
from unsample.tables import rankfiles

RANKS = [1, 1, 2, 5, 9, 10]
DESIGN = ["--items", "100", "--sampled", "9"]


def _write(path, kind):
    frame = pl.DataFrame({"user": list("abcdef"), "rank": RANKS})
    match kind:
        case "csv":
            frame.write_csv(path)
        case "tsv":
            frame.write_csv(path, separator="\t")
        case "jsonl":
            frame.write_ndjson(path)
        case "parquet":
            frame.write_parquet(path)
        case "npz":
            np.savez(path, rank=np.array(RANKS))
        case "txt":
            path.write_text("\n".join(map(str, RANKS)))
        case "json":
            RankCounts.from_ranks(RANKS, items=100, sampled=9).save(path)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "npz", "txt"])
def test_every_format_gives_the_same_counts(tmp_path, kind, run):
    path = tmp_path / f"ranks.{kind}"
    _write(path, kind)
    expected = RankCounts.from_ranks(RANKS, items=100, sampled=9)
    assert rankfiles.read_counts(str(path), items=100, sampled=9) == expected
    code, out, _ = run("estimate", "-", *DESIGN, "--json", stdin=path.read_bytes())
    assert code == 0
    assert json.loads(out)["users"] == 6


@pytest.mark.parametrize("kind", ["json", "npz"])
def test_saved_counts_need_no_options(tmp_path, kind, run):
    path = tmp_path / f"counts.{kind}"
    RankCounts.from_ranks(RANKS, items=100, sampled=9).save(path)
    code, out, _ = run("estimate", path, "--json")
    assert code == 0
    assert json.loads(out)["items"] == 100
    code, _, err = run("estimate", path, *DESIGN)
    assert code == 2
    assert "left out" in err


BAD_FILES = {
    "empty": ("", "is empty"),
    "header only": ("rank\n", "header but no rows"),
    "blank": ("\n\n", "no rows"),
    "missing column": ("user,rnk\na,1\n", "no column 'rank'; its columns are: user, rnk"),
    "word": ("rank\n1\nx\n", "line 3: rank must be a number, got 'x'"),
    "empty cell": ("rank,user\n1,a\n,b\n", "line 3: rank must be a number, got ''"),
    "nan": ("rank\n1\nnan\n", "line 3: rank must be a number, got 'nan'"),
    "fraction": ("rank\n1\n2.5\n", "whole numbers, got 2.5"),
    "zero": ("rank\n0\n", "got 0"),
    "too large": ("rank\n11\n", "got 11"),
    "ragged": ("rank,user\n1,a\n2\n", "line 3: 2 cells expected, got 1"),
    "twice": ("rank,rank\n1,1\n", "two columns of one name"),
    "quote": ('rank\n"1\n', "line"),
    "huge": ("rank\n99999999999999999999999\n", "whole numbers"),
    "negative count": ("rank,count\n1,-2\n", "count"),
    "zero weights": ("rank,weight\n1,0\n", "all be zero"),
    "null bytes": ("rank\n\x001\n", "rank must be a number"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_get_one_clear_line(tmp_path, run, case):
    content, words = BAD_FILES[case]
    path = tmp_path / "ranks.csv"
    path.write_text(content)
    code, out, err = run("estimate", path, *DESIGN)
    assert (code, out) == (2, "")
    assert words in err
    assert err.startswith("unsample: ")
    assert "Traceback" not in err
    assert err.count("\n") == 1


def test_columns_that_contradict_options_are_refused(tmp_path, run):
    path = tmp_path / "ranks.csv"
    path.write_text("rank,items\n1,100\n2,200\n")
    code, _, err = run("estimate", path, *DESIGN)
    assert code == 2
    assert "items is 100 by option but 200 in a row" in err


def test_missing_and_unreadable_files(tmp_path, run):
    (tmp_path / "ranks.csv").write_text("rank\n1\n")
    code, _, err = run("estimate", tmp_path / "rank.csv", *DESIGN)
    assert code == 2
    assert "did you mean ranks.csv" in err
    (tmp_path / "empty").mkdir()
    code, _, err = run("estimate", tmp_path / "empty", *DESIGN)
    assert code == 2
    assert "no file matches" in err


@pytest.mark.parametrize("kind", ["parquet", "npz"])
def test_truncated_binary_files(tmp_path, run, kind):
    path = tmp_path / f"ranks.{kind}"
    _write(path, kind)
    path.write_bytes(path.read_bytes()[:-30])
    code, _, err = run("estimate", path, *DESIGN)
    assert code == 2
    assert "cannot read" in err


def test_pickles_are_not_opened(tmp_path, run):
    path = tmp_path / "ranks.npz"
    np.savez(path, rank=np.array([{"a": 1}], dtype=object))
    code, _, err = run("estimate", path, *DESIGN)
    assert code == 2
    assert "pickles" in err


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200), kind=st.sampled_from(rankfiles.FORMATS))
def test_no_bytes_make_a_parser_fail_otherwise_than_on_purpose(tmp_path_factory, content, kind):
    path = tmp_path_factory.mktemp("fuzz") / "ranks"
    path.write_bytes(content)
    try:
        counts = rankfiles.read_counts(str(path), items=100, sampled=9, file_format=kind)
    except UnsampleError:
        return
    assert counts.total >= 1


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.lists(st.text(max_size=6), min_size=1, max_size=3), max_size=4),
    header=st.sampled_from(["rank", "rank,count", "rank,weight", "rank,items,sampled"]),
)
def test_no_text_table_makes_a_parser_fail_otherwise(tmp_path_factory, rows, header):
    path = tmp_path_factory.mktemp("fuzz") / "ranks.csv"
    body = "\n".join([header, *(",".join(row) for row in rows)])
    path.write_text(body, encoding="utf-8", errors="replace")
    with contextlib.suppress(UnsampleError):
        rankfiles.read_counts(str(path), items=100, sampled=9)
