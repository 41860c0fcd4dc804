"""`Across`: models compared on several data sets, by the mean of a metric over them.

The mean on *these data sets* has the errors of its data sets. They do not cancel as independent
errors would: a part of what the prior leaves open of a model is the same on all data sets. The mean
on *data sets like these* varies with the choice of data sets too. Their spread counts as the spread
of runs does: k data sets give it k - 1 degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from unsample._checks import FloatArray, check_choice, check_flag
from unsample.errors import InputError
from unsample.metrics import Metric
from unsample.posterior import PUSHED, DataSet, FixedNumbers
from unsample.questions.compare.differences import (
    Difference,
    find_difference,
    places_of,
    verdicts,
    winner_of,
)
from unsample.questions.compare.gate import Gate, as_margin
from unsample.questions.compare.joint import ModelDraws, best_of
from unsample.questions.compare.repeated import spread_of, with_spread
from unsample.questions.compare.result import Comparison, listed_briefly, name_of, tied_sentence
from unsample.questions.estimate.result import BOUNDS
from unsample.report import Note, Result
from unsample.uncertainty import FromDraws

#: The stream of fixed random numbers for the spread of data sets; the posterior has others.
_DATA_SETS = 5


class InCommon(NamedTuple):
    """The share of the prior's variance that the errors on different data sets have in common."""

    #: Of the error of a model.
    of_model: float
    #: Of the error of the difference of two models.
    of_difference: float


#: The shares by kind, from ``benchmarks/calibration.py`` with families of data sets and kinds of
#: models left out. There are too few graphs to tell: they have the largest shares of the others.
IN_COMMON = {
    "unseen": InCommon(of_model=0.10, of_difference=0.31),
    "all": InCommon(of_model=0.34, of_difference=0.51),
    PUSHED: InCommon(of_model=0.34, of_difference=0.51),
    "repeats": InCommon(of_model=0.19, of_difference=0.13),
    "graph": InCommon(of_model=0.34, of_difference=0.51),
}
#: The two groups of data sets that a mean can be for.
THESE = "these data sets"
LIKE = "data sets like these"


@dataclass(frozen=True)
class MeanStanding:
    """One model's mean over data sets, its places, and its probabilities of being the best."""

    metric: str
    model: str
    value: float
    low: float
    high: float
    #: The ends of the interval for data sets like these.
    like_low: float
    like_high: float
    #: The probability that the model has the highest mean on these data sets.
    probability: float
    #: The expected number of data sets on which the model is the best.
    best_on: float
    #: The mean place among the models, and its interval for data sets like these.
    place: float
    place_low: float
    place_high: float


