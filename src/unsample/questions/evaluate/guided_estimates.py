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
    """The error of a draw from these users alone, as the error of a mean.

    >>> draw = DrawnMean(0.5, 0.2, 0.5, error=0.03, df=50, drawn=50, outcomes_without_loss=50.0,
    ...     max_value=1.0)
    >>> low, high = MeanWithLimits(draw.value, OtherDraws(draw)).interval(0.95)
    >>> round(draw.value, 2), round(low, 2), round(high, 2)
    (0.4, 0.35, 0.45)
    """

    draw: DrawnMean

    def interval(self, value: float, level: float) -> tuple[float, float]:
        """Return the ends at a level; the value is that of the draw."""
        return self.draw.interval(level)


def guided_targets(
    found: Findings, metrics: Sequence[Metric], relevance: FloatArray | None = None
) -> Estimates:
    """Return metrics that are unbiased for any P(R), with the error from the draw of users.

    ``found`` must hold targets of which a random part was ranked in full.
    """
    size = len(found.ranks)
    users = np.arange(size) if found.users is None else number_users(found.users, size)
    values = OpenValues.of(found, found.notes, metrics=metrics, relevance=relevance)
    drawn = drawn_users(found.notes, users, found.unknown, values.weights)
    entries = []
    for place, metric in enumerate(metrics):
        minimum, maximum = values.minimum[:, place], values.maximum[:, place]
        error = DrawnError.of_drawn(drawn, minimum, maximum, values.values[:, place], metric)
        value = error.draw.value
        like = MeanWithLimits(value, error)
        # From a few drawn users there are limits that hold, but no distribution of a mean.
        few_drawn = drawn.users < FEW_DRAWN and error.draw.range > 0.0
        entries.append(
            Estimate(
                metric=metric,
                method=NAME,
                value=value,
                source=BOUNDS if few_drawn else MEAN,
                limits=like.interval(DEFAULT_LEVEL),
                counts=found.ranges,
                like=like,
                known=MeanWithLimits(value, OtherDraws(error.draw)),
            )
        )
    few = any(entry.source == BOUNDS for entry in entries)
    unresolved = Note(
        "unresolved",
        f"metrics are not resolved by the budget: {drawn.users} users were drawn to stand for "
        f"others, and {FEW_DRAWN} are the least; raise the budget, or give a better guide",
    )
    notes = (unresolved,) if few else ()
    return Estimates(tuple(entries), found.ranges, {}, notes=notes, filtered=found.filtered)
