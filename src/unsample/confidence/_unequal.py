"""How sure we are where negatives were not drawn uniformly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from unsample._checks import FloatArray, IntArray, check_level
from unsample.confidence._certainty import RESOLVED, Certainty
from unsample.confidence._limits import MeanLimits, OverBins, evidence_grid, group_ends
from unsample.confidence._means import MeanError
from unsample.confidence._strata import Stratum
from unsample.estimators import HitLaw
from unsample.evidence import RankCounts
from unsample.metrics import Metric

#: How far the log chance of seeing an item at the top may differ from what was learned further
#: down, beside its error. Chosen while looking at EASE and itemKNN on ml-1m and citeulike-a.
_DRIFT = 0.1


@dataclass(frozen=True, eq=False)
class StratumBehind(Stratum):
    """Targets that some items are known to beat; P(R) is that of their rank among the others."""

    #: The fewest and the most items that are known to beat one of them.
    span: tuple[int, int] = (0, 0)
    #: The rank down to which one sampled item falls, where a law was learned.
    blind: float | None = None

    @classmethod
    def drawn_alike(
        cls, counts: RankCounts, span: tuple[int, int], cutoffs: list[int], share: float
    ) -> StratumBehind:
        """Prepare targets whose other items were all drawn with the same chance."""
        plain = Stratum.of(counts, cutoffs, share)
        return cls(counts, plain.grid, plain.evidence, share, plain.sizes, span=span)

    @classmethod
    def by_law(
        cls,
        counts: RankCounts,
        span: tuple[int, int],
        cutoffs: list[int],
        share: float,
        law: HitLaw,
    ) -> StratumBehind:
        """Prepare targets whose hits follow a law that was learned."""
        grid = evidence_grid(counts, [k for k in cutoffs if k <= counts.largest_catalogue])
        most = int(counts.low.max())
        wanted = [1 + round((k - 1) / law.blind_rank) for k in cutoffs]
        ends = group_ends(np.arange(1, max(most, 2)), wanted)
        shares = np.bincount(
            np.searchsorted(ends, counts.low), counts.weight, minlength=len(ends) + 1
        )

        def chances(ranks: FloatArray) -> FloatArray:
            below = law.up_to(ends - 1, ranks)
            return np.diff(below, axis=0, prepend=0.0, append=1.0)

        middle = (grid.low + grid.high) / 2.0
        expected = OverBins(
            *map(chances, (middle, grid.low.astype(float), grid.high.astype(float)))
        )
        limits = MeanLimits.of_shares(
            counts.largest_sample, ends, shares / shares.sum(), expected, counts.effective
        )
        sizes = int(counts.items.min()), counts.largest_catalogue
        return cls(counts, grid, (limits,), share, sizes, span=span, blind=law.blind_rank)

    @property
    def blind_rank(self) -> float:
        """Return the rank down to which one sampled item falls on average."""
        return super().blind_rank if self.blind is None else self.blind

    def weights_for(self, metric: Metric, side: int) -> OverBins:
        """Return what a program minimises, as if all had the most items ahead, or the fewest."""
        return super().weights_for(metric.behind(self.span[1] if side < 0 else self.span[0]), side)


@dataclass(frozen=True, eq=False)
class UnequalCertainty(Certainty):
    """How sure we are of a metric if items were drawn with unequal chances.

    ``others`` are the same under laws that are as wrong as they may be. ``best`` is the best rank
    that each target may have: one more than the number of items that were seen to beat it.
    """

    others: tuple[Certainty, ...] = ()
    best: IntArray = field(default_factory=lambda: np.ones(1, dtype=np.int64), repr=False)
    #: Whether the chances of what was drawn hold whatever the ranks are.
    exact: bool = True
    prepare: Callable[[Iterable[int]], Certainty] | None = field(default=None, repr=False)

    def at(self, counts: RankCounts, cutoffs: Iterable[int]) -> Certainty:
        """Return the same, prepared for other cutoffs."""
        return self if self.prepare is None else self.prepare(cutoffs)

    @property
    def assumes(self) -> str:
        """Return the assumption behind the intervals, as the end of a sentence."""
        if not self.strata:
            return "nothing"
        shape = f"{self.shape_in_use()}"
        if self.exact:
            return shape
        return f"{shape}, and that which items beat a target changes smoothly along the ranks"

    def bounds(self, metric: Metric, level: float = 0.95) -> tuple[float, float]:
        """Return limits that hold whatever P(R) is.

        Where chances differ by item, only the items seen to beat a target are certain.
        """
        if self.exact:
            return super().bounds(metric, level)
        values = metric.weights(self.best, self.counts.largest_catalogue)
        error = MeanError.of(values, np.ones(len(values)), metric)
        return 0.0, error.interval(float(values.mean()), check_level(level))[1]

    def interval(
        self, metric: Metric, level: float = 0.95, *, population: bool = True
    ) -> tuple[float, float]:
        """Return an interval that covers the metric under all these laws."""
        if not self.strata:
            return self.bounds(metric, level)
        found = [super().interval(metric, level, population=population)]
        found += [each.interval(metric, level, population=population) for each in self.others]
        least, most = self.bounds(metric, level)
        low, high = min(ends[0] for ends in found), max(ends[1] for ends in found)
        return max(low, least), max(min(high, most), low)

    def resolves(self, metric: Metric) -> bool:
        """Return whether the sample settles the metric, the chance of so many targets aside."""
        ends = [
            affine.expected
            for each in (self, *self.others)
            for affine in (each.affine_bound(metric, -1), each.affine_bound(metric, 1))
        ]
        low, high = min(ends), max(ends)
        return high - low <= RESOLVED * (max(low, 0.0) + high)


def laws_allowed(law: HitLaw) -> tuple[HitLaw, HitLaw]:
    """Return the learned law, moved to either side as far as it may be wrong."""
    off = 2.0 * law.error + _DRIFT
    return law.moved(-off), law.moved(off)
