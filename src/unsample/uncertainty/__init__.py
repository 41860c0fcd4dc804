"""Uncertain numbers, limits that hold for any number of targets, and when a verdict is sure."""

from unsample.uncertainty._quantiles import DEFAULT_LEVEL, clopper_pearson, hoeffding, quantile
from unsample.uncertainty._uncertain import (
    BetweenBounds,
    FromDraws,
    MeanWithError,
    MeanWithLimits,
    Uncertain,
)
from unsample.uncertainty._verdicts import holm, strictest, two_sided

__all__ = [
    "DEFAULT_LEVEL",
    "BetweenBounds",
    "FromDraws",
    "MeanWithError",
    "MeanWithLimits",
    "Uncertain",
    "clopper_pearson",
    "hoeffding",
    "holm",
    "quantile",
    "strictest",
    "two_sided",
]
