"""The part of an error that comes from the draw of items that targets share.

If it is known which item beats which target, leaving out one drawn item at a time shows how much a
mean of scores depends on the draw: the sum of squares of the effects of items about their mean is
the jackknife estimate of the variance that comes from the drawn items (Efron and Stein 1981). On
average it is not too small, whatever the score is. Items also differ because each target meets them
with noise of its own. That part is already in the variance between targets. It is known from the
ranks alone, and is subtracted once (Cameron, Gelbach and Miller 2011).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray
from unsample.errors import InputError
from unsample.evidence import ItemCounts, RankCounts


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


def items_part(counts: RankCounts, scores: FloatArray, *, left: float = 1.0) -> DrawnPart:
    """Return the shared items' part of the variance of the mean of ``scores[r - 1]``.

    ``left`` is the share of the catalogue that a draw without replacement leaves out. The variance
    is multiplied by it.
    """
    assert counts.shared is not None
    total, sampled = float(counts.weight.sum()), counts.shared.sampled
    squares = counts.weight_squared
    if counts.clusters is not None:
        # Each target has noise of its own, whoever its user is.
        squares = counts.weight**2 / np.maximum(counts.count, 1)
    found = []
    for score in (scores, smoothed(scores)):
        rise = np.diff(score)[counts.low - 2] * (counts.low > 1)
        beaten = counts.low - 1.0
        each = squares * rise**2 * beaten * (sampled - beaten) / sampled
        twice = (1.0 - 1.0 / sampled) * float(each.sum()) / total**2
        found.append(_part(counts.shared.effects(score, total)[1], sampled, twice, left))
    return _more_cautious(*found)


def difference_part(
    first: tuple[ItemCounts, FloatArray, float],
    second: tuple[ItemCounts, FloatArray, float],
    *,
    left: float = 1.0,
) -> DrawnPart:
    """Return the items' part for the mean of one model's scores less that of another's.

    Each is given by its counts, the score of each rank, and what its targets count. Both were
    ranked against the same draw, so what an item does to both cancels. The part that is also in
    the variance between targets is not known here: nothing is subtracted.
    """
    sampled = first[0].sampled
    if sampled != second[0].sampled:
        raise InputError("models must have been ranked against the same items to be compared")
    found = []
    for change in (np.asarray, smoothed):
        items, effects = first[0].effects(change(first[1]), first[2])
        other_items, other_effects = second[0].effects(change(second[1]), second[2])
        both, place = np.unique(np.concatenate([items, other_items]), return_inverse=True)
        if len(both) > sampled:
            raise InputError("models must number the shared items alike to be compared")
        sums = np.bincount(place.reshape(-1), np.concatenate([effects, -other_effects]))
        found.append(_part(sums.astype(np.float64), sampled, 0.0, left))
    return _more_cautious(*found)


def _part(effects: FloatArray, sampled: int, twice: float, left: float) -> DrawnPart:
    """Return the items' part of a variance, given what leaving out each does; 0 if not named.

    ``twice`` is the part that the variance between targets contains as well.
    """
    mean = float(effects.sum()) / sampled
    centred, others = effects - mean, sampled - len(effects)
    squares, third, fourths = (
        float((centred**power).sum() + others * (-mean) ** power) for power in (2, 3, 4)
    )
    effective = squares**2 / fourths if fourths > 0 else 0.0
    variance = left * max((1.0 - 1.0 / sampled) * squares - twice, 0.0)
    return DrawnPart(variance, left**1.5 * third, effective, sampled)


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


def _more_cautious(plain: DrawnPart, smooth: DrawnPart) -> DrawnPart:
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
