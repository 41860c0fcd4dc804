"""How sure an estimate is: bounds, intervals that own up to bias, and what a sample resolves."""

from unsample.confidence._certainty import AffineBound, Certainty
from unsample.confidence._evidence import Evidence, evidence_grid
from unsample.confidence._influence import SamplingError, nudged, sampling_errors
from unsample.confidence._program import InfeasibleError
from unsample.confidence._resolution import blind_rank, is_resolved, percentile_interval
from unsample.confidence._shape import CANDIDATES, SHAPES, Shape, shape_for
from unsample.confidence._smallest_k import Resolution

__all__ = [
    "CANDIDATES",
    "SHAPES",
    "AffineBound",
    "Certainty",
    "Evidence",
    "InfeasibleError",
    "Resolution",
    "SamplingError",
    "Shape",
    "blind_rank",
    "evidence_grid",
    "is_resolved",
    "nudged",
    "percentile_interval",
    "sampling_errors",
    "shape_for",
]
