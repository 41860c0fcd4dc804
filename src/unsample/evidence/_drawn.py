"""The part of an error that comes from the draw of items that targets share.

If it is known which item beats which target, leaving out one drawn item at a time shows how much a
mean of scores depends on the draw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray


@dataclass(frozen=True)
class DrawnPart:
    """The part of the variance of a mean of scores that comes from the draw of items.

    It is a sum of squares, of one number for each item.
    """

    variance: float
    #: The sum of third powers: its sign is the side on which the mean errs further.
    third: float
    #: How many equal items would tell as much about the variance. It is small where few of
    #: them make up most of it: then it is not well known, and the mean is far from normal.
    effective: float
    #: How many were drawn.
    drawn: int

    @property
    def freedom(self) -> float:
        """Return the degrees of freedom of the estimated variance."""
        return freedom_of(self.effective, self.drawn)


def smoothed(scores: FloatArray) -> FloatArray:
    """Return scores whose steps are spread evenly over the ranks around them.

    If one order of the items holds for all targets, a score with few steps depends on few order
    statistics, and the jackknife of one order statistic varies as much as what it estimates. Order
    statistics near it vary in nearly the same way, and together they tell by how much. A step after
    rank e is spread over the e/2 ranks on either side, but at least one.
    """
    steps = np.diff(scores)
    spread = np.zeros_like(steps)
    for place in np.flatnonzero(steps).tolist():
        reach = max(1, (place + 1) // 2)
        around = slice(max(place - reach, 0), place + reach + 1)
        spread[around] += steps[place] / len(spread[around])
    return np.concatenate([scores[:1], scores[0] + np.cumsum(spread)])


def more_cautious(plain: DrawnPart, smooth: DrawnPart) -> DrawnPart:
    """Return the larger variance and third power; the rest is that of the smooth score."""
    third = max(plain.third, smooth.third, key=abs)
    variance = max(plain.variance, smooth.variance)
    return DrawnPart(variance, third, smooth.effective, smooth.drawn)


def freedom_of(effective: float, drawn: int) -> float:
    """Return the degrees of freedom of a sum of squares of drawn numbers (Satterthwaite 1946).

    How much it varies follows from fourth powers: ``effective`` is the square of the sum of squares
    divided by the sum of fourth powers.
    """
    kurtosis = 1.0 / max(effective, 1.0) - 1.0 / drawn
    return 2.0 / max(kurtosis, 2.0 / max(drawn - 1, 1))
