"""`compare`: which model is truly better, how certain that is, and when the data cannot decide.

The difference of two models in a sample has two errors. One is chance: other users, other sampled
items. It shrinks with more users, and more so if both models have the same users. The other is what
a sample cannot see: the top ranks of the two models may be distributed differently. The verdict
allows for both. The result also says what follows from chance alone. That is the answer if sampling
has the same bias for both models.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import Seed, as_integer_array, as_rng, check_choice, check_level, suggest
from unsample._gone import refuses_gone
from unsample.answers._chances import Chances
from unsample.answers._comparison import (
    ALL,
    BEST,
    INDEX,
    POSITION,
    USER,
    Comparison,
    listed_briefly,
)
from unsample.answers._duels import CORRECTIONS, Duels
from unsample.answers._estimate import DEFAULT_METHOD, estimate_counts
from unsample.answers._evaluation import Evaluation
from unsample.answers._given import possible_metrics
from unsample.answers._model import Model
from unsample.answers._paired import Pairing
from unsample.answers._prior import SHIPPED
from unsample.answers._published import Published
from unsample.answers._result import DEFAULT_LEVEL, DEFAULT_METRICS, Estimates, find_metric
from unsample.confidence import Shape
from unsample.errors import DesignError, InputError, MetricError
from unsample.estimators import Estimator
from unsample.estimators.prior import Prior
from unsample.evidence import (
    NEGATIVES,
    ItemCounts,
    ModelCounts,
    RankCounts,
    Targets,
    place_halves,
    size_on_grid,
)
from unsample.metrics import Metric
from unsample.tables import is_frame, read_targets

#: More models than this are compared only with the best one, unless all pairs are asked for.
_MOST_MODELS_BY_DEFAULT = 100
#: More models than this have too many pairs to compute, keep or read.
_MOST_MODELS_IN_PAIRS = 1_000


@refuses_gone
def compare(
    models: Any,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    method: str | Estimator = DEFAULT_METHOD,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    by: str | None = None,
    filtered: bool = False,
    negatives: str = "own",
    replacement: bool = True,
    candidates: str | None = None,
    shape: str | Shape | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    kind: str | None = None,
    level: float = DEFAULT_LEVEL,
    correction: str = "holm",
    against: str | None = None,
    paired: bool | None = None,
    rng: Seed = 0,
) -> Comparison:
    """Compare two or more models by their sampled ranks.

    Parameters
    ----------
    models
        A mapping from each model's name to one of these: the ranks of its targets, as in
        `unsample.estimate`; `Targets` or a data frame, which include users; `RankCounts`, which
        cannot be paired (`ModelCounts` of all models can); the result of `unsample.evaluate`
        (``metrics`` are then those of that call; guided results with the same ``rng`` drew the same
        users first); the result of `unsample.published` for the numbers of a paper on the same data
        set. Or one data frame of all models, with ``by``.
    items, sampled, metrics, method, filtered, negatives, replacement
        As in `unsample.estimate`, the same for all models. If the models share the same negatives,
        and it is known which item beats which target, the differences are more precise.
    candidates, shape, prior, kind
        As in `unsample.estimate`, the same for all models.
    users
        The user of each rank: one sequence for all models, or one for each name. Models are paired
        by the users that they have in common, in any order. Without users, ranks with
        an index (a pandas Series) are matched by its labels, and others by their position.
        ``matched`` of the result says which.
    by
        The column with the name of the model, if ``models`` is one data frame.
    level
        The chance that all verdicts on a metric are right, and the level of the intervals.
    correction
        ``"holm"``, ``"bonferroni"`` or ``"none"``, over the pairs of models on one metric.
    against
        Which pairs to compare: ``"all"``; the name of a model chosen in advance, to compare every
        other one with it; or ``"best"``, to compare the highest estimate on each metric with every
        other one (the correction then counts all pairs, because the data chose the best). The
        default is ``"all"`` for up to 100 models, and ``"best"`` for more.
    paired
        Whether to take differences user by user. None: of users that two models have in common.
        True: an error unless all models have the same users.
    rng
        Seed or Generator for the chances of being the best.

    >>> ranks = {"A": [1, 2, 2, 9] * 50, "B": [1, 2, 3, 20] * 50}
    >>> compare(ranks, items=500, sampled=99, metrics="Recall@50").paired
    True
    """
    shared = check_choice("negatives", negatives, NEGATIVES) == "shared"
    given = _Given(items, sampled, users, replacement, filtered, shared, rng)
    if by is not None:
        models = given.read(models, by)
    if not isinstance(models, Mapping) or len(models) < 2:
        got = f"{len(models)}" if isinstance(models, Mapping) else type(models).__name__
        hint = "; name the column of the model with by" if is_frame(models) else ""
        raise InputError(f"models must map at least two names to their ranks, got {got}{hint}")
    level = check_level(level)
    check_choice("correction", correction, CORRECTIONS)
    notes: list[str] = []
    against = _chosen_pairs(against, list(models), notes)
    loaded = [given.model(name, ranks) for name, ranks in models.items()]
    wanted = _wanted(metrics, loaded)
    _check_same_catalogue(loaded)
    _check_same_candidates(loaded, candidates)
    if any(model.labels is None for model in loaded):
        # If one model has no index, an index is of no use: rows are matched by position.
        loaded = [replace(model, labels=None) for model in loaded]
    pairing, unmatched = Pairing(), "they are not to be"
    if paired is not False:
        pairing, unmatched = _paired(loaded, models)
    partly = "" if unmatched or paired is False else _partly(loaded, pairing)
    if paired and (unmatched or partly):
        got = unmatched or partly
        raise InputError(f"paired needs the same users for every model, got {got}")
    estimates: dict[str, Estimates] = {}
    for model in loaded:
        if model.made is not None:
            _check_made(model, model.made, wanted)
            estimates[model.name] = model.made
            notes += model.made.warnings
            continue
        found = estimate_counts(
            model.counts,
            metrics=wanted,
            method=method,
            candidates=candidates,
            shape=shape,
            prior=prior,
            kind="graph" if kind is None and given.filtered else kind,
        )
        alone = model.targets is not None and model.targets.filtered
        estimates[model.name] = replace(found, filtered=alone)
        notes += estimates[model.name].warnings
    if unmatched and paired is None and not all(model.published for model in loaded):
        notes.append(
            f"the models' users do not match one by one ({unmatched}): they are compared unpaired"
        )
    if partly:
        notes.append(f"{partly}: users that only one of two models has are compared unpaired")
    duels = Duels(loaded, estimates, pairing, level, against, Chances.of(estimates, wanted))
    differences, standings = [], []
    for metric in wanted:
        pairs = duels.verdicts(metric, correction)
        differences += pairs
        standings += duels.standings(metric, pairs, as_rng(rng))
    return Comparison(
        wanted,
        estimates,
        tuple(standings),
        tuple(differences),
        "" if unmatched else _matched(loaded),
        level,
        correction,
        tuple(dict.fromkeys(notes)),
        against,
    )


def _chosen_pairs(against: str | None, names: list[str], notes: list[str]) -> str:
    """Return which pairs to compare; add a note if the number of models decides that."""
    count = len(names)
    if against is None:
        if count <= _MOST_MODELS_BY_DEFAULT:
            return ALL
        notes.append(
            f"{count:,} models have {count * (count - 1) // 2:,} pairs: on each metric only the "
            'highest estimate is compared with every other model (against="best")'
        )
        return BEST
    if against in {ALL, BEST} and against in names:
        raise InputError(
            f"against={against!r} must not be the name of a model too, for it has a meaning of its "
            "own; rename the model"
        )
    if against not in (ALL, BEST, *names):
        near = suggest(str(against), (ALL, BEST, *names))
        raise InputError(
            f"against must be 'all', 'best' or the name of a model, got {against!r}"
            + (f"; {near}" if near else "")
        )
    if against == ALL and count > _MOST_MODELS_IN_PAIRS:
        raise InputError(
            f"against must be 'best' or the name of a model for more than {_MOST_MODELS_IN_PAIRS:,}"
            f" models, got 'all' for {count:,}, which have {count * (count - 1) // 2:,} pairs"
        )
    return against


# -- what is given for each model -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Given:
    """The arguments that apply to all models."""

    items: npt.ArrayLike | None
    sampled: npt.ArrayLike | None
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None
    replacement: bool
    filtered: bool
    shared: bool
    rng: Seed

    def model(self, name: str, given: Any) -> Model:
        """Return a `Model` from any form in which it may be given."""
        if isinstance(given, RankCounts):
            return Model(name, given)
        if is_frame(given):
            given = self.read(given)[""]
        if isinstance(given, Targets | Evaluation):
            return Model.of(name, given)
        if isinstance(given, Published):
            return Model(name, given.counts, published=given)
        if isinstance(given, Estimates):
            raise InputError(f"{name} must be ranks or an evaluation, got estimates; give counts")
        if self.items is None or self.sampled is None:
            raise DesignError("items and sampled must be given with ranks, got None")
        users = self.users
        if isinstance(users, Mapping):
            if name not in users:
                raise InputError(f"users must hold the users of every model, got none for {name}")
            users = users[name]
        placed = place_halves(given, self.rng)
        found = Targets(
            as_integer_array(f"ranks of {name}", placed).astype(np.int64),
            self.items,
            self.sampled,
            users,
            self.replacement,
            filtered=self.filtered,
            shared=ItemCounts.without_outcomes(int(np.max(self.sampled))) if self.shared else None,
        )
        # Ranks with an index, such as a pandas Series, are matched by its labels.
        index = getattr(given, "index", None)
        labels = None if index is None or callable(index) else np.asarray(index)
        return Model.of(name, found, labels)

    def read(self, table: Any, by: str | None = None) -> dict[str, Any]:
        """Read the targets of one model, or of all of them, from a table."""
        design: dict[str, Any] = {"items": self.items, "sampled": self.sampled}
        return read_targets(
            table,
            by=by,
            **design,
            replacement=self.replacement,
            filtered=self.filtered,
            negatives="shared" if self.shared else "own",
        )


def comparable(metrics: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Return the metrics if models can be compared by them; refuse mean ranks."""
    wanted = _metrics.parse_all(metrics)
    for metric in wanted:
        if metric.family is _metrics.MR:
            raise MetricError(
                f"metrics must be such that more is better to compare models, got {metric.name}; "
                "use AUC, which says the same where all have as many candidates"
            )
    return wanted


