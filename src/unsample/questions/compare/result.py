"""The result of a comparison: differences, standings, and verdicts in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from unsample._checks import check_choice
from unsample.metrics import Metric, find_metric
from unsample.questions.compare.differences import (
    Difference,
    find_difference,
    places_of,
    tied_groups,
    winner_of,
)
from unsample.questions.compare.gate import Gate, as_margin
from unsample.questions.compare.joint import Joint
from unsample.questions.compare.models import POSITION, USER, is_evaluation
from unsample.questions.estimate.result import Estimates
from unsample.report import Note, Result

#: Longer lists of names are cut in sentences.
_MOST_NAMES = 20
#: Stands for the names of metrics in a sentence, of which metrics alike share one.
_METRICS = "\0"


@dataclass(frozen=True)
class Standing:
    """One model's metric, and its probability of being the best of all."""

    metric: str
    model: str
    value: float
    low: float
    high: float
    #: The probability of being the best; None where some model is known by its bounds alone.
    probability: float | None
    #: Where the interval comes from: ``"prior"``, ``"bounds"`` or ``"mean"``.
    source: str


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """A comparison of models: their standings, all differences, and the verdicts in words."""

    shown_by: ClassVar[str] = "unsample.questions.compare.view:view_of_comparison"

    metrics: tuple[Metric, ...]
    #: The estimates of each model; an `Evaluation` if `evaluate` made them.
    estimates: Mapping[str, Estimates]
    standings: tuple[Standing, ...]
    #: Of each two models.
    differences: tuple[Difference, ...]
    #: What users were matched by: ``"user"`` or ``"position"``; empty if by nothing.
    matched: str
    level: float
    #: Gives the joint distribution of each metric again, as of one of several data sets.
    redrawn: Callable[..., Mapping[str, Joint]] = field(repr=False)
    notes: tuple[Note, ...] = ()
    #: How many runs each model has.
    runs: Mapping[str, int] = field(default_factory=dict)
    #: Whether models passed, if that was asked for (``--fail-if-worse``).
    gated: Gate | None = None

    @property
    def level_of_differences(self) -> float:
        """Return the level of the intervals of differences that are shown.

        They exclude 0 exactly where the probability that one model is better passes ``level``.
        """
        return round(2.0 * self.level - 1.0, 8)

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
        return {name: each.scored for name, each in found if is_evaluation(each)}

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models in the order given."""
        return tuple(self.estimates)

    def difference(self, a: str, b: str, metric: str | Metric) -> Difference:
        """Return the difference of two models on a metric, ``a`` minus ``b``."""
        return find_difference(self.differences, a, b, metric=name_of(metric, self.metrics))

    def probability(self, a: str, b: str, metric: str | Metric) -> float | None:
        """Return the probability that ``a`` is better than ``b``; None where it is withheld."""
        return self.difference(a, b, metric).probability

    def winner(self, metric: str | Metric) -> str | None:
        """Return the model that beats every other on the metric, or None if there is none."""
        name = name_of(metric, self.metrics)
        return winner_of(self.differences, name, models=len(self.models))

    def places(self, metric: str | Metric) -> dict[str, tuple[int, int]]:
        """Return the first and the last place that each model may have.

        They hold for all models together with the probability ``level``. Models whose places
        overlap are tied.

        >>> import unsample
        >>> users = range(300)
        >>> ranks = {name: [1 + u**3 // 300_000 for u in users] for name in "AB"}
        >>> ranks["C"] = [1 + u**2 // 1_000 for u in users]
        >>> found = unsample.compare(ranks, items=3706, sampled=99, metrics="Recall@100")
        >>> found.places("Recall@100")
        {'A': (1, 2), 'B': (1, 2), 'C': (3, 3)}
        """
        name = name_of(metric, self.metrics)
        return places_of(self.differences, self.models, metric=name)

    def gate(
        self,
        metric: str | Metric,
        *,
        baseline: str,
        margin: float = 0.0,
        fail_if_unknown: bool = False,
    ) -> Gate:
        """Return whether a model is worse than the ``baseline``: ``failed`` where that is sure.

        It fails where the probability that a model is worse is at least the level, by more than
        ``margin``, a share of the baseline's estimate. Where only bounds are known, which allow for
        both, its verdict is ``"unknown"``; with ``fail_if_unknown`` it fails there too.
        """
        check_choice("baseline", baseline, self.models)
        name = name_of(metric, self.metrics)
        others = [model for model in self.models if model != baseline]
        pairs = {model: self.difference(model, baseline, name) for model in others}
        value = self.estimates[baseline][name].value
        return Gate.of(
            pairs,
            value,
            margin=as_margin(margin),
            level=self.level,
            fail_if_unknown=fail_if_unknown,
        )

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
        ranked = [row.model for row in (leader, *others)]
        places = places_of(self.differences, self.models, metric=metric)
        return tied_sentence(ranked, places, of=f"full-catalogue {shown}", sure=sure)

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


def tied_sentence(
    ranked: Sequence[str], places: Mapping[str, tuple[int, int]], *, of: str, sure: str
) -> str:
    """Return who is tied and who beats whom, where no model beats all others.

    ``ranked`` are the models by their estimates, the highest first.

    >>> places = {"A": (1, 2), "B": (1, 2), "C": (3, 3)}
    >>> tied_sentence(["A", "B", "C"], places, of="HR@10", sure="95 %")
    'A and B are tied by their HR@10 (95 %); both beat C.'
    """
    groups = tied_groups({name: places[name] for name in ranked})
    ordered = [[name for name in ranked if name in group] for group in groups]
    first, *below = ordered
    alone = len(first) == 1
    text = f"{listed_briefly(first)} {'leads' if alone else 'are tied'} by their {of} ({sure})"
    beaten = [name for group in below for name in group]
    if beaten:
        who = "it beats" if alone else "both beat" if len(first) == 2 else "all of them beat"
        text += f"; {who} {listed_briefly(beaten)}"
    within = [name for name in first if places[name][0] > 1]
    if within and not alone:
        lost = "is" if len(within) == 1 else "are"
        text += f"; of these, {listed_briefly(within)} {lost} beaten by some"
    return f"{text}."


def listed_briefly(names: Sequence[str]) -> str:
    """Return names as a list for a sentence, cut if there are very many."""
    if len(names) == 1:
        return names[0]
    if len(names) > _MOST_NAMES:
        rest = len(names) - _MOST_NAMES
        return f"{', '.join(names[:_MOST_NAMES])} and {rest:,} others"
    return f"{', '.join(names[:-1])} and {names[-1]}"
