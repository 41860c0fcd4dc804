"""Checked rows made into targets and counts with numpy; tables of counts, read and written."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import as_index
from unsample.errors import InputError, RankError
from unsample.evidence import (
    PAIR_KEYS,
    ModelCounts,
    PairCounts,
    RankCounts,
    Targets,
    number_users,
    pair_keys,
    rank_in_lists,
    tie_names,
    tie_place,
    tie_uniforms,
)
from unsample.tables._layout import Asked, Columns, Layout
from unsample.tables._sql import CELL, COUNTS

#: Targets that are placed among their ties one by one.
_MOST_COPIES = 1 << 27


def count_rows(rows: Columns, layout: Layout, *, pair: bool) -> ModelCounts:
    """Count rows of each model, and pairs of models if asked for and users are known."""
    if "user" in rows:
        found = dict(sorted(targets_of(rows, layout).items()))
        counts = {name: each.counts for name, each in found.items()}
        sides = {name: (np.asarray(each.users), each.cells) for name, each in found.items()}
        two = combinations(sides if pair else (), 2)
        return ModelCounts(
            counts, {(a, b): PairCounts.of_users(*sides[a], other=sides[b]) for a, b in two}
        )
    counts = {}
    for name, mine in sorted(_by_model(rows).items()):
        placed = ranked(mine, layout.asked)
        times = placed["count"].astype(np.int64) if "count" in placed else None
        how = {"replacement": layout.asked.replacement, **_design(placed, layout)}
        counts[name] = RankCounts.from_ranks(placed["rank"], count=times, **how)
    return ModelCounts(counts, {})


def targets_of(rows: Columns, layout: Layout) -> dict[str, Targets]:
    """Return the targets of each model, one by one."""
    make = _in_lists if layout.scored else _alone
    return {name: make(mine, layout) for name, mine in _by_model(rows).items()}


def _by_model(rows: Columns) -> dict[str, Columns]:
    if "model" not in rows:
        return {"": rows}
    names, first, place = np.unique(rows["model"], return_index=True, return_inverse=True)
    parts = {str(names[n]): np.flatnonzero(place.reshape(-1) == n) for n in np.argsort(first)}
    return {
        name: {role: values[part] for role, values in rows.items()} for name, part in parts.items()
    }


def _design(rows: Columns, layout: Layout) -> dict[str, Any]:
    given = layout.asked.given
    return {
        name: given[name] if name in given else rows[name].astype(np.int64)
        for name in ("items", "sampled")
    }


def _alone(rows: Columns, layout: Layout) -> Targets:
    placed, asked = ranked(repeated(rows), layout.asked), layout.asked
    how = {"users": placed.get("user"), "filtered": asked.filtered, **_design(placed, layout)}
    return Targets(placed["rank"], replacement=asked.replacement, **how)


def _in_lists(columns: Columns, layout: Layout) -> Targets:
    """Return relevant items of lists, as a uniform sample would have them."""
    asked, order = layout.asked, np.lexsort([columns["level"], columns["user"]])
    rows = ranked({role: values[order] for role, values in columns.items()}, asked)
    users, low = rows["user"], rows["rank"]
    user, places = number_users(users, len(low)), None
    relevant = np.bincount(as_index(user))[user]
    items, sampled = (rows[name].astype(np.int64) for name in ("items", "sampled"))
    if asked.filtered:
        items = items - relevant + 1
    else:
        if layout.rows == "lists":
            sampled = np.minimum(sampled, items - relevant)
        chances = (
            tie_uniforms(asked.seed, users, rows["name"], what)
            for what in ("others", "place", "rank")
        )
        low, sampled, places = rank_in_lists(
            low - 1,
            user,
            rows["level"],
            items=items,
            sampled=sampled,
            replacement=asked.replacement,
            uniforms=tuple(chances),
        )
    high = np.where(rows["beyond"] > 0, sampled + 1, low) if "beyond" in rows else low
    lowest = low if (low < high).any() else None
    kind: dict[str, Any] = {"filtered": asked.filtered, "replacement": asked.replacement}
    return Targets(high, items, sampled, users, places=places, lowest=lowest, **kind)


def ranked(columns: Columns, asked: Asked) -> Columns:
    """Return rows with whole ranks, by the tie rule; those with ties at random one by one."""
    rows, random = dict(columns), asked.read.ties == "random"
    if "better" not in rows:
        # The mean of two neighbouring ranks is a tie with one item.
        rank = rows["rank"]
        rows |= {"better": np.floor(rank) - 1, "tied": np.ceil(rank) - np.floor(rank)}
    tied = rows["tied"] > 0
    if random and "count" in rows and tied.any():
        times = copies(np.where(tied, rows["count"], 1))
        rows["count"] = np.where(tied, 1, rows["count"])
        rows = {role: np.repeat(values, times) for role, values in rows.items()}
    better, ties = (rows[role].astype(np.int64) for role in ("better", "tied"))
    if random:
        if "name" not in rows:
            # Equal rows are numbered, whatever their order.
            order = np.lexsort([rows[key] for key in ("items", "sampled") if key in rows] or [ties])
            user = rows["user"][order] if "user" in rows else None
            names = tie_names(user, better[order], ties[order])
            rows["name"] = names[np.argsort(order)]
        ties = tie_place(asked.seed, rows.get("user"), rows["name"], ties)
    return rows | {"rank": 1 + better + (0 if asked.read.ties == "optimistic" else ties)}


def repeated(rows: Columns) -> Columns:
    """Return a row for each target."""
    if "count" not in rows:
        return rows
    times = copies(rows["count"])
    return {role: np.repeat(values, times) for role, values in rows.items() if role != "count"}


def copies(times: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return how often to repeat rows, if that can be done."""
    if (more := float(times[times > 1].sum())) > _MOST_COPIES:
        raise RankError(
            f"ties must be optimistic or pessimistic where more than {_MOST_COPIES:,} places would "
            f"be drawn at random, got {more:,.0f}"
        )
    return as_index(times.astype(np.int64))


