"""The joint law of one metric of several models, from which all that a comparison says follows.

Models with sampled ranks have a joint posterior of the logarithms of their metrics. Models whose
users' values are known have a joint t law of their means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from unsample._checks import check_level
from unsample.answers._estimates import MEAN, Estimate
from unsample.answers._means import MeanLaw
from unsample.answers._models import Models
from unsample.answers._published import Published
from unsample.answers._spread import TSpread
from unsample.errors import DesignError
from unsample.metrics import Metric
from unsample.prior import BOUNDS, PRIOR, Law, LogDifference, Posterior

#: The least value of which there is a logarithm.
_LEAST = 1e-12


@dataclass(frozen=True)
class BoundDifference:
    """A difference of which only the bounds of both models are known; chances are withheld."""

    value: float
    first: Estimate = field(repr=False)
    second: Estimate = field(repr=False)

    @property
    def chance(self) -> float:
        """Return nothing: there is no law."""
        return math.nan

    def below(self, value: float) -> float:
        """Return nothing: there is no law."""
        del value
        return math.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the least and the greatest difference; each model has half of the error."""
        both = 1.0 - (1.0 - check_level(level)) / 2.0
        (low, high), (other_low, other_high) = (
            each.interval(both) for each in (self.first, self.second)
        )
        return low - other_high, high - other_low


#: The law of the models that have one, on one metric; and that of a difference.
JointLaw = Law | MeanLaw | None
DifferenceLaw = LogDifference | TSpread | BoundDifference


def joint_law(metric: Metric, models: Models, entries: Mapping[str, Estimate]) -> JointLaw:
    """Return the joint law of all models but those that are known by bounds alone."""
    known = {name: entry for name, entry in entries.items() if entry.source != BOUNDS}
    sources = {entry.source for entry in known.values()}
    if len(sources) > 1:
        how = {PRIOR: "sampled", MEAN: "in full"}
        listed = ", ".join(f"{name} {how[entry.source]}" for name, entry in known.items())
        raise DesignError(
            f"models must all be sampled, or all be ranked in full, to be compared on {metric}, "
            f"got {listed}; sample items for all of them"
        )
    if not known:
        return None
    return (MeanLaw.of if MEAN in sources else _posterior)(metric, models, known)


def _posterior(metric: Metric, models: Models, entries: Mapping[str, Estimate]) -> Law:
    """Return the law under the joint posterior; its parts were fitted with the estimates."""
    parts = {name: entry.posterior for name, entry in entries.items() if entry.posterior}
    if all(isinstance(models.made.get(name), Published) for name in parts):
        # Few numbers tell so little of a curve that no part of its error is taken as common.
        alone = (Posterior.joined({name: part}, {}) for name, part in parts.items())
        law = Law.independent([each.law(metric) for each in alone])
    else:
        known = {pair: each for pair, each in models.between.items() if {*pair} <= parts.keys()}
        law = Posterior.joined(parts, known).law(metric)
    # Values are kept within their bounds.
    values = [entries[name].value for name in law.names]
    return replace(law, mean=np.log(np.maximum(values, _LEAST)))


def difference_of(law: JointLaw, entries: Mapping[str, Estimate], a: str, b: str) -> DifferenceLaw:
    """Return the law of the difference of two models; without one, what their bounds say."""
    if law is not None and {a, b} <= {*law.names}:
        return law.difference(a, b)
    return BoundDifference(entries[a].value - entries[b].value, entries[a], entries[b])
