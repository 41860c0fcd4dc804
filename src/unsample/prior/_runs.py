"""What the spread of several runs of a model (training seeds) adds to the error of their mean.

It is a part of a t law: a squared scale, with as many degrees of freedom as there are runs, less
one. Squared ends of such parts are added (Banerjee, Sankhya 1960), which holds the level whatever
their true shares are. The spread between data sets counts in the same way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from unsample._checks import FloatArray
from unsample.bounds import quantile

#: Where the ends of a sum of t laws are those of one t law.
_ENDS = (0.95, 0.995)


def runs_apart(values: FloatArray, users: FloatArray) -> tuple[float, float]:
    """Return what the spread of runs adds to the error of their mean: squared scale and freedom.

    ``users`` is the covariance that users give the runs, and is counted already. The spread shows
    the part of it that runs do not have in common once more; that much is taken off, but never more
    than leaves the end of an interval where the spread alone puts it.
    """
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return 0.0, 1.0
    alone = float(np.trace(users)) / count
    alone -= (float(users.sum()) - float(np.trace(users))) / (count * (count - 1))
    few = (float(stdtrit(count - 1, 0.975)) / 1.959964) ** 2
    spread = float(np.var(values, ddof=1))
    return max(spread - max(alone, 0.0) / few, 0.0) / count, count - 1.0


def cautious(square: float, freedom: float) -> tuple[float, float]:
    """Return a part of a t law as it counts in comparisons: as `CAUTION`, with few degrees."""
    from scipy.special import stdtrit

    return square * float(stdtrit(freedom, 0.975) / stdtrit(freedom, 0.95)) ** 2, freedom


def with_runs(
    scale: float, freedom: float, runs: Iterable[tuple[float, float]]
) -> tuple[float, float]:
    """Return scale and freedom of a t law to which the parts of runs are added."""
    from scipy.special import stdtrit

    parts = [(square, nu) for square, nu in runs if square > 0.0]
    if not parts:
        return scale, freedom
    parts.append((scale**2, freedom))
    near, far = (
        math.sqrt(sum(square * float(stdtrit(nu, end)) ** 2 for square, nu in parts))
        for end in _ENDS
    )
    # Of a t law, the further the ends are from each other, the fewer degrees of freedom.
    degrees, ratios = _ratios()
    joined = float(np.interp(-far / near, -ratios, degrees))
    return near / float(stdtrit(joined, _ENDS[0])), joined


@lru_cache(maxsize=1)
def _ratios() -> tuple[FloatArray, FloatArray]:
    """Return degrees of freedom, and how far apart the ends of such t laws are."""
    from scipy.special import stdtrit

    degrees = np.geomspace(1.0, 1e5, 2_000)
    return degrees, np.asarray(stdtrit(degrees, _ENDS[1]) / stdtrit(degrees, _ENDS[0]))


def draws_of_runs(
    runs: Sequence[tuple[float, float]], shape: tuple[int, int], rng: np.random.Generator
) -> FloatArray:
    """Return draws of what the spread of each model's runs adds in comparisons."""
    found = np.zeros(shape)
    for at, (square, freedom) in enumerate(itertools.starmap(cautious, runs)):
        found[:, at] = math.sqrt(square) * rng.standard_t(freedom, size=len(found))
    return found


def variance_of_runs(runs: Sequence[tuple[float, float]], size: int) -> FloatArray:
    """Return what runs add to the covariance of so many models, where all else is normal."""
    found = [square * (quantile(0.95, nu) / quantile(0.95)) ** 2 for square, nu in runs]
    return np.diag(found or np.zeros(size))
