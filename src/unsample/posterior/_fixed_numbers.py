"""The random numbers of all draws: fixed, so that the same data always give the same cloud.

Each draw takes one number that chooses its component, and normal numbers that move it. Independent
numbers would move the ends of an interval by 2.7 % of its half-width from one set to another. So
the first ones come from a sequence that fills space evenly (Roberts' generalised golden ratio), and
are turned into the directions that move a few usual metrics most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unsample._checks import FloatArray

#: How many draws a cloud has.
DRAWS = 4096
#: How many normal numbers of a draw are spread evenly, beside the one that chooses a component.
EVEN = 3
#: Columns are made in blocks, so that a number does not depend on how many others are needed.
_BLOCK = 32


@dataclass(frozen=True)
class FixedNumbers:
    """Numbers for ``draws`` draws; another ``seed`` gives another set.

    >>> FixedNumbers().uniform.shape, FixedNumbers().normals(40).shape
    ((4096,), (4096, 40))

    A column is the same however many columns are asked for.

    >>> numbers = FixedNumbers(draws=5)
    >>> bool((numbers.normals(40)[:, 0] == numbers.normals(1)[:, 0]).all())
    True
    """

    draws: int = DRAWS
    seed: int = 0

    @property
    def uniform(self) -> FloatArray:
        """Return the number in 0..1 that chooses the component of each draw."""
        return _even_points(self.draws, self.seed)[:, 0]

    @property
    def even(self) -> FloatArray:
        """Return the normal numbers that are spread evenly (draws x `EVEN`)."""
        from scipy.special import ndtri

        return np.asarray(ndtri(_even_points(self.draws, self.seed)[:, 1:]))

    def normals(self, count: int, *, stream: int = 0) -> FloatArray:
        """Return further normal numbers (draws x count); streams are independent."""
        blocks = range(-(-count // _BLOCK))
        parts = [
            _normal_block(self.draws, self.seed, stream=stream, block=block) for block in blocks
        ]
        return np.concatenate(parts, axis=1)[:, :count] if parts else np.zeros((self.draws, 0))

    def uniforms(self, *, stream: int) -> FloatArray:
        """Return a number in 0..1 for each draw; streams are independent."""
        return np.asarray(np.random.default_rng([self.seed, stream]).random(self.draws))


@lru_cache(maxsize=4)
def _even_points(draws: int, seed: int) -> FloatArray:
    """Return points that fill the unit cube evenly (draws x (1 + EVEN)).

    Coordinate j of point i is the fraction of start_j + i / g^j, where g solves g^(d + 1) = g + 1
    in d dimensions. In 4 dimensions g is 1.1673, and 1/2 + 1/g is 1.3567.

    >>> _even_points(2, 0)[:, 0].round(4).tolist()
    [0.3567, 0.2133]
    """
    dimensions = 1 + EVEN
    golden = 2.0
    for _ in range(60):
        golden = (1.0 + golden) ** (1.0 / (dimensions + 1))
    steps = golden ** -np.arange(1.0, dimensions + 1)
    start = (
        np.full(dimensions, 0.5) if seed == 0 else np.random.default_rng(seed).random(dimensions)
    )
    points = (start + np.arange(1.0, draws + 1)[:, None] * steps) % 1.0
    return np.asarray(np.clip(points, 1e-9, 1.0 - 1e-9))


@lru_cache(maxsize=64)
def _normal_block(draws: int, seed: int, *, stream: int, block: int) -> FloatArray:
    """Return one block of columns, each with the mean 0 and the variance 1 to the last digit.

    >>> column = _normal_block(100, 0, stream=0, block=0)[:, 0]
    >>> round(abs(float(column.mean())), 12), round(float(column.std()), 12)
    (0.0, 1.0)
    """
    rng = np.random.default_rng([seed, stream, block])
    columns = rng.standard_normal((draws, _BLOCK))
    columns -= columns.mean(axis=0)
    return np.asarray(columns / columns.std(axis=0))
