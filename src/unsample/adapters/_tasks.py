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
from unsample.designs import Scorer
from unsample.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import scipy.sparse

#: Users and items, row by row.
Pairs: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any]]

#: Adapter -> what ``pip install`` takes: the versions that the adapters' tests were run with.
INSTALL = MappingProxyType(
    {
        "lenskit": ("lenskit==2025.8.1", "pandas<3"),
        "pykeen": ("pykeen==1.11.1",),
        "recbole": ("recbole==1.2.1", "numpy<2", "pandas<3", "setuptools<81"),
        "spark": ("unsample[spark]",),
        "torchmetrics": ("unsample[torchmetrics]",),
        "trec": ("ir-measures==0.4.3",),
    }
)


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
    """

    scorer: Scorer
    targets: tuple[IntArray, IntArray]
    items: int
    exclude: scipy.sparse.csr_array | None

    @classmethod
    def of_pairs(
        cls, scorer: Scorer, held_out: Pairs, seen: Pairs | None, shape: tuple[int, int]
    ) -> Task:
        """Make a task of the targets (each counts once) and of pairs to leave out.

        ``shape`` is the number of users and of items.
        """
        from scipy import sparse

        users, items = (np.asarray(column).astype(np.int64) for column in held_out)
        if not len(users):
            raise InputError("test data must hold at least one target, got none")
        codes = np.unique(users * shape[1] + items)
        # A pair that is seen twice is excluded as if it was seen once.
        exclude = None
        if seen is not None:
            exclude = sparse.csr_array((np.ones(len(seen[0]), dtype=bool), seen), shape=shape)
        return cls(scorer, (codes // shape[1], codes % shape[1]), shape[1], exclude)

    def __repr__(self) -> str:
        users = len(np.unique(self.targets[0]))
        return f"Task({len(self.targets[0])} targets, {users} users, {self.items} items)"
