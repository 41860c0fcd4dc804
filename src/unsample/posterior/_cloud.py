"""`Cloud`: the curves P(R) of one model that its data and other data sets allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray, check_real
from unsample._threads import cached_property, one_thread
from unsample.counts import RankCounts
from unsample.errors import InputError, MetricError
from unsample.likelihood import CondensedCells, StratumCells
from unsample.metrics import AUC, Metric, parse
from unsample.posterior._basis import SIZE
from unsample.posterior._components import components_of
from unsample.posterior._fixed_numbers import EVEN, FixedNumbers
from unsample.posterior._modes import ComponentFit, Mode, fits_of
from unsample.posterior._moved_shares import MovedShares
from unsample.posterior._placed_targets import placed_targets
from unsample.posterior._prior import Prior
from unsample.sampling import RankDistribution, RankGrid, bin_weights
from unsample.uncertainty import FromDraws

_TINY = 1e-300
#: Steps of this size visit all of 0..1 evenly.
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
#: Standard deviations of a discrepancy that calls for a warning. At most one in a hundred rank sets
#: of data sets and models that were left out had more (``tests/test_validity_cloud.py`` tries it).
UNLIKE = 3.5
#: Numbers in a matrix of draws that are computed at a time.
_ROOM = 2_000_000
#: Where fewer equal shared items would have the same spread, nothing tells how large it is.
_FEWEST_ITEMS = 4.0
#: The metrics along whose gradients the first normal numbers are spread evenly.
_LEADING = ("Recall@1", "NDCG@10", "Recall@100")


@dataclass(frozen=True, eq=False)
class Fitted:
    """One model under all components that may be: the modes, and the weight of each."""

    cells: CondensedCells
    components: tuple[ComponentFit, ...]
    weights: FloatArray
    #: What it was fitted with, where it can be fitted again.
    again: tuple[Prior, str | None] | None = field(default=None, repr=False)

    @classmethod
    @one_thread()
    def of(cls, cells: CondensedCells, prior: Prior, *, protocol: str | None) -> Fitted:
        """Fit a model under the components of all kinds that a protocol allows."""
        kinds = prior.possible(protocol)
        sampled = cells.usual_sample
        fits = [
            fits_of(cells, components_of(prior.learned[kind], kind, sampled=sampled))
            for kind in kinds
        ]
        weights = prior.weights_of_components(
            protocol, kinds, [[fit.log_evidence for fit in of_kind] for of_kind in fits]
        )
        flat = tuple(fit for of_kind in fits for fit in of_kind)
        return cls(cells, flat, np.concatenate(weights), (prior, protocol))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be fitted again: copies for other processes stay small."""
        return vars(self) if self.again is None else {"cells": self.cells, "again": self.again}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Fit again."""
        if "weights" not in state:
            prior, protocol = state["again"]
            state = vars(Fitted.of(state["cells"], prior, protocol=protocol))
        self.__dict__.update(state)

    @one_thread()
    def cloud(self, fixed: FixedNumbers) -> Cloud:
        """Draw the curves."""
        return Cloud.of_fitted(self, fixed)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of evaluations that may be."""
        return tuple(dict.fromkeys(fit.component.kind for fit in self.components))

    @property
    def discrepancy(self) -> float:
        """Return how much worse the best component fits than chance has it, in standard deviations.

        The deviance of the fitted cells, and of the mode under the prior, follows about a chi
        squared distribution with as many degrees of freedom as there are cells, less one.
        """
        if not self.components:
            return 0.0
        best = self.components[int(np.argmax(self.weights))]
        deviance = sum(mode.deviance for mode in best.modes)
        df = max(sum(mode.compared - 1 for mode in best.modes), 1)
        return (deviance - df) / math.sqrt(2.0 * df)

    @property
    def unlike(self) -> bool:
        """Return whether the data hardly fit any curve: n, N or the draw may not be as stated.

        Targets that share their items err together, which this does not allow for.
        """
        return not self.cells.shared and self.discrepancy > UNLIKE

    @cached_property
    def moved(self) -> MovedShares:
        """Return how the weights of the cells vary with the users."""
        return MovedShares.of(self.cells, self.expected_shares())

    def rows(self, numbers: FixedNumbers, data_set: int = 0) -> list[IntArray]:
        """Return the draws that each component has; on other data sets, other draws."""
        ends = np.cumsum(self.weights)
        uniform = (numbers.uniform + data_set * _GOLDEN) % 1.0
        chosen = np.searchsorted(ends / ends[-1], uniform)
        return [np.flatnonzero(chosen == each) for each in range(len(self.weights))]

    def expected_shares(self) -> list[FloatArray]:
        """Return the shares of the cells that the curves expect, by stratum."""
        found = [np.zeros(len(stratum.shares)) for stratum in self.cells.strata]
        for weight, fit in zip(self.weights, self.components, strict=True):
            for number, mode in enumerate(fit.modes):
                found[number] += weight * (self.cells.strata[number].likelihood @ mode.weights)
        return found


