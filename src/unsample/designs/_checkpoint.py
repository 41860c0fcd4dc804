"""The file that keeps the state of an evaluation, so that it can go on after an interruption."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from unsample._archives import read_arrays
from unsample._checks import IntArray
from unsample._files import check_writable, write_atomically
from unsample.designs._candidates import Candidates
from unsample.designs._designs import Design
from unsample.designs._findings import Notes
from unsample.designs._guides import Guide
from unsample.designs._scan import Tally
from unsample.errors import CheckpointError, FileError

_FORMAT = "unsample.Checkpoint/9"


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
    # An exact design only fails if its budget is too small, so a larger one may continue.
    budget = None if design.exact else allowed
    plain = [_FORMAT, repr(design), budget, ties, seed, models, candidates.items]
    digest = hashlib.sha256(json.dumps([*plain, candidates.filtered]).encode())
    arrays = [candidates.users, candidates.targets, guide.order, guide.lists]
    if candidates.exclude is not None:
        arrays += [candidates.exclude.indptr, candidates.exclude.indices]
    for array in arrays:
        held = np.empty(0) if array is None else np.ascontiguousarray(array)
        digest.update(f"{held.dtype}:{held.shape}".encode() + held.tobytes())
    return digest.hexdigest()


@dataclass(eq=False)
class Checkpoint:
    """A file with the state of one evaluation; ``seconds`` is the least time between writes."""

    path: Path
    #: From `identity_of`.
    identity: str
    seconds: float = 30.0
    _written: float = field(default_factory=time.monotonic, repr=False)

    def load(self) -> tuple[Tally, Notes, IntArray] | None:
        """Return what was saved, or None if there is no file yet."""
        check_writable(self.path)
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as file:
                found = read_arrays(file, f"checkpoint {str(self.path)!r}")
        except (OSError, FileError) as problem:
            raise CheckpointError(f"{problem}; delete it to start anew") from problem
        if str(found.get("identity")) != self.identity:
            raise CheckpointError(
                f"checkpoint must belong to this evaluation, got {str(self.path)!r}, which was "
                "made by another version, or with other targets, items, excluded pairs, design, "
                "budget, guide, ties or rng; pass another path, or delete it to start anew"
            )
        tally = Tally(*(found[each.name] for each in fields(Tally)))
        notes = Notes(*(found[each.name] for each in fields(Notes)))
        return tally, notes, found["goal"]

    def save(self, tally: Tally, notes: Notes, goal: IntArray, *, now: bool = False) -> None:
        """Write the state if the last write is long enough ago, or ``now``."""
        if not now and time.monotonic() - self._written < self.seconds:
            return
        arrays = {**vars(tally), **vars(notes), "goal": goal, "identity": np.array(self.identity)}
        write_atomically(self.path, lambda file: np.savez(file, allow_pickle=False, **arrays))
        self._written = time.monotonic()
