"""Models and evaluation methods of Cornac.

Candidates are those of Cornac's ranking metrics: known items (all items where the method does not
exclude unknown ones) without what the user liked in training and validation.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample.adapters._tasks import ModelScores, Task, check_object, require
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
    _check(model, method)
    train, test = method.train_set, method.test_set
    items = train.num_items if method.exclude_unknowns else test.num_items
    users = max(train.num_users, test.num_users)
    known = [part for part in (train, method.val_set) if part is not None]
    seen = np.hstack([_liked(part, method, items) for part in known])
    held_out = _liked(test, method, items)
    # What is liked in the test set, too, is looked for and not left out.
    place = np.array([items, 1])
    seen = seen[:, ~np.isin(place @ seen, place @ held_out)]
    return Task.of_pairs(
        _scores(model, users, items),
        (held_out[0], held_out[1]),
        (seen[0], seen[1]),
        (np.array(list(test.uid_map))[:users], np.array(list(test.iid_map))[:items]),
    )


def _check(model: Any, method: Any) -> None:
    kind = "an evaluation method of cornac such as RatioSplit"
    check_object("method", method, kind, ["train_set", "test_set", "rating_threshold"])
    if method.train_set is None or method.test_set is None:
        raise InputError(
            "method must have a training and a test set, got none; CrossValidation has them only "
            "while a fold is evaluated"
        )
    check_object("model", model, "a recommender of cornac", ["score", "num_items"])
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

    def of_user(user: int) -> npt.NDArray[Any]:
        """Score as ``Recommender.rank``: unknown items come last, with the lowest score."""
        try:
            known = np.asarray(model.score(user), dtype=np.float64).reshape(-1)
        except unknown:
            return np.full(items, float(model.default_score()))
        scores = np.full(items, known.min())
        scores[: len(known)] = known[:items]
        return scores

    return ModelScores(lambda asked: np.stack([of_user(user) for user in asked.tolist()]), items)
