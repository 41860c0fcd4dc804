"""The command: verbs and their options, how it speaks and fails."""

import errno
import inspect
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer

from tests import pages
from tests.doors import scored_rows
from unsample import answers, errors
from unsample.__main__ import application, main
from unsample.cli import _start
from unsample.cli.console import log
from unsample.errors import FileError
from unsample.evidence import RankCounts

ROOT = Path(__file__).parent.parent


# --- verbs -----------------------------------------------------------------------------------


@pytest.fixture
def ranks(tmp_path):
    file = tmp_path / "ranks.csv"
    file.write_text("rank\n" + "1\n3\n2\n9\n" * 20)
    return file


@pytest.fixture
def usual(tmp_path):
    """Ranks as data sets have them."""
    file = tmp_path / "usual.csv"
    file.write_text("rank\n" + "\n".join(map(str, pages.sampled_ranks())))
    return file


DESIGN = ("--items", 400, "--sampled", 30)
CALL = (*DESIGN, "-m", "Recall@2", "--method", "naive")
RESULTS = ("estimate", "compare", "published", "plan", "audit")


def test_every_verb_has_the_options_that_all_share():
    verbs = application(whole=True).commands
    assert set(verbs) == {*RESULTS, "reproduce"}
    for verb in verbs.values():
        options = {text for parameter in verb.params for text in parameter.opts}
        assert {"--quiet", "-q", "--verbose", "-v", "--json"} <= options, verb.name
        if verb.name in RESULTS:
            assert {"--html", "--latex", "--markdown"} <= options, verb.name
        assert not options & {"--seed", "--metric", "--seen", "--k"}, verb.name


def test_json_holds_what_was_asked_for_by_its_names(usual, run):
    code, out, err = run(
        "estimate", usual, *DESIGN, "-m", "HR@5", "--metrics", "NDCG@20", "--method", "mle",
        "--method", "bv(gamma=0.01)", "--json",
    )  # fmt: skip
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert list(data)[:5] == ["items", "sampled", "users", "targets", "estimates"]
    assert [(entry["metric"], entry["method"]) for entry in data["estimates"]] == [
        ("HR@5", "mle"),
        ("NDCG@20", "mle"),
        ("HR@5", "bv(gamma=0.01)"),
        ("NDCG@20", "bv(gamma=0.01)"),
    ]
    first = data["estimates"][0]
    assert first["bound_low"] <= first["low"] <= first["high"] <= first["bound_high"]
    assert first["source"] == "prior"
    assert "standard_error" not in first


def test_the_table_goes_to_stdout_and_warnings_to_stderr(ranks, run):
    code, out, err = run("estimate", ranks, *DESIGN)
    assert code == 0
    assert out.startswith("80 targets, 30 of 400 items sampled with replacement")
    assert "warning" not in out
    assert err.count("warning:") == 1


def test_bounds_are_a_word_where_they_are_the_interval_and_a_column_with_verbose(usual, run):
    head = ["metric", "estimate", "95", "%", "interval"]
    plain, verbose, without = (
        run("estimate", usual, *DESIGN, *more)[1]
        for more in ((), ("--verbose",), ("--prior", "none"))
    )
    assert plain.splitlines()[2].split() == head
    assert "bounds" not in plain
    assert verbose.splitlines()[2].split() == [*head, "bounds"]
    assert without.count(" (bounds)") == 3


def test_groups_stand_in_one_table(tmp_path, run):
    path = tmp_path / "ranks.csv"
    path.write_text("rank,count,sampled,items,model\n1,10,9,100,A\n20,3,19,80,A\n2,5,9,100,B\n")
    code, out, _ = run("estimate", path, "--by", "model", "--json")
    assert code == 0
    groups = json.loads(out)
    assert {name: (group["users"], group["items"]) for name, group in groups.items()} == {
        "A": (13, [80, 100]),
        "B": (5, 100),
    }
    code, out, _ = run("estimate", path, "--by", "model")
    assert "A: 13 targets" in out


