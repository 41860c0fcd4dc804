"""`Targets`: what is known of targets one by one, before they are counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray
from unsample.errors import DesignError
from unsample.evidence._catalogues import design_columns
from unsample.evidence._counts import RankCounts
from unsample.evidence._pairs import pair_keys
from unsample.evidence._shared import ItemCounts
from unsample.evidence._users import number_users, relevant_and_place


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
        counts = RankCounts.from_ranks(
            self.ranks,
            items=self.items,
            sampled=self.sampled,
            users=self.users,
            places=self.places,
            filtered=self.filtered,
            lowest=self.lowest,
            replacement=self.replacement,
        )
        if self.shared is None:
            return counts
        if (counts.sampled != self.shared.sampled).any():
            raise DesignError(
                f"sampled must be the {self.shared.sampled} items that all targets share, got "
                f"{int(counts.sampled[0])}"
            )
        return replace(counts, shared=self.shared)
