"""The way in: streams and signals first, so that even the imports can be interrupted cleanly.

Nothing is imported here that takes time. A signal that asks for an end is raised as `Stopped`
wherever the command happens to be, so that everything on the way out tidies up after itself.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

#: Signals by which a person, a scheduler or a closing terminal asks for an end.
_ENDINGS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal has gone"}
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


class Stopped(BaseException):
    """The command was asked to end; no Exception, so that nobody on the way up keeps it.

    Without a reason nobody reads the output any more (`unsample ... | head`).
    """

    def __init__(self, exit_code: int, reason: str = "") -> None:
        super().__init__(exit_code, reason)
        self.exit_code = exit_code
        self.reason = reason


def start(build: Callable[[], Callable[[], object]]) -> None:
    """Build the command and run it; whatever ends it, it ends with an exit code and no traceback.

    ``build`` does the imports that take time, so that signals are heard while it works.
    """
    _open_closed_streams()
    if "_UNSAMPLE_COMPLETE" in os.environ:
        # A shell waits for this process. Typer would load rich, where that can be found, to take
        # marks out of sentences that have none.
        sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    try:
        with _stopped_by_signals():
            from unsample.cli.console import run

            run(build)
    except Stopped as stopped:
        if stopped.reason:
            with suppress(OSError):
                sys.stderr.write(f"unsample: {stopped.reason}\n")
        else:
            silence_output()
        sys.exit(stopped.exit_code)


def silence_output() -> None:
    """Let what standard output could not take vanish; Python would try again at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Raise `Stopped` for a first signal; a second one ends the process at once."""
    before: dict[signal.Signals, Any] = {}

    def stop(number: int, _: FrameType | None) -> None:
        for every in before:
            signal.signal(every, signal.SIG_DFL)
        raise Stopped(128 + number, _ENDINGS[signal.Signals(number).name])

    for number in signal.Signals:
        # One that is ignored (nohup) stays so.
        if number.name in _ENDINGS and signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _open_closed_streams() -> None:
    """Open what the caller closed (``>&-``), so that no file of results becomes standard output."""
    for name, mode in _STREAMS:
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict" and mode == "w":
            # A terminal that has no character for a sign gets its number, not a traceback.
            stream.reconfigure(errors="backslashreplace")
