"""Limits where targets share their sampled items: what is estimated, and what can be proved.

*Estimated.* Where it is known which item beats which target, or where there are many pools, the
variance of a mean of scores is estimated, items included: `PooledError`. A share of targets then
tells as much as that of so many independent targets as would have its variance, and of fewer where
the variance itself is not well known (Korn and Graubard 1998): `PooledLimits`.

*Proved for any dependence.* Of one pool of which only ranks are known, nothing says how the ranks
depend on each other: all may hang on one item. And where few items make up most of the variance,
it cannot be estimated. But each target's own sampled rank has a known law given its rank R. And
whatever the dependence, a mean of variables exceeds the mean of their tail means at ``alpha`` with
probability ``alpha`` at most, because tail means are subadditive (Rockafellar and Uryasev 2002).
For the indicator of r <= end the tail mean is min(1, P(r <= end | R) / alpha). So with probability
1 - alpha

    share of targets with r <= end  <=  sum over R of P(R) min(1, P(r <= end | R) / alpha),

and likewise for r > end. These are linear in P(R): rows of a program like any other, `proved_rows`.
No limit that knows nothing of the dependence can be much sharper: where one order of the items
holds for all targets it is attained nearly.

A bound that a program derives from such rows is a sum of them with multipliers. The tail mean of
the sum is at most the sum of tail means at the same ``alpha``, so one ``alpha`` pays for the whole
bound if the multipliers are taken as given, as those of the bias-aware intervals are. The same
holds for what Hoeffding's limits allow for the draw of targets: Chernoff's bound of a quantile is
subadditive, too. For a region that must hold all shares at once, each row takes its part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.confidence._limits import (
    Leaning,
    MeanLimits,
    OverBins,
    clopper_pearson,
    hoeffding,
)
from unsample.evidence import DrawnPart

#: With fewer effective items a variance is not known, nor is the mean near to normal: what can be
#: proved stands.
_FEW_ITEMS = 4.0
#: Of the error of a proved limit, the part of the targets; the rest is that of the items.
_OF_TARGETS = 0.1
#: Of cumulated shares that must hold at once, the ends differ by this factor at least.
_END_RATIO = 3.0


@dataclass(frozen=True)
class PooledError:
    """The error of a mean of scores over targets: their own variance, and that of what was drawn.

    ``targets`` is the variance of the mean with independent targets; zero where ``drawn`` is that
    between pools, which holds it.
    """

    targets: float
    drawn: DrawnPart

    @property
    def trusted(self) -> bool:
        """Return whether so many items (or pools) make up the variance that it is known."""
        return self.drawn.effective >= _FEW_ITEMS

    @property
    def variance(self) -> float:
        """Return the variance of the mean, targets and items."""
        return self.targets + self.drawn.variance

    @property
    def freedom(self) -> float:
        """Return the degrees of freedom of the variance; that of the targets is taken as known."""
        share = self.drawn.variance / self.variance if self.variance > 0 else 1.0
        return self.drawn.freedom / max(share * share, 1e-9)

    def reach(self, level: float, side: int) -> float:
        """Return how far the limit on one side is from the mean, for a two-sided ``level``.

        It is the quantile of t, and more on the side where skewed items make the studentised mean
        err further (Johnson 1978); never less on the other.
        """
        from scipy.special import stdtrit

        error = math.sqrt(self.variance)
        if error == 0.0:
            return 0.0
        quantile = float(stdtrit(self.freedom, (1.0 + level) / 2.0))
        skewness = max(side * self.drawn.third / error**3, 0.0)
        return error * (quantile + skewness * (2.0 * quantile**2 + 1.0) / 6.0)

    def standard_error(self, level: float, side: int) -> float:
        """Return the standard error of a normal mean with the same limit at this level."""
        from scipy.special import ndtri

        return self.reach(level, side) / float(ndtri((1.0 + level) / 2.0))


@dataclass(frozen=True, eq=False)
class PooledLimits(MeanLimits):
    """Limits of cumulated shares whose variances were estimated, each with degrees of freedom."""

    variances: FloatArray
    freedom: FloatArray

    @classmethod
    def of(cls, part: MeanLimits, errors: list[PooledError]) -> PooledLimits:
        """Return the limits of shares with their errors, one a feature.

        A share whose error cannot be trusted has no limits, so that no bound is made of it.
        """
        known = [each if each.trusted else None for each in errors]
        return cls(
            part.sampled,
            part.ends,
            part.observed,
            part.expected,
            part.targets,
            part.features,
            part.low,
            part.high,
            np.array([0.0 if each is None else each.variance for each in known]),
            np.array([0.0 if each is None else each.freedom for each in known]),
        )

    def region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return limits that hold all expected features at once; none where nothing is known."""
        from scipy.special import ndtri, stdtrit

        part = alpha / (2 * max(len(self.features), 1))
        spread = self.low * (1.0 - self.low)
        known = (spread > 0) & (self.variances > 0) & (self.freedom > 0)
        alike = np.divide(spread, self.variances, out=np.zeros_like(spread), where=known)
        quantile = stdtrit(np.where(known, self.freedom, 1.0), 1.0 - part)
        targets = np.minimum(alike * (ndtri(1.0 - part) / quantile) ** 2, self.targets)
        targets = np.maximum(targets, 1e-6)
        low, high = clopper_pearson(self.low, self.high, targets, part)
        return np.where(known, low, 0.0), np.where(known, high, 1.0)


@dataclass(frozen=True, eq=False)
class ProvedLimits(MeanLimits):
    """Rows of a program with limits that hold for any dependence, for an error that is fixed."""

    def least(self, features: FloatArray, leaning: Leaning) -> FloatArray:
        """Return the least of each row and of minus each row: they are functions of the rank."""
        low, high = self.expected.hull(leaning)
        return np.concatenate([low, -high])

    def region(self, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the limits; their error was chosen when they were made."""
        return self.low, self.high


def proved_rows(part: MeanLimits, alpha: float, *, at_once: bool) -> ProvedLimits:
    """Return what cumulated shares prove whatever their dependence.

    With ``at_once`` all rows hold together with error ``alpha``. Without, any one bound that is
    made of them on one side does with error ``alpha / 2``, its multipliers taken as given.
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

    Bins hold several ranks, and a tail mean is concave in the probability: that of the bin's mean
    is no less than the mean of theirs. Targets are drawn as well, so that the mean over the
    population may be less than that over these by what Hoeffding allows.
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
    """Return places of ends that differ by a factor at least."""
    chosen: list[int] = []
    last = 0.0
    for place, end in enumerate(part.ends.tolist()):
        if end >= max(last + 1.0, last * _END_RATIO):
            chosen.append(place)
            last = end
    return np.array(chosen, dtype=np.int64)
