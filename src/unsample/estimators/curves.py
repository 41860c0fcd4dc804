"""Smooth curves for log P(R), fitted with several smoothnesses and averaged by evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import FloatArray
from unsample.estimators._observed import Condensed
from unsample.estimators._solvers import Solution
from unsample.estimators._solvers._log_density import LogDensity, LogDensityFit
from unsample.law import RankGrid

#: Places where a curve may bend, evenly spaced along the probit of the rank.
_BENDS = 40
#: Combinations of bends that are used; the others are too weak to matter.
_SHAPES = 24
#: Standard deviations of a bend, from very stiff to very loose.
_LOOSENESS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
#: How fast a bend's standard deviation falls towards the top, for each unit of the probit ...
_STIFFENING = 1.0
#: ... from here on.
_LOOSEST = -2.0
#: Standard deviations of the slope and the curvature at the top: wide, the data decide.
_SLOPE, _CURVATURE = 2.0, 2.0
#: The squared relative error of a lognormal quantity is least at its median times e^(-1.5 s^2).
_HEDGE = 1.5
#: The largest variance that a hedge uses.
_MOST_DOUBT = 2.0
#: Curves whose log evidence is this far below the best are left out.
_IMPLAUSIBLE = 14.0
#: More targets tell nothing new about a curve: the error left is that P(R) is not a curve.
_MOST_TARGETS = 1e8
_TINY = 1e-300
#: Curves with less weight than this are ignored in certificates.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class AverageCurve:
    """Curves of all smoothnesses, and the weight of each by its evidence."""

    condensed: Condensed
    curves: list[_Curve]
    #: The weight of each curve, for each histogram (histograms x curves).
    share: FloatArray

    @classmethod
    def of(cls, condensed: Condensed, targets: float) -> AverageCurve:
        """Fit the curves to histograms of so many targets."""
        targets = min(targets, _MOST_TARGETS)
        common = replace(condensed, shares=condensed.shares.mean(axis=0, keepdims=True))
        shapes = _Shapes.along(_height(condensed.grid))
        curves = [
            _Curve(looseness, shapes, _problem(common, shapes, looseness, targets).fit())
            for looseness in _LOOSENESS
        ]
        # Curves that the common histogram rules out are dropped: no row of a batch is so different.
        best = max(float(curve.log_evidence[0]) for curve in curves)
        curves = [curve for curve in curves if curve.log_evidence[0] > best - _IMPLAUSIBLE]
        if len(condensed.shares) > 1:
            curves = [curve.refit(condensed, targets) for curve in curves]
        evidence = np.stack([curve.log_evidence for curve in curves], axis=1)
        share = np.exp(evidence - evidence.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        return cls(condensed, curves, share)

    def mass(self, grid: RankGrid) -> FloatArray:
        """Return where the targets of unknown rank are, for each histogram."""
        found = np.zeros((len(self.condensed.shares), len(grid)))
        for curve, part in zip(self.curves, self.share.T, strict=True):
            found += part[:, None] * curve.mass(grid, self.condensed)
        return found

    def solution(self, weights: FloatArray) -> Solution:
        """Return the weights of all ranks, with the certificate of the fit."""
        found = _certified(self.curves, self.share, weights)
        return replace(found, explanation="smooth curves, averaged by evidence")


@dataclass(frozen=True, eq=False)
class _Shapes:
    """The parts of a log-density: slope, curvature, and combinations of bends."""

    bends: FloatArray
    scale: FloatArray
    combinations: FloatArray

    @classmethod
    def along(cls, z: FloatArray) -> _Shapes:
        bends = np.linspace(z.min(), z.max(), _BENDS + 2)[1:-1]
        spacing = math.sqrt(bends[1] - bends[0])
        scale = spacing * np.exp(-_STIFFENING * np.maximum(bends, _LOOSEST))
        curves = _parabolas(bends, z) * scale
        _, _, rotation = np.linalg.svd(curves - curves.mean(axis=0), full_matrices=False)
        return cls(bends, scale, rotation[:_SHAPES].T)

    def at(self, z: FloatArray, looseness: float) -> FloatArray:
        """Return the shapes (places x coefficients), scaled to unit variance a priori."""
        curves = (_parabolas(self.bends, z) * self.scale) @ self.combinations
        return np.column_stack([_SLOPE * z, _CURVATURE * z * z / 2.0, looseness * curves])


@dataclass(frozen=True, eq=False)
class _Curve:
    """One fitted curve for each histogram."""

    looseness: float
    shapes: _Shapes
    fit: LogDensityFit

    @property
    def log_evidence(self) -> FloatArray:
        return self.fit.log_evidence

    def refit(self, condensed: Condensed, targets: float) -> _Curve:
        """Return this curve, fitted to each histogram of a batch of which it is the common fit."""
        problem = _problem(condensed, self.shapes, self.looseness, targets)
        return replace(self, fit=problem.fit(near=self.fit))

    def mass(self, grid: RankGrid, condensed: Condensed) -> FloatArray:
        """Return where the targets of unknown rank are, on a grid.

        The hedged curve is the expectation before sampled ranks are known. What is expected given
        the sampled ranks agrees with the data wherever they decide.
        """
        doubt = np.minimum(self.fit.log_variance, _MOST_DOUBT)
        hedged = self.fit.solution.weights * np.exp(-_HEDGE * doubt)
        expected = hedged * condensed.expected_unknown(hedged)
        expected /= expected.sum(axis=1, keepdims=True)
        return self._refined(expected, condensed.grid, grid)

    def _refined(self, mass: FloatArray, coarse: RankGrid, wanted: RankGrid) -> FloatArray:
        """Return ``mass`` on another grid, spread inside each coarse bin as the curve has it."""
        fine = RankGrid(np.union1d(coarse.low, wanted.low), coarse.items)
        shapes = self.shapes.at(_height(fine), self.looseness)
        exponent = self.fit.coefficients @ shapes.T + np.log(fine.width)
        spread = np.exp(exponent - exponent.max(axis=1, keepdims=True)) + _TINY
        total = np.add.reduceat(spread, fine.locate(coarse.low), axis=1)
        spread *= (mass / total)[:, coarse.locate(fine.low)]
        return np.asarray(np.add.reduceat(spread, fine.locate(wanted.low), axis=1))


def _problem(condensed: Condensed, shapes: _Shapes, looseness: float, targets: float) -> LogDensity:
    grid = condensed.grid
    columns = shapes.at(_height(grid), looseness)
    return LogDensity(condensed.likelihood, condensed.shares, targets, columns, np.log(grid.width))


def _height(grid: RankGrid) -> FloatArray:
    """Return how far up the catalogue each bin is, in standard deviations of a normal law.

    The middle is at 0, the best hundredth at 2.3, the best of a million at 4.9.
    """
    from scipy.special import ndtri

    middle = (grid.low + grid.high) / 2.0
    return np.asarray(-ndtri((middle - 0.5) / grid.items))


def _parabolas(bends: FloatArray, z: FloatArray) -> FloatArray:
    return 0.5 * np.maximum(bends[None, :] - z[:, None], 0.0) ** 2


def _certified(curves: list[_Curve], share: FloatArray, weights: FloatArray) -> Solution:
    """Return the weights with the certificate of the worst curve that counts, row by row."""
    objective, gap, iterations, status = (
        np.stack([getattr(curve.fit.solution, name) for curve in curves])
        for name in ("objective", "gap", "iterations", "status")
    )
    worst = np.where(share.T > _NEGLIGIBLE, gap, -1.0).argmax(axis=0)
    at = worst, np.arange(len(weights))
    return Solution(weights, objective[at], gap[at], iterations[at], status[at])
