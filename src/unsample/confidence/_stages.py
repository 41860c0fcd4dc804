"""Evidence of samples that grew until enough items beat the target.

How many items such a target was compared with depends on its rank. So the targets of one sample
size are not a random part of all targets. But it can be counted how many targets survive each
stage: at its end they have been beaten fewer than ``stop`` times. Some targets are left behind, by
a draw or at a cap; given that they survived so far, this does not depend on their rank. So the
share that survives is the product over the stages of the shares of those looked at (Kaplan and
Meier 1958). Survival to a stage depends on the rank as it does in a fixed sample of that size.
Without replacement, targets that met all their candidates have known ranks, which divide the
survivors further.

Each stage is a sample of its own: of those who survived so far, some were looked at, and of these
some stopped. So the chance to survive a stage, for targets that reached it, has Clopper-Pearson
limits, also where few were looked at or nobody stopped. That chance is a ratio of two linear
functions of P(R), and a limit of it is a row of a linear program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from unsample._checks import BoolArray, FloatArray, IntArray
from unsample.confidence._limits import (
    GROUP_RATIO,
    MOST_TARGETS,
    MeanLimits,
    OverBins,
    Rows,
    Spread,
    clopper_pearson,
)
from unsample.errors import DesignError
from unsample.evidence import RankCounts, group_catalogues
from unsample.law import Law, RankGrid, RankPoints


@dataclass(frozen=True)
class Stage:
    """Groups ``first..last - 1`` ended here; those before ``first`` went further.

    ``targets`` is how many were looked at, of all that reached this stage.
    """

    first: int
    last: int
    targets: float


@dataclass(frozen=True, eq=False)
class StageLimits(MeanLimits):
    """Targets grouped by how far they came; those that went furthest come first."""

    #: Every stage varies by a chance of its own. Of 150 samples that grew under true shapes, 99 %
    #: need less than 0.29, and the most is 0.45.
    at_ease: ClassVar[tuple[float, float]] = (0.3, 0.8)

    #: From the last stage to the first.
    stages: tuple[Stage, ...]

    def proved_rows(self, alpha: float) -> Rows:
        """Return limits of the share that goes as far as each group, of those at the same stage."""
        steps = [
            (stage, end) for stage in self.stages for end in range(max(stage.first, 1), stage.last)
        ]
        if not steps:
            return Rows(np.zeros((0, len(self.observed))), np.zeros(0), np.zeros(0))
        targets = np.array([min(stage.targets, MOST_TARGETS) for stage, _ in steps])
        up_to = np.tri(len(self.observed) + 1, len(self.observed), -1)
        inner = up_to[[end for _, end in steps]]
        outer = up_to[[stage.last for stage, _ in steps]]
        share = (inner @ self.observed / np.maximum(outer @ self.observed, 1e-300)).clip(0.0, 1.0)
        low, high = clopper_pearson(share, share, targets, alpha / (2 * len(steps)))
        features = np.concatenate([inner - high[:, None] * outer, low[:, None] * outer - inner])
        return Rows(features, np.zeros(len(features)), features @ self.observed)

    def spread(self, scores: FloatArray, chances: FloatArray) -> Spread:
        """Return how the mean score varies, the draw of the targets that were followed included.

        Each stage adds the variance between those that end there and those that go further, who
        count by their mean. Half a target is added to each group, for what was not seen.
        """
        found = Spread()
        for stage in self.stages:
            total, further = float(chances[: stage.last].sum()), float(chances[: stage.first].sum())
            if total <= 0.0:
                continue
            values = scores[stage.first : stage.last]
            shares = chances[stage.first : stage.last] / total
            if stage.first:
                inside = chances[: stage.first] + 1e-300
                values = np.append(values, inside @ scores[: stage.first] / inside.sum())
                shares = np.append(shares, further / total)
            shares = shares * stage.targets + 0.5
            found += Spread.of(values, shares / shares.sum(), stage.targets).scaled(total)
        return found

    def variance_of_these(
        self, scores: FloatArray, weights: FloatArray, mass: FloatArray
    ) -> float | None:
        """Return None: those followed were drawn, so these users vary as much as others would."""
        return None


def gather_stages(
    counts: RankCounts, grid: RankGrid, sizes: tuple[int, int], stop: int
) -> StageLimits:
    """Return the evidence of counts whose samples grew until ``stop`` items beat the target.

    ``sizes`` are the least and the greatest catalogue, as in `gather`.
    """
    if (counts.low < counts.high).any():
        raise DesignError("stop needs single sampled ranks, got ranges of ranks")
    # Survival to a stage is that in any sample of its size, whether ranks are known or not.
    alike = np.ones_like(counts.sampled)
    catalogues = group_catalogues(replace(counts, sampled=alike, low=alike, high=alike))
    smallest, largest = (
        replace(catalogues, items=np.full_like(catalogues.items, size)) for size in sizes
    )
    shares, stages = _shares_of_groups(counts, stop)
    expected = OverBins(
        *(
            _chances_of_groups(counts, where, places, stop)
            for where, places in (
                (catalogues, grid),
                (largest, grid.firsts),
                (smallest, grid.lasts),
            )
        )
    )
    known = MeanLimits.of_shares(
        0, np.arange(1, len(shares)), shares, expected, _as_many(shares, stages, counts.effective)
    )
    return StageLimits(**vars(known), stages=stages)


def _as_many(shares: FloatArray, stages: tuple[Stage, ...], most: float) -> float:
    """Return how many targets, all followed to the end, would leave shares as uncertain."""
    survivors = variance = 0.0
    found = [most]
    for stage in reversed(stages):
        before, survivors = float(shares[: stage.last].sum()), float(shares[: stage.first].sum())
        hazard = 1.0 - survivors / before if before > 0.0 else 0.0
        if 0.0 < hazard < 1.0 and survivors < 1.0:
            variance += hazard / ((1.0 - hazard) * stage.targets)
            found.append((1.0 - survivors) / (survivors * variance))
    return min(found)


def _sizes(counts: RankCounts) -> list[int]:
    """Return the sample sizes at the ends of the stages."""
    return [int(size) for size in np.unique(counts.sampled[~counts.known & (counts.weight > 0)])]


def _stopped(counts: RankCounts, size: int, stop: int) -> BoolArray:
    """Return which cells hold targets that were beaten often enough by the end of a stage."""
    return np.asarray(~counts.known & (counts.low > stop) & (counts.sampled == size))


def _ends_of_first(counts: RankCounts, size: int, stop: int) -> IntArray:
    """Return the ends of the groups that stop at the first stage, where ranks are known."""
    return _growing(stop, size + 1) if _stopped(counts, size, stop).any() else np.array([size + 1])


def _shares_of_groups(counts: RankCounts, stop: int) -> tuple[FloatArray, tuple[Stage, ...]]:
    """Return the share of all targets in each group, and where the stages are among them."""
    known, total = counts.known, float(counts.weight.sum())
    survivors = 1.0
    #: From the first stage to the last: the shares of the groups that end there, and who was seen.
    found: list[tuple[list[float], float]] = []
    for number, size in enumerate(_sizes(counts)):
        at_risk = np.where(known, counts.items - 1 > size, counts.sampled >= size)
        looked_at = float(counts.weight[at_risk].sum())
        here = _stopped(counts, size, stop)
        hazard = float(counts.weight[here].sum()) / looked_at
        parts = [1.0]
        if number == 0 and here.any():
            parts = _shares(counts, here, _ends_of_first(counts, size, stop))
        found.append(
            ([survivors * hazard * part for part in parts], counts.effective * looked_at / total)
        )
        survivors *= 1.0 - hazard
    complete = known & (counts.weight > 0)
    parts = [1.0]
    if complete.any():
        parts = _shares(counts, complete, _growing(0, counts.largest_catalogue))
    seen = counts.effective * float(counts.weight[complete].sum()) / total
    found.append(([survivors * part for part in parts], seen))
    shares: list[float] = []
    stages = []
    for parts, seen in reversed(found):
        stages.append(Stage(len(shares), len(shares) + len(parts), seen))
        shares += parts
    return np.array(shares), tuple(stage for stage in stages if stage.targets > 0)


def _chances_of_groups(
    counts: RankCounts, catalogues: RankCounts, places: RankGrid | RankPoints, stop: int
) -> FloatArray:
    """Return P(group | bin), in the order of `_shares_of_groups`."""
    before = np.ones(len(places))
    groups: list[FloatArray] = []
    for number, size in enumerate(_sizes(counts)):
        # Small catalogues drop out on the way; the chance must not rise because of that.
        after = np.minimum(_chance(1, stop, size, catalogues, places), before)
        rows = [before - after]
        if number == 0 and _stopped(counts, size, stop).any():
            ends = _ends_of_first(counts, size, stop)
            starts = [stop + 1, *(ends[:-1] + 1)]
            rows = [
                _chance(low, high, size, catalogues, places)
                for low, high in zip(starts, ends, strict=True)
            ]
            # Ranks beyond the end of a catalogue have no law: they belong to the last group.
            rows[-1] = rows[-1] + np.maximum(before - after - np.sum(rows, axis=0), 0.0)
        groups = rows + groups
        before = after
    split = [before]
    if (counts.known & (counts.weight > 0)).any():
        ends = _growing(0, counts.largest_catalogue)
        bins = np.searchsorted(ends, places.high)
        split = [before * (bins == number) for number in range(len(ends))]
    return np.stack(split + groups)


def _chance(
    low: int, high: int, size: int, catalogues: RankCounts, places: RankGrid | RankPoints
) -> FloatArray:
    """Return P(rank among so many sampled items in ``low..high`` | bin), mean over catalogues."""
    wide = (catalogues.items > size + 1) & (catalogues.weight > 0)
    if not wide.any():
        wide = catalogues.items == catalogues.items[catalogues.weight > 0].max()
    laws = [Law(n, min(size, n - 1), catalogues.replacement) for n in catalogues.items[wide]]
    rows = [law.matrix(np.array([low]), np.array([high]), places)[0] for law in laws]
    return np.asarray(np.average(rows, axis=0, weights=catalogues.weight[wide]))


def _shares(counts: RankCounts, chosen: BoolArray, ends: IntArray) -> list[float]:
    """Return the shares of the chosen cells' weight in the ranges that end at ``ends``."""
    weight, group = counts.weight[chosen], np.searchsorted(ends, counts.low[chosen])
    return list(np.bincount(group, weight, minlength=len(ends)) / weight.sum())


def _growing(last: int, n: int) -> IntArray:
    """Return ends of ranges of the ranks after ``last``: growing steps up to ``n``."""
    ends = [last + 1]
    while ends[-1] < n:
        ends.append(min(n, max(ends[-1] + 1, round(ends[-1] * GROUP_RATIO))))
    return np.array(ends, dtype=np.int64)
