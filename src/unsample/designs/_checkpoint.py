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
_NOTES = tuple(each.name for each in fields(DesignNotes))


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
        fixed = getattr(design, "sampled", None)
        max_scored = others if fixed is None else np.full_like(others, fixed)
        if in_full is not None:
            max_scored = np.where(in_full, others, max_scored)
        pilots = design.draws_users and getattr(design, "error", None) is not None
        return cls(max_scored, users, ties, design.draws_users, pilots)

    def checked(self, found: Mapping[str, Any], where: str) -> State:
        """Return the state in a file; refuse a state that no evaluation can reach."""
        held = read_fields(found, self._fields(), where)
        scored, own = held["scored"], held["own"]
        known = np.isfinite(own)
        rule = f"'own' of {where} must hold the scores of targets that were compared, and no others"
        refuse_unless(np.array_equal(known, scored > 0) and not np.isinf(own).any(), rule)
        for name, limit in (("better", scored), ("equal", scored - held["better"])):
            self._refuse_above(held, name, limit, where)
        self._refuse_above(held, "lost_ties", held["equal"], where)
        tally = Tally.of(**{name: held[name] for name in Tally.columns})
        self._refuse_above(held, "before", tally.beaten(self.ties), where)
        self._refuse_above(held, "earlier", held["before"], where)
        notes = DesignNotes(*(held[name] for name in _NOTES))
        self._check_draw(notes, where)
        return State(tally, notes, held["goal"])

    def _fields(self) -> dict[str, Field]:
        size, drawn = (
            (len(self.max_scored),),
            int(self.draws) * (int(self.users.max(initial=0)) + 1),
        )
        count = Field("whole", size, 0, self.max_scored)
        noted = Field("whole", size, 0, self.max_scored * self.draws)
        return dict.fromkeys(("scored", "better", "equal", "lost_ties", "goal"), count) | {
            "identity": Field("text", ()),
            "own": Field("real", size, missing=True),
            "before": noted,
            "earlier": noted,
            "reserved": noted,
            "stratum": Field("whole", size, 0, drawn),
            # A second draw may follow the pilot, so numbers reach up to twice the users.
            "draw_order": Field("whole", size, -2 * drawn, 2 * drawn),
            "pilot": Field("whole", size, 0, int(self.pilots)),
        }

    def _refuse_above(
        self, held: Mapping[str, IntArray], name: str, limit: IntArray, where: str
    ) -> None:
        good = held[name] <= limit
        at = int(np.argmin(good))
        rule = f"{name!r} of {where} must be at most {limit[at]} for target {at + 1}"
        refuse_unless(good.all(), f"{rule}, got {held[name][at]}")

    def _check_draw(self, notes: DesignNotes, where: str) -> None:
        """Refuse a draw of users that contradicts itself."""
        of_users = np.stack([notes.stratum, notes.draw_order, notes.pilot], axis=1)
        first = np.unique(self.users, return_index=True)[1]
        stratum, draw_order, pilot = of_users[first].T
        number = np.unique(self.users, return_inverse=True)[1].reshape(-1)
        rule = f"{where} must hold one draw of users"
        same = np.array_equal(of_users, of_users[first][number])
        refuse_unless(same, f"{rule}, got targets of one user that differ")
        drawn, strata = np.abs(draw_order[draw_order != 0]), stratum[stratum > 0]
        distinct = len(np.unique(drawn)) == len(drawn)
        refuse_unless(distinct, f"{rule}, got two users with one number in the order")
        nobody = ((stratum == 0) & ((draw_order != 0) | (pilot > 0))).any()
        refuse_unless(not nobody, f"{rule}, got users without a stratum")
        numbers = np.unique(strata)
        refuse_unless(len(numbers) == strata.max(initial=0), f"{rule}, got a stratum without users")
        whole = np.array_equal(np.unique(stratum[pilot > 0]), numbers) or not pilot.any()
        refuse_unless(whole, f"{rule}, got a pilot without users of each stratum")


@dataclass(eq=False)
class Checkpoint:
    """A file with the state of one evaluation; ``seconds`` is the minimum time between writes."""

    path: Path
    #: From `identity_of`.
    identity: str
    seconds: float = 30.0
    _written: float = field(default_factory=time.monotonic, repr=False)

    def load(self, reach: Reach) -> State | None:
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
        try:
            return reach.checked(found, f"checkpoint {str(self.path)!r}")
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
        try:
            # Numbers that change all the time are written fast, not small.
            write = partial(write_arrays, arrays=arrays, compression=zipfile.ZIP_STORED)
            write_atomically(self.path, write)
        except FileError as problem:
            warn(f"the checkpoint is out of date, and the evaluation goes on: {problem}")
        self._written = time.monotonic()
