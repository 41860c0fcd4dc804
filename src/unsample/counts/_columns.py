"""Columns of counts: taken from arguments or files, checked, and merged where keys are equal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    LARGEST_CATALOGUE,
    BoolArray,
    IntArray,
    as_integer_array,
    check_integer,
)
from unsample.errors import DesignError, InputError


def refuse_where(
    bad: BoolArray,
    rule: str,
    *,
    values: npt.NDArray[Any],
    error: type[InputError],
    hint: str = "",
) -> None:
    """Raise ``error`` with the rule and the first of the values that break it, if any does."""
    if bad.any():
        example = values[np.argmax(bad)]
        raise error(f"{rule}, got {example}" + (f"; {hint}" if hint else ""))


def as_column(name: str, values: npt.ArrayLike, *, size: int) -> IntArray:
    """Return one number for each target, given one for all or one for each.

    >>> as_column("sampled", 99, size=3).tolist(), as_column("sampled", [99, 9], size=2).tolist()
    ([99, 99, 99], [99, 9])
    """
    if np.ndim(values) == 0:
        value = check_integer(name, values, minimum=0, maximum=LARGEST_CATALOGUE, error=DesignError)
        return np.broadcast_to(np.int64(value), size)
    column = as_integer_array(name, values, error=DesignError).astype(np.int64, copy=False)
    if len(column) != size:
        raise DesignError(f"{name} must be one number or {size} of them, got {len(column)}")
    rule = f"{name} must be at most {LARGEST_CATALOGUE}"
    refuse_where(column > LARGEST_CATALOGUE, rule, values=column, error=DesignError)
    return column


def check_lengths(cells: object, names: Iterable[str]) -> None:
    """Refuse columns that are not equally long."""
    sizes = {name: len(getattr(cells, name)) for name in names}
    if len(set(sizes.values())) != 1:
        raise InputError(f"the columns of counts must be equally long, got {sizes}")


def merge_equal(
    cells: object,
    keys: tuple[str, ...],
    *,
    sums: tuple[str, ...],
    minima: tuple[str, ...] = (),
    maxima: tuple[str, ...] = (),
) -> None:
    """Sort the rows of a frozen object by their keys, and merge rows with equal keys into one.

    A merged row has the sum, the smallest or the largest value of each column that is no key.
    """
    rows = np.stack([getattr(cells, name) for name in keys], axis=1)
    if not rows.size:
        return
    order, first = _sorted_rows(rows)
    starts = np.flatnonzero(first)
    merged = dict(zip(keys, rows[order[starts]].T, strict=True))
    combined: tuple[tuple[np.ufunc, tuple[str, ...]], ...] = (
        (np.add, sums),
        (np.minimum, minima),
        (np.maximum, maxima),
    )
    for combine, names in combined:
        for name in names:
            merged[name] = combine.reduceat(getattr(cells, name)[order], starts)
    for name, values in merged.items():
        object.__setattr__(cells, name, values)


def distinct_rows(rows: IntArray) -> tuple[IntArray, npt.NDArray[np.intp]]:
    """Return the different rows, sorted, and the index of each row among them.

    >>> rows, index = distinct_rows(np.array([[2, 1], [1, 5], [2, 1]]))
    >>> rows.tolist(), index.tolist()
    ([[1, 5], [2, 1]], [1, 0, 1])
    """
    order, first = _sorted_rows(rows)
    index = np.empty(len(rows), dtype=np.intp)
    index[order] = np.cumsum(first) - 1
    return rows[order[first]], index


def _sorted_rows(rows: IntArray) -> tuple[npt.NDArray[np.intp], BoolArray]:
    """Return the order of the rows, and which of them differ from the one before."""
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order, first


def joined(parts: Iterable[object], names: Iterable[str]) -> dict[str, Any]:
    """Return each column of all parts, one part after the other."""
    cells = list(parts)
    return {name: np.concatenate([getattr(part, name) for part in cells]) for name in names}
