"""Use one BLAS thread for matrix products that are too small for several.

On a busy machine the threads of a product of a few hundred rows wait for each other, and wall time
is many times processor time. Limits belong to the whole process. So the first of our calls that
starts sets them, and the last one that ends removes them, in whatever threads the calls run.

It is also what makes forks safe. A product that takes several threads locks OpenBLAS while it runs,
and the child of a fork in this moment would wait for ever at its own first product.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Generic, Self, TypeVar, overload

from unsample._rules import ONCE, import_whole

#: Modules that are imported late, where they are needed. A thread may fork while another one
#: computes, so all of them are imported when the first computation begins.
_NEEDED = ("scipy.sparse", "scipy.linalg", "scipy.optimize")

Given = TypeVar("Given")
Done = TypeVar("Done")


class cached_property(Generic[Given, Done]):  # noqa: N801 - as that of functools
    """A property that an object computes once, as in `functools`, but without a lock.

    Up to Python 3.11 all objects of a class share the lock of `functools`: threads wait for each
    other, and the child of a fork waits for threads that it does not have. Here two threads may
    compute a value at the same time. Both then get the value of the thread that was first.
    """

    def __init__(self, compute: Callable[[Given], Done]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Given, owner: type) -> Done: ...
    def __get__(self, instance: Given | None, owner: type) -> Self | Done:
        if instance is None:
            return self
        value = self.compute(instance)
        first_value: Done = vars(instance).setdefault(self.name, value)
        return first_value


class _Limit:
    """The limit of BLAS threads while calls are inside; it belongs to the whole process."""

    def __init__(self) -> None:
        #: How many libraries with a BLAS were loaded when they were last looked for.
        self.loaded = -1
        #: The thread of each call that is inside.
        self.inside: dict[object, int] = {}
        #: The BLAS libraries, and the limit that is set on them.
        self.libraries: Any = None
        self.limits: Any = None

    def enter(self) -> object:
        """Set the limit if no other call has, and return a token for `leave`."""
        call = object()
        if self.loaded < 0:
            for module in _NEEDED:
                import_whole(module)
        with ONCE:
            if not self.inside:
                self.limits = self._set()
            self.inside[call] = get_ident()
        return call

    def leave(self, call: object) -> None:
        """Remove the limit if no other call is inside."""
        with ONCE:
            self.inside.pop(call, None)
            self._remove_if_unused()

    def after_fork_in_child(self) -> None:
        """Forget the calls of threads that the child does not have."""
        own = get_ident()
        self.inside = {call: thread for call, thread in self.inside.items() if thread == own}
        self._remove_if_unused()

    def _remove_if_unused(self) -> None:
        if self.inside or self.limits is None:
            return
        # OpenBLAS obeys the thread that set the limit, which may not be the last to leave.
        _release()
        self.limits.restore_original_limits()
        _release()
        self.limits = None

    def _set(self) -> Any:
        """Limit BLAS to one thread, and return the limit; None where there are no threads."""
        try:
            from threadpoolctl import ThreadpoolController
        except ImportError:  # there are no threads, as in a browser
            return None
        # SciPy has a BLAS of its own, which may be loaded after the first call.
        loaded = sum(name in sys.modules for name in ("scipy.linalg", "scipy.optimize", "torch"))
        if loaded != self.loaded:
            self.libraries = ThreadpoolController()
            self.loaded = loaded
        return self.libraries.limit(limits=1, user_api="blas")


def _release() -> None:
    """Let any thread change the limit of OpenBLAS."""
    from threadpoolctl import OpenBLASController

    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.after_fork_in_child)


def blas_threads() -> int:
    """Return how many threads BLAS would use."""
    try:
        with ONCE:
            from threadpoolctl import threadpool_info
    except ImportError:
        return 1
    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(threads, default=1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread; the old number is restored when the last caller leaves."""
    call = _limit.enter()
    try:
        yield
    finally:
        _limit.leave(call)


def in_threads(
    work: Callable[[Given], Done], jobs: Iterable[Given], workers: int
) -> Iterator[Done]:
    """Yield the results of all jobs, in their order.

    >>> list(in_threads(abs, [-1, 2], workers=2))
    [1, 2]
    """
    if workers == 1:
        yield from map(work, jobs)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(work, jobs)
