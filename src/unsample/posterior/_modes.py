"""The most probable curve under each component of the prior, and how it moves.

Sampled ranks beyond a fifth of the sample are one cell of the fit: the bottom of a catalogue (cold
items, ties, heaps) does not speak about the top. Curves are not exactly sums of shapes, so M
independent users count as M K / (M + K): more users do not make a curve arbitrarily sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.likelihood import CondensedCells, LogDensity, StratumCells
from unsample.posterior._basis import shapes_on
from unsample.posterior._components import Component

#: The share of a sample beyond which all ranks are one cell of the fit.
DEEPEST = 0.2
#: The number of independent users that any number of users counts less than, in the fit.
MAX_INFORMATION = 5e4
#: In how many groups ranks among all items are compared with a curve.
_GROUPS = 10
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class StratumToFit:
    """A stratum as curves are fitted to it: deep cells are joined to one.

    ``cell_of_fit`` is the fitted cell of each cell. The first ``known`` fitted cells hold ranks
    among all items, one bin each, and there are only those that occur.
    """

    likelihood: FloatArray
    shares: FloatArray
    cell_of_fit: IntArray
    targets: float
    known: int = 0

    @classmethod
    def of(cls, stratum: StratumCells, targets: float) -> StratumToFit:
        """Join the cells of ranks beyond a fifth of the sample, or of the catalogue if known."""
        compared = np.where(stratum.sampled > 0, stratum.sampled + 1, stratum.grid.items)
        deep = stratum.first > np.maximum(DEEPEST * compared, 1.0)
        shallow = int((~deep).sum())
        number = np.where(deep, shallow, np.cumsum(~deep) - 1)
        size = shallow + bool(deep.any())
        likelihood = np.zeros((size, len(stratum.grid)))
        np.add.at(likelihood, number, stratum.likelihood)
        shares = np.bincount(number, stratum.shares, minlength=size).astype(np.float64)
        in_full = stratum.sampled == 0
        if in_full.any() and deep.any():
            # The deep cell has all deep ranks of targets in full, also those that do not occur.
            deep_bins = stratum.grid.low > max(DEEPEST * stratum.grid.items, 1.0)
            deep_bins &= ~stratum.likelihood[in_full & deep].any(axis=0)
            likelihood[-1, deep_bins] += stratum.shares[in_full].sum()
        known = int((in_full & ~deep).sum())
        return cls(likelihood, shares, number, targets, known)

    def compared(self, stratum: StratumCells, curve: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the shares of cells and what a curve expects, to be compared.

        Ranks among all items are compared in a few groups of neighbours, with all ranks between
        them: most single ranks do not occur, or once.
        """
        expected = self.likelihood @ curve
        if not self.known:
            return self.shares, expected
        in_full = float(stratum.shares[stratum.sampled == 0].sum())
        bins = self.likelihood[: self.known].argmax(axis=1)
        shallow = curve[: int(bins.max()) + 1] * in_full
        passed = np.cumsum(shallow) / max(float(shallow.sum()), _TINY)
        group = np.minimum((passed * _GROUPS).astype(np.int64), _GROUPS - 1)
        observed_in = np.bincount(group[bins], self.shares[: self.known], minlength=_GROUPS)
        expected_in = np.bincount(group, shallow, minlength=_GROUPS)
        return (
            np.concatenate([observed_in, self.shares[self.known :]]),
            np.concatenate([expected_in, expected[self.known :]]),
        )

    def density(self, stratum: StratumCells, component: Component) -> LogDensity:
        """Return the problem of fitting a curve under a component."""
        basis = shapes_on(stratum.grid)
        return LogDensity(
            likelihood=self.likelihood,
            shares=self.shares,
            targets=self.targets,
            shapes=basis @ component.root,
            log_base=basis @ component.mean + np.log(stratum.grid.width),
        )


