"""Printed numbers: a sampled metric, its value, and what rounding hides of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray, check_integer
from unsample.errors import ContradictionError, InputError, MetricError
from unsample.metrics import Metric

__all__ = ["Printed", "SampledRanks", "read_numbers"]

#: A number with more digits than float64 has is still not known better than this.
_FINEST = 1e-12
_MOST_DECIMALS = 15
_MOST_DIGITS = 300


@dataclass(frozen=True)
class Printed:
    """A sampled metric as printed: its value is within ``half_unit`` of the true mean."""

    #: The metric as it was named, for messages: HR@10 stays HR@10.
    name: str
    metric: Metric
    value: float
    half_unit: float

    @property
    def low(self) -> float:
        """Return the least number that is printed like this."""
        return self.value - self.half_unit

    @property
    def high(self) -> float:
        """Return the greatest number that is printed like this."""
        return self.value + self.half_unit

    def __str__(self) -> str:
        decimals = max(0, round(-math.log10(2.0 * self.half_unit)))
        return f"{self.name} = {self.value:.{min(decimals, _MOST_DECIMALS)}f}"


@dataclass(frozen=True)
class SampledRanks:
    """The sampled ranks that printed numbers tell apart: 1, 2, .., ``last``, and all beyond."""

    sampled: int
    last: int

    @classmethod
    def told_apart_by(cls, numbers: tuple[Printed, ...], sampled: int) -> SampledRanks:
        """Return the ranks up to the largest K among the numbers."""
        return cls(sampled, max(number.metric.cutoff(sampled + 1) for number in numbers))

    @property
    def low(self) -> IntArray:
        """Return the first rank of each group."""
        return np.arange(1, min(self.last + 1, self.sampled + 1) + 1)

    @property
    def high(self) -> IntArray:
        """Return the last rank of each group."""
        return np.append(self.low[1:] - 1, self.sampled + 1)

    def first_cut(self, numbers: tuple[Printed, ...]) -> int:
        """Return the last of the first ranks that no number tells apart: 10 where all is HR@10."""
        changes = np.diff(self.features(numbers), axis=1).any(axis=0)
        return int(np.argmax(changes)) + 1 if changes.any() else self.sampled + 1

    def features(self, numbers: tuple[Printed, ...]) -> FloatArray:
        """Return the weight of each metric (rows) at the ranks of each group."""
        # Groups hold one rank each, but for the last, where every metric with a K is zero.
        n = self.sampled + 1
        return np.stack([number.metric.weights(self.low, n) for number in numbers])


def read_numbers(
    values: Mapping[str, float | str | Decimal],
    *,
    sampled: int,
    users: int,
    decimals: int | None,
    percent: bool,
) -> tuple[Printed, ...]:
    """Read metric names and printed values, refusing what no sampled evaluation prints."""
    if not isinstance(values, Mapping) or not values:
        raise InputError(
            f'numbers must be a mapping such as {{"HR@1": 0.18, "HR@10": 0.69}}, got {values!r:.80}'
        )
    if decimals is not None:
        decimals = check_integer("decimals", decimals, minimum=0, maximum=_MOST_DECIMALS)
    unit = Decimal("0.01") if percent else Decimal(1)
    exact = {name: _as_decimal(name, value) for name, value in values.items()}
    shared = _digits_of_floats(values, exact)
    numbers: dict[Metric, Printed] = {}
    for name, value in exact.items():
        digits = decimals if decimals is not None else shared.get(name, _digits(value))
        metric = _sampled_metric(name, sampled)
        half = max(float(unit * Decimal(5).scaleb(-digits - 1)), _FINEST)
        number = Printed(name, metric, float(unit * value), half)
        again = [there for there in numbers if there.same_as(metric)]
        if again:
            raise InputError(
                f"numbers must give each metric once, got {numbers[again[0]].name} and {name}, "
                "which are the same"
            )
        _check_range(number, sampled, percent)
        _check_users(number, users)
        numbers[metric] = number
    return tuple(numbers.values())


def _as_decimal(name: str, value: object) -> Decimal:
    # The shortest text of a float is what was typed; its binary value has digits nobody printed.
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation as problem:
        raise InputError(f"{name} must be a number as printed, got {value!r}") from problem
    # Exponents beyond all floats are beyond decimal arithmetic too.
    if isinstance(value, bool) or not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        raise InputError(f"{name} must be a finite number as printed, got {value!r}")
    return number


def _digits(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


def _digits_of_floats(
    values: Mapping[str, float | str | Decimal], exact: Mapping[str, Decimal]
) -> dict[str, int]:
    """Return the decimals of values that are floats: 0.40 arrives as 0.4, so the most count."""
    floats = [name for name, value in values.items() if not isinstance(value, str | Decimal)]
    most = max((_digits(exact[name]) for name in floats), default=0)
    return dict.fromkeys(floats, most)


def _sampled_metric(name: str, sampled: int) -> Metric:
    metric = _metrics.parse(name)
    if metric.k is not None and metric.k > sampled:
        raise MetricError(
            f"K of {name} must be at most sampled = {sampled}, got {metric.k}; among "
            f"{sampled + 1} items it says nothing more than {metric.label} without @K"
        )
    return metric


def _check_range(number: Printed, sampled: int, percent: bool) -> None:
    """Refuse a value that no rank has: metrics of one target are between 0 and 1."""
    weights = number.metric.weights(np.arange(1, sampled + 2), sampled + 1)
    least, most = float(weights.min()), float(weights.max())
    if number.high > least and number.low < most:
        return
    hint = "; is it a percentage? then say so (percent=True, --percent)"
    per_cent = not percent and 1.0 < number.value <= 100.0
    raise InputError(
        f"{number.name} must be between {least:g} and {most:g}, got {number.value:g}"
        + (hint if per_cent else "")
    )


def _check_users(number: Printed, users: int) -> None:
    """Refuse a hit rate that so few users cannot have: it is a whole number of hits over users."""
    if number.metric.family is not _metrics.Recall:
        return
    slack = 1e-9
    first = math.ceil(number.low * users - slack)
    if first > number.high * users + slack:
        below, above = (first - 1) / users, first / users
        raise ContradictionError(
            f"{number} must be a number of hits over users = {users}, and none is printed like "
            f"that: the nearest are {below:.4g} and {above:.4g}; check users, or decimals",
            (number.name,),
        )
