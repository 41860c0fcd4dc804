"""Triples of a knowledge graph as questions: what is looked for, and which answers are true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unsample._checks import IntArray, check_choice
from unsample.errors import InputError

#: What is looked for, and the column of a triple in which it stands.
SIDES = {"head": 0, "tail": 2}


@dataclass(frozen=True, eq=False)
class Asked:
    """What triples ask: a triple for each question, and the column that is wanted."""

    triples: IntArray
    wanted: IntArray
    sides: tuple[str, ...]

    @classmethod
    def of(cls, triples: IntArray, sides: tuple[str, ...]) -> Asked:
        """Ask for the first side of every triple, then for the next side."""
        wanted = np.repeat([SIDES[side] for side in sides], len(triples))
        return cls(np.tile(triples, (len(sides), 1)), wanted, sides)

    @property
    def targets(self) -> IntArray:
        """Return the entity that each question asks for."""
        return np.asarray(self.triples[np.arange(len(self.wanted)), self.wanted])

    def answers(self, known: Any) -> tuple[IntArray, IntArray]:
        """Return how many entities are true answers to each question, and all of these in turn."""
        several = known if isinstance(known, list | tuple) else [] if known is None else [known]
        others = [as_triples("known", given) for given in several]
        true = Asked.of(np.unique(np.vstack([self.triples, *others]), axis=0), self.sides)
        size = int(true.triples.max()) + 1
        listed, asked = true.codes(size), self.codes(size)
        order = np.argsort(listed, kind="stable")
        start, stop = (
            np.searchsorted(listed, asked, side=end, sorter=order) for end in ("left", "right")
        )
        count = stop - start
        place = np.arange(count.sum()) + np.repeat(start - np.cumsum(count) + count, count)
        return count, true.targets[order[place]]

    def others(self, known: Any) -> tuple[IntArray, IntArray]:
        """Return the questions and their true answers other than the target, pair by pair."""
        count, true = self.answers(known)
        row = np.repeat(np.arange(len(count)), count)
        other = true != self.targets[row]
        return row[other], true[other]

    def codes(self, size: int) -> IntArray:
        """Return a number for each question: what is wanted, the relation, the other entity."""
        other = self.triples[np.arange(len(self.wanted)), 2 - self.wanted]
        return np.asarray((other * size + self.triples[:, 1]) * 3 + self.wanted)


def sides_of(side: str) -> tuple[str, ...]:
    """Return the sides that are asked for, heads first."""
    check_choice("side", side, (*SIDES, "both"))
    return tuple(SIDES) if side == "both" else (side,)


def as_triples(name: str, given: Any) -> IntArray:
    """Return triples of ids as an array, from a triples factory too."""
    array = np.asarray(getattr(given, "mapped_triples", given))
    if array.ndim != 2 or array.shape[1] != 3 or not np.issubdtype(array.dtype, np.integer):
        got = f"an array of shape {array.shape}" if array.ndim else type(given).__name__
        raise InputError(
            f"{name} must be a triples factory or an integer array with three columns, got {got}"
        )
    return array.astype(np.int64)
