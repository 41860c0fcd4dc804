"""`Leaderboard`: the full-catalogue metrics of many models, from a table of printed numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unsample.errors import InputError
from unsample.metrics import Metric, find_metric
from unsample.questions.compare.result import Comparison
from unsample.questions.estimate.result import Estimate
from unsample.questions.published.result import Published
from unsample.report import Note, Result
from unsample.uncertainty import DEFAULT_LEVEL


@dataclass(frozen=True)
class Place:
    """One model on one data set by one metric: the printed number and the estimate."""

    data_set: str
    metric: str
    model: str
    #: The printed number of the same metric; empty if there is none.
    printed: str
    estimate: Estimate
    #: The first and the last place that the model may have.
    first: int
    last: int


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(Result):
    """The models of a table: their estimates, and the places that each may have.

    >>> from unsample.questions.published.ask import published
    >>> table = {"A": {"HR@10": "0.690"}, "B": {"HR@10": "0.695"}, "C": {"HR@10": "0.900"}}
    >>> board = published(table, items=3706, sampled=99, users=6040, metrics="Recall@370")
    >>> board.places("Recall@370")
    {'A': (2, 3), 'B': (2, 3), 'C': (1, 1)}
    >>> round(board.published("C")["Recall@370"].value, 1)
    0.9
    """

    shown_by: ClassVar[str] = "unsample.questions.published.view:view_of_leaderboard"
    made_by: ClassVar[str] = "leaderboard"

    #: The estimates of each model, by data set; a table without data sets has one, ``""``.
    data_sets: Mapping[str, Mapping[str, Published]]
    #: The comparison of the models of each data set that has several.
    comparisons: Mapping[str, Comparison]
    level: float = DEFAULT_LEVEL
    notes: tuple[Note, ...] = ()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics that are estimated."""
        return next(self._all()).metrics

    @property
    def models(self) -> tuple[str, ...]:
        """Return all models, in the order of the table."""
        return tuple(dict.fromkeys(name for models in self.data_sets.values() for name in models))

    def published(self, model: str, *, data_set: str | None = None) -> Published:
        """Return the estimates of one model, as `published` gives them for its numbers alone.

        Parameters
        ----------
        model
            The name of the model.
        data_set
            The name of the data set; it may be left out if there is only one.

        Raises
        ------
        InputError
            If there is no such model or data set.
        """
        models = self.data_sets[self._data_set(data_set)]
        if model not in models:
            raise InputError(f"model must be one of {', '.join(models)}, got {model!r}")
        return models[model]

    def comparison(self, *, data_set: str | None = None) -> Comparison:
        """Return the comparison of the models of a data set.

        Raises
        ------
        InputError
            If there is no such data set, or it has one model.
        """
        name = self._data_set(data_set)
        if name not in self.comparisons:
            only = ", ".join(self.data_sets[name])
            raise InputError(f"models must be at least two to be compared, got {only}")
        return self.comparisons[name]

    def places(
        self, metric: str | Metric, *, data_set: str | None = None
    ) -> dict[str, tuple[int, int]]:
        """Return the first and the last place that each model of a data set may have.

        The places of all models are right together with the probability ``level``. Models whose
        places overlap are tied.
        """
        name = self._data_set(data_set)
        if name in self.comparisons:
            return self.comparisons[name].places(metric)
        return dict.fromkeys(self.data_sets[name], (1, 1))

    def standings(self) -> Iterator[Place]:
        """Yield the models by data set and metric, the highest estimate first."""
        for data_set, models in self.data_sets.items():
            for metric in self.metrics:
                places = self.places(metric, data_set=data_set)
                by_value = sorted(models.items(), key=lambda item: -item[1][metric].value)
                for model, result in by_value:
                    first, last = places[model]
                    yield Place(
                        data_set=data_set,
                        metric=metric.name,
                        model=model,
                        printed=_as_printed(result, metric),
                        estimate=result[metric],
                        first=first,
                        last=last,
                    )

    def sentences(self) -> tuple[str, ...]:
        """Return who is tied and who is better, as sentences."""
        return tuple(
            f"{name}: {text}" if name else text
            for name, comparison in self.comparisons.items()
            for text in comparison.sentences()
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each data set, metric and model."""
        named = "" not in self.data_sets
        rows = []
        for standing in self.standings():
            low, high = standing.estimate.interval(self.level)
            row: dict[str, Any] = {"dataset": standing.data_set} if named else {}
            row |= {
                "metric": standing.metric,
                "model": standing.model,
                "printed": standing.printed or None,
                "value": standing.estimate.value,
                "low": low,
                "high": high,
                "first_place": standing.first,
                "last_place": standing.last,
                "source": standing.estimate.source,
            }
            rows.append(row)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, as ``--json`` prints it."""
        return self.header() | {
            "models": list(self.models),
            "level": self.level,
            "standings": self.rows(),
            "sentences": list(self.sentences()),
            "warnings": list(self.warnings),
        }

    def _all(self) -> Iterator[Published]:
        """Yield the estimates of all models."""
        for models in self.data_sets.values():
            yield from models.values()

    def _data_set(self, name: str | None) -> str:
        """Return the name of a data set, which may be left out if there is only one."""
        if name is None and len(self.data_sets) == 1:
            return next(iter(self.data_sets))
        if name is None or name not in self.data_sets:
            there = ", ".join(self.data_sets) or "none"
            raise InputError(f"data_set must be one of {there}, got {name!r}")
        return name


def _as_printed(result: Published, metric: Metric) -> str:
    """Return the printed number of the same metric, or an empty text."""
    same = find_metric(metric, [number.metric for number in result.numbers])
    for number in result.numbers:
        if number.metric == same:
            return str(number).rpartition("= ")[2]
    return ""
