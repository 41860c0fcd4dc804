"""Shapes of P(R), and the least value of a metric over every P(R) that data and a shape allow.

A sample of n - 1 items blurs the top N/n ranks into one. How P(R) is spread inside that zone is
not in the data, and without any assumption the bounds of a metric@K with small K span from zero
to everything. The assumption here is mild and can be stated in a sentence: seen on logarithmic
axes, P(R) is never steeper than a given exponent. The limits hold at the top. Where the sample
sees more, they loosen in step with what it sees: at rank R a sample blurs ranks by a factor of
about 1 + sqrt(N/(n R)), and a change within that blur is what the limits must rule out.

The least value is that of a linear program:

    minimise   c'P
    over       P >= 0, sum P = 1,
    where      low <= C P <= high          the region of the evidence,
    and        P has the stated shape      limits on the ratio of neighbouring densities.

The solution comes with multipliers x of the region. They prove the bound, and they say more: for
every P of the shape, c'P >= offset - x'(C P). The right side is a mean over targets of a function
of their sampled ranks, which is what the bias-aware intervals are made of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from unsample._checks import FloatArray, check_choice, check_real
from unsample._threads import one_thread
from unsample.confidence._limits import Leaning, MeanLimits, OverBins, Rows
from unsample.errors import InputError
from unsample.estimators import CANDIDATES
from unsample.law import RankGrid

#: Below this multiple of N/n a shape with ``dents`` lets P(R) rise as steeply as it likes.
_DENTED = 3.0
_OPTIMAL, _INFEASIBLE = 0, 2
#: A limit on the logarithm of the ratio of neighbouring densities that is beyond this is none.
_STEEPEST = 30.0
#: Programs of this size take some hundred iterations, but near the border of feasibility a solver
#: may never end. So iterations and seconds of each attempt are limited.
_LIMITS = {"maxiter": 5_000, "time_limit": 2.0}
#: Tried in turn: presolving costs more than it saves in programs this small, but fails less often.
_ATTEMPTS: tuple[dict[str, Any], ...] = (
    {"method": "highs-ds", "options": {"presolve": False}},
    {"method": "highs-ds"},
    {"method": "highs-ipm"},
    {"method": "highs-ipm", "options": {"presolve": False}},
)
#: Constraints that are missed by no more than this count as met: it is the solver's tolerance.
_FEASIBLE = 1e-7
#: By how much limits are widened where a program is feasible only within that tolerance.
_HAIR = 1e-6


@dataclass(frozen=True)
class Shape:
    """Limits of the local exponent d log P(R) / d log R.

    ``fall`` and ``rise`` limit it at the top ranks: P(R) falls no faster than R^-fall and rises no
    faster than R^rise. With ``loosens``, the limits widen further down, where the sample sees more;
    without, they hold for every rank. With ``dents``, P(R) may rise at any speed among the ranks
    that the sample cannot see: training items that were left among the candidates take the first
    places and push the targets down. With ``first_free``, nothing is assumed about rank 1. People
    repeat themselves, and a model that knows this puts the last song or the usual basket there; a
    model that always puts the same wrong item there leaves a hole. ``reach`` is how far down the
    limits go, in multiples of N/n. They are needed for what the sample cannot see, and heaps of
    unscored items far down tell nothing about that.
    """

    fall: float
    rise: float
    dents: bool = False
    loosens: bool = True
    first_free: bool = False
    reach: float = math.inf

    def __post_init__(self) -> None:
        for name in ("fall", "rise"):
            value = getattr(self, name)
            if value != math.inf:
                check_real(name, value, low=0.0, hint="an exponent, or infinity for no limit")
        if self.reach != math.inf:
            check_real("reach", self.reach, low=0.0, hint="a multiple of N/n, or infinity")

    @property
    def limits_nothing(self) -> bool:
        """Return whether every P(R) has this shape."""
        return self.fall == self.rise == math.inf

    def exponents(self, ranks: FloatArray, blind_rank: float) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest exponent allowed at each rank."""
        reach = ranks / blind_rank
        extra = np.sqrt(1.0 + reach) - 1.0 if self.loosens else np.zeros_like(reach)
        extra[reach > self.reach] = math.inf
        lowest, highest = -self.fall - extra, self.rise + extra
        if self.dents:
            highest[reach < _DENTED] = math.inf
        if self.first_free:
            lowest[ranks < 2.0], highest[ranks < 2.0] = -math.inf, math.inf
        return lowest, highest

    def __str__(self) -> str:
        if self.limits_nothing:
            return "nothing about P(R)"
        parts = []
        if math.isfinite(self.fall):
            parts.append(f"falls no faster than R^-{self.fall:g}")
        if self.rise == 0.0:
            parts.append("never rises")
        elif math.isfinite(self.rise) and not self.dents:
            parts.append(f"rises no faster than R^{self.rise:g}")
        where = " near the top" if self.loosens else ""
        aside = " (rank 1 aside)" if self.first_free else ""
        return f"that P(R){where}{aside} " + " and ".join(parts)


