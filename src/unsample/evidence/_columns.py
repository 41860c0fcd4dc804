"""Columns of counts: they are taken from arguments and checked, and equal keys are merged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._checks import (
    LARGEST_CATALOGUE,
    BoolArray,
    FloatArray,
    IntArray,
    as_integer_array,
    at_position,
    check_integer,
)
from unsample._files import write_atomically
from unsample.errors import DesignError, FileError, InputError

#: What is summed over targets with the same keys.
SUMS = ("count", "weight", "weight_squared")
#: Weights are squared and summed: within these limits nothing underflows or overflows.
_LIGHTEST, _HEAVIEST = 1e-100, 1e100
_WEIGHT_RULE = f"weights must be 0 or between {_LIGHTEST:g} and {_HEAVIEST:g}"
_WEIGHT_HINT = "multiply all of them by one number, which changes no estimate"
#: Rows that are handled at a time, so that intermediate results take little memory.
_ROWS = 1 << 16


def in_parts(size: int) -> Iterator[slice]:
    """Yield the rows in order, a part at a time."""
    for start in range(0, size, _ROWS):
        yield slice(start, min(start + _ROWS, size))


def check_lengths(cells: object, names: Iterable[str]) -> None:
    """Refuse columns that are not equally long."""
    sizes = {name: len(getattr(cells, name)) for name in names}
    if len(set(sizes.values())) != 1:
        raise InputError(f"the columns of counts must be equally long, got {sizes}")


def merge_equal(cells: object, keys: tuple[str, ...], sums: tuple[str, ...] = SUMS) -> None:
    """Sort the rows of a frozen object by their keys, and add up rows whose keys are equal."""
    columns = np.stack([getattr(cells, name) for name in keys])
    if not columns.size:
        return
    order = np.lexsort(columns[::-1])
    columns = columns[:, order]
    starts = np.flatnonzero(first_of_equal(columns))
    found = dict(zip(keys, columns[:, starts], strict=True))
    found |= {name: np.add.reduceat(getattr(cells, name)[order], starts) for name in sums}
    for name, values in found.items():
        object.__setattr__(cells, name, values)


def distinct_rows(rows: IntArray) -> tuple[IntArray, npt.NDArray[np.intp]]:
    """Return the different rows, sorted, and the place of each row among them."""
    order = np.lexsort(rows.T[::-1])
    first = first_of_equal(rows[order].T)
    place = np.empty(len(rows), dtype=np.intp)
    place[order] = np.cumsum(first) - 1
    return rows[order[first]], place


def first_of_equal(keys: npt.NDArray[Any]) -> BoolArray:
    """Return which columns differ from the one before."""
    first = np.ones(keys.shape[1], dtype=bool)
    first[1:] = (np.diff(keys, axis=1) != 0).any(axis=0)
    return first


def joined(parts: Iterable[object], names: Iterable[str]) -> dict[str, Any]:
    """Return each column of all parts, one part after the other."""
    cells = list(parts)
    return {name: np.concatenate([getattr(part, name) for part in cells]) for name in names}


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


def read_columns(
    fields: Mapping[str, Any], source: str, *, whole: Iterable[str], reals: Iterable[str]
) -> dict[str, Any]:
    """Return columns that a file must hold: whole numbers, and numbers that are not negative."""
    wanted = [*whole, *reals]
    missing = sorted(set(wanted) - set(fields))
    if missing:
        raise FileError(f"{source} lacks {', '.join(missing)}")
    found: dict[str, Any] = {}
    for name in wanted:
        what = f"{name} in {source}"
        if name in whole:
            found[name] = as_integer_array(what, fields[name], error=FileError).astype(np.int64)
        else:
            values = found[name] = as_floats(what, fields[name], error=FileError)
            bad = ~(np.isfinite(values) & (values >= 0))
            refuse_where(bad, f"{what} must be finite and not negative", values, FileError)
    return found


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


def as_floats(
    name: str, values: npt.ArrayLike, *, error: type[InputError] = InputError
) -> FloatArray:
    """Return ``values`` as a flat array of floats."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError) as problem:
        raise error(f"{name} must be numbers: {problem}") from problem
    if array.ndim != 1:
        raise error(f"{name} must be a flat list of numbers, got shape {array.shape}")
    return array


def as_weights(weights: npt.ArrayLike | None, size: int) -> FloatArray:
    """Return a weight for each target; without weights all count the same."""
    if weights is None:
        return np.broadcast_to(np.float64(1.0), size)
    array = as_floats("weights", weights)
    if len(array) != size:
        raise InputError(f"weights must be {size} numbers, one for each rank, got {len(array)}")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        where = int(np.argmax(bad))
        raise InputError(
            f"weights must be finite and not negative, got {array[where]} "
            f"{at_position(where, size)}"
        )
    refuse_where(_extreme(array), _WEIGHT_RULE, array, InputError, _WEIGHT_HINT)
    return array


def check_weight_sums(weight: FloatArray, squared: FloatArray) -> None:
    """Refuse sums of weights and of squared weights that are impossible."""
    sums = np.stack([weight, squared])
    bad = np.asarray(~(np.isfinite(sums) & (sums >= 0)).all(axis=0))
    refuse_where(bad, "weights must be finite and not negative", weight, InputError)
    # The sum of squares of a cell, in units of a weight.
    with np.errstate(over="ignore"):  # infinite is extreme
        typical = np.divide(squared, weight, out=np.zeros(len(weight)), where=weight > 0)
    bad = _extreme(typical) | ((weight > 0) & (typical == 0))
    refuse_where(bad, _WEIGHT_RULE, weight, InputError, _WEIGHT_HINT)
    if not weight.sum() > 0:
        raise InputError("weights must not all be zero: there is nothing to estimate from")


def _extreme(weights: FloatArray) -> BoolArray:
    return (weights > 0) & ((weights < _LIGHTEST) | (weights > _HEAVIEST))


def no_numbers() -> IntArray:
    """Return an empty column, in place of one that is not given."""
    return np.empty(0, dtype=np.int64)
