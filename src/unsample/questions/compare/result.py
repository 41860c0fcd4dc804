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
#: Stands for the names of metrics in a sentence, which metrics with the same verdict share.
_METRICS = "\0"


@dataclass(frozen=True)
class Standing:
    """One model's metric, and its probability of being the best of all."""

    metric: str
    model: str
    value: float
    low: float
    high: float
    #: The probability of being the best; None if some model is known by its bounds alone.
    probability: float | None
    #: Where the interval comes from: ``"prior"``, ``"bounds"`` or ``"mean"``.
    source: str


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """A comparison of models: their standings, all differences, and the verdicts in words.

    >>> import unsample
    >>> users = range(300)
    >>> ranks = {"A": [1 + u**3 // 300_000 for u in users], "B": [1 + u**2 // 1_000 for u in users]}
    >>> result = unsample.compare(ranks, items=3706, sampled=99, metrics="Recall@100")
    >>> difference = result.difference("A", "B", "Recall@100")
    >>> round(difference.value, 1), [round(end, 1) for end in difference.interval(0.95)]
    (0.1, [0.1, 0.2])
    >>> result.winner("Recall@100"), round(result.probability("A", "B", "Recall@100"), 2)
    ('A', 1.0)
    >>> result.gate("Recall@100", baseline="A").verdict
    'failed'
    """

    shown_by: ClassVar[str] = "unsample.questions.compare.view:view_of_comparison"

    metrics: tuple[Metric, ...]
    #: The estimates of each model; an `Evaluation` if `evaluate` made them.
    estimates: Mapping[str, Estimates]
    standings: tuple[Standing, ...]
    #: The difference of each two models.
    differences: tuple[Difference, ...]
    #: How users were matched: by ``"user"`` or ``"position"``; empty if they were not.
    matched: str
    level: float
    #: Makes the joint distribution of each metric again, for one of several data sets.
    redrawn: Callable[..., Mapping[str, Joint]] = field(repr=False)
    notes: tuple[Note, ...] = ()
    #: How many runs each model has.
    runs: Mapping[str, int] = field(default_factory=dict)
    #: The verdict of the gate, if one was asked for (``--fail-if-worse``).
    gated: Gate | None = None

    @property
    def level_of_differences(self) -> float:
        """Return the level of the intervals of differences that are shown.

        These intervals exclude 0 exactly if the probability that one of the models is better is
        above ``level``.
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
        """Return how many scores `evaluate` asked of each model that it evaluated."""
        return {
            name: result.scored for name, result in self.estimates.items() if is_evaluation(result)
        }

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models in the order given."""
        return tuple(self.estimates)

    def difference(self, a: str, b: str, metric: str | Metric) -> Difference:
        """Return the difference of two models on a metric, ``a`` minus ``b``.

        Parameters
        ----------
        a, b
            The names of two models.
        metric
            One of the metrics that were asked for.

        Returns
        -------
        Difference
            ``value``, ``interval(level)`` and ``probability``.

        Raises
        ------
        KeyError
            If there is no such metric or model.
        """
        name = name_of(metric, self.metrics)
        return find_difference(self.differences, a=a, b=b, metric=name)

    def probability(self, a: str, b: str, metric: str | Metric) -> float | None:
        """Return the probability that ``a`` is better than ``b``.

        It is None where one of them is known by its bounds alone.

        Raises
        ------
        KeyError
            If there is no such metric or model.
        """
        return self.difference(a, b, metric=metric).probability

    def winner(self, metric: str | Metric) -> str | None:
        """Return the model that beats every other significantly, or None if there is none.

        Raises
        ------
        KeyError
            If there is no such metric.
        """
        name = name_of(metric, self.metrics)
        return winner_of(self.differences, name, models=len(self.models))

    def places(self, metric: str | Metric) -> dict[str, tuple[int, int]]:
        """Return the first and the last place that each model may have.

        The places of all models are right together with the probability ``level``. Models whose
        places overlap are tied.

        Raises
        ------
        KeyError
            If there is no such metric.

        >>> import unsample
        >>> users = range(300)
        >>> ranks = {name: [1 + u**3 // 300_000 for u in users] for name in "AB"}
        >>> ranks["C"] = [1 + u**2 // 1_000 for u in users]
        >>> result = unsample.compare(ranks, items=3706, sampled=99, metrics="Recall@100")
        >>> result.places("Recall@100")
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
        """Return whether a model is worse than the ``baseline``: ``failed`` says so.

        The gate fails if the probability that some model is worse is at least the level, corrected
        for the number of models.

        Parameters
        ----------
        metric
            One of the metrics that were asked for.
        baseline
            The model that the others are compared with.
        margin
            How much worse a model may be, as a share of the baseline's estimate: 0.01 is 1 %.
        fail_if_unknown
            Whether the gate also fails where the verdict is ``"unknown"``: a model is known by its
            bounds alone, and they allow for both.

        Raises
        ------
        InputError
            If there is no such baseline, or the margin is no share.
        """
        check_choice("baseline", baseline, self.models)
        name = name_of(metric, self.metrics)
        others = [model for model in self.models if model != baseline]
        return Gate.of(
            {model: self.difference(model, baseline, metric=name) for model in others},
            self.estimates[baseline][name].value,
            margin=as_margin(margin),
            level=self.level,
            fail_if_unknown=fail_if_unknown,
        )

    def sentences(self) -> tuple[str, ...]:
        """Return the verdicts as sentences for a paper, and then the verdict of the gate.

        Metrics with the same verdict share a sentence.
        """
        metrics_of: dict[str, list[str]] = {}
        for metric in self.metrics:
            metrics_of.setdefault(self._sentence(metric.name), []).append(metric.name)
        verdicts = [text.replace(_METRICS, ", ".join(names)) for text, names in metrics_of.items()]
        if self.gated is not None:
            verdicts.append(str(self.gated))
        return tuple(verdicts)

    def _sentence(self, metric: str) -> str:
        """Return the verdict on a metric, with a sign in place of the metric's name."""
        certainty = f"{100 * self.level:g} %, corrected for all pairs"
        ranked = [row.model for row in self.standings if row.metric == metric]
        winner = self.winner(metric)
        if winner is None:
            places = self.places(metric)
            return tied_sentence(ranked, places, of=f"full-catalogue {_METRICS}", sure=certainty)
        beaten = [model for model in ranked if model != winner]
        differences = [self.difference(winner, model, metric=metric) for model in beaten]
        smallest = min(differences, key=lambda difference: difference.low)
        return (
            f"{winner} has the highest full-catalogue {_METRICS} ({certainty}): it beats "
            f"{listed_briefly(beaten)}; the smallest difference, to {smallest.b}, is "
            f"{smallest.value:.4f} [{smallest.low:.4f}, {smallest.high:.4f}]."
        )

    @property
    def targets_read(self) -> int | None:
        """Return how many targets were read, over all models and runs."""
        targets = [result.targets_read for result in self.estimates.values()]
        return None if None in targets else sum(filter(None, targets))

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each difference."""
        return [pair.to_dict() for pair in self.differences]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, as ``--json`` prints it."""
        return (
            self.header()
            | {
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
            }
            | ({} if self.gated is None else {"gate": self.gated.to_dict()})
        )


