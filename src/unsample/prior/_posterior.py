"""`Posterior`: curves of one model or several, and `Law`: what they say of one metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from unsample._checks import FloatArray, check_choice, check_level
from unsample._threads import one_thread
from unsample.estimators._solvers._log_density import LogDensity
from unsample.evidence import ModelCounts, PairCounts, RankCounts
from unsample.law import RankDistribution, RankGrid, bin_weights
from unsample.metrics import Metric, parse
from unsample.prior._learn import Learned
from unsample.prior._numbers import Numbers
from unsample.prior._seen import Seen, Stratum
from unsample.prior._shapes import SIZE, shapes_on

if TYPE_CHECKING:
    from unsample.prior._prior import Prior

#: Some data sets differ from all others: errors of logarithms follow a t law with this freedom.
FREEDOM = 5.0
#: Sets of points around a mode, each of as many pairs as there are shapes.
_POINT_SETS = 4
_TINY, _LEAST = 1e-300, 1e-12
#: With fewer users nothing is calibrated.
_FEWEST_USERS = 50.0
#: Half-width of an interval, as a part of the value, up to which a metric is resolved.
_RESOLVED = 0.25
#: Points for differences, and for the chance of being the best.
_NODES, _DRAWS = 200, 1 << 14
#: The name of a model that came without one.
ALONE = "model"


@dataclass(frozen=True, eq=False)
class Curve:
    """The posterior of the coefficients in one stratum, under one kind.

    ``mode`` is in standard deviations of the prior around its mean, ``inverse`` is H^-1 there, and
    ``scores`` (cells x shapes) are the derivatives of each cell's log-likelihood.
    """

    mode: FloatArray
    inverse: FloatArray
    scores: FloatArray


@dataclass(frozen=True, eq=False)
class Fitted:
    """One model under one kind: a curve for each stratum, and how well they fit.

    ``excess`` is the deviance above its expectation, for each target.
    """

    curves: tuple[Curve, ...]
    evidence: float
    deviance: float
    freedom: float


@dataclass(frozen=True, eq=False)
class _Look:
    """A metric's logarithm under one kind: mean, slopes times H^-1, and influence of a target.

    ``own`` is the relative variance that cells leave open of these targets' own ranks.
    """

    mean: float
    pull: FloatArray
    direct: FloatArray
    learned: FloatArray
    own: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """Models on one data set, given what was seen of them: a record of arrays.

    Ask it with `law` for any metric, ``population`` for users like these (or for these users).
    ``sources`` says of each model whether its interval is ``"prior"`` or must be ``"bounds"``.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    seen: tuple[Seen, ...] = field(repr=False)
    #: By model and kind.
    fitted: tuple[tuple[Fitted, ...], ...] = field(repr=False)
    weight: FloatArray = field(repr=False)
    learned: tuple[Learned, ...] = field(repr=False)
    #: Sums over users of products of what targets of two models add, by the models' numbers.
    between: Mapping[tuple[int, int], FloatArray] = field(repr=False)
    misfit: float = math.inf
    sources: tuple[str, ...] = ()

    @classmethod
    @one_thread()
    def of(
        cls,
        counts: RankCounts | Mapping[str, RankCounts] | ModelCounts,
        prior: Prior,
        *,
        kind: str | None = None,
        candidates: str | None = None,
    ) -> Posterior:
        """Return the posterior of one model or several.

        Users have several targets, or several models the same users, as far as the counts say so.
        Without a ``kind``, those that ``candidates`` allows are mixed by their evidence.
        """
        models = {ALONE: counts} if isinstance(counts, RankCounts) else dict(counts)
        kinds = prior.possible(candidates, kind)
        learned = tuple(prior.learned[each] for each in kinds)
        seen = tuple(Seen.of(each) for each in models.values())
        fitted = tuple(tuple(_fit(each, one, prior.misfit) for one in learned) for each in seen)
        evidence = np.array([[one.evidence for one in each] for each in fitted])
        names = tuple(models)
        given = counts.between if isinstance(counts, ModelCounts) else {}
        between = {
            (names.index(a), names.index(b)): seen[names.index(a)].crossed(
                seen[names.index(b)], pairs
            )
            for (a, b), pairs in given.items()
        }
        weight = prior.weights(candidates, kinds, evidence)
        sources = tuple(
            _source(one, each[int(np.argmax(row))], prior.unlike)
            for one, each, row in zip(seen, fitted, weight, strict=True)
        )
        return cls(names, kinds, seen, fitted, weight, learned, between, prior.misfit, sources)

    @classmethod
    def joined(
        cls,
        parts: Mapping[str, Posterior],
        between: Mapping[tuple[str, str], PairCounts],
    ) -> Posterior:
        """Return the posterior of several models, each of whom has been fitted alone.

        ``between`` are the pairs of targets of one user, where they are known.
        """
        first, names = next(iter(parts.values())), tuple(parts)
        seen = tuple(part.seen[0] for part in parts.values())
        crossed = {
            (names.index(a), names.index(b)): seen[names.index(a)].crossed(
                seen[names.index(b)], pairs
            )
            for (a, b), pairs in between.items()
        }
        return replace(
            first,
            names=names,
            seen=seen,
            fitted=tuple(part.fitted[0] for part in parts.values()),
            weight=np.concatenate([part.weight for part in parts.values()]),
            between=crossed,
            sources=tuple(part.sources[0] for part in parts.values()),
        )

    @classmethod
    @one_thread()
    def of_numbers(
        cls,
        numbers: Numbers,
        prior: Prior,
        *,
        kind: str | None = None,
        candidates: str | None = None,
    ) -> Posterior:
        """Return the posterior of one model of which a paper prints some numbers."""
        kinds = prior.possible(candidates, kind)
        learned = tuple(prior.learned[each] for each in kinds)
        found = [numbers.fit(each, prior.misfit) for each in learned]
        fitted = tuple(Fitted((Curve(*each[:3]),), each[3], 0.0, 0.0) for each in found)
        evidence = np.array([[each.evidence for each in fitted]])
        seen = numbers.seen(_worth(numbers.users, prior.misfit))
        weight = prior.weights(candidates, kinds, evidence)
        source = _source(seen, fitted[0], prior.unlike)
        return cls((ALONE,), kinds, (seen,), (fitted,), weight, learned, {}, math.inf, (source,))

    def source(self, name: str = ALONE) -> str:
        """Return where a model's interval comes from: ``"prior"`` or ``"bounds"``."""
        return self.sources[self._number(name)]

    def curve(self, name: str = ALONE) -> RankDistribution:
        """Return P(R) of a model: where its targets are, given what was seen of them."""
        model = self._number(name)
        seen = self.seen[model]
        fine = RankGrid(
            np.unique(np.concatenate([each.grid.low for each in seen.strata])),
            max(each.grid.items for each in seen.strata),
        )
        mass = np.zeros(len(fine))
        for number, stratum in enumerate(seen.strata):
            for weight, fitted, learned in zip(
                self.weight[model], self.fitted[model], self.learned, strict=True
            ):
                masses = _masses(stratum, fitted.curves[number], learned)
                middle = _expected(stratum, _middle(masses)[None])[0]
                inside = stratum.grid.locate(fine.low)
                inside = np.minimum(inside, len(stratum.grid) - 1)
                spread = middle[inside] * fine.width / stratum.grid.width[inside]
                mass += weight * stratum.part * np.where(fine.low <= stratum.grid.items, spread, 0)
        return RankDistribution(fine, mass / mass.sum())

    @one_thread()
    def law(self, metric: str | Metric, *, population: bool = True) -> Law:
        """Return the joint law of the models' logarithms of a metric."""
        asked = parse(metric)
        looks = [
            [
                _look(seen, one, learned, asked, self.misfit)
                for one, learned in zip(fitted, self.learned, strict=True)
            ]
            for seen, fitted in zip(self.seen, self.fitted, strict=True)
        ]
        means = np.array([[look.mean for look in each] for each in looks])
        middle = (self.weight * means).sum(axis=1)
        models = range(len(self.names))
        covariance = np.zeros((len(looks), len(looks)))
        for a in models:
            for b in models[: a + 1]:
                for kind, learned in enumerate(self.learned):
                    found = self._covariance(
                        a, b, looks[a][kind], looks[b][kind], learned, population
                    )
                    apart = (means[a, kind] - middle[a]) * (means[b, kind] - middle[b])
                    part = math.sqrt(self.weight[a, kind] * self.weight[b, kind])
                    covariance[a, b] += part * (found + apart)
                covariance[b, a] = covariance[a, b]
        scale = np.array([each.scale for each in self.seen])
        most = np.array([min(each.ceiling, _most(asked, each)) for each in self.seen])
        return Law(self.names, middle + np.log(scale), covariance, most)

    def _covariance(
        self, a: int, b: int, one: _Look, other: _Look, learned: Learned, population: bool
    ) -> float:
        """Return the covariance of two models' logarithms under one kind."""
        first, second = self.seen[a], self.seen[b]
        if a == b:
            result = float(one.pull @ other.pull)
            spread: FloatArray | None = first.spread
        else:
            result = float(one.pull @ learned.shared @ other.pull)
            spread = self.between.get((a, b))
            if spread is None and (b, a) in self.between:
                spread = self.between[b, a].T
        if spread is None:
            return result
        learn = [look.learned for look in (one, other)]
        whole = learn
        if population:
            whole = [look.learned + look.direct for look in (one, other)]
        result += _inner(first, second, spread, *whole)
        more = math.sqrt(first.independent * second.independent) / self.misfit
        result += more * _inner(first, second, spread, *learn)
        if a == b and not population:
            result += one.own
        return result

    def _number(self, name: str) -> int:
        check_choice("name", name, self.names)
        return self.names.index(name)


