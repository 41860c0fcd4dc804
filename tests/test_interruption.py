"""Ctrl-C at any moment: what the checkpoint holds then leads to the result that would have been."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Self

import numpy as np
import pytest

import unsample
from tests.test_evaluate import World, same
from tests.test_files import SAVERS
from unsample import designs, scoring
from unsample.designs import Certified, Exact, Fixed, Guided
from unsample.errors import UnsampleWarning
from unsample.lab.corpus import Corpus, load_corpus

_PACKAGES = tuple(str(Path(each.__file__).parent) for each in (designs, scoring))


class Interrupting:
    """Raises `KeyboardInterrupt` before a line of the packages that evaluate, by its number.

    Lines are counted as they are run; those of comprehensions and generators too. ``place`` may be
    another package or module.
    """

    def __init__(self, at: int | None = None, place: str | tuple[str, ...] = _PACKAGES) -> None:
        self.at, self.lines, self.place = at, 0, place

    def __enter__(self) -> Self:
        self.before = sys.gettrace()
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def _enter(self, frame, event, value):
        return self._line if frame.f_code.co_filename.startswith(self.place) else None

    def _line(self, frame, event, value):
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                raise KeyboardInterrupt
        return self._line


#: Each design, its budget, and whether whole rows are scored; small worlds with ties.
INTERRUPTED = [
    (Exact(), None, True),
    (Fixed(6), None, False),
    (Certified(), None, False),
    (Guided(k=2), 150, False),
    (Guided(k=2, error=0.5), None, False),
]


@pytest.fixture
def no_disk(monkeypatch):
    """Wait for no disk when a file is written."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.slow, id="all"), pytest.param(67, id="some")]
)
@pytest.mark.parametrize(("design", "budget", "whole"), INTERRUPTED, ids=str)
def test_an_interruption_at_any_line_leaves_what_can_go_on(
    design, budget, whole, step, tmp_path, no_disk
):
    world = World(users=8, items=30, dim=2, levels=2, share_seen=0.1)
    path = tmp_path / "state.npz"

    def find(checkpoint=None):
        scorer = None if whole else world.scores
        given = {"budget": budget, "scorer": scorer, "batch": 60, "checkpoint": checkpoint}
        return world.find(design, **given)

    fresh = find()
    with Interrupting() as counting:
        find(path)
    assert counting.lines > 500
    for at in range(1, counting.lines + 1, step):
        path.unlink(missing_ok=True)
        with pytest.raises(KeyboardInterrupt), Interrupting(at):
            find(path)
        again = find(path)
        same(fresh, again, at)
        for name, note in vars(fresh.notes).items():
            assert np.array_equal(note, getattr(again.notes, name)), (at, name)


def _corpus(path):
    Corpus(load_corpus().sets[:1]).save(path)


@pytest.mark.parametrize("save", [*SAVERS, _corpus])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_while_a_file_is_written_is_that(save, tmp_path, no_disk):
    """An archive cannot be closed amid a member: that was a `ValueError` in its place."""
    path = tmp_path / "file.npz"
    save(path)  # what is read once is known from here on
    whole, lost = path.read_bytes(), 0
    path.unlink()
    with Interrupting(place=zipfile.__file__) as counting:
        save(path)
    tried = range(1, counting.lines + 1, 7)
    for at in tried:
        path.unlink(missing_ok=True)
        try:
            with Interrupting(at, zipfile.__file__):
                save(path)
            lost += 1  # Python passes over what is raised while an object is deleted
        except KeyboardInterrupt:
            pass
        assert [each.read_bytes() for each in tmp_path.iterdir()] in ([], [whole]), at
    assert lost < 0.2 * len(tried)


