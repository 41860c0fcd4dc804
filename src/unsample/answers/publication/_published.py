"""`published`: full-catalogue estimates from the numbers of a paper."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from unsample import estimators as _estimators
from unsample import metrics as _metrics
from unsample._checks import FloatArray, check_integer
from unsample.answers.estimation import (
    DEFAULT_METHOD,
    DEFAULT_METRICS,
    EVERYDAY,
    Estimate,
    Estimates,
    Note,
    clipping_notes,
)
from unsample.answers.publication._consistency import check_consistent, smallest_clash
from unsample.answers.publication._fit import Fit, fit_to_means
from unsample.answers.publication._numbers import Printed, SampledRanks, read_numbers
from unsample.answers.publication._paper import Paper
from unsample.confidence import (
    SHAPES,
    Certainty,
    Shape,
    nudged,
    sampling_errors,
    shape_for,
)
from unsample.errors import RefutedWarning, UnresolvedWarning
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
    wanted = _metrics.parse_all(metrics)
    (estimator,) = _estimators.parse_all(method)
    estimator.require(wanted)
    assumed = shape_for(shape, candidates)
    ranks = SampledRanks.told_apart_by(printed, design.sampled)
    check_consistent(printed, ranks)
    paper = Paper(design, users, printed, ranks)
    cutoffs = [metric.cutoff(design.items) for metric in wanted]
    observed = Observed.prepare(paper.refined_counts(np.ones(len(ranks.low))), cutoffs=cutoffs)
    fit = _fit(paper, observed)
    refined = Observed.prepare(
        paper.refined_counts(fit.histogram[0]),
        resampled=users * fit.histogram[1:],
        grid=observed.grid,
        candidates=candidates or EVERYDAY,
    )
    evaluation = estimator.evaluate(refined, wanted)
    values, smooth = evaluation.values, evaluation.smooth_values
    errors = sampling_errors(_values_when_nudged(paper, smooth, refined.counts), refined)
    certainty = paper.certainty(fit.histogram[0], cutoffs, assumed)
    notes = [
        *_resolution_notes(wanted, paper),
        *clipping_notes({str(estimator): evaluation}, wanted),
        *_refutation_notes(certainty, printed),
    ]
    for category, text in notes:
        warnings.warn(text, category, stacklevel=2)
    return Published(
        entries=tuple(
            Estimate(
                metric,
                str(estimator),
                float(values[0, column]),
                metric.cutoff(design.items) >= paper.smallest_k,
                evaluation.certificate,
                values[:0, column],
                certainty,
                errors[column],
                evaluation.clipped[column],
            )
            for column, metric in enumerate(wanted)
        ),
        counts=paper.counts,
        distributions=(
            {} if evaluation.distribution is None else {str(estimator): evaluation.distribution}
        ),
        warnings=tuple(text for _, text in notes),
        candidates=candidates,
        explanations={str(estimator): evaluation.explanation} if evaluation.explanation else {},
        paper=paper,
    )


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


def _resolution_notes(wanted: tuple[Metric, ...], paper: Paper) -> list[Note]:
    hidden = [
        metric.name for metric in wanted if metric.cutoff(paper.design.items) < paper.smallest_k
    ]
    if not hidden:
        return []
    why = "fewer than one sampled item falls into the top K on average"
    if paper.first_cut > 1:
        why = f"the numbers do not tell the sampled ranks 1 to {paper.first_cut} apart"
    smallest = math.ceil(paper.smallest_k)
    resolved = f"K >= {smallest}" if smallest <= paper.design.items else "no K"
    text = (
        f"not resolved: {', '.join(hidden)}; {why}, so the value rests on the method's assumption "
        f"about the top ranks; such numbers resolve {resolved}"
    )
    return [(UnresolvedWarning, text)]


def _refutation_notes(certainty: Certainty, numbers: tuple[Printed, ...]) -> list[Note]:
    """Say which numbers clash, if not with each other then with what is assumed or stated."""
    if certainty.fits():
        return []
    used = certainty.shape_in_use()
    refuted = certainty.shape if used is not None else SHAPES["none"]
    rows = smallest_clash(range(len(numbers)), lambda some: _only(certainty, some).fits(refuted))
    named = " and ".join(str(numbers[row]) for row in rows)
    if used is None:
        text = (
            f"no distribution of global ranks gives {named} but for chance: items, sampled, users, "
            "or how items were drawn or ties broken is not as stated, and no estimate can be "
            "trusted"
        )
    else:
        text = (
            f"{named} refute the assumption {certainty.shape}; "
            "the intervals are the bounds that assume nothing"
        )
    return [(RefutedWarning, text)]


def _only(certainty: Certainty, rows: tuple[int, ...]) -> Certainty:
    """Return what a few of the numbers say."""
    (whole,) = certainty.evidence
    kept = list(rows)
    part = replace(whole, features=whole.features[kept], low=whole.low[kept], high=whole.high[kept])
    return Certainty(certainty.counts, certainty.grid, (part,), certainty.shape)
