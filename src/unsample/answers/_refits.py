"""Fit methods to the data, and to resampled data when errors are asked for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from unsample import estimators as _estimators
from unsample._checks import Seed, as_rng
from unsample.answers._result import Variation
from unsample.confidence import DirectMean, MeanError, nudged, sampling_errors
from unsample.errors import ConvergenceWarning
from unsample.estimators import Estimator, Fit, Observed
from unsample.metrics import Metric

if TYPE_CHECKING:
    from unsample.answers._question import Question


def fitted(method: Estimator, observed: Observed, metrics: Sequence[Metric]) -> Fit:
    """Return the fit of a method; for metrics that are plain means, its values are the means."""
    fit = _estimators.fit_by_sizes(method, observed, metrics)
    for column, metric in enumerate(metrics):
        mean = DirectMean.of(metric, observed.counts)
        if mean is not None:
            for values in (fit.values, fit.smooth_values):
                values[:, column] = observed.shares @ mean.values
    return fit


class Refits(dict[str, Variation]):
    """The methods fitted again, to bootstrap samples or to counts with one more target at a rank.

    This is done on first use, in one batch for all metrics. A seed gives the same samples at any
    time, so threads that ask at the same time get the same values.
    """

    def __init__(
        self, observed: Observed, question: Question, errors: str, resamples: int, rng: Seed
    ) -> None:
        super().__init__()
        # Do not keep all of ``observed``: its matrices are large.
        self._counts, self._grid = observed.counts, observed.grid
        # Resampled cells show neither the effect of shared items nor which targets go together.
        alone = observed.counts.pools is None and observed.counts.clusters is None
        delta = errors == "delta" or not alone
        self._question, self._delta, self._rng = question, delta, rng
        # One target, or ranks that are all equal, resample only to themselves. An interval of
        # width zero would be wrong.
        alike = self._counts.effective < 2 or np.count_nonzero(self._counts.weight) < 2
        self._resamples = 0 if alike or self._delta else resamples
        as_rng(rng)
        # A generator may have changed its state before first use, so draw now.
        later = isinstance(rng, int | np.integer) or not self._resamples
        self._drawn = None if later else self._counts.resample(resamples, rng=rng)

    def __missing__(self, method: str) -> Variation:
        metrics, methods = self._question.metrics, self._question.methods
        counts = self._counts
        if counts.known.all():
            # With known ranks, every method is a plain mean.
            known = Observed.prepare(counts, grid=self._grid).known_weights(metrics)
            return Variation(
                np.empty((0, len(metrics))),
                tuple(map(MeanError.of_cells, known.T, repeat(counts), metrics)),
            )
        if not self._delta and self._resamples == 0:
            return Variation(np.empty((0, len(metrics))))
        rows = nudged(self._counts) if self._delta else self._drawn
        if rows is None:
            rows = self._counts.resample(self._resamples, rng=self._rng)
        batch = Observed.prepare(
            self._counts,
            resampled=rows,
            grid=self._grid,
            candidates=self._question.usual_candidates,
        )
        for each in methods:
            fit = fitted(each, batch, metrics)
            errors = tuple(sampling_errors(fit.smooth_values, batch)) if self._delta else ()
            values = fit.values[1:] * self._counts.scale
            self[str(each)] = Variation(values[: self._resamples], errors)
            if fit.failures and fit.certificate.usable:
                text = f"{each} did not converge on {fit.failures} bootstrap samples"
                warnings.warn(text, ConvergenceWarning, stacklevel=2)
        return self[method]
