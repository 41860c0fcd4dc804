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
        The model, in one of these forms; a higher score is better:

        * ``scorer(users, items) -> scores``, three vectors of one length: a function, or a
          ``torch.nn.Module``;
        * cheap scores: an object whose ``score_all(users)`` returns a row of scores for each user;
          a matrix of scores, users x items; a pair (user factors, item factors); or a pair (sparse
          users x items, item-item weights);
        * a dict of names and scorers: the models are evaluated together, on the same users, and the
          result is a `Comparison`. Its ``estimates["A"]`` is the `Evaluation` of model A.

        Items with the score -inf rank below all others, items with +inf above; NaN is an error. The
        score of a pair must not depend on the other pairs of the same call.
    targets
        The relevant items: a pair (users, items) of id arrays (a user with several targets appears
        several times), or a sparse users x items matrix. With a third array, (users, items,
        relevance), targets have grades, for NDCG; the design is then ``"exact"``, ``"certified"``
        or ``"guided"``.
    items
        The number of items in the catalogue.
    metrics
        Names such as ``"NDCG@10"``, or metrics of `unsample.metrics`; by default Recall@10, NDCG@10
        and AP@10.
    design
        ``"exact"``, ``"certified"``, ``"guided"`` or ``"fixed"``; or one with parameters, such as
        ``Fixed(sampled=99)``, ``Fixed(99, full=300)`` (300 users drawn at random are ranked in
        full) or ``unsample.plan(...).best.design``.

        By default cheap scores are ranked in full (``"exact"``), unless a guide is given or the
        budget is too small for that. Other scorers have the design ``"guided"`` if there is a
        budget or an error, and otherwise ``"certified"``. If a metric has no K, they have
        ``"fixed"`` if there is a budget, and otherwise ``"exact"``.
    budget
        The total number of scores that may be asked for, of all models and with the scores of the
        targets: a hard limit. A guided or fixed design uses the whole budget. An exact or certified
        design is refused if the budget is too small for it.
    error
        How far each metric may be from the full ranking of these users, at 95 %, relative to it:
        0.05 is within 5 %. After the guided part a pilot of users is ranked in full, which decides
        how many more are drawn. ``result.reached`` says whether the error was reached: a budget may
        end the draw before.
    exclude
        A sparse users x items matrix of pairs to leave out (training data); None keeps all items.
    guide
        A number for each item, or cheap scores as above, that tell which items are strong. In a
        guided or certified design it decides the order in which items are scored. A bad guide costs
        more scores, and a guided result then has a wider interval; no guide makes a result wrong.
        By default the guide is the popularity of items in ``exclude``; without ``exclude`` items
        come in random order. The scores of the guide do not count in the budget.
    filtered
        False: a target also competes with the user's other targets, as in a list of
        recommendations, and metrics are means over users. True: the other targets are left out, as
        in knowledge graphs, and metrics are means over targets. Errors count users in both cases.
    rng
        A seed or a Generator. It decides the order in which each target meets items, which is the
        same for every model, batch size and number of workers.
    run
        How the work is done: `unsample.Run`, with ties, batches, threads, a device, a checkpoint
        and progress.

    Returns
    -------
    Evaluation or Comparison
        The metrics, their intervals and the cost of one model; or the comparison of several.

    Raises
    ------
    BudgetError
        If the budget is too small for the design.
    ScoreError
        If the scorer returns no scores, or not one for each pair.
    DesignError, MetricError, InputError
        If an argument is wrong, or does not go with the design; the message names it.

    >>> users, catalogue = np.random.default_rng(0).normal(size=(2, 500, 8))
    >>> def scores(user, item):
    ...     return (users[user] * catalogue[item]).sum(axis=1)
    >>> targets = np.arange(500), np.arange(500)
    >>> result = evaluate(scores, targets, items=500, metrics="NDCG@10")
    >>> full = evaluate((users, catalogue), targets, items=500, metrics="NDCG@10")
    >>> round(result["NDCG@10"].value, 4), round(full["NDCG@10"].value, 4)
    (0.0135, 0.0135)
    >>> round(result.share, 3)                        # of the scores that a full ranking needs
    0.1
    >>> near = evaluate(scores, targets, items=500, metrics="NDCG@10", error=0.2)
    >>> near.reached, near.design.name
    (True, 'guided')
    """
    items = check_integer("items", items, minimum=2, maximum=LARGEST_ORDER)
    if run is not None:
        check_kind("run", run, Run, hint="such as unsample.Run(workers=4)")
    several = isinstance(scorer, Mapping)
    scorers = _as_scorers(scorer, items) if several else {"": as_scorer(scorer, items)}
    settings = Run() if run is None else run
    pairs, relevance = _with_relevance(targets)
    candidates = Candidates.check(pairs, items, exclude=exclude, filtered=filtered)
    candidates.refuse_repeated()
    candidates.refuse_unrankable()
    asked = DEFAULT_METRICS if metrics is None else metrics
    wanted = comparable(asked) if several else _metrics.parse_all(asked)
    chosen = _chosen(
        design,
        scorers.values(),
        candidates=candidates,
        metrics=wanted,
        budget=budget,
        error=error,
        guide=guide,
    )
    seed = as_seed(rng)
    grades = None
    if relevance is not None:
        grades = as_grades(relevance, len(candidates), metrics=wanted)
    if grades is not None and not grades.all():
        # Items of relevance 0 were judged as not relevant.
        kept = grades > 0
        candidates = candidates.take(kept)
        grades = grades[kept]
    if not chosen.certifies:
        wanted = _of_samples(
            wanted,
            chosen,
            candidates=candidates,
            relevance=grades,
            by_default=metrics is None,
        )
    with terminal_progress("evaluating") as bar:
        findings_of_all = run_design(
            chosen,
            list(scorers.values()),
            candidates,
            metrics=wanted,
            budget=budget,
            ties=settings.ties,
            rng=seed,
            guide=as_guide(guide, candidates) if chosen.guided else None,
            relevance=grades,
            how=replace(settings, progress=settings.progress or bar),
            names=list(scorers) if several else (),
        )
    # Without ``exclude`` it is not known whether users had seen any items.
    protocol = None if exclude is None else "unseen"
    results = {}
    for name, findings in zip(scorers, findings_of_all, strict=True):
        estimates = estimates_of(findings, wanted, relevance=grades, protocol=protocol)
        results[name] = Evaluation.of(
            findings,
            estimates,
            targets=candidates.targets,
            rng=seed,
            relevance=grades,
            error=error,
        )
    if several:
        return compare(results, metrics=wanted, read=Read(rng=seed))
    result = results[""]
    warn_of(result.notes)
    return result


def _with_relevance(targets: Any) -> tuple[Any, Any]:
    """Return the pair of users and items, and the relevance of the items or None."""
    if isinstance(targets, tuple | list) and len(targets) == 3:
        users, items, relevance = targets
        return (users, items), relevance
    return targets, None


def _chosen(
    design: str | Design | None,
    scorers: Collection[Scorer],
    *,
    candidates: Candidates,
    metrics: tuple[Metric, ...],
    budget: int | None,
    error: float | None,
    guide: Any,
) -> Design:
    """Return the design that was asked for, or by default the one that suits the scorers."""
    # An error out of range is refused here, whatever the design is.
    guided = Guided(error=error)
    if design is not None:
        chosen = as_design(design)
    else:
        chosen = _usual_design(
            scorers,
            candidates,
            metrics=metrics,
            budget=budget,
            guided=guided,
            has_guide=guide is not None,
        )
    if guide is not None and not chosen.guided:
        raise DesignError(
            f"guide must be left out with design={chosen.name!r}, which needs none; use "
            "design='guided' or 'certified'"
        )
    if error is None or chosen.exact:
        return chosen
    if not isinstance(chosen, Guided):
        raise DesignError(
            f"error must be left out with design={chosen.name!r}, whose error is what its sample "
            "gives; use design='guided', or unsample.plan(error=...) for the size of the sample"
        )
    return replace(chosen, error=error)


def _usual_design(
    scorers: Collection[Scorer],
    candidates: Candidates,
    *,
    metrics: tuple[Metric, ...],
    budget: int | None,
    guided: Guided,
    has_guide: bool,
) -> Design:
    """Return the design that suits the scorers.

    Cheap scores are ranked in full, unless that takes more scores than the budget allows. A guided
    design has the error that is sought, if there is one.
    """
    cheap = not has_guide and all(scorer.whole for scorer in scorers)
    without_k = any(metric.k is None and metric.family is not _metrics.RPrec for metric in metrics)
    if budget is None and (cheap or guided.error is None):
        return Exact() if cheap or without_k else Certified()
    if cheap:
        in_full = len(scorers) * int(candidates.others.sum() + len(candidates))
        if in_full <= (budget or 0):
            return Exact()
    if without_k and guided.error is None:
        return Fixed()
    return guided


def _of_samples(
    metrics: tuple[Metric, ...],
    design: Design,
    *,
    candidates: Candidates,
    relevance: FloatArray | None,
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
        return tuple(metric for metric in metrics if not metric.family.uses_positions)
    for metric in metrics:
        refuse_joint(metric)
    return metrics


def _as_scorers(models: Mapping[str, Any], items: int) -> dict[str, Scorer]:
    """Return scorers by name; all are checked before any of them is asked for scores."""
    scorers: dict[str, Scorer] = {}
    if len(models) < 2:
        raise InputError(
            "scorer must be one model, or map at least two names to their models, got "
            f"{len(models)} in a dict"
        )
    for name, model in models.items():
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"models must be named by text that is not blank, got {name!r}")
        try:
            scorers[name] = as_scorer(model, items)
        except InputError as problem:
            raise InputError(f"{problem} (model {name!r})") from problem
    return scorers


@one_thread()
def estimates_of(
    findings: Findings,
    metrics: tuple[Metric, ...],
    *,
    relevance: FloatArray | None = None,
    protocol: str | None = None,
) -> Estimates:
    """Return metrics from the findings of a design, which may be known, drawn or sampled."""
    if not findings.design.certifies:
        return estimate_counts(
            findings.counts, metrics=metrics, method=DEFAULT_METHOD, protocol=protocol
        )
    if findings.unknown.any():
        return guided_targets(findings, metrics, relevance=relevance)
    estimates = exact_targets(findings, metrics, relevance=relevance)
    if np.array_equal(findings.lowest, findings.ranks):
        return estimates
    # The last rank stands for all ranks beyond K: right for metrics@K, but it is not P(R).
    return replace(estimates, distributions={})