#: Shapes by name. The exponents of ``power`` and ``depleted`` leave room around what recommenders
#: show: at the top of the bundled ranks, P(R) goes like R^-1.4 to R^0.2.
SHAPES: Mapping[str, Shape] = {
    "none": Shape(math.inf, math.inf),
    "power": Shape(1.5, 0.5, first_free=True, reach=8.0),
    "depleted": Shape(1.5, 0.5, dents=True, first_free=True, reach=8.0),
    "non-increasing": Shape(math.inf, 0.0, loosens=False),
}


def shape_for(shape: str | Shape | None, candidates: str | None) -> Shape:
    """Return the shape of this name, or the one that the ``candidates`` imply.

    Training items cannot fill the top only if the candidates were unseen.
    """
    if candidates is not None:
        check_choice("candidates", candidates, CANDIDATES)
    if isinstance(shape, Shape):
        return shape
    if shape is None:
        shape = "power" if candidates == "unseen" else "depleted"
    return SHAPES[check_choice("shape", shape, SHAPES, error=InputError)]


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
    evidence: tuple[MeanLimits, ...]
    shape: Shape
    blind_rank: float
    #: The error of each part of the evidence.
    alpha: float
    _solved: dict[bytes, Lowest] = field(default_factory=dict, repr=False)

    def lowest(self, weights: OverBins) -> Lowest:
        """Return the least value of ``weights @ P``; the greatest is minus that of ``-weights``."""
        key = weights.mean.tobytes()
        if key not in self._solved:
            self._solved[key] = self._solve(weights.hull(self._leaning)[0])
        return self._solved[key]

    @cached_property
    def feasible(self) -> bool:
        """Return whether any P(R) fits the data and the shape."""
        if self.strain <= 1.0:
            return True
        try:
            self._solve(np.zeros(len(self.grid)))
        except InfeasibleError:
            return False
        return True

    @cached_property
    @one_thread()
    def strain(self) -> float:
        """Return how much of the region data and shape need: nothing at 0, all of it at 1.

        The limits are moved towards what was observed until only one P(R) of the shape is left.
        Above 1 no P(R) is left: the data refute the shape.
        """
        seen = np.concatenate([rows.seen for rows in self._rows])
        limits = np.zeros(len(self._constraints))
        limits[: len(seen)] = seen
        only_room = np.append(np.zeros(len(self.grid)), 1.0)
        constraints = np.column_stack([self._constraints, limits - self._limits])
        result = _first_answer(only_room, constraints, limits, 1.0 - only_room)
        return math.inf if result.status != _OPTIMAL else float(result.fun)

    @property
    def strain_if_known(self) -> float | None:
        """Return `strain` if its program was solved before."""
        return vars(self).get("strain")

    @one_thread()
    def _solve(self, weights: FloatArray) -> Lowest:
        result = _solve_program(weights, self._constraints, self._limits)
        if result is None:
            return self._loosest(weights)
        offset, scores, start = float(result.fun), [], 0
        for part, rows in zip(self.evidence, self._rows, strict=True):
            multipliers = -result.ineqlin.marginals[start : start + len(rows.limits)]
            start += len(rows.limits)
            # The unknown part of an observed feature must not raise a lower bound.
            hidden = np.maximum(rows.seen - rows.features @ part.observed, 0.0)
            offset += float((rows.limits - hidden) @ multipliers)
            scores.append(-rows.features.T @ multipliers)
        return Lowest(float(result.fun), result.x, offset, tuple(scores))

    def _loosest(self, weights: FloatArray) -> Lowest:
        """Return the bound that needs no data, for programs that no solver can solve."""
        mass = np.zeros(len(weights))
        mass[int(weights.argmin())] = 1.0
        nothing = tuple(np.zeros(len(part.observed)) for part in self.evidence)
        least = float(weights.min())
        return Lowest(least, mass, least, nothing)

    @cached_property
    def _rows(self) -> tuple[Rows, ...]:
        return tuple(part.rows(self.alpha) for part in self.evidence)

    @cached_property
    def _constraints(self) -> FloatArray:
        least = [
            part.least(rows.features, self._leaning)
            for part, rows in zip(self.evidence, self._rows, strict=True)
        ]
        return np.concatenate([*least, self._shape_rows()])

    @cached_property
    def _limits(self) -> FloatArray:
        of_data = np.concatenate([rows.limits for rows in self._rows])
        return np.concatenate([of_data, np.zeros(len(self._constraints) - len(of_data))])

    @cached_property
    def _leaning(self) -> Leaning:
        """Return in which bins P(R) may be concentrated at either end.

        Where the shape limits how fast P(R) falls and rises, it is nearly even inside a bin.
        """
        middle = (self.grid.low + self.grid.high) / 2.0
        lowest, highest = self.shape.exponents(middle, self.blind_rank)
        return Leaning(np.isinf(lowest), np.isinf(highest))

    def _shape_rows(self) -> FloatArray:
        """Return rows that are at most zero when neighbouring densities obey the exponents."""
        width = self.grid.width.astype(np.float64)
        middle = np.log((self.grid.low + self.grid.high) / 2.0)
        step = np.diff(middle)
        lowest, highest = self.shape.exponents(np.exp(middle[:-1] + step / 2.0), self.blind_rank)
        here = np.arange(len(step))
        found = []
        # P[b + 1] / width >= P[b] / width * exp(lowest * step), and the same from above; each row
        # is scaled so that its largest coefficient is one.
        for sign, exponent in ((-1.0, lowest), (1.0, highest)):
            # Catalogues of very different sizes make limits so loose that they say nothing.
            kept = np.abs(exponent) * step <= _STEEPEST
            ratio = np.exp(np.where(kept, exponent, 0.0) * step) * width[1:] / width[:-1]
            scale = np.maximum(ratio, 1.0)
            rows = np.zeros((len(step), len(self.grid)))
            rows[here, here + 1], rows[here, here] = sign / scale, -sign * ratio / scale
            found.append(rows[kept])
        return np.concatenate(found)


