"""An evaluation under way: rounds of comparisons, kept in a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from unsample._checks import IntArray
from unsample.designs.ranking import (
    Candidates,
    Counted,
    Progress,
    Scan,
    Tally,
    count_all,
    count_all_on_device,
    refuse_infinite_targets,
)
from unsample.designs.running._checkpoint import Checkpoint, State
from unsample.designs.running._designs import Design, Standing
from unsample.designs.running._scorers import Scorer


@dataclass(frozen=True, eq=False)
class Run:
    """An evaluation under way: rounds of comparisons until the design has enough."""

    scan: Scan
    design: Design
    scorer: Scorer
    ties: str
    batch: int
    workers: int
    device: str | None
    precision: str
    checkpoint: Checkpoint | None
    progress: Progress | None

    def finish(self) -> State:
        """Go from the checkpoint, or from nothing, to the end."""
        total = len(self.scan.others)
        state = self.checkpoint.load() if self.checkpoint is not None else None
        if state is None:
            state = State(Tally.empty(total), np.zeros(total, dtype=np.int64))
        with self._kept(state):
            while True:
                self._reach_goal(state)
                goal = self.design.goal(self._standing(state.tally))
                if not (goal > state.tally.scored).any():
                    break
                state.goal[:] = goal
        return state

    @property
    def others(self) -> IntArray:
        """Return how many candidates each target has beside itself."""
        return self.scan.others

    def _standing(self, tally: Tally) -> Standing:
        lot = np.argsort(self.scan.keys, kind="stable")
        return Standing(tally.scored, self.beaten(tally), self.others, lot)

    def _reach_goal(self, state: State) -> None:
        for asked in self._compare(state):
            state.asked += asked
            if self.checkpoint is not None:
                self.checkpoint.save(state)
            if self.progress is not None:
                done = int(np.count_nonzero(state.tally.scored >= state.goal))
                self.progress(done, len(state.goal), f"{int(state.tally.scored.sum()):,} scored")

    def _compare(self, state: State) -> Iterator[int]:
        if self.scorer.score_all is not None and self._all_or_nothing(state):
            unfinished = np.flatnonzero(state.tally.scored < state.goal)
            return self._count_all(state.tally, unfinished)
        return self.scan.advance(state.tally, state.goal, batch=self.batch, workers=self.workers)

    def _all_or_nothing(self, state: State) -> bool:
        """Return whether every target is either done with all its candidates or untouched."""
        untouched, done = state.tally.scored == 0, state.tally.scored == self.others
        return bool(((state.goal == self.others) & (untouched | done)).all())

    def _count_all(self, tally: Tally, rows: IntArray) -> Iterator[int]:
        """Compare targets with all their candidates at once, from whole rows of scores."""
        if not len(rows):
            return
        candidates = self.scan.candidates.take(rows)
        for part in self._counted(candidates):
            at = rows[part.place]
            refuse_infinite_targets(
                part.own, candidates.users[part.place], candidates.targets[part.place]
            )
            tally.better[at], tally.equal[at] = part.better, part.equal
            tally.scored[at] = self.others[at]
            yield len(at) * candidates.items

    def _counted(self, candidates: Candidates) -> Iterator[Counted]:
        if self.device is not None:
            assert self.scorer.factors is not None
            return count_all_on_device(
                self.scorer.factors, candidates, device=self.device, precision=self.precision
            )
        assert self.scorer.score_all is not None
        return count_all(self.scorer.score_all, candidates)

    def beaten(self, tally: Tally) -> IntArray:
        """Return how often each target is beaten for sure.

        Where ranks must be exact, a tie counts only if it counts wherever the target is placed.
        """
        rule = "optimistic" if self.design.exact and self.ties == "random" else self.ties
        return tally.beaten(rule)

    @contextmanager
    def _kept(self, state: State) -> Iterator[None]:
        """Save the state at the end, and also when something goes wrong on the way."""
        try:
            yield
        finally:
            if self.checkpoint is not None:
                self.checkpoint.save(state, now=True)
