"""The fastest exact evaluation: full rankings, or certified ones in guided or in random order.

Which way is the fastest depends on the cost of a score, alone and in whole rows, and on how good
the guide is. So each way is tried on a few users, drawn at random, and timed. The results of the
trials are kept, so each user is evaluated once. All ways give the same metrics.
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

#: Its name in `evaluate`.
AUTO = "auto"
#: Users of the first trial of a way, and of the first full rankings by a matrix product. Each
#: further trial has four times as many, so that the fixed cost of a call matters less.
_FIRST, _FIRST_OF_PRODUCTS = 1, 16
#: Every way is tried for this part of the total time of the fastest one. A way that is almost as
#: fast (less than so many times slower) is tried for longer, because its trials cost little.
_TRIED, _TRIED_IF_NEAR, _NEAR = 0.015, 0.05, 3.0
#: If full rankings take less than this number of seconds in total, nothing else is tried.
_SHORT = 0.2
#: Number of products that any machine computes in a fraction of a second.
_QUICK = 5e9
#: If guided certified evaluations are this many times slower than full rankings, they are not tried
#: in random order.
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
    """Evaluate all targets so that the metrics are exact, in the way that takes the least time.

    ``guide`` returns the guide of some targets. With a checkpoint nothing is timed, so that the
    same call can continue: factors are ranked in full, all else is certified.
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
    """A way to evaluate, and what is known about its time."""

    design: Design
    guide: Callable[[Candidates], Guide] | None = None
    #: Users of the next trial; users, scores and seconds of all trials.
    users: int = _FIRST
    tried: int = 0
    scored: int = 0
    spent: float = 0.0
    #: Seconds per user: the time of a score in the last trial, times the scores of all trials.
    pace: float = 0.0
    #: Whether the guide is not empty.
    guided: bool = False

    def timed(self, users: int, scored: int, seconds: float, most: float) -> None:
        """Record a trial.

        Few users may all be cheap by chance, so one more is assumed that takes ``most`` scores.
        """
        self.users *= 4
        self.tried += users
        self.scored += scored
        self.spent += seconds
        self.pace = seconds / scored * (self.scored + most) / (self.tried + 1)


@dataclass(eq=False)
class _Race:
    """The trials of several ways; users come in random order, and some of them are done."""

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
        """Try the ways until it is clear which one is the fastest."""
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
            # The time of the best way must be known first. To try it longer costs nothing.
            way = best if left[id(best)] > 0.0 else min(behind, key=lambda way: way.spent)
            self._try(way, left[id(way)])

    def _time_to_try(self, way: _Way, best: _Way) -> float:
        near = way is not best and way.pace < _NEAR * best.pace
        return (_TRIED_IF_NEAR if near else _TRIED) * self._total(best)

    def finish(self, way: _Way) -> tuple[Findings, Tally]:
        """Evaluate all other users in one way, and join the results."""
        if self.done < self.users:
            self._run(way, self.users)
        return _together(self.parts)

    def _total(self, way: _Way) -> float:
        return way.pace * self.users

    def _try(self, way: _Way, seconds: float = math.inf) -> None:
        """Try a way on more users, for at most ``seconds`` if its time is known."""
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
    """Return targets without the excluded items of other users, which would take time to sort."""
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
    """Return the results of all targets, in their order; everything else is of the last part."""
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
