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
from unsample.answers._estimates import Estimate, Estimates
from unsample.answers._given import (
    USUAL,
    Given,
    named_by_stem,
    possible_metrics,
)
from unsample.answers._laws import JointLaw, difference_of, joint_law
from unsample.answers._models import Models
from unsample.answers._notes import Note, warn_of
from unsample.answers._prior import SHIPPED, as_prior
from unsample.answers._published import Published
from unsample.answers._result import DEFAULT_LEVEL, DEFAULT_METRICS, find_metric
from unsample.answers._runs import Runs, law_of_models, mean_of_runs, on_runs, split_runs
from unsample.answers._verdicts import Difference, two_sided, verdicts
from unsample.errors import DesignError, InputError, MetricError, UnsampleError
from unsample.evidence import ModelCounts, size_on_grid
from unsample.metrics import Metric
from unsample.prior import Prior
from unsample.tables import MODEL, Read, is_table

#: More models than this have too many pairs to compute or to read.
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
        A mapping from each model's name to its ranks in any form that `unsample.estimate` takes.
        Or, for all of them, to the result of `unsample.evaluate` (guided results with the same
        ``rng`` drew the same users first) or of `unsample.published`; ``metrics`` are then those of
        that call. `RankCounts` cannot be paired, `ModelCounts` of all models can. Or one table of
        all models, with a column that names them; or a list of files, which are then named by
        their names without endings. A list of any of these for a name, files too, or a column
        ``run``, holds several runs of a model (training seeds). Which *model* is better is then the
        question, and the spread of the runs is a part of every error. At most 100 models.
    items, sampled, replacement, negatives, candidates, kind, metrics, prior, read
        As in `unsample.estimate`, the same for all models. If the models share the same negatives,
        and it is known which item beats which target, the differences are more precise.
    users
        The user of each rank: one sequence for all models, or one for each name. Models are paired
        by the users that they have in common, in any order; without users, by their position.
        ``matched`` of the result says which.
    by
        The column that names the model, if there is one table; by default ``"model"``.
    level
        The chance that all verdicts on a metric are right (Holm's correction for the pairs), and
        the level of the intervals.
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
    how = _How(metrics, candidates, as_prior(prior), level)
    result: Comparison | Across
    if across is None:
        result = _compared(*split_runs(_named(models, by, given)), given, how)
    else:
        result = _compared_on_each(models, across, by, given, how)
    warn_of(result.notes, stacklevel=3)
    return result


class _How(NamedTuple):
    """How models are compared, on every data set."""

    metrics: str | Metric | Iterable[str | Metric]
    candidates: str | None
    prior: Prior | None
    level: float


def _compared_on_each(models: Any, across: str, by: str | None, given: Given, how: _How) -> Across:
    """Return the comparison on each data set, and by the means over them."""
    if not isinstance(across, str):
        raise InputError(f"across must be the name of a column, got {across!r}")
    held = given.sources(models) or given.data_sets(models, across, by or MODEL)
    found: dict[str, Comparison] = {}
    alone: dict[str, str] = {}
    for name, each in held.items():
        try:
            sources, runs = split_runs(_named(each, by, given))
            if len(runs) == 1:
                alone[name] = next(iter(runs))
            else:
                found[name] = _compared(sources, runs, given, how)
        except UnsampleError as problem:
            problem.args = (f"{name}: {problem}",)
            raise
    return averaged_over(across, found, alone)


def _named(models: Any, by: str | None, given: Given) -> Mapping[str, Any]:
    """Return what is given for each model; of a table, the counts of all models."""
    if isinstance(models, ModelCounts):
        return models
    several: Mapping[str, Any] | None = given.sources(models)
    if by is None and isinstance(models, list | tuple) and len(models) > 1 and is_table(models):
        several = named_by_stem(models)
    if several is None and is_table(models):
        several = given.models(models, by or MODEL)
    if several is None:
        raise InputError(
            "models must be a dict of names and their ranks, a table with a column that names "
            f"them, or their files, got {type(models).__name__}"
        )
    return several


def _compared(sources: Mapping[str, Any], runs: Runs, given: Given, how: _How) -> Comparison:
    """Return the comparison on one data set."""
    if not 2 <= len(runs) <= _MOST_MODELS:
        got = f"{len(runs)}" if len(runs) > 1 else f"{len(sources)} of {next(iter(runs))} alone"
        raise InputError(f"models must be at least two and at most {_MOST_MODELS}, got {got}")
    models = Models.of(sources, given)
    _check_alike(models)
    wanted = _wanted(how.metrics, models)
    of_runs = {name: _estimated(name, models, wanted, given, how) for name in models.counts}
    laws = {
        metric.name: law_of_models(
            joint_law(metric, models, {name: each[metric] for name, each in of_runs.items()}), runs
        )
        for metric in wanted
    }
    estimates = {
        name: mean_of_runs(name, [of_runs[run] for run in held], laws)
        for name, held in runs.items()
    }
    notes = [*on_runs(runs), *(note for each in of_runs.values() for note in each.notes)]
    if models.unmatched:
        text = (
            f"the models' users do not match one by one ({models.unmatched}): those without a "
            "match are compared unpaired"
        )
        notes.append(Note("unpaired", text))
    differences, standings = list[Difference](), list[Standing]()
    for metric in wanted:
        law, entries = laws[metric.name], {name: each[metric] for name, each in estimates.items()}
        pairs = itertools.combinations(runs, 2)
        found = [(a, b, difference_of(law, entries, a, b)) for a, b in pairs]
        differences += verdicts(metric.name, found, how.level)
        standings += _standings(metric, law, entries, how.level)
    return Comparison(
        wanted,
        estimates,
        tuple(standings),
        tuple(differences),
        models.matched,
        how.level,
        laws,
        tuple(dict.fromkeys(notes)),
        runs={name: len(each) for name, each in runs.items()},
    )


def _estimated(
    name: str, models: Models, metrics: tuple[Metric, ...], given: Given, how: _How
) -> Estimates:
    """Return the estimates of one model, or of one run."""
    made = models.made.get(name)
    if made is None:
        found = estimate_counts(
            models.counts[name],
            metrics=metrics,
            candidates=how.candidates,
            prior=how.prior,
            kind=given.kind,
        )
        return replace(found, filtered=models.filtered)
    there, several = made.metrics, made.counts.several
    missing = [each.name for each in metrics if not find_metric(each, there, several=several)]
    if missing:
        how_to = "call published" if isinstance(made, Published) else "evaluate it"
        raise InputError(
            f"metrics must be ones that {name} was evaluated for ({', '.join(made)}), got "
            f"{', '.join(missing)}; {how_to} for these too"
        )
    return made


def _standings(
    metric: Metric, law: JointLaw, entries: Mapping[str, Estimate], level: float
) -> list[Standing]:
    """Return the models, highest estimate first."""
    # Nobody can be called the best of all where some are known by bounds alone.
    best = {} if law is None or len(law.names) < len(entries) else law.best()
    rows = [
        Standing(
            metric.name, name, entry.value, *entry.interval(level), best.get(name), entry.source
        )
        for name, entry in entries.items()
    ]
    return sorted(rows, key=lambda row: -row.value)


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


def _wanted(metrics: str | Metric | Iterable[str | Metric], models: Models) -> tuple[Metric, ...]:
    """Return the metrics asked for; by default, those that results have or ranks can give."""
    if metrics is DEFAULT_METRICS and models.made:
        return comparable(next(iter(models.made.values())).metrics)
    for counts in models.counts.values():
        metrics = possible_metrics(metrics, counts)
    return comparable(metrics)


def _check_alike(models: Models) -> None:
    """Refuse models whose metrics mean different things."""
    sizes = {name: counts.largest_catalogue for name, counts in models.counts.items()}
    # Sizes that differ by user are on a grid.
    if len(np.unique(size_on_grid(list(sizes.values())))) > 1:
        listed = listed_briefly([f"{name} {size:,}" for name, size in sizes.items()])
        raise DesignError(
            f"models must be ranked in one catalogue to be compared, got {listed}; metrics@K of "
            "different catalogues mean different things"
        )
    said = {name: made.candidates for name, made in models.made.items()}
    if len({*said.values()}) > 1:
        listed = listed_briefly([f"{name} {each or 'not stated'}" for name, each in said.items()])
        raise DesignError(
            f"models must have the same candidates to be compared, got {listed}; seen items above "
            "a target lower its metric"
        )
