"""How an estimate answers to one more target: the delta method, for any estimator.

Adding a little weight to one cell and solving again gives the derivative of the estimate in the
direction of that cell, its influence. As many solutions as there are cells, all in one batch, give
the standard error that a bootstrap needs hundreds for, and they tell two errors apart: that of
drawing other users like these, and that of drawing other items for these same users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray
from unsample.counts import RankCounts
from unsample.estimators import Observed
from unsample.simplex import em

__all__ = ["SamplingError", "nudged", "sampling_errors"]

#: Steps of the fit of P(R) that splits the variance; the split depends little on it.
_STEPS = 100


@dataclass(frozen=True)
class SamplingError:
    """Standard errors of an estimate: for users like these, and for these users alone."""

    population: float
    these: float


def nudged(counts: RankCounts) -> FloatArray:
    """Return the weights of the cells with one target more in each cell in turn."""
    one_target = counts.weight.sum() / counts.effective
    return np.asarray(counts.weight + one_target * np.eye(len(counts)))


def sampling_errors(values: FloatArray, observed: Observed) -> list[SamplingError]:
    """Return the errors of each column of ``values``.

    Row 0 holds the estimates; the other rows, those for the weights of `nudged`.
    """
    shares, targets = observed.shares[0], observed.targets
    influence = (values[1:] - values[0]) * (targets + 1.0)
    influence = influence - shares @ influence
    total = shares @ influence**2
    # Given the global rank, what is left of the variance is that of the sampled items.
    posterior = _posterior(observed)
    mass = shares @ posterior
    given_rank = (posterior * shares[:, None]).T @ influence / np.maximum(mass, 1e-300)[:, None]
    between = mass @ given_rank**2
    return [
        SamplingError(math.sqrt(whole / targets), math.sqrt(max(whole - part, 0.0) / targets))
        for whole, part in zip(total, between, strict=True)
    ]


def _posterior(observed: Observed) -> FloatArray:
    """Return P(bin | cell), one row for each cell, under an EM fit of P(R)."""
    start = observed.widths / observed.widths.sum()
    fit = em(observed.likelihood, observed.shares[:1], start=start, iterations=_STEPS)
    joint = observed.likelihood * fit.weights[0]
    return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300))
