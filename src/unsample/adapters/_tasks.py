"""What adapters give to `unsample.evaluate`: a `Task`, and how their libraries are imported."""

from __future__ import annotations

import importlib
import shlex
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.designs import Scorer
from unsample.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import scipy.sparse

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


def check_object(name: str, value: object, kind: str, *attributes: str) -> None:
    """Refuse an object that lacks what objects of this kind have."""
    if not all(hasattr(value, attribute) for attribute in attributes):
        raise InputError(f"{name} must be {kind}, got {type(value).__name__}")


class Task(NamedTuple):
    """A model and its test data, as `unsample.evaluate` takes them.

    ``unsample.evaluate(task.scorer, task.targets, items=task.items, exclude=task.exclude)``
    """

    #: The model's scores.
    scorer: Scorer
    #: Users and their held-out items, as numbers from 0, each pair once.
    targets: tuple[IntArray, IntArray]
    #: Items in the catalogue.
    items: int
    #: Users x items matrix of what is no candidate, or None.
    exclude: scipy.sparse.csr_array | None


def held_out(users: npt.ArrayLike, items: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """Return the targets of a task: each pair of a user and an item once."""
    pairs = np.unique(np.array([users, items], dtype=np.int64), axis=1)
    if not pairs.size:
        raise InputError("test data must hold at least one target, got none")
    return pairs[0], pairs[1]
