"""Full-catalogue recommendation metrics from sampled ranks.

>>> import unsample
>>> ranks = [1 + user**3 // 300_000 for user in range(300)]
>>> result = unsample.estimate(ranks, items=3706, sampled=99, metrics=["Recall@50"])
>>> low, high = result["Recall@50"].interval(0.95)
>>> round(result["Recall@50"].value, 1), round(low, 1), round(high, 1)
(0.3, 0.2, 0.3)

A module or a name is loaded when it is first used, so that ``import unsample`` takes little time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.4.0"

#: The public modules.
_MODULES = (
    "adapters",
    "designs",
    "errors",
    "estimators",
    "lab",
    "metrics",
    "report",
    "sampling",
    "scoring",
)
#: The public names, by the module that defines them.
_HOLDERS = {
    "questions.estimate.ask": ("estimate",),
    "questions.estimate.exact": ("exact",),
    "questions.estimate.result": ("Estimates",),
    "questions.compare.ask": ("compare",),
    "questions.compare.result": ("Comparison",),
    "questions.compare.data_sets": ("Across",),
    "questions.published.ask": ("published",),
    "questions.published.leaderboard": ("Leaderboard",),
    "questions.published.result": ("Published",),
    "questions.evaluate.ask": ("evaluate",),
    "questions.evaluate.result": ("Evaluation",),
    "questions.plan.ask": ("plan",),
    "questions.plan.result": ("Plan",),
    "questions.audit.ask": ("audit",),
    "questions.audit.result": ("Audit",),
    "designs": ("Run",),
    "counts": ("Negatives", "RankCounts", "sampled_ranks"),
    "posterior": ("Prior",),
    "tables": ("Read", "sql"),
}
#: The module of each public name.
_HOLDER_OF = {name: holder for holder, names in _HOLDERS.items() for name in names}

__all__ = [
    "Across",
    "Audit",
    "Comparison",
    "Estimates",
    "Evaluation",
    "Leaderboard",
    "Negatives",
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
    "metrics",
    "plan",
    "published",
    "report",
    "sampled_ranks",
    "scoring",
    "sql",
]

if TYPE_CHECKING:
    from unsample import adapters, designs, errors, estimators, metrics, report, scoring
    from unsample import sampling as sampling
    from unsample.counts import Negatives, RankCounts, sampled_ranks
    from unsample.designs import Run
    from unsample.posterior import Prior
    from unsample.questions.audit.ask import audit
    from unsample.questions.audit.result import Audit
    from unsample.questions.compare.ask import compare
    from unsample.questions.compare.data_sets import Across
    from unsample.questions.compare.result import Comparison
    from unsample.questions.estimate.ask import estimate
    from unsample.questions.estimate.exact import exact
    from unsample.questions.estimate.result import Estimates
    from unsample.questions.evaluate.ask import evaluate
    from unsample.questions.evaluate.result import Evaluation
    from unsample.questions.plan.ask import plan
    from unsample.questions.plan.result import Plan
    from unsample.questions.published.ask import published
    from unsample.questions.published.leaderboard import Leaderboard
    from unsample.questions.published.result import Published
    from unsample.tables import Read, sql


def __getattr__(name: str) -> Any:
    if name not in _MODULES and name not in _HOLDER_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    rules = importlib.import_module("unsample._rules")
    if name in _MODULES:
        return rules.import_whole(f"unsample.{name}")
    value = getattr(rules.import_whole(f"unsample.{_HOLDER_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
