"""Several runs of a model (training seeds): how they are given, and what each of them is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from unsample.answers._given import Given
from unsample.answers._notes import Note
from unsample.errors import InputError
from unsample.evidence import ModelCounts
from unsample.tables import RUN_OF

#: The runs of each model, by the names under which they are loaded.
Runs = dict[str, tuple[str, ...]]


def split_runs(models: Mapping[str, Any], given: Given) -> tuple[Mapping[str, Any], Runs, Given]:
    """Return each run as a model of its own, the runs of each model, and what is given for them."""
    if isinstance(models, ModelCounts):
        return *_of_table(models), given
    flat: dict[str, Any] = {}
    runs: Runs = {}
    for name, source in models.items():
        held = list(source) if _are_runs(source) else [source]
        if not held:
            raise InputError(f"{name} must have at least one run, got an empty list")
        names = tuple(f"{name} (run {n})" for n in range(1, len(held) + 1))
        runs[name] = names if len(held) > 1 else (name,)
        for run, each in zip(runs[name], held, strict=True):
            if run in flat:
                raise InputError(f"models must not be called as a run is, got {run!r} twice")
            flat[run] = each
    if isinstance(given.users, Mapping):
        users = given.users
        here = {run: users[name] for name in runs if name in users for run in runs[name]}
        given = replace(given, users=here)
    return flat, runs, given


def _are_runs(source: Any) -> bool:
    """Return whether a list holds runs, and not ranks: tables, files, or lists of ranks."""
    return isinstance(source, list | tuple) and not any(
        np.isscalar(each) and not isinstance(each, str) for each in source
    )


def _of_table(models: ModelCounts) -> tuple[ModelCounts, Runs]:
    """Return the counts of a table by model, or by run where it has such a column."""
    parts = {name: name.split(RUN_OF) for name in models}
    several: dict[str, list[str]] = {}
    for name, (model, *_) in parts.items():
        several.setdefault(model, []).append(name)
    if all(len(part) == 1 for part in parts.values()):
        return models, {name: (name,) for name in models}
    new = {
        name: model if len(several[model]) == 1 else f"{model} (run {run})"
        for name, (model, run) in parts.items()
    }
    flat = ModelCounts(
        {new[name]: each for name, each in models.items()},
        {(new[a], new[b]): each for (a, b), each in models.between.items()},
    )
    return flat, {model: tuple(new[name] for name in names) for model, names in several.items()}


def on_runs(runs: Runs) -> list[Note]:
    """Return a note on models with one run, where others have several."""
    alone = [name for name, held in runs.items() if len(held) == 1]
    if not alone or len(alone) == len(runs):
        return []
    has = "has" if len(alone) == 1 else "have"
    text = (
        f"{', '.join(alone)} {has} one run: how far another training would move it is not in its "
        "interval, nor in its chances; give several runs of each model"
    )
    return [Note("one run", text)]
