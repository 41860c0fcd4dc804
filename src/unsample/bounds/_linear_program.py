"""The smallest value of a metric over every P(R) that the data allow: a linear program.

    minimise   c'P
    over       P >= 0, sum P = 1,
    where      low <= C P <= high

C P are means over targets of functions of their sampled ranks. Such a function mostly says whether
the rank is at most some number: C P is then a share of targets. It may also be a number that a
paper prints. The limits hold for any number of targets. P lives on bins of ranks. Its mass may be
anywhere inside a bin, so each function takes the value there that makes the bound widest. So a
bound holds for every P(R), uniform inside its bins or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample._threads import one_thread
from unsample.sampling import RankGrid, SamplingModel
from unsample.uncertainty import clopper_pearson, hoeffding

#: With more targets, limits would be finer than what linear programs and scipy can resolve.
_MAX_TARGETS = 1e10
#: What scipy returns as the status of a program.
_OPTIMAL = 0
_INFEASIBLE = 2
#: Programs of this size take some hundred iterations, but near the border of feasibility a solver
#: may never end. So iterations and seconds of each attempt are limited.
_LIMITS = {"maxiter": 5_000, "time_limit": 2.0}
#: Tried one after the other: presolving costs more than it saves in programs this small, but fails
#: less often.
_ATTEMPTS: tuple[dict[str, Any], ...] = (
    {"method": "highs-ds", "options": {"presolve": False}},
    {"method": "highs-ds"},
    {"method": "highs-ipm"},
    {"method": "highs-ipm", "options": {"presolve": False}},
)
#: By how much limits are widened where no solver ends: a wider region is on the safe side.
_MARGIN = 1e-6


def extremes(
    function: Callable[[IntArray], FloatArray], grid: RankGrid
) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value in each bin of a function of the rank.

    The function is monotone, so these are its values at the first and the last rank of a bin.

    >>> grid = RankGrid(low=np.array([1, 2, 5]), items=10)
    >>> smallest, largest = extremes(lambda ranks: 1.0 / ranks, grid)
    >>> smallest.tolist(), largest.tolist()
    ([1.0, 0.25, 0.1], [1.0, 0.5, 0.2])
    """
    first = function(grid.low)
    last = function(grid.high)
    return np.minimum(first, last), np.maximum(first, last)


def probabilities_up_to(
    sampling: SamplingModel, low: IntArray, high: IntArray, ranks: IntArray
) -> FloatArray:
    """Return P(a sampled rank in a group or before | rank), for all groups but the last.

    ``low`` and ``high`` are the first and the last sampled rank of each group. Ranks beyond the
    catalogue act as its last one.

    At rank 3 of 5 half of the other items are better: each of two draws is one of them with
    probability 1/2.

    >>> sampling = SamplingModel(items=5, sampled=2)
    >>> groups = np.array([1, 2, 3])
    >>> probabilities_up_to(sampling, groups, groups, np.array([3])).tolist()
    [[0.25], [0.75]]
    """
    inside = np.minimum(ranks, sampling.items).astype(np.float64)
    return np.asarray(sampling.range_pmf(low, high, rank=inside).cumsum(axis=0)[:-1])


