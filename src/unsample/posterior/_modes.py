"""The most probable curve under each component of the prior, and how it moves.

Sampled ranks beyond a fifth of the sample are one cell of the fit: the bottom of a catalogue (cold
items, ties, heaps) tells nothing about the top. Curves are not exactly sums of shapes, so M
independent users count as M K / (M + K): more users do not make a curve arbitrarily certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample._threads import cached_property
from unsample.likelihood import CondensedCells, LogDensity, StratumCells
from unsample.posterior._basis import shapes_on
from unsample.posterior._components import Component

#: The share of a sample beyond which all ranks are one cell of the fit.
DEEPEST = 0.2
#: K: in the fit, any number of users counts less than this many independent users.
MAX_INFORMATION = 5e4
#: The number of groups in which ranks among all items are compared with a curve.
_GROUPS = 10
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class StratumToFit:
    """A stratum as curves are fitted to it: deep cells are joined to one.

    ``cell_of_fit`` is the fitted cell of each cell. The first ``known`` fitted cells hold ranks
    among all items, one bin each; bins without a target have no such cell.
    """

    likelihood: FloatArray
    shares: FloatArray
    cell_of_fit: IntArray
    targets: float
    known: int = 0

    @classmethod
    def of(cls, stratum: StratumCells, targets: float) -> StratumToFit:
        """Join the cells of ranks beyond a fifth of the sample, or of the catalogue if known.

        Of the four ranks 1, 20, 21 and 90 of 100, the last two are beyond a fifth:

        >>> from unsample.counts import RankCounts
        >>> counts = RankCounts.from_ranks([1, 20, 21, 90], items=10_000, sampled=99)
        >>> (stratum,) = CondensedCells.of(counts).strata
        >>> to_fit = StratumToFit.of(stratum, targets=4.0)
        >>> to_fit.shares[to_fit.shares > 0].tolist()
        [0.25, 0.25, 0.5]
        """
        compared = np.where(stratum.sampled > 0, stratum.sampled + 1, stratum.grid.items)
        deep = stratum.first > np.maximum(DEEPEST * compared, 1.0)
        shallow = int((~deep).sum())
        cell_of_fit = np.where(deep, shallow, np.cumsum(~deep) - 1)
        size = shallow + bool(deep.any())
        likelihood = np.zeros((size, len(stratum.grid)))
        np.add.at(likelihood, cell_of_fit, stratum.likelihood)
        shares = np.bincount(cell_of_fit, stratum.shares, minlength=size).astype(np.float64)
        in_full = stratum.sampled == 0
        if in_full.any() and deep.any():
            # The deep cell has all deep ranks of targets in full, even if no target has them.
            deep_bins = stratum.grid.low > max(DEEPEST * stratum.grid.items, 1.0)
            deep_bins &= ~stratum.likelihood[in_full & deep].any(axis=0)
            likelihood[-1, deep_bins] += stratum.shares[in_full].sum()
        return cls(
            likelihood=likelihood,
            shares=shares,
            cell_of_fit=cell_of_fit,
            targets=targets,
            known=int((in_full & ~deep).sum()),
        )

    def compared(self, stratum: StratumCells, curve: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the shares of cells and the shares that a curve expects, to be compared.

        Ranks among all items are compared in ten groups of neighbours, of about equal expected
        shares: most single ranks occur once or never.
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
        """Return the problem of fitting a curve under a component.

        Where own items push targets down, the curve is the one before the push, and P(cell | bin)
        is the product of P(cell | new bin) and P(new bin | bin).
        """
        basis = shapes_on(stratum.grid)
        push = component.push(stratum.grid)
        return LogDensity(
            likelihood=self.likelihood if push is None else self.likelihood @ push,
            shares=self.shares,
            targets=self.targets,
            shapes=basis @ component.root,
            log_base=basis @ component.mean + np.log(stratum.grid.width),
        )


@dataclass(frozen=True, eq=False)
class Mode:
    """The most probable curve of a stratum under one component.

    ``coefficients`` are in units of the component's root, ``inverse`` is the inverse of the
    posterior precision at the mode, and ``scores`` (cells x shapes) are the slopes of the
    log-likelihood of a target in each cell.

    >>> from unsample.counts import RankCounts
    >>> from unsample.posterior._components import components_of, vague_kind
    >>> cells = CondensedCells.of(RankCounts.from_ranks([1, 1, 2, 9], items=100, sampled=9))
    >>> (fit,) = fits_of(cells, components_of(vague_kind(), "unseen")[:1])
    >>> (mode,) = fit.modes

    Where nothing moves, the mode stays. Where the share of sampled rank 1 grows from 1/2 to 3/5, so
    does the probability of rank 1:

    >>> nothing = np.zeros((1, len(mode.coefficients)))
    >>> same = mode.moved(nothing, np.zeros((1, 10)))
    >>> bool((same[0] == mode.coefficients).all())
    True
    >>> change = np.array([[0.1, -0.1, 0, 0, 0, 0, 0, 0, 0, 0]])
    >>> more = mode.masses(mode.moved(nothing, change))[0, 0]
    >>> bool(more > mode.weights[0])
    True
    """

    density: LogDensity
    coefficients: FloatArray
    #: The curve before own items push targets down, and P(new bin | bin), if they push any.
    before: FloatArray
    push: FloatArray | None
    inverse: FloatArray
    scores: FloatArray
    log_evidence: float
    #: The deviance of the cells and of the coefficients under the prior, and how many cells are
    #: compared with the curve.
    deviance: float
    compared: int

    @cached_property
    def weights(self) -> FloatArray:
        """Return the curve, a distribution over bins."""
        return self.before if self.push is None else self.push @ self.before

    @property
    def response(self) -> FloatArray:
        """Return the derivatives of the coefficients by the shares of the cells (cells x shapes).

        With M targets, scores s and precision H, they are M s H^-1.
        """
        return np.asarray(self.density.targets * self.scores @ self.inverse)

    def moved(self, centre: FloatArray, change: FloatArray) -> FloatArray:
        """Return the coefficients after one Newton step from the mode (draws x shapes).

        ``centre`` (draws x shapes) is how far the prior's centre moves, ``change`` (draws x cells)
        is how much the shares of cells change.
        """
        return np.asarray(self.coefficients + centre @ self.inverse + change @ self.response)

    def masses(self, coefficients: FloatArray) -> FloatArray:
        """Return the curves of coefficients: distributions over bins (draws x bins)."""
        exponent = coefficients @ self.density.shapes.T + self.density.log_base
        exponent -= exponent.max(axis=1, keepdims=True)
        masses = np.exp(exponent, out=exponent)
        masses /= masses.sum(axis=1, keepdims=True)
        return masses if self.push is None else np.asarray(masses @ self.push.T)


@dataclass(frozen=True, eq=False)
class ComponentFit:
    """A model under one component: a mode for each stratum.

    Catalogues of several sizes have curves of their own, for users with few candidates are others
    than users with many. The error of the prior's centre is the same for all of them.
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
    """Return the strata as curves are fitted to them, and how many targets each counts as.

    A million users count as 10^6 * 50,000 / (10^6 + 50,000):

    >>> from unsample.counts import RankCounts
    >>> counts = RankCounts.from_ranks(np.ones(1_000_000, dtype=int), items=100, sampled=9)
    >>> (to_fit,) = strata_to_fit(CondensedCells.of(counts))
    >>> round(to_fit.targets)
    47619
    """
    users = cells.independent
    informative = users * MAX_INFORMATION / (users + MAX_INFORMATION)
    return [
        StratumToFit.of(stratum, max(stratum.part * informative, _TINY)) for stratum in cells.strata
    ]


