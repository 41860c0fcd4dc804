"""A design run on scorers, in rounds of comparisons that a checkpoint keeps."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from unsample._checks import (
    BoolArray,
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
from unsample._threads import cached_property, one_thread
from unsample.counts import check_ties, rank_with_ties, runs_of
from unsample.designs._checkpoint import Checkpoint, Reach, State, identity_of
from unsample.designs._designs import Design, Exact, FittedDesign
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
    refuse_unknown_users,
)

#: Precision -> the part of the range of scores by which scores of two calls may differ. It counts
#: as rounding: numbers of bfloat16 have eight significant bits.
_ROUNDING = {"float32": 1e-3, "bfloat16": 2.0**-6}
#: How a progress function is called: with scores done, scores foreseen, and a note.
_PROGRESS_CALL = (0, 1, "")


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
        Called with the number of scores so far, how many are foreseen in all, and a note: how many
        targets are known, and the half-width so far. What is foreseen may change, because a design
        decides by what it finds. By default a bar on a terminal, after two seconds.
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
    rule = "progress must be a function of the scores so far, of all, and of a note"
    if not callable(progress):
        raise InputError(f"{rule}, got {progress!r}; by default there is a bar on a terminal")
    try:
        signature = inspect.signature(progress)
    except (TypeError, ValueError):  # some functions in C tell nothing
        return
    try:
        signature.bind(*_PROGRESS_CALL)
    except TypeError as problem:
        raise InputError(f"{rule}, got one that takes {signature}") from problem


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
    _refuse_device(how.device, design, scorers=scorers)
    asked = _Asked(
        design=design,
        candidates=candidates,
        models=len(scorers),
        metrics=metrics,
        budget=budget,
        ties=ties,
        seed=as_seed(rng),
        guide=guide or Guide(),
        relevance=relevance,
    )
    evaluation = _Evaluation.set_up(asked, scorers, how=how, names=names)
    evaluation.complete()
    return evaluation.findings()


def _refuse_device(device: object, design: Design, *, scorers: Sequence[Scorer]) -> None:
    """Refuse a device where nothing is ranked on it."""
    factors = all(isinstance(scorer, FactorScores) for scorer in scorers)
    if device is not None and not (factors and isinstance(design, Exact)):
        raise InputError(
            f"device must be left out unless design='exact' ranks factors, got {device!r} with "
            f"design={design.name!r}; a torch module is called on its own device"
        )


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is evaluated: everything but the scorers that decides the result."""

    design: Design
    candidates: Candidates
    models: int
    metrics: Sequence[Metric]
    budget: int | None
    ties: str
    seed: int
    guide: Guide
    relevance: FloatArray | None

    @cached_property
    def others(self) -> IntArray:
        """Return the number of candidates of each target of each model, without the target."""
        return np.tile(self.candidates.others, self.models)

    @cached_property
    def relevant(self) -> int:
        """Return the largest number of targets of one user that are ranked in one list."""
        return self.candidates.relevant

    def users_in_random_order(self) -> tuple[IntArray, IntArray]:
        """Return the number of the user of each target of each model, and an order of users."""
        different, users = np.unique(self.candidates.users, return_inverse=True)
        # The keys depend on the user only: no target has the number ``items``.
        no_target = np.full(len(different), self.candidates.items)
        keys = target_keys(self.seed, different, targets=no_target)
        return np.tile(users.reshape(-1), self.models), np.argsort(keys, kind="stable")

    def orders(self, fitted: FittedDesign, in_full: BoolArray | None) -> Orders:
        """Return the order in which each target meets its candidates."""
        candidates = self.candidates
        return Orders(
            candidates,
            target_keys(self.seed, candidates.users, targets=candidates.targets),
            guide=self.guide,
            replacement=fitted.design.with_replacement,
            seed=self.seed,
            in_full=None if in_full is None else in_full[: len(candidates)],
        )

    @property
    def ties_for_sure(self) -> str:
        """Return the tie rule by which items beat a target for certain.

        Exact ranks: a tie counts as beating the target only if it does so under every outcome.
        """
        open_ties = self.ties == "random" or self.relevant > 1
        return "optimistic" if self.design.certifies and open_ties else self.ties

    def identity(self, fitted: FittedDesign) -> str:
        """Return what tells whether a checkpoint is of this evaluation."""
        return identity_of(
            fitted.design,
            self.candidates,
            guide=self.guide,
            allowed=fitted.allowed,
            ties=self.ties,
            seed=self.seed,
            models=self.models,
        )


