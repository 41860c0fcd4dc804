"""What each user adds to each metric: known, or between the least and the most that is possible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray
from unsample.designs._findings import Notes
from unsample.evidence import Targets, number_users
from unsample.metrics import Metric


@dataclass(frozen=True, eq=False)
class UserValues:
    """What each user adds to each metric, and how much the user counts."""

    #: Users x metrics; sums over their targets where each target counts.
    totals: FloatArray
    weights: FloatArray

    @classmethod
    def of(
        cls, found: Targets, metrics: Iterable[Metric], relevance: FloatArray | None = None
    ) -> UserValues:
        """Compute the metrics of each user of some targets."""
        size = len(found.ranks)
        users = np.arange(size) if found.users is None else number_users(found.users, size)
        ranks = np.asarray(found.ranks)
        return cls.of_ranks(metrics, ranks, users, found.items, relevance, found.filtered)

    @classmethod
    def of_ranks(
        cls,
        metrics: Iterable[Metric],
        ranks: IntArray,
        users: IntArray,
        items: npt.ArrayLike,
        relevance: FloatArray | None,
        filtered: bool,
    ) -> UserValues:
        """Compute the metrics of each user, or of each target if the others were left out.

        ``users`` are numbers from 0, one for each of the ``ranks``.
        """
        unit = np.arange(len(ranks)) if filtered else users
        values = np.stack(
            [metric.of_users(ranks, unit, items, relevance) for metric in metrics], axis=1
        )
        if not filtered:
            return cls(values, np.ones(len(values)))
        totals = np.stack([np.bincount(users, column) for column in values.T], axis=1)
        return cls(totals.astype(np.float64), np.bincount(users).astype(np.float64))

    @property
    def means(self) -> FloatArray:
        """Return the metrics: means over users."""
        return np.asarray(self.totals.sum(axis=0) / self.weights.sum())


@dataclass(frozen=True, eq=False)
class OpenValues:
    """What users add to each metric: as far as it is known, and its limits when users were drawn.

    Each is an array of users x metrics.
    """

    values: FloatArray
    least: FloatArray
    most: FloatArray
    weights: FloatArray

    @classmethod
    def of(
        cls,
        metrics: Iterable[Metric],
        ranks: IntArray,
        notes: Notes,
        users: IntArray,
        items: npt.ArrayLike,
        relevance: FloatArray | None,
        filtered: bool,
    ) -> OpenValues:
        """Return values and limits.

        The ``notes`` tell which targets were open when users were drawn, and how often they had
        been beaten. Of the others the ``ranks`` were known as far as the metrics need.
        """
        still_open = notes.reserved > 0
        best = np.where(still_open, 1 + notes.before, ranks)
        if not filtered and relevance is None:
            best = _apart(users, best)
        last = np.where(still_open, np.asarray(items), ranks)
        wanted = tuple(metrics)
        known, most, least = (
            UserValues.of_ranks(wanted, some, users, items, relevance, filtered)
            for some in (ranks, best, last)
        )
        return cls(known.totals, least.totals, most.totals, known.weights)


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
