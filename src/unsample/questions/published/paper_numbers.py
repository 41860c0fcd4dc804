"""The numbers that a paper prints: their rounding errors, and whether any ranks give them all."""

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

#: The smallest rounding error: float64 holds no more digits.
_MIN_HALF_UNIT = 1e-12
#: The most decimals that are shown.
_MAX_DECIMALS = 15
#: The largest exponent of ten that decimal arithmetic and floats can hold.
_MAX_EXPONENT = 300
#: Two numbers contradict each other only if they differ by more than this.
_MIN_CLASH = 1e-6
#: A number is too low if it is so many standard errors below what evenly spread ranks give.
_STANDARD_ERRORS = 3.0
#: The share of a rounding interval that is left out at its ends: a tie is rounded in one direction.
_TIE = 1e-4
#: A number of hits that is so near to a whole number is whole.
_WHOLE = 1e-9


@dataclass(frozen=True)
class Printed:
    """A sampled metric as a paper prints it, and the number of its decimals.

    >>> number = Printed(_metrics.parse("HR@10"), value=0.69, decimals=3)
    >>> str(number), round(number.low, 4), round(number.high, 4)
    ('HR@10 = 0.690', 0.6895, 0.6905)
    """

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
        return max(10.0**-self.decimals / 2.0, _MIN_HALF_UNIT)

    @property
    def low(self) -> float:
        """Return the smallest number that rounds to the printed value."""
        return self.value - self.half_unit

    @property
    def high(self) -> float:
        """Return the largest number that rounds to the printed value."""
        return self.value + self.half_unit

    def __str__(self) -> str:
        decimals = min(self.decimals, _MAX_DECIMALS)
        return f"{self.name} = {self.value:.{decimals}f}"


# -- reading --------------------------------------------------------------------------------------


def read_numbers(
    values: Mapping[str, float | str | Decimal],
    *,
    sampled: int,
    percent: bool,
) -> tuple[Printed, ...]:
    """Read metric names and printed values, and refuse values that no sampled evaluation gives.

    >>> [str(number) for number in read_numbers({"HR@1": 0.2, "HR@10": 0.69}, sampled=99,
    ...                                         percent=False)]
    ['HR@1 = 0.20', 'HR@10 = 0.69']

    Raises
    ------
    InputError
        If a value is no number or cannot be, or a metric is given twice.
    MetricError
        If there is no such metric, or its K is larger than the sample.
    """
    if not isinstance(values, Mapping) or not values:
        raise InputError(
            f'numbers must be a mapping such as {{"HR@1": 0.18, "HR@10": 0.69}}, got {values!r:.80}'
        )
    exact = {name: _as_decimal(name, value) for name, value in values.items()}
    # A float 0.40 is read as 0.4, so all floats have as many decimals as the longest of them.
    floats = {name for name, value in values.items() if not isinstance(value, str | Decimal)}
    longest = max((_decimals_of(exact[name]) for name in floats), default=0)
    numbers: list[Printed] = []
    for name, value in exact.items():
        metric = _metrics.parse(name)
        decimals = longest if name in floats else _decimals_of(value)
        if percent:
            number = Printed(metric, value=float(value.scaleb(-2)), decimals=decimals + 2)
        else:
            number = Printed(metric, value=float(value), decimals=decimals)
        for other in numbers:
            if other.metric.same_as(metric):
                raise InputError(
                    f"numbers must give each metric once, got {other.name} and {name}, which are "
                    "the same"
                )
        _check_possible(number, sampled, percent=percent)
        numbers.append(number)
    return tuple(numbers)


def _as_decimal(name: str, value: object) -> Decimal:
    """Return a number with the decimals with which it is printed."""
    # The shortest text of a float is what was typed; its binary value has more digits.
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation as problem:
        raise InputError(f"{name} must be a number as printed, got {value!r}") from problem
    # The adjusted exponent of NaN and infinity is 0.
    if not number.is_finite() or abs(number.adjusted()) > _MAX_EXPONENT:
        raise InputError(f"{name} must be a finite number as printed, got {value!r}")
    return number


def _decimals_of(number: Decimal) -> int:
    """Return how many decimals a finite number is written with.

    >>> _decimals_of(Decimal("0.690")), _decimals_of(Decimal("7e2"))
    (3, 0)
    """
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


