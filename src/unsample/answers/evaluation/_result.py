"""What an evaluation found: the estimates, what they cost, and the outcome of every target."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from unsample._checks import FloatArray, IntArray
from unsample.answers._door import page_of
from unsample.answers._result import Estimate, Estimates
from unsample.designs.running._designs import Design
from unsample.evidence import RankCounts
from unsample.metrics import Metric

__all__ = ["Evaluated"]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Metrics of a scorer on the full catalogue, with intervals; ``result["NDCG@10"].value``.

    The arrays have an entry for each target, in the order in which targets were given, so that
    two models evaluated on the same targets can be compared target by target.

    Attributes
    ----------
    estimates
        Values and intervals of the metrics.
    design
        The design, with every parameter that was decided on the way.
    users, targets
        Who, and which item.
    ranks, highest
        The rank of each target among ``sampled + 1`` items. Where only a range is known (beyond
        the K of a certified evaluation), ``ranks`` is its first and ``highest`` its last.
    sampled
        How many items the ranks are among, the target not counted: those it was compared with,
        or all candidates where the rank holds in the whole catalogue.
    items
        N of each target.
    compared
        How many items each target was compared with.
    asked
        How many scores the scorer gave: ``compared``, and the targets' own with every batch.
    seed
        The seed of the random orders; models evaluated with one seed met the same items.
    """

    estimates: Estimates
    design: Design
    users: IntArray
    targets: IntArray
    ranks: IntArray
    highest: IntArray
    sampled: IntArray
    items: IntArray
    compared: IntArray
    asked: int
    seed: int
    weights: FloatArray | None = None
    warnings: tuple[str, ...] = ()

    @property
    def counts(self) -> RankCounts:
        """Return the counts of ranks, each target under its own sample size."""
        return self.estimates.counts

    @property
    def scored(self) -> int:
        """Return how many items were compared with their targets, in all."""
        return int(self.compared.sum())

    @property
    def share(self) -> float:
        """Return `scored` as a share of a full ranking."""
        return float(self.scored / (self.items - 1).sum())

    def __getitem__(self, key: str | Metric) -> Estimate:
        return self.estimates[key]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "design": self.design.name,
            "scored": self.scored,
            "share": self.share,
            **self.estimates.to_dict(),
            "warnings": list(self.warnings),
        }

    def _repr_html_(self) -> str:
        from unsample.pages import as_notebook

        return as_notebook(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the result as one interactive page, and write it to ``path`` if one is given."""
        return page_of(self, path)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a data frame with one row for each metric."""
        return self.estimates.to_frame(backend)

    @property
    def cost(self) -> str:
        """Return what was scored, in words."""
        each = self.scored / len(self.users)
        return (
            f"{self.design.name} design: {self.scored:,} items scored, {each:,.1f} a target, "
            f"{self.share:.3%} of a full ranking"
        )

    def __str__(self) -> str:
        from unsample.pages import as_text

        return as_text(self)

    __repr__ = __str__
