"""What every adapter says of itself, and the two things adapters give.

An adapter gives `unsample.evidence.Targets` (ranks that the library's own sampled evaluation made) or
a `Task` (a model of the library as something `unsample.evaluate` can ask). Both hold arrays and
functions of arrays: no type of the library goes further than its adapter.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.designs.ranking import FactorScores, Score, ScoreAll
from unsample.errors import MissingExtraError

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["Adapter", "ModelScores", "Task"]

#: Scores held at a time while some of them are picked.
_ROOM = 1 << 22


@dataclass(frozen=True)
class Adapter:
    """What a library's adapter offers, and how to get the library.

    Attributes
    ----------
    name
        The module in `unsample.adapters`.
    library
        The library as its authors write it.
    distribution
        Its name on the package index.
    offers
        Public name in the module -> what it reads and what it gives.
    install
        What to give to ``pip install``; pins are there because the newest versions clash.
    tried
        The version that the examples were run with.
    alone
        Whether it needs an environment of its own, beside numpy and pandas of another age.
    """

    name: str
    library: str
    distribution: str
    offers: Mapping[str, str]
    install: str
    tried: str
    alone: bool = False

    def load(self) -> ModuleType:
        """Import the adapter's module."""
        return importlib.import_module(f"unsample.adapters.{self.name}")

    def installed(self) -> str | None:
        """Return the version of the library that is installed, or None."""
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return None

    def require(self, module: str) -> ModuleType:
        """Import a module of the library, or name the line that installs it."""
        try:
            return importlib.import_module(module)
        except ImportError as problem:
            raise MissingExtraError(
                f"the adapter {self.name} needs {self.library}, which cannot be imported "
                f"({problem}); install it with: pip install {self.install}"
            ) from problem


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Scores of a library's model, all at once or only the chosen ones.

    ``chosen`` is None where the model has no way to score some items alone; then all of them are
    scored and some picked, and sampling saves nothing: use ``design="exact"``. Items without a
    score (NaN) rank below all that have one, as the libraries have it, and tie with each other.
    """

    everything: ScoreAll
    items: int
    chosen: Score | None = None

    def score_all(self, users: IntArray, /) -> npt.NDArray[np.floating[Any]]:
        """Return the scores of all items for these users."""
        return _unscored_last(self.everything(users))

    def score(self, users: IntArray, items: IntArray, /) -> npt.NDArray[np.floating[Any]]:
        """Return scores in the shape of ``items``, row i for ``users[i]``."""
        if self.chosen is not None:
            return _unscored_last(self.chosen(users, items))
        size = max(1, _ROOM // self.items)
        parts = [
            np.take_along_axis(self.score_all(users[start : start + size]), rows, axis=1)
            for start in range(0, len(users), size)
            for rows in [items[start : start + size]]
        ]
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Task:
    """A model and its test data, as `unsample.evaluate` takes them.

    ``unsample.evaluate(task.scorer, task.targets, items=task.items, exclude=task.exclude)``

    Attributes
    ----------
    scorer
        The model's scores.
    targets
        Users and their held-out items, as numbers from 0.
    items
        Number of items in the catalogue.
    exclude
        Users x items matrix of what is no candidate, or None.
    weights
        How much each target counts: each user counts 1 in all.
    user_ids, item_ids
        The library's own name of each user and item.
    """

    scorer: ModelScores | FactorScores
    targets: tuple[IntArray, IntArray]
    items: int
    exclude: scipy.sparse.csr_array | None
    user_ids: npt.NDArray[Any]
    item_ids: npt.NDArray[Any]

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """Return how much each target counts, so that each user counts 1 in all."""
        users = self.targets[0]
        return np.asarray(1.0 / np.bincount(users)[users])

    def __repr__(self) -> str:
        users = len(np.unique(self.targets[0]))
        return f"Task({len(self.targets[0])} targets, {users} users, {self.items} items)"


def _unscored_last(values: npt.ArrayLike) -> npt.NDArray[np.floating[Any]]:
    scores = np.asarray(values)
    if not np.issubdtype(scores.dtype, np.floating):
        scores = scores.astype(np.float64)
    missing = np.isnan(scores)
    # The lowest finite number, not -inf: a target without a score has a rank, among the last.
    return np.where(missing, np.finfo(scores.dtype).min, scores) if missing.any() else scores