@dataclass(frozen=True, eq=False)
class DrawnCurves:
    """Curves, and the shares of cells, of each draw.

    ``curves`` are P(R) before targets are put where the sample shows them (draws x bins), by
    stratum. ``shares`` are the weights of the cells (or of groups of them, see `MovedShares`),
    which sum to one, and ``total`` is their sum relative to that of users.
    """

    curves: tuple[FloatArray, ...]
    shares: FloatArray
    total: FloatArray

    @classmethod
    @one_thread()
    def of(cls, fitted: Fitted, numbers: FixedNumbers) -> DrawnCurves:
        """Draw from the components of one model, each as often as its weight has it."""
        cells, moved = fitted.cells, fitted.moved
        normals = numbers.normals(SIZE + len(moved.mean))
        curves = [np.empty((numbers.draws, len(stratum.grid))) for stratum in cells.strata]
        weights = np.empty((numbers.draws, len(moved.mean)))
        total = np.empty(numbers.draws)
        for fit, rows in zip(fitted.components, fitted.rows(numbers), strict=True):
            if not len(rows):
                continue
            directions = _leading_directions(fit, moved, cells)
            for some in in_parts(rows, SIZE + len(cells.weight)):
                moving = turned(normals[some], numbers.even[some], directions)
                weights[some], total[some] = moved.draw(moving[:, SIZE:] @ moved.root)
                centre = moving[:, :SIZE] @ fit.component.error_root
                in_cells = moved.in_cells(weights[some])
                for number, masses in moved_curves(fit, cells, centre, in_cells):
                    curves[number][some] = masses
        weights /= weights.sum(axis=1, keepdims=True)
        return cls(tuple(curves), weights, total)

    def followed(self, fitted: Fitted) -> tuple[FloatArray, ...]:
        """Return where the targets are (draws x bins), by stratum, given the shares of cells."""
        found, start = [], 0
        for stratum, curve in zip(fitted.cells.strata, self.curves, strict=True):
            end = start + len(stratum.shares)
            mass = np.empty_like(curve)
            for some in in_parts(np.arange(len(curve)), len(fitted.moved.group)):
                expected = np.maximum(curve[some] @ stratum.likelihood.T, _TINY)
                shares = fitted.moved.in_cells(self.shares[some])[:, start:end]
                seen = (shares / expected) @ stratum.likelihood
                mass[some] = curve[some] * seen
            found.append(mass)
            start = end
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Cloud:
    """Some thousand curves P(R), each as probable as any other: all answers are read from them.

    >>> from unsample.posterior import shipped
    >>> counts = RankCounts.from_ranks([1, 1, 2, 5, 30] * 100, items=10_000, sampled=99)
    >>> cloud = Cloud.of(counts, shipped(), protocol="unseen")
    >>> metric = cloud.metric("NDCG@10")
    >>> low, high = metric.interval(0.95)
    >>> 0.0 < low < metric.value < high < cloud.metric("Recall@10").interval(0.95)[1]
    True
    """

    fitted: Fitted = field(repr=False)
    #: Where the targets of each draw are (draws x bins), by stratum; rows sum to one together.
    masses: tuple[FloatArray, ...] = field(repr=False)
    #: The weight of all targets relative to that of users, for each draw.
    total: FloatArray = field(repr=False)
    #: Whether nothing but bounds can be told: targets share items, and their outcomes are unknown.
    blind: bool = False
    #: The numbers that it was drawn by; None where it was drawn together with others.
    numbers: FixedNumbers | None = None

    @classmethod
    @one_thread()
    def of(
        cls,
        counts: RankCounts,
        prior: Prior,
        *,
        protocol: str | None = None,
        numbers: FixedNumbers | None = None,
    ) -> Cloud:
        """Return the cloud of one model."""
        cells = CondensedCells.of(counts)
        fitted = Fitted.of(cells, prior, protocol=protocol)
        return cls.of_fitted(fitted, FixedNumbers() if numbers is None else numbers)

    @classmethod
    def of_fitted(cls, fitted: Fitted, numbers: FixedNumbers) -> Cloud:
        """Draw the curves of a model that is fitted."""
        drawn = DrawnCurves.of(fitted, numbers)
        cells = fitted.cells
        blind = cells.shared and cells.items is None
        return cls(fitted, drawn.followed(fitted), drawn.total, blind, numbers)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be drawn again: copies for other processes stay small."""
        if self.numbers is None:
            return vars(self)
        return {"fitted": self.fitted, "numbers": self.numbers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Draw again."""
        if "masses" not in state:
            state = vars(state["fitted"].cloud(state["numbers"]))
        self.__dict__.update(state)

    # -- questions ------------------------------------------------------------------------------

    @one_thread()
    def metric(self, metric: str | Metric, *, population: bool = True) -> FromDraws:
        """Return a metric, for users like these or for these users alone.

        It is that of the weights with which the targets were counted (`RankCounts.for_metric`).
        """
        asked = parse(metric)
        self._check(asked)
        return self.of_metric(asked, population=population)

    @one_thread()
    def of_metric(self, metric: Metric, *, population: bool = True) -> FromDraws:
        """Return a metric with whose weights, as the caller knows, the targets were counted."""
        draws = self.draws(metric, population=population)
        return FromDraws.of(draws, minimum=0.0, maximum=self._maximum(metric))

    @one_thread()
    def draws(self, metric: Metric, *, population: bool = True) -> FloatArray:
        """Return a metric for each draw."""
        weights = [
            bin_weights(metric, stratum.grid, stratum.grid.items)
            for stratum in self.fitted.cells.strata
        ]
        scale = self.fitted.cells.weight_per_user
        if population or self.printed:
            found = sum(masses @ each for masses, each in zip(self.masses, weights, strict=True))
            return np.asarray(np.minimum(scale * self.total * found, self._maximum(metric)))
        assert self.numbers is not None
        # The curves before targets are followed take room: they are drawn again.
        drawn = DrawnCurves.of(self.fitted, self.numbers)
        placed = placed_targets(self.fitted.cells, drawn.curves, weights)
        return np.asarray(np.minimum(scale * placed, self._maximum(metric)))

    @one_thread()
    def expect(self, function: Callable[[FloatArray], npt.ArrayLike]) -> FromDraws:
        """Return the mean over targets of a function of full ranks, such as a metric of one's own.

        >>> from unsample.posterior import shipped
        >>> counts = RankCounts.from_ranks([1, 2, 9] * 50, items=1_000, sampled=99)
        >>> cloud = Cloud.of(counts, shipped(), protocol="unseen")
        >>> own = cloud.expect(lambda ranks: 1.0 / ranks)
        >>> bool(np.isclose(own.value, cloud.metric("MRR").value, rtol=0.01))
        True
        """
        found = np.zeros(len(self.total))
        for stratum, masses in zip(self.fitted.cells.strata, self.masses, strict=True):
            middle = (stratum.grid.low + stratum.grid.high) / 2.0
            values = np.asarray(function(middle), dtype=np.float64)
            if values.shape != middle.shape or not np.isfinite(values).all():
                raise InputError(
                    "function must return one finite number for each rank, got "
                    f"{values.shape} for {middle.shape}"
                )
            found += masses @ values
        return FromDraws.of(found)

    @one_thread()
    def quantiles(self, probabilities: Sequence[float]) -> list[RankDistribution]:
        """Return, for each probability, what P(R) of each bin is below with that probability.

        Quantiles of different bins come from different curves, so they need not sum to one.
        """
        for each in probabilities:
            check_real("probabilities", each, low=0.0, high=1.0)
        grid, masses = self.on_one_grid()
        found = np.quantile(masses, list(probabilities), axis=0)
        return [RankDistribution(grid, each) for each in found]

    @one_thread()
    def recall(self, probabilities: Sequence[float]) -> tuple[IntArray, FloatArray]:
        """Return each K at which a bin ends, and quantiles of Recall@K there (probabilities x K).

        >>> from unsample.posterior import shipped
        >>> counts = RankCounts.from_ranks([1, 2, 9] * 50, items=1_000, sampled=99)
        >>> cloud = Cloud.of(counts, shipped(), protocol="unseen")
        >>> ks, (low, middle, high) = cloud.recall([0.025, 0.5, 0.975])
        >>> at = ks.tolist().index(10)
        >>> bool(low[at] < middle[at] < high[at]), round(float(middle[-1]), 6)
        (True, 1.0)
        """
        for each in probabilities:
            check_real("probabilities", each, low=0.0, high=1.0)
        grid, masses = self.on_one_grid()
        found = np.quantile(np.cumsum(masses, axis=1), list(probabilities), axis=0)
        return grid.high, np.asarray(found)

    def to_dict(self, probabilities: Sequence[float] = (0.025, 0.5, 0.975)) -> dict[str, Any]:
        """Return quantiles of P(R) and of Recall@K, as lists that JSON can hold."""
        ks, recall = self.recall(probabilities)
        masses = [each.mass for each in self.quantiles(probabilities)]
        return {
            "k": ks.tolist(),
            "probabilities": list(probabilities),
            "mass": [each.tolist() for each in masses],
            "recall": recall.tolist(),
        }

    @one_thread()
    def mean(self) -> RankDistribution:
        """Return the mean of all curves, which is a distribution."""
        grid, masses = self.on_one_grid()
        mean = masses.mean(axis=0)
        return RankDistribution(grid, mean / mean.sum())

    # -- parts ----------------------------------------------------------------------------------

    def rests_on_few_items(self, metric: Metric) -> bool:
        """Return whether most of a metric's error comes from very few of the shared items.

        Then nothing tells how large it is: a draw without these items would have shown none.
        """
        cells = self.fitted.cells
        if cells.items is None:
            return False
        best = self.fitted.components[int(np.argmax(self.fitted.weights))]
        slopes, _, _ = _gradient(best, cells, metric)
        effects = cells.items.effects @ slopes
        changes = np.append(effects, np.zeros(cells.items.drawn - len(effects)))
        squares = (changes - changes.mean()) ** 2
        centred = cells.centred(slopes)
        of_users = cells.user_products.between(centred, centred)
        most = float(squares.sum()) > of_users
        return most and float(squares.sum()) ** 2 < _FEWEST_ITEMS * float((squares**2).sum())

    @property
    def printed(self) -> bool:
        """Return whether the data are printed numbers, which hold no single targets."""
        return any(stratum.printed for stratum in self.fitted.cells.strata)

    def on_one_grid(self) -> tuple[RankGrid, FloatArray]:
        """Return the bins of all strata together, and the curves on them."""
        strata = self.fitted.cells.strata
        if len(strata) == 1:
            return strata[0].grid, self.masses[0]
        most = max(each.grid.items for each in strata)
        # No bin lies partly beyond the last rank of a smaller catalogue.
        ends = np.array([each.grid.items + 1 for each in strata if each.grid.items < most])
        lows = np.unique(np.concatenate([*(each.grid.low for each in strata), ends.astype(int)]))
        fine = RankGrid(lows, most)
        masses = np.zeros((len(self.total), len(fine)))
        for stratum, mass in zip(strata, self.masses, strict=True):
            inside = stratum.grid.locate(fine.low)
            width = np.where(fine.low <= stratum.grid.items, fine.width, 0)
            masses += mass[:, inside] * (width / stratum.grid.width[inside])
        return fine, masses

    @property
    def weighs_alike(self) -> bool:
        """Return whether all relevant items of a user count the same."""
        metric = self.fitted.cells.metric
        return metric is None or metric.family.weighs_alike

    def _check(self, metric: Metric) -> None:
        cells = self.fitted.cells
        if cells.metric is not None and not _weighs_like(metric, cells.metric):
            raise MetricError(
                f"{metric} must weigh the relevant items of a user as {cells.metric} does, for "
                "which these curves are; ask the result for it"
            )

    def _maximum(self, metric: Metric) -> float:
        """Return the largest possible value."""
        cells = self.fitted.cells
        if metric.family.unlimited or metric.family is AUC:
            return math.inf
        if cells.metric is not None:
            return cells.ceiling
        items = max(each.grid.items for each in cells.strata)
        return float(metric.weights(np.array([1]), items)[0])


