"""The users' error: the shares that the cells of a model would have with other users like these.

The weight of each cell is a gamma variable with the mean and the variance that the users give it,
and cells are correlated as users' targets are. With one target a user, the shares then follow a
Dirichlet distribution, which is the Bayesian bootstrap. Normal variables could be negative in cells
of one target.

Cells without targets vary too: if 60 users have no hit, one of the next 60 may have one. So the
weights are as if the sample had ``EXTRA_TARGETS`` more targets, where the curve expects them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample._threads import cached_property
from unsample.likelihood import CondensedCells
from unsample.posterior._symmetric_root import symmetric_root

#: How many targets are added where the curve expects them.
EXTRA_TARGETS = 1.0
#: Gamma variables of a larger shape are close to a cubed normal one (Wilson and Hilferty 1931).
_LARGE_SHAPE = 50.0
#: Normal scores at which quantiles of other gamma variables are computed; lines join them.
_SCORES = np.linspace(-6.0, 6.0, 97)
#: No more cells than this vary by themselves.
_MAX_GROUPS = 400
_TINY = 1e-300
#: A relative variance below this share of the variance of one target comes from rounding.
_NO_VARIANCE = 1e-9


@dataclass(frozen=True, eq=False)
class MovedShares:
    """How the weights of the cells vary: means, variances, and their correlations.

    Usually each cell varies by itself. Where samples of many sizes make thousands of cells, the
    cells at nearly the same rank vary together, in groups.
    """

    #: The group of each cell, and the part of the group's weight that the cell has.
    group: IntArray
    within: FloatArray
    #: Of the weight of each group.
    mean: FloatArray
    variance: FloatArray
    #: The correlations of groups by users and shared items.
    correlation: FloatArray
    #: One over the standard deviation of a group by users and shared items; 0 where that is 0.
    inverse_deviation: FloatArray
    #: How the weight of all targets varies, relative to the weight of users: a coefficient for the
    #: normal score of each group. A metric is a mean over users, who may have different weights.
    total: FloatArray

    @classmethod
    def of(cls, cells: CondensedCells, expected: Sequence[FloatArray]) -> MovedShares:
        """Return how users and shared items vary the cells' weights.

        ``expected`` are the shares of the cells of each stratum under the curve. Here four users
        have a target each, three in one cell and one in the other, and the curve expects halves.
        Each target adds 1 to mean and variance, and the extra target adds a half to both cells.

        >>> from unsample.counts import RankCounts
        >>> cells = CondensedCells.of(RankCounts.from_ranks([1, 1, 1, 2], items=100, sampled=1))
        >>> moved = MovedShares.of(cells, [np.array([0.5, 0.5])])
        >>> moved.mean.tolist(), moved.variance.round(3).tolist()
        ([3.5, 1.5], [3.5, 1.5])

        Here each user has one target, so the weight of targets is always the weight of users:

        >>> moved.total.tolist()
        [0.0, 0.0]
        """
        group = error_groups(cells)
        covariance = weight_covariance(cells, group)
        size = len(covariance) - 1
        of_users = np.maximum(np.diag(covariance)[:size], 0.0)
        empty = of_users <= 0.0
        inverse = np.where(empty, 0.0, 1.0 / np.sqrt(np.where(empty, 1.0, of_users)))
        correlation = covariance[:size, :size] * np.outer(inverse, inverse)
        np.fill_diagonal(correlation, 1.0)
        weight_of_target = cells.total / max(cells.independent, 1.0)
        extra = EXTRA_TARGETS * weight_of_target * _shares_of_all(cells, expected)
        in_cells = cells.weight + extra
        mean = np.bincount(group, in_cells, minlength=size).astype(np.float64)
        extra_in_group = np.bincount(group, extra, minlength=size)
        return cls(
            group=group,
            within=in_cells / np.maximum(mean, _TINY)[group],
            mean=mean,
            variance=of_users + extra_in_group * weight_of_target,
            correlation=correlation,
            inverse_deviation=inverse,
            total=_total(cells, covariance, correlation=correlation, inverse=inverse),
        )

    @cached_property
    def root(self) -> FloatArray:
        """Return the symmetric root of the correlations."""
        if not self.correlation[~np.eye(len(self.mean), dtype=bool)].any():
            return np.eye(len(self.mean))
        return symmetric_root(self.correlation)

    def draw(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the groups' weights, and the weight of all targets relative to users, by draw.

        ``scores`` (draws x groups) are normal numbers with the correlations of the groups.
        """
        weights = gamma_variables(
            scores,
            shape=self.mean**2 / np.maximum(self.variance, _TINY),
            scale=self.variance / np.maximum(self.mean, _TINY),
        )
        return weights, np.maximum(1.0 + scores @ self.total, 0.0)

    def in_cells(self, weights: FloatArray) -> FloatArray:
        """Return the weights of cells (draws x cells), given the weights of groups."""
        if len(self.group) == len(self.mean):
            return weights
        return np.asarray(weights[:, self.group] * self.within)


