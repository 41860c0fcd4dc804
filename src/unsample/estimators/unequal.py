r"""How often an item that beats a target is seen, where items were not drawn uniformly.

A target at rank R is beaten by R - 1 items. If each is in the sample with chance pi, the number of
hits b is binomial, and 1/pi of the hits tells what pi is. Items differ, and so do targets: let

.. math:: b \mid R, m \sim \mathrm{Bin}(R - 1, \psi), \qquad
          \log(1/\pi) \mid m \sim (m, s^2), \qquad m \mid R \sim N(\mu(\log R), \sigma^2)

where :math:`1/\psi = E[1/\pi]` over the hits. This is exact for any mixture of items: an item with
a small chance is rarely a hit, but then counts more. The spread of log(1/pi) among the hits of one
target is pooled over targets. The curve mu is linear between knots. Above the rank at which two
hits are expected it is constant, because nothing is seen there. It is learned by EM together with a
rough P(R); the final P(R) is estimated elsewhere.

So the assumption is: which items beat a target changes smoothly along the ranks, and not at all
above the ranks that the sample sees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.estimators._observed import Condensed, coarse_grid
from unsample.law import RankGrid

#: Targets with so many hits show the spread among the hits of one target.
_FEW_HITS, _MANY_HITS = 2, 10
#: Targets with at most so many hits show the chance at the top.
_TOP_HITS = 3
#: Knots of the curve: the first at the rank of so many hits, then each by this factor.
_FIRST, _FACTOR = 2.0, 3.0
#: The stiffness of the curve, in targets.
_STIFFNESS = 10.0
#: Values of m on a grid, and how finely the mean of log(1/pi) of a target is kept.
_NODES, _STEP = 61, 0.25
_ROUNDS, _EM_STEPS = 40, 5
_LEAST_SPREAD = 0.05
_TINY, _NEVER = 1e-300, 1e-30


@dataclass(frozen=True, eq=False)
class Hits:
    """How many drawn items beat each target, and the mean of log(1/pi) over them."""

    count: IntArray
    mean_log: FloatArray
    #: For all hits: log(1/pi), and the target.
    logs: FloatArray
    owner: IntArray

    @classmethod
    def of(cls, targets: int, owner: IntArray, chance: FloatArray) -> Hits:
        """Count the hits of each target, given their chances."""
        logs = -np.log(chance)
        count = np.bincount(owner, minlength=targets).astype(np.int64)
        total = np.bincount(owner, logs, minlength=targets)
        return cls(count, total / np.maximum(count, 1), logs, owner)

    def spread(self) -> tuple[float, float]:
        """Return the variance of log(1/pi) among hits of one target, and the mean of its exp.

        The latter is that of a hit relative to the target's own mean.
        """
        count = self.count[self.owner]
        kept = (count >= _FEW_HITS) & (count <= _MANY_HITS)
        if not kept.any():
            return _LEAST_SPREAD**2, 1.0
        apart = self.logs[kept] - self.mean_log[self.owner[kept]]
        # Hits are nearer to their own mean than to the true one.
        apart = apart * np.sqrt(count[kept] / (count[kept] - 1.0))
        weight = (count[kept] - 1.0) / count[kept]
        square = float(np.average(apart**2, weights=weight))
        return max(square, _LEAST_SPREAD**2), float(np.average(np.exp(apart), weights=weight))


@dataclass(frozen=True, eq=False)
class HitLaw:
    """P(hits | rank), learned from the hits of all targets."""

    items: int
    #: Values of m, their chance psi, and their weights at each of the grid's ranks.
    nodes: FloatArray
    knots: FloatArray
    heights: FloatArray
    spread: float
    #: Of hits of one target: the variance of log(1/pi), and the log of the mean of its exp.
    within: float
    lift: float
    #: Standard error of the curve at the top, about.
    error: float

    @classmethod
    def learn(cls, hits: Hits, items: int) -> HitLaw:
        """Learn it by EM, together with a rough P(R)."""
        within, lift = hits.spread()
        top = hits.count[hits.owner] <= _TOP_HITS
        logs = hits.logs[top] if top.any() else hits.logs
        start = float(np.log(np.exp(logs).mean())) if len(logs) else math.log(items)
        nodes = np.linspace(min(float(hits.logs.min(initial=0.0)), start), math.log(items), _NODES)
        first = min(math.log(_FIRST) + start, 0.9 * math.log(items))
        steps = max(math.ceil((math.log(items) - first) / math.log(_FACTOR)), 2)
        knots = np.linspace(first, math.log(items), steps + 1)
        level = np.full(steps + 1, start - math.log(lift))
        found = cls(items, nodes, knots, level, 0.3, within, math.log(lift), 0.0)
        found = _Learning(found, hits).run()
        error = math.sqrt((within + found.spread**2) / max(int(top.sum()), 1))
        return replace(found, error=error)

    def moved(self, by: float) -> HitLaw:
        """Return the law with log(1/psi) raised by so much."""
        return replace(self, heights=self.heights + by)

    @property
    def chances(self) -> FloatArray:
        """Return psi at each node."""
        return np.asarray(np.exp(-(self.nodes + self.lift)).clip(_TINY, 1.0 - 1e-9))

    def hats(self, ranks: FloatArray) -> FloatArray:
        """Return the weight of each knot at each rank (ranks x knots)."""
        place = np.log(np.maximum(ranks, 1.0)).clip(self.knots[0], self.knots[-1])
        width = self.knots[1] - self.knots[0]
        return np.asarray(np.maximum(1.0 - np.abs(place[:, None] - self.knots) / width, 0.0))

    def weights(self, ranks: FloatArray) -> FloatArray:
        """Return P(m | R) on the nodes (ranks x nodes)."""
        centre = self.hats(ranks) @ self.heights
        apart = (self.nodes - centre[:, None]) / self.spread
        found = np.exp(-0.5 * (apart**2 - (apart**2).min(axis=1, keepdims=True)))
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    @cached_property
    def blind_rank(self) -> float:
        """Return the rank down to which one sampled item falls on average, about."""
        return max(math.exp(self.heights[0] + self.lift), 1.0)

    def up_to(self, hits: IntArray, ranks: FloatArray) -> FloatArray:
        """Return P(at most so many hits | rank), hits x ranks."""
        from scipy.special import betainc

        ahead, most = (ranks - 1.0)[None, :, None], hits[:, None, None].astype(np.float64)
        left = np.maximum(ahead - most, 1e-9)
        below = np.where(ahead > most, betainc(left, most + 1.0, 1.0 - self.chances), 1.0)
        return np.asarray((below * self.weights(ranks)).sum(axis=2))

    def condense(self, hits: Hits) -> Condensed:
        """Return the targets by their hits and chances, with P(cell | rank)."""
        cells = _Cells.of(hits)
        grid = coarse_grid(self.items, math.ceil(2.0 * self.items / self.blind_rank))
        ranks = (grid.low + grid.high) / 2.0
        matrix = np.einsum("crm,rm->cr", cells.likelihood(self, ranks), self.weights(ranks))
        matrix /= np.maximum(matrix.max(axis=1, keepdims=True), _TINY)
        return Condensed(grid, matrix + _NEVER, cells.shares[None, :], 0)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Targets that have as many hits, and nearly the same mean of log(1/pi)."""

    count: IntArray
    mean_log: FloatArray
    shares: FloatArray

    @classmethod
    def of(cls, hits: Hits) -> _Cells:
        keys = np.stack([hits.count, np.round(hits.mean_log / _STEP).astype(np.int64)], axis=1)
        cells, where, size = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        mean = np.bincount(where.reshape(-1), hits.mean_log) / size
        return cls(cells[:, 0], mean, size / size.sum())

    def likelihood(self, law: HitLaw, ranks: FloatArray) -> FloatArray:
        """Return P(cell | rank, node) up to a factor for each cell (cells x ranks x nodes)."""
        from scipy.special import gammaln

        ahead, hits = (ranks - 1.0)[None, :, None], self.count[:, None, None].astype(np.float64)
        left = ahead - hits
        missed = np.maximum(left, 0.0)
        chances = law.chances
        log = gammaln(ahead + 1.0) - gammaln(missed + 1.0)
        log = log + hits * np.log(chances) + missed * np.log1p(-chances)
        apart = (self.mean_log[:, None] - law.nodes) ** 2 * self.count[:, None]
        log = np.where(left >= 0.0, log, -np.inf) - (0.5 * apart / law.within)[:, None, :]
        log -= log.max(axis=(1, 2), keepdims=True)
        return np.asarray(np.exp(log))


