"""`Across`: models compared on several data sets, by the mean of a metric over them.

The mean on *these data sets* errs as each data set does, and more: what the prior leaves open of a
model is partly the same everywhere. On *data sets like these* the spread between data sets counts
too, as that of runs does: with as many degrees of freedom as there are data sets, less one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from unsample._checks import FloatArray, check_choice, check_flag
from unsample.errors import InputError
from unsample.metrics import Metric
from unsample.posterior import DataSet, FixedNumbers
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

#: Numbers of the spread of data sets, beside those of the posterior.
_DATA_SETS = 5
#: The share of the prior's variance that errors have in common over data sets, by kind: those of
#: a model, and of the difference of two (``benchmarks/calibration.py``; families and kinds of
#: models left out). Too few families are graphs: theirs is the largest of the others.
IN_COMMON = {
    "unseen": (0.10, 0.31),
    "all": (0.34, 0.51),
    "repeats": (0.19, 0.13),
    "graph": (0.34, 0.51),
}
#: Which data sets a mean is meant for.
THESE, LIKE = "these data sets", "data sets like these"


@dataclass(frozen=True)
class MeanStanding:
    """One model's mean over data sets, its places, and its probabilities of being the best."""

    metric: str
    model: str
    value: float
    low: float
    high: float
    #: The ends for data sets like these.
    like_low: float
    like_high: float
    #: The probability of the highest mean on these data sets.
    probability: float
    #: On how many of the data sets the model is the best, to be expected.
    best_on: float
    #: The mean place among the models, and its interval for data sets like these.
    place: float
    place_low: float
    place_high: float


@dataclass(frozen=True, eq=False, repr=False)
class Across(Result):
    """Models compared on several data sets: each by itself, and by the mean over all of them."""

    shown_by: ClassVar[str] = "unsample.questions.compare.view:view_of_means"

    #: What data sets are called, such as the column that names them.
    across: str
    metrics: tuple[Metric, ...]
    comparisons: Mapping[str, Comparison]
    #: The data sets that means are over: where every model is, and none by its bounds alone.
    whole: tuple[str, ...]
    standings: tuple[MeanStanding, ...]
    #: Differences of means on these data sets, and on data sets like these.
    differences: tuple[Difference, ...]
    like: tuple[Difference, ...]
    level: float
    notes: tuple[Note, ...] = ()
    #: Whether models passed, if that was asked for (``--fail-if-worse``).
    gated: Gate | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models in the order in which they come."""
        names = (name for each in self.comparisons.values() for name in each.models)
        return tuple(dict.fromkeys(names))

    def difference(self, a: str, b: str, metric: str | Metric, *, like: bool = True) -> Difference:
        """Return the difference of two means, on data sets like these or on these."""
        check_flag("like", like)
        name = name_of(metric, self.metrics)
        return find_difference(self.like if like else self.differences, a, b, metric=name)

    def winner(self, metric: str | Metric, *, like: bool = True) -> str | None:
        """Return the model whose mean is surely the highest, or None."""
        check_flag("like", like)
        name = name_of(metric, self.metrics)
        pairs = self.like if like else self.differences
        return winner_of(pairs, name, models=len(self.models))

    def places(self, metric: str | Metric, *, like: bool = True) -> dict[str, tuple[int, int]]:
        """Return the first and the last place that each model's mean may have, all together."""
        check_flag("like", like)
        pairs = self.like if like else self.differences
        return places_of(pairs, self.models, metric=name_of(metric, self.metrics))

    def sentences(self) -> tuple[str, ...]:
        """Return the verdict on each metric as a sentence for a paper, and the gate's."""
        gated = () if self.gated is None else (str(self.gated),)
        return *(self._sentence(metric.name) for metric in self.metrics), *gated

    def _sentence(self, metric: str) -> str:
        here, like = self.winner(metric, like=False), self.winner(metric)
        count, sure = len(self.whole), f"{100 * self.level:g} %, corrected for all pairs"
        if like is not None:
            return f"{like} has the highest mean {metric} on {LIKE} ({sure})."
        if here is not None:
            return (
                f"{here} has the highest mean {metric} on these {count} data sets ({sure}); for "
                f"{LIKE} that cannot be told."
            )
        ranked = [row.model for row in self.standings if row.metric == metric]
        places = self.places(metric, like=False)
        return tied_sentence(
            ranked, places, of=f"mean {metric} on these {count} data sets", sure=sure
        )

    def gate(
        self,
        metric: str | Metric,
        *,
        baseline: str,
        margin: float = 0.0,
        each: bool = False,
        fail_if_unknown: bool = False,
    ) -> Gate:
        """Return whether a model's mean on these data sets is worse than the ``baseline``'s.

        With ``each``, it fails where a model is worse on any one of the data sets. Where the
        baseline or a model is missing there, that is unknown.
        """
        check_flag("each", each)
        check_choice("baseline", baseline, self.models)
        share = as_margin(margin)
        others = [model for model in self.models if model != baseline]
        if not each:
            name = name_of(metric, self.metrics)
            of_metric = (row for row in self.standings if row.metric == name)
            value = next(row.value for row in of_metric if row.model == baseline)
            pairs = {
                model: self.difference(model, baseline, metric, like=False) for model in others
            }
            return Gate.of(
                pairs, value, margin=share, level=self.level, fail_if_unknown=fail_if_unknown
            )
        pairs, values, missing = {}, {}, []
        for data_set, comparison in self.comparisons.items():
            for model in others:
                key = f"{model} on {data_set}"
                if not {model, baseline} <= {*comparison.models}:
                    missing.append(key)
                    continue
                pairs[key] = comparison.difference(model, baseline, metric)
                values[key] = comparison.estimates[baseline][metric].value
        return Gate.of(
            pairs,
            values,
            margin=share,
            level=self.level,
            missing=missing,
            fail_if_unknown=fail_if_unknown,
        )

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Return the estimate of each model on each data set."""
        found = [(name, row) for name, each in self.comparisons.items() for row in each.standings]
        return [{self.across: name, **vars(row)} for name, row in found]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each difference, on these data sets and on data sets like these."""
        both = ((THESE, self.differences), (LIKE, self.like))
        return [{"on": name, **pair.to_dict()} for name, pairs in both for pair in pairs]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
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
        } | ({} if self.gated is None else {"gate": self.gated.to_dict()})


