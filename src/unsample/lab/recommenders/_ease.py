"""EASE: a linear autoencoder in closed form (Steck, 2019).

The item-item weights are B = I - P diag(1 / diag P), where P is the inverse of the Gram matrix plus
a ridge. The Gram matrix is filled block by block and inverted in its own memory by Cholesky.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, check_choice, check_real, import_extra
from unsample.errors import SolverError
from unsample.lab.recommenders._base import (
    BaseRecommender,
    Fitted,
    Scores,
    Training,
    Weights,
    history_weights,
    scored_history,
)

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["EASE"]

#: Columns of the Gram matrix made, or mirrored, at a time.
_BLOCK = 1024


@dataclass(frozen=True)
class EASE(BaseRecommender):
    """Every item is predicted from the user's other items by ridge regression.

    Memory is one items x items matrix of ``precision`` (half a second and 55 MB for 3,706 items
    in float32, 2.7 GB for 25,815).

    Parameters
    ----------
    penalty
        Ridge added to the diagonal of the Gram matrix; a few hundred suit a million pairs.
    precision
        ``"float32"`` or ``"float64"`` of the inversion; weights are kept as float32.
    device
        ``"cpu"``, or a device of PyTorch such as ``"cuda"`` for the inversion.
    """

    penalty: float = 500.0
    precision: str = "float32"
    device: str = "cpu"
    name: ClassVar[str] = "ease"

    def __post_init__(self) -> None:
        check_real("penalty", self.penalty, low=0.0, open_low=True)
        check_choice("precision", self.precision, ("float32", "float64"))

    def _learn(self, training: Training) -> Weights:
        gram = _gram(training.matrix, np.dtype(self.precision))
        gram[np.diag_indices_from(gram)] += self.penalty
        invert = _invert if self.device == "cpu" else self._invert_on_device
        weights = invert(gram)
        weights /= -np.diag(weights).copy()
        np.fill_diagonal(weights, 0.0)
        return {**history_weights(training.matrix), "item_item": weights.astype(np.float32)}

    def _invert_on_device(self, matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
        torch = import_extra("torch", extra="neural", purpose="EASE on a device")
        lower = torch.linalg.cholesky(torch.from_numpy(matrix).to(self.device))
        return np.ascontiguousarray(torch.cholesky_inverse(lower).cpu().numpy())

    def _score_users(self, users: IntArray, fitted: Fitted) -> Scores:
        return np.asarray(scored_history(users, fitted) @ fitted.weights["item_item"])


def _gram(matrix: scipy.sparse.csr_array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the dense items x items matrix of how many users two items share."""
    items = matrix.shape[1]
    gram = np.empty((items, items), dtype=dtype)
    columns, by_item = matrix.tocsc(), matrix.T.tocsr()
    for start in range(0, items, _BLOCK):
        block = slice(start, start + _BLOCK)
        gram[:, block] = (by_item @ columns[:, block]).toarray()
    return gram


def _invert(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Replace a symmetric positive definite matrix by its inverse, in place."""
    from scipy.linalg import get_lapack_funcs

    functions: Any = get_lapack_funcs(("potrf", "potri"), (matrix,))
    factorise, invert = functions
    # The transpose is the same matrix in the column order that LAPACK works on in place.
    factor, failed = factorise(matrix.T, lower=1, overwrite_a=1, clean=0)
    if not failed:
        inverse, failed = invert(factor, lower=1, overwrite_c=1)
    if failed:
        raise SolverError(
            f"the Gram matrix could not be inverted (LAPACK status {failed}); "
            "take a larger penalty, or precision='float64'"
        )
    result = inverse.T
    _mirror_upper(result)
    return np.asarray(result)


def _mirror_upper(matrix: npt.NDArray[Any]) -> None:
    """Copy the upper triangle onto the lower one, block by block."""
    for start in range(0, len(matrix), _BLOCK):
        rows = slice(start, start + _BLOCK)
        corner = matrix[rows, rows]
        corner[...] = np.triu(corner) + np.triu(corner, 1).T
        matrix[rows.stop :, rows] = matrix[rows, rows.stop :].T
