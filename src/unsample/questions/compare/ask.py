"""`compare`: which model is truly better, how certain that is, and when the data cannot decide.

The difference of two models in a sample has two errors. One is sampling error: other users and
other sampled items would give another difference. It shrinks with more users, and it is smaller if
both models have the same users. The other error is what a sample cannot see: the top ranks of the
two models may be distributed differently. The joint posterior of all models holds both errors, and
every number here is read from it.
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
from unsample.questions.estimate.prior_choice import SHIPPED, as_prior, knowing
from unsample.questions.estimate.result import Estimate, Estimates
from unsample.report import Note, warn_of
from unsample.tables import MODEL, Read, is_table
from unsample.uncertainty import DEFAULT_LEVEL, Uncertain, two_sided

#: More models than this have too many pairs to compute or to read.
_MAX_MODELS = 100
#: If the largest catalogues of two models differ by less than this factor, they may be the same: a
#: model may lack the user with the largest one.
_ONE_CATALOGUE = 1.0 + 1.0 / SIZE_STEPS


@overload
def compare(
    models: Any,
    *,
    items: npt.ArrayLike | None = None,
    sampled: npt.ArrayLike | None = None,
    users: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    protocol: str | None = None,
    seen: float | npt.ArrayLike | Mapping[str, Any] | None = None,
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
    seen: float | npt.ArrayLike | Mapping[str, Any] | None = None,
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
    seen: float | npt.ArrayLike | Mapping[str, Any] | None = None,
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
        At least two models, and at most 100, in one of these forms:

        * a dict that gives each model's name its ranks, in any form that `unsample.estimate` takes.
          (`RankCounts` do not know users, so their models cannot be paired. `ModelCounts` of all
          models can.)
        * a dict that gives each name the result of `unsample.evaluate` or of `unsample.published`.
          ``metrics`` are then the metrics of these results. (Guided results with the same ``rng``
          drew the same users first.)
        * one table of all models, with a column that names them;
        * a list of files. A file's name without its ending is the name of its model.

        A model may have several runs (training seeds): give its name a list of ranks, files or
        results, or give a table a column ``run``. The question is then which *model* is better, and
        the spread of the runs is a part of every error.
    items, sampled, protocol, seen, metrics, prior, negatives, read
        As in `unsample.estimate`, the same for all models. (With ``across``, ``seen`` may be a dict
        with a number for each data set.) Differences are more precise if the
        models share the same negatives and it is known which item beats which target.
    users
        The user of each rank: one sequence for all models, or one for each name. Models are paired
        by the users that they have in common, in any order. Without users, they are paired by their
        position. The attribute ``matched`` of the result says how they were paired.
    by
        The column that names the model, if there is one table; by default ``"model"``.
    level
        The probability that all verdicts on a metric are right (Holm's correction for the pairs),
        and the level of the intervals.
    across
        The column of a table that names the data set of each row. Or, for a dict
        ``{data set: models}``, the label of its keys. Each data set is compared by itself, and the
        models also by their means over data sets. Catalogues, designs and users may differ.

    Returns
    -------
    Comparison
        The standings, all differences and the verdicts; with ``across`` an `Across`.

    Raises
    ------
    DesignError
        If the models were ranked in different catalogues or by different protocols.
    MetricError
        If a metric falls as a model improves, as mean ranks do.
    InputError
        If there are too few or too many models, or an argument does not go with their form.

    >>> users = range(300)
    >>> ranks = {"A": [1 + u**3 // 300_000 for u in users], "B": [1 + u**2 // 1_000 for u in users]}
    >>> result = compare(ranks, items=3706, sampled=99, metrics="Recall@50")
    >>> result.winner("Recall@50")
    'A'
    >>> difference = result.difference("A", "B", "Recall@50")
    >>> round(difference.value, 1), [round(end, 1) for end in difference.interval(0.95)]
    (0.1, [0.1, 0.2])
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
    settings = _Settings(metrics, protocol, seen=seen, prior=as_prior(prior), level=level)
    result: Comparison | Across
    if across is None:
        sources, runs = split_runs(_by_model(models, by, inputs=inputs))
        here = settings.on(None, source=models)
        result = _compared(sources, runs, inputs=inputs, settings=here)
    else:
        result = _compared_on_each(models, across, by=by, inputs=inputs, settings=settings)
    warn_of(result.notes)
    return result


class _Settings(NamedTuple):
    """How models are compared, on every data set."""

    metrics: str | Metric | Iterable[str | Metric] | None
    protocol: str | None
    seen: float | npt.ArrayLike | Mapping[str, Any] | None
    prior: Prior | None
    level: float

    def on(self, data_set: str | None, *, source: object = None) -> _Settings:
        """Return the settings on one of several data sets, or where there is one."""
        seen = self.seen
        if isinstance(seen, Mapping):
            if data_set is None:
                raise InputError("seen must be a number or one for each user without across")
            if data_set not in seen:
                names = ", ".join(map(str, seen))
                raise InputError(f"seen must hold each data set, got none for {data_set}: {names}")
            seen = seen[data_set]
        prior = knowing(self.prior, seen, protocol=self.protocol, source=source)
        return self._replace(prior=prior, seen=None)


def _compared_on_each(
    models: Any, across: str, *, by: str | None, inputs: Inputs, settings: _Settings
) -> Across:
    """Return the comparison on each data set, and by the means over them."""
    if not isinstance(across, str):
        raise InputError(f"across must be the name of a column, got {across!r}")
    data_sets = inputs.sources(models) or inputs.data_sets(
        models, across, by=by or MODEL, most=_MAX_MODELS
    )
    comparisons: dict[str, Comparison] = {}
    alone: dict[str, str] = {}
    for name, models_here in data_sets.items():
        try:
            sources, runs = split_runs(_by_model(models_here, by, inputs=inputs))
            if len(runs) == 1:
                (alone[name],) = runs
            else:
                here = settings.on(name)
                comparisons[name] = _compared(sources, runs, inputs=inputs, settings=here)
        except UnsampleError as problem:
            problem.args = (f"{name}: {problem}",)
            raise
    return averaged_over(across, comparisons, alone=alone)


def _by_model(models: Any, by: str | None, *, inputs: Inputs) -> Mapping[str, Any]:
    """Return the source of each model, or of each list of its runs.

    One table of all models becomes the counts of all models.
    """
    if isinstance(models, ModelCounts):
        for name, counts in models.items():
            inputs.check_agrees(f"the counts of {name}", counts)
        return models
    sources: Mapping[str, Any] | None = inputs.sources(models)
    several_files = isinstance(models, list | tuple) and len(models) > 1 and is_table(models)
    if several_files and by is None:
        sources = named_by_stem(models)
    if sources is None and is_table(models):
        sources = inputs.models(models, by or MODEL, most=_MAX_MODELS)
    if sources is None:
        raise InputError(
            "models must be a dict of names and their ranks, a table with a column that names "
            f"them, or their files, got {type(models).__name__}"
        )
    return sources


@one_thread()
def _compared(
    sources: Mapping[str, Any], runs: Runs, *, inputs: Inputs, settings: _Settings
) -> Comparison:
    """Return the comparison on one data set."""
    _check_number(sources, runs)
    models = Models.of(sources, inputs)
    _check_alike(models, settings.protocol)
    metrics = _metrics_of(settings.metrics, models)
    of_runs = {
        name: _estimated(name, models, metrics=metrics, settings=settings) for name in models.counts
    }
    redrawn = partial(distributions_of, metrics, models, estimates=of_runs, runs=runs)
    distributions = redrawn()
    estimates = {
        name: mean_of_runs(
            [of_runs[run] for run in names_of_runs],
            metric_of=partial(_own_metric, distributions, name),
        )
        for name, names_of_runs in runs.items()
    }
    differences: list[Difference] = []
    standings: list[Standing] = []
    for metric in metrics:
        distribution = distributions[metric.name]
        entries = {name: result[metric] for name, result in estimates.items()}
        pairs = [
            (a, b, difference_of(distribution, entries, a=a, b=b))
            for a, b in itertools.combinations(runs, 2)
        ]
        differences += verdicts(metric.name, pairs, level=settings.level)
        standings += _standings(metric, distribution, entries=entries, level=settings.level)
    return Comparison(
        metrics=metrics,
        estimates=estimates,
        standings=tuple(standings),
        differences=tuple(differences),
        matched=models.matched,
        level=settings.level,
        redrawn=redrawn,
        notes=_notes(models, runs, estimates=of_runs),
        runs={name: len(names_of_runs) for name, names_of_runs in runs.items()},
    )


def _check_number(sources: Mapping[str, Any], runs: Runs) -> None:
    """Refuse a single model, and more models than can be compared."""
    if 2 <= len(runs) <= _MAX_MODELS:
        return
    got = f"{len(runs)}" if len(runs) > 1 else f"{len(sources)} of {next(iter(runs))} alone"
    raise InputError(f"models must be at least two and at most {_MAX_MODELS}, got {got}")


def _notes(models: Models, runs: Runs, *, estimates: Mapping[str, Estimates]) -> tuple[Note, ...]:
    """Return the notes of a comparison, each once."""
    notes = [*on_runs(runs), *(note for result in estimates.values() for note in result.notes)]
    if models.unmatched:
        text = (
            f"the models' users do not match one by one ({models.unmatched}): those without a "
            "match are compared unpaired"
        )
        notes.append(Note("unpaired", text))
    return tuple(dict.fromkeys(notes))


def _own_metric(distributions: Mapping[str, Joint], model: str, metric: str) -> Uncertain | None:
    """Return the metric of a model by its draws; None where it has none."""
    joint = distributions[metric]
    if isinstance(joint, ModelDraws) and model in joint.names:
        return joint.own(model)
    return None


def _estimated(
    name: str, models: Models, *, metrics: tuple[Metric, ...], settings: _Settings
) -> Estimates:
    """Return the estimates of one model, or of one run."""
    made = models.made.get(name)
    if made is None:
        return estimate_counts(
            models.counts[name],
            metrics=metrics,
            protocol=settings.protocol,
            prior=settings.prior,
            level=settings.level,
            filtered=models.filtered,
        )
    several = made.counts.several
    missing = [
        metric.name
        for metric in metrics
        if find_metric(metric, made.metrics, several=several) is None
    ]
    if missing:
        how_to = "call published" if is_published(made) else "evaluate it"
        raise InputError(
            f"metrics must be ones that {name} was evaluated for ({', '.join(made)}), got "
            f"{', '.join(missing)}; {how_to} for these too"
        )
    return made


def _standings(
    metric: Metric, distribution: Joint, *, entries: Mapping[str, Estimate], level: float
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


def _metrics_of(
    metrics: str | Metric | Iterable[str | Metric] | None, models: Models
) -> tuple[Metric, ...]:
    """Return the metrics to compare by.

    By default they are the metrics of the first result, or the usual ones that the ranks of every
    model can give.
    """
    if metrics is not None:
        return comparable(metrics)
    if models.made:
        first = next(iter(models.made.values()))
        return comparable(first.metrics)
    possible = [usual_metrics(counts) for counts in models.counts.values()]
    return comparable([name for name in possible[0] if all(name in names for names in possible)])


def _check_alike(models: Models, protocol: str | None) -> None:
    """Refuse models whose metrics mean different things."""
    sizes = {name: counts.catalogues[1] for name, counts in models.counts.items()}
    if max(sizes.values()) > min(sizes.values()) * _ONE_CATALOGUE:
        listed = listed_briefly([f"{name} {size:,}" for name, size in sizes.items()])
        raise DesignError(
            f"models must be ranked in one catalogue to be compared, got {listed}; metrics@K of "
            "different catalogues mean different things"
        )
    protocols = {name: result.protocol for name, result in models.made.items()}
    if not protocols:
        return
    if len({*protocols.values()}) > 1:
        stated = [f"{name} {known or 'not stated'}" for name, known in protocols.items()]
        raise DesignError(
            "models must have the same protocol to be compared, got "
            f"{listed_briefly(stated)}; seen items above a target lower its metric"
        )
    (of_results,) = {*protocols.values()}
    if protocol not in (None, of_results):
        raise InputError(
            f"protocol must be {of_results or 'left out'} as in the results to be compared, got "
            f"{protocol!r}; leave it out, and say it where the results are made"
        )
