"""Names that libraries give to users and items: text or whole numbers."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray
from unsample.errors import InputError

__all__ = ["as_names", "check_alike", "numbers_of"]


def as_names(what: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return names as an array of text or of integers, from arrays of objects too."""
    if values.dtype.kind in "US" or np.issubdtype(values.dtype, np.integer):
        return values
    if all(isinstance(one, str) for one in values):
        return values.astype(str)
    if all(isinstance(one, numbers.Integral) for one in values):
        return values.astype(np.int64)
    strange = next(one for one in values if not isinstance(one, str | numbers.Integral))
    raise InputError(f"{what} must be named by text or by whole numbers, got {strange!r}")


def check_alike(
    what: str, one: npt.NDArray[Any], other: npt.NDArray[Any], *, names: tuple[str, str]
) -> None:
    """Refuse text here and numbers there: nothing would match, and nobody would know why."""
    if (one.dtype.kind in "US") != (other.dtype.kind in "US"):
        raise InputError(
            f"{names[0]} and {names[1]} must name each {what} alike, got {one[0]!r} and "
            f"{other[0]!r}; make both text, or both whole numbers"
        )


def numbers_of(
    names: npt.NDArray[Any], known: npt.NDArray[Any], *, what: str, here: str, there: str
) -> IntArray:
    """Return the place of each name among the known ones, which are distinct; refuse others."""
    asked, listed = (as_names(f"each {what}", values) for values in (names, known))
    check_alike(what, asked, listed, names=(here, there))
    order = np.argsort(listed, kind="stable")
    place = np.searchsorted(listed, asked, sorter=order).clip(max=len(listed) - 1)
    found = order[place]
    strange = listed[found] != asked
    if strange.any():
        raise InputError(
            f"each {what} of {here} must be known to {there}, got {int(strange.sum())} of "
            f"{len(asked)} rows where it is not, such as {asked[np.argmax(strange)]!s}; leave them "
            "out, and say so where you report"
        )
    return np.asarray(found, dtype=np.int64)
