"""Options of the verbs: as many as the functions have arguments, named alike, and obeyed."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest

from unsample import answers
from unsample.__main__ import application

VERBS = ("estimate", "compare", "published", "plan", "audit")
DESIGN = ("--items", 400, "--sampled", 30, "-m", "Recall@50", "--json")


def test_options_are_named_like_the_arguments():
    """Every option of a verb is an argument of the function that it calls, or of the reader."""
    whole = application(whole=True)
    shared = {"quiet", "verbose", "html", "as_json", "latex", "markdown"}
    reader = {"file", "files", "by", "rows", "ties", "column", "items", "sampled", "replacement"}
    reader.add("exponent")  # of counts that are read as chances
    for name in VERBS:
        arguments = set(inspect.signature(getattr(answers, name)).parameters)
        options = {parameter.name for parameter in whole.commands[name].params}
        assert options - shared - reader - {"plot"} <= arguments, name


#: Arguments that no option stands for, and why.
_NO_OPTION = {
    "estimate": {
        "ranks": "FILE",
        "users": "a column of FILE",
        "pools": "a column of FILE",
    },
    "compare": {
        "models": "NAME=FILE",
        "users": "a column of the files",
        "pools": "a column of the files",
    },
    "published": {},
    "plan": {},
    "audit": {
        "targets": "a column of FILE",
        "columns": "--column, once for each",
    },
}


@pytest.mark.parametrize("name", VERBS)
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


def test_compare_takes_a_shape_a_column_and_no_pairing(files, run):
    given = ("compare", "a=a.csv", "b=b.csv", *DESIGN, "--method", "mle", "--column", "rank=place")
    usual, alone = printed(run(*given)), printed(run(*given, "--unpaired"))
    assert usual["matched"] == "position"
    assert not alone["paired"]
    free = printed(run(*given, "--shape", "none"))
    (one,), (other,) = usual["differences"], free["differences"]
    assert other["low"] < one["low"]
    assert other["high"] > one["high"]


def test_published_takes_a_method(run):
    given = ("published", "--users", 6040, "--items", 3706, "--sampled", 99, "HR@10=0.690")
    (entry,) = printed(run(*given, "-m", "Recall@50", "--method", "mle", "--json"))["estimates"]
    assert entry["method"] == "mle"
