"""`Across`: models compared on several data sets, by the mean of a metric over them.

The mean on *these data sets* errs as each data set does, and more: what the prior leaves open of a
model is partly the same everywhere. On *data sets like these* the spread between data sets counts
too, as that of runs does: with as many degrees of freedom as there are data sets, less one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from unsample._checks import FloatArray
from unsample.answers._comparison import Comparison, listed_briefly, name_of
from unsample.answers._notes import Note
from unsample.answers._result import Result
from unsample.answers._spread import TSpread
from unsample.answers._verdicts import Difference, find_difference, verdicts, winner_of
from unsample.errors import InputError
from unsample.metrics import Metric
from unsample.prior import (
    BOUNDS,
    CAUTION,
    DRAWS,
    best_of,
    cautious,
    runs_apart,
    symmetric_root,
    t_law,
    with_runs,
)

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
    """One model's mean over data sets, its places, and its chances of being the best."""

    metric: str
    model: str
    value: float
    low: float
    high: float
    #: The ends for data sets like these.
    like_low: float
    like_high: float
    #: The chance of the highest mean on these data sets.
    chance: float
    #: On how many of the data sets the model is the best, to be expected.
    best_on: float
    #: The mean place among the models, and its interval for data sets like these.
    place: float
    place_low: float
    place_high: float


@dataclass(frozen=True, eq=False, repr=False)
class Across(Result):
    """Models compared on several data sets: each by itself, and by the mean over all of them."""

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

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models in the order in which they come."""
        names = (name for each in self.comparisons.values() for name in each.models)
        return tuple(dict.fromkeys(names))

    def difference(self, a: str, b: str, metric: str | Metric, *, like: bool = True) -> Difference:
        """Return the difference of two means, on data sets like these or on these."""
        name = name_of(metric, self.metrics)
        return find_difference(self.like if like else self.differences, a, b, name)

    def winner(self, metric: str | Metric, *, like: bool = True) -> str | None:
        """Return the model whose mean is surely the highest, or None."""
        name = name_of(metric, self.metrics)
        return winner_of(self.like if like else self.differences, name, len(self.models))

    def sentences(self) -> tuple[str, ...]:
        """Return the verdict on each metric as a sentence for a paper."""
        return tuple(self._sentence(metric.name) for metric in self.metrics)

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
        return f"No model has surely the highest mean {metric} on these {count} data sets ({sure})."

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
        }


def averaged_over(
    across: str, comparisons: Mapping[str, Comparison], alone: Mapping[str, str]
) -> Across:
    """Return comparisons on several data sets, with means over those where all models have laws.

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
    laws = [AcrossLaw.of([comparisons[name] for name in whole], m, models) for m in first.metrics]
    return Across(
        across,
        first.metrics,
        comparisons,
        whole,
        tuple(row for law in laws for row in law.standings(first.level)),
        tuple(pair for law in laws for pair in law.differences(first.level, like=False)),
        tuple(pair for law in laws for pair in law.differences(first.level, like=True)),
        first.level,
        tuple(notes),
    )


