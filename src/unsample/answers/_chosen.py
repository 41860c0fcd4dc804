"""Which design `evaluate` uses, and which arguments it allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unsample._checks import FloatArray
from unsample.designs import AUTO, Adaptive, Candidates, Certified, Design, Exact, Guided
from unsample.errors import BudgetError, DesignError
from unsample.evidence import refuse_joint
from unsample.metrics import Metric


def default_design(
    candidates: Candidates,
    metrics: tuple[Metric, ...],
    budget: int | None,
    method: Any,
    shared: Mapping[str, int],
) -> str | Design:
    """Return `auto` without budget and method; else guided if that suffices, or adaptive."""
    if method is None and budget is None:
        return AUTO
    if method is not None or not all(map(is_of_the_top, metrics)):
        return Adaptive()
    try:
        Guided().fit(metrics, candidates.others, budget, **shared)
    except BudgetError:
        return Adaptive()
    return Guided()


def is_of_the_top(metric: Metric) -> bool:
    """Return whether the top ranks decide the metric: not for mean rank and AUC without K."""
    return metric.k is not None or (metric.family.bounded and not metric.family.uses_items)


def of_exact_ways(metrics: tuple[Metric, ...], budget: int | None, device: str | None) -> Design:
    """Return the exact design that ``"auto"`` stands for; refuse a budget."""
    if budget is not None:
        raise DesignError(
            f"budget must be left out with design='auto', which is exact whatever that takes, got "
            f"{budget!r}; with a budget leave design out, or use 'guided'"
        )
    if device is not None or any(metric.k is None for metric in metrics):
        return Exact()
    return Certified()


def refuse_with_design(chosen: Design, method: Any, guide: Any) -> None:
    """Refuse arguments that belong to other designs."""
    if chosen.certifies and method is not None:
        raise DesignError(
            f"method must be left out with design={chosen.name!r}, which needs no estimator, "
            f"got {method!s}"
        )
    if guide is not None and not chosen.guided:
        raise DesignError(
            f"guide must be left out with design={chosen.name!r}, which meets items in random "
            "order; use design='guided' or 'certified'"
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
