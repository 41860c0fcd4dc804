"""Optimisation problems on the simplex, each solved for many histograms at once.

Every solver states its problem, and every solution carries a certificate for each histogram:
how it ended, the objective, a bound on how far from the optimum that is, and the iterations.
"""

from unsample.simplex._entropy import maximum_entropy
from unsample.simplex._least_squares import monotone_least_squares
from unsample.simplex._log_density import LogDensity, LogDensityFit
from unsample.simplex._mixture import em, maximum_likelihood
from unsample.simplex._solution import Certificate, Solution, Status

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
