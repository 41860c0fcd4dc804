"""`Law`: the joint law of the logarithm of a metric of several models, and all that is read off it.

The prior's part follows a t law with five degrees of freedom (some data sets differ from all
others), the users' part a normal one. Their sum is taken as a t law with its variance and its
fourth moment: of freedom 4 + 1/share^2, where share is the prior's part of the variance. So the
interval of a metric that the sample shows is that of a mean.

A chance of 95 % is an end of a two-sided 90 % interval. Two equal models would have one in one of
ten trials. So the users' part counts (1.96/1.645)^2 times in comparisons: one in twenty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, check_choice, check_level

#: Degrees of freedom of the prior's part.
FREEDOM = 5.0
#: How much more the users' part counts in comparisons.
CAUTION = (1.959964 / 1.644854) ** 2
#: Points for differences, and draws for the chance of being the best.
_NODES, _DRAWS = 400, 1 << 14
#: The name of a model that came without one, and where intervals come from.
ALONE, PRIOR, BOUNDS = "model", "prior", "bounds"


@dataclass(frozen=True, eq=False)
class Law:
    """The joint law of the logarithms of one metric: a record of moments.

    ``common`` (models x models) and ``own`` (models) are the squared scales of the prior's parts,
    ``users`` is the variance that comes from the targets at hand, and ``most`` the largest possible
    value of each model. ``sources`` says whose interval must be the bounds instead.
    """

    names: tuple[str, ...]
    mean: FloatArray
    common: FloatArray
    own: FloatArray
    users: FloatArray
    most: FloatArray
    sources: tuple[str, ...]

    @property
    def prior(self) -> FloatArray:
        """Return the squared scale of the prior's part (models x models)."""
        return np.asarray(self.common + np.diag(self.own))

    def value(self, name: str = ALONE) -> float:
        """Return the estimate: e to the mean of the logarithm."""
        at = self._number(name)
        return float(min(np.exp(self.mean[at]), self.most[at]))

    def interval(self, name: str = ALONE, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of a model's metric."""
        from scipy.special import stdtrit

        at = self._number(name)
        scale, freedom = t_law(self.prior[at, at], self.users[at, at])
        reach = float(stdtrit(freedom, 0.5 + check_level(level) / 2.0) * scale)
        ends = np.exp(self.mean[at] + np.array([-reach, reach]))
        low, high = np.minimum(ends, self.most[at]).tolist()
        return low, high

    def source(self, name: str = ALONE) -> str:
        """Return where the interval comes from: ``"prior"``, or ``"bounds"``."""
        return self.sources[self._number(name)]

    def difference(self, a: str, b: str) -> Difference:
        """Return the law of the first model's metric less the second's."""
        pair = [self._number(a), self._number(b)]
        both = np.ix_(pair, pair)
        return Difference(self.mean[pair], self.prior[both], CAUTION * self.users[both])

    def chance(self, a: str, b: str) -> float:
        """Return the chance that the first model's metric is the greater one."""
        return self.difference(a, b).chance

    def best(self) -> dict[str, float]:
        """Return each model's chance of being the best: never more than that of beating another."""
        if len(self.names) == 1:
            return {self.names[0]: 1.0}
        rng = np.random.default_rng(33)
        tails = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=(_DRAWS, 1)))
        drawn = self.mean + tails * _normal(self.prior, rng) + _normal(CAUTION * self.users, rng)
        top = drawn == drawn.max(axis=1, keepdims=True)
        share = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
        for at, a in enumerate(self.names):
            others = [self.chance(a, b) for b in self.names if b != a]
            share[at] = min(share[at], *others) if len(others) > 1 else others[0]
        return dict(zip(self.names, share.tolist(), strict=True))

    def _number(self, name: str) -> int:
        check_choice("name", name, self.names)
        return self.names.index(name)


