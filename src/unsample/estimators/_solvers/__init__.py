"""Optimisation problems on the simplex, each solved for many histograms at once.

Every solver states its problem, and every solution carries a certificate for each histogram:
how it ended, the objective, a bound on how far from the optimum that is, and the iterations.
"""

from unsample.estimators._solvers._entropy import maximum_entropy
from unsample.estimators._solvers._least_squares import monotone_least_squares
from unsample.estimators._solvers._log_density import LogDensity, LogDensityFit
from unsample.estimators._solvers._mixture import em, maximum_likelihood
from unsample.estimators._solvers._solution import Certificate, Solution, Status

__all__ = [
    "Certificate",
    "LogDensity",
    "LogDensityFit",
    "Solution",
    "Status",
    "em",
    "maximum_entropy",
    "maximum_likelihood",
    "monotone_least_squares",
]
