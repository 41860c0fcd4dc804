"""The quickest of the exact ways: full rankings, or certified ones in guided or in random order.

Which way is the quickest depends on what a score costs, alone and in whole rows, and on how good
the guide is. So each way is tried on a few users, drawn at random, and timed. What they found
counts: each user is evaluated once. Ways only differ in time, and in how far beyond K they look.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from unsample._checks import IntArray
from unsample.designs._certified import Certified
from unsample.designs._designs import Design, Exact
from unsample.designs._findings import Findings, Notes
from unsample.designs._guides import Guide
from unsample.designs._run import Execution, run, user_numbers
from unsample.designs._scan import Candidates, Tally
from unsample.designs._scorers import Scorer
from unsample.metrics import Metric

#: The name by which `evaluate` takes it.
AUTO = "auto"
#: Users of the first trial of a way, and of the first full rankings by a matrix product; every
#: further trial has four times as many, so that what a call costs beside its scores weighs less.
_FIRST, _FIRST_OF_PRODUCTS = 1, 16
#: Every way is tried for this part of the time that the quickest would take in all; one that is
#: nearly as quick for longer, which costs little where it is.
_TRIED, _TRIED_IF_NEAR, _NEAR = 0.015, 0.05, 3.0
#: Where full rankings take no longer in all (seconds), nothing else is tried.
_SHORT = 0.2
#: Products that any machine computes in a fraction of a second.
_QUICK = 5e9
#: Certified evaluations that take so many times longer with the guide are not tried without it.
_HOPELESS = 10.0


def run_quickest(
    scorer: Scorer,
    candidates: Candidates,
    guide: Callable[[Candidates], Guide],
    *,
    metrics: Sequence[Metric],
    ties: str,
    rng: int,
    execution: Execution,
) -> tuple[Findings, Tally]:
    """Evaluate all targets exactly, as far as the metrics look, in the way that takes least time.

    ``guide`` makes the guide of some targets. With a checkpoint nothing is timed, so that the same
    call continues: factors are ranked in full, others are certified.
    """
    full, certified = _Way(Exact()), _Way(Certified(), guide)
    ways = [full, certified, _Way(Certified())]
    factors = scorer.factors
    if factors is not None:
        full.users = _FIRST_OF_PRODUCTS
    if factors is not None and len(candidates) * factors.item_factors.size < _QUICK:
        ways = [full]
    elif execution.checkpoint is not None:
        ways = [certified if factors is None else full]
    options: dict[str, Any] = {"metrics": metrics, "ties": ties, "rng": rng, "execution": execution}
    race = _Race(scorer, candidates, ways, options)
    return race.finish(race.choose() if len(ways) > 1 else ways[0])


@dataclass(eq=False)
class _Way:
    """A way to evaluate, and what is known of the time it takes."""

    design: Design
    guide: Callable[[Candidates], Guide] | None = None
    #: Users of the next trial; users, scores and seconds of all trials.
    users: int = _FIRST
    tried: int = 0
    scored: int = 0
    spent: float = 0.0
    #: Seconds for each user: those of a score in the last trial, times the scores of all trials.
    pace: float = 0.0
    #: Whether the guide knows anything.
    guided: bool = False

    def timed(self, users: int, scored: int, seconds: float, most: float) -> None:
        """Take note of a trial.

        A few users may all be cheap ones, so one more is assumed that takes the ``most`` scores.
        """
        self.users *= 4
        self.tried += users
        self.scored += scored
        self.spent += seconds
        self.pace = seconds / scored * (self.scored + most) / (self.tried + 1)


@dataclass(eq=False)
class _Race:
    """Ways on their way: users in random order, some of whom are done."""

    scorer: Scorer
    candidates: Candidates
    ways: list[_Way]
    options: dict[str, Any]
    done: int = 0
    parts: list[tuple[IntArray, Findings, Tally]] = field(default_factory=list)

    def __post_init__(self) -> None:
        users, order = user_numbers(self.candidates, self.options["rng"])
        self.users = len(order)
        turn = np.empty(self.users, dtype=np.int64)
        turn[order] = np.arange(self.users)
        self.turn: IntArray = turn[users]
        self.most = float((self.candidates.others + 1).sum()) / self.users

    def choose(self) -> _Way:
        """Try the ways until it is clear which one is the quickest."""
        full, guided, _ = self.ways
        self._try(full)
        if self._total(full) < _SHORT:
            return full
        self._try(guided)
        if guided.pace > _HOPELESS * full.pace or not guided.guided:
            self.ways.pop()
        else:
            self._try(self.ways[-1])
        while True:
            best = min(self.ways, key=lambda way: way.pace)
            left = {id(way): self._time_to_try(way, best) - way.spent for way in self.ways}
            behind = [way for way in self.ways if way is not best and left[id(way)] > 0.0]
            if not behind or self.done == self.users:
                return best
            # What the best way takes must be known first: more of it is no loss.
            way = best if left[id(best)] > 0.0 else min(behind, key=lambda way: way.spent)
            self._try(way, left[id(way)])

    def _time_to_try(self, way: _Way, best: _Way) -> float:
        near = way is not best and way.pace < _NEAR * best.pace
        return (_TRIED_IF_NEAR if near else _TRIED) * self._total(best)

    def finish(self, way: _Way) -> tuple[Findings, Tally]:
        """Evaluate all that are left in one way, and put everything together."""
        if self.done < self.users:
            self._run(way, self.users)
        return _together(self.parts)

    def _total(self, way: _Way) -> float:
        return way.pace * self.users

    def _try(self, way: _Way, seconds: float = math.inf) -> None:
        """Try a way on more users, for no more than some seconds if they can be told."""
        most = min(way.users, seconds / way.pace) if way.pace > 0.0 else way.users
        last = min(self.done + math.ceil(most), self.users)
        if last == self.done:
            return
        before, start = self.done, time.perf_counter()
        self._run(way, last)
        seconds, scored = time.perf_counter() - start, self.parts[-1][1].scored
        way.timed(last - before, scored, seconds, self.most)

    def _run(self, way: _Way, last: int) -> None:
        rows = np.flatnonzero((self.done <= self.turn) & (self.turn < last))
        some = self.candidates.take(rows)
        guide = None if way.guide is None else way.guide(some)
        way.guided = guide is not None and bool(guide.arrays)
        found, tally = run(way.design, self.scorer, _lean(some), guide=guide, **self.options)
        self.parts.append((rows, found, tally))
        self.done = last


def _lean(some: Candidates) -> Candidates:
    """Return a few targets without what is excluded of others, which would be sorted in vain."""
    from scipy.sparse import csr_array

    if some.exclude is None:
        return some
    users = np.unique(some.users)
    if len(users) > some.exclude.shape[0] // 2:
        return some
    block = some.exclude[users]
    length = np.zeros(some.exclude.shape[0], dtype=np.int64)
    length[users] = np.diff(block.indptr)
    starts = np.concatenate([[0], np.cumsum(length)])
    exclude = csr_array((block.data, block.indices, starts), shape=some.exclude.shape)
    return replace(some, exclude=exclude)


def _together(parts: list[tuple[IntArray, Findings, Tally]]) -> tuple[Findings, Tally]:
    """Return what was found of all targets, in their order; the last part is most of it."""
    order = np.argsort(np.concatenate([rows for rows, _, _ in parts]), kind="stable")

    def join(each: Sequence[Any], name: str) -> Any:
        return np.concatenate([np.asarray(getattr(part, name)) for part in each])[order]

    findings, tallies = [part[1] for part in parts], [part[2] for part in parts]
    tally = Tally(*(join(tallies, each.name) for each in fields(Tally)))
    notes = Notes(*(join([f.notes for f in findings], each.name) for each in fields(Notes)))
    names = ("ranks", "items", "sampled", "lowest", "met", "users")
    arrays: dict[str, Any] = {name: join(findings, name) for name in names}
    whole = replace(
        findings[-1], **arrays, notes=notes, scored=sum(found.scored for found in findings)
    )
    return whole, tally