# -- tables of counts ----------------------------------------------------------------------------


def is_complete(table: Columns) -> bool:
    """Return whether every cell of a table of counts has a rank."""
    return not any(map(_empty, table["low"][_cells(table)]))


def of_table(table: Columns, asked: Asked) -> ModelCounts:
    """Return the counts that a query made, in any engine."""
    if not is_complete(table):
        raise InputError(
            "the table of counts has ranks that are null: some rows broke a rule, or some users of "
            "scored rows have no target or several; let unsample read the rows, which tells them"
        )
    # Files write the name of the only model, which is empty, as they write nothing.
    one, other = (
        np.array(["" if _empty(each) else str(each) for each in table[name]], dtype=np.str_)
        for name in ("model", "other_model")
    )
    cells, found = _cells(table), {}
    pairs: dict[tuple[str, str], PairCounts] = {}
    for a, b in sorted({*zip(one[~cells].tolist(), other[~cells].tolist(), strict=True)}):
        rows = ~cells & (one == a) & (other == b)
        sides = [
            np.stack([table[start + key][rows].astype(np.int64) for key in PAIR_KEYS], axis=1)
            for start in ("", "other_")
        ]
        for side in sides if asked.filtered else ():
            side[:, 3:] = 1
        pairs[a, b] = PairCounts.of_cells(sides[0], sides[1], table["count"][rows].astype(np.int64))
    for name in np.unique(one[cells]).tolist():
        rows = cells & (one == name)
        mine = {key: table[key][rows].astype(np.int64) for key in (*CELL, "count")}
        users = round(float((mine["count"] / mine["relevant"]).sum()))
        clusters = pairs.pop((name, name), None)
        if clusters is not None:
            # A user's only target is a pair with itself, which the query leaves out.
            alone = {key: values[mine["relevant"] == 1] for key, values in mine.items()}
            single = PairCounts.of_cells(pair_keys(alone), pair_keys(alone), alone["count"])
            clusters = PairCounts.merge([clusters, single])
        if asked.filtered:
            mine |= dict.fromkeys(("relevant", "place"), np.ones_like(mine["low"]))
        how: dict[str, Any] = {"replacement": asked.replacement, "users": users}
        found[name] = RankCounts(**mine, **how, clusters=clusters)
    return ModelCounts(found, pairs)


def as_table(models: ModelCounts) -> dict[str, list[Any]]:
    """Return the table of counts that a query would give."""
    rows: list[list[Any]] = []
    pairs = {(name, name): each.clusters for name, each in models.items() if each.clusters}
    for name, counts in models.items():
        cells = np.stack([getattr(counts, column) for column in (*CELL, "count")], axis=1)
        rows += ([name, *cell, *[None] * 7] for cell in cells.tolist())
    for (one, other), found in {**pairs, **models.between}.items():
        sides = found.first.tolist(), found.second.tolist(), found.count.tolist()
        for first, second, count in zip(*sides, strict=True):
            if one != other or first[3] > 1:
                sampled, items, low, *ends = first
                rows.append([one, sampled, items, None, None, *ends, count, low, other, *second])
    return dict(zip(COUNTS, map(list, zip(*rows, strict=True)), strict=True))


def _cells(table: Columns) -> npt.NDArray[np.bool_]:
    return np.array([_empty(each) for each in table["bin"]], dtype=bool)


def _empty(value: Any) -> bool:
    return value is None or value == "" or value != value  # noqa: PLR0124 - NaN
