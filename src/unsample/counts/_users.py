"""The user of each target: numbers of relevant items, and positions among them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, check_unmasked
from unsample.counts._columns import as_column
from unsample.errors import InputError
from unsample.metrics import positions_by_user


def deviations_of_mean(totals: FloatArray, weights: FloatArray) -> FloatArray:
    """Return by how much each user moves the mean, ``totals.sum() / weights.sum()``."""
    total = weights.sum()
    return np.asarray((totals - totals.sum() / total * weights) / total)


def number_users(users: npt.ArrayLike, size: int) -> IntArray:
    """Return a number for the user of each of ``size`` ranks, from 0."""
    check_unmasked("users", users)
    labels = np.asarray(users)
    if labels.shape != (size,):
        raise InputError(
            f"users must hold one user for each of the {size} ranks, got "
            f"{'shape ' + str(labels.shape) if labels.ndim != 1 else len(labels)}"
        )
    try:
        return np.unique(labels, return_inverse=True)[1].reshape(-1)
    except TypeError as problem:
        raise InputError(
            f"users must all be text or all be numbers, got others among them ({problem}); name "
            "each user"
        ) from problem


def relevant_and_position(
    user: IntArray, ranks: IntArray, positions: npt.ArrayLike | None, full: bool
) -> tuple[IntArray, IntArray]:
    """Return how many targets the user of each target has, and its position among them, or 0.

    ``positions`` are given, or follow from ranks in the ``full`` catalogue.
    """
    relevant: IntArray = np.bincount(user)[user].astype(np.int64)
    if positions is not None:
        return relevant, as_column("positions", positions, size=len(user))
    if full:
        return relevant, positions_by_user(user, ranks.astype(np.float64))
    return relevant, (relevant == 1).astype(np.int64)
