"""Columns of counts: taken from arguments, checked, merged where keys are equal, and saved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._checks import (
    LARGEST_CATALOGUE,
    BoolArray,
    IntArray,
    as_integer_array,
    check_integer,
)
from unsample._files import write_atomically
from unsample.errors import DesignError, FileError, InputError


def refuse_where(
    bad: BoolArray,
    rule: str,
    values: npt.NDArray[Any],
    error: type[InputError],
    hint: str = "",
) -> None:
    """Raise ``error`` with the rule and the first of the values that break it, if any does."""
    if bad.any():
        example = values[np.argmax(bad)]
        raise error(f"{rule}, got {example}" + (f"; {hint}" if hint else ""))


def as_column(name: str, values: npt.ArrayLike, size: int) -> IntArray:
    """Return one number for each target, given one for all or one for each."""
    if np.ndim(values) == 0:
        value = check_integer(name, values, minimum=0, maximum=LARGEST_CATALOGUE, error=DesignError)
        return np.broadcast_to(np.int64(value), size)
    column = as_integer_array(name, values, error=DesignError).astype(np.int64, copy=False)
    if len(column) != size:
        raise DesignError(f"{name} must be one number or {size} of them, got {len(column)}")
    rule = f"{name} must be at most {LARGEST_CATALOGUE}"
    refuse_where(column > LARGEST_CATALOGUE, rule, column, DesignError)
    return column


def check_lengths(cells: object, names: Iterable[str]) -> None:
    """Refuse columns that are not equally long."""
    sizes = {name: len(getattr(cells, name)) for name in names}
    if len(set(sizes.values())) != 1:
        raise InputError(f"the columns of counts must be equally long, got {sizes}")


def merge_equal(cells: object, keys: tuple[str, ...], sums: tuple[str, ...]) -> None:
    """Sort the rows of a frozen object by their keys, and add up rows whose keys are equal."""
    rows = np.stack([getattr(cells, name) for name in keys], axis=1)
    if not rows.size:
        return
    order, first = _sorted_rows(rows)
    starts = np.flatnonzero(first)
    found = dict(zip(keys, rows[order[starts]].T, strict=True))
    found |= {name: np.add.reduceat(getattr(cells, name)[order], starts) for name in sums}
    for name, values in found.items():
        object.__setattr__(cells, name, values)


def distinct_rows(rows: IntArray) -> tuple[IntArray, npt.NDArray[np.intp]]:
    """Return the different rows, sorted, and the place of each row among them."""
    order, first = _sorted_rows(rows)
    place = np.empty(len(rows), dtype=np.intp)
    place[order] = np.cumsum(first) - 1
    return rows[order[first]], place


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


# -- files ---------------------------------------------------------------------------------------


def save_arrays(path: str | os.PathLike[str], fields: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays to an ``.npz`` file, all or nothing."""
    if Path(path).suffix != ".npz":
        raise FileError(f"path must end in .npz, got {str(path)!r}")
    arrays: dict[str, Any] = dict(fields)
    write_atomically(Path(path), lambda file: np.savez_compressed(file, **arrays))


def load_arrays(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """Read what `save_arrays` wrote; nothing in it is trusted."""
    try:
        with Path(path).open("rb") as file:
            return read_arrays(file, f"rank counts from {str(path)!r}")
    except OSError as problem:
        raise FileError(f"cannot read rank counts from {str(path)!r}: {problem}") from problem


def check_format(fields: Mapping[str, Any], wanted: str, source: str) -> None:
    """Refuse a file of another kind, or of an older version."""
    marker = str(fields.get("format"))
    if marker != wanted:
        raise FileError(
            f"{source} must hold {wanted}, got {marker}; files of versions before 0.3 must be "
            "counted again from their ranks"
        )


def part_of(fields: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the fields whose names start so, without the start."""
    return {name[len(prefix) :]: each for name, each in fields.items() if name.startswith(prefix)}


def read_columns(fields: Mapping[str, Any], source: str, names: Iterable[str]) -> dict[str, Any]:
    """Return the columns of whole numbers that a file must hold."""
    missing = sorted(set(names) - set(fields))
    if missing:
        raise FileError(f"{source} lacks {', '.join(missing)}")
    return {
        name: as_integer_array(f"{name} in {source}", fields[name], error=FileError).astype(
            np.int64
        )
        for name in names
    }
