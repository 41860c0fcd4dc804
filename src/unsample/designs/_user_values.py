"""What each user adds to each metric: a known value, or the minimum and maximum possible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.counts import Targets, number_users
from unsample.designs._findings import DesignNotes
from unsample.metrics import Metric


@dataclass(frozen=True, eq=False)
class UserValues:
    """What each user adds to each metric, and how much the user counts."""

    #: Users x metrics; sums over their targets where each target counts.
    totals: FloatArray
    weights: FloatArray

    @classmethod
    def of(
        cls,
        found: Targets,
        metrics: Iterable[Metric],
        relevance: FloatArray | None = None,
        ranks: IntArray | None = None,
    ) -> UserValues:
        """Compute the metrics of each user, or sums over targets if the others were left out.

        The ``ranks`` are by default those of ``found``.
        """
        ranks, each = (
            np.asarray(found.ranks if ranks is None else ranks),
            np.arange(len(found.ranks)),
        )
        users = each if found.users is None else number_users(found.users, len(each))
        unit = each if found.filtered else users
        values = np.stack(
            [metric.of_users(ranks, unit, found.items, relevance) for metric in metrics], axis=1
        )
        if not found.filtered:
            return cls(values, np.ones(len(values)))
        totals = np.stack([np.bincount(users, column) for column in values.T], axis=1)
        return cls(totals.astype(np.float64), np.bincount(users).astype(np.float64))

    @property
    def means(self) -> FloatArray:
        """Return the metrics: means over users."""
        return np.asarray(self.totals.sum(axis=0) / self.weights.sum())


@dataclass(frozen=True, eq=False)
class OpenValues:
    """What users add to each metric: the known part, and the limits before users were drawn.

    Each is an array of users x metrics.
    """

    values: FloatArray
    minimum: FloatArray
    maximum: FloatArray
    weights: FloatArray

    @classmethod
    def of(
        cls,
        found: Targets,
        notes: DesignNotes,
        metrics: Iterable[Metric],
        relevance: FloatArray | None,
    ) -> OpenValues:
        """Return values and limits.

        The ``notes`` tell which targets were open when users were drawn, and how many items had
        beaten them. The ranks of all other targets were known, as far as the metrics need them.
        """
        still_open, ranks = notes.reserved > 0, np.asarray(found.ranks)
        best = np.where(still_open, 1 + notes.before, ranks)
        if found.users is not None and not found.filtered and relevance is None:
            best = _distinct(number_users(found.users, len(best)), best)
        last = np.where(still_open, np.asarray(found.items), ranks)
        wanted = tuple(metrics)
        known, maximum, minimum = (
            UserValues.of(found, wanted, relevance, some) for some in (ranks, best, last)
        )
        return cls(known.totals, minimum.totals, maximum.totals, known.weights)


def _distinct(user: IntArray, ranks: IntArray) -> IntArray:
    """Return the best ranks that lists can have, where a user's targets have different ranks."""
    order = np.lexsort([ranks, user])
    who, index = user[order], np.arange(len(user))
    beyond = ranks[order] - index
    jump = int(ranks.max()) + len(ranks) + 1
    # The running maximum within each user: each user has a separate range of numbers.
    greatest = np.maximum.accumulate(beyond + jump * who) - jump * who
    distinct = np.empty_like(ranks)
    distinct[order] = greatest + index
    return distinct
