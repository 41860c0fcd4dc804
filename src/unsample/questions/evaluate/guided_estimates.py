"""Metrics from a guided evaluation: known for most users, estimated from a draw of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unsample._checks import FloatArray
from unsample.answers._estimates import MEAN, Estimate, Estimates
from unsample.answers._notes import Note
from unsample.answers._spread import MeanSpread
from unsample.bounds import FEW_DRAWN, DrawnError
from unsample.designs import Findings, OpenValues, drawn_users
from unsample.evidence import number_users
from unsample.metrics import Metric
from unsample.prior import BOUNDS

#: The name of the method in results, for values that come from a guided evaluation.
NAME = "guided"


def guided_targets(
    found: Findings, metrics: Sequence[Metric], relevance: FloatArray | None = None
) -> Estimates:
    """Return metrics that are unbiased for any P(R), with the error from the draw of users.

    ``found`` must hold targets of which a random part was ranked in full.
    """
    size = len(found.ranks)
    users = np.arange(size) if found.users is None else number_users(found.users, size)
    values = OpenValues.of(found, found.notes, metrics, relevance)
    drawn = drawn_users(found.notes, users, found.unknown, values.weights)
    entries = []
    for place, metric in enumerate(metrics):
        least, most = values.least[:, place], values.most[:, place]
        error = DrawnError.of_drawn(drawn, least, most, values.values[:, place], metric)
        value, own = error.draw.value, error.draw
        spread = MeanSpread(value, error)
        # From a few drawn users there are limits that hold, but no law of a mean.
        source = BOUNDS if drawn.users < FEW_DRAWN and own.stake > 0.0 else MEAN
        ends = spread.interval(0.95)
        entries.append(Estimate(metric, NAME, value, source, spread, own, ends, found.ranges))
    few = any(entry.source == BOUNDS for entry in entries)
    unresolved = Note(
        "unresolved",
        f"metrics are not resolved by the budget: {drawn.users} users were drawn to stand for "
        f"others, and {FEW_DRAWN} are the least; raise the budget, or give a better guide",
    )
    notes = (unresolved,) if few else ()
    return Estimates(tuple(entries), found.ranges, {}, notes=notes, filtered=found.filtered)
