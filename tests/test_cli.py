"""The command: verbs and their options, how it speaks and fails."""

import errno
import inspect
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import unsample
from unsample import errors
from unsample.__main__ import VERBS, application
from unsample.cli.console import as_options
from unsample.counts import RankCounts

ROOT = Path(__file__).parent.parent
RANKS = str(ROOT / "examples" / "ranks.csv")
DESIGN = ("--items", 400, "--sampled", 30)
FULL = ("--items", 3706, "--sampled", 99)
CALL = (*DESIGN, "-m", "Recall@2", "--method", "naive")
PLAN = ("plan", "--items", "500", "--users", "10")
#: A short call of each verb of the library.
SHORT = {
    "estimate": ("estimate", RANKS, *FULL),
    "compare": ("compare", f"a={RANKS}", f"b={RANKS}", *FULL),
    "published": ("published", "HR@10=0.5", *DESIGN, "--users", 10),
    "plan": PLAN,
    "audit": ("audit", ROOT / "examples" / "negatives.csv", "--items", 3706),
}


def verb(name):
    root = application()
    return root.get_command(click.Context(root), name)


@pytest.fixture
def ranks(tmp_path):
    file = tmp_path / "ranks.csv"
    file.write_text("rank\n" + "1\n3\n2\n9\n" * 20)
    return file


def printed(call):
    code, out, err = call
    assert code == 0, err
    return json.loads(out)


# --- options ---------------------------------------------------------------------------------


#: Arguments that no option stands for, and why.
_NO_OPTION = {
    "estimate": {"ranks": "FILE", "users": "a column", "read": "--column, --rows, --ties, --seed"},
    "compare": {"models": "FILE", "users": "a column", "read": "--column, --rows, --ties, --seed"},
    "published": {},
    "plan": {"pilot": "a distribution, of Python"},
    "audit": {"columns": "--column, once for each"},
}
_READER = {"files", "rows", "ties", "column", "rng", "sampled", "print_sql", "replacement"}
#: Of `Comparison.gate` and `Across.gate`.
_GATE = {"baseline", "fail_if_worse", "margin", "fail_if_unknown", "on_each"}
_SHARED = {"json", "latex", "markdown", "csv", "html", "plot", "chart", "verbose", "quiet"}
#: Which of the shipped priors; in Python an object.
_PRIOR = {"without"}


@pytest.mark.parametrize("name", SHORT)
def test_options_are_the_arguments_of_the_function(name):
    options = {parameter.name for parameter in verb(name).params}
    arguments = set(inspect.signature(getattr(unsample, name)).parameters)
    assert options - _SHARED - _READER - _GATE - _PRIOR <= arguments
    assert arguments - options == set(_NO_OPTION[name])


@pytest.mark.parametrize("name", VERBS)
def test_help_says_what_is_meant(run, name):
    code, out, err = run(name, "--help")
    assert (code, err) == (0, "")
    assert f"\n\n  Examples:\n    unsample {name} " in out
    assert "None" not in out
    assert "TEXT" not in out
    options = {text for parameter in verb(name).params for text in parameter.opts}
    assert {"--json", "--html", "--latex", "--markdown", "-v", "-q"} <= options
    sentence = " ".join(inspect.cleandoc(verb(name).help).partition("\n\n")[0].split())
    assert sentence in " ".join(run("--help")[1].split())


def test_version_and_no_arguments(run):
    assert run("--version")[1].startswith("unsample 0")
    code, out, err = run()
    assert (code, out) == (2, "")
    assert all(name in err for name in VERBS)


@pytest.mark.parametrize(
    ("words", "start", "values"),
    [
        ([], "es", ["estimate"]),
        (["estimate"], "--prot", ["--protocol"]),
        (["estimate", "x.csv", "--protocol"], "un", ["unseen"]),
        (["estimate", "x.csv", "--method"], "m", ["mn", "mle", "mes"]),
        (["estimate", "x.csv", "-m"], "mr", ["MRR", "MR"]),
        (["nonsense"], "", list(VERBS)),
    ],
)
def test_completion_knows_verbs_options_and_values(words, start, values):
    shell = ShellComplete(application(), {}, "unsample", "_UNSAMPLE_COMPLETE")
    assert [item.value for item in shell.get_completions(words, start)] == values


