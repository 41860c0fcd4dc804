"""`Law`: the joint law of the logarithm of a metric of several models, and all that is read off it.

The prior's part follows a t law with five degrees of freedom (some data sets differ from all
others), the users' part a normal one. Their sum is taken as a t law with its variance and its
fourth moment: of freedom 4 + 1/share^2, where share is the prior's part of the variance. So the
interval of a metric that the sample shows is that of a mean.

A chance of 95 % is an end of a two-sided 90 % interval. Two equal models would have one in one of
ten trials. So the users' part counts (1.96/1.645)^2 times in comparisons: one in twenty.

Of several runs of a model, `Law.averaged` gives the law of their mean, of which the spread of the
runs is a part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, check_choice, check_level
from unsample.bounds import quantile
from unsample.prior._runs import cautious, draws_of_runs, runs_apart, variance_of_runs, with_runs

#: Degrees of freedom of the prior's part.
FREEDOM = 5.0
#: How much more the users' part counts in comparisons.
CAUTION = (1.959964 / 1.644854) ** 2
#: Points for differences, and draws for the chance of being the best.
_NODES, DRAWS = 400, 1 << 14
#: The name of a model that came without one, and where intervals come from.
ALONE, PRIOR, BOUNDS = "model", "prior", "bounds"


@dataclass(frozen=True)
class LogSpread:
    """A t law of the logarithm of one model's metric, and the greatest value that it may have."""

    mean: float
    scale: float
    freedom: float
    most: float

    @property
    def value(self) -> float:
        """Return the estimate: e to the mean of the logarithm."""
        return min(math.exp(self.mean), self.most)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the ends of the interval."""
        reach = quantile(level, self.freedom) * self.scale
        ends = (math.exp(min(self.mean + sign * reach, 700.0)) for sign in (-1, 1))
        low, high = (min(end, self.most) for end in ends)
        return low, high


@dataclass(frozen=True, eq=False)
class Law:
    """The joint law of the logarithms of one metric: a record of moments.

    ``common`` (models x models) and ``own`` (models) are the squared scales of the prior's parts,
    ``users`` is the variance that comes from the targets at hand, and ``most`` the largest possible
    value of each model. ``sources`` says whose interval must be the bounds instead. ``runs`` are
    the squared scale that comes from the spread of each model's runs, and its freedom.
    """

    names: tuple[str, ...]
    mean: FloatArray
    common: FloatArray
    own: FloatArray
    users: FloatArray
    most: FloatArray
    runs: tuple[tuple[float, float], ...] = ()
    sources: tuple[str, ...] = ()

    @classmethod
    def independent(cls, laws: Sequence[Law]) -> Law:
        """Return the joint law of models that have nothing in common."""
        from scipy.linalg import block_diag

        return cls(
            tuple(name for law in laws for name in law.names),
            np.concatenate([law.mean for law in laws]),
            block_diag(*(law.common for law in laws)),
            np.concatenate([law.own for law in laws]),
            block_diag(*(law.users for law in laws)),
            np.concatenate([law.most for law in laws]),
        )

    @property
    def prior(self) -> FloatArray:
        """Return the squared scale of the prior's part (models x models)."""
        return np.asarray(self.common + np.diag(self.own))

    def value(self, name: str = ALONE) -> float:
        """Return the estimate of a model's metric."""
        return self.spread(name).value

    def interval(self, name: str = ALONE, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of a model's metric."""
        return self.spread(name).interval(level)

    def spread(self, name: str = ALONE) -> LogSpread:
        """Return the law of one model's metric."""
        at = self._number(name)
        scale, freedom = t_law(self.prior[at, at], self.users[at, at])
        found = with_runs(float(scale), float(freedom), self.runs[at : at + 1])
        return LogSpread(float(self.mean[at]), *found, float(self.most[at]))

    def averaged(self, runs: Mapping[str, Sequence[str]]) -> Law:
        """Return the law of models, given which of the names are the runs of each.

        What the prior says of a model's own curve is the same for all its runs.
        """
        values, shares = np.exp(self.mean), np.zeros((len(runs), len(self.names)))
        mean, most, between = [], [], []
        for row, names in zip(shares, runs.values(), strict=True):
            at = [self._number(name) for name in names]
            row[at] = values[at] / values[at].sum()
            mean.append(math.log(values[at].mean()))
            most.append(float(self.most[at].mean()))
            ratio = values[at] / values[at].mean()
            between.append(runs_apart(ratio, self.users[np.ix_(at, at)]))
        return Law(
            tuple(runs),
            np.array(mean),
            shares @ self.common @ shares.T,
            (shares @ np.sqrt(self.own)) ** 2,
            shares @ self.users @ shares.T,
            np.array(most),
            tuple(between),
        )

    def difference(self, a: str, b: str) -> LogDifference:
        """Return the law of the first model's metric less the second's."""
        pair = [self._number(a), self._number(b)]
        both = np.ix_(pair, pair)
        runs = tuple(cautious(*self.runs[at]) for at in pair) if self.runs else ()
        return LogDifference(self.mean[pair], self.prior[both], CAUTION * self.users[both], runs)

    def chance(self, a: str, b: str) -> float:
        """Return the chance that the first model's metric is the greater one."""
        return self.difference(a, b).chance

    def best(self) -> dict[str, float]:
        """Return each model's chance of being the best."""
        return best_of(self.names, self.draws(), self.chance)

    def draws(self) -> FloatArray:
        """Return values that the logarithms may have, as they count in comparisons."""
        rng, shape = np.random.default_rng(33), (DRAWS, len(self.names))
        tails = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=(DRAWS, 1)))
        prior, users = (
            rng.standard_normal(shape) @ symmetric_root(each)
            for each in (self.prior, CAUTION * self.users)
        )
        return self.mean + tails * prior + users + draws_of_runs(self.runs, shape, rng)

    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return values, and their variances by the prior and by users and runs."""
        values = np.exp(self.mean)
        scale = np.outer(values, values)
        prior = self.prior * (FREEDOM / (FREEDOM - 2.0))
        return (
            values,
            scale * prior,
            scale * (self.users + variance_of_runs(self.runs, len(values))),
        )

    def _number(self, name: str) -> int:
        check_choice("name", name, self.names)
        return self.names.index(name)


@dataclass(frozen=True, eq=False)
class LogDifference:
    """The law of e^x - e^y, where x and y are the logarithms of two models' metrics.

    With s = x + y and r = x - y the difference is 2 e^(s/2) sinh(r/2). Given s, r follows a t law
    as well. So the chance that the difference is at most d is a mean over s of chances of r. The
    chance that it is positive comes from the same mean: an interval of some level excludes zero
    exactly where the chance, or that of the contrary, passes (1 + level)/2.
    """

    mean: FloatArray
    prior: FloatArray
    users: FloatArray
    #: Squared scale and freedom of what comes from the runs of each of both.
    runs: tuple[tuple[float, float], ...] = ()

    @property
    def value(self) -> float:
        """Return the difference of the two values."""
        return float(np.exp(self.mean[0]) - np.exp(self.mean[1]))

    @property
    def chance(self) -> float:
        """Return the chance that the difference is positive: one half where nothing tells."""
        return 1.0 - self.below(0.0)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the difference."""
        tail = (1.0 - check_level(level)) / 2.0
        return self._quantile(tail), self._quantile(1.0 - tail)

    def _quantile(self, chance: float) -> float:
        """Return the value that the difference is below with this chance."""
        from scipy.optimize import brentq

        def short(value: float) -> float:
            return chance - self.below(value)

        # Start on the side of zero where the value is, then away from it until it is passed.
        side = 1.0 if short(0.0) > 0.0 else -1.0
        near, far = 0.0, side * float(np.exp(self.mean.max()))
        for _ in range(200):
            if side * short(far) <= 0.0:
                break
            near, far = far, 2.0 * far
        if short(near) * short(far) >= 0.0:
            # Nothing varies, or the end is beyond all numbers.
            return far
        return float(brentq(short, near, far, xtol=1e-15, rtol=1e-12))

    def below(self, value: float) -> float:
        """Return the chance that the difference is less than this."""
        from scipy.special import stdtr

        apart, ones = np.array([1.0, -1.0]), np.ones(2)
        found = t_law(apart @ self.prior @ apart, apart @ self.users @ apart)
        scale, nu = with_runs(float(found[0]), float(found[1]), self.runs)
        total = self.prior * (FREEDOM / (FREEDOM - 2.0)) + self.users
        if self.runs:
            total = total + np.diag([square for square, _ in self.runs])
        of_sum, both = float(ones @ total @ ones), float(ones @ total @ apart)
        # The sum's law has the freedom of the difference's, which is the one that matters.
        narrowed = scale**2 / max(float(apart @ total @ apart), 1e-300)
        slope = both / of_sum if of_sum > 0 else 0.0
        left = max(scale**2 - narrowed * slope * both, 0.0)
        nodes = _nodes(round(nu, 6))
        sums = self.mean.sum() + nodes * math.sqrt(max(narrowed * of_sum, 0.0))
        middle = self.mean @ apart + slope * (sums - self.mean.sum())
        spread = np.sqrt(left * (nu + nodes**2) / (nu + 1.0)) + 1e-12
        wanted = 2.0 * np.arcsinh(value * np.exp(-sums / 2.0) / 2.0)
        return float(stdtr(nu + 1.0, (wanted - middle) / spread).mean())