def in_parts(rows: IntArray, columns: int) -> list[IntArray]:
    """Return rows in parts of which each has little room; usual data are one part."""
    return np.array_split(rows, max(1, -(-len(rows) * columns // _ROOM)))


def _weighs_like(metric: Metric, other: Metric) -> bool:
    """Return whether the relevant items of a user have the same shares in two metrics."""
    return metric.family.share is other.family.share


def moved_curves(
    fit: ComponentFit, cells: CondensedCells, centre: FloatArray, weights: FloatArray
) -> list[tuple[int, FloatArray]]:
    """Return each stratum's number and its curves (draws x bins), one Newton step from the modes.

    ``centre`` (draws x shapes) moves the prior's centre, ``weights`` (draws x cells) are those of
    the cells.
    """
    found, start = [], 0
    for number, (stratum, mode) in enumerate(zip(cells.strata, fit.modes, strict=True)):
        end = start + len(stratum.shares)
        of_stratum = weights[:, start:end]
        shares = of_stratum / np.maximum(of_stratum.sum(axis=1, keepdims=True), _TINY)
        coefficients = mode.moved(centre, shares - stratum.shares)
        found.append((number, mode.masses(coefficients)))
        start = end
    return found


def _leading_directions(fit: ComponentFit, moved: MovedShares, cells: CondensedCells) -> FloatArray:
    """Return orthonormal directions of the normal numbers that move the leading metrics most.

    The gradient of the logarithm of a metric at the modes, by the prior's centre and by the cells'
    weights.
    """
    groups = len(moved.mean)
    gradients = np.zeros((EVEN, SIZE + groups))
    deviations = np.sqrt(moved.variance)
    for row, metric in enumerate(map(parse, _LEADING)):
        of_weights, by_centre, value = _gradient(fit, cells, metric)
        of_groups = np.bincount(moved.group, of_weights * moved.within, minlength=groups)
        gradients[row, :SIZE] = fit.component.error_root @ by_centre
        gradients[row, SIZE:] = moved.root @ (deviations * of_groups)
        gradients[row] /= max(value, _TINY)
    return upright(gradients)


def _gradient(
    fit: ComponentFit, cells: CondensedCells, metric: Metric
) -> tuple[FloatArray, FloatArray, float]:
    """Return the slopes of a metric at the modes, by cells' weights and by the prior's centre.

    The third is its value there.
    """
    by_weights, by_centre, value = [], np.zeros(SIZE), 0.0
    for stratum, mode in zip(cells.strata, fit.modes, strict=True):
        in_cell, slope = _in_cells(stratum, mode, metric)
        slope = stratum.part * slope
        through = mode.response @ slope / max(stratum.part, _TINY)
        by_weights.append((in_cell + through) / cells.total)
        by_centre += mode.inverse @ slope
        value += stratum.part * float(stratum.shares @ in_cell)
    of_weights = np.concatenate(by_weights)
    # Only the differences of weights count, for shares sum to one.
    of_weights -= float(of_weights @ cells.weight) / cells.total
    return of_weights, by_centre, value


def _in_cells(stratum: StratumCells, mode: Mode, metric: Metric) -> tuple[FloatArray, FloatArray]:
    """Return a metric in each cell at a mode, and the slope of its mean by the coefficients."""
    weights = bin_weights(metric, stratum.grid, stratum.grid.items)
    shapes = mode.density.shapes
    joint = stratum.likelihood * mode.weights
    expected = np.maximum(joint.sum(axis=1), _TINY)
    in_cell = joint @ weights / expected
    # The slope of E[w | cell] is the covariance of w and the shapes inside the cell.
    shapes_in_cell = joint @ shapes / expected[:, None]
    both = (joint * weights) @ shapes / expected[:, None]
    inside = both - in_cell[:, None] * shapes_in_cell
    return in_cell, np.asarray(stratum.shares @ inside)


def gradient_of_log(mass: FloatArray, shapes: FloatArray, grid: RankGrid) -> FloatArray:
    """Return the slopes of the logarithms of the leading metrics (metrics x shapes)."""
    found = []
    for metric in map(parse, _LEADING):
        weights = bin_weights(metric, grid, grid.items)
        value = float(mass @ weights)
        found.append((mass * weights) @ shapes / max(value, _TINY) - mass @ shapes)
    return np.stack(found)


def upright(gradients: FloatArray) -> FloatArray:
    """Return orthonormal directions, the first along the first gradient, and so on."""
    # A direction that is a mixture of those before it is as good as any.
    basis, upper = np.linalg.qr(gradients.T + 1e-12 * np.eye(gradients.shape[1], EVEN))
    return np.asarray(basis * np.where(np.diag(upper) < 0.0, -1.0, 1.0))


def turned(normals: FloatArray, even: FloatArray, directions: FloatArray) -> FloatArray:
    """Return normal numbers whose parts along the directions are the even ones."""
    return np.asarray(normals + (even - normals @ directions) @ directions.T)
