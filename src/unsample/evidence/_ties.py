"""From comparisons to ranks: the rank of a target if other items have exactly its score.

A target's rank follows from how many items beat it and how many tie with it. The random rule
places it among its ties by a hash of the seed, its user and its name. So every engine gives it the
same rank, in any order and in any part of the rows.
"""

from __future__ import annotations

import hashlib
import warnings
from typing import Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, Seed, as_rng, check_choice
from unsample.errors import UnsampleWarning
from unsample.evidence._columns import distinct_rows

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

    Without names of ``targets``, equal rows of a user are numbered.
    """
    if ties == "realistic":
        return 1.0 + better + equal / 2.0
    if ties == "optimistic":
        return 1 + better
    if ties == "pessimistic":
        return 1 + better + equal
    names = tie_names(users, better, equal) if targets is None else targets
    return 1 + better + tie_place(tie_seed(rng), users, names, equal)


def place_halves(
    ranks: npt.ArrayLike, rng: Seed, users: npt.ArrayLike | None = None, ties: TieRule = "random"
) -> npt.ArrayLike:
    """Return ranks with each half rank moved to one of its two neighbours, as ``ties`` has it.

    A half rank is the mean of the best and the worst rank among ties, as OGB and TGB give it. A
    warning says how many there were.
    """
    array = np.asarray(ranks)
    if array.dtype.kind != "f" or array.ndim != 1:
        return ranks
    with np.errstate(invalid="ignore"):
        half = (array % 1.0 == 0.5) & np.isfinite(array)
    if not half.any():
        return ranks
    say_halves(int(half.sum()), ties)
    better = (np.where(half, array, 1.5) - 1.5).astype(np.int64)
    named = None if users is None or len(np.asarray(users)) != len(array) else users
    placed = rank_with_ties(better, half.astype(np.int64), ties, rng, named)
    return np.where(half, placed, array)


def say_halves(number: int, ties: TieRule = "random") -> None:
    """Warn that so many half ranks were taken as ties, if there are any."""
    if number:
        placed = "at random" if ties == "random" else f"by ties={ties!r}"
        text = (
            f"ranks must be whole, or half for a tie of two places, got half ranks ({number:,} "
            f"times), which were placed {placed}; round them if they are no ties"
        )
        warnings.warn(text, UnsampleWarning, stacklevel=4)


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


def tie_names(
    users: npt.ArrayLike | None, better: npt.ArrayLike, tied: npt.ArrayLike
) -> npt.NDArray[np.str_]:
    """Return names for targets that have none, of which only those with ties are needed.

    Equal rows of a user are numbered, so that the order of the rows does not matter.

    >>> tie_names(None, [4, 4, 7], [1, 1, 0]).tolist()
    ['4:1:0', '4:1:1', '']
    """
    beaten, ties = np.asarray(better, dtype=np.int64), np.asarray(tied, dtype=np.int64)
    names = np.full(len(ties), "", dtype="<U64")
    rows = np.flatnonzero(ties)
    if not len(rows):
        return names
    user = np.zeros(len(rows), dtype=np.int64)
    if users is not None:
        user = np.unique(np.asarray(users)[rows], return_inverse=True)[1].reshape(-1)
    keys, place = distinct_rows(np.stack([user, beaten[rows], ties[rows]], axis=1))
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(keys)))
    number = np.arange(len(rows)) - starts[place[order]]
    names[rows[order]] = [
        f"{better}:{tied}:{k}"
        for (_, better, tied), k in zip(keys[place[order]].tolist(), number.tolist(), strict=True)
    ]
    return names
