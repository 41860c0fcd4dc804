"""The users' error: which shares the cells of a model would have with other users like these.

The weight of each cell is a gamma variable with the mean and the variance that the users give it,
and cells are correlated as users' targets are. With one target a user, the shares then follow a
Dirichlet distribution, which is the Bayesian bootstrap. Normal numbers would be negative in cells
of one target.

Cells without targets vary too: a data set of 60 users without a hit may have one among the next 60.
So all shares count as if ``EXTRA_TARGETS`` more targets had been seen where the curve expects them.
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
#: So many cells vary by themselves.
_MAX_GROUPS = 400
_TINY = 1e-300
#: A relative variance below this share of that of one target comes from rounding.
_NO_VARIANCE = 1e-9


@dataclass(frozen=True, eq=False)
class MovedShares:
    """How the weights of the cells vary: means, variances, and their correlations.

    Usually each cell varies by itself. Where samples of many sizes make thousands of cells, those
    of nearly the same rank vary together: ``group`` is the group of each cell, ``within`` its part
    of the group, and all else is by group. ``inverse_deviation`` is one over the standard deviation
    that users give a group, and 0 where they give it none. ``total`` is how the weight of all cells
    together varies beside that of users, as a sum over normal scores: a metric is a mean over
    users, and users may have different weights.
    """

    group: IntArray
    within: FloatArray
    mean: FloatArray
    variance: FloatArray
    correlation: FloatArray
    inverse_deviation: FloatArray
    total: FloatArray

    @classmethod
    def of(cls, cells: CondensedCells, expected: Sequence[FloatArray]) -> MovedShares:
        """Return what users, and shared items, do to the cells' weights.

        ``expected`` are the shares of the cells of each stratum under the curve.
        """
        group = error_groups(cells)
        covariance = weight_covariance(cells, group)
        size = len(covariance) - 1
        own = np.maximum(np.diag(covariance)[:size], 0.0)
        empty = own <= 0.0
        inverse = np.where(empty, 0.0, 1.0 / np.sqrt(np.where(empty, 1.0, own)))
        correlation = covariance[:size, :size] * np.outer(inverse, inverse)
        np.fill_diagonal(correlation, 1.0)
        one_target = cells.total / max(cells.independent, 1.0)
        extra = EXTRA_TARGETS * one_target * _shares_of_all(cells, expected)
        in_cells = cells.weight + extra
        mean = np.bincount(group, in_cells, minlength=size).astype(np.float64)
        more = np.bincount(group, extra, minlength=size)
        return cls(
            group=group,
            within=in_cells / np.maximum(mean, _TINY)[group],
            mean=mean,
            variance=own + more * one_target,
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
        """Return the groups' weights, and the total relative to that of users, for each draw.

        ``scores`` (draws x groups) are normal scores with the correlations of the groups.
        """
        weights = gamma_variables(
            scores,
            shape=self.mean**2 / np.maximum(self.variance, _TINY),
            scale=self.variance / np.maximum(self.mean, _TINY),
        )
        return weights, np.maximum(1.0 + scores @ self.total, 0.0)

    def in_cells(self, weights: FloatArray) -> FloatArray:
        """Return the weights of cells, given those of groups (rows)."""
        if len(self.group) == len(self.mean):
            return weights
        return np.asarray(weights[:, self.group] * self.within)


def error_groups(cells: CondensedCells) -> IntArray:
    """Return the group of each cell: itself, or with neighbours where there are thousands.

    Neighbours are cells of one stratum at nearly the same share of their samples.
    """
    count = len(cells.weight)
    if count <= _MAX_GROUPS:
        return np.arange(count)
    room = max(_MAX_GROUPS // len(cells.strata), 8)
    found, start = [], 0
    for stratum in cells.strata:
        compared = np.where(stratum.sampled > 0, stratum.sampled + 1, stratum.grid.items)
        position = np.log(stratum.first / compared)
        step = max(float(np.ptp(position)) * (1.0 + 1e-9) / room, 1e-12)
        _, group = np.unique(np.floor((position - position.min()) / step), return_inverse=True)
        found.append(start + group.reshape(-1))
        start += int(group.max()) + 1
    return np.concatenate(found)


def _shares_of_all(cells: CondensedCells, expected: Sequence[FloatArray]) -> FloatArray:
    """Return the expected share of each cell among those of all strata."""
    parts = [
        stratum.part * shares / max(float(shares.sum()), _TINY)
        for stratum, shares in zip(cells.strata, expected, strict=True)
    ]
    return np.concatenate(parts)


def _total(
    cells: CondensedCells, covariance: FloatArray, *, correlation: FloatArray, inverse: FloatArray
) -> FloatArray:
    """Return how the cells' weights together vary beside the number of users, by normal scores.

    It is the regression of sum of weights / total - users / norm on the scores.
    """
    apart = np.append(np.full(len(inverse), 1.0 / cells.total), -1.0 / cells.norm)
    against = covariance @ apart
    variance = float(apart @ against)
    if variance <= _NO_VARIANCE / max(cells.independent, 1.0):
        return np.zeros(len(inverse))
    return np.asarray(np.linalg.pinv(correlation, hermitian=True) @ (against[:-1] * inverse))


def weight_covariance(cells: CondensedCells, group: IntArray) -> FloatArray:
    """Return the covariance of the groups' weights and, last, of the users' number.

    It is the sum over users of products of what their targets add, and that of shared items.
    """
    size = int(group.max()) + 2
    number = np.append(group, size - 1)
    covariance = np.zeros((size, size))
    products = cells.user_products
    pairs = number[products.row], number[products.column]
    np.add.at(covariance, pairs, products.total)
    if cells.items is not None:
        np.add.at(covariance, np.ix_(group, group), cells.items.weight_covariance)
    return np.asarray((covariance + covariance.T) / 2.0)


def gamma_variables(normals: FloatArray, *, shape: FloatArray, scale: FloatArray) -> FloatArray:
    """Return gamma variables (rows x cells) at the quantiles of normal ones.

    >>> found = gamma_variables(np.zeros((1, 2)), shape=np.array([1.0, 400.0]), scale=np.ones(2))
    >>> found.round(3).tolist()                          # medians: log 2, and nearly the mean
    [[0.693, 399.667]]
    """
    from scipy.special import gammaincinv, ndtr

    ninth = 1.0 / (9.0 * np.maximum(shape, _TINY))
    found = shape * np.maximum(1.0 - ninth + normals * np.sqrt(ninth), 0.0) ** 3
    probabilities = ndtr(_SCORES)
    for cell in np.flatnonzero(shape < _LARGE_SHAPE).tolist():
        quantiles = gammaincinv(max(float(shape[cell]), 1e-12), probabilities)
        found[:, cell] = np.interp(normals[:, cell], _SCORES, quantiles)
    return np.asarray(found * scale)
