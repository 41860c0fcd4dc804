"""What holds whatever P(R) is: bounds by linear programs, and errors of plain means."""

from unsample.bounds._bounds import Bounds, bounds_grid
from unsample.bounds._direct import DirectMean
from unsample.bounds._drawn import FEW_DRAWN, Drawn, DrawnError, DrawnMean, Stratum
from unsample.bounds._limits import quantile
from unsample.bounds._means import MeanError, degrees_of_freedom, holm
from unsample.bounds._program import (
    MeanLimits,
    chances_up_to,
    extremes,
    is_feasible,
    least_value,
)

__all__ = [
    "FEW_DRAWN",
    "Bounds",
    "DirectMean",
    "Drawn",
    "DrawnError",
    "DrawnMean",
    "MeanError",
    "MeanLimits",
    "Stratum",
    "bounds_grid",
    "chances_up_to",
    "degrees_of_freedom",
    "extremes",
    "holm",
    "is_feasible",
    "least_value",
    "quantile",
]
