"""`Difference`: two models on one metric, who wins, and between which places each model lies."""

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
    """One metric of model ``a`` minus that of model ``b``."""

    metric: str
    a: str
    b: str
    value: float
    low: float
    high: float
    #: The probability that ``a`` is better; None where one of them is known by its bounds alone.
    probability: float | None
    #: The better model, or None if the data cannot decide.
    winner: str | None
    uncertain: Uncertain = field(repr=False, compare=False)
    #: 1 or, for the difference of ``b`` and ``a`` as it was asked for, -1.
    sign: int = field(default=1, repr=False)

    def interval(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return (low, high), which hold the difference with this probability.

        The interval excludes 0 exactly where the probability that one model is better, or the
        other, passes (1 + level)/2. So `low` and `high` are those of the level 0.9 where verdicts
        have the level 0.95.
        """
        low, high = self.uncertain.interval(check_level(level))
        return (low, high) if self.sign > 0 else (-high, -low)

    def below(self, value: float) -> float:
        """Return the probability that the difference is less than this; NaN where unknown."""
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

    A verdict is a probability so near to 0 or 1 that, by Holm's steps over the pairs, all verdicts
    on the metric are right with a probability of ``level``.
    """
    probabilities = [_known(uncertain.probability_above(0.0)) for _, _, uncertain in pairs]
    p_values = holm([1.0 if each is None else min(each, 1.0 - each) for each in probabilities])
    found = []
    for (a, b, uncertain), probability, p_value in zip(pairs, probabilities, p_values, strict=True):
        low, high = uncertain.interval(two_sided(level))
        winner = None
        if probability is None:
            ends = uncertain.interval(two_sided(strictest(level, len(pairs))))
            winner = a if ends[0] > 0 else b if ends[1] < 0 else None
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
        found.append(difference)
    return found


def _known(probability: float) -> float | None:
    return None if math.isnan(probability) else probability


def find_difference(pairs: Iterable[Difference], a: str, b: str, *, metric: str) -> Difference:
    """Return the difference of two models, ``a`` minus ``b``."""
    for pair in pairs:
        if pair.metric == metric and {pair.a, pair.b} == {a, b}:
            return pair if pair.a == a else pair.reversed()
    raise KeyError(f"no difference of {a} and {b} on {metric} was taken")


def winner_of(pairs: Iterable[Difference], metric: str, *, models: int) -> str | None:
    """Return which of so many models beats every other, or None if none does."""
    won = Counter(pair.winner for pair in pairs if pair.metric == metric)
    return next((model for model in won if model and won[model] == models - 1), None)


def places_of(
    pairs: Iterable[Difference], models: Sequence[str], *, metric: str
) -> dict[str, tuple[int, int]]:
    """Return the first and the last place that each model may have.

    A model is below all that surely beat it, and above all that it surely beats. As all verdicts on
    a metric are right with the probability ``level``, so are the places of all models together.

    With three models of which A beats C, and nothing else is sure, A has place 1 or 2, B any, and
    C place 2 or 3.
    """
    of_metric = [pair for pair in pairs if pair.metric == metric and pair.winner]
    won = Counter(pair.winner for pair in of_metric)
    lost = Counter(pair.b if pair.winner == pair.a else pair.a for pair in of_metric)
    return {name: (1 + lost[name], len(models) - won[name]) for name in models}


def tied_groups(places: dict[str, tuple[int, int]]) -> list[list[str]]:
    """Return models in groups whose places do not overlap, the best first.

    >>> tied_groups({"C": (3, 3), "A": (1, 2), "B": (1, 2)})
    [['A', 'B'], ['C']]
    """
    groups: list[list[str]] = []
    last = 0
    for name, (first, worst) in sorted(places.items(), key=lambda each: each[1]):
        if groups and first <= last:
            groups[-1].append(name)
        else:
            groups.append([name])
        last = max(last, worst)
    return groups
