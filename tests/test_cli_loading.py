"""What the command loads before it works: nothing for help, nothing to refuse, extras first."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unsample import answers, estimators, evidence, metrics, tables
from unsample.__main__ import application
from unsample.cli import _words
from unsample.cli._lazy import Verb, Verbs
from unsample.errors import InputError
from unsample.lab import datasets, recommenders
from unsample.show import _plots
from unsample.tables import _sql

ROOT = Path(__file__).parent.parent
#: What takes longer to load than the command itself.
HEAVY = {"numpy", "scipy", "rich", "pydantic", "jinja2", "matplotlib", "duckdb"}
HEAVY |= {"polars", "torch", "importlib.metadata", "unsample.answers", "unsample.lab.datasets"}
RANKS = str(ROOT / "examples" / "ranks.csv")
DESIGN = ("--items", "3706", "--sampled", "99")
QUICK = [
    ("--help",),
    ("--version",),
    ("estimate", "--help"),
    ("plan", "-h"),
    ("reproduce", "--help"),
    ("estimat",),
    ("estimate",),
    ("estimate", RANKS, "--nope"),
    ("estimate", RANKS, "--items", "1", "--sampled", "99"),
    ("estimate", RANKS, *DESIGN, "--rng", "-1"),
    ("estimate", RANKS, *DESIGN, "-m", "NDGC@10"),
    ("estimate", RANKS, *DESIGN, "-m", "NDCG@0"),
    ("estimate", RANKS, *DESIGN, "-m", "MR@10"),
    ("estimate", RANKS, *DESIGN, "--method", "mel"),
    ("compare", f"a={RANKS}", f"b={RANKS}", *DESIGN, "--method", "bv(gamma"),
    ("plan", "--items", "90", "--users", "9", "-m", "Recal@5"),
    ("estimate", RANKS, *DESIGN, "--candidates", "some"),
    ("estimate", RANKS, *DESIGN, "--ties", "rand"),
    ("estimate", RANKS, *DESIGN, "--column", "=x"),
    ("estimate", "no-such-file.csv", *DESIGN),
    ("compare", f"a={RANKS}", "b=no-such-file.csv", *DESIGN),
    ("audit", "no-such-file.csv", "--items", "9"),
    ("published", "HR@10", *DESIGN, "--users", "9"),
    ("plan", "--items", "90", "--users", "9", "--plot", "plan.docx"),
]
#: Every call in a process of its own costs more than the call; a forked one is as fresh.
SCRIPT = """
import json, os, sys
from unsample.cli import start
from unsample.__main__ import application
heavy, calls = json.load(sys.stdin)
for call in calls:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        sys.argv = ["unsample", *call]
        sys.stdout = sys.stderr = open(os.devnull, "w")
        try:
            start(application)
        except SystemExit:
            pass
        loaded = [name for name in heavy if sys.modules.get(name)]
        os.write(writer, json.dumps(loaded).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    print(os.read(reader, 1 << 16).decode())
    os.close(reader)
"""


def _loaded_by(calls, **environment):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps([sorted(HEAVY), calls]),
        env=os.environ | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(calls), done.stderr
    return {call: json.loads(line) for call, line in zip(calls, lines, strict=True)}


def test_help_and_refusals_load_nothing_that_takes_time():
    found = _loaded_by(QUICK)
    assert {call: names for call, names in found.items() if names} == {}


@pytest.mark.parametrize("words", ["unsample es", "unsample estimate --it"])
def test_completion_loads_nothing_that_takes_time(words):
    environment = {
        "_UNSAMPLE_COMPLETE": "complete_zsh",
        "_TYPER_COMPLETE_ARGS": words,
        "COMP_WORDS": words,
    }
    assert _loaded_by([()], **environment) == {(): []}


def test_a_verb_loads_what_it_uses():
    call = ("estimate", RANKS, *DESIGN, "-m", "Recall@50", "--method", "naive")
    (loaded,) = _loaded_by([call]).values()
    # scipy itself looks for versions of what is installed.
    assert set(loaded) - {"importlib.metadata"} == {"numpy", "scipy", "duckdb", "unsample.answers"}


# --- what is kept beside the names ---------------------------------------------------------------


def _listed(group, path=()):
    for name, command in group.commands.items():
        if isinstance(command, Verbs):
            yield from _listed(command, (*path, name))
        else:
            yield (*path, name), command


def test_sentences_in_lists_are_those_of_the_verbs():
    loaded = dict(_listed(application(whole=True)))
    for path, stub in _listed(application()):
        assert isinstance(stub, Verb), path
        first = inspect.cleandoc(loaded[path].help).partition("\n\n")[0]
        assert " ".join(first.split()) == stub.short_help, path


def test_words_of_help_are_those_of_the_library():
    assert _words.DEFAULT_METRICS == answers.DEFAULT_METRICS
    assert _words.DEFAULT_METHOD == answers.DEFAULT_METHOD
    assert {name: each.names for name, each in metrics.REGISTRY.items()} == _words.METRICS
    assert {*_words.WHOLE_METRICS} == {n for n, each in metrics.REGISTRY.items() if each.whole}
    assert ("auto", *estimators.REGISTRY) == _words.METHODS
    assert _words.ROWS == tables.ROWS
    assert tuple(_sql.DIALECTS) == _words.DIALECTS
    assert _words.TIE_RULES == evidence.TIE_RULES
    assert _words.NEGATIVES == evidence.NEGATIVES
    assert _words.CANDIDATES == datasets.CANDIDATES
    assert _words.PRIOR_KINDS == answers.PRIOR_KINDS
    assert set(_words.PLOTS) == set(_plots._FORMATS)


@pytest.mark.parametrize(
    ("arguments", "source"),
    [
        (("--candidates", "some"), {"candidates": "some"}),
        (("--kind", "graphs"), {"kind": "graphs"}),
        (("-m", "NDGC@10"), {"metrics": "NDGC@10"}),
        (("-m", "MR@10"), {"metrics": "MR@10"}),
        (("-m", "Hits@0"), {"metrics": "Hits@0"}),
        (("-m", "@"), {"metrics": "@"}),
        (("--method", "mel"), {"method": "mel"}),
        (("--method", "bv(gamma"), {"method": "bv(gamma"}),
    ],
)
def test_values_are_refused_in_the_words_of_the_library(run, arguments, source):
    with pytest.raises(InputError) as told:
        answers.estimate([1, 2, 3], items=3706, sampled=99, **source)
    assert run("estimate", RANKS, *DESIGN, *arguments)[2] == f"unsample: {told.value}\n"


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("unsample es", "estimate"),
        ("unsample estimate --cand", "--candidates"),
        ("unsample estimate x.csv --candidates un", "unseen"),
        ("unsample estimate x.csv --ties opt", "optimistic"),
    ],
)
def test_completion_knows_verbs_options_and_values(capsys, monkeypatch, words, value):
    monkeypatch.setenv("_UNSAMPLE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        application()(args=[], prog_name="unsample")
    assert capsys.readouterr().out.split() == [value]


# --- what would be missing at the end is said at the start ----------------------------------------


@pytest.fixture
def idle(monkeypatch):
    """Fail where anything is read, trained or computed."""

    def work(*_, **__):
        pytest.fail("worked before it looked")

    for place in ("estimate", "compare", "plan", "audit", "published"):
        monkeypatch.setattr(f"unsample.answers.{place}", work)
    for place in ("counts", "targets", "full_ranks", "pairs"):
        monkeypatch.setattr(f"unsample.tables.read_{place}", work)
    monkeypatch.setattr("unsample.lab.datasets.load", work)
    monkeypatch.setattr("unsample.lab.paper.run", work)


RESULTS = {
    "estimate": ("estimate", RANKS, *DESIGN),
    "compare": ("compare", f"a={RANKS}", f"b={RANKS}", *DESIGN),
    "published": ("published", "HR@10=0.5", *DESIGN, "--users", "9"),
    "plan": ("plan", "--items", "90", "--users", "9"),
    "audit": ("audit", RANKS, "--items", "90"),
}


@pytest.mark.parametrize("verb", RESULTS)
def test_pages_need_their_library_and_their_folder_before_the_work(
    idle, run, monkeypatch, tmp_path, verb
):
    code, _, err = run(*RESULTS[verb], "--html", tmp_path / "none" / "page.html")
    assert code == 2
    assert "make its folder first" in err
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, _, err = run(*RESULTS[verb], "--html", tmp_path / "page.html")
    assert code == 3
    assert "pip install 'unsample[report]'" in err


def test_libraries_are_asked_for_before_the_work(idle, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run(*RESULTS["plan"], "--plot", "plan.svg")
    assert code == 3
    assert "pip install 'unsample[report]'" in err


def test_folders_are_looked_at_before_the_work(idle, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(*RESULTS["plan"], "--plot", "none/plan.svg")
    assert code == 2
    assert "make its folder first" in err


def test_every_recommender_states_what_it_imports(monkeypatch):
    pytest.importorskip("implicit")  # whole, lest a part of it stays behind
    for name, kind in recommenders.REGISTRY.items():
        for module, extra in kind.libraries:
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, module, None)
                with pytest.raises(ImportError, match=rf"unsample\[{extra}\]"):
                    recommenders.create(name)
