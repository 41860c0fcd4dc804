"""`published`: full-catalogue metrics from the numbers that a paper prints.

A printed number is the rounded mean over users of a function of their sampled ranks. So it is
evidence for the same cloud of curves as sampled ranks are. The bounds hold for every P(R) that
gives the printed numbers.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, overload

import numpy.typing as npt

from unsample import metrics as _metrics
from unsample._checks import check_flag, check_integer, check_level
from unsample.counts import Negatives, as_negatives, refuse_shared
from unsample.errors import ContradictionError, DesignError, UnsampleError, UnsampleWarning
from unsample.metrics import DEFAULT_OF_ONE_TARGET, Metric
from unsample.posterior import Cloud, FittedNumbers, FixedNumbers, Numbers, Prior
from unsample.questions.compare.ask import compare
from unsample.questions.estimate.prior_choice import SHIPPED, as_prior, check_protocol, knowing
from unsample.questions.estimate.result import AUTO
from unsample.questions.published.formula_slips import Fit, explained, on_slips
from unsample.questions.published.leaderboard import Leaderboard
from unsample.questions.published.leaderboard_table import (
    PrintedModel,
    is_of_models,
    read_models,
)
from unsample.questions.published.paper_numbers import Paper, on_counts, read_numbers
from unsample.questions.published.result import Published, PublishedEstimate
from unsample.report import Note, warn_of
from unsample.sampling import SamplingModel, refuse_overdrawn
from unsample.uncertainty import DEFAULT_LEVEL


@overload
def published(
    numbers: Mapping[str, float | str | Decimal],
    *,
    items: int,
    sampled: int,
    users: int,
    protocol: str | None = None,
    seen: float | npt.ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    percent: bool = False,
    runs: int = 1,
) -> Published: ...
@overload
def published(
    numbers: Any,
    *,
    items: int | None = None,
    sampled: int | None = None,
    users: int | None = None,
    protocol: str | None = None,
    seen: float | npt.ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    percent: bool = False,
    runs: int = 1,
) -> Leaderboard: ...
def published(
    numbers: Any,
    *,
    items: int | None = None,
    sampled: int | None = None,
    users: int | None = None,
    protocol: str | None = None,
    seen: float | npt.ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    percent: bool = False,
    runs: int = 1,
) -> Published | Leaderboard:
    """Estimate full-catalogue metrics from the sampled metrics that a paper prints.

    A warning says if NDCG or MRR hardly agrees with the hit rates, as after a slip in its formula,
    and if no number of hits over so many users gives a hit rate.

    Parameters
    ----------
    numbers
        Sampled metrics and their printed values, such as ``{"HR@1": "0.18", "NDCG@10": "0.40"}``.
        Any metric of `unsample.metrics` is allowed; without ``@K`` it uses all ``sampled + 1``
        items. Text and `Decimal` keep their digits. Floats lose a zero at the end, so all floats
        are read with as many decimals as the longest of them.

        Or the numbers of several models: a dict of such numbers by model, or a table (a CSV file, a
        data frame, a mapping of columns). A row of the table is a model, with the column ``model``
        and a column for each metric; or it is a number, with the columns ``model``, ``metric`` and
        ``value``. Columns ``dataset``, ``items``, ``sampled`` and ``users`` tell where these
        differ; in rows without them, the arguments hold. A cell without a number is empty or a
        dash.
    items
        The number of candidates in a full ranking, the target included. If seen items were left
        out, it differs by user: give the mean.
    sampled
        The number of items that each target was ranked against (99, not 100). They must have been
        drawn uniformly at random.
    users
        The number of targets that the printed means are over.
    protocol, seen, prior
        As in `unsample.estimate`. Without a prior, intervals are the bounds.
    metrics
        The full-catalogue metrics to estimate; by default Recall@10, NDCG@10 and Recall@50.
    level
        The level of the intervals that are shown.
    negatives
        How items were drawn: `unsample.Negatives`, for each target and uniformly at random. One
        pool for all targets is refused: printed numbers do not show its effect.
    percent
        Whether the values are percentages.
    runs
        The number of runs on these users, if the numbers are means over runs. Errors count users.

    Returns
    -------
    Published or Leaderboard
        The estimates; for the numbers of several models, a `Leaderboard`.

    Raises
    ------
    ContradictionError
        If no ranks give all these numbers, rounded. It names the fewest numbers that contradict.
    DesignError
        If ``items``, ``sampled`` or ``users`` is missing or cannot be.
    InputError, MetricError
        If a number, a metric or another argument is wrong; the message names it.

    >>> paper = {"HR@1": 0.18, "HR@10": 0.69, "NDCG@10": 0.40}
    >>> result = published(paper, items=3706, sampled=99, users=6040, metrics="Recall@370")
    >>> recall = result["Recall@370"]
    >>> round(recall.value, 1), [round(end, 1) for end in recall.interval(0.95)]
    (0.7, [0.7, 0.7])
    """
    check_level(level)
    check_protocol(protocol)
    drawn = as_negatives(negatives)
    refuse_shared(drawn)
    check_flag("percent", percent)
    settings = _PaperSettings(
        protocol=protocol,
        prior=knowing(as_prior(prior), seen, protocol=protocol),
        metrics=_metrics.parse_all(DEFAULT_OF_ONE_TARGET if metrics is None else metrics),
        level=level,
        replacement=drawn.replacement,
        percent=percent,
        runs=check_integer("runs", runs, minimum=1),
    )
    sizes = {"items": items, "sampled": sampled, "users": users}
    result: Published | Leaderboard
    if is_of_models(numbers):
        result = _leaderboard(read_models(numbers), sizes, settings=settings)
    else:
        result = _of_one_model(numbers, sizes, settings=settings)
    warn_of(result.notes)
    return result


class _PaperSettings(NamedTuple):
    """The arguments that hold for all models."""

    protocol: str | None
    prior: Prior | None
    metrics: tuple[Metric, ...]
    level: float
    replacement: bool
    percent: bool
    runs: int


def _leaderboard(
    models: Sequence[PrintedModel],
    sizes: Mapping[str, int | None],
    *,
    settings: _PaperSettings,
) -> Leaderboard:
    """Return the estimates of all models, compared on each data set.

    ``sizes`` hold where the table does not give others.
    """
    data_sets: dict[str, dict[str, Published]] = {}
    notes = []
    for model in models:
        name = f"{model.data_set}, {model.name}" if model.data_set else model.name
        try:
            result = _of_one_model(model.numbers, {**sizes, **model.sizes}, settings=settings)
        except UnsampleError as problem:
            problem.args = (f"{name}: {problem}",)
            raise
        data_sets.setdefault(model.data_set, {})[model.name] = result
        notes += [Note(note.name, f"{name}: {note.text}") for note in result.notes]
    comparisons = {}
    for data_set, results in data_sets.items():
        if len(results) > 1:
            with warnings.catch_warnings():
                # The notes have the warnings of the models, with their names.
                warnings.simplefilter("ignore", UnsampleWarning)
                comparisons[data_set] = compare(results, level=settings.level)
    return Leaderboard(data_sets, comparisons, level=settings.level, notes=tuple(notes))


def _of_one_model(
    numbers: Any, sizes: Mapping[str, int | None], *, settings: _PaperSettings
) -> Published:
    """Return the estimates from the numbers of one model, without warnings."""
    items = _size("items", sizes)
    sampled = _size("sampled", sizes)
    users = _size("users", sizes)
    sampling = SamplingModel(items, sampled, replacement=settings.replacement)
    refuse_overdrawn(sampling.items, sampling.sampled)
    users = check_integer("users", users, minimum=1, hint="the targets the means are taken over")
    printed = read_numbers(numbers, sampled=sampling.sampled, percent=settings.percent)
    paper = Paper(sampling, users=users, numbers=printed)
    try:
        paper.check_consistent()
    except ContradictionError as problem:
        problem.args = (f"{problem}{explained(paper)}",)
        raise
    fit: Fit | None = None
    cloud: Cloud | None = None
    if settings.prior is not None:
        fit = partial(_fit, paper, settings.prior, settings.protocol)
        cloud = fit(paper.metrics).cloud(FixedNumbers())
    return Published(
        entries=tuple(
            PublishedEstimate.of(metric, paper, cloud=cloud) for metric in settings.metrics
        ),
        counts=paper.counts,
        distributions={} if cloud is None else {AUTO: cloud.mean()},
        notes=_notes(paper, fit, settings=settings),
        protocol=settings.protocol,
        level=settings.level,
        paper=paper,
    )


def _notes(paper: Paper, fit: Fit | None, *, settings: _PaperSettings) -> tuple[Note, ...]:
    """Return notes on printed numbers that contradict each other or the arguments."""
    notes = [Note("hits", text) for text in on_counts(paper.numbers, paper.users * settings.runs)]
    # Items that users have seen push targets from the first ranks, if they are candidates.
    notes += on_slips(paper, fit, even=settings.protocol != "all")
    if paper.refuted:
        listed = " and ".join(str(paper.numbers[index]) for index in paper.refuted)
        text = (
            f"no distribution of global ranks gives {listed} but for chance: items, sampled, "
            "users, or how items were drawn or ties broken is not as stated, and no estimate can "
            "be trusted"
        )
        notes.append(Note("refuted", text))
    return tuple(notes)


def _size(name: str, sizes: Mapping[str, int | None]) -> int:
    """Return one of the sizes of an evaluation, which must be there."""
    value = sizes[name]
    if value is None:
        raise DesignError(
            f"{name} must be given with printed numbers, got none; pass {name}, or add a column "
            f"{name!r} to a table of models"
        )
    return value


def _fit(
    paper: Paper, prior: Prior, protocol: str | None, metrics: Sequence[Metric]
) -> FittedNumbers:
    """Return the curves that fit the printed numbers, as numbers of these metrics."""
    numbers = Numbers(
        design=paper.sampling,
        users=paper.users,
        metrics=tuple(metrics),
        middle=paper.means,
        half=paper.half_units,
    )
    return FittedNumbers.of_numbers(numbers, prior, protocol=protocol)
