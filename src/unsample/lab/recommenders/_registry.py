"""Every recommender by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from unsample._checks import check_choice, import_extra, suggest
from unsample.errors import RecommenderError
from unsample.lab.recommenders._base import Recommender
from unsample.lab.recommenders._linear import ALS, EASE, ItemKNN
from unsample.lab.recommenders._multivae import MultiVAE
from unsample.lab.recommenders._neumf import NeuMF

REGISTRY: MappingProxyType[str, type[Recommender]] = MappingProxyType(
    {kind.name: kind for kind in (ItemKNN, ALS, EASE, NeuMF, MultiVAE)}
)


def create(name: str, hyperparameters: Mapping[str, Any] | None = None) -> Recommender:
    """Return a new recommender of this name; hyperparameters that are not given keep defaults.

    >>> create("ease", {"penalty": 200.0})
    EASE(penalty=200.0)
    """
    check_choice("recommender", name, REGISTRY, error=RecommenderError)
    kind = REGISTRY[name]
    known, given = kind().hyperparameters, dict(hyperparameters or {})
    for key in given:
        if key not in known:
            near = suggest(key, known)
            raise RecommenderError(
                f"{name} must get hyperparameters among {', '.join(known)}, got {key!r}"
                + (f"; {near}" if near else "")
            )
    return kind(**given)


def check_extras(name: str) -> None:
    """Refuse a recommender whose libraries are missing, before data are loaded for it."""
    check_choice("recommender", name, REGISTRY, error=RecommenderError)
    for module, extra in REGISTRY[name].libraries:
        import_extra(module, extra=extra, purpose=REGISTRY[name].__name__)
