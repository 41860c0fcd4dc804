"""Formulas: the sampled metric as people report it, at the unbiased rank, or at a mapped cutoff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import FloatArray, check_real
from unsample.counts import DesignCells
from unsample.errors import DesignError, MethodError
from unsample.estimators._estimator import MetricEstimator
from unsample.likelihood import require_single_ranks
from unsample.metrics import Metric
from unsample.sampling import SamplingModel


@dataclass(frozen=True)
class Naive(MetricEstimator):
    r"""The sampled metric itself: :math:`\sum_r \tilde P(r)\, w_K(r)`.

    Most papers print this. Its scale differs from the scale of the full-catalogue metric (only AUC
    is unbiased). It is here to show the bias, not to be used.

    Reference: Krichene, Rendle, "On Sampled Metrics for Item Recommendation", KDD 2020.
    """

    name: ClassVar[str] = "naive"
    caution: ClassVar[str] = (
        "naive is the sampled metric itself, on another scale than the full-catalogue metric: "
        "compare it with the other methods, do not report it"
    )

    def correct(self, cells: DesignCells, metrics: Sequence[Metric]) -> FloatArray:
        """Return the metric of the sampled rank among n items.

        >>> from unsample.counts import RankCounts
        >>> from unsample.metrics import parse_all
        >>> (cells,) = RankCounts.from_ranks([1, 3], items=1000, sampled=9).by_design()
        >>> Naive().correct(cells, parse_all("NDCG@10, Recall@2")).tolist()
        [[1.0, 1.0], [0.5, 0.0]]
        """
        n = cells.design.n
        columns = [metric.weights(cells.low, n) for metric in metrics]
        for metric, column in zip(metrics, columns, strict=True):
            if not np.array_equal(column, metric.weights(cells.high, n)):
                raise DesignError(
                    f"naive {metric} needs ranks that are single or all on one side of K, got "
                    "ranges of ranks on which its weight varies; use mle, which takes ranges"
                )
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class UnbiasedRank(MetricEstimator):
    r"""The metric at the unbiased estimate of the rank, :math:`\hat R = 1 + (N-1)(r-1)/(n-1)`.

    :math:`\hat R` is unbiased for R, but the metric at it is biased: r = 1 always gives
    :math:`\hat R = 1`, so every target that no sampled item beats counts as a top hit.

    Reference: Krichene, Rendle, KDD 2020.
    """

    name: ClassVar[str] = "rank"

    def correct(self, cells: DesignCells, metrics: Sequence[Metric]) -> FloatArray:
        """Return the metric at the unbiased rank.

        With 9 of 999 items sampled, the sampled rank 2 stands for 1 + 999 / 9 = 112.

        >>> from unsample.counts import RankCounts
        >>> from unsample.metrics import parse_all
        >>> (cells,) = RankCounts.from_ranks([1, 2], items=1000, sampled=9).by_design()
        >>> UnbiasedRank().correct(cells, parse_all("Recall@111, Recall@112")).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
        """
        require_single_ranks(cells.low, cells.high, method=self.name)
        design = cells.design
        ranks = 1.0 + (design.items - 1) * (cells.low - 1) / design.sampled
        columns = [metric.weights(ranks, design.items) for metric in metrics]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class RecallMap(MetricEstimator):
    r"""Recall by a mapping of cutoffs: Recall@f(k) is read off the sampled Recall@k.

    f(k) = N * S(k)^(1/a), where S(k) is the sampled Recall@k of ranks with theta ~ Beta(a, 1). It
    is exact if they follow that distribution. ``a=1`` (uniform ranks) gives f(k) = N k/n. Between
    the f(k) recall is interpolated, linearly in the rank. Gives Recall and Precision only.

    Reference: Li et al., KDD 2020.
    """

    name: ClassVar[str] = "recall_map"
    a: float = 0.5

    def __post_init__(self) -> None:
        check_real("a", self.a, low=0.0, open_low=True, error=MethodError)

    def supports(self, metric: Metric) -> bool:
        """Return whether the metric is a multiple of recall."""
        return metric.family.counts_hits or metric.family.name == "Precision"

    def mapping(self, design: SamplingModel) -> FloatArray:
        """Return f(1), ..., f(n) as real ranks that do not decrease.

        >>> RecallMap(a=1.0).mapping(SamplingModel(items=1000, sampled=3)).round(6).tolist()
        [250.0, 500.0, 750.0, 1000.0]
        """
        ranks = design.items * _sampled_recall(design.sampled, self.a) ** (1.0 / self.a)
        return np.maximum.accumulate(np.minimum(ranks, design.items))

    def correct(self, cells: DesignCells, metrics: Sequence[Metric]) -> FloatArray:
        """Return for each sampled rank how much of it the interpolated recall counts."""
        require_single_ranks(cells.low, cells.high, method=self.name)
        ranks = np.concatenate([[0.0], self.mapping(cells.design)])
        columns = []
        for metric in metrics:
            cutoff = metric.cutoff(cells.design.items)
            # Sampled recall at the fractional k with f(k) = K counts ranks up to k wholly and the
            # next one in part, which is linear in the histogram.
            k = np.interp(cutoff, ranks, np.arange(len(ranks)))
            counted = np.clip(k - (cells.low - 1), 0.0, 1.0)
            columns.append(counted * metric.weights(1, cells.design.items))
        return np.stack(columns, axis=1)


def _sampled_recall(sampled: int, a: float) -> FloatArray:
    """Return P(r <= k) of each k when theta ~ Beta(a, 1): sums of beta-binomial probabilities.

    >>> _sampled_recall(3, 1.0).round(6).tolist()                    # uniform ranks
    [0.25, 0.5, 0.75, 1.0]
    """
    from scipy.special import gammaln

    x = np.arange(sampled + 1)
    # Beta(a, 1): C(s, x) B(x + a, s - x + 1) / B(a, 1), with s! and (s - x)! cancelled.
    log_terms = gammaln(x + a) - gammaln(x + 1) + gammaln(sampled + 1) - gammaln(sampled + a + 1)
    return np.asarray(np.cumsum(a * np.exp(log_terms)))
