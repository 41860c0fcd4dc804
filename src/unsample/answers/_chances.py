"""Chances of winning, from the data of several models and from other data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import FloatArray
from unsample.answers._result import Estimates
from unsample.estimators.prior import JointPosterior
from unsample.metrics import Metric

#: The most models with a joint posterior: their covariance grows with their number.
_MOST_MODELS = 50
#: Number of draws for the chances of being the best.
_DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class Chances:
    """Joint posteriors of models on one data set; if there are several, they weigh the same."""

    names: tuple[str, ...]
    metrics: tuple[str, ...]
    posteriors: tuple[JointPosterior, ...]

    @classmethod
    def of(cls, estimates: Mapping[str, Estimates], metrics: Sequence[Metric]) -> Chances | None:
        """Return the chances; None for few targets, too many models, or models without a prior."""
        held = [each.calibrated for each in estimates.values()]
        known = [each for each in held if each is not None]
        sampled = [
            metric
            for metric in metrics
            if all(each[metric].calibrated is not None for each in estimates.values())
        ]
        few = any(each.certainty is None or each.certainty.few for each in estimates.values())
        if few or len(known) < len(held) or len(held) > _MOST_MODELS or not sampled:
            return None
        prior, targets = known[0], [each.targets(each.observed) for each in known]
        # If it is not stated whether seen items were candidates, both are equally likely.
        unknown = prior.candidates is None and prior.kind is None
        both = ("unseen", "all") if unknown else (prior.observed.candidates,)
        posteriors = []
        for candidates in both:
            rows = [
                replace(each.observed, shares=each.observed.shares[:1], candidates=candidates)
                for each in known
            ]
            joint = prior.prior.joint(rows, sampled, kind=prior.kind, targets=targets)
            posteriors.append(joint.for_others(targets))
        return cls(tuple(estimates), tuple(each.name for each in sampled), tuple(posteriors))

    def beats(self, a: str, b: str, metric: str) -> float | None:
        """Return the chance that ``a`` is better than ``b``; None for a metric without chances."""
        if metric not in self.metrics:
            return None
        place = self.metrics.index(metric)
        first, second = self.names.index(a), self.names.index(b)
        return float(np.mean([each.chance(first, second)[place] for each in self.posteriors]))

    def best(self, metric: str, rng: np.random.Generator) -> dict[str, float] | None:
        """Return each model's chance of being the best; None for a metric without chances."""
        if metric not in self.metrics:
            return None
        place, won = self.metrics.index(metric), np.zeros(len(self.names))
        for posterior in self.posteriors:
            for kind, weight in enumerate(posterior.weight):
                drawn = _draw(posterior, kind, place, rng)
                share = np.bincount(drawn.argmax(axis=1), minlength=len(won)) / _DRAWS
                won += weight * share / len(self.posteriors)
        return dict(zip(self.names, won.tolist(), strict=True))


def _draw(posterior: JointPosterior, kind: int, place: int, rng: np.random.Generator) -> FloatArray:
    """Draw the logarithm of the metric for all models, with calibrated tails."""
    mean = posterior.mean[kind, :, place]
    covariance = posterior.covariance[kind, place] * posterior.spread[kind] ** 2
    value, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(value, 0.0))
    tails = np.sqrt(posterior.freedom / rng.chisquare(posterior.freedom, size=_DRAWS))
    drawn = rng.standard_normal((_DRAWS, len(mean))) @ root.T
    return np.asarray(mean + drawn * tails[:, None])