def test_help_loads_nothing_that_takes_time():
    code = (
        "import sys\nfrom unsample.__main__ import main\n"
        "try:\n main()\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'duckdb', 'unsample.tables'} & set(sys.modules)))"
    )
    for arguments in (["--help"], ["compare", "--help"], ["estimat"]):
        call = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("name", VERBS)
def test_help_fits_a_terminal_of_80_columns(name):
    context = click.Context(verb(name), info_name=f"unsample {name}", terminal_width=80)
    out = verb(name).get_help(context)
    assert max(map(len, out.splitlines())) <= 80
    shown = " ".join(out.partition("Examples:")[2].replace("\\\n", " ").split())
    assert shown.count(f"unsample {name}") >= 2
    assert "Recall@50; AP@10" in " ".join(out.split()) or name in ("plan", "audit", "reproduce")


def test_the_default_metric_of_one_target_is_recall_at_50(run, tmp_path):
    several = tmp_path / "several.csv"
    lines = [f"{user},{rank}" for user in range(60) for rank in (1 + user % 9, 4)]
    several.write_text("\n".join(["user,rank", *lines]) + "\n")
    one = printed(run("estimate", RANKS, *FULL, "--json"))
    assert [row["metric"] for row in one["estimates"]] == ["Recall@10", "NDCG@10", "Recall@50"]
    more = printed(run("estimate", several, *DESIGN, "--json"))
    assert [row["metric"] for row in more["estimates"]] == ["Recall@10", "NDCG@10"]
    paper = printed(run("published", "HR@10=0.5", *DESIGN, "--users", 99, "--json"))
    assert [row["metric"] for row in paper["estimates"]] == ["Recall@10", "NDCG@10", "Recall@50"]
    exact = unsample.exact([1, 2, 9], items=100)
    assert list(exact) == ["Recall@10", "NDCG@10", "Recall@50"]
    assert list(unsample.exact([1, 2], items=99, users=[0, 0])) == ["Recall@10", "NDCG@10", "AP@10"]


# --- results ---------------------------------------------------------------------------------


def test_several_models_of_papers_are_compared(run):
    given = ("--users", 6040, "--items", 3706, "-m", "NDCG@50", "--json")
    one = printed(run("published", "A:99:HR@10=0.690", "B:100:HR@10=0.5", *given))
    other = ("A:HR@10=0.690", "B:100:HR@10=0.5", "--sampled", 99)
    same = printed(run("published", *other, *given))
    assert same.pop("inputs") != one.pop("inputs")
    assert same == one
    assert {row["model"] for row in one["standings"]} == {"A", "B"}
    assert "differ" in run("published", *other, *given[:4])[1]


def test_json_says_what_went_in(ranks, run):
    data = printed(run("estimate", ranks, *CALL, "--seed", 7, "--json"))
    assert data["inputs"] == {
        "command": "unsample estimate ranks.csv --items 400 --sampled 30 -m Recall@2 "
        "--method naive --seed 7 --json",
        "files": ["ranks.csv"],
        "rows": 80,
        "seed": 7,
    }
    assert (data["schema"], data["unsample"], data["level"]) == (1, unsample.__version__, 0.95)
    for name, call in SHORT.items():
        data = printed(run(*call, "--json"))
        assert data["schema"] == 1
        files = {"estimate": ["ranks.csv"], "compare": ["a=ranks.csv", "b=ranks.csv"]}
        assert data["inputs"]["files"] == files.get(name, data["inputs"]["files"])
    pair = printed(run(*SHORT["compare"], "--json"))
    assert pair["inputs"]["rows"] == 2 * 6040


def test_pages_say_what_went_in(ranks, run, tmp_path):
    assert run("estimate", ranks, *CALL, "--html", tmp_path / "a.html")[0] == 0
    shown = (tmp_path / "a.html").read_text().partition("What went in</h2>")[2]
    for row in (
        '<th scope="row">Files</th><td class="words">ranks.csv</td>',
        '<th scope="row">Seed</th><td class="words">0</td>',
        '<th scope="row">Targets</th><td class="words">80</td>',
        '<th scope="row">Protocol</th><td class="words">not stated</td>',
        '<th scope="row">Command</th><td class="words">unsample estimate ranks.csv --items 400',
    ):
        assert row in shown


