"""A few weighted sizes of catalogues with the moments of many.

Where each user's own training items are left out, there are hundreds of catalogue sizes, and the
expectation over all users is a mean of P(r | R) over the sizes. P(r | R) is smooth in log N, so
Gauss's rule gives the mean from a few sizes. Their weights are such that all polynomials of a
degree below twice their number have the same mean as over all sizes. The weights are positive, so
the mean of distributions is a distribution.
"""

from __future__ import annotations

import math

import numpy as np

from unsample._checks import FloatArray, IntArray

#: A range of sizes within this factor of each other needs ...
_FACTOR = 1.25
#: ... this number of sizes, ...
_NEEDED = 6
#: ... and for a sharper sample this number more, times the root of the size of the sample.
_SHARPER = 0.1
#: All sizes are taken where a few would be more than this share of them.
_WORTHWHILE = 0.5


def few_sizes(
    sizes: IntArray, weights: FloatArray, sharpness: float
) -> tuple[IntArray, FloatArray]:
    """Return a few sizes and their weights: means over them equal means over all sizes.

    ``sharpness`` is the size of a sample with replacement that shows ranks as precisely as the one
    in use; it is infinite if all items were compared.

    >>> few, parts = few_sizes(np.arange(3000, 3600), np.full(600, 1 / 600), 99)
    >>> len(few), round(float(parts @ few), 3), round(float(parts @ np.log(few)), 3)
    (7, 3299.5, 8.1)
    """
    logs = np.log(sizes)
    low = float(logs.min())
    high = float(logs.max())
    ranges = max(1.0, (high - low) / math.log(_FACTOR))
    needed = ranges * (_NEEDED + _SHARPER * math.sqrt(sharpness))
    if needed > _WORTHWHILE * len(sizes):
        return sizes, weights

    def powers(values: FloatArray, degree: int) -> FloatArray:
        scaled = (2.0 * values - low - high) / (high - low)
        return np.asarray(np.polynomial.chebyshev.chebvander(scaled, degree), dtype=np.float64)

    # Orthogonal polynomials of the sizes; the zeros of the last are the nodes of Gauss's rule.
    root = np.sqrt(weights)[:, None]
    basis, _ = np.linalg.qr(root * powers(logs, math.ceil(needed) - 1))
    nodes = np.linalg.eigvalsh(basis.T @ (logs[:, None] * basis))
    few = np.unique(np.rint(np.exp(nodes)).astype(np.int64))
    # The sizes are whole numbers, so the weights are computed again for these.
    degree = len(few) - 1
    moments = weights @ powers(logs, degree)
    parts = np.asarray(np.linalg.solve(powers(np.log(few), degree).T, moments), dtype=np.float64)
    return (few, parts) if (parts > 0.0).all() else (sizes, weights)
