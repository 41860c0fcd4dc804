"""The laboratory: data sets, recommenders, the paper reproduced, and bundled ranks.

>>> from unsample.lab import load_ranks
>>> load_ranks("ml-1m", "ease", candidates="unseen").ranks.size
6040

Everything below is loaded when it is first used, so that the command can list its verbs at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from unsample._gone import no_attribute

#: Name -> the module that holds it (None: the name is a module itself).
_SURFACE = {
    "datasets": None,
    "load_ranks": "datasets",
    "paper": None,
    "recommenders": None,
}

__all__ = ["datasets", "load_ranks", "paper", "recommenders"]

if TYPE_CHECKING:
    from unsample.lab import datasets, paper, recommenders
    from unsample.lab.datasets import load_ranks


def __getattr__(name: str) -> Any:
    if name not in _SURFACE:
        raise no_attribute("unsample.lab", name)
    module = importlib.import_module(f"unsample.lab.{_SURFACE[name] or name}")
    value = module if _SURFACE[name] is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
