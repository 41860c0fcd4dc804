"""The papers' estimators of full-catalogue metrics from sampled ranks, one file for each idea.

`REGISTRY` lists them by the name that people type. The default method, ``auto``, is not one of
them: it is the median of `unsample.posterior`. Those that estimate the rank distribution P(R)
are `DistributionEstimator`: fitted once, they give every metric at every K. The others,
`MetricEstimator`, put a corrected value in place of the metric at each sampled rank.

To add one, write a frozen dataclass with a ``name`` and put it into the registry; the contract test
in ``tests/test_contract.py`` takes it from there.
"""

from unsample.estimators._estimator import (
    DistributionEstimator,
    Estimator,
    Fit,
    MetricEstimator,
)
from unsample.estimators._method_names import (
    REGISTRY,
    parse,
    read_method,
)
from unsample.estimators.maximum_likelihood import (
    MLE,
    WMLE,
    Beta,
)
from unsample.estimators.plain import (
    Naive,
    RecallMap,
    UnbiasedRank,
)
from unsample.estimators.squares import (
    BV,
    CLS,
    MES,
    MN,
)

__all__ = [
    "BV",
    "CLS",
    "MES",
    "MLE",
    "MN",
    "REGISTRY",
    "WMLE",
    "Beta",
    "DistributionEstimator",
    "Estimator",
    "Fit",
    "MetricEstimator",
    "Naive",
    "RecallMap",
    "UnbiasedRank",
    "parse",
    "read_method",
]