@dataclass(frozen=True, eq=False)
class Mode:
    """The most probable curve of a stratum under one component.

    ``coefficients`` are in units of the component's root, ``inverse`` is the inverse of the
    posterior precision there, and ``scores`` are the slopes of the log-likelihood of a target in
    each cell.
    """

    density: LogDensity
    coefficients: FloatArray
    weights: FloatArray
    inverse: FloatArray
    scores: FloatArray
    log_evidence: float
    #: The deviance of the cells and of the coefficients under the prior, and how many cells are
    #: compared with the curve.
    deviance: float
    compared: int

    @property
    def response(self) -> FloatArray:
        """Return how coefficients move with the shares of the cells (cells x shapes)."""
        return np.asarray(self.density.targets * self.scores @ self.inverse)

    def moved(self, centre: FloatArray, change: FloatArray) -> FloatArray:
        """Return where the mode goes with the prior's centre and the cells' shares (rows).

        One Newton step from the mode.
        """
        return np.asarray(self.coefficients + centre @ self.inverse + change @ self.response)

    def masses(self, coefficients: FloatArray) -> FloatArray:
        """Return the curves of coefficients (rows): distributions over bins."""
        exponent = coefficients @ self.density.shapes.T + self.density.log_base
        exponent -= exponent.max(axis=1, keepdims=True)
        masses = np.exp(exponent, out=exponent)
        return np.asarray(masses / masses.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ComponentFit:
    """A model under one component: a mode for each stratum.

    Catalogues of several sizes have curves of their own, for users with few candidates are others
    than those with many; what the prior leaves open of them is the same.
    """

    component: Component
    modes: tuple[Mode, ...]

    @property
    def log_evidence(self) -> float:
        """Return the log probability of the data, times the component's weight in its kind."""
        return sum(mode.log_evidence for mode in self.modes) + float(
            np.log(self.component.prior_weight)
        )


def strata_to_fit(cells: CondensedCells) -> list[StratumToFit]:
    """Return the strata as curves are fitted to them, with what their targets count."""
    users = cells.independent
    informative = users * MAX_INFORMATION / (users + MAX_INFORMATION)
    return [
        StratumToFit.of(stratum, max(stratum.part * informative, _TINY)) for stratum in cells.strata
    ]


def fits_of(cells: CondensedCells, components: Sequence[Component]) -> list[ComponentFit]:
    """Return the modes of a model under the components of one kind.

    Each search starts from the curve that was found before.
    """
    strata = strata_to_fit(cells)
    found: list[ComponentFit] = []
    starts: list[FloatArray | None] = [None] * len(strata)
    before: Component | None = None
    for component in components:
        if before is not None:
            # The same curve in units of the other root, where the component differs by its scale.
            ratio = before.scale / component.scale
            starts = [None if each is None else ratio * each for each in starts]
        modes = tuple(
            _mode(to_fit, stratum, component, start=start)
            for to_fit, stratum, start in zip(strata, cells.strata, starts, strict=True)
        )
        found.append(ComponentFit(component, modes))
        starts = [mode.coefficients for mode in modes]
        before = component
    return found


def _mode(
    to_fit: StratumToFit,
    stratum: StratumCells,
    component: Component,
    *,
    start: FloatArray | None,
) -> Mode:
    """Return the mode of a stratum under a component."""
    density = to_fit.density(stratum, component)
    fit = density.fit(start=start)
    observed, expected = to_fit.compared(stratum, fit.weights)
    some = observed > 0.0
    ratio = np.log(observed[some] / np.maximum(expected[some], _TINY))
    of_cells = 2.0 * density.targets * float(observed[some] @ ratio)
    return Mode(
        density=density,
        coefficients=fit.coefficients,
        weights=fit.weights,
        inverse=np.asarray(np.linalg.inv(fit.information)),
        scores=density.scores(fit.weights)[to_fit.cell_of_fit],
        log_evidence=fit.log_evidence,
        deviance=of_cells + float(fit.coefficients @ fit.coefficients),
        compared=len(observed),
    )


def moved_mode(mode: Mode, centre: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the mode with the prior's centre and the fitted cells' shares moved: the slow twin.

    A draw takes one Newton step from the mode; this goes all the way.
    """
    # With c = centre + d the prior of d is centred again, and the base of the curve is moved.
    density = mode.density
    moved = replace(density, shares=shares, log_base=density.log_base + density.shapes @ centre)
    fit = moved.fit(start=mode.coefficients - centre)
    return np.asarray(centre + fit.coefficients)
