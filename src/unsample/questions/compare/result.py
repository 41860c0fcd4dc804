"""The result of a comparison: differences, standings, and verdicts in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unsample._checks import check_choice, check_real
from unsample.answers._estimates import Estimates
from unsample.answers._evaluation import Evaluation
from unsample.answers._gate import Gate
from unsample.answers._laws import JointLaw
from unsample.answers._models import POSITION, USER
from unsample.answers._notes import Note
from unsample.answers._result import Result, find_metric
from unsample.answers._verdicts import Difference, find_difference, winner_of
from unsample.metrics import Metric

#: Longer lists of names are cut in sentences.
_MOST_NAMES = 20
#: Stands for the names of metrics in a sentence, of which metrics alike share one.
_METRICS = "\0"


@dataclass(frozen=True)
class Standing:
    """One model's metric, and its chance of being the best of all."""

    metric: str
    model: str
    value: float
    low: float
    high: float
    #: The chance of being the best; None where some model is known by its bounds alone.
    chance: float | None
    #: Where the interval comes from: ``"prior"``, ``"bounds"`` or ``"mean"``.
    source: str


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """A comparison of models: their standings, all differences, and the verdicts in words."""

    metrics: tuple[Metric, ...]
    #: The estimates of each model; an `Evaluation` if `evaluate` made them.
    estimates: Mapping[str, Estimates]
    standings: tuple[Standing, ...]
    #: Of each two models.
    differences: tuple[Difference, ...]
    #: What users were matched by: ``"user"`` or ``"position"``; empty if by nothing.
    matched: str
    level: float
    #: The joint law of each metric, from which all of this follows.
    laws: Mapping[str, JointLaw]
    notes: tuple[Note, ...] = ()
    #: How many runs each model has.
    runs: Mapping[str, int] = field(default_factory=dict)
    #: Whether models passed, if that was asked for (``--fail-if-worse``).
    gated: Gate | None = None

    @property
    def level_of_both(self) -> float:
        """Return how surely both ends of a difference's interval hold together, in percent.

        Each end alone holds at ``level``, so that it excludes 0 exactly where a chance passes it.
        """
        return round(100.0 * (2.0 * self.level - 1.0), 6)

    @property
    def paired(self) -> bool:
        """Return whether differences were taken user by user."""
        return bool(self.matched)

    @property
    def pairing(self) -> str:
        """Return how the users of the models were compared, in words."""
        words = {USER: "user by user", POSITION: "row by row (matched by their position)"}
        return words.get(self.matched, "unpaired")

    @property
    def scored(self) -> dict[str, int]:
        """Return how many scores were asked of each model that `evaluate` evaluated."""
        found = self.estimates.items()
        return {name: each.scored for name, each in found if isinstance(each, Evaluation)}

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models in the order given."""
        return tuple(self.estimates)

    def difference(self, a: str, b: str, metric: str | Metric) -> Difference:
        """Return the difference of two models on a metric, ``a`` minus ``b``."""
        return find_difference(self.differences, a, b, name_of(metric, self.metrics))

    def chance(self, a: str, b: str, metric: str | Metric) -> float | None:
        """Return the chance that ``a`` is better than ``b``; None where it is withheld."""
        return self.difference(a, b, metric).chance

    def winner(self, metric: str | Metric) -> str | None:
        """Return the model that beats every other on the metric, or None if there is none."""
        return winner_of(self.differences, name_of(metric, self.metrics), len(self.models))

    def gate(self, metric: str | Metric, *, baseline: str, margin: float = 0.0) -> Gate:
        """Return whether a model is worse than the ``baseline``: ``failed`` where that is sure.

        It fails where the chance that a model is worse is at least the level, by more than
        ``margin``, a share of the baseline's estimate.
        """
        check_choice("baseline", baseline, self.models)
        margin = check_real("margin", margin, low=0.0, high=1.0, open_high=True, hint="0.01 is 1 %")
        name = name_of(metric, self.metrics)
        others = [model for model in self.models if model != baseline]
        pairs = {model: self.difference(model, baseline, name) for model in others}
        return Gate.of(pairs, self.estimates[baseline][name].value, margin, self.level)

    def sentences(self) -> tuple[str, ...]:
        """Return the verdicts as sentences for a paper, one for metrics alike, and the gate's."""
        gated = () if self.gated is None else (str(self.gated),)
        found: dict[str, list[str]] = {}
        for metric in self.metrics:
            found.setdefault(self._sentence(metric.name, _METRICS), []).append(metric.name)
        told = (text.replace(_METRICS, ", ".join(names)) for text, names in found.items())
        return *told, *gated

    def _sentence(self, metric: str, shown: str) -> str:
        sure = f"{100 * self.level:g} %, corrected for all pairs"
        leader, *others = (row for row in self.standings if row.metric == metric)
        best = self.winner(metric)
        if best is not None:
            beaten = [row.model for row in (leader, *others) if row.model != best]
            closest = min(
                (self.difference(best, other, metric) for other in beaten),
                key=lambda each: each.low,
            )
            return (
                f"{best} has the highest full-catalogue {shown} ({sure}): it beats "
                f"{listed_briefly(beaten)}; the smallest difference, to {closest.b}, is "
                f"{closest.value:.4f} [{closest.low:.4f}, {closest.high:.4f}]."
            )
        lost = self._losers(metric)
        rivals = [row.model for row in others if row.model not in lost]
        if leader.model in lost or not rivals:
            return f"No model can be called the best on {shown}."
        text = (
            f"{listed_briefly([leader.model, *rivals])} cannot be told apart by their "
            f"full-catalogue {shown} ({sure})"
        )
        if lost:
            beaten = [row.model for row in others if row.model in lost]
            text += f"; {listed_briefly(beaten)} {'is' if len(beaten) == 1 else 'are'} beaten"
        return f"{text}."

    def _losers(self, metric: str) -> set[str]:
        """Return the models that some other model beats."""
        told = [pair for pair in self.differences if pair.metric == metric and pair.winner]
        return {pair.b if pair.winner == pair.a else pair.a for pair in told}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each difference."""
        return [pair.to_dict() for pair in self.differences]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "models": list(self.models),
            "paired": self.paired,
            "matched": self.matched,
            "level": self.level,
            "scored": self.scored,
            "runs": dict(self.runs),
            "standings": [dict(vars(row)) for row in self.standings],
            "differences": self.rows(),
            "sentences": list(self.sentences()),
            "warnings": list(self.warnings),
        } | ({} if self.gated is None else {"gate": self.gated.to_dict()})


def name_of(metric: str | Metric, metrics: Sequence[Metric]) -> str:
    """Return the name under which a metric was asked for."""
    found = find_metric(metric, metrics)
    if found is None:
        raise KeyError(f"no comparison on {metric}; there are {', '.join(map(str, metrics))}")
    return found.name


def listed_briefly(names: Sequence[str]) -> str:
    """Return names as a list for a sentence, cut if there are very many."""
    if len(names) == 1:
        return names[0]
    if len(names) > _MOST_NAMES:
        rest = len(names) - _MOST_NAMES
        return f"{', '.join(names[:_MOST_NAMES])} and {rest:,} others"
    return f"{', '.join(names[:-1])} and {names[-1]}"
