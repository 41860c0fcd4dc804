"""ItemKNN: items similar to those the user has, by the `implicit` library."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unsample._checks import IntArray, check_choice, check_integer, check_real, import_extra
from unsample.lab.recommenders._base import (
    BaseRecommender,
    Fitted,
    Scores,
    Training,
    Weights,
    history_weights,
    scored_history,
)

__all__ = ["ItemKNN"]

_WEIGHTINGS = ("bm25", "cosine", "tfidf")


@dataclass(frozen=True)
class ItemKNN(BaseRecommender):
    """Each item keeps its nearest neighbours; a user's score sums similarities to own items.

    Parameters
    ----------
    neighbours
        Similar items kept for each item.
    weighting
        ``"bm25"`` damps popular items and busy users, ``"tfidf"`` less so, ``"cosine"`` does not.
    k1, b
        Saturation and length normalisation of BM25; other weightings do not use them.
    """

    neighbours: int = 200
    weighting: str = "bm25"
    k1: float = 1.2
    b: float = 0.75
    name: ClassVar[str] = "itemknn"

    def __post_init__(self) -> None:
        check_integer("neighbours", self.neighbours, minimum=1)
        check_choice("weighting", self.weighting, _WEIGHTINGS)
        check_real("k1", self.k1, low=0.0)
        check_real("b", self.b, low=0.0, high=1.0)

    def _learn(self, training: Training) -> Weights:
        from scipy.sparse import csr_matrix

        threadpoolctl = import_extra("threadpoolctl", extra="recsys", purpose="ItemKNN")
        model = self._model()
        with threadpoolctl.threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
            # The library warns about a conversion between its own matrices.
            warnings.filterwarnings("ignore", message="Method expects CSR input")
            model.fit(csr_matrix(training.matrix), show_progress=False)
        similarity = csr_matrix(model.similarity, dtype=np.float32)
        return {
            **history_weights(training.matrix),
            "similarity": similarity.data,
            "similarity_item": similarity.indices,
            "similarity_start": similarity.indptr,
        }

    def _model(self) -> Any:
        library = import_extra("implicit.nearest_neighbours", extra="recsys", purpose="ItemKNN")
        if self.weighting == "bm25":
            return library.BM25Recommender(K=self.neighbours, K1=self.k1, B=self.b)
        kinds = {"cosine": library.CosineRecommender, "tfidf": library.TFIDFRecommender}
        return kinds[self.weighting](K=self.neighbours)

    def _score_users(self, users: IntArray, fitted: Fitted) -> Scores:
        from scipy.sparse import csr_array

        weights = fitted.weights
        similarity = csr_array(
            (weights["similarity"], weights["similarity_item"], weights["similarity_start"]),
            shape=(fitted.items, fitted.items),
        )
        scores = (scored_history(users, fitted) @ similarity).toarray()
        return np.asarray(scores, dtype=np.float32)
