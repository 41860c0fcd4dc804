"""The laboratory: data sets, recommenders, the paper reproduced, and bundled ranks.

>>> from unsample.lab import load_ranks
>>> load_ranks("ml-1m", "ease", candidates="unseen").ranks.size
6040

Everything below is loaded when it is first used, so that the command can list its verbs at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unsample._rules import import_whole

__all__ = ["corpus", "datasets", "load_ranks", "paper", "recommenders"]

if TYPE_CHECKING:
    from unsample.lab import corpus, datasets, paper, recommenders
    from unsample.lab.datasets import load_ranks


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "load_ranks":
        return import_whole("unsample.lab.datasets").load_ranks
    return import_whole(f"unsample.lab.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