def error_groups(cells: CondensedCells) -> IntArray:
    """Return the group of each cell: a group of its own, unless there are more than 400 cells.

    Then neighbours share a group: cells of one stratum at nearly the same share of their samples.
    """
    count = len(cells.weight)
    if count <= _MAX_GROUPS:
        return np.arange(count)
    room = max(_MAX_GROUPS // len(cells.strata), 8)
    groups = []
    start = 0
    for stratum in cells.strata:
        compared = np.where(stratum.sampled > 0, stratum.sampled + 1, stratum.grid.items)
        position = np.log(stratum.first / compared)
        step = max(float(np.ptp(position)) * (1.0 + 1e-9) / room, 1e-12)
        _, group = np.unique(np.floor((position - position.min()) / step), return_inverse=True)
        groups.append(start + group.reshape(-1))
        start += int(group.max()) + 1
    return np.concatenate(groups)


def _shares_of_all(cells: CondensedCells, expected: Sequence[FloatArray]) -> FloatArray:
    """Return the expected share of each cell among the cells of all strata."""
    parts = [
        stratum.part * shares / max(float(shares.sum()), _TINY)
        for stratum, shares in zip(cells.strata, expected, strict=True)
    ]
    return np.concatenate(parts)


def _total(
    cells: CondensedCells, covariance: FloatArray, *, correlation: FloatArray, inverse: FloatArray
) -> FloatArray:
    """Return how the sum of the cells' weights varies relative to the number of users.

    It is the regression of (sum of weights) / total - (users) / norm on the normal scores of the
    groups: the inverse of their correlations, times the covariances of the difference with each
    group, in standard deviations of the group. With one target a user the difference is always 0.
    """
    difference = np.append(np.full(len(inverse), 1.0 / cells.total), -1.0 / cells.norm)
    with_difference = covariance @ difference
    variance = float(difference @ with_difference)
    if variance <= _NO_VARIANCE / max(cells.independent, 1.0):
        return np.zeros(len(inverse))
    with_scores = with_difference[:-1] * inverse
    return np.asarray(np.linalg.pinv(correlation, hermitian=True) @ with_scores)


def weight_covariance(cells: CondensedCells, group: IntArray) -> FloatArray:
    """Return the covariance of the groups' weights and, last, of the number of users.

    It is the sum over users of products of what their targets add to two groups, and the covariance
    by shared items. Of three users with a target each, two add 1 to the first cell and one adds 1
    to the second:

    >>> from unsample.counts import RankCounts
    >>> cells = CondensedCells.of(RankCounts.from_ranks([1, 1, 2], items=100, sampled=1))
    >>> weight_covariance(cells, np.array([0, 1])).round(6).tolist()
    [[2.0, 0.0, 2.0], [0.0, 1.0, 1.0], [2.0, 1.0, 3.0]]
    """
    size = int(group.max()) + 2
    group_or_users = np.append(group, size - 1)
    covariance = np.zeros((size, size))
    products = cells.user_products
    pairs = group_or_users[products.row], group_or_users[products.column]
    np.add.at(covariance, pairs, products.total)
    if cells.items is not None:
        np.add.at(covariance, np.ix_(group, group), cells.items.weight_covariance)
    return np.asarray((covariance + covariance.T) / 2.0)


def gamma_variables(normals: FloatArray, *, shape: FloatArray, scale: FloatArray) -> FloatArray:
    """Return gamma variables (draws x cells) at the quantiles of normal ones.

    >>> shape = np.array([1.0, 400.0])
    >>> medians = gamma_variables(np.zeros((1, 2)), shape=shape, scale=np.ones(2))
    >>> medians.round(3).tolist()                                # log 2, and nearly the mean
    [[0.693, 399.667]]
    """
    from scipy.special import gammaincinv, ndtr

    ninth = 1.0 / (9.0 * np.maximum(shape, _TINY))
    variables = shape * np.maximum(1.0 - ninth + normals * np.sqrt(ninth), 0.0) ** 3
    probabilities = ndtr(_SCORES)
    for cell in np.flatnonzero(shape < _LARGE_SHAPE).tolist():
        quantiles = gammaincinv(max(float(shape[cell]), 1e-12), probabilities)
        variables[:, cell] = np.interp(normals[:, cell], _SCORES, quantiles)
    return np.asarray(variables * scale)
