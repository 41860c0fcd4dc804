"""A design run on scorers, in rounds of comparisons that a checkpoint keeps."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unsample._checks import (
    FloatArray,
    IntArray,
    Seed,
    as_seed,
    check_choice,
    check_integer,
    check_path,
)
from unsample._files import ARCHIVE_ENDINGS, check_ending
from unsample._progress import Progress
from unsample._threads import one_thread
from unsample.counts import check_ties, rank_with_ties, runs_of
from unsample.designs._checkpoint import Checkpoint, Reach, State, identity_of
from unsample.designs._designs import Design, Exact
from unsample.designs._findings import Findings, Situation
from unsample.designs._guides import Guide, Orders
from unsample.designs._item_orders import target_keys
from unsample.designs._scoring_loop import ScoringLoop, Tally
from unsample.errors import InputError, ScoreError
from unsample.metrics import Metric
from unsample.scoring import (
    PRECISIONS,
    Candidates,
    FactorScores,
    Scorer,
    count_all,
    refuse_infinite_targets,
)

#: Scores of two calls may differ by this part of the range of scores: it counts as rounding.
_ROUNDING = 1e-3


@dataclass(frozen=True, eq=False)
class Run:
    """How the work of `unsample.evaluate` is done.

    Only ``ties``, ``device`` and ``precision`` change results, the last two by rounding scores.

    Parameters
    ----------
    ties
        The rank of a target whose score other items have: ``"random"`` (a hash of seed, user and
        target decides, as in tables of scores), ``"optimistic"`` or ``"pessimistic"``.
    batch
        How many scores to ask for in one call at most.
    workers
        Number of threads that call the scorer.
    device, precision
        For factors that are ranked in full: rank on this device of torch (``"cuda"``). Factors may
        be rounded to ``"bfloat16"``. A torch module stays on the device where it is.
    checkpoint
        A file to which the state is written from time to time, and at the end, after an error or
        Ctrl-C too. The same call continues from there, to the same result; it asks again for what
        was not written yet. Where the file cannot be written any more, a warning says so, and the
        evaluation goes on. Delete the file when the model changes.
    progress
        Called with the number of targets that are known, the number of all, and a note: the scores
        spent, and the half-width so far. By default a bar on a terminal, after two seconds.
    """

    ties: str = "random"
    batch: int = 1 << 17
    workers: int = 1
    device: str | None = None
    precision: str = "float32"
    checkpoint: str | os.PathLike[str] | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name in ("batch", "workers"):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), minimum=1))
        check_ties(self.ties, whole=True)
        _check_device(self.device)
        check_choice("precision", self.precision, PRECISIONS)
        if self.checkpoint is not None:
            path = check_path("checkpoint", self.checkpoint, hint="such as 'run.npz'")
            check_ending("checkpoint", Path(path), ARCHIVE_ENDINGS)
        if self.progress is not None:
            _check_progress(self.progress)


def _check_device(device: object) -> None:
    """Refuse what cannot be a device; torch itself knows which there are, if it is needed."""
    if not (isinstance(device, str | None) or type(device).__module__ == "torch"):
        raise InputError(f"device must be the name of one of torch, got {device!r}; such as 'cuda'")


def _check_progress(progress: object) -> None:
    """Refuse what cannot be called as `Run` says: the first call may come after hours."""
    rule = "progress must be a function of the targets done, of all, and of a note"
    if not callable(progress):
        raise InputError(f"{rule}, got {progress!r}; by default there is a bar on a terminal")
    try:
        taken = inspect.signature(progress)
    except (TypeError, ValueError):  # some functions in C tell nothing
        return
    try:
        taken.bind(0, 1, "")
    except TypeError as problem:
        raise InputError(f"{rule}, got one that takes {taken}") from problem


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
    seed, models = as_seed(rng), len(scorers)
    others, relevant = np.tile(candidates.others, models), candidates.relevant
    users, user_order = _in_random_order(candidates, models, seed)
    in_full = design.in_full(users, user_order)
    fitted, allowed, checked = design.fit(
        metrics,
        others,
        budget,
        relevant=relevant,
        in_full=in_full,
    )
    keys = target_keys(seed, candidates.users, candidates.targets)
    orders = Orders(
        candidates,
        keys,
        guide or Guide(),
        fitted.with_replacement,
        seed,
        in_full=None if in_full is None else in_full[: len(candidates)],
    )
    loop = ScoringLoop(scorers, orders, names)
    state, checkpoint = State.empty(len(others)), None
    for_sure = _rule_for_sure(fitted, ties, relevant)
    if how.checkpoint is not None:
        identity = identity_of(fitted, candidates, orders.guide, allowed, ties, seed, models)
        checkpoint = Checkpoint(Path(how.checkpoint), identity)
        reach = Reach.of(fitted, others, users=users, ties=for_sure, in_full=in_full)
        state = checkpoint.load(reach) or state
    probe = Probe.ask(loop, checked)
    # A finished evaluation asks for no other scores, so another model is found out here.
    probe.compare(state.tally.own)
    tally = state.tally
    whole_lists = fitted.certifies or in_full is not None
    standing = _Standing(tally, loop, ties, in_one_list=whole_lists and relevant > 1)
    now = Situation(
        scored=tally.scored,
        beaten=tally.beaten(for_sure),
        others=others,
        allowed=allowed,
        users=users,
        user_order=user_order,
        notes=state.notes,
        models=models,
        relevance=relevance,
        filtered=candidates.filtered,
        watched=how.progress is not None,
        full_ranks=standing.ranks,
    )
    try:
        while True:
            for _ in _compared(loop, tally, state.goal, how):
                probe.compare(tally.own)
                if checkpoint is not None:
                    checkpoint.save(state)
                if how.progress is not None:
                    known = tally.scored >= (others if fitted.certifies else state.goal)
                    known |= tally.beaten(for_sure) >= getattr(fitted, "k", np.inf)
                    note = f"{int(tally.scored.sum()):,} scores, {now.said}".rstrip(", ")
                    how.progress(int(np.count_nonzero(known)), len(others), note)
            now.beaten = tally.beaten(for_sure)
            with one_thread():
                goal = fitted.step(now)
            # Notes and goal change by one assignment: they belong to the same step.
            state = replace(state, notes=now.notes, goal=goal)
            if not (goal > tally.scored).any():
                break
    finally:  # also after an error
        if checkpoint is not None:
            checkpoint.save(state, now=True)
    found, ranks = [], standing.ranks()
    for model, here in enumerate(now.of_models()):
        mine = tally.take(here)
        again = int(np.count_nonzero(probe.rows // len(candidates) == model))
        found.append(
            fitted.findings(
                1 + mine.beaten(for_sure) if fitted.certifies else ranks[here],
                ranks[here],
                mine.scored,
                candidates.others,
                scored=int(mine.scored.sum()) + len(candidates) + again,
                notes=now.notes.take(here),
                users=candidates.users,
                filtered=candidates.filtered,
            )
        )
    return found


def _rule_for_sure(design: Design, ties: str, relevant: int) -> str:
    """Return the tie rule by which items beat a target for certain.

    Exact ranks: a tie counts as beating the target only if it does so under every outcome.
    """
    open_ties = design.certifies and (ties == "random" or relevant > 1)
    return "optimistic" if open_ties else ties


def _in_random_order(candidates: Candidates, models: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the number of the user of each target of each model, and a random order of users."""
    different, users = np.unique(candidates.users, return_inverse=True)
    # The keys are those of the user only: ``items`` is no target.
    keys = target_keys(seed, different, np.full(len(different), candidates.items))
    return np.tile(users.reshape(-1), models), np.argsort(keys, kind="stable")


