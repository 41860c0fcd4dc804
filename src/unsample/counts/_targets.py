"""`Targets`: ranks, users and designs of single targets, before they are counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, check_flag
from unsample._threads import cached_property
from unsample.counts._catalogues import design_columns
from unsample.counts._columns import as_column
from unsample.counts._design_cells import count_ranks
from unsample.counts._rank_counts import RankCounts
from unsample.counts._shared_items import ItemCounts
from unsample.counts._user_pairs import PairCounts, pair_keys
from unsample.counts._users import number_users, relevant_and_position
from unsample.errors import DesignError, RankError
from unsample.sampling import SamplingModel


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets one by one, as comparisons need them that pair targets by user.

    All else needs only the `counts`.

    >>> Targets([1, 3], items=500, sampled=9, users=["ann", "ann"]).counts
    RankCounts(2 targets of 1 users, 2 cells, items=500, sampled=9, with replacement)
    """

    ranks: IntArray
    items: npt.ArrayLike
    sampled: npt.ArrayLike
    users: npt.ArrayLike | None = None
    replacement: bool = True
    #: The position of each target among its user's targets (1 is the best), if all were ranked
    #: against the same items.
    positions: npt.ArrayLike | None = None
    #: Whether the other relevant items of a user were left out, so that metrics are per target.
    filtered: bool = False
    #: How relevant each target is, for metrics with grades.
    relevance: FloatArray | None = None
    #: The items that all targets share; None where each target has its own items.
    shared: ItemCounts | None = None
    #: The first rank of the range in which each target lies, where ``ranks`` is only its last.
    lowest: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        check_flag("replacement", self.replacement)
        check_flag("filtered", self.filtered)

    @cached_property
    def relevant_and_position(self) -> tuple[IntArray, IntArray]:
        """Return how many targets the user of each target has, and its position among them, or 0.

        A position of 0 is unknown.
        """
        size = len(self.ranks)
        ones = np.ones(size, dtype=np.int64)
        if self.users is None or self.filtered:
            return ones, ones
        others = np.asarray(self.items) - 1
        full = not self.replacement and bool(np.all(np.asarray(self.sampled) == others))
        return relevant_and_position(
            number_users(self.users, size), self.ranks, positions=self.positions, full=full
        )

    @property
    def cells(self) -> IntArray:
        """Return the pair cell of each target: see `PairCounts`."""
        size = len(self.ranks)
        design = design_columns(self.items, self.sampled, size=size, replacement=self.replacement)
        relevant, position = self.relevant_and_position
        return pair_keys({**design, "high": self.ranks, "relevant": relevant, "position": position})

    @cached_property
    def counts(self) -> RankCounts:
        """Return the number of targets at each rank."""
        return self.count()

    def count(self) -> RankCounts:
        """Return the number of targets at each rank, or in each range of ranks."""
        high = np.asarray(self.ranks)
        if not high.size:
            raise RankError("ranks must hold at least one rank, got none")
        alone = self.users is None and self.lowest is None
        if alone and np.ndim(self.items) == 0 and np.ndim(self.sampled) == 0:
            design = SamplingModel(self.items, self.sampled, replacement=self.replacement)  # type: ignore[arg-type]
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
        """Return counts with a column for each property that targets may differ in."""
        columns: dict[str, Any] = {
            **design_columns(
                self.items, self.sampled, size=high.size, replacement=self.replacement
            ),
            "low": high
            if self.lowest is None
            else as_column("lowest", self.lowest, size=high.size),
            "high": high,
            "count": np.ones(high.size, dtype=np.int64),
        }
        users = high.size
        if self.users is not None:
            user = number_users(self.users, high.size)
            users = int(user.max()) + 1
        if users == high.size:
            return RankCounts(**columns, replacement=self.replacement)
        relevant, position = self.relevant_and_position
        columns |= {"relevant": relevant, "position": position}
        clusters = PairCounts.of_users(user, pair_keys(columns))
        return RankCounts(**columns, replacement=self.replacement, users=users, clusters=clusters)
