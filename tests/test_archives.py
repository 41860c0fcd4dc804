"""Archives of others: whatever a field holds, it is taken, or refused in one clear message."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.test_evaluate import World, same
from unsample._fields import Field, read_fields
from unsample.counts import ItemCounts, ModelCounts, Targets
from unsample.designs import Certified, Fixed, Guided
from unsample.errors import FileError, UnsampleError
from unsample.lab.corpus import Corpus, load_corpus, read_folder
from unsample.lab.datasets import read_rank_file, write_rank_file
from unsample.posterior import Prior

Arrays = dict[str, Any]


def _put(arrays: Arrays, path: Path) -> Path:
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


def _mutants(values: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Give what a field must not become: other kinds, other shapes, and numbers out of range."""
    yield "of no shape", np.zeros((1, 2, 3), dtype=values.dtype)
    yield "longer", np.concatenate([values.reshape(-1), values.reshape(-1), values.reshape(-1)[:1]])
    yield "empty", values.reshape(-1)[:0]
    yield "text", np.full(values.shape, "many")
    if values.dtype.kind in "iuf":
        yield "complex", values + 1j
        yield "true", np.ones(values.shape, dtype=bool)
        for name, number in (("NaN", np.nan), ("infinite", np.inf)):
            yield name, np.full(values.shape, number)
            yield f"{name} at one place", _with(values.astype(np.float64), number)
        yield "huge at one place", _with(values, 1e30 if values.dtype.kind == "f" else 10**16)
        yield "huge", np.full(values.shape, 2**63, dtype=np.uint64)
    if values.dtype.kind in "iu":
        yield "negative at one place", _with(values.astype(np.int64), -5)
        yield "most negative", np.full(values.shape, -(2**63))


def _with(values: np.ndarray, number: float) -> np.ndarray:
    changed = values.astype(np.int64) if values.dtype.kind in "iu" else values.copy()
    changed.reshape(-1)[np.flatnonzero(np.isfinite(values))[-1]] = number
    return changed


def _refused(read: Callable[[], object], why: object) -> None:
    """Reading raises one message of ours, in one line, that says what to do."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnsampleError) as problem:
            read()
    text = str(problem.value)
    assert "\n" not in text, why
    assert len(text) < 1000, why
    assert ";" in text, (why, text)


# -- counts ----------------------------------------------------------------------------------------


def _users_with_several() -> ModelCounts:
    """Two models, users with one to three targets, and catalogues of two sizes."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(60), np.tile([1, 2, 3], 20))
    sizes = np.where(users % 2, 100, 200)
    return ModelCounts.of_targets(
        {name: Targets(rng.integers(1, 11, len(users)), sizes, 9, users) for name in ("a", "b")}
    )


def _shared_items() -> ModelCounts:
    beats = np.random.default_rng(1).random((80, 12)) < 0.3
    pool = ItemCounts.from_outcomes(beats)
    targets = Targets(1 + beats.sum(axis=1), 500, 12, replacement=False, shared=pool)
    return ModelCounts({"": targets.counts}, {})


def _filtered() -> ModelCounts:
    rng = np.random.default_rng(2)
    users = np.repeat(np.arange(40), 2)
    ranks = rng.integers(1, 21, len(users))
    return ModelCounts({"": Targets(ranks, 5000, 19, users, filtered=True).counts}, {})


COUNTS = {"several": _users_with_several, "shared": _shared_items, "filtered": _filtered}
#: Numbers of items are names: any whole number is one.
_ANY = {("0_items_item", "negative at one place"), ("0_items_item", "huge at one place")}


@pytest.mark.parametrize("kind", COUNTS)
def test_every_field_of_saved_counts_is_checked(tmp_path, kind):
    path, changed = tmp_path / "counts.npz", tmp_path / "changed.npz"
    counts = COUNTS[kind]()
    counts.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    assert dict(ModelCounts.load(_put(arrays, changed))) == dict(counts)
    for name, values in arrays.items():
        for what, mutant in _mutants(values):
            if (name, what) in _ANY or (name == "names" and what == "text"):
                continue
            _put(arrays | {name: mutant}, changed)
            _refused(lambda: ModelCounts.load(changed), (name, what))
        if name.startswith("0_1_"):  # pairs of two models may be left out, but as a whole
            alone = {key: each for key, each in arrays.items() if "0_1_" not in key}
            assert dict(ModelCounts.load(_put(alone, changed))) == dict(counts)
        left = {key: each for key, each in arrays.items() if key != name}
        _put(left, changed)
        _refused(lambda: ModelCounts.load(changed), (name, "missing"))
    for more in ("more", "0_more", "7_count", "0_pairs_more", "1_0_count"):
        _put(arrays | {more: np.ones(1, dtype=np.int64)}, changed)
        _refused(lambda: ModelCounts.load(changed), more)


