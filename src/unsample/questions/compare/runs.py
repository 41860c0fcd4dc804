"""Several runs of a model (training seeds): what each is called, and the mean of them."""

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
    """Return each run as a model of its own, and the names of the runs of each model."""
    flat: dict[str, Any] = {}
    for name, source in models.items():
        held = list(source) if _are_runs(source) else [source]
        if not held:
            raise InputError(f"{name} must have at least one run, got an empty list")
        if len(held) > 1 and is_published(held[0]):
            raise InputError(
                f"{name} must be one result of published, got {len(held)}; for numbers that are "
                "means over runs, call published with their mean and with runs"
            )
        several = [f"{name}{RUN_OF}{number}" for number in range(1, len(held) + 1)]
        flat |= zip(several if len(held) > 1 else [name], held, strict=True)
    runs: Runs = {}
    for name in flat:
        runs.setdefault(name.partition(RUN_OF)[0], []).append(name)
    return models if isinstance(models, ModelCounts) else flat, runs


def _are_runs(source: Any) -> bool:
    """Return whether a list holds runs, and not ranks: tables, files, or lists of ranks."""
    return isinstance(source, list | tuple) and not any(
        np.isscalar(each) and not isinstance(each, str) for each in source
    )


def mean_of_runs(
    name: str, runs: Sequence[Estimates], own: Callable[[str, str], Uncertain | None]
) -> Estimates:
    """Return the estimates of a model: those of its only run, or of the mean of its runs.

    ``own`` tells what a model's metric may be; None where runs are known by bounds alone.
    """
    first = runs[0]
    if len(runs) == 1:
        return first
    entries = []
    for metric in first.metrics:
        like = own(name, metric.name)
        entries.append(MeanOfRuns.of(tuple(each[metric] for each in runs), like))
    notes = tuple(note for each in runs for note in each.notes)
    return Estimates(
        tuple(entries), first.counts, {}, notes, first.protocol, first.filtered, first.level
    )


def on_runs(runs: Runs) -> list[Note]:
    """Return a note on models with one run, where others have several."""
    alone = [name for name, held in runs.items() if len(held) == 1]
    if not alone or len(alone) == len(runs):
        return []
    has = "has" if len(alone) == 1 else "have"
    text = (
        f"{', '.join(alone)} {has} one run: how far another training would move it is not in its "
        "interval, nor in its probabilities; give several runs of each model"
    )
    return [Note("one run", text)]
