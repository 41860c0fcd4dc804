"""What holds whatever P(R) is: bounds by linear programs, and errors of plain means."""

from unsample.bounds._bounds import Bounds
from unsample.bounds._direct import DirectMean
from unsample.bounds._limits import clopper_pearson, hoeffding, quantile
from unsample.bounds._program import MeanLimits, OverBins, least_value

__all__ = [
    "Bounds",
    "DirectMean",
    "MeanLimits",
    "OverBins",
    "clopper_pearson",
    "hoeffding",
    "least_value",
    "quantile",
]
