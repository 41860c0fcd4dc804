"""`compare`: which model is truly better, how certain that is, and when the data cannot decide.

The difference of two models in a sample has two errors. One is chance: other users, other sampled
items. It shrinks with more users, and more so if both models have the same users. The other is what
a sample cannot see: the top ranks of the two models may be distributed differently. One law, the
joint posterior of all models, has both, and every number here follows from it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._gone import refuses_gone
from unsample.answers._across import Across, averaged_over
from unsample.answers._comparison import Comparison, Standing, listed_briefly
from unsample.answers._estimate import estimate_counts
from unsample.answers._estimates import Estimates
from unsample.answers._given import (
    MODEL,
    USUAL,
    Given,
    library_of,
    named_by_stem,
    possible_metrics,
)
from unsample.answers._laws import DifferenceLaw, Laws
from unsample.answers._model import Model
from unsample.answers._notes import Note, warn_of
from unsample.answers._paired import Pairing
from unsample.answers._prior import SHIPPED, as_prior
from unsample.answers._result import DEFAULT_LEVEL, DEFAULT_METRICS, find_metric
from unsample.answers._runs import Runs, on_runs, split_runs
from unsample.answers._verdicts import Difference, two_sided, verdicts
from unsample.errors import DesignError, InputError, MetricError, UnsampleError
from unsample.evidence import ModelCounts, size_on_grid
from unsample.metrics import Metric
from unsample.prior import Prior
from unsample.tables import Read, is_table

#: More models than this have too many pairs to compute, keep or read.
_MOST_MODELS = 100


@overload
def compare(models: Any, *, across: None = None, **options: Any) -> Comparison: ...
@overload
def compare(models: Any, *, across: str, **options: Any) -> Across: ...
@refuses_gone  # type: ignore[misc]  # the options are those of the definition
def compare(
    models: Any,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    replacement: bool = True,
    negatives: str = "own",
    candidates: str | None = None,
    kind: str | None = None,
    metrics: str | Metric | Iterable[str | Metric] = DEFAULT_METRICS,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    by: str | None = None,
    read: Read = USUAL,
    level: float = DEFAULT_LEVEL,
    across: str | None = None,
) -> Comparison | Across:
    """Compare two or more models by their sampled ranks.

    Parameters
    ----------
    models
        A mapping from each model's name to its ranks in any form that `unsample.estimate` takes; to
        the result of `unsample.evaluate` (``metrics`` are then those of that call; guided results
        with the same ``rng`` drew the same users first); or to that of `unsample.published`, for
        the numbers of a paper on the same data set. `RankCounts` cannot be paired, `ModelCounts` of
        all models can. Or one table of all models, with a column that names them; or a list of
        files, which are then named by their names without endings. A list of any of these for a
        name, files too, or a column ``run``, holds several runs of a model (training seeds). Which
        *model* is better is then the question, and the spread of the runs is a part of every error.
    items, sampled, replacement, negatives, candidates, kind, metrics, prior, read
        As in `unsample.estimate`, the same for all models. If the models share the same negatives,
        and it is known which item beats which target, the differences are more precise.
    users
        The user of each rank: one sequence for all models, or one for each name. Models are paired
        by the users that they have in common, in any order. Without users, ranks with
        an index (a pandas Series) are matched by its labels, and others by their position.
        ``matched`` of the result says which.
    by
        The column that names the model, if there is one table; by default ``"model"``.
    level
        The chance that all verdicts on a metric are right (Holm's correction for the pairs), and
        the level of the intervals. All pairs are compared; of more than 100 models, the highest
        estimate of each metric with every other model.
    across
        The column that names the data set of each row, in a table; or what to call the names of a
        dict that holds, for each data set, what else would be ``models``. Each data set is compared
        by itself, and models by their means over data sets. Catalogues, designs and users may
        differ. The result is an `Across`.

    >>> users = range(300)
    >>> ranks = {"A": [1 + u**3 // 300_000 for u in users], "B": [1 + u**2 // 1_000 for u in users]}
    >>> compare(ranks, items=3706, sampled=99, metrics="Recall@50").winner("Recall@50")
    'A'
    """
    two_sided(level)
    given = Given(items, sampled, users, replacement, negatives, kind, read)
    how = _How(metrics, candidates, kind, as_prior(prior), by, level)
    library = library_of(models)
    if across is None:
        several = split_runs(_named(models, by, given, least=2), given)
        result: Comparison | Across = replace(_compared(several, how)[0], library=library)
    else:
        result = replace(_compared_on_each(models, across, given, how), library=library)
    warn_of(result.notes, stacklevel=3)
    return result


class _How(NamedTuple):
    """How models are compared, on every data set."""

    metrics: str | Metric | Iterable[str | Metric]
    candidates: str | None
    kind: str | None
    prior: Prior | None
    by: str | None
    level: float


def _compared_on_each(models: Any, across: str, given: Given, how: _How) -> Across:
    """Return the comparison on each data set, and by the means over them."""
    if not isinstance(across, str):
        raise InputError(f"across must be the name of a column, got {across!r}")
    held = given.sources(models) or given.data_sets(models, across, how.by or MODEL)
    found: dict[str, tuple[Comparison, Laws]] = {}
    alone: dict[str, str] = {}
    for name, each in held.items():
        try:
            several = split_runs(_named(each, how.by, given, least=1), given)
            if len(several[1]) == 1:
                alone[name] = next(iter(several[1]))
            else:
                found[name] = _compared(several, how)
        except UnsampleError as problem:
            problem.args = (f"{name}: {problem}",)
            raise
    return averaged_over(across, found, alone)


def _compared(models: tuple[Mapping[str, Any], Runs, Given], how: _How) -> tuple[Comparison, Laws]:
    """Return the comparison on one data set, and the laws behind it."""
    several, runs, given = models
    if len(runs) < 2:
        raise InputError(f"models must be at least two, got {len(several)} runs of one")
    loaded, pairing = _loaded(several, given)
    wanted = _wanted(how.metrics, loaded)
    _check_same_catalogue(loaded)
    _check_same_candidates(loaded, how.candidates)
    estimates = {model.name: _estimated(model, wanted, given, how) for model in loaded}
    notes = [*on_runs(runs), *(note for found in estimates.values() for note in found.notes)]
    if sum(not model.published for model in loaded) > 1:
        notes += _on_pairing(pairing)
    laws = Laws(loaded, estimates, pairing, runs)
    differences, standings = list[Difference](), list[Standing]()
    for metric in wanted:
        pairs, family = _pairs(laws, metric, notes)
        differences += verdicts(metric.name, pairs, how.level, family)
        standings += _standings(laws, metric, how.level)
    result = Comparison(
        wanted,
        laws.averages,
        tuple(standings),
        tuple(differences),
        pairing.matched,
        how.level,
        tuple(dict.fromkeys(notes)),
        runs={name: len(each) for name, each in runs.items()},
    )
    return result, laws


def _estimated(model: Model, metrics: tuple[Metric, ...], given: Given, how: _How) -> Estimates:
    """Return the estimates of one model, or of one run."""
    if model.made is not None:
        _check_made(model, model.made, metrics)
        return model.made
    found = estimate_counts(
        model.counts, metrics=metrics, candidates=how.candidates, prior=how.prior, kind=how.kind
    )
    filtered = given.filtered or (model.targets is not None and model.targets.filtered)
    return replace(found, filtered=filtered)


def _pairs(
    laws: Laws, metric: Metric, notes: list[Note]
) -> tuple[list[tuple[str, str, DifferenceLaw]], int]:
    """Return the pairs to compare, with their laws, and how many might have been compared."""
    names = list(laws.runs)
    pairs, family = list(itertools.combinations(names, 2)), len(names) * (len(names) - 1) // 2
    if len(names) > _MOST_MODELS:
        best = max(names, key=lambda name: laws.averages[name][metric].value)
        pairs = [(best, name) for name in names if name != best]
        text = (
            f"{len(names):,} models have {family:,} pairs: on each metric only the highest "
            "estimate is compared with every other model"
        )
        notes.append(Note("many models", text))
    return [(a, b, laws.difference(metric, a, b)) for a, b in pairs], family


def _standings(laws: Laws, metric: Metric, level: float) -> list[Standing]:
    """Return the models, highest estimate first."""
    best = laws.best(metric)
    entries = {name: held[metric] for name, held in laws.averages.items()}
    rows = [
        Standing(
            metric.name, name, entry.value, *entry.interval(level), best.get(name), entry.source
        )
        for name, entry in entries.items()
    ]
    return sorted(rows, key=lambda row: -row.value)


def _named(models: Any, by: str | None, given: Given, *, least: int) -> Mapping[str, Any]:
    """Return what is given for each model; of a table, the counts of all models."""
    several: Mapping[str, Any] | None = given.sources(models)
    if by is None and isinstance(models, list | tuple) and len(models) > 1 and is_table(models):
        several = named_by_stem(models)
    if several is None and is_table(models):
        several = given.models(models, by or MODEL)
    if several is None or len(several) < least:
        got = type(models).__name__ if several is None else f"{len(several)}"
        raise InputError(
            f"models must be at least two: a dict of names and their ranks, a table with a column "
            f"that names them, or their files; got {got}"
        )
    return models if isinstance(models, ModelCounts) else several


def _loaded(models: Mapping[str, Any], given: Given) -> tuple[list[Model], Pairing]:
    """Return the models, and who is paired with whom."""
    if not isinstance(models, ModelCounts):
        models = given.files(models) or models
    loaded = [Model.of(name, source, given) for name, source in models.items()]
    if any(model.labels is None for model in loaded if not model.published):
        # If one model has no index, an index is of no use: rows are matched by position.
        loaded = [replace(model, labels=None) for model in loaded]
    if isinstance(models, ModelCounts):
        return loaded, Pairing.of_counts(loaded, models.between)
    return loaded, Pairing.of_models(loaded)


def _on_pairing(pairing: Pairing) -> list[Note]:
    """Return a note if not all users of all models are paired."""
    if pairing.unmatched:
        text = (
            f"the models' users do not match one by one ({pairing.unmatched}): they are compared "
            "unpaired"
        )
        return [Note("unpaired", text)]
    if pairing.partly:
        text = f"{pairing.partly}: users that only one of two models has are compared unpaired"
        return [Note("partly paired", text)]
    return []


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
    if all(model.published for model in models):
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
        how = "call published" if model.published else "evaluate it"
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
