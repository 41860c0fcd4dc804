"""Base measures: what P(R) is taken to be where the data say nothing.

EM starts from one, and relative entropy is measured against one. Ranks that the sample cannot tell
apart keep the proportions that the base measure gives them, however many steps are taken.
"""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray
from unsample.estimators._observed import Observed
from unsample.estimators.beta import fit_beta, fit_power_law
from unsample.law import mean_over

__all__ = ["BASES", "base_measure"]

#: ``"uniform"``, as in Jin et al.; ``"reciprocal"``, 1/R; ``"power"``, a power of R and ``"beta"``,
#: a Beta law of R/N, both fitted to the same data by maximum likelihood.
BASES = ("uniform", "reciprocal", "power", "beta")


def base_measure(name: str, observed: Observed) -> FloatArray:
    """Return the mass of each bin: one row, or one for each histogram where it is fitted."""
    if name == "uniform":
        return (observed.widths / observed.grid.items)[None, :]
    if name == "reciprocal":
        grid = observed.grid
        mass = observed.widths * mean_over(lambda ranks: 1.0 / ranks, grid.low, grid.high)
        return np.asarray(mass / mass.sum())[None, :]
    fit = fit_power_law if name == "power" else fit_beta
    # Masses of zero could never grow again.
    return np.maximum(fit(observed).weights, 1e-300)
