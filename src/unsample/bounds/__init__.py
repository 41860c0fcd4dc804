"""Bounds by linear programs, whatever P(R) is, and errors of plain means."""

from unsample.bounds._bounds import Bounds, bounds_grid
from unsample.bounds._linear_program import (
    MeanLimits,
    extremes,
    is_feasible,
    minimum_value,
    probabilities_up_to,
)
from unsample.bounds._mean_error import MeanError, degrees_of_freedom
from unsample.bounds._survey_error import FEW_DRAWN, Drawn, DrawnError, DrawnMean, UserStratum
from unsample.bounds._unbiased_means import DirectMean
from unsample.uncertainty import holm

__all__ = [
    "FEW_DRAWN",
    "Bounds",
    "DirectMean",
    "Drawn",
    "DrawnError",
    "DrawnMean",
    "MeanError",
    "MeanLimits",
    "UserStratum",
    "bounds_grid",
    "degrees_of_freedom",
    "extremes",
    "holm",
    "is_feasible",
    "minimum_value",
    "probabilities_up_to",
]