def test_models_in_one_file_or_in_several_are_paired_by_user(tmp_path, run):
    rows = [
        (model, user, user % 7 + 1 + shift)
        for shift, model in enumerate("AB")
        for user in range(60)
    ]
    for model in "AB":
        lines = [f"{user},{rank}" for name, user, rank in rows if name == model]
        # Users in another order: pairing is by name and not by place.
        lines = lines if model == "A" else lines[::-1]
        (tmp_path / f"{model}.csv").write_text("user,rank\n" + "\n".join(lines))
    lines = [f"{model},{user},{rank}" for model, user, rank in rows]
    (tmp_path / "both.csv").write_text("model,user,rank\n" + "\n".join(lines))
    options = (*DESIGN, "-m", "Recall@50", "--json")
    found = [
        printed(run("compare", *files, *options))
        for files in (
            (f"A={tmp_path / 'A.csv'}", f"B={tmp_path / 'B.csv'}"),
            (tmp_path / "A.csv", tmp_path / "B.csv"),
            (tmp_path / "both.csv",),
        )
    ]
    assert found[0] == found[1]
    for one, other in ((each["differences"][0], each["paired"]) for each in found):
        assert other
        assert one == pytest.approx(found[0]["differences"][0])


@pytest.mark.parametrize("form", ["--latex", "--markdown"])
def test_tables_for_papers(ranks, run, form):
    code, out, _ = run("estimate", ranks, *CALL, form)
    assert code == 0
    assert (r"\toprule" if form == "--latex" else "| metric |") in out
    code, _, err = run("estimate", ranks, *CALL, form, "--json")
    assert code == 2
    assert "must not be given together" in err


BAD_CALLS = {
    "no items": (["--sampled", "9"], "items must be given"),
    "no sampled": (["--items", "100"], "sampled must be given"),
    "items 1": (["--items", "1", "--sampled", "9"], "items must be"),
    "sampled 0": (["--items", "100", "--sampled", "0"], "sampled must be"),
    "n > N": (["--items", "20", "--sampled", "30", "--without-replacement"], "at most items - 1"),
    "metric": ([*DESIGN, "-m", "NDGC@10"], "did you mean NDCG"),
    "K 0": ([*DESIGN, "-m", "NDCG@0"], "at least 1"),
    "method": ([*DESIGN, "--method", "mless"], "did you mean"),
    "by": ([*DESIGN, "--by", "rnk"], "did you mean rank"),
    "column": ([*DESIGN, "--column", "=x"], "column must be given as ROLE=NAME"),
    "rows": ([*DESIGN, "--rows", "rank"], "did you mean ranks"),
    "ties": ([*DESIGN, "--ties", "rand"], "did you mean random"),
    "rng": ([*DESIGN, "--rng", "-1"], "rng must be"),
    "not a number": (["--items", "many", "--sampled", "9"], "--items"),
    "unknown option": ([*DESIGN, "--nope"], "--nope"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_calls_exit_with_two(ranks, run, case):
    arguments, words = BAD_CALLS[case]
    code, out, err = run("estimate", ranks, *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare", "a.csv", "b.csv"), "there is no file 'a.csv'"),
        (("compare", "a=a.csv", "b.csv"), "each model must be given as NAME=FILE"),
        (("estimate", "a=a.csv", "a=b.csv"), "got 'a' twice"),
        (("published", "HR@10", "--items", 9, "--sampled", 3, "--users", 2), "a number must be"),
        (
            ("plan", "--items", 500, "--users", 10, "--sampled", 3),
            "without such a file; leave it out",
        ),
        (("plan", "--items", "many", "--users", 10), "--items"),
        (("nonsense",), "nonsense"),
    ],
)
def test_bad_calls_of_other_verbs(run, arguments, words):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_help_and_version(run):
    code, out, _ = run("--help")
    assert code == 0
    assert all(verb in out for verb in (*RESULTS, "reproduce"))
    code, out, _ = run("estimate", "--help")
    assert code == 0
    assert "--without-replacement" in out
    assert "Examples" in out
    code, out, _ = run("--version")
    assert out.startswith("unsample ")


def test_the_installed_command_survives_a_closed_pipe(ranks):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "unsample", "estimate", str(ranks), *map(str, CALL)]
    broken = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (broken.returncode, broken.stderr) == (141, "")


# --- quiet and verbose -----------------------------------------------------------------------


def test_quiet_leaves_out_warnings_and_nothing_else(run, ranks):
    code, out, err = run("estimate", ranks, *CALL)
    lines = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert lines
    assert len(lines) == len(set(lines)), "each is said once"
    assert run("estimate", ranks, *CALL, "--quiet") == (code, out, "")
    code, out, err = run("estimate", ranks, "--items", "2", "--sampled", "0", "-q")
    assert (code, out) == (2, "")
    assert err.startswith("unsample: ")


