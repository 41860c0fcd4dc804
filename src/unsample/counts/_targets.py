"""`Targets`: what is known of targets one by one, before they are counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray
from unsample.errors import DesignError, RankError
from unsample.evidence._catalogues import design_columns
from unsample.evidence._cells import count_ranks
from unsample.evidence._columns import as_column
from unsample.evidence._counts import RankCounts
from unsample.evidence._pairs import PairCounts, pair_keys
from unsample.evidence._shared import ItemCounts
from unsample.evidence._users import number_users, relevant_and_place
from unsample.law import Law


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets one by one, for comparisons that pair them by user. All else needs only counts."""

    ranks: IntArray
    items: npt.ArrayLike
    sampled: npt.ArrayLike
    users: npt.ArrayLike | None = None
    replacement: bool = True
    #: The place of each target among those of its user, if all were ranked against the same items.
    places: npt.ArrayLike | None = None
    #: Whether the other relevant items of a user were left out, so that metrics are per target.
    filtered: bool = False
    #: How relevant each target is, for metrics with grades.
    relevance: FloatArray | None = None
    #: What is known of the items that all targets share; None where each has its own items.
    shared: ItemCounts | None = None
    #: The first rank of the range in which each target lies, where ``ranks`` is only its last.
    lowest: npt.ArrayLike | None = None

    @cached_property
    def relevant_and_place(self) -> tuple[IntArray, IntArray]:
        """Return how many targets the user of each target has, and its place among them, or 0."""
        size = len(self.ranks)
        ones = np.ones(size, dtype=np.int64)
        if self.users is None or self.filtered:
            return ones, ones
        others = np.asarray(self.items) - 1
        full = not self.replacement and bool(np.all(np.asarray(self.sampled) == others))
        return relevant_and_place(number_users(self.users, size), self.ranks, self.places, full)

    @property
    def cells(self) -> IntArray:
        """Return the pair cell of each target: see `PairCounts`."""
        size = len(self.ranks)
        design = design_columns(self.items, self.sampled, size, self.replacement)
        relevant, place = self.relevant_and_place
        return pair_keys({**design, "high": self.ranks, "relevant": relevant, "place": place})

    @cached_property
    def counts(self) -> RankCounts:
        """Return how many targets were seen at each rank."""
        return self.count()

    def count(self) -> RankCounts:
        """Return how many targets were seen at each rank, or in each range of ranks."""
        high = np.asarray(self.ranks)
        if not high.size:
            raise RankError("ranks must hold at least one rank, got none")
        alone = self.users is None and self.lowest is None
        if alone and np.ndim(self.items) == 0 and np.ndim(self.sampled) == 0:
            design = Law(self.items, self.sampled, self.replacement)  # type: ignore[arg-type]
            counts = RankCounts.from_histogram(count_ranks(high, design), design)
        else:
            counts = self._count_cells(high.astype(np.int64, copy=False))
        if self.shared is None:
            return counts
        if (counts.sampled != self.shared.sampled).any():
            raise DesignError(
                f"sampled must be the {self.shared.sampled} items that all targets share, got "
                f"{int(counts.sampled[0])}"
            )
        return replace(counts, shared=self.shared)

    def _count_cells(self, high: IntArray) -> RankCounts:
        columns: dict[str, Any] = {
            **design_columns(self.items, self.sampled, high.size, self.replacement),
            "low": high if self.lowest is None else as_column("lowest", self.lowest, high.size),
            "high": high,
            "count": np.ones(high.size, dtype=np.int64),
        }
        users = high.size
        if self.users is not None:
            user = number_users(self.users, high.size)
            users = int(user.max()) + 1
        if users == high.size:
            return RankCounts(**columns, replacement=self.replacement)
        relevant, place = self.relevant_and_place
        columns |= {"relevant": relevant, "place": place}
        clusters = PairCounts.of_users(user, pair_keys(columns))
        return RankCounts(**columns, replacement=self.replacement, users=users, clusters=clusters)
