"""ALS: weighted matrix factorisation of implicit feedback, by the `implicit` library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import IntArray, check_integer, check_real, import_extra
from unsample.designs.ranking import Progress
from unsample.lab.recommenders._base import (
    BaseRecommender,
    Fitted,
    Scores,
    Training,
    Weights,
    check_seed,
)

__all__ = ["ALS"]


@dataclass(frozen=True)
class ALS(BaseRecommender):
    """Alternating least squares on confidence weights (Hu, Koren, Volinsky, 2008).

    Parameters
    ----------
    factors
        Dimensions of a user's and an item's vector.
    regularization
        Ridge penalty on these vectors.
    alpha
        Confidence in an observed pair, relative to 1 for the others.
    iterations
        Rounds over all users and all items.
    seed
        Seed of the starting factors.
    """

    factors: int = 128
    regularization: float = 10.0
    alpha: float = 1.0
    iterations: int = 15
    seed: int = 0
    name: ClassVar[str] = "als"

    def __post_init__(self) -> None:
        check_integer("factors", self.factors, minimum=1)
        check_real("regularization", self.regularization, low=0.0)
        check_real("alpha", self.alpha, low=0.0, open_low=True)
        check_integer("iterations", self.iterations, minimum=1)
        check_seed(self.seed)

    def _learn(self, training: Training) -> Weights:
        from scipy.sparse import csr_matrix

        library = import_extra("implicit.cpu.als", extra="recsys", purpose="ALS")
        threadpoolctl = import_extra("threadpoolctl", extra="recsys", purpose="ALS")
        # The library runs its own threads; BLAS threads inside them only get in the way.
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            model = library.AlternatingLeastSquares(
                factors=self.factors,
                regularization=self.regularization,
                alpha=self.alpha,
                iterations=self.iterations,
                random_state=self.seed,
            )
            matrix = csr_matrix(training.matrix)
            model.fit(matrix, show_progress=False, callback=self._reporter(training.progress))
        return {
            "user_factors": np.asarray(model.user_factors, dtype=np.float32),
            "item_factors": np.asarray(model.item_factors, dtype=np.float32),
        }

    def _reporter(self, progress: Progress | None) -> Callable[[int, float, object], None] | None:
        if progress is None:
            return None

        def report(iteration: int, seconds: float, _: object) -> None:
            progress(iteration + 1, self.iterations, f"{seconds:.1f} s an iteration")

        return report

    def _score_users(self, users: IntArray, fitted: Fitted) -> Scores:
        weights = fitted.weights
        return np.asarray(weights["user_factors"][users] @ weights["item_factors"].T)

    def _score_pairs(self, users: IntArray, items: IntArray, fitted: Fitted) -> Scores:
        weights = fitted.weights
        user_factors, item_factors = weights["user_factors"][users], weights["item_factors"][items]
        return np.asarray(np.einsum("id,ijd->ij", user_factors, item_factors))
