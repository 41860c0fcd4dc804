"""Columns of counts: they are taken from arguments and checked, and equal keys are merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    LARGEST_CATALOGUE,
    BoolArray,
    FloatArray,
    IntArray,
    as_integer_array,
    at_position,
    check_integer,
)
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


def merge_equal(cells: object, keys: tuple[str, ...], sums: tuple[str, ...] = SUMS) -> IntArray:
    """Sort the rows of a frozen object by their keys, and add up rows whose keys are equal.

    Return where each row went.
    """
    names = (*keys, *sums)
    whole = {name: getattr(cells, name) for name in names}
    place = np.empty(len(whole[keys[0]]), dtype=np.int64)
    parts, first = [], 0
    for rows in in_parts(len(place)):
        merged, where = _merged({name: whole[name][rows] for name in names}, keys, sums)
        place[rows] = where + first
        first += len(merged[keys[0]])
        parts.append(merged)
    found = parts[0] if parts else whole
    if len(parts) > 1:
        together = {name: np.concatenate([part[name] for part in parts]) for name in names}
        found, where = _merged(together, keys, sums)
        for rows in in_parts(len(place)):
            place[rows] = where[place[rows]]
    for name, values in found.items():
        object.__setattr__(cells, name, values)
    return place


def _merged(
    columns: Mapping[str, npt.NDArray[Any]], keys: tuple[str, ...], sums: tuple[str, ...]
) -> tuple[dict[str, npt.NDArray[Any]], IntArray]:
    """Return rows sorted by their keys, equal ones added up, and where each row went."""
    order = np.lexsort([columns[name] for name in reversed(keys)])
    sorted_keys = np.stack([columns[name] for name in keys])[:, order]
    first = first_of_equal(sorted_keys)
    starts = np.flatnonzero(first)
    found = dict(zip(keys, sorted_keys[:, starts], strict=True))
    found |= {name: np.add.reduceat(columns[name][order], starts) for name in sums}
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(first) - 1
    return found, place


def first_of_equal(keys: npt.NDArray[Any]) -> BoolArray:
    """Return which columns differ from the one before."""
    first = np.ones(keys.shape[1], dtype=bool)
    first[1:] = (np.diff(keys, axis=1) != 0).any(axis=0)
    return first


def joined(parts: Iterable[object], names: Iterable[str]) -> dict[str, Any]:
    """Return each column of all parts, one part after the other."""
    cells = list(parts)
    return {name: np.concatenate([getattr(part, name) for part in cells]) for name in names}


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
    for rows in in_parts(len(weight)):
        sums = np.stack([weight[rows], squared[rows]])
        bad = np.asarray(~(np.isfinite(sums) & (sums >= 0)).all(axis=0))
        refuse_where(bad, "weights must be finite and not negative", sums[0], InputError)
    for rows in in_parts(len(weight)):
        # The sum of squares of a cell, in units of a weight.
        each = weight[rows]
        with np.errstate(over="ignore"):  # infinite is extreme
            typical = np.divide(squared[rows], each, out=np.zeros(len(each)), where=each > 0)
        bad = _extreme(typical) | ((each > 0) & (typical == 0))
        refuse_where(bad, _WEIGHT_RULE, each, InputError, _WEIGHT_HINT)
    if not weight.sum() > 0:
        raise InputError("weights must not all be zero: there is nothing to estimate from")


def _extreme(weights: FloatArray) -> BoolArray:
    return (weights > 0) & ((weights < _LIGHTEST) | (weights > _HEAVIEST))


def no_numbers() -> IntArray:
    """Return an empty column, in place of one that is not given."""
    return np.empty(0, dtype=np.int64)
