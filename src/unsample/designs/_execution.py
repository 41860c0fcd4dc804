"""A design run on scorers, in rounds of comparisons that a checkpoint keeps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unsample._checks import FloatArray, IntArray, Seed, check_integer
from unsample._progress import Progress
from unsample.designs._candidates import Candidates
from unsample.designs._checkpoint import Checkpoint, identity_of
from unsample.designs._designs import Design, Exact
from unsample.designs._findings import Findings, Notes, Situation
from unsample.designs._full import count_all
from unsample.designs._guides import Guide, Orders
from unsample.designs._orders import as_key, target_keys, tie_place
from unsample.designs._scan import Scan, Tally
from unsample.designs._scorers import FactorScores, Scorer, refuse_infinite_targets
from unsample.errors import InputError, ScoreError
from unsample.metrics import Metric

#: The largest difference between scores of two calls that counts as rounding, relative to their
#: spread.
_ROUNDING = 1e-3


@dataclass(frozen=True, eq=False)
class Run:
    """How the work of `unsample.evaluate` is done. This changes no result.

    Parameters
    ----------
    batch
        The most scores to ask for in one call.
    workers
        Number of threads that call the scorer.
    device, precision
        For factors that are ranked in full: rank on this device of torch (``"cuda"``). Factors may
        be rounded to ``"bfloat16"``. A torch module stays on the device where it is.
    checkpoint
        A file to which the state is written from time to time. After an interruption the same call
        continues from there, to the same result; it asks again for what was not written yet.
        Delete the file when the model changes.
    progress
        Called with the number of targets that are known, the number of all, and a note: the scores
        spent, and the half-width so far. By default a bar on a terminal, after two seconds.
    """

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
    scorers: Sequence[Scorer],
    candidates: Candidates,
    *,
    metrics: Sequence[Metric] = (),
    budget: int | None = None,
    ties: str = "random",
    rng: Seed = 0,
    guide: Guide | None = None,
    relevance: FloatArray | None = None,
    how: Run | None = None,
    names: Sequence[str] = (),
) -> list[Findings]:
    """Run a design on one or several scorers; return what was found of each.

    Only designs that can be guided have a ``guide``, which is the order of items.

    `Fixed`, `Certified` and `Exact` treat every target on its own. So ranks are the same if the
    targets are evaluated in several parts, for instance on several machines.
    """
    how = how or Run()
    factors = all(isinstance(each, FactorScores) for each in scorers)
    if how.device is not None and not (factors and isinstance(design, Exact)):
        raise InputError(
            f"device must be left out unless design='exact' ranks factors, got {how.device!r} with "
            f"design={design.name!r}; a torch module is called on its own device"
        )
    seed, models = as_key(rng), len(scorers)
    others, relevant = np.tile(candidates.others, models), candidates.relevant
    fitted, allowed, checked = design.fit(metrics, others, budget, relevant=relevant)
    keys = target_keys(seed, candidates.users, candidates.targets)
    orders = Orders(candidates, keys, guide or Guide(), fitted.with_replacement)
    scan = Scan(scorers, orders, names)
    probe = Probe.ask(scan, checked)
    tally, notes, goal = Tally.empty(len(others)), Notes.empty(len(others)), np.zeros_like(others)
    place = None
    if how.checkpoint is not None:
        identity = identity_of(fitted, candidates, orders.guide, allowed, ties, seed, models)
        place = Checkpoint(Path(how.checkpoint), identity)
        tally, notes, goal = place.load() or (tally, notes, goal)
        probe.compare(tally.own)  # a finished evaluation of another model asks for nothing else
    # Exact ranks: a tie counts as beating the target only if it does so under every outcome.
    open_ties = fitted.certifies and (ties == "random" or relevant > 1)
    for_sure = "optimistic" if open_ties else ties
    different, users = np.unique(candidates.users, return_inverse=True)
    # A random order of users, by keys of the user only: ``items`` is no target.
    user_keys = target_keys(seed, different, np.full(len(different), candidates.items))
    now = Situation(
        scored=tally.scored,
        beaten=tally.beaten(for_sure),
        others=others,
        allowed=allowed,
        users=np.tile(users.reshape(-1), models),
        user_order=np.argsort(user_keys, kind="stable"),
        notes=notes,
        models=models,
        relevance=relevance,
        filtered=candidates.filtered,
        watched=how.progress is not None,
    )
    try:
        while True:
            for _ in _compared(scan, tally, goal, how):
                probe.compare(tally.own)
                if place is not None:
                    place.save(tally, now.notes, goal)
                if how.progress is not None:
                    known = tally.scored >= (others if fitted.certifies else goal)
                    known |= tally.beaten(for_sure) >= getattr(fitted, "k", np.inf)
                    note = f"{int(tally.scored.sum()):,} scores, {now.said}".rstrip(", ")
                    how.progress(int(np.count_nonzero(known)), len(others), note)
            now.beaten = tally.beaten(for_sure)
            goal = fitted.step(now)
            if not (goal > tally.scored).any():
                break
    finally:  # also after an error
        if place is not None:
            place.save(tally, now.notes, goal, now=True)
    found = []
    for model, here in enumerate(now.of_models()):
        mine = tally.take(here)
        again = int(np.count_nonzero(probe.rows // len(candidates) == model))
        found.append(
            fitted.findings(
                1 + mine.beaten(for_sure),
                1 + _above(mine, scan, ties, in_one_list=fitted.certifies and relevant > 1),
                mine.scored,
                candidates.others,
                scored=int(mine.scored.sum()) + len(candidates) + again,
                notes=now.notes.take(here),
                users=candidates.users,
                filtered=candidates.filtered,
            )
        )
    return found


def _compared(scan: Scan, tally: Tally, goal: IntArray, how: Run) -> Iterator[None]:
    """Compare targets with items up to the goal; with whole rows at once if all are needed."""
    candidates = scan.candidates
    for model, scorer in enumerate(scan.scorers):
        start = model * len(candidates)
        here = slice(start, start + len(candidates))
        rows = np.flatnonzero(tally.scored[here] < goal[here])
        fresh = not tally.scored[here][rows].any()
        if not (scorer.whole and fresh and (goal[here] == candidates.others).all()):
            continue
        some = candidates.take(rows)
        for place, better, equal, own in count_all(scorer, some, how.device, how.precision):
            with scan.naming(model):
                refuse_infinite_targets(own, some.users[place], some.targets[place])
            part = Tally(
                some.others[place], better, equal, np.zeros_like(better), own.astype(np.float64)
            )
            tally.add(start + rows[place], part)
            yield
    yield from scan.advance(tally, goal, how.batch, how.workers)


def _above(tally: Tally, scan: Scan, ties: str, *, in_one_list: bool) -> IntArray:
    """Return how many items are above each target of a model.

    Targets of one user in one list must have different places, also if they tie.
    """
    users = scan.candidates.users
    above, chance = tally.beaten(ties).copy(), tie_place(scan.orders.keys)
    # Places among all ties come from keys, the same for every model.
    if ties == "random":
        above = tally.better + np.floor(chance * (tally.equal + 1)).astype(np.int64)
    if not in_one_list:
        return above
    order = np.lexsort([chance, tally.own, users])
    same = (np.diff(users[order]) == 0) & (np.diff(tally.own[order]) == 0)
    for group in np.split(order, np.flatnonzero(~same) + 1):
        if len(group) > 1:
            others = int(tally.equal[group[0]]) - (len(group) - 1)
            above[group] = tally.better[group] + _places(chance[group], others, ties)
    return above


def _places(chances: FloatArray, others: int, ties: str) -> list[int]:
    """Return the places of targets that tie with one another, and with so many ``others``."""
    count = len(chances)
    if ties != "random":
        first = 0 if ties == "optimistic" else others
        return list(range(first, first + count))
    places: list[int] = []
    # One after the other is put into the list of ties, and moves those behind it.
    for number, chance in enumerate(chances):
        place = int(chance * (others + number + 1))
        places = [*(each + (each >= place) for each in places), place]
    return places


@dataclass(frozen=True, eq=False)
class Probe:
    """The scores of a few targets, asked for first. Later calls must give the same scores."""

    rows: IntArray
    scores: FloatArray

    @classmethod
    def ask(cls, scan: Scan, targets: int) -> Probe:
        last = len(scan.scorers) * len(scan.candidates) - 1
        rows = np.unique(np.linspace(0, last, targets).astype(np.int64))
        return cls(rows, scan.own_scores(rows) if targets else np.empty(0))

    def compare(self, own: FloatArray) -> None:
        """Refuse a scorer that is not deterministic; ``own`` is NaN for scores not yet known."""
        again = own[self.rows]
        known = np.isfinite(again) & np.isfinite(self.scores)
        if not known.any():
            return
        first, second = self.scores[known], again[known]
        # The spread of all probed scores: a score near zero may be a sum of large numbers.
        usual = self.scores[np.isfinite(self.scores)]
        largest = np.abs(usual).max()
        allowed = _ROUNDING * np.ptp(usual) + 8 * np.finfo(np.float32).eps * largest
        moved = np.abs(first - second) > allowed
        if moved.any():
            where = int(np.argmax(moved))
            raise ScoreError(
                f"scores must be the same when asked for again, got {int(moved.sum())} of "
                f"{moved.size} that are not, the first {first[where]:.6g} and then "
                f"{second[where]:.6g}; fix the random seed of the model, or switch off what is "
                "random (dropout: model.eval()); no score may depend on the other items of a call"
            )
