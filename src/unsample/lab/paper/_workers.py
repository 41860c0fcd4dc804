"""Computing cells in several processes, each with one thread of linear algebra.

The matrices of a cell are small: threads inside them gain less than cells side by side. A worker
asks for one cell after the other and ends when the pipe to its parent closes, so that none
outlives a run that was killed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import TypeAlias

from unsample.errors import WorkerError
from unsample.lab.experiment._spec import Cell

__all__ = ["compute_all"]

Work: TypeAlias = Callable[[Cell], None]

#: What numpy's libraries read, when they are loaded, to know how many threads to start.
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def compute_all(cells: Sequence[Cell], work: Work, *, workers: int) -> Iterator[Cell]:
    """Do ``work`` for every cell, and yield each cell when it is done."""
    if workers == 1 or len(cells) < 2:
        for cell in cells:
            work(cell)
            yield cell
        return
    with _processes(work, min(workers, len(cells))) as connections:
        yield from _dispatch(cells, connections)


def _dispatch(cells: Sequence[Cell], connections: list[Connection]) -> Iterator[Cell]:
    waiting = list(reversed(cells))
    busy: dict[Connection, Cell] = {}
    for connection in connections:
        busy[connection] = waiting.pop()
        _ask(connection, busy[connection])
    while busy:
        for ready in wait(list(busy)):
            assert isinstance(ready, Connection)
            cell = busy.pop(ready)
            problem = _answer(ready, cell)
            if problem is not None:
                raise problem
            if waiting:
                busy[ready] = waiting.pop()
                _ask(ready, busy[ready])
            yield cell


def _ask(connection: Connection, cell: Cell) -> None:
    # A worker that has gone says so when its answer is waited for.
    with suppress(OSError):
        connection.send(cell)


def _answer(connection: Connection, cell: Cell) -> Exception | None:
    try:
        problem: Exception | None = connection.recv()
    except (EOFError, OSError):
        return WorkerError(
            f"the process that computed {cell.name} was ended from outside (out of memory?); "
            "what is finished is kept, run the same command again, with fewer --workers perhaps"
        )
    return problem


@contextmanager
def _processes(work: Work, number: int) -> Iterator[list[Connection]]:
    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(number)]
    processes = [context.Process(target=_serve, args=(far, work), daemon=True) for _, far in pairs]
    try:
        with _one_thread_each(), _signals_held_back():
            for process in processes:
                process.start()
        for _, far in pairs:
            far.close()
        yield [near for near, _ in pairs]
    finally:
        for near, _ in pairs:
            near.close()
        for process in processes:
            if process.pid is not None:
                process.terminate()
                process.join()


def _serve(connection: Connection, work: Work) -> None:
    _hear_all_but_interrupts()
    while True:
        try:
            cell = connection.recv()
        except EOFError:
            return
        problem: Exception | None = None
        try:
            work(cell)
        except Exception as caught:  # noqa: BLE001 - handed to the parent, which raises it
            problem = caught
        try:
            connection.send(problem)
        except OSError:
            return


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Let no signal come between a process and what it must be told to start.

    Half told, it would end in a traceback. What is held back comes afterwards; the processes
    inherit it, and hear nothing while they start.
    """
    if sys.platform == "win32":
        yield
        return
    endings = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    # Whoever starts this helper of multiprocessing has its signals unmasked: it must run already.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, endings)
    try:
        with _handlers_held_back(endings):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handlers_held_back(endings: Sequence[signal.Signals]) -> Iterator[None]:
    """Call handlers afterwards: another thread may hear what this one has masked."""
    heard: list[int] = []
    own = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in endings} if own else {}
    held = {number: handler for number, handler in before.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for missed in heard:
            signal.raise_signal(missed)


def _hear_all_but_interrupts() -> None:
    # Ctrl-C reaches the parent as well, which ends its workers.
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP, signal.SIGTERM})


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes started meanwhile use one thread, and leave the environment as it was."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
