"""`MeanLaw`: the joint law of means over users, where nothing but chance is left open.

Full rankings, drawn users and unbiased means of sampled ranks have such means. Two models that were
judged by the same users err together, so their difference is known better than either. What users
add to a mean is known user by user after `evaluate`. Otherwise pairs of cells of the same user
(`ModelCounts.between`) give the same products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unsample._checks import FloatArray
from unsample.answers._estimates import Estimate
from unsample.answers._evaluation import Evaluation
from unsample.answers._models import Models
from unsample.answers._spread import MeanSpread, TSpread
from unsample.bounds import DirectMean, DrawnError, degrees_of_freedom, quantile
from unsample.designs import UserValues
from unsample.estimators import Observed
from unsample.evidence import (
    RankCounts,
    deviations_of_mean,
    on_pair_cells,
    variance_of_mean,
)
from unsample.metrics import Metric
from unsample.prior import (
    CAUTION,
    DRAWS,
    best_of,
    cautious,
    draws_of_runs,
    runs_apart,
    symmetric_root,
    variance_of_runs,
    with_runs,
)

#: An error below this share of the errors of the two models comes from rounding.
_NO_ERROR = 1e-9


@dataclass(frozen=True, eq=False)
class MeanLaw:
    """The joint t law of several models' means: a record of moments, as `prior.Law` is."""

    names: tuple[str, ...]
    mean: FloatArray
    covariance: FloatArray
    #: Degrees of freedom of each model's difference from each other.
    freedom: FloatArray
    #: The squared scale that comes from the spread of each model's runs, and its freedom.
    runs: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, metric: Metric, models: Models, entries: Mapping[str, Estimate]) -> MeanLaw:
        """Return the law of some models, whose errors are those of each model alone."""
        names = tuple(entries)
        values = np.array([entry.value for entry in entries.values()])
        errors = np.array([_error(entry) for entry in entries.values()])
        users = np.array([float(max(models.counts[name].users - 1, 1)) for name in names])
        together, freedom = np.eye(len(names)), np.minimum.outer(users, users)
        ranked = {name: models.ranked[name] for name in names if name in models.ranked}
        if len(ranked) == len(names) and models.matched:
            found = _by_users(metric, ranked, entries)
        else:
            found = _by_cells(metric, models, entries)
        for (a, b), (correlation, degrees) in found.items():
            pair = [names.index(a), names.index(b)]
            together[pair, pair[::-1]], freedom[pair, pair[::-1]] = correlation, degrees
        return cls(names, values, together * np.outer(errors, errors), freedom)

    def averaged(self, runs: Mapping[str, Sequence[str]]) -> MeanLaw:
        """Return the law of models, given which of the names are the runs of each."""
        places = [[self.names.index(name) for name in names] for names in runs.values()]
        shares = np.zeros((len(runs), len(self.names)))
        for row, at in zip(shares, places, strict=True):
            row[at] = 1.0 / len(at)
        degrees = [[self.freedom[np.ix_(a, b)].min() for b in places] for a in places]
        between = [runs_apart(self.mean[at], self.covariance[np.ix_(at, at)]) for at in places]
        covariance = shares @ self.covariance @ shares.T
        mean, freedom = shares @ self.mean, np.array(degrees)
        return MeanLaw(tuple(runs), mean, covariance, freedom, tuple(between))

    def spread(self, name: str) -> TSpread:
        """Return the law of one model's mean."""
        at = self.names.index(name)
        scale, freedom = math.sqrt(self.covariance[at, at]), float(self.freedom[at, at])
        error, freedom = with_runs(scale, freedom, self.runs[at : at + 1])
        value = float(self.mean[at])
        return TSpread(value, error, freedom, min(value, 0.0), max(value, 1.0))

    def difference(self, a: str, b: str) -> TSpread:
        """Return the law of the first model's mean less the second's."""
        i, j = self.names.index(a), self.names.index(b)
        alone = math.sqrt(self.covariance[i, i] + self.covariance[j, j])
        square = alone**2 - 2.0 * float(self.covariance[i, j])
        error = math.sqrt(max(square, 0.0))
        if error <= _NO_ERROR * alone:
            # Equal differences for all users do not prove that chance plays no part.
            error = alone
        runs = [cautious(*self.runs[at]) for at in (i, j)] if self.runs else []
        found = with_runs(error * math.sqrt(CAUTION), float(self.freedom[i, j]), runs)
        return TSpread(float(self.mean[i] - self.mean[j]), *found)

    def best(self) -> dict[str, float]:
        """Return each model's chance of being the best."""
        rng, shape = np.random.default_rng(33), (DRAWS, len(self.names))
        noise = rng.standard_normal(shape) @ symmetric_root(CAUTION * self.covariance)
        freedom = self.freedom.min()
        tails = np.sqrt(freedom / rng.chisquare(freedom, size=(DRAWS, 1)))
        drawn = self.mean + noise * tails + draws_of_runs(self.runs, shape, rng)
        return best_of(self.names, drawn, lambda a, b: self.difference(a, b).chance)

    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return values, and their variances by a prior, of which there is none, and by users."""
        users = self.covariance + variance_of_runs(self.runs, len(self.names))
        return self.mean, np.zeros_like(users), users


#: Of each two models, the correlation of their means, and the freedom of the difference.
_Together = dict[tuple[str, str], tuple[float, float]]


def _by_users(
    metric: Metric, made: Mapping[str, Evaluation], entries: Mapping[str, Estimate]
) -> _Together:
    """Return what models have in common, by what each user adds to their means."""
    everyone = np.unique(np.concatenate([each.users for each in made.values()]))
    added = {}
    for name, each in made.items():
        users, targets = np.unique(each.users, return_counts=True)
        spread = entries[name].spread
        if isinstance(spread, MeanSpread) and isinstance(spread.error, DrawnError):
            totals = spread.error.totals
        else:
            totals = UserValues.of(each.found, [metric], each.relevance).totals[:, 0]
        weights = targets.astype(np.float64) if each.filtered else np.ones(len(users))
        added[name] = np.zeros(len(everyone))
        added[name][np.searchsorted(everyone, users)] = deviations_of_mean(totals, weights)
    found = _Together()
    for (a, one), (b, other) in combinations(added.items(), 2):
        correlation = _correlation(
            *(float(x @ y) for x, y in ((one, other), (one, one), (other, other)))
        )
        found[a, b] = correlation, degrees_of_freedom(one - other)
    return found


def _by_cells(metric: Metric, models: Models, entries: Mapping[str, Estimate]) -> _Together:
    """Return what models have in common, by pairs of cells of the same user."""
    cells, found = {}, _Together()
    for name, entry in entries.items():
        direct = DirectMean.of(metric, entry.counts)
        known = Observed.prepare(entry.counts).known_weights([metric])[:, 0]
        scores = known if direct is None else direct.values
        cells[name] = models.counts[name].for_metric(metric), scores
    for (a, b), both in models.between.items():
        if not {a, b} <= cells.keys():
            continue
        one, other = cells[a][0], cells[b][0]
        first, second = (on_pair_cells(*cells[name], both.keys) for name in (a, b))
        variances = (_variance(*cells[name]) for name in (a, b))
        correlation = _correlation(both.inner(first, second), *variances)
        freedom = float(max(min(one.users, other.users) - 1, 1))
        if one.clusters is None and both.count.sum() == one.users == other.users:
            # One target of each user under both models: a pair of cells is a user's difference.
            freedom = degrees_of_freedom(first[both.left] - second[both.right], both.count)
        found[a, b] = correlation, freedom
    return found


def _variance(counts: RankCounts, scores: FloatArray) -> float:
    """Return the sum of squares of what users add to a mean."""
    found = variance_of_mean(counts, scores)
    if counts.clusters is None:
        return found
    # What makes a variance of few users unbiased is left out here.
    return found * max(counts.users - 1, 1) / counts.users


def _correlation(product: float, *variances: float) -> float:
    """Return the correlation of two means; 0 where one of them does not vary."""
    both = math.prod(variances)
    return float(np.clip(product / math.sqrt(both), -1.0, 1.0)) if both > 0.0 else 0.0


def _error(entry: Estimate) -> float:
    """Return the standard error of a mean; where nothing varies, as its interval has it."""
    spread = entry.spread
    if isinstance(spread, TSpread):
        return spread.error
    error = spread.error.population if isinstance(spread, MeanSpread) else 0.0
    if not error > 0.0:
        low, high = entry.interval()
        error = (high - low) / 2.0 / quantile(0.95)
    return 0.0 if math.isnan(error) else error
