"""How the libraries of adapters are installed and imported, and their objects checked."""

from __future__ import annotations

import shlex
from types import MappingProxyType, ModuleType

from unsample._rules import import_whole
from unsample.errors import InputError, MissingExtraError

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
        return import_whole(module)
    except ImportError as problem:
        install = " ".join(map(shlex.quote, INSTALL[adapter]))
        raise MissingExtraError(
            f"the adapter {adapter} needs {module}, which cannot be imported ({problem}); install "
            f"it with: pip install {install}"
        ) from problem


def check_object(name: str, value: object, kind: str, *attributes: str) -> None:
    """Refuse an object without the attributes of its kind."""
    if not all(hasattr(value, attribute) for attribute in attributes):
        raise InputError(f"{name} must be {kind}, got {type(value).__name__}")
