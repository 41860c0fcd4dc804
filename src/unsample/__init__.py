"""Full-catalogue recommendation metrics from sampled ranks.

>>> import unsample
>>> ranks = [1 + user**3 // 300_000 for user in range(300)]
>>> result = unsample.estimate(ranks, items=3706, sampled=99, metrics=["Recall@50"])
>>> result["Recall@50"].resolved
True

Everything below is loaded when it is first used, so that ``import unsample`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

#: The modules of the surface, and the names that others hold.
_MODULES = ("adapters", "designs", "errors", "estimators", "lab", "law", "metrics")
_HOLDERS = {
    "answers": (
        *("Across", "Audit", "Comparison", "Estimates", "Evaluation", "Plan", "Published"),
        *("audit", "compare", "estimate", "evaluate", "exact", "plan", "published"),
    ),
    "designs": ("Run",),
    "evidence": ("RankCounts", "sampled_ranks"),
    "prior": ("Prior",),
    "tables": ("Read", "sql"),
}
_SURFACE = {name: holder for holder, names in _HOLDERS.items() for name in names}

__all__ = [
    "Across",
    "Audit",
    "Comparison",
    "Estimates",
    "Evaluation",
    "Plan",
    "Prior",
    "Published",
    "RankCounts",
    "Read",
    "Run",
    "adapters",
    "audit",
    "compare",
    "designs",
    "errors",
    "estimate",
    "estimators",
    "evaluate",
    "exact",
    "lab",
    "metrics",
    "plan",
    "published",
    "sampled_ranks",
    "sql",
]

if TYPE_CHECKING:
    from unsample import adapters, designs, errors, estimators, lab, metrics
    from unsample import law as law
    from unsample import show as show
    from unsample.answers import (
        Across,
        Audit,
        Comparison,
        Estimates,
        Evaluation,
        Plan,
        Published,
        audit,
        compare,
        estimate,
        evaluate,
        exact,
        plan,
        published,
    )
    from unsample.designs import Run
    from unsample.evidence import RankCounts, sampled_ranks
    from unsample.prior import Prior
    from unsample.tables import Read, sql


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"unsample.{name}")
    if name not in _SURFACE:
        from unsample._gone import no_attribute

        raise no_attribute("unsample", name)
    value = getattr(importlib.import_module(f"unsample.{_SURFACE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
