"""Models of implicit: factors and item neighbourhoods.

`unsample.evaluate` takes a factor model of implicit as it is; this adapter also takes the nearest
neighbour models, and puts training and test matrices into place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unsample.adapters._tasks import Task, check_object
from unsample.designs import FactorScores, ItemItemScores
from unsample.errors import InputError

__all__ = ["task"]


def task(model: Any, train: Any, test: Any) -> Task:
    """Make a task of a fitted model.

    Parameters
    ----------
    model
        A factor model (ALS, BPR, LMF; on the processor or the GPU) or an item-item model.
    train, test
        Sparse users x items matrices: what the model was fitted with, and the held-out pairs.
        What a user has in ``train`` is left out of the candidates.
    """
    seen, held_out = _matrix("train", train), _matrix("test", test)
    if held_out.shape != seen.shape:
        raise InputError(f"test must be of shape {seen.shape} as train, got {held_out.shape}")
    ids = np.arange(seen.shape[0]), np.arange(seen.shape[1])
    return Task.of_pairs(_scores(model, seen), held_out.nonzero(), seen.nonzero(), ids)


def _scores(model: Any, train: Any) -> ItemItemScores | FactorScores:
    users, items = train.shape
    similarity = getattr(model, "similarity", None)
    if similarity is not None:
        _check_size("a column", "items", similarity.shape[0], items)
        # Each item's similarities to what the users have, by weight, added up.
        return ItemItemScores(train, similarity.astype(np.float64))
    factors: list[Any] = [getattr(model, name, None) for name in ("user_factors", "item_factors")]
    if any(matrix is None for matrix in factors):
        raise InputError(
            "model must be a fitted model of implicit with user_factors and item_factors or with "
            f"similarity, got {type(model).__name__}; call model.fit(train) first"
        )
    # Factors on a GPU are copied by a method of their own.
    left, right = (np.asarray(f.to_numpy() if hasattr(f, "to_numpy") else f) for f in factors)
    _check_size("a row", "users", len(left), users)
    _check_size("a column", "items", len(right), items)
    return FactorScores(left, right)


def _check_size(line: str, what: str, known: int, given: int) -> None:
    if known != given:
        raise InputError(
            f"train must have {line} for each of the model's {known} {what}, got {given}; "
            "implicit is fitted with users x items since version 0.5"
        )


def _matrix(name: str, matrix: Any) -> Any:
    """Return a sparse matrix as csr without explicit zeros."""
    check_object(name, matrix, "a scipy sparse matrix of users x items", ["tocsr"])
    rows = matrix.tocsr().copy()
    rows.eliminate_zeros()
    return rows
