"""Columns of names and of comparisons, as the readers hold them before they are counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, IntArray, Seed, as_index
from unsample.errors import RankError
from unsample.evidence import RankCounts, check_ties, rank_with_ties
from unsample.evidence._columns import check_lengths, joined, merge_equal, refuse_where

_KEYS = ("sampled", "items", "better", "tied")
_COLUMNS = (*_KEYS, "count")
#: The most places that the random rule draws.
_MOST_PLACES = 1 << 24


@dataclass(frozen=True, eq=False)
class Named:
    """The users of targets, with each name kept once. As an array: the name of each user."""

    #: Where the user of each target stands among the names.
    place: npt.NDArray[np.integer[Any]]
    #: The names, sorted, as UTF-8: a quarter of the memory that arrays of text take.
    names: npt.NDArray[np.bytes_]

    def __len__(self) -> int:
        return len(self.place)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(decoded(self.names)[self.place], dtype=dtype)

    @cached_property
    def distinct(self) -> tuple[BoolArray, IntArray]:
        """Return which names occur, and the number of each target's user among these."""
        occurs = np.zeros(len(self.names), dtype=bool)
        occurs[self.place] = True
        number = np.cumsum(occurs) - 1
        return occurs, number[self.place]


def decoded(names: npt.NDArray[np.bytes_]) -> npt.NDArray[np.str_]:
    """Return names that were kept as UTF-8; half characters, which JSON may hold, stay so."""
    return np.char.decode(names, "utf-8", "surrogatepass")


@dataclass(frozen=True, eq=False)
class Comparisons:
    """How many targets were beaten by ``better`` items and tied with ``tied``, by design.

    The columns are equally long. Equal keys are merged and rows are sorted, so the same comparisons
    always give the same object.

    >>> two = np.array([2, 2])
    >>> Comparisons(9 * two, 50 * two, two, two - 2, two).count
    array([4])
    """

    sampled: IntArray
    items: IntArray
    better: IntArray
    tied: IntArray
    count: IntArray

    def __post_init__(self) -> None:
        check_lengths(self, _COLUMNS)
        for name in ("better", "tied", "count"):
            column = getattr(self, name)
            refuse_where(column < 0, f"{name} must not be negative", column, RankError)
        merge_equal(self, _KEYS, ("count",))

    @classmethod
    def merge(cls, parts: Iterable[Comparisons]) -> Comparisons:
        """Return the comparisons of all parts together."""
        return cls(**joined(parts, _COLUMNS))

    def __len__(self) -> int:
        return len(self.better)

    def counted(self, ties: str, rng: Seed, replacement: bool) -> RankCounts:
        """Return counts of ranks under a tie rule."""
        rule = check_ties(ties, whole=True)
        many = int(self.count[self.tied > 0].astype(np.float64).sum())
        if rule == "random" and many > _MOST_PLACES:
            raise RankError(
                f"ties must be optimistic or pessimistic where more than {_MOST_PLACES:,} places "
                f"would be drawn at random, got {many:,}"
            )
        places = np.where(self.tied > 0, self.count, 1) if rule == "random" else 1
        row = np.repeat(np.arange(len(self)), as_index(np.broadcast_to(places, len(self))))
        count = self.count[row] if rule != "random" else np.where(self.tied > 0, 1, self.count)[row]
        return RankCounts.from_ranks(
            rank_with_ties(self.better[row], self.tied[row], rule, rng).astype(np.int64),
            items=self.items[row],
            sampled=self.sampled[row],
            count=count,
            replacement=replacement,
        )
