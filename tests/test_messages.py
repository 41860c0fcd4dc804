"""Messages that once misled: each says what is wrong, where, and what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import unsample
from tests.test_web import calculators
from unsample import _files, tables
from unsample.errors import FileError, InputError, MethodError, UnsampleWarning
from unsample.estimators import parse
from unsample.tables import Asked, Read, read_counts, read_targets
from unsample.tables._sql import Query

DESIGN = {"items": 50, "sampled": 9}
WORDS = ("--items", 50, "--sampled", 9)
ASKED = Asked(**DESIGN)
RANKS = [1, 3, 2, 9] * 20


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problem_of(content, name="t.csv"):
    """Return what is said of a file that cannot be read."""
    data = content if isinstance(content, bytes) else content.encode()
    Path(name).write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_counts(name, ASKED)
    return str(caught.value)


# -- rows ------------------------------------------------------------------------------------------


def with_repeat(extra=""):
    rows = "".join(f"u{user},{rank}\n" for user, rank in enumerate(RANKS))
    return f"user,rank\n{rows}{extra}"


def test_a_row_that_is_there_twice_is_warned_of():
    Path("t.csv").write_text(with_repeat("u5,3\n"))
    wanted = (
        r"'t\.csv' has rows that may be duplicates: 1 row repeats the user and the rank of another,"
        r" such as user 'u5', rank '3' \(line 7 and line 82\)"
    )
    with pytest.warns(UnsampleWarning, match=wanted):
        assert read_counts("t.csv", ASKED)[""].total == 81


@pytest.mark.parametrize("read", [pl.read_csv, pd.read_csv, pl.scan_csv])
def test_rows_of_frames_that_repeat_are_warned_of(read):
    Path("t.csv").write_text(with_repeat("u5,3\nu5,3\nu7,9\n"))
    with pytest.warns(UnsampleWarning, match="3 rows repeat the user .* user 'u5', rank 3; each"):
        read_counts(read("t.csv"), ASKED)


def test_equal_ranks_of_users_with_several_targets_are_no_repeats():
    Path("t.csv").write_text(with_repeat("u5,3\nu6,1\n"))  # u6 has another rank too
    read_counts("t.csv", ASKED)  # a warning would be an error here
    named = "user,item,rank\nu1,a,2\nu1,b,2\nu2,a,1\n"
    Path("t.csv").write_text(named)
    read_counts("t.csv", ASKED)
    Path("t.csv").write_text(named + "u1,b,2\n")
    with pytest.warns(UnsampleWarning, match="user 'u1', rank '2', item 'b' .line 3 and line 5"):
        read_counts("t.csv", ASKED)


def test_the_command_says_warnings_before_the_error_that_they_explain(run):
    Path("t.csv").write_text(with_repeat("u5,3\n"))
    code, out, err = run("estimate", "t.csv", *WORDS, "-m", "HR@3")
    assert (code, out) == (2, "")
    assert err.index("warning: 't.csv' has rows that may be dup") < err.index("unsample: HR@3 of")
    assert err.rstrip().endswith("drop duplicate rows and tell models apart")
    quiet = run("estimate", "t.csv", *WORDS, "-m", "HR@3", "-q")[2]
    assert quiet.startswith("unsample: HR@3 of users with several")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("rank,user\n1,a\n,b\n", "got no value in 1 row (line 3); fill in or drop such rows"),
        ("rank,user\n1,a\n\n,b\n,c\n", "got no value in 2 rows (first in line 4)"),
        ('rank,user\n1,"a\nb"\n77,b\n', "got 77 in 1 row (line 4); these may be full"),
        (
            "rank,user\n1,a\n" + "".join(f"{rank},u{rank}\n" for rank in range(20, 40)),
            "got 20 in 1 row (line 3) and others like it in 19 more; these may be full",
        ),
        ('rank,user\n1,a\n"1,234",b\n', "got '1,234' in 1 row (line 3); write no commas in number"),
        ("rank,user\n1,a\n1,234,b\n", "line 3 of 't.csv' must have as many cells as there are"),
        ("rank,user\r\n1,a\r\n2,b\n3\n", "line 4 of 't.csv' must have as many cells as there"),
        ("rank\n1\nfirst\n", "must hold numbers, got 'first' in 1 row (line 3); correct or drop"),
        ("Rank\n1\n", "to read 'Rank', pass columns={'rank': 'Rank'} (--column rank=Rank)"),
        ("Rank,rank\n1,1\n", "two columns of one name, 'Rank' and 'rank', capital letters"),
    ],
)
def test_a_bad_row_is_told_with_its_line(content, said):
    assert said in problem_of(content)


def test_of_several_files_the_line_is_told_with_its_file():
    Path("a.csv").write_text("rank\n1\n2\n")
    Path("b.csv").write_text("rank\n1\n77\n")
    with pytest.raises(InputError, match=r"got 77 in 1 row \(line 3 of 'b\.csv'\)"):
        read_counts(["a.csv", "b.csv"], ASKED)


def test_lines_of_json_are_told_too():
    rows = '{"rank": 1}\n\n{"rank": "x"}\n{"rank": "x"}\n'
    assert "got 'x' in 2 rows (first in line 3)" in problem_of(rows, "t.jsonl")
    rows = '{"rank": 1}\n{"rank": 77}\n'
    assert "got 77 in 1 row (line 2)" in problem_of(rows, "t.jsonl")


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ("user,rank\nJosé,3\n".encode("latin-1"), "t.csv", "line 2 of 't.csv' is not UTF-8 text, "),
        (
            b"rank,user\n" + b"1,a\n" * 400_000 + b"1,\xe9\n",
            "t.csv",
            "line 400002 of 't.csv' is not UTF-8 text, got the byte 0xE9; if the file is in Latin",
        ),
        ('{"user": "é"}\n'.encode("latin-1"), "t.jsonl", "line 1 of 't.jsonl' is not UTF-8"),
        ("rank\n1\n".encode("utf-16"), "t.csv", "got UTF-16; convert it: iconv -f UTF-16 -t UTF-8"),
        (b"rank\n\xff\0\0", "t.csv", "is not UTF-8 text; it may be truncated, compressed"),
        ('[{"rank": 1}, {"rank": 2}]', "t.jsonl", "write each object of the list in a line of its"),
        ('[\n {"rank": 1}\n]', "t.json", "line 1 of 't.json' must be an object of JSON, such as"),
        ('{"rank": 1}\n{"rank"', "t.jsonl", "line 2 of 't.jsonl' must be an object of JSON"),
        ('{"rank": 1}\n3\n', "t.jsonl", "line 2 of 't.jsonl' must be an object of JSON"),
        (
            b"\x93NUMPY\x01\0",
            "t.npy",
            "must name its columns, got one array; save it by numpy.savez",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_our_words(content, name, said):
    assert said in problem_of(content, name)


@pytest.mark.parametrize("write", [pl.DataFrame.write_csv, pl.DataFrame.write_parquet])
def test_names_of_files_need_not_be_utf_8(run, write):
    ending = write.__name__.removeprefix("write_")
    folder = Path(os.fsdecode(b"\xfe"), "model=A")
    folder.mkdir(parents=True)
    name = folder / os.fsdecode(f"n\xff.{ending}".encode("latin-1"))
    write(pl.DataFrame({"rank": RANKS}), "plain")
    Path("plain").rename(name)
    assert read_targets(str(name), ASKED).ranks.tolist() == RANKS
    if ending == "parquet":
        assert list(read_counts(str(name), Asked(**DESIGN, by="model"))) == ["A"]
    code, out, _ = run("estimate", name, *WORDS, "--json")
    assert (code, json.loads(out)["users"]) == (0, 80)


@pytest.mark.parametrize("kind", [">i4", "<i2", "f2", "g", "U", "S", "u8"])
def test_arrays_of_any_kind_of_number_are_read(kind):
    np.savez("t.npz", rank=np.array(RANKS).astype(kind))
    assert read_targets("t.npz", ASKED).ranks.tolist() == RANKS


def test_arrays_that_hold_no_numbers_are_told_in_our_words():
    np.savez("t.npz", rank=np.array(RANKS) + 0j)
    with pytest.raises(InputError, match=r"column 'rank' must hold numbers, .* of type complex128"):
        read_counts("t.npz", ASKED)
    np.savez("t.npz", rank=np.array(RANKS), user=np.array([b"\xff"] * len(RANKS)))
    with pytest.raises(InputError, match="column 'user' must hold UTF-8 text, got bytes that are"):
        read_counts("t.npz", ASKED)
    np.savez("t.npz", rank=np.array(["a", "2", None]))
    with pytest.raises(FileError, match="as NPZ: it holds Python objects; save numbers, or text"):
        read_counts("t.npz", ASKED)
    np.savez("t.npz", rank=np.array(["a", "2", "a"]))
    with pytest.raises(FileError, match=r"must hold numbers, got 'a' in 2 rows; correct or drop"):
        read_counts("t.npz", ASKED)


FORMS = {
    "csv": pl.DataFrame.write_csv,
    "parquet": pl.DataFrame.write_parquet,
    "jsonl": pl.DataFrame.write_ndjson,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_without_a_column_that_others_have_is_named(form):
    frame = pl.DataFrame({"user": range(80), "rank": RANKS})
    FORMS[form](frame, f"a.{form}")
    FORMS[form](frame.drop("user"), f"b.{form}")
    wanted = rf"^'b\.{form}' has no column 'user', and 'a\.{form}' has it; add the column, or leave"
    with pytest.raises(InputError, match=wanted):
        unsample.compare([f"a.{form}", f"b.{form}"], **DESIGN)
    with pytest.raises(InputError, match=wanted):
        read_counts([f"a.{form}", f"b.{form}"], ASKED)


def test_a_frame_without_a_column_that_others_have_is_named():
    frame = pl.DataFrame({"user": range(80), "rank": RANKS})
    with pytest.raises(
        InputError, match=r"^the table of B has no column 'user', and the table of A"
    ):
        unsample.compare({"A": frame, "B": frame.drop("user")}, **DESIGN)


# -- the command -----------------------------------------------------------------------------------


def test_of_several_models_the_one_is_named_whose_users_repeat(run):
    rows = "".join(
        f"{model},u{user // (1 + (model == 'B'))},{rank}\n"
        for model in "AB"
        for user, rank in enumerate(RANKS)
    )
    Path("t.csv").write_text(f"model,user,rank\n{rows}")
    code, _, err = run("estimate", "t.csv", *WORDS, "--by", "model", "-m", "HR@3")
    assert code == 2
    assert "unsample: B: HR@3 of users with several relevant items needs" in err


@pytest.fixture
def ranks():
    Path("A.csv").write_text(with_repeat())
    return "A.csv"


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("model (dropout=0.5)=A.csv", "model (dropout=0.5)"),
        ("a=b=A.csv", "a=b"),
        ("x=dropout=1/A.csv", "x"),
    ],
)
def test_names_of_models_may_hold_a_sign_of_equality(run, ranks, word, name):
    Path("dropout=1").mkdir()
    Path("dropout=1", "A.csv").write_text(with_repeat())
    code, out, err = run("estimate", word, *WORDS, "--json", "-q")
    assert code == 0, err
    assert list(json.loads(out)) == [name]


PAPER = ("--items", 50, "--sampled", 9, "--users", 60)
BAD_CALLS = [
    (("estimate", "m (x=1)=no.csv", *WORDS), "there is no file 'no.csv'"),
    (("published", "HR=0.7", *PAPER), "HR must have a K, such as HR@10, got none: over all 10"),
    (("published", "HR@5=0,71", *PAPER), "a number must have a decimal point, got 'HR@5=0,71'"),
    (("estimate", "A.csv", *WORDS, "--method", "bv(prior=bv)"), "bv: prior must be one of unif"),
    (("estimate", "A.csv", *WORDS, "--prior", "/nope"), "or pass --prior shipped or --prior none"),
    (
        ("estimate", "A.csv", *WORDS, "--json", "--latex"),
        "a result must be printed in one form, got --json and --latex; leave out all but one",
    ),
    (
        ("estimate", "A.csv", *WORDS, "--print-sql", "duckdb", "--html", "o.html"),
        "--html must be left out with --print-sql",
    ),
    (
        ("compare", "A.csv", *WORDS, "--print-sql", "duckdb", "--plot", "o.svg"),
        "--plot must be left out with --print-sql",
    ),
    (
        ("estimate", "counts.npz", "--without-replacement"),
        "--without-replacement must be left out, for it is --replacement as in the counts in 'co",
    ),
    (("estimate", "A.csv", *WORDS, "--method", "mle(iterations=10000000000)"), "at most 1000000"),
]


@pytest.mark.parametrize(("call", "said"), BAD_CALLS)
def test_bad_calls_are_told_what_is_wrong(run, ranks, call, said):
    unsample.RankCounts.from_ranks(RANKS, **DESIGN).save("counts.npz")
    code, out, err = run(*call)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert not Path("o.html").exists()


def command(*words, **settings):
    call = [sys.executable, "-m", "unsample", *map(str, words)]
    return subprocess.run(call, capture_output=True, text=True, check=False, **settings)


def test_a_closed_standard_input_is_told(ranks):
    call = ["sh", "-c", '"$0" -m unsample estimate - --items 50 --sampled 9 <&-', sys.executable]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "unsample: standard input must be open to be read, got a closed one; give a file\n"
    )


def test_too_little_memory_is_told(run, monkeypatch):
    def fail(**_):
        raise MemoryError("Unable to allocate 74.5 GiB")

    monkeypatch.setattr("unsample.questions.plan.ask.plan", fail)
    code, out, err = run("plan", "--items", 500, "--users", 10)
    assert (code, out) == (1, "")
    assert err.startswith("unsample: the memory of this machine is not enough (Unable to allocate")
    assert err.count("\n") == 1


def test_a_signal_that_a_library_turns_into_another_error_ends_in_silence(run, monkeypatch):
    """As an extension does that is interrupted while it is loaded."""

    def fail(**_):
        try:
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(1)
        except SystemExit as problem:
            raise RuntimeError("initialization failed") from problem

    monkeypatch.setattr("unsample.questions.plan.ask.plan", fail)
    outside = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    hook = sys.unraisablehook
    try:
        assert run("plan", "--items", 500, "--users", 10) == (129, "", "")
    finally:
        signal.signal(signal.SIGHUP, outside)
        sys.unraisablehook = hook


# -- Python ----------------------------------------------------------------------------------------


def scores(users, items):
    return (users * 7 + items * 3) % 5.0


@pytest.mark.parametrize("first", [10**10, 2**40])
def test_numbers_of_users_may_be_large(first):
    pairs = (np.arange(50) + first, np.arange(50))
    large = unsample.evaluate(scores, pairs, items=50, metrics="NDCG@5")
    small = unsample.evaluate(scores, (pairs[0] % 5, pairs[1]), items=50, metrics="Recall@5")
    assert large.counts.total == small.counts.total == 50


def test_numbers_of_users_that_are_too_large_are_told():
    wanted = "users must be numbers of at most .* number the users from 0: numpy.unique"
    for first, filtered in ((2**62, False), (2**40, True)):
        pairs = (np.arange(50) + first, np.arange(50))
        with pytest.raises(InputError, match=wanted):
            unsample.evaluate(scores, pairs, items=50, metrics="Recall@5", filtered=filtered)


def test_iterations_have_a_limit():
    for name in ("mle", "wmle"):
        with pytest.raises(MethodError, match=f"^{name}: iterations must be .* at most 1000000"):
            parse(f"{name}(iterations=10000000000)")


@pytest.mark.parametrize("across", [None, "dataset"])
def test_too_many_models_are_refused_before_their_pairs_are_counted(monkeypatch, across):
    table = pd.DataFrame({"model": np.arange(101), "user": 1, "rank": 1, "dataset": "one"})
    monkeypatch.setattr(Query, "counts", lambda *_, **__: pytest.fail("counted before"))
    with pytest.raises(InputError, match="models must be at least two and at most 100, got 101"):
        unsample.compare(table, across=across, **DESIGN)


@pytest.mark.parametrize("values", [np.array(["1", "2"]), ["a"] * 2, np.array([1, None])])
def test_text_is_not_told_of_ties(values):
    given = values if isinstance(values, np.ndarray) else np.array(values)
    with pytest.raises(InputError, match=r"got values of type .*; convert them first, such as"):
        unsample.estimate(given, **DESIGN)


def test_texts_of_a_model_are_said_to_be_files():
    for models in ({"a": ["1", "2"], "b": ["1", "2"]}, {"a": "1", "b": "2"}):
        with pytest.raises(
            FileError, match=r"no file '1'; .*; texts in a list are files, and ranks"
        ):
            unsample.compare(models, **DESIGN)


# -- plots and pages -------------------------------------------------------------------------------

EVIL = "\x1b[31mred\u202eder"


def compared(name):
    rng = np.random.default_rng(0)
    return unsample.compare({name: rng.integers(1, 11, 80), "b": rng.integers(1, 11, 80)}, **DESIGN)


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_the_same_plot_has_the_same_bytes_and_leaves_no_figure(ending):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from unsample.report import write_plot

    before = pyplot.get_fignums()
    result = compared("a")
    write_plot(result, f"1.{ending}")
    write_plot(result, f"2.{ending}")
    result.plot(f"3.{ending}")
    assert Path(f"1.{ending}").read_bytes() == Path(f"2.{ending}").read_bytes()
    assert pyplot.get_fignums() == before


def test_letters_that_a_plot_cannot_show_are_told_once_and_quietly(run, ranks):
    pytest.importorskip("matplotlib")
    Path("B.csv").write_text(with_repeat())
    call = ("compare", "\u4e2d\u6587=A.csv", f"{EVIL}=B.csv", *WORDS, "--plot", "p.svg")
    code, _, err = run(*call)
    assert code == 0
    assert err.count("the plot shows boxes in place of some letters of names") == 1
    assert "Glyph" not in err
    assert "\x1b" not in err
    assert run(*call, "-q")[2] == ""
    assert r"\x1b[31mred\u202eder" in Path("p.svg").read_text(encoding="utf-8")


def test_pages_and_notebooks_spell_out_what_turns_the_direction_of_writing():
    result = compared(EVIL)
    page = unsample.report.as_html(result)
    for text in (page, result._repr_html_()):
        assert not {"\x1b", "\u202e"} & set(text)
        assert r"\x1b[31mred\u202eder" in text
    assert "\\u001b" not in page  # in the numbers of charts, which the script shows


# -- temporary folders -----------------------------------------------------------------------------


def test_folders_of_killed_processes_are_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import tempfile, time; from unsample import _files\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "with _files.temporary_folder() as path:\n"
        "    open(path + '/copy', 'w').close(); print(path, flush=True); time.sleep(60)\n"
    )

    def started():
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        return process, Path(process.stdout.readline().strip())

    killed, left = started()
    alive, used = started()
    try:
        killed.kill()
        killed.wait()
        old = time.time() - 2 * _files._OLD
        fresh = tmp_path / "unsample-fresh"
        fresh.mkdir()
        for folder in (left, used):
            os.utime(folder, (old, old))
        with _files.temporary_folder():
            assert not left.exists()
            assert (used / "copy").exists()
            assert fresh.exists()
    finally:
        alive.kill()
        alive.wait()
        for process in (killed, alive):
            process.stdout.close()


# -- one set of cases for the command and the page in a browser ------------------------------------

CASES = {
    "plain": ("t.csv", "rank,user\n1,a\n3,b\n"),
    "byte-order mark": ("t.csv", "\ufeffrank,user\n1,a\n"),
    "tabs": ("t.tsv", "user\trank\na\t4\n"),
    "tabs in a text": ("t.txt", "user\trank\na\t4\n"),
    "quotes": ("t.csv", '"rank","user"\n"1","x, ""y"""\n2,"two\nlines"\n'),
    "empty lines": ("t.csv", "\n\nrank\n\n1\n\n2\n"),
    "spaces": ("t.csv", " rank , user\n 1,a\n2 ,b\n"),
    "ranks alone": ("t.txt", "2\n10\n"),
    "unnamed column": ("t.csv", ",rank,user\n0,3,a\n1,1,b\n"),
    "line ends of all kinds": ("t.csv", "rank,user\r\n1,a\n2,b\r3,c\n"),
    "separator at the end": ("t.csv", "rank,user\n1,a,\n2,b,\n"),
    "whole numbers with a point": ("t.csv", "rank\n1.0\n2e0\n"),
    "sizes that agree": ("t.csv", "rank,items,sampled\n1,50,9\n"),
    "grades of 1": ("t.csv", "rank,relevance\n1,1\n"),
    "empty": ("t.csv", ""),
    "names alone": ("t.csv", "rank,user\n"),
    "semicolons": ("t.csv", "user;rank\na;1\n"),
    "no rank": ("t.csv", "place,user\n1,a\n"),
    "capital letters": ("t.csv", "Rank\n1\n"),
    "a word": ("t.csv", "rank\n1\nfirst\n"),
    "a number with a comma": ("t.csv", 'rank\n"1,234"\n'),
    "underscores": ("t.csv", "rank\n1_0\n"),
    "no number": ("t.csv", "rank\nnan\n"),
    "beyond the sample": ("t.csv", "rank\n1\n11\n12\n"),
    "half a rank": ("t.csv", "rank\n1.5\n"),
    "no value": ("t.csv", "rank,user\n1,a\n,b\n"),
    "no user": ("t.csv", "rank,user\n1,a\n2,\n"),
    "too few cells": ("t.csv", "rank,user\n1,a\n2\n"),
    "too many cells": ("t.csv", "rank,user\n1,a\n2,b,c\n"),
    "a quote inside": ("t.csv", 'rank,user\n1,"a"x\n'),
    "one name twice": ("t.csv", "rank,rank\n1,1\n"),
    "weights": ("t.csv", "rank,weight\n1,2\n"),
    "sizes that contradict": ("t.csv", "rank,items\n1,60\n"),
    "grades": ("t.csv", "rank,relevance\n1,0\n"),
    "not UTF-8": ("t.csv", b"rank,user\n1,a\n2,\xe9\n"),
}


