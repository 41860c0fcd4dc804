"""Make counts or targets from checked rows with numpy, where a query does not count them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, as_index
from unsample.counts import (
    RankCounts,
    Targets,
    TieRule,
    check_ties,
    number_users,
    rank_in_lists,
    rank_with_ties,
    runs_of,
)
from unsample.metrics import positions_by_user
from unsample.tables._layout import Asked, Columns, Layout


def counts_of(rows: Columns, asked: Asked) -> dict[str, RankCounts]:
    """Count the distinct rows of a table without users, of each model."""
    return {
        name: RankCounts.from_ranks(
            mine["rank"].astype(np.int64),
            count=mine["times"],
            replacement=asked.negatives.replacement,
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
    names, index = np.unique(rows["model"], return_inverse=True)
    return {
        str(name): {role: values[index.reshape(-1) == n] for role, values in rows.items()}
        for n, name in enumerate(names)
    }


def _design(rows: Columns, asked: Asked) -> dict[str, Any]:
    return {
        name: asked.given[name] if name in asked.given else rows[name].astype(np.int64)
        for name in ("items", "sampled")
    }


def _alone(rows: Columns, asked: Asked) -> Targets:
    how = {"users": rows.get("user"), "filtered": asked.filtered, **_design(rows, asked)}
    return Targets(rows["rank"].astype(np.int64), replacement=asked.negatives.replacement, **how)


def _in_lists(rows: Columns, asked: Asked) -> Targets:
    """Return the targets of scored lists, as a uniform sample would have them."""
    order = np.lexsort([rows["name"], rows["level"], rows["user"]])
    rows = {role: values[order] for role, values in rows.items()}
    users, names, positions = rows["user"], rows["name"], None
    better, tied, items, sampled = (
        rows[name].astype(np.int64) for name in ("better", "tied", "items", "sampled")
    )
    rule, user = check_ties(asked.read.ties, whole=True), number_users(users, len(better))
    if asked.filtered:
        items = items - np.bincount(as_index(user))[user] + 1
        ranks = rank_with_ties(better, tied, rule, asked.seed, users, names).astype(np.int64)
    else:
        ranks = _among_all(rows["level"], better, tied, user, rule, asked.seed, (users, names))
        # The items before a target are its rank minus its position among the user's targets.
        position = positions_by_user(user, ranks.astype(np.float64))
        ranks, sampled, positions = rank_in_lists(
            ranks - position,
            user,
            -ranks,
            items=items,
            sampled=sampled,
            replacement=asked.negatives.replacement,
            rng=asked.seed,
        )
    return Targets(
        ranks, items, sampled, users, asked.negatives.replacement, positions, asked.filtered
    )


def _among_all(
    level: FloatArray,
    better: IntArray,
    tied: IntArray,
    user: IntArray,
    rule: TieRule,
    seed: int,
    names: tuple[npt.NDArray[Any], npt.NDArray[Any]],
) -> IntArray:
    """Return ranks in lists that hold the user's other targets too, which are not yet counted."""
    runs, position = runs_of(user, level), positions_by_user(user, -level)
    first = np.full(len(runs), len(runs))
    np.minimum.at(first, runs, position)
    better = better + first[runs] - 1
    tied = tied + np.bincount(as_index(runs))[runs] - 1
    return rank_with_ties(better, tied, rule, seed, *names, runs=runs).astype(np.int64)
