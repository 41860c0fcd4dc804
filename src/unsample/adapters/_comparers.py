"""Targets to comparisons, batch by batch, the same however the targets are cut into batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, check_integer
from unsample.designs.ranking import Score, ScoreAll, exact_ranks
from unsample.designs.ranking._scores import as_scores
from unsample.errors import DesignError, InputError
from unsample.evidence import Comparisons

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["Comparer", "FullComparer", "SampledComparer"]


class Comparer(Protocol):
    """Compares targets with other items."""

    def compare(
        self, users: IntArray, targets: IntArray, weights: FloatArray | None
    ) -> Comparisons:
        """Return the comparisons of these targets."""


@dataclass(frozen=True, eq=False)
class FullComparer:
    """Compares each target with all candidates of its user."""

    score_all: ScoreAll
    items: int
    exclude: scipy.sparse.csr_array | None

    def compare(
        self, users: IntArray, targets: IntArray, weights: FloatArray | None
    ) -> Comparisons:
        """Return the comparisons of these targets with all their candidates."""
        # The best rank among ties tells how many beat a target, and no rule is applied yet.
        found = exact_ranks(
            self.score_all,
            users,
            targets,
            items=self.items,
            exclude=self.exclude,
            ties="optimistic",
        )
        return Comparisons.of_targets(
            found.ranks - 1,
            found.ties,
            items=found.items,
            sampled=found.items - 1,
            weights=weights,
        )


@dataclass(frozen=True, eq=False)
class SampledComparer:
    """Compares each target with items drawn for it, and scores nothing else.

    A target's items are drawn from a random stream of its own, found by its user and its item, so
    they depend neither on the other targets nor on the machine.
    """

    score: Score
    items: int
    sampled: int
    replacement: bool
    seed: int
    exclude: scipy.sparse.csr_array | None

    def __post_init__(self) -> None:
        check_integer("items", self.items, minimum=2, error=DesignError)
        check_integer("sampled", self.sampled, minimum=1, error=DesignError)
        check_integer("rng", self.seed, minimum=0, hint="the draws need a seed, not a Generator")

    def compare(
        self, users: IntArray, targets: IntArray, weights: FloatArray | None
    ) -> Comparisons:
        """Return the comparisons of these targets with the items drawn for each."""
        if len(targets) and not (targets.min() >= 0 and targets.max() < self.items):
            raise InputError(
                f"targets must be items from 0 to {self.items - 1}, got {targets.min()} to "
                f"{targets.max()}"
            )
        asked = np.empty((len(users), self.sampled + 1), dtype=np.int64)
        catalogue = np.empty(len(users), dtype=np.int64)
        for row, (user, target) in enumerate(zip(users.tolist(), targets.tolist(), strict=True)):
            excluded = self._excluded(user, target)
            catalogue[row] = self.items - len(excluded) + 1
            asked[row, 0] = target
            asked[row, 1:] = self._draw(user, target, excluded)
        scores = as_scores(self.score(users, asked), asked.shape, users)
        return Comparisons.of_targets(
            (scores[:, 1:] > scores[:, :1]).sum(axis=1),
            (scores[:, 1:] == scores[:, :1]).sum(axis=1),
            items=catalogue,
            sampled=self.sampled,
            weights=weights,
        )

    def _excluded(self, user: int, target: int) -> npt.NDArray[np.int64]:
        """Return what may not be drawn, in order: the target, and what the user has seen."""
        if self.exclude is None:
            return np.array([target])
        start, stop = self.exclude.indptr[user : user + 2]
        return np.union1d(self.exclude.indices[start:stop], [target]).astype(np.int64)

    def _draw(self, user: int, target: int, excluded: IntArray) -> IntArray:
        others = self.items - len(excluded)
        if others < (1 if self.replacement else self.sampled):
            raise DesignError(
                f"sampled must be at most a target's other candidates without replacement (and "
                f"there must be one), got {self.sampled} for user {user}, who has {others}"
            )
        # One key for all, and counters that no two targets share: streams that never meet.
        stream = np.random.Philox(key=self.seed, counter=[0, 0, target, user])
        rng = np.random.Generator(stream)
        if self.replacement:
            place = rng.integers(0, others, size=self.sampled)
        else:
            place = rng.choice(others, size=self.sampled, replace=False, shuffle=False)
        # The k-th candidate is k plus the excluded items before it.
        return place + np.searchsorted(excluded - np.arange(len(excluded)), place, side="right")
