"""The papers' estimators of full-catalogue metrics from sampled ranks, one file for each idea.

`REGISTRY` lists them by the name that people type. Those that estimate the rank distribution P(R)
are `DistributionEstimator`: fitted once, they give every metric at every K. The others,
`MetricEstimator`, put a corrected value in place of the metric at each sampled rank.

To add one, write a frozen dataclass with a ``name`` and put it into the registry; the contract test
in ``tests/test_contract.py`` takes it from there.
"""

from unsample.estimators._base import (
    DistributionEstimator,
    Estimator,
    Fit,
    MetricEstimator,
)
from unsample.estimators._certificates import CLOSED_FORM, Certificate, Status
from unsample.estimators._log_density import LogDensity
from unsample.estimators._observed import CANDIDATES, Observed, over_catalogues
from unsample.estimators._registry import REGISTRY, parse, read_method
from unsample.estimators.likelihood import MLE, WMLE, Beta
from unsample.estimators.plain import Naive, RecallMap, UnbiasedRank
from unsample.estimators.squares import BV, CLS, MES, MN

__all__ = [
    "BV",
    "CANDIDATES",
    "CLOSED_FORM",
    "CLS",
    "MES",
    "MLE",
    "MN",
    "REGISTRY",
    "WMLE",
    "Beta",
    "Certificate",
    "DistributionEstimator",
    "Estimator",
    "Fit",
    "LogDensity",
    "MetricEstimator",
    "Naive",
    "Observed",
    "RecallMap",
    "Status",
    "UnbiasedRank",
    "over_catalogues",
    "parse",
    "read_method",
]
