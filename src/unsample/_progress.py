"""Progress of a long computation: a line on a terminal, nothing elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

#: Seconds before a line is shown at all.
_PATIENCE = 2.0
#: The fewest seconds between two versions of the line.
_EVERY = 0.2
_WIDTH = 20


class Progress(Protocol):
    """A function that is called from time to time during a long computation."""

    def __call__(self, done: int, total: int, note: str = "") -> object:
        """Show that ``done`` of ``total`` steps are done, with a note on the last step."""


@contextmanager
def terminal_progress(label: str) -> Iterator[Progress | None]:
    """Yield a callback that draws a bar on standard error, or None if that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    began = time.monotonic()
    shown = 0.0

    def update(done: int, total: int, note: str = "") -> None:
        nonlocal shown
        now = time.monotonic()
        if now - began < _PATIENCE or now - shown < _EVERY:
            return
        shown = now
        full = _WIDTH * done // max(total, 1)
        bar = "#" * full + "." * (_WIDTH - full)
        line = f"{label} [{bar}] {done:,} of {total:,} {note}"
        # A line that is broken in two cannot be erased.
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[K{line[:width]}")
        sys.stderr.flush()

    try:
        yield update
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
