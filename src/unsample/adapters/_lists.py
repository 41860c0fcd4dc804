"""What adapters give to `unsample.estimate`: ranks of targets, from comparisons or scored lists.

A row of a list is (query, item, score); a query's list holds its targets and the items sampled for
it. Each target is ranked among the query's other items that are no targets: other targets of the
query neither help nor harm it.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_rng,
    as_text_array,
    check_choice,
    check_integer,
)
from unsample.errors import DesignError, InputError, ScoreError
from unsample.evidence import Targets, TieRule, rank_with_ties

#: Who counts once: every user however many targets, or every target.
_EACH = ("user", "target")
#: The tie rules under which ranks are whole numbers.
WHOLE_TIES = ("random", "optimistic", "pessimistic")


@dataclass(frozen=True, eq=False)
class Counting:
    """How ties are broken, and who counts once; checked before any model is asked."""

    ties: str
    rng: Seed
    each: str

    def __post_init__(self) -> None:
        check_choice("ties", self.ties, WHOLE_TIES)
        check_choice("each", self.each, _EACH)

    def targets(
        self,
        better: IntArray,
        tied: IntArray,
        *,
        items: npt.ArrayLike,
        sampled: npt.ArrayLike,
        users: npt.NDArray[Any],
        replacement: bool,
    ) -> Targets:
        """Rank targets of which it is known how many items beat them and tie with them."""
        ranks = rank_with_ties(better, tied, cast("TieRule", self.ties), as_rng(self.rng))
        return Targets(
            ranks=np.asarray(ranks, dtype=np.int64),
            items=items,
            sampled=sampled,
            weights=1.0 / _targets_of(users) if self.each == "user" else None,
            users=users,
            replacement=replacement,
        )


@dataclass(frozen=True, eq=False)
class Lists:
    """Rows (query, item) with a score each; ``name`` says in messages what they are."""

    name: str
    query: npt.NDArray[Any]
    item: npt.NDArray[Any]
    score: FloatArray

    def __post_init__(self) -> None:
        if not len(self.query):
            raise InputError(f"{self.name} must hold at least one row, got none")
        for field in ("query", "item"):
            named = _as_names(f"each {field} of {self.name}", getattr(self, field))
            object.__setattr__(self, field, named)

    @classmethod
    def of_rows(cls, name: str, rows: Iterable[tuple[Any, Any, Any]]) -> Lists:
        """Take rows (query, item, score)."""
        queries, items, scores = list(zip(*rows, strict=True)) or [(), (), ()]
        try:
            score = np.asarray(scores, dtype=np.float64)
        except (OverflowError, TypeError, ValueError) as problem:
            raise ScoreError(f"{name} must have a number for each item: {problem}") from problem
        return cls(name, _as_array(name, queries), _as_array(name, items), score)

    @classmethod
    def of_nested(cls, name: str, lists: Mapping[Any, Mapping[Any, Any]]) -> Lists:
        """Take a dict of query -> item -> score."""
        if not all(isinstance(row, Mapping) for row in lists.values()):
            raise InputError(f"{name} must map each query to a dict of item -> number")
        rows = ((query, item, value) for query, row in lists.items() for item, value in row.items())
        return cls.of_rows(name, rows)

    def take(self, rows: npt.NDArray[Any]) -> Lists:
        """Return some of the rows."""
        return replace(self, query=self.query[rows], item=self.item[rows], score=self.score[rows])

    def rank(
        self,
        relevant: Lists,
        *,
        items: int | Mapping[Any, int],
        sampled: int | None,
        counting: Counting,
    ) -> Targets:
        """Rank every relevant item among the items of its query's list.

        Parameters
        ----------
        relevant
            The targets. Lists of other queries are left aside.
        items
            Candidates in a full ranking of a query, all its targets included: a number, or one
            for each query.
        sampled
            How many items were sampled for a query. Lists tell it by their length; given, lists
            of another length are refused.
        """
        size = len(self.query)
        query, _ = _codes(self, relevant, "query")
        item, distinct = _codes(self, relevant, "item")
        pair = query * distinct + item
        wanted, first = np.unique(pair[size:], return_index=True)
        targets = relevant.take(first)
        own = self._places(pair[:size], wanted, targets)
        better, tied, against = self._compare(query[:size], own)
        self._check_sampled(against, sampled, targets)
        return counting.targets(
            better,
            tied,
            items=_catalogue(items, targets.query) - _targets_of(targets.query) + 1,
            sampled=against,
            users=targets.query,
            replacement=False,
        )

    def _places(self, pair: IntArray, wanted: IntArray, targets: Lists) -> IntArray:
        """Return the row of each target; refuse lists that lack a target or repeat an item."""
        _, first, count = np.unique(pair, return_index=True, return_counts=True)
        if count.max() > 1:
            row = first[np.argmax(count > 1)]
            raise InputError(
                f"{self.name} must hold each item of a query once, got item {self.item[row]!s} of "
                f"query {self.query[row]!s} again"
            )
        place, missing = _find(wanted, pair)
        if missing.any():
            row = np.argmax(missing)
            raise InputError(
                f"{self.name} must hold every target, got {int(missing.sum())} of {len(missing)} "
                f"that are missing, the first item {targets.item[row]!s} of query "
                f"{targets.query[row]!s}; a list that is cut at the top k does not tell their "
                "ranks: keep the scores of all sampled items and of the target"
            )
        return place

    def _compare(self, query: IntArray, own: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return for each target how many others of its query beat it, tie with it, and are there.

        Query and score make one number, so that one sorted array answers for all queries.
        """
        unscored = np.isnan(self.score)
        if unscored.any():
            row = int(np.argmax(unscored))
            raise ScoreError(
                f"scores of {self.name} must not be NaN, got {int(unscored.sum())} of "
                f"{len(unscored)}, the first for item {self.item[row]!s} of query "
                f"{self.query[row]!s}"
            )
        level = np.unique(self.score, return_inverse=True)[1]
        height = int(level.max()) + 2
        spot = query * height + level
        ladder = np.sort(np.delete(spot, own))
        start, stop = (np.searchsorted(ladder, (query[own] + step) * height) for step in (0, 1))
        below, upto = (np.searchsorted(ladder, spot[own], side=side) for side in ("left", "right"))
        return stop - upto, upto - below, stop - start

    def _check_sampled(self, against: IntArray, sampled: int | None, targets: Lists) -> None:
        wanted = against if sampled is None else check_integer("sampled", sampled, minimum=1)
        wrong = (against != wanted) | (against == 0)
        if wrong.any():
            first = int(np.argmax(wrong))
            rule = "at least one item" if sampled is None else f"sampled = {sampled} items"
            raise DesignError(
                f"{self.name} must hold {rule} beside the targets of each query, got "
                f"{int(against[first])} for query {targets.query[first]!s} ({int(wrong.sum())} "
                "targets of such queries)"
            )