def test_a_chart_is_chosen_and_needs_a_plot(ranks, run, tmp_path):
    call = ("estimate", ranks, *CALL[:-2])
    for chart in ("metrics", "curves", "ranks"):
        path = tmp_path / f"{chart}.svg"
        assert run(*call, "--plot", path, "--chart", chart)[0] == 0
    titles = {re.search("<title>(.*?)<", path.read_text())[1] for path in tmp_path.glob("*.svg")}
    assert titles == {
        "Full-catalogue metrics",
        "Metric@K at every K",
        "P(R), where the targets are",
    }
    code, out, err = run(*call, "--chart", "ranks")
    assert (code, out) == (2, "")
    assert "--chart must be given with --plot" in err
    code, _, err = run(*call, "--plot", tmp_path / "a.svg", "--chart", "cloud")
    assert code == 2
    assert "chart must be one of metrics, curves, ranks, got 'cloud'" in err


def test_tables_for_papers_pages_and_plots(ranks, run, tmp_path):
    assert r"\toprule" in run("estimate", ranks, *CALL, "--latex")[1]
    assert "| metric |" in run("estimate", ranks, *CALL, "--markdown")[1]
    page, plot = tmp_path / "page.html", tmp_path / "plot.svg"
    code, _, err = run(*SHORT["compare"], "--html", page, "--plot", plot, "-q")
    assert (code, err) == (0, "")
    assert page.read_bytes().startswith(b"<!DOCTYPE html>")
    assert b"<svg" in plot.read_bytes()


# --- bad calls -------------------------------------------------------------------------------

_PAPER = ("--items", 9, "--sampled", 3, "--users", 2)
BAD_CALLS = {
    ("estimate", RANKS, "--sampled", "9"): "--items must be given: pass --items, or",
    ("estimate", RANKS, "--items", "100"): "--sampled must be given",
    ("estimate", RANKS, "--items", "many"): "'--items': 'many' is not a valid integer; see",
    ("estimate", RANKS, *FULL, "--column", "=x"): "--column must be given as ROLE=NAME",
    ("estimate", RANKS, *FULL, "--ties", "rand"): "--ties must be one of",
    ("estimate", RANKS, *FULL, "--nope"): "No such option '--nope'; see unsample estimate --help",
    ("estimate", RANKS, *FULL, "--plot", "x.docx"): "--plot must end in .svg, .pdf or .png, got",
    ("estimate", RANKS, *FULL, "--html", "x.csv"): "--html must end in .html or .htm, got 'x.csv'",
    ("estimate", "a=a.csv", "a=b.csv"): "got 'a' twice",
    ("compare", "a=a.csv", "b.csv"): "each model must be given as NAME=FILE",
    ("published", "HR@10", *_PAPER): "such as HR@10=0.69, got 'HR@10'",
    ("published", "A:HR@10=0.7", "HR@10=0.8", *_PAPER): "must all have a name",
    ("published", "A:HR@1=0.5,HR@2=0.0", "B:HR@1=1", *_PAPER): "A: HR@1 = 0.5 and HR@2 = 0.0",
    ("published", "A:3:HR@1=0.7", "A:4:HR@2=0.8", *_PAPER): "one sample size, got 3 and 4",
    ("plan", "--items", 500): "Missing option '--users'; see unsample plan --help",
    ("estimat",): "there is no verb 'estimat' (did you mean estimate?); see unsample --help",
}  # fmt: skip