def test_verbose_says_what_was_done_and_where_an_error_comes_from(run, ranks):
    before = (log.level, log.propagate, list(log.handlers))
    code, _, err = run("estimate", ranks, *CALL, "--verbose")
    assert (log.level, log.propagate, list(log.handlers)) == before
    assert code == 0
    assert "unsample 0" in err
    assert " s, " in err
    wrong = ("estimate", ranks, "--items", "2", "--sampled", "0")
    assert "Traceback" not in run(*wrong)[2]
    assert "Traceback" in run(*wrong, "-v")[2]


# --- exit codes ------------------------------------------------------------------------------


def test_quiet_and_verbose_exclude_each_other(run, ranks):
    code, _, err = run("estimate", ranks, *CALL, "-q", "-v")
    assert code == 2
    assert "quiet and verbose" in err


def _kinds(kind=errors.UnsampleError):
    yield kind
    for inner in kind.__subclasses__():
        yield from _kinds(inner)


def test_exit_codes_are_those_of_the_page():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    table = page[page.index("### Exit codes") : page.index("## Python")]
    listed = {int(row.split("|")[1]) for row in table.splitlines() if row[2:3].isdigit()}
    assert {kind.exit_code for kind in _kinds()} | {0, 129, 130, 141, 143} == listed
    wrong = (errors.InputError, errors.GoneError)
    assert all(issubclass(kind, wrong) == (kind.exit_code == 2) for kind in _kinds())


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (errors.SolverError("no"), 1),
        (errors.DownloadError("no"), 1),
        (errors.InputError("no"), 2),
        (errors.MissingExtraError("no"), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_every_kind_of_failure_has_its_exit_code(run, monkeypatch, problem, code):
    def fail(*_, **__):
        raise problem

    monkeypatch.setattr("unsample.answers.plan", fail)
    got, out, err = run("plan", "--items", "500", "--users", "10")
    assert (got, out) == (code, "")
    assert err.startswith("unsample: ")


# --- colours and completion ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terminal", "unwanted", "coloured"),
    [(True, "", True), (True, "1", False), (False, "", False)],
)
def test_colours_on_a_terminal_unless_they_are_not_wanted(
    capsys, monkeypatch, terminal, unwanted, coloured
):
    arguments = ("estimate", "no-such-file.csv", "--items", "10", "--sampled", "3")
    monkeypatch.setattr(sys, "argv", ["unsample", *arguments])
    monkeypatch.setenv("NO_COLOR", unwanted)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with pytest.raises(SystemExit):
        main()
    written = capsys.readouterr().err
    assert "unsample: " in written
    assert ("\x1b[31m" in written) is coloured


# -- options of the verbs --------------------------------------------------------------------------


def test_options_are_named_like_the_arguments():
    """Every option of a verb is an argument of the function that it calls, or of the reader."""
    whole = application(whole=True)
    shared = {"quiet", "verbose", "html", "as_json", "latex", "markdown"}
    reader = {"file", "files", "rows", "ties", "column", "rng", "sampled", "print_sql"}
    gate = {"baseline", "fail_if_worse", "margin"}  # of `Comparison.gate`
    for name in RESULTS:
        arguments = set(inspect.signature(getattr(answers, name)).parameters)
        arguments |= gate if name == "compare" else set()
        options = {parameter.name for parameter in whole.commands[name].params}
        assert options - shared - reader - {"plot"} <= arguments, name


