"""The state of an evaluation, and the file that keeps it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._checks import FloatArray, IntArray
from unsample._files import check_writable, write_atomically
from unsample.designs._candidates import Candidates
from unsample.designs._designs import Design
from unsample.designs._findings import Notes
from unsample.designs._guides import Guide
from unsample.designs._scan import Tally
from unsample.errors import CheckpointError, FileError

_FORMAT = "unsample.Checkpoint/8"
_TALLY = tuple(each.name for each in fields(Tally))
_NOTES = tuple(each.name for each in fields(Notes))
#: The largest difference between scores of the interrupted and of the resumed run, relative to the
#: largest score.
_SAME_SCORES = 1e-3


@dataclass(eq=False)
class State:
    """The state of an evaluation; ``goal`` is that of the round."""

    tally: Tally
    notes: Notes
    goal: IntArray

    @classmethod
    def empty(cls, targets: int) -> State:
        return cls(Tally.empty(targets), Notes.empty(targets), np.zeros(targets, dtype=np.int64))


def identity_of(
    design: Design,
    candidates: Candidates,
    guide: Guide,
    allowed: int | None,
    ties: str,
    seed: int,
    models: int,
) -> str:
    """Return a hash of everything that determines the results, except the scores."""
    settings = {each.name: str(getattr(design, each.name)) for each in fields(design)}
    # An exact design only fails if its budget is too small, so a larger one may continue.
    budget = None if design.exact else allowed
    plain = [design.name, settings, budget, ties, seed, models]
    digest = hashlib.sha256(json.dumps([*plain, candidates.items, candidates.filtered]).encode())
    arrays = [candidates.users, candidates.targets, guide.order, guide.lists]
    if candidates.exclude is not None:
        arrays += [candidates.exclude.indptr, candidates.exclude.indices]
    for array in arrays:
        held = np.empty(0) if array is None else np.ascontiguousarray(array)
        digest.update(f"{held.dtype}:{held.shape}".encode() + held.tobytes())
    return digest.hexdigest()


@dataclass(eq=False)
class Checkpoint:
    """A file with the state of one evaluation; ``seconds`` is the least time between writes.

    ``identity`` is from `identity_of`; ``probe`` are a few scores, to detect another model.
    """

    path: Path
    identity: str
    probe: FloatArray
    seconds: float = 30.0
    _written: float = field(default_factory=time.monotonic, repr=False)

    def load(self) -> State | None:
        """Return the saved state, or None if there is no file yet."""
        check_writable(self.path)
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file:
                found = read_arrays(file, f"checkpoint {str(self.path)!r}")
        except (OSError, FileError) as problem:
            raise CheckpointError(f"{problem}; delete it to start anew") from problem
        self._refuse_another(found)
        tally = Tally(*(found[each] for each in _TALLY))
        return State(tally, Notes(*(found[each] for each in _NOTES)), found["goal"])

    def save(self, state: State, *, now: bool = False) -> None:
        """Write the state if the last write is long enough ago, or ``now``."""
        if not now and time.monotonic() - self._written < self.seconds:
            return
        arrays = {
            "format": np.array(_FORMAT),
            "identity": np.array(self.identity),
            "probe": self.probe,
            "goal": state.goal,
            **{name: getattr(state.tally, name) for name in _TALLY},
            **{name: getattr(state.notes, name) for name in _NOTES},
        }
        write_atomically(self.path, lambda file: np.savez(file, allow_pickle=False, **arrays))
        self._written = time.monotonic()

    def _refuse_another(self, found: Mapping[str, npt.NDArray[Any]]) -> None:
        """Refuse the state of another evaluation."""
        probe = found.get("probe", np.empty(0))
        if str(found.get("format")) != _FORMAT:
            what = f"is no {_FORMAT}"
        elif str(found.get("identity")) != self.identity:
            what = (
                "was made with other targets, items, excluded pairs, design, budget, guide, ties "
                "or rng"
            )
        elif probe.shape != self.probe.shape or not np.allclose(
            probe, self.probe, rtol=0, atol=_SAME_SCORES * np.abs(self.probe).max(initial=0.0)
        ):
            what = "was made by a scorer that gives other scores"
        else:
            return
        raise CheckpointError(
            f"checkpoint must belong to this evaluation, got {str(self.path)!r}, which {what}; "
            "pass another path, or delete it to start anew"
        )
