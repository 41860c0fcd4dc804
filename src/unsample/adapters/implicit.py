"""Models of implicit: factors and item neighbourhoods.

`unsample.evaluate` takes a factor model of implicit as it is; this adapter also takes the nearest
neighbour models, and puts training and test matrices into place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.adapters._pairs import distinct_pairs, pairs_of, seen_matrix
from unsample.adapters._protocol import ModelScores, Task
from unsample.designs.ranking import FactorScores
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
        What a user has in ``train`` is no candidate.
    """
    seen = pairs_of("train", train)
    held_out = pairs_of("test", test, seen.shape).tocoo()
    users, items = seen.shape
    return Task(
        scorer=_scores(model, seen),
        targets=distinct_pairs(held_out.row, held_out.col, size=items),
        items=items,
        exclude=seen_matrix(*seen.nonzero(), shape=seen.shape),
        user_ids=np.arange(users),
        item_ids=np.arange(items),
    )


def _scores(model: Any, train: Any) -> ModelScores | FactorScores:
    similarity = getattr(model, "similarity", None)
    if similarity is not None:
        _check_size("column", similarity.shape[0], train.shape[1])
        return ModelScores(_Neighbours(train, similarity), similarity.shape[0])
    factors = [getattr(model, name, None) for name in ("user_factors", "item_factors")]
    if any(matrix is None for matrix in factors):
        raise InputError(
            "model must be a fitted model of implicit with user_factors and item_factors or with "
            f"similarity, got {type(model).__name__}; call model.fit(train) first"
        )
    scores = FactorScores(*(_as_matrix(matrix) for matrix in factors))
    _check_size("row", len(scores.user_factors), train.shape[0])
    _check_size("column", len(scores.item_factors), train.shape[1])
    return scores


def _check_size(line: str, known: int, given: int) -> None:
    what = "users" if line == "row" else "items"
    if known != given:
        raise InputError(
            f"train must have a {line} for each of the model's {known} {what}, got {given}; "
            "implicit is fitted with users x items since version 0.5"
        )


def _as_matrix(factors: Any) -> npt.NDArray[Any]:
    """Return factors as a numpy matrix, from the GPU too."""
    return np.asarray(factors.to_numpy() if hasattr(factors, "to_numpy") else factors)


@dataclass(frozen=True, eq=False)
class _Neighbours:
    """An item's score is the sum of its similarities to what the user has, by weight."""

    train: Any
    similarity: Any

    def __call__(self, users: IntArray, /) -> npt.NDArray[Any]:
        """Return the scores of all items for these users."""
        return np.asarray((self.train[users] @ self.similarity).toarray(), dtype=np.float64)