def averaged_over(
    across: str, comparisons: Mapping[str, Comparison], alone: Mapping[str, str]
) -> Across:
    """Return comparisons on several data sets, and means over those that know all models.

    ``alone`` names the only model of data sets on which nothing can be compared.
    """
    models = tuple(dict.fromkeys(name for each in comparisons.values() for name in each.models))
    said: dict[Note, list[str]] = {}
    left_out = {name: f"there is no model but {model}" for name, model in alone.items()}
    for name, each in comparisons.items():
        for note in each.notes:
            said.setdefault(note, []).append(name)
        missing = [model for model in models if model not in each.models]
        bounds = sorted({row.model for row in each.standings if row.source == BOUNDS})
        if missing:
            left_out[name] = f"there is no {listed_briefly(missing)}"
        elif bounds:
            left_out[name] = f"{listed_briefly(bounds)} known by bounds alone"
    notes = [Note(note.name, f"{listed_briefly(on)}: {note.text}") for note, on in said.items()]
    gaps = [f"means leave out {name}: {why} there" for name, why in left_out.items()]
    notes += [Note("left out", text) for text in gaps]
    whole = tuple(name for name in comparisons if name not in left_out)
    if len(whole) < 2:
        raise InputError(
            f"{across} must name at least two data sets with all models, got {len(whole)}"
            + (f": {'; '.join(gaps)}; give what is missing, or leave out models" if gaps else "")
        )
    first = next(iter(comparisons.values()))
    means = _means_over([comparisons[name] for name in whole], first.metrics, models)
    level = first.level
    return Across(
        across=across,
        metrics=first.metrics,
        comparisons=comparisons,
        whole=whole,
        standings=tuple(row for each in means for row in each.standings(level)),
        differences=tuple(pair for each in means for pair in each.differences(level, like=False)),
        like=tuple(pair for each in means for pair in each.differences(level, like=True)),
        level=level,
        notes=tuple(notes),
    )


def _means_over(
    comparisons: Sequence[Comparison], metrics: Sequence[Metric], names: tuple[str, ...]
) -> list[MeansOverDataSets]:
    """Return the means of each metric; what is a model's own errs alike on all data sets."""
    kinds = {kind for each in comparisons for kind in _kinds_of(each)}
    of_one, of_two = np.max([IN_COMMON[kind] for kind in kinds or {"all"}], axis=0).tolist()
    drawn = [
        each.redrawn(data_set=DataSet(number + 1, common=of_one, own=of_two))
        for number, each in enumerate(comparisons)
    ]
    found = []
    for metric in metrics:
        joints = [joint[metric.name] for joint in drawn]
        known = [joint for joint in joints if isinstance(joint, ModelDraws)]
        found.append(MeansOverDataSets.of(known, metric, names))
    return found


