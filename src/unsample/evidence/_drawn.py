"""The part of an error that comes with what was drawn: items that targets share, or pools of them.

Leaving out one drawn item at a time says how much a mean of scores depends on which were drawn, if
it is known which item beats which target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, IntArray


@dataclass(frozen=True)
class DrawnPart:
    """The part of the variance of a mean of scores that comes with what was drawn: items, or pools.

    It is a sum of squares of one number for each that was drawn.
    """

    variance: float
    #: The sum of their third powers: on which side the mean errs further.
    third: float
    #: How many of them, all alike, would tell as much about the variance: few where few make up
    #: most of it, and then it is not well known, and the mean is far from normal.
    effective: float
    #: How many were drawn.
    drawn: int

    @property
    def freedom(self) -> float:
        """Return the degrees of freedom of the estimated variance."""
        return freedom_of(self.effective, self.drawn)


def smoothed(scores: FloatArray) -> FloatArray:
    """Return scores whose steps are spread evenly over the ranks around them.

    A score with few steps looks at few order statistics where one order of the items holds for all
    targets, and the jackknife of a single order statistic varies as much as it estimates. Those
    near it vary nearly as it does, and all together they say by how much. A step after rank e is
    spread over the e/2 ranks on either side, or one.
    """
    steps = np.diff(scores)
    spread = np.zeros_like(steps)
    for place in np.flatnonzero(steps).tolist():
        reach = max(1, (place + 1) // 2)
        around = slice(max(place - reach, 0), place + reach + 1)
        spread[around] += steps[place] / len(spread[around])
    return np.concatenate([scores[:1], scores[0] + np.cumsum(spread)])


def part_of_items(
    pool: IntArray, effects: FloatArray, pools: int, sampled: int, *, twice: float, left: float
) -> DrawnPart:
    """Return the part made of what leaving out each item does; items that are not named do nothing.

    ``pool`` is the number of each item's pool, from 0, and each pool has ``sampled`` items.
    ``twice`` is what of it is in the variance between targets, too, and ``left`` the share of the
    catalogue that a pool drawn without replacement leaves out.
    """
    mean = np.bincount(pool, effects, minlength=pools) / sampled
    centred = effects - mean[pool]
    others = sampled - np.bincount(pool, minlength=pools)
    squares, third, fourths = (
        float((centred**power).sum() + others @ (-mean) ** power) for power in (2, 3, 4)
    )
    effective = squares**2 / fourths if fourths > 0 else 0.0
    variance = left * max((1.0 - 1.0 / sampled) * squares - twice, 0.0)
    return DrawnPart(variance, left**1.5 * third, effective, sampled * pools)


def part_of_pools(means: FloatArray, shares: FloatArray) -> DrawnPart:
    """Return the variance of the mean over pools, each with its mean and share of the weight."""
    pools = len(means)
    if pools < 2:
        return DrawnPart(0.0, 0.0, 0.0, pools)
    apart = shares * (means - means @ shares) * np.sqrt(pools / (pools - 1.0))
    squares, fourths = float((apart**2).sum()), float((apart**4).sum())
    effective = squares**2 / fourths if fourths > 0 else 0.0
    return DrawnPart(squares, float((apart**3).sum()), effective, pools)


def more_cautious(plain: DrawnPart, smooth: DrawnPart) -> DrawnPart:
    """Return the larger variance and third power of the two; the smooth score counts the items."""
    third = max(plain.third, smooth.third, key=abs)
    variance = max(plain.variance, smooth.variance)
    return DrawnPart(variance, third, smooth.effective, smooth.drawn)


def freedom_of(effective: float, drawn: int) -> float:
    """Return the degrees of freedom of a sum of squares of drawn numbers (Satterthwaite 1946).

    It varies, relative to its mean, by their fourth moments: ``effective`` is the square of the sum
    of squares over the sum of fourth powers.
    """
    kurtosis = 1.0 / max(effective, 1.0) - 1.0 / drawn
    return 2.0 / max(kurtosis, 2.0 / max(drawn - 1, 1))