def numbers_of(
    names: npt.NDArray[Any], known: npt.NDArray[Any], *, what: str, here: str, there: str
) -> IntArray:
    """Return the place of each name among the known ones, which are distinct; refuse others."""
    asked, listed = (_as_names(f"each {what}", values) for values in (names, known))
    _check_alike(what, asked, listed, names=(here, there))
    found, strange = _find(asked, listed)
    if strange.any():
        raise InputError(
            f"each {what} of {here} must be known to {there}, got {int(strange.sum())} of "
            f"{len(asked)} rows where it is not, such as {asked[np.argmax(strange)]!s}; leave them "
            "out, and say so where you report"
        )
    return found


def _find(asked: npt.NDArray[Any], listed: npt.NDArray[Any]) -> tuple[IntArray, BoolArray]:
    """Return where each value stands in a list of different ones, and which do not at all."""
    order = np.argsort(listed, kind="stable")
    place = np.searchsorted(listed, asked, sorter=order).clip(max=len(listed) - 1)
    found = np.asarray(order[place], dtype=np.int64)
    return found, listed[found] != asked


def _targets_of(users: npt.NDArray[Any]) -> IntArray:
    """Return, for each target, how many its user has."""
    _, user, count = np.unique(users, return_inverse=True, return_counts=True)
    return np.asarray(count[user])


def _codes(listed: Lists, relevant: Lists, field: str) -> tuple[IntArray, int]:
    """Return queries or items of both as numbers, and how many different ones there are."""
    columns = [getattr(listed, field), getattr(relevant, field)]
    _check_alike(field, *columns, names=(listed.name, relevant.name))
    names, codes = np.unique(np.concatenate(columns), return_inverse=True)
    return codes.astype(np.int64), len(names)


def _catalogue(items: int | Mapping[Any, int], queries: npt.NDArray[Any]) -> IntArray:
    if not isinstance(items, Mapping):
        size = check_integer("items", items, minimum=2, error=DesignError)
        return np.full(len(queries), size, dtype=np.int64)
    missing = [query for query in queries.tolist() if query not in items]
    if missing:
        raise DesignError(
            f"items must hold a number for each query, got none for {missing[0]!r} "
            f"({len(missing)} targets)"
        )
    return np.array([items[query] for query in queries.tolist()], dtype=np.int64)


def _as_array(name: str, column: tuple[Any, ...]) -> npt.NDArray[Any]:
    if column and all(isinstance(value, str) for value in column):
        return as_text_array(f"names in {name}", column)
    return np.asarray(column)


def _as_names(what: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return names as an array of text or of integers, from arrays of objects too."""
    if values.dtype.kind in "US" or np.issubdtype(values.dtype, np.integer):
        return values
    for kind, wanted in ((str, np.str_), (numbers.Integral, np.int64)):
        if all(isinstance(value, kind) for value in values):
            return values.astype(wanted)
    strange = [value for value in values if not isinstance(value, str | numbers.Integral)]
    got = repr(strange[0]) if strange else "both"
    raise InputError(f"{what} must be named by text or by whole numbers, got {got}")


def _check_alike(
    what: str, here: npt.NDArray[Any], there: npt.NDArray[Any], *, names: tuple[str, str]
) -> None:
    """Refuse text here and numbers there: nothing would match, and nobody would know why."""
    if (here.dtype.kind in "US") != (there.dtype.kind in "US"):
        raise InputError(
            f"{names[0]} and {names[1]} must name each {what} alike, got {here[0]!r} and "
            f"{there[0]!r}; make both text, or both whole numbers"
        )
