"""Which design `evaluate` uses, and which arguments it allows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from unsample._checks import FloatArray
from unsample.designs import Candidates, Certified, Design, Exact, Guided, Scorer
from unsample.errors import BudgetError, DesignError
from unsample.evidence import refuse_joint
from unsample.metrics import Metric


def default_design(
    scorers: Collection[Scorer],
    candidates: Candidates,
    metrics: tuple[Metric, ...],
    budget: int | None,
    guide: Any,
) -> Design:
    """Return the design for scorers that share a budget.

    Whole rows of scores are cheap: they are ranked in full, if the budget allows it and no guide
    is given, which only other designs use.
    """
    whole = guide is None and all(scorer.score_all is not None for scorer in scorers)
    if budget is None:
        return Exact() if whole or any(metric.k is None for metric in metrics) else Certified()
    if not whole:
        return Guided()
    try:
        Exact().fit(metrics, candidates.others, budget, models=len(scorers))
    except BudgetError:
        return Guided()
    return Exact()


def refuse_with_design(chosen: Design, method: Any, guide: Any) -> None:
    """Refuse arguments that belong to other designs."""
    if chosen.certifies and method is not None:
        raise DesignError(
            f"method must be left out with design={chosen.name!r}, which needs no estimator, "
            f"got {method!s}; use design='fixed'"
        )
    if guide is not None and not chosen.guided:
        raise DesignError(
            f"guide must be left out with design={chosen.name!r}, which needs none; use "
            "design='guided' or 'certified'"
        )


def of_samples(
    design: Design,
    candidates: Candidates,
    relevance: FloatArray | None,
    metrics: tuple[Metric, ...],
    *,
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
        return tuple(each for each in metrics if not each.family.uses_places)
    for metric in metrics:
        refuse_joint(metric)
    return metrics
