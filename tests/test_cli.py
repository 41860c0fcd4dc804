"""The command: verbs and their options, how it speaks and fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unsample import errors
from unsample.__main__ import application, main
from unsample.cli.console import log

ROOT = Path(__file__).parent.parent


# --- verbs -----------------------------------------------------------------------------------


@pytest.fixture
def ranks(tmp_path):
    file = tmp_path / "ranks.csv"
    file.write_text("rank\n" + "1\n3\n2\n9\n" * 20)
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


def test_json_holds_what_was_asked_for_by_its_names(ranks, run):
    code, out, err = run(
        "estimate", ranks, *DESIGN, "-m", "HR@5", "--metrics", "NDCG@20", "--method", "mle",
        "--method", "bv(gamma=0.01)", "--json",
    )  # fmt: skip
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert list(data)[:5] == ["items", "sampled", "users", "estimates", "warnings"]
    assert [(entry["metric"], entry["method"]) for entry in data["estimates"]] == [
        ("HR@5", "mle"),
        ("NDCG@20", "mle"),
        ("HR@5", "bv(gamma=0.01)"),
        ("NDCG@20", "bv(gamma=0.01)"),
    ]
    first = data["estimates"][0]
    assert first["bound_low"] <= first["low"] <= first["high"] <= first["bound_high"]
    assert first["resolved"] is False


def test_the_table_goes_to_stdout_and_warnings_to_stderr(ranks, run):
    code, out, err = run("estimate", ranks, *DESIGN)
    assert code == 0
    assert out.startswith("80 targets, 30 of 400 items sampled with replacement")
    assert "warning" not in out
    assert err.count("warning:") == 1


def test_groups_stand_in_one_table(tmp_path, run):
    path = tmp_path / "ranks.csv"
    path.write_text("rank,count,sampled,items,model\n1,10,9,100,A\n20,3,19,80,A\n2,5,9,100,B\n")
    code, out, _ = run("estimate", path, "--by", "model", "--json")
    assert code == 0
    data = json.loads(out)
    assert data["by"] == "model"
    assert [(group["model"], group["users"], group["items"]) for group in data["groups"]] == [
        ("A", 13, [80, 100]),
        ("B", 5, 100),
    ]
    code, out, _ = run("estimate", path, "--by", "model")
    assert "A: 13 targets" in out


def test_without_replacement(tmp_path, run):
    path = tmp_path / "ranks.csv"
    path.write_text("rank\n1\n1\n2\n5\n9\n10\n")
    arguments = ("--items", 10, "--sampled", 9, "--without-replacement", "--json", "-m", "Recall@5")
    code, out, _ = run("estimate", path, *arguments)
    assert code == 0
    # Every other item was sampled: these are full-catalogue ranks, and the answer is exact.
    assert json.loads(out)["estimates"][0]["value"] == pytest.approx(4 / 6)


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
    options = (*DESIGN, "-m", "Recall@50", "--method", "mle", "--json")
    several = run("compare", f"A={tmp_path / 'A.csv'}", f"B={tmp_path / 'B.csv'}", *options)
    single = run("compare", tmp_path / "both.csv", "--by", "model", *options)
    assert several[0] == single[0] == 0
    assert json.loads(several[1]) == json.loads(single[1])
    assert json.loads(single[1])["paired"] is True


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
    "shape": ([*DESIGN, "--shape", "round"], "shape must be"),
    "by": ([*DESIGN, "--by", "rnk"], "did you mean rank"),
    "column": ([*DESIGN, "--column", "=x"], "column must be given as ROLE=NAME"),
    "rows": ([*DESIGN, "--rows", "rank"], "did you mean ranks"),
    "ties": ([*DESIGN, "--ties", "rand"], "did you mean random"),
    "rng": ([*DESIGN, "--rng", "-1"], "rng must be"),
    "popularity": ([*DESIGN, "--sampler", "popularity"], "sampler must be"),
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
        (("compare", "a.csv", "b.csv"), "each model must be given as NAME=FILE"),
        (("compare", "a=a.csv", "a=b.csv"), "got 'a' twice"),
        (("compare", "a.csv", "b.csv", "--by", "model"), "by needs one file"),
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
    code, out, err = run("estimate", ranks, *CALL, "--verbose")
    assert (log.level, log.propagate, list(log.handlers)) == before
    assert (code, out) == run("estimate", ranks, *CALL)[:2]
    assert "unsample 0" in err
    assert " s, " in err
    wrong = ("estimate", ranks, "--items", "2", "--sampled", "0")
    assert "Traceback" not in run(*wrong)[2]
    assert "Traceback" in run(*wrong, "-v")[2]


def test_quiet_and_verbose_exclude_each_other(run, ranks):
    code, _, err = run("estimate", ranks, *CALL, "-q", "-v")
    assert code == 2
    assert "quiet and verbose" in err


# --- exit codes ------------------------------------------------------------------------------


def _kinds(kind=errors.UnsampleError):
    yield kind
    for inner in kind.__subclasses__():
        yield from _kinds(inner)


def test_exit_codes_are_those_of_the_page():
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    table = page[page.index("## Exit codes") : page.index("## Completion")]
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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_verbs_and_options(capsys, monkeypatch, shell):
    def complete(words):
        environment = {
            "_UNSAMPLE_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit):
            application()(args=[], prog_name="unsample")
        return capsys.readouterr().out

    assert "estimate" in complete("unsample es")
    assert "--sampled" in complete("unsample estimate --sam")
