"""Verdicts on pairs of models, corrected for the number of pairs, and the resulting places."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from unsample.answers._comparison import Difference
from unsample.confidence import holm


def corrected(
    differences: list[Difference],
    correction: str,
    level: float,
    family: int,
    *,
    by_chance: bool = False,
) -> list[Difference]:
    """Return the differences with corrected p-values and the verdicts that follow from them.

    ``family`` is the number of pairs that might have been compared. With ``by_chance``, a chance of
    at least ``level`` after the same correction is a verdict too; the others are ``proven``.
    """

    def correct(plain: list[float]) -> list[float]:
        if correction == "holm":
            return holm(plain, family)
        factor = family if correction == "bonferroni" else 1
        return [min(1.0, factor * p_value) for p_value in plain]

    p_values = correct([pair.p_value for pair in differences])
    doubts = correct([min(pair.chance, 1.0 - pair.chance) for pair in differences])
    found = []
    for pair, p_value, doubt in zip(differences, p_values, doubts, strict=True):
        better = pair.a if pair.least > 0.5 else pair.b
        proven = better if p_value <= 1.0 - level else None
        winner = proven
        if by_chance and proven is None and doubt <= 1.0 - level:
            winner = pair.a if pair.chance > 0.5 else pair.b
        found.append(replace(pair, p_value=p_value, winner=winner, proven=proven))
    return found


def places_by(names: Iterable[str], differences: Iterable[Difference]) -> dict[str, int]:
    """Return 1 for models that no other beats, 2 for those beaten by one of them, and so on.

    Verdicts on pairs need not be transitive. Models that beat each other in a circle, and those
    that they beat, share the last place, which is never the first.
    """
    beaten_by = dict.fromkeys(names, 0)
    beats: dict[str, list[str]] = defaultdict(list)
    for pair in differences:
        if pair.winner is not None:
            loser = pair.b if pair.winner == pair.a else pair.a
            beats[pair.winner].append(loser)
            beaten_by[loser] += 1
    places: dict[str, int] = {}
    place, level = 1, [name for name, count in beaten_by.items() if count == 0]
    while level:
        places |= dict.fromkeys(level, place)
        below = []
        for loser in itertools.chain.from_iterable(beats[name] for name in level):
            beaten_by[loser] -= 1
            if beaten_by[loser] == 0:
                below.append(loser)
        place, level = place + 1, below
    return dict.fromkeys(beaten_by, max(place, 2)) | places
