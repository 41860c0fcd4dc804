"""The doctor finds what is wrong, and the command keeps its manners."""

import importlib.metadata
import json
import logging
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from unsample import errors
from unsample.cli import _doctor
from unsample.cli._doctor import ABSENT, BROKEN, OK, examine
from unsample.cli._manner import log

DATA = Path(__file__).parent / "data" / "datasets"


@pytest.fixture
def requires(monkeypatch):
    """State what the package asks for, as its metadata would."""

    def state(*lines):
        monkeypatch.setattr(importlib.metadata, "requires", lambda _: list(lines))

    return state


def _found(**options):
    return {(one.area, one.name): one for one in examine(quick=True, **options)}


def test_a_healthy_installation(run):
    code, out, _ = run("doctor", "--quick")
    assert code == 0
    assert "a known answer comes out exactly" in out
    assert out.rstrip().endswith("Nothing is broken.")


def test_every_area_is_looked_at(requires):
    requires("numpy>=1.26", "polars>=1.0; extra == 'frames'")
    areas = {area for area, _ in _found()}
    assert areas == {"system", "core", "extra frames", "engine", "data", "gpu"}


def test_a_missing_library_is_no_failure_and_names_the_line(requires, run):
    requires("numpy>=1.26", 'no-such-library>=2; extra == "frames"')
    found = _found()["extra frames", "no-such-library"]
    assert found.state == ABSENT
    assert found.detail == "pip install 'unsample[frames]'"
    assert run("doctor", "--quick")[0] == 0


def test_a_library_that_is_too_old_is_broken(requires, run):
    requires("numpy>=999.1", "pytest>=1; extra == 'frames'")
    found = _found()
    assert found["core", "numpy"].state == BROKEN
    assert "at least 999.1" in found["core", "numpy"].detail
    assert found["extra frames", "pytest"].state == OK
    code, out, _ = run("doctor", "--quick", "--json")
    assert code == 1
    assert json.loads(out)["healthy"] is False


def test_a_missing_core_library_is_broken(requires):
    requires("no-such-library>=2")
    assert _found()["core", "no-such-library"].state == BROKEN


def test_a_library_that_does_not_import_is_broken(requires, monkeypatch):
    requires("pytest; extra == 'frames'")

    def fail(name):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(_doctor.importlib, "import_module", fail)
    requirement = _doctor._requirements()[0]
    found = _doctor._library(requirement, quick=False)
    assert found.state == BROKEN
    assert "OSError: libgomp.so.1" in found.detail
    assert _doctor._library(requirement, quick=True).state == OK


def test_extras_for_developers_are_left_out(requires):
    requires("numpy", "unsample[frames]; extra == 'dev'", "pytest; extra == 'dev'")
    assert [one.name for one in _doctor._requirements()] == ["numpy"]


def test_requirements_of_the_package_are_understood():
    import tomllib

    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())[
        "project"
    ]
    lines = list(project["dependencies"])
    for extra, wanted in project["optional-dependencies"].items():
        lines += [f"{line}; extra == '{extra}'" for line in wanted]
    for line in lines:
        assert _doctor._REQUIREMENT.fullmatch(line), line


def test_an_estimate_that_is_wrong_is_broken(monkeypatch):
    from unsample.answers import estimation

    real = estimation.estimate
    monkeypatch.setattr(estimation, "estimate", lambda *_, **o: real([1], **o))
    assert _doctor._self_check().state == BROKEN

    def fail(*_, **__):
        raise RuntimeError("no BLAS")

    monkeypatch.setattr(estimation, "estimate", fail)
    assert "RuntimeError: no BLAS" in _doctor._self_check().detail


def test_data_at_hand_and_folders_that_are_not(monkeypatch, tmp_path):
    monkeypatch.setenv("UNSAMPLE_DATA", str(DATA))
    assert {_found()["data", name].state for name in ("ml-1m", "yelp")} <= {OK, ABSENT}
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path / "nowhere"))
    found = _found()["data", "ml-1m"]
    assert found.state == BROKEN
    assert "UNSAMPLE_DATA must name a folder" in found.detail


def test_spark_without_java(monkeypatch):
    pytest.importorskip("pyspark")
    monkeypatch.setattr(_doctor.shutil, "which", lambda _: None)
    assert _found()["engine", "spark"].state == ABSENT


@pytest.mark.slow
def test_everything_installed_imports():
    assert [one for one in examine() if one.state == BROKEN] == []


# --- manners ---------------------------------------------------------------------------------


@pytest.fixture
def ranks(tmp_path):
    file = tmp_path / "ranks.csv"
    file.write_text("rank\n" + "1\n3\n2\n9\n" * 20)
    return file


CALL = (
    "--items",
    "400",
    "--sampled",
    "30",
    "-m",
    "Recall@2",
    "--method",
    "naive",
    "--resamples",
    "0",
)


