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
    "Comparison": "answers.comparison",
    "Estimate": "answers.estimation",
    "Estimates": "answers.estimation",
    "Plan": "answers.planning",
    "Published": "answers.publication",
    "RankCounts": "evidence",
    "adapters": None,
    "compare": "answers.comparison",
    "confidence": None,
    "designs": None,
    "errors": None,
    "estimate": "answers.estimation",
    "estimators": None,
    "evaluate": "answers.evaluation",
    "exact": "answers.estimation",
    "lab": None,
    "law": None,
    "metrics": None,
    "plan": "answers.planning",
    "published": "answers.publication",
}

__all__ = [
    "Comparison",
    "Estimate",
    "Estimates",
    "Plan",
    "Published",
    "RankCounts",
    "adapters",
    "compare",
    "confidence",
    "designs",
    "errors",
    "estimate",
    "estimators",
    "evaluate",
    "exact",
    "lab",
    "law",
    "metrics",
    "plan",
    "published",
]

if TYPE_CHECKING:
    from unsample import adapters, confidence, designs, errors, estimators, lab, law, metrics
    from unsample.answers.comparison import Comparison, compare
    from unsample.answers.estimation import Estimate, Estimates, estimate, exact
    from unsample.answers.evaluation import evaluate
    from unsample.answers.planning import Plan, plan
    from unsample.answers.publication import Published, published
    from unsample.evidence import RankCounts


def __getattr__(name: str) -> Any:
    if name not in _SURFACE:
        raise AttributeError(f"module 'unsample' has no attribute {name!r}")
    module = importlib.import_module(f"unsample.{_SURFACE[name] or name}")
    value = module if _SURFACE[name] is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
