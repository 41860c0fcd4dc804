"""The result of a comparison: differences, standings, and verdicts in words."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from unsample import metrics as _metrics
from unsample._checks import check_level
from unsample._gone import refuses_gone
from unsample.answers._claims import Claim, claims_of
from unsample.answers._estimates import Estimates
from unsample.answers._evaluation import Evaluation
from unsample.answers._gate import Gate, percent_of
from unsample.answers._laws import DifferenceLaw
from unsample.answers._notes import Note
from unsample.answers._paired import INDEX, POSITION, USER
from unsample.answers._result import DEFAULT_LEVEL, Result, find_metric, frame_of
from unsample.errors import InputError
from unsample.metrics import Metric

#: Which pairs to compare, if no model is named: all, or the highest estimate with every other.
ALL, BEST = "all", "best"
#: Longer lists of names are cut in sentences, and longer tables where people read them.
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

    def __str__(self) -> str:
        ahead = self.value >= 0 if self.winner is None else self.winner == self.a
        first = self if ahead else self.reversed()
        verdict = f"{first.a} and {first.b} cannot be told apart"
        if self.winner is not None:
            verdict = f"{first.a} beats {first.b}"
        elif first.low > 0:
            verdict = f"{first.a} is ahead of {first.b}, not surely enough for so many pairs,"
        chance = "" if first.chance is None else f", chance {percent_of(first.chance)}"
        facts = f"difference {first.value:+.4f}, [{first.low:+.4f}, {first.high:+.4f}]"
        return f"{verdict} on {self.metric}: {facts}{chance}"


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


_Row = TypeVar("_Row", Difference, Standing)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """A comparison of models: their standings, all differences, and the verdicts in words."""

    metrics: tuple[Metric, ...]
    #: The estimates of each model; an `Evaluation` if `evaluate` made them.
    estimates: Mapping[str, Estimates]
    standings: tuple[Standing, ...]
    differences: tuple[Difference, ...]
    #: What the users of the models were matched by: ``"user"``, ``"query"``, ``"index"`` or
    #: ``"position"``; empty if they were not matched.
    matched: str
    level: float
    correction: str
    notes: tuple[Note, ...] = ()
    #: ``"all"`` pairs, ``"best"`` (the highest estimate with every other model), or a model.
    against: str = ALL
    library: str | None = None
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
        return {
            USER: "user by user",
            INDEX: "user by user (matched by their index)",
            POSITION: "row by row (matched by their position)",
        }.get(self.matched, "unpaired")

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
        name = self.metric_name(metric)
        if (name, a, b) in self._by_pair:
            return self._by_pair[name, a, b]
        if (name, b, a) in self._by_pair:
            return self._by_pair[name, b, a].reversed()
        why = f"models: {listed_briefly(self.models)}"
        if a != b and {a, b} <= self.estimates.keys():
            why = f"pairs were taken against {self.against!r}"
        raise KeyError(f"no difference of {a} and {b} on {name}; {why}")

    def chance(self, a: str, b: str, metric: str | Metric) -> float | None:
        """Return the chance that ``a`` is better than ``b``; None where it is withheld."""
        return self.difference(a, b, metric).chance

    def winner(self, metric: str | Metric) -> str | None:
        """Return the model that beats every other on the metric, or None if there is none."""
        name = self.metric_name(metric)
        won = Counter(pair.winner for pair in self.differences if pair.metric == name)
        every = len(self.models) - 1
        return next((model for model in won if model and won[model] == every), None)

    def gate(
        self, metric: str | Metric, *, baseline: str | None = None, margin: float = 0.0
    ) -> Gate:
        """Return whether a model is worse than the ``baseline``: ``failed`` where that is sure.

        It fails where the chance that a model is worse is at least the level, by more than
        ``margin``, a share of the baseline's estimate. The baseline is ``against`` by default.
        """
        from unsample.answers._verdicts import gate_of

        return gate_of(self, metric, baseline, margin)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Return, for each pair and metric, the least compared K from which on one model wins."""
        return claims_of(self.metrics, self.differences)

    @refuses_gone
    def supported_from(self, a: str, b: str, metric: str = "Recall") -> int | None:
        """Return the least compared K such that ``a`` beats ``b`` there and at all larger K.

        Return None if there is no such K.
        """
        self.difference(a, b, self._at_some_k(metric))
        for claim in self.claims:
            if (claim.a, claim.b) == (a, b) and claim.metric == self._at_some_k(metric).label:
                return claim.supported_from
        return None

    def _at_some_k(self, metric: str) -> Metric:
        """Return the first compared metric that is this metric at some K."""
        several = any(held.counts.several for held in self.estimates.values())
        for each in self.metrics:
            asked = _metrics.parse(f"{metric}@{each.k}") if each.k is not None else None
            if asked is not None and each.same_as(asked, several=several):
                return each
        there = ", ".join(map(str, self.metrics))
        raise KeyError(f"no comparison on {metric} at any K; there are {there}")

    @cached_property
    def _by_pair(self) -> dict[tuple[str, str, str], Difference]:
        return {(pair.metric, pair.a, pair.b): pair for pair in self.differences}

    def metric_name(self, metric: str | Metric) -> str:
        """Return the name under which the metric was asked for."""
        found = find_metric(metric, self.metrics)
        if found is None:
            there = ", ".join(map(str, self.metrics))
            raise KeyError(f"no comparison on {metric}; there are {there}")
        return found.name

    def excerpt(self) -> Comparison:
        """Return the part that is shown if there are very many models: the first 50 on each metric.

        The differences are cut too; those between the highest estimates come first. `to_frame` and
        `to_dict` contain everything.
        """
        if len(self.models) <= _MOST_ROWS:
            return self
        height = {(row.metric, row.model): place for place, row in enumerate(self.standings)}
        pairs = sorted(
            self.differences,
            key=lambda pair: height[pair.metric, pair.a] + height[pair.metric, pair.b],
        )
        rows = _first_rows(self.standings)
        shown = {row.model: self.estimates[row.model] for row in rows}
        return replace(self, estimates=shown, standings=rows, differences=_first_rows(pairs))

    def sentences(self) -> tuple[str, ...]:
        """Return the verdict on each metric as a sentence for a paper, and that of the gate."""
        gated = () if self.gated is None else (str(self.gated),)
        return *(self._sentence(metric.name) for metric in self.metrics), *gated

    def _sentence(self, metric: str) -> str:
        share = f"{100 * self.level:g} %"
        sure = share if self.correction == "none" else f"{share}, {self.correction.title()}"
        if self.against not in {ALL, BEST}:
            return self._sentence_about(self.against, metric, sure)
        leader, *others = (row for row in self.standings if row.metric == metric)
        best = self.winner(metric)
        if best is not None:
            beaten = [row.model for row in (leader, *others) if row.model != best]
            closest = min(
                (self.difference(best, other, metric) for other in beaten),
                key=lambda each: each.low,
            )
            return (
                f"{best} has the highest full-catalogue {metric} ({sure}): it beats "
                f"{listed_briefly(beaten)}; the smallest difference, to {closest.b}, is "
                f"{closest.value:.4f} [{closest.low:.4f}, {closest.high:.4f}]."
            )
        lost = self._losers(metric)
        rivals = [row.model for row in others if row.model not in lost]
        if leader.model in lost or not rivals:
            return f"No model can be called the best on {metric}."
        text = (
            f"{listed_briefly([leader.model, *rivals])} cannot be told apart by their "
            f"full-catalogue {metric} ({sure})"
        )
        if lost:
            beaten = [row.model for row in others if row.model in lost]
            text += f"; {listed_briefly(beaten)} {'is' if len(beaten) == 1 else 'are'} beaten"
        return f"{text}."

    def _losers(self, metric: str) -> set[str]:
        """Return the models that some other model beats."""
        told = [pair for pair in self.differences if pair.metric == metric and pair.winner]
        return {pair.b if pair.winner == pair.a else pair.a for pair in told}

    def _sentence_about(self, baseline: str, metric: str, sure: str) -> str:
        """Return a sentence on how the models compare with ``baseline``."""
        pairs = [pair for pair in self.differences if pair.metric == metric]
        better = [pair for pair in pairs if pair.winner == pair.b]
        worse = sum(pair.winner == pair.a for pair in pairs)
        text = (
            f"Of {len(pairs):,} models, {len(better):,} have a higher full-catalogue {metric} than "
            f"{baseline} and {worse:,} a lower one ({sure}); "
            f"{len(pairs) - len(better) - worse:,} cannot be told apart from it."
        )
        if not better:
            return text
        ahead = min(better, key=lambda pair: pair.value).reversed()
        return (
            f"{text} The highest estimate of those that beat it is that of {ahead.a}: "
            f"{ahead.value:.4f} above, [{ahead.low:.4f}, {ahead.high:.4f}]."
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each difference."""
        return [pair.to_dict() for pair in self.differences]

    @refuses_gone
    def to_frame(self, backend: str | None = None) -> Any:
        """Return a data frame with a row for each difference.

        Chances are rounded to six decimals, because smaller ones only say that they are small.
        `to_dict` has all digits. ``backend`` is as in `Result.to_frame`.
        """
        rows = self.rows()
        for row in rows:
            if row["chance"] is not None:
                row["chance"] = round(row["chance"], 6)
        return frame_of(rows, backend or self.library)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "models": list(self.models),
            "paired": self.paired,
            "matched": self.matched,
            "level": self.level,
            "correction": self.correction,
            "against": self.against,
            "scored": self.scored,
            "runs": dict(self.runs),
            "standings": [dict(vars(row)) for row in self.standings],
            "differences": self.rows(),
            "claims": [vars(claim) | {"cutoffs": list(claim.cutoffs)} for claim in self.claims],
            "sentences": list(self.sentences()),
            "warnings": list(self.warnings),
        } | ({} if self.gated is None else {"gate": self.gated.to_dict()})


def _first_rows(rows: Iterable[_Row]) -> tuple[_Row, ...]:
    """Return the first rows of each metric, as many as are shown."""
    groups = itertools.groupby(rows, key=lambda row: row.metric)
    return tuple(row for _, group in groups for row in itertools.islice(group, _MOST_ROWS))


def listed_briefly(names: Sequence[str]) -> str:
    """Return names as a list for a sentence, cut if there are very many."""
    if len(names) == 1:
        return names[0]
    if len(names) > _MOST_NAMES:
        rest = len(names) - _MOST_NAMES
        return f"{', '.join(names[:_MOST_NAMES])} and {rest:,} others"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def two_sided(level: float) -> float:
    """Return the level of an interval each of whose ends has this chance."""
    if check_level(level) <= 0.5:
        raise InputError(f"level must be above 0.5 for a verdict, got {level:g}")
    return 2.0 * level - 1.0