def t_law(prior: npt.ArrayLike, users: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return scale and freedom of the t law of sums, by their variances and fourth moments."""
    part = np.maximum(prior, 0.0) * (FREEDOM / (FREEDOM - 2.0))
    total = part + np.maximum(users, 0.0)
    share = np.maximum(part / np.maximum(total, 1e-300), 1e-2)
    freedom = FREEDOM - 1.0 + share**-2.0
    return np.sqrt(total * (freedom - 2.0) / freedom), np.asarray(freedom)


def best_of(
    names: Sequence[str], drawn: FloatArray, chance: Callable[[str, str], float]
) -> dict[str, float]:
    """Return each model's chance of being the best: the share of draws in which it is.

    It is never more than the model's ``chance`` of beating one other.
    """
    top = drawn == drawn.max(axis=1, keepdims=True)
    share = (top / top.sum(axis=1, keepdims=True)).mean(axis=0).tolist()
    if len(names) == 2:
        # No draws are needed for one difference.
        share = [chance(*names), chance(*reversed(names))]
    return {
        a: min([often, *(chance(a, b) for b in names if b != a)]) if often > 0.0 else 0.0
        for a, often in zip(names, share, strict=True)
    }


def symmetric_root(covariance: FloatArray) -> FloatArray:
    """Return the root that is the same on every machine; signs of eigenvectors are not."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)


@lru_cache(maxsize=64)
def _nodes(freedom: float) -> FloatArray:
    """Return quantiles of a t law in the middle of equal parts."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, (np.arange(_NODES) + 0.5) / _NODES))
