"""Scores of item-item models such as EASE and itemKNN: a user's items times a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.designs._scorers import Scorer, pairs_of_rows
from unsample.errors import InputError

if TYPE_CHECKING:
    import scipy.sparse


@dataclass(frozen=True, eq=False)
class ItemItemScores(Scorer):
    """Scores that are sums of weights between a user's items and all items.

    Parameters
    ----------
    history
        Sparse matrix of users x items: the items of each user, and their weights.
    weights
        The item-item matrix, with a row for each column of ``history``: an array, or a sparse
        matrix.
    item_bias
        Added to the score of each item.
    newcomers
        The scores of all items for users without items; by default 0.

    >>> from scipy.sparse import csr_array
    >>> weights = np.array([[0.0, 0.5, 0.25], [0.5, 0.0, 1.0], [0.25, 1.0, 0.0]])
    >>> model = ItemItemScores(csr_array([[1, 1, 0], [0, 0, 0]]), weights)
    >>> model.rows(np.array([0, 1]), 3)
    array([[0.5 , 0.5 , 1.25],
           [0.  , 0.  , 0.  ]])
    """

    history: scipy.sparse.csr_array
    weights: npt.NDArray[Any] | scipy.sparse.csr_array
    item_bias: npt.NDArray[Any] | None = None
    newcomers: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        from scipy.sparse import csr_array, issparse

        if not issparse(self.history):
            raise InputError(
                "history must be a scipy sparse matrix of users x items, got "
                f"{type(self.history).__name__}"
            )
        weights: Any = csr_array(self.weights) if issparse(self.weights) else self.weights
        # A product copies weights that are stored by column, each time.
        weights = weights if issparse(weights) else np.ascontiguousarray(weights)
        if weights.dtype not in (np.float32, np.float64):
            weights = weights.astype(np.float64)
        if weights.ndim != 2 or self.history.shape[1] != weights.shape[0]:
            raise InputError(
                f"weights must be a matrix with a row for each of the {self.history.shape[1]} "
                f"columns of history, got shape {weights.shape}"
            )
        history = csr_array(self.history, dtype=weights.dtype)
        if not history.has_canonical_format:
            history = history.copy()
            history.sum_duplicates()
        object.__setattr__(self, "history", history)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "items", weights.shape[1])
        for name in ("item_bias", "newcomers"):
            if getattr(self, name) is not None:
                held = np.asarray(getattr(self, name), dtype=weights.dtype)
                if held.shape != (weights.shape[1],) or np.isnan(held).any():
                    raise InputError(
                        f"{name} must be {weights.shape[1]} numbers without NaN, one for each "
                        f"item, got an array of shape {held.shape}"
                    )
                object.__setattr__(self, name, held)

    def _rows(self, users: IntArray, items: int) -> npt.NDArray[Any]:
        some = self.history[users]
        dense = isinstance(self.weights, np.ndarray)
        # Item by item, a row of weights is read once for all users with that item. The sums of a
        # user have the same order either way.
        found: Any = (some.tocsc() if dense else some) @ self.weights
        scores = np.asarray(found if dense else found.toarray())
        if self.item_bias is not None and self.item_bias.any():
            scores += self.item_bias
        new = np.diff(some.indptr) == 0
        if self.newcomers is not None and new.any():
            scores[new] = self.newcomers
        return scores

    def _pairs(self, users: IntArray, items: IntArray) -> npt.NDArray[Any]:
        return pairs_of_rows(self._rows, users, items)
