"""`Posterior`: curves of one model or several, and `Law`: what they say of one metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from unsample._checks import FloatArray
from unsample._threads import one_thread
from unsample.estimators import LogDensity
from unsample.evidence import ModelCounts, PairCounts, RankCounts
from unsample.law import RankDistribution, RankGrid, bin_weights
from unsample.metrics import Metric, parse
from unsample.prior._law import ALONE, BOUNDS, PRIOR, Law
from unsample.prior._learn import Learned
from unsample.prior._numbers import Numbers
from unsample.prior._seen import Seen, Stratum
from unsample.prior._shapes import points, shapes_on

if TYPE_CHECKING:
    from unsample.prior._prior import Prior

_TINY, _LEAST = 1e-300, 1e-12
#: With fewer users nothing is calibrated, and where fewer shared items carry a variance, nothing
#: tells how large it is.
FEWEST_USERS, _FEWEST_ITEMS = 50.0, 4.0
#: Standard deviations of the deviance that chance and prior may add.
_CHANCE = 4.1
#: Times log(n + 1): half the least share of targets beaten by any of n items in the bank.
_BEATEN = 0.0175
#: Curves that few numbers tell bend more than linearly: this much is added to both factors.
_PRINTED = 1.3


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

    ``deviance`` is that of the cells, and of the mode under the prior. Where the data are like
    those of the bank, it has the mean ``freedom`` and the variance ``chance``.
    """

    curves: tuple[Curve, ...]
    evidence: float
    deviance: float = 0.0
    freedom: float = 0.0
    chance: float = 0.0


