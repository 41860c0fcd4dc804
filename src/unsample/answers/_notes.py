"""`Note`: what a reader must know before using a number, by a name and in a sentence."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from unsample.errors import BiasedMethodWarning, RefutedWarning, UnsampleWarning

#: Names of notes that have a warning of their own, by which Python's filters know them.
_CATEGORIES: dict[str, type[UnsampleWarning]] = {
    "biased": BiasedMethodWarning,
    "outside": BiasedMethodWarning,
    "refuted": RefutedWarning,
}


@dataclass(frozen=True)
class Note:
    """What a reader must know: the ``name`` is for programs, the ``text`` for people."""

    name: str
    text: str


def warn_of(notes: Iterable[Note], stacklevel: int) -> None:
    """Raise each note once as a warning of Python, ``stacklevel`` calls above this one."""
    for note in dict.fromkeys(notes):
        category = _CATEGORIES.get(note.name, UnsampleWarning)
        warnings.warn(note.text, category, stacklevel=stacklevel + 1)
