"""Fit methods to the data, and to slightly other data when errors are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from unsample import estimators as _estimators
from unsample.answers._result import Errors
from unsample.confidence import DirectMean, MeanError, nudged, sampling_errors
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


class DeltaErrors(dict[str, Errors]):
    """The errors of each method, by fits to counts with one more target at a rank.

    They are made on first use, in one batch for all metrics.
    """

    def __init__(self, observed: Observed, question: Question) -> None:
        super().__init__()
        # Do not keep all of ``observed``: its matrices are large.
        self._counts, self._grid, self._question = observed.counts, observed.grid, question

    def __missing__(self, method: str) -> Errors:
        counts, metrics = self._counts, self._question.metrics
        if counts.known.all():
            # With known ranks, every method is a plain mean.
            known = Observed.prepare(counts, grid=self._grid).known_weights(metrics)
            return tuple(map(MeanError.of_cells, known.T, repeat(counts), metrics))
        if counts.effective < 2 or np.count_nonzero(counts.weight) < 2:
            # One target, or ranks that are all equal: an error of zero would be wrong.
            return ()
        batch = Observed.prepare(
            counts,
            resampled=nudged(counts),
            grid=self._grid,
            candidates=self._question.usual_candidates,
        )
        for each in self._question.methods:
            fit = fitted(each, batch, metrics)
            self[str(each)] = tuple(sampling_errors(fit.smooth_values, batch))
        return self[method]
