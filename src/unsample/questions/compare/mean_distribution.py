"""`MeanDistribution`: the joint distribution of means over users.

Full rankings, drawn users and unbiased means of sampled ranks are such means. Two models that were
judged by the same users have correlated errors, so their difference is known better than either.
After `evaluate` it is known how much each user adds to each mean, which gives the correlation.
Otherwise pairs of cells of the same user (`ModelCounts.between`) give the same sums of products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

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
from unsample.uncertainty import DEFAULT_LEVEL, MeanWithError, MeanWithLimits, quantile

if TYPE_CHECKING:
    from unsample.questions.evaluate.result import Evaluation

#: An error below this share of the errors of the two models comes from rounding.
_NO_ERROR = 1e-9
#: Probabilities are kept this far from 0 and 1, where quantiles are infinite.
_TINY_TAIL = 1e-12


class Correlated(NamedTuple):
    """How the means of two models vary together."""

    #: The correlation of their errors.
    correlation: float
    #: The degrees of freedom of their difference.
    df: float


#: Two models, and how their means vary together.
_ByPair = dict[tuple[str, str], Correlated]


@dataclass(frozen=True, eq=False)
class MeanDistribution:
    """The joint t distribution of several models' means: a record of moments.

    Two models with the error 0.01 and a correlation of 0.5: the variance of their difference is
    0.01^2 + 0.01^2 - 2 * 0.5 * 0.01^2 = 0.01^2. Comparisons widen the error by 1.19.

    >>> covariance = np.array([[1.0, 0.5], [0.5, 1.0]]) * 0.01**2
    >>> means = MeanDistribution(
    ...     ("A", "B"), np.array([0.3, 0.2]), covariance=covariance, df=np.full((2, 2), 99.0)
    ... )
    >>> difference = means.difference("A", "B")
    >>> round(difference.value, 4), round(difference.error, 4), difference.df
    (0.1, 0.0119, 99.0)
    """

    names: tuple[str, ...]
    mean: FloatArray
    #: The covariance of the errors (models x models).
    covariance: FloatArray
    #: The degrees of freedom of the difference of each two models; a model's own on the diagonal.
    df: FloatArray

    @classmethod
    def of(
        cls, metric: Metric, models: Models, *, entries: Mapping[str, Estimate]
    ) -> MeanDistribution:
        """Return the distribution of the models that ``entries`` has an estimate of."""
        names = tuple(entries)
        values = np.array([entry.value for entry in entries.values()])
        errors = np.array([_error(entry) for entry in entries.values()])
        # Without users in common models are independent, and the smaller number of users counts.
        own_df = np.array([float(max(models.counts[name].users - 1, 1)) for name in names])
        correlations = np.eye(len(names))
        df = np.minimum.outer(own_df, own_df)
        ranked = {name: models.ranked[name] for name in names if name in models.ranked}
        if len(ranked) == len(names) and models.matched:
            correlated = _by_users(metric, ranked, entries=entries)
        else:
            correlated = _by_cells(metric, models, entries=entries)
        for (a, b), pair in correlated.items():
            i, j = names.index(a), names.index(b)
            both_orders = ([i, j], [j, i])
            correlations[both_orders] = pair.correlation
            df[both_orders] = pair.df
        return cls(names, values, covariance=correlations * np.outer(errors, errors), df=df)

    def difference(self, a: str, b: str) -> MeanWithError:
        """Return the distribution of the mean of model ``a`` minus the mean of model ``b``."""
        i, j = self.names.index(a), self.names.index(b)
        # The error if the two models were independent.
        unpaired = math.sqrt(self.covariance[i, i] + self.covariance[j, j])
        square = unpaired**2 - 2.0 * float(self.covariance[i, j])
        error = math.sqrt(max(square, 0.0))
        if error <= _NO_ERROR * unpaired:
            # Equal differences for all users do not prove that there is no error.
            error = unpaired
        return MeanWithError(
            value=float(self.mean[i] - self.mean[j]),
            error=error * math.sqrt(CAUTION),
            df=float(self.df[i, j]),
        )

    @one_thread()
    def draws(self, numbers: FixedNumbers, *, stream: int, caution: bool) -> FloatArray:
        """Return draws of all means (draws x models): for comparisons with ``caution``, or alone.

        Normal numbers with the right correlations become t variables, each with its own degrees of
        freedom.
        """
        from scipy.special import ndtr, stdtrit

        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        inverse = np.where(errors > 0.0, 1.0 / np.where(errors > 0.0, errors, 1.0), 0.0)
        correlation = self.covariance * np.outer(inverse, inverse)
        np.fill_diagonal(correlation, 1.0)
        # In whatever order models come, each has the same numbers.
        columns = np.argsort(np.argsort(self.names))
        normals = numbers.normals(len(self.names), stream=stream)[:, columns]
        scores = normals @ symmetric_root(correlation)
        probabilities = np.clip(ndtr(scores), _TINY_TAIL, 1.0 - _TINY_TAIL)
        deviations = stdtrit(np.diag(self.df), probabilities)
        factor = math.sqrt(CAUTION) if caution else 1.0
        return np.asarray(self.mean + factor * errors * deviations)


def _by_users(
    metric: Metric, made: Mapping[str, Evaluation], *, entries: Mapping[str, Estimate]
) -> _ByPair:
    """Return how means vary together, from the deviation that each user adds to them."""
    everyone = np.unique(np.concatenate([evaluation.users for evaluation in made.values()]))
    deviations: dict[str, FloatArray] = {}
    for name, evaluation in made.items():
        users, targets = np.unique(evaluation.users, return_counts=True)
        totals = _totals_of_users(metric, evaluation, entry=entries[name])
        weights = targets.astype(np.float64) if evaluation.filtered else np.ones(len(users))
        # A user that the model was not evaluated for adds nothing.
        deviations[name] = np.zeros(len(everyone))
        deviations[name][np.searchsorted(everyone, users)] = deviations_of_mean(totals, weights)
    correlated = _ByPair()
    for (a, one), (b, other) in combinations(deviations.items(), 2):
        correlation = _correlation(
            float(one @ other), float(one @ one), other_variance=float(other @ other)
        )
        correlated[a, b] = Correlated(correlation, degrees_of_freedom(one - other))
    return correlated


def _totals_of_users(metric: Metric, evaluation: Evaluation, *, entry: Estimate) -> FloatArray:
    """Return the sum of a metric over the targets of each user."""
    like = entry.like
    if isinstance(like, MeanWithLimits) and isinstance(like.error, DrawnError):
        return like.error.totals
    values = UserValues.of(evaluation.as_targets, [metric], relevance=evaluation.relevance)
    return values.totals[:, 0]


def _by_cells(metric: Metric, models: Models, *, entries: Mapping[str, Estimate]) -> _ByPair:
    """Return how means vary together, from pairs of cells of the same user."""
    weighed = {name: models.counts[name].for_metric(metric) for name in entries}
    scores = {name: _scores_of_cells(metric, entry.counts) for name, entry in entries.items()}
    correlated = _ByPair()
    for (a, b), pairs in models.between.items():
        if a not in entries or b not in entries:
            continue
        one = weighed[a]
        other = weighed[b]
        first = on_pair_cells(one, scores[a], keys=pairs.keys)
        second = on_pair_cells(other, scores[b], keys=pairs.keys)
        correlation = _correlation(
            pairs.inner(first, second),
            _variance(one, scores[a]),
            other_variance=_variance(other, scores[b]),
        )
        df = float(max(min(one.users, other.users) - 1, 1))
        one_target_each = one.clusters is None and pairs.count.sum() == one.users == other.users
        if one_target_each:
            # A pair of cells is then the difference of a user.
            differences = first[pairs.left] - second[pairs.right]
            df = degrees_of_freedom(differences, pairs.count)
        correlated[a, b] = Correlated(correlation, df)
    return correlated


def _scores_of_cells(metric: Metric, counts: RankCounts) -> FloatArray:
    """Return the value of a metric in each cell: unbiased, or known from full ranks."""
    direct = DirectMean.of(metric, counts)
    if direct is not None:
        return direct.values
    return Observed.prepare(counts).known_weights([metric])[:, 0]


def _variance(counts: RankCounts, scores: FloatArray) -> float:
    """Return the sum of squares of the deviations that users add to a mean."""
    variance = variance_of_mean(counts, scores)
    if counts.clusters is None:
        return variance
    # The correction for few users, which makes the variance unbiased, is taken back here.
    return variance * max(counts.users - 1, 1) / counts.users


def _correlation(product: float, variance: float, *, other_variance: float) -> float:
    """Return the correlation of two means; 0 where one of them does not vary.

    >>> _correlation(1.0, 4.0, other_variance=1.0)
    0.5
    """
    both = variance * other_variance
    return float(np.clip(product / math.sqrt(both), -1.0, 1.0)) if both > 0.0 else 0.0


def _error(entry: Estimate) -> float:
    """Return the standard error of a mean; where nothing varies, from the width of its interval."""
    like = entry.like
    if isinstance(like, MeanWithError):
        return like.error
    error = _standard_error(like.error) if isinstance(like, MeanWithLimits) else 0.0
    if not error > 0.0:
        low, high = entry.interval(DEFAULT_LEVEL)
        error = (high - low) / 2.0 / quantile(DEFAULT_LEVEL)
    return 0.0 if math.isnan(error) else error


def _standard_error(error: object) -> float:
    """Return the standard error for users like these, or 0 where the error has none."""
    return error.population if isinstance(error, MeanError | DrawnError) else 0.0