@dataclass(frozen=True, eq=False)
class Law:
    """The joint law of the logarithm of one metric of several models: a t law.

    ``mean`` has a number and ``most`` the largest possible value for each model.
    """

    names: tuple[str, ...]
    mean: FloatArray
    covariance: FloatArray
    most: FloatArray
    freedom: float = FREEDOM

    def value(self, name: str = ALONE) -> float:
        """Return the estimate: e to the mean of the logarithm."""
        at = self._number(name)
        return float(min(np.exp(self.mean[at]), self.most[at]))

    def interval(self, name: str = ALONE, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of a model's metric."""
        from scipy.special import stdtrit

        at = self._number(name)
        reach = float(stdtrit(self.freedom, 0.5 + check_level(level) / 2.0)) * self.deviation(name)
        low, high = np.exp(self.mean[at] - reach), np.exp(self.mean[at] + reach)
        return float(min(low, self.most[at])), float(min(high, self.most[at]))

    def deviation(self, name: str = ALONE) -> float:
        """Return the scale of the t law of a model's logarithm."""
        at = self._number(name)
        return math.sqrt(max(self.covariance[at, at], 0.0))

    def resolved(self, name: str = ALONE) -> bool:
        """Return whether the 95 % interval's half-width is at most a quarter of the value."""
        low, high = self.interval(name)
        return (high - low) / 2.0 <= _RESOLVED * self.value(name)

    def difference(self, a: str, b: str) -> Difference:
        """Return the law of the first model's metric less the second's."""
        pair = [self._number(a), self._number(b)]
        return Difference(self.mean[pair], self.covariance[np.ix_(pair, pair)], self.freedom)

    def chance(self, a: str, b: str) -> float:
        """Return the chance that the first model's metric is the greater one."""
        return self.difference(a, b).chance

    def best(self) -> dict[str, float]:
        """Return each model's chance of being the best: never more than of beating one other."""
        if len(self.names) == 1:
            return {self.names[0]: 1.0}
        values, vectors = np.linalg.eigh(self.covariance)
        drawn = _draws(len(self.names)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        tails = np.sqrt(self.freedom / _chi_squares(self.freedom))
        values = self.mean + drawn * tails[:, None]
        top = values == values.max(axis=1, keepdims=True)
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
    as well. So the chance that the difference is at most d is a mean over s of chances of r, and
    the chance that it is positive comes from the same sum: an interval excludes zero exactly where
    that chance passes its level.
    """

    mean: FloatArray
    covariance: FloatArray
    freedom: float = FREEDOM

    @property
    def value(self) -> float:
        """Return the difference of the two values."""
        return float(np.exp(self.mean[0]) - np.exp(self.mean[1]))

    @property
    def chance(self) -> float:
        """Return the chance that the difference is positive; one half where nothing tells."""
        return 1.0 - float(self.cdf(np.zeros(1))[0])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the difference."""
        tail = (1.0 - check_level(level)) / 2.0
        wanted = np.array([tail, 1.0 - tail])
        # The metrics are between 0 and something, and so is the difference.
        reach = 40.0 * np.sqrt(max(float(np.trace(self.covariance)), 0.0)) + 1.0
        most = float(np.exp(np.minimum(self.mean.max() + reach, 50.0)))
        low, high = np.full(2, -most), np.full(2, most)
        for _ in range(200):
            middle = (low + high) / 2.0
            below = self.cdf(middle) < wanted
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        # Of both ends the outer one, unless that were zero: then the side with the chance.
        return float(low[0]) if low[0] < 0 else float(high[0]), float(high[1])

    def cdf(self, values: FloatArray) -> FloatArray:
        """Return the chance that the difference is at most each of the values."""
        from scipy.special import stdtr

        (xx, xy), (_, yy) = self.covariance
        total, ratio = self.mean.sum(), self.mean[0] - self.mean[1]
        of_total, of_ratio, both = xx + yy + 2 * xy, xx + yy - 2 * xy, xx - yy
        nodes, nu = _nodes(self.freedom), self.freedom
        slope = both / of_total if of_total > 0 else 0.0
        left = max(of_ratio - slope * both, 0.0)
        sums = total + nodes * math.sqrt(max(of_total, 0.0))
        middle = ratio + slope * (sums - total)
        scale = np.sqrt(left * (nu + nodes**2) / (nu + 1.0)) + 1e-12
        wanted = 2.0 * np.arcsinh(values[:, None] * np.exp(-sums / 2.0) / 2.0)
        return np.asarray(stdtr(nu + 1.0, (wanted - middle) / scale).mean(axis=1))


# -- fitting --------------------------------------------------------------------------------------


def _fit(seen: Seen, learned: Learned, misfit: float) -> Fitted:
    """Return the curves of a model under one kind."""
    curves, evidence, deviance, freedom = [], 0.0, 0.0, 0.0
    for stratum in seen.strata:
        targets = stratum.part * seen.independent
        density = LogDensity(
            stratum.likelihood,
            stratum.shares[None],
            max(stratum.part * _worth(seen.independent, misfit), _TINY),
            shapes_on(stratum.grid) @ learned.root,
            shapes_on(stratum.grid) @ learned.mean + np.log(stratum.grid.width),
        )
        fit = density.fit()
        weights, information = fit.solution.weights[0], fit.information[0]
        mixture = np.maximum(stratum.likelihood @ weights, _TINY)
        scores = (stratum.likelihood * weights) @ density.shapes / mixture[:, None]
        scores -= weights @ density.shapes
        curves.append(Curve(fit.coefficients[0], np.linalg.inv(information), scores))
        evidence += float(fit.log_evidence[0])
        some = stratum.shares > 0
        ratio = np.log(stratum.shares[some] / mixture[some])
        deviance += 2.0 * targets * float(stratum.shares[some] @ ratio)
        used = SIZE - float(np.trace(curves[-1].inverse))
        freedom += max(len(stratum.shares) - 1.0 - used, 0.0)
    return Fitted(tuple(curves), evidence, deviance, freedom)


def _worth(targets: float, misfit: float) -> float:
    """Return how many targets of a curve that is a sum of shapes would tell as much."""
    return targets / (1.0 + targets / misfit)


def _source(seen: Seen, fitted: Fitted, unlike: float) -> str:
    """Return ``"bounds"`` where users are few, or data unlike those of the bank."""
    noise = fitted.freedom + 3.0 * math.sqrt(2.0 * fitted.freedom)
    strange = fitted.deviance - noise > unlike * seen.independent
    few = seen.users < _FEWEST_USERS
    unknown = seen.shared and seen.beaten is None
    return "bounds" if few or strange or unknown else "prior"


# -- looking at a metric --------------------------------------------------------------------------


def _look(seen: Seen, fitted: Fitted, learned: Learned, metric: Metric, misfit: float) -> _Look:
    """Return a metric's logarithm under one kind, at points around the mode."""
    points = _points()
    parts, slopes, direct, open_variance = [], [], [], []
    for stratum, curve in zip(seen.strata, fitted.curves, strict=True):
        weights = bin_weights(metric, stratum.grid, stratum.grid.items)
        spread = np.linalg.cholesky(curve.inverse)
        masses = _masses(stratum, curve, learned)
        logs = np.log(np.maximum(_expected(stratum, masses) @ weights, _LEAST))
        mean = float(logs.mean())
        slope = np.linalg.solve(spread.T, (logs - mean) @ points / len(points))
        middle = stratum.likelihood * _middle(masses)
        total = np.maximum(middle.sum(axis=1), _TINY)
        first, second = middle @ weights / total, middle @ weights**2 / total
        parts.append(stratum.part * math.exp(mean))
        slopes.append(slope)
        direct.append(first)
        open_variance.append(stratum.part * stratum.shares @ np.maximum(second - first**2, 0.0))
    value = max(sum(parts), _LEAST)
    turned = [
        part / value * curve.inverse @ slope
        for part, curve, slope in zip(parts, fitted.curves, slopes, strict=True)
    ]
    learn = [curve.scores @ each for curve, each in zip(fitted.curves, turned, strict=True)]
    expected = np.concatenate(direct)
    mean_of_cells = max(float(expected @ seen.weight) / seen.total, _LEAST)
    return _Look(
        math.log(value),
        np.sum(turned, axis=0),
        expected / mean_of_cells / seen.total,
        np.concatenate(learn) * (_worth(seen.independent, misfit) / seen.total),
        float(sum(open_variance)) / mean_of_cells**2 / max(seen.independent, 1.0),
    )


def _inner(
    first: Seen, second: Seen, spread: FloatArray, one: FloatArray, other: FloatArray
) -> float:
    """Return the sum over users of products of centred scores."""
    return float(first.centred(one[None])[0] @ spread @ second.centred(other[None])[0])


def _masses(stratum: Stratum, curve: Curve, learned: Learned) -> FloatArray:
    """Return P(R) at the points around a mode (points x bins)."""
    shapes = shapes_on(stratum.grid)
    places = curve.mode + _points() @ np.linalg.cholesky(curve.inverse).T
    exponent = (learned.mean + places @ learned.root) @ shapes.T + np.log(stratum.grid.width)
    mass = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _expected(stratum: Stratum, masses: FloatArray) -> FloatArray:
    """Return where the targets are, given their cells (rows of masses x bins)."""
    if stratum.printed:
        return masses
    mixture = np.maximum(masses @ stratum.likelihood.T, _TINY)
    return np.asarray(masses * ((stratum.shares / mixture) @ stratum.likelihood))


def _middle(masses: FloatArray) -> FloatArray:
    """Return the geometric mean of distributions (points x bins), as a distribution."""
    mass = np.exp(np.log(np.maximum(masses, _TINY)).mean(axis=0))
    return np.asarray(mass / mass.sum())


def _most(metric: Metric, seen: Seen) -> float:
    """Return the metric of a user whose one relevant item comes first."""
    if metric.family.unlimited:
        return math.inf
    items = max(each.grid.items for each in seen.strata)
    return float(metric.weights(np.array([1]), items)[0]) * (
        1.0 if seen.metric is None else math.inf
    )


# -- fixed points ---------------------------------------------------------------------------------


@cache
def _points() -> FloatArray:
    """Return fixed points with mean zero and the identity for covariance: pairs +-x, rotated."""
    rng = np.random.default_rng(20)
    sets = [np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0] for _ in range(_POINT_SETS)]
    half = math.sqrt(SIZE) * np.concatenate(sets)
    return np.concatenate([half, -half])


@cache
def _nodes(freedom: float) -> FloatArray:
    """Return quantiles of a t law in the middle of equal parts."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, (np.arange(_NODES) + 0.5) / _NODES))


@cache
def _draws(models: int) -> FloatArray:
    return np.random.default_rng(33).standard_normal((_DRAWS, models))


@cache
def _chi_squares(freedom: float) -> FloatArray:
    return np.asarray(np.random.default_rng(34).chisquare(freedom, size=_DRAWS))
