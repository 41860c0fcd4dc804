"""From comparisons to ranks: the rank of a target if other items have exactly its score.

A target's rank follows from how many items beat it and how many tie with it. The random rule
puts it among its ties by a hash of the seed, its user and its name: let u be a number in 0..1,
made of the first 13 digits of the MD5 of ``seed|user|target``, then floor(u (t + 1)) of t ties come
before it. Queries compute the same. So a full ranking, an evaluation and a table of the same scores
give the same rank in any engine, in any order and in any part of the rows.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, Seed, as_index, as_seed, check_choice

TieRule: TypeAlias = Literal["random", "realistic", "optimistic", "pessimistic"]

#: ``random`` puts the target anywhere among its ties, ``realistic`` takes the mean of these
#: positions, ``optimistic`` the best and ``pessimistic`` the worst of them.
TIE_RULES: tuple[TieRule, ...] = ("random", "realistic", "optimistic", "pessimistic")
#: Digits of a hash that make a number between 0 and 1, to the last bit.
_DIGITS = 13


def check_ties(ties: str, *, whole: bool = False) -> TieRule:
    """Return the tie rule, or suggest the one that was meant; ``whole`` asks for whole ranks."""
    rules = [rule for rule in TIE_RULES if not (whole and rule == "realistic")]
    # This rule exists, but not here.
    hint = "the mean position among ties may lie between two ranks" if ties == "realistic" else ""
    return cast("TieRule", check_choice("ties", ties, rules, hint=hint))


def rank_with_ties(
    better: IntArray,
    equal: IntArray,
    ties: TieRule,
    rng: Seed,
    users: npt.ArrayLike | None = None,
    targets: npt.ArrayLike | None = None,
    *,
    runs: IntArray | None = None,
) -> IntArray | FloatArray:
    """Return ranks from how many items beat a target and how many others tie with it.

    Without names of ``targets``, these are numbered. Targets of one user that are in one list with
    one score have the same number in ``runs``, from `runs_of`. Each counts among the ``equal`` of
    the others, and no two of them get the same rank.

    >>> better, equal = np.array([0, 0, 5]), np.array([1, 1, 0])
    >>> rank_with_ties(better, equal, "optimistic", 0)
    array([1, 1, 6])
    >>> rank_with_ties(better, equal, "optimistic", 0, runs=np.array([0, 0, 1])).sum()
    np.int64(9)
    """
    if ties == "realistic":
        return np.asarray(1.0 + better + equal / 2.0)
    names = np.arange(len(better)) if targets is None else np.asarray(targets)
    seed = as_seed(rng) if ties == "random" else 0
    several = np.zeros(len(better), dtype=bool)
    if runs is not None:
        several = np.bincount(as_index(runs))[runs] > 1
    position = equal.astype(np.int64) if ties == "pessimistic" else np.zeros(len(better), np.int64)
    if ties == "random":
        rows = np.flatnonzero((equal > 0) & ~several)
        position[rows] = np.floor(
            _numbers(seed, users, targets=names, rows=rows)[0] * (equal[rows] + 1)
        )
    if runs is not None and several.any():
        rows = np.flatnonzero(several)
        probability, draw_order = _numbers(seed, users, targets=names, rows=rows)
        order = np.lexsort([draw_order, runs[rows]])
        rows, probability = rows[order], probability[order]
        for group in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(runs[rows])) + 1):
            others = int(equal[rows[group[0]]]) - (len(group) - 1)
            position[rows[group]] = _positions_among_ties(probability[group], others, ties=ties)
    return np.asarray(1 + better + position)


def runs_of(lists: npt.ArrayLike, scores: npt.ArrayLike) -> IntArray:
    """Return a number for each list and score, the same where both are.

    >>> runs_of([0, 0, 1], [2.5, 2.5, 2.5])
    array([0, 0, 1])
    """
    where, level = np.asarray(lists), np.asarray(scores)
    order = np.lexsort([level, where])
    new = (where[order][1:] != where[order][:-1]) | (level[order][1:] != level[order][:-1])
    found = np.empty(len(where), dtype=np.int64)
    found[order] = np.cumsum(np.append(0, new))[: len(where)]
    return found


def tie_position(seed: int, users: npt.ArrayLike | None, targets: npt.ArrayLike) -> FloatArray:
    """Return the position of each target among its ties, in 0..1, by a hash of its names.

    The user is the empty text where there is none.

    >>> np.floor(tie_position(0, ["ann", "bob"], ["x", "y"]) * 4)
    array([3., 3.])
    """
    names = np.asarray(targets)
    probability, _ = _numbers(seed, users, targets=names, rows=np.arange(len(names)))
    return np.asarray(probability)


def _numbers(
    seed: int, users: npt.ArrayLike | None, targets: npt.NDArray[Any], rows: IntArray
) -> FloatArray:
    """Return two numbers in 0..1 for some targets: position among ties, and order of drawing."""
    target = targets[rows].tolist()
    user = [""] * len(rows) if users is None else np.asarray(users)[rows].tolist()
    found = np.empty((2, len(rows)))
    for row, (who, what) in enumerate(zip(user, target, strict=True)):
        text = f"{seed}|{who}|{what}".encode("utf-8", "surrogatepass")
        digest = hashlib.md5(text, usedforsecurity=False).hexdigest()
        found[0, row] = int(digest[:_DIGITS], 16)
        found[1, row] = int(digest[_DIGITS : 2 * _DIGITS], 16)
    return np.asarray(found / 16.0**_DIGITS)


def _positions_among_ties(probabilities: FloatArray, others: int, ties: TieRule) -> list[int]:
    """Return the positions of targets that tie with one another, and with so many ``others``.

    Any order of all of them is equally likely: one target after the other is put anywhere into the
    list of ties, and moves those behind it. The order of drawing does not depend on the positions.
    """
    count = len(probabilities)
    if ties != "random":
        first = 0 if ties == "optimistic" else others
        return list(range(first, first + count))
    positions: list[int] = []
    for number, probability in enumerate(probabilities):
        position = int(probability * (others + number + 1))
        positions = [*(each + (each >= position) for each in positions), position]
    return positions