def outcome(call):
    """Return ranks and users, or what is said of them before any advice."""
    try:
        ranks, users = call()
    except InputError as problem:
        return str(problem).partition(";")[0].partition(", got the byte")[0]
    return [float(rank) for rank in ranks], list(users)


@pytest.mark.parametrize("case", CASES)
def test_the_page_reads_text_as_the_command_does(case):
    name, content = CASES[case]
    data = content if isinstance(content, bytes) else content.encode()
    Path(name).write_bytes(data)

    def by_command():
        found = read_targets(name, Asked(**DESIGN, read=Read(rows="ranks")))
        return found.ranks, [] if found.users is None else found.users.tolist()

    def by_page():
        # A browser puts a sign in place of bytes that are not UTF-8.
        typed = {name: str(size) for name, size in DESIGN.items()}
        text = data.decode("utf-8", "replace")
        ((_, found),) = calculators.read(name, text, typed).items()
        return found

    assert outcome(by_page) == outcome(by_command)


def test_the_page_tells_models_apart_by_their_column():
    typed = {name: str(size) for name, size in DESIGN.items()}
    found = calculators.read("t.csv", "model,rank\nB,1\nA,2\nB,3\n", typed)
    assert {model: ranks.tolist() for model, (ranks, _) in found.items()} == {"B": [1, 3], "A": [2]}
    with pytest.raises(
        InputError, match=r"column 'model' of 't.csv' must hold a name in every row"
    ):
        calculators.read("t.csv", "model,rank\n,1\nA,2\n", typed)


