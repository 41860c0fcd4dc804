"""`Estimates`: metrics with intervals and bounds, as plain records of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unsample import metrics as _metrics
from unsample.answers._notes import Note
from unsample.answers._result import (
    DEFAULT_LEVEL,
    Result,
    find_metric,
    one_or_range,
    or_none,
)
from unsample.answers._spread import MeanSpread, Spread, TSpread
from unsample.bounds import Bounds, DirectMean, MeanError
from unsample.errors import MethodError, MetricError
from unsample.evidence import RankCounts
from unsample.law import RankDistribution
from unsample.metrics import Metric
from unsample.prior import BOUNDS, FEWEST_USERS, PRIOR, Posterior

#: The method whose value is that of the posterior.
AUTO = "auto"
#: Where an interval comes from, beside the prior and the bounds: known numbers of users, of which
#: nothing but chance is left open.
MEAN = "mean"
#: A metric is resolved if the half-width of its interval is at most this part of the value.
_RESOLVED = 0.25


@dataclass(frozen=True, eq=False)
class Estimate:
    """One metric by one method: its value, an interval that holds the truth, and bounds."""

    metric: Metric
    method: str
    value: float
    #: ``"prior"``, ``"bounds"`` or ``"mean"``: see `interval`.
    source: str
    #: The metric of users like these, and of these users; None where the interval is the bounds.
    spread: Spread | None = field(repr=False)
    own: Spread | None = field(repr=False)
    #: The bounds at 95 %.
    limits: tuple[float, float] = field(repr=False)
    #: The counts as the metric weighs them.
    counts: RankCounts = field(repr=False)
    #: What is known of the curve; None without a prior.
    posterior: Posterior | None = field(default=None, repr=False)

    @classmethod
    def of_known(
        cls, metric: Metric, method: str, value: float, error: MeanError, counts: RankCounts
    ) -> Estimate:
        """Return a metric of users whose ranks are all known: other users would have another."""
        spread, own = MeanSpread(value, error), TSpread(value, 0.0)
        ends = spread.interval(DEFAULT_LEVEL)
        return cls(metric, method, value, MEAN, spread, own, ends, counts)

    def interval(
        self, level: float = DEFAULT_LEVEL, *, population: bool = True
    ) -> tuple[float, float]:
        """Return (low, high), an interval for the true metric, the bias of sampling included.

        It belongs to the metric and not to the method. Where ``source`` is ``"prior"``, it holds
        the true value for a share ``level`` of data sets like those that the prior was learned
        from. Where it is ``"bounds"``, because the data are unlike those or too few, it is
        `bounds`. Where it is ``"mean"``, the value is an unbiased mean, and the interval that of a
        mean. With ``population``, the interval is for users like these; without it, for these
        users: where a full ranking of the same users would land.
        """
        spread = self.spread if population else self.own
        if spread is None:
            return self.bounds(level)
        low, high = spread.interval(level)
        if self.source == PRIOR:
            least, most = self.bounds(level)
            return min(max(low, least), most), max(min(high, most), least)
        return low, high

    def bounds(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the least and greatest value that agree with the data, whatever P(R) is."""
        if level == DEFAULT_LEVEL:
            return self.limits
        if isinstance(self.spread, MeanSpread):
            return self.spread.interval(level)  # nothing but chance is left open
        cutoff = self.metric.cutoff(self.counts.largest_catalogue)
        return Bounds.of(self.counts, [cutoff]).of_metric(self.metric, level)

    def another(self, metric: Metric) -> Estimate:
        """Return another metric of the same data, which weighs targets as this one does."""
        bounds = Bounds.of(self.counts, [metric.cutoff(self.counts.largest_catalogue)])
        return entry_of(metric, self.counts, bounds, self.posterior)

    @property
    def resolved(self) -> bool:
        """Return whether the 95 % interval's half-width is at most a quarter of the value."""
        low, high = self.interval()
        return (high - low) / 2.0 <= _RESOLVED * self.value

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of one entry of the JSON output."""
        low, high = self.interval()
        least, most = self.limits
        numbers = {"value": self.value, "low": low, "high": high}
        numbers |= {"bound_low": least, "bound_high": most}
        return {
            "metric": self.metric.name,
            "method": self.method,
            **{name: or_none(value) for name, value in numbers.items()},
            "source": self.source,
            "resolved": self.resolved,
        }

    def __str__(self) -> str:
        low, high = self.interval()
        source = ", bounds" if self.source == BOUNDS else ""
        return f"{self.metric} = {self.value:.4f} [{low:.4f} .. {high:.4f}] ({self.method}{source})"


@dataclass(frozen=True, eq=False)
class MeanOfRuns(Estimate):
    """One metric of a model: the mean of its runs, whose spread is a part of the error."""

    runs: tuple[Estimate, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, runs: tuple[Estimate, ...], spread: Spread | None) -> MeanOfRuns:
        """Return the mean; the interval is that of the bounds where runs have no law."""
        value = sum(each.value for each in runs) / len(runs)
        limits = _mean_span(each.limits for each in runs)
        first, source = runs[0], BOUNDS if spread is None else runs[0].source
        about = (first.metric, first.method, value, source, spread, spread, limits, first.counts)
        return cls(*about, first.posterior, runs=runs)

    def interval(
        self, level: float = DEFAULT_LEVEL, *, population: bool = True
    ) -> tuple[float, float]:
        """Return (low, high), for other runs of the model, and for users like these."""
        del population  # runs of the model are always drawn, and with them users
        return self.bounds(level) if self.spread is None else self.spread.interval(level)

    def bounds(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the mean of the bounds of these runs; training chance is not in them."""
        return _mean_span(each.bounds(level) for each in self.runs)

    def another(self, metric: Metric) -> Estimate:
        """Refuse another metric, for which the runs would have to be compared again."""
        raise MetricError(f"{metric} must be asked of compare, which knows all runs of a model")


