"""Running an experiment: every cell once, then the tables from all of them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from unsample import __version__
from unsample._checks import check_integer
from unsample.designs.ranking import Progress
from unsample.errors import FileError
from unsample.lab.datasets import load_ranks
from unsample.lab.experiment._cells import CellResult, Ranks, compute_cell
from unsample.lab.experiment._claims import claim_rows
from unsample.lab.experiment._folder import RunFolder
from unsample.lab.experiment._papers import deviations
from unsample.lab.experiment._results import Reproduction, load_results, write_json, write_rows
from unsample.lab.experiment._rows import (
    accuracy_rows,
    distribution_rows,
    statistics_rows,
    sweep_rows,
    winner_rows,
)
from unsample.lab.experiment._spec import Cell, Spec
from unsample.lab.experiment._workers import compute_all
from unsample.lab.side_by_side import rank_trained

__all__ = ["run"]


def run(
    spec: Spec,
    folder: str | os.PathLike[str],
    *,
    resume: bool = False,
    force: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Reproduction:
    """Compute what is not yet in ``folder``, write all tables there, and return them.

    A run may be killed at any moment; the same call then continues it, and ends with the same
    bytes in every table. ``workers`` processes share the cells, and change nothing but the time;
    a script that asks for more than one must guard its main part by ``__name__``, as always with
    processes.
    """
    workers = check_integer("workers", workers, minimum=1)
    started = time.monotonic()
    with RunFolder.claim(Path(folder), spec, resume=resume, force=force) as place:
        computed = _compute_missing(place, workers, progress)
        _write_tables(spec, {cell: _finished(place, cell) for cell in spec.cells()}, place.path)
        timing = {"seconds": round(time.monotonic() - started, 3), "computed": computed}
        write_json(place.path / "timing.json", timing)
        return load_results(place.path)


def _compute_missing(place: RunFolder, workers: int, progress: Progress | None) -> int:
    """Compute the cells that are not in the folder yet, and return how many those were."""
    cells = place.spec.cells()
    missing = [cell for cell in cells if place.load(cell) is None]
    if place.spec.retrain:
        _train(missing, place, progress)
    report = progress or _silent
    done = len(cells) - len(missing)
    report(done, len(cells), "cells")
    for cell in compute_all(missing, partial(_compute, place), workers=workers):
        done += 1
        report(done, len(cells), cell.name)
    return len(missing)


def _silent(done: int, total: int, note: str = "") -> None:
    pass


def _train(cells: Sequence[Cell], place: RunFolder, progress: Progress | None) -> None:
    """Train every recommender that the cells need, and keep its ranks."""
    for cell in cells:
        if place.load_ranks(cell) is None:
            trained = rank_trained(
                cell.dataset,
                cell.recommender,
                protocol=cell.protocol,
                sampled=None,
                progress=progress,
            )
            place.save_ranks(cell, Ranks(trained.ranks, trained.items))


def _compute(place: RunFolder, cell: Cell) -> None:
    """Compute one cell and write it; the work of a worker."""
    if place.spec.retrain:
        ranks = place.load_ranks(cell)
        if ranks is None:
            raise FileError(f"the ranks trained for {cell.name} are gone; run the command again")
    else:
        bundled = load_ranks(cell.dataset, cell.recommender, protocol=cell.protocol)
        ranks = Ranks(bundled.ranks, bundled.items)
    place.save(cell, compute_cell(place.spec, cell, ranks))


def _finished(place: RunFolder, cell: Cell) -> CellResult:
    result = place.load(cell)
    if result is None:
        raise FileError(f"the results of {cell.name} are gone; run the same command again")
    return result


def _write_tables(spec: Spec, results: Mapping[Cell, CellResult], folder: Path) -> None:
    tables = {
        "statistics": tuple(statistics_rows(spec)),
        "accuracy": tuple(accuracy_rows(spec, results)),
        "winners": tuple(winner_rows(spec, results)),
        "distributions": tuple(distribution_rows(spec, results)),
        "sweep": tuple(sweep_rows(spec, results)),
    }
    tables["claims"] = tuple(claim_rows(tables))
    for name, rows in tables.items():
        write_rows(folder, name, rows)
    write_json(folder / "settings.json", _settings(spec))


def _settings(spec: Spec) -> dict[str, Any]:
    return {
        **spec.to_dict(),
        "digest": spec.digest,
        "versions": {
            "unsample": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "deviations": [{"id": key, "text": text} for key, text in deviations().items()],
    }
