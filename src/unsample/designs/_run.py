"""A design run on a scorer: rounds of comparisons, kept in a checkpoint, the same however cut."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._checks import FloatArray, IntArray, Seed, check_integer
from unsample._files import check_writable, write_atomically
from unsample._progress import Progress
from unsample.designs._certified import Certified
from unsample.designs._designs import Design
from unsample.designs._device_rounds import Certify
from unsample.designs._findings import Findings, Notes, Situation
from unsample.designs._guides import Guide, GuidedOrders
from unsample.designs._learned import Lesson
from unsample.designs._orders import Orders, target_keys
from unsample.designs._ranking import count_all
from unsample.designs._rounds import fused_certify, is_fused, quickest_advance
from unsample.designs._scan import Candidates, Scan, Tally, as_key
from unsample.designs._scorers import Scorer, refuse_infinite_targets
from unsample.designs._shortlists import Shortlists
from unsample.errors import CheckpointError, FileError, ScoreError
from unsample.metrics import Metric

_FORMAT = "unsample.Checkpoint/4"
_TALLY = tuple(each.name for each in fields(Tally))
_NOTES = tuple(each.name for each in fields(Notes))
#: Scores of a resumed model may differ from those of the interrupted run by this much, relatively.
_SAME_SCORES = 1e-3
#: How far scores of two calls may differ, as a part of their spread, and still be rounding.
_ROUNDING = 1e-3


@dataclass(eq=False)
class State:
    """Where an evaluation stands: tally, notes, the goal of the round, the scores asked for."""

    tally: Tally
    notes: Notes
    goal: IntArray
    asked: int = 0

    @classmethod
    def empty(cls, targets: int) -> State:
        """Return where every evaluation begins."""
        return cls(Tally.empty(targets), Notes.empty(targets), np.zeros(targets, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Execution:
    """How the work is done, which changes no number."""

    batch: int = 1 << 17
    workers: int = 1
    device: str | None = None
    precision: str = "float32"
    checkpoint: str | os.PathLike[str] | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_integer("batch", self.batch, minimum=1)
        check_integer("workers", self.workers, minimum=1)


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
    shortlists: Shortlists | None = None,
    execution: Execution | None = None,
) -> tuple[Findings, Tally]:
    """Run a design on a scorer; return what it found, and what was counted on the way.

    Designs that can be guided meet items in the order of the ``guide``, if there is one. What is
    scored until users are drawn is noted in ``shortlists``.

    Targets ranked in parts (on several machines) have the ranks that they have together, where the
    design treats each for itself, as `Fixed`, `Certified` and `Exact` do.
    """
    seed, others = as_key(rng), candidates.others
    relevant = candidates.relevant
    fitted, allowed, checked = design.fit(metrics, others, budget, relevant=relevant)
    keys = target_keys(seed, candidates.users, candidates.targets)
    # Whom chance may stop must meet what is on no list in random order, and break ties on the way.
    by_chance = getattr(fitted, "reciprocal", False)
    orders = lesson = None
    if guide is not None and fitted.guided:
        guide = guide.then_at_random if by_chance else guide
        # Where whole rows are fused, a lesson costs more than it saves.
        if not guide.arrays and not is_fused(scorer.score):
            lesson = Lesson.of(candidates, keys, seed, allowed, fitted.least(others))
        orders = GuidedOrders(candidates, keys, guide) if lesson is None else lesson.orders
    scan = Scan(
        scorer.score or scorer.chosen,
        candidates,
        keys,
        fitted.with_replacement,
        orders,
        shortlists,
        lesson,
    )
    probe = Probe.ask(scan, checked)
    empty = State.empty(len(others))
    work = _Run(scan, scorer, probe, empty, execution or Execution(), fitted, allowed)
    if work.execution.checkpoint is not None:
        known = {} if orders is None else orders.guide.arrays
        if shortlists is not None:
            known |= {"shortlists": np.array(shortlists.items.shape)}
        identity = _identity(fitted, candidates, known, allowed=allowed, ties=ties, seed=seed)
        work.keep_in(Path(work.execution.checkpoint), identity, shortlists, lesson)
    # Where ranks must be exact, a tie counts only if it counts wherever the target is placed.
    open_ties = fitted.certifies and not by_chance and (ties == "random" or relevant > 1)
    for_sure = "optimistic" if open_ties else ties
    state, tally = work.state, work.state.tally
    users = user_numbers(candidates, seed)
    try:
        if lesson is not None:
            work.learn(lesson)
        while True:
            work.reach_goal()
            now = work.situation(tally.beaten(for_sure), *users)
            step = fitted.step(now)
            state.notes = step.notes
            if shortlists is not None:
                shortlists.open = not state.notes.turn.any()
            if not (step.goal > tally.scored).any():
                break
            state.goal[:] = step.goal
    finally:  # also when something goes wrong on the way
        if work.place is not None:
            work.place.save(state, now=True)
    above = tally.beaten(ties)
    if ties == "random" and not by_chance:  # of full counts: keyed, the same for every model
        above = tally.better + np.floor(scan.tie_place() * (tally.equal + 1)).astype(np.int64)
    if fitted.certifies and relevant > 1:
        above = _in_one_list(above, tally, candidates.users, scan.tie_place(), ties)
    found = fitted.findings(
        1 + tally.beaten(for_sure),
        tally.scored == others,
        1 + above,
        tally.scored,
        others,
        scored=state.asked + len(probe.rows),
        notes=state.notes,
        users=candidates.users,
        filtered=candidates.filtered,
    )
    return found, tally


def user_numbers(candidates: Candidates, seed: int) -> tuple[IntArray, IntArray]:
    """Return the number of each target's user, from 0, and a random order of these numbers."""
    different, users = np.unique(candidates.users, return_inverse=True)
    # A key of the user alone: no target has the number of all items.
    keys = target_keys(seed, different, np.full(len(different), candidates.items))
    return users.reshape(-1), np.argsort(keys, kind="stable")


