"""`published`: full-catalogue metrics from the numbers that a paper prints.

Printed numbers are evidence like any other: means over users of functions of their sampled ranks,
rounded. They teach the same cloud of curves as sampled ranks do, and the bounds are those of every
P(R) that gives them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, overload

from unsample import metrics as _metrics
from unsample._checks import check_flag, check_integer, check_level
from unsample.counts import Negatives, as_negatives, refuse_shared
from unsample.errors import ContradictionError, DesignError, UnsampleError, UnsampleWarning
from unsample.metrics import DEFAULT_METRICS, Metric
from unsample.posterior import FittedNumbers, FixedNumbers, Numbers, Prior
from unsample.questions.compare.ask import compare
from unsample.questions.estimate.prior_choice import SHIPPED, as_prior, check_protocol
from unsample.questions.estimate.result import AUTO
from unsample.questions.published.formula_slips import explained, on_slips
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
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    prior: Prior | str | os.PathLike[str] | None = SHIPPED,
    level: float = DEFAULT_LEVEL,
    negatives: Negatives | None = None,
    percent: bool = False,
    runs: int = 1,
) -> Published | Leaderboard:
    """Estimate full-catalogue metrics from the sampled metrics that a paper prints.

    A warning says if NDCG or MRR hardly goes with the hit rates, as after a slip in its formula,
    and if no number of hits over so many users gives a hit rate.

    Parameters
    ----------
    numbers
        Sampled metrics and their printed values, such as ``{"HR@1": "0.18", "NDCG@10": "0.40"}``.
        Any metric of `unsample.metrics` is allowed; without ``@K`` it uses all ``sampled + 1``
        items. Text and `Decimal` keep their digits. Floats lose a zero at the end, so all floats
        are taken to have as many decimals as the longest of them.
        Or the numbers of several models: a dict of them by model, or a table (a CSV file, a data
        frame, a mapping of columns). In the table, a row is a model (the column ``model``, and a
        column for each metric) or a number (``model``, ``metric``, ``value``). Columns ``dataset``,
        ``items``, ``sampled`` and ``users`` say where these differ; in rows without them, the
        arguments hold. Cells without a number are empty, or a dash. The result is a `Leaderboard`.
    items
        The number of candidates in a full ranking, the target included. If seen items were left
        out, it differs by user: take the mean.
    sampled
        The number of items each target was ranked against (99, not 100), drawn uniformly at random.
    users
        The number of targets over which the printed means are taken.
    protocol, prior
        What the intervals may assume; as in `unsample.estimate`. Without a prior, they are the
        bounds.
    metrics
        Full-catalogue metrics to estimate; by default Recall@10, NDCG@10 and AP@10.
    level
        The level of the intervals that are shown.
    negatives
        How items were drawn: `unsample.Negatives`, for each target and uniformly at random. One
        pool for all targets is refused: printed numbers do not tell what it did to them.
    percent
        Whether the values are percentages.
    runs
        The number of runs on these users, if the numbers are means over runs. Errors count users.

    Raises
    ------
    ContradictionError
        If no ranks give all these numbers, rounded; it names the fewest that contradict.

    >>> paper = {"HR@1": 0.18, "HR@10": 0.69, "NDCG@10": 0.40}
    >>> result = published(paper, items=3706, sampled=99, users=6040, metrics="Recall@50")
    >>> low, high = result["Recall@50"].interval()
    >>> low < result["Recall@50"].value < high
    True
    """
    check_level(level)
    check_protocol(protocol)
    drawn = as_negatives(negatives)
    refuse_shared(drawn)
    check_flag("percent", percent)
    how = _Settings(
        protocol=protocol,
        prior=as_prior(prior),
        metrics=_metrics.parse_all(DEFAULT_METRICS if metrics is None else metrics),
        level=level,
        replacement=drawn.replacement,
        percent=percent,
        runs=check_integer("runs", runs, minimum=1),
    )
    given = {"items": items, "sampled": sampled, "users": users}
    result: Published | Leaderboard
    if is_of_models(numbers):
        result = _leaderboard(read_models(numbers), given, how)
    else:
        result = _of_one_model(numbers, given, how)
    warn_of(result.notes)
    return result


class _Settings(NamedTuple):
    """What is asked of all models, and what is true of them."""

    protocol: str | None
    prior: Prior | None
    metrics: tuple[Metric, ...]
    level: float
    replacement: bool
    percent: bool
    runs: int


def _leaderboard(
    models: Sequence[PrintedModel], given: Mapping[str, int | None], how: _Settings
) -> Leaderboard:
    """Return the estimates of all models, compared on each data set."""
    data_sets: dict[str, dict[str, Published]] = {}
    notes = []
    for model in models:
        where = f"{model.data_set}, {model.name}" if model.data_set else model.name
        try:
            found = _of_one_model(model.numbers, {**given, **model.sizes}, how)
        except UnsampleError as problem:
            problem.args = (f"{where}: {problem}",)
            raise
        data_sets.setdefault(model.data_set, {})[model.name] = found
        notes += [Note(note.name, f"{where}: {note.text}") for note in found.notes]
    comparisons = {}
    for name, held in data_sets.items():
        if len(held) > 1:
            with warnings.catch_warnings():
                # The models' own are in the notes, with their names.
                warnings.simplefilter("ignore", UnsampleWarning)
                comparisons[name] = compare(held, level=how.level)
    return Leaderboard(data_sets, comparisons, level=how.level, notes=tuple(notes))


def _of_one_model(numbers: Any, given: Mapping[str, int | None], how: _Settings) -> Published:
    """Return the estimates from the numbers of one model, without warnings."""
    items, sampled, users = (_size(name, given[name]) for name in ("items", "sampled", "users"))
    sampling = SamplingModel(items, sampled, how.replacement)
    refuse_overdrawn(sampling.items, sampling.sampled)
    users = check_integer("users", users, minimum=1, hint="the targets the means are taken over")
    read = read_numbers(numbers, sampled=sampling.sampled, percent=how.percent)
    paper = Paper(sampling, users, read)
    try:
        paper.check_consistent()
    except ContradictionError as problem:
        problem.args = (f"{problem}{explained(paper)}",)
        raise
    fit = cloud = None
    if how.prior is not None:
        fit = partial(_fit, paper, how.prior, how.protocol)
        cloud = fit(paper.metrics).cloud(FixedNumbers())
    notes = [Note("hits", text) for text in on_counts(read, users * how.runs)]
    # Items that users have seen, where they are ranked too, push targets from the first ranks.
    notes += on_slips(paper, fit, even=how.protocol != "all")
    if paper.refuted:
        named = " and ".join(str(paper.numbers[row]) for row in paper.refuted)
        text = (
            f"no distribution of global ranks gives {named} but for chance: items, sampled, users, "
            "or how items were drawn or ties broken is not as stated, and no estimate can be "
            "trusted"
        )
        notes.append(Note("refuted", text))
    return Published(
        entries=tuple(PublishedEstimate.of(metric, paper, cloud) for metric in how.metrics),
        counts=paper.counts,
        distributions={} if cloud is None else {AUTO: cloud.mean()},
        notes=tuple(notes),
        protocol=how.protocol,
        level=how.level,
        paper=paper,
    )


def _size(name: str, value: int | None) -> int:
    """Return how many items or users there are; refuse numbers without it."""
    if value is None:
        raise DesignError(
            f"{name} must be given with printed numbers, got none; pass {name}, or add a column "
            f"{name!r} to a table of models"
        )
    return value


def _fit(
    paper: Paper, prior: Prior, protocol: str | None, metrics: Sequence[Metric]
) -> FittedNumbers:
    """Return the curves that fit if the printed numbers are those of these metrics."""
    numbers = Numbers(
        design=paper.sampling,
        users=paper.users,
        metrics=tuple(metrics),
        middle=paper.means,
        half=paper.half_units,
    )
    return FittedNumbers.of_numbers(numbers, prior, protocol=protocol)