@dataclass(eq=False)
class _Evaluation:
    """An evaluation under way: `set_up`, `complete`, and then `findings`."""

    asked: _Asked
    fitted: FittedDesign
    loop: ScoringLoop
    how: Run
    probe: Probe
    checkpoint: Checkpoint | None
    state: State
    #: What is known of the targets when the evaluation begins, or goes on after an interruption.
    begin: Situation
    standing: _Standing
    #: The last sentence of the design for people who watch.
    message: str = ""

    # -- set-up ----------------------------------------------------------------------------------

    @classmethod
    def set_up(
        cls, asked: _Asked, scorers: Sequence[Scorer], *, how: Run, names: Sequence[str]
    ) -> Self:
        """Check what is asked for, read the checkpoint, and ask for a few scores."""
        users, user_order = asked.users_in_random_order()
        in_full = asked.design.in_full(users, user_order)
        fitted = asked.design.fit(
            asked.metrics,
            asked.others,
            budget=asked.budget,
            relevant=asked.relevant,
            in_full=in_full,
        )
        loop = ScoringLoop(scorers, asked.orders(fitted, in_full), names=names)
        for model, scorer in enumerate(scorers):
            with loop.naming(model):
                refuse_unknown_users(scorer, asked.candidates.users)
        state = State.empty(len(asked.others))
        checkpoint = None
        if how.checkpoint is not None:
            checkpoint = Checkpoint(Path(how.checkpoint), asked.identity(fitted))
            reach = Reach.of(
                fitted.design,
                asked.others,
                users=users,
                ties=asked.ties_for_sure,
                in_full=in_full,
            )
            state = checkpoint.load(reach) or state
        precision = "float32" if how.device is None else how.precision
        probe = Probe.ask(loop, fitted.checked, rounding=_ROUNDING[precision])
        # A finished evaluation asks for no other scores, so another model is found out here.
        probe.compare(state.tally.own)
        whole_lists = fitted.design.certifies or in_full is not None
        in_one_list = whole_lists and asked.relevant > 1
        standing = _Standing(state.tally, loop, ties=asked.ties, in_one_list=in_one_list)
        begin = Situation(
            scored=state.tally.scored,
            beaten=state.tally.beaten(asked.ties_for_sure),
            others=asked.others,
            allowed=fitted.allowed,
            users=users,
            user_order=user_order,
            notes=state.notes,
            models=asked.models,
            relevance=asked.relevance,
            filtered=asked.candidates.filtered,
            watched=how.progress is not None,
            full_ranks=standing.ranks,
        )
        return cls(
            asked=asked,
            fitted=fitted,
            loop=loop,
            how=how,
            probe=probe,
            checkpoint=checkpoint,
            state=state,
            begin=begin,
            standing=standing,
        )

    # -- the loop --------------------------------------------------------------------------------

    def complete(self) -> None:
        """Compare targets round by round, until the design says that none goes further."""
        try:
            self._go_on()
        except BaseException as problem:
            self._save(now=True)
            self._say_how_to_continue(problem)
            raise
        self._save(now=True)

    def _go_on(self) -> None:
        while True:
            for _ in self._reach_goal():
                self.probe.compare(self.state.tally.own)
                self._save()
                self._report()
            with one_thread():
                step = self.fitted.design.step(self._now())
            self.message = step.message or self.message
            # Notes and goal change by one assignment: they belong to the same step.
            self.state = State(self.state.tally, step.notes, goal=step.goal)
            if not (step.goal > self.state.tally.scored).any():
                self._report(finished=True)
                return

    def _now(self) -> Situation:
        """Return what is known of the targets now."""
        beaten = self.state.tally.beaten(self.asked.ties_for_sure)
        return replace(self.begin, beaten=beaten, notes=self.state.notes)

    def _reach_goal(self) -> Iterator[None]:
        """Compare targets with items up to the goal; with whole rows at once if all are needed."""
        tally = self.state.tally
        goal = self.state.goal
        for model in range(self.asked.models):
            yield from self._rank_in_full(model)
        yield from self.loop.advance(tally, goal, batch=self.how.batch, workers=self.how.workers)

    def _rank_in_full(self, model: int) -> Iterator[None]:
        """Rank targets of a model in full, where that is the goal and whole rows are cheap."""
        scorer = self.loop.scorers[model]
        rows = self._rows_in_full(model)
        if not scorer.whole or not len(rows):
            return
        some = self.asked.candidates.take(rows)
        start = model * len(self.asked.candidates)
        counted = count_all(scorer, some, device=self.how.device, precision=self.how.precision)
        for part, better, equal, own in counted:
            with self.loop.naming(model):
                refuse_infinite_targets(own, some.users[part], targets=some.targets[part])
            ranked = Tally.of(scored=some.others[part], better=better, equal=equal, own=own)
            self.state.tally.add(start + rows[part], ranked)
            yield

    def _rows_in_full(self, model: int) -> IntArray:
        """Return the targets of a model that the goal ranks in full from the start."""
        size = len(self.asked.candidates)
        here = slice(model * size, (model + 1) * size)
        scored = self.state.tally.scored[here]
        goal = self.state.goal[here]
        orders = self.loop.orders
        rows = np.flatnonzero(scored < goal)
        if orders.in_full is not None:
            rows = rows[orders.in_full[rows]]
        elif orders.replacement or (goal != self.asked.candidates.others).any():
            return rows[:0]
        return rows[:0] if scored[rows].any() else rows

    def _save(self, *, now: bool = False) -> None:
        if self.checkpoint is not None:
            self.checkpoint.save(self.state, now=now)

    def _say_how_to_continue(self, problem: BaseException) -> None:
        """Add a line to an error or an interruption: where its work is."""
        if self.checkpoint is not None and self.checkpoint.saved:
            problem.add_note(
                f"The scores so far are in the checkpoint {str(self.checkpoint.path)!r}: the same "
                "call continues from there."
            )
        elif self.checkpoint is None and isinstance(problem, KeyboardInterrupt):
            problem.add_note(
                "The scores so far are lost. With run=unsample.Run(checkpoint='run.npz') an "
                "interrupted evaluation continues when it is called again."
            )

    def _report(self, *, finished: bool = False) -> None:
        """Call the progress function, if there is one."""
        if self.how.progress is None:
            return
        now = self._now()
        design = self.fitted.design
        done = int(now.scored.sum())
        total = done if finished else max(done, design.foreseen(now, self.state.goal))
        is_known = now.scored >= (now.others if design.certifies else self.state.goal)
        is_known |= now.beaten >= getattr(design, "k", np.inf)
        known = f"{np.count_nonzero(is_known):,} of {len(is_known):,} targets known"
        note = ", ".join(filter(None, ["scores", known, self.message]))
        self.how.progress(done, total, note)

    # -- the result ------------------------------------------------------------------------------

    def findings(self) -> list[Findings]:
        """Return what was found of each model."""
        ranks = self.standing.ranks()
        models = enumerate(self.begin.of_models())
        return [self._findings_of(model, here, ranks=ranks[here]) for model, here in models]

    def _findings_of(self, model: int, here: slice, *, ranks: IntArray) -> Findings:
        candidates = self.asked.candidates
        design = self.fitted.design
        tally = self.state.tally.take(here)
        asked_twice = int(np.count_nonzero(self.probe.rows // len(candidates) == model))
        lowest = 1 + tally.beaten(self.asked.ties_for_sure) if design.certifies else ranks
        return design.findings(
            lowest=lowest,
            full=ranks,
            met=tally.scored,
            others=candidates.others,
            scored=int(tally.scored.sum()) + len(candidates) + asked_twice,
            notes=self.state.notes.take(here),
            users=candidates.users,
            filtered=candidates.filtered,
        )


@dataclass(frozen=True, eq=False)
class _Standing:
    """The ranks of targets among the items that they were compared with, ties broken."""

    tally: Tally
    loop: ScoringLoop
    ties: str
    #: Whether the targets of one user are ranked in one list.
    in_one_list: bool

    def ranks(self) -> IntArray:
        """Return the rank of each target under each model."""
        size = len(self.loop.candidates)
        starts = range(0, len(self.tally.scored), size)
        models = (self.tally.take(slice(start, start + size)) for start in starts)
        return np.concatenate([self._of_model(tally) for tally in models])

    def _of_model(self, tally: Tally) -> IntArray:
        """Return the ranks under one model.

        Targets of one user in one list have different ranks, also if they tie.
        """
        orders = self.loop.orders
        candidates = self.loop.candidates
        # Where draws repeat items, each tied item is above or below its target by itself.
        by_item = orders.replacement and self.ties == "random"
        drawn = 1 + tally.beaten(self.ties)
        if by_item and orders.in_full is None:
            return drawn
        complete = tally.scored == candidates.others
        if orders.replacement and orders.in_full is not None:
            complete = orders.in_full
        # Where not all is known, ties with other targets are not all counted yet.
        alone = -1 - np.arange(len(candidates))
        lists = np.where(complete, candidates.users, alone)
        ranks = rank_with_ties(
            tally.better,
            tally.equal,
            ties=check_ties(self.ties, whole=True),
            rng=orders.seed,
            users=candidates.users,
            targets=candidates.targets,
            runs=runs_of(lists, tally.own) if self.in_one_list else None,
        ).astype(np.int64)
        return np.where(complete, ranks, drawn) if by_item else ranks


@dataclass(frozen=True, eq=False)
class Probe:
    """The scores of a few targets, asked for first. Later calls must give the same scores."""

    rows: IntArray
    scores: FloatArray
    #: The part of the range of scores that counts as rounding.
    rounding: float

    @classmethod
    def ask(cls, loop: ScoringLoop, targets: int, *, rounding: float) -> Probe:
        """Ask for the scores of so many targets, spread over all models."""
        last = len(loop.scorers) * len(loop.candidates) - 1
        rows = np.unique(np.linspace(0, last, num=targets).astype(np.int64))
        scores = loop.own_scores(rows) if targets else np.empty(0)
        return cls(rows, scores, rounding=rounding)

    def compare(self, own: FloatArray) -> None:
        """Refuse a scorer that is not deterministic; ``own`` is NaN for scores not yet known."""
        again = own[self.rows]
        known = np.isfinite(again) & np.isfinite(self.scores)
        if not known.any():
            return
        # The range of all probed scores is used: a score near zero may be a sum of large numbers.
        usual = self.scores[np.isfinite(self.scores)]
        of_floats = 8 * np.finfo(np.float32).eps * np.abs(usual).max()
        tolerance = self.rounding * np.ptp(usual) + of_floats
        first, second = self.scores[known], again[known]
        moved = np.abs(first - second) > tolerance
        if moved.any():
            where = int(np.argmax(moved))
            raise ScoreError(
                f"scores must be the same when asked for again, got {int(moved.sum())} of "
                f"{moved.size} that are not, the first {first[where]:.6g} and then "
                f"{second[where]:.6g}; fix the random seed of the model, or switch off what is "
                "random (dropout: model.eval()); no score may depend on the other items of a call"
            )