#: Evaluates in small batches that take a while, and says when scoring has begun.
_SCRIPT = """
import sys, time
import numpy as np
import unsample

calls = 0


def scores(users, items):
    global calls
    calls += 1
    if calls == 5:
        print("scoring", flush=True)
    time.sleep(float(sys.argv[2]))
    return np.sin(users * 37.0 + items * 11.0).round(1)


how = unsample.Run(batch=200, checkpoint=sys.argv[1])
targets = np.arange(60), np.arange(60)
result = unsample.evaluate(scores, targets, items=400, metrics="NDCG@10", run=how)
print(repr(result["NDCG@10"].value), result.scored)
"""


def _started(path, pause):
    command = [sys.executable, "-c", _SCRIPT, str(path), str(pause)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def test_a_signal_amid_an_evaluation_leaves_what_can_go_on(tmp_path):
    fresh, _ = _started(tmp_path / "fresh.npz", 0).communicate(timeout=120)
    path = tmp_path / "state.npz"
    begun = _started(path, 0.05)
    assert begun.stdout.readline() == "scoring\n"
    begun.send_signal(signal.SIGINT)
    out, err = begun.communicate(timeout=120)
    assert (out, begun.returncode) == ("", -signal.SIGINT)
    name, note = err.splitlines()[-2:]
    assert name == "KeyboardInterrupt"
    assert note == (
        f"The scores so far are in the checkpoint {str(path)!r}: the same call continues from "
        "there."
    )
    assert path.exists()
    again, _ = _started(path, 0).communicate(timeout=120)
    assert again.splitlines()[-1] == fresh.splitlines()[-1]


def test_who_is_interrupted_hears_where_the_scores_are(tmp_path):
    world = World(users=60)

    def interrupted(error, checkpoint):
        calls = []

        def scores(users, items):
            calls.append(len(users))
            if len(calls) > 3:
                raise error
            return world.scores(users, items)

        with pytest.raises(type(error)) as told:
            world.find(Certified(), scorer=scores, batch=300, checkpoint=checkpoint)
        return getattr(told.value, "__notes__", [])

    path = tmp_path / "run.npz"
    kept = f"The scores so far are in the checkpoint {str(path)!r}: the same call continues"
    for error in (KeyboardInterrupt(), ConnectionError()):
        (note,) = interrupted(error, path)
        assert note.startswith(kept)
    (note,) = interrupted(KeyboardInterrupt(), None)
    assert "The scores so far are lost. With run=unsample.Run(checkpoint=" in note
    assert not interrupted(ConnectionError(), None)


def test_a_signal_ends_the_command_with_one_line(tmp_path):
    pipe = tmp_path / "ranks.csv"
    os.mkfifo(pipe)
    words = ["estimate", str(pipe), "--items", "1000", "--sampled", "99"]
    command = [sys.executable, "-m", "unsample", *words]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    waiting = subprocess.Popen(command, **streams)
    with pipe.open("w") as given:  # open when the command reads
        given.write("rank\n1\n")
        given.flush()
        time.sleep(0.2)
        waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=120)
    # A blank line before it: a terminal has written ^C.
    assert (waiting.returncode, out, err) == (130, "", "\nunsample: interrupted\n")


def test_a_result_is_not_lost_with_its_checkpoint(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    world = World(users=60)

    def remove(done, total, note=""):
        shutil.rmtree(folder, ignore_errors=True)

    how = unsample.Run(checkpoint=folder / "state.npz", progress=remove)
    with pytest.warns(UnsampleWarning, match=r"checkpoint is out of date.* make its folder first"):
        found = world.run("certified", scorer=world.scores, run=how)
    assert found.to_dict() == world.run("certified", scorer=world.scores).to_dict()


def test_an_error_is_not_hidden_by_its_checkpoint(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    world, calls = World(users=60), []

    def failing(users, items):
        calls.append(len(items))
        if len(calls) == 1:
            return world.scores(users, items)
        shutil.rmtree(folder, ignore_errors=True)
        raise ConnectionError("the model went away")

    with (
        pytest.warns(UnsampleWarning, match="checkpoint is out of date"),
        pytest.raises(ConnectionError),
    ):
        world.find(Fixed(6), scorer=failing, checkpoint=folder / "state.npz")
