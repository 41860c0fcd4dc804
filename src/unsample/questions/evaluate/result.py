"""What an evaluation returns: metrics with intervals, ranks target by target, and their cost."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample._rounding import percent, percent_at_most
from unsample.counts import Targets
from unsample.designs import Design, Findings
from unsample.questions.estimate.result import Estimates
from unsample.report import Note


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Evaluation(Estimates):
    """Metrics of a scorer on the full catalogue, with intervals; ``result["NDCG@10"].value``.

    The arrays have an entry for each target, in the order in which targets were given, so that
    two models evaluated on the same targets can be compared target by target.

    Attributes
    ----------
    design
        The design, with all its parameters, given or chosen during the evaluation.
    users, targets
        The user and the item of each target.
    ranks, highest
        The rank of each target among ``sampled + 1`` items. If only a range is known (beyond the K
        of a certified evaluation, or for users that a guided one did not draw), ``ranks`` is the
        first rank of the range and ``highest`` the last.
    sampled
        How many other items each rank refers to, without the target: the items it was compared
        with, or all candidates if the rank holds in the full catalogue.
    catalogues
        The number of candidates of each target, the target included.
    scored
        The total number of scores that the scorer was asked for: those of items, and of the
        targets. Never more than the budget.
    rng
        The seed of the random orders. Models evaluated with the same seed met the same items.
    relevance
        How relevant each target is; None if all are the same.
    error
        The error that was sought, relative to each metric; None if none was.
    """

    shown_by: ClassVar[str] = "unsample.questions.evaluate.view:view_of_evaluation"
    made_by: ClassVar[str] = "evaluate"

    design: Design
    users: IntArray
    targets: IntArray
    ranks: IntArray = field(repr=False)
    highest: IntArray = field(repr=False)
    sampled: IntArray = field(repr=False)
    catalogues: IntArray = field(repr=False)
    scored: int
    rng: int
    relevance: FloatArray | None = field(repr=False, default=None)
    error: float | None = None

    @classmethod
    def of(
        cls,
        found: Findings,
        estimates: Estimates,
        *,
        targets: IntArray,
        rng: int,
        relevance: FloatArray | None,
        error: float | None,
    ) -> Self:
        """Return what a design found, with the metrics estimated from it."""
        made = {each.name: getattr(estimates, each.name) for each in fields(estimates)}
        result = cls(
            **made | {"counts": found.ranges, "filtered": found.filtered},
            design=found.design,
            users=np.asarray(found.users),
            targets=targets,
            ranks=found.lowest,
            highest=found.ranks,
            sampled=np.asarray(found.sampled),
            catalogues=np.asarray(found.items),
            scored=found.scored,
            rng=rng,
            relevance=relevance,
            error=error,
        )
        if error is None or result.reached:
            return result
        name, width = max(result.half_widths.items(), key=lambda each: each[1])
        missed = Note(
            "missed",
            f"the error sought was not reached: {name} is known within "
            f"{percent_at_most(width)} at 95 %, and {percent(error)} was asked for; raise the "
            "budget, ask for a little less, or give a better guide",
        )
        return replace(result, notes=(*result.notes, missed))

    @property
    def guided(self) -> bool:
        """Return whether more is known of these users than of users like these."""
        return self.design.guided

    @property
    def half_widths(self) -> dict[str, float]:
        """Return half the width of each 95 % interval for these users, relative to the metric."""
        found = {}
        for entry in self.entries:
            low, high = entry.interval(population=False)
            found[entry.metric.name] = (high - low) / 2.0 / max(abs(entry.value), 1e-300)
        return found

    @property
    def reached(self) -> bool | None:
        """Return whether every metric is within the error that was sought; None if none was."""
        return None if self.error is None else max(self.half_widths.values()) <= self.error

    @property
    def found(self) -> Targets:
        """Return what the design found, target by target."""
        return Targets(
            self.highest if self.design.certifies else self.ranks,
            self.catalogues,
            self.sampled,
            self.users,
            self.counts.replacement,
            filtered=self.filtered,
        )

    @property
    def share(self) -> float:
        """Return `scored` as a share of the scores of a full ranking.

        It may be a little more than 1, because a few scores are asked for twice to see whether they
        repeat.
        """
        return float(self.scored / self.catalogues.sum())

    @property
    def cost(self) -> str:
        """Return what was scored, in words."""
        twice = self.scored - int(self.catalogues.sum())
        part = f"{100 * self.share:.3f} % of a full ranking"
        if self.design.certifies and twice >= 0:
            part = "a full ranking"
            if twice:
                part += f" and {twice:,} score{'s' * (twice > 1)} asked for twice"
        return (
            f"{self.design.name} design: {self.scored:,} scores, "
            f"{self.scored / len(self.users):,.1f} for each target, {part}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        cost = {"design": self.design.name, "scored": self.scored, "share": self.share}
        if self.error is not None:
            cost |= {"error": self.error, "reached": self.reached}
        return cost | super().to_dict()
