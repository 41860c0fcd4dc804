"""How sure an estimate is: bounds, intervals that include bias, and what a sample resolves."""

from unsample.confidence._calibrated import Calibrated
from unsample.confidence._certainty import AffineBound, Certainty
from unsample.confidence._direct import DirectMean, sampled_auc
from unsample.confidence._drawn import FEW_DRAWN, Drawn, DrawnError
from unsample.confidence._errors import (
    SamplingError,
    nudged,
    sampling_errors,
)
from unsample.confidence._items import DrawnPart, difference_part, items_part
from unsample.confidence._limits import MeanLimits, OverBins, evidence_grid
from unsample.confidence._means import MeanError, degrees_of_freedom, holm
from unsample.confidence._pooled import PooledCertainty
from unsample.confidence._program import SHAPES, Shape, shape_for
from unsample.confidence._shared import PooledError
from unsample.confidence._strata import Stratum

__all__ = [
    "FEW_DRAWN",
    "SHAPES",
    "AffineBound",
    "Calibrated",
    "Certainty",
    "DirectMean",
    "Drawn",
    "DrawnError",
    "DrawnPart",
    "MeanError",
    "MeanLimits",
    "OverBins",
    "PooledCertainty",
    "PooledError",
    "SamplingError",
    "Shape",
    "Stratum",
    "degrees_of_freedom",
    "difference_part",
    "evidence_grid",
    "holm",
    "items_part",
    "nudged",
    "sampled_auc",
    "sampling_errors",
    "shape_for",
]
