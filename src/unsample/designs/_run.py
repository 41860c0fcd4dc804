"""A design run on a scorer: rounds of comparisons, kept in a checkpoint, the same however cut."""

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

from unsample._checks import FloatArray, IntArray, Seed, check_integer
from unsample._files import check_writable, read_arrays, write_atomically
from unsample._progress import Progress
from unsample.designs._designs import Allowance, Design, Findings, Situation
from unsample.designs._ranking import count_all
from unsample.designs._scan import Candidates, Scan, Tally, as_key
from unsample.designs._scorers import Scorer, refuse_infinite_targets
from unsample.errors import CheckpointError, FileError, ScoreError
from unsample.metrics import Metric

_FORMAT = "unsample.Checkpoint/2"
_TALLY = tuple(each.name for each in fields(Tally))
#: Scores of a resumed model may differ from those of the interrupted run by this much, relatively.
_SAME_SCORES = 1e-3
#: How far scores of two calls may differ, as a part of their spread, and still be rounding.
_ROUNDING = 1e-3


@dataclass(eq=False)
class State:
    """Where an evaluation stands: the tally, the goal of the round, and the scores asked for."""

    tally: Tally
    goal: IntArray
    asked: int = 0


@dataclass(frozen=True, eq=False)
class Manner:
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
    manner: Manner | None = None,
) -> tuple[Findings, Tally]:
    """Run a design on a scorer; return what it found, and what was counted on the way.

    Targets ranked in parts (on several machines) have the ranks that they have together, where the
    design treats each for itself, as `Fixed`, `Certified` and `Exact` do.
    """
    seed = as_key(rng)
    fitted, allowance = design.fit(metrics, candidates.others, budget)
    scan = Scan.prepare(scorer.chosen, candidates, rng=seed, replacement=fitted.with_replacement)
    return _Run(scan, scorer, fitted, allowance, ties, seed, manner or Manner()).finish()


