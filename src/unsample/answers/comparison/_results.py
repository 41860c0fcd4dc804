"""What a comparison returns: differences, standings, and the verdicts in words."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from unsample import metrics as _metrics
from unsample.answers._door import page_of
from unsample.answers.estimation import Estimates
from unsample.metrics import Metric

__all__ = ["ALL", "BEST", "Comparison", "Difference", "Standing", "listed_briefly"]

#: Which pairs are compared, if not those with one model: all, or the highest estimate with each.
ALL, BEST = "all", "best"
#: Longer lists of names are cut short in sentences, and longer tables where people read them.
_MOST_NAMES = 20
_MOST_ROWS = 50


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
    #: ``"all"`` pairs, ``"best"`` for the highest estimate with each other model, or a model.
    against: str = ALL

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models in the order given."""
        return tuple(self.estimates)

    def difference(self, a: str, b: str, metric: str | Metric) -> Difference:
        """Return the difference of two models on a metric, ``a`` minus ``b``."""
        name = self._name_of(metric)
        if (name, a, b) in self._by_pair:
            return self._by_pair[name, a, b]
        if (name, b, a) in self._by_pair:
            return _turned_around(self._by_pair[name, b, a])
        if a != b and {a, b} <= self.estimates.keys() and self.against != ALL:
            raise KeyError(
                f"no difference of {a} and {b} on {name}: pairs were taken against {self.against!r}"
            )
        raise KeyError(
            f"no difference of {a} and {b} on {name}; models: {listed_briefly(self.models)}"
        )

    @cached_property
    def _by_pair(self) -> dict[tuple[str, str, str], Difference]:
        return {(one.metric, one.a, one.b): one for one in self.differences}

    def _name_of(self, metric: str | Metric) -> str:
        """Return what the metric was called where it was asked for."""
        wanted = _metrics.parse(metric)
        names = dict.fromkeys(one.metric for one in self.standings)
        same = [name for name in names if _metrics.parse(name).same_as(wanted)]
        return wanted.name if wanted.name in names or not same else same[0]

    def winner(self, metric: str | Metric) -> str | None:
        """Return the model that beats every other on the metric, or None if none does."""
        name = self._name_of(metric)
        won = Counter(one.winner for one in self.differences if one.metric == name and one.winner)
        return next((model for model in won if won[model] == len(self.models) - 1), None)

    def excerpt(self) -> Comparison:
        """Return what people are shown of very many models: on each metric the first 50.

        Differences of many models are cut short as well, those between the highest estimates
        come first. `to_frame` and `to_dict` hold everything.
        """
        if len(self.models) <= _MOST_ROWS:
            return self
        standings: list[Standing] = []
        differences: list[Difference] = []
        for metric in dict.fromkeys(one.metric for one in self.standings):
            rows = [one for one in self.standings if one.metric == metric]
            height = {one.model: place for place, one in enumerate(rows)}
            held = [one for one in self.differences if one.metric == metric]
            standings += rows[:_MOST_ROWS]
            differences += sorted(held, key=lambda one: height[one.a] + height[one.b])[:_MOST_ROWS]
        shown = {one.model: self.estimates[one.model] for one in standings}
        return replace(
            self, estimates=shown, standings=tuple(standings), differences=tuple(differences)
        )

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
            "against": self.against,
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
        from unsample.pages._frames import frame_from_rows

        return frame_from_rows([vars(one) for one in self.differences], backend)

    def __str__(self) -> str:
        from unsample.pages._text import comparison_table

        return comparison_table(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from unsample.pages._text import comparison_html

        return comparison_html(self)


def _turned_around(one: Difference) -> Difference:
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
    if comparison.against not in {ALL, BEST}:
        return _sentence_about(comparison, comparison.against, metric)
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
            f"beats {listed_briefly(others)}, by at least {closest.low:.4f} ({share} interval of "
            f"the smallest difference, to {closest.b}: [{closest.low:.4f}, {closest.high:.4f}])."
        )
    leader = rows[0]
    rivals = [one.model for one in rows[1:] if one.place == 1]
    if leader.place > 1 or not rivals:
        return f"No model can be called the best on {metric}."
    named = listed_briefly([leader.model, *rivals])
    return (
        f"Which of {named} has the highest full-catalogue {metric} "
        f"cannot be told from this sample at {share}; {leader.model} has the highest estimate "
        f"({leader.value:.4f}), and is the best with {_chance(leader.if_alike)} if sampling "
        "misleads about all models alike."
    )


def _sentence_about(comparison: Comparison, baseline: str, metric: str) -> str:
    """Return how the models stand to the one that all were compared with."""
    duels = [one for one in comparison.differences if one.metric == metric]
    better = [one for one in duels if one.winner == one.b]
    worse = sum(one.winner == one.a for one in duels)
    text = (
        f"Of {len(duels):,} models, {len(better):,} have a higher full-catalogue {metric} than "
        f"{baseline} and {worse:,} a lower one ({_corrected_by(comparison)}); "
        f"{len(duels) - len(better) - worse:,} cannot be told apart from it."
    )
    if not better:
        return text
    ahead = min(better, key=lambda one: one.value)
    return (
        f"{text} The highest estimate of those that beat it is that of {ahead.b}: "
        f"{-ahead.value:.4f} above, [{-ahead.high:.4f}, {-ahead.low:.4f}]."
    )


def _corrected_by(comparison: Comparison) -> str:
    share = f"{comparison.level:.0%}"
    return share if comparison.correction == "none" else f"{share}, {comparison.correction.title()}"


def listed_briefly(names: Sequence[str]) -> str:
    """Return names as a list in a sentence, cut short where there are very many."""
    if len(names) == 1:
        return names[0]
    if len(names) > _MOST_NAMES:
        rest = len(names) - _MOST_NAMES
        return f"{', '.join(names[:_MOST_NAMES])} and {rest:,} others"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _chance(value: float) -> str:
    if value > 0.995:
        return "more than 99 %"
    return f"{value:.0%}".replace("%", " %")
