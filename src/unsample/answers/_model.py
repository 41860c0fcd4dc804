"""What a comparison knows about one model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray
from unsample.answers._estimates import Estimates
from unsample.answers._evaluation import Evaluation
from unsample.answers._given import Given
from unsample.answers._published import Published
from unsample.errors import InputError
from unsample.evidence import RankCounts, Targets, distinct_rows, distinct_users


@dataclass(frozen=True, eq=False)
class Model:
    """One model: counts for its estimates and, if known, targets to pair it with others."""

    name: str
    counts: RankCounts
    #: Its targets one by one; None if only their counts are known.
    targets: Targets | None = None
    #: What to match targets by if users are not given; None to match them by position.
    labels: npt.NDArray[Any] | None = None
    #: Its estimates, if they were made before.
    made: Evaluation | Published | None = None

    @classmethod
    def of(cls, name: str, source: Any, given: Given) -> Model:
        """Return a model from any form in which it may be given."""
        if isinstance(source, Evaluation):
            return cls(name, source.counts, source.found, made=source)
        if isinstance(source, Published):
            return cls(name, source.counts, made=source)
        if isinstance(source, Estimates):
            raise InputError(f"{name} must be ranks or an evaluation, got estimates; give counts")
        found = given.targets(source, name)
        if isinstance(found, RankCounts):
            return cls(name, found)
        # Ranks with an index, such as a pandas Series, are matched by its labels.
        index = None if hasattr(source, "columns") else getattr(source, "index", None)
        labels = None if index is None or callable(index) else np.asarray(index)
        return cls(name, found.counts, found, labels)

    @property
    def published(self) -> bool:
        """Return whether only the numbers of a paper are known."""
        return isinstance(self.made, Published)

    @property
    def relevance(self) -> FloatArray | None:
        """Return how relevant each target is; None if that is not known."""
        return self.made.relevance if isinstance(self.made, Evaluation) else None

    @cached_property
    def keys(self) -> tuple[npt.NDArray[Any], IntArray]:
        """Return the distinct keys of users, sorted, and for each target the place of its key.

        If two models have the same keys, their users are in the same order.
        """
        assert self.targets is not None
        key = self.labels if self.targets.users is None else self.targets.users
        return distinct_users(np.arange(len(self.targets.ranks)) if key is None else key)

    @cached_property
    def user_weights(self) -> FloatArray:
        """Return how much each user counts: the user's targets if metrics are per target."""
        assert self.targets is not None
        if self.targets.filtered:
            return np.bincount(self.keys[1]).astype(np.float64)
        return np.ones(len(self.keys[0]))

    @cached_property
    def cells(self) -> tuple[IntArray, IntArray]:
        """Return the different cells that targets of one user are paired in, and each target's."""
        assert self.targets is not None
        return distinct_rows(self.targets.cells)
