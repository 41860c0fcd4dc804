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

    Parameters
    ----------
    better, equal
        How many items beat each target, and how many others have exactly its score.
    ties, rng
        The rule for ties, and the seed of the random one.
    users, targets
        The names that the random rule hashes. Without names, targets are numbered.
    runs
        Targets of one user that are in one list with one score have the same number here, from
        `runs_of`. Each counts among the ``equal`` of the others, and no two get the same rank.

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
    in_run = np.zeros(len(better), dtype=bool)
    if runs is not None:
        in_run = np.bincount(as_index(runs))[runs] > 1
    before = np.zeros(len(better), dtype=np.int64)
    if ties == "pessimistic":
        before = equal.astype(np.int64)
    if ties == "random":
        rows = np.flatnonzero((equal > 0) & ~in_run)
        place, _ = _numbers(seed, users, targets=names, rows=rows)
        before[rows] = np.floor(place * (equal[rows] + 1))
    if runs is not None and in_run.any():
        rows = np.flatnonzero(in_run)
        place, turn = _numbers(seed, users, targets=names, rows=rows)
        order = np.lexsort([turn, runs[rows]])
        rows = rows[order]
        place = place[order]
        first_of_runs = np.flatnonzero(np.diff(runs[rows])) + 1
        for run in np.split(np.arange(len(rows)), first_of_runs):
            others = int(equal[rows[run[0]]]) - (len(run) - 1)
            before[rows[run]] = _positions_among_ties(place[run], others, ties=ties)
    return np.asarray(1 + better + before)


def runs_of(lists: npt.ArrayLike, scores: npt.ArrayLike) -> IntArray:
    """Return a number for each list and score: rows that agree in both have the same number.

    >>> runs_of([0, 0, 1], [2.5, 2.5, 2.5])
    array([0, 0, 1])
    """
    list_ = np.asarray(lists)
    score = np.asarray(scores)
    order = np.lexsort([score, list_])
    list_ = list_[order]
    score = score[order]
    differs_from_last = (list_[1:] != list_[:-1]) | (score[1:] != score[:-1])
    runs = np.empty(len(order), dtype=np.int64)
    runs[order] = np.cumsum(np.append(0, differs_from_last))[: len(order)]
    return runs


def tie_position(seed: int, users: npt.ArrayLike | None, targets: npt.ArrayLike) -> FloatArray:
    """Return the position of each target among its ties, in 0..1, by a hash of its names.

    Without users the name of the user is the empty text.

    >>> np.floor(tie_position(0, ["ann", "bob"], ["x", "y"]) * 4)
    array([3., 3.])
    """
    names = np.asarray(targets)
    place, _ = _numbers(seed, users, targets=names, rows=np.arange(len(names)))
    return np.asarray(place)


def _numbers(
    seed: int, users: npt.ArrayLike | None, *, targets: npt.NDArray[Any], rows: IntArray
) -> FloatArray:
    """Return two numbers in 0..1 for some targets (2 x rows): its place among ties, and its turn.

    The turn is when a target is placed, where several targets tie with each other.
    """
    target_names = targets[rows].tolist()
    user_names = [""] * len(rows) if users is None else np.asarray(users)[rows].tolist()
    numbers = np.empty((2, len(rows)))
    for row, (user, target) in enumerate(zip(user_names, target_names, strict=True)):
        text = f"{seed}|{user}|{target}".encode("utf-8", "surrogatepass")
        digest = hashlib.md5(text, usedforsecurity=False).hexdigest()
        numbers[0, row] = int(digest[:_DIGITS], 16)
        numbers[1, row] = int(digest[_DIGITS : 2 * _DIGITS], 16)
    return np.asarray(numbers / 16.0**_DIGITS)


def _positions_among_ties(places: FloatArray, others: int, *, ties: TieRule) -> list[int]:
    """Return how many ties come before each of several targets that tie with one another.

    They also tie with ``others``. Any order of all of them is equally likely: one target after the
    other is put anywhere into the list of ties, and moves those behind it by one. Turns do not
    depend on places.

    Two targets tie with one other item. The first is put at the end, after that item. The second is
    put at the start, which moves the first one.

    >>> _positions_among_ties(np.array([0.9, 0.1]), 1, ties="random")
    [2, 0]
    """
    count = len(places)
    if ties != "random":
        first = 0 if ties == "optimistic" else others
        return list(range(first, first + count))
    positions: list[int] = []
    for number, place in enumerate(places):
        position = int(place * (others + number + 1))
        moved = [earlier + (earlier >= position) for earlier in positions]
        positions = [*moved, position]
    return positions
