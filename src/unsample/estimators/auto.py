"""The default: smooth curves under several beliefs about the top, weighed by the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from unsample.estimators._base import DistributionEstimator
from unsample.estimators._curves import Head, average_curves
from unsample.estimators._observed import Observed
from unsample.estimators._solvers import Solution

__all__ = ["Auto"]


_WERE = {"unseen": "no candidates", "all": "candidates too"}


@dataclass(frozen=True)
class _Beliefs:
    heads: tuple[Head, ...]
    doubt: float


#: What is believed about the top before the data are seen. Where seen items are excluded, a curve
#: that goes on and one that levels off are equally likely. Where they are kept they fill the top,
#: so that levelling off, and earlier, is more likely, and the top more doubtful.
_BELIEFS: Mapping[str, _Beliefs] = MappingProxyType(
    {
        "unseen": _Beliefs((Head(0.0, 0.5), Head(0.15, 0.5)), doubt=0.0),
        "all": _Beliefs(
            (Head(0.0, 0.25), Head(0.1, 0.25), Head(0.3, 0.25), Head(0.6, 0.25)), doubt=0.5
        ),
    }
)


@dataclass(frozen=True)
class Auto(DistributionEstimator):
    r"""The default: `Smooth` under several beliefs about the top, averaged by evidence.

    Recommenders differ in the very top: on some data P(R) goes on rising to the first rank, on
    others it levels off among the first dozens. Each belief is a coordinate

    .. math:: z_h = -\Phi^{-1}\Big(\frac{R - 1/2 + h B}{N + 2 h B}\Big), \qquad B = \frac{N-1}{n-1}

    in which the curve of `Smooth` is drawn: for h = 0 it goes on, for h > 0 it levels off near
    rank h B. The sample sees little above the blind rank B, but the shape just below B tells the
    beliefs apart to some extent: each counts by its evidence. Results say how much.

    With ``candidates="unseen"`` h is 0 or 0.15, equally likely before the data. With ``candidates="all"``
    training items fill the top: h is 0, 0.1, 0.3 or 0.6, equally likely, and the curve is taken to
    be known less well above B (third derivative of standard deviation 0.5), so that the hedge
    against relative errors is stronger.

    Reference: as `Smooth`; averaging by evidence is Bayesian model averaging, Hoeting et al.,
    Statistical Science 1999. What it assumes and where it fails is in ``docs/estimators.md``.
    """

    name: ClassVar[str] = "auto"
    joint: ClassVar[bool] = True

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin, averaged over beliefs and scales."""
        beliefs = _BELIEFS[observed.candidates]
        solution = average_curves(observed, beliefs.heads, doubt=beliefs.doubt)
        were = _WERE[observed.candidates]
        text = f"{solution.explanation}; assuming that items seen in training were {were}"
        return replace(solution, explanation=text)