@dataclass(frozen=True, eq=False)
class AcrossLaw:
    """The joint law of the models' means of one metric: moments by data set.

    ``values`` (data sets x models), and the variances that come from the prior and from users (data
    sets x models x models). ``shares`` are those that errors have in common over data sets.
    """

    metric: Metric
    names: tuple[str, ...]
    values: FloatArray
    prior: FloatArray
    users: FloatArray
    shares: tuple[float, float]

    @classmethod
    def of(
        cls, comparisons: Sequence[Comparison], metric: Metric, names: tuple[str, ...]
    ) -> AcrossLaw:
        """Return the law of means over data sets, on each of which all models have a law."""
        moments, kinds = [], set[str]()
        for each in comparisons:
            law = each.laws[metric.name]
            assert law is not None
            at = [law.names.index(name) for name in names]
            values, prior, users = law.moments()
            moments.append((values[at], prior[np.ix_(at, at)], users[np.ix_(at, at)]))
            held = (estimates[metric].posterior for estimates in each.estimates.values())
            kinds |= {kind for posterior in held if posterior for kind in posterior.kinds}
        values, prior, users = (np.stack(part) for part in zip(*moments, strict=True))
        single, pair = np.max([IN_COMMON[kind] for kind in kinds or {"all"}], axis=0).tolist()
        return cls(metric, names, values, prior, users, (single, pair))

    def mean(self, name: str, other: str | None = None, *, like: bool) -> TSpread:
        """Return the law of a model's mean, less another's if that is named."""
        count, two = len(self.values), other is not None
        signs = np.array([(each == name) - float(each == other) for each in self.names])
        share, values = self.shares[two], self.values @ signs
        prior, users = (
            np.maximum(np.einsum("i,dij,j->d", signs, each, signs), 0.0)
            for each in (self.prior, self.users)
        )
        roots = np.sqrt(prior)
        together = share * np.outer(roots, roots) + np.diag((1.0 - share) * prior)
        chance = (CAUTION if two else 1.0) * users.sum() / count**2
        # What `t_law` takes is the squared scale of a t law with five degrees of freedom.
        scale, freedom = t_law(0.6 * together.sum() / count**2, chance)
        parts = [runs_apart(values, together + np.diag(users))] if like else []
        parts = [cautious(*part) for part in parts] if two else parts
        return TSpread(float(values.mean()), *with_runs(float(scale), float(freedom), parts))

    def differences(self, level: float, *, like: bool) -> list[Difference]:
        """Return the difference of each two means, and who wins."""
        pairs = [(a, b, self.mean(a, b, like=like)) for a, b in combinations(self.names, 2)]
        return verdicts(self.metric.name, pairs, level)

    def standings(self, level: float) -> list[MeanStanding]:
        """Return the models, the highest mean first."""
        drawn = self._drawn()
        chances = best_of(
            self.names, drawn.mean(axis=0), lambda a, b: self.mean(a, b, like=False).chance
        )
        places = 1.0 + np.argsort(np.argsort(-drawn, axis=2), axis=2).astype(np.float64)
        most = math.inf if self.metric.family.unlimited else 1.0
        rows = []
        for at, name in enumerate(self.names):
            here, like = (self.mean(name, like=like) for like in (False, True))
            ends = (np.clip(law.interval(level), 0.0, most).tolist() for law in (here, like))
            (low, high), (like_low, like_high) = ends
            best_on = float((places[:, :, at] == 1.0).mean(axis=1).sum())
            place = _mean_place(places[:, :, at], len(self.names))
            head = (self.metric.name, name, here.value, low, high, like_low, like_high)
            tail = (chances[name], best_on, place.value, *place.interval(level))
            rows.append(MeanStanding(*head, *tail))
        return sorted(rows, key=lambda row: -row.value)

    def _drawn(self) -> FloatArray:
        """Return values that may be (data sets x draws x models)."""
        rng, shape = np.random.default_rng(33), (DRAWS, len(self.names))
        share, common = self.shares[1], rng.standard_normal(shape)
        found = []
        for values, prior, users in zip(self.values, self.prior, self.users, strict=True):
            own, chance = rng.standard_normal((2, *shape))
            parts = math.sqrt(share) * common + math.sqrt(1.0 - share) * own
            error = parts @ symmetric_root(prior) + chance @ symmetric_root(CAUTION * users)
            found.append(values + error)
        return np.stack(found)


def _mean_place(places: FloatArray, last: int) -> TSpread:
    """Return the law of the mean of places (data sets x draws) on data sets like these."""
    part = runs_apart(places.mean(axis=1), np.diag(places.var(axis=1)))
    error, freedom = with_runs(float(places.mean(axis=0).std()), 1e4, [part])
    return TSpread(float(places.mean()), error, freedom, 1.0, float(last))
