"""`Question`: what is asked of the data, and how fits and limits give the answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from unsample import estimators as _estimators
from unsample import metrics as _metrics
from unsample.answers._notes import Note
from unsample.answers._prior import SHIPPED, as_prior, is_learned, prior_kind, with_prior
from unsample.answers._result import Errors, Estimate, Estimates
from unsample.confidence import (
    Calibrated,
    Certainty,
    DirectMean,
    Shape,
    shape_for,
)
from unsample.estimators import Estimator, Fit, Observed
from unsample.estimators.prior import Prior
from unsample.evidence import (
    RankCounts,
)
from unsample.metrics import Metric

#: A note says so if intervals were widened by more than this part of the way to the bounds.
_FAR = 0.2

_Kind = TypeVar("_Kind", bound=Estimates)


@dataclass(frozen=True)
class Question:
    """What is asked of the data: metrics, by which methods, and under what assumptions."""

    metrics: tuple[Metric, ...]
    methods: tuple[Estimator, ...]
    candidates: str | None
    shape: Shape
    #: The prior, None if it is not used, and the kind of evaluation, None if it is not known.
    prior: Prior | None = None
    kind: str | None = None

    @classmethod
    def parse(
        cls,
        metrics: str | Metric | Iterable[str | Metric],
        method: str | Estimator | Iterable[str | Estimator],
        candidates: str | None,
        shape: str | Shape | None,
        prior: Prior | str | os.PathLike[str] | None = SHIPPED,
        kind: str | None = None,
    ) -> Question:
        """Return the question from names, and refuse metrics that a method cannot give."""
        held, chosen = as_prior(prior), prior_kind(kind, candidates)
        wanted = _metrics.parse_all(metrics)
        methods = tuple(with_prior(each, held, chosen) for each in _estimators.parse_all(method))
        for each in methods:
            each.require(wanted)
        return cls(wanted, methods, candidates, shape_for(shape, candidates), held, chosen)

    def calibrated(self, observed: Observed) -> Calibrated | None:
        """Return the intervals that the prior gives; None if ranks depend on each other."""
        if self.prior is None or observed.counts.shared is not None or observed.known.all():
            return None
        counts = observed.counts
        sampled = tuple(each for each in self.metrics if is_learned(each, counts))
        return Calibrated(observed, self.prior, self.kind, self.candidates, sampled)

    @property
    def usual_candidates(self) -> str:
        """Return which candidates are assumed by methods that depend on them."""
        return self.candidates or "unseen"

    def cutoffs(self, items: int) -> list[int]:
        """Return the last rank that counts for each metric."""
        return [metric.cutoff(items) for metric in self.metrics]

    def answer(
        self,
        kind: Callable[..., _Kind],
        counts: RankCounts,
        fits: Mapping[str, Fit],
        certainty: Certainty | None,
        errors: Mapping[str, Errors],
        *,
        remedy: str,
        data: str,
        misfit: str,
        notes: Iterable[Note] = (),
        calibrated: Calibrated | None = None,
        **more: Any,
    ) -> _Kind:
        """Return the result, with notes that a reader should know before relying on it.

        ``remedy`` says what would resolve metrics. ``data`` names what refutes the shape, if it is
        refuted. ``misfit`` says what no P(R) can explain, if none fits.
        """
        unresolved = [
            metric.name
            for metric in self.metrics
            if certainty is not None and not certainty.resolves(metric)
        ]
        warned = {str(each) for each in self.methods if each.caution}
        entries = [
            Estimate(
                metric,
                name,
                min(counts.scale * float(fit.values[0, place]), counts.ceiling(metric)),
                metric.name not in unresolved,
                fit.certificate,
                certainty,
                name not in warned and fit.certificate.usable,
                fit.clipped[place],
                errors,
                place,
                calibrated if is_learned(metric, counts) else None,
            )
            for name, fit in fits.items()
            for place, metric in enumerate(self.metrics)
        ]
        known: list[Note] = []
        if unresolved:
            names = f"{', '.join(unresolved)} {'is' if len(unresolved) == 1 else 'are'}"
            text = (
                f"{names} not resolved: the data leave open more than a quarter of the value, so "
                f"the estimate rests on the method's assumption about the top ranks; {remedy}"
            )
            known.append(Note("unresolved", text))
        known += [Note("biased", each.caution) for each in self.methods if each.caution]
        known += [_outside(entry) for entry in entries if entry.widened]
        known += notes
        for name, fit in fits.items():
            moved = [
                f"{metric.name} = {fit.smooth_values[0, place]:.6g}"
                for place, metric in enumerate(self.metrics)
                if fit.clipped[place]
            ]
            if moved:
                text = (
                    f"{name} gave {', '.join(moved)}, outside the metric's range, and was clipped "
                    "into it: the method is linear in the counts and too noisy for these data; use "
                    "auto or mle"
                )
                known.append(Note("clipped", text))
        direct = certainty is not None and all(
            DirectMean.of(metric, certainty.counts) is not None for metric in self.metrics
        )
        if certainty is not None and not direct and not certainty.fits():
            text = (
                f"no distribution of global ranks {misfit} or how items were drawn or ties broken "
                "is not as stated, and no estimate can be trusted"
            )
            if certainty.shape_in_use() is not None:
                text = (
                    f"{data} refute the assumption {certainty.shape}; the intervals are the bounds "
                    "that assume nothing"
                )
            known.append(Note("refuted", text))
        doubted = [] if certainty is None or direct else self._doubted(certainty)
        if doubted:
            text = (
                f"{data or 'the numbers'} hardly agree with the assumption {self.shape}; the "
                f"intervals of {', '.join(doubted)} were widened towards the bounds that assume "
                "nothing"
            )
            known.append(Note("doubted", text))
        learned = {name: fit.distribution for name, fit in fits.items()}
        return kind(
            entries=tuple(entries),
            counts=counts,
            distributions={name: mass for name, mass in learned.items() if mass is not None},
            notes=tuple(known),
            candidates=self.candidates,
            explanations={name: fit.explanation for name, fit in fits.items() if fit.explanation},
            **more,
        )

    def _doubted(self, certainty: Certainty) -> list[str]:
        """Return the metrics whose intervals were widened far towards the bounds."""
        return [
            metric.name
            for metric in self.metrics
            if DirectMean.of(metric, certainty.counts) is None and certainty.doubt > _FAR
        ]


def _outside(entry: Estimate) -> Note:
    """Return the note on a value outside the interval of its metric."""
    low, high = entry.raw_interval()
    return Note(
        "outside",
        f"{entry.method} gives {entry.metric} = {entry.value:.4g}, outside the interval "
        f"{low:.4g} .. {high:.4g} that data and assumption allow; one of the two is wrong, and the "
        "interval was widened to hold the value, as far as the bounds go",
    )
