"""Checked rows made into targets with numpy, where a query does not count them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, as_index
from unsample.errors import RankError
from unsample.evidence import (
    RankCounts,
    Targets,
    number_users,
    rank_in_lists,
    rank_with_ties,
    tie_names,
)
from unsample.tables._layout import Asked, Columns, Layout

#: Rows that a table of counts may be spread out to.
_MOST_ROWS = 1 << 27


def counts_of(rows: Columns, layout: Layout) -> dict[str, RankCounts]:
    """Count the distinct rows of a table without users, of each model."""
    asked = layout.asked
    if asked.read.ties == "random":  # those with ties are placed one by one
        times, alone = rows["count"], tied_with(rows) == 0
        copies = as_index(np.where(alone, 1, times).astype(np.int64))
        rows = rows | {"count": np.where(alone, times, 1)}
        rows = {role: np.repeat(values, copies) for role, values in rows.items()}
    return {
        name: RankCounts.from_ranks(
            ranks_of(mine, asked),
            count=mine["count"].astype(np.int64),
            replacement=asked.replacement,
            **_design(mine, asked),
        )
        for name, mine in _by_model(rows).items()
    }


def targets_of(rows: Columns, layout: Layout) -> dict[str, Targets]:
    """Return the targets of each model, one by one."""
    make = _in_lists if layout.scored else _alone
    return {name: make(mine, layout.asked) for name, mine in _by_model(rows).items()}


def _by_model(rows: Columns) -> dict[str, Columns]:
    if "model" not in rows:
        return {"": rows}
    names, place = np.unique(rows["model"], return_inverse=True)
    return {
        str(name): {role: values[place.reshape(-1) == n] for role, values in rows.items()}
        for n, name in enumerate(names)
    }


def _design(rows: Columns, asked: Asked) -> dict[str, Any]:
    return {
        name: asked.given[name] if name in asked.given else rows[name].astype(np.int64)
        for name in ("items", "sampled")
    }


def _alone(rows: Columns, asked: Asked) -> Targets:
    rows = repeated(rows)
    how = {"users": rows.get("user"), "filtered": asked.filtered, **_design(rows, asked)}
    return Targets(ranks_of(rows, asked), replacement=asked.replacement, **how)


def _in_lists(rows: Columns, asked: Asked) -> Targets:
    """Return the targets of scored lists, as a uniform sample would have them."""
    order = np.lexsort([rows["name"], rows["level"], rows["user"]])
    rows = {role: values[order] for role, values in rows.items()}
    users, ranks, places = rows["user"], ranks_of(rows, asked), None
    items, sampled = (rows[name].astype(np.int64) for name in ("items", "sampled"))
    user = number_users(users, len(ranks))
    if asked.filtered:
        items = items - np.bincount(as_index(user))[user] + 1
    else:
        how: dict[str, Any] = {"replacement": asked.replacement, "rng": asked.seed}
        ranks, sampled, places = rank_in_lists(
            ranks - 1, user, rows["level"], items=items, sampled=sampled, **how
        )
    return Targets(ranks, items, sampled, users, asked.replacement, places, asked.filtered)


def tied_with(rows: Mapping[str, Any]) -> IntArray:
    """Return how many items tie with each target: half a rank is a tie of two places."""
    if "tied" in rows:
        return np.asarray(rows["tied"]).astype(np.int64)
    return np.asarray(rows["rank"] % 1 > 0).astype(np.int64)


def ranks_of(rows: Columns, asked: Asked) -> IntArray:
    """Return whole ranks, by the tie rule."""
    tied, user, names = tied_with(rows), rows.get("user"), rows.get("name")
    better = (rows["better"] if "better" in rows else np.floor(rows["rank"]) - 1).astype(np.int64)
    if names is None:
        # Equal rows are numbered, whatever their order.
        order = np.lexsort([rows[key] for key in ("items", "sampled") if key in rows] or [tied])
        mine = None if user is None else user[order]
        names = tie_names(mine, better[order], tied[order])[np.argsort(order)]
    rule: Any = asked.read.ties
    return rank_with_ties(better, tied, rule, asked.seed, user, names).astype(np.int64)


def repeated(rows: Columns) -> Columns:
    """Return a row for each target."""
    if "count" not in rows:
        return rows
    times: npt.NDArray[Any] = rows["count"]
    if (more := float(times.sum())) > _MOST_ROWS:
        raise RankError(
            f"rows must stand for at most {_MOST_ROWS:,} targets where these are needed one by "
            f"one, got {more:,.0f}"
        )
    copies = as_index(times.astype(np.int64))
    return {role: np.repeat(values, copies) for role, values in rows.items() if role != "count"}
