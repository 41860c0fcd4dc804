"""The base of estimators: a frozen set of parameters that turns `Observed` into metric values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from unsample._checks import FloatArray
from unsample._threads import one_thread
from unsample.counts import DesignCells, RankCounts
from unsample.errors import MetricError
from unsample.likelihood import CLOSED_FORM, Certificate, Observed, Solution
from unsample.metrics import Metric
from unsample.sampling import RankDistribution

#: A value that is outside its range by less than this is outside by rounding only.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Fit:
    """Metric values, and the certificate and P(R) of the first histogram."""

    #: The value of each metric (histograms x metrics).
    values: FloatArray
    #: The values before they were clipped to the range of their metrics.
    unclipped: FloatArray
    certificate: Certificate
    distribution: RankDistribution | None = None

    @property
    def clipped(self) -> tuple[bool, ...]:
        """Return, for each metric, whether the first histogram's value left the metric's range."""
        moved = np.abs(self.unclipped[0] - self.values[0]) > _ROUNDING
        return tuple(moved.tolist())


class Estimator(ABC):
    """An estimator: its name, its parameters (dataclass fields), and `evaluate`."""

    name: ClassVar[str]
    #: Why the values must not be taken as the full-catalogue metric, where that is so.
    caution: ClassVar[str] = ""

    @abstractmethod
    def evaluate(self, observed: Observed, metrics: Sequence[Metric]) -> Fit:
        """Return the value of every metric for every histogram of the batch."""

    def supports(self, metric: Metric) -> bool:
        """Return whether this estimator can give the metric."""
        return True

    def require(self, metrics: Sequence[Metric]) -> None:
        """Refuse metrics that this estimator cannot give."""
        refused = [metric.name for metric in metrics if not self.supports(metric)]
        if refused:
            raise MetricError(
                f"metrics must be ones that {self.name} can give, got {', '.join(refused)}; "
                "choose another method for them, for instance mle"
            )

    def defaults(self) -> dict[str, Any]:
        """Return the default of each parameter."""
        return {item.name: item.default for item in fields(self)}  # type: ignore[arg-type]

    def __str__(self) -> str:
        """Return the text that parses back to this estimator: parameters only where changed."""
        changed = [
            f"{name}={getattr(self, name)}"
            for name, default in self.defaults().items()
            if getattr(self, name) != default
        ]
        return f"{self.name}({', '.join(changed)})" if changed else self.name


class DistributionEstimator(Estimator):
    """An estimator of P(R): fitted once, it gives every metric at every K."""

    #: Whether targets of known rank are part of the fit, as in likelihood methods. Other methods
    #: fit the remaining targets alone.
    joint: ClassVar[bool] = False

    @abstractmethod
    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin, for each histogram."""

    def fit(self, counts: RankCounts, *, cutoffs: Iterable[int] = ()) -> RankDistribution:
        """Return P(R) learned from the counts; each rank in ``cutoffs`` has its own bin.

        >>> from unsample.estimators import MLE
        >>> ranks = [1 + user**3 // 300_000 for user in range(300)]
        >>> MLE().fit(RankCounts.from_ranks(ranks, items=3706, sampled=99), cutoffs=[50])
        RankDistribution(items=3706, bins=457, median rank=404)
        """
        observed = Observed.prepare(counts, cutoffs=cutoffs)
        distribution = self.evaluate(observed, ()).distribution
        assert distribution is not None
        return distribution

    @one_thread()
    def evaluate(self, observed: Observed, metrics: Sequence[Metric]) -> Fit:
        """Return the value of every metric for every histogram, from one fit of P(R)."""
        self.require(metrics)
        solution = self._solve_unknown(observed)
        known = observed.known_mass()
        if self.joint:
            rest = solution.weights - known
        else:
            rest = (1.0 - observed.known_share)[:, None] * solution.weights
        weights = observed.bin_weights(metrics)
        known_part = observed.shares @ observed.known_weights(metrics)
        unknown_part = rest @ weights
        return Fit(
            values=known_part + clipped_to_range(unknown_part, observed, weights=weights),
            unclipped=known_part + unknown_part,
            certificate=solution.certificate,
            distribution=RankDistribution(observed.grid, known[0] + rest[0]),
        )

    def _solve_unknown(self, observed: Observed) -> Solution:
        """Return the mass of each bin; what is known of all targets needs no fit."""
        if observed.known.all():
            return Solution(observed.known_mass(), CLOSED_FORM)
        return self.solve(observed if self.joint else observed.unknown_part())


class MetricEstimator(Estimator):
    """An estimator that replaces the metric by a corrected one, a value for each sampled rank."""

    @abstractmethod
    def correct(self, cells: DesignCells, metrics: Sequence[Metric]) -> FloatArray:
        """Return the corrected metrics (cells x metrics) of one design, by a formula."""

    @one_thread()
    def evaluate(self, observed: Observed, metrics: Sequence[Metric]) -> Fit:
        """Return the mean of the corrected metric over each histogram."""
        self.require(metrics)
        corrected = observed.known_weights(metrics)
        for cells in observed.designs:
            if not observed.known[cells.columns].all():
                corrected[cells.columns] = self.correct(cells, metrics)
        values = observed.shares @ corrected
        return Fit(values, values, certificate=CLOSED_FORM)


def clipped_to_range(values: FloatArray, observed: Observed, weights: FloatArray) -> FloatArray:
    """Return the part of targets of unknown rank, clipped to the range that ranks allow.

    Methods that are linear in the histogram may leave the range of a metric (a Recall of 1.2). The
    true value is inside, so clipping only makes the error smaller.

    Half of the targets have a known rank. The others add at most 0.5 to a Recall.

    >>> counts = RankCounts.from_ranks([1, 300], items=500, sampled=[9, 499])
    >>> observed = Observed.prepare(counts)
    >>> recall = np.array([[1.0], [0.0]])
    >>> clipped_to_range(np.array([[0.6]]), observed, recall).tolist()
    [[0.5]]
    """
    unknown = np.maximum(1.0 - observed.known_share, 0.0)[:, None]
    return np.clip(values, unknown * weights.min(axis=0), unknown * weights.max(axis=0))
