"""The ranks that a room of rankings hands out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, IntArray

__all__ = ["FullRanks", "SampledRanks"]


@dataclass(frozen=True, eq=False)
class FullRanks:
    """Ranks among all candidates, one for each target.

    Attributes
    ----------
    ranks
        Global ranks R, from 1; whole numbers, except under the tie rule ``"realistic"``.
    items
        N of each target: how many candidates it was ranked among, itself included.
    ties
        How many other candidates have the target's score.
    """

    ranks: IntArray | FloatArray
    items: IntArray
    ties: IntArray

    def __len__(self) -> int:
        return len(self.ranks)

    def __repr__(self) -> str:
        tied = int(np.count_nonzero(self.ties))
        low, high = int(self.items.min()), int(self.items.max())
        return f"FullRanks({len(self)} targets, items={low}..{high}, {tied} targets with ties)"


@dataclass(frozen=True, eq=False)
class SampledRanks:
    """Ranks among sampled items.

    Attributes
    ----------
    ranks
        Sampled ranks r, from 1. Drawn ones have a row for each repeat and a column for each
        target; ranks against given negatives are one row, without the leading axis.
    sampled
        How many items each target was compared with (itself not counted).
    items
        N of each target, or None where it is not known (published negatives).
    """

    ranks: IntArray | FloatArray
    sampled: IntArray
    items: IntArray | None = None

    def __len__(self) -> int:
        return int(self.ranks.shape[-1])

    def __repr__(self) -> str:
        low, high = int(self.sampled.min()), int(self.sampled.max())
        repeats = 1 if self.ranks.ndim == 1 else len(self.ranks)
        return f"SampledRanks({len(self)} targets, {repeats} repeats, sampled={low}..{high})"
