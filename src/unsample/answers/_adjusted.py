"""Metrics adjusted for chance: metrics on a scale that depends on the catalogue sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from unsample import metrics as _metrics
from unsample.answers._result import DEFAULT_LEVEL, Estimate, Estimates
from unsample.errors import MetricError
from unsample.metrics import MR, Metric

_Kind = TypeVar("_Kind", bound=Estimates)


def bases(metrics: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Return the metrics to estimate, with the plain metric in place of each adjusted one."""
    asked = _metrics.parse_all(metrics)
    found = [metric for metric in asked if metric.family.chance is None]
    for metric in asked:
        if not any((metric.base.family, metric.k) == (each.family, each.k) for each in found):
            found.append(metric.base)
    return tuple(found)


def comparable(metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """Return the metrics if models can be compared by them; refuse mean ranks and adjusted ones."""
    for metric in metrics:
        if metric.base.family is MR:
            raise MetricError(
                f"metrics must be such that more is better to compare models, got {metric.name}; "
                "use AUC, which says the same where all have as many candidates"
            )
        if metric.family.chance is not None:
            raise MetricError(
                f"metrics must not be adjusted for chance to compare models, got {metric.name}: "
                f"that moves all of them alike; use {metric.base.name}"
            )
    return metrics


def any_adjusted(metrics: Iterable[Metric]) -> bool:
    """Return whether any of the metrics is adjusted for chance."""
    return any(metric.family.chance is not None for metric in metrics)


def adjusted(result: _Kind, metrics: Iterable[Metric]) -> _Kind:
    """Return the metrics that were asked for, made from a result for their `bases`."""
    wanted = tuple(metrics)
    if not any_adjusted(wanted):
        return result
    counts = result.counts
    if counts.several and not result.filtered:
        names = ", ".join(m.name for m in wanted if m.family.chance is not None)
        raise MetricError(
            f"{names} must be asked of one target for each user, got users with several; say "
            "filtered=True where other relevant items were left out when an item was ranked"
        )
    entries = []
    for method in result.methods:
        for metric in wanted:
            if metric.family.chance is None:
                entries.append(result[metric, method])
                continue
            base = result[metric.base, method]
            factor, offset = metric.family.chance.scale(metric.k, counts.items, counts.weight)
            entries.append(AdjustedEstimate.of(base, metric, factor, offset))
    return replace(result, entries=tuple(entries))


@dataclass(frozen=True, eq=False)
class AdjustedEstimate(Estimate):
    """An estimate of ``factor`` times a metric plus ``offset``, with intervals on that scale."""

    base: Estimate = field(default=None, repr=False)  # type: ignore[assignment]
    factor: float = 1.0
    offset: float = 0.0

    @classmethod
    def of(cls, base: Estimate, metric: Metric, factor: float, offset: float) -> AdjustedEstimate:
        """Return an estimate on another scale."""
        return cls(
            metric, base.method, factor * base.value + offset, base.resolved, base.certificate,
            base.certainty, base.meant, base.clipped, base.errors, base.place, base.calibrated,
            base, factor, offset,
        )  # fmt: skip

    def _moved(self, ends: tuple[float, float]) -> tuple[float, float]:
        low, high = (self.factor * end + self.offset for end in ends)
        return (low, high) if self.factor > 0 else (high, low)

    def interval(
        self, level: float = DEFAULT_LEVEL, *, kind: str | None = None, population: bool = True
    ) -> tuple[float, float]:
        """Return the interval of the plain metric, on the adjusted scale."""
        return self._moved(self.base.interval(level, kind=kind, population=population))

    def raw_interval(
        self, level: float = DEFAULT_LEVEL, *, population: bool = True
    ) -> tuple[float, float]:
        """Return the guaranteed interval, whatever the method's value is."""
        return self._moved(self.base.raw_interval(level, population=population))

    def bounds(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the least and greatest value that agree with the data, whatever P(R) is."""
        return self._moved(self.base.bounds(level))

    def sampling_interval(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the interval of the method's value."""
        return self._moved(self.base.sampling_interval(level))

    @property
    def standard_error(self) -> float:
        """Return the standard error of the method's value, for users like these."""
        return abs(self.factor) * self.base.standard_error

    @property
    def credible(self) -> bool:
        """Return whether the value lies in the interval of its metric."""
        return self.base.credible

    @property
    def widened(self) -> bool:
        """Return whether the guaranteed interval was widened to hold the value."""
        return self.base.widened
