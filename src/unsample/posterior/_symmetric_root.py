"""The root of a covariance matrix that is the same on every machine."""

from __future__ import annotations

import numpy as np

from unsample._checks import FloatArray


def symmetric_root(covariance: FloatArray) -> FloatArray:
    """Return the symmetric root; the signs of eigenvectors, which differ by machine, drop out.

    Negative eigenvalues, which come from rounding, count as 0.

    >>> symmetric_root(np.array([[4.0, 0.0], [0.0, 9.0]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2.0)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)
