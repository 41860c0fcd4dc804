"""Calibrated intervals: what the data and other data sets say together.

A 95 % interval holds the metric for 95 % of data sets like those that the prior was learned from.
A guaranteed interval promises more: it holds for every data set of a stated shape. It is far wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unsample._checks import FloatArray, check_level
from unsample.estimators import Observed
from unsample.estimators.prior import Posterior, Prior
from unsample.evidence import RankCounts
from unsample.metrics import Metric

#: How likely it is that seen items were left out of the candidates, where it is not stated.
_UNSEEN = 0.5


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Intervals under a learned prior, for targets of fixed or growing samples."""

    observed: Observed
    prior: Prior
    #: The kind of evaluation, and whether seen items were candidates; None where not known.
    kind: str | None
    candidates: str | None
    #: Metrics that will be asked for: all of them are computed at once.
    metrics: tuple[Metric, ...] = ()
    _known: dict[tuple[tuple[str, ...], float, bool], FloatArray] = field(
        default_factory=dict, repr=False
    )

    @property
    def counts(self) -> RankCounts:
        """Return the targets."""
        return self.observed.counts

    def interval(
        self, metric: Metric, level: float = 0.95, *, population: bool = True
    ) -> tuple[float, float]:
        """Return an interval of one metric."""
        asked = self.metrics if metric in self.metrics else (metric,)
        low, high = self.intervals(asked, level, population=population)[asked.index(metric)]
        return float(low), float(high)

    def intervals(
        self, metrics: Sequence[Metric], level: float = 0.95, *, population: bool = True
    ) -> FloatArray:
        """Return the ends for each metric (metrics x 2).

        They are for the ``population`` of users like these, or for these users alone.
        """
        key = (tuple(metric.name for metric in metrics), check_level(level), population)
        if key not in self._known:
            self._known[key] = self._found(metrics, level, population)
        return self._known[key]

    def _found(self, metrics: Sequence[Metric], level: float, population: bool) -> FloatArray:
        ends = np.zeros((2, len(metrics)))
        for part, share in self.observed.by_sizes():
            posterior = self.posterior(part, metrics)
            if population:
                posterior = posterior.for_others(self.targets(part))
            # Where the prior is wrong, it is wrong in the same way for all sizes of catalogues.
            ends += share[0] * np.stack([end[0] for end in posterior.interval(level)])
        if population:
            # As many users without any hit could not rule out more than this.
            rare = -np.expm1(np.log((1.0 - level) / 2.0) / max(self.targets(self.observed), 1.0))
            ends[1] = np.maximum(ends[1], rare)
        ends *= self.counts.scale
        most = np.array([self.counts.ceiling(metric) for metric in metrics])
        return np.asarray(np.minimum(ends, most).T)

    def posterior(self, part: Observed, metrics: Sequence[Metric]) -> Posterior:
        """Return the posterior of targets with catalogues of about one size."""
        data = replace(part, shares=part.shares[:1])
        given = {"kind": self.kind, "targets": self.targets(part)}
        if self.candidates is not None or self.kind is not None:
            return self.prior.posterior(data, metrics, **given)  # type: ignore[arg-type]
        both = [
            self.prior.posterior(replace(data, candidates=each), metrics, **given)  # type: ignore[arg-type]
            for each in ("unseen", "all")
        ]
        parts = (_UNSEEN, 1.0 - _UNSEEN)
        return replace(
            both[0],
            kinds=sum((each.kinds for each in both), ()),
            weight=np.concatenate(
                [part * each.weight for part, each in zip(parts, both, strict=True)], axis=1
            ),
            mean=np.concatenate([each.mean for each in both], axis=1),
            scale=np.concatenate([each.scale for each in both], axis=1),
            varies=sum(
                (part * each.varies for part, each in zip(parts, both, strict=True)),
                start=np.zeros(1),
            ),
            covered=np.concatenate(
                [
                    np.zeros(each.mean.shape[1:]) if each.covered is None else each.covered
                    for each in both
                ]
            ),
        )

    def targets(self, part: Observed) -> float:
        """Return how many independent targets there are: those of one user are dependent."""
        return min(part.targets, float(part.counts.users))
