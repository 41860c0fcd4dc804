"""What holds whatever P(R) is: bounds by linear programs, and errors of plain means."""

from unsample.bounds._bounds import Bounds, bounds_grid
from unsample.bounds._direct import DirectMean
from unsample.bounds._limits import clopper_pearson, hoeffding, quantile
from unsample.bounds._program import MeanLimits, OverBins, is_feasible, least_value

__all__ = [
    "Bounds",
    "DirectMean",
    "MeanLimits",
    "OverBins",
    "bounds_grid",
    "clopper_pearson",
    "hoeffding",
    "is_feasible",
    "least_value",
    "quantile",
]
