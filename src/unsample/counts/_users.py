"""The users of targets: numbers for them, how many targets each has, and in which order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, check_unmasked
from unsample.counts._columns import as_column
from unsample.errors import InputError
from unsample.metrics import positions_by_user


def deviations_of_mean(totals: FloatArray, weights: FloatArray) -> FloatArray:
    """Return by how much each user moves the mean, ``totals.sum() / weights.sum()``.

    Two users of weight 1 have the values 1 and 0: the mean is 1/2.

    >>> deviations_of_mean(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    array([ 0.25, -0.25])
    """
    total = weights.sum()
    return np.asarray((totals - totals.sum() / total * weights) / total)


def number_users(users: npt.ArrayLike, size: int) -> IntArray:
    """Return a number for the user of each of ``size`` ranks, from 0.

    >>> number_users(["bob", "ann", "bob"], 3)
    array([1, 0, 1])
    """
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
    user: IntArray, ranks: IntArray, *, positions: npt.ArrayLike | None, full: bool
) -> tuple[IntArray, IntArray]:
    """Return how many targets the user of each target has, and its position among them, or 0.

    ``positions`` may be known. Otherwise they follow from ranks in the ``full`` catalogue. Sampled
    ranks of several targets of a user do not tell, and the positions are 0.

    >>> user, ranks = np.array([0, 0, 1]), np.array([30, 2, 8])
    >>> relevant_and_position(user, ranks, positions=None, full=True)
    (array([2, 2, 1]), array([2, 1, 1]))
    >>> relevant_and_position(user, ranks, positions=None, full=False)
    (array([2, 2, 1]), array([0, 0, 1]))
    """
    relevant: IntArray = np.bincount(user)[user].astype(np.int64)
    if positions is not None:
        return relevant, as_column("positions", positions, size=len(user))
    if full:
        return relevant, positions_by_user(user, ranks.astype(np.float64))
    return relevant, (relevant == 1).astype(np.int64)
