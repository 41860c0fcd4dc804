"""How the command speaks: warnings, details and colours, all of them to standard error.

Verbs say things through `log`. ``--quiet`` leaves errors alone, ``--verbose`` adds what was done
and tracebacks. Results go to standard output whatever the manner, so that pipes get the same.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import platform
import shutil
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Annotated, get_type_hints

import typer

from unsample import __version__
from unsample._progress import terminal_progress
from unsample.cli._main import interrupted, reader_gone
from unsample.designs.ranking import Progress
from unsample.errors import FileError, InputError, OutputError, UnsampleError
from unsample.pages import printable

__all__ = [
    "colours",
    "complain",
    "listening",
    "log",
    "progress_bar",
    "say",
    "tracebacks_wanted",
    "with_manner",
]

log = logging.getLogger("unsample.cli")

_Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Leave out warnings and progress; errors remain.")
]
_Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Say what was done, and where an error comes from."),
]


def colours() -> bool | None:
    """Return False where colours are not wanted (NO_COLOR), or None: on terminals only."""
    return False if os.environ.get("NO_COLOR") else None


class _Speaker(logging.Handler):
    """Writes to standard error: details dim, warnings once each, folded on a terminal only."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        text = record.getMessage()
        if record.levelno < logging.WARNING:
            _murmur(text, dim=True)
        elif text not in self._said:
            self._said.add(text)
            line = f"warning: {text}"
            if sys.stderr.isatty():
                line = textwrap.fill(line, width=shutil.get_terminal_size().columns)
            _murmur(f"\n{line}", colour=typer.colors.YELLOW)


def say(text: str = "", *, bold: bool = False) -> None:
    """Write to standard output, and complain where that takes no more.

    Names that come from files have no power over the terminal: their control characters show.
    """
    try:
        typer.secho(printable(text), bold=bold)
    except BrokenPipeError:
        raise reader_gone() from None
    except OSError as problem:
        raise OutputError(
            f"cannot write to standard output: {problem.strerror}; the result is not complete"
        ) from problem


def complain(text: str) -> None:
    """Write why the command failed."""
    _murmur(f"unsample: {text}", colour=typer.colors.RED)


def _murmur(text: str, *, colour: str | None = None, dim: bool | None = None) -> None:
    # Where standard error is full or gone, nobody can be told; the results must not suffer.
    with suppress(OSError):
        typer.secho(printable(text), err=True, fg=colour, dim=dim, color=colours())


@contextmanager
def listening() -> Iterator[None]:
    """Let messages reach standard error, at the usual loudness, until the command ends."""
    speaker, level, propagate = _Speaker(), log.level, log.propagate
    log.addHandler(speaker)
    log.setLevel(logging.WARNING)
    log.propagate = False
    try:
        with warnings.catch_warnings():
            # Where a warning comes from in our code is nothing to a user of the command.
            warnings.showwarning = lambda message, *_: log.warning("%s", message)
            yield
    finally:
        log.removeHandler(speaker)
        log.setLevel(level)
        log.propagate = propagate


def tracebacks_wanted() -> bool:
    """Return whether an error made on purpose should show where it comes from."""
    return log.isEnabledFor(logging.DEBUG)


def progress_bar(label: str) -> AbstractContextManager[Progress | None]:
    """Return a progress bar on a terminal; nothing elsewhere, and nothing when quiet."""
    return terminal_progress(label) if log.isEnabledFor(logging.WARNING) else nullcontext(None)


def with_manner(verb: Callable[..., None]) -> Callable[..., None]:
    """Return the verb with ``--quiet`` and ``--verbose`` behind its own options.

    Here alone are keyword arguments passed through: typer reads the signature, which is complete.
    """
    hints = get_type_hints(verb, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(verb).parameters.items()
    ]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("quiet", _Quiet), ("verbose", _Verbose))
    ]

    @functools.wraps(verb)
    def spoken(*, quiet: bool, verbose: bool, **options: object) -> None:
        _set_loudness(quiet, verbose)
        started = time.perf_counter()
        log.debug("unsample %s, Python %s", __version__, platform.python_version())
        with _strays_caught():
            verb(**options)
        log.debug("took %.2f s, %s at most", time.perf_counter() - started, _peak_memory())

    spoken.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    spoken.__annotations__ = hints | {"quiet": _Quiet, "verbose": _Verbose}
    return spoken


@contextmanager
def _strays_caught() -> Iterator[None]:
    """Keep from typer what it would hide, and from people what they cannot read."""
    try:
        yield
    except UnsampleError:
        raise
    except KeyboardInterrupt:
        raise interrupted() from None
    except OSError as problem:
        what = "go on" if problem.filename is None else f"use {problem.filename!r}"
        raise FileError(f"cannot {what}: {problem.strerror or problem}") from problem


def _set_loudness(quiet: bool, verbose: bool) -> None:
    if quiet and verbose:
        raise InputError("quiet and verbose must not be given together; leave out one of them")
    log.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.WARNING)


def _peak_memory() -> str:
    try:
        import resource
    except ImportError:  # not on Windows
        return "memory unknown"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in kilobytes, macOS in bytes.
    return f"{peak / (1e6 if sys.platform == 'darwin' else 1e3):,.0f} MB"
