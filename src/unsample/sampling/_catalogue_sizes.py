"""A few weighted sizes of catalogues with the moments of many.

Leaving out each user's own training items makes hundreds of catalogue sizes, and the expectation
over all users is a mean of P(r | R) over them. It is smooth in log N, so a rule of Gauss gives the
mean: a few sizes with weights that have the same moments as all sizes, and so integrate every
polynomial of up to twice their number exactly. Their weights are positive, so the mean is a
distribution.
"""

from __future__ import annotations

import math

import numpy as np

from unsample._checks import FloatArray, IntArray

#: Sizes within this factor of each other need so many, and more where the sample is sharper.
_FACTOR, _NEEDED, _SHARPER = 1.25, 6, 0.1
#: All sizes are taken where a few would be more than this share of them.
_WORTHWHILE = 0.5


def few_sizes(
    sizes: IntArray, weights: FloatArray, sharpness: float
) -> tuple[IntArray, FloatArray]:
    """Return a few sizes and their weights: means over them are those over all sizes.

    ``sharpness`` is the size of a sample with replacement that shows ranks as precisely as the one
    in use; it is infinite if all items were compared.

    >>> found, parts = few_sizes(np.arange(3000, 3600), np.full(600, 1 / 600), 99)
    >>> len(found), round(float(parts @ found), 3), round(float(parts @ np.log(found)), 3)
    (7, 3299.5, 8.1)
    """
    logs = np.log(sizes)
    low, high = float(logs.min()), float(logs.max())
    ranges = max(1.0, (high - low) / math.log(_FACTOR))
    needed = ranges * (_NEEDED + _SHARPER * math.sqrt(sharpness))
    if needed > _WORTHWHILE * len(sizes):
        return sizes, weights

    def powers(values: FloatArray, degree: int) -> FloatArray:
        scaled = (2.0 * values - low - high) / (high - low)
        return np.asarray(np.polynomial.chebyshev.chebvander(scaled, degree), dtype=np.float64)

    # Orthogonal polynomials of the sizes; the zeros of the last are the nodes of Gauss's rule.
    root = np.sqrt(weights)[:, None]
    basis = np.linalg.qr(root * powers(logs, math.ceil(needed) - 1))[0]
    nodes = np.linalg.eigvalsh(basis.T @ (logs[:, None] * basis))
    found = np.unique(np.rint(np.exp(nodes)).astype(np.int64))
    # The sizes are whole numbers, so the weights are computed again for these.
    degree = len(found) - 1
    moments = weights @ powers(logs, degree)
    parts = np.asarray(np.linalg.solve(powers(np.log(found), degree).T, moments), dtype=np.float64)
    return (found, parts) if (parts > 0.0).all() else (sizes, weights)
