"""`Origin`: what a command was given, for JSON and for pages."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

#: The version of the keys of `Result.to_dict`: it grows when a key changes its meaning or goes.
SCHEMA = 1


@dataclass(frozen=True)
class Origin:
    """The line of a command, the files that it was given, and its seed.

    Pages and JSON are passed on. So of each path the last name alone is kept.

    >>> Origin("unsample estimate ranks.csv", ("ranks.csv",), seed=0).settings
    (('Files', 'ranks.csv'), ('Seed', '0'), ('Command', 'unsample estimate ranks.csv'))
    """

    command: str
    files: tuple[str, ...]
    seed: int | None = None

    @classmethod
    def of(cls, words: Sequence[str], files: Sequence[str], *, seed: int | None) -> Origin:
        """Return the origin of a result, from the words of the command and those that are files.

        >>> words = ["unsample", "compare", "A=/home/me/a.csv", "b.csv"]
        >>> Origin.of(words, words[2:], seed=0).command
        'unsample compare A=a.csv b.csv'
        """
        line = shlex.join(map(_without_folders, words))
        return cls(line, tuple(map(_without_folders, files)), seed=seed)

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """Return what was given, as rows for people."""
        shown = (
            ("Files", ", ".join(self.files)),
            ("Seed", "" if self.seed is None else str(self.seed)),
            ("Command", self.command),
        )
        return tuple((name, text) for name, text in shown if text)

    def to_dict(self, targets: int | None) -> dict[str, Any]:
        """Return what was given as plain values; ``targets`` are the ranks that were read."""
        return {
            "command": self.command,
            "files": list(self.files),
            "rows": targets,
            "seed": self.seed,
        }


def _without_folders(word: str) -> str:
    """Return a word of a command; of a path, the last name alone.

    >>> [_without_folders(word) for word in ("--html=/tmp/a.html", "A=runs/a.csv", "-m", "HR@10")]
    ['--html=a.html', 'A=a.csv', '-m', 'HR@10']
    """
    name, equals, path = word.rpartition("=")
    last = PurePath(path).name if "/" in path or "\\" in path else path
    return f"{name.rpartition('/')[2]}{equals}{last}"