@dataclass(frozen=True, eq=False)
class MeanLimits:
    """Limits of the means over targets of functions of the group of their sampled ranks.

    ``features`` has a row for each function, with a number for each group; their means over these
    targets are in ``low..high``.
    """

    #: The extremes in each bin of P(up to a group | rank): a row for each group but the last.
    min_probability: FloatArray
    max_probability: FloatArray
    #: How many equally weighted targets the means stand for.
    targets: float
    features: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    @one_thread()
    def of_shares(
        cls,
        shares: FloatArray,
        min_probability: FloatArray,
        max_probability: FloatArray,
        targets: float,
    ) -> MeanLimits:
        """Return the limits where the share of targets in each group is known.

        >>> nothing = np.zeros((2, 1))
        >>> limits = MeanLimits.of_shares(np.array([0.5, 0.3, 0.2]), nothing, nothing, 100.0)
        >>> limits.features.tolist(), limits.low.round(3).tolist()
        ([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], [0.5, 0.8])
        """
        below = np.tri(len(shares) - 1, len(shares))
        means = (below @ shares).clip(0.0, 1.0)
        return cls(
            min_probability=min_probability,
            max_probability=max_probability,
            targets=targets,
            features=below,
            low=means,
            high=means,
        )

    def region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return limits that hold all expected features at once, with error ``alpha``.

        Each feature takes an equal part of the error, half of it at either end. Indicators have the
        limits of Clopper and Pearson. Other functions have the limits of Hoeffding, which hold for
        any bounded variable. They also hold for a fixed set of users, whose counts vary less than
        binomial ones.

        One of two shares is 1/2 among 100 targets, at an error of 5 %, half of it at either end:

        >>> nothing = np.zeros((1, 1))
        >>> limits = MeanLimits.of_shares(np.array([0.5, 0.5]), nothing, nothing, 100.0)
        >>> lower, upper = limits.region(0.05)
        >>> lower.round(3).tolist(), upper.round(3).tolist()
        ([0.398], [0.602])
        """
        part = alpha / (2 * max(len(self.features), 1))
        targets = min(self.targets, _MAX_TARGETS)
        smallest = self.features.min(axis=1)
        span = np.maximum(self.features.max(axis=1) - smallest, 1e-300)
        low = ((self.low - smallest) / span).clip(0.0, 1.0)
        high = ((self.high - smallest) / span).clip(0.0, 1.0)
        indicator = np.isin(self.features, (0.0, 1.0)).all(axis=1)
        exact_low, exact_high = clopper_pearson(low, high, targets=targets, part=part)
        any_low, any_high = hoeffding(low, high, targets=targets, part=part)
        lower = smallest + span * np.where(indicator, exact_low, any_low)
        upper = smallest + span * np.where(indicator, exact_high, any_high)
        return lower, upper

    @one_thread()
    def rows(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the rows of a program and their upper limits, with error ``alpha``.

        With the value f_g in group g and C_g = P(a rank in group g or before), the expected feature
        is a sum by parts: (f_1 - f_2) C_1 + (f_2 - f_3) C_2 + ... + f_last. In each bin C_g takes
        the value that makes the row smallest. Lower limits are upper limits of minus the feature.

        A share has a probability of 0.2 to 0.3 in the only bin:

        >>> smallest, largest = np.array([[0.2]]), np.array([[0.3]])
        >>> limits = MeanLimits.of_shares(np.array([0.5, 0.5]), smallest, largest, 100.0)
        >>> rows, upper = limits.rows(0.05)
        >>> rows.tolist(), upper.round(3).tolist()           # 0.2 P <= 0.602 and -0.3 P <= -0.398
        ([[0.2], [-0.3]], [0.602, -0.398])
        """
        lower, upper = self.region(alpha)
        features = np.concatenate([self.features, -self.features])
        factors = features[:, :-1] - features[:, 1:]
        rows = np.maximum(factors, 0.0) @ self.min_probability
        rows += np.minimum(factors, 0.0) @ self.max_probability
        return rows + features[:, -1:], np.concatenate([upper, -lower])

    def proved(self, alpha: float, ends: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return rows for cumulated shares that hold whatever targets have in common.

        Where all targets share their items, their ranks depend on each other in an unknown way.
        Whatever the dependence, a mean of variables exceeds the mean of their tail means at
        ``tail`` with probability ``tail`` at most, because tail means are subadditive (Rockafellar
        and Uryasev 2002). For the indicator of r <= end the tail mean is min(1, P(r <= end | R) /
        tail). So with that probability

            share of targets with r <= end  <=  sum over R of P(R) min(1, P(r <= end | R) / tail),

        and likewise for r > end. ``ends`` are the last ranks of the groups. Shares whose ends
        differ by less than a factor are nearly equal, and would only take parts of the error.
        """
        chosen = _thinned(ends)
        tail = alpha / (2.0 * len(chosen))
        shares = self.low[chosen]
        observed = np.concatenate([shares, 1.0 - shares])
        # Targets are drawn as well: their mean may be less than the mean over all targets.
        lower, _ = hoeffding(observed, observed, targets=self.targets, part=tail * _OF_TARGETS)
        up_to = self.max_probability[chosen]
        beyond = 1.0 - self.min_probability[chosen]
        probabilities = np.concatenate([up_to, beyond]).clip(0.0, 1.0)
        tail_means = np.minimum(probabilities / (tail * (1.0 - _OF_TARGETS)), 1.0)
        return -tail_means, -lower


#: The part of the error of a proved limit that is for the targets; the rest is for the items.
_OF_TARGETS = 0.1
#: Where cumulated shares of dependent targets must hold at once, their ends differ by this factor.
_END_RATIO = 3.0


def _thinned(ends: IntArray) -> list[int]:
    """Return the indices of ends that differ by the factor.

    >>> _thinned(np.array([1, 2, 3, 5, 8, 10]))
    [0, 2, 5]
    """
    chosen: list[int] = []
    last = 0.0
    for index, end in enumerate(ends.tolist()):
        if end >= max(last + 1.0, last * _END_RATIO):
            chosen.append(index)
            last = end
    return chosen


@one_thread()
def minimum_value(weights: FloatArray, rows: FloatArray, limits: FloatArray) -> float:
    """Return the minimum of ``weights @ P`` over every P with ``rows @ P`` within the limits.

    Where no P fits the data, or no solver ends, it is the smallest of the weights.

    P is on two bins with the weights 1 and 0, and at least 0.3 of it is on the first bin.

    >>> rows, limits = np.array([[-1.0, 0.0]]), np.array([-0.3])
    >>> round(minimum_value(np.array([1.0, 0.0]), rows, limits), 6)
    0.3
    """
    for margin in (0.0, _MARGIN):
        solution = _solved(weights, rows, limits=limits + margin)
        if solution is not None and solution.status == _OPTIMAL:
            # The solution has a tolerance, and may be a little below what is possible.
            return max(float(solution.fun), float(weights.min()))
    return float(weights.min())


@one_thread()
def is_feasible(rows: FloatArray, limits: FloatArray) -> bool:
    """Return whether some P is within the limits, up to a small margin.

    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> is_feasible(rows, np.array([0.6, 0.6])), is_feasible(rows, np.array([0.4, 0.4]))
    (True, False)
    """
    solution = _solved(np.zeros(rows.shape[1]), rows, limits=limits + _MARGIN)
    return bool(solution is None or solution.status == _OPTIMAL)


def _solved(weights: FloatArray, rows: FloatArray, limits: FloatArray) -> Any:
    """Return the result of the first solver that ends; None where none does."""
    for attempt in _ATTEMPTS:
        result = _linprog(weights, rows, limits=limits, **attempt)
        if result.status in (_OPTIMAL, _INFEASIBLE):
            return result
    return None


def _linprog(weights: FloatArray, rows: FloatArray, limits: FloatArray, **how: Any) -> Any:
    """Return what scipy's solver makes of a program over shares that sum to one."""
    from scipy.optimize import linprog

    how["options"] = {**how.get("options", {}), **_LIMITS}
    ones = np.ones((1, len(weights)))
    return linprog(weights, A_ub=rows, b_ub=limits, A_eq=ones, b_eq=[1.0], **how)