#: Arguments that no option stands for, and why.
_NO_OPTION = {
    "estimate": {
        "ranks": "FILE",
        "users": "a column of FILE",
        "read": "--column, --rows, --ties and --rng",
    },
    "compare": {
        "models": "FILE or NAME=FILE",
        "users": "a column of the files",
        "read": "--column, --rows, --ties and --rng",
    },
    "published": {},
    "plan": {},
    "audit": {
        "targets": "a column of FILE",
        "columns": "--column, once for each",
    },
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_argument_has_an_option(name):
    """What a function can be told, its verb can be told, but for what files tell."""
    verb = application(whole=True).commands[name]
    options = {parameter.name for parameter in verb.params}
    arguments = set(inspect.signature(getattr(answers, name)).parameters)
    assert arguments - options == set(_NO_OPTION[name])


# -- what they do --------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with ranks of two models."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        rows = "\n".join(map(str, rng.integers(1, 20, size=200)))
        (tmp_path / f"{name}.csv").write_text(f"place\n{rows}\n")


def printed(call):
    code, out, err = call
    assert code == 0, err
    return json.loads(out)


def test_compare_takes_a_column_and_no_pairing(files, run):
    given = (
        "compare",
        "a=a.csv",
        "b=b.csv",
        *DESIGN,
        "-m",
        "Recall@50",
        "--json",
        "--column",
        "rank=place",
    )
    assert printed(run(*given))["matched"] == "position"


def test_published_prints_a_range_where_a_number_would_say_too_much(run):
    given = ("published", "--users", 6040, "--items", 3706, "--sampled", 99, "-m", "NDCG@10")
    code, out, err = run(*given, "HR@10=0.690")
    (row,) = (line for line in out.splitlines() if line.startswith("NDCG@10"))
    assert code == 0
    assert row.split()[1] == "\N{EN DASH}"
    assert "a range is shown" in err
    assert printed(run(*given, "HR@10=0.690", "--json"))["estimates"][0]["value"] > 0


# -- signals, pipes and full disks end the command in one line, never in a traceback ---------------


PLAN = ["plan", "--items", "500", "--users", "10"]


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGHUP, 129, "the terminal has gone"),
    ],
)
def test_signals_end_the_command_in_one_line(run, monkeypatch, number, code, word):
    # What a shell starts in the background ignores interrupts, these tests perhaps included.
    outside = signal.signal(number, signal.SIG_DFL)
    monkeypatch.setattr("unsample.answers.plan", lambda **_: os.kill(os.getpid(), number))
    try:
        assert run(*PLAN) == (code, "", f"unsample: {word}\n")
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, outside)


def test_signals_that_are_ignored_stay_ignored(run, monkeypatch):
    """As under nohup."""
    seen = []

    def look(**_):
        seen.append(signal.getsignal(signal.SIGHUP))
        raise FileError("seen enough")

    monkeypatch.setattr("unsample.answers.plan", look)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run(*PLAN)[0] == 2
    finally:
        signal.signal(signal.SIGHUP, before)
    assert seen == [signal.SIG_IGN]


def fail_to_print(monkeypatch, problem):
    printed = typer.secho

    def echo(text, *, err=False, **options):
        if not err:
            raise problem
        printed(text, err=err, **options)

    monkeypatch.setattr("unsample.cli.console.typer.secho", echo)


def test_a_full_disk_behind_standard_output_is_said(run, monkeypatch):
    fail_to_print(monkeypatch, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    monkeypatch.setattr("unsample.cli.console.silence_output", lambda: None)
    code, _, errors = run(*PLAN)
    assert code == 1
    assert "cannot write to standard output: No space left on device" in errors


def test_a_reader_that_has_gone_ends_the_command_in_silence(run, monkeypatch):
    fail_to_print(monkeypatch, BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)))
    monkeypatch.setattr(_start, "silence_output", lambda: None)
    assert run(*PLAN) == (141, "", "")


def test_a_stray_failure_of_a_file_is_no_traceback(run, monkeypatch):
    def fail(**_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "somewhere")

    monkeypatch.setattr("unsample.answers.plan", fail)
    assert run(*PLAN) == (2, "", "unsample: cannot use 'somewhere': Permission denied\n")


def test_a_result_is_printed_though_its_page_cannot_be_written(run, monkeypatch, tmp_path):
    def full(path, write):
        raise FileError(f"cannot write {str(path)!r}: No space left on device")

    monkeypatch.setattr("unsample.show._html.write_atomically", full)
    code, out, errors = run(*PLAN, "--html", tmp_path / "page.html")
    assert code == 2
    assert "ranked in full" in out
    assert "No space left" in errors


def test_closed_streams_are_opened_on_nothing(run, monkeypatch):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    _start._open_closed_streams()
    assert sys.stdin.read() == ""
    for stream in (sys.stdout, sys.stderr):
        stream.write("nobody reads this")
        stream.close()
    sys.stdin.close()