def test_the_page_names_a_file_without_users():
    fields = {name: str(size) for name, size in DESIGN.items()}
    files = [["a.csv", with_repeat()], ["b.csv", "rank\n1\n2\n"]]
    question = {"calculator": "ranks", "fields": fields, "files": files}
    problem = json.loads(calculators.answer(json.dumps(question)))["problem"]
    assert problem.startswith("the table of b has no column 'user', and the table of a has it; add")


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ("HR@10 = 71", "numbers: HR@10 must be between 0 and 1, got 71; for per cent, write % beh"),
        ("71", "numbers must be a metric and its value each, such as HR@10 = 0.710, got '71'"),
        ("0,71", "numbers must be a metric and its value each, such as HR@10 = 0.710, got '0,71'"),
    ],
)
def test_the_page_says_how_numbers_are_typed(numbers, said):
    typed = {"numbers": numbers, "items": "400", "sampled": "30", "users": "1500"}
    question = {"calculator": "published", "fields": typed, "files": []}
    problem = json.loads(calculators.answer(json.dumps(question)))["problem"]
    assert said in problem
    assert not any(word in problem for word in ("percent=True", "--percent"))


@pytest.mark.parametrize(
    "numbers",
    ["HR@10: 0.71, HR@1: 0.226", "HR@10 = 0,71, HR@1 = 0,226", "HR@10=71,0 %;HR@1=22.6 %"],
)
def test_the_page_takes_numbers_as_people_type_them(numbers):
    def ask(text):
        typed = {"numbers": text, "items": "400", "sampled": "30", "users": "1500"}
        question = {"calculator": "published", "fields": typed, "files": []}
        answer = json.loads(calculators.answer(json.dumps(question)))
        rows = json.loads(answer["numbers"])["estimates"]
        return {row["metric"]: round(row["value"], 2) for row in rows}

    assert ask(numbers) == ask("HR@10 = 0.71, HR@1 = 0.226")


def test_read_plain_text_is_exported():
    assert "read_plain_text" in tables.__all__
