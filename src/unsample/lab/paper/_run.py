"""Running a reproduction: compute every cell in a pool of processes, and write the tables."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import scipy

from unsample import __version__
from unsample._checks import check_integer
from unsample._files import unwritable
from unsample._progress import Progress
from unsample._threads import one_thread
from unsample.errors import WorkerError
from unsample.lab._train import load_trained, train
from unsample.lab.datasets import ExactRanks, load_ranks
from unsample.lab.paper._cells import CellResult, compute_cell
from unsample.lab.paper._claims import claim_rows
from unsample.lab.paper._exhibits import deviations
from unsample.lab.paper._spec import Cell, Spec
from unsample.lab.paper._tables import Reproduction, Rows, make_tables, write_json, write_rows

#: Where the folder of a run keeps the ranks of recommenders that were trained for it.
_RANKS = "ranks"


def run(
    spec: Spec,
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> Reproduction:
    """Compute all cells, write the tables into ``folder``, and return them.

    ``workers`` processes share the cells, and change nothing but the time; a script that asks for
    more than one must guard its main part by ``__name__``, as always with processes. Ranks of
    recommenders that are trained (``spec.retrain``) stay in the folder, and are trained once.
    """
    workers = check_integer("workers", workers, minimum=1)
    started, place = time.monotonic(), Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise unwritable(place, problem) from problem
    if spec.retrain:
        _train_missing(spec, place / _RANKS, progress)
    results, cells = {}, spec.cells()
    for cell, result in _computed(spec, place, cells, workers):
        results[cell] = result
        if progress is not None:
            progress(len(results), len(cells), cell.name)
    about = {
        dataset: ranks_of(spec, place, Cell(dataset, "all", spec.recommenders[0], 0)).provenance
        for dataset in spec.datasets
    }
    tables = make_tables(spec, results, about)
    tables["claims"] = tuple(claim_rows(tables))
    return _written(spec, tables, place, time.monotonic() - started)


def ranks_of(spec: Spec, folder: Path, cell: Cell) -> ExactRanks:
    """Return the ranks of a cell's recommender: those that ship, or those trained for this run."""
    name = {"dataset": cell.dataset, "recommender": cell.recommender, "candidates": cell.candidates}
    if not spec.retrain:
        return load_ranks(**name)
    found = load_trained(folder / _RANKS, **name)
    assert found is not None
    return found


def _train_missing(spec: Spec, folder: Path, progress: Progress | None) -> None:
    """Train the recommenders whose ranks are not in the folder yet: this is what takes longest."""
    for dataset in spec.datasets:
        for recommender in spec.recommenders:
            if load_trained(folder, dataset, recommender, candidates="all") is None:
                train(dataset, recommender, progress=progress).save(folder)


def _compute(spec: Spec, folder: Path, cell: Cell) -> tuple[Cell, CellResult]:
    with one_thread():  # the other workers have the other cores
        known = ranks_of(spec, folder, cell)
        return cell, compute_cell(spec, cell, known.ranks, known.items)


def _computed(
    spec: Spec, folder: Path, cells: Sequence[Cell], workers: int
) -> Iterator[tuple[Cell, CellResult]]:
    """Yield cells with their results as they are done."""
    work = partial(_compute, spec, folder)
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


def _written(spec: Spec, tables: dict[str, Rows], folder: Path, seconds: float) -> Reproduction:
    for name, rows in tables.items():
        write_rows(folder, name, rows)
    versions = {
        "unsample": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
    listed = [{"id": key, "text": text} for key, text in deviations().items()]
    settings = {
        **asdict(spec),
        "versions": versions,
        "deviations": listed,
        "seconds": round(seconds, 3),
    }
    write_json(folder / "settings.json", settings)
    return Reproduction(**tables, settings=settings)