def _wanted(
    metrics: str | Metric | Iterable[str | Metric], models: list[Model]
) -> tuple[Metric, ...]:
    """Return the metrics asked for; of the default ones, those known for every model."""
    if metrics is not DEFAULT_METRICS:
        return comparable(metrics)
    found = list(_metrics.parse_all(metrics))
    if all(model.published is not None for model in models):
        # Compare the metrics that were asked for when the numbers were read.
        found = list(models[0].made.metrics) if models[0].made is not None else found
    for model in models:
        if model.made is None:
            allowed = _metrics.parse_all(possible_metrics(metrics, model.counts))
        else:
            allowed = model.made.metrics
        several = model.counts.several
        found = [each for each in found if find_metric(each, allowed, several=several)]
    return tuple(found) or _metrics.parse_all(metrics)


def _check_made(model: Model, found: Estimates, metrics: tuple[Metric, ...]) -> None:
    """Refuse estimates without the metrics that are needed."""
    missing = [
        metric.name
        for metric in metrics
        if metric.name not in found
        and find_metric(metric, found.metrics, several=found.counts.several) is None
    ]
    if missing:
        how = "evaluate it" if model.published is None else "call published"
        raise InputError(
            f"metrics must be ones that {model.name} was evaluated for ({', '.join(found)}), got "
            f"{', '.join(missing)}; {how} for these too"
        )


