"""Running a reproduction: compute every cell in a few threads, and write the tables."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy

from unsample import __version__
from unsample._checks import check_choice, check_integer
from unsample._files import unwritable
from unsample._progress import Progress
from unsample._threads import in_threads, one_thread
from unsample.errors import FileError
from unsample.lab.datasets import load_ranks
from unsample.lab.paper._cells import CellResult, compute_cell
from unsample.lab.paper._claims import claim_rows
from unsample.lab.paper._exhibits import DATASETS, Cell, all_cells
from unsample.lab.paper._report import write_report
from unsample.lab.paper._tables import Reproduction, make_tables, write_rows, write_text

#: What tells a folder of ours from others.
_SETTINGS = "settings.json"


def run(
    folder: str | os.PathLike[str],
    *,
    datasets: Sequence[str] = (),
    repeats: int = 100,
    rng: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> Reproduction:
    """Compute all cells and write the tables.

    Parameters
    ----------
    folder
        Where the tables are written: a new or empty folder, or one of an earlier reproduction.
    datasets
        The names of the data sets; by default all of the paper.
    repeats
        How often each cell is sampled.
    rng
        The seed.
    workers
        How many threads share the cells; they change nothing but the time.
    progress
        Called after each cell with cells done, all cells, and the name of the cell.

    Raises
    ------
    InputError
        If an argument is not as it must be.
    FileError
        If the folder holds other files, or cannot be written.
    """
    chosen = tuple(dict.fromkeys(datasets)) or DATASETS
    for dataset in chosen:
        check_choice("dataset", dataset, DATASETS)
    check_integer("repeats", repeats, minimum=2, hint="a standard deviation needs at least two")
    check_integer("rng", rng, minimum=0)
    workers = check_integer("workers", workers, minimum=1)
    started = time.monotonic()
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        _check_ours(path)
    except OSError as problem:
        raise unwritable(path, problem) from problem

    def work(cell: Cell) -> CellResult:
        known = load_ranks(cell.dataset, cell.recommender, candidates=cell.candidates)
        return compute_cell(cell, known.ranks, items=known.items, repeats=repeats, rng=rng)

    results: dict[Cell, CellResult] = {}
    cells = all_cells(chosen)
    with one_thread():  # of BLAS: the other workers have the other cores
        computed = in_threads(work, cells, workers=workers)
        for cell, result in zip(cells, computed, strict=True):
            results[cell] = result
            if progress is not None:
                progress(len(results), len(cells), note=cell.name)
    tables = make_tables(chosen, results)
    tables["claims"] = tuple(claim_rows(tables))
    settings = {
        "datasets": chosen,
        "repeats": repeats,
        "rng": rng,
        "versions": {
            "unsample": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "seconds": round(time.monotonic() - started, 3),
    }
    for name, rows in tables.items():
        write_rows(path, name, rows=rows)
    write_text(path / _SETTINGS, json.dumps(settings, indent=2) + "\n")
    write_report(tables, path)
    return Reproduction(path, tables, settings=settings)


def _check_ours(folder: Path) -> None:
    """Refuse a folder with other files: a reproduction could overwrite some of them."""
    kept = folder / _SETTINGS
    try:
        ours = "repeats" in json.loads(kept.read_text(encoding="utf-8"))
    except (FileNotFoundError, TypeError, ValueError):
        ours = False
    # An empty folder inside was made for a plot.
    holds_files = any(not each.is_dir() for each in folder.rglob("*"))
    if not ours and holds_files:
        raise FileError(
            f"out must be a new or empty folder, or one of an earlier reproduction, got "
            f"{str(folder)!r}; choose another"
        )
