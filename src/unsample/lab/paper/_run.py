"""Running an experiment: every cell once, in several processes, then the tables from all of them.

A process computes its cells with one thread of linear algebra: the matrices of a cell are small,
and threads inside them gain less than cells side by side.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import scipy

from unsample import __version__
from unsample._checks import check_integer
from unsample._progress import Progress
from unsample.errors import FileError, WorkerError
from unsample.lab._train import train
from unsample.lab.datasets import load_ranks
from unsample.lab.paper._cells import CellResult, Ranks, compute_cell
from unsample.lab.paper._claims import claim_rows
from unsample.lab.paper._exhibits import deviations
from unsample.lab.paper._folder import RunFolder
from unsample.lab.paper._spec import Cell, Spec
from unsample.lab.paper._tables import (
    Cells,
    Reproduction,
    accuracy_rows,
    distribution_rows,
    load_results,
    statistics_rows,
    sweep_rows,
    winner_rows,
    write_json,
    write_rows,
)


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


# -- cells ------------------------------------------------------------------------------------


def _compute_missing(place: RunFolder, workers: int, progress: Progress | None) -> int:
    """Compute the cells that are not in the folder yet, and return how many those were."""
    cells = place.spec.cells()
    missing = [cell for cell in cells if place.load(cell) is None]
    if place.spec.retrain:
        _train(missing, place, progress)
    computed = compute_all(missing, partial(_compute, place), workers=workers)
    notes = chain(["cells"], (cell.name for cell in computed))
    for done, note in enumerate(notes, start=len(cells) - len(missing)):
        if progress is not None:
            progress(done, len(cells), note)
    return len(missing)


def _train(cells: Sequence[Cell], place: RunFolder, progress: Progress | None) -> None:
    """Train every recommender that the cells need, and keep its ranks."""
    for cell in cells:
        if place.load_ranks(cell) is None:
            found = train(cell.dataset, cell.recommender, progress=progress)
            sizes = found.catalogues
            if cell.candidates == "all":
                sizes = np.full_like(sizes, found.split["items"])
            place.save_ranks(cell, Ranks(found.ranks[cell.candidates], sizes))


def _compute(place: RunFolder, cell: Cell) -> None:
    """Compute one cell and write it; the work of a worker."""
    if place.spec.retrain:
        ranks = place.load_ranks(cell)
        if ranks is None:
            raise FileError(f"the ranks trained for {cell.name} are gone; run the command again")
    else:
        bundled = load_ranks(cell.dataset, cell.recommender, candidates=cell.candidates)
        ranks = Ranks(bundled.ranks, bundled.items)
    place.save(cell, compute_cell(place.spec, cell, ranks))


def _finished(place: RunFolder, cell: Cell) -> CellResult:
    result = place.load(cell)
    if result is None:
        raise FileError(f"the results of {cell.name} are gone; run the same command again")
    return result


# -- processes --------------------------------------------------------------------------------


def compute_all(
    cells: Sequence[Cell], work: Callable[[Cell], None], *, workers: int
) -> Iterator[Cell]:
    """Do ``work`` for every cell, and yield each cell when it is done."""
    if workers == 1 or len(cells) < 2:
        for cell in cells:
            work(cell)
            yield cell
        return
    before = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(
        min(workers, len(cells)), multiprocessing.get_context("spawn"), _begin_worker
    )
    running = True
    try:
        with _interrupts_ignored():
            futures = {executor.submit(work, cell): cell for cell in cells}
        for future in as_completed(futures):
            future.result()
            yield futures[future]
        running = False
    except BrokenProcessPool as problem:
        raise WorkerError(
            "a process that computed cells was ended from outside (out of memory?); what is "
            "finished is kept, run the same command again, with fewer --workers perhaps"
        ) from problem
    finally:
        if running:  # a cell failed, or the run is asked to end: nobody waits for the others
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
        executor.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Let processes that are started meanwhile take no notice of Ctrl-C: their parent ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(ImportError):
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)


def _end_with_parent() -> None:
    """End this process when its parent has ended for any reason."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# -- tables -----------------------------------------------------------------------------------


def _write_tables(spec: Spec, results: Cells, folder: Path) -> None:
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
    versions = {
        "unsample": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
    listed = [{"id": key, "text": text} for key, text in deviations().items()]
    settings = {"digest": spec.digest, "versions": versions, "deviations": listed}
    write_json(folder / "settings.json", {**spec.to_dict(), **settings})
