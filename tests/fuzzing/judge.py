"""What may happen to an input: an answer or an error made on purpose, soon, in little memory."""

from __future__ import annotations

import contextlib
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from unsample.errors import UnsampleError, UnsampleWarning

__all__ = ["Finding", "Limits", "judge", "minimised", "under"]

#: How often the clock is looked at while a parser runs.
_TICK_SECONDS = 0.25
_KILOBYTE = 1 << 10


@dataclass(frozen=True)
class Limits:
    """What a parser may take for one input."""

    seconds: float = 5.0
    #: How much the greatest memory of the process may grow.
    growth: int = 1 << 28
    #: How much address space there is beyond what is in use when fuzzing starts.
    space: int = 1 << 32
    #: The longest message: more than that nobody reads.
    message: int = 5_000


@dataclass(frozen=True)
class Finding:
    """A defect: the target, what happened and where, and the input that made it happen."""

    target: str
    kind: str
    where: str
    detail: str
    data: bytes

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return what two inputs share that show the same defect."""
        return self.target, self.kind, self.where


class _TooSlowError(BaseException):
    """Not an Exception, so that no parser catches it."""


class _Clock:
    """Interrupts whatever runs for longer than the limit; one timer serves all inputs."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.started: float | None = None

    def tick(self, _signal: int, _frame: FrameType | None) -> None:
        if self.started is not None and time.perf_counter() - self.started > self.seconds:
            self.started = None
            raise _TooSlowError


_Judge = Callable[[str, Callable[[bytes], object], bytes], "Finding | None"]


@contextlib.contextmanager
def under(limits: Limits) -> Iterator[_Judge]:
    """Give a function that runs a parser on an input under these limits, and judges it."""
    clock = _Clock(limits.seconds)
    space, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + limits.space, hard))
    handler = signal.signal(signal.SIGALRM, clock.tick)
    signal.setitimer(signal.ITIMER_REAL, _TICK_SECONDS, _TICK_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UnsampleWarning)
            yield lambda name, parse, data: judge(name, parse, data, limits, clock)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, (space, hard))


def judge(  # noqa: PLR0911 - one return for each thing that can go wrong
    name: str, parse: Callable[[bytes], object], data: bytes, limits: Limits, clock: _Clock
) -> Finding | None:
    """Run ``parse`` on ``data``; return what went wrong, or None."""
    before = _greatest_memory()
    started = clock.started = time.perf_counter()
    try:
        parse(data)
    except UnsampleError as problem:
        if len(str(problem)) > limits.message:
            return Finding(name, "message", _place(problem), f"{len(str(problem))} letters", data)
    except _TooSlowError as problem:
        return Finding(name, "hang", _place(problem), f"over {limits.seconds} s", data)
    except MemoryError as problem:
        return Finding(name, "memory", _place(problem), str(problem)[:200], data)
    except BaseException as problem:
        if isinstance(problem, KeyboardInterrupt | SystemExit):
            raise
        kind = "warning" if isinstance(problem, Warning) else "exception"
        detail = f"{type(problem).__name__}: {str(problem)[:200]}"
        return Finding(name, kind, f"{type(problem).__name__} at {_place(problem)}", detail, data)
    finally:
        clock.started = None
    if time.perf_counter() - started > limits.seconds:
        return Finding(name, "hang", "outside Python", f"over {limits.seconds} s", data)
    grown = _greatest_memory() - before
    if grown > limits.growth:
        return Finding(name, "memory", "growth", f"{grown >> 20} MB more", data)
    return None


def minimised(
    finding: Finding, again: Callable[[bytes], Finding | None], seconds: float = 30.0
) -> bytes:
    """Return a shorter input with the same defect: pieces are dropped as long as it remains."""
    data, piece = finding.data, max(1, len(finding.data) // 2)
    end = time.perf_counter() + seconds
    while piece and time.perf_counter() < end:
        start = 0
        while start < len(data) and time.perf_counter() < end:
            shorter = data[:start] + data[start + piece :]
            found = again(shorter)
            if found is not None and found.identity == finding.identity:
                data = shorter
            else:
                start += piece
        piece //= 2
    return data


def _place(problem: BaseException) -> str:
    """Return the innermost line of the package that an error passed through."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if "/unsample/" in frame.filename] or list(frames)
    where = ours[-1].filename.rpartition("/unsample/")[2]
    return f"{where}:{ours[-1].lineno}"


def _greatest_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KILOBYTE


def _address_space() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a file on a disk
        return int(file.read().split()[0]) * resource.getpagesize()
