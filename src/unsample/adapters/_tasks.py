"""What adapters give to `unsample.evaluate`: a `Task`, and how their libraries are imported."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.designs import FactorScores, ItemItemScores, Score, ScoreAll
from unsample.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import scipy.sparse

#: Users and items, row by row.
Pairs: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any]]

#: Adapter -> what ``pip install`` takes: the versions that the adapters' tests were run with.
INSTALL = MappingProxyType(
    {
        "cornac": ("cornac==3.0.1",),
        "graphs": ("unsample",),
        "implicit": ("implicit==0.7.3",),
        "ir_measures": ("ir-measures==0.4.3",),
        "lenskit": ("lenskit==2025.8.1", "pandas<3"),
        "lightning": ("lightning==2.6.6",),
        "ogb": ("ogb==1.3.6",),
        "pykeen": ("pykeen==1.11.1",),
        "ranx": ("ranx==0.3.21",),
        "recbole": ("recbole==1.2.1", "numpy<2", "pandas<3", "setuptools<81"),
        "rectools": ("rectools==0.19.0", "numpy<2"),
        "spark": ("unsample[spark]",),
        "torchmetrics": ("unsample[torchmetrics]",),
        "trec": ("ir-measures==0.4.3",),
    }
)
#: Scores held at a time while some of them are picked.
_ROOM = 1 << 22


def require(adapter: str, module: str) -> ModuleType:
    """Import a module of an adapter's library, or name the line that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        install = " ".join(map(shlex.quote, INSTALL[adapter]))
        raise MissingExtraError(
            f"the adapter {adapter} needs {module}, which cannot be imported ({problem}); install "
            f"it with: pip install {install}"
        ) from problem


def check_object(
    name: str, value: object, kind: str, attributes: Iterable[str], hint: str = ""
) -> None:
    """Refuse an object that lacks what objects of this kind have."""
    if not all(hasattr(value, attribute) for attribute in attributes):
        advice = f"; {hint}" if hint else ""
        raise InputError(f"{name} must be {kind}, got {type(value).__name__}{advice}")


def as_array(values: Any) -> npt.NDArray[Any]:
    """Return an array of numpy, from a tensor of torch on any device too."""
    for step in ("detach", "cpu", "numpy"):
        if hasattr(values, step):
            values = getattr(values, step)()
    return np.asarray(values)


def unscored_last(values: npt.ArrayLike) -> npt.NDArray[np.floating[Any]]:
    """Return scores with the lowest finite number for NaN.

    Not -inf: a target without a score has a rank, among the last.
    """
    scores = np.asarray(values)
    if not np.issubdtype(scores.dtype, np.floating):
        scores = scores.astype(np.float64)
    missing = np.isnan(scores)
    return np.where(missing, np.finfo(scores.dtype).min, scores) if missing.any() else scores


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Scores of a library's model, all at once or only the chosen ones.

    ``chosen`` is None where the model has no way to score some items alone; then all of them are
    scored and some picked, and sampling saves nothing: use ``design="exact"``. As in the libraries,
    items without a score (NaN) rank below all others, and tie with each other.
    """

    everything: ScoreAll
    items: int
    chosen: Score | None = None

    def score_all(self, users: IntArray, /) -> npt.NDArray[np.floating[Any]]:
        """Return the scores of all items for these users."""
        return unscored_last(self.everything(users))

    def score(self, users: IntArray, items: IntArray, /) -> npt.NDArray[np.floating[Any]]:
        """Return scores in the shape of ``items``, row i for ``users[i]``."""
        if self.chosen is not None:
            return unscored_last(self.chosen(users, items))
        size = max(1, _ROOM // self.items)
        blocks = [slice(start, start + size) for start in range(0, len(users), size)]
        picked = [np.take_along_axis(self.score_all(users[b]), items[b], axis=1) for b in blocks]
        return np.concatenate(picked)


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
    user_ids, item_ids
        The library's own name of each user and item.
    """

    scorer: ModelScores | FactorScores | ItemItemScores
    targets: tuple[IntArray, IntArray]
    items: int
    exclude: scipy.sparse.csr_array | None
    user_ids: npt.NDArray[Any]
    item_ids: npt.NDArray[Any]

    @classmethod
    def of_pairs(
        cls,
        scorer: ModelScores | FactorScores | ItemItemScores,
        held_out: Pairs,
        seen: Pairs | None,
        ids: Pairs,
    ) -> Task:
        """Make a task of the targets (each counts once), pairs to leave out, and all names."""
        from scipy import sparse

        users, items = (np.asarray(column).astype(np.int64) for column in held_out)
        if not len(users):
            raise InputError("test data must hold at least one target, got none")
        shape = len(ids[0]), len(ids[1])
        codes = np.unique(users * shape[1] + items)
        # A pair that is seen twice is excluded as if it was seen once.
        exclude = None
        if seen is not None:
            exclude = sparse.csr_array((np.ones(len(seen[0]), dtype=bool), seen), shape=shape)
        targets = codes // shape[1], codes % shape[1]
        return cls(scorer, targets, shape[1], exclude, *ids)

    def __repr__(self) -> str:
        users = len(np.unique(self.targets[0]))
        return f"Task({len(self.targets[0])} targets, {users} users, {self.items} items)"
