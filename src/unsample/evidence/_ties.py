"""From comparisons to ranks: the rank of a target if other items have exactly its score.

A target's sampled rank follows from how many items beat it and how many tie with it. So a tie rule
needs only the counts of these two numbers. Any engine can make them, in parts and in any order, and
the random rule still gives the same ranks for a seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, Seed, as_index, as_rng, check_choice
from unsample.errors import RankError
from unsample.evidence._columns import check_lengths, joined, merge_equal, refuse_where

TieRule: TypeAlias = Literal["random", "realistic", "optimistic", "pessimistic"]

#: ``random`` places the target anywhere among its ties, ``realistic`` takes the mean of these
#: places, ``optimistic`` the best and ``pessimistic`` the worst of them.
TIE_RULES: tuple[TieRule, ...] = ("random", "realistic", "optimistic", "pessimistic")

_KEYS = ("sampled", "items", "better", "tied")
_COLUMNS = (*_KEYS, "count")
#: The most places that the random rule draws at once: they take a gigabyte.
_MOST_PLACES = 1 << 27


def check_ties(ties: str, *, whole: bool = False) -> TieRule:
    """Return the tie rule, or suggest the one that was meant; ``whole`` asks for whole ranks."""
    rules = [rule for rule in TIE_RULES if not (whole and rule == "realistic")]
    # This rule exists, but not here.
    hint = "the mean place among ties may lie between two ranks" if ties == "realistic" else ""
    return cast("TieRule", check_choice("ties", ties, rules, hint=hint))


def rank_with_ties(
    better: IntArray, equal: IntArray, ties: TieRule, rng: np.random.Generator
) -> IntArray | FloatArray:
    """Return ranks from how many items beat a target and how many others tie with it."""
    if ties == "realistic":
        return 1.0 + better + equal / 2.0
    if ties == "optimistic":
        return 1 + better
    if ties == "pessimistic":
        return 1 + better + equal
    return 1 + better + rng.integers(0, equal + 1)


def place_halves(ranks: npt.ArrayLike, rng: Seed) -> npt.ArrayLike:
    """Return ranks with each half rank moved to one of its two neighbours at random.

    A half rank is the mean of the best and the worst rank among ties, as OGB and TGB give it.
    """
    array, generator = np.asarray(ranks), as_rng(rng)
    if array.dtype.kind != "f":
        return ranks
    with np.errstate(invalid="ignore"):
        half = (array % 1.0 == 0.5) & np.isfinite(array)
    if not half.any():
        return ranks
    placed = array.copy()
    placed[half] += generator.integers(0, 2, int(half.sum())) - 0.5
    return placed


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

    def ranked(self, ties: str = "random", rng: Seed = 0) -> dict[str, npt.NDArray[Any]]:
        """Return columns ``rank``, ``sampled``, ``items`` and ``count``, under a tie rule.

        The random rule places the targets of a row independently and uniformly among their ties.
        """
        rule = check_ties(ties)
        if rule == "random":
            return self._spread(as_rng(rng))
        ranks = rank_with_ties(self.better, self.tied, rule, as_rng(rng))
        between = ranks != np.floor(ranks)
        if between.any():
            raise RankError(
                "ties must be random, optimistic or pessimistic where ranks are counted: "
                f"the realistic rank of some targets lies between two ranks, such as "
                f"{ranks[np.argmax(between)]}"
            )
        kept = {name: getattr(self, name) for name in ("sampled", "items", "count")}
        return {"rank": ranks.astype(np.int64), **kept}

    def _spread(self, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        # If there are fewer targets than places they are placed one by one, otherwise all at once.
        # So neither many targets nor many ties make it slow.
        places = np.minimum(self.count, self.tied).astype(np.float64)
        if places.sum() > _MOST_PLACES:
            raise RankError(
                f"ties must be optimistic or pessimistic where more than {_MOST_PLACES:,} places "
                f"would be drawn at random, got {places.sum():,.0f}"
            )
        few = np.flatnonzero(self.count <= self.tied)
        row = np.repeat(few, as_index(self.count[few]))
        drawn = [(row, rng.integers(0, self.tied[row] + 1), np.ones(len(row), dtype=np.int64))]
        many = self.count > self.tied
        for ties in np.unique(self.tied[many]):
            alike = np.flatnonzero(many & (self.tied == ties))
            times = rng.multinomial(self.count[alike], np.full(ties + 1, 1.0 / (ties + 1)))
            where, place = np.nonzero(times)
            drawn.append((alike[where], place, times[where, place]))
        row, place, count = (np.concatenate(column) for column in zip(*drawn, strict=True))
        return {
            "rank": self.better[row] + 1 + place,
            "sampled": self.sampled[row],
            "items": self.items[row],
            "count": count,
        }
