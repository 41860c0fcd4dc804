"""Smooth curves for log P(R), fitted for several degrees of smoothness and averaged by evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import FloatArray
from unsample.estimators._condensed import Condensed
from unsample.estimators._observed import Observed
from unsample.grid import RankGrid
from unsample.simplex import LogDensity, LogDensityFit, Solution

__all__ = ["Head", "average_curves"]

#: Places where a curve may bend, evenly spaced along the probit of the rank.
_BENDS = 40
#: Combinations of bends that are told apart; the others are too faint to matter.
_SHAPES = 24
#: Standard deviations of a bend, from hardly any to as much as the data want.
_LOOSENESS = 10.0 ** np.arange(-1.5, 1.6, 0.5)
#: How fast a bend's standard deviation falls towards the top, for each unit of the probit ...
_STIFFENING = 0.75
#: ... from here on.
_LOOSEST = -2.0
#: Standard deviations of the slope and the curvature at the top: wide, the data know them.
_SLOPE, _CURVATURE = 2.0, 2.0
#: The squared relative error of a lognormal quantity is least at its median times e^(-1.5 s^2).
_HEDGE = 1.5
#: Most that a hedge may take off, as a variance: where nothing is known, nothing is optimal.
_MOST_DOUBT = 2.0
#: Curves that count for less than this do not count in certificates.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Head:
    """A belief about the top of the curve, above the ranks that the sample resolves.

    The curve levels off at about ``level`` of the blind rank (N - 1)/(n - 1); 0 means never.
    ``prior`` is how much the belief counts before the data are seen.
    """

    level: float
    prior: float = 1.0


def average_curves(observed: Observed, heads: Sequence[Head], *, doubt: float) -> Solution:
    """Return the average, by evidence, of the curves for all heads and degrees of smoothness.

    ``doubt`` is the standard deviation of the third derivative above the blind rank, where no
    data contradict it; estimates are hedged against that and against the noise in the data.
    """
    condensed = Condensed.of(observed)
    blind = _blind_rank(observed)
    coordinates = [_Coordinate(observed.grid.items, head.level * blind) for head in heads]
    curves = [
        curve
        for head, coordinate in zip(heads, coordinates, strict=True)
        for curve in _fit_curves(condensed, coordinate, head, observed.targets)
    ]
    evidence = np.stack([curve.log_evidence for curve in curves], axis=1)
    share = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    unseen = _unseen_variance(observed.grid, blind, doubt)
    rest = np.zeros((len(observed.shares), len(observed.grid)))
    for curve, part in zip(curves, share.T, strict=True):
        rest += part[:, None] * curve.mass(observed, condensed, unseen)
    rest *= (1.0 - observed.known_share)[:, None]
    solution = _certified(curves, share, observed.known_mass() + rest)
    return replace(solution, explanation=_in_words(curves, share[0], blind))


@dataclass(frozen=True)
class _Coordinate:
    """How far up the catalogue a rank is, in standard deviations of a normal law.

    The middle is at 0, the best hundredth at 2.3, the best of a million at 4.9. Ranks well below
    ``offset`` are all about equally far up, which is how a curve levels off.
    """

    items: int
    offset: float

    def along(self, grid: RankGrid) -> FloatArray:
        from scipy.special import ndtri

        middle = (grid.low + grid.high) / 2.0
        return np.asarray(-ndtri((middle - 0.5 + self.offset) / (self.items + 2 * self.offset)))


@dataclass(frozen=True, eq=False)
class _Shapes:
    """The curves that add up to a log-density: slope, curvature, and combinations of bends."""

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

    head: Head
    looseness: float
    coordinate: _Coordinate
    shapes: _Shapes
    fit: LogDensityFit

    @property
    def log_evidence(self) -> FloatArray:
        return self.fit.log_evidence + math.log(self.head.prior)

    def mass(self, observed: Observed, condensed: Condensed, unseen: FloatArray) -> FloatArray:
        """Return where the targets of unknown rank are, hedged, on the grid of ``observed``."""
        shapes = self.shapes.at(self.coordinate.along(observed.grid), self.looseness)
        exponent = self.fit.coefficients @ shapes.T + np.log(observed.widths)
        place = condensed.grid.locate(observed.grid.low)
        variance = self.fit.log_variance[:, place] + unseen
        exponent -= _HEDGE * np.minimum(variance, _MOST_DOUBT)
        mass = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        mass *= condensed.expected_unknown(self.fit.solution.weights)[:, place]
        return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _fit_curves(
    condensed: Condensed, coordinate: _Coordinate, head: Head, targets: float
) -> list[_Curve]:
    """Fit one curve for each looseness, from stiff to loose."""
    z = coordinate.along(condensed.grid)
    shapes = _Shapes.along(z)
    log_widths = np.log(condensed.grid.width)
    curves = []
    for looseness in _LOOSENESS:
        design = shapes.at(z, looseness)
        size = design.shape[1]
        problem = LogDensity(
            condensed.likelihood,
            condensed.shares,
            targets,
            design,
            log_widths,
            np.zeros(size),
            np.ones(size),
        )
        curves.append(_Curve(head, float(looseness), coordinate, shapes, problem.fit()))
    return curves


def _parabolas(bends: FloatArray, z: FloatArray) -> FloatArray:
    return 0.5 * np.maximum(bends[None, :] - z[:, None], 0.0) ** 2


def _blind_rank(observed: Observed) -> float:
    """Return the rank down to which the largest sample has one item on average."""
    counts = observed.unknown_part().counts
    return float(((counts.items - 1) / counts.sampled).min())


def _unseen_variance(grid: RankGrid, blind: float, doubt: float) -> FloatArray:
    """Return the variance of a curve whose third derivative is noise above the blind rank."""
    plain = _Coordinate(grid.items, 0.0)
    from scipy.special import ndtri

    edge = -float(ndtri(min(blind / grid.items, 1.0 - 1e-12)))
    return np.asarray(doubt**2 * np.maximum(plain.along(grid) - edge, 0.0) ** 5 / 20.0)


def _certified(curves: list[_Curve], share: FloatArray, weights: FloatArray) -> Solution:
    """Return the weights with the certificate of the worst curve that counts, row by row."""
    solutions = [curve.fit.solution for curve in curves]
    gap = np.stack([solution.gap for solution in solutions], axis=1)
    worst = np.where(share > _NEGLIGIBLE, gap, -1.0).argmax(axis=1)
    rows = np.arange(len(weights))
    objective, residual, iterations = (
        np.stack([getattr(solution, name) for solution in solutions], axis=1)[rows, worst]
        for name in ("objective", "residual", "iterations")
    )
    status = tuple(solutions[at].status[row] for row, at in enumerate(worst))
    return Solution(weights, objective, gap[rows, worst], residual, iterations, status)


def _in_words(curves: list[_Curve], share: FloatArray, blind: float) -> str:
    looseness = math.exp(
        sum(part * math.log(curve.looseness) for curve, part in zip(curves, share, strict=True))
    )
    text = f"the average, by evidence, of {len(curves)} smooth curves (looseness {looseness:.2g})"
    levels = sorted({curve.head.level for curve in curves})
    if len(levels) == 1:
        return text
    parts = []
    for level in levels:
        part = sum(s for curve, s in zip(curves, share, strict=True) if curve.head.level == level)
        how = f"levels off near rank {max(1, round(level * blind))}" if level else "goes on"
        parts.append(f"{100 * part:.0f} % for a curve that {how}")
    return f"{text}; above the blind rank {round(blind)}: " + ", ".join(parts)
