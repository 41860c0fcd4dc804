"""Verdicts on pairs of models, corrected for the number of pairs."""

from __future__ import annotations

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
