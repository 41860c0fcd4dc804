"""Which prior an argument means, and what it changes."""

from __future__ import annotations

import os
from dataclasses import replace

from unsample._checks import check_choice
from unsample.confidence import DirectMean
from unsample.errors import InputError
from unsample.estimators import MLE, Auto, Estimator
from unsample.estimators.prior import Prior, shipped
from unsample.evidence import RankCounts
from unsample.metrics import Metric

#: The prior that ships with the package.
SHIPPED = "shipped"
#: Kinds of evaluations, by the names that users give.
PRIOR_KINDS = ("recommendation", "repeats", "graph")


def as_prior(prior: Prior | str | os.PathLike[str] | None) -> Prior | None:
    """Return the prior for an object, a file, the name of the shipped one, or None."""
    if prior is None or isinstance(prior, Prior):
        return prior
    if isinstance(prior, str | os.PathLike):
        return shipped() if prior == SHIPPED else Prior.load(prior)
    raise InputError(
        f"prior must be a Prior, its file, or None, got {type(prior).__name__}; learn one with "
        "unsample.Prior.learn"
    )


def prior_kind(kind: str | None, candidates: str | None) -> str | None:
    """Return the kind as a prior names it; None if the data are to decide it."""
    if kind is None:
        return None
    check_choice("kind", kind, PRIOR_KINDS)
    return candidates if kind == "recommendation" else kind


def with_prior(method: Estimator, prior: Prior | None, kind: str | None) -> Estimator:
    """Return the method with this prior; without a prior, `auto` becomes `mle`."""
    if not isinstance(method, Auto):
        return method
    if prior is None:
        return MLE()
    own = replace(method, prior=None if prior is shipped() else prior)
    return own if own.kind or kind is None or kind not in prior.learned else replace(own, kind=kind)


def is_learned(metric: Metric, counts: RankCounts) -> bool:
    """Return whether a prior helps for this metric: not for plain means, nor for mean ranks."""
    return not metric.family.unlimited and DirectMean.of(metric, counts) is None
