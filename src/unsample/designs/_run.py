"""A design run on a scorer, in rounds of comparisons that a checkpoint keeps."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._checks import FloatArray, IntArray, Seed, check_integer
from unsample._files import check_writable, write_atomically
from unsample._progress import Progress
from unsample.designs._designs import Design, Exact
from unsample.designs._findings import Findings, Notes, Situation
from unsample.designs._guides import Guide, GuidedOrders
from unsample.designs._orders import target_keys
from unsample.designs._ranking import check_device, count_all
from unsample.designs._scan import Candidates, Scan, Tally, as_key
from unsample.designs._scorers import Scorer, refuse_infinite_targets
from unsample.errors import CheckpointError, FileError, InputError, ScoreError
from unsample.metrics import Metric

_FORMAT = "unsample.Checkpoint/6"
_TALLY = tuple(each.name for each in fields(Tally))
_NOTES = tuple(each.name for each in fields(Notes))
#: The largest relative difference between scores of the interrupted and of the resumed run.
_SAME_SCORES = 1e-3
#: The largest difference between scores of two calls that counts as rounding, relative to their
#: spread.
_ROUNDING = 1e-3


@dataclass(eq=False)
class State:
    """The state of an evaluation: ``goal`` is that of the round, ``asked`` the number of scores."""

    tally: Tally
    notes: Notes
    goal: IntArray
    asked: int = 0

    @classmethod
    def empty(cls, targets: int) -> State:
        return cls(Tally.empty(targets), Notes.empty(targets), np.zeros(targets, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Execution:
    """How the work is done. This changes no result."""

    batch: int = 1 << 17
    workers: int = 1
    device: str | None = None
    precision: str = "float32"
    checkpoint: str | os.PathLike[str] | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_integer("batch", self.batch, minimum=1)
        check_integer("workers", self.workers, minimum=1)


_AS_USUAL = Execution()


def run(
    design: Design,
    scorer: Scorer,
    candidates: Candidates,
    *,
    metrics: Sequence[Metric] = (),
    budget: int | None = None,
    ties: str = "random",
    rng: Seed = 0,
    guide: Guide | None = None,
    execution: Execution = _AS_USUAL,
) -> tuple[Findings, Tally]:
    """Run a design on a scorer; return its findings, and the counts of all comparisons.

    Designs that can be guided take items in the order of the ``guide``, if there is one.

    `Fixed`, `Certified` and `Exact` treat every target on its own. So ranks are the same if the
    targets are evaluated in several parts, for instance on several machines.
    """
    _check_device(design, scorer, execution.device)
    seed, others, relevant = as_key(rng), candidates.others, candidates.relevant
    fitted, allowed, checked = design.fit(metrics, others, budget, relevant=relevant)
    keys = target_keys(seed, candidates.users, candidates.targets)
    orders = GuidedOrders(candidates, keys, (guide if fitted.guided else None) or Guide())
    scan = Scan(scorer.score or scorer.chosen, orders, fitted.with_replacement)
    probe = Probe.ask(scan, checked)
    state, place = State.empty(len(others)), None
    if execution.checkpoint is not None:
        identity = _identity(fitted, candidates, orders.guide, allowed, ties, seed)
        place = Checkpoint(Path(execution.checkpoint), identity, probe.scores)
        state = place.load() or state
    work = _Run(scan, scorer, probe, state, execution, place)
    # Exact ranks: a tie counts as beating the target only if it does so under every outcome.
    open_ties = fitted.certifies and (ties == "random" or relevant > 1)
    for_sure = "optimistic" if open_ties else ties
    tally, numbers = state.tally, _user_numbers(candidates, seed)
    try:
        while True:
            work.reach_goal()
            beaten, own = tally.beaten(for_sure), tally.own
            now = Situation(tally.scored, beaten, others, allowed, *numbers, state.notes, own)
            step = fitted.step(now)
            state.notes = step.notes
            if not (step.goal > tally.scored).any():
                break
            state.goal[:] = step.goal
    finally:  # also after an error
        if place is not None:
            place.save(state, now=True)
    above = tally.beaten(ties)
    # Places among all ties come from keys, the same for every model.
    if ties == "random":
        above = tally.better + np.floor(scan.tie_place() * (tally.equal + 1)).astype(np.int64)
    if fitted.certifies and relevant > 1:
        above = _in_one_list(above, tally, candidates.users, scan.tie_place(), ties)
    found = fitted.findings(
        1 + tally.beaten(for_sure),
        1 + above,
        tally.scored,
        others,
        scored=state.asked + len(probe.rows),
        notes=state.notes,
        users=candidates.users,
        filtered=candidates.filtered,
    )
    return found, tally


def _check_device(design: Design, scorer: Scorer, device: str | None) -> None:
    if device is not None and not isinstance(design, Exact):
        raise InputError(
            f"device must be left out unless design='exact' ranks whole rows, got {device!r} with "
            f"design={design.name!r}; a torch module is called on its own device"
        )
    check_device(scorer, device)


def _user_numbers(candidates: Candidates, seed: int) -> tuple[IntArray, IntArray]:
    """Return the number of each target's user, from 0, and a random order of these numbers."""
    different, users = np.unique(candidates.users, return_inverse=True)
    # A key of the user only: ``items`` is no target.
    keys = target_keys(seed, different, np.full(len(different), candidates.items))
    return users.reshape(-1), np.argsort(keys, kind="stable")


