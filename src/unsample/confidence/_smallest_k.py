"""The smallest K that a sample resolves to a given precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import check_level, check_real
from unsample.confidence._certainty import Certainty
from unsample.confidence._resolution import blind_rank
from unsample.evidence import RankCounts

__all__ = ["Resolution"]

#: Neighbouring K that are tried differ by about this factor.
_STEP = 1.12


@dataclass(frozen=True)
class Resolution:
    """From which K on a metric is known to a precision, and what stands in the way below it."""

    metric: str
    precision: float
    #: The smallest such K; None if there is none.
    k: int | None
    #: The rank above which no sampled item falls on average, about N/n.
    blind_rank: float

    @classmethod
    def find(
        cls,
        counts: RankCounts,
        certainty_at: Callable[[Iterable[int]], Certainty | None],
        precision: float,
        metric: str,
        level: float,
    ) -> Resolution:
        """Search the K at which half the interval is at most ``precision`` of its middle.

        ``certainty_at`` prepares what the data say for a list of K; it has none for full ranks.
        """
        precision = check_real("precision", precision, low=0.0, high=1.0, open_low=True)
        level = check_level(level)
        blind = blind_rank(counts)
        steps = int(np.log(counts.largest_catalogue) / np.log(_STEP)) + 2
        ladder = np.unique(np.geomspace(1, counts.largest_catalogue, steps).astype(np.int64))
        certainty = certainty_at(ladder.tolist())
        if certainty is None:
            return cls(metric, precision, 1, blind)
        # The relative width falls with K, but for noise: bisection finds where it passes.
        low, high = -1, len(ladder)
        while high - low > 1:
            middle = (low + high) // 2
            wide = certainty.interval(_metrics.parse(f"{metric}@{ladder[middle]}"), level)
            if wide[1] - wide[0] <= precision * (wide[0] + wide[1]):
                high = middle
            else:
                low = middle
        k = int(ladder[high]) if high < len(ladder) else None
        return cls(metric, precision, k, blind)

    def __str__(self) -> str:
        goal = f"{self.metric}@K within {self.precision:.0%}"
        found = f"no K gives {goal}" if self.k is None else f"{goal} needs K >= {self.k:,}"
        return (
            f"{found}; on average one sampled item falls into the top {self.blind_rank:,.0f}, "
            "and what lies above that is blurred"
        )
