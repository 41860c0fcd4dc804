"""Inputs that fuzzing found, each as short as it could be made, and a moment of fuzzing."""

from __future__ import annotations

import gzip
import io
import itertools
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzzing.judge import Limits, minimised, under
from tests.fuzzing.targets import all_targets
from unsample import estimators, metrics
from unsample._checks import check_integer, check_real
from unsample.errors import FileError, InputError, MethodError, UnsampleError
from unsample.evidence import RankCounts
from unsample.lab import recommenders
from unsample.lab.datasets import Interactions

#: Inputs of a target in every test run; `tools/fuzz.py` gives each ten thousand or more.
FEW = {"rank-parquet": 8}
USUAL, CHEAP = 60, 600


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return all_targets(tmp_path_factory.mktemp("fuzz"))


def _names() -> list[str]:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        return list(all_targets(Path(folder)))


def _archive(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return packed.getvalue()


def _npy(array) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
    return content.getvalue()


LONG = b"1" * 400
CASES = [
    # An integer of more digits than Python reads is a ValueError, but no JSONDecodeError.
    ("rank-jsonl", b'{"rank": ' + b"9" * 5000 + b"}"),
    ("saved-counts-json", b'{"format": ' + b"9" * 5000 + b"}"),
    ("saved-counts-json", b"[" * 5000),
    # Numbers beyond 64 bits, and beyond all floats.
    ("rank-jsonl", b'{"better": 0, "tied": 1, "items": 18446744073709551616, "sampled": 9}\n'),
    ("rank-csv", b"better,tied\n0,9223372036854775807\n"),
    ("rank-csv", b"rank,count,t\n1,1E4001,."),
    ("rank-csv-by-target", b"rank,weight,items,sampled\n1,1e200,100,9\n"),
    (
        "saved-counts-json",
        (
            b'{"format":"unsample.RankCounts/1","replacement":true,"sampled":[9,9],"items":[5,6],'
            b'"low":[1,2],"high":[1,2],"count":[1,1],"weight":[1e-320,5],"weight_squared":[1,5]}'
        ),
    ),
    ("rank-csv", b"better,tied,weight,items,sampled\n1,1,1e200,100,9\n"),
    ("method-name", b"map(strength=" + LONG + b")"),
    ("method-name", b"map(strength=1e400)"),
    ("published-number", b"HR=1e9999999"),
    ("published-number", b"HR=0e-999999999"),
    ("trec-qrels", b"q1 0 d1 " + LONG + b"\n"),
    ("trec-run", b"q1 Q0 d1 1 " + LONG + b" t\n"),
    # Saved files whose members are whole, but not what they should be.
    ("checkpoint", _archive(format=_npy("unsample.Checkpoint/1"))),
    ("run-spec", b"[" * 100_000),
    ("results-settings.json", b"1"),
    ("results-settings.json", b"[" * 100_000),
    ("results-claims.csv", b"id,claim,where,holds_by_bias,holds_by_rmse,detail\na\n"),
    # Compressed files that end early or hold nonsense.
    ("trec-run-gz", b"\x1f\x8b"),
    ("trec-run-gz", gzip.compress(b"q1 Q0 d1 1 0.9 me\n", mtime=0)[:-9] + b"\xff" * 9),
    # Text that is none, and headers that Python would warn about.
    ("rank-npz", _archive(rank=_npy([1]), user=_npy(["a"])[:-4] + b"\xff\xff\xff\x7f")),
    ("rank-npz", _archive(rank=b"\x93NUMPY\x01\x00\x08\x00'\\d'    ")),
    ("rank-npz", _npy([1, 2])),
    ("data-arrays", _archive(user=_npy([0, 1]), item=_npy(np.arange(0)))),
    # Names that no disk has, and patterns of them.
    ("model-argument", b"a=" + b"x" * 5000),
    ("model-argument", b"a=" + b"[" * 5000),
    ("model-argument", b"a=ranks.[" + b"[" * 5000 + b"K"),
    # Text that is none.
    ("rank-csv", b"user,score,target\n,.,25,\xff"),
    ("rank-csv", b"\xff,rank\n1,1\n"),
]


@pytest.mark.parametrize(
    # Archives hold the time they were made at, so that content is no name.
    ("name", "data"),
    CASES,
    ids=[f"{name}-{number}" for number, (name, _) in enumerate(CASES)],
)
def test_what_fuzzing_found_is_refused(targets, name, data):
    with pytest.raises(UnsampleError) as problem:
        targets[name].parse(data)
    assert len(str(problem.value)) < 2_100


@pytest.mark.parametrize("name", _names())
def test_a_moment_of_fuzzing_finds_nothing(targets, name):
    target = targets[name]
    inputs = CHEAP if target.cheap else FEW.get(name, USUAL)
    with under(Limits(seconds=20)) as judged:
        for data in itertools.islice(target.inputs(seed=1), inputs):
            assert judged(name, target.parse, data) is None


# -- the judge itself -----------------------------------------------------------------------------


def _loop(data: bytes) -> None:
    while data.startswith(b"loop"):
        pass


def _fail(data: bytes) -> None:
    if b"bad" in data:
        raise KeyError(data)


def _warn(_: bytes) -> None:
    np.array([np.inf]).astype(np.int64)


def _fill(_: bytes) -> None:
    np.ones(1 << 33, dtype=np.uint8)


@pytest.mark.parametrize(
    ("parse", "data", "kind"),
    [
        (_fail, b"a bad one", "exception"),
        (_loop, b"loop", "hang"),
        (_warn, b"", "warning"),
        (_fill, b"", "memory"),
    ],
)
def test_planted_defects_are_found_and_made_short(parse, data, kind):
    with under(Limits(seconds=0.5)) as judged:
        finding = judged("planted", parse, data)
        assert finding is not None
        assert finding.kind == kind
        if parse is _fail:
            assert minimised(finding, lambda one: judged("planted", parse, one)) == b"bad"


def test_the_same_seed_gives_the_same_inputs(targets):
    first, again = (list(itertools.islice(targets["rank-csv"].inputs(3), 50)) for _ in range(2))
    assert first == again
    assert first != list(itertools.islice(targets["rank-csv"].inputs(4), 50))


# -- made from grammars ---------------------------------------------------------------------------

_CELLS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
_COLUMNS = st.sampled_from(
    ["rank", "better", "tied", "count", "sampled", "items", "weight", "user", "model", "x"]
)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), names=st.lists(_COLUMNS, min_size=1, max_size=6, unique=True))
def test_tables_of_any_cells_are_read_or_refused(targets, data, names):
    rows = data.draw(st.lists(st.lists(_CELLS, min_size=len(names), max_size=len(names))))
    text = "\n".join(",".join(row) for row in [names, *rows]).encode()
    with under(Limits(seconds=20)) as judged:
        for target in ("rank-csv", "rank-csv-by-target"):
            assert judged(target, targets[target].parse, text) is None