def _check_same_catalogue(models: list[Model]) -> None:
    sizes = {model.name: model.counts.largest_catalogue for model in models}
    # Sizes that differ by user are on a grid.
    if len(np.unique(size_on_grid(list(sizes.values())))) > 1:
        listed = listed_briefly([f"{name} {size:,}" for name, size in sizes.items()])
        raise DesignError(
            f"models must be ranked in one catalogue to be compared, got {listed}; metrics@K of "
            "different catalogues mean different things"
        )


def _check_same_candidates(models: list[Model], candidates: str | None) -> None:
    """Refuse numbers of a paper whose candidates differ from those of other models."""
    if not any(model.published for model in models):
        return
    said = {
        model.name: candidates if model.made is None else model.made.candidates for model in models
    }
    if len({each for each in said.values() if each is not None}) > 1:
        listed = listed_briefly([f"{name} {each or 'not stated'}" for name, each in said.items()])
        raise DesignError(
            f"models must have the same candidates to be compared, got {listed}; seen items above "
            "a target lower its metric"
        )


def _paired(loaded: list[Model], given: Any) -> tuple[Pairing, str]:
    """Return which users the models have in common, or why none are known to be."""
    if isinstance(given, ModelCounts):
        apart = "" if given.between else "counts without pairs of targets of one user"
        return Pairing(between=given.between), apart
    unmatched = why_unmatched(loaded)
    return Pairing() if unmatched else Pairing.of_models(loaded), unmatched


