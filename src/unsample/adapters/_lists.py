"""Scored lists of candidates, as evaluation libraries keep them, to ranks of targets.

A row of a list is (query, item, score); a query's list holds its targets and the items sampled for
it. Each target is ranked among the query's other items that are no targets: other targets of the
query neither help nor harm it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    FloatArray,
    IntArray,
    Seed,
    as_rng,
    as_text_array,
    check_choice,
    check_integer,
)
from unsample.adapters._names import as_names, check_alike
from unsample.errors import DesignError, InputError, ScoreError
from unsample.evidence import Targets, check_ties, rank_with_ties

__all__ = ["EACH", "ListedItems", "rank_in_lists", "whole_tie_rule"]

#: Who counts once: every user however many targets, or every target.
EACH = ("user", "target")


@dataclass(frozen=True, eq=False)
class ListedItems:
    """Rows (query, item) of lists, with a score each; ``name`` says in messages what they are."""

    name: str
    query: npt.NDArray[Any]
    item: npt.NDArray[Any]
    score: FloatArray

    def __post_init__(self) -> None:
        if not len(self.query):
            raise InputError(f"{self.name} must hold at least one row, got none")
        for field in ("query", "item"):
            named = as_names(f"each {field} of {self.name}", getattr(self, field))
            object.__setattr__(self, field, named)

    @classmethod
    def of_rows(cls, name: str, rows: Iterable[tuple[Any, Any, Any]]) -> ListedItems:
        """Take rows (query, item, score)."""
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        try:
            score = np.asarray(columns[2], dtype=np.float64)
        except (OverflowError, TypeError, ValueError) as problem:
            raise ScoreError(f"{name} must have a number for each item: {problem}") from problem
        queries, documents = (_named(name, column) for column in columns[:2])
        return cls(name, queries, documents, score)

    @classmethod
    def of_nested(cls, name: str, lists: Mapping[Any, Mapping[Any, Any]]) -> ListedItems:
        """Take a dict of query -> item -> score."""
        if not all(isinstance(row, Mapping) for row in lists.values()):
            raise InputError(f"{name} must map each query to a dict of item -> number")
        rows = ((query, item, value) for query, row in lists.items() for item, value in row.items())
        return cls.of_rows(name, rows)

    def where(self, kept: npt.NDArray[np.bool_]) -> ListedItems:
        """Return the rows that are kept."""
        return ListedItems(self.name, self.query[kept], self.item[kept], self.score[kept])


def rank_in_lists(
    listed: ListedItems,
    relevant: ListedItems,
    *,
    items: int | Mapping[Any, int],
    sampled: int | None = None,
    ties: str = "random",
    rng: Seed = 0,
    each: str = "user",
) -> Targets:
    """Rank every relevant item among the items of its query's list.

    Parameters
    ----------
    listed
        The lists: targets and sampled items, all with their scores.
    relevant
        The targets. Lists of other queries are left aside.
    items
        Candidates in a full ranking of a query, all its targets included: a number, or one for
        each query.
    sampled
        How many items were sampled for a query. Lists tell it by their length; given, lists of
        another length are refused.
    ties, rng
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``, and the seed of the first.
    each
        Whether each ``"user"`` counts once, or each ``"target"``.
    """
    check_choice("each", each, EACH)
    rule = whole_tie_rule(ties)
    codes = _Codes.of(listed, relevant)
    own = codes.targets_in_list()
    others = np.ones(len(listed.query), dtype=bool)
    others[own] = False
    level = np.unique(_finite(listed), return_inverse=True)[1]
    better, tied, against = _compare(codes.listed_query, level, own, others)
    _check_sampled(listed, codes, against, sampled)
    targets_of_query = np.bincount(codes.query)[codes.query]
    names = relevant.query[codes.first]
    return Targets(
        ranks=np.asarray(rank_with_ties(better, tied, rule, as_rng(rng)), dtype=np.int64),
        items=_catalogue(items, names) - targets_of_query + 1,
        sampled=against,
        weights=1.0 / targets_of_query if each == "user" else None,
        users=names,
        replacement=False,
    )


def whole_tie_rule(ties: str) -> Any:
    """Return a tie rule under which ranks are whole numbers."""
    rule = check_ties(ties)
    if rule == "realistic":
        raise InputError(
            "ties must be random, optimistic or pessimistic where sampled ranks are counted, got "
            "'realistic', whose ranks lie between two"
        )
    return rule


@dataclass(frozen=True, eq=False)
class _Codes:
    """Queries and items as numbers; targets once each, in the order of query and item."""

    listed: ListedItems
    relevant: ListedItems
    listed_query: IntArray
    listed_pair: IntArray
    query: IntArray
    pair: IntArray
    first: IntArray

    @classmethod
    def of(cls, listed: ListedItems, relevant: ListedItems) -> _Codes:
        size = len(listed.query)
        query, _ = _codes(listed, relevant, "query")
        item, count = _codes(listed, relevant, "item")
        pair = query * count + item
        distinct, first = np.unique(pair[size:], return_index=True)
        return cls(
            listed, relevant, query[:size], pair[:size], query[size:][first], distinct, first
        )

    def targets_in_list(self) -> IntArray:
        """Return the row of each target; refuse lists that lack a target or repeat an item."""
        order = np.argsort(self.listed_pair, kind="stable")
        ordered = self.listed_pair[order]
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        if len(twice):
            row = order[twice[0]]
            raise InputError(
                f"{self.listed.name} must hold each item of a query once, got item "
                f"{self.listed.item[row]!s} of query {self.listed.query[row]!s} again"
            )
        place = np.searchsorted(ordered, self.pair).clip(max=len(ordered) - 1)
        missing = ordered[place] != self.pair
        if missing.any():
            row = self.first[np.argmax(missing)]
            raise InputError(
                f"{self.listed.name} must hold every target, got {int(missing.sum())} of "
                f"{len(missing)} that are missing, the first item {self.relevant.item[row]!s} of "
                f"query {self.relevant.query[row]!s}; a list that is cut at the top k does not "
                "tell their ranks: keep the scores of all sampled items and of the target"
            )
        return np.asarray(order[place], dtype=np.int64)


def _codes(listed: ListedItems, relevant: ListedItems, field: str) -> tuple[IntArray, int]:
    columns = [getattr(listed, field), getattr(relevant, field)]
    check_alike(field, *columns, names=(listed.name, relevant.name))
    names, codes = np.unique(np.concatenate(columns), return_inverse=True)
    return codes.astype(np.int64), len(names)


def _named(name: str, column: tuple[Any, ...]) -> npt.NDArray[Any]:
    if column and all(isinstance(one, str) for one in column):
        return as_text_array(f"names in {name}", column)
    return np.asarray(column)


def _finite(listed: ListedItems) -> FloatArray:
    bad = np.isnan(listed.score)
    if bad.any():
        row = int(np.argmax(bad))
        raise ScoreError(
            f"scores of {listed.name} must not be NaN, got {int(bad.sum())} of {len(bad)}, the "
            f"first for item {listed.item[row]!s} of query {listed.query[row]!s}"
        )
    return listed.score


def _compare(
    query: IntArray, level: IntArray, own: IntArray, others: npt.NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray]:
    """Return for each target how many others of its query beat it, tie with it, and are there.

    Query and score make one number, so that one sorted array answers for all queries.
    """
    height = int(level.max()) + 2
    ladder = np.sort(query[others] * height + level[others])
    start, stop = (np.searchsorted(ladder, (query[own] + step) * height) for step in (0, 1))
    spot = query[own] * height + level[own]
    below, upto = (np.searchsorted(ladder, spot, side=side) for side in ("left", "right"))
    return stop - upto, upto - below, stop - start


def _check_sampled(
    listed: ListedItems, codes: _Codes, against: IntArray, sampled: int | None
) -> None:
    wanted = against if sampled is None else check_integer("sampled", sampled, minimum=1)
    wrong = (against != wanted) | (against == 0)
    if wrong.any():
        first = int(np.argmax(wrong))
        rule = "at least one item" if sampled is None else f"sampled = {sampled} items"
        raise DesignError(
            f"{listed.name} must hold {rule} beside the targets of each query, got "
            f"{int(against[first])} for query {codes.relevant.query[codes.first[first]]!s} "
            f"({int(wrong.sum())} targets of such queries)"
        )


def _catalogue(items: int | Mapping[Any, int], names: npt.NDArray[Any]) -> IntArray:
    if not isinstance(items, Mapping):
        size = check_integer("items", items, minimum=2, error=DesignError)
        return np.full(len(names), size, dtype=np.int64)
    missing = [name for name in names.tolist() if name not in items]
    if missing:
        raise DesignError(
            f"items must hold a number for each query, got none for {missing[0]!r} "
            f"({len(missing)} targets)"
        )
    return np.array([items[name] for name in names.tolist()], dtype=np.int64)
