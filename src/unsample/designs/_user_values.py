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
        targets: Targets,
        metrics: Iterable[Metric],
        *,
        relevance: FloatArray | None = None,
        ranks: IntArray | None = None,
    ) -> UserValues:
        """Compute the metrics of each user, or sums over targets if the others were left out.

        ``ranks`` take the place of the targets' ranks. One user has the ranks 1 and 2, so the first
        two items are relevant; the other user has rank 4 only:

        >>> from unsample.metrics import parse_all
        >>> targets = Targets(np.array([1, 2, 4]), 100, 99, users=[7, 7, 8])
        >>> UserValues.of(targets, parse_all(["HR@3", "NDCG@3"])).totals
        array([[1., 1.],
               [0., 0.]])
        """
        ranks = np.asarray(targets.ranks if ranks is None else ranks)
        row = np.arange(len(ranks))
        users = row if targets.users is None else number_users(targets.users, len(row))
        unit = row if targets.filtered else users
        columns = [
            metric.of_users(ranks, unit, items=targets.items, relevance=relevance)
            for metric in metrics
        ]
        values = np.stack(columns, axis=1)
        if not targets.filtered:
            return cls(values, np.ones(len(values)))
        totals = np.stack([np.bincount(users, column) for column in columns], axis=1)
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
        targets: Targets,
        notes: DesignNotes,
        *,
        metrics: Iterable[Metric],
        relevance: FloatArray | None,
    ) -> OpenValues:
        """Return values and limits.

        The ``notes`` tell which targets were open when users were drawn, and how many items had
        beaten them. The ranks of all other targets were known, as far as the metrics need them.
        """
        wanted = tuple(metrics)
        was_open = notes.reserved > 0
        ranks = np.asarray(targets.ranks)
        best = np.where(was_open, 1 + notes.before, ranks)
        if targets.users is not None and not targets.filtered and relevance is None:
            best = _distinct(number_users(targets.users, len(best)), best)
        last = np.where(was_open, np.asarray(targets.items), ranks)
        known = UserValues.of(targets, wanted, relevance=relevance, ranks=ranks)
        maximum = UserValues.of(targets, wanted, relevance=relevance, ranks=best)
        minimum = UserValues.of(targets, wanted, relevance=relevance, ranks=last)
        return cls(
            values=known.totals,
            minimum=minimum.totals,
            maximum=maximum.totals,
            weights=known.weights,
        )


def _distinct(user: IntArray, ranks: IntArray) -> IntArray:
    """Return the best ranks that lists can have, where a user's targets have different ranks.

    The first user has three targets of which each may have rank 1: at best they have 1, 2 and 3.

    >>> _distinct(np.array([0, 0, 0, 1]), np.array([1, 1, 1, 1]))
    array([1, 2, 3, 1])
    """
    order = np.lexsort([ranks, user])
    sorted_user = user[order]
    index = np.arange(len(user))
    beyond = ranks[order] - index
    jump = int(ranks.max()) + len(ranks) + 1
    # The running maximum within each user: each user has a separate range of numbers.
    apart = jump * sorted_user
    greatest = np.maximum.accumulate(beyond + apart) - apart
    distinct = np.empty_like(ranks)
    distinct[order] = greatest + index
    return distinct
