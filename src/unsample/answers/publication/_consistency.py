"""Whether one set of ranks can have all printed numbers, and which numbers clash if none can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np

from unsample._checks import FloatArray
from unsample.answers.publication._numbers import Printed, SampledRanks
from unsample.errors import ContradictionError, SolverError

__all__ = ["check_consistent", "smallest_clash"]

_OPTIMAL, _INFEASIBLE = 0, 2

#: Numbers are compared no finer than this.
_FINEST = 1e-6
#: The share of a rounding interval that is given up at its ends.
_TIE = 1e-4

_T = TypeVar("_T")


def check_consistent(numbers: tuple[Printed, ...], ranks: SampledRanks) -> None:
    """Refuse numbers that no histogram of sampled ranks has, naming the fewest that clash."""
    clash = smallest_clash(numbers, lambda some: _extreme(some, ranks, None) is not None)
    if not clash:
        return
    *others, last = clash
    low, high = _range_of(last, tuple(others), ranks)
    given = " and ".join(map(str, others))
    raise ContradictionError(
        f"{given} and {last} contradict each other: with {given}, {last.name} must be in "
        f"{_outward(low, last, -1)} .. {_outward(high, last, 1)} "
        f"for ranks among {ranks.sampled + 1} items; check sampled, and the numbers",
        tuple(number.name for number in clash),
    )


def smallest_clash(
    parts: Sequence[_T], possible: Callable[[tuple[_T, ...]], bool]
) -> tuple[_T, ...]:
    """Return the fewest parts that are not possible together, or none if all are."""
    if possible(tuple(parts)):
        return ()
    for size in range(1, len(parts)):
        for some in combinations(parts, size):
            if not possible(some):
                return some
    return tuple(parts)


def _range_of(
    asked: Printed, given: tuple[Printed, ...], ranks: SampledRanks
) -> tuple[float, float]:
    """Return the least and the greatest value of one metric that the other numbers allow."""
    weights = ranks.features((asked,))[0]
    low, high = (_extreme(given, ranks, sign * weights) for sign in (1.0, -1.0))
    assert low is not None
    assert high is not None
    return low, -high


def _extreme(
    given: tuple[Printed, ...], ranks: SampledRanks, weights: FloatArray | None
) -> float | None:
    """Return the least mean weight over histograms with these numbers; None if there are none."""
    from scipy.optimize import linprog

    # In half units of the last digit, so that the solver's tolerance is small beside them. A tie
    # is rounded one way only: the very ends of a rounding interval belong to one side.
    scale = np.array([max(number.half_unit, _FINEST) for number in given])
    value = np.array([number.value for number in given]) / scale
    half = np.array([number.half_unit * (1.0 - _TIE) for number in given]) / scale
    features = ranks.features(given) / scale[:, None]
    result = linprog(
        np.zeros(len(ranks.low)) if weights is None else weights,
        A_ub=np.concatenate([features, -features]),
        b_ub=np.concatenate([value + half, half - value]),
        A_eq=np.ones((1, len(ranks.low))),
        b_eq=[1.0],
        method="highs",
    )
    if result.status == _OPTIMAL:
        return result.fun
    if result.status == _INFEASIBLE:
        return None
    raise SolverError(f"the linear program of a contradiction was not solved: {result.message}")


def _outward(value: float, number: Printed, side: int) -> str:
    """Return a limit with one digit more than was printed, rounded so that nothing is lost."""
    unit = number.half_unit / 5.0
    steps = np.floor(value / unit + 1e-6) if side < 0 else np.ceil(value / unit - 1e-6)
    return f"{max(float(steps) * unit, 0.0):.6g}"