def _kinds_of(comparison: Comparison) -> set[str]:
    """Return the kinds of curves that the models of a comparison may have."""
    entries = (entry for each in comparison.estimates.values() for entry in each.entries)
    clouds = (entry.cloud for entry in entries if entry.cloud is not None)
    return {kind for cloud in clouds for kind in cloud.fitted.kinds}


@dataclass(frozen=True, eq=False)
class MeansOverDataSets:
    """What the means of one metric over data sets may be.

    ``values`` (data sets x models) are the estimates. ``draws`` and ``plain`` (data sets x draws x
    models) are those of comparisons, in which users count more, and of the models' own intervals.
    """

    metric: Metric
    names: tuple[str, ...]
    values: FloatArray
    draws: FloatArray
    plain: FloatArray

    @classmethod
    def of(cls, joints: Sequence[ModelDraws], metric: Metric, names: tuple[str, ...]) -> Self:
        """Return the means, given the draws of the models on each data set."""
        columns = [[joint.names.index(name) for name in names] for joint in joints]
        pairs = list(zip(joints, columns, strict=True))
        return cls(
            metric=metric,
            names=names,
            values=np.stack([joint.values[at] for joint, at in pairs]),
            draws=np.stack([joint.draws[:, at] for joint, at in pairs]),
            plain=np.stack([joint.plain[:, at] for joint, at in pairs]),
        )

    @property
    def maximum(self) -> float:
        """Return the largest possible mean."""
        return math.inf if self.metric.family.unlimited else 1.0

    def own(self, name: str, *, like: bool) -> FromDraws:
        """Return the mean of a model, on these data sets or on data sets like these."""
        at = self.names.index(name)
        draws = self._mean(self.values[:, at], self.plain[:, :, at], like=like, caution=False)
        value = float(self.values[:, at].mean())
        return FromDraws(value, np.sort(draws), 0.0, self.maximum)

    def difference(self, a: str, b: str, *, like: bool) -> FromDraws:
        """Return the mean of a model less that of another."""
        i, j = self.names.index(a), self.names.index(b)
        values = self.values[:, i] - self.values[:, j]
        apart = self.draws[:, :, i] - self.draws[:, :, j]
        draws = self._mean(values, apart, like=like, caution=True)
        return FromDraws(float(values.mean()), np.sort(draws), -self.maximum, self.maximum)

    def _mean(
        self, values: FloatArray, draws: FloatArray, *, like: bool, caution: bool
    ) -> FloatArray:
        """Return draws of the mean over data sets; on others like these their spread counts too."""
        mean = draws.mean(axis=0)
        if not like:
            return np.asarray(mean)
        normals = FixedNumbers(draws=len(mean)).normals(1, stream=_DATA_SETS)[:, 0]
        return with_spread(mean, spread_of(values, draws.T), normals, caution=caution)

    def differences(self, level: float, *, like: bool) -> list[Difference]:
        """Return the difference of each two means, and who wins."""
        pairs = [(a, b, self.difference(a, b, like=like)) for a, b in combinations(self.names, 2)]
        return verdicts(self.metric.name, pairs, level=level)

    def standings(self, level: float) -> list[MeanStanding]:
        """Return the models, the highest mean first."""
        difference = partial(self.difference, like=False)
        best = best_of(self.names, self.draws.mean(axis=0), difference)
        ranks = 1.0 + np.argsort(np.argsort(-self.draws, axis=2), axis=2).astype(np.float64)
        rows = []
        for at, name in enumerate(self.names):
            here, like = (self.own(name, like=each) for each in (False, True))
            low, high = here.interval(level)
            like_low, like_high = like.interval(level)
            rank = self._mean_rank(ranks[:, :, at])
            rank_low, rank_high = rank.interval(level)
            row = MeanStanding(
                metric=self.metric.name,
                model=name,
                value=here.value,
                low=low,
                high=high,
                like_low=like_low,
                like_high=like_high,
                probability=best[name],
                best_on=float((ranks[:, :, at] == 1.0).mean(axis=1).sum()),
                place=rank.value,
                place_low=rank_low,
                place_high=rank_high,
            )
            rows.append(row)
        return sorted(rows, key=lambda row: -row.value)

    def _mean_rank(self, ranks: FloatArray) -> FromDraws:
        """Return the mean rank (data sets x draws) among the models, on data sets like these."""
        values = ranks.mean(axis=1)
        draws = self._mean(values, ranks, like=True, caution=False)
        return FromDraws(float(values.mean()), np.sort(draws), 1.0, float(len(self.names)))