def _in_one_list(
    above: IntArray, tally: Tally, users: IntArray, chance: FloatArray, ties: str
) -> IntArray:
    """Return how many items are above each target if targets of one user may tie.

    Such targets must have different places: one after the other is put into the list of ties.
    """
    order = np.lexsort([chance, tally.own, users])
    same = (np.diff(users[order]) == 0) & (np.diff(tally.own[order]) == 0)
    if not same.any():
        return above
    placed = above.copy()
    for group in np.split(order, np.flatnonzero(~same) + 1):
        if len(group) == 1:
            continue
        others = int(tally.equal[group[0]]) - (len(group) - 1)
        before: list[int] = []  # the places of the targets that are in the list
        for number, target in enumerate(group.tolist()):
            last = others + number
            free = {"optimistic": number, "pessimistic": last}.get(ties)
            place = int(chance[target] * (last + 1)) if free is None else free
            before = [*(each + (each >= place) for each in before), place]
        placed[group] = tally.better[group] + before
    return placed


@dataclass(frozen=True, eq=False)
class _Run:
    """A run: a scan, its state, and how both are taken from one goal to the next."""

    scan: Scan
    scorer: Scorer
    probe: Probe
    state: State
    execution: Execution
    place: Checkpoint | None

    def reach_goal(self) -> None:
        state = self.state
        for asked in self._compare(state.tally, state.goal):
            state.asked += asked
            self.probe.compare(state.tally.own)
            if self.place is not None:
                self.place.save(state)
            if self.execution.progress is not None:
                done = int(np.count_nonzero(state.tally.scored >= state.goal))
                note = f"{int(state.tally.scored.sum()):,} scored"
                self.execution.progress(done, len(state.goal), note)

    def _compare(self, tally: Tally, goal: IntArray) -> Iterator[int]:
        """Compare targets with items; with whole rows at once if all items are needed."""
        execution, candidates = self.execution, self.scan.candidates
        rows = np.flatnonzero(tally.scored < goal)
        if not len(rows):
            return
        whole = (goal == candidates.others).all() and not tally.scored[rows].any()
        if self.scorer.score_all is None or not whole:
            batch, workers = execution.batch, execution.workers
            yield from self.scan.advance(tally, goal, batch=batch, workers=workers)
            return
        some = candidates.take(rows)
        parts = count_all(self.scorer, some, execution.device, execution.precision)
        for place, better, equal, own in parts:
            refuse_infinite_targets(own, some.users[place], some.targets[place])
            met, none = some.others[place], np.zeros_like(better)
            tally.add(rows[place], Tally(met, better, equal, none, none, own.astype(np.float64)))
            yield int(met.sum()) + len(met)


