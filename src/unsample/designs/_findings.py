"""The data of designs: the situation between two rounds, the next step, notes and findings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.counts import RankCounts, Targets
from unsample.errors import DesignError

if TYPE_CHECKING:
    from unsample.designs._designs import Design


@dataclass(frozen=True, eq=False)
class DesignNotes:
    """What a design notes about each target for later rounds; zero by default."""

    #: How many items beat the target one stage ago (or when users were drawn), and two stages ago.
    before: IntArray
    earlier: IntArray
    #: The stratum of the user, from 1.
    stratum: IntArray
    #: The number of the user in the order in which users are ranked in full, from 1. It is negative
    #: until the user is drawn, and 0 for users who are never drawn: also for the user at whom a
    #: budget ended.
    draw_order: IntArray
    #: How many scores the target could take at most after users were drawn.
    reserved: IntArray
    #: 1 for users of the pilot, who stand for themselves only.
    pilot: IntArray

    @classmethod
    def empty(cls, targets: int) -> DesignNotes:
        return cls(*(np.zeros(targets, dtype=np.int64) for _ in fields(cls)))

    def take(self, rows: slice) -> DesignNotes:
        """Return the notes about some targets."""
        return DesignNotes(*(getattr(self, note.name)[rows] for note in fields(self)))


@dataclass(frozen=True, eq=False)
class Step:
    """What a design decides after a round."""

    #: How many items each target will have been compared with after the next round.
    goal: IntArray
    #: The notes for later rounds.
    notes: DesignNotes
    #: A sentence for people who watch the evaluation; empty if there is nothing new.
    message: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Situation:
    """What a design knows about the targets between two rounds.

    Several ``models`` have equally many targets, one model after the other.
    """

    #: How many items each target was compared with.
    scored: IntArray
    #: How many of these beat it for certain: where a design certifies, open ties do not count.
    beaten: IntArray
    #: The number of candidates of each target, without itself.
    others: IntArray
    #: How many items may be scored in total; None for any number.
    allowed: int | None
    #: The user of each target, as numbers from 0, and a random order of the users.
    users: IntArray
    user_order: IntArray
    notes: DesignNotes
    models: int = 1
    #: How relevant each target is, and whether the other targets of a user are left out.
    relevance: FloatArray | None = None
    filtered: bool = False
    #: Whether somebody reads the messages of steps.
    watched: bool = False
    #: Gives the ranks of targets that were compared with all others, ties broken as in the result.
    #: None where nothing ties.
    full_ranks: Callable[[], IntArray] | None = None

    @property
    def left(self) -> float:
        """Return how many items may still be scored; infinite for any number."""
        return math.inf if self.allowed is None else self.allowed - int(self.scored.sum())

    @property
    def ranks(self) -> IntArray:
        """Return the final rank of each complete target, and the lowest possible rank of others."""
        lowest = 1 + self.beaten
        if self.full_ranks is None:
            return lowest
        return np.where(self.scored == self.others, self.full_ranks(), lowest)

    def of_users(self, values: FloatArray | IntArray | BoolArray) -> FloatArray:
        """Return the sum of the values of each user's targets."""
        sums = np.bincount(self.users, values, minlength=len(self.user_order))
        return sums.astype(np.float64)

    def by_user(self, note: IntArray) -> IntArray:
        """Return a note that is the same for all targets of a user, once for each user."""
        notes = np.zeros(len(self.user_order), dtype=np.int64)
        notes[self.users] = note
        return notes

    def of_models(self) -> list[slice]:
        """Return where the targets of each model are."""
        size = len(self.users) // self.models
        return [slice(model * size, (model + 1) * size) for model in range(self.models)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings(Targets):
    """What a design found about each target, and how many scores it took.

    ``ranks`` are among ``sampled`` items. If only a range is known (beyond K in a certified
    evaluation), it is ``lowest..ranks``. All ranks of this range have the same metrics@K.
    """

    design: Design
    lowest: IntArray
    #: How many items each target was compared with.
    met: IntArray
    #: All scores: of items, of targets, and of targets that were asked for twice.
    scored: int
    #: The notes of the design. They say which users were drawn to be ranked in full.
    notes: DesignNotes

    @property
    def unknown(self) -> BoolArray:
        """Return which targets have a value that is not known: they may be in the top K, or not."""
        last = getattr(self.design, "k", None) or 0
        return np.asarray((self.lowest < self.ranks) & (self.lowest <= last))

    @property
    def counts(self) -> RankCounts:
        """Return how many targets were seen at each rank, or are known to be in each range."""
        if self.unknown.any():
            raise DesignError(
                "ranks must be known up to K to be counted, got a guided evaluation, which left "
                f"{int(self.unknown.sum()):,} targets open; use the metrics of the evaluation"
            )
        return super().counts

    @property
    def ranges(self) -> RankCounts:
        """Return these counts also if some targets are open: then their ranges reach above K."""
        return super().counts
