"""What adapters give to `unsample.estimate`: ranks of targets, from comparisons or scored lists.

The list of a query (or user) holds its targets and the items sampled for it. All targets of a query
are compared with the same items, so that metrics of the query's whole list can be told from them.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, Seed, as_rng, as_text_array, check_integer
from unsample.errors import DesignError, InputError, ScoreError
from unsample.evidence import Targets, check_ties, number_users, rank_in_lists, rank_with_ties


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
                uniforms=tuple(generator.random((3, len(ranks)))),
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
    """The scores of a run by query and item; ``name`` says in messages what they are."""

    name: str
    scores: Mapping[Any, Mapping[Any, float]]

    def rank(
        self,
        relevant: Mapping[Any, Mapping[Any, float]],
        *,
        items: int | Mapping[Any, int],
        sampled: int | None,
        counting: Counting,
    ) -> Targets:
        """Rank every relevant item in its query's list; lists of other queries are left aside.

        ``relevant`` tells by query and item how relevant it is. ``items`` and ``sampled`` are as in
        `unsample.adapters.trec.targets`.
        """
        queries = _ordered(relevant)
        wanted = [
            {item: relevant[query][item] for item in _ordered(relevant[query])} for query in queries
        ]
        parts = [self._compare(*each, sampled) for each in zip(queries, wanted, strict=True)]
        better, tied, others, own = map(np.concatenate, zip(*parts, strict=True))
        sizes = [len(part[0]) for part in parts]
        found = counting.targets(
            better,
            tied,
            items=np.repeat(_catalogues(items, queries), sizes),
            sampled=others,
            users=np.repeat(_as_array(queries), sizes),
            scores=own,
            replacement=False,
        )
        grades = np.array([row[item] for row in wanted for item in row])
        return replace(found, relevance=grades) if len(np.unique(grades)) > 1 else found

    def _compare(
        self, query: Any, wanted: Mapping[Any, float], sampled: int | None
    ) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return how many others beat each target, tie, and are there, and the targets' scores."""
        row = self.scores.get(query, {})
        missing = [item for item in wanted if item not in row]
        if missing:
            known = next(iter(self.scores), None)
            raise InputError(
                f"{self.name} must hold every target, got none for item {missing[0]!r} of query "
                f"{query!r} (there are lists of queries such as {known!r}); a list that is cut at "
                "the top k does not tell ranks: keep the scores of all sampled items and of the "
                "target"
            )
        unscored = [item for item, score in row.items() if math.isnan(score)]
        if unscored:
            raise ScoreError(
                f"scores of {self.name} must not be NaN, got {len(unscored)} for query {query!r}, "
                f"the first for item {unscored[0]!r}"
            )
        own = np.array([row[item] for item in wanted])
        others = np.array([score for item, score in row.items() if item not in wanted])
        if not len(others) or (sampled is not None and len(others) != sampled):
            rule = "at least one item" if sampled is None else f"sampled = {sampled} items"
            raise DesignError(
                f"{self.name} must hold {rule} beside the targets of each query, got "
                f"{len(others)} for query {query!r}"
            )
        better, tied = (
            compare(others, own[:, None]).sum(axis=1) for compare in (np.greater, np.equal)
        )
        return better, tied, np.full(len(own), len(others)), own


def _ordered(names: Iterable[Any]) -> list[Any]:
    """Return names of queries or of items in order; they must be all text, or all whole numbers."""
    listed = list(names)
    for kind in (str, numbers.Integral):
        if all(isinstance(name, kind) for name in listed):
            return sorted(listed)
    strange = [name for name in listed if not isinstance(name, str | numbers.Integral)]
    got = repr(strange[0]) if strange else "both"
    raise InputError(f"queries and items must be named by text or by whole numbers, got {got}")


def _as_array(names: list[Any]) -> npt.NDArray[Any]:
    return as_text_array("queries", names) if isinstance(names[0], str) else np.array(names)


def _catalogues(items: int | Mapping[Any, int], queries: list[Any]) -> IntArray:
    """Return the number of candidates of each query."""
    if not isinstance(items, Mapping):
        size = check_integer("items", items, minimum=2, error=DesignError)
        return np.full(len(queries), size, dtype=np.int64)
    for query in queries:
        if query not in items:
            raise DesignError(f"items must hold a number for each query, got none for {query!r}")
    return np.array([items[query] for query in queries], dtype=np.int64)
