"""Popularity: everybody gets the items most users have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import IntArray
from unsample.lab.recommenders._base import BaseRecommender, Fitted, Scores, Training, Weights

__all__ = ["Popularity"]


@dataclass(frozen=True)
class Popularity(BaseRecommender):
    """An item's score is the number of users who have it; it has no hyperparameters."""

    name: ClassVar[str] = "popularity"
    _unseen_score: ClassVar[float] = 0.0  # nobody has it: that is its popularity

    def _learn(self, training: Training) -> Weights:
        return {}

    def _score_users(self, users: IntArray, fitted: Fitted) -> Scores:
        return np.tile(fitted.popularity.astype(np.float32), (len(users), 1))
