"""Checkpoints: what is known of every target so far, so that a long evaluation can go on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray
from unsample._files import check_writable, read_arrays, write_atomically
from unsample.designs.ranking import Tally
from unsample.errors import CheckpointError, FileError

__all__ = ["Checkpoint", "State", "identity"]

_FORMAT = "unsample.Checkpoint/1"
_TALLY = tuple(field.name for field in fields(Tally))
#: Scores of a resumed model may differ from those of the interrupted run by this much, relatively.
_SAME_SCORES = 1e-3


@dataclass(eq=False)
class State:
    """Where an evaluation stands: the tally, the goal of the round, and the scores asked for."""

    tally: Tally
    goal: IntArray
    asked: int = 0


@dataclass(eq=False)
class Checkpoint:
    """A file that holds the state of one evaluation; ``seconds`` is the least time between writes.

    ``identity`` is a hash of everything that decides the numbers except the scores; ``probe``
    are a few scores, by which another model is recognised.
    """

    path: Path
    identity: str
    probe: FloatArray
    seconds: float = 30.0
    _written: float = field(default_factory=time.monotonic, repr=False)

    def load(self) -> State | None:
        """Return the state that was saved, or None where there is no file yet."""
        check_writable(self.path)
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file:
                found = read_arrays(file, f"checkpoint {str(self.path)!r}")
        except OSError as problem:
            raise FileError(f"cannot read checkpoint {str(self.path)!r}: {problem}") from problem
        except FileError as problem:
            raise CheckpointError(f"{problem}; delete it to start anew") from problem
        self._check(found)
        self._check_arrays(found)
        tally = Tally(*(found[name].astype(np.int64) for name in _TALLY))
        return State(tally, found["goal"].astype(np.int64), int(found["asked"]))

    def save(self, state: State, *, now: bool = False) -> None:
        """Write the state if the last time is long enough ago, or ``now``."""
        if not now and time.monotonic() - self._written < self.seconds:
            return
        arrays: dict[str, npt.NDArray[Any]] = {
            "format": np.array(_FORMAT),
            "identity": np.array(self.identity),
            "probe": self.probe,
            "goal": state.goal,
            "asked": np.array(state.asked),
            **{name: getattr(state.tally, name) for name in _TALLY},
        }

        def write(file: IO[bytes]) -> None:
            np.savez(file, allow_pickle=False, **arrays)

        write_atomically(self.path, write)
        self._written = time.monotonic()

    def _check(self, found: Mapping[str, npt.NDArray[Any]]) -> None:
        name = repr(str(self.path))
        missing = {"format", "identity", "probe", "goal", "asked", *_TALLY} - set(found)
        if missing or str(found["format"]) != _FORMAT:
            raise CheckpointError(
                f"checkpoint must hold {_FORMAT}, got {name}, which is another file or a damaged "
                "one; pass another path, or delete it to start anew"
            )
        if str(found["identity"]) != self.identity:
            raise CheckpointError(
                f"checkpoint must belong to this evaluation, got {name}, which was made with "
                "other targets, items, excluded pairs, design, ties or seed; pass another path, or "
                "delete it to start anew"
            )
        if found["probe"].dtype != self.probe.dtype or found["probe"].shape != self.probe.shape:
            raise CheckpointError(
                f"checkpoint must belong to this scorer, got {name}, which does not"
            )
        if not np.allclose(found["probe"], self.probe, rtol=_SAME_SCORES, atol=0, equal_nan=True):
            raise CheckpointError(
                f"checkpoint must belong to this scorer, got {name}, which was made by one that "
                "gives other scores; pass another path for each model"
            )

    def _check_arrays(self, found: Mapping[str, npt.NDArray[Any]]) -> None:
        """Refuse a state that no evaluation leaves: it would be gone on with."""
        arrays = [found[name] for name in ("goal", *_TALLY)]
        whole = all(array.dtype.kind in "iu" for array in (*arrays, found["asked"]))
        alike = {array.shape for array in arrays} == {(found["goal"].size,)}
        if not whole or not alike or found["asked"].shape != ():
            raise FileError(
                f"{str(self.path)!r} must hold {_FORMAT}; it is damaged: delete it to start anew"
            )


def identity(settings: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return a hash of settings and arrays."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, array in arrays.items():
        digest.update(f"{name}:{array.dtype}:{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