def _identity(
    design: Design,
    candidates: Candidates,
    guide: Guide,
    allowed: int | None,
    ties: str,
    seed: int,
) -> str:
    """Return a hash of everything that determines the results, except the scores."""
    settings = {
        "design": design.name,
        **asdict(design),
        # An exact design only fails if its budget is too small, so a larger one may continue.
        "allowed": None if design.exact else allowed,
        "ties": ties,
        "seed": seed,
        "items": candidates.items,
        "filtered": candidates.filtered,
    }
    arrays = [candidates.users, candidates.targets, guide.order, guide.lists, guide.listed]
    if candidates.exclude is not None:
        arrays += [candidates.exclude.indptr, candidates.exclude.indices]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for array in arrays:
        if array is None:
            digest.update(b"none")
        else:
            digest.update(f"{array.dtype}:{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Probe:
    """The scores of a few targets, asked for first. Later calls must give the same scores."""

    rows: IntArray
    scores: FloatArray

    @classmethod
    def ask(cls, scan: Scan, targets: int) -> Probe:
        rows = np.unique(np.linspace(0, len(scan.keys) - 1, targets).astype(np.int64))
        return cls(rows, scan.own_scores(rows) if targets else np.empty(0))

    def compare(self, own: FloatArray) -> None:
        """Refuse a scorer that is not deterministic; ``own`` is NaN for scores not yet known."""
        again = own[self.rows]
        known = np.isfinite(again) & np.isfinite(self.scores)
        if not known.any():
            return
        first, second = self.scores[known], again[known]
        largest = np.abs(first).max()
        allowed = _ROUNDING * np.ptp(first) + 8 * np.finfo(np.float32).eps * largest
        moved = np.abs(first - second) > allowed
        if moved.any():
            where = int(np.argmax(moved))
            raise ScoreError(
                f"scores must be the same when asked for again, got {int(moved.sum())} of "
                f"{moved.size} that are not, the first {first[where]:.6g} and then "
                f"{second[where]:.6g}; fix the random seed of the model, or switch off what is "
                "random (dropout: model.eval()); no score may depend on the other items of a call"
            )


@dataclass(eq=False)
class Checkpoint:
    """A file with the state of one evaluation; ``seconds`` is the least time between writes.

    ``identity`` is a hash of everything that determines the results except the scores. ``probe``
    are a few scores, to detect another model.
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
        notes = Notes(*(found[each] for each in _NOTES))
        return State(tally, notes, found["goal"], int(found["asked"]))

    def save(self, state: State, *, now: bool = False) -> None:
        """Write the state if the last write is long enough ago, or ``now``."""
        if not now and time.monotonic() - self._written < self.seconds:
            return
        arrays = {
            "format": np.array(_FORMAT),
            "identity": np.array(self.identity),
            "probe": self.probe,
            "goal": state.goal,
            "asked": np.array(state.asked),
            **{name: getattr(state.tally, name) for name in _TALLY},
            **{name: getattr(state.notes, name) for name in _NOTES},
        }
        write_atomically(self.path, lambda file: np.savez(file, allow_pickle=False, **arrays))
        self._written = time.monotonic()

    def _refuse_another(self, found: Mapping[str, npt.NDArray[Any]]) -> None:
        """Refuse the state of another evaluation."""
        advice = "delete it to start anew"
        missing = {"identity", "probe", "goal", "asked", *_TALLY, *_NOTES} - found.keys()
        if str(found.get("format")) != _FORMAT or missing:
            rule, what = f"hold {_FORMAT}", "is another file or a damaged one"
        elif str(found["identity"]) != self.identity:
            rule = "belong to this evaluation"
            what = (
                "was made with other targets, items, excluded pairs, design, budget, guide, ties "
                "or rng"
            )
        elif not self._is_same(found["probe"]):
            rule, what = "belong to this scorer", "was made by one that gives other scores"
            advice = "use one path for each model"
        else:
            return
        raise CheckpointError(
            f"checkpoint must {rule}, got {str(self.path)!r}, which {what}; pass another path, or "
            f"{advice}"
        )

    def _is_same(self, probe: FloatArray) -> bool:
        close = probe.shape == self.probe.shape
        return close and np.allclose(probe, self.probe, rtol=_SAME_SCORES, atol=0)
