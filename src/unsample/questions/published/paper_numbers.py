"""Numbers that a paper prints: their rounding errors, and whether any ranks give all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import chain, combinations

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray
from unsample._rounding import limits_as_text
from unsample._threads import cached_property
from unsample.bounds import (
    MeanLimits,
    bounds_grid,
    extremes,
    is_feasible,
    minimum_value,
    probabilities_up_to,
)
from unsample.counts import RankCounts
from unsample.errors import ContradictionError, InputError, MetricError
from unsample.metrics import Metric
from unsample.sampling import RankGrid, SamplingModel

#: The smallest rounding error: more digits than float64 has tell nothing more.
_FINEST, _MOST_DECIMALS = 1e-12, 15
_MOST_DIGITS = 300
#: Numbers are not compared with each other more finely than this.
_FINEST_CLASH = 1e-6
#: So many standard errors below what even ranks give, a number is lower than probability makes it.
_ERRORS = 3.0
#: The share of a rounding interval that is left out at its ends: a tie is rounded in one direction.
_TIE = 1e-4
#: A number of hits this near to a whole one is whole.
_WHOLE = 1e-9


@dataclass(frozen=True)
class Printed:
    """A sampled metric as printed, with so many decimals."""

    metric: Metric
    value: float
    decimals: int

    @property
    def name(self) -> str:
        """Return the metric as it was named."""
        return self.metric.name

    @property
    def half_unit(self) -> float:
        """Return how far the true mean may be from the printed value."""
        return max(10.0**-self.decimals / 2.0, _FINEST)

    @property
    def low(self) -> float:
        """Return the smallest number that is printed like this."""
        return self.value - self.half_unit

    @property
    def high(self) -> float:
        """Return the largest number that is printed like this."""
        return self.value + self.half_unit

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.{min(self.decimals, _MOST_DECIMALS)}f}"


# -- reading --------------------------------------------------------------------------------------


def read_numbers(
    values: Mapping[str, float | str | Decimal],
    *,
    sampled: int,
    percent: bool,
) -> tuple[Printed, ...]:
    """Read metric names and printed values, and refuse what no sampled evaluation can print."""
    if not isinstance(values, Mapping) or not values:
        raise InputError(
            f'numbers must be a mapping such as {{"HR@1": 0.18, "HR@10": 0.69}}, got {values!r:.80}'
        )
    exact = {name: _as_decimal(name, value) for name, value in values.items()}
    # A float 0.40 is read as 0.4, so all floats have as many digits as the longest of them.
    floats = {name for name, value in values.items() if not isinstance(value, str | Decimal)}
    longest = max((exact[name][1] for name in floats), default=0)
    numbers: list[Printed] = []
    for name, (value, own) in exact.items():
        decimals = longest if name in floats else own
        number = Printed(_metrics.parse(name), float(value), decimals)
        if percent:
            number = Printed(number.metric, float(value.scaleb(-2)), decimals + 2)
        for other in numbers:
            if other.metric.same_as(number.metric):
                raise InputError(
                    f"numbers must give each metric once, got {other.name} and {name}, which are "
                    "the same"
                )
        _check_possible(number, sampled, percent=percent)
        numbers.append(number)
    return tuple(numbers)


def _as_decimal(name: str, value: object) -> tuple[Decimal, int]:
    """Return a number as it is printed, and how many decimals it has."""
    # The shortest text of a float is what was typed; its binary value has more digits.
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation as problem:
        raise InputError(f"{name} must be a number as printed, got {value!r}") from problem
    exponent = number.as_tuple().exponent
    # Exponents too large for a float are too large for decimal arithmetic as well.
    if isinstance(exponent, str) or abs(number.adjusted()) > _MOST_DIGITS:
        raise InputError(f"{name} must be a finite number as printed, got {value!r}")
    return number, max(0, -exponent)


def _check_possible(number: Printed, sampled: int, *, percent: bool) -> None:
    """Refuse a value that no ranks give."""
    metric, name = number.metric, number.name
    if metric.k is not None and metric.k > sampled:
        raise MetricError(
            f"K of {name} must be at most sampled = {sampled}, got {metric.k}; among "
            f"{sampled + 1} items it says nothing more than {metric.label} without @K"
        )
    weights = metric.weights(np.arange(1, sampled + 2), sampled + 1)
    least, most = float(weights.min()), float(weights.max())
    if number.high <= least or number.low >= most:
        hint = "; is it a percentage? then say so (percent=True, --percent)"
        per_cent = not percent and 1.0 < number.value <= 100.0
        raise InputError(
            f"{name} must be between {least:g} and {most:g}, got {number.value:g}"
            + (hint if per_cent else "")
        )


def on_counts(numbers: Iterable[Printed], users: int) -> list[str]:
    """Return a sentence if no numbers of hits over so many users give the printed hit rates.

    >>> number = Printed(_metrics.parse("HR@10"), 0.690, decimals=3)
    >>> on_counts([number], users=7)[0].partition(";")[0]
    'no number of hits over users = 7 gives HR@10 = 0.690 (the nearest are 0.5714 and 0.7143)'
    """
    odd = []
    for number in numbers:
        # A hit rate is a whole number of hits, divided by the number of users.
        hits = math.ceil(number.low * users - _WHOLE)
        if number.metric.family.counts_hits and hits > number.high * users + _WHOLE:
            low, high = (hits - 1) / users, hits / users
            odd.append(f"{number} (the nearest are {low:.4g} and {high:.4g})")
    if not odd:
        return []
    text = (
        f"no number of hits over users = {users:,} gives {' or '.join(odd)}; check users, or say "
        "runs if these are means of several"
    )
    return [text]


# -- what they say of ranks -----------------------------------------------------------------------


class Paper:
    """The numbers of a paper and the evaluation they come from.

    The numbers distinguish sampled ranks up to the largest K, and not those beyond. So each rank up
    to K is a group of its own, and all later ranks are the last group.
    """

    def __init__(self, sampling: SamplingModel, users: int, numbers: tuple[Printed, ...]) -> None:
        self.sampling, self.users, self.numbers = sampling, users, numbers
        last = max(number.metric.cutoff(sampling.n) for number in numbers)
        #: The first and the last rank of each group.
        self.low: IntArray = np.arange(1, min(last + 1, sampling.n) + 1)
        self.high: IntArray = np.append(self.low[1:] - 1, sampling.n)
        #: The weights of the printed metrics (rows) at the ranks of each group. If the last group
        #: has several ranks, every metric with a K is zero there.
        self.features = np.stack(
            [number.metric.weights(self.low, sampling.n) for number in numbers]
        )
        self.means = np.array([number.value for number in numbers])
        self.half_units = np.array([number.half_unit for number in numbers])

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the printed metrics."""
        return tuple(number.metric for number in self.numbers)

    @cached_property
    def counts(self) -> RankCounts:
        """Return how many targets are between the K of the hit rates, as whole numbers."""
        hits = {n.metric.k: n.value for n in self.numbers if n.metric.family.counts_hits}
        ends = sorted(k for k in hits if k is not None)
        # Rounding can change the order of two equal hit rates; a true one never falls as K grows.
        shares = np.maximum.accumulate(np.clip([hits[k] for k in ends], 0.0, 1.0))
        below = np.rint(np.append(shares, 1.0) * self.users).astype(np.int64)
        edges = np.array([0, *ends, self.sampling.n])
        return RankCounts.from_ranges(
            edges[:-1] + 1, edges[1:], np.diff(below, prepend=0), self.sampling
        )

    def bounds(self, metric: Metric, level: float) -> tuple[float, float]:
        """Return the metric's least and greatest value over every P(R) that gives the numbers."""
        grid = bounds_grid(self.counts, [metric.cutoff(self.sampling.items)])
        low, high = extremes(lambda ranks: metric.weights(ranks, self.sampling.items), grid)
        region = self._region(range(len(self.numbers)), 1.0 - level, grid)
        return minimum_value(low, *region), -minimum_value(-high, *region)

    @cached_property
    def refuted(self) -> Sequence[int]:
        """Return the fewest numbers that no P(R) gives but for chance; none if one gives all."""
        grid = bounds_grid(self.counts, [])
        return self.fewest(lambda rows: is_feasible(*self._region(rows, 0.05, grid)))

    def _region(
        self, rows: Sequence[int], alpha: float, grid: RankGrid
    ) -> tuple[FloatArray, FloatArray]:
        """Return what some of the numbers say of P(R), with this error."""
        kept = list(rows)
        limits = MeanLimits(
            *extremes(partial(probabilities_up_to, self.sampling, self.low, self.high), grid),
            float(self.users),
            self.features[kept],
            (self.means - self.half_units)[kept],
            (self.means + self.half_units)[kept],
        )
        return limits.rows(alpha)

    def below_even(self) -> list[tuple[Printed, float]]:
        """Return the numbers below what ranks give that are spread evenly between the hit rates.

        With each, what even ranks give. A mean of weights w(r) that fall with r is, if no rank is
        more likely than one above it, at least

            sum over the printed K of  HR@K (w_K - w_K'),

        where w_K is the mean of w(r) over the ranks from the K before to K, and K' is the next. So
        NDCG@10 is at least 0.4544 HR@10, and with HR@5 at least 0.2707 HR@5 + 0.3190 HR@10.
        """
        hits = {n.metric.k: n.low for n in self.numbers if n.metric.family.counts_hits}
        ends = np.array(sorted(k for k in hits if k is not None), dtype=np.int64)
        if not len(ends):
            return []
        shares = np.maximum.accumulate([max(hits[k], 0.0) for k in ends.tolist()])
        ranks, starts = np.arange(1, ends[-1] + 1), np.append(0, ends[:-1])
        found = []
        for number in self.numbers:
            weights = number.metric.weights(ranks, self.sampling.n)
            if number.metric.family.counts_hits or (np.diff(weights) > 0.0).any():
                continue
            mean, square = (
                np.add.reduceat(each, starts) / (ends - starts) for each in (weights, weights**2)
            )
            within = np.diff(shares, prepend=0.0)
            least = float(within @ mean)
            error = math.sqrt(float(within @ (square - mean**2).clip(0.0)) / self.users)
            if number.high < least - _ERRORS * error:
                found.append((number, least))
        return found

    # -- contradictions ---------------------------------------------------------------------

    @property
    def consistent(self) -> bool:
        """Return whether some sampled ranks give all the numbers."""
        return is_feasible(*self._of_histograms(range(len(self.numbers))))

    def check_consistent(self) -> None:
        """Refuse numbers that no sampled ranks give, and name the fewest that contradict."""
        clash = self.fewest(lambda rows: is_feasible(*self._of_histograms(rows)))
        if not clash:
            return
        *others, last = clash
        weights, number = self.features[last], self.numbers[last]
        region, digits = self._of_histograms(others), min(number.decimals, _MOST_DECIMALS) + 1
        least, most = minimum_value(weights, *region), -minimum_value(-weights, *region)
        given = " and ".join(str(self.numbers[row]) for row in others)
        raise ContradictionError(
            f"{given} and {number} contradict each other: with {given}, {number.name} must be in "
            f"{limits_as_text(least, most, digits)} for ranks among {self.sampling.n} items; check "
            "sampled, and the numbers",
            tuple(self.numbers[row].name for row in clash),
        )

    def fewest(self, possible: Callable[[Sequence[int]], bool]) -> Sequence[int]:
        """Return the fewest numbers that are not possible together; none if all are possible."""
        every = range(len(self.numbers))
        if possible(every):
            return ()
        parts = chain.from_iterable(combinations(every, size) for size in every[1:])
        return next((rows for rows in parts if not possible(rows)), every)

    def _of_histograms(self, rows: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return what some of the numbers say of histograms of sampled ranks.

        It is in half units of the last digit, so that the tolerance of the solver is small.
        """
        kept = list(rows)
        scale = np.maximum(self.half_units[kept], _FINEST_CLASH)
        features, value = self.features[kept] / scale[:, None], self.means[kept] / scale
        half = self.half_units[kept] * (1.0 - _TIE) / scale
        return np.concatenate([features, -features]), np.concatenate([value + half, half - value])
