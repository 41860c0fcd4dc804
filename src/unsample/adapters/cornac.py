"""Models and evaluation methods of Cornac.

Candidates are those of Cornac's ranking metrics: known items (all items where the method does not
exclude unknown ones) without what the user liked in training and validation.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.adapters._tasks import ModelScores, Task, require
from unsample.designs import FactorScores
from unsample.errors import InputError

__all__ = ["task"]


def task(model: Any, method: Any) -> Task:
    """Make a task of a fitted model and the evaluation method whose test data it is judged by.

    Parameters
    ----------
    model
        A `cornac.models.Recommender` that was fitted on the training set of ``method``, by
        ``model.fit`` or by a `cornac.Experiment`.
    method
        A `cornac.eval_methods.BaseMethod` such as `RatioSplit`: its training, validation and test
        sets, rating threshold, and whether unknown users and items are left out.
    """
    _check_method(method)
    _check_model(model)
    train, test = method.train_set, method.test_set
    items = train.num_items if method.exclude_unknowns else test.num_items
    users = max(train.num_users, test.num_users)
    known = [part for part in (train, method.val_set) if part is not None]
    seen_users, seen_items = np.hstack([_liked(part, method, items) for part in known])
    target_users, target_items = _liked(test, method, items)
    return Task.of_pairs(
        _scores(model, users, items),
        (target_users, target_items),
        (seen_users, seen_items),
        user_ids=np.array(list(test.uid_map))[:users],
        item_ids=np.array(list(test.iid_map))[:items],
    )


def _check_method(method: Any) -> None:
    if not all(hasattr(method, name) for name in ("train_set", "test_set", "rating_threshold")):
        raise InputError(
            "method must be an evaluation method of cornac such as RatioSplit, got "
            f"{type(method).__name__}"
        )
    if method.train_set is None or method.test_set is None:
        raise InputError(
            "method must have a training and a test set, got none; CrossValidation has them only "
            "while a fold is evaluated"
        )


def _check_model(model: Any) -> None:
    if not callable(getattr(model, "score", None)) or not hasattr(model, "num_items"):
        raise InputError(f"model must be a recommender of cornac, got {type(model).__name__}")
    if model.num_items is None:
        raise InputError(f"model must be fitted, got {model.name}; call model.fit first")
    needs = [name for name in inspect.signature(model.score).parameters if "history" in name]
    if needs:
        raise InputError(
            f"model must score items for a user alone, got {type(model).__name__}, whose scores "
            f"need {needs[0]}"
        )


def _liked(part: Any, method: Any, items: int) -> npt.NDArray[np.int64]:
    """Return users and items of a set that are rated at least as the threshold says."""
    users, rated, ratings = map(np.asarray, part.uir_tuple)
    kept = (ratings >= method.rating_threshold) & (rated < items)
    return np.stack([users[kept], rated[kept]]).astype(np.int64)


def _scores(model: Any, users: int, items: int) -> ModelScores | FactorScores:
    if getattr(model, "_ann_supported", False):
        product = require("cornac", "cornac.models.recommender").MEASURE_DOT
        left, right = map(np.asarray, (model.get_user_vectors(), model.get_item_vectors()))
        # Sparse vectors come as an object without a shape, and are left to the model.
        shapes = left.shape[:1], right.shape[:1]
        if model.get_vector_measure() == product and shapes == ((users,), (items,)):
            return FactorScores(left, right)
    unknown = require("cornac", "cornac.exception").ScoreException
    return ModelScores(_Recommender(model, items, unknown), items)


@dataclass(frozen=True, eq=False)
class _Recommender:
    """Scores as ``Recommender.rank`` makes them: unknown items come last, with the lowest score."""

    model: Any
    items: int
    unknown: type[Exception]

    def __call__(self, users: IntArray, /) -> npt.NDArray[Any]:
        """Return the scores of all items for these users."""
        return np.stack([self._of_user(user) for user in users.tolist()])

    def _of_user(self, user: int) -> npt.NDArray[Any]:
        try:
            known = np.asarray(self.model.score(user), dtype=np.float64).reshape(-1)
        except self.unknown:
            return np.full(self.items, float(self.model.default_score()))
        scores = np.full(self.items, known.min())
        scores[: len(known)] = known[: self.items]
        return scores