def _compared(loop: ScoringLoop, tally: Tally, goal: IntArray, how: Run) -> Iterator[None]:
    """Compare targets with items up to the goal; with whole rows at once if all are needed."""
    candidates = loop.candidates
    for model, scorer in enumerate(loop.scorers):
        start = model * len(candidates)
        here = slice(start, start + len(candidates))
        rows = np.flatnonzero(tally.scored[here] < goal[here])
        if loop.orders.in_full is not None:
            rows = rows[loop.orders.in_full[rows]]
            every = True
        else:
            every = bool((goal[here] == candidates.others).all()) and not loop.orders.replacement
        fresh = not tally.scored[here][rows].any()
        if not (scorer.whole and every and fresh):
            continue
        some = candidates.take(rows)
        for counted, better, equal, own in count_all(scorer, some, how.device, how.precision):
            with loop.naming(model):
                refuse_infinite_targets(own, some.users[counted], some.targets[counted])
            part = Tally.of(scored=some.others[counted], better=better, equal=equal, own=own)
            tally.add(start + rows[counted], part)
            yield
    yield from loop.advance(tally, goal, how.batch, how.workers)


@dataclass(frozen=True, eq=False)
class _Standing:
    """The ranks of targets among the items that they were compared with, ties broken."""

    tally: Tally
    loop: ScoringLoop
    ties: str
    in_one_list: bool

    def ranks(self) -> IntArray:
        """Return the rank of each target under each model."""
        step = len(self.loop.candidates)
        starts = range(0, len(self.tally.scored), step)
        models = (self.tally.take(slice(start, start + step)) for start in starts)
        return np.concatenate([self._of_model(tally) for tally in models])

    def _of_model(self, tally: Tally) -> IntArray:
        """Return the ranks under one model.

        Targets of one user in one list have different ranks, also if they tie.
        """
        orders, candidates = self.loop.orders, self.loop.candidates
        by_item = orders.replacement and self.ties == "random"
        drawn = 1 + tally.beaten(self.ties)
        if by_item and orders.in_full is None:
            return drawn
        # Where not all is known, ties with other targets are not all counted yet.
        alone = -1 - np.arange(len(candidates))
        complete = tally.scored == candidates.others
        if orders.replacement and orders.in_full is not None:
            complete = orders.in_full
        lists = np.where(complete, candidates.users, alone)
        ranks = rank_with_ties(
            tally.better,
            tally.equal,
            check_ties(self.ties, whole=True),
            orders.seed,
            candidates.users,
            candidates.targets,
            runs=runs_of(lists, tally.own) if self.in_one_list else None,
        )
        found = ranks.astype(np.int64)
        return np.where(complete, found, drawn) if by_item else found


@dataclass(frozen=True, eq=False)
class Probe:
    """The scores of a few targets, asked for first. Later calls must give the same scores."""

    rows: IntArray
    scores: FloatArray

    @classmethod
    def ask(cls, loop: ScoringLoop, targets: int) -> Probe:
        last = len(loop.scorers) * len(loop.candidates) - 1
        rows = np.unique(np.linspace(0, last, targets).astype(np.int64))
        return cls(rows, loop.own_scores(rows) if targets else np.empty(0))

    def compare(self, own: FloatArray) -> None:
        """Refuse a scorer that is not deterministic; ``own`` is NaN for scores not yet known."""
        again = own[self.rows]
        known = np.isfinite(again) & np.isfinite(self.scores)
        if not known.any():
            return
        first, second = self.scores[known], again[known]
        # The range of all probed scores is used: a score near zero may be a sum of large numbers.
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
