"""What all recommenders share: the protocol, the checks, the fallbacks, and files of weights."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, check_integer
from unsample._files import write_atomically
from unsample._progress import Progress
from unsample.errors import InputError, RecommenderError
from unsample.lab.datasets import Interactions, Split

if TYPE_CHECKING:
    import scipy.sparse

Scores: TypeAlias = npt.NDArray[np.float32]
Weights: TypeAlias = Mapping[str, npt.NDArray[Any]]

FORMAT = "unsample.Recommender"
VERSION = 1
#: The score of items that nobody has in training: finite, so that sums of scores stay finite.
LOWEST = np.finfo(np.float32).min
#: Users whose full rows of scores are made at a time when only some items are asked for.
_ROWS = 256


@dataclass(frozen=True, eq=False)
class Training:
    """What a recommender learns from, checked: a matrix of ones, and perhaps a way to stop."""

    matrix: scipy.sparse.csr_array
    validation: Interactions | None = None
    progress: Progress | None = None


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a recommender knows after fitting, as plain arrays."""

    users: int
    items: int
    #: How many users have each item, and how many items each user has.
    popularity: IntArray
    activity: IntArray
    weights: Weights


@dataclass(frozen=True)
class Recommender(ABC):
    """Hyperparameters are fields; what was learnt is private and replaced by `fit`."""

    name: ClassVar[str]
    #: What `fit` imports: modules, and the extra that each comes with.
    libraries: ClassVar[tuple[tuple[str, str], ...]] = ()
    #: Whether `fit` makes use of validation pairs.
    learns_in_epochs: ClassVar[bool] = False
    _unseen_score: ClassVar[float] = float(LOWEST)
    _fitted: Fitted | None = field(default=None, init=False, repr=False, compare=False)

    @abstractmethod
    def _learn(self, training: Training) -> Weights:
        """Return what is needed to score."""

    @abstractmethod
    def _score_users(self, users: IntArray, fitted: Fitted) -> Scores:
        """Return a new array of the scores of all items for these users."""

    def _score_pairs(self, users: IntArray, items: IntArray, fitted: Fitted) -> Scores:
        """Return the scores of the items of each row; by default picked from whole rows."""
        result = np.empty(items.shape, dtype=np.float32)
        for start in range(0, len(users), _ROWS):
            part = slice(start, start + _ROWS)
            distinct, place = np.unique(users[part], return_inverse=True)
            result[part] = self._score_users(distinct, fitted)[place[:, None], items[part]]
        return result

    def fit(
        self,
        interactions: Interactions,
        *,
        validation: Interactions | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from interactions and return this recommender.

        ``validation`` holds pairs that are not in ``interactions``, with the same ids. Recommenders
        that learn in epochs keep the weights of the epoch that ranks them best (NDCG@10 among
        all items the user does not have); the others take no notice of it.
        """
        matrix = _checked_matrix(interactions)
        if validation is not None:
            _check_validation(validation, interactions)
        weights = self._learn(Training(matrix, validation, progress))
        popularity = np.bincount(matrix.indices, minlength=interactions.items).astype(np.int64)
        activity = np.diff(matrix.indptr).astype(np.int64)
        self._become(Fitted(interactions.users, interactions.items, popularity, activity, weights))
        return self

    def fit_split(self, split: Split, *, progress: Progress | None = None) -> Self:
        """Learn from all that a split knows of its users.

        Where there are validation pairs and this recommender learns in epochs, a first fit without
        them finds the best number of epochs, and a second one learns for so long from all pairs:
        a user's last items tell most about the next one.
        """
        held = split.validation()
        if held is None or not self.learns_in_epochs:
            return self.fit(split.history(), progress=progress)
        self.fit(split.train, validation=held, progress=progress)
        curve = self.fitted.weights["curve_quality"]
        chosen = self.hyperparameters | {"epochs": int(np.argmax(curve)) + 1}
        whole = type(self)(**chosen).fit(split.history(), progress=progress).fitted
        self._become(replace(whole, weights={**whole.weights, "curve_quality": curve}))
        return self

    def score_all(self, users: npt.ArrayLike) -> Scores:
        """Return the scores of all items, one row for each user."""
        fitted = self.fitted
        known = _check_ids("users", users, fitted.users)
        scores = self._score_users(known, fitted)
        scores[:, fitted.popularity == 0] = self._unseen_score
        cold = fitted.activity[known] == 0
        scores[cold] = fitted.popularity
        return scores

    def score(self, users: npt.ArrayLike, items: npt.ArrayLike) -> Scores:
        """Return scores in the shape of ``items``, row i for ``users[i]``."""
        fitted = self.fitted
        known = _check_ids("users", users, fitted.users)
        asked = _check_ids("items", items, fitted.items)
        if known.ndim != 1 or asked.ndim not in (1, 2) or len(asked) != len(known):
            raise InputError(
                "items must hold one item or one row of items for each user, got shapes "
                f"{asked.shape} for users of shape {known.shape}"
            )
        table = asked.reshape(len(known), -1)
        scores = self._score_pairs(known, table, fitted)
        scores[fitted.popularity[table] == 0] = self._unseen_score
        cold = fitted.activity[known] == 0
        scores[cold] = fitted.popularity[table[cold]]
        return scores.reshape(asked.shape)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write hyperparameters and weights to an ``.npz`` file without pickles."""
        fitted = self.fitted
        header = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "hyperparameters": self.hyperparameters,
            "users": fitted.users,
            "items": fitted.items,
        }
        arrays: dict[str, npt.NDArray[Any]] = {
            "header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
            "popularity": fitted.popularity,
            "activity": fitted.activity,
            **{f"weights/{name}": array for name, array in fitted.weights.items()},
        }
        write_atomically(Path(path), lambda file: np.savez(file, allow_pickle=False, **arrays))

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Return the hyperparameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    @property
    def fitted(self) -> Fitted:
        """Return what was learnt (its arrays are not to be changed)."""
        if self._fitted is None:
            raise RecommenderError(
                f"{type(self).__name__} must be fitted before it can score or be saved; "
                "call fit(interactions), or load one that was saved"
            )
        return self._fitted

    def _become(self, fitted: Fitted) -> None:
        object.__setattr__(self, "_fitted", fitted)


