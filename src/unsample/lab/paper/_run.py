"""Running a reproduction: compute every cell in a pool of processes, and write the tables."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import numpy as np
import scipy

from unsample import __version__
from unsample._checks import check_choice, check_integer
from unsample._files import unwritable
from unsample._progress import Progress
from unsample._threads import one_thread
from unsample.errors import DatasetError, WorkerError
from unsample.lab.datasets import load_ranks
from unsample.lab.paper._cells import CellResult, compute_cell
from unsample.lab.paper._claims import claim_rows
from unsample.lab.paper._exhibits import DATASETS, Cell, all_cells
from unsample.lab.paper._report import write_report
from unsample.lab.paper._tables import Reproduction, make_tables, write_rows, write_text


def run(
    folder: str | os.PathLike[str],
    *,
    datasets: Sequence[str] = (),
    repeats: int = 100,
    rng: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> Reproduction:
    """Compute all cells of these data sets, or of all, and write the tables into ``folder``.

    ``workers`` processes share the cells, and change nothing but the time; a script that asks for
    more than one must guard its main part by ``__name__``, as always with processes.
    """
    chosen = tuple(dict.fromkeys(datasets)) or DATASETS
    for dataset in chosen:
        check_choice("dataset", dataset, DATASETS, error=DatasetError)
    check_integer("repeats", repeats, minimum=2, hint="a spread needs at least two")
    check_integer("rng", rng, minimum=0)
    workers = check_integer("workers", workers, minimum=1)
    started, place = time.monotonic(), Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise unwritable(place, problem) from problem
    results: dict[Cell, CellResult] = {}
    cells = all_cells(chosen)
    for cell, result in _computed(cells, repeats, rng, workers):
        results[cell] = result
        if progress is not None:
            progress(len(results), len(cells), cell.name)
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
        write_rows(place, name, rows)
    write_text(place / "settings.json", json.dumps(settings, indent=2) + "\n")
    write_report(tables, place)
    return Reproduction(place, tables, settings)


def _compute(cell: Cell, *, repeats: int, rng: int) -> tuple[Cell, CellResult]:
    with one_thread():  # the other workers have the other cores
        known = load_ranks(cell.dataset, cell.recommender, candidates=cell.candidates)
        return cell, compute_cell(cell, known.ranks, known.items, repeats=repeats, rng=rng)


def _computed(
    cells: Sequence[Cell], repeats: int, rng: int, workers: int
) -> Iterator[tuple[Cell, CellResult]]:
    """Yield cells with their results as they are done."""
    work = partial(_compute, repeats=repeats, rng=rng)
    if workers == 1:
        yield from map(work, cells)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(cells)), context, _ignore_interrupts) as pool:
        try:
            for future in as_completed([pool.submit(work, cell) for cell in cells]):
                yield future.result()
        except BrokenProcessPool as problem:
            raise WorkerError(
                "a process that computed cells was ended from outside (out of memory?); run the "
                "same command again, with fewer --workers perhaps"
            ) from problem
        finally:
            pool.shutdown(cancel_futures=True)  # where the run ends early, only what was begun


def _ignore_interrupts() -> None:
    """Let a worker take no notice of Ctrl-C: its parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