@pytest.mark.parametrize(
    ("kind", "field", "change"),
    [
        ("several", "0_design", lambda users: users + np.array([1, 0])),
        ("several", "0_count", lambda count: count + 1),
        ("several", "0_pairs_count", lambda count: count + 1),
        ("several", "0_pairs_left", lambda left: left[::-1]),
        ("several", "0_1_count", lambda count: count + 10**6),
        ("several", "0_1_keys", lambda keys: keys + 1),
        ("shared", "0_items_count", lambda count: count + 1),
        ("shared", "0_items_sampled", lambda sampled: sampled + 1),
        ("shared", "0_items_rank", lambda rank: np.roll(rank, 1)),
        ("filtered", "0_design", lambda users: users + np.array([-30, 0])),
        ("filtered", "0_pairs_count", lambda count: count // 2 + 1),
    ],
)
def test_fields_that_contradict_each_other_are_refused(tmp_path, kind, field, change):
    COUNTS[kind]().save(tmp_path / "counts.npz")
    with np.load(tmp_path / "counts.npz") as file:
        arrays = dict(file)
    _put(arrays | {field: change(arrays[field])}, tmp_path / "changed.npz")
    with pytest.raises(FileError, match=r"write it anew|must hold counts that"):
        ModelCounts.load(tmp_path / "changed.npz")


def test_counts_of_every_kind_are_read_as_they_were_saved(tmp_path):
    """The rules refuse nothing that the package writes: parts added up, grids of sizes, ranges."""
    rng = np.random.default_rng(3)
    for trial in range(30):
        users = np.sort(rng.integers(0, 30, 80))
        sizes = rng.integers(1500, 9000, 30)[users]
        parts = [
            ModelCounts.of_targets(
                {
                    name: Targets(
                        rng.integers(1, 10, len(users)), sizes, 9, users, filtered=bool(trial % 2)
                    )
                    for name in ("a", "b", "c")
                }
            )
            for _ in range(1 + trial % 3)
        ]
        whole = ModelCounts.merge(parts)
        (tmp_path / "whole.npz").unlink(missing_ok=True)
        whole.save(tmp_path / "whole.npz")
        found = ModelCounts.load(tmp_path / "whole.npz")
        assert dict(found) == dict(whole)
        assert found.between == whole.between
        for name in whole:
            assert found[name].users == whole[name].users


# -- priors ----------------------------------------------------------------------------------------


def _prior(folder: Path) -> Arrays:
    ranks = np.random.default_rng(4).geometric(0.01, 2000).clip(1, 1000)
    Prior.learn([ranks], items=1000).save(folder / "prior.npz")
    with np.load(folder / "prior.npz") as file:
        return dict(file)


def _about(arrays: Arrays, **changes: Any) -> Arrays:
    about = json.loads(arrays["about"].tobytes()) | changes
    text = json.dumps({key: each for key, each in about.items() if each is not ...})
    return arrays | {"about": np.frombuffer(text.encode(), np.uint8)}


def test_every_array_of_a_prior_is_checked(tmp_path):
    arrays, changed = _prior(tmp_path), tmp_path / "changed.npz"
    assert Prior.load(_put(arrays, changed))
    for name, values in arrays.items():
        for what, mutant in _mutants(values):
            _put(arrays | {name: mutant}, changed)
            _refused(lambda: Prior.load(changed), (name, what))
        _put({key: each for key, each in arrays.items() if key != name}, changed)
        _refused(lambda: Prior.load(changed), (name, "missing"))
    _put(arrays | {"more": np.ones(3)}, changed)
    _refused(lambda: Prior.load(changed), "more")
    _put(arrays | {"unseen.within": -arrays["unseen.within"]}, changed)
    with pytest.raises(FileError, match=r"'unseen\.within' of .* must be a covariance matrix"):
        Prior.load(changed)


_FACTORS = (
    *([value, 1.0, 0.0] for value in (np.nan, np.inf, -1.0, 0.0, 1e9, "1", None, True)),
    *([1.0, 1.0, value] for value in (np.nan, np.inf, -1.0, 1e9, "1", None, True)),
    [1.0], [1.0, 1.0], [1.0, 1.0, 0.0, 0.0], 1.0, {}, "111", None,
)  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        *({"factors": {"unseen": value}} for value in _FACTORS),
        *({"factors": value} for value in ({}, [], None, ..., {"other": [1.0, 1.0, 0.0]})),
        *({"note": value} for value in (None, 1, ["a"], ...)),
        *({"format": value} for value in (None, "unsample prior 2", ["a"] * 1000, ...)),
    ],
    ids=repr,
)
def test_every_number_of_a_prior_is_checked(tmp_path, changes):
    path = _put(_about(_prior(tmp_path), **changes), tmp_path / "changed.npz")
    _refused(lambda: Prior.load(path), changes)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b"1" * 5000])