def test_quiet_leaves_out_warnings_and_nothing_else(run, ranks):
    code, out, err = run("estimate", ranks, *CALL)
    assert "warning: " in err
    assert run("estimate", ranks, *CALL, "--quiet") == (code, out, "")
    assert run("estimate", ranks, *CALL, "-q") == (code, out, "")


def test_quiet_does_not_hide_errors(run, ranks):
    code, out, err = run("estimate", ranks, "--items", "2", "--sampled", "0", "--quiet")
    assert (code, out) == (2, "")
    assert err.startswith("unsample: ")


def test_verbose_says_what_was_done(run, ranks):
    code, out, err = run("estimate", ranks, *CALL, "--verbose")
    assert (code, out) == run("estimate", ranks, *CALL)[:2]
    assert "unsample 0" in err
    assert " s, " in err


def test_verbose_shows_where_an_error_comes_from(run, ranks):
    arguments = ("estimate", ranks, "--items", "2", "--sampled", "0")
    assert "Traceback" not in run(*arguments)[2]
    code, _, err = run(*arguments, "-v")
    assert code == 2
    assert "Traceback" in err


def test_quiet_and_verbose_exclude_each_other(run, ranks):
    code, _, err = run("estimate", ranks, *CALL, "-q", "-v")
    assert code == 2
    assert "quiet and verbose" in err


def test_every_verb_has_both(run):
    for verb in (
        "estimate",
        "compare",
        "evaluate",
        "plan",
        "published",
        "reproduce",
        "doctor",
    ):
        _, out, _ = run(verb, "--help")
        assert "--quiet" in out, verb
        assert "--verbose" in out, verb
    assert "--quiet" in run("datasets", "list", "--help")[1]


def test_the_command_leaves_logging_as_it_was(run, ranks):
    before = (log.level, log.propagate, list(log.handlers))
    run("estimate", ranks, *CALL, "-v")
    assert (log.level, log.propagate, list(log.handlers)) == before
    assert logging.getLogger().handlers is not None


def test_a_warning_is_said_once(run, ranks):
    _, _, err = run("estimate", ranks, *CALL)
    lines = [line for line in err.splitlines() if line.startswith("warning")]
    assert len(lines) == len(set(lines))


# --- exit codes ------------------------------------------------------------------------------


def _kinds(kind=errors.UnsampleError):
    yield kind
    for inner in kind.__subclasses__():
        yield from _kinds(inner)


def test_exit_codes_are_those_of_the_page():
    page = (Path(__file__).parent.parent / "docs" / "command-line.md").read_text(encoding="utf-8")
    table = page[page.index("## Exit codes") : page.index("## Completion")]
    listed = {int(row.split("|")[1]) for row in table.splitlines() if row[2:3].isdigit()}
    assert {kind.exit_code for kind in _kinds()} | {0, 129, 130, 141, 143} == listed
    assert all(issubclass(kind, errors.InputError) == (kind.exit_code == 2) for kind in _kinds())


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (errors.SolverError("no"), 1),
        (errors.DownloadError("no"), 1),
        (errors.InputError("no"), 2),
        (errors.MissingExtraError("no"), 3),
    ],
)
def test_every_kind_of_failure_has_its_exit_code(run, monkeypatch, problem, code):
    def fail(*_, **__):
        raise problem

    monkeypatch.setattr("unsample.cli._plan.plan", fail)
    got, out, err = run("plan", "--items", "500", "--users", "10")
    assert (got, out) == (code, "")
    assert err.startswith("unsample: ")


def test_an_interruption_has_its_exit_code(run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("unsample.cli._plan.plan", interrupt)
    assert run("plan", "--items", "500", "--users", "10")[0] == 130


def test_bad_usage_is_two(run):
    assert run("plan", "--items", "many", "--users", "10")[0] == 2
    assert run("nonsense")[0] == 2


# --- colours and completion ------------------------------------------------------------------


def _on_a_terminal(arguments, **environment):
    """Return what the command writes to a terminal."""
    mine, theirs = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "unsample", *arguments]
    subprocess.run(
        command, stdout=theirs, stderr=theirs, env=inherited | environment, check=False, timeout=60
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(mine, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(mine)
    return seen.decode()


def test_colours_on_a_terminal_unless_they_are_not_wanted():
    arguments = ("estimate", "no-such-file.csv", "--items", "10", "--sampled", "3")
    assert "\x1b[31m" in _on_a_terminal(arguments, TERM="xterm")
    plain = _on_a_terminal(arguments, TERM="xterm", NO_COLOR="1")
    assert "\x1b[" not in plain
    assert "unsample: " in plain


def test_no_colours_in_a_pipe():
    command = [sys.executable, "-m", "unsample", "datasets", "info", "yelp"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "\x1b[" not in done.stdout + done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_verbs_and_options(shell):
    def complete(words):
        environment = os.environ | {
            "_UNSAMPLE_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        program = "import sys; sys.argv[0] = 'unsample'; from unsample.cli import main; main()"
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False, timeout=60
        )
        return done.stdout

    assert "doctor" in complete("unsample do")
    assert "--sampled" in complete("unsample estimate --sam")
