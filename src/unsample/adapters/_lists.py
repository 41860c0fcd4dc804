"""What adapters give to `unsample.estimate`: ranks of targets, from comparisons or scored lists.

The list of a query (or user) holds its targets and the items sampled for it. All targets of a query
are compared with the same items, so that metrics of the query's whole list can be told from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_rng,
    as_text_array,
    check_integer,
)
from unsample.errors import DesignError, InputError, ScoreError
from unsample.evidence import (
    Targets,
    check_ties,
    number_users,
    rank_in_lists,
    rank_with_ties,
)


@dataclass(frozen=True, eq=False)
class Counting:
    """How ties are broken, and whether other targets compete; checked before a model is asked."""

    ties: str
    rng: Seed
    filtered: bool = False

    def __post_init__(self) -> None:
        check_ties(self.ties, whole=True)

    def targets(
        self,
        better: IntArray,
        tied: IntArray,
        *,
        items: IntArray,
        sampled: IntArray,
        users: npt.NDArray[Any],
        scores: FloatArray,
        replacement: bool,
    ) -> Targets:
        """Rank targets of which it is known how many items beat them and tie with them.

        ``items`` counts all candidates of a user, other targets too. ``scores`` order the targets
        of a user, which were all compared with the same items.
        """
        generator = as_rng(self.rng)
        rule = check_ties(self.ties, whole=True)
        ranks = rank_with_ties(better, tied, rule, generator).astype(np.int64)
        user, places = number_users(users, len(ranks)), None
        if self.filtered:
            items = items - np.bincount(user)[user] + 1
        else:
            ranks, sampled, places = rank_in_lists(
                ranks - 1,
                user,
                scores,
                items=items,
                sampled=sampled,
                replacement=replacement,
                rng=generator,
            )
        return Targets(ranks, items, sampled, users, replacement, places, self.filtered)


def rank_lists(
    name: str,
    lists: Mapping[Any, Mapping[Any, float]],
    relevant: Mapping[Any, Mapping[Any, float]],
    *,
    items: int | Mapping[Any, int],
    sampled: int | None,
    counting: Counting,
) -> Targets:
    """Rank every relevant item in its query's list; lists of other queries are left aside.

    ``lists`` has scores by query and item, and ``name`` says in messages what they are.
    ``relevant`` tells by query and item how relevant it is. ``items`` and ``sampled`` are as in
    `unsample.adapters.trec.targets`.
    """
    queries = _ordered(relevant)
    query, score, grade = [], [], []
    for number, key in enumerate(queries):
        row, wanted = lists.get(key, {}), relevant[key]
        listed = [*_ordered(wanted), *(item for item in row if item not in wanted)]
        _check_list(f"{name} of query {key!r}", row, listed[: len(wanted)], sampled)
        query += [number] * len(row)
        score += [row[item] for item in listed]
        grade += [wanted.get(item, np.nan) for item in listed]
    code, scores, grades = np.array(query), np.array(score), np.array(grade)
    if np.isnan(scores).any():
        key = queries[code[np.isnan(scores)][0]]
        raise ScoreError(f"scores of {name} must not be NaN, got some for query {key!r}")
    target = np.flatnonzero(~np.isnan(grades))
    better, tied, others = compare_lists(code, scores, target, np.isnan(grades))
    found = counting.targets(
        better,
        tied,
        items=_catalogues(items, queries)[code[target]],
        sampled=others,
        users=_as_array(queries)[code[target]],
        scores=scores[target],
        replacement=False,
    )
    return replace(found, relevance=grades[target]) if len(set(grades[target])) > 1 else found


def _check_list(
    name: str, row: Mapping[Any, float], wanted: list[Any], sampled: int | None
) -> None:
    """Refuse a list without one of its targets, or with other numbers of sampled items."""
    missing = [item for item in wanted if item not in row]
    if missing:
        raise InputError(
            f"{name} must hold every target, got none for item {missing[0]!r}; a list that is cut "
            "at the top k does not tell ranks: keep the scores of all sampled items and of the "
            "target"
        )
    others = len(row) - len(wanted)
    if not others or sampled not in (None, others):
        rule = "at least one item" if sampled is None else f"sampled = {sampled} items"
        raise DesignError(f"{name} must hold {rule} beside the targets, got {others}")


def _ordered(names: Iterable[Any]) -> list[Any]:
    try:
        return sorted(names)
    except TypeError as problem:
        raise InputError(
            f"queries and items must be named by text or by whole numbers, got both: {problem}"
        ) from problem


def _as_array(names: list[Any]) -> npt.NDArray[Any]:
    return as_text_array("queries", names) if isinstance(names[0], str) else np.array(names)


def _catalogues(items: int | Mapping[Any, int], queries: list[Any]) -> IntArray:
    """Return the number of candidates of each query."""
    if not isinstance(items, Mapping):
        items = dict.fromkeys(queries, check_integer("items", items, minimum=2, error=DesignError))
    missing = [query for query in queries if query not in items]
    if missing:
        raise DesignError(f"items must hold a number for each query, got none for {missing[0]!r}")
    return np.array([items[query] for query in queries], dtype=np.int64)


def compare_lists(
    query: IntArray, score: FloatArray, own: IntArray, others: BoolArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return for each target how many others of its query beat it, tie with it, and are there.

    ``own`` are the rows of targets, and ``others`` tells which rows they are compared with. Query
    and score are put into one number, so that one sorted array serves all queries.
    """
    level = np.unique(score, return_inverse=True)[1].reshape(-1)
    height = int(level.max()) + 2
    spot = query * height + level
    ladder = np.sort(spot[others])
    start, stop = (np.searchsorted(ladder, (query[own] + step) * height) for step in (0, 1))
    below, upto = (np.searchsorted(ladder, spot[own], side=side) for side in ("left", "right"))
    return stop - upto, upto - below, stop - start