def name_of(metric: str | Metric, metrics: Sequence[Metric]) -> str:
    """Return the name under which a metric was asked for."""
    asked = find_metric(metric, metrics)
    if asked is None:
        raise KeyError(f"no comparison on {metric}; there are {', '.join(map(str, metrics))}")
    return asked.name


def tied_sentence(
    ranked: Sequence[str], places: Mapping[str, tuple[int, int]], *, of: str, sure: str
) -> str:
    """Return who is tied and who beats whom, where no model beats all others.

    Parameters
    ----------
    ranked
        The models, the highest estimate first.
    places
        The first and the last place that each may have.
    of
        The metric, in words.
    sure
        The level, in words.

    >>> places = {"A": (1, 2), "B": (1, 2), "C": (3, 3)}
    >>> tied_sentence(["A", "B", "C"], places, of="HR@10", sure="95 %")
    'A and B are tied by their HR@10 (95 %); both beat C.'
    """
    groups = tied_groups({name: places[name] for name in ranked})
    first, *below = [[name for name in ranked if name in group] for group in groups]
    beaten = [name for group in below for name in group]
    if len(first) == 1:
        text = f"{first[0]} leads by their {of} ({sure})"
        return f"{text}; it beats {listed_briefly(beaten)}." if beaten else f"{text}."
    text = f"{listed_briefly(first)} are tied by their {of} ({sure})"
    if beaten:
        who = "both" if len(first) == 2 else "all of them"
        text += f"; {who} beat {listed_briefly(beaten)}"
    # Tied with some of the group, and below others of it.
    below_some = [name for name in first if places[name][0] > 1]
    if below_some:
        verb = "is" if len(below_some) == 1 else "are"
        text += f"; of these, {listed_briefly(below_some)} {verb} beaten by some"
    return f"{text}."


def listed_briefly(names: Sequence[str]) -> str:
    """Return names as a list for a sentence, cut if there are very many."""
    if len(names) == 1:
        return names[0]
    if len(names) > _MOST_NAMES:
        rest = len(names) - _MOST_NAMES
        return f"{', '.join(names[:_MOST_NAMES])} and {rest:,} others"
    return f"{', '.join(names[:-1])} and {names[-1]}"
