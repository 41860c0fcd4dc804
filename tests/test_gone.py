"""What went says what to use instead: names, arguments, values, verbs and options alike."""

import importlib
from functools import partial
from operator import attrgetter

import pytest

import unsample
from unsample import answers
from unsample._gone import GONE
from unsample.errors import GoneError
from unsample.tables import Asked, read_counts

NAMES = [key for key in GONE if key.startswith("unsample.")]
ARGUMENTS = [key for key in GONE if key.endswith("=)")]
VALUES = [key for key in GONE if key.endswith("'")]
WORDS = [key for key in GONE if key.startswith("unsample ")]


def _say(problem, key):
    assert f"{key} went with version 0.3; {GONE[key]}" in str(problem)


@pytest.mark.parametrize("key", NAMES)
def test_names(key):
    module, _, name = key.rpartition(".")
    with pytest.raises(GoneError) as caught:
        getattr(importlib.import_module(module), name)
    _say(caught.value, key)


@pytest.mark.parametrize("key", ARGUMENTS)
def test_arguments(key):
    function, _, rest = key.partition("(")
    with pytest.raises(GoneError) as caught:
        attrgetter(function)(answers)([1], **{rest.removesuffix("=)"): None})
    _say(caught.value, key)


@pytest.mark.parametrize("key", VALUES)
def test_values(key):
    argument, _, value = key.partition("=")
    call = {
        "design": partial(unsample.evaluate, ([[1.0]], [[1.0], [2.0]]), ([0], [0]), items=2),
        "metrics": partial(unsample.estimate, [1], items=9, sampled=3),
        "method": partial(unsample.estimate, [1], items=9, sampled=3),
        "columns": lambda columns: read_counts({"rank": [1], columns: [2]}, Asked(9, 3)),
        "rows": lambda rows: read_counts({"rank": [1]}, Asked(read=unsample.Read(rows=rows))),
    }[argument]
    with pytest.raises(GoneError) as caught:
        call(**{argument: value.strip("'")})
    _say(caught.value, key)


@pytest.mark.parametrize("key", WORDS)
def test_verbs_and_options(run, key):
    code, out, err = run(*key.split()[1:])
    assert (code, out) == (2, "")
    _say(" ".join(err.split()), key)


def test_every_entry_is_tested():
    assert sorted(NAMES + ARGUMENTS + VALUES + WORDS) == sorted(GONE)
