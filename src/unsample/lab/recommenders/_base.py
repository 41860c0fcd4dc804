"""What all recommenders share: the protocol, the checks and the fallbacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray, check_integer
from unsample._progress import Progress
from unsample.errors import InputError, RecommenderError
from unsample.lab.datasets import Interactions, Split

if TYPE_CHECKING:
    import scipy.sparse

Scores: TypeAlias = npt.NDArray[np.float32]
#: What was learnt: arrays, sparse matrices or tensors.
Weights: TypeAlias = Mapping[str, Any]

#: The score of items that nobody has in training: finite, so that sums of scores stay finite.
LOWEST = float(np.finfo(np.float32).min)
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
    """What a recommender knows after fitting: the users' items, and what it learnt from them."""

    history: scipy.sparse.csr_array
    weights: Weights

    @cached_property
    def popularity(self) -> IntArray:
        """Return how many users have each item."""
        return np.bincount(self.history.indices, minlength=self.history.shape[1]).astype(np.int64)

    @cached_property
    def activity(self) -> IntArray:
        """Return how many items each user has."""
        return np.diff(self.history.indptr).astype(np.int64)


@dataclass(frozen=True)
class Recommender(ABC):
    """Hyperparameters are fields; what was learnt is private and replaced by `fit`."""

    name: ClassVar[str]
    #: What `fit` imports: modules, and the extra that each comes with.
    libraries: ClassVar[tuple[tuple[str, str], ...]] = ()
    #: Whether `fit` makes use of validation pairs.
    learns_in_epochs: ClassVar[bool] = False
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
        object.__setattr__(self, "_fitted", Fitted(matrix, weights))
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
        kept = Fitted(whole.history, {**whole.weights, "curve_quality": curve})
        object.__setattr__(self, "_fitted", kept)
        return self

    def score_all(self, users: npt.ArrayLike) -> Scores:
        """Return the scores of all items, one row for each user."""
        fitted = self.fitted
        known = _check_ids("users", users, fitted.history.shape[0])
        scores = self._score_users(known, fitted)
        scores[:, fitted.popularity == 0] = LOWEST
        scores[fitted.activity[known] == 0] = fitted.popularity
        return scores

    def score(self, users: npt.ArrayLike, items: npt.ArrayLike) -> Scores:
        """Return scores in the shape of ``items``, row i for ``users[i]``."""
        fitted = self.fitted
        known = _check_ids("users", users, fitted.history.shape[0])
        asked = _check_ids("items", items, fitted.history.shape[1])
        if known.ndim != 1 or asked.ndim not in (1, 2) or len(asked) != len(known):
            raise InputError(
                "items must hold one item or one row of items for each user, got shapes "
                f"{asked.shape} for users of shape {known.shape}"
            )
        table = asked.reshape(len(known), -1)
        scores = self._score_pairs(known, table, fitted)
        scores[fitted.popularity[table] == 0] = LOWEST
        cold = fitted.activity[known] == 0
        scores[cold] = fitted.popularity[table[cold]]
        return scores.reshape(asked.shape)

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Return the hyperparameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    @property
    def fitted(self) -> Fitted:
        """Return what was learnt (its arrays are not to be changed)."""
        if self._fitted is None:
            raise RecommenderError(
                f"{type(self).__name__} must be fitted before it can score; call fit(interactions)"
            )
        return self._fitted


def check_seed(seed: int) -> None:
    """Refuse what is no seed."""
    check_integer("seed", seed, minimum=0, maximum=2**31 - 1)


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
