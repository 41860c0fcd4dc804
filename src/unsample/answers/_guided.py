"""Metrics from a guided evaluation: known for most users, estimated from a draw of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.answers._estimates import MEAN, Estimate, Estimates
from unsample.answers._exact import UserValues
from unsample.answers._notes import Note
from unsample.answers._spread import DrawnSpread, MeanSpread
from unsample.bounds import FEW_DRAWN, Drawn, DrawnError
from unsample.designs import Findings
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
    ranks, notes = np.asarray(found.ranks), found.notes
    size = len(ranks)
    user = np.arange(size) if found.users is None else number_users(found.users, size)
    open_then = notes.reserved > 0
    best = np.where(open_then, 1 + notes.before, ranks)
    if not found.filtered and relevance is None:
        best = _apart(user, best)
    last = np.where(open_then, np.asarray(found.items), ranks)
    # Known values, and the most and the least that was possible before users were drawn.
    values, most, least = (
        UserValues.of(replace(found, ranks=some), metrics, relevance)
        for some in (ranks, best, last)
    )
    drawn = drawn_users(found, user, values.weights)
    # Sorted, because the best rank gives the least mean rank.
    low, high = np.sort([least.totals, most.totals], axis=0)
    found_each = [
        DrawnError.of_drawn(drawn, low[:, place], high[:, place], values.totals[:, place], metric)
        for place, metric in enumerate(metrics)
    ]
    entries = []
    for metric, (value, error) in zip(metrics, found_each, strict=True):
        spread, own = MeanSpread(value, error), DrawnSpread(value, error)
        # From a few drawn users there are limits that hold, but no law of a mean.
        source = BOUNDS if drawn.users < FEW_DRAWN and error.stake > 0.0 else MEAN
        limits = spread.interval(0.95)
        entries.append(Estimate(metric, NAME, value, source, spread, own, limits, found.ranges))
    few = any(entry.source == BOUNDS for entry in entries)
    return Estimates(
        tuple(entries),
        found.ranges,
        {},
        notes=(_unresolved(drawn),) if few else (),
        filtered=found.filtered,
    )


def drawn_users(found: Findings, user: IntArray, weights: FloatArray) -> Drawn:
    """Return which users were drawn, and which of them stand for others."""
    stratum, turn = (np.zeros(len(weights), dtype=np.int64) for _ in range(2))
    stratum[user], turn[user] = found.notes.stratum, found.notes.turn
    known = np.bincount(user, found.unknown, minlength=len(weights)) == 0
    counted = turn > 0
    last = int(np.argmax(turn))
    if not known.all() and turn[last] > 0 and not known[stratum == stratum[last]].all():
        # The budget ended at this user, probably because this user was costly: see `Guided`.
        counted[last] = False
    return Drawn(weights, stratum, counted, known)


def _apart(user: IntArray, ranks: IntArray) -> IntArray:
    """Return the best ranks that lists can have, with no two the same for one user."""
    order = np.lexsort([ranks, user])
    who, place = user[order], np.arange(len(user))
    beyond = ranks[order] - place
    jump = int(ranks.max()) + len(ranks) + 1
    # The running maximum within each user: each user has a separate range of numbers.
    greatest = np.maximum.accumulate(beyond + jump * who) - jump * who
    apart = np.empty_like(ranks)
    apart[order] = greatest + place
    return apart


def _unresolved(drawn: Drawn) -> Note:
    return Note(
        "unresolved",
        f"metrics are not resolved by the budget: {drawn.users} users were drawn to stand for "
        f"others, and {FEW_DRAWN} are the least; raise the budget, or give a better guide",
    )
