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

__version__ = "0.3.0.dev0"

#: Name -> the module that holds it (None: the name is a module itself).
_SURFACE = {
    "Across": "answers",
    "Audit": "answers",
    "Comparison": "answers",
    "Estimates": "answers",
    "Evaluation": "answers",
    "Plan": "answers",
    "Prior": "prior",
    "Published": "answers",
    "RankCounts": "evidence",
    "Read": "tables",
    "Run": "designs",
    "adapters": None,
    "audit": "answers",
    "compare": "answers",
    "designs": None,
    "errors": None,
    "estimate": "answers",
    "estimators": None,
    "evaluate": "answers",
    "exact": "answers",
    "lab": None,
    "law": None,
    "metrics": None,
    "plan": "answers",
    "published": "answers",
    "sampled_ranks": "evidence",
    "show": None,
    "sql": "tables",
}

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
    if name not in _SURFACE:
        from unsample._gone import no_attribute

        raise no_attribute("unsample", name)
    module = importlib.import_module(f"unsample.{_SURFACE[name] or name}")
    value = module if _SURFACE[name] is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
