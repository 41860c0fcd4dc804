"""What a result says at every K and in every range of ranks: values, intervals, bounds as arrays.

Both the plots and the pages draw these numbers; neither computes its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unsample._checks import FloatArray, IntArray, check_level
from unsample.answers import DEFAULT_LEVEL, Estimates
from unsample.confidence import Certainty
from unsample.law import RankDistribution
from unsample.metrics import Metric, MetricFamily, Recall

__all__ = ["Curve", "Known", "families_of", "ladder"]


@dataclass(frozen=True, eq=False)
class Curve:
    """One number for each K or range of ranks: by each method, and what the data allow."""

    values: Mapping[str, FloatArray]
    #: Rows (low, high); None where there is nothing to say.
    interval: FloatArray | None
    bounds: FloatArray | None


def ladder(largest: int, *, also: Iterable[int] = (), points: int = 24) -> IntArray:
    """Return K from 1 to ``largest`` in equal ratios, and those in ``also`` up to there."""
    steps = np.geomspace(1, largest, points).round().astype(np.int64).tolist()
    return np.array(sorted({*steps, *(k for k in also if k <= largest)}), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Known:
    """A result asked about many K at once, for preparing it may cost more than asking."""

    result: Estimates
    ks: IntArray
    level: float
    certainty: Certainty | None

    @classmethod
    def of(cls, result: Estimates, ks: IntArray, level: float = DEFAULT_LEVEL) -> Known:
        """Prepare the result for metrics at these K."""
        return cls(result, ks, check_level(level), result.certainty_at(ks.tolist()))

    def curve(self, family: MetricFamily, *, bounds: bool = True) -> Curve:
        """Return the metric@K at each K."""
        metrics = [family @ int(k) for k in self.ks]
        learned = self.result.distributions
        values = {
            name: np.array([one.expect(metric) for metric in metrics])
            for name, one in learned.items()
        }
        if self.certainty is None:
            spreads = {name: _spreads(one, metrics) for name, one in learned.items()}
            return Curve(values, self._chance_alone(values, spreads), None)
        return Curve(values, *self._limits(self.certainty, metrics, bounds=bounds))

    def mean_probability(self, *, bounds: bool = True) -> Curve:
        """Return the mean of P(R) over the ranks up to the first K, and from each K to the next.

        P(R) of a single rank is more than a sample can tell; the share of targets in a range of
        ranks is a metric as any other, and has an interval and bounds like them.
        """
        ends = np.concatenate([[0], self.ks])
        widths = np.diff(ends)
        values = {name: np.diff(one.cdf(ends)) for name, one in self.result.distributions.items()}
        interval: FloatArray | None
        limits: FloatArray | None
        if self.certainty is None:
            spreads = {name: np.sqrt(one * (1.0 - one)) for name, one in values.items()}
            interval, limits = self._chance_alone(values, spreads), None
        else:
            ranges = [_share(low + 1, high) for low, high in pairwise(ends.tolist())]
            interval, limits = self._limits(self.certainty, ranges, bounds=bounds)
        return Curve(
            {name: one / widths for name, one in values.items()},
            *(None if one is None else one / widths[:, None] for one in (interval, limits)),
        )

    def _limits(
        self, certainty: Certainty, metrics: list[Metric], *, bounds: bool
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """Return intervals and bounds; neither where no P(R) fits, for then they say nothing."""
        if certainty.shape_in_use() is None:
            return None, None
        return (
            np.array([certainty.interval(metric, self.level) for metric in metrics]),
            np.array([certainty.bounds(metric, self.level) for metric in metrics])
            if bounds
            else None,
        )

    def _chance_alone(
        self, values: Mapping[str, FloatArray], spreads: Mapping[str, FloatArray]
    ) -> FloatArray | None:
        """Return intervals of full ranks, whose only error is that of a mean over targets."""
        from scipy.special import ndtri

        targets = self.result.counts.effective
        if len(values) != 1 or targets < 2:
            return None
        ((name, mean),) = values.items()
        reach = float(ndtri((1.0 + self.level) / 2.0)) / math.sqrt(targets) * spreads[name]
        return np.stack([np.maximum(mean - reach, 0.0), mean + reach], axis=1)


def _share(low: int, high: int) -> Metric:
    """Return the share of targets with a rank in low..high, as a metric."""
    return MetricFamily("Share", lambda ranks, items, k: (ranks >= low).astype(np.float64)) @ high


def _spreads(learned: RankDistribution, metrics: list[Metric]) -> FloatArray:
    """Return the standard deviation over targets of what each metric counts."""
    variances = [learned.expect(_squared(one)) - learned.expect(one) ** 2 for one in metrics]
    return np.sqrt(np.maximum(variances, 0.0))


def _squared(metric: Metric) -> Metric:
    """Return the metric whose weights are the squares of this one's."""
    kernel = metric.family.kernel
    return Metric(MetricFamily("Square", lambda *given: kernel(*given) ** 2), metric.k)


def families_of(metrics: Iterable[Metric]) -> tuple[MetricFamily, ...]:
    """Return the families of metrics@K, or Recall where none has a K."""
    return tuple(dict.fromkeys(one.family for one in metrics if one.k is not None)) or (Recall,)
