"""Add what users have seen to lists of negatives that know users by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import as_integer_array
from unsample.designs import as_excluded
from unsample.errors import InputError
from unsample.evidence import Negatives
from unsample.tables import is_table, match_users, read_pairs


def with_seen(
    found: Negatives,
    names: npt.NDArray[Any],
    exclude: Any,
    columns: Mapping[str, str] | None = None,
) -> Negatives:
    """Return the lists with what users have seen, given as a table or a users x items matrix."""
    items = found.items
    if exclude is None:
        return replace(found, users=np.unique(names, return_inverse=True)[1].reshape(-1))
    if is_table(exclude):
        matrix, rows = match_users(read_pairs(exclude, items=items, columns=columns), names, items)
        return replace(found, users=rows, exclude=matrix)
    matrix = as_excluded(exclude, items)
    # How often an item was seen does not matter. The caller's matrix is left unchanged.
    matrix = type(matrix)((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    hint = "they are rows of exclude"
    rows = as_integer_array("users", _as_numbers(names), hint=hint, error=InputError).astype(
        np.int64
    )
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < matrix.shape[0]:
        raise InputError(
            f"users must be rows of exclude, 0 to {matrix.shape[0] - 1}, got "
            f"{int(rows.min())} to {int(rows.max())}; by default list t is of user t"
        )
    return replace(found, users=rows, exclude=matrix)


def _as_numbers(names: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return users as numbers; in a table they are text."""
    if names.dtype.kind != "U":
        return names
    try:
        return names.astype(np.int64)
    except ValueError as problem:
        raise InputError(
            "users must be rows of exclude where that is a matrix, got names; give exclude as a "
            "table of user and item"
        ) from problem
