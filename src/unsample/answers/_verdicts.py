"""Differences of pairs of models, with verdicts corrected for the number of pairs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from unsample.answers._comparison import ALL, BEST, Difference, two_sided
from unsample.answers._laws import BoundDifference, Laws
from unsample.bounds import holm
from unsample.metrics import Metric

#: Corrections that keep the chance of any wrong verdict among many at 1 - level.
CORRECTIONS = ("holm", "bonferroni", "none")


def verdicts(
    laws: Laws, metric: Metric, against: str, level: float, correction: str
) -> list[Difference]:
    """Return the difference of each pair that is asked for, and who wins.

    A verdict is a chance so near to 0 or 1 that, corrected for the pairs that might have been
    compared, all verdicts on the metric are right with a chance of ``level``.
    """
    count = len(laws.models)
    family = count * (count - 1) // 2 if against in {ALL, BEST} else count - 1
    pairs = [(a, b, laws.difference(metric, a, b)) for a, b in _pairs(laws, metric, against)]
    doubts = [_doubt(law.chance) for _, _, law in pairs]
    corrected = _corrected(doubts, correction, family)
    found = []
    for (a, b, law), doubt in zip(pairs, corrected, strict=True):
        low, high = law.interval(two_sided(level))
        winner = None
        if isinstance(law, BoundDifference):
            part = 1.0 if correction == "none" else float(max(family, 1))
            ends = law.interval(two_sided(1.0 - (1.0 - level) / part))
            winner = a if ends[0] > 0 else b if ends[1] < 0 else None
        elif doubt <= 1.0 - level:
            winner = a if law.chance > 0.5 else b
        chance = None if math.isnan(law.chance) else law.chance
        found.append(Difference(metric.name, a, b, law.value, low, high, chance, winner, law))
    return found


def _pairs(laws: Laws, metric: Metric, against: str) -> Iterator[tuple[str, str]]:
    names = [model.name for model in laws.models]
    if against == ALL:
        yield from itertools.combinations(names, 2)
        return
    chosen = against
    if against == BEST:
        chosen = max(names, key=lambda name: laws.estimates[name][metric].value)
    yield from ((chosen, name) for name in names if name != chosen)


def _doubt(chance: float) -> float:
    """Return the chance that the model that seems better is not."""
    return 1.0 if math.isnan(chance) else min(chance, 1.0 - chance)


def _corrected(doubts: list[float], correction: str, family: int) -> list[float]:
    if correction == "holm":
        return holm(doubts, family)
    factor = family if correction == "bonferroni" else 1
    return [min(1.0, factor * doubt) for doubt in doubts]
