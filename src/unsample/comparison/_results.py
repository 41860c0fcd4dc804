"""What a comparison returns: differences, standings, and the verdicts in words."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unsample import metrics as _metrics
from unsample._pages import page_of
from unsample.estimation import Estimates
from unsample.metrics import Metric

__all__ = ["Comparison", "Difference", "Standing", "turned_around"]


@dataclass(frozen=True)
class Difference:
    """One metric of model ``a`` minus that of model ``b``."""

    metric: str
    a: str
    b: str
    value: float
    low: float
    high: float
    #: The chance that ``a`` is truly better lies between these; what separates them is not chance.
    least: float
    most: float
    #: The chance that ``a`` is better if sampling misleads about both models alike.
    if_alike: float
    #: How surprising the data are if the verdict is wrong, corrected for the number of pairs.
    p_value: float
    #: The better model, or None if that cannot be told.
    winner: str | None

    def __str__(self) -> str:
        ends = f"[{self.low:+.4f}, {self.high:+.4f}]"
        if self.winner is not None:
            loser = self.b if self.winner == self.a else self.a
            return f"{self.winner} beats {loser} on {self.metric}: {self._facts(ends)}"
        ahead, behind = (self.a, self.b) if self.value >= 0 else (self.b, self.a)
        chance = self.if_alike if self.value >= 0 else 1.0 - self.if_alike
        return (
            f"{ahead} and {behind} cannot be told apart on {self.metric}: {self._facts(ends)}; if "
            f"sampling misleads about both alike, {ahead} is ahead with {_chance(chance)}"
        )

    def _facts(self, ends: str) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        return f"difference {self.value:+.4f}, {ends}, {p}"


@dataclass(frozen=True)
class Standing:
    """One model's metric, and its chance of being the best of all."""

    metric: str
    model: str
    value: float
    low: float
    high: float
    least: float
    most: float
    if_alike: float
    #: 1 for models that no other beats, 2 for those beaten by one of them, and so on.
    place: int


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models side by side: their standings, all differences, and the verdicts in words."""

    estimates: Mapping[str, Estimates]
    standings: tuple[Standing, ...]
    differences: tuple[Difference, ...]
    #: Whether differences were taken user by user.
    paired: bool
    level: float
    correction: str
    warnings: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models in the order given."""
        return tuple(self.estimates)

    def difference(self, a: str, b: str, metric: str | Metric) -> Difference:
        """Return the difference of two models on a metric, ``a`` minus ``b``."""
        name = _metrics.parse(metric).name
        for one in self.differences:
            if (one.metric, one.a, one.b) == (name, a, b):
                return one
            if (one.metric, one.a, one.b) == (name, b, a):
                return turned_around(one)
        raise KeyError(f"no difference of {a} and {b} on {name}; models: {', '.join(self.models)}")

    def winner(self, metric: str | Metric) -> str | None:
        """Return the model that beats every other on the metric, or None if none does."""
        name = _metrics.parse(metric).name
        for model in self.models:
            duels = [d for d in self.differences if d.metric == name and model in (d.a, d.b)]
            if duels and all(duel.winner == model for duel in duels):
                return model
        return None

    def sentences(self) -> tuple[str, ...]:
        """Return the verdict on each metric as a person would write it in a paper."""
        names = dict.fromkeys(one.metric for one in self.standings)
        return tuple(_sentence(self, name) for name in names)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "models": list(self.models),
            "paired": self.paired,
            "level": self.level,
            "correction": self.correction,
            "standings": [vars(one) for one in self.standings],
            "differences": [vars(one) for one in self.differences],
            "sentences": list(self.sentences()),
            "warnings": list(self.warnings),
        }

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the result as one interactive page, and write it to ``path`` if one is given."""
        return page_of(self, path)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a data frame with one row for each difference."""
        from unsample._frames import frame_from_rows

        return frame_from_rows([vars(one) for one in self.differences], backend)

    def __str__(self) -> str:
        from unsample._text import comparison_table

        return comparison_table(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from unsample._text import comparison_html

        return comparison_html(self)


def turned_around(one: Difference) -> Difference:
    return Difference(
        one.metric,
        one.b,
        one.a,
        -one.value,
        -one.high,
        -one.low,
        1.0 - one.most,
        1.0 - one.least,
        1.0 - one.if_alike,
        one.p_value,
        one.winner,
    )


def _sentence(comparison: Comparison, metric: str) -> str:
    rows = [one for one in comparison.standings if one.metric == metric]
    best = comparison.winner(metric)
    share = f"{comparison.level:.0%}"
    if best is not None:
        others = [one.model for one in rows if one.model != best]
        closest = min(
            (comparison.difference(best, other, metric) for other in others),
            key=lambda one: one.low,
        )
        return (
            f"{best} has the highest full-catalogue {metric} ({_corrected_by(comparison)}): it "
            f"beats {_listed(others)}, by at least {closest.low:.4f} ({share} interval of the "
            f"smallest difference, to {closest.b}: [{closest.low:.4f}, {closest.high:.4f}])."
        )
    leader = rows[0]
    rivals = [one.model for one in rows[1:] if one.place == 1]
    if leader.place > 1 or not rivals:
        return f"No model can be called the best on {metric}."
    return (
        f"Which of {_listed([leader.model, *rivals])} has the highest full-catalogue {metric} "
        f"cannot be told from this sample at {share}; {leader.model} has the highest estimate "
        f"({leader.value:.4f}), and is the best with {_chance(leader.if_alike)} if sampling "
        "misleads about all models alike."
    )


def _corrected_by(comparison: Comparison) -> str:
    share = f"{comparison.level:.0%}"
    return share if comparison.correction == "none" else f"{share}, {comparison.correction.title()}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _chance(value: float) -> str:
    if value > 0.995:
        return "more than 99 %"
    return f"{value:.0%}".replace("%", " %")