@pytest.mark.parametrize("arguments", BAD_CALLS, ids=range(len(BAD_CALLS)))
def test_bad_calls_get_one_message_and_exit_with_two(run, monkeypatch, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert BAD_CALLS[arguments] in err
    assert err.startswith("unsample: ")
    assert err.count("\n") == 1


# --- no output is an input -------------------------------------------------------------------


def _call_of(name, place):
    """Return a call that reads a file in some way, and the words for standard input."""
    word, *given = {
        "file": (place,),
        "pattern": (place.parent / f"{place.stem[0]}*{place.suffix}",),
        "folder": (place.parent,),
        "named": (f"model={place}",),
        "prior": (RANKS, "--prior", place),
        "standard input": ("-",),
    }[name]
    return ("estimate", word, *FULL, *given)


@pytest.mark.parametrize("way", ["file", "pattern", "folder", "named", "prior", "standard input"])
@pytest.mark.parametrize("link", ["same", "dots", "hard", "symbolic", "input is a link"])
def test_an_input_is_never_written_over(tmp_path, way, link):
    (tmp_path / "in").mkdir()
    data = b"rank\n" + b"1\n3\n2\n9\n" * 20
    place = tmp_path / "in" / "ranks.html"
    other = tmp_path / "other.html"
    if link == "input is a link":
        other.write_bytes(data)
        place.symlink_to(other)
    else:
        place.write_bytes(data)
    if link == "hard":
        other.hardlink_to(place)
    elif link == "symbolic":
        other.symlink_to(place)
    out = {"same": place, "dots": tmp_path / "in" / ".." / "in" / "ranks.html"}.get(link, other)
    command = [sys.executable, "-m", "unsample", *map(str, _call_of(way, place)), "--html", out]
    with place.open("rb") as stdin:
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--html must not be a file that is also read or written, got" in done.stderr
    assert done.stderr.count("\n") == 1
    assert place.read_bytes() == data
    assert other.is_symlink() == (link == "symbolic")


def test_other_inputs_and_outputs_are_not_written_over_either(run, tmp_path):
    negatives, seen = tmp_path / "negatives.html", tmp_path / "seen.html"
    negatives.write_text("user,item\n0,1\n")
    seen.write_text("user,item\n0,2\n")
    for out in (negatives, seen):
        call = ("audit", negatives, "--items", 9, "--exclude", seen, "--html", out)
        assert "--html must not be a file that is also read" in run(*call)[2]
    os.mkfifo(tmp_path / "page.html")
    (tmp_path / "plot.svg").symlink_to(tmp_path / "page.html")
    outputs = ("--html", tmp_path / "page.html", "--plot", tmp_path / "plot.svg")
    said = "must not be a file that is also read or written"
    assert said in run(*SHORT["estimate"], *outputs)[2]


def test_no_output_is_put_into_a_folder_that_is_read(run, ranks):
    """It would be read as a table by the next call."""
    folder = ranks.parent
    (folder / "below").mkdir()
    for page in (folder / "page.html", folder / "below" / ".." / "page.html"):
        code, out, err = run("estimate", folder, *CALL, "--html", page)
        assert (code, out) == (2, "")
        assert "--html must not be where it would be read, got" in err
    for pattern in (folder / "*", folder / ".." / "**" / "*.ht*", folder / "below" / "p[a-z]ge.*"):
        page = folder / "below" / "page.html" if "below" in str(pattern) else folder / "page.html"
        code, out, err = run("estimate", f"{pattern}", *CALL, "--html", page)
        assert (code, out) == (2, "")
        assert f"--html must not be where it would be read, got {str(page)!r} in" in err
    # A folder has the files that its links have.
    link = folder / "below" / "link"
    link.symlink_to(folder)
    for pattern, page in (("link/*", folder / "page.html"), ("../*", link / "page.html")):
        code, out, err = run("estimate", f"{folder / 'below'}/{pattern}", *CALL, "--html", page)
        assert (code, out) == (2, "")
        assert f"--html must not be where it would be read, got {str(page)!r} in" in err
    link.unlink()
    assert not (folder / "page.html").exists()
    # A pattern without ** names no file below its folders.
    assert run("estimate", folder / "*.csv", *CALL, "--html", folder / "page.html")[0] == 0
    (folder / "page.html").unlink()
    assert run("estimate", folder / "*s*", *CALL, "--html", folder / "below" / "s.html")[0] == 0
    (folder / "below" / "s.html").unlink()
    assert run("estimate", folder, *CALL, "--html", folder / "_page.html")[0] == 0


def test_a_page_beside_its_input_is_replaced_by_the_next(run, ranks):
    page = ranks.with_suffix(".html")
    for _ in range(2):
        assert run("estimate", ranks, *CALL, "--html", page)[0] == 0
        assert page.read_bytes().startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("library", "option"), [("jinja2", "--html=page.html"), ("matplotlib", "--plot=plot.svg")]
)
def test_libraries_are_asked_for_before_the_work(run, monkeypatch, tmp_path, library, option):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "unsample.questions.published.ask.published", lambda *_, **__: pytest.fail("worked before")
    )
    monkeypatch.setitem(sys.modules, library, None)
    code, _, err = run(*SHORT["published"], option)
    assert code == 3
    assert "pip install 'unsample[report]'" in err


