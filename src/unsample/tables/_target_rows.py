"""Make counts or targets from checked rows with numpy, where a query does not count them."""

from __future__ import annotations

from typing import Any

import numpy as np

from unsample._checks import FloatArray, IntArray, as_index
from unsample.counts import (
    RankCounts,
    Targets,
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
    """Return targets that were each ranked alone."""
    return Targets(
        rows["rank"].astype(np.int64),
        **_design(rows, asked),
        users=rows.get("user"),
        replacement=asked.negatives.replacement,
        filtered=asked.filtered,
    )


def _in_lists(rows: Columns, asked: Asked) -> Targets:
    """Return the targets of scored lists, as a uniform sample would have them."""
    order = np.lexsort([rows["name"], rows["level"], rows["user"]])
    rows = {role: values[order] for role, values in rows.items()}
    users = rows["user"]
    names = rows["name"]
    better = rows["better"].astype(np.int64)
    tied = rows["tied"].astype(np.int64)
    items = rows["items"].astype(np.int64)
    sampled = rows["sampled"].astype(np.int64)
    rule = check_ties(asked.read.ties, whole=True)
    user = number_users(users, len(better))
    positions = None
    if asked.filtered:
        # The other targets of a user are no candidates.
        items = items - np.bincount(as_index(user))[user] + 1
        ranks = rank_with_ties(
            better, tied, ties=rule, rng=asked.seed, users=users, targets=names
        ).astype(np.int64)
    else:
        runs = runs_of(user, rows["level"])
        better, tied = _with_other_targets(rows["level"], better, tied=tied, user=user, runs=runs)
        ranks = rank_with_ties(
            better, tied, ties=rule, rng=asked.seed, users=users, targets=names, runs=runs
        ).astype(np.int64)
        # The items before a target are its rank minus its position among the user's targets.
        position = positions_by_user(user, ranks.astype(np.float64))
        ranks, sampled, positions = rank_in_lists(
            ranks - position,
            user,
            score=-ranks,
            items=items,
            sampled=sampled,
            replacement=asked.negatives.replacement,
            rng=asked.seed,
        )
    return Targets(
        ranks,
        items,
        sampled=sampled,
        users=users,
        replacement=asked.negatives.replacement,
        positions=positions,
        filtered=asked.filtered,
    )


def _with_other_targets(
    level: FloatArray, better: IntArray, *, tied: IntArray, user: IntArray, runs: IntArray
) -> tuple[IntArray, IntArray]:
    """Add the user's other targets to the items that are better, and to those that tie.

    Targets of one run have one score (``level``) and one user. The two best targets here tie, so
    each has one more item that ties with it; the third has two more that are better.

    >>> level = np.array([0.9, 0.9, 0.5])
    >>> none = np.array([0, 0, 0])
    >>> runs = np.array([0, 0, 1])
    >>> better, tied = _with_other_targets(level, none, tied=none, user=none, runs=runs)
    >>> better.tolist(), tied.tolist()
    ([0, 0, 2], [1, 1, 0])
    """
    position = positions_by_user(user, -level)
    first_of_run = np.full(len(runs), len(runs))
    np.minimum.at(first_of_run, runs, position)
    size_of_run = np.bincount(as_index(runs))
    return better + first_of_run[runs] - 1, tied + size_of_run[runs] - 1
