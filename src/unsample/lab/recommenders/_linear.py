"""The recommenders without a network: neighbours of items, factors, and EASE."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from unsample._checks import IntArray, import_extra
from unsample._progress import Progress
from unsample._threads import one_thread
from unsample.lab.recommenders._recommender import (
    LOWEST,
    FittedRecommender,
    Recommender,
    Scores,
    Weights,
)
from unsample.scoring import ItemItemScores

if TYPE_CHECKING:
    import scipy.sparse


@dataclass(frozen=True)
class _ItemItem(Recommender):
    """A recommender whose scores are what a user has, times a matrix of items x items."""

    def scorer(self) -> ItemItemScores:
        """Return the history and the item-item weights, which the library ranks on all cores."""
        fitted = self.fitted
        return ItemItemScores(
            fitted.history,
            fitted.weights["item_item"],
            # Sums of nothing: the lowest number swallows them.
            item_bias=np.where(fitted.popularity == 0, LOWEST, 0.0),
            newcomers=fitted.popularity,
        )

    def _score_users(self, users: IntArray, fitted: FittedRecommender) -> Scores:
        scores: Any = fitted.history[users] @ fitted.weights["item_item"]
        dense = scores if isinstance(scores, np.ndarray) else scores.toarray()
        return np.asarray(dense, dtype=np.float32)


@dataclass(frozen=True)
class ItemKNN(_ItemItem):
    """Each item keeps its nearest neighbours; a user's score sums similarities to own items.

    ``weighting="bm25"`` damps popular items and busy users, with saturation ``k1`` and length
    normalisation ``b``; ``"cosine"`` does not.
    """

    neighbours: int = 200
    weighting: str = "bm25"
    k1: float = 1.2
    b: float = 0.75
    name: ClassVar[str] = "itemknn"

    def _learn(self, matrix: scipy.sparse.csr_array, progress: Progress | None) -> Weights:
        from scipy.sparse import csr_array, csr_matrix

        library = import_extra("implicit.nearest_neighbours", extra="recsys", purpose="ItemKNN")
        if self.weighting == "bm25":
            model = library.BM25Recommender(K=self.neighbours, K1=self.k1, B=self.b)
        else:
            model = library.CosineRecommender(K=self.neighbours)
        with one_thread(), warnings.catch_warnings():
            # The library warns about a conversion between its own matrices.
            warnings.filterwarnings("ignore", message="Method expects CSR input")
            model.fit(csr_matrix(matrix), show_progress=False)
        return {"item_item": csr_array(model.similarity, dtype=np.float32)}


@dataclass(frozen=True)
class ALS(Recommender):
    """Alternating least squares on confidence weights (Hu, Koren, Volinsky, 2008).

    ``alpha`` is the confidence in an observed pair, relative to 1 for the others.
    """

    factors: int = 128
    regularization: float = 10.0
    alpha: float = 1.0
    iterations: int = 15
    seed: int = 0
    name: ClassVar[str] = "als"

    def _learn(self, matrix: scipy.sparse.csr_array, progress: Progress | None) -> Weights:
        from scipy.sparse import csr_matrix

        library = import_extra("implicit.cpu.als", extra="recsys", purpose="ALS")
        # The library runs its own threads; BLAS threads inside them only get in the way.
        with one_thread():
            model = library.AlternatingLeastSquares(
                factors=self.factors,
                regularization=self.regularization,
                alpha=self.alpha,
                iterations=self.iterations,
                random_state=self.seed,
            )
            model.fit(csr_matrix(matrix), show_progress=False)
        return {
            "user_factors": np.asarray(model.user_factors, dtype=np.float32),
            "item_factors": np.asarray(model.item_factors, dtype=np.float32),
        }

    def _score_users(self, users: IntArray, fitted: FittedRecommender) -> Scores:
        weights = fitted.weights
        return np.asarray(weights["user_factors"][users] @ weights["item_factors"].T)


@dataclass(frozen=True)
class EASE(_ItemItem):
    """Every item is predicted from the user's other items by ridge regression (Steck, 2019).

    The weights have a closed form: B = I - P diag(1 / diag P), where P is the inverse of the Gram
    matrix plus ``penalty``. Memory is three items x items matrices (8 GB for 25,815 items).

    Of two users, both have item 0, and one has item 1 too. The Gram matrix is [[2, 1], [1, 1]], and
    with a penalty of 1 its inverse is P = [[0.4, -0.2], [-0.2, 0.6]]:

    >>> from unsample.lab.datasets import Interactions
    >>> pairs = Interactions(np.array([0, 0, 1]), np.array([0, 1, 0]), users=2, items=2)
    >>> EASE(penalty=1.0).fit(pairs).fitted.weights["item_item"].round(3)
    array([[0.   , 0.333],
           [0.5  , 0.   ]], dtype=float32)
    """

    penalty: float = 500.0
    name: ClassVar[str] = "ease"

    def _learn(self, matrix: scipy.sparse.csr_array, progress: Progress | None) -> Weights:
        gram = (matrix.T @ matrix).toarray()
        gram[np.diag_indices_from(gram)] += self.penalty
        weights = np.linalg.inv(gram)
        weights /= -np.diag(weights).copy()
        np.fill_diagonal(weights, 0.0)
        return {"item_item": weights}
