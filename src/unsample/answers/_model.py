"""What a comparison knows of one model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray
from unsample.answers._evaluation import Evaluation
from unsample.answers._published import Published
from unsample.designs import Pilot
from unsample.evidence import CutTargets, RankCounts, Targets, deviations_of_mean, distinct_users
from unsample.metrics import Metric


@dataclass(frozen=True, eq=False)
class Model:
    """What is known of one model: counts for its estimates, targets for pairing where given."""

    name: str
    counts: RankCounts
    #: Its targets one by one; None where only their counts are known.
    targets: Targets | None = None
    #: What to match targets by where users are not given; None to match them by position.
    labels: npt.NDArray[Any] | None = None
    #: Made already, where the model comes from an evaluation.
    evaluation: Evaluation | None = None
    #: Made already, where all that is known are the numbers of a paper.
    published: Published | None = None
    #: Relevant documents of queries, where the corpus was cut down.
    cut: CutTargets | None = None

    @classmethod
    def of(
        cls, name: str, given: Targets | Evaluation, labels: npt.NDArray[Any] | None = None
    ) -> Model:
        """Return a model of which the targets are known."""
        if isinstance(given, Evaluation):
            # The sampled ranks of a pilot design are none to pair: most users are only guessed.
            known = not (isinstance(given.design, Pilot) and given.drawn)
            return cls(name, given.counts, given.found if known else None, evaluation=given)
        return cls(name, given.counts, given, labels)

    @classmethod
    def of_cut(cls, name: str, given: CutTargets) -> Model:
        """Return a model that searched a corpus that was cut down, or a complete one."""
        return cls(name, given.counts(), given.known if given.complete else None, cut=given)

    @property
    def relevance(self) -> FloatArray | None:
        """Return how relevant each target is, where that is known."""
        held = self.evaluation if self.cut is None else self.cut
        return None if held is None else held.relevance

    @property
    def made(self) -> Evaluation | Published | None:
        """Return the estimates of the model, where they were made before."""
        return self.published if self.evaluation is None else self.evaluation

    @cached_property
    def keys(self) -> tuple[npt.NDArray[Any], IntArray]:
        """Return what tells users apart, each once and sorted, and the place of each target's.

        Users of two models that have the same keys stand in the same order.
        """
        assert self.targets is not None
        key = self.labels if self.targets.users is None else self.targets.users
        return distinct_users(np.arange(len(self.targets.ranks)) if key is None else key)

    @cached_property
    def user_weights(self) -> FloatArray:
        """Return how much each user counts."""
        assert self.targets is not None
        weights, user = self.targets.each_weight, self.keys[1]
        if self.targets.filtered:
            return np.bincount(user, weights).astype(np.float64)
        found = np.zeros(len(self.keys[0]))
        found[user] = weights
        return found

    def totals(self, metric: Metric, scores: FloatArray) -> FloatArray:
        """Return the sum of the targets' scores for each user, weighed as in the metric."""
        assert self.targets is not None
        weights, user = self.targets.each_weight, self.keys[1]
        if self.counts.several:
            weights = weights * metric.shares(*self.targets.relevant_and_place)
        return np.bincount(user, weights * scores, minlength=len(self.keys[0])).astype(np.float64)

    def error_of_mean(self, totals: FloatArray) -> float:
        """Return the standard error of the mean over users of what each of them has in all."""
        deviations = deviations_of_mean(totals, self.user_weights)
        few = len(deviations) / max(len(deviations) - 1, 1)
        return math.sqrt(few * float(deviations @ deviations))