class _Learning:
    """EM for the curve, its spread, and a rough P(R)."""

    def __init__(self, law: HitLaw, hits: Hits) -> None:
        self.law, self.cells = law, _Cells.of(hits)
        self.targets = len(hits.count)
        grid: RankGrid = coarse_grid(law.items, math.ceil(2.0 * law.items / law.blind_rank))
        self.ranks = (grid.low + grid.high) / 2.0
        mass = grid.width / np.sqrt(self.ranks)
        self.mass = mass / mass.sum()
        self.likelihood = self.cells.likelihood(law, self.ranks)

    def run(self) -> HitLaw:
        for _ in range(_ROUNDS):
            self._round()
        return self.law

    def _round(self) -> None:
        shares, weights = self.cells.shares, self.law.weights(self.ranks)
        matrix = np.einsum("crm,rm->cr", self.likelihood, weights)
        scale = np.maximum(matrix.max(axis=1), _TINY)
        matrix = matrix / scale[:, None] + _NEVER
        for _ in range(_EM_STEPS):
            self.mass *= matrix.T @ (shares / (matrix @ self.mass))
            self.mass /= self.mass.sum()
        # Where targets with hits are, and their m.
        each = np.where(self.cells.count > 0, shares, 0.0) / (matrix @ self.mass) / scale
        expected = np.einsum("c,crm->rm", each, self.likelihood) * weights
        expected *= self.targets * self.mass[:, None]
        size, total = expected.sum(axis=1), expected @ self.law.nodes
        hats = self.law.hats(self.ranks)
        steps = np.diff(np.eye(hats.shape[1]), axis=0)
        system = hats.T @ (size[:, None] * hats) + _STIFFNESS * (steps.T @ steps)
        heights = np.linalg.solve(system, hats.T @ total)
        apart = (self.law.nodes - (hats @ heights)[:, None]) ** 2
        spread = math.sqrt(float((expected * apart).sum()) / max(float(size.sum()), _TINY))
        self.law = replace(self.law, heights=heights, spread=max(spread, _LEAST_SPREAD))
