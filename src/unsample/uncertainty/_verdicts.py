"""When a verdict is significant: levels, and Holm's correction for several verdicts at once."""

from __future__ import annotations

from collections.abc import Sequence

from unsample._checks import check_level
from unsample.errors import InputError


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number, by Holm's method.

    The smallest of three is multiplied by 3, the next by 2, the largest by 1. A corrected value is
    never less than one of a smaller p-value.

    >>> holm([0.01, 0.04, 0.02])
    [0.03, 0.04, 0.04]
    """
    corrected = list(p_values)
    largest = 0.0
    ascending = sorted(range(len(corrected)), key=lambda index: p_values[index])
    for smaller, index in enumerate(ascending):
        remaining = len(corrected) - smaller
        largest = max(largest, min(1.0, remaining * p_values[index]))
        corrected[index] = largest
    return corrected


def strictest(level: float, pairs: int) -> float:
    """Return the level of the first and strictest of Holm's tests, given the number of pairs.

    >>> round(strictest(0.95, pairs=10), 6)
    0.995
    """
    return 1.0 - (1.0 - level) / pairs


def two_sided(level: float) -> float:
    """Return the level of the two-sided interval whose ends are limits of this level each.

    >>> round(two_sided(0.95), 6)
    0.9
    """
    if check_level(level) <= 0.5:
        raise InputError(f"level must be above 0.5, the probability of a coin, got {level:g}")
    return 2.0 * level - 1.0
