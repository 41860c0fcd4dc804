"""Several runs of a model (training seeds): their names, and the mean over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from unsample.counts import ModelCounts
from unsample.errors import InputError
from unsample.questions.compare.models import is_published
from unsample.questions.estimate.result import Estimates, MeanOfRuns
from unsample.report import Note
from unsample.tables import RUN_OF
from unsample.uncertainty import Uncertain

#: The names of the runs of each model; a model with one run may have its own name.
Runs = dict[str, list[str]]


def split_runs(models: Mapping[str, Any]) -> tuple[Mapping[str, Any], Runs]:
    """Return the source of each run, and the names of the runs of each model.

    >>> sources, runs = split_runs({"A": [[3, 1], [2, 1]], "B": [5, 4]})
    >>> runs == {"A": [f"A{RUN_OF}1", f"A{RUN_OF}2"], "B": ["B"]}
    True
    >>> sources[f"A{RUN_OF}2"], sources["B"]
    ([2, 1], [5, 4])
    """
    sources: dict[str, Any] = {}
    for name, source in models.items():
        runs_of_model = list(source) if _are_runs(source) else [source]
        if not runs_of_model:
            raise InputError(f"{name} must have at least one run, got an empty list")
        if len(runs_of_model) == 1:
            sources[name] = runs_of_model[0]
            continue
        if is_published(runs_of_model[0]):
            raise InputError(
                f"{name} must be one result of published, got {len(runs_of_model)}; for numbers "
                "that are means over runs, call published with their mean and with runs"
            )
        for number, run in enumerate(runs_of_model, start=1):
            sources[f"{name}{RUN_OF}{number}"] = run
    runs: Runs = {}
    for name in sources:
        model, _, _ = name.partition(RUN_OF)
        runs.setdefault(model, []).append(name)
    return models if isinstance(models, ModelCounts) else sources, runs


def _are_runs(source: Any) -> bool:
    """Return whether a list holds runs, and not ranks: tables, files, or lists of ranks."""
    return isinstance(source, list | tuple) and not any(
        np.isscalar(entry) and not isinstance(entry, str) for entry in source
    )


def mean_of_runs(
    runs: Sequence[Estimates], *, metric_of: Callable[[str], Uncertain | None]
) -> Estimates:
    """Return the estimates of a model: of its only run, or of the mean of its runs.

    ``metric_of`` gives the model's metric of a name, from draws of all runs; None if the runs are
    known by bounds alone.
    """
    first = runs[0]
    if len(runs) == 1:
        return first
    entries = tuple(
        MeanOfRuns.of(tuple(run[metric] for run in runs), metric_of(metric.name))
        for metric in first.metrics
    )
    return Estimates(
        entries,
        first.counts,
        distributions={},
        notes=tuple(note for run in runs for note in run.notes),
        protocol=first.protocol,
        filtered=first.filtered,
        level=first.level,
    )


def on_runs(runs: Runs) -> list[Note]:
    """Return a note on models with one run, where others have several."""
    alone = [name for name, names_of_runs in runs.items() if len(names_of_runs) == 1]
    if not alone or len(alone) == len(runs):
        return []
    has = "has" if len(alone) == 1 else "have"
    text = (
        f"{', '.join(alone)} {has} one run: how far another training would move it is not in its "
        "interval, nor in its probabilities; give several runs of each model"
    )
    return [Note("one run", text)]
