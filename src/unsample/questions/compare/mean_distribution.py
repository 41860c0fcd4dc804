"""`MeanDistribution`: the joint distribution of means over users.

Full rankings, drawn users and unbiased means of sampled ranks have such means. Two models that were
judged by the same users err together, so their difference is known better than either. What users
add to a mean is known user by user after `evaluate`. Otherwise pairs of cells of the same user
(`ModelCounts.between`) give the same products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from unsample._checks import FloatArray
from unsample._threads import one_thread
from unsample.bounds import DirectMean, DrawnError, MeanError, degrees_of_freedom
from unsample.counts import RankCounts, deviations_of_mean, on_pair_cells, variance_of_mean
from unsample.designs import UserValues
from unsample.likelihood import Observed
from unsample.metrics import Metric
from unsample.posterior import CAUTION, FixedNumbers, symmetric_root
from unsample.questions.compare.models import Models
from unsample.questions.estimate.result import Estimate
from unsample.uncertainty import MeanWithError, MeanWithLimits, quantile

if TYPE_CHECKING:
    from unsample.questions.evaluate.result import Evaluation

#: An error below this share of the errors of the two models comes from rounding.
_NO_ERROR = 1e-9


@dataclass(frozen=True, eq=False)
class MeanDistribution:
    """The joint t distribution of several models' means: a record of moments."""

    names: tuple[str, ...]
    mean: FloatArray
    covariance: FloatArray
    #: Degrees of freedom of each model's difference from each other.
    df: FloatArray

    @classmethod
    def of(
        cls, metric: Metric, models: Models, entries: Mapping[str, Estimate]
    ) -> MeanDistribution:
        """Return the distribution of some models, whose errors are those of each model alone."""
        names = tuple(entries)
        values = np.array([entry.value for entry in entries.values()])
        errors = np.array([_error(entry) for entry in entries.values()])
        users = np.array([float(max(models.counts[name].users - 1, 1)) for name in names])
        together, df = np.eye(len(names)), np.minimum.outer(users, users)
        ranked = {name: models.ranked[name] for name in names if name in models.ranked}
        if len(ranked) == len(names) and models.matched:
            found = _by_users(metric, ranked, entries)
        else:
            found = _by_cells(metric, models, entries)
        for (a, b), (correlation, degrees) in found.items():
            pair = [names.index(a), names.index(b)]
            together[pair, pair[::-1]], df[pair, pair[::-1]] = correlation, degrees
        return cls(names, values, together * np.outer(errors, errors), df)

    def difference(self, a: str, b: str) -> MeanWithError:
        """Return the distribution of the first model's mean less the second's."""
        i, j = self.names.index(a), self.names.index(b)
        alone = math.sqrt(self.covariance[i, i] + self.covariance[j, j])
        square = alone**2 - 2.0 * float(self.covariance[i, j])
        error = math.sqrt(max(square, 0.0))
        if error <= _NO_ERROR * alone:
            # Equal differences for all users do not prove that there is no error.
            error = alone
        value = float(self.mean[i] - self.mean[j])
        return MeanWithError(value, error * math.sqrt(CAUTION), float(self.df[i, j]))

    @one_thread()
    def draws(self, numbers: FixedNumbers, *, stream: int, caution: bool) -> FloatArray:
        """Return draws of all means (draws x models), as they count in comparisons or alone."""
        from scipy.special import ndtr, stdtrit

        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        inverse = np.where(errors > 0.0, 1.0 / np.where(errors > 0.0, errors, 1.0), 0.0)
        correlation = self.covariance * np.outer(inverse, inverse)
        np.fill_diagonal(correlation, 1.0)
        # In whatever order models come, each has the same numbers.
        columns = np.argsort(np.argsort(self.names))
        normals = numbers.normals(len(self.names), stream=stream)[:, columns]
        scores = normals @ symmetric_root(correlation)
        deviations = stdtrit(np.diag(self.df), np.clip(ndtr(scores), 1e-12, 1.0 - 1e-12))
        factor = math.sqrt(CAUTION) if caution else 1.0
        return np.asarray(self.mean + factor * errors * deviations)


#: Of each two models, the correlation of their means, and the df of the difference.
_Together = dict[tuple[str, str], tuple[float, float]]


def _by_users(
    metric: Metric, made: Mapping[str, Evaluation], entries: Mapping[str, Estimate]
) -> _Together:
    """Return what models have in common, by what each user adds to their means."""
    everyone = np.unique(np.concatenate([each.users for each in made.values()]))
    added = {}
    for name, each in made.items():
        users, targets = np.unique(each.users, return_counts=True)
        like = entries[name].like
        if isinstance(like, MeanWithLimits) and isinstance(like.error, DrawnError):
            totals = like.error.totals
        else:
            totals = UserValues.of(each.found, [metric], relevance=each.relevance).totals[:, 0]
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
        df = float(max(min(one.users, other.users) - 1, 1))
        if one.clusters is None and both.count.sum() == one.users == other.users:
            # One target of each user under both models: a pair of cells is a user's difference.
            df = degrees_of_freedom(first[both.left] - second[both.right], both.count)
        found[a, b] = correlation, df
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
    like = entry.like
    if isinstance(like, MeanWithError):
        return like.error
    error = _standard_error(like.error) if isinstance(like, MeanWithLimits) else 0.0
    if not error > 0.0:
        low, high = entry.interval()
        error = (high - low) / 2.0 / quantile(0.95)
    return 0.0 if math.isnan(error) else error


def _standard_error(error: object) -> float:
    """Return the standard error for users like these, where nothing better is known."""
    return error.population if isinstance(error, MeanError | DrawnError) else 0.0
