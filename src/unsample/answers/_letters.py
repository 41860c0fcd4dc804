"""Letters for models: those that share a letter cannot be told apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def letter_display(names: Sequence[str], apart: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the letters of each name; two names share one unless they are a pair in ``apart``.

    Letters follow the order of the names. All names start in one set. Each pair in turn splits the
    sets that contain both; a set within another is dropped (Piepho, 2004: insert and absorb).
    """
    groups = [frozenset(names)]
    for a, b in apart:
        split: list[frozenset[str]] = []
        for group in groups:
            split += [group - {a}, group - {b}] if {a, b} <= group else [group]
        groups = [each for each in dict.fromkeys(split) if not any(each < other for other in split)]
    place = {name: at for at, name in enumerate(names)}
    groups.sort(key=lambda group: sorted(place[name] for name in group))
    return {
        name: "".join(_letter(at) for at, group in enumerate(groups) if name in group)
        for name in names
    }


def _letter(number: int) -> str:
    """Return a, b, ..., z, a2, b2, ..."""
    turn, place = divmod(number, 26)
    return chr(ord("a") + place) + (str(turn + 1) if turn else "")
