"""What P(R) may look like before it is measured: a power law, or what a pilot says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, as_integer_array, check_real
from unsample.errors import InputError, RankError
from unsample.estimators import MLE
from unsample.evidence import RankCounts
from unsample.law import RankDistribution, RankGrid, mean_over

__all__ = ["Guess", "planning_grid"]

#: Bins of a guess: ranks stand alone up to K, then a bin is this wide relative to its rank.
_RATIO = 0.05
_SINGLE_RANKS = 24
#: The steepest power law that is tried.
_STEEPEST = 4.0
_BISECTIONS = 60
#: The guess of Recall@K where nothing is known.
_DEFAULT_RECALL = 0.1


@dataclass(frozen=True, eq=False)
class Guess:
    """A guess of P(R), and where it comes from in words."""

    distribution: RankDistribution
    source: str

    @classmethod
    def power_law(cls, items: int, k: int, recall: float | None) -> Guess:
        """Return P(R) proportional to R^-a, with the a that makes Recall@k as given.

        Without a recall it is 0.1, or what two lists of K find by luck where that is more.
        """
        if k >= items:
            raise InputError(
                f"k must be below items = {items} where no pilot is given, got {k}: Recall@{k} is "
                "1 whatever P(R) is, so it cannot be guessed from that"
            )
        if recall is None:
            recall = max(_DEFAULT_RECALL, 1.0 - (1.0 - k / items) ** 2)
        check_real("recall", recall, low=0.0, high=1.0, open_low=True, open_high=True)
        grid = planning_grid(items, k)
        flattest, steepest = (_recall(grid, k, a) for a in (0.0, _STEEPEST))
        if not flattest <= recall <= steepest:
            raise InputError(
                f"recall must be in {flattest:.4g}..{steepest:.4g}, what power laws from R^0 to "
                f"R^-{_STEEPEST:g} give at K = {k} of {items} items, got {recall:g}; "
                "or give a pilot instead"
            )
        low, high = 0.0, _STEEPEST
        for _ in range(_BISECTIONS):
            exponent = (low + high) / 2.0
            below = _recall(grid, k, exponent) < recall
            low, high = (exponent, high) if below else (low, exponent)
        mass = _power_mass(grid, high)
        text = f"P(R) falls as R^-{high:.2f}, so that Recall@{k} is {recall:.4g}"
        return cls(RankDistribution(grid, mass), text)

    @classmethod
    def from_pilot(
        cls, pilot: RankCounts | RankDistribution | npt.ArrayLike, items: int, k: int
    ) -> Guess:
        """Return the P(R) of sampled ranks (fitted by `mle`), or of ranks among all items."""
        if isinstance(pilot, RankDistribution):
            found, text = pilot, "the given P(R)"
        elif isinstance(pilot, RankCounts):
            found = MLE().fit(pilot, cutoffs=[k])
            text = f"P(R) fitted to a pilot of {pilot.total:,} sampled ranks"
        else:
            ranks = as_integer_array("pilot", pilot, hint="ranks among all items start at 1")
            if ranks.size == 0:
                raise RankError("pilot must hold at least one rank, got none")
            found = RankDistribution.from_ranks(ranks, items=items)
            text = f"a pilot of {len(ranks):,} ranks among all items"
        if found.items != items:
            raise InputError(
                f"pilot must rank among items = {items}, got one among {found.items} items"
            )
        return cls(_simplified(found, planning_grid(items, k)), text)

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Draw global ranks."""
        grid = self.distribution.grid
        bins = rng.choice(len(grid), size=size, p=self.distribution.mass)
        return np.asarray(grid.low[bins] + rng.integers(grid.width[bins]))


def planning_grid(items: int, k: int) -> RankGrid:
    """Return bins that are fine enough to simulate a metric@K."""
    return RankGrid.build(
        items, cutoffs=[k], ratio=_RATIO, single=max(_SINGLE_RANKS, min(k, 4 * _SINGLE_RANKS))
    )


def _simplified(ranks: RankDistribution, grid: RankGrid) -> RankDistribution:
    """Return the distribution in the bins of another grid, without the negative masses of some."""
    mass = np.maximum(np.diff(ranks.cdf(grid.high), prepend=0.0), 0.0)
    return RankDistribution(grid, mass / mass.sum())


def _power_mass(grid: RankGrid, exponent: float) -> FloatArray:
    density = mean_over(lambda ranks: ranks**-exponent, grid.low, grid.high)
    mass = density * grid.width
    return np.asarray(mass / mass.sum())


def _recall(grid: RankGrid, k: int, exponent: float) -> float:
    return float(_power_mass(grid, exponent)[grid.high <= k].sum())