def check_seed(seed: int) -> None:
    """Refuse what is no seed."""
    check_integer("seed", seed, minimum=0, maximum=2**31 - 1)


def history_weights(matrix: scipy.sparse.csr_array) -> dict[str, npt.NDArray[Any]]:
    """Return the users' items as plain arrays, for recommenders that score from them."""
    return {"history_start": matrix.indptr, "history_item": matrix.indices}


def scored_history(users: IntArray | slice, fitted: Fitted) -> scipy.sparse.csr_array:
    """Return the rows of these users' items, as ones."""
    from scipy.sparse import csr_array

    item = fitted.weights["history_item"]
    whole = csr_array(
        (np.ones(len(item), dtype=np.float32), item, fitted.weights["history_start"]),
        shape=(fitted.users, fitted.items),
    )
    return whole[users]


def check_fitted(fitted: Fitted) -> None:
    """Refuse arrays that do not belong together: sparse products trust what they are given."""
    from scipy.sparse import csr_array

    shapes = fitted.popularity.shape, fitted.activity.shape
    kinds = {array.dtype.kind for array in (fitted.popularity, fitted.activity)}
    if shapes != ((fitted.items,), (fitted.users,)) or kinds != {"i"}:
        raise ValueError(
            f"it counts {fitted.items} items and {fitted.users} users, in arrays of shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    for name, start in fitted.weights.items():
        if name.endswith("_start"):
            item = fitted.weights[name.removesuffix("_start") + "_item"]
            ones = np.ones(len(item), dtype=np.int8)
            rows = csr_array((ones, item, start), shape=(len(start) - 1, fitted.items))
            rows.check_format(full_check=True)


def _checked_matrix(interactions: Any) -> scipy.sparse.csr_array:
    if not isinstance(interactions, Interactions):
        got = type(interactions).__name__
        raise InputError(f"interactions must be unsample.lab.datasets.Interactions, got {got}")
    if len(interactions) == 0:
        raise InputError("interactions must hold at least one pair, got none")
    matrix: scipy.sparse.csr_array = interactions.matrix()
    matrix.data[:] = 1.0  # a pair given twice is still one pair
    return matrix


def _check_validation(validation: Interactions, interactions: Interactions) -> None:
    if not isinstance(validation, Interactions) or len(validation) == 0:
        raise InputError("validation must be Interactions with at least one pair, or None")
    shapes = (validation.users, validation.items), (interactions.users, interactions.items)
    if shapes[0] != shapes[1]:
        raise InputError(
            "validation must have the users and items of interactions, got "
            f"{shapes[0]} against {shapes[1]}"
        )


def _check_ids(name: str, ids: npt.ArrayLike, count: int) -> IntArray:
    array = np.asarray(ids)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name} must be integer ids, got values of type {array.dtype}")
    bad = (array < 0) | (array >= count)
    if bad.any():
        first = int(array[bad].flat[0])
        raise InputError(
            f"{name} must be ids in 0..{count - 1}, got {first} ({int(bad.sum())} such ids); "
            "ids the recommender was not fitted on cannot be scored"
        )
    return array.astype(np.int64, copy=False)