@dataclass(frozen=True, eq=False)
class _Run:
    """A fitted design on the targets of a scan, whose keys were made from ``seed``."""

    scan: Scan
    scorer: Scorer
    design: Design
    allowance: Allowance
    ties: str
    seed: int
    manner: Manner

    def finish(self) -> tuple[Findings, Tally]:
        """Go from the checkpoint, or from nothing, to the end."""
        probe = Probe.ask(self.scan, self.allowance.checked)
        place = self._checkpoint(probe)
        total = len(self.scan.keys)
        state = None if place is None else place.load()
        if state is None:
            state = State(Tally.empty(total), np.zeros(total, dtype=np.int64))
        try:
            while True:
                self._reach_goal(state, probe, place)
                goal = self.design.goal(self._situation(state.tally))
                if not (goal > state.tally.scored).any():
                    break
                state.goal[:] = goal
        finally:  # also when something goes wrong on the way
            if place is not None:
                place.save(state, now=True)
        return self._findings(state, len(probe.rows)), state.tally

    def _findings(self, state: State, checked: int) -> Findings:
        tally, others = state.tally, self.scan.candidates.others
        return self.design.findings(
            1 + self._beaten(tally),
            tally.scored == others,
            _full_ranks(tally, self.ties, self.scan),
            tally.scored,
            others,
            scored=state.asked + checked,
            users=self.scan.candidates.users,
        )

    def _situation(self, tally: Tally) -> Situation:
        return Situation(
            tally.scored,
            self._beaten(tally),
            self.scan.candidates.others,
            self.scan.shuffle,
            self.allowance.items,
        )

    def _beaten(self, tally: Tally) -> IntArray:
        """Return how often each target is beaten for sure.

        Where ranks must be exact, a tie counts only if it counts wherever the target is placed.
        """
        return tally.beaten(
            "optimistic" if self.design.exact and self.ties == "random" else self.ties
        )

    def _reach_goal(self, state: State, probe: Probe, place: Checkpoint | None) -> None:
        for asked in self._compare(state):
            state.asked += asked
            probe.compare(state.tally.own)
            if place is not None:
                place.save(state)
            if self.manner.progress is not None:
                done = int(np.count_nonzero(state.tally.scored >= state.goal))
                note = f"{int(state.tally.scored.sum()):,} scored"
                self.manner.progress(done, len(state.goal), note)

    def _compare(self, state: State) -> Iterator[int]:
        """Compare targets with items up to the goal; with all at once where that is quicker."""
        tally, others = state.tally, self.scan.candidates.others
        untouched, done = tally.scored == 0, tally.scored == others
        if self.scorer.score_all is None or not ((state.goal == others) & (untouched | done)).all():
            yield from self.scan.advance(
                tally, state.goal, batch=self.manner.batch, workers=self.manner.workers
            )
            return
        rows = np.flatnonzero(~done)
        if not len(rows):
            return
        candidates = self.scan.candidates.take(rows)
        parts = count_all(self.scorer, candidates, self.manner.device, self.manner.precision)
        for part in parts:
            at = rows[part.place]
            users, targets = candidates.users[part.place], candidates.targets[part.place]
            refuse_infinite_targets(part.own, users, targets)
            tally.better[at], tally.equal[at] = part.better, part.equal
            tally.scored[at], tally.own[at] = others[at], part.own
            # Whole rows hold excluded items, too, which no target is compared with.
            yield int((others[at] + 1).sum())

    def _checkpoint(self, probe: Probe) -> Checkpoint | None:
        if self.manner.checkpoint is None:
            return None
        return Checkpoint(Path(self.manner.checkpoint), self._identity(), probe.scores)

    def _identity(self) -> str:
        """Return a hash of everything that decides the numbers, except the scores."""
        candidates = self.scan.candidates
        settings = {
            "design": self.design.name,
            **asdict(self.design),
            # More of it continues where less ended, if it only says when to give up.
            "allowed": None if self.design.exact else self.allowance.items,
            "ties": self.ties,
            "seed": self.seed,
            "items": candidates.items,
        }
        arrays: dict[str, npt.NDArray[Any]] = {
            "users": candidates.users,
            "targets": candidates.targets,
        }
        if candidates.exclude is not None:
            arrays["starts"] = candidates.exclude.indptr
            arrays["exclude"] = candidates.exclude.indices
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for name, array in arrays.items():
            digest.update(f"{name}:{array.dtype}:{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def _full_ranks(tally: Tally, ties: str, scan: Scan) -> IntArray:
    """Return whole ranks from full counts; random ties are keyed, the same for every model."""
    if ties == "optimistic":
        return 1 + tally.better
    if ties == "pessimistic":
        return 1 + tally.better + tally.equal
    above = np.floor(scan.tie_place() * (tally.equal + 1)).astype(np.int64)
    return np.asarray(1 + tally.better + above)


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
        name = f"checkpoint {str(self.path)!r}"
        try:
            with self.path.open("rb") as file:
                found = read_arrays(file, name)
        except OSError as problem:
            raise FileError(f"cannot read {name}: {problem}") from problem
        except FileError as problem:
            raise CheckpointError(f"{problem}; delete it to start anew") from problem
        self._check(found)
        tally = Tally(*(found[each].astype(found[each].dtype.kind + "8") for each in _TALLY))
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
        write_atomically(self.path, lambda file: np.savez(file, allow_pickle=False, **arrays))
        self._written = time.monotonic()

    def _check(self, found: Mapping[str, npt.NDArray[Any]]) -> None:
        """Refuse another evaluation's state, and one that no evaluation leaves."""
        missing = {"format", "identity", "probe", "goal", "asked", *_TALLY} - set(found)
        if missing or str(found["format"]) != _FORMAT:
            self._refuse(
                f"hold {_FORMAT}", "is another file or a damaged one", "delete it to start anew"
            )
        if str(found["identity"]) != self.identity:
            self._refuse(
                "belong to this evaluation",
                "was made with other targets, items, excluded pairs, design, budget, ties or rng",
                "delete it to start anew",
            )
        probe = found["probe"]
        alike = probe.dtype == self.probe.dtype and probe.shape == self.probe.shape
        if not alike or not np.allclose(probe, self.probe, rtol=_SAME_SCORES, atol=0):
            self._refuse(
                "belong to this scorer",
                "was made by one that gives other scores",
                "use one path for each model",
            )
        arrays = [found[name] for name in ("goal", *_TALLY)]
        kinds = "".join(array.dtype.kind for array in (found["asked"], *arrays))
        shapes = {array.shape for array in arrays}
        if kinds != "i" * (len(kinds) - 1) + "f" or shapes != {(found["goal"].size,)}:
            self._refuse(f"hold {_FORMAT}", "is damaged", "delete it to start anew")

    def _refuse(self, rule: str, what: str, advice: str) -> None:
        raise CheckpointError(
            f"checkpoint must {rule}, got {str(self.path)!r}, which {what}; pass another path, or "
            f"{advice}"
        )
