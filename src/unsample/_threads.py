"""Use one BLAS thread for matrix products that are too small for several.

On a busy machine the threads of a product of a few hundred rows wait for each other, and wall time
is many times processor time. Limits belong to the whole process. So the first of our calls that
starts sets them, and the last one that ends removes them, in whatever threads the calls run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

Given = TypeVar("Given")
Done = TypeVar("Done")


class _Limit:
    def __init__(self) -> None:
        self.lock, self.inside, self.known = Lock(), 0, -1
        self.libraries: Any = None
        self.taken: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.taken = self._set()
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0 and self.taken is not None:
                # OpenBLAS obeys the thread that set the limit, which may not be the last to leave.
                _release()
                self.taken.restore_original_limits()
                _release()
                self.taken = None

    def _set(self) -> Any:
        try:
            from threadpoolctl import ThreadpoolController
        except ImportError:  # there are no threads, as in a browser
            return None
        # SciPy has a BLAS of its own, which may be loaded after the first call.
        loaded = sum(name in sys.modules for name in ("scipy.linalg", "scipy.optimize", "torch"))
        if loaded != self.known:
            self.libraries, self.known = ThreadpoolController(), loaded
        return self.libraries.limit(limits=1, user_api="blas")


def _release() -> None:
    from threadpoolctl import OpenBLASController

    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


_limit = _Limit()


def blas_threads() -> int:
    """Return how many threads BLAS would use."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return 1
    found = [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]
    return max(found, default=1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread; the old number is restored when the last caller leaves."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


def in_threads(
    work: Callable[[Given], Done], jobs: Iterable[Given], workers: int
) -> Iterator[Done]:
    """Yield the results of all jobs, in their order."""
    if workers == 1:
        yield from map(work, jobs)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(work, jobs)
