"""A few sizes of catalogues that stand for many.

Leaving out each user's own training items makes hundreds of catalogue sizes, and what is expected
of all users is a mean of P(r | R) over them. It is smooth in log N, so a rule of Gauss gives the
mean: a few sizes with weights that have the same moments as all sizes, and so integrate every
polynomial of up to twice their number exactly. Their weights are positive, so the mean is a law.
"""

from __future__ import annotations

import math

import numpy as np

from unsample._checks import FloatArray, IntArray

#: Sizes within this factor of each other need so many, and more where the sample is sharper.
_FACTOR, _NEEDED, _SHARPER = 1.25, 6, 0.1
#: All sizes are taken where a few would be more than this part of them.
_WORTHWHILE = 0.5


def few_sizes(
    sizes: IntArray, weights: FloatArray, sharpness: float
) -> tuple[IntArray, FloatArray]:
    """Return a few sizes and their weights: means over them are those over all sizes.

    ``sharpness`` is the size of a sample with replacement that sees ranks as sharply as the one in
    use; infinite if all items were compared.

    >>> found, parts = few_sizes(np.arange(3000, 3600), np.full(600, 1 / 600), 99)
    >>> len(found), round(float(parts @ found), 3), round(float(parts @ np.log(found)), 3)
    (7, 3299.5, 8.1)
    """
    logs = np.log(sizes)
    least, most = float(logs.min()), float(logs.max())
    ranges = max(1.0, (most - least) / math.log(_FACTOR))
    needed = ranges * (_NEEDED + _SHARPER * math.sqrt(sharpness))
    if needed > _WORTHWHILE * len(sizes):
        return sizes, weights

    def powers(values: FloatArray, degree: int) -> FloatArray:
        places = (2.0 * values - least - most) / (most - least)
        return np.asarray(np.polynomial.chebyshev.chebvander(places, degree), dtype=np.float64)

    # Orthogonal polynomials of the sizes; the zeros of the last are the places of Gauss's rule.
    root = np.sqrt(weights)[:, None]
    basis = np.linalg.qr(root * powers(logs, math.ceil(needed) - 1))[0]
    places = np.linalg.eigvalsh(basis.T @ (logs[:, None] * basis))
    found = np.unique(np.rint(np.exp(places)).astype(np.int64))
    # The places are whole numbers now, for which the weights are made anew.
    degree = len(found) - 1
    moments = weights @ powers(logs, degree)
    parts = np.asarray(np.linalg.solve(powers(np.log(found), degree).T, moments), dtype=np.float64)
    return (found, parts) if (parts > 0.0).all() else (sizes, weights)