@dataclass(frozen=True, eq=False, repr=False)
class Across(Result):
    """Models compared on several data sets: on each alone, and by their means over all of them.

    Methods that ask about means take ``like``: True (the default) asks about data sets like these,
    False about these data sets alone.

    >>> import unsample
    >>> users = range(300)
    >>> ranks = {"A": [1 + u**3 // 300_000 for u in users], "B": [1 + u**2 // 1_000 for u in users]}
    >>> data_sets = {"books": ranks, "films": {name: ranks[name][::2] for name in ranks}}
    >>> result = unsample.compare(
    ...     data_sets, across="dataset", items=3706, sampled=99, metrics="Recall@100"
    ... )
    >>> difference = result.difference("A", "B", "Recall@100", like=False)
    >>> round(difference.value, 1), difference.winner
    (0.1, 'A')
    """

    shown_by: ClassVar[str] = "unsample.questions.compare.view:view_of_means"

    #: What data sets are called, such as the column that names them.
    across: str
    metrics: tuple[Metric, ...]
    comparisons: Mapping[str, Comparison]
    #: The data sets that means are over: every model is there, and none is known by bounds alone.
    whole: tuple[str, ...]
    standings: tuple[MeanStanding, ...]
    #: Differences of means on these data sets, and on data sets like these.
    differences: tuple[Difference, ...]
    like: tuple[Difference, ...]
    level: float
    notes: tuple[Note, ...] = ()
    #: The verdict of the gate, if one was asked for (``--fail-if-worse``).
    gated: Gate | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models in the order in which they come."""
        return _models_of(self.comparisons)

    def difference(self, a: str, b: str, metric: str | Metric, *, like: bool = True) -> Difference:
        """Return the difference of two means, ``a`` minus ``b``.

        Parameters
        ----------
        a, b
            The names of two models.
        metric
            One of the metrics that were asked for.
        like
            Whether the difference is for data sets like these, or for these alone.

        Raises
        ------
        KeyError
            If there is no such metric or model.
        """
        name = name_of(metric, self.metrics)
        return find_difference(self._differences(like=like), a=a, b=b, metric=name)

    def winner(self, metric: str | Metric, *, like: bool = True) -> str | None:
        """Return the model whose mean is significantly the highest, or None if there is none."""
        name = name_of(metric, self.metrics)
        return winner_of(self._differences(like=like), name, models=len(self.models))

    def places(self, metric: str | Metric, *, like: bool = True) -> dict[str, tuple[int, int]]:
        """Return the first and the last place that each model's mean may have.

        The places of all models are right together with the probability ``level``.
        """
        name = name_of(metric, self.metrics)
        return places_of(self._differences(like=like), self.models, metric=name)

    def _differences(self, *, like: bool) -> tuple[Difference, ...]:
        """Return the differences of means on data sets like these, or on these."""
        check_flag("like", like)
        return self.like if like else self.differences

    def sentences(self) -> tuple[str, ...]:
        """Return one sentence for a paper on each metric, and then the verdict of the gate."""
        verdicts = [self._sentence(metric.name) for metric in self.metrics]
        if self.gated is not None:
            verdicts.append(str(self.gated))
        return tuple(verdicts)

    def _sentence(self, metric: str) -> str:
        """Return who has the highest mean: on data sets like these, only on these, or nobody."""
        certainty = f"{100 * self.level:g} %, corrected for all pairs"
        winner_on_like = self.winner(metric)
        if winner_on_like is not None:
            return f"{winner_on_like} has the highest mean {metric} on {LIKE} ({certainty})."
        these = f"these {len(self.whole)} data sets"
        winner_on_these = self.winner(metric, like=False)
        if winner_on_these is not None:
            return (
                f"{winner_on_these} has the highest mean {metric} on {these} ({certainty}); for "
                f"{LIKE} that cannot be told."
            )
        ranked = [row.model for row in self.standings if row.metric == metric]
        places = self.places(metric, like=False)
        return tied_sentence(ranked, places, of=f"mean {metric} on {these}", sure=certainty)

    def gate(
        self,
        metric: str | Metric,
        *,
        baseline: str,
        margin: float = 0.0,
        each: bool = False,
        fail_if_unknown: bool = False,
    ) -> Gate:
        """Return whether a model is worse than the ``baseline`` on these data sets.

        Parameters
        ----------
        metric
            One of the metrics that were asked for.
        baseline
            The model that the others are compared with.
        margin
            How much worse a model may be, as a share of the baseline's estimate: 0.01 is 1 %.
        each
            False compares the means over these data sets. True compares each data set by itself:
            the gate fails if a model is worse on any of them. Where the baseline or a model is
            missing, the verdict is ``"unknown"``.
        fail_if_unknown
            Whether the gate also fails where the data cannot tell.

        Raises
        ------
        InputError
            If there is no such baseline, or the margin is no share.
        """
        check_flag("each", each)
        check_choice("baseline", baseline, self.models)
        share = as_margin(margin)
        others = [model for model in self.models if model != baseline]
        if each:
            pairs, values, missing = self._pairs_on_each(metric, baseline, others=others)
            return Gate.of(
                pairs,
                values,
                margin=share,
                level=self.level,
                missing=missing,
                fail_if_unknown=fail_if_unknown,
            )
        name = name_of(metric, self.metrics)
        means = {row.model: row.value for row in self.standings if row.metric == name}
        return Gate.of(
            {
                model: self.difference(model, baseline, metric=metric, like=False)
                for model in others
            },
            means[baseline],
            margin=share,
            level=self.level,
            fail_if_unknown=fail_if_unknown,
        )

    def _pairs_on_each(
        self, metric: str | Metric, baseline: str, *, others: Sequence[str]
    ) -> tuple[dict[str, Difference], dict[str, float], list[str]]:
        """Return differences from the baseline on each data set, and the baseline's values there.

        They are named ``model on data set``; the last list names what was not compared.
        """
        pairs: dict[str, Difference] = {}
        values: dict[str, float] = {}
        missing: list[str] = []
        for data_set, comparison in self.comparisons.items():
            for model in others:
                key = f"{model} on {data_set}"
                if model not in comparison.models or baseline not in comparison.models:
                    missing.append(key)
                    continue
                pairs[key] = comparison.difference(model, baseline, metric=metric)
                values[key] = comparison.estimates[baseline][metric].value
        return pairs, values, missing

    @property
    def targets_read(self) -> int | None:
        """Return how many targets were read, over all data sets, models and runs."""
        targets = [comparison.targets_read for comparison in self.comparisons.values()]
        return None if None in targets else sum(filter(None, targets))

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Return the estimate of each model on each data set."""
        return [
            {self.across: data_set, **vars(standing)}
            for data_set, comparison in self.comparisons.items()
            for standing in comparison.standings
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each difference, on these data sets and on data sets like these."""
        on_these = [{"on": THESE, **pair.to_dict()} for pair in self.differences]
        on_like = [{"on": LIKE, **pair.to_dict()} for pair in self.like]
        return on_these + on_like

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, as ``--json`` prints it."""
        return (
            self.header()
            | {
                "across": self.across,
                "models": list(self.models),
                "datasets": list(self.comparisons),
                "whole": list(self.whole),
                "level": self.level,
                "cells": self.cells,
                "means": [dict(vars(row)) for row in self.standings],
                "differences": self.rows(),
                "sentences": list(self.sentences()),
                "warnings": list(self.warnings),
            }
            | ({} if self.gated is None else {"gate": self.gated.to_dict()})
        )


def _models_of(comparisons: Mapping[str, Comparison]) -> tuple[str, ...]:
    """Return all models of several comparisons, in the order in which they come."""
    names = (name for comparison in comparisons.values() for name in comparison.models)
    return tuple(dict.fromkeys(names))


def averaged_over(
    across: str, comparisons: Mapping[str, Comparison], alone: Mapping[str, str]
) -> Across:
    """Return comparisons on several data sets, and means over the data sets with all models.

    Parameters
    ----------
    across
        What data sets are called.
    comparisons
        The comparison on each data set.
    alone
        The only model of each data set on which nothing can be compared.

    Raises
    ------
    InputError
        If fewer than two data sets have all models.
    """
    models = _models_of(comparisons)
    left_out = _left_out(comparisons, models, alone=alone)
    gaps = [f"means leave out {name}: {why} there" for name, why in left_out.items()]
    whole = tuple(name for name in comparisons if name not in left_out)
    if len(whole) < 2:
        message = f"{across} must name at least two data sets with all models, got {len(whole)}"
        if gaps:
            message += f": {'; '.join(gaps)}; give what is missing, or leave out models"
        raise InputError(message)
    first = next(iter(comparisons.values()))
    level = first.level
    means = _means_over([comparisons[name] for name in whole], first.metrics, models=models)
    return Across(
        across=across,
        metrics=first.metrics,
        comparisons=comparisons,
        whole=whole,
        standings=tuple(row for mean in means for row in mean.standings(level)),
        differences=tuple(pair for mean in means for pair in mean.differences(level, like=False)),
        like=tuple(pair for mean in means for pair in mean.differences(level, like=True)),
        level=level,
        notes=(*_notes_of(comparisons), *(Note("left out", text) for text in gaps)),
    )


def _left_out(
    comparisons: Mapping[str, Comparison], models: Sequence[str], *, alone: Mapping[str, str]
) -> dict[str, str]:
    """Return why means leave out a data set, for each that they leave out."""
    reasons = {name: f"there is no model but {model}" for name, model in alone.items()}
    for name, comparison in comparisons.items():
        missing = [model for model in models if model not in comparison.models]
        by_bounds = {row.model for row in comparison.standings if row.source == BOUNDS}
        if missing:
            reasons[name] = f"there is no {listed_briefly(missing)}"
        elif by_bounds:
            reasons[name] = f"{listed_briefly(sorted(by_bounds))} known by bounds alone"
    return reasons


def _notes_of(comparisons: Mapping[str, Comparison]) -> list[Note]:
    """Return the notes of all data sets; an equal note of several names them all."""
    data_sets_of: dict[Note, list[str]] = {}
    for name, comparison in comparisons.items():
        for note in comparison.notes:
            data_sets_of.setdefault(note, []).append(name)
    return [
        Note(note.name, f"{listed_briefly(names)}: {note.text}")
        for note, names in data_sets_of.items()
    ]


def _means_over(
    comparisons: Sequence[Comparison], metrics: Sequence[Metric], *, models: tuple[str, ...]
) -> list[MeansOverDataSets]:
    """Return the means of each metric over data sets whose errors have a part in common."""
    kinds = {kind for comparison in comparisons for kind in _kinds_of(comparison)}
    shares = np.array([IN_COMMON[kind] for kind in kinds or {"all"}])
    of_model, of_difference = shares.max(axis=0).tolist()
    # Number 0 is a data set alone, whose errors have nothing in common with other data sets.
    redrawn = [
        comparison.redrawn(data_set=DataSet(number, common=of_model, own=of_difference))
        for number, comparison in enumerate(comparisons, start=1)
    ]
    means = []
    for metric in metrics:
        joints = [distributions[metric.name] for distributions in redrawn]
        drawn = [joint for joint in joints if isinstance(joint, ModelDraws)]
        means.append(MeansOverDataSets.of(drawn, metric, names=models))
    return means


def _kinds_of(comparison: Comparison) -> set[str]:
    """Return the kinds of curves that the models of a comparison may have."""
    entries = [entry for estimates in comparison.estimates.values() for entry in estimates.entries]
    clouds = [entry.cloud for entry in entries if entry.cloud is not None]
    return {kind for cloud in clouds for kind in cloud.fitted.kinds}


@dataclass(frozen=True, eq=False)
class MeansOverDataSets:
    """The means of one metric over data sets: estimates, and draws around them.

    Two models on two data sets, with nothing uncertain on each of them:

    >>> from unsample.metrics import parse
    >>> values = np.array([[0.30, 0.20], [0.50, 0.20]])
    >>> draws = np.repeat(values[:, None], 1000, axis=1)
    >>> means = MeansOverDataSets(
    ...     parse("NDCG@10"), ("A", "B"), values=values, draws=draws, plain=draws
    ... )
    >>> these = means.difference("A", "B", like=False)          # the mean of 0.10 and 0.30
    >>> round(these.value, 3), [round(end, 3) for end in these.interval(0.5)]
    (0.2, [0.2, 0.2])

    On data sets like these the spread counts, by a t distribution with one degree of freedom:

    >>> like = means.difference("A", "B", like=True)
    >>> round(like.value, 3), [round(end, 1) for end in like.interval(0.5)]
    (0.2, [0.0, 0.4])
    """

    metric: Metric
    names: tuple[str, ...]
    #: The estimates (data sets x models).
    values: FloatArray
    #: Draws for comparisons, in which the error of users counts more (data sets x draws x models).
    draws: FloatArray
    #: Draws for the models' own intervals, in the same shape.
    plain: FloatArray

    @classmethod
    def of(cls, joints: Sequence[ModelDraws], metric: Metric, *, names: tuple[str, ...]) -> Self:
        """Return the means, given the draws of the models on each data set."""
        # Data sets may list their models in different orders.
        columns = [[joint.names.index(name) for name in names] for joint in joints]
        in_order = list(zip(joints, columns, strict=True))
        return cls(
            metric=metric,
            names=names,
            values=np.stack([joint.values[order] for joint, order in in_order]),
            draws=np.stack([joint.draws[:, order] for joint, order in in_order]),
            plain=np.stack([joint.plain[:, order] for joint, order in in_order]),
        )

    @property
    def maximum(self) -> float:
        """Return the largest possible mean."""
        return math.inf if self.metric.family.unlimited else 1.0

    def own(self, name: str, *, like: bool) -> FromDraws:
        """Return the mean of a model, on these data sets or on data sets like these."""
        model = self.names.index(name)
        values = self.values[:, model]
        draws = self._mean(values, self.plain[:, :, model], like=like, caution=False)
        return FromDraws(float(values.mean()), np.sort(draws), minimum=0.0, maximum=self.maximum)

    def difference(self, a: str, b: str, *, like: bool) -> FromDraws:
        """Return the mean of model ``a`` minus the mean of model ``b``."""
        first, second = self.names.index(a), self.names.index(b)
        values = self.values[:, first] - self.values[:, second]
        draws_on_each = self.draws[:, :, first] - self.draws[:, :, second]
        draws = self._mean(values, draws_on_each, like=like, caution=True)
        return FromDraws(
            float(values.mean()), np.sort(draws), minimum=-self.maximum, maximum=self.maximum
        )

    def _mean(
        self, values: FloatArray, draws: FloatArray, *, like: bool, caution: bool
    ) -> FloatArray:
        """Return draws of the mean over data sets of a number with one value on each of them.

        ``values`` has its estimate on each data set, ``draws`` is data sets x draws. On data sets
        like these (``like``) the spread between data sets widens the draws.
        """
        mean = draws.mean(axis=0)
        if not like:
            return np.asarray(mean)
        normals = FixedNumbers(draws=len(mean)).normals(1, stream=_DATA_SETS)[:, 0]
        spread = spread_of(values, draws.T)
        return with_spread(mean, spread, normals=normals, caution=caution)

    def differences(self, level: float, *, like: bool) -> list[Difference]:
        """Return the difference of each two means, and who wins."""
        pairs = [(a, b, self.difference(a, b, like=like)) for a, b in combinations(self.names, 2)]
        return verdicts(self.metric.name, pairs, level=level)

    def standings(self, level: float) -> list[MeanStanding]:
        """Return the models, the highest mean first."""
        difference = partial(self.difference, like=False)
        best = best_of(self.names, self.draws.mean(axis=0), difference=difference)
        # In each draw of each data set the highest of the models has rank 1.
        ranks = 1.0 + np.argsort(np.argsort(-self.draws, axis=2), axis=2).astype(np.float64)
        rows = [
            self._standing(name, level, ranks=ranks[:, :, model], probability=best[name])
            for model, name in enumerate(self.names)
        ]
        return sorted(rows, key=lambda row: -row.value)

    def _standing(
        self, name: str, level: float, *, ranks: FloatArray, probability: float
    ) -> MeanStanding:
        """Return a model's mean and mean rank; ``ranks`` (data sets x draws) are its own."""
        on_these = self.own(name, like=False)
        low, high = on_these.interval(level)
        like_low, like_high = self.own(name, like=True).interval(level)
        mean_rank = self._mean_rank(ranks)
        rank_low, rank_high = mean_rank.interval(level)
        return MeanStanding(
            metric=self.metric.name,
            model=name,
            value=on_these.value,
            low=low,
            high=high,
            like_low=like_low,
            like_high=like_high,
            probability=probability,
            best_on=float((ranks == 1.0).mean(axis=1).sum()),
            place=mean_rank.value,
            place_low=rank_low,
            place_high=rank_high,
        )

    def _mean_rank(self, ranks: FloatArray) -> FromDraws:
        """Return the mean rank (data sets x draws) among the models, on data sets like these."""
        values = ranks.mean(axis=1)
        draws = self._mean(values, ranks, like=True, caution=False)
        last = float(len(self.names))
        return FromDraws(float(values.mean()), np.sort(draws), minimum=1.0, maximum=last)
