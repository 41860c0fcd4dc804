"""`Difference`: two models on one metric; which one wins, and which places each model may have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unsample._checks import check_level
from unsample.uncertainty import DEFAULT_LEVEL, Uncertain, holm, strictest, two_sided


@dataclass(frozen=True)
class Difference:
    """One metric of model ``a`` minus the same metric of model ``b``.

    >>> from unsample.uncertainty import MeanWithError
    >>> (pair,) = verdicts("NDCG@10", [("A", "B", MeanWithError(0.03, error=0.01))], level=0.95)
    >>> pair.winner, round(pair.low, 4), round(pair.high, 4), round(pair.probability, 4)
    ('A', 0.0136, 0.0464, 0.9987)
    >>> [round(end, 4) for end in pair.interval(0.95)]
    [0.0104, 0.0496]
    >>> round(pair.below(0.02), 3), round(pair.reversed().value, 3)
    (0.159, -0.03)
    """

    metric: str
    a: str
    b: str
    value: float
    low: float
    high: float
    #: The probability that ``a`` is better; None where a model is known by its bounds alone.
    probability: float | None
    #: The better model, or None if the data cannot decide.
    winner: str | None
    uncertain: Uncertain = field(repr=False, compare=False)
    #: 1 if ``uncertain`` is ``a`` minus ``b``; -1 if it is ``b`` minus ``a``.
    sign: int = field(default=1, repr=False)

    def interval(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return (low, high), between which the difference is with the probability ``level``.

        The interval excludes 0 exactly if the probability that one of the models is better is
        above (1 + level) / 2. So if verdicts have the level 0.95, the attributes ``low`` and
        ``high`` are the ends of ``interval(0.9)``.
        """
        low, high = self.uncertain.interval(check_level(level))
        return (low, high) if self.sign > 0 else (-high, -low)

    def below(self, value: float) -> float:
        """Return the probability that the difference is less than this; NaN if unknown."""
        if self.sign > 0:
            return 1.0 - self.uncertain.probability_above(value)
        return self.uncertain.probability_above(-value)

    def reversed(self) -> Difference:
        """Return ``b`` minus ``a``."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            value=-self.value,
            low=-self.high,
            high=-self.low,
            probability=None if self.probability is None else 1.0 - self.probability,
            sign=-self.sign,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of one entry of the JSON output."""
        hidden = ("uncertain", "sign")
        return {name: value for name, value in vars(self).items() if name not in hidden}


def verdicts(
    metric: str, pairs: Sequence[tuple[str, str, Uncertain]], *, level: float
) -> list[Difference]:
    """Return the difference of each pair, and who wins.

    A model wins if its probability of being better is so near to 1 that, by Holm's correction for
    the number of pairs, all verdicts on the metric are right with the probability ``level``.
    """
    probabilities = [_known(difference.probability_above(0.0)) for _, _, difference in pairs]
    p_values = holm([_p_value(probability) for probability in probabilities])
    # Bounds have no probability: there the ends of the strictest of Holm's tests decide.
    level_of_bounds = two_sided(strictest(level, len(pairs)))
    differences = []
    for (a, b, uncertain), probability, p_value in zip(pairs, probabilities, p_values, strict=True):
        low, high = uncertain.interval(two_sided(level))
        winner = None
        if probability is None:
            lowest, highest = uncertain.interval(level_of_bounds)
            if lowest > 0:
                winner = a
            elif highest < 0:
                winner = b
        elif p_value <= 1.0 - level:
            winner = a if probability > 0.5 else b
        difference = Difference(
            metric=metric,
            a=a,
            b=b,
            value=uncertain.value,
            low=low,
            high=high,
            probability=probability,
            winner=winner,
            uncertain=uncertain,
        )
        differences.append(difference)
    return differences


def _known(probability: float) -> float | None:
    return None if math.isnan(probability) else probability


def _p_value(probability: float | None) -> float:
    """Return how likely the less likely order of two models is; 1 where that is not known."""
    return 1.0 if probability is None else min(probability, 1.0 - probability)


def find_difference(pairs: Iterable[Difference], *, a: str, b: str, metric: str) -> Difference:
    """Return the difference of two models, ``a`` minus ``b``, whichever of the two was taken."""
    for pair in pairs:
        if pair.metric == metric and {pair.a, pair.b} == {a, b}:
            return pair if pair.a == a else pair.reversed()
    raise KeyError(f"no difference of {a} and {b} on {metric} was taken")


def winner_of(pairs: Iterable[Difference], metric: str, *, models: int) -> str | None:
    """Return the model that beats every other of so many ``models``, or None if none does."""
    wins = Counter(pair.winner for pair in pairs if pair.metric == metric)
    return next((model for model in wins if model and wins[model] == models - 1), None)


def places_of(
    pairs: Iterable[Difference], models: Sequence[str], *, metric: str
) -> dict[str, tuple[int, int]]:
    """Return the first and the last place that each model may have.

    A model is below all models that beat it significantly, and above all that it beats. All
    verdicts on a metric are right with the probability ``level``, and so are all places together.

    Here A beats C, and nothing else is significant:

    >>> from unsample.uncertainty import MeanWithError
    >>> values = {("A", "B"): 0.01, ("A", "C"): 0.04, ("B", "C"): 0.01}
    >>> pairs = [(a, b, MeanWithError(value, error=0.01)) for (a, b), value in values.items()]
    >>> places_of(verdicts("HR@10", pairs, level=0.95), ["A", "B", "C"], metric="HR@10")
    {'A': (1, 2), 'B': (1, 3), 'C': (2, 3)}
    """
    significant = [pair for pair in pairs if pair.metric == metric and pair.winner]
    wins = Counter(pair.winner for pair in significant)
    losses = Counter(pair.b if pair.winner == pair.a else pair.a for pair in significant)
    return {name: (1 + losses[name], len(models) - wins[name]) for name in models}


def tied_groups(places: dict[str, tuple[int, int]]) -> list[list[str]]:
    """Return models in groups whose places do not overlap, the best first.

    >>> tied_groups({"C": (3, 3), "A": (1, 2), "B": (1, 2)})
    [['A', 'B'], ['C']]
    """
    groups: list[list[str]] = []
    last_of_group = 0
    for name, (first, last) in sorted(places.items(), key=lambda item: item[1]):
        if groups and first <= last_of_group:
            groups[-1].append(name)
        else:
            groups.append([name])
        last_of_group = max(last_of_group, last)
    return groups
