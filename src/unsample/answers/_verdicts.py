"""Differences of pairs of models, with verdicts corrected for the number of pairs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from unsample._checks import check_choice
from unsample._rules import check_real
from unsample.answers._comparison import ALL, BEST, Comparison, Difference, two_sided
from unsample.answers._gate import Gate
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
    count = len(laws.runs)
    family = count * (count - 1) // 2 if against in {ALL, BEST} else count - 1
    pairs = [(a, b, laws.difference(metric, a, b)) for a, b in _pairs(laws, metric, against)]
    doubts = [_doubt(law.chance) for _, _, law in pairs]
    corrected = corrected_for(doubts, correction, family)
    found = []
    for (a, b, law), doubt in zip(pairs, corrected, strict=True):
        low, high = law.interval(two_sided(level))
        winner = None
        if isinstance(law, BoundDifference):
            ends = law.interval(two_sided(strictest(level, correction, family)))
            winner = a if ends[0] > 0 else b if ends[1] < 0 else None
        elif doubt <= 1.0 - level:
            winner = a if law.chance > 0.5 else b
        chance = None if math.isnan(law.chance) else law.chance
        found.append(Difference(metric.name, a, b, law.value, low, high, chance, winner, law))
    return found


def _pairs(laws: Laws, metric: Metric, against: str) -> Iterator[tuple[str, str]]:
    names = list(laws.runs)
    if against == ALL:
        yield from itertools.combinations(names, 2)
        return
    chosen = against
    if against == BEST:
        chosen = max(names, key=lambda name: laws.averages[name][metric].value)
    yield from ((chosen, name) for name in names if name != chosen)


def _doubt(chance: float) -> float:
    """Return the chance that the model that seems better is not."""
    return 1.0 if math.isnan(chance) else min(chance, 1.0 - chance)


def gate_of(result: Comparison, metric: str | Metric, baseline: str | None, margin: float) -> Gate:
    """Return whether models of a comparison are worse than one of them, by more than a margin.

    Chances are corrected for the number of models as verdicts are, so the two agree.
    """
    baseline = result.against if baseline is None else baseline
    check_choice("baseline", baseline, result.models)
    margin = check_real("margin", margin, low=0.0, high=1.0, open_high=True, hint="0.01 is 1 %")
    name = result.metric_name(metric)
    lost = -margin * result.estimates[baseline][name].value
    pairs = {
        model: result.difference(model, baseline, name)
        for model in result.models
        if model != baseline
    }
    chances = {model: pair.below(lost) for model, pair in pairs.items()}
    doubts = [1.0 if math.isnan(each) else 1.0 - each for each in chances.values()]
    sure = corrected_for(doubts, result.correction, len(doubts))
    end = strictest(result.level, result.correction, len(doubts))
    worse = tuple(
        model
        for (model, pair), doubt in zip(pairs.items(), sure, strict=True)
        if doubt <= 1.0 - result.level
        or (math.isnan(chances[model]) and pair.interval(end)[1] < lost)
    )
    known = {model: None if math.isnan(each) else each for model, each in chances.items()}
    return Gate(name, baseline, margin, result.level, known, worse)


def corrected_for(doubts: list[float], correction: str, family: int) -> list[float]:
    """Return the doubts corrected for so many pairs."""
    if correction == "holm":
        return holm(doubts, family)
    factor = family if correction == "bonferroni" else 1
    return [min(1.0, factor * doubt) for doubt in doubts]


def strictest(level: float, correction: str, family: int) -> float:
    """Return the level at which the first of so many pairs is judged."""
    return 1.0 - (1.0 - level) / (1.0 if correction == "none" else float(max(family, 1)))
