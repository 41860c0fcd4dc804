"""Metrics for a corpus that was cut down: some documents were kept on purpose, others drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample.answers._exact import exact_targets
from unsample.answers._result import Estimate, Estimates, Variation
from unsample.answers._unequal import NAME, unresolved_notes
from unsample.confidence import CutCertainty, CutLaw, Shape, shape_for
from unsample.errors import DesignError, InputError, UnsampleWarning
from unsample.estimators import CLOSED_FORM, AverageCurve, Certificate, Condensed, coarse_grid
from unsample.evidence import CutTargets, Weighed
from unsample.law import RankGrid, bin_weights
from unsample.metrics import Metric

#: The default metrics: those that are usual in retrieval.
RETRIEVAL_METRICS = ("NDCG@10", "MRR@10", "Recall@100")
#: The default assumption of intervals: no query has seen documents, and many relevant documents
#: are found at the first ranks.
_SHAPE = "steep"
#: Curves are fitted on bins for samples up to this size. Finer bins would need more hits than are
#: kept for a target.
_SHARPEST = 1000


def cut_estimates(
    found: CutTargets,
    metrics: str | Metric | Iterable[str | Metric],
    candidates: str | None,
    shape: str | Shape | None,
) -> Estimates:
    """Return metrics on the full corpus, estimated from targets of a corpus that was cut down."""
    wanted = _metrics.parse_all(metrics)
    weighed = [found.for_metric(metric) for metric in wanted]
    if found.complete:
        return exact_targets(found.known, wanted, found.relevance, 400, 0)
    variation = {NAME: Variation(np.empty((0, len(wanted))))}
    stated = shape_for(_SHAPE if shape is None and candidates is None else shape, candidates)
    law, condensed = CutLaw.of(found, wanted), _condensed(found)
    entries = []
    for place, (metric, each) in enumerate(zip(wanted, weighed, strict=True)):
        certainty = CutCertainty.of_metric(each, law, stated)
        value, certificate = _fitted(each, metric, condensed)
        entries.append(
            Estimate(
                metric, NAME, value, certainty.resolves(metric), certificate, certainty,
                True, False, variation, place,
            )
        )  # fmt: skip
    notes: tuple[UnsampleWarning, ...] = unresolved_notes(
        entries, "keep more documents, or a list of hard ones for each query"
    )
    blind = float(found.rest.mean()) / found.drawn
    explained = (
        f"{found.ahead.mean():,.1f} kept documents ahead of a target on average; of the others, "
        f"one that was drawn falls into the top {blind:,.0f}"
    )
    return Estimates(
        tuple(entries),
        found.counts(),
        {},
        notes=notes,
        candidates=candidates,
        explanations={NAME: explained},
    )


def refuse_with_cut(given: Mapping[str, Any]) -> None:
    """Refuse arguments that targets of a cut corpus already hold, or that mean nothing there."""
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise InputError(
            f"{' and '.join(named)} must be left out with CutTargets, which know how their corpus "
            "was cut down, and are estimated in one way"
        )


def refuse_other_cuts(found: Mapping[str, CutTargets | None]) -> None:
    """Refuse models that did not search the same documents for the same queries."""
    without = [name for name, each in found.items() if each is None]
    if without:
        raise InputError(
            f"models must all be CutTargets where one is, got other ranks for {without[0]}: they "
            "come from another corpus"
        )
    (first, mine), *others = ((name, each) for name, each in found.items() if each is not None)
    for name, other in others:
        for what, ours, theirs in zip(_SAME, _identity(mine), _identity(other), strict=True):
            if np.array_equal(ours, theirs):
                continue
            apart = sorted(set(map(str, ours.tolist())) ^ set(map(str, theirs.tolist())))
            raise DesignError(
                f"models must have {what} to be compared, got {first} and {name} that differ, such "
                f"as in {apart[0]}; score both on one cut corpus"
            )


#: What compared models must have in common, in the order of the checks.
_SAME = (
    "searched a corpus of one size",
    "the same queries",
    "the same relevant documents, with the same grades",
    "the same documents drawn",
    "the same documents kept",
)


def _identity(found: CutTargets) -> Iterator[npt.NDArray[Any]]:
    """Yield the arrays that `_SAME` describes, in the same order."""
    names = found.names
    yield np.array([found.documents])
    yield names.queries
    order = np.lexsort([found.targets, found.queries])
    each = zip(
        names.queries[found.queries[order]].tolist(),
        names.documents[found.targets[order]].tolist(),
        found.relevance[order].tolist(),
        strict=True,
    )
    yield np.array(
        [f"document {document} of query {query} ({grade:g})" for query, document, grade in each]
    )
    yield names.documents[names.drawn]
    yield np.unique(np.stack([found.queries, found.rest]), axis=1).ravel()


def _fitted(weighed: Weighed, metric: Metric, condensed: Condensed) -> tuple[float, Certificate]:
    """Return the value of a metric, from a smooth curve for each group."""
    found, value, worst = weighed.found, 0.0, CLOSED_FORM
    items = condensed.grid.items
    for group, share in zip(weighed.groups, weighed.shares, strict=True):
        parts, hits = weighed.part[group.rows], found.hits[group.rows]
        ahead = round(float(np.average(found.ahead[group.rows], weights=parts)))
        behind = metric.behind(ahead)
        histogram = np.bincount(hits, parts / parts.sum(), minlength=found.depth + 1)
        average = AverageCurve.of(
            replace(condensed, shares=histogram[None, :].astype(np.float64)),
            weighed.counts(group).effective,
        )
        grid = RankGrid.build(items, cutoffs=[behind.cutoff(items)])
        (mass,) = average.mass(grid)
        solution = average.solution(mass[None, :])
        worst = max(worst, solution.certificate(0), key=lambda each: (not each.usable, each.gap))
        value += float(share) * float(mass @ bin_weights(behind, grid, items))
    best = metric.weights(found.ranks, found.documents)
    return min(value, float(best @ weighed.part) / found.size), worst


def _condensed(found: CutTargets) -> Condensed:
    """Return what curves are fitted to, still without the shares of a group's targets."""
    rest = round(float(found.rest.mean()))
    grid = coarse_grid(rest + 1, min(found.drawn, _SHARPEST))
    return Condensed(grid, found.expected(rest, grid), np.empty((0, found.depth + 1)), 0)
