"""Every door of the command: formats in, tables and JSON out, one clear line for bad input."""

import contextlib
import json
import os
import subprocess
import sys

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


def test_json_output_is_what_the_design_promises(tmp_path, run):
    path = tmp_path / "ranks.csv"
    _write(path, "csv")
    code, out, err = run(
        "estimate", path, *DESIGN, "-m", "HR@5", "-m", "NDCG@20", "--method", "mle",
        "--method", "bv(gamma=0.01)", "--json",
    )  # fmt: skip
    data = json.loads(out)
    assert (code, err) == (0, "")
    promised = ["items", "sampled", "users", "estimates", "warnings"]
    assert list(data)[: len(promised)] == promised
    assert [(e["metric"], e["method"]) for e in data["estimates"]] == [
        ("HR@5", "mle"),
        ("NDCG@20", "mle"),
        ("HR@5", "bv(gamma=0.01)"),
        ("NDCG@20", "bv(gamma=0.01)"),
    ]
    first = data["estimates"][0]
    assert first["low"] <= first["value"] <= first["high"]
    assert first["resolved"] is False
    assert first["bound_low"] <= first["low"] < first["high"] <= first["bound_high"]


def test_the_table_goes_to_stdout_and_warnings_to_stderr(tmp_path, run):
    path = tmp_path / "ranks.csv"
    _write(path, "csv")
    code, out, err = run("estimate", path, *DESIGN)
    assert code == 0
    assert out.startswith("6 targets, 9 of 100 items sampled with replacement")
    assert "warning" not in out
    assert err.count("warning:") == 1


def test_counts_weights_and_designs_may_be_columns(tmp_path, run):
    path = tmp_path / "ranks.csv"
    path.write_text(
        "rank,count,sampled,items,weight,model\n1,10,9,100,0.5,A\n20,3,19,80,1,A\n2,5,9,100,1,B\n"
    )
    code, out, _ = run("estimate", path, "--by", "model", "--json")
    assert code == 0
    data = json.loads(out)
    assert data["by"] == "model"
    assert [(g["model"], g["users"], g["items"]) for g in data["groups"]] == [
        ("A", 13, [80, 100]),
        ("B", 5, 100),
    ]
    code, out, _ = run("estimate", path, "--by", "model")
    assert "model = A" in out
    assert "model = B" in out


def test_without_replacement(tmp_path, run):
    path = tmp_path / "ranks.csv"
    _write(path, "csv")
    arguments = ("estimate", path, "--items", 10, "--sampled", 9, "--without-replacement", "--json")
    code, out, _ = run(*arguments, "-m", "Recall@5")
    assert code == 0
    # Every other item was sampled: these are full-catalogue ranks, and the answer is exact.
    assert json.loads(out)["estimates"][0]["value"] == pytest.approx(4 / 6)


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


BAD_CALLS = {
    "no items": (["--sampled", "9"], "--items"),
    "no sampled": (["--items", "100"], "--sampled"),
    "items 1": (["--items", "1", "--sampled", "9"], "items must be"),
    "sampled 0": (["--items", "100", "--sampled", "0"], "sampled must be"),
    "n > N": (["--items", "5", "--sampled", "9", "--without-replacement"], "at most items - 1"),
    "metric": ([*DESIGN, "-m", "NDGC@10"], "did you mean NDCG"),
    "K 0": ([*DESIGN, "-m", "NDCG@0"], "at least 1"),
    "method": ([*DESIGN, "--method", "mless"], "did you mean"),
    "by": ([*DESIGN, "--by", "usr"], "did you mean user"),
    "format": ([*DESIGN, "--format", "xls"], "one of csv"),
    "wrong format": ([*DESIGN, "--format", "parquet"], "as Parquet"),
    "resamples": ([*DESIGN, "--resamples", "-1"], "resamples must be"),
    "seed": ([*DESIGN, "--seed", "-1"], "rng must be"),
    "popularity": ([*DESIGN, "--sampler", "popularity"], "only uniform sampling"),
    "not a number": (["--items", "many", "--sampled", "9"], "--items"),
    "unknown option": ([*DESIGN, "--nope"], "--nope"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_calls_exit_with_two(tmp_path, run, case):
    arguments, words = BAD_CALLS[case]
    path = tmp_path / "ranks.csv"
    _write(path, "csv")
    code, out, err = run("estimate", path, *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


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


def test_help_and_version(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "estimate" in out
    code, out, _ = run("estimate", "--help")
    assert code == 0
    assert "--without-replacement" in out
    assert "Examples" in out
    code, out, _ = run("--version")
    assert out.startswith("unsample ")


def test_the_installed_command_runs_and_survives_a_closed_pipe(tmp_path):
    path = tmp_path / "ranks.csv"
    _write(path, "csv")
    command = [sys.executable, "-m", "unsample", "estimate", str(path), *DESIGN]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Recall@10" in done.stdout
    reader, writer = os.pipe()
    os.close(reader)
    broken = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert "Traceback" not in broken.stderr


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
