"""A metric for training loops: sampled ranks in, full-catalogue metrics out.

It is a `torchmetrics.Metric`: it moves with the model, resets between epochs, adds up over the
processes of a distributed run, and goes into a `MetricCollection` or a trainer's log.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from unsample._checks import Seed, as_rng
from unsample.adapters._install import require
from unsample.counts import (
    Negatives,
    RankCounts,
    as_negatives,
    check_ties,
    refuse_shared,
    sampled_ranks,
)
from unsample.errors import ScoreError
from unsample.metrics import DEFAULT_METRICS, Metric, parse_all
from unsample.questions.estimate.ask import DEFAULT_METHOD, estimate
from unsample.questions.estimate.result import Estimates
from unsample.sampling import SamplingModel, refuse_overdrawn

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["EstimatedMetrics"]

_torchmetrics = require("torchmetrics", "torchmetrics")
_torch = require("torchmetrics", "torch")


class EstimatedMetrics(_torchmetrics.Metric):  # type: ignore[misc,name-defined]
    """Full-catalogue metrics of a model that is evaluated against sampled items.

    Parameters
    ----------
    items, sampled, negatives
        Items in the catalogue, items sampled for each target, and how.
    metrics, method, protocol
        As in `unsample.estimate`.
    ties
        ``"random"``, ``"optimistic"`` or ``"pessimistic"``.
    rng
        Seed of the random tie rule; give each process of a distributed run another one.

    >>> import torch
    >>> metric = EstimatedMetrics(items=3706, sampled=3, metrics=["Recall@1000"])
    >>> metric.update(torch.randn(60, 4, generator=torch.Generator().manual_seed(0)))
    >>> metric.counts()
    RankCounts(60 targets, 4 cells, items=3706, sampled=3, with replacement)
    >>> list(metric.compute())
    ['Recall@1000']
    """

    full_state_update = False
    is_differentiable = False
    higher_is_better = True
    histogram: Tensor

    def __init__(
        self,
        *,
        items: int,
        sampled: int,
        metrics: str | Metric | Iterable[str | Metric] | None = None,
        method: str = DEFAULT_METHOD,
        protocol: str | None = None,
        negatives: Negatives | None = None,
        ties: str = "random",
        rng: Seed = 0,
    ) -> None:
        super().__init__()
        drawn = as_negatives(negatives)
        refuse_shared(drawn)
        self.sampling = SamplingModel(items, sampled, replacement=drawn.replacement)
        refuse_overdrawn(items, sampled)
        self.metrics = parse_all(DEFAULT_METRICS if metrics is None else metrics)
        self.asked: dict[str, Any] = {
            "metrics": self.metrics,
            "method": method,
            "protocol": protocol,
        }
        self.ties = check_ties(ties, whole=True)
        self._generator = as_rng(rng)
        empty = _torch.zeros(self.sampling.n, dtype=_torch.int64)
        self.add_state("histogram", default=empty, dist_reduce_fx="sum")

    def update(self, scores: Tensor) -> None:
        """Take in a batch: one row for each target, its own score first and then those sampled."""
        if scores.ndim != 2 or scores.shape[1] != self.sampling.n:
            raise ScoreError(
                f"scores must have sampled + 1 = {self.sampling.n} columns, the target's score in "
                f"the first, got shape {tuple(scores.shape)}"
            )
        if not len(scores):
            return
        ranks = sampled_ranks(scores[:, 0], scores[:, 1:], ties=self.ties, rng=self._generator)
        index = _torch.as_tensor(ranks, device=scores.device).long() - 1
        self.histogram += _torch.bincount(index, minlength=self.sampling.n)

    def compute(self) -> dict[str, Tensor]:
        """Return the estimates by name; NaN before anything was taken in."""
        if not bool(self.histogram.any()):
            return {metric.name: _torch.tensor(math.nan) for metric in self.metrics}
        result = estimate(self.counts(), **self.asked)
        return {metric.name: _torch.tensor(result[metric].value) for metric in self.metrics}

    def result(self) -> Estimates:
        """Return the estimates with their intervals, of all processes, each of which must ask."""
        with self.sync_context():
            estimates: Estimates = estimate(self.counts(), **self.asked)
        return estimates

    def counts(self) -> RankCounts:
        """Return the counts so far, of which `unsample.estimate` gives intervals too."""
        return RankCounts.from_histogram(self.histogram.cpu().numpy(), self.sampling)
