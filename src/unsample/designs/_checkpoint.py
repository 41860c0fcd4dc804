"""The file with the state of an evaluation, which continues from it after an interruption."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays, write_arrays
from unsample._checks import BoolArray, IntArray, warn
from unsample._fields import Field, read_fields, refuse_unless
from unsample._files import check_writable, write_atomically
from unsample.designs._designs import Design
from unsample.designs._findings import DesignNotes
from unsample.designs._guides import Guide
from unsample.designs._scoring_loop import Tally
from unsample.errors import CheckpointError, FileError
from unsample.scoring import Candidates

_FORMAT = "unsample.Checkpoint/11"
#: The fields of the notes, each an array of the file.
_NOTES = tuple(note.name for note in fields(DesignNotes))


def identity_of(
    design: Design,
    candidates: Candidates,
    *,
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
        plain_array = np.empty(0) if array is None else np.ascontiguousarray(array)
        digest.update(f"{plain_array.dtype}:{plain_array.shape}".encode() + plain_array.tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class State:
    """What an evaluation needs to continue: counts, the notes of its design, and goals of targets.

    It is consistent at any time: a tally adds a batch by one assignment, and each step of the
    design makes a new state.
    """

    tally: Tally
    notes: DesignNotes
    goal: IntArray

    @classmethod
    def empty(cls, targets: int) -> State:
        goal = np.zeros(targets, dtype=np.int64)
        return cls(Tally.empty(targets), DesignNotes.empty(targets), goal)


@dataclass(frozen=True, eq=False)
class Reach:
    """How far targets can be in an evaluation, and so what its checkpoint may hold."""

    #: With how many items each target is compared at most.
    max_scored: IntArray
    #: The user of each target, as numbers from 0.
    users: IntArray
    #: The tie rule by which the design counts what beats a target.
    ties: str
    #: Whether the design notes which users it drew, and whether a pilot comes first.
    draws: bool
    pilots: bool

    @classmethod
    def of(
        cls,
        design: Design,
        others: IntArray,
        *,
        users: IntArray,
        ties: str,
        in_full: BoolArray | None = None,
    ) -> Reach:
        """Return how far a design goes; ``others`` are the candidates of each target.

        ``in_full`` marks targets that are ranked in full beside samples of the others.
        """
        # Of a fixed number, drawn with replacement, there may be more than there are items.
        sampled = getattr(design, "sampled", None)
        max_scored = others if sampled is None else np.full_like(others, sampled)
        if in_full is not None:
            max_scored = np.where(in_full, others, max_scored)
        return cls(
            max_scored=max_scored,
            users=users,
            ties=ties,
            draws=design.draws_users,
            pilots=design.draws_users and getattr(design, "error", None) is not None,
        )

    def checked(self, arrays: Mapping[str, Any], where: str) -> State:
        """Return the state in a file; refuse a state that no evaluation can reach."""
        saved = read_fields(arrays, self._fields(), where=where)
        scored = saved["scored"]
        own = saved["own"]
        rule = f"'own' of {where} must hold the scores of targets that were compared, and no others"
        known = np.isfinite(own)
        refuse_unless(np.array_equal(known, scored > 0) and not np.isinf(own).any(), rule)
        _refuse_above("better", saved, limit=scored, where=where)
        _refuse_above("equal", saved, limit=scored - saved["better"], where=where)
        _refuse_above("lost_ties", saved, limit=saved["equal"], where=where)
        tally = Tally.of(**{name: saved[name] for name in Tally.columns})
        _refuse_above("before", saved, limit=tally.beaten(self.ties), where=where)
        _refuse_above("earlier", saved, limit=saved["before"], where=where)
        notes = DesignNotes(**{name: saved[name] for name in _NOTES})
        self._check_draw(notes, where)
        return State(tally, notes, goal=saved["goal"])

    def _fields(self) -> dict[str, Field]:
        """Return what the file holds, field by field."""
        size = (len(self.max_scored),)
        users = int(self.users.max(initial=0)) + 1 if self.draws else 0
        count = Field("whole", size, low=0, high=self.max_scored)
        noted = Field("whole", size, low=0, high=self.max_scored * self.draws)
        return dict.fromkeys(("scored", "better", "equal", "lost_ties", "goal"), count) | {
            "identity": Field("text", ()),
            "own": Field("real", size, missing=True),
            "before": noted,
            "earlier": noted,
            "reserved": noted,
            "stratum": Field("whole", size, low=0, high=users),
            # A second draw may follow the pilot, so numbers reach up to twice the users.
            "draw_order": Field("whole", size, low=-2 * users, high=2 * users),
            "pilot": Field("whole", size, low=0, high=int(self.pilots)),
        }

    def _check_draw(self, notes: DesignNotes, where: str) -> None:
        """Refuse a draw of users that contradicts itself."""
        rule = f"{where} must hold one draw of users"
        of_targets = np.stack([notes.stratum, notes.draw_order, notes.pilot], axis=1)
        _, first, number = np.unique(self.users, return_index=True, return_inverse=True)
        of_users = of_targets[first]
        same = np.array_equal(of_targets, of_users[number.reshape(-1)])
        refuse_unless(same, f"{rule}, got targets of one user that differ")
        stratum, draw_order, pilot = of_users.T
        drawn = np.abs(draw_order[draw_order != 0])
        distinct = len(np.unique(drawn)) == len(drawn)
        refuse_unless(distinct, f"{rule}, got two users with one number in the order")
        without_stratum = (stratum == 0) & ((draw_order != 0) | (pilot > 0))
        refuse_unless(not without_stratum.any(), f"{rule}, got users without a stratum")
        strata = np.unique(stratum[stratum > 0])
        complete = len(strata) == strata.max(initial=0)
        refuse_unless(complete, f"{rule}, got a stratum without users")
        in_pilot = np.unique(stratum[pilot > 0])
        whole = np.array_equal(in_pilot, strata) or not pilot.any()
        refuse_unless(whole, f"{rule}, got a pilot without users of each stratum")


def _refuse_above(name: str, saved: Mapping[str, IntArray], *, limit: IntArray, where: str) -> None:
    """Refuse a field of which a value is above its limit."""
    good = saved[name] <= limit
    at = int(np.argmin(good))
    rule = f"{name!r} of {where} must be at most {limit[at]} for target {at + 1}"
    refuse_unless(good.all(), f"{rule}, got {saved[name][at]}")


@dataclass(eq=False)
class Checkpoint:
    """A file with the state of one evaluation; ``seconds`` is the minimum time between writes."""

    path: Path
    #: From `identity_of`.
    identity: str
    seconds: float = 30.0
    #: Whether the latest state that was to be written is in the file.
    saved: bool = False
    _written: float = field(default_factory=time.monotonic, repr=False)

    def load(self, reach: Reach) -> State | None:
        """Return what was saved, or None if there is no file yet."""
        check_writable(self.path)
        if not self.path.exists():
            return None
        where = f"checkpoint {str(self.path)!r}"
        try:
            with self.path.open("rb") as file:
                arrays = read_arrays(file, where)
        except (OSError, FileError) as problem:
            raise CheckpointError(f"{problem}; delete it to start anew") from problem
        if str(arrays.get("identity")) != self.identity:
            raise CheckpointError(
                f"checkpoint must belong to this evaluation, got {str(self.path)!r}, which was "
                "made by another version, or with other targets, items, excluded pairs, design, "
                "budget, guide, ties or rng; pass another path, or delete it to start anew"
            )
        try:
            return reach.checked(arrays, where)
        except FileError as problem:
            raise CheckpointError(f"{problem}, or delete it to start anew") from problem

    def save(self, state: State, *, now: bool = False) -> None:
        """Write the state if the last write is long enough ago, or ``now``.

        If that fails there is a warning and no error: hours of scoring are worth more than a file.
        """
        if not now and time.monotonic() - self._written < self.seconds:
            return
        arrays = {name: getattr(state.tally, name) for name in Tally.columns}
        arrays |= vars(state.notes)
        arrays |= {"goal": state.goal, "identity": np.array(self.identity)}
        # Numbers that change all the time are written fast, not small.
        write = partial(write_arrays, arrays=arrays, compression=zipfile.ZIP_STORED)
        try:
            write_atomically(self.path, write)
        except FileError as problem:
            warn(f"the checkpoint is out of date, and the evaluation goes on: {problem}")
            self.saved = False
        else:
            self.saved = True
        self._written = time.monotonic()
