"""Pairs of users and items, as targets and as what has been seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.errors import InputError

__all__ = ["distinct_pairs", "pairs_of", "seen_matrix"]


def distinct_pairs(
    users: npt.NDArray[Any], items: npt.NDArray[Any], *, size: int
) -> tuple[IntArray, IntArray]:
    """Return each pair once, in the order of users and items; items lie below ``size``."""
    if not len(users):
        raise InputError("test data must hold at least one target, got none")
    codes = np.unique(users.astype(np.int64) * size + items.astype(np.int64))
    return codes // size, codes % size


def pairs_of(name: str, matrix: Any, shape: tuple[int, int] | None = None) -> Any:
    """Return a sparse users x items matrix as csr without explicit zeros, or say what is wrong."""
    if not hasattr(matrix, "tocsr"):
        raise InputError(
            f"{name} must be a scipy sparse matrix of users x items, got {type(matrix).__name__}"
        )
    rows = matrix.tocsr().copy()
    rows.eliminate_zeros()
    if shape is not None and rows.shape != shape:
        raise InputError(f"{name} must be of shape {shape} as the other matrix, got {rows.shape}")
    return rows


def seen_matrix(users: npt.NDArray[Any], items: npt.NDArray[Any], *, shape: tuple[int, int]) -> Any:
    """Return a csr matrix with a 1 for each pair."""
    from scipy import sparse

    found = sparse.csr_array((np.ones(len(users), dtype=np.int8), (users, items)), shape=shape)
    found.sum_duplicates()
    found.data[:] = 1
    return found
