"""Checked rows made into counts or targets with numpy, where a query does not count them."""

from __future__ import annotations

from typing import Any

import numpy as np

from unsample._checks import as_index
from unsample.evidence import (
    RankCounts,
    Targets,
    check_ties,
    number_users,
    rank_in_lists,
    rank_with_ties,
)
from unsample.tables._layout import Asked, Columns, Layout


def counts_of(rows: Columns, asked: Asked) -> dict[str, RankCounts]:
    """Count the distinct rows of a table without users, of each model."""
    return {
        name: RankCounts.from_ranks(
            mine["rank"].astype(np.int64),
            count=mine["times"],
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
    how = {"users": rows.get("user"), "filtered": asked.filtered, **_design(rows, asked)}
    return Targets(rows["rank"].astype(np.int64), replacement=asked.replacement, **how)


def _in_lists(rows: Columns, asked: Asked) -> Targets:
    """Return the targets of scored lists, as a uniform sample would have them."""
    order = np.lexsort([rows["name"], rows["level"], rows["user"]])
    rows = {role: values[order] for role, values in rows.items()}
    users, names, places = rows["user"], rows["name"], None
    better, tied, items, sampled = (
        rows[name].astype(np.int64) for name in ("better", "tied", "items", "sampled")
    )
    rule = check_ties(asked.read.ties, whole=True)
    ranks = rank_with_ties(better, tied, rule, asked.seed, users, names).astype(np.int64)
    user = number_users(users, len(ranks))
    if asked.filtered:
        items = items - np.bincount(as_index(user))[user] + 1
    else:
        how: dict[str, Any] = {"replacement": asked.replacement, "rng": asked.seed}
        ranks, sampled, places = rank_in_lists(
            ranks - 1, user, rows["level"], items=items, sampled=sampled, **how
        )
    return Targets(ranks, items, sampled, users, asked.replacement, places, asked.filtered)
