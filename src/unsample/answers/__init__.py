"""The functions that answer questions, from `estimate` to `audit`, and their results."""

from unsample.answers._across import LIKE, THESE, Across, MeanStanding
from unsample.answers._audit import Audit, Finding, audit
from unsample.answers._compare import compare
from unsample.answers._comparison import Comparison, Standing
from unsample.answers._estimate import (
    DEFAULT_METHOD,
    estimate,
    estimate_counts,
)
from unsample.answers._estimates import Estimate, Estimates
from unsample.answers._evaluate import estimates_of, evaluate
from unsample.answers._evaluation import Evaluation
from unsample.answers._exact import exact
from unsample.answers._gate import Gate
from unsample.answers._plan import plan
from unsample.answers._planned import Plan
from unsample.answers._prior import PRIOR_KINDS, prior_kind
from unsample.answers._published import Published, published
from unsample.answers._result import DEFAULT_LEVEL, DEFAULT_METRICS, Result, percent
from unsample.answers._verdicts import Difference

__all__ = [
    "DEFAULT_LEVEL",
    "DEFAULT_METHOD",
    "DEFAULT_METRICS",
    "LIKE",
    "PRIOR_KINDS",
    "THESE",
    "Across",
    "Audit",
    "Comparison",
    "Difference",
    "Estimate",
    "Estimates",
    "Evaluation",
    "Finding",
    "Gate",
    "MeanStanding",
    "Plan",
    "Published",
    "Result",
    "Standing",
    "audit",
    "compare",
    "estimate",
    "estimate_counts",
    "estimates_of",
    "evaluate",
    "exact",
    "percent",
    "plan",
    "prior_kind",
    "published",
]
