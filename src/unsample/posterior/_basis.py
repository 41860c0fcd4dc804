"""The shapes of which log P(R) is made up, on any grid of any catalogue.

Let u = log R be the distance from the top, and v = log((N + 1/2)/R) the distance from the bottom.
Then

    log P(R) = a [R = 1] + s v + sum_j b_j (k_j - v)+ + sum_j d_j (v - k_j)+ + sum_j t_j (l_j - u)+

up to a constant. The terms are a spike at the first rank, a power law, the last ranks (many items
have no score), bends of the power law at shares of the catalogue, and bends at ranks. A bend is a
hinge: 0 on one side of its knot, and a straight line on the other side.

A power law alone, with s = 1, has P(R) proportional to 1/R:

>>> coefficients = np.zeros(SIZE)
>>> coefficients[1] = 1.0
>>> curve = np.exp(shapes_on(RankGrid(np.array([1, 2, 3, 4]), 4)) @ coefficients)
>>> (curve / curve[0]).round(3).tolist()
[1.0, 0.5, 0.333, 0.25]
"""

from __future__ import annotations

import math

import numpy as np

from unsample._checks import FloatArray
from unsample.sampling import RankGrid

#: Hinges at the bottom: their knots v, and their standard deviations before anything is learned.
_BOTTOM = {0.03: 15.0, 0.1: 8.0, 0.25: 4.0, 0.5: 1.0, 1.0: 0.5, 2.0: 0.3}
#: Hinges of the power law, at the knots v ...
_HINGES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.5, 13.0, 15.0)
#: ... and above these ranks.
_TOP = (2, 4, 8, 16, 32, 64, 128, 256)
#: Standard deviations before anything is learned: of these hinges, of the spike, of the slope.
_HINGE = 0.2
_SPIKE = 0.6
_SLOPE = 0.5
#: The slope of a typical power law.
_TYPICAL_SLOPE = 0.85
#: Standard deviations of an unusual top: of the spike, and of the hinges above these ranks.
_ODD_SPIKE = 1.0
_ODD_HINGE = 0.4
_ODD_RANKS = 8

#: How many shapes there are.
SIZE = 2 + len(_BOTTOM) + len(_HINGES) + len(_TOP)


def shapes_on(grid: RankGrid) -> FloatArray:
    """Return the value of each shape in each bin (bins x shapes).

    The first shape is the spike at rank 1, the second is the power law, the last bends the curve
    above rank 256.

    >>> shapes = shapes_on(RankGrid(np.array([1, 2, 3, 4]), 4))
    >>> shapes[:, 0].tolist()
    [1.0, 0.0, 0.0, 0.0]
    >>> shapes[:, 1].round(2).tolist()                         # log(4.5), log(4.5/2), ...
    [1.5, 0.81, 0.41, 0.12]
    >>> shapes[:, -1].round(2).tolist()                        # log(256), log(256/2), ...
    [5.55, 4.85, 4.45, 4.16]
    """
    u = np.log((grid.low + grid.high) / 2.0)
    v = math.log(grid.items + 0.5) - u
    columns = [(grid.high == 1).astype(np.float64), v]
    columns += [np.maximum(knot - v, 0.0) for knot in _BOTTOM]
    columns += [np.maximum(v - knot, 0.0) for knot in _HINGES]
    columns += [np.maximum(math.log(rank) - u, 0.0) for rank in _TOP]
    return np.stack(columns, axis=1)


def vague_mean() -> FloatArray:
    """Return the coefficients of a typical power law, where nothing is learned yet."""
    mean = np.zeros(SIZE)
    mean[1] = _TYPICAL_SLOPE
    return mean


def vague_deviation() -> FloatArray:
    """Return the standard deviation of each coefficient, where nothing is learned yet."""
    hinges = [_HINGE] * (len(_HINGES) + len(_TOP))
    return np.array([_SPIKE, _SLOPE, *_BOTTOM.values(), *hinges])


def odd_top() -> FloatArray:
    """Return standard deviations of coefficients where the first ranks may be unusual.

    Some models never put a target first (knowledge graphs), and some nearly always do.
    """
    top = [_ODD_HINGE if rank <= _ODD_RANKS else 0.0 for rank in _TOP]
    return np.array([_ODD_SPIKE, 0.0, *(0.0 for _ in _BOTTOM), *(0.0 for _ in _HINGES), *top])