def test_text_of_a_prior_that_is_no_object_is_refused(tmp_path, text):
    arrays = _prior(tmp_path) | {"about": np.frombuffer(text, np.uint8)}
    path = _put(arrays, tmp_path / "changed.npz")
    _refused(lambda: Prior.load(path), text[:9])


# -- the description of fields ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"a": [1, 2], "b": [0.5, 1.5]}, ""),
        ({"a": [1, 2], "b": [0.5]}, r"'b' of it must have the shape \(2,\), got \(1,\)"),
        ({"a": [1, 9], "b": [0.5, 1.5]}, "'a' of it must hold whole numbers from 1 to 2, got 9"),
        ({"a": [1, 2], "b": [0.5, np.nan]}, "'b' of it must hold finite numbers .* got nan"),
        ({"a": [1.0, 2.0], "b": [0.5, 1.5]}, "'a' of it must hold whole numbers, got float64"),
        ({"a": [1, 2]}, "it lacks 'b'"),
        ({"a": [1, 2], "b": [0.5, 1.5], "c": [1]}, "it must hold nothing else, got also 'c'"),
    ],
)
def test_fields_are_what_they_are_said_to_be(found, message):
    fields = {"a": Field("whole", ("rows",), 1, np.array([1, 2])), "b": Field("real", ("rows",))}
    arrays = {name: np.array(values) for name, values in found.items()}
    if not message:
        read = read_fields(arrays, fields, "it")
        assert {name: each.tolist() for name, each in read.items()} == found
        return
    with pytest.raises(FileError, match=message):
        read_fields(arrays, fields, "it")


# -- checkpoints -----------------------------------------------------------------------------------

#: Designs, their budgets, and after how many calls of the scorer they are interrupted.
EVALUATIONS = {
    "fixed": (Fixed(6), None, 3),
    "certified": (Certified(), None, 4),
    "guided, before the draw": (Guided(k=2, error=0.3), None, 20),
    "guided, in the draw": (Guided(k=2), 1800, 20),
    "guided, in its pilot": (Guided(k=2, error=0.3), None, 50),
    "guided, after its pilot": (Guided(k=2, error=0.3), None, 70),
}


