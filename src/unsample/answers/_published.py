"""`published`: full-catalogue metrics from the numbers that a paper prints.

Printed numbers are evidence like any other: means over users of functions of their sampled ranks,
rounded. The posterior takes them under the same prior as sampled ranks, and the bounds are those of
every P(R) that gives them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from unsample import metrics as _metrics
from unsample._checks import check_choice, check_integer
from unsample.answers._estimates import AUTO, Estimate, Estimates, learned
from unsample.answers._notes import Note, warn_of
from unsample.answers._printed import Paper, Printed, read_numbers
from unsample.answers._prior import SHIPPED, as_prior, prior_kind
from unsample.answers._result import DEFAULT_LEVEL, DEFAULT_METRICS
from unsample.errors import DesignError
from unsample.estimators import CANDIDATES
from unsample.law import Law
from unsample.metrics import Metric
from unsample.prior import BOUNDS, Numbers, Posterior, Prior


@dataclass(frozen=True, eq=False)
class PublishedEstimate(Estimate):
    """One metric from printed numbers."""

    paper: Paper = field(repr=False, kw_only=True)

    def bounds(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return the least and greatest value that agree with the numbers, whatever P(R) is."""
        return self.limits if level == DEFAULT_LEVEL else self.paper.bounds(self.metric, level)

    def another(self, metric: Metric) -> PublishedEstimate:
        """Return another metric from the same numbers."""
        return _entry(metric, self.paper, self.posterior)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Published(Estimates):
    """Estimates from printed numbers: `Estimates`, with the ``paper`` they come from.

    ``counts`` hold only what the printed hit rates tell: how many ranks lie between their K.
    """

    paper: Paper

    @property
    def numbers(self) -> tuple[Printed, ...]:
        """Return the printed numbers, with their rounding errors."""
        return self.paper.numbers

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints: the keys of `Estimates.to_dict`, and ``published``."""
        printed = [
            {"metric": number.name, "value": number.value, "low": number.low, "high": number.high}
            for number in self.numbers
        ]
        return super().to_dict() | {"published": printed}


def published(
    numbers: Mapping[str, float | str | Decimal],
    *,
    items: int,
    sampled: int,
    users: int,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    candidates: str | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    kind: str | None = None,
    replacement: bool = True,
    percent: bool = False,
    runs: int = 1,
) -> Published:
    """Estimate full-catalogue metrics from the sampled metrics that a paper prints.

    Parameters
    ----------
    numbers
        Sampled metrics and their printed values, such as ``{"HR@1": "0.18", "NDCG@10": "0.40"}``.
        Any metric of `unsample.metrics` is allowed; without ``@K`` it uses all ``sampled + 1``
        items. Text and `Decimal` keep their digits. Floats lose a zero at the end, so all floats
        are taken to have as many decimals as the longest of them.
    items
        The number of candidates in a full ranking, the target included. If seen items were left
        out, it differs by user: take the mean.
    sampled
        The number of items each target was ranked against (99, not 100).
    users
        The number of targets over which the printed means are taken.
    metrics
        Full-catalogue metrics to estimate.
    candidates, prior, kind
        What the intervals may assume; as in `unsample.estimate`. Without a prior, they are the
        bounds.
    replacement
        Whether the same item may be sampled twice for a target.
    percent
        Whether the values are percentages.
    runs
        The number of runs on these users, if the numbers are means over runs. Errors count users.

    Raises
    ------
    ContradictionError
        If no ranks give all these numbers, rounded; it names the fewest that contradict.

    >>> paper = {"HR@1": 0.18, "HR@10": 0.69, "NDCG@10": 0.40}
    >>> result = published(paper, items=3706, sampled=99, users=6040, metrics="Recall@50")
    >>> low, high = result["Recall@50"].interval()
    >>> low < result["Recall@50"].value < high
    True
    """
    if candidates is not None:
        check_choice("candidates", candidates, CANDIDATES)
    law = Law(items, sampled, replacement)
    if law.sampled > law.items:
        raise DesignError(
            f"sampled must be at most items, got {sampled} with items = {items}; swapped?"
        )
    users = check_integer("users", users, minimum=1, hint="the targets the means are taken over")
    runs = check_integer("runs", runs, minimum=1)
    wanted = _metrics.parse_all(metrics)
    held, chosen = as_prior(prior), prior_kind(kind, candidates)
    read = read_numbers(numbers, sampled=law.sampled, users=users * runs, percent=percent)
    paper = Paper(law, users, read)
    paper.check_consistent()
    posterior = None
    if held is not None:
        names = tuple(number.metric for number in paper.numbers)
        evidence = Numbers(law, users, names, paper.means, paper.half_units)
        posterior = Posterior.of_numbers(evidence, held, kind=chosen, candidates=candidates)
    notes: tuple[Note, ...] = ()
    if paper.refuted:
        named = " and ".join(str(paper.numbers[row]) for row in paper.refuted)
        text = (
            f"no distribution of global ranks gives {named} but for chance: items, sampled, users, "
            "or how items were drawn or ties broken is not as stated, and no estimate can be "
            "trusted"
        )
        notes = (Note("refuted", text),)
    result = Published(
        entries=tuple(_entry(metric, paper, posterior) for metric in wanted),
        counts=paper.counts,
        distributions={} if posterior is None else {AUTO: posterior.curve()},
        notes=notes,
        candidates=candidates,
        paper=paper,
    )
    warn_of(result.notes, stacklevel=3)
    return result


def _entry(metric: Metric, paper: Paper, posterior: Posterior | None) -> PublishedEstimate:
    """Return one metric: what the posterior says of it, within its bounds."""
    limits = paper.bounds(metric, DEFAULT_LEVEL)
    value, source, spread, own = (limits[0] + limits[1]) / 2.0, BOUNDS, None, None
    if posterior is not None and not metric.family.unlimited:
        value, source, spread, own = learned(metric, posterior, limits, possible=not paper.refuted)
    return PublishedEstimate(
        metric, AUTO, value, source, spread, own, limits, paper.counts, posterior, paper=paper
    )
