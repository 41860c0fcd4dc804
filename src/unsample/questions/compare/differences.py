"""`Difference`: two models on one metric, and who wins once the number of pairs is allowed for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unsample._checks import check_level
from unsample.answers._laws import DifferenceLaw
from unsample.answers._result import DEFAULT_LEVEL
from unsample.bounds import holm
from unsample.errors import InputError


@dataclass(frozen=True)
class Difference:
    """One metric of model ``a`` minus that of model ``b``."""

    metric: str
    a: str
    b: str
    value: float
    low: float
    high: float
    #: The chance that ``a`` is better; None where one of them is known by its bounds alone.
    chance: float | None
    #: The better model, or None if the data cannot decide.
    winner: str | None
    law: DifferenceLaw = field(repr=False, compare=False)
    #: 1 or, for the difference of ``b`` and ``a`` as it was asked for, -1.
    sign: int = field(default=1, repr=False)

    def interval(self, level: float = DEFAULT_LEVEL) -> tuple[float, float]:
        """Return (low, high), each end with this chance: both hold with ``2 level - 1``.

        So it excludes 0 exactly where the chance that one model is better passes the level.
        """
        low, high = self.law.interval(two_sided(level))
        return (low, high) if self.sign > 0 else (-high, -low)

    def below(self, value: float) -> float:
        """Return the chance that the difference is less than this; NaN where it is withheld."""
        return self.law.below(value) if self.sign > 0 else 1.0 - self.law.below(-value)

    def reversed(self) -> Difference:
        """Return ``b`` minus ``a``."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            value=-self.value,
            low=-self.high,
            high=-self.low,
            chance=None if self.chance is None else 1.0 - self.chance,
            sign=-self.sign,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of one entry of the JSON output."""
        hidden = ("law", "sign")
        return {name: value for name, value in vars(self).items() if name not in hidden}


def verdicts(
    metric: str, pairs: Sequence[tuple[str, str, DifferenceLaw]], level: float
) -> list[Difference]:
    """Return the difference of each pair, and who wins.

    A verdict is a chance so near to 0 or 1 that, by Holm's steps over the pairs, all verdicts on
    the metric are right with a chance of ``level``.
    """
    chances = [None if math.isnan(law.chance) else law.chance for _, _, law in pairs]
    doubts = holm([1.0 if each is None else min(each, 1.0 - each) for each in chances])
    found = []
    for (a, b, law), chance, doubt in zip(pairs, chances, doubts, strict=True):
        low, high = law.interval(two_sided(level))
        winner = None
        if chance is None:
            ends = law.interval(two_sided(strictest(level, len(pairs))))
            winner = a if ends[0] > 0 else b if ends[1] < 0 else None
        elif doubt <= 1.0 - level:
            winner = a if chance > 0.5 else b
        found.append(Difference(metric, a, b, law.value, low, high, chance, winner, law))
    return found


def find_difference(pairs: Iterable[Difference], a: str, b: str, metric: str) -> Difference:
    """Return the difference of two models, ``a`` minus ``b``."""
    for pair in pairs:
        if pair.metric == metric and {pair.a, pair.b} == {a, b}:
            return pair if pair.a == a else pair.reversed()
    raise KeyError(f"no difference of {a} and {b} on {metric} was taken")


def winner_of(pairs: Iterable[Difference], metric: str, models: int) -> str | None:
    """Return which of so many models beats every other, or None if none does."""
    won = Counter(pair.winner for pair in pairs if pair.metric == metric)
    return next((model for model in won if model and won[model] == models - 1), None)


def strictest(level: float, pairs: int) -> float:
    """Return the level at which the first of so many pairs is judged."""
    return 1.0 - (1.0 - level) / pairs


def two_sided(level: float) -> float:
    """Return the level of an interval each of whose ends has this chance."""
    if check_level(level) <= 0.5:
        raise InputError(f"level must be above 0.5, the chance of a coin, got {level:g}")
    return 2.0 * level - 1.0
