"""Material for the adapters' tests: one small data set, and how to skip what is not installed."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import unsample
from unsample.adapters import REGISTRY
from unsample.answers.evaluation import Evaluated


def need_library(name: str, module: str | None = None) -> None:
    """Skip without the library, and say how these tests are run with every one of them."""
    adapter = REGISTRY[name]
    if importlib.util.find_spec(module or name) is None:
        pytest.skip(f"needs {adapter.library}; `make libraries` runs this with each real library")


@dataclass(frozen=True, eq=False)
class Held:
    """Who has what in training, and the one item of each user that is held out."""

    seen: np.ndarray
    target: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.seen.shape

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return np.nonzero(self.seen)

    def catalogue(self, user: int) -> int:
        """Return how many items compete for a user's held-out place, itself included."""
        return int(self.shape[1] - self.seen[user].sum())

    def draw(self, user: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Return items that the user does not know, all different."""
        free = ~self.seen[user]
        free[self.target[user]] = False
        return rng.choice(np.flatnonzero(free), size, replace=False)


def held_out(users: int = 120, items: int = 200, seed: int = 0) -> Held:
    """Make interactions of which every item is in training, one held out for each user."""
    rng = np.random.default_rng(seed)
    likes = rng.random((users, items)) < 0.08
    likes[:, :30] |= rng.random((users, 30)) < 0.3
    target = np.array([rng.choice(np.flatnonzero(row)) for row in likes])
    likes[np.arange(users), target] = False
    # Libraries know only items that somebody has; two users take the others, targets excepted.
    likes[:2] |= ~likes.any(axis=0)
    likes[np.arange(users), target] = False
    return Held(likes, target)


def evaluate(
    task: Any, design: str = "exact", metrics: Any = ("Recall@10",), ties: str = "random"
) -> Evaluated:
    """Evaluate a task on the whole catalogue, each user counting once."""
    return unsample.evaluate(
        task.scorer,
        task.targets,
        items=task.items,
        exclude=task.exclude,
        weights=task.weights,
        design=design,
        metrics=list(metrics),
        ties=ties,
        resamples=0,
    )


def rank_slowly(scores: dict[Any, float], targets: set[Any], item: Any) -> tuple[int, int, int]:
    """Return better, tied and sampled of a target in a list, by looking at one item at a time."""
    others = [value for other, value in scores.items() if other not in targets]
    own = scores[item]
    return sum(v > own for v in others), sum(v == own for v in others), len(others)
