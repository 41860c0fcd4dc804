r"""`published`: full-catalogue estimates from the numbers of a paper.

The histogram h of sampled ranks is not printed. It is found together with P(R), called pi:

.. math:: \min_{h, \pi \in \Delta} KL(h \,\|\, A\pi)
          + \sum_j \frac{((F h)_j - m_j)^2}{2 \sigma_j^2}

A holds P(sampled rank | bin), F the functions whose means m are printed. The second term makes h
have these means. Sigma is so small that the error is far below the rounding, unless no histogram
has exactly these means.

For fixed pi the best h is an exponential tilt of A pi, found by its dual. For fixed h one EM step
lowers the divergence. Both steps lower a jointly convex objective; as alternating projections they
converge to its minimum (Csiszar and Tusnady 1984). If only hit rates are printed, the tilt is
constant between their K, and a step is exactly the EM step of `mle` on ranges. So the same 100
steps from the same start give the same regularisation.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from unsample._checks import FloatArray, check_integer
from unsample.answers._estimate import DEFAULT_METHOD
from unsample.answers._notes import Note, warn_of
from unsample.answers._printed import Paper, Printed, read_numbers
from unsample.answers._prior import SHIPPED
from unsample.answers._question import Question
from unsample.answers._result import DEFAULT_METRICS, Estimates
from unsample.confidence import SHAPES, Certainty, Shape, nudged, sampling_errors
from unsample.errors import ContradictionError, DesignError
from unsample.estimators import Auto, Estimator, Observed
from unsample.estimators.prior import Prior
from unsample.law import Law, check_sampler
from unsample.metrics import Metric

#: Advice for readers of a paper, who cannot draw again.
_RECORD = (
    "ask the authors for ranks among all items, or evaluate their model with unsample.evaluate; "
    "unsample.audit tells from their negatives how these were drawn"
)
#: Means are not fitted more closely than this, even if many digits are printed.
_SHARPEST = 1e-6
#: Number of EM steps, the default of the estimator `mle`.
_EM_STEPS = 100
_NEWTON_STEPS = 60
_TINY = 1e-300


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

    def certainty_at(self, cutoffs: Iterable[int]) -> Certainty | None:
        """Return `certainty`, prepared for metrics at other K."""
        assert self.certainty is not None
        (evidence,) = self.certainty.strata[0].evidence
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
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    kind: str | None = None,
    method: str | Estimator = DEFAULT_METHOD,
    replacement: bool = True,
    sampler: str = "uniform",
    decimals: int | None = None,
    percent: bool = False,
    runs: int = 1,
) -> Published:
    """Estimate full-catalogue metrics from the sampled metrics that a paper prints.

    Parameters
    ----------
    numbers
        Sampled metrics and their printed values, such as ``{"HR@1": 0.18, "NDCG@10": 0.40}``. Any
        metric of `unsample.metrics` is allowed; without ``@K`` it uses all ``sampled + 1`` items.
    items
        The number of candidates in a full ranking, the target included. If seen items were left
        out, it differs by user: take the mean.
    sampled
        The number of items each target was ranked against (99, not 100).
    users
        The number of targets over which the printed means are taken.
    metrics
        Full-catalogue metrics to estimate.
    candidates, shape, prior, kind
        What the intervals may assume; as in `unsample.estimate`. Calibrated intervals use what the
        hit rates say.
    method
        An estimator, as in `unsample.estimate`. It is given the histogram of sampled ranks that
        has the printed means and is nearest to one that an EM fit explains.
    replacement
        Whether the same item may be sampled twice for a target.
    sampler
        ``"uniform"``; anything else is refused, with the reason and what to ask the authors for.
    decimals
        How many decimals are printed. By default text and `Decimal` keep their own. Floats lose a
        zero at the end, so all floats have as many decimals as the longest of them.
    percent
        Whether the values are percentages (decimals then count those of the percentage).
    runs
        The number of runs on these users, if the numbers are means over runs. Errors count users.

    Raises
    ------
    ContradictionError
        If no ranks give all these numbers, rounded or cut off; it names the fewest that contradict.

    >>> paper = {"HR@1": 0.18, "HR@10": 0.69, "NDCG@10": 0.40}
    >>> result = published(paper, items=3706, sampled=99, users=6040, metrics="Recall@50")
    >>> low, high = result["Recall@50"].interval()
    >>> low < result["Recall@50"].value < high
    True
    """
    check_sampler(sampler, _RECORD)
    law = Law(items, sampled, replacement)
    if law.sampled > law.items:
        raise DesignError(
            f"sampled must be at most items, got {sampled} with items = {items}; swapped?"
        )
    users = check_integer("users", users, minimum=1, hint="the targets the means are taken over")
    runs = check_integer("runs", runs, minimum=1)
    question = Question.parse(metrics, method, candidates, shape, prior, kind)
    (estimator,) = question.methods
    given = {"users": users * runs, "decimals": decimals, "percent": percent}
    paper, notes = _read_paper(numbers, law, users, given)
    cutoffs = question.cutoffs(law.items)
    told = _told(paper, question)
    observed = _observed(paper, question, told)
    fit = estimator.evaluate(observed, question.metrics)
    errors = sampling_errors(fit.smooth_values, observed)
    certainty = paper.certainty(observed.shares[0], cutoffs, question.shape)
    named = _refuted(paper, certainty, cutoffs)
    result = question.answer(
        Published,
        paper.counts,
        {str(estimator): fit},
        certainty,
        {str(estimator): tuple(errors)},
        remedy=_remedy(paper),
        data=named,
        misfit=f"gives {named} but for chance: items, sampled, users,",
        notes=notes,
        calibrated=question.calibrated(told),
        paper=paper,
    )
    warn_of(result.notes, stacklevel=2)
    return result


def _read_paper(
    numbers: Mapping[str, float | str | Decimal], law: Law, users: int, given: dict[str, Any]
) -> tuple[Paper, list[Note]]:
    """Read the numbers as rounded or, if no ranks give these, as cut off."""

    def read(cut_off: bool) -> Paper:
        printed = read_numbers(numbers, sampled=law.sampled, cut_off=cut_off, **given)
        paper = Paper(law, users, printed)
        paper.check_consistent()
        return paper

    try:
        return read(cut_off=False), []
    except ContradictionError as contradiction:
        try:
            paper = read(cut_off=True)
        except ContradictionError:
            raise contradiction from None
        text = (
            f"rounded, {contradiction}. They agree if digits were cut off, and are taken so; if "
            "they are means of several runs, say runs"
        )
        return paper, [Note("cut off", text)]


def _remedy(paper: Paper) -> str:
    """Return advice on what would resolve a metric."""
    if paper.first_cut > 1:
        return (
            f"the numbers do not tell the sampled ranks 1 to {paper.first_cut} apart: a hit rate "
            "at 1 would help"
        )
    top = math.ceil(paper.law.blind_rank - 1e-9)
    return f"on average one sampled item falls into the top {top:,}"


def _refuted(paper: Paper, certainty: Certainty, cutoffs: list[int]) -> str:
    """Return the fewest numbers that contradict what is assumed or stated; empty if none do."""
    if certainty.fits():
        return ""
    shape = certainty.shape if certainty.shape_in_use() is not None else SHAPES["none"]
    (evidence,) = certainty.strata[0].evidence
    rows = paper.fewest(
        lambda some: paper.certainty(evidence.observed, cutoffs, shape, some).fits()
    )
    return " and ".join(str(paper.numbers[row]) for row in rows)


# -- the histogram behind the numbers -------------------------------------------------------------


def _told(paper: Paper, question: Question) -> Observed:
    """Return how many ranks lie between the K of the hit rates."""
    return Observed.prepare(
        paper.counts,
        cutoffs=question.cutoffs(paper.law.items),
        candidates=question.usual_candidates,
    )


def _observed(paper: Paper, question: Question, told: Observed) -> Observed:
    """Return the histogram behind the numbers, then those with one more target, as in `nudged`.

    What the numbers leave open is filled in from a uniform P(R). For ``auto`` it is filled in from
    the P(R) that other data sets suggest: else that method would take an artefact for data.
    """
    prepared = Observed.prepare(
        paper.refined_counts(np.ones(len(paper.low))),
        cutoffs=question.cutoffs(paper.law.items),
        candidates=question.usual_candidates,
    )
    features = paper.features
    spread = np.maximum(paper.half_units / math.sqrt(3.0), _SHARPEST)

    (method,) = question.methods
    start = prepared.widths
    if isinstance(method, Auto):
        start = np.maximum(method.solve(told).weights[0], _TINY)

    def fitted(means: FloatArray) -> FloatArray:
        return fit_to_means(prepared.likelihood, features, means, spread, start=start)[0]

    (histogram,) = fitted(paper.means[None])
    counts = paper.refined_counts(histogram)
    weights = np.concatenate([counts.weight[None], nudged(counts)])
    means = weights / weights.sum(axis=1, keepdims=True) @ features.T
    return replace(prepared, counts=counts, shares=fitted(paper.means + means - means[0]))


def fit_to_means(
    likelihood: FloatArray,
    features: FloatArray,
    means: FloatArray,
    spread: FloatArray,
    *,
    start: FloatArray,
    steps: int = _EM_STEPS,
) -> tuple[FloatArray, FloatArray]:
    """Return the histogram and the masses of the bins, for each row of ``means``."""
    mass = np.broadcast_to(start / start.sum(), (len(means), len(start))).copy()
    dual = np.zeros_like(means)
    for _ in range(steps):
        implied = np.maximum(mass @ likelihood.T, _TINY)
        histogram, dual = tilt(implied, features, means, spread, dual)
        mass *= (histogram / implied) @ likelihood
    return histogram, mass / mass.sum(axis=1, keepdims=True)


def tilt(
    base: FloatArray,
    features: FloatArray,
    means: FloatArray,
    spread: FloatArray,
    dual: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    r"""Return the histograms nearest to ``base`` that have the means, and their dual variables.

    They are base * exp(F' x), normalised, where x minimises the strictly convex
    log sum base exp(F' x) - m'x + sum sigma^2 x^2 / 2. Newton's method with halved steps finds x,
    starting from the ``dual`` of a similar problem.
    """
    x = dual.copy()
    value, histogram = _dual_value(base, features, means, spread, x)
    for _ in range(_NEWTON_STEPS):
        present = histogram @ features.T
        gradient = present - means + spread**2 * x
        centred = features[None] - present[:, :, None]
        hessian = (centred * histogram[:, None, :]) @ centred.swapaxes(1, 2)
        hessian += np.eye(len(spread)) * spread**2
        move = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
        promised = -(gradient * move).sum(axis=1)
        if (promised <= 1e-14).all():
            # For so small a step the first order is enough; without the step digits would be lost.
            return histogram * (1.0 + (move[:, None, :] @ centred)[:, 0]), x + move
        size = np.ones(len(x))
        for _ in range(40):
            tried = x + size[:, None] * move
            new_value, new_histogram = _dual_value(base, features, means, spread, tried)
            worse = new_value > value - 1e-4 * size * promised + 1e-13 * np.abs(value)
            if not worse.any():
                break
            size[worse] /= 2.0
        x, value, histogram = tried, new_value, new_histogram
    return histogram, x


def _dual_value(
    base: FloatArray, features: FloatArray, means: FloatArray, spread: FloatArray, x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    logs = np.log(base) + x @ features
    top = logs.max(axis=1, keepdims=True)
    raised = np.exp(logs - top)
    total = raised.sum(axis=1, keepdims=True)
    penalty = 0.5 * (spread**2 * x**2).sum(axis=1)
    value = (top + np.log(total))[:, 0] - (means * x).sum(axis=1) + penalty
    return value, raised / total
