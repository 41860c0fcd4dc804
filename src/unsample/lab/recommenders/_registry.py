"""Every recommender by its name, and reading one back from a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from unsample._checks import check_choice, check_integer, suggest
from unsample._files import read_arrays
from unsample.errors import FileError, InputError, RecommenderError
from unsample.lab.recommenders._base import FORMAT, VERSION, Fitted, Recommender, check_rows
from unsample.lab.recommenders._linear import ALS, EASE, ItemKNN, Popularity
from unsample.lab.recommenders._neural import MultiVAE, NeuMF

REGISTRY: MappingProxyType[str, type[Recommender]] = MappingProxyType(
    {kind.name: kind for kind in (Popularity, ItemKNN, ALS, EASE, NeuMF, MultiVAE)}
)

_WEIGHTS = "weights/"


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


def load(path: str | os.PathLike[str]) -> Recommender:
    """Read a recommender that ``save`` wrote."""
    arrays = _read(Path(path))
    try:
        recommender, fitted = _parsed(arrays, path)
    except InputError:
        raise
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as problem:
        raise FileError(f"{str(path)!r} is no recommender that unsample saved") from problem
    _check_fitted(fitted, path)
    recommender._become(fitted)  # noqa: SLF001 - the one other place that may
    try:
        recommender.score_all([0])
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as problem:
        raise FileError(
            f"{str(path)!r} must hold all that {recommender.name} learns, and cannot score with "
            f"what it holds ({problem}); save it again"
        ) from problem
    return recommender


def _parsed(
    arrays: dict[str, np.ndarray[Any, Any]], path: str | os.PathLike[str]
) -> tuple[Recommender, Fitted]:
    header = json.loads(arrays.pop("header").tobytes())
    if header["format"] != FORMAT or header["version"] > VERSION:
        raise FileError(
            f"{str(path)!r} must be a recommender of version {VERSION} or older, got "
            f"{header['format']} {header['version']}; a newer unsample may have written it"
        )
    fitted = Fitted(
        users=check_integer("users", header["users"], minimum=1),
        items=check_integer("items", header["items"], minimum=1),
        popularity=arrays.pop("popularity"),
        activity=arrays.pop("activity"),
        weights={key.removeprefix(_WEIGHTS): array for key, array in arrays.items()},
    )
    return create(header["name"], _with_tuples(header["hyperparameters"])), fitted


def _read(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    try:
        with path.open("rb") as stream:
            return read_arrays(stream, repr(str(path)))
    except FileNotFoundError as problem:
        raise FileError(f"no such file: {str(path)!r}") from problem
    except (OSError, FileError) as problem:
        raise FileError(
            f"{str(path)!r} cannot be read as a saved recommender: {problem}; save it again"
        ) from problem


def _check_fitted(fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Refuse arrays that do not belong together: sparse products trust what they are given."""
    shapes = fitted.popularity.shape, fitted.activity.shape
    kinds = {array.dtype.kind for array in (fitted.popularity, fitted.activity)}
    if shapes != ((fitted.items,), (fitted.users,)) or kinds != {"i"}:
        raise FileError(
            f"{str(path)!r} must count {fitted.items} items and {fitted.users} users, got arrays "
            f"of shapes {shapes[0]} and {shapes[1]}; save it again"
        )
    for start in (name for name in fitted.weights if name.endswith("_start")):
        try:
            check_rows(fitted.weights, start, fitted.items)
        except (KeyError, TypeError, ValueError) as problem:
            raise FileError(
                f"{str(path)!r} must hold items for each row, got arrays that cannot be so: "
                f"{problem}; save it again"
            ) from problem


def _with_tuples(hyperparameters: dict[str, Any]) -> dict[str, Any]:
    """JSON knows lists alone; hyperparameters are tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in hyperparameters.items()}