def _check_possible(number: Printed, sampled: int, *, percent: bool) -> None:
    """Refuse a value that no ranks give."""
    metric = number.metric
    name = number.name
    if metric.k is not None and metric.k > sampled:
        raise MetricError(
            f"K of {name} must be at most sampled = {sampled}, got {metric.k}; among "
            f"{sampled + 1} items it says nothing more than {metric.label} without @K"
        )
    weights = metric.weights(np.arange(1, sampled + 2), sampled + 1)
    smallest = float(weights.min())
    largest = float(weights.max())
    if smallest == largest:
        raise MetricError(
            f"{name} must have a K, such as {name}@10, got none: over all {sampled + 1} items it "
            f"is {smallest:g} for every model"
        )
    if smallest < number.high and number.low < largest:
        return
    message = f"{name} must be between {smallest:g} and {largest:g}, got {number.value:g}"
    if not percent and 1.0 < number.value <= 100.0:
        message += "; is it a percentage? then say so (percent=True, --percent)"
    raise InputError(message)


def on_counts(numbers: Iterable[Printed], users: int) -> list[str]:
    """Return a sentence if no numbers of hits over so many users give the printed hit rates.

    >>> number = Printed(_metrics.parse("HR@10"), value=0.690, decimals=3)
    >>> on_counts([number], users=7)[0].partition(";")[0]
    'no number of hits over users = 7 gives HR@10 = 0.690 (the nearest are 0.5714 and 0.7143)'
    """
    odd: list[str] = []
    for number in numbers:
        # A hit rate is a whole number of hits, divided by the number of users.
        next_hits = math.ceil(number.low * users - _WHOLE)
        if number.metric.family.counts_hits and next_hits > number.high * users + _WHOLE:
            below = (next_hits - 1) / users
            above = next_hits / users
            odd.append(f"{number} (the nearest are {below:.4g} and {above:.4g})")
    if not odd:
        return []
    text = (
        f"no number of hits over users = {users:,} gives {' or '.join(odd)}; check users, or say "
        "runs if these are means of several"
    )
    return [text]


# -- what the numbers tell of ranks ---------------------------------------------------------------


