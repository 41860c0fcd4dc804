"""What each user adds to a model's value, and how far two models vary together.

Two models that were judged by the same users err together, so their difference is known better than
either. Where targets are in memory, each user's part of the mean is kept. Where only counts are
known, pairs of cells of the same user (`ModelCounts.between`) give the same products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.answers._evaluation import Evaluation
from unsample.answers._model import Model
from unsample.evidence import (
    PairCounts,
    RankCounts,
    covariance_of_means,
    deviations_of_mean,
    on_pair_cells,
    pairs_between,
    variance_of_mean,
)
from unsample.metrics import Metric

#: What the users of two models are matched by.
USER, INDEX, POSITION = "user", "index", "position"


@dataclass(frozen=True, eq=False)
class Added:
    """What users add to a mean: by user if targets are in memory, else by cell of the counts."""

    name: str
    users: int
    #: The part of the mean that each user has, about zero; of all users of all models.
    by_user: FloatArray | None = None
    #: The counts as the metric weighs them, and a score for each of their cells.
    counts: RankCounts | None = None
    scores: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def variance(self) -> float:
        """Return the variance of the mean, for newly drawn users."""
        if self.by_user is None:
            assert self.counts is not None
            alone = self.counts.clusters is None
            return variance_of_mean(self.counts, self.scores) * (self.few if alone else 1.0)
        return self.few * float(self.by_user @ self.by_user)

    @property
    def few(self) -> float:
        """Return what makes a variance of few users unbiased."""
        return self.users / max(self.users - 1, 1)


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which users the models have in common, or why none are known to be."""

    #: The place of each model's users among all users, if targets are in memory.
    places: Mapping[str, IntArray] = field(default_factory=dict)
    #: Pairs of cells of the same user, if only counts are known.
    counted: Mapping[tuple[str, str], PairCounts] = field(default_factory=dict)
    #: What users are matched by; empty if they are not.
    matched: str = ""
    #: Why users are not matched, and which two models share only some of them; else empty.
    unmatched: str = "they are not to be"
    partly: str = ""

    @classmethod
    def of_counts(
        cls, models: list[Model], between: Mapping[tuple[str, str], PairCounts]
    ) -> Pairing:
        """Return the users of models whose counts know pairs of targets of one user."""
        if not between:
            return cls(unmatched="no user is known to be that of two models")
        # Two models without any user in common have no pairs.
        first, names = models[0].name, [model.name for model in models[1:]]
        pairs = {n: between.get((first, n)) or between.get((n, first)) for n in names}
        common = {name: round(each.users) if each else 0 for name, each in pairs.items()}
        return cls({}, between, USER, "", _partly(models, common))

    @classmethod
    def of_models(cls, models: list[Model]) -> Pairing:
        """Return the users of models whose targets are in memory; printed numbers have none."""
        models = [model for model in models if not model.published]
        unmatched = _why_unmatched(models)
        if unmatched:
            return cls(unmatched=unmatched)
        keys = [model.keys[0] for model in models]
        if all(np.array_equal(keys[0], each) for each in keys[1:]):
            everyone = keys[0]
        else:
            everyone = np.unique(np.concatenate(keys))
        found = [np.searchsorted(everyone, each) for each in keys]
        places = dict(zip((model.name for model in models), found, strict=True))
        here = np.zeros(len(everyone), dtype=bool)
        here[found[0]] = True
        common = {name: int(here[place].sum()) for name, place in places.items()}
        return cls(places, {}, _matched(models[0]), "", _partly(models, common))

    def __bool__(self) -> bool:
        return bool(self.places or self.counted)

    @property
    def _everyone(self) -> int:
        return 1 + max(int(each.max()) for each in self.places.values())

    def between(self, models: Sequence[Model]) -> Mapping[tuple[str, str], PairCounts]:
        """Return the pairs of targets of one user, of each two models."""
        if self.counted or not self.places:
            names = {model.name for model in models}
            return {pair: each for pair, each in self.counted.items() if {*pair} <= names}
        sides = {}
        for model in models:
            if model.name not in self.places:
                continue
            cells, place = model.cells
            sides[model.name] = self.places[model.name][model.keys[1]], cells[place]
        return pairs_between(sides)

    def of_totals(self, model: Model, totals: FloatArray) -> Added | None:
        """Return what users add, given the sum of each user's own; None if that is not known."""
        if model.name not in self.places:
            return None
        return self._of_users(model, deviations_of_mean(totals, model.user_weights))

    def of_scores(self, model: Model, metric: Metric, scores: FloatArray) -> Added | None:
        """Return what users add, given a score for each cell of the counts; None if unpaired."""
        if not self:
            return None
        counts = model.counts.for_metric(metric)
        if model.name not in self.places:
            return Added(model.name, counts.users, counts=counts, scores=scores)
        cells, place = model.cells
        added = on_pair_cells(counts, scores, cells)[place]
        by_user = np.bincount(model.keys[1], added, minlength=len(model.keys[0]))
        return self._of_users(model, by_user.astype(np.float64))

    def _of_users(self, model: Model, deviations: FloatArray) -> Added:
        by_user = np.zeros(self._everyone)
        by_user[self.places[model.name]] = deviations
        return Added(model.name, len(deviations), by_user)

    def covariance(self, a: Added, b: Added) -> float:
        """Return the covariance of two means; users that only one model has add nothing."""
        few = math.sqrt(a.few * b.few)
        if a.by_user is not None and b.by_user is not None:
            return few * float(a.by_user @ b.by_user)
        if (b.name, a.name) in self.counted:
            a, b = b, a
        both = self.counted.get((a.name, b.name))
        if both is None or a.counts is None or b.counts is None:
            return 0.0
        return few * covariance_of_means((a.counts, a.scores), (b.counts, b.scores), both)

    def correlation(self, a: Added, b: Added) -> float:
        """Return the correlation of two means; 0 where one of them does not vary."""
        product = a.variance * b.variance
        if product <= 0.0:
            return 0.0
        return float(np.clip(self.covariance(a, b) / math.sqrt(product), -1.0, 1.0))


