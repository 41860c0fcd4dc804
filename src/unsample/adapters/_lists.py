"""What adapters give to `unsample.estimate`: targets, ranked by the reader of scored rows.

The list of a query (or user) holds its targets and the items sampled for it. All targets of a query
are compared with the same items, so that metrics of the query's whole list can be told from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unsample._checks import Seed
from unsample.errors import DesignError, InputError
from unsample.evidence import Targets, check_ties
from unsample.tables import Read, read_targets


def rank_rows(
    rows: Mapping[str, Any], *, ties: str, rng: Seed, replacement: bool, filtered: bool
) -> Targets:
    """Rank the targets among the rows of their users: ``user``, ``score``, ``target``, ``items``.

    ``items`` counts all candidates of a user, other targets too.
    """
    read = Read(rows="scores", ties=check_ties(ties, whole=True), rng=rng)
    columns = {name: np.asarray(values) for name, values in rows.items()}
    found = read_targets(columns, read=read, replacement=replacement, filtered=filtered)
    assert isinstance(found, Targets)
    return found


def rank_lists(
    name: str,
    lists: Mapping[Any, Mapping[Any, float]],
    relevant: Mapping[Any, Mapping[Any, float]],
    *,
    items: int | Mapping[Any, int],
    sampled: int | None,
    ties: str,
    rng: Seed,
    filtered: bool,
) -> Targets:
    """Rank every relevant item in its query's list; lists of other queries are left aside.

    ``lists`` has scores by query and item, and ``name`` says in messages what they are. ``items``
    and ``sampled`` are as in `unsample.adapters.trec.targets`.
    """
    rows: dict[str, list[Any]] = {"user": [], "item": [], "score": [], "target": [], "items": []}
    for query, wanted in relevant.items():
        row, what = lists.get(query, {}), f"{name} of query {query!r}"
        missing = [item for item in wanted if item not in row]
        if missing:
            raise InputError(
                f"{what} must hold every target, got none for item {missing[0]!r}; a list that is "
                "cut at the top k does not tell ranks: keep the scores of all sampled items"
            )
        others = len(row) - len(wanted)
        if not others or sampled not in (None, others):
            rule = "at least one item" if sampled is None else f"sampled = {sampled} items"
            raise DesignError(f"{what} must hold {rule} beside the targets, got {others}")
        size = items.get(query) if isinstance(items, Mapping) else items
        if size is None:
            raise DesignError(f"items must hold a number for each query, got none for {query!r}")
        rows["user"] += [query] * len(row)
        rows["items"] += [size] * len(row)
        rows["item"] += row
        rows["score"] += row.values()
        rows["target"] += [item in wanted for item in row]
    return rank_rows(rows, ties=ties, rng=rng, replacement=False, filtered=filtered)