def _mean_span(spans: Iterable[tuple[float, float]]) -> tuple[float, float]:
    low, high = np.mean(list(spans), axis=0).tolist()
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Result, Mapping[str, Estimate]):
    """Estimates by metric: ``result["NDCG@10"]``, or by method too: ``result["NDCG@10", "mle"]``.

    Without a method, the first that was asked for is used. The keys are the metrics' names as they
    were asked for; other spellings work too (``"HR@10"`` finds ``"Recall@10"``).
    """

    entries: tuple[Estimate, ...]
    counts: RankCounts
    #: P(R) by method, for methods that estimate it.
    distributions: Mapping[str, RankDistribution]
    notes: tuple[Note, ...] = ()
    #: ``"unseen"``, ``"all"``, or None if it was not given.
    candidates: str | None = None
    #: Whether metrics are per target, because a user's other relevant items were left out.
    filtered: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods in the given order."""
        return tuple(dict.fromkeys(entry.method for entry in self.entries))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics in the given order."""
        return tuple({entry.metric.name: entry.metric for entry in self.entries}.values())

    def distribution(self, method: str | None = None) -> RankDistribution:
        """Return P(R) as a method estimated it; by default the first method that gives it."""
        if not self.distributions:
            raise MethodError("method must be one that estimates P(R), got none of them; try mle")
        if method is None:
            return next(iter(self.distributions.values()))
        if method not in self.distributions:
            there = ", ".join(self.distributions)
            raise MethodError(f"method must be one of {there}, which estimated P(R), got {method}")
        return self.distributions[method]

    def metric(self, name: str | Metric) -> Estimate:
        """Return any other metric, from the stored curve, by the first method of the result."""
        asked = _metrics.parse(name)
        if find_metric(asked, self.metrics, several=self.counts.several) is not None:
            return self[asked]
        counts = self.counts.for_metric(asked)
        alike = (
            entry
            for entry in self.entries
            if np.array_equal(entry.counts.weight, counts.weight)
            and not isinstance(entry.spread, MeanSpread)
        )
        entry = next(alike, None)
        if entry is None:
            raise MetricError(
                f"{asked} must be asked for with the ranks: none of {', '.join(self)} is estimated "
                "and weighs the relevant items of a user in the same way"
            )
        found, curve = entry.another(asked), self.distributions.get(entry.method)
        value = found.value
        if entry.method != AUTO and DirectMean.of(asked, counts) is None:
            if curve is None:
                raise MetricError(f"{asked} must be asked of estimate: {entry.method} has no P(R)")
            value = min(counts.scale * curve.expect(asked), counts.ceiling(asked))
        return replace(found, method=entry.method, value=value)

    def __getitem__(self, key: str | Metric | tuple[str | Metric, str]) -> Estimate:
        name, method = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        metric = find_metric(name, self.metrics, several=self.counts.several)
        for entry in self.entries:
            if entry.metric == metric and method in (None, entry.method):
                return entry
        by = f" by {method}" if method else ""
        there = f"{', '.join(self)} by {', '.join(self.methods)}"
        raise KeyError(f"no estimate of {name}{by}; there are {there}")

    def __iter__(self) -> Iterator[str]:
        return iter(metric.name for metric in self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each metric and method."""
        return [entry.to_dict() for entry in self.entries]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "items": one_or_range(self.counts.items),
            "sampled": one_or_range(self.counts.sampled),
            "users": self.counts.users,
            "targets": self.counts.total,
            "estimates": self.rows(),
            "warnings": list(self.warnings),
            "candidates": self.candidates,
            "filtered": self.filtered,
            "negatives": "own" if self.counts.shared is None else "shared",
        }


# -- what is known of one metric, whatever the method ---------------------------------------------


def entry_of(
    metric: Metric, counts: RankCounts, bounds: Bounds, posterior: Posterior | None
) -> Estimate:
    """Return a metric of sampled ranks: an unbiased mean, or what the posterior says."""
    limits = bounds.of_metric(metric)
    direct = DirectMean.of(metric, counts)
    if direct is not None:
        return _of_direct(metric, direct, limits, posterior)
    if posterior is None or metric.family.unlimited:
        middle = (limits[0] + limits[1]) / 2.0
        return Estimate(metric, "", middle, BOUNDS, None, None, limits, counts, posterior)
    found = learned(metric, posterior, limits, possible=bounds.feasible)
    return Estimate(metric, "", *found, limits, counts, posterior)


def learned(
    metric: Metric, posterior: Posterior, limits: tuple[float, float], *, possible: bool
) -> tuple[float, str, Spread | None, Spread | None]:
    """Return what the posterior says: the value, within its bounds, and what it may be.

    Where it is not ``possible`` that any P(R) gave the data, the interval is the bounds.
    """
    laws = [posterior.law(metric, population=population) for population in (True, False)]
    spread, own = (law.spread() for law in laws)
    value = min(max(spread.value, limits[0]), limits[1], spread.most)
    if BOUNDS in laws[0].sources or not possible:
        return value, BOUNDS, None, None
    return value, PRIOR, spread, own


def _of_direct(
    metric: Metric, direct: DirectMean, limits: tuple[float, float], posterior: Posterior | None
) -> Estimate:
    """Return a metric that is linear in the rank: the sample's own mean is unbiased."""
    counts, value = direct.counts, direct.value
    low, high = min(direct.least, 0.0), max(direct.most, 1.0)
    error, own = (direct.error(population=each) for each in (True, False))
    if counts.effective_users < FEWEST_USERS or error is None or own is None:
        return Estimate(metric, "", value, BOUNDS, None, None, limits, counts, posterior)
    spread, of_these = (TSpread(value, each, least=low, most=high) for each in (error, own))
    return Estimate(metric, "", value, MEAN, spread, of_these, limits, counts, posterior)
