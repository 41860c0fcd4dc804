"""Tables that name items by their numbers: negatives, training pairs, and counts of items."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, as_index, check_choice
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
    roles = {"negatives": ("user", "item", "target"), "items": ("item", "count")}[kind]
    for role in columns or {}:
        check_choice("columns", role, roles)
    wanted = {"item": "item", **(columns or {})}
    named = {DRAWN if role == "item" else role: name for role, name in wanted.items()}
    with ExitStack() as stack:
        table = open_table(source, Request(items, columns=named, kind=kind), stack)
        if isinstance(table, RankCounts):
            raise InputError("a table of items must have a column item, got saved counts of ranks")
        return table.records()
