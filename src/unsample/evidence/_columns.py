"""Columns of counts: taken from arguments, checked, and equal keys merged."""

from __future__ import annotations

from collections.abc import Iterable
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
from unsample.errors import DesignError, InputError

#: What is summed over targets with the same keys.
SUMS = ("count", "weight", "weight_squared")
#: Weights are squared and summed: within these limits that neither underflows nor overflows.
_LIGHTEST, _HEAVIEST = 1e-100, 1e100
_WEIGHT_RULE = f"weights must be 0 or between {_LIGHTEST:g} and {_HEAVIEST:g}"
_WEIGHT_HINT = "multiply all of them by one number, which changes no estimate"


def check_lengths(cells: object, names: Iterable[str]) -> None:
    """Refuse columns that are not equally long."""
    sizes = {name: len(getattr(cells, name)) for name in names}
    if len(set(sizes.values())) != 1:
        raise InputError(f"the columns of counts must be equally long, got {sizes}")


def merge_equal(cells: object, keys: tuple[str, ...]) -> IntArray:
    """Sort the rows of a frozen object by their keys, and add up rows whose keys are equal.

    Return where each row went.
    """
    order = np.lexsort([getattr(cells, name) for name in reversed(keys)])
    columns = np.stack([getattr(cells, name) for name in keys])[:, order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(columns, axis=1) != 0).any(axis=0)
    starts = np.flatnonzero(first)
    for name, values in zip(keys, columns[:, starts], strict=True):
        object.__setattr__(cells, name, values)
    for name in SUMS:
        values = getattr(cells, name)[order]
        merged = np.add.reduceat(values, starts) if len(starts) else values
        object.__setattr__(cells, name, merged)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(first) - 1
    return place


def joined(parts: Iterable[object], names: Iterable[str]) -> dict[str, Any]:
    """Return each column of all parts, one part after the other."""
    cells = list(parts)
    return {name: np.concatenate([getattr(part, name) for part in cells]) for name in names}


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


def as_column(
    name: str,
    values: npt.ArrayLike,
    size: int,
    *,
    error: type[InputError] = DesignError,
) -> IntArray:
    """Return one number for each target, from one for all or from as many as there are."""
    if np.ndim(values) == 0:
        value = check_integer(name, values, minimum=0, maximum=LARGEST_CATALOGUE, error=error)
        return np.full(size, value, dtype=np.int64)
    column = as_integer_array(name, values, error=error).astype(np.int64, copy=False)
    if len(column) != size:
        raise error(f"{name} must be one number or {size} of them, got {len(column)}")
    rule = f"{name} must be at most {LARGEST_CATALOGUE}"
    refuse_where(column > LARGEST_CATALOGUE, rule, column, error)
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
        return np.ones(size)
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
    """Refuse sums of weights and of squared weights that no weights have."""
    sums = np.stack([weight, squared])
    bad = np.asarray(~(np.isfinite(sums) & (sums >= 0)).all(axis=0))
    refuse_where(bad, "weights must be finite and not negative", weight, InputError)
    # The sum of squares of a cell, in the units of a weight.
    with np.errstate(over="ignore"):  # infinite is extreme
        typical = np.divide(squared, weight, out=np.zeros(len(bad)), where=weight > 0)
    bad = _extreme(typical) | ((weight > 0) & (typical == 0))
    refuse_where(bad, _WEIGHT_RULE, weight, InputError, _WEIGHT_HINT)
    if not weight.sum() > 0:
        raise InputError("weights must not all be zero: there is nothing to estimate from")


def _extreme(weights: FloatArray) -> BoolArray:
    return (weights > 0) & ((weights < _LIGHTEST) | (weights > _HEAVIEST))


def no_numbers() -> IntArray:
    """Return an empty column, for one that is not given."""
    return np.empty(0, dtype=np.int64)