class _Stopping:
    """A scorer that is interrupted after some calls."""

    def __init__(self, world: World, calls: int) -> None:
        self.world, self.left = world, calls

    def __call__(self, users: Any, items: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.world.scores(users, items)


@dataclass
class _Evaluation:
    """An evaluation that was interrupted, and its checkpoint."""

    world: World
    case: str
    path: Path
    whole: Any

    @classmethod
    def of(cls, case: str, path: Path) -> _Evaluation:
        world = World(users=120, items=60, dim=2, levels=2, share_seen=0.1)
        made = cls(world, case, path, None)
        made.whole = made.run(10**6)
        with pytest.raises(KeyboardInterrupt):
            made.run(EVALUATIONS[case][2], path)
        return made

    def run(self, calls: int, checkpoint: Path | None = None) -> Any:
        """Run it, or go on; at most so many calls, so that nothing goes on for ever."""
        design, budget, _ = EVALUATIONS[self.case]
        scorer = _Stopping(self.world, calls)
        how = {"batch": 100, "checkpoint": checkpoint}
        return self.world.find(design, budget=budget, scorer=scorer, **how)


@pytest.fixture
def no_disk(monkeypatch):
    """Wait for no disk when a file is written."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.mark.parametrize("case", EVALUATIONS)
def test_every_field_of_a_checkpoint_is_checked(tmp_path, no_disk, case):
    evaluation = _Evaluation.of(case, tmp_path / "state.npz")
    with np.load(evaluation.path) as file:
        arrays = dict(file)
    assert arrays["scored"].any()
    assert arrays["draw_order"].any() == (case.endswith(("in the draw", "pilot")))
    assert arrays["pilot"].any() == case.endswith("pilot")
    for name, values in arrays.items():
        for what, mutant in _mutants(values):
            if (name, what) == ("own", "huge at one place"):  # a score may be any number
                continue
            _put(arrays | {name: mutant}, evaluation.path)
            _refused(lambda: evaluation.run(1000, evaluation.path), (name, what))
        _put({key: each for key, each in arrays.items() if key != name}, evaluation.path)
        _refused(lambda: evaluation.run(1000, evaluation.path), (name, "missing"))
    _put(arrays | {"more": np.ones(3)}, evaluation.path)
    _refused(lambda: evaluation.run(1000, evaluation.path), "more")
    _put(arrays, evaluation.path)
    same(evaluation.run(1000, evaluation.path), evaluation.whole, case)


@pytest.mark.parametrize("name", ["scored", "goal"])
def test_no_target_of_a_checkpoint_was_compared_more_often_than_its_design_says(
    tmp_path, no_disk, name
):
    """The ranks would be among more items than were sampled: other numbers, in silence."""
    evaluation = _Evaluation.of("fixed", tmp_path / "state.npz")
    with np.load(evaluation.path) as file:
        arrays = dict(file)
    _put(arrays | {name: np.where(arrays["scored"] > 0, 7, arrays[name])}, evaluation.path)
    _refused(lambda: evaluation.run(1000, evaluation.path), name)


@pytest.mark.parametrize("case", EVALUATIONS)
def test_a_checkpoint_of_any_numbers_comes_to_an_end(tmp_path, no_disk, case):
    """Numbers in their ranges that the evaluation did not have: an end, or a message of ours."""
    evaluation, rng = _Evaluation.of(case, tmp_path / "state.npz"), np.random.default_rng(5)
    with np.load(evaluation.path) as file:
        arrays = dict(file)
    whole = [name for name, values in arrays.items() if values.dtype.kind == "i"]
    ended = 0
    for trial in range(80):
        changed = dict(arrays)
        for name in rng.choice(whole, size=1 + trial % 3, replace=False):
            values = arrays[name].copy()
            some = rng.random(len(values)) < rng.choice([0.02, 0.5, 1.0])
            values[some] = rng.choice([values.min(), values.max(), 0, 1, 2, 39], size=some.sum())
            changed[name] = values
        _put(changed, evaluation.path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                evaluation.run(1000, evaluation.path)
            except UnsampleError:
                continue
        ended += 1
    assert ended > 2


# -- files of the laboratory -----------------------------------------------------------------------


def _corpus(folder: Path) -> tuple[Callable[[], object], Path]:
    Corpus(load_corpus().sets[:3]).save(folder / "corpus.npz")
    return lambda: Corpus.load(folder / "corpus.npz"), folder / "corpus.npz"


def _ranks(folder: Path) -> tuple[Callable[[], object], Path]:
    rng = np.random.default_rng(6)
    seen = rng.integers(0, 20, 50)
    arrays = {"items": np.array(300), "n_seen": seen}
    arrays |= {"ease_1": rng.integers(1, 281, 50), "ease_0": rng.integers(1, 301, 50)}
    write_rank_file(folder / "shop.npz", arrays, {"recommenders": {"ease": {}}})
    return lambda: read_rank_file(folder / "shop.npz"), folder / "shop.npz"


def _folder(folder: Path) -> tuple[Callable[[], object], Path]:
    _, path = _ranks(folder)
    return lambda: read_folder(folder), path


@pytest.mark.parametrize("make", [_corpus, _ranks, _folder])
def test_every_array_of_the_laboratory_is_checked(tmp_path, make):
    read, path = make(tmp_path)
    with np.load(path) as file:
        arrays = {
            name: each for name, each in file.items() if make is not _folder or name != "about"
        }
    assert read()
    for name, values in arrays.items():
        for what, mutant in _mutants(values):
            _put(arrays | {name: mutant}, path)
            _refused(read, (name, what))
        if make is not _folder or "_" not in name or name == "n_seen":
            _put({key: each for key, each in arrays.items() if key != name}, path)
            _refused(read, (name, "missing"))
    if make is _corpus:
        first = json.loads(arrays["about"].tobytes())["sets"]
        for wrong in (None, {}, [1], [{**first[0], "items": -5}, *first[1:]], first[1:], first * 2):
            _put(_about(arrays, sets=wrong), path)
            _refused(read, wrong)
