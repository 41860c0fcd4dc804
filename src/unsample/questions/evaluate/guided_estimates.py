"""Metrics from a guided evaluation: known for most users, estimated from a draw of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray
from unsample.bounds import FEW_DRAWN, DrawnError, DrawnMean
from unsample.counts import number_users
from unsample.designs import Findings, OpenValues, drawn_users
from unsample.metrics import Metric
from unsample.questions.estimate.result import BOUNDS, MEAN, Estimate, Estimates
from unsample.report import Note
from unsample.uncertainty import DEFAULT_LEVEL, MeanWithLimits

#: The name of the method in results, for values that come from a guided evaluation.
NAME = "guided"


@dataclass(frozen=True)
class OtherDraws:
    """The error of a draw of users, without the error of these users as a sample of others.

    >>> draw = DrawnMean(0.5, 0.2, 0.5, error=0.03, df=50, drawn=50, outcomes_without_loss=50.0,
    ...     max_value=1.0)
    >>> low, high = MeanWithLimits(draw.value, OtherDraws(draw)).interval(0.95)
    >>> round(draw.value, 2), round(low, 2), round(high, 2)
    (0.4, 0.35, 0.45)
    """

    draw: DrawnMean

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return the ends at a level; the draw knows its value."""
        return self.draw.interval(level)


def guided_targets(
    findings: Findings, metrics: Sequence[Metric], *, relevance: FloatArray | None = None
) -> Estimates:
    """Return metrics that are unbiased for any P(R), with the error from the draw of users.

    ``findings`` must hold targets of which a random part was ranked in full.
    """
    size = len(findings.ranks)
    users = np.arange(size)
    if findings.users is not None:
        users = number_users(findings.users, size)
    values = OpenValues.of(findings, findings.notes, metrics=metrics, relevance=relevance)
    drawn = drawn_users(findings.notes, users, unknown=findings.unknown, weights=values.weights)
    entries = []
    for index, metric in enumerate(metrics):
        error = DrawnError.of_drawn(
            drawn,
            values.minimum[:, index],
            max_values=values.maximum[:, index],
            values=values.values[:, index],
            metric=metric,
        )
        # From a few drawn users there are limits that hold, but no distribution of a mean.
        few_drawn = drawn.users < FEW_DRAWN and error.draw.range > 0.0
        value = error.draw.value
        like = MeanWithLimits(value, error)
        entry = Estimate(
            metric=metric,
            method=NAME,
            value=value,
            source=BOUNDS if few_drawn else MEAN,
            limits=like.interval(DEFAULT_LEVEL),
            counts=findings.ranges,
            like=like,
            known=MeanWithLimits(value, OtherDraws(error.draw)),
        )
        entries.append(entry)
    notes = []
    if any(entry.source == BOUNDS for entry in entries):
        text = (
            f"metrics are not resolved by the budget: {drawn.users} users were drawn to stand for "
            f"others, and {FEW_DRAWN} are the least; raise the budget, or give a better guide"
        )
        notes.append(Note("unresolved", text))
    return Estimates(
        tuple(entries),
        findings.ranges,
        distributions={},
        notes=tuple(notes),
        filtered=findings.filtered,
    )
