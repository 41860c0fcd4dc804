"""Optimisation problems on the simplex, each solved for many histograms at once.

Every solver states its problem, and every solution carries a certificate for each histogram:
how it ended, the objective, a bound on how far from the optimum that is, and the iterations.
"""

from unsample.estimators._solvers._log_density import LogDensity, LogDensityFit
from unsample.estimators._solvers._mixture import em, maximum_likelihood
from unsample.estimators._solvers._solution import CLOSED_FORM, Certificate, Solution, Status
from unsample.estimators._solvers._squares import maximum_entropy, monotone_least_squares

__all__ = [
    "CLOSED_FORM",
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