def test_characters_that_a_terminal_lacks_are_no_traceback(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    _start._open_closed_streams()
    stream.write("☃")
    stream.flush()
    assert stream.buffer.getvalue() == b"\\u2603"


# -- tables through the command --------------------------------------------------------------------


RANKS = [1, 1, 2, 5, 9, 10]


def test_pooled_models_are_warned_of_in_one_line(tmp_path, run):
    path = tmp_path / "ranks.csv"
    path.write_text("user,model,rank\na,X,1\nb,X,2\na,Y,3\nb,Y,4\n")
    code, _, err = run("estimate", path, *DESIGN)
    assert code == 0
    assert "warning: column 'model' of " in err
    assert "pass by='model'" in err


def test_standard_input_and_saved_counts(ranks, tmp_path, run):
    code, out, _ = run("estimate", "-", *DESIGN, "--json", stdin=ranks.read_bytes())
    assert code == 0
    assert json.loads(out)["users"] == 80
    saved = tmp_path / "counts.npz"
    RankCounts.from_ranks(RANKS, items=100, sampled=9).save(saved)
    code, out, _ = run("estimate", saved, "--json")
    assert (code, json.loads(out)["items"]) == (0, 100)
    code, _, err = run("estimate", saved, *DESIGN)
    assert code == 2
    assert "left out" in err


def test_a_group_by_query_of_a_warehouse_is_read_as_its_rows_are(tmp_path, run):
    """The query that the documentation shows, on scores."""
    duckdb = pytest.importorskip("duckdb")
    frame = scored_rows(10)
    frame.write_parquet(tmp_path / "scores.parquet")
    table = duckdb.sql(
        f"""
        WITH targets AS (
            SELECT "user", MAX(score) AS aim, MAX(item) AS goal
            FROM '{tmp_path}/scores.parquet' WHERE target GROUP BY "user"
        ),
        users AS (
            SELECT s."user", COUNT(*) AS sampled,
                   COUNT(CASE WHEN s.score > t.aim THEN 1 END) AS better,
                   COUNT(CASE WHEN s.score = t.aim THEN 1 END) AS tied
            FROM '{tmp_path}/scores.parquet' AS s JOIN targets AS t ON s."user" = t."user"
            WHERE s.item <> t.goal GROUP BY s."user"
        )
        SELECT sampled, better, tied, COUNT(*) AS "count" FROM users GROUP BY sampled, better, tied
        """
    )
    table.write_csv(str(tmp_path / "counts.csv"))
    table.write_parquet(str(tmp_path / "counts.parquet"))
    answers = {
        # Ties are broken by user and item, which the counts do not know.
        run("estimate", tmp_path / name, "--items", 50, "--json", "--ties", "pessimistic")[:2]
        for name in ("counts.csv", "counts.parquet", "scores.parquet")
    }
    assert len(answers) == 1
    assert json.loads(answers.pop()[1])["users"] == 60


def test_patterns_by_model(tmp_path, run):
    ranks = np.random.default_rng(0).integers(1, 11, 400)
    for part in range(2):
        models = np.where(np.arange(200) % 2, "A", "B")
        frame = pl.DataFrame({"m": models, "place": ranks[part * 200 :][:200]})
        frame.write_parquet(tmp_path / f"run{part}.parquet")
    code, out, err = run(
        "estimate", tmp_path / "*.parquet", "--items", 50, "--sampled", 9, "--by", "m",
        "--column", "rank=place", "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    groups = json.loads(out)
    assert {name: group["users"] for name, group in groups.items()} == {"A": 200, "B": 200}


def test_bad_files_get_one_clear_line(ranks, tmp_path, run):
    (tmp_path / "word.csv").write_text("rank\n1\nx\n")
    (tmp_path / "empty").mkdir()
    for kind in ("parquet", "npz"):
        whole = tmp_path / f"whole.{kind}"
        if kind == "npz":
            np.savez(whole, rank=np.array(RANKS))
        else:
            pl.DataFrame({"rank": RANKS}).write_parquet(whole)
        (tmp_path / f"cut.{kind}").write_bytes(whole.read_bytes()[:-30])
    for name, words in {
        "word.csv": "must hold numbers, got 'x' in line 3",
        "rank.csv": "did you mean ranks.csv",
        "empty": "there is no file in the folder",
        "cut.parquet": "cannot read",
        "cut.npz": "cannot read",
    }.items():
        code, out, err = run("estimate", tmp_path / name, *DESIGN)
        assert (code, out) == (2, "")
        assert words in err
        assert err.startswith("unsample: ")
        assert err.count("\n") == 1