def fits_of(cells: CondensedCells, components: Sequence[Component]) -> list[ComponentFit]:
    """Return the modes of a model under the components of one kind.

    Each search starts from the curve of the component before.
    """
    strata = strata_to_fit(cells)
    fits: list[ComponentFit] = []
    starts: list[FloatArray | None] = [None] * len(strata)
    for component in components:
        if fits:
            # The same curve in units of the other root, where the component differs by its scale.
            ratio = fits[-1].component.scale / component.scale
            starts = [ratio * mode.coefficients for mode in fits[-1].modes]
        modes = tuple(
            _mode(to_fit, stratum, component=component, start=start)
            for to_fit, stratum, start in zip(strata, cells.strata, starts, strict=True)
        )
        fits.append(ComponentFit(component, modes))
    return fits


def _mode(
    to_fit: StratumToFit,
    stratum: StratumCells,
    *,
    component: Component,
    start: FloatArray | None,
) -> Mode:
    """Return the mode of a stratum under a component."""
    density = to_fit.density(stratum, component)
    fit = density.fit(start=start)
    push = component.push(stratum.grid)
    curve = fit.weights if push is None else push @ fit.weights
    observed, expected = to_fit.compared(stratum, curve)
    deviance = density.targets * _deviance_of_one(observed, expected)
    return Mode(
        density=density,
        coefficients=fit.coefficients,
        before=fit.weights,
        push=push,
        inverse=np.asarray(np.linalg.inv(fit.information)),
        scores=density.scores(fit.weights)[to_fit.cell_of_fit],
        log_evidence=fit.log_evidence,
        deviance=deviance + float(fit.coefficients @ fit.coefficients),
        compared=len(observed),
    )


def _deviance_of_one(observed: FloatArray, expected: FloatArray) -> float:
    """Return the deviance of shares from the expected ones, for one target.

    It is 2 sum of p log(p / q). Halves, where a quarter and three quarters are expected, give
    log 2 + log 2/3.

    >>> round(_deviance_of_one(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.75, 0.0])), 4)
    0.2877
    """
    some = observed > 0.0
    ratio = np.log(observed[some] / np.maximum(expected[some], _TINY))
    return 2.0 * float(observed[some] @ ratio)


def moved_mode(mode: Mode, centre: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the mode with another centre of the prior and other shares of the fitted cells.

    It is the slow twin of a draw, which takes one Newton step from the mode: this refits. It serves
    tests alone.
    """
    # With c = centre + d the prior of d has the mean 0 again, and the base of the curve moves.
    density = mode.density
    moved = replace(density, shares=shares, log_base=density.log_base + density.shapes @ centre)
    fit = moved.fit(start=mode.coefficients - centre)
    return np.asarray(centre + fit.coefficients)
