"""Running an experiment: every cell once, then the tables from all of them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from unsample import __version__
from unsample.datasets import load_ranks
from unsample.evaluation import rank_trained
from unsample.experiment._cells import CellResult, Ranks, compute_cell
from unsample.experiment._claims import claim_rows
from unsample.experiment._folder import RunFolder
from unsample.experiment._papers import deviations
from unsample.experiment._results import Reproduction, load_results, write_json, write_rows
from unsample.experiment._rows import (
    accuracy_rows,
    distribution_rows,
    statistics_rows,
    sweep_rows,
    winner_rows,
)
from unsample.experiment._spec import Cell, Spec
from unsample.experiment._tables import write_markdown
from unsample.ranking import Progress

__all__ = ["run"]


def run(
    spec: Spec,
    folder: str | os.PathLike[str],
    *,
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
) -> Reproduction:
    """Compute what is not yet in ``folder``, write all tables there, and return them.

    A run may be killed at any moment; the same call then continues it, and ends with the same
    bytes in every table.
    """
    started = time.monotonic()
    place = RunFolder.claim(Path(folder), spec, resume=resume, force=force)
    cells = spec.cells()
    results: dict[Cell, CellResult] = {}
    computed = 0
    for done, cell in enumerate(cells):
        if progress is not None:
            progress(done, len(cells), cell.name)
        found = place.load(cell)
        if found is None:
            found = compute_cell(spec, cell, _ranks(spec, cell, place))
            place.save(cell, found)
            computed += 1
        results[cell] = found
    if progress is not None:
        progress(len(cells), len(cells), "tables")
    _write_tables(spec, results, place.path)
    timing = {"seconds": round(time.monotonic() - started, 3), "computed": computed}
    write_json(place.path / "timing.json", timing)
    reproduction = load_results(place.path)
    write_markdown(reproduction, place.path)
    return reproduction


def _ranks(spec: Spec, cell: Cell, place: RunFolder) -> Ranks:
    if not spec.retrain:
        bundled = load_ranks(cell.dataset, cell.recommender, protocol=cell.protocol)
        return Ranks(bundled.ranks, bundled.items)
    kept = place.load_ranks(cell)
    if kept is None:
        trained = rank_trained(
            cell.dataset, cell.recommender, protocol=cell.protocol, sampled=None
        )
        kept = Ranks(trained.ranks, trained.items)
        place.save_ranks(cell, kept)
    return kept


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
