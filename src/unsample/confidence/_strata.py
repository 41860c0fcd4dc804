"""Targets with catalogues of about one size, and what they tell about their P(R)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from unsample.confidence._limits import Leaning, MeanLimits, OverBins, evidence_grid, gather
from unsample.confidence._program import InfeasibleError, Lowest, Program, Shape
from unsample.estimators import Observed, mean_weights
from unsample.evidence import RankCounts, size_ranges
from unsample.law import RankGrid
from unsample.metrics import Metric

#: With fewer targets, chance alone takes the data far from any shape.
_MANY = 300.0
#: `Program.strain` below which a shape is not in doubt, and above which it is not used. Of 1,188
#: samples of real rank sets (n = 20, 99, 499), 99 % have less than 0.09, none over 0.18.
_AT_EASE, _REFUTED = 0.1, 0.4
#: For a metric@K, a shape should hold down to this multiple of K.
_BEYOND_K = 4.0


@dataclass(frozen=True, eq=False)
class Stratum:
    """Targets whose catalogues are in one range of sizes, with a P(R) of their own."""

    counts: RankCounts
    grid: RankGrid
    evidence: tuple[MeanLimits, ...]
    #: The weight of these targets, as a share of that of all.
    share: float = 1.0
    #: The least and the greatest catalogue.
    sizes: tuple[int, int] = (0, 0)
    _programs: dict[tuple[Shape, float], Program] = field(default_factory=dict, repr=False)
    _weights: dict[Metric, OverBins] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, counts: RankCounts, cutoffs: list[int], share: float) -> Stratum:
        """Prepare the evidence of targets whose catalogues differ little."""
        sizes = int(counts.items.min()), counts.largest_catalogue
        grid = evidence_grid(counts, [k for k in cutoffs if k <= counts.largest_catalogue])
        observed = Observed.prepare(counts, grid=grid)
        return cls(counts, grid, gather(observed, cutoffs, sizes), share, sizes)

    @property
    def blind_rank(self) -> float:
        """Return the rank down to which one sampled item falls on average."""
        return self.counts.blind_rank

    def weights(self, metric: Metric) -> OverBins:
        """Return the metric at the ranks of each bin."""
        if metric not in self._weights:
            self._weights[metric] = OverBins.build(
                lambda places: mean_weights(metric, places, self.counts), self.grid
            )
        return self._weights[metric]

    def weights_for(self, metric: Metric, side: int) -> OverBins:
        """Return what a program minimises: the metric (``side`` -1), or minus it (+1)."""
        return self.weights(metric) if side < 0 else -self.weights(metric)

    def program(self, shape: Shape, alpha: float) -> Program:
        """Return all P(R) of a shape that agree with the data, each part with error ``alpha``."""
        key = (shape, alpha)
        if key not in self._programs:
            self._programs[key] = Program(self.grid, self.evidence, shape, self.blind_rank, alpha)
        return self._programs[key]

    def lowest(self, metric: Metric, side: int, shape: Shape | None, alpha: float) -> Lowest:
        """Return the least (``side`` -1) value of the metric, or minus the greatest (+1).

        Without a shape, or where it does not fit, this is the least value that is possible at all.
        """
        weights = self.weights_for(metric, side)
        anywhere = np.ones(len(self.grid), dtype=bool)
        values = weights.hull(Leaning(anywhere, anywhere))[0]
        least = float(values.min())
        if shape is not None:
            try:
                found = self.program(shape, alpha).lowest(weights)
            except InfeasibleError:
                pass
            else:
                # It is solved to a tolerance, and may be a little less than what is possible.
                return replace(found, value=max(found.value, least))
        mass = np.zeros(len(self.grid))
        mass[int(values.argmin())] = 1.0
        nothing = tuple(np.zeros(len(part.observed)) for part in self.evidence)
        return Lowest(least, mass, least, nothing)

    def doubt(self, shape: Shape, alpha: float) -> float:
        """Return how near the data are to refuting a shape: 0 far from it, 1 there."""
        return self.doubt_of(self.program(shape, alpha))

    def doubt_of(self, program: Program) -> float:
        """Return how near the data are to refuting the shape of a program."""
        if self.counts.effective < _MANY:
            return 0.0
        return min(max(program.strain - _AT_EASE, 0.0) / (_REFUTED - _AT_EASE), 1.0)

    def _wanted(self, shape: Shape, metric: Metric) -> Shape:
        """Return the shape, reaching down to some multiple of a metric's K.

        It reaches in steps of two, which keep programs few.
        """
        if metric.k is None or not 0.0 < shape.reach < math.inf:
            return shape
        times = _BEYOND_K * metric.k / self.blind_rank / shape.reach
        return replace(shape, reach=shape.reach * 2.0 ** math.ceil(math.log2(max(times, 1.0))))

    def reaching(self, shape: Shape, metric: Metric, alpha: float) -> Shape:
        """Return the shape, reaching further down where a metric's K does and the data agree."""
        further = self._wanted(shape, metric)
        return further if further == shape or self._at_ease(further, alpha) else shape

    def reach_is_clear(self, shape: Shape, metric: Metric, alpha: float) -> bool:
        """Return whether the shape reaches further for every K up to a metric's, or for none."""
        return self._at_ease(self._wanted(shape, metric), alpha) or not self._at_ease(shape, alpha)

    def _at_ease(self, shape: Shape, alpha: float) -> bool:
        """Return whether the data are at ease with a shape.

        A shape that reaches further limits more. So what is known of other reaches may decide.
        """
        program = self.program(shape, alpha)
        for other in self._programs.values():
            strain = other.strain_if_known
            alike = other.alpha == alpha and replace(other.shape, reach=shape.reach) == shape
            if strain is None or not alike:
                continue
            if strain <= _AT_EASE and other.shape.reach >= shape.reach:
                return True
            if strain > _AT_EASE and other.shape.reach <= shape.reach:
                return False
        return program.strain <= _AT_EASE


def strata_of(counts: RankCounts, cutoffs: Iterable[int]) -> tuple[Stratum, ...]:
    """Return the targets by the size of their catalogues; ``cutoffs`` are the K to be asked for."""
    wanted = sorted(set(cutoffs))
    number = size_ranges(counts.items)
    if counts.shared is not None or not number.any():
        return (Stratum.of(counts, wanted, 1.0),)
    total, found = float(counts.weight.sum()), []
    for each in range(int(number.max()) + 1):
        part = counts.take(number == each)
        share = float(part.weight.sum()) / total
        if share > 0.0:
            found.append(Stratum.of(part, wanted, share))
    return tuple(found)
