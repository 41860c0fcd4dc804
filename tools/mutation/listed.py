"""Mutants that are listed with a reason, in ``tools/mutants/ROOM.toml``.

An entry names the file below src/unsample, the function, and, blanks as one space, the line as it
is and as it becomes; either may be a list, for mutants that share a reason. Without ``mutated`` it
speaks of all mutants of the lines, without ``original`` of the whole function.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation.mutations import Mutant


@dataclass(frozen=True)
class Listed:
    """An entry: mutants alike in file and function, whether anyone could see them, and why."""

    file: str
    function: str
    original: tuple[str, ...]
    mutated: tuple[str, ...]
    reason: str
    equivalent: bool

    def holds(self, mutant: Mutant) -> bool:
        """Return whether the entry speaks of this mutant."""
        return (
            mutant.file == f"src/unsample/{self.file}"
            and mutant.function == self.function
            and (not self.original or mutant.original in self.original)
            and (not self.mutated or mutant.mutated in self.mutated)
        )


def read_listed(folder: Path) -> list[Listed]:
    """Return the entries of all rooms."""
    return [
        Listed(
            file=entry["file"],
            function=entry["function"],
            original=_lines(entry.get("original", [])),
            mutated=_lines(entry.get("mutated", [])),
            reason=entry["reason"],
            equivalent=kind == "equivalent",
        )
        for path in sorted(folder.glob("*.toml"))
        for kind, entries in tomllib.loads(path.read_text(encoding="utf-8")).items()
        for entry in entries
    ]


def _lines(given: str | list[str]) -> tuple[str, ...]:
    return tuple(" ".join(line.split()) for line in ([given] if isinstance(given, str) else given))


def stale(listed: Sequence[Listed], mutants: Sequence[Mutant]) -> list[str]:
    """Return the listed lines that no mutant has any more."""
    gone = []
    for entry in listed:
        held = [mutant for mutant in mutants if entry.holds(mutant)]
        missing = set(entry.mutated) - {mutant.mutated for mutant in held}
        missing |= set(entry.original) - {mutant.original for mutant in held}
        if not held or missing:
            gone.append(f"{entry.file} {entry.function}: {sorted(missing) or entry.reason}")
    return gone
