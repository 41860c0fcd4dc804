"""`Published`: estimates, and the printed numbers that they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from unsample.metrics import Metric
from unsample.posterior import Cloud
from unsample.questions.estimate.result import AUTO, Estimate, Estimates, read_from
from unsample.questions.published.paper_numbers import Paper, Printed
from unsample.uncertainty import DEFAULT_LEVEL


@dataclass(frozen=True, eq=False, repr=False)
class PublishedEstimate(Estimate):
    """One metric from printed numbers."""

    paper: Paper = field(repr=False, kw_only=True)

    @classmethod
    def of(cls, metric: Metric, paper: Paper, *, cloud: Cloud | None) -> PublishedEstimate:
        """Return one metric from the cloud, within its bounds."""
        limits = paper.bounds(metric, DEFAULT_LEVEL)
        return cls(
            metric=metric,
            method=AUTO,
            limits=limits,
            counts=paper.counts,
            cloud=cloud,
            paper=paper,
            **read_from(cloud, metric, limits=limits)._asdict(),
        )

    def _bounds_at(self, level: float) -> tuple[float, float]:
        """Compute the bounds at a level: they hold for every P(R) that gives the numbers."""
        return self.paper.bounds(self.metric, level)

    def another(self, metric: Metric) -> PublishedEstimate:
        """Return another metric from the same numbers."""
        return PublishedEstimate.of(metric, self.paper, cloud=self.cloud)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Published(Estimates):
    """Estimates from printed numbers: `Estimates`, with the ``paper`` they come from.

    ``counts`` hold only what the printed hit rates tell: how many ranks lie between their K.

    >>> import unsample
    >>> paper = {"HR@1": "0.18", "HR@10": "0.69"}
    >>> result = unsample.published(paper, items=3706, sampled=99, users=6040)
    >>> [(str(number), round(number.low, 4)) for number in result.numbers]
    [('HR@1 = 0.18', 0.175), ('HR@10 = 0.69', 0.685)]
    >>> result.counts.count.tolist()                       # ranks 1, 2 to 10, and 11 to 100
    [1087, 3081, 1872]
    """

    shown_by: ClassVar[str] = "unsample.questions.published.view:view_of_published"
    made_by: ClassVar[str] = "published"

    paper: Paper

    @property
    def numbers(self) -> tuple[Printed, ...]:
        """Return the printed numbers, with their rounding errors."""
        return self.paper.numbers

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of `Estimates.to_dict`, and ``published`` with the printed numbers."""
        printed = [
            {"metric": number.name, "value": number.value, "low": number.low, "high": number.high}
            for number in self.numbers
        ]
        return super().to_dict() | {"published": printed}

    @property
    def targets_read(self) -> None:
        """Return None: printed numbers hold no targets."""
        return
