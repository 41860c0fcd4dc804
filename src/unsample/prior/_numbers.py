r"""The posterior given the numbers that a paper prints: evidence like any other.

A printed metric of a sample is a mean over users of f(r), rounded. Given a curve, the means of all
printed metrics have the expectation F and the covariance S: that of f(r) over the number of users,
and the rounding. The mode minimises

.. math:: \tfrac12 (y - F(c))' S^{-1} (y - F(c)) + \tfrac12 c'c

(Gauss and Newton's steps). There are no cells: values are those of the curve itself, and its
information is J' S^-1 J with J the derivatives of F.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray
from unsample.law import Law, RankGrid
from unsample.metrics import Metric
from unsample.prior._learn import Learned
from unsample.prior._seen import Seen, Stratum
from unsample.prior._shapes import shapes_on

_TINY = 1e-300
_STEPS = 60
#: Numbers with more digits tell nothing more of a curve.
_SHARPEST = 1e-6


@dataclass(frozen=True, eq=False)
class Numbers:
    """Printed metrics of a sampled evaluation: middle and half-width of what rounds to each."""

    design: Law
    users: int
    metrics: tuple[Metric, ...]
    middle: FloatArray
    half: FloatArray

    def seen(self) -> Seen:
        """Return the numbers in the place of cells, with errors of one each."""
        grid = RankGrid.coarse(self.design.items, sampled=self.design.sampled)
        count = len(self.metrics)
        stratum = Stratum(
            grid,
            np.zeros((count, len(grid))),
            np.zeros(count),
            1.0,
            np.zeros(count, dtype=np.int64),
            np.zeros(count, dtype=np.int64),
            printed=True,
        )
        ones = np.append(np.ones(count), 0.0)
        return Seen(
            (stratum,),
            np.array([float(self.design.items)]),
            np.zeros(count),
            float(self.users),
            float(self.users),
            float(self.users),
            float(self.users),
            np.diag(ones),
        )

    def fit(
        self, learned: Learned, misfit: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return the mode, H^-1, the scaled derivatives, and the log evidence."""
        grid = RankGrid.coarse(self.design.items, sampled=self.design.sampled)
        ranks = np.arange(1, self.design.n + 1)
        features = np.stack([each.weights(ranks, self.design.n) for each in self.metrics])
        likelihood = self.design.matrix(ranks, ranks, grid)
        shapes = shapes_on(grid) @ learned.root
        base = shapes_on(grid) @ learned.mean + np.log(grid.width)
        chance = 1.0 / self.users + 1.0 / misfit

        def at(c: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            exponent = shapes @ c + base
            mass = np.exp(exponent - exponent.max())
            mass /= mass.sum()
            cells = likelihood @ mass
            mean = features @ cells
            spread = (features * cells) @ features.T - np.outer(mean, mean)
            noise = spread * chance
            noise += np.diag(np.maximum(self.half, _SHARPEST) ** 2 / 3.0)
            root = np.linalg.cholesky(noise)
            slopes = (features @ likelihood * mass) @ (shapes - mass @ shapes)
            return np.linalg.solve(root, self.middle - mean), np.linalg.solve(root, slopes), root

        def loss(c: FloatArray) -> float:
            error, _, root = at(c)
            volume = 2.0 * float(np.log(np.diag(root)).sum())
            return 0.5 * float(error @ error + c @ c + volume)

        c: FloatArray = np.zeros(shapes.shape[1])
        for _ in range(_STEPS):
            error, slopes, _ = at(c)
            information = np.eye(len(c)) + slopes.T @ slopes
            move = np.linalg.solve(information, slopes.T @ error - c)
            step, before = 1.0, loss(c)
            while loss(c + step * move) > before and step > 1e-6:
                step /= 2.0
            c = np.asarray(c + step * move)
            if step * float(np.abs(move).max()) < 1e-7 or step <= 1e-6:
                break
        error, slopes, _ = at(c)
        information = np.eye(len(c)) + slopes.T @ slopes
        evidence = -loss(c) - 0.5 * float(np.linalg.slogdet(information)[1])
        return c, np.asarray(np.linalg.inv(information)), slopes, evidence