def _partly(models: list[Model], pairing: Pairing) -> str:
    """Return which two models share only some of their users, or an empty text if none do."""
    first = models[0]
    for model in models[1:]:
        if pairing.places:
            here, there = pairing.places[first.name], pairing.places[model.name]
            common = len(np.intersect1d(here, there))
        else:
            both = pairing.between.get((first.name, model.name))
            common = 0 if both is None else round(both.users)
        most = max(first.counts.users, model.counts.users)
        if common < most:
            return f"{first.name} and {model.name} have {common:,} of {most:,} users in common"
    return ""


def why_unmatched(models: list[Model]) -> str:
    """Return why users cannot be paired, or an empty text if they can."""
    for model in models:
        if model.published is not None:
            return f"printed numbers of {model.name}, which do not know users"
        if model.targets is None:
            return f"RankCounts for {model.name}, which do not know users"
    reasons = (_why_apart(models[0], model, models) for model in models[1:])
    return next(filter(None, reasons), "")


def _why_apart(first: Model, model: Model, models: list[Model]) -> str:
    """Return why the users of two models cannot be paired, or an empty text if they can."""
    if _matched([model]) != _matched([first]):
        return f"users for only one of {first.name} and {model.name}"
    here, there = first.keys[0], model.keys[0]
    if np.array_equal(here, there):
        apart = _other_targets(first.evaluation, model.evaluation)
        other = f"other targets for {model.name} than for {first.name}, such as {apart}"
        return other if apart else ""
    if _matched(models) == POSITION:
        return f"{len(here):,} targets of {first.name} and {len(there):,} of {model.name}"
    if len(np.intersect1d(here, there)):
        return ""
    kind = "users" if _matched(models) == USER else "labels in the index"
    return f"no {kind} of {first.name} that {model.name} has too, but others such as {there[0]}"


def _other_targets(first: Evaluation | None, second: Evaluation | None) -> str:
    """Return a target that only one of two evaluations has, or an empty text if none."""
    if first is None or second is None:
        return ""
    pairs = [
        set(zip(each.users.tolist(), each.targets.tolist(), strict=True))
        for each in (first, second)
    ]
    user, item = min(pairs[0] ^ pairs[1], default=(0, None))
    return "" if item is None else f"item {item} of user {user}"


def _matched(models: list[Model]) -> str:
    """Return what the targets of the models are matched by."""
    model = models[0]
    if model.targets is None or model.targets.users is not None:
        return USER
    return POSITION if model.labels is None else INDEX
