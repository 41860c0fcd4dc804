"""`evaluate`: scorers, their targets and a design in; metrics with intervals and their cost out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import FloatArray, Seed, as_seed, check_integer, check_kind
from unsample._progress import terminal_progress
from unsample._threads import one_thread
from unsample.counts import refuse_joint
from unsample.designs import (
    LARGEST_ORDER,
    Certified,
    Design,
    Exact,
    Findings,
    Fixed,
    Guided,
    Run,
    as_design,
    as_guide,
)
from unsample.designs import run as run_design
from unsample.errors import DesignError, InputError
from unsample.metrics import DEFAULT_METRICS, Metric
from unsample.questions.compare.ask import comparable, compare
from unsample.questions.compare.result import Comparison
from unsample.questions.estimate.ask import DEFAULT_METHOD, estimate_counts
from unsample.questions.estimate.exact import as_grades, exact_targets
from unsample.questions.estimate.result import Estimates
from unsample.questions.evaluate.guided_estimates import guided_targets
from unsample.questions.evaluate.result import Evaluation
from unsample.report import warn_of
from unsample.scoring import Candidates, Excluded, Scorer, as_scorer
from unsample.tables import Read


def evaluate(
    scorer: Any,
    targets: Any,
    *,
    items: int,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    design: str | Design | None = None,
    budget: int | None = None,
    error: float | None = None,
    exclude: Excluded | None = None,
    guide: Any = None,
    filtered: bool = False,
    rng: Seed = 0,
    run: Run | None = None,
) -> Evaluation | Comparison:
    """Evaluate a recommender on the full catalogue at a fraction of the cost, or exactly.

    Parameters
    ----------
    scorer
        ``scorer(users, items) -> scores``, three vectors of one length: a function, or a
        ``torch.nn.Module``. Or scores that are cheap: an object with ``score_all(users)``, which
        returns a row of scores for each user; a matrix of scores, users x items; a pair (user
        factors, item factors); a pair (sparse users x items, item-item weights). Higher is better.
        Items scored -inf rank below all others, +inf above; NaN is an error. The score of a pair
        must not depend on what else is asked in the same call.
        Or a dict of name -> scorer: the models are evaluated together, on the same users, and a
        `Comparison` is returned. Its ``estimates["A"]`` is the `Evaluation` of model A.
    targets
        The relevant items: a pair (users, items) of id arrays (a user with several targets appears
        several times), or a sparse users x items matrix. With a third array, (users, items,
        relevance), targets have grades, for NDCG; the design is then ``"exact"``, ``"certified"``
        or ``"guided"``.
    items
        Number of items in the catalogue.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`.
    design
        ``"exact"``, ``"certified"``, ``"guided"`` or ``"fixed"``; or one with parameters, such as
        ``Fixed(sampled=99)``, ``Fixed(99, full=300)`` (300 users drawn at random are ranked in
        full) or ``unsample.plan(...).best.design``. By default cheap scores are
        ranked in full (``"exact"``), unless a guide is given or the budget is too small for that.
        Other scorers are ``"guided"`` with a budget or an error, else ``"certified"``. If a metric
        has no K they are ``"fixed"`` with a budget, else ``"exact"``.
    budget
        The total number of scores that may be asked for, of all models, those of the targets
        included: a hard limit. A guided or fixed design uses what it allows. An exact or certified
        one is refused if the budget is too small for it.
    error
        How far each metric may be from the full ranking of these users, at 95 %, relative to it:
        0.05 is within 5 %. After the guided part a pilot of users is ranked in full. It settles how
        many more are drawn. ``result.reached`` says whether the error was reached; a budget beside
        it may end the draw before.
    exclude
        Sparse users x items matrix of pairs to leave out (training data); None keeps
        all items.
    guide
        Anything cheap that tells which items are strong, for a guided or certified design. It
        decides the order in which items are scored: a bad guide costs more, but nothing is wrong.
        A number for each item, or cheap scores, as above. By default the popularity of items in
        ``exclude``; without ``exclude`` items come in random order. What a guide itself scores
        does not count in the budget.
    filtered
        False: a target also competes with the user's other targets, as in a list of
        recommendations, and metrics are means over users. True: the other targets are left out, as
        in knowledge graphs, and metrics are means over targets. Errors count users in both cases.
    rng
        Seed or Generator. It decides the order in which each target meets items, which is the same
        for every model, batch size and number of workers.
    run
        How the work is done: `unsample.Run`, with ties, batches, threads, a device, a checkpoint
        and progress.

    >>> users, catalogue = np.random.default_rng(0).normal(size=(2, 500, 8))
    >>> def scores(user, item):
    ...     return (users[user] * catalogue[item]).sum(axis=1)
    >>> targets = np.arange(500), np.arange(500)
    >>> result = evaluate(scores, targets, items=500, metrics="NDCG@10")
    >>> full = evaluate((users, catalogue), targets, items=500, metrics="NDCG@10")
    >>> bool(np.isclose(result["NDCG@10"].value, full["NDCG@10"].value)), result.share < 0.2
    (True, True)
    >>> near = evaluate(scores, targets, items=500, metrics="NDCG@10", error=0.2)
    >>> near.reached, near.design.name
    (True, 'guided')
    """
    items = check_integer("items", items, minimum=2, maximum=LARGEST_ORDER)
    if run is not None:
        check_kind("run", run, Run, hint="such as unsample.Run(workers=4)")
    several = isinstance(scorer, Mapping)
    scorers = _as_scorers(scorer, items) if several else {"": as_scorer(scorer, items)}
    how = Run() if run is None else run
    pairs, relevance = _with_relevance(targets)
    candidates = Candidates.check(pairs, items, exclude, filtered=filtered)
    candidates.refuse_repeated()
    candidates.refuse_unrankable()
    asked = DEFAULT_METRICS if metrics is None else metrics
    wanted = comparable(asked) if several else _metrics.parse_all(asked)
    chosen = _chosen(design, scorers.values(), candidates, wanted, budget, error, guide)
    seed = as_seed(rng)
    grades = None if relevance is None else as_grades(relevance, len(candidates), wanted)
    if grades is not None and not grades.all():
        # Items of relevance 0 were judged as not relevant.
        kept = grades > 0
        candidates, grades = candidates.take(kept), grades[kept]
    if not chosen.certifies:
        wanted = _of_samples(chosen, candidates, grades, wanted, metrics is None)
    with terminal_progress("evaluating") as bar:
        each = run_design(
            chosen,
            list(scorers.values()),
            candidates,
            metrics=wanted,
            budget=budget,
            ties=how.ties,
            rng=seed,
            guide=as_guide(guide, candidates) if chosen.guided else None,
            relevance=grades,
            how=replace(how, progress=how.progress or bar),
            names=list(scorers) if several else (),
        )
    # Without ``exclude`` it is not known whether users had seen any items.
    among = None if exclude is None else "unseen"
    results = {}
    for name, found in zip(scorers, each, strict=True):
        estimates = estimates_of(found, wanted, relevance=grades, protocol=among)
        results[name] = Evaluation.of(
            found, estimates, targets=candidates.targets, rng=seed, relevance=grades, error=error
        )
    if several:
        return compare(results, metrics=wanted, read=Read(rng=seed))
    warn_of(results[""].notes)
    return results[""]


def _with_relevance(targets: Any) -> tuple[Any, Any]:
    """Return the pair of users and items, and how relevant the items are, if that is given."""
    if isinstance(targets, tuple | list) and len(targets) == 3:
        users, items, relevance = targets
        return (users, items), relevance
    return targets, None


def _chosen(
    design: str | Design | None,
    scorers: Collection[Scorer],
    candidates: Candidates,
    metrics: tuple[Metric, ...],
    budget: int | None,
    error: float | None,
    guide: Any,
) -> Design:
    """Return the design that was asked for, or the one for such scorers.

    Cheap scores are ranked in full, unless that is more than the budget.
    """
    whole = guide is None and all(scorer.whole for scorer in scorers)
    unlimited = any(metric.k is None and metric.family is not _metrics.RPrec for metric in metrics)
    found: Design = Guided(error=error)
    if design is not None:
        found = as_design(design)
    elif budget is None and (whole or error is None):
        found = Exact() if whole or unlimited else Certified()
    elif whole and len(scorers) * int(candidates.others.sum() + len(candidates)) <= (budget or 0):
        found = Exact()
    elif unlimited and error is None:
        found = Fixed()
    if guide is not None and not found.guided:
        raise DesignError(
            f"guide must be left out with design={found.name!r}, which needs none; use "
            "design='guided' or 'certified'"
        )
    if error is None or found.exact:
        return found
    if not isinstance(found, Guided):
        raise DesignError(
            f"error must be left out with design={found.name!r}, whose error is what its sample "
            "gives; use design='guided', or unsample.plan(error=...) for the size of the sample"
        )
    return replace(found, error=error)


def _of_samples(
    design: Design,
    candidates: Candidates,
    relevance: FloatArray | None,
    metrics: tuple[Metric, ...],
    by_default: bool,
) -> tuple[Metric, ...]:
    """Return the metrics that a sampled design can estimate; refuse others if they were named."""
    if relevance is not None:
        raise DesignError(
            f"relevance must be left out with design={design.name!r}, which knows no grades; use "
            "design='guided', 'certified' or 'exact'"
        )
    if candidates.filtered or len(np.unique(candidates.users)) == len(candidates):
        return metrics
    if by_default:
        return tuple(each for each in metrics if not each.family.uses_positions)
    for metric in metrics:
        refuse_joint(metric)
    return metrics


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
        try:
            found[name] = as_scorer(model, items)
        except InputError as problem:
            raise InputError(f"{problem} (model {name!r})") from problem
    return found


@one_thread()
def estimates_of(
    found: Findings,
    metrics: tuple[Metric, ...],
    *,
    relevance: FloatArray | None = None,
    protocol: str | None = None,
) -> Estimates:
    """Return metrics from what a design found: known, estimated from a draw, or from samples."""
    if not found.design.certifies:
        return estimate_counts(
            found.counts, metrics=metrics, method=DEFAULT_METHOD, protocol=protocol
        )
    if found.unknown.any():
        return guided_targets(found, metrics, relevance)
    estimates = exact_targets(found, metrics, relevance)
    if np.array_equal(found.lowest, found.ranks):
        return estimates
    # The last rank stands for all ranks beyond K: right for metrics@K, but it is not P(R).
    return replace(estimates, distributions={})
