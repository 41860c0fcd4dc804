"""From comparisons to ranks: the rank of a target if other items have exactly its score.

A target's rank follows from how many items beat it and how many tie with it. The random rule
places it among its ties by a hash of the seed, its user and its name. So every engine gives it the
same rank, in any order and in any part of the rows.
"""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, Seed, as_rng, check_choice

TieRule: TypeAlias = Literal["random", "realistic", "optimistic", "pessimistic"]

#: ``random`` places the target anywhere among its ties, ``realistic`` takes the mean of these
#: places, ``optimistic`` the best and ``pessimistic`` the worst of them.
TIE_RULES: tuple[TieRule, ...] = ("random", "realistic", "optimistic", "pessimistic")
#: Digits of a hash that make a number between 0 and 1, to the last bit.
_DIGITS = 13


def check_ties(ties: str, *, whole: bool = False) -> TieRule:
    """Return the tie rule, or suggest the one that was meant; ``whole`` asks for whole ranks."""
    rules = [rule for rule in TIE_RULES if not (whole and rule == "realistic")]
    # This rule exists, but not here.
    hint = "the mean place among ties may lie between two ranks" if ties == "realistic" else ""
    return cast("TieRule", check_choice("ties", ties, rules, hint=hint))


def rank_with_ties(
    better: IntArray,
    equal: IntArray,
    ties: TieRule,
    rng: Seed,
    users: npt.ArrayLike | None = None,
    targets: npt.ArrayLike | None = None,
) -> IntArray | FloatArray:
    """Return ranks from how many items beat a target and how many others tie with it.

    Without names of ``targets``, these are numbered.
    """
    if ties == "realistic":
        return 1.0 + better + equal / 2.0
    if ties == "optimistic":
        return 1 + better
    if ties == "pessimistic":
        return 1 + better + equal
    names = np.arange(len(better)) if targets is None else targets
    return 1 + better + tie_place(tie_seed(rng), users, names, equal)


def tie_seed(rng: Seed) -> int:
    """Return the number that stands for a seed where ties are broken by a hash."""
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        as_rng(rng)
        return int(rng)
    return int(as_rng(rng).integers(1 << 62))


def tie_place(
    seed: int, users: npt.ArrayLike | None, targets: npt.ArrayLike, tied: npt.ArrayLike
) -> IntArray:
    """Return how many of the ``tied`` items come before each target, by a hash of its names.

    The user is the empty text where there is none.

    >>> tie_place(0, ["ann", "bob"], ["x", "y"], [3, 0])
    array([3, 0])
    """
    ties = np.asarray(tied, dtype=np.int64)
    place = np.zeros(len(ties), dtype=np.int64)
    rows = np.flatnonzero(ties)
    target = np.asarray(targets)[rows].tolist()
    user = [""] * len(rows) if users is None else np.asarray(users)[rows].tolist()
    numbers = [_unit(f"{seed}|{who}|{what}") for who, what in zip(user, target, strict=True)]
    place[rows] = np.floor(np.array(numbers) * (ties[rows] + 1))
    return place


def _unit(text: str) -> float:
    digest = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return int(digest[:_DIGITS], 16) / 16.0**_DIGITS
