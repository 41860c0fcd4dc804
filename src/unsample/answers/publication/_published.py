"""`published`: full-catalogue estimates from the numbers of a paper."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from unsample._checks import FloatArray, check_integer
from unsample.answers._estimate import DEFAULT_METHOD, DEFAULT_METRICS, Question
from unsample.answers._result import Estimates
from unsample.answers.publication._consistency import check_consistent, smallest_clash
from unsample.answers.publication._fit import Fit, fit_to_means
from unsample.answers.publication._numbers import Printed, SampledRanks, read_numbers
from unsample.answers.publication._paper import Paper
from unsample.confidence import (
    SHAPES,
    Certainty,
    SamplingError,
    Shape,
    nudged,
    sampling_errors,
)
from unsample.errors import UnsampleWarning
from unsample.estimators import Estimator, Observed
from unsample.evidence import RankCounts
from unsample.law import Law
from unsample.metrics import Metric

__all__ = ["Published", "published"]

#: Means are fitted no closer than this, however many digits are printed.
_SHARPEST = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Published(Estimates):
    """Estimates from printed numbers: as `Estimates`, with the ``paper`` they come from.

    ``counts`` hold only what the hit rates among them tell: how many ranks lie between their K.
    """

    paper: Paper | None = None

    @property
    def numbers(self) -> tuple[Printed, ...]:
        """Return the numbers, with what rounding hides of them."""
        return () if self.paper is None else self.paper.numbers

    def certainty_at(self, cutoffs: Iterable[int]) -> Certainty | None:
        """Return `certainty` prepared for metrics@K at other K."""
        assert self.paper is not None
        assert self.certainty is not None
        (evidence,) = self.certainty.evidence
        return self.paper.certainty(evidence.observed, cutoffs, self.certainty.shape)

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
    shape: str | Shape | None = None,
    method: str | Estimator = DEFAULT_METHOD,
    replacement: bool = True,
    decimals: int | None = None,
    percent: bool = False,
) -> Published:
    """Estimate full-catalogue metrics from the sampled metrics that a paper prints.

    Parameters
    ----------
    numbers
        Sampled metrics and their printed values, such as ``{"HR@1": 0.18, "NDCG@10": 0.40}``. Any
        metric of `unsample.metrics` will do; without ``@K`` it looks at all ``sampled + 1`` items.
    items
        The number of candidates in a full ranking, the target included. Where seen items were
        left out it differs by user: take the mean.
    sampled
        The number of items each target was ranked against (99, not 100).
    users
        The number of targets that the printed means are taken over.
    metrics
        Full-catalogue metrics to estimate.
    candidates, shape
        What the intervals may assume; as in `unsample.estimate`.
    method
        An estimator, as in `unsample.estimate`. It is given the histogram of sampled ranks that
        has the printed means and is nearest to one that an EM fit explains.
    replacement
        Whether the same item may be sampled twice for a target.
    decimals
        How many decimals are printed. By default text and `Decimal` keep their own, and floats,
        which cannot end in a zero, all have as many as the longest of them.
    percent
        Whether the values are percentages (decimals then count those of the percentage).

    Raises
    ------
    ContradictionError
        If no ranks have all these numbers; it names the fewest that clash.

    >>> paper = {"HR@1": 0.18, "HR@10": 0.69, "NDCG@10": 0.40}
    >>> result = published(paper, items=3706, sampled=99, users=6040, metrics="Recall@50")
    >>> low, high = result["Recall@50"].interval()
    >>> low < result["Recall@50"].value < high
    True
    """
    design = Law(items, sampled, replacement)
    users = check_integer("users", users, minimum=1, hint="the targets the means are taken over")
    printed = read_numbers(
        numbers, sampled=design.sampled, users=users, decimals=decimals, percent=percent
    )
    question = Question.parse(metrics, method, candidates, shape)
    ranks = SampledRanks.told_apart_by(printed, design.sampled)
    check_consistent(printed, ranks)
    paper = Paper(design, users, printed, ranks)
    cutoffs = question.cutoffs(design.items)
    observed = Observed.prepare(paper.refined_counts(np.ones(len(ranks.low))), cutoffs=cutoffs)
    fit = _fit(paper, observed)
    refined = Observed.prepare(
        paper.refined_counts(fit.histogram[0]),
        resampled=users * fit.histogram[1:],
        grid=observed.grid,
        candidates=question.usual_candidates,
    )
    (estimator,) = question.methods
    found = estimator.evaluate(refined, question.metrics)
    errors = sampling_errors(
        _values_when_nudged(paper, found.smooth_values, refined.counts), refined
    )
    result = question.answer(
        Published,
        paper.counts,
        {str(estimator): found},
        paper.certainty(fit.histogram[0], cutoffs, question.shape),
        Errors(tuple(errors)),
        resolved=lambda metric: metric.cutoff(design.items) >= paper.smallest_k,
        unresolved=_why_unresolved(paper),
        refuted=lambda certainty: _why_refuted(certainty, printed),
        paper=paper,
    )
    for note in result.notes:
        warnings.warn(note, stacklevel=2)
    return result


@dataclass(frozen=True, eq=False)
class Errors:
    """Standard errors by the delta method, one for each metric."""

    found: tuple[SamplingError, ...]
    notes: tuple[UnsampleWarning, ...] = ()

    def replicates(self, method: str, metric: int) -> FloatArray:
        """Return none: a paper has no targets to draw from."""
        return np.empty(0)

    def error(self, method: str, metric: int) -> SamplingError:
        """Return the errors of the metric of this number."""
        return self.found[metric]


def _fit(paper: Paper, observed: Observed) -> Fit:
    """Fit P(R) to the numbers, and to what they were with one target more at some ranks."""
    return fit_to_means(
        observed.likelihood,
        paper.features,
        np.concatenate([paper.means[None], paper.nudged_means()[paper.some_groups()]]),
        np.maximum(paper.spread, _SHARPEST),
        start=observed.widths,
    )


def _values_when_nudged(paper: Paper, values: FloatArray, counts: RankCounts) -> FloatArray:
    """Return the values as fitted, then those for the weights of `nudged`.

    They depend on the histogram through the means alone, and on a small change of these all but
    linearly: what one target more does at some ranks tells the rest.
    """
    tried = paper.nudged_means()[paper.some_groups()] - paper.means
    slope = np.linalg.lstsq(tried, values[1:] - values[0], rcond=1e-9)[0]
    weights = np.concatenate([counts.weight[None], nudged(counts)])
    means = weights / weights.sum(axis=1, keepdims=True) @ paper.features.T
    return np.asarray(values[0] + (means - means[0]) @ slope)


def _why_unresolved(paper: Paper) -> str:
    why = "fewer than one sampled item falls into the top K on average"
    if paper.first_cut > 1:
        why = f"the numbers do not tell the sampled ranks 1 to {paper.first_cut} apart"
    smallest = math.ceil(paper.smallest_k)
    resolved = f"K >= {smallest}" if smallest <= paper.design.items else "no K"
    return (
        f"{why}, so the value rests on the method's assumption about the top ranks; such numbers "
        f"resolve {resolved}"
    )


def _why_refuted(certainty: Certainty, numbers: tuple[Printed, ...]) -> str:
    """Say which numbers clash, if not with each other then with what is assumed or stated."""
    used = certainty.shape_in_use()
    refuted = certainty.shape if used is not None else SHAPES["none"]
    rows = smallest_clash(range(len(numbers)), lambda some: _only(certainty, some).fits(refuted))
    named = " and ".join(str(numbers[row]) for row in rows)
    if used is None:
        return (
            f"no distribution of global ranks gives {named} but for chance: items, sampled, users, "
            "or how items were drawn or ties broken is not as stated, and no estimate can be "
            "trusted"
        )
    return (
        f"{named} refute the assumption {certainty.shape}; "
        "the intervals are the bounds that assume nothing"
    )


def _only(certainty: Certainty, rows: tuple[int, ...]) -> Certainty:
    """Return what a few of the numbers say."""
    (whole,) = certainty.evidence
    kept = list(rows)
    part = replace(whole, features=whole.features[kept], low=whole.low[kept], high=whole.high[kept])
    return Certainty(certainty.counts, certainty.grid, (part,), certainty.shape)
