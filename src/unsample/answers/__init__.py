"""Answers: `estimate`, `exact`, `evaluate`, `compare`, `plan`, `published`, and their results."""

from unsample.answers._estimate import (
    DEFAULT_METHOD,
    DEFAULT_METRICS,
    estimate,
    estimate_counts,
    exact,
)
from unsample.answers._evaluate import ADAPTIVE_METHOD, Evaluation, evaluate
from unsample.answers._plan import Plan, plan
from unsample.answers._result import DEFAULT_LEVEL, Estimate, Estimates, Result
from unsample.answers.comparison import Comparison, Difference, compare
from unsample.answers.publication import Published, published

__all__ = [
    "ADAPTIVE_METHOD",
    "DEFAULT_LEVEL",
    "DEFAULT_METHOD",
    "DEFAULT_METRICS",
    "Comparison",
    "Difference",
    "Estimate",
    "Estimates",
    "Evaluation",
    "Plan",
    "Published",
    "Result",
    "compare",
    "estimate",
    "estimate_counts",
    "evaluate",
    "exact",
    "plan",
    "published",
]
