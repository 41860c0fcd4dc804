"""What all recommenders share: the protocol and the fallbacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample._progress import Progress
from unsample._threads import cached_property
from unsample.errors import InputError
from unsample.lab.datasets import Interactions
from unsample.scoring import RowScores, Scorer

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
class FittedRecommender:
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
    _fitted: FittedRecommender | None = field(default=None, init=False, repr=False, compare=False)

    @abstractmethod
    def _learn(self, matrix: scipy.sparse.csr_array, progress: Progress | None) -> Weights:
        """Return what is needed to score, from a matrix of ones."""

    @abstractmethod
    def _score_users(self, users: IntArray, fitted: FittedRecommender) -> Scores:
        """Return a new array of the scores of all items for these users."""

    def fit(self, interactions: Interactions, *, progress: Progress | None = None) -> Self:
        """Learn from interactions and return this recommender."""
        matrix = interactions.matrix()
        fitted = FittedRecommender(matrix, self._learn(matrix, progress))
        object.__setattr__(self, "_fitted", fitted)
        return self

    def score_all(self, users: npt.ArrayLike) -> Scores:
        """Return the scores of all items, one row for each user."""
        fitted = self.fitted
        asked = np.asarray(users, dtype=np.int64)
        scores = self._score_users(asked, fitted)
        scores[:, fitted.popularity == 0] = LOWEST
        scores[fitted.activity[asked] == 0] = fitted.popularity
        return scores

    def score(self, users: npt.ArrayLike, items: npt.ArrayLike) -> Scores:
        """Return scores in the shape of ``items``, row i for ``users[i]``."""
        asked = np.asarray(users, dtype=np.int64)
        wanted = np.asarray(items)
        table = wanted.reshape(len(asked), -1)
        scores = np.empty(table.shape, dtype=np.float32)
        for start in range(0, len(asked), _ROWS):
            rows = slice(start, start + _ROWS)
            distinct, index = np.unique(asked[rows], return_inverse=True)
            scores[rows] = self.score_all(distinct)[index[:, None], table[rows]]
        return scores.reshape(wanted.shape)

    def scorer(self) -> Scorer:
        """Return the scorer that `unsample.evaluate` and `exact_ranks` take."""
        return RowScores(self.score_all)

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Return the hyperparameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    @property
    def fitted(self) -> FittedRecommender:
        """Return what was learnt (its arrays are not to be changed)."""
        if self._fitted is None:
            raise InputError(
                f"{type(self).__name__} must be fitted before it can score; call fit(interactions)"
            )
        return self._fitted