@dataclass(frozen=True, eq=False)
class _Linear:
    """The logarithm of a metric under one kind, linear in what may vary.

    ``pull`` is H^-1 times the slope by the coefficients: how far the prior's error moves it.
    ``direct`` and ``learned`` (cells) are what one target adds, as one of those that the mean is
    taken over, and through the curve. ``open`` is the relative variance that cells leave open of
    these targets' own ranks.
    """

    mean: float
    pull: FloatArray
    direct: FloatArray
    learned: FloatArray
    open: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """Models on one data set, given what was seen of them: a record of arrays.

    `law` gives the law of any metric. ``sources`` says of each model whether its intervals are the
    ``"prior"``'s or must be the ``"bounds"``.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    seen: tuple[Seen, ...] = field(repr=False)
    #: By model and kind, and the weight of each.
    fitted: tuple[tuple[Fitted, ...], ...] = field(repr=False)
    weight: FloatArray = field(repr=False)
    learned: tuple[Learned, ...] = field(repr=False)
    #: Sums over users of products of what targets of two models add, by the models' numbers.
    between: Mapping[tuple[int, int], FloatArray] = field(repr=False)
    misfit: float
    sources: tuple[str, ...]

    @classmethod
    @one_thread()
    def of(
        cls,
        counts: RankCounts | Mapping[str, RankCounts],
        prior: Prior,
        *,
        kind: str | None = None,
        candidates: str | None = None,
    ) -> Posterior:
        """Return the posterior of one model or several.

        Which models have their users in common, `ModelCounts` say. Without a ``kind``, those that
        ``candidates`` allows are mixed by their evidence.
        """
        if not isinstance(counts, RankCounts):
            parts = {
                name: cls.of(each, prior, kind=kind, candidates=candidates)
                for name, each in counts.items()
            }
            return cls.joined(parts, counts.between if isinstance(counts, ModelCounts) else {})
        seen, kinds = Seen.of(counts), prior.possible(candidates, kind)
        learned = tuple(prior.learned[each] for each in kinds)
        fitted = tuple(_fit(seen, one) for one in learned)
        found = cls._alone(seen, fitted, kinds, learned, prior, candidates)
        return replace(found, sources=(BOUNDS,)) if _hardly_beaten(counts) else found

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
        found = [numbers.fit(prior.learned[each], prior.misfit) for each in kinds]
        learned = tuple(prior.learned[each].widened(_PRINTED) for each in kinds)
        fitted = tuple(Fitted((Curve(*each[:3]),), each[3]) for each in found)
        return cls._alone(numbers.seen(), fitted, kinds, learned, prior, candidates)

    @classmethod
    def _alone(
        cls,
        seen: Seen,
        fitted: tuple[Fitted, ...],
        kinds: tuple[str, ...],
        learned: tuple[Learned, ...],
        prior: Prior,
        candidates: str | None,
    ) -> Posterior:
        """Return the posterior of one model, its kinds mixed by their evidence."""
        evidence = np.array([[each.evidence for each in fitted]])
        weight = prior.weights(candidates, kinds, evidence)
        sources = (_source(seen, fitted, prior.unlike),)
        return cls((ALONE,), kinds, (seen,), (fitted,), weight, learned, {}, prior.misfit, sources)

    @classmethod
    def joined(
        cls, parts: Mapping[str, Posterior], between: Mapping[tuple[str, str], PairCounts]
    ) -> Posterior:
        """Return the posterior of models that were fitted alone under one prior.

        ``between`` are the pairs of targets of one user, where they are known.
        """
        number = {name: at for at, name in enumerate(parts)}
        seen = tuple(part.seen[0] for part in parts.values())
        return replace(
            next(iter(parts.values())),
            names=tuple(parts),
            seen=seen,
            fitted=tuple(part.fitted[0] for part in parts.values()),
            weight=np.concatenate([part.weight for part in parts.values()]),
            between={
                (number[a], number[b]): seen[number[a]].crossed(seen[number[b]], each)
                for (a, b), each in between.items()
            },
            sources=tuple(part.sources[0] for part in parts.values()),
        )

    def curve(self) -> RankDistribution:
        """Return P(R) of one model: where its targets are, given what was seen of them."""
        (seen,), (fitted,), (weights,) = self.seen, self.fitted, self.weight
        lows = np.unique(np.concatenate([each.grid.low for each in seen.strata]))
        fine = RankGrid(lows, max(each.grid.items for each in seen.strata))
        mass = np.zeros(len(fine))
        for number, stratum in enumerate(seen.strata):
            inside = stratum.grid.locate(fine.low)
            within = np.where(fine.low <= stratum.grid.items, fine.width, 0)
            for weight, fit, learned in zip(weights, fitted, self.learned, strict=True):
                middle = _middle(_masses(stratum, fit.curves[number], learned))
                density = _expected(stratum, middle[None])[0] / stratum.grid.width
                mass += weight * stratum.part * density[inside] * within
        return RankDistribution(fine, mass / mass.sum())

    @one_thread()
    def law(self, metric: str | Metric, *, population: bool = True) -> Law:
        """Return the joint law of the models' logarithms of a metric.

        It is for the ``population`` of users like these, or for these users alone: where a full
        ranking of the same targets would land.
        """
        asked = parse(metric)
        parts = [
            [_linear(seen, *each, asked) for each in zip(fitted, self.learned, strict=True)]
            for seen, fitted in zip(self.seen, self.fitted, strict=True)
        ]
        means = np.array([[part.mean for part in each] for each in parts])
        middle = (self.weight * means).sum(axis=1)
        size = len(self.names)
        common, own, users = np.zeros((size, size)), np.zeros(size), np.zeros((size, size))
        sources = list(self.sources)
        for kind, learned in enumerate(self.learned):
            # A product with roots of the weights on both sides: a covariance, and on the diagonal
            # the mean over kinds.
            share = np.sqrt(np.outer(self.weight[:, kind], self.weight[:, kind]))
            apart = means[:, kind] - middle
            some = [each[kind] for each in parts]
            pulls = np.stack([part.pull for part in some])
            shared = pulls @ learned.shared @ pulls.T
            alone = np.maximum((pulls**2).sum(axis=1) - np.diag(shared), 0.0)
            common += share * (learned.factors[0] * shared + np.outer(apart, apart))
            own += np.diag(share) * learned.factors[1] * alone
            users += share * self._users(some, population, sources)
        scale = np.array([each.scale for each in self.seen])
        most = np.array([min(each.ceiling, _most(asked, each)) for each in self.seen])
        moments = (middle + np.log(scale), common, own, users, most)
        return Law(self.names, *moments, sources=tuple(sources))

    def _users(self, parts: list[_Linear], population: bool, sources: list[str]) -> FloatArray:
        """Return the part of the covariance that comes from the targets at hand, under one kind.

        What curves leave out of P(R) acts like the chance of ``misfit`` targets more. Models whose
        shared items are too few to tell are marked in ``sources``.
        """
        size = len(parts)
        learned = [part.learned for part in parts]
        added = [part.learned + part.direct for part in parts]
        whole = added if population else learned
        result = np.zeros((size, size))
        more = [seen.independent / self.misfit for seen in self.seen]
        # A draw that all targets share moves all their cells, whoever they are.
        items = [
            None if seen.items is None else seen.items.changes(scores)
            for seen, scores in zip(self.seen, added, strict=True)
        ]
        for a in range(size):
            spread = self.seen[a].spread
            result[a, a] = self._inner(a, a, spread, whole)
            result[a, a] += more[a] * self._inner(a, a, spread, learned)
            result[a, a] += parts[a].open * (more[a] + (not population))
            changes = items[a]
            if changes is not None:
                result[a, a] += float(changes @ changes)
                if (changes**2).sum() ** 2 < _FEWEST_ITEMS * (changes**4).sum():
                    sources[a] = BOUNDS
        for (a, b), spread in self.between.items():
            both = self._inner(a, b, spread, whole)
            both += math.sqrt(more[a] * more[b]) * self._inner(a, b, spread, learned)
            result[a, b] = result[b, a] = both
        for a, b in combinations(range(size), 2):
            both = self._same_items(a, b, items[a], items[b])
            result[a, b], result[b, a] = result[a, b] + both, result[b, a] + both
        return result

    def _inner(self, a: int, b: int, spread: FloatArray, scores: list[FloatArray]) -> float:
        """Return the sum over users of products of centred scores."""
        return float(self.seen[a].centred(scores[a]) @ spread @ self.seen[b].centred(scores[b]))

    def _same_items(
        self, a: int, b: int, one: FloatArray | None, other: FloatArray | None
    ) -> float:
        """Return the covariance that comes from items which two models were both ranked against."""
        first, second = self.seen[a].items, self.seen[b].items
        if first is None or second is None or one is None or other is None:
            return 0.0
        _, left, right = np.intersect1d(first.names, second.names, return_indices=True)
        return float(one[left] @ other[right])


# -- fitting --------------------------------------------------------------------------------------


def _fit(seen: Seen, learned: Learned) -> Fitted:
    """Return the curves of a model under one kind."""
    curves, evidence, deviance, freedom, chance = [], 0.0, 0.0, 0.0, 0.0
    for stratum in seen.strata:
        targets = max(stratum.part * seen.independent, _TINY)
        density = LogDensity(
            stratum.likelihood,
            stratum.shares,
            targets,
            shapes_on(stratum.grid) @ learned.root,
            shapes_on(stratum.grid) @ learned.mean + np.log(stratum.grid.width),
        )
        fit = density.fit()
        weights = fit.weights
        mixture = np.maximum(stratum.likelihood @ weights, _TINY)
        scores = (stratum.likelihood * weights) @ density.shapes / mixture[:, None]
        scores -= weights @ density.shapes
        curves.append(Curve(fit.coefficients, np.asarray(np.linalg.inv(fit.information)), scores))
        evidence += fit.log_evidence
        some = stratum.shares > 0
        ratio = np.log(stratum.shares[some] / mixture[some])
        deviance += 2.0 * targets * float(stratum.shares[some] @ ratio)
        deviance += float(fit.coefficients @ fit.coefficients)
        own = len(stratum.shares) - 1.0
        mean, square = _of_items(seen, targets, np.maximum(mixture, stratum.shares), curves[-1])
        freedom += own + mean
        chance += 2.0 * (own + 2.0 * mean + square)
    return Fitted(tuple(curves), evidence, deviance, freedom, chance)


def _of_items(
    seen: Seen, targets: float, expected: FloatArray, curve: Curve
) -> tuple[float, float]:
    """Return what a draw of shared items adds to the mean of the deviance, and to its variance.

    The deviance is about x' Q x, where x are differences of shares in standard errors of single
    targets, and Q = I - J H^-1 J' takes out what the curve follows. x has the covariance
    Q^-1 under the prior, and that of the items besides.
    """
    if seen.items is None:
        return 0.0, 0.0
    width = np.sqrt(targets / expected)
    slopes = np.sqrt(targets * expected)[:, None] * curve.scores
    left = np.eye(len(expected)) - slopes @ curve.inverse @ slopes.T
    added = left @ (seen.items.covariance / seen.total**2 * np.outer(width, width))
    return max(float(np.trace(added)), 0.0), max(float((added * added.T).sum()), 0.0)


def _source(seen: Seen, fitted: tuple[Fitted, ...], unlike: float) -> str:
    """Return ``"bounds"`` where users are few, or data unlike those of the bank under any kind."""
    strange = all(
        each.deviance - each.freedom - _CHANCE * math.sqrt(each.chance) > unlike * seen.independent
        for each in fitted
    )
    unknown = seen.shared and seen.items is None
    return BOUNDS if strange or unknown or seen.users < FEWEST_USERS else PRIOR


def _hardly_beaten(counts: RankCounts) -> bool:
    """Return whether so many targets come first in their samples that no curve can be told.

    Where all do, nothing says how near to perfect a model is, and no error is seen.
    """
    open_ = ~counts.known
    weight = counts.weight[open_]
    limit = _BEATEN * float(weight @ np.log1p(counts.sampled[open_]))
    return bool(weight[counts.high[open_] > 1].sum() < limit)


# -- metrics of curves -----------------------------------------------------------------------------


def _linear(seen: Seen, fitted: Fitted, learned: Learned, metric: Metric) -> _Linear:
    """Return the logarithm of a metric under one kind, from points around the mode."""
    places = points()
    parts, slopes, direct, still_open = [], [], [], 0.0
    for stratum, curve in zip(seen.strata, fitted.curves, strict=True):
        weights = bin_weights(metric, stratum.grid, stratum.grid.items)
        masses = _masses(stratum, curve, learned)
        logs = np.log(np.maximum(_expected(stratum, masses) @ weights, _LEAST))
        # The mean slope, from the points to standard deviations of the prior.
        slope = (logs - logs.mean()) @ places / len(places)
        slopes.append(np.linalg.solve(np.linalg.cholesky(curve.inverse).T, slope))
        parts.append(stratum.part * math.exp(logs.mean()))
        middle = stratum.likelihood * _middle(masses)
        total = np.maximum(middle.sum(axis=1), _TINY)
        first, second = middle @ weights / total, middle @ weights**2 / total
        direct.append(first)
        still_open += stratum.part * float(stratum.shares @ np.maximum(second - first**2, 0.0))
    value = max(sum(parts), _LEAST)
    turned = [
        part / value * (curve.inverse @ slope)
        for part, curve, slope in zip(parts, fitted.curves, slopes, strict=True)
    ]
    through = [curve.scores @ each for curve, each in zip(fitted.curves, turned, strict=True)]
    expected = np.concatenate(direct)
    mean = max(float(expected @ seen.weight) / seen.total, _LEAST)
    return _Linear(
        math.log(value),
        np.sum(turned, axis=0),
        expected / (mean * seen.total),
        np.concatenate(through) * (seen.independent / seen.total),
        still_open / mean**2 / max(seen.independent, 1.0),
    )


def _masses(stratum: Stratum, curve: Curve, learned: Learned) -> FloatArray:
    """Return P(R) at the points around a mode (points x bins)."""
    places = curve.mode + points() @ np.linalg.cholesky(curve.inverse).T
    exponent = (learned.mean + places @ learned.root) @ shapes_on(stratum.grid).T
    exponent += np.log(stratum.grid.width)
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
    if metric.family.unlimited or seen.metric is not None:
        return math.inf
    items = max(each.grid.items for each in seen.strata)
    return float(metric.weights(np.array([1]), items)[0])