def _in_one_list(
    above: IntArray, tally: Tally, users: IntArray, chance: FloatArray, ties: str
) -> IntArray:
    """Return how many items stand above each target where targets of one user may tie.

    No two of them can have one place: each is put in turn into the list of what ties.
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
        before: list[int] = []  # the places of targets among those put in so far
        for number, target in enumerate(group.tolist()):
            last = others + number
            free = {"optimistic": number, "pessimistic": last}.get(ties)
            place = int(chance[target] * (last + 1)) if free is None else free
            before = [*(each + (each >= place) for each in before), place]
        placed[group] = tally.better[group] + before
    return placed


@dataclass(eq=False)
class _Run:
    """The targets of a scan on their way from one goal to the next."""

    scan: Scan
    scorer: Scorer
    probe: Probe
    state: State
    execution: Execution
    design: Design
    allowed: int | None
    place: Checkpoint | None = None

    def __post_init__(self) -> None:
        self.advance = quickest_advance(self.scan, self.scorer)

    def keep_in(
        self, path: Path, identity: str, shortlists: Shortlists | None, lesson: Lesson | None
    ) -> None:
        """Keep the state in a file, and go on with what is there already."""
        self.place = Checkpoint(path, identity, self.probe.scores, shortlists, lesson)
        self.state = self.place.load() or self.state

    def learn(self, lesson: Lesson) -> None:
        """Let those who teach meet their items; then targets meet items as it was learned."""
        goal = np.maximum(self.state.goal, lesson.goal)
        self.state.goal[:] = lesson.goal
        self.reach_goal()
        self.state.goal[:] = goal
        self.scan = replace(self.scan, guided=lesson.learned, learner=None)
        self.advance = quickest_advance(self.scan, self.scorer)

    def situation(self, beaten: IntArray, users: IntArray, user_order: IntArray) -> Situation:
        """Return what the design sees between two rounds."""
        scan, tally, others = self.scan, self.state.tally, self.scan.candidates.others
        listed = np.zeros_like(others)
        if isinstance(scan.guided, GuidedOrders):
            ordered = scan.guided.guide.order is not None
            listed = others if ordered else scan.guided.listed_others
        return Situation(
            tally.scored, beaten, others, scan.shuffle, self.allowed, users, user_order,
            self.state.notes, tally.own, listed, Orders(others, scan.keys).chance(),
        )  # fmt: skip

    def reach_goal(self) -> None:
        """Compare targets with items up to the goal of the state."""
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

    @property
    def certifying(self) -> int | None:
        """Return the K up to which ranks must be known, where it may go beyond at will."""
        free = isinstance(self.design, Certified) and self.allowed is None
        return getattr(self.design, "k", None) if free else None

    def _certify(self, certify: Certify, rows: IntArray) -> Iterator[int]:
        """Let targets that met no item yet meet all that they need."""
        tally, candidates = self.state.tally, self.scan.candidates
        assert self.certifying is not None
        for at, part in certify(rows, self.certifying):
            refuse_infinite_targets(part.own, candidates.users[at], candidates.targets[at])
            tally.add(at, part)
            self.state.goal[at] = tally.scored[at]
            yield int(part.scored.sum()) + len(at)

    def _compare(self, tally: Tally, goal: IntArray) -> Iterator[int]:
        """Compare targets with items, with all of them at once where that is quicker."""
        execution, others = self.execution, self.scan.candidates.others
        rows = np.flatnonzero(tally.scored < goal)
        if not len(rows):
            return
        certify = None if self.certifying is None else fused_certify(self.scan)
        if certify is not None:
            yield from self._certify(certify, rows[tally.scored[rows] == 0])
            rows = np.flatnonzero(tally.scored < goal)
        untouched = ((goal == others) & (tally.scored == 0))[rows].all()
        if self.scorer.score_all is None or not untouched or not (goal == others).all():
            batch, workers = execution.batch, execution.workers
            yield from self.advance(tally, goal, batch=batch, workers=workers)
            return
        candidates = self.scan.candidates.take(rows)
        parts = count_all(self.scorer, candidates, execution.device, execution.precision)
        for place, better, equal, own in parts:
            refuse_infinite_targets(own, candidates.users[place], candidates.targets[place])
            at = rows[place]
            tally.better[at], tally.equal[at] = better, equal
            tally.scored[at], tally.own[at] = others[at], own
            # Whole rows hold excluded items, too, which no target is compared with.
            yield int((others[at] + 1).sum())


def _identity(
    design: Design,
    candidates: Candidates,
    guide: Mapping[str, npt.NDArray[Any]],
    *,
    allowed: int | None,
    ties: str,
    seed: int,
) -> str:
    """Return a hash of everything that decides the numbers, except the scores."""
    settings = {
        "design": design.name,
        **asdict(design),
        # More of it continues where less ended, if it only says when to give up.
        "allowed": None if design.exact else allowed,
        "ties": ties,
        "seed": seed,
        "items": candidates.items,
        "filtered": candidates.filtered,
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "users": candidates.users,
        "targets": candidates.targets,
        **guide,
    }
    if candidates.exclude is not None:
        arrays |= {"starts": candidates.exclude.indptr, "exclude": candidates.exclude.indices}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for name, array in arrays.items():
        digest.update(f"{name}:{array.dtype}:{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Probe:
    """Own scores of a few targets, asked for before all else; later they must come out again."""

    rows: IntArray
    scores: FloatArray

    @classmethod
    def ask(cls, scan: Scan, targets: int) -> Probe:
        """Ask for the scores of targets that stand far from each other."""
        rows = np.unique(np.linspace(0, len(scan.keys) - 1, targets).astype(np.int64))
        return cls(rows, scan.own_scores(rows) if targets else np.empty(0))

    def compare(self, own: FloatArray) -> None:
        """Refuse a scorer that contradicts itself; ``own`` is NaN where nothing is known yet."""
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
                f"{second[where]:.6g}; fix the seed of what is random in the model, or switch "
                "it off (dropout: model.eval()), and let no score depend on the items asked with it"
            )


@dataclass(eq=False)
class Checkpoint:
    """A file that holds the state of one evaluation; ``seconds`` is the least time between writes.

    ``identity`` is a hash of everything that decides the numbers except the scores; ``probe``
    are a few scores, by which another model is recognised; a ``lesson`` is kept with the state.
    """

    path: Path
    identity: str
    probe: FloatArray
    shortlists: Shortlists | None = None
    lesson: Lesson | None = None
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
        except (OSError, FileError) as problem:
            raise CheckpointError(f"{problem}; delete it to start anew") from problem
        self._check(found)
        if self.lesson is not None:
            self.lesson.restore(found)
        tally = Tally(*(found[each].astype(found[each].dtype.kind + "8") for each in _TALLY))
        notes = Notes(*(found[each].astype(np.int64) for each in _NOTES))
        if self.shortlists is not None:
            self.shortlists.restore(found, drawn=bool(notes.turn.any()))
        return State(tally, notes, found["goal"].astype(np.int64), int(found["asked"]))

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
            **{name: getattr(state.notes, name) for name in _NOTES},
            **self._more,
        }
        write_atomically(self.path, lambda file: np.savez(file, allow_pickle=False, **arrays))
        self._written = time.monotonic()

    @property
    def _more(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is kept beside the state."""
        lists = {} if self.shortlists is None else self.shortlists.arrays
        return lists if self.lesson is None else lists | self.lesson.arrays

    def _check(self, found: Mapping[str, npt.NDArray[Any]]) -> None:
        """Refuse another evaluation's state, and one that no evaluation leaves."""
        anew = "delete it to start anew"
        if not _is_whole(found, self._more):
            self._refuse(f"hold {_FORMAT}", "is another file or a damaged one", anew)
        if str(found["identity"]) != self.identity:
            self._refuse(
                "belong to this evaluation",
                "was made with other targets, items, excluded pairs, design, budget, guide, ties "
                "or rng",
                anew,
            )
        probe = found["probe"]
        alike = probe.dtype == self.probe.dtype and probe.shape == self.probe.shape
        if not alike or not np.allclose(probe, self.probe, rtol=_SAME_SCORES, atol=0):
            self._refuse(
                "belong to this scorer",
                "was made by one that gives other scores",
                "use one path for each model",
            )

    def _refuse(self, rule: str, what: str, advice: str) -> None:
        raise CheckpointError(
            f"checkpoint must {rule}, got {str(self.path)!r}, which {what}; pass another path, or "
            f"{advice}"
        )


def _is_whole(found: Mapping[str, npt.NDArray[Any]], more: Mapping[str, npt.NDArray[Any]]) -> bool:
    """Return whether every array of a state is there, as numbers of one shape."""
    if {"format", "identity", "probe", "goal", "asked", *_NOTES, *_TALLY, *more} - set(found):
        return False
    arrays = [found[name] for name in ("goal", *_NOTES, *_TALLY)]
    kinds = "".join(array.dtype.kind for array in (found["asked"], *arrays))
    return (
        str(found["format"]) == _FORMAT
        and kinds == "i" * (len(kinds) - 1) + "f"
        and {array.shape for array in arrays} == {(found["goal"].size,)}
        and found["asked"].shape == ()
        and all(
            (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            for name, array in more.items()
        )
    )
