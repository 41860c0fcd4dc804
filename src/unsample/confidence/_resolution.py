"""`Resolution`: at which K a metric is known to a precision, and at which it is not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unsample import metrics as _metrics
from unsample._checks import FloatArray, IntArray, check_level, check_real
from unsample.confidence._certainty import Certainty
from unsample.confidence._limits import quantile
from unsample.evidence import RankCounts

#: How many K are tried. Each takes two linear programs, and one more shows how far down the shape
#: holds. Where the shape is in doubt, or does not hold far down, a K takes more, and one is tried.
#: Shared samples always take more: of them, so many K are tried.
_TRIES, _TRIES_OF_OTHERS = 2, 3
#: An interval within this factor of the precision suggests the next K of the ladder; beyond it,
#: the K after that.
_NEAR = 1.6
#: What half an interval is about, as a share of its middle: see `_expected`. Fitted to 32 simulated
#: data sets. It decides only which K is tried first.
_OPEN, _DENTS, _SLOPE, _DEPTH, _CHANCE = 0.29, 1.6, 0.74, 0.45, 1.2


@dataclass(frozen=True)
class Resolution:
    """At which K of the ladder 1, 2, 5, 10, 20, 50, ... a metric is known to a precision."""

    metric: str
    precision: float
    #: The smallest K that was tried with success; None if there is none.
    k: int | None
    #: The largest K below it that was tried without success; 0 if there is none.
    open_k: int
    #: The rank above which no sampled item falls on average, about N/n.
    blind_rank: float

    @classmethod
    def find(
        cls,
        counts: RankCounts,
        certainty: Certainty | None,
        precision: float,
        metric: str,
        level: float,
    ) -> Resolution:
        """Search a K at which half the interval is at most ``precision`` of its middle.

        Full ranks have no ``certainty``: every K will do.
        """
        precision = check_real("precision", precision, low=0.0, high=1.0, open_low=True)
        level, blind = check_level(level), counts.blind_rank
        if certainty is None:
            return cls(metric, precision, 1, 0, blind)
        ladder = ladder_of(counts.largest_catalogue)
        dents = certainty.shape.dents
        excess = np.log(_expected(counts, ladder, blind, dents=dents, level=level) / precision)
        place = int(np.abs(excess).argmin())
        low, high = -1, len(ladder)
        furthest = _metrics.parse(f"{metric}@{ladder[min(place + 2, len(ladder) - 1)]}")
        tries = _TRIES_OF_OTHERS
        if type(certainty) is Certainty:
            easy = certainty.doubt == 0.0 and certainty.reach_is_clear(furthest)
            tries = _TRIES if easy else 1
        for _ in range(tries):
            if high - low == 1:
                break
            place = min(max(place, low + 1), high - 1)
            least, most = certainty.interval(_metrics.parse(f"{metric}@{ladder[place]}"), level)
            times = (most - least) / max(precision * (least + most), 1e-300)
            low, high = (low, place) if times <= 1.0 else (place, high)
            step = 1 if 1.0 / _NEAR < times < _NEAR else 2
            place += step if times > 1.0 else -step
        return cls(
            metric,
            precision,
            int(ladder[high]) if high < len(ladder) else None,
            int(ladder[low]) if low >= 0 else 0,
            blind,
        )

    def __str__(self) -> str:
        precise = f"within {100 * self.precision:g} %"
        if self.k is None:
            found = f"{self.metric}@K is not {precise} at K = {self.open_k:,}, the largest K tried"
        else:
            not_below = f", not at K = {self.open_k:,}" if self.open_k else ""
            found = f"{self.metric}@K is {precise} at K = {self.k:,}{not_below}"
        if self.blind_rank < 1.5:
            return found
        return (
            f"{found}; on average one sampled item falls into the top {self.blind_rank:,.0f}, "
            "so the sample says little about the ranks above that"
        )


def ladder_of(items: int) -> IntArray:
    """Return 1, 2, 5, 10, 20, 50, ... up to the number of items, which comes last."""
    tens = 10 ** np.arange(len(str(items)), dtype=np.int64)
    steps = np.outer(tens, [1, 2, 5]).ravel()
    return np.append(steps[steps < items], items)


def _expected(
    counts: RankCounts, cutoffs: IntArray, blind: float, *, dents: bool, level: float
) -> FloatArray:
    """Return about how wide half the interval of Recall@K is, as a share of its middle.

    What a shape leaves open falls as a power of K. It is less where Recall grows slowly with K.
    The chance of so many hits is added. A target of sampled rank r counts as a hit from about
    K = r N/n on. For smaller K than the first of these, Recall is taken as a power of K.
    """
    ranks, cell = np.unique(counts.low, return_inverse=True)
    shares = np.cumsum(np.bincount(cell.reshape(-1), counts.weight)) / counts.weight.sum()
    places, hits = np.log((ranks - 0.4) * blind), np.log(shares.clip(0.3 / counts.effective))
    end = min(places[0] + math.log(6.0), places[-1])
    slope = (np.interp(end, places, hits) - hits[0]) / max(end - places[0], 1.0)

    def recall(height: FloatArray) -> FloatArray:
        before = slope * np.minimum(height - places[0], 0.0)
        return np.asarray(np.interp(height, places, hits) + before)

    height = np.log(cutoffs)
    growth = (recall(height + 1.0) - recall(height)).clip(0.02, 2.0)
    share = np.exp(recall(height))
    chance = np.sqrt((1.0 - share).clip(1e-3) / (share * counts.effective))
    open_part = _OPEN * (_DENTS if dents else 1.0) * growth**_SLOPE * (cutoffs / blind) ** -_DEPTH
    return np.asarray(open_part + _CHANCE * quantile(level) * chance)
