"""Estimators of full-catalogue metrics from sampled ranks, one file for each idea.

`REGISTRY` lists them by the name that people type. Those that estimate the rank distribution P(R)
are `DistributionEstimator`: fitted once, they give every metric at every K. The others,
`MetricEstimator`, put a corrected value in place of the metric at each sampled rank.

To add one, write a frozen dataclass with a ``name`` in a file of its own, put it into the registry,
and the contract test in ``tests/test_contract.py`` takes it from there.
"""

from unsample.estimators._base import (
    DistributionEstimator,
    Estimator,
    Evaluation,
    MetricEstimator,
)
from unsample.estimators._base import Evaluation as Fit
from unsample.estimators._observed import CANDIDATES, Observed
from unsample.estimators._registry import REGISTRY, parse, parse_all
from unsample.estimators._solvers import Certificate
from unsample.estimators.auto import Auto
from unsample.estimators.beta import Beta, RecallMap
from unsample.estimators.bv import BV, BVwithMES, BVwithMLE, MNwithMES, MNwithMLE
from unsample.estimators.cls import CLS
from unsample.estimators.mes import MES
from unsample.estimators.mle import MAP, MLE, WMLE
from unsample.estimators.naive import Naive, UnbiasedRank
from unsample.estimators.smooth import Smooth

__all__ = [
    "BV",
    "CANDIDATES",
    "CLS",
    "MAP",
    "MES",
    "MLE",
    "REGISTRY",
    "WMLE",
    "Auto",
    "BVwithMES",
    "BVwithMLE",
    "Beta",
    "Certificate",
    "DistributionEstimator",
    "Estimator",
    "Evaluation",
    "Fit",
    "MNwithMES",
    "MNwithMLE",
    "MetricEstimator",
    "Naive",
    "Observed",
    "RecallMap",
    "Smooth",
    "UnbiasedRank",
    "parse",
    "parse_all",
]
