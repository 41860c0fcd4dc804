"""Columns of counts: taken from arguments, counted, and checked cell by cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import (
    LARGEST_CATALOGUE,
    FloatArray,
    IntArray,
    as_integer_array,
    check_integer,
)
from unsample.errors import DesignError, InputError, RankError
from unsample.law import Law

if TYPE_CHECKING:
    from unsample.evidence._counts import RankCounts

INTEGER_FIELDS = ("sampled", "items", "low", "high", "count")
FLOAT_FIELDS = ("weight", "weight_squared")
#: Weights are squared and summed: within these limits that neither underflows nor overflows.
_LIGHTEST, _HEAVIEST = 1e-100, 1e100
_WEIGHT_RULE = f"weights must be 0 or between {_LIGHTEST:g} and {_HEAVIEST:g}"
_WEIGHT_HINT = "multiply all of them by one number, which changes no estimate"
#: Ranks counted at a time: small enough to stay in the processor's cache between the passes.
_CHUNK = 1 << 16


def check_cells(cells: RankCounts) -> None:
    """Refuse columns that no evaluation could give, naming the rule and a value."""
    sizes = {len(getattr(cells, f)) for f in (*INTEGER_FIELDS, *FLOAT_FIELDS)}
    if len(sizes) != 1:
        raise InputError(f"the columns of rank counts must be equally long, got lengths {sizes}")
    if sizes == {0}:
        raise RankError("rank counts must hold at least one cell, got none")
    if cells.stop is not None:
        check_integer("stop", cells.stop, minimum=1, error=DesignError)
    _refuse_where(cells.items < 2, "items must be at least 2", cells.items, DesignError)
    _refuse_where(cells.sampled < 1, "sampled must be at least 1", cells.sampled, DesignError)
    if not cells.replacement:
        too_many = cells.sampled > cells.items - 1
        rule = "sampled must be at most items - 1 without replacement"
        _refuse_where(too_many, rule, cells.sampled, DesignError)
    _refuse_where(cells.low < 1, "ranks must be at least 1 (1 is the best)", cells.low, RankError)
    _refuse_where(
        cells.high > cells.sampled + 1,
        "ranks must be at most sampled + 1",
        cells.high,
        RankError,
        "a rank among n items needs sampled = n - 1; these may be full-catalogue ranks",
    )
    _refuse_where(cells.low > cells.high, "low must not exceed high", cells.low, RankError)
    _refuse_where(cells.count < 0, "counts must not be negative", cells.count, RankError)
    sums = np.stack([cells.weight, cells.weight_squared])
    bad = np.asarray(~(np.isfinite(sums) & (sums >= 0)).all(axis=0))
    _refuse_where(bad, "weights must be finite and not negative", cells.weight, InputError)
    # The sum of squares of a cell, in the units of a weight.
    with np.errstate(over="ignore"):  # infinite is extreme
        typical = np.divide(
            cells.weight_squared, cells.weight, out=np.zeros(len(bad)), where=cells.weight > 0
        )
    bad = _extreme(typical) | ((cells.weight > 0) & (typical == 0))
    _refuse_where(bad, _WEIGHT_RULE, cells.weight, InputError, _WEIGHT_HINT)
    if not cells.weight.sum() > 0:
        raise InputError("weights must not all be zero: there is nothing to estimate from")


def _refuse_where(
    bad: npt.NDArray[np.bool_],
    rule: str,
    values: npt.NDArray[Any],
    error: type[InputError],
    hint: str = "",
) -> None:
    if bad.any():
        example = values[np.argmax(bad)]
        raise error(f"{rule}, got {example}" + (f"; {hint}" if hint else ""))


def count_ranks(ranks: npt.NDArray[np.integer[Any]], design: Law) -> IntArray:
    """Count ranks 1..n in one pass through the memory, refusing those outside."""
    total = np.zeros(design.n + 1, dtype=np.int64)
    for start in range(0, len(ranks), _CHUNK):
        chunk = ranks[start : start + _CHUNK]
        if chunk.min() < 1 or chunk.max() > design.n:
            _refuse_rank(chunk, start, design)
        total += np.bincount(chunk.astype(np.intp, copy=False), minlength=design.n + 1)
    return total[1:]


def _refuse_rank(chunk: npt.NDArray[np.integer[Any]], start: int, design: Law) -> None:
    where = int(np.argmax((chunk < 1) | (chunk > design.n)))
    value = int(chunk[where])
    hint = (
        "ranks start at 1; add 1 if yours start at 0"
        if value < 1
        else "these may be full-catalogue ranks (use unsample.exact), or sampled is too small"
    )
    raise RankError(
        f"ranks must be in 1..{design.n} (sampled + 1), got {value} at position {start + where}; "
        f"{hint}"
    )


def as_column(name: str, values: npt.ArrayLike, size: int, *, minimum: int) -> IntArray:
    """Return one number for each target, from one for all or from as many as there are."""
    if np.ndim(values) == 0:
        value = check_integer(
            name, values, minimum=minimum, maximum=LARGEST_CATALOGUE, error=DesignError
        )
        return np.full(size, value, dtype=np.int64)
    column = as_integer_array(name, values, error=DesignError).astype(np.int64)
    if len(column) != size:
        raise DesignError(f"{name} must be one number or {size} of them, got {len(column)}")
    return column


def as_weights(weights: npt.ArrayLike | None, size: int) -> FloatArray:
    """Return a weight for each target; without weights all count the same."""
    if weights is None:
        return np.ones(size)
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (OverflowError, TypeError, ValueError) as problem:
        raise InputError(f"weights must be numbers: {problem}") from problem
    if array.shape != (size,):
        raise InputError(f"weights must be {size} numbers, one a rank, got shape {array.shape}")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        where = int(np.argmax(bad))
        raise InputError(
            f"weights must be finite and not negative, got {array[where]} at position {where}"
        )
    _refuse_where(_extreme(array), _WEIGHT_RULE, array, InputError, _WEIGHT_HINT)
    return array


def _extreme(weights: FloatArray) -> npt.NDArray[np.bool_]:
    return (weights > 0) & ((weights < _LIGHTEST) | (weights > _HEAVIEST))


def weight_of_user(
    summed: FloatArray, weight: FloatArray, users: npt.ArrayLike | None
) -> FloatArray:
    """Return the weight of all targets of a target's user, or its own where users are not given.

    Weight times this, summed, is the sum of squares of the users' weights: what the effective
    number of targets is made of when targets of one user are taken to be fully dependent. That is
    the cautious side, and it adds up over cells.
    """
    if users is None:
        return weight
    labels = np.asarray(users)
    if labels.shape != weight.shape:
        raise InputError(
            f"users must hold one user for each of the {len(weight)} ranks, got "
            f"{'shape ' + str(labels.shape) if labels.ndim != 1 else len(labels)}"
        )
    _, where = np.unique(labels, return_inverse=True)
    return np.asarray(np.bincount(where, summed)[where])


def span(values: IntArray) -> str:
    """Return the values in words: one number, or the least and the greatest."""
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low}..{high}"
