"""The front door: `estimate` and `exact`, and the results they return."""

from unsample.answers.estimation._estimate import (
    DEFAULT_METHOD,
    DEFAULT_METRICS,
    ERRORS,
    EVERYDAY,
    Note,
    clipping_notes,
    estimate,
    exact,
    quiet_estimate,
)
from unsample.answers.estimation._results import DEFAULT_LEVEL, Estimate, Estimates

__all__ = [
    "DEFAULT_LEVEL",
    "DEFAULT_METHOD",
    "DEFAULT_METRICS",
    "ERRORS",
    "EVERYDAY",
    "Estimate",
    "Estimates",
    "Note",
    "clipping_notes",
    "estimate",
    "exact",
    "quiet_estimate",
]