class Paper:
    """The numbers of a paper and the evaluation that they come from.

    The numbers distinguish sampled ranks up to the largest K, and no ranks beyond it. So each rank
    up to K is a group of its own, and all later ranks are the last group.

    >>> numbers = read_numbers({"HR@1": "0.18", "HR@3": "0.40"}, sampled=99, percent=False)
    >>> paper = Paper(SamplingModel(items=3706, sampled=99), users=6040, numbers=numbers)
    >>> paper.low.tolist(), paper.high.tolist(), paper.features.tolist()
    ([1, 2, 3, 4], [1, 2, 3, 100], [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]])
    >>> low, high = paper.bounds(_metrics.parse("Recall@100"), level=0.95)
    >>> round(low, 2), round(high, 2)
    (0.12, 0.71)
    """

    def __init__(
        self, sampling: SamplingModel, *, users: int, numbers: tuple[Printed, ...]
    ) -> None:
        self.sampling = sampling
        self.users = users
        self.numbers = numbers
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
        hit_rates = self._hit_rates([number.value for number in self.numbers])
        ks = [*hit_rates]
        # Rounding can change the order of two equal hit rates; a true one never falls as K grows.
        up_to_k = np.maximum.accumulate(np.clip([*hit_rates.values(), 1.0], 0.0, 1.0))
        targets_up_to_k = np.rint(up_to_k * self.users).astype(np.int64)
        return RankCounts.from_ranges(
            np.array([1, *(k + 1 for k in ks)]),
            np.array([*ks, self.sampling.n]),
            count=np.diff(targets_up_to_k, prepend=0),
            design=self.sampling,
        )

    def _hit_rates(self, values: Sequence[float]) -> dict[int, float]:
        """Return the hit rates among the ``values`` of all numbers, by K in ascending order."""
        hit_rates = {
            number.metric.k: value
            for number, value in zip(self.numbers, values, strict=True)
            if number.metric.family.counts_hits and number.metric.k is not None
        }
        return {k: hit_rates[k] for k in sorted(hit_rates)}

    def bounds(self, metric: Metric, level: float) -> tuple[float, float]:
        """Return the metric's smallest and largest value over every P(R) that gives the numbers."""
        grid = bounds_grid(self.counts, [metric.cutoff(self.sampling.items)])
        low, high = extremes(lambda ranks: metric.weights(ranks, self.sampling.items), grid)
        rows, limits = self._region(range(len(self.numbers)), alpha=1.0 - level, grid=grid)
        smallest = minimum_value(low, rows=rows, limits=limits)
        largest = -minimum_value(-high, rows=rows, limits=limits)
        return smallest, largest

    @cached_property
    def refuted(self) -> Sequence[int]:
        """Return the fewest numbers that no P(R) gives, except by chance; none if one gives all."""
        grid = bounds_grid(self.counts, [])
        return self.fewest(lambda some: is_feasible(*self._region(some, alpha=0.05, grid=grid)))

    def _region(
        self, numbers: Sequence[int], *, alpha: float, grid: RankGrid
    ) -> tuple[FloatArray, FloatArray]:
        """Return the limits that some of the numbers set to P(R), with the error ``alpha``.

        They are the rows and the upper limits of a linear program.
        """
        some = list(numbers)
        in_groups = partial(probabilities_up_to, self.sampling, self.low, self.high)
        min_probability, max_probability = extremes(in_groups, grid)
        limits = MeanLimits(
            min_probability,
            max_probability,
            targets=float(self.users),
            features=self.features[some],
            low=(self.means - self.half_units)[some],
            high=(self.means + self.half_units)[some],
        )
        return limits.rows(alpha)

    def below_even(self) -> list[tuple[Printed, float]]:
        """Return the numbers that are lower than evenly spread ranks give, with what these give.

        The hit rates tell how many ranks lie between one printed K and the next. Let w(r) be the
        weights of a metric that fall with r. If no rank is more likely than one above it, the mean
        of the metric is at least

            sum over the printed K of  HR@K (w_K - w_K'),

        where w_K is the mean of w(r) over the ranks after the previous K and up to K, and w_K' is
        the same for the next K. So NDCG@10 is at least 0.4544 HR@10:

        >>> numbers = read_numbers({"HR@10": "0.690", "NDCG@10": "0.250"}, sampled=99,
        ...                        percent=False)
        >>> paper = Paper(SamplingModel(items=3706, sampled=99), users=6040, numbers=numbers)
        >>> [(number.name, round(even, 3)) for number, even in paper.below_even()]
        [('NDCG@10', 0.313)]
        """
        hit_rates = self._hit_rates([number.low for number in self.numbers])
        if not hit_rates:
            return []
        lasts = np.array([*hit_rates], dtype=np.int64)
        starts = np.append(0, lasts[:-1])
        widths = lasts - starts
        up_to_k = np.maximum.accumulate([max(rate, 0.0) for rate in hit_rates.values()])
        shares = np.diff(up_to_k, prepend=0.0)
        ranks = np.arange(1, lasts[-1] + 1)
        low_numbers = []
        for number in self.numbers:
            weights = number.metric.weights(ranks, self.sampling.n)
            rises = (np.diff(weights) > 0.0).any()
            if number.metric.family.counts_hits or rises:
                continue
            mean = np.add.reduceat(weights, starts) / widths
            mean_square = np.add.reduceat(weights**2, starts) / widths
            even = float(shares @ mean)
            variance = float(shares @ (mean_square - mean**2).clip(0.0))
            error = math.sqrt(variance / self.users)
            if number.high < even - _STANDARD_ERRORS * error:
                low_numbers.append((number, even))
        return low_numbers

    # -- contradictions ---------------------------------------------------------------------

    @property
    def consistent(self) -> bool:
        """Return whether some sampled ranks give all the numbers."""
        return is_feasible(*self._of_histograms(range(len(self.numbers))))

    def check_consistent(self) -> None:
        """Refuse numbers that no sampled ranks give, and name the fewest that contradict."""
        clash = self.fewest(lambda some: is_feasible(*self._of_histograms(some)))
        if not clash:
            return
        *others, last = clash
        number = self.numbers[last]
        weights = self.features[last]
        rows, limits = self._of_histograms(others)
        smallest = minimum_value(weights, rows=rows, limits=limits)
        largest = -minimum_value(-weights, rows=rows, limits=limits)
        decimals = min(number.decimals, _MAX_DECIMALS) + 1
        listed = " and ".join(str(self.numbers[index]) for index in others)
        raise ContradictionError(
            f"{listed} and {number} contradict each other: with {listed}, {number.name} must be in "
            f"{limits_as_text(smallest, largest, decimals=decimals)} for ranks among "
            f"{self.sampling.n} items; check sampled, and the numbers",
            tuple(self.numbers[index].name for index in clash),
        )

    def fewest(self, possible: Callable[[Sequence[int]], bool]) -> Sequence[int]:
        """Return the fewest numbers that are not possible together; none if all of them are."""
        every = range(len(self.numbers))
        if possible(every):
            return ()
        parts = chain.from_iterable(combinations(every, size) for size in every[1:])
        return next((some for some in parts if not possible(some)), every)

    def _of_histograms(self, numbers: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return the limits that some of the numbers set to histograms of sampled ranks.

        They are the rows and the upper limits of a linear program. Its unit is half a unit of the
        last digit, so that the tolerance of the solver is small.
        """
        some = list(numbers)
        half_units = self.half_units[some]
        scale = np.maximum(half_units, _MIN_CLASH)
        features = self.features[some] / scale[:, None]
        means = self.means[some] / scale
        reach = half_units * (1.0 - _TIE) / scale
        rows = np.concatenate([features, -features])
        limits = np.concatenate([means + reach, reach - means])
        return rows, limits