def _partly(models: list[Model], common: Mapping[str, int]) -> str:
    """Return which model shares only some users with the first, or an empty text if none does."""
    first = models[0]
    for model in models[1:]:
        most = max(first.counts.users, model.counts.users)
        if common[model.name] < most:
            shared = f"{common[model.name]:,} of {most:,}"
            return f"{first.name} and {model.name} have {shared} users in common"
    return ""


def _why_unmatched(models: list[Model]) -> str:
    """Return why users cannot be paired, or an empty text if they can."""
    for model in models:
        if model.targets is None:
            return f"RankCounts for {model.name}, which do not know users"
    if len(models) < 2:
        return "there are no two models whose users are known"
    reasons = (_why_apart(models[0], model) for model in models[1:])
    return next(filter(None, reasons), "")


def _why_apart(first: Model, model: Model) -> str:
    """Return why the users of two models cannot be paired, or an empty text if they can."""
    how = _matched(first)
    if _matched(model) != how:
        return f"users for only one of {first.name} and {model.name}"
    here, there = first.keys[0], model.keys[0]
    if np.array_equal(here, there):
        apart = _other_target(first, model)
        other = f"other targets for {model.name} than for {first.name}, such as {apart}"
        return other if apart else ""
    if how == POSITION:
        return f"{len(here):,} targets of {first.name} and {len(there):,} of {model.name}"
    if len(np.intersect1d(here, there)):
        return ""
    kind = "users" if how == USER else "labels in the index"
    return f"no {kind} of {first.name} that {model.name} has too, but others such as {there[0]}"


def _other_target(first: Model, second: Model) -> str:
    """Return a target that only one of two evaluations has, or an empty text if none."""
    pairs = [
        set(zip(model.made.users.tolist(), model.made.targets.tolist(), strict=True))
        for model in (first, second)
        if isinstance(model.made, Evaluation)
    ]
    user, item = min(pairs[0] ^ pairs[1], default=(0, None)) if len(pairs) == 2 else (0, None)
    return "" if item is None else f"item {item} of user {user}"


def _matched(model: Model) -> str:
    """Return what the targets of a model are matched by."""
    if model.targets is None or model.targets.users is not None:
        return USER
    return POSITION if model.labels is None else INDEX