@dataclass(frozen=True, eq=False)
class Difference:
    """The law of e^x - e^y, where x and y are the logarithms of two models' metrics.

    With s = x + y and r = x - y the difference is 2 e^(s/2) sinh(r/2). Given s, r follows a t law
    as well. So the chance that the difference is at most d is a mean over s of chances of r. The
    chance that it is positive comes from the same mean: an interval of some level excludes zero
    exactly where the chance, or that of the contrary, passes (1 + level)/2.
    """

    mean: FloatArray
    prior: FloatArray
    users: FloatArray

    @property
    def value(self) -> float:
        """Return the difference of the two values."""
        return float(np.exp(self.mean[0]) - np.exp(self.mean[1]))

    @property
    def chance(self) -> float:
        """Return the chance that the difference is positive: one half where nothing tells."""
        return 1.0 - float(self.cdf(np.zeros(1))[0])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the difference."""
        tail = (1.0 - check_level(level)) / 2.0
        wanted = np.array([tail, 1.0 - tail])
        at_zero = float(self.cdf(np.zeros(1))[0])
        # Start on the side of zero where the end is, then away from it until it is passed.
        side = np.where(wanted > at_zero, 1.0, -1.0)
        near, far = np.zeros(2), side * float(np.exp(self.mean.max()))
        for _ in range(200):
            short = side * (wanted - self.cdf(far)) > 0
            if not short.any():
                break
            near, far = np.where(short, far, near), np.where(short, 2.0 * far, far)
        low, high = (self._quantile(*each) for each in zip(wanted.tolist(), near, far, strict=True))
        return low, high

    def _quantile(self, wanted: float, near: float, far: float) -> float:
        """Return where the chance is ``wanted``, between two values on either side of it."""
        from scipy.optimize import brentq

        def above(value: float) -> float:
            return float(self.cdf(np.array([value]))[0]) - wanted

        if above(near) * above(far) >= 0.0:
            # Nothing varies, or the end is beyond all numbers.
            return float(far)
        return float(brentq(above, near, far, xtol=1e-15, rtol=1e-12))

    def cdf(self, values: FloatArray) -> FloatArray:
        """Return the chance that the difference is at most each of the values."""
        from scipy.special import stdtr

        apart, ones = np.array([1.0, -1.0]), np.ones(2)
        found = t_law(apart @ self.prior @ apart, apart @ self.users @ apart)
        scale, nu = float(found[0]), float(found[1])
        total = self.prior * (FREEDOM / (FREEDOM - 2.0)) + self.users
        of_sum, both = float(ones @ total @ ones), float(ones @ total @ apart)
        # The sum's law has the freedom of the difference's, which is the one that matters.
        narrowed = (nu - 2.0) / nu
        slope = both / of_sum if of_sum > 0 else 0.0
        left = max(scale**2 - narrowed * slope * both, 0.0)
        nodes = _nodes(round(nu, 6))
        sums = self.mean.sum() + nodes * math.sqrt(max(narrowed * of_sum, 0.0))
        middle = self.mean @ apart + slope * (sums - self.mean.sum())
        spread = np.sqrt(left * (nu + nodes**2) / (nu + 1.0)) + 1e-12
        wanted = 2.0 * np.arcsinh(values[:, None] * np.exp(-sums / 2.0) / 2.0)
        return np.asarray(stdtr(nu + 1.0, (wanted - middle) / spread).mean(axis=1))


def t_law(prior: npt.ArrayLike, users: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return scale and freedom of the t law of sums, by their variances and fourth moments."""
    part = np.maximum(prior, 0.0) * (FREEDOM / (FREEDOM - 2.0))
    total = part + np.maximum(users, 0.0)
    share = np.maximum(part / np.maximum(total, 1e-300), 1e-2)
    freedom = FREEDOM - 1.0 + share**-2.0
    return np.sqrt(total * (freedom - 2.0) / freedom), np.asarray(freedom)


def _normal(covariance: FloatArray, rng: np.random.Generator) -> FloatArray:
    values, vectors = np.linalg.eigh(covariance)
    # The symmetric root is the same on every machine; signs of eigenvectors are not.
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(rng.standard_normal((_DRAWS, len(values))) @ root)


@lru_cache(maxsize=64)
def _nodes(freedom: float) -> FloatArray:
    """Return quantiles of a t law in the middle of equal parts."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, (np.arange(_NODES) + 0.5) / _NODES))
