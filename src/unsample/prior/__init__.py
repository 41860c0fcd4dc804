"""One posterior for everything that is uncertain."""

from unsample.prior._learn import Gaussian, History, Learned
from unsample.prior._numbers import Numbers
from unsample.prior._posterior import ALONE, Difference, Law, Posterior
from unsample.prior._prior import KINDS, Prior, shipped

__all__ = [
    "ALONE",
    "KINDS",
    "Difference",
    "Gaussian",
    "History",
    "Law",
    "Learned",
    "Numbers",
    "Posterior",
    "Prior",
    "shipped",
]
