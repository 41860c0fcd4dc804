"""The sampled metric as people report it, and the plug-in of the unbiased rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray
from unsample.errors import DesignError
from unsample.estimators._base import MetricEstimator, single_ranks
from unsample.estimators._solvers import Certificate, Status
from unsample.evidence import DesignCells
from unsample.metrics import Metric

__all__ = ["Naive", "UnbiasedRank"]

_FORMULA = Certificate(Status.CLOSED_FORM, 0.0, 0.0, 0.0, 0)


@dataclass(frozen=True)
class Naive(MetricEstimator):
    r"""The sampled metric itself: :math:`\sum_r \tilde P(r)\, w_K(r)`.

    This is what most papers print, on another scale than the full-catalogue metric (only AUC is
    unbiased). It is here to show the bias, not to be used.

    Reference: Krichene, Rendle, "On Sampled Metrics for Item Recommendation", KDD 2020.
    """

    name: ClassVar[str] = "naive"
    caution: ClassVar[str] = (
        "naive is the sampled metric itself, on another scale than the full-catalogue metric: "
        "compare it with the other methods, do not report it"
    )

    def correct(
        self, cells: DesignCells, metrics: Sequence[Metric]
    ) -> tuple[FloatArray, Certificate]:
        """Return the metric of the sampled rank among n items."""
        n = cells.design.n
        columns = [metric.weights(cells.low, n) for metric in metrics]
        for metric, column in zip(metrics, columns, strict=True):
            if not np.array_equal(column, metric.weights(cells.high, n)):
                raise DesignError(
                    f"naive {metric} needs ranks that are single or all on one side of K, got "
                    "ranges of ranks on which its weight varies; use mle, mes, bv or cls"
                )
        return np.stack(columns, axis=1), _FORMULA


@dataclass(frozen=True)
class UnbiasedRank(MetricEstimator):
    r"""The metric at the unbiased estimate of the rank, :math:`\hat R = 1 + (N-1)(r-1)/(n-1)`.

    :math:`\hat R` is unbiased for R, the metric at it is not: r = 1 always gives
    :math:`\hat R = 1`, so every target that the sample left unbeaten counts as a top hit.

    Reference: Krichene, Rendle, KDD 2020.
    """

    name: ClassVar[str] = "rank"

    def correct(
        self, cells: DesignCells, metrics: Sequence[Metric]
    ) -> tuple[FloatArray, Certificate]:
        """Return the metric at the unbiased rank."""
        single_ranks(cells, self.name)
        design = cells.design
        ranks = 1.0 + (design.items - 1) * (cells.low - 1) / design.sampled
        columns = [metric.weights(ranks, design.items) for metric in metrics]
        return np.stack(columns, axis=1), _FORMULA
