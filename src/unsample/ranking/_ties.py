"""What rank a target gets when other items have exactly its score."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import numpy as np

from unsample._checks import FloatArray, IntArray, check_choice

__all__ = ["TIE_RULES", "TieRule", "check_ties", "rank_with_ties"]

TieRule: TypeAlias = Literal["random", "realistic", "optimistic", "pessimistic"]

#: ``random`` places the target anywhere among its ties, ``realistic`` takes the mean of these
#: places, ``optimistic`` the best and ``pessimistic`` the worst of them.
TIE_RULES: tuple[TieRule, ...] = ("random", "realistic", "optimistic", "pessimistic")


def check_ties(ties: str) -> TieRule:
    """Return the tie rule, or suggest the one that was meant."""
    return cast("TieRule", check_choice("ties", ties, TIE_RULES))


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
