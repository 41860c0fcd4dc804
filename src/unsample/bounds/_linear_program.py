"""The smallest value of a metric over every P(R) that the data allow: a linear program.

    minimise   c'P
    over       P >= 0, sum P = 1,
    where      low <= C P <= high

C P are means over targets of functions of their sampled ranks: mostly whether the rank is at most
some number, so that C P is a share of targets, or a number that a paper prints. Their limits hold
for any number of targets. P lives on bins of ranks. Its mass may be anywhere inside a bin, so each
function takes the value there that makes the bound widest: a bound holds for every P(R), also for
one that is not even inside its bins.
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
_OPTIMAL, _INFEASIBLE = 0, 2
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
    """
    first, last = function(grid.low), function(grid.high)
    return np.minimum(first, last), np.maximum(first, last)


def probabilities_up_to(
    sampling: SamplingModel, low: IntArray, high: IntArray, ranks: IntArray
) -> FloatArray:
    """Return P(a sampled rank in a group or before | rank), for all groups but the last.

    ``low`` and ``high`` are the first and the last sampled rank of each group. Ranks beyond the
    catalogue act as its last one.
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
        """Return the limits where the share of targets in each group is known."""
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

        Each feature takes an equal part of the error. Indicators have Clopper-Pearson limits, other
        functions those of Hoeffding, which hold for any bounded variable. It also holds for a fixed
        set of users, whose counts vary less than binomial ones.
        """
        part = alpha / (2 * max(len(self.features), 1))
        targets = min(self.targets, _MAX_TARGETS)
        smallest, largest = self.features.min(axis=1), self.features.max(axis=1)
        span = np.maximum(largest - smallest, 1e-300)
        low = ((self.low - smallest) / span).clip(0.0, 1.0)
        high = ((self.high - smallest) / span).clip(0.0, 1.0)
        indicator = np.isin(self.features, (0.0, 1.0)).all(axis=1)
        exact = clopper_pearson(low, high, targets=targets, part=part)
        bounded = hoeffding(low, high, targets=targets, part=part)
        lower, upper = (
            smallest + span * np.where(indicator, *ends)
            for ends in zip(exact, bounded, strict=True)
        )
        return lower, upper

    @one_thread()
    def rows(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the rows of a program and their upper limits, with error ``alpha``.

        A feature is a weighted sum of cumulated groups, each of which takes the value in a bin that
        makes the row smallest.
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
        # Targets are drawn as well: their mean may be less than that of all.
        lower, _ = hoeffding(observed, observed, targets=self.targets, part=tail * _OF_TARGETS)
        up_to, beyond = self.max_probability[chosen], 1.0 - self.min_probability[chosen]
        probabilities = np.concatenate([up_to, beyond]).clip(0.0, 1.0)
        tail_means = np.minimum(probabilities / (tail * (1.0 - _OF_TARGETS)), 1.0)
        return -tail_means, -lower


#: The part of the error of a proved limit that is for the targets; the rest is for the items.
_OF_TARGETS = 0.1
#: Where cumulated shares of dependent targets must hold at once, their ends differ by this factor.
_END_RATIO = 3.0


def _thinned(ends: IntArray) -> list[int]:
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
    """
    for widened in (0.0, _MARGIN):
        found = _solved(weights, rows, limits=limits + widened)
        if found is not None and found.status == _OPTIMAL:
            # The solution has a tolerance, and may be a little below what is possible.
            return max(float(found.fun), float(weights.min()))
    return float(weights.min())


@one_thread()
def is_feasible(rows: FloatArray, limits: FloatArray) -> bool:
    """Return whether some P is within the limits, up to a small margin."""
    found = _solved(np.zeros(rows.shape[1]), rows, limits=limits + _MARGIN)
    return bool(found is None or found.status == _OPTIMAL)


def _solved(weights: FloatArray, rows: FloatArray, limits: FloatArray) -> Any:
    """Return the result of the first solver that ends; None where none does."""
    for attempt in _ATTEMPTS:
        result = _linprog(weights, rows, limits=limits, **attempt)
        if result.status in (_OPTIMAL, _INFEASIBLE):
            return result
    return None


def _linprog(weights: FloatArray, rows: FloatArray, limits: FloatArray, **how: Any) -> Any:
    from scipy.optimize import linprog

    how["options"] = {**how.get("options", {}), **_LIMITS}
    ones = np.ones((1, len(weights)))
    return linprog(weights, A_ub=rows, b_ub=limits, A_eq=ones, b_eq=[1.0], **how)
