"""`compare`: which model is truly better, how certain that is, and when the data cannot decide.

The difference of two models in a sample has two errors. One is sampling error: other users, other
sampled items. It shrinks with more users, and more so if both models have the same users. The other
is what a sample cannot see: the top ranks of the two models may be distributed differently. One
distribution, the joint posterior of all models, has both, and every number here follows from it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, overload

import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._threads import one_thread
from unsample.counts import SIZE_STEPS, ModelCounts, Negatives
from unsample.errors import DesignError, InputError, MetricError, UnsampleError
from unsample.metrics import Metric, find_metric
from unsample.posterior import Prior
from unsample.questions.compare.data_sets import Across, averaged_over
from unsample.questions.compare.differences import Difference, verdicts
from unsample.questions.compare.joint import (
    Joint,
    ModelDraws,
    difference_of,
    distributions_of,
    probabilities_of_best,
)
from unsample.questions.compare.models import Models, is_published
from unsample.questions.compare.result import Comparison, Standing, listed_briefly
from unsample.questions.compare.runs import (
    Runs,
    mean_of_runs,
    on_runs,
    split_runs,
)
from unsample.questions.estimate.ask import estimate_counts
from unsample.questions.estimate.inputs import Inputs, named_by_stem, usual_metrics
from unsample.questions.estimate.prior_choice import SHIPPED, as_prior
from unsample.questions.estimate.result import Estimate, Estimates
from unsample.report import Note, warn_of
from unsample.tables import MODEL, Read, is_table
from unsample.uncertainty import DEFAULT_LEVEL, Uncertain, two_sided

#: More models than this have too many pairs to compute or to read.
_MOST_MODELS = 100
#: Largest catalogues of models within this factor may be one, of which some users are left out.
_ONE_CATALOGUE = 1.0 + 1.0 / SIZE_STEPS


@overload
def compare(
    models: Any,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    protocol: str | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    by: str | None = None,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    read: Read | None = None,
    across: None = None,
) -> Comparison: ...
@overload
def compare(
    models: Any,
    *,
    across: str,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    protocol: str | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    by: str | None = None,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    read: Read | None = None,
) -> Across: ...
def compare(
    models: Any,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    protocol: str | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    by: str | None = None,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    read: Read | None = None,
    across: str | None = None,
) -> Comparison | Across:
    """Compare two or more models by their ranks among items sampled uniformly at random.

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
    items, sampled, protocol, metrics, prior, negatives, read
        As in `unsample.estimate`, the same for all models. If the models share the same negatives,
        and it is known which item beats which target, the differences are more precise.
    users
        The user of each rank: one sequence for all models, or one for each name. Models are paired
        by the users that they have in common, in any order; without users, by their position.
        ``matched`` of the result says which.
    by
        The column that names the model, if there is one table; by default ``"model"``.
    level
        The probability that all verdicts on a metric are right (Holm's correction for the pairs),
        and the level of the intervals.
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
    inputs = Inputs.of(
        items=items,
        sampled=sampled,
        users=users,
        negatives=negatives,
        protocol=protocol,
        read=read,
    )
    how = _How(metrics, protocol, as_prior(prior), level)
    result: Comparison | Across
    if across is None:
        result = _compared(*split_runs(_named(models, by, inputs)), inputs, how)
    else:
        result = _compared_on_each(models, across, by, inputs, how)
    warn_of(result.notes)
    return result


class _How(NamedTuple):
    """How models are compared, on every data set."""

    metrics: str | Metric | Iterable[str | Metric] | None
    protocol: str | None
    prior: Prior | None
    level: float


def _compared_on_each(
    models: Any, across: str, by: str | None, inputs: Inputs, how: _How
) -> Across:
    """Return the comparison on each data set, and by the means over them."""
    if not isinstance(across, str):
        raise InputError(f"across must be the name of a column, got {across!r}")
    held = inputs.sources(models) or inputs.data_sets(models, across, by or MODEL)
    found: dict[str, Comparison] = {}
    alone: dict[str, str] = {}
    for name, each in held.items():
        try:
            sources, runs = split_runs(_named(each, by, inputs))
            if len(runs) == 1:
                alone[name] = next(iter(runs))
            else:
                found[name] = _compared(sources, runs, inputs, how)
        except UnsampleError as problem:
            problem.args = (f"{name}: {problem}",)
            raise
    return averaged_over(across, found, alone)


def _named(models: Any, by: str | None, inputs: Inputs) -> Mapping[str, Any]:
    """Return what is given for each model; of a table, the counts of all models."""
    if isinstance(models, ModelCounts):
        for name, counts in models.items():
            inputs.check_agrees(f"the counts of {name}", counts)
        return models
    several: Mapping[str, Any] | None = inputs.sources(models)
    if by is None and isinstance(models, list | tuple) and len(models) > 1 and is_table(models):
        several = named_by_stem(models)
    if several is None and is_table(models):
        several = inputs.models(models, by or MODEL)
    if several is None:
        raise InputError(
            "models must be a dict of names and their ranks, a table with a column that names "
            f"them, or their files, got {type(models).__name__}"
        )
    return several


@one_thread()
def _compared(sources: Mapping[str, Any], runs: Runs, inputs: Inputs, how: _How) -> Comparison:
    """Return the comparison on one data set."""
    if not 2 <= len(runs) <= _MOST_MODELS:
        got = f"{len(runs)}" if len(runs) > 1 else f"{len(sources)} of {next(iter(runs))} alone"
        raise InputError(f"models must be at least two and at most {_MOST_MODELS}, got {got}")
    models = Models.of(sources, inputs)
    _check_alike(models, how.protocol)
    wanted = _wanted(how.metrics, models)
    of_runs = {name: _estimated(name, models, wanted, inputs, how) for name in models.counts}
    redrawn = partial(distributions_of, wanted, models, of_runs, runs)
    distributions = redrawn()

    def own(name: str, metric: str) -> Uncertain | None:
        joint = distributions[metric]
        known = isinstance(joint, ModelDraws) and name in joint.names
        return joint.own(name) if known else None  # type: ignore[union-attr]

    estimates = {
        name: mean_of_runs(name, [of_runs[run] for run in held], own) for name, held in runs.items()
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
        distribution, entries = (
            distributions[metric.name],
            {name: each[metric] for name, each in estimates.items()},
        )
        pairs = itertools.combinations(runs, 2)
        found = [(a, b, difference_of(distribution, entries, a, b)) for a, b in pairs]
        differences += verdicts(metric.name, found, level=how.level)
        standings += _standings(metric, distribution, entries, level=how.level)
    return Comparison(
        metrics=wanted,
        estimates=estimates,
        standings=tuple(standings),
        differences=tuple(differences),
        matched=models.matched,
        level=how.level,
        redrawn=redrawn,
        notes=tuple(dict.fromkeys(notes)),
        runs={name: len(each) for name, each in runs.items()},
    )


def _estimated(
    name: str, models: Models, metrics: tuple[Metric, ...], inputs: Inputs, how: _How
) -> Estimates:
    """Return the estimates of one model, or of one run."""
    made = models.made.get(name)
    if made is None:
        return estimate_counts(
            models.counts[name],
            metrics=metrics,
            protocol=how.protocol,
            prior=how.prior,
            level=how.level,
            filtered=models.filtered,
        )
    there, several = made.metrics, made.counts.several
    missing = [each.name for each in metrics if not find_metric(each, there, several=several)]
    if missing:
        how_to = "call published" if is_published(made) else "evaluate it"
        raise InputError(
            f"metrics must be ones that {name} was evaluated for ({', '.join(made)}), got "
            f"{', '.join(missing)}; {how_to} for these too"
        )
    return made


def _standings(
    metric: Metric, distribution: Joint, entries: Mapping[str, Estimate], *, level: float
) -> list[Standing]:
    """Return the models, highest estimate first."""
    # Nobody can be called the best of all where some are known by bounds alone.
    best: dict[str, float] = {}
    if distribution is not None and len(distribution.names) == len(entries):
        best = probabilities_of_best(distribution)
    rows = []
    for name, entry in entries.items():
        low, high = entry.interval(level)
        row = Standing(
            metric=metric.name,
            model=name,
            value=entry.value,
            low=low,
            high=high,
            probability=best.get(name),
            source=entry.source,
        )
        rows.append(row)
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


def _wanted(
    metrics: str | Metric | Iterable[str | Metric] | None, models: Models
) -> tuple[Metric, ...]:
    """Return the metrics asked for; by default, those that results have or ranks can give."""
    if metrics is None and models.made:
        return comparable(next(iter(models.made.values())).metrics)
    if metrics is not None:
        return comparable(metrics)
    # The usual metrics that the data of every model can give.
    possible = [usual_metrics(counts) for counts in models.counts.values()]
    return comparable(min(possible, key=len))


def _check_alike(models: Models, protocol: str | None) -> None:
    """Refuse models whose metrics mean different things."""
    sizes = {name: counts.catalogues[1] for name, counts in models.counts.items()}
    # A model may lack the user whose catalogue is the largest.
    if max(sizes.values()) > min(sizes.values()) * _ONE_CATALOGUE:
        listed = listed_briefly([f"{name} {size:,}" for name, size in sizes.items()])
        raise DesignError(
            f"models must be ranked in one catalogue to be compared, got {listed}; metrics@K of "
            "different catalogues mean different things"
        )
    said = {name: made.protocol for name, made in models.made.items()}
    if len({*said.values()}) > 1:
        listed = listed_briefly([f"{name} {each or 'not stated'}" for name, each in said.items()])
        raise DesignError(
            f"models must have the same protocol to be compared, got {listed}; seen items above a "
            "target lower its metric"
        )
    if said and protocol not in {None, *said.values()}:
        (held,) = {*said.values()}
        raise InputError(
            f"protocol must be {held or 'left out'} as in the results to be compared, got "
            f"{protocol!r}; leave it out, and say it where the results are made"
        )
