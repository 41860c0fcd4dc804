"""What adapters give to `unsample.estimate`: ranks of targets, from comparisons or scored lists.

A row of a list is (query, item, score); a query's list holds its targets and the items sampled for
it. All targets of a query are compared with the same items, so that metrics of the query's whole
list can be told from them.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    FloatArray,
    IntArray,
    Seed,
    as_rng,
    as_text_array,
    check_integer,
)
from unsample.adapters._tasks import Pairs
from unsample.errors import DesignError, InputError, ScoreError
from unsample.evidence import (
    Targets,
    check_ties,
    compare_lists,
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
        sampled: npt.ArrayLike,
        users: npt.NDArray[Any],
        replacement: bool,
        scores: FloatArray | None = None,
    ) -> Targets:
        """Rank targets of which it is known how many items beat them and tie with them.

        ``items`` counts all candidates of a user, other targets too. ``scores`` order the targets
        of a user that were all compared with the same items; without them, each was compared with
        its own.
        """
        generator = as_rng(self.rng)
        ranks = rank_with_ties(better, tied, check_ties(self.ties, whole=True), generator)
        ranks, places = ranks.astype(np.int64), None
        if self.filtered:
            items = items - _targets_of(users) + 1
        elif scores is not None:
            ranks, sampled, places = rank_in_lists(
                ranks - 1,
                number_users(users, len(ranks)),
                scores,
                items=items,
                sampled=np.broadcast_to(np.asarray(sampled), len(ranks)),
                replacement=replacement,
                rng=generator,
            )
        return Targets(
            ranks,
            items,
            sampled,
            users=users,
            replacement=replacement,
            places=places,
            filtered=self.filtered,
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
            named = as_names(f"each {field} of {self.name}", getattr(self, field))
            object.__setattr__(self, field, named)

    @classmethod
    def of_rows(cls, name: str, rows: Iterable[tuple[Any, Any, Any]]) -> Lists:
        """Take rows (query, item, score)."""
        queries, items, scores = list(zip(*rows, strict=True)) or [(), (), ()]
        try:
            score = np.asarray(scores, dtype=np.float64)
        except (OverflowError, TypeError, ValueError) as problem:
            raise ScoreError(f"{name} must have a number for each item: {problem}") from problem
        query, item = (np.asarray(names, dtype=object) for names in (queries, items))
        return cls(name, query, item, score)

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
        graded: bool = False,
    ) -> Targets:
        """Rank every relevant item in its query's list; lists of other queries are left aside.

        ``items`` and ``sampled`` are as in `unsample.adapters.trec.targets`. What is ``graded``
        has how relevant it is for a score.
        """
        mine, theirs = self.name, relevant.name
        (query, asked), _ = codes_of("query", (mine, self.query), (theirs, relevant.query))
        (item, wanted), names = codes_of("item", (mine, self.item), (theirs, relevant.item))
        distinct = len(names)
        pairs, first = np.unique(asked * distinct + wanted, return_index=True)
        targets = relevant.take(first)
        own = self._places(query * distinct + item, pairs, targets)
        better, tied, against = self._compare(query, own)
        expected = against if sampled is None else check_integer("sampled", sampled, minimum=1)
        wrong = (against != expected) | (against == 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            rule = "at least one item" if sampled is None else f"sampled = {sampled} items"
            raise DesignError(
                f"{self.name} must hold {rule} beside the targets of each query, got "
                f"{int(against[row])} for query {targets.query[row]!s} ({int(wrong.sum())} "
                "targets of such queries)"
            )
        found = counting.targets(
            better,
            tied,
            items=_catalogue(items, targets.query),
            sampled=against,
            users=targets.query,
            replacement=False,
            scores=self.score[own],
        )
        return replace(found, relevance=targets.score) if graded else found

    def once(self, listed: IntArray) -> tuple[IntArray, IntArray]:
        """Return the pairs of query and item, as numbers, and their rows; refuse repeated ones."""
        pairs, first, count = np.unique(listed, return_index=True, return_counts=True)
        if count.max() > 1:
            row = first[np.argmax(count > 1)]
            raise InputError(
                f"{self.name} must hold each item of a query once, got item {self.item[row]!s} of "
                f"query {self.query[row]!s} again"
            )
        return pairs, first

    def _places(self, listed: IntArray, wanted: IntArray, targets: Lists) -> IntArray:
        """Return the row of each target; refuse lists that lack a target or repeat an item."""
        pairs, first = self.once(listed)
        place = np.searchsorted(pairs, wanted).clip(max=len(pairs) - 1)
        missing = pairs[place] != wanted
        if missing.any():
            row = np.argmax(missing)
            raise InputError(
                f"{self.name} must hold every target, got {int(missing.sum())} of {len(missing)} "
                f"that are missing, the first item {targets.item[row]!s} of query "
                f"{targets.query[row]!s}; a list that is cut at the top k does not tell their "
                "ranks: keep the scores of all sampled items and of the target"
            )
        return np.asarray(first[place])

    def refuse_unscored(self) -> None:
        """Refuse rows without a score."""
        unscored = np.isnan(self.score)
        if unscored.any():
            row = int(np.argmax(unscored))
            raise ScoreError(
                f"scores of {self.name} must not be NaN, got {int(unscored.sum())} of "
                f"{len(unscored)}, the first for item {self.item[row]!s} of query "
                f"{self.query[row]!s}"
            )

    def _compare(self, query: IntArray, own: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Compare the targets with the other items of their queries."""
        self.refuse_unscored()
        others = np.ones(len(query), dtype=bool)
        others[own] = False
        return compare_lists(query, self.score, own, others)


