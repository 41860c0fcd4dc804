"""Every recommender by its name, and reading one back from a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from unsample._archives import read_arrays
from unsample._checks import check_choice, check_integer, import_extra, suggest
from unsample.errors import FileError, InputError, RecommenderError
from unsample.lab.recommenders._base import FORMAT, VERSION, Fitted, Recommender, check_fitted
from unsample.lab.recommenders._linear import ALS, EASE, ItemKNN, Popularity
from unsample.lab.recommenders._neural import MultiVAE, NeuMF

REGISTRY: MappingProxyType[str, type[Recommender]] = MappingProxyType(
    {kind.name: kind for kind in (Popularity, ItemKNN, ALS, EASE, NeuMF, MultiVAE)}
)

#: What arrays that do not belong together raise.
_DAMAGED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def create(name: str, hyperparameters: Mapping[str, Any] | None = None) -> Recommender:
    """Return a new recommender of this name; hyperparameters that are not given keep defaults.

    >>> create("ease", {"penalty": 200.0})
    EASE(penalty=200.0, precision='float32', device='cpu')
    """
    check_choice("recommender", name, REGISTRY, error=RecommenderError)
    kind = REGISTRY[name]
    known, given = kind().hyperparameters, dict(hyperparameters or {})
    for key in given:
        if key not in known:
            near = suggest(key, known)
            raise RecommenderError(
                f"{name} must get hyperparameters among {', '.join(known) or 'none'}, got {key!r}"
                + (f"; {near}" if near else "")
            )
    return kind(**given)


def check_extras(name: str) -> None:
    """Refuse a recommender whose libraries are missing, before data are loaded for it."""
    check_choice("recommender", name, REGISTRY, error=RecommenderError)
    for module, extra in REGISTRY[name].libraries:
        import_extra(module, extra=extra, purpose=REGISTRY[name].__name__)


def load(path: str | os.PathLike[str]) -> Recommender:
    """Read a recommender that ``save`` wrote."""
    place = repr(str(path))
    try:
        with Path(path).open("rb") as stream:
            arrays = read_arrays(stream, place)
    except FileNotFoundError as problem:
        raise FileError(f"no such file: {place}") from problem
    except (OSError, FileError) as problem:
        raise FileError(
            f"{place} cannot be read as a saved recommender: {problem}; save it again"
        ) from problem
    try:
        recommender = _recommender(arrays, place)
        recommender.score_all([0])
    except InputError:
        raise
    except _DAMAGED as problem:
        raise FileError(
            f"{place} is no recommender that unsample saved ({problem}); save it again"
        ) from problem
    return recommender


def _recommender(arrays: dict[str, np.ndarray[Any, Any]], place: str) -> Recommender:
    header = json.loads(arrays.pop("header").tobytes())
    if header["format"] != FORMAT or header["version"] > VERSION:
        raise FileError(
            f"{place} must be a recommender of version {VERSION} or older, got "
            f"{header['format']} {header['version']}; a newer unsample may have written it"
        )
    fitted = Fitted(
        users=check_integer("users", header["users"], minimum=1),
        items=check_integer("items", header["items"], minimum=1),
        popularity=arrays.pop("popularity"),
        activity=arrays.pop("activity"),
        weights={key.removeprefix("weights/"): array for key, array in arrays.items()},
    )
    check_fitted(fitted)
    # JSON knows lists alone; hyperparameters are tuples.
    hyperparameters = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in header["hyperparameters"].items()
    }
    recommender = create(header["name"], hyperparameters)
    recommender._become(fitted)  # noqa: SLF001 - the one other place that may
    return recommender
