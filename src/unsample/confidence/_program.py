"""Linear programs: the least value of a metric over every P(R) that the data and a shape allow.

    minimise   c'P
    over       P >= 0, sum P = 1,
    where      low <= C P <= high          the region of the evidence,
    and        P has the stated shape      limits on the ratio of neighbouring densities.

The solution comes with multipliers x of the region. They prove the bound, and they say more: for
every P of the shape, c'P >= offset - x'(C P). The right side is a mean over targets of a function
of their sampled ranks, which is what the bias-aware intervals are made of.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from unsample._checks import FloatArray
from unsample.confidence._evidence import Evidence
from unsample.confidence._shape import Shape
from unsample.errors import SolverError
from unsample.law import RankGrid

__all__ = ["InfeasibleError", "Lowest", "Program"]

_OPTIMAL, _INFEASIBLE = 0, 2
#: A limit on the logarithm of the ratio of neighbouring densities that is beyond this is none.
_STEEPEST = 30.0
#: Tried in turn: presolving costs more than it saves in programs this small, but is steadier.
_ATTEMPTS: tuple[dict[str, Any], ...] = (
    {"method": "highs-ds", "options": {"presolve": False}},
    {"method": "highs-ds"},
    {"method": "highs-ipm"},
    {"method": "highs-ipm", "options": {"presolve": False}},
)
#: Constraints that can be met but for this are met: the tolerance of the solver.
_FEASIBLE = 1e-7
#: By how much limits are widened where a program is feasible by no more than that.
_HAIR = 1e-6


class InfeasibleError(Exception):
    """No P(R) of the shape is in the region: the data refute the shape."""


@dataclass(frozen=True, eq=False)
class Lowest:
    """The least value, where it is reached, and the inequality that proves it."""

    value: float
    mass: FloatArray
    offset: float
    #: For each evidence, one number for each of its groups.
    scores: tuple[FloatArray, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """All P(R) on a grid that lie in the region of the evidence and have a shape."""

    grid: RankGrid
    evidence: tuple[Evidence, ...]
    shape: Shape
    blind_rank: float
    alpha: float
    _solved: dict[bytes, Lowest] = field(default_factory=dict, repr=False)

    def lowest(self, weights: FloatArray) -> Lowest:
        """Return the least value of ``weights @ P``; the greatest is minus that of ``-weights``."""
        key = weights.tobytes()
        if key not in self._solved:
            self._solved[key] = self._solve(weights)
        return self._solved[key]

    @cached_property
    def feasible(self) -> bool:
        """Return whether any P(R) fits the data and the shape."""
        try:
            self.lowest(np.zeros(len(self.grid)))
        except InfeasibleError:
            return False
        return True

    def _solve(self, weights: FloatArray) -> Lowest:
        low, high = self._region
        result = _solve_program(weights, self._constraints, self._limits)
        multipliers = -result.ineqlin.marginals
        upper, lower = multipliers[: len(high)], multipliers[len(high) : 2 * len(high)]
        offset = float(result.fun + high @ upper - low @ lower)
        pieces = self._by_evidence(upper - lower)
        # What is hidden of the observed features must not lift a bound from below.
        hidden = sum(part.allowance(piece) for part, piece in pieces)
        scores = tuple(part.features.T @ piece for part, piece in pieces)
        return Lowest(float(result.fun), result.x, offset - hidden, scores)

    def _by_evidence(self, multipliers: FloatArray) -> list[tuple[Evidence, FloatArray]]:
        sizes = [len(part.features) for part in self.evidence]
        pieces = np.split(multipliers, np.cumsum(sizes)[:-1])
        return list(zip(self.evidence, pieces, strict=True))

    @cached_property
    def _region(self) -> tuple[FloatArray, FloatArray]:
        # Several samples share the error, as several ends of one sample do.
        limits = [part.region(self.alpha / len(self.evidence)) for part in self.evidence]
        low, high = zip(*limits, strict=True)
        return np.concatenate(low), np.concatenate(high)

    @cached_property
    def _constraints(self) -> Any:
        from scipy import sparse

        features = np.concatenate([part.expected_features for part in self.evidence])
        return sparse.vstack(
            [sparse.csr_matrix(features), sparse.csr_matrix(-features), self._shape_rows()]
        ).tocsc()

    @cached_property
    def _limits(self) -> FloatArray:
        low, high = self._region
        rows = self._constraints.shape[0] - 2 * len(low)
        return np.concatenate([high, -low, np.zeros(rows)])

    def _shape_rows(self) -> Any:
        """Return rows that are at most zero when neighbouring densities obey the exponents."""
        from scipy import sparse

        width = self.grid.width.astype(np.float64)
        middle = np.log((self.grid.low + self.grid.high) / 2.0)
        step = np.diff(middle)
        lowest, highest = self.shape.exponents(np.exp(middle[:-1] + step / 2.0), self.blind_rank)
        here = np.arange(len(step))
        rows = []
        # P[b + 1] / width >= P[b] / width * exp(lowest * step), and the same from above; each row
        # is scaled so that its largest coefficient is one.
        for sign, exponent in ((-1.0, lowest), (1.0, highest)):
            # Catalogues of very different sizes make limits so loose that they say nothing.
            kept = np.abs(exponent) * step <= _STEEPEST
            ratio = np.exp(np.where(kept, exponent, 0.0) * step) * width[1:] / width[:-1]
            scale = np.maximum(ratio, 1.0)
            values = np.concatenate([sign / scale, -sign * ratio / scale])
            places = (np.concatenate([here, here]), np.concatenate([here + 1, here]))
            shape = (len(step), len(self.grid))
            rows.append(sparse.coo_matrix((values, places), shape=shape).tocsr()[kept])
        return sparse.vstack(rows)


def _solve_program(weights: FloatArray, constraints: Any, limits: FloatArray) -> Any:
    result = _first_answer(weights, constraints, limits)
    if result.status == _OPTIMAL:
        return result
    # Near the border solvers give up, or find it infeasible for some weights and not for others.
    if _least_violation(constraints, limits) > _FEASIBLE:
        raise InfeasibleError
    # A region that is wider by a hair errs on the cautious side.
    result = _first_answer(weights, constraints, limits + _HAIR)
    if result.status == _OPTIMAL:
        return result
    if result.status == _INFEASIBLE:
        raise InfeasibleError
    raise SolverError(f"the linear program of a bound was not solved: {result.message}")


def _first_answer(weights: FloatArray, constraints: Any, limits: FloatArray) -> Any:
    """Return the first result that says something, or the last one."""
    from scipy.optimize import linprog

    sum_to_one = np.ones((1, len(weights)))
    for attempt in _ATTEMPTS:
        result = linprog(
            weights,
            A_ub=constraints,
            b_ub=limits,
            A_eq=sum_to_one,
            b_eq=[1.0],
            **attempt,
        )
        if result.status in (_OPTIMAL, _INFEASIBLE):
            break
    return result


def _least_violation(constraints: Any, limits: FloatArray) -> float:
    """Return by how much some constraint is missed at least: a program that is never infeasible."""
    from scipy import sparse
    from scipy.optimize import linprog

    rows, size = constraints.shape
    result = linprog(
        np.append(np.zeros(size), 1.0),
        A_ub=sparse.hstack([constraints, sparse.csc_matrix(np.full((rows, 1), -1.0))]).tocsc(),
        b_ub=limits,
        A_eq=np.append(np.ones(size), 0.0)[None, :],
        b_eq=[1.0],
        method="highs-ds",
    )
    return 0.0 if result.fun is None else float(result.fun)