def numbered(pairs: Pairs, ids: Pairs, *, here: str, there: str) -> tuple[IntArray, IntArray]:
    """Return users and items by their places among the ids, which are distinct; refuse others."""
    found = []
    for what, given, known in zip(("user", "item"), pairs, ids, strict=True):
        asked, listed = (as_names(f"each {what}", names) for names in (given, known))
        (wanted, codes), distinct = codes_of(what, (here, asked), (there, listed))
        place = np.full(len(distinct), -1)
        place[codes] = np.arange(len(codes))
        found.append(place[wanted])
        strange = found[-1] < 0
        if strange.any():
            raise InputError(
                f"each {what} of {here} must be known to {there}, got {int(strange.sum())} of "
                f"{len(asked)} rows where it is not, such as {asked[np.argmax(strange)]!s}; leave "
                "them out, and say so where you report"
            )
    return found[0], found[1]


def codes_of(
    what: str, *named: tuple[str, npt.NDArray[Any]]
) -> tuple[list[IntArray], npt.NDArray[Any]]:
    """Return the names of several columns as numbers, and the names that there are."""
    (first, here), *others = [(name, array) for name, array in named if len(array)]
    for name, there in others:
        # Text here and numbers there would never match, without any message.
        if (here.dtype.kind in "US") != (there.dtype.kind in "US"):
            raise InputError(
                f"{first} and {name} must name each {what} alike, got {here[0]!r} and "
                f"{there[0]!r}; make both text, or both whole numbers"
            )
    arrays = [here, *(there for _, there in others)]
    distinct, codes = np.unique(np.concatenate(arrays), return_inverse=True)
    ends = np.cumsum([len(array) for _, array in named])
    return np.split(codes.reshape(-1), ends[:-1]), distinct


def _targets_of(users: npt.NDArray[Any]) -> IntArray:
    """Return, for each target, how many its user has."""
    _, user, count = np.unique(users, return_inverse=True, return_counts=True)
    return np.asarray(count[user])


def _catalogue(items: int | Mapping[Any, int], queries: npt.NDArray[Any]) -> IntArray:
    if not isinstance(items, Mapping):
        size = check_integer("items", items, minimum=2, error=DesignError)
        return np.full(len(queries), size, dtype=np.int64)
    try:
        return np.array([items[query] for query in queries.tolist()], dtype=np.int64)
    except KeyError as query:
        raise DesignError(
            f"items must hold a number for each query, got none for {query}"
        ) from None


def as_names(what: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return names as an array of text or of integers, from arrays of objects too."""
    if values.dtype.kind in "USiu":
        return values
    named = values.tolist()
    if all(isinstance(name, str) for name in named):
        return as_text_array(what, named)
    if all(isinstance(name, numbers.Integral) for name in named):
        return np.asarray(named)
    strange = [name for name in named if not isinstance(name, str | numbers.Integral)]
    got = repr(strange[0]) if strange else "both"
    raise InputError(f"{what} must be named by text or by whole numbers, got {got}")
