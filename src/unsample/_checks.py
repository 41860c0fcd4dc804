"""Argument checks shared by every package, so that each message is written once.

Checks of single values are in `_rules`, and are exported here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._rules import (
    LARGEST_CATALOGUE,
    at_position,
    check_choice,
    check_flag,
    check_integer,
    check_kind,
    check_level,
    check_path,
    check_real,
    import_extra,
    message,
    suggest,
    warn,
)
from unsample.errors import InputError, RankError

__all__ = [
    "LARGEST_CATALOGUE",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Seed",
    "as_index",
    "as_integer_array",
    "as_rng",
    "as_seed",
    "as_text_array",
    "at_position",
    "check_choice",
    "check_flag",
    "check_integer",
    "check_kind",
    "check_level",
    "check_path",
    "check_real",
    "check_unmasked",
    "import_extra",
    "suggest",
    "warn",
]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Seed: TypeAlias = "int | np.random.Generator | np.random.SeedSequence | None"

#: A large array of texts may take at most this many times the memory of the texts themselves.
_LARGEST_WASTE = 100
_FEW_LETTERS = 1 << 25


def as_index(values: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.intp]:
    """Return whole numbers as indices of numpy's own width, which has 32 bits in a browser.

    ``np.bincount``, ``np.repeat`` and ``np.add.reduceat`` take no wider ones there.
    """
    return values.astype(np.intp, copy=False)


def as_rng(rng: Seed) -> np.random.Generator:
    """Return a Generator unchanged, or a new one from a seed; None draws fresh entropy."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, np.random.SeedSequence) or rng is None:
        return np.random.default_rng(rng)
    seed = check_integer("rng", rng, minimum=0, hint="pass a seed, a numpy Generator, or None")
    return np.random.default_rng(seed)


def as_seed(rng: Seed) -> int:
    """Return the number that stands for a seed in keys and hashes: the seed, or 63 random bits."""
    if rng is None or isinstance(rng, np.random.Generator | np.random.SeedSequence):
        return int(as_rng(rng).integers(2**63))
    hint = "pass a seed, a numpy Generator, or None"
    return check_integer("rng", rng, minimum=0, maximum=2**63 - 1, hint=hint)


def as_integer_array(
    name: str, values: object, *, hint: str = "", error: type[InputError] = RankError
) -> IntArray | npt.NDArray[np.integer[Any]]:
    """Return ``values`` as a one-dimensional integer array; copy only if needed."""
    try:
        array = np.asarray(values)
    except Exception as problem:  # objects of other libraries raise errors of their own
        raise error(
            message(name, "a flat sequence of integers", got=values, hint=hint)
        ) from problem
    check_unmasked(name, values, error=error)
    if array.ndim != 1:
        got = f"an array of shape {array.shape}"
        raise error(message(name, "one-dimensional", got=got, hint=hint, show=str))
    if np.issubdtype(array.dtype, np.integer):
        return array
    if array.size == 0:
        return array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.floating):
        # The hint is about numbers that are not whole.
        advice = "convert them first, such as numpy.array(values, dtype=int)"
        got = f"values of type {array.dtype}"
        raise error(message(name, "integers", got=got, hint=advice, show=str))
    bad = ~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2.0**62))
    if bad.any():
        where = int(np.argmax(bad))
        got = f"{array[where]!s} {at_position(where, array.size)} ({int(bad.sum())} such values)"
        raise error(message(name, "whole numbers", got=got, hint=hint, show=str))
    return array.astype(np.int64)


def check_unmasked(name: str, values: Any, *, error: type[InputError] = InputError) -> None:
    """Refuse an array with masked values: behind the mask there are other numbers."""
    if np.ma.is_masked(values):
        hidden = int(np.sum(np.ma.getmask(values)))
        raise error(f"{name} must hold a value everywhere, got {hidden:,} masked values")


def as_text_array(
    name: str, values: Sequence[str], *, error: type[InputError] = InputError
) -> npt.NDArray[np.str_]:
    """Return texts as an array, in which each takes as much memory as the longest."""
    if any(value.endswith("\0") for value in values):
        raise error(f"{name} must not end with a zero byte, which arrays of text leave out")
    longest = max(map(len, values), default=0)
    if longest * len(values) > max(_FEW_LETTERS, _LARGEST_WASTE * sum(map(len, values))):
        raise error(
            f"{name} must be of similar length, got {len(values):,} texts, one of them with "
            f"{longest:,} letters; shorten it"
        )
    return np.array(values, dtype=np.str_)
