"""`Evaluation`: metrics with intervals, ranks target by target, and their cost."""

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

    The arrays have an entry for each target, in the order in which the targets were given. So two
    models that were evaluated on the same targets can be compared target by target.

    >>> import unsample
    >>> users, catalogue = np.random.default_rng(0).normal(size=(2, 500, 8))
    >>> targets = np.arange(500), np.arange(500)
    >>> result = unsample.evaluate((users, catalogue), targets, items=500, metrics="NDCG@10")
    >>> round(result["NDCG@10"].value, 4), result.ranks[:3].tolist()
    (0.0135, [374, 278, 440])
    >>> result.design.name, round(result.share, 2)
    ('exact', 1.0)

    Attributes
    ----------
    design
        The design, with all its parameters, given or chosen during the evaluation.
    users, targets
        The user and the item of each target.
    ranks, highest
        The rank of each target among ``sampled + 1`` items. Beyond the K of a certified evaluation,
        and for users that a guided one did not draw, only a range is known: ``ranks`` is then the
        first rank of the range, and ``highest`` the last.
    sampled
        Among how many other items each rank is: the items that the target was compared with, or all
        other candidates if the rank holds in the full catalogue.
    catalogues
        The number of candidates of each target, the target included.
    scored
        The total number of scores that the scorer was asked for, of items and of targets. It is
        never more than the budget.
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
        findings: Findings,
        estimates: Estimates,
        *,
        targets: IntArray,
        rng: int,
        relevance: FloatArray | None,
        error: float | None,
    ) -> Self:
        """Return the findings of a design, with the metrics that were estimated from them."""
        of_estimates = {name.name: getattr(estimates, name.name) for name in fields(estimates)}
        of_estimates["counts"] = findings.ranges
        of_estimates["filtered"] = findings.filtered
        result = cls(
            **of_estimates,
            design=findings.design,
            users=np.asarray(findings.users),
            targets=targets,
            ranks=findings.lowest,
            highest=findings.ranks,
            sampled=np.asarray(findings.sampled),
            catalogues=np.asarray(findings.items),
            scored=findings.scored,
            rng=rng,
            relevance=relevance,
            error=error,
        )
        if error is None or result.reached:
            return result
        name, width = max(result.half_widths.items(), key=lambda item: item[1])
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
        half_widths = {}
        for entry in self.entries:
            low, high = entry.interval(population=False)
            half_widths[entry.metric.name] = (high - low) / 2.0 / max(abs(entry.value), 1e-300)
        return half_widths

    @property
    def reached(self) -> bool | None:
        """Return whether every metric is within the error that was sought; None if none was."""
        return None if self.error is None else max(self.half_widths.values()) <= self.error

    @property
    def as_targets(self) -> Targets:
        """Return the targets with their ranks, as far as the design found them."""
        return Targets(
            self.highest if self.design.certifies else self.ranks,
            self.catalogues,
            sampled=self.sampled,
            users=self.users,
            replacement=self.counts.replacement,
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
        """Return the design and the number of scores, in words."""
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
        """Return the result as plain values, as ``--json`` prints it."""
        cost = {"design": self.design.name, "scored": self.scored, "share": self.share}
        if self.error is not None:
            cost |= {"error": self.error, "reached": self.reached}
        return super().to_dict() | cost | {"seed": self.rng}
