"""The error of a design by simulation: users from the guess, evaluated and estimated many times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.answers.planning._designs import SampledDesign, Seen
from unsample.answers.planning._guess import Guess, planning_grid
from unsample.estimators import MLE, Observed
from unsample.evidence import RankCounts
from unsample.law import RankGrid
from unsample.metrics import Metric

__all__ = ["Outcome", "Simulation"]

#: Users that are simulated. The bias does not depend on their number, and the standard deviation
#: falls with its square root, which takes it to any other number.
_MOST_USERS = 1000
#: Sampled ranks are exact up to here, then rounded to a share of themselves, less than their
#: noise; and beyond the last number they are taken from a thinner sample.
_EXACT, _ROUNDED, _FAR = 16, 0.06, 300


@dataclass(frozen=True)
class Outcome:
    """What a design costs and how far off it is, for the metric of these users."""

    design: str
    setting: str
    #: Items scored for a user of the evaluation, on average (users left out count as none).
    cost: float
    bias: float
    sd: float

    @property
    def rmse(self) -> float:
        """Return the root of the expected squared error."""
        return math.hypot(self.bias, self.sd)


@dataclass(frozen=True, eq=False)
class Simulation:
    """Many sets of users with ranks from a guess, and the estimates that designs give of them."""

    guess: Guess
    users: int
    metric: Metric
    repeats: int
    seed: np.random.SeedSequence

    @property
    def items(self) -> int:
        """Return the size of the catalogue."""
        return self.guess.distribution.items

    @cached_property
    def ranks(self) -> IntArray:
        """Return global ranks: one row for each set of users."""
        size = (self.repeats, min(self.users, _MOST_USERS))
        return self.guess.draw(size, np.random.default_rng(self.seed))

    @cached_property
    def truth(self) -> FloatArray:
        """Return the metric of each set of users."""
        return np.asarray(self.metric.weights(self.ranks, self.items).mean(axis=1))

    @cached_property
    def _grid(self) -> RankGrid:
        return planning_grid(self.items, self.metric.cutoff(self.items))

    def outcome(self, design: SampledDesign, name: str) -> Outcome:
        """Evaluate every set of users by the design, estimate, and compare with the truth."""
        # Each design draws from a stream of its own, so that none depends on what ran before.
        key = (*design.stages, design.beats)
        rng = np.random.default_rng([*self.seed.generate_state(2).tolist(), *key])
        seen = design.see(self.ranks, self.items, rng)
        errors = self._estimates(seen) - self.truth
        return Outcome(
            name,
            design.describe(self.items),
            float(seen.sampled.mean()) + 1.0,
            float(errors.mean()),
            float(errors.std(ddof=1)) * math.sqrt(self.ranks.shape[1] / self.users),
        )

    def _estimates(self, seen: Seen) -> FloatArray:
        """Return the `mle` of the metric for each set of users, all in one fit."""
        cells, shares = _histograms(_simplified(seen, self.metric.cutoff(self.items), self.items))
        observed = Observed(self._counts(cells, shares), shares, self._grid)
        return MLE().evaluate(observed, [self.metric]).values[:, 0]

    def _counts(self, cells: IntArray, shares: FloatArray) -> RankCounts:
        total = shares.sum(axis=0) * self.ranks.shape[1]
        return RankCounts(
            sampled=cells[0],
            items=np.full(cells.shape[1], self.items),
            low=cells[1],
            high=cells[1],
            count=np.rint(total).astype(np.int64),
            weight=total,
            weight_squared=total,
            replacement=False,
        )


def _histograms(seen: Seen) -> tuple[IntArray, FloatArray]:
    """Return the cells (sampled, rank) that occur, and their shares: one row a set of users."""
    repeats, users = seen.rank.shape
    key = seen.sampled * (seen.rank.max() + 1) + seen.rank
    found, where = np.unique(key, return_inverse=True)
    rows = np.arange(repeats)[:, None] * len(found)
    counts = np.bincount((rows + where.reshape(key.shape)).ravel(), minlength=repeats * len(found))
    cells = np.stack(np.divmod(found, seen.rank.max() + 1))
    return cells, counts.reshape(repeats, len(found)) / users


def _simplified(seen: Seen, k: int, items: int) -> Seen:
    """Return what was seen with ranks rounded where it cannot matter: fewer cells to fit.

    Ranks are exact up to K, where they may be known, and for as long as their noise is large. Far
    from the top, a target is seen through a thinner sample that places it as well as need be.
    """
    exact = max(k, _EXACT)
    step = np.log1p(_ROUNDED)
    rank = np.rint(np.exp(step * np.rint(np.log(seen.rank) / step))).astype(np.int64)
    rank = np.where(seen.rank <= exact, seen.rank, np.clip(rank, exact + 1, seen.sampled + 1))
    far = np.maximum(_FAR, 4 * k * seen.sampled // items)
    thinner = np.rint(seen.sampled * far / rank).astype(np.int64)
    beyond = rank > far
    return Seen(np.where(beyond, thinner, seen.sampled), np.where(beyond, far, rank))