_KEYS = st.sampled_from(["gamma", "eta", "iterations", "base", "strength", "weight", "kind"])
_PARAMETERS = st.lists(st.tuples(_KEYS, _CELLS), max_size=3)


@settings(max_examples=100, deadline=None)
@given(name=st.sampled_from(sorted(estimators.REGISTRY)), parameters=_PARAMETERS)
def test_methods_with_any_parameters_are_made_or_refused(name, parameters):
    text = f"{name}({', '.join(f'{key}={value}' for key, value in parameters)})"
    try:
        method = estimators.parse(text)
    except InputError:
        return
    assert estimators.parse(str(method)) == method


@settings(max_examples=100, deadline=None)
@given(family=st.sampled_from(sorted(metrics.REGISTRY)), k=st.one_of(st.integers(), _CELLS))
def test_metrics_with_any_k_are_made_or_refused(family, k):
    try:
        metric = metrics.parse(f"{family}@{k}")
    except InputError:
        return
    assert metrics.parse(str(metric)) == metric


# -- what the rules behind the cases say ----------------------------------------------------------


def test_numbers_beyond_all_floats_are_refused_by_the_checks():
    with pytest.raises(InputError, match="x must be a finite number"):
        check_real("x", 10**400, low=0)
    with pytest.raises(MethodError, match="at most 9"):
        check_integer("x", 10**400, minimum=1, maximum=9, error=MethodError)


def test_saved_counts_say_true_or_false_and_nothing_else(tmp_path):
    path = tmp_path / "counts.json"
    RankCounts.from_ranks([1, 2], items=50, sampled=9).save(path)
    path.write_text(path.read_text().replace('"replacement": true', '"replacement": "no"'))
    with pytest.raises(FileError, match="must say true or false for replacement"):
        RankCounts.load(path)


@pytest.mark.parametrize("broken", ["similarity_item", "similarity_start", "history_item"])
def test_a_saved_recommender_cannot_lead_outside_its_arrays(tmp_path, broken):
    """Sparse products do not look again whether a column exists."""
    pytest.importorskip("implicit")
    pairs = Interactions.from_pairs([0, 0, 1, 1, 2], [0, 1, 1, 2, 0])
    path = tmp_path / "model.npz"
    recommenders.create("itemknn").fit(pairs).save(path)
    with np.load(path) as arrays:
        saved = {name: arrays[name] for name in arrays.files}
    saved[f"weights/{broken}"] = saved[f"weights/{broken}"] + 1_000_000
    np.savez(path, **saved)
    with pytest.raises(FileError, match="save it again"):
        recommenders.load(path)
