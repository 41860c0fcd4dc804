"""Progress of a long computation: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from unsample._rules import import_extra


class Progress(Protocol):
    """Called from time to time with steps done, all steps, and a note on the last step."""

    def __call__(self, done: int, total: int, note: str = "") -> object:
        """Take note of ``done`` of ``total`` steps."""


@contextmanager
def terminal_progress(label: str) -> Iterator[Progress | None]:
    """Yield a callback that draws a bar on standard error, or None if that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    console = import_extra("rich.console", extra="recsys", purpose="A progress bar")
    progress = import_extra("rich.progress", extra="recsys", purpose="A progress bar")
    with progress.Progress(console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def update(done: int, total: int, note: str = "") -> None:
            bar.update(task, completed=done, total=total, description=f"{label} {note}".rstrip())

        yield update
