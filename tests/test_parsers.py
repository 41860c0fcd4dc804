"""Whatever is given to a reader or a parser, it answers or refuses with a message of ours."""

from __future__ import annotations

import gzip
import io
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.readers import read_counts, read_targets
from unsample import estimators, metrics
from unsample._checks import check_integer, check_real
from unsample.adapters import trec
from unsample.cli.options import named
from unsample.counts import RankCounts
from unsample.errors import InputError, MethodError, UnsampleError, UnsampleWarning
from unsample.questions.published.paper_numbers import read_numbers

ITEMS, SAMPLED = 100, 9
QRELS = {"q1": {"d1": 1}, "q2": {"d5": 2}}
RUN = b"q1 Q0 d1 1 0.9 me\nq1 Q0 d2 2 0.4 me\nq2 Q0 d5 1 0.3 me\n"


def _archive(**arrays) -> bytes:
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    return packed.getvalue()


def _saved() -> bytes:
    counts = RankCounts.from_ranks([1, 3, 3], users=[7, 7, 8], items=ITEMS, sampled=SAMPLED)
    with tempfile.TemporaryDirectory() as folder:
        counts.save(Path(folder) / "counts.npz")
        return (Path(folder) / "counts.npz").read_bytes()


#: Ending of a file -> what reads it, and whole files of its format.
READERS = {
    "csv": (
        lambda path: read_counts(path, items=ITEMS, sampled=SAMPLED),
        b"user,rank,model\nann,1,a\nbob,4,b\nann,10,a\n",
        b"rank,sampled,items\n1,9,100\n2,19,50\n",
        b"user,score,target\na,0.5,1\na,0.25,0\nb,1,1\nb,-3,0\n",
    ),
    "jsonl": (
        lambda path: read_targets(path, items=ITEMS, sampled=SAMPLED),
        b'{"user": "u", "rank": 2}\n{"user": "v", "rank": 10.0}\n',
    ),
    "npz": (
        lambda path: read_counts(path, items=ITEMS, sampled=SAMPLED),
        _archive(rank=[1, 3, 10], user=["ann", "bob", "ann"]),
    ),
    "counts.npz": (RankCounts.load, _saved()),
    "run": (lambda path: trec.targets(path, QRELS, items=1000), RUN),
    "run.gz": (lambda path: trec.targets(path, QRELS, items=1000), gzip.compress(RUN, mtime=0)),
}


def _read(folder, ending: str, content: bytes) -> object:
    path = folder / f"file.{ending}"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        return READERS[ending][0](path)


#: What once got through, each as short as it could be made.
FOUND = [
    # An integer of more digits than Python reads is a ValueError, but no JSONDecodeError.
    ("jsonl", b'{"rank": ' + b"9" * 5000 + b"}"),
    # Numbers beyond 64 bits, and beyond all floats.
    ("jsonl", b'{"rank": 1, "items": 18446744073709551616, "sampled": 9}\n'),
    ("csv", b"rank,sampled\n1,9223372036854775807\n"),
    ("csv", b"rank,sampled,t\n1,1E4001,."),
    ("run", b"q1 Q0 d1 1 " + b"1" * 400 + b" t\n"),
    # Compressed files that end early or hold nonsense.
    ("run.gz", b"\x1f\x8b"),
    ("run.gz", gzip.compress(RUN, mtime=0)[:-9] + b"\xff" * 9),
    # Text that is none.
    ("csv", b"user,score,target\n,.,25,\xff"),
]


@pytest.mark.parametrize(("ending", "content"), FOUND, ids=range(len(FOUND)))
def test_what_once_got_through_is_refused(tmp_path, ending, content):
    with pytest.raises(UnsampleError) as problem:
        _read(tmp_path, ending, content)
    assert len(str(problem.value)) < 2_100


@st.composite
def damaged(draw, whole: bytes) -> bytes:
    """Draw a file that was cut off, or has bytes replaced, doubled or left out."""
    start, stop = sorted(draw(st.tuples(*[st.integers(0, len(whole))] * 2)))
    middle = draw(st.sampled_from([b"", whole[start:stop] * 2]) | st.binary(max_size=12))
    return whole[:start] + middle + (whole[stop:] if draw(st.booleans()) else b"")


@pytest.mark.parametrize("ending", READERS)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_files_are_read_or_refused(tmp_path, ending, data):
    content = data.draw(st.sampled_from(READERS[ending][1:]).flatmap(damaged))
    try:
        _read(tmp_path, ending, content)
    except UnsampleError as problem:
        assert len(str(problem)) < 5_000  # noqa: PT017 - some are read


CELLS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)


@settings(max_examples=100)
@given(
    name=st.sampled_from(sorted(estimators.REGISTRY)),
    parameter=st.sampled_from(["gamma", "eta", "iterations", "weight", "kind"]),
    family=st.sampled_from(sorted(metrics.REGISTRY)),
    cell=CELLS,
)
@example("bv", "gamma", "Recall", "1" * 400)
@example("bv", "gamma", "Recall", "1e400")
def test_methods_and_metrics_of_any_words_are_made_or_refused(name, parameter, family, cell):
    texts = {f"{name}({parameter}={cell})": estimators.parse, f"{family}@{cell}": metrics.parse}
    for text, parse in texts.items():
        try:
            made = parse(text)
        except InputError:
            continue
        assert parse(str(made)) == made


@settings(max_examples=100)
@given(number=CELLS, percent=st.booleans())
@example("1e9999999", False)
@example("0e-999999999", False)
def test_printed_numbers_are_read_or_refused(number, percent):
    try:
        given_numbers = named([f"HR@10={number}"], "a number", form="METRIC=VALUE")
        read_numbers(given_numbers, sampled=99, percent=percent)
    except UnsampleError as problem:
        assert str(problem)  # noqa: PT017 - some are read


def test_numbers_beyond_all_floats_are_refused_by_the_checks():
    with pytest.raises(InputError, match="x must be a finite number"):
        check_real("x", 10**400, low=0)
    with pytest.raises(MethodError, match="at most 9"):
        check_integer("x", 10**400, minimum=1, maximum=9, error=MethodError)
