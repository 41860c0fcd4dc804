"""Limits where targets share their sampled items: what is estimated, and what can be proved.

*Estimated.* Where it is known which item beats which target, the variance of a mean of scores can
be estimated, items included: `PooledError`. A share of targets then has the limits of a share of
independent targets, as many as would have the same variance, or fewer where the variance itself is
not well known (Korn and Graubard 1998): `PooledLimits`.

*Proved for any dependence.* Where only the ranks against one pool are known, nothing tells how the
ranks depend on each other: all may depend on one item. And where few items make up most of the
variance, it cannot be estimated. But each target's own sampled rank has a known law given its rank
R. And whatever the dependence, a mean of variables exceeds the mean of their tail means at
``alpha`` with probability ``alpha`` at most, because tail means are subadditive (Rockafellar and
Uryasev 2002). For the indicator of r <= end the tail mean is min(1, P(r <= end | R) / alpha). So
with probability 1 - alpha

    share of targets with r <= end  <=  sum over R of P(R) min(1, P(r <= end | R) / alpha),

and likewise for r > end. These limits are linear in P(R), so they are rows of a program:
`proved_rows`. No limit that holds for any dependence can be much sharper: it is nearly reached
where one order of the items holds for all targets.

A bound that a program derives from such rows is a sum of them with multipliers. The tail mean of
the sum is at most the sum of tail means at the same ``alpha``. So one ``alpha`` is enough for the
whole bound if the multipliers are taken as given, as in the bias-aware intervals. The same holds
for the part of Hoeffding's limits that allows for the draw of targets: Chernoff's bound of a
quantile is subadditive, too. In a region that must hold for all shares at once, each row takes a
part of the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.confidence._items import DrawnPart
from unsample.confidence._limits import (
    Leaning,
    MeanLimits,
    OverBins,
    clopper_pearson,
    hoeffding,
    quantile,
    skewed,
)

#: With fewer effective items the variance is not known, and the mean is not nearly normal. Then
#: only what can be proved is used.
_FEW_ITEMS = 4.0
#: The part of the error of a proved limit that is for the targets; the rest is for the items.
_OF_TARGETS = 0.1
#: Where cumulated shares must hold at once, their ends differ by at least this factor.
_END_RATIO = 3.0


@dataclass(frozen=True)
class PooledError:
    """The error of a mean of scores over targets: their own variance, and that of what was drawn.

    ``targets`` is the variance of the mean if targets were independent.
    """

    targets: float
    drawn: DrawnPart

    @property
    def trusted(self) -> bool:
        """Return whether enough items make up the variance for it to be known."""
        return self.drawn.effective >= _FEW_ITEMS

    @property
    def variance(self) -> float:
        """Return the variance of the mean, targets and items."""
        return self.targets + self.drawn.variance

    @property
    def freedom(self) -> float:
        """Return the degrees of freedom of the variance; the targets' part is taken as known."""
        share = self.drawn.variance / self.variance if self.variance > 0 else 1.0
        return self.drawn.freedom / max(share * share, 1e-9)

    def reach(self, level: float, side: int) -> float:
        """Return how far the limit on one side is from the mean, for a two-sided ``level``."""
        error = math.sqrt(self.variance)
        if error == 0.0:
            return 0.0
        return error * skewed(quantile(level, self.freedom), side * self.drawn.third / error**3)

    def standard_error(self, level: float, side: int) -> float:
        """Return the standard error of a normal mean with the same limit at this level."""
        return self.reach(level, side) / quantile(level)


@dataclass(frozen=True, eq=False)
class PooledLimits(MeanLimits):
    """Limits of cumulated shares whose variances were estimated, each with degrees of freedom."""

    variances: FloatArray
    freedom: FloatArray

    @classmethod
    def of(cls, part: MeanLimits, errors: list[PooledError]) -> PooledLimits:
        """Return the limits of shares, given the error of each.

        A share whose error cannot be trusted has no limits, so that no bound depends on it.
        """
        known = [each if each.trusted else None for each in errors]
        return cls(
            **vars(part),
            variances=np.array([0.0 if each is None else each.variance for each in known]),
            freedom=np.array([0.0 if each is None else each.freedom for each in known]),
        )

    def region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return limits that hold for all expected features at once; 0 and 1 where unknown."""
        from scipy.special import ndtri, stdtrit

        part = alpha / (2 * max(len(self.features), 1))
        spread = self.low * (1.0 - self.low)
        known = (spread > 0) & (self.variances > 0) & (self.freedom > 0)
        alike = np.divide(spread, self.variances, out=np.zeros_like(spread), where=known)
        wider = stdtrit(np.where(known, self.freedom, 1.0), 1.0 - part) / ndtri(1.0 - part)
        targets = np.minimum(alike / wider**2, self.targets)
        targets = np.maximum(targets, 1e-6)
        low, high = clopper_pearson(self.low, self.high, targets, part)
        return np.where(known, low, 0.0), np.where(known, high, 1.0)


@dataclass(frozen=True, eq=False)
class ProvedLimits(MeanLimits):
    """Rows of a program with limits that hold for any dependence, with a fixed error."""

    def least(self, features: FloatArray, leaning: Leaning) -> FloatArray:
        """Return the least of each row and of minus each row: they are functions of the rank."""
        low, high = self.expected.hull(leaning)
        return np.concatenate([low, -high])

    def region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the limits; their error was chosen when they were made."""
        return self.low, self.high


def proved_rows(part: MeanLimits, alpha: float, *, at_once: bool) -> ProvedLimits:
    """Return what cumulated shares prove, whatever the dependence.

    With ``at_once``, all rows hold together, with error ``alpha``. Without, any one-sided bound
    that is made of them holds with error ``alpha / 2``, if its multipliers are taken as given.
    """
    chosen = _thinned(part) if at_once else np.arange(len(part.ends))
    tail = alpha / (2.0 * len(chosen) if at_once else 2.0)
    rows, seen = _rows(part, tail)
    both = np.concatenate([chosen, len(part.ends) + chosen])
    rows, seen = rows.apply(lambda values: values[both]), seen[both]
    return ProvedLimits(
        part.sampled,
        part.ends,
        seen,
        rows,
        part.targets,
        np.eye(len(both)),
        seen,
        np.ones(len(both)),
    )


def _rows(part: MeanLimits, tail: float) -> tuple[OverBins, FloatArray]:
    """Return the tail means of r <= end, then of r > end, and what their means are at least.

    Bins hold several ranks. A tail mean is concave in the probability, so that of the bin's mean is
    not less than the mean of the ranks' own. Targets are drawn as well, so the mean over the
    population may be less than that over these targets, by what Hoeffding allows.
    """
    below = part.expected.apply(lambda values: part.features @ values)
    shares = (part.features @ part.observed).clip(0.0, 1.0)
    seen = np.concatenate([shares, 1.0 - shares])
    least, _ = hoeffding(seen, seen, part.targets, tail * _OF_TARGETS)

    def tail_means(chances: FloatArray) -> FloatArray:
        chances = chances.clip(0.0, 1.0)
        rows = np.concatenate([chances, 1.0 - chances]) / (tail * (1.0 - _OF_TARGETS))
        return np.minimum(rows, 1.0)

    return below.apply(tail_means), least


def _thinned(part: MeanLimits) -> IntArray:
    """Return the places of ends that differ by at least the least factor."""
    chosen: list[int] = []
    last = 0.0
    for place, end in enumerate(part.ends.tolist()):
        if end >= max(last + 1.0, last * _END_RATIO):
            chosen.append(place)
            last = end
    return np.array(chosen, dtype=np.int64)