# --- warnings, quiet and verbose -------------------------------------------------------------


def test_warnings_go_to_stderr_once_and_quiet_leaves_them_out(run, ranks):
    code, out, err = run("estimate", ranks, *CALL)
    assert "warning" not in out
    lines = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert lines
    assert len(lines) == len(set(lines))
    assert run("estimate", ranks, *CALL, "--quiet") == (code, out, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pass by='model'", "pass --by model"),
        ("items must be given: pass items, or", "--items must be given: pass --items, or"),
        ("use read=unsample.Read(rng=0)", "use read=unsample.Read(rng=0)"),
        ("with fail_if_worse=NDCG@10", "with --fail-if-worse NDCG@10"),
    ],
)
def test_arguments_become_options(text, said):
    with click.Context(verb("compare")):
        assert as_options(text) == said
    assert as_options(text) == text


def test_verbose_says_what_was_done_and_where_an_error_comes_from(run, ranks):
    assert "unsample 0" in run("estimate", ranks, *CALL, "--verbose")[2]
    wrong = ("estimate", ranks, "--items", "2", "--sampled", "0")
    assert "Traceback" not in run(*wrong)[2]
    assert "Traceback" in run(*wrong, "-v")[2]


# --- exit codes, signals, pipes and full disks: one line, never a traceback ----------------------


def _kinds(kind=errors.UnsampleError):
    yield kind
    for inner in kind.__subclasses__():
        yield from _kinds(inner)


def test_exit_codes_are_those_of_the_page():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    table = page[page.index("### Exit codes") : page.index("## Python")]
    listed = {int(row.split("|")[1]) for row in table.splitlines() if row[2:3].isdigit()}
    assert {kind.exit_code for kind in _kinds()} | {0, 129, 130, 141, 143} == listed
    assert all(issubclass(kind, errors.InputError) == (kind.exit_code == 2) for kind in _kinds())


@pytest.mark.parametrize(
    ("problem", "code", "words"),
    [
        (errors.SolverError("no"), 1, "no"),
        (errors.MissingExtraError("no"), 3, "no"),
        (PermissionError(errno.EACCES, "Denied", "here"), 2, "cannot use 'here': Denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_every_kind_of_failure_has_its_exit_code(run, monkeypatch, problem, code, words):
    def fail(*_, **__):
        raise problem

    monkeypatch.setattr("unsample.questions.plan.ask.plan", fail)
    got, out, err = run(*PLAN)
    assert (got, out) == (code, "")
    assert err.strip() == f"unsample: {words}"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_end_the_command_in_order_unless_they_are_ignored(run, monkeypatch, number, code):
    outside = signal.signal(number, signal.SIG_DFL)
    monkeypatch.setattr(
        "unsample.questions.plan.ask.plan", lambda **_: os.kill(os.getpid(), number)
    )
    try:
        assert run(*PLAN) == (code, "", "")
        signal.signal(number, signal.SIG_IGN)  # as under nohup
        assert run(*PLAN)[0] == 2  # no result, but no end before it
    finally:
        signal.signal(number, outside)


def test_a_closed_pipe_ends_the_command_in_silence(ranks):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "unsample", "estimate", str(ranks), *map(str, CALL)]
    broken = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (broken.returncode, broken.stderr) == (141, "")


def test_a_full_disk_behind_standard_output_is_said(run):
    command = [sys.executable, "-m", "unsample", *PLAN]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "cannot write to standard output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_result_is_printed_though_its_page_cannot_be_written(run, monkeypatch, tmp_path):
    def full(path, write):
        raise errors.FileError(f"cannot write {str(path)!r}: No space left on device")

    monkeypatch.setattr("unsample.report._html.write_atomically", full)
    code, out, err = run(*PLAN, "--html", tmp_path / "page.html")
    assert code == 2
    assert "ranked in full" in out
    assert "No space left" in err


def test_standard_input_and_saved_counts(ranks, tmp_path, run):
    stdin = ranks.read_bytes()
    assert printed(run("estimate", "-", *DESIGN, "--json", stdin=stdin))["users"] == 80
    saved = tmp_path / "counts.npz"
    RankCounts.from_ranks([1, 1, 2, 5, 9, 10], items=100, sampled=9).save(saved)
    assert printed(run("estimate", saved, "--json"))["items"] == 100
