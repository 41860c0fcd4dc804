"""When a verdict is significant: levels, and Holm's correction for several verdicts at once."""

from __future__ import annotations

from collections.abc import Sequence

from unsample._checks import check_level
from unsample.errors import InputError


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number, by Holm's method.

    >>> holm([0.01, 0.04, 0.02])
    [0.03, 0.04, 0.04]
    """
    corrected, largest = list(p_values), 0.0
    ascending = sorted(range(len(corrected)), key=lambda index: p_values[index])
    for smaller, index in enumerate(ascending):
        largest = max(largest, min(1.0, (len(corrected) - smaller) * p_values[index]))
        corrected[index] = largest
    return corrected


def strictest(level: float, pairs: int) -> float:
    """Return the level of the first, and strictest, of Holm's tests of so many pairs."""
    return 1.0 - (1.0 - level) / pairs


def two_sided(level: float) -> float:
    """Return the level of the two-sided interval whose ends are limits of this level each."""
    if check_level(level) <= 0.5:
        raise InputError(f"level must be above 0.5, the probability of a coin, got {level:g}")
    return 2.0 * level - 1.0
