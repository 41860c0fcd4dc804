"""Tables that name items by their numbers: negatives, training pairs, and counts of items."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, FloatArray, IntArray, as_index, check_choice
from unsample.errors import InputError
from unsample.evidence import Negatives, RankCounts
from unsample.tables._layout import DRAWN, Columns, Request
from unsample.tables._read import is_frame, open_table

if TYPE_CHECKING:
    import scipy.sparse


class Pairs(NamedTuple):
    """Users, by name, and an item of each."""

    users: npt.NDArray[Any]
    items: IntArray


def is_table(value: object) -> bool:
    """Return whether ``value`` stands for a table: paths, a frame, or a mapping of columns."""
    if isinstance(value, Mapping):
        return True
    paths = value if isinstance(value, list | tuple) and value else [value]
    return all(isinstance(path, str | os.PathLike) for path in paths) or is_frame(value)


def read_negatives(
    source: Any, *, items: int, columns: Mapping[str, str] | None = None
) -> tuple[Negatives, npt.NDArray[Any]]:
    """Read lists of negatives, and whose they are: columns ``user``, ``item``, maybe ``target``.

    Lists keep the order in which they first appear in the table.
    """
    rows = _read(source, items, columns, "negatives")
    flags = rows["target"] == 1 if "target" in rows else None
    ids = rows[DRAWN].astype(np.int64, copy=False)
    return Negatives.of_rows(rows["user"], ids, items=items, is_target=flags)


class Compared(NamedTuple):
    """Lists of negatives, and of each item what is known of it beside its target."""

    negatives: Negatives
    #: Whose each list is.
    names: npt.NDArray[Any]
    beats: BoolArray
    #: The chance of each item to have been in the sample, and its stratum, where given.
    chance: FloatArray | None
    stratum: npt.NDArray[Any] | None


def read_compared(source: Any, *, items: int, rng: np.random.Generator) -> Compared:
    """Read the items that each target was ranked against, and which of them beat it.

    Columns are ``user``, ``item``, ``score`` and ``target``, or ``user``, ``item`` and ``beats``;
    and ``probability`` or ``stratum``.
    """
    rows = _read(source, items, None, "compared")
    ids = rows[DRAWN].astype(np.int64, copy=False)
    own = rows["target"] == 1 if "target" in rows else np.zeros(len(ids), dtype=bool)
    negatives, names = Negatives.of_rows(rows["user"], ids, items=items, is_target=own)
    several = len(np.unique(rows["user"][own])) < int(own.sum())
    if several or (own.any() and int(own.sum()) < len(names)):
        raise InputError(
            f"each user must have one target, got {int(own.sum()):,} targets of {len(names):,} "
            "users; name each list by its user and target"
        )
    order, sizes = _in_lists(rows["user"], names, ~own), as_index(negatives.sizes)
    if "beats" in rows:
        value = rows["beats"][order]
    elif "score" in rows and own.any():
        score, aim = rows["score"], np.empty(len(names))
        aim[negatives.target_lists] = score[_in_lists(rows["user"], names, own)]
        theirs, mine = score[order], np.repeat(aim, sizes)
        value = np.where(theirs == mine, 0.5, (theirs > mine).astype(np.float64))
    else:
        raise InputError(
            "the table must have columns score and target, or a column beats, to tell which items "
            "beat a target"
        )
    # A target is placed anywhere among its ties: one number for each list.
    luck = np.repeat(rng.random(len(names)), sizes)
    beats = np.where(value == 0.5, rng.random(len(value)) < luck, value > 0.5)
    chance, stratum = rows.get("probability"), rows.get("stratum")
    return Compared(
        negatives,
        names,
        beats,
        None if chance is None else chance[order].astype(np.float64),
        None if stratum is None else stratum[order],
    )


def _in_lists(
    users: npt.NDArray[Any], names: npt.NDArray[Any], kept: BoolArray
) -> npt.NDArray[np.intp]:
    """Return the rows that are kept, in the order of the lists."""
    order = np.argsort(names)
    place = order[np.searchsorted(names[order], users[kept])]
    return np.asarray(np.flatnonzero(kept)[np.argsort(place, kind="stable")])


def read_pairs(source: Any, *, items: int, columns: Mapping[str, str] | None = None) -> Pairs:
    """Read pairs of user and item, such as those of training."""
    wanted = {role: name for role, name in (columns or {}).items() if role != "target"}
    rows = _read(source, items, wanted, "negatives")
    return Pairs(rows["user"], rows[DRAWN].astype(np.int64, copy=False))


def read_item_counts(
    source: Any, *, items: int, columns: Mapping[str, str] | None = None
) -> FloatArray:
    """Count each item of a table: its rows, or the sum of its column ``count``."""
    rows = _read(source, items, columns, "items")
    return np.bincount(as_index(rows[DRAWN]), rows.get("count"), minlength=items).astype(np.float64)


def match_users(
    pairs: Pairs, names: npt.NDArray[Any], items: int
) -> tuple[scipy.sparse.csr_array, IntArray]:
    """Return pairs as a matrix of users x items, and the row of each of the users named."""
    from scipy.sparse import csr_array

    known, rows = np.unique(names.astype(np.str_), return_inverse=True)
    row = np.searchsorted(known, pairs.users).clip(max=max(len(known) - 1, 0))
    mine = known[row] == pairs.users
    if not mine.any():
        raise InputError(
            f"exclude must name users of negatives, got none of the {len(known):,} among them, "
            f"such as {str(known[0])!r}; its first user is {str(pairs.users[0])!r}"
        )
    shape = (len(known), items)
    ones = np.ones(int(mine.sum()))
    matrix = csr_array((ones, (row[mine], pairs.items[mine])), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1.0  # how often something was seen does not matter
    return matrix, rows.reshape(-1)


def _read(source: Any, items: int, columns: Mapping[str, str] | None, kind: str) -> Columns:
    """Return the rows of a table whose items have numbers; its other roles keep their names."""
    roles = {"negatives": ("user", "item", "target"), "items": ("item", "count")}.get(kind, ())
    for role in columns or {}:
        check_choice("columns", role, roles)
    wanted = {"item": "item", **(columns or {})}
    named = {DRAWN if role == "item" else role: name for role, name in wanted.items()}
    with ExitStack() as stack:
        table = open_table(source, Request(items, columns=named, kind=kind), stack)
        if isinstance(table, RankCounts):
            raise InputError("a table of items must have a column item, got saved counts of ranks")
        return table.records()