def _solve_program(weights: FloatArray, constraints: FloatArray, limits: FloatArray) -> Any:
    """Return the result of the first solver that succeeds; None where none does."""
    ones = np.ones(len(weights))
    result = _first_answer(weights, constraints, limits, ones)
    if result.status != _OPTIMAL and _least_violation(constraints, limits) <= _FEASIBLE:
        # Near the border solvers give up, or find it infeasible for some weights and not for
        # others. A slightly wider region is on the safe side.
        result = _first_answer(weights, constraints, limits + _HAIR, ones)
        if result.status not in (_OPTIMAL, _INFEASIBLE):
            return None
    if result.status != _OPTIMAL:
        raise InfeasibleError
    return result


def _first_answer(
    weights: FloatArray, constraints: FloatArray, limits: FloatArray, ones: FloatArray
) -> Any:
    """Return the first result that is optimal or proves infeasibility, or else the last one."""
    for attempt in _ATTEMPTS:
        result = _linprog(weights, constraints, limits, ones, **attempt)
        if result.status in (_OPTIMAL, _INFEASIBLE):
            break
    return result


def _least_violation(constraints: FloatArray, limits: FloatArray) -> float:
    """Return by how much some constraint is missed at least: this program is always feasible."""
    rows, size = constraints.shape
    only_excess = np.append(np.zeros(size), 1.0)
    with_excess = np.column_stack([constraints, np.full(rows, -1.0)])
    result = _linprog(only_excess, with_excess, limits, 1.0 - only_excess, method="highs-ds")
    return 0.0 if result.fun is None else float(result.fun)


def _linprog(
    weights: FloatArray, constraints: FloatArray, limits: FloatArray, ones: FloatArray, **how: Any
) -> Any:
    from scipy.optimize import linprog

    how["options"] = {**how.get("options", {}), **_LIMITS}
    return linprog(weights, A_ub=constraints, b_ub=limits, A_eq=ones[None, :], b_eq=[1.0], **how)
