"""Full-catalogue recommendation metrics from sampled ranks.

>>> import unsample
>>> result = unsample.estimate([1, 1, 2, 5, 40], items=3706, sampled=99, metrics=["Recall@50"])
>>> result["Recall@50"].resolved
True

Everything below is loaded when it is first used, so that ``import unsample`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: Name -> the module that holds it (None: the name is a module itself).
_SURFACE = {
    "Comparison": "comparison",
    "Design": "sampling",
    "Estimate": "estimation",
    "Estimates": "estimation",
    "Plan": "planning",
    "Published": "publication",
    "RankCounts": "counts",
    "RankDistribution": "distribution",
    "Shape": "confidence",
    "adapters": None,
    "compare": "comparison",
    "confidence": None,
    "datasets": None,
    "estimate": "estimation",
    "estimators": None,
    "errors": None,
    "evaluate": "evaluation",
    "exact": "estimation",
    "experiment": None,
    "frames": None,
    "metrics": None,
    "plan": "planning",
    "published": "publication",
    "ranking": None,
    "recommenders": None,
    "report": None,
}

__all__ = [
    "Comparison",
    "Design",
    "Estimate",
    "Estimates",
    "Plan",
    "Published",
    "RankCounts",
    "RankDistribution",
    "Shape",
    "adapters",
    "compare",
    "confidence",
    "datasets",
    "errors",
    "estimate",
    "estimators",
    "evaluate",
    "exact",
    "experiment",
    "frames",
    "metrics",
    "plan",
    "published",
    "ranking",
    "recommenders",
    "report",
]

if TYPE_CHECKING:
    from unsample import (
        adapters,
        confidence,
        datasets,
        errors,
        estimators,
        experiment,
        frames,
        metrics,
        ranking,
        recommenders,
        report,
    )
    from unsample.comparison import Comparison, compare
    from unsample.confidence import Shape
    from unsample.counts import RankCounts
    from unsample.distribution import RankDistribution
    from unsample.estimation import Estimate, Estimates, estimate, exact
    from unsample.evaluation import evaluate
    from unsample.planning import Plan, plan
    from unsample.publication import Published, published
    from unsample.sampling import Design


def __getattr__(name: str) -> Any:
    if name not in _SURFACE:
        raise AttributeError(f"module 'unsample' has no attribute {name!r}")
    module = importlib.import_module(f"unsample.{_SURFACE[name] or name}")
    value = module if _SURFACE[name] is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
