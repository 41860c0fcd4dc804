"""`evaluate`: a scorer, its targets and a design in; metrics with intervals and their cost out.

Several scorers are evaluated one after the other, with the same targets and draws, then compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import FloatArray, Seed, check_integer
from unsample._gone import refuses_gone
from unsample._progress import Progress
from unsample.answers._chosen import default_design, of_samples, refuse_with_design
from unsample.answers._compare import comparable, compare
from unsample.answers._comparison import Comparison
from unsample.answers._estimate import DEFAULT_METHOD, estimate_counts
from unsample.answers._estimates import Estimates
from unsample.answers._evaluation import Evaluation
from unsample.answers._exact import as_grades, exact_targets
from unsample.answers._guided import guided_targets
from unsample.answers._notes import Note, warn_of
from unsample.answers._result import DEFAULT_METRICS
from unsample.designs import (
    LARGEST_ORDER,
    Candidates,
    Design,
    Excluded,
    Execution,
    Findings,
    Guide,
    Scorer,
    as_design,
    as_guide,
    as_key,
    as_scorer,
    run,
)
from unsample.errors import InputError, UnsampleError
from unsample.estimators import Estimator
from unsample.evidence import check_ties
from unsample.metrics import Metric
from unsample.tables import Read


@refuses_gone
def evaluate(
    scorer: Any,
    targets: Any,
    *,
    items: int,
    design: str | Design | None = None,
    budget: int | None = None,
    exclude: Excluded | None = None,
    guide: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator | Iterable[str | Estimator] | None = None,
    filtered: bool = False,
    relevance: npt.ArrayLike | None = None,
    ties: str = "random",
    rng: Seed = 0,
    batch: int = 1 << 17,
    workers: int = 1,
    device: str | None = None,
    precision: str = "float32",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Evaluation | Comparison:
    """Evaluate a recommender on the full catalogue at a fraction of the cost, or exactly.

    Parameters
    ----------
    scorer
        A callable ``scores(users, items)`` that scores row i of the matrix ``items`` for
        ``users[i]``; a pair (user factors, item factors) or a `FactorScores`; a
        ``torch.nn.Module`` whose ``forward(users, items)`` takes two equally long vectors of
        ids; a factor model of implicit; or a recommender with ``score`` and ``score_all``.
        Higher is better. Items scored -inf rank below all others, +inf above; NaN is an error.
        The score of a pair must not depend on what else is asked in the same call.
        Or a dict of name -> scorer: the models are evaluated together, and a `Comparison` is
        returned. Its ``estimates["A"]`` is the `Evaluation` of model A.
    targets
        The relevant items: a pair (users, items) of id arrays (a user with several targets appears
        several times), a dict of user -> items, or a sparse users x items matrix.
    items
        Number of items in the catalogue.
    design
        ``"exact"``, ``"certified"``, ``"guided"`` or ``"fixed"``; or one with parameters, such as
        ``Fixed(sampled=99)`` or ``unsample.plan(...).best.design``. By default a scorer of whole
        rows (factors, item-item weights, ``score_all``) is ranked in full (``"exact"``), unless a
        guide is given or the budget is too small for that. Any other is ``"certified"`` without a
        budget (``"exact"`` if a metric has no K), and ``"guided"`` with one.
    budget
        The total number of scores that may be asked for, those of the targets included: a hard
        limit. A guided or fixed design uses what it allows. An exact or certified one is refused
        if the budget is too small for it. Several models have equal parts of the budget.
    exclude
        Sparse users x items matrix of pairs to leave out (training data); None keeps
        all items.
    guide
        Anything cheap that tells which items are strong, for a guided or certified design. It
        decides the order in which items are scored: a bad guide costs more, but nothing is wrong.
        One score for each item; a pair (user factors, item factors); a function users -> scores of
        all items; a dict of user -> ranked items, or a matrix of them with a row for each user; a
        recommender with ``score_all``. By default the popularity of items in ``exclude``; without
        ``exclude`` items come in random order. What a guide itself scores does not count in the
        budget.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`.
    method
        Estimator for a fixed design, or several; by default ``"auto"``. Other designs need none.
    filtered
        False: a target also competes with the user's other targets, as in a list of
        recommendations, and metrics are means over users. True: the other targets are left out, as
        in knowledge graphs, and metrics are means over targets. Errors count users in both cases.
    relevance
        How relevant each target is, in the order of ``targets``, for NDCG with grades. It needs
        ``design="exact"``, ``"certified"`` or ``"guided"``.
    ties
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``. The seed decides random ties.
    rng
        Seed or Generator. It decides the order in which each target meets items, which is the same
        for every model, batch size and number of workers.
    batch
        The most scores to ask for in one call (a single row may be longer).
    workers
        Number of threads that score.
    device, precision
        For factors and item-item weights with ``design="exact"``: rank on this device of torch
        (``"cuda"``). Factors may be rounded to ``"bfloat16"`` or ``"tf32"``; see `exact_ranks`. A
        torch module stays on the device where it is.
    checkpoint
        A file to which the state is written from time to time. After an interruption the same call
        continues from there, to the same result; it asks again for what was not written yet. Each
        of several models has its own file: ``state-1.npz``, ``state-2.npz`` for ``state.npz``.
    progress
        Called with the number of targets done and the number of all targets.

    >>> users, catalogue = np.random.default_rng(0).normal(size=(2, 500, 8))
    >>> result = evaluate((users, catalogue), (np.arange(500), np.arange(500)), items=500,
    ...                   design="certified", metrics="NDCG@10")
    >>> full = evaluate((users, catalogue), (np.arange(500), np.arange(500)), items=500,
    ...                 metrics="NDCG@10")
    >>> bool(np.isclose(result["NDCG@10"].value, full["NDCG@10"].value)), result.share < 0.2
    (True, True)
    >>> models = {"A": (users, catalogue), "B": (users + 0.1, catalogue)}
    >>> both = evaluate(models, (np.arange(500), np.arange(500)), items=500, budget=80_000,
    ...                 metrics="NDCG@10")
    >>> both.paired, sum(both.scored.values()) <= 80_000, both.estimates["A"].design.name
    (True, True, 'guided')
    """
    items = check_integer("items", items, minimum=2, maximum=LARGEST_ORDER)
    several = isinstance(scorer, Mapping)
    scorers = _as_scorers(scorer, items) if several else {"": as_scorer(scorer, items)}
    candidates = Candidates.check(targets, items, exclude, filtered=filtered)
    candidates.refuse_repeated()
    candidates.refuse_unrankable()
    wanted = comparable(metrics) if several else _metrics.parse_all(metrics)
    if design is None:
        design = default_design(scorers.values(), candidates, wanted, budget, guide)
    chosen, seed = as_design(design), as_key(rng)
    check_ties(ties, whole=True)
    refuse_with_design(chosen, method, guide)
    grades = None if relevance is None else as_grades(relevance, len(candidates))
    if grades is not None and not grades.all():
        # Items of relevance 0 were judged as not relevant.
        kept = grades > 0
        candidates, grades = candidates.take(kept), grades[kept]
    if not chosen.certifies:
        wanted = of_samples(
            chosen, candidates, grades, wanted, by_default=metrics is DEFAULT_METRICS
        )
    task = _Task(
        candidates,
        chosen,
        wanted,
        method,
        as_guide(guide, candidates) if chosen.guided else None,
        grades,
        # Without ``exclude`` it is not known whether users had seen any items.
        None if exclude is None else "unseen",
        ties,
        seed,
        Execution(batch, workers, device, precision, checkpoint, progress),
    )
    if several:
        models = len(scorers)
        chosen.fit(wanted, candidates.others, budget, relevant=candidates.relevant, models=models)
        return _together(task, scorers, None if budget is None else budget // models)
    result = task.evaluation(scorers[""], budget)
    warn_of(result.notes, stacklevel=3)
    return result


@dataclass(frozen=True, eq=False)
class _Task:
    """The part of an evaluation that is the same for every model."""

    candidates: Candidates
    design: Design
    metrics: tuple[Metric, ...]
    method: str | Estimator | Iterable[str | Estimator] | None
    guide: Guide | None
    relevance: FloatArray | None
    #: Which items were candidates, in the words of `estimate`.
    among: str | None
    ties: str
    seed: int
    execution: Execution

    def evaluation(self, scorer: Scorer, budget: int | None) -> Evaluation:
        """Run the design on a scorer."""
        candidates = self.candidates
        found, tally = run(
            self.design,
            scorer,
            candidates,
            metrics=self.metrics,
            budget=budget,
            ties=self.ties,
            rng=self.seed,
            guide=self.guide,
            execution=self.execution,
        )
        estimates = estimates_of(
            found,
            self.metrics,
            method=self.method,
            relevance=self.relevance,
            candidates=self.among,
        )
        notes = list(estimates.notes)
        if tally.infinite.any():
            first = int(candidates.users[np.argmax(tally.infinite > 0)])
            text = (
                f"{int(tally.infinite.sum())} scores were infinite, the first for user {first}: "
                "such items rank above (+inf) or below (-inf) all others"
            )
            notes.append(Note("infinite", text))
        return Evaluation.of(
            found,
            replace(estimates, notes=tuple(notes)),
            users=candidates.users,
            targets=candidates.targets,
            rng=self.seed,
            relevance=self.relevance,
        )

    def of_model(self, number: int) -> _Task:
        """Return the task of one of several models, with a checkpoint of its own."""
        if self.execution.checkpoint is None:
            return self
        path = Path(self.execution.checkpoint)
        place = path.with_name(f"{path.stem}-{number}{path.suffix}")
        return replace(self, execution=replace(self.execution, checkpoint=place))


def _together(task: _Task, scorers: Mapping[str, Scorer], share: int | None) -> Comparison:
    """Evaluate models one after the other, each with its ``share`` of the budget; compare them."""
    found: dict[str, Evaluation] = {}
    for number, (name, scorer) in enumerate(scorers.items(), start=1):
        with _naming(name):
            found[name] = task.of_model(number).evaluation(scorer, share)
    return compare(found, metrics=task.metrics, read=Read(rng=task.seed))


def _as_scorers(models: Mapping[str, Any], items: int) -> dict[str, Scorer]:
    """Return scorers by name; all are checked before any of them is asked for scores."""
    found: dict[str, Scorer] = {}
    if len(models) < 2:
        raise InputError(
            "scorer must be one model, or map at least two names to their models, got "
            f"{len(models)} in a dict"
        )
    for name, model in models.items():
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"models must be named by text that is not blank, got {name!r}")
        if name.strip() in {other.strip() for other in found}:
            raise InputError(f"names of models must differ, got {name.strip()!r} twice")
        with _naming(name):
            found[name] = as_scorer(model, items)
    return found


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the name of the model to errors about it."""
    try:
        yield
    except UnsampleError as problem:
        raise type(problem)(f"{problem} (model {name!r})") from problem


def estimates_of(
    found: Findings,
    metrics: tuple[Metric, ...],
    *,
    method: str | Estimator | Iterable[str | Estimator] | None = None,
    relevance: FloatArray | None = None,
    candidates: str | None = None,
) -> Estimates:
    """Return metrics from what a design found; ``method`` is for sampled designs."""
    if found.design.certifies:
        return certified_targets(found, metrics, relevance)
    return estimate_counts(
        found.counts,
        metrics=metrics,
        method=DEFAULT_METHOD if method is None else method,
        candidates=candidates,
    )


def certified_targets(
    found: Findings,
    metrics: tuple[Metric, ...],
    relevance: FloatArray | None,
) -> Estimates:
    """Return exact metrics, or estimates if only a part of the open targets was followed."""
    if found.unknown.any():
        return guided_targets(found, metrics, relevance)
    estimates = exact_targets(found, metrics, relevance)
    if np.array_equal(found.lowest, found.ranks):
        return estimates
    # The last rank stands for all ranks beyond K: right for metrics@K, but it is not P(R).
    return replace(estimates, distributions={})
