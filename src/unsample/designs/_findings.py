"""What a design sees of targets between two rounds, what it notes down, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.errors import DesignError
from unsample.evidence import RankCounts, Targets

if TYPE_CHECKING:
    from unsample.designs._designs import Design


@dataclass(frozen=True, eq=False)
class Notes:
    """What a design writes down about each target for its later rounds; zero where it does not."""

    #: How many items beat the target one stage ago (or when turns were given), and two stages ago.
    before: IntArray
    earlier: IntArray
    #: The group, from 1, of users from which some are drawn to be ranked in full.
    stratum: IntArray
    #: When the user's turn comes, from 1; negative as long as it has not come.
    turn: IntArray
    #: How many scores it may take to finish the target, from when turns were given.
    reserved: IntArray
    #: After how many items chance stops the target; 0 as long as that is open, -1 for never.
    stop: IntArray
    #: How many items had beaten it when it began to meet the others in random order.
    at_start: IntArray

    @property
    def ends(self) -> BoolArray:
        """Return which targets chance may stop: what they then tell is right on average."""
        return np.asarray(self.stop > 0)

    @classmethod
    def empty(cls, targets: int) -> Notes:
        """Return notes with nothing in them."""
        return cls(*(np.zeros(targets, dtype=np.int64) for _ in fields(cls)))


@dataclass(frozen=True, eq=False)
class Situation:
    """What a design sees of the targets between two rounds.

    ``scored`` items they met, ``beaten`` by how many, of ``others`` candidates beside themselves.
    ``shuffle`` is a random order of the targets, and ``allowed`` how many items may be scored in
    all (None: any number). ``users`` are numbers from 0, and ``user_order`` a random order of them.
    ``own`` are the scores of the targets themselves, all alike where they are not known. The first
    ``listed`` items come in the order of a guide, all others in random order; ``chance`` is a
    random number from 0 to 1 for each target.
    """

    scored: IntArray
    beaten: IntArray
    others: IntArray
    shuffle: IntArray
    allowed: int | None
    users: IntArray
    user_order: IntArray
    notes: Notes
    own: FloatArray
    listed: IntArray
    chance: FloatArray


@dataclass(frozen=True, eq=False)
class Step:
    """How many items each target is to have met after the next round, and what to note down."""

    goal: IntArray
    notes: Notes


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings(Targets):
    """What a design found of each target, and how many scores that took.

    ``ranks`` are among ``sampled`` items. Where only a range is known (beyond the K of a certified
    evaluation), it is ``lowest..ranks``: metrics@K do not tell its ranks apart.
    """

    design: Design
    lowest: IntArray
    #: How many items each target was compared with.
    met: IntArray
    #: All scores: those of items met, of targets, and those asked for twice.
    scored: int
    #: What the design noted down; it says who was drawn to be ranked in full.
    notes: Notes

    @property
    def unknown(self) -> BoolArray:
        """Return which targets may or may not be in the top K, or anywhere without a K."""
        if getattr(self.design, "beyond", False):
            return np.asarray(self.lowest < self.ranks)
        last = getattr(self.design, "k", None) or 0
        return np.asarray((self.lowest < self.ranks) & (self.lowest <= last))

    @property
    def lost(self) -> BoolArray:
        """Return which targets an item beat before chance stopped them."""
        return self.notes.ends & (self.lowest - 1 > self.notes.at_start)

    @property
    def settled(self) -> BoolArray:
        """Return which targets were followed until an item beat them, or chance stopped them."""
        return self.lost | (self.notes.ends & (self.met >= self.notes.stop))

    @cached_property
    def counts(self) -> RankCounts:
        """Return how many targets were seen at each rank."""
        if self.unknown.any():
            raise DesignError(
                "ranks must be known up to K to be counted, got a guided evaluation, which left "
                f"{int(self.unknown.sum()):,} targets open; take the metrics that evaluate gives"
            )
        return super().counts

    @property
    def ranges(self) -> RankCounts:
        """Return the counts of ranks with the ranges in which they are known to lie."""
        if np.array_equal(self.lowest, self.ranks):
            return self.counts
        return RankCounts.from_ranks(
            self.ranks,
            lowest=self.lowest,
            items=self.items,
            sampled=self.sampled,
            weights=self.weights,
            users=self.users,
            filtered=self.filtered,
            replacement=False,
        )
