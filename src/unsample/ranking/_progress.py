"""What a long computation tells about how far it is."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Progress"]


class Progress(Protocol):
    """Called now and then with the steps done, the steps in all, and a word on the last one."""

    def __call__(self, done: int, total: int, note: str = "") -> object:
        """Take note of ``done`` of ``total`` steps."""
