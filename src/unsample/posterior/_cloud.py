"""`Cloud`: the curves P(R) of one model that its data and other data sets allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
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
from unsample.posterior._components import Component, components_of
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
#: A discrepancy of more standard deviations calls for a warning. At most one in a hundred rank sets
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
    """One model fitted under each component that its protocol allows."""

    cells: CondensedCells
    #: The fit under each component, and the probability of each component, given the data.
    components: tuple[ComponentFit, ...]
    weights: FloatArray
    #: The prior and the protocol that it was fitted with, where it can be fitted again.
    again: tuple[Prior, str | None] | None = field(default=None, repr=False)

    @classmethod
    @one_thread()
    def of(cls, cells: CondensedCells, prior: Prior, *, protocol: str | None) -> Fitted:
        """Fit a model under the components of all kinds that a protocol allows."""
        kinds = prior.possible(protocol)
        prior.check_own_items(max(stratum.grid.items for stratum in cells.strata))
        sampled = cells.usual_sample
        fits = []
        for kind in kinds:
            components = components_of(prior.learned[kind], kind, sampled=sampled, seen=prior.seen)
            fits.append(fits_of(cells, components))
        weights = prior.weights_of_components(
            protocol,
            kinds,
            log_evidence=[[fit.log_evidence for fit in of_kind] for of_kind in fits],
        )
        return cls(
            cells=cells,
            components=tuple(fit for of_kind in fits for fit in of_kind),
            weights=np.concatenate(weights),
            again=(prior, protocol),
        )

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
        """Return the kinds of curves that the components have."""
        return tuple(dict.fromkeys(component.kind for component in self.drawn_components))

    @property
    def discrepancy(self) -> float:
        """Return how much worse the best component fits than by chance, in standard deviations.

        The deviance of the fitted cells and of the mode under the prior follows about a chi squared
        distribution with as many degrees of freedom as there are cells, less one. Its mean is the
        number of degrees of freedom, its variance is twice that number: a deviance of 30 with 18
        degrees of freedom is (30 - 18) / sqrt(36) = 2 standard deviations.
        """
        if not self.components:
            return 0.0
        best = self.components[int(np.argmax(self.weights))]
        deviance = sum(mode.deviance for mode in best.modes)
        df = max(sum(mode.compared - 1 for mode in best.modes), 1)
        return (deviance - df) / math.sqrt(2.0 * df)

    @property
    def unlike(self) -> bool:
        """Return whether hardly any curve fits: n, N or the way of drawing may not be as stated.

        It is False where targets share their items: these err together, and the discrepancy does
        not allow for that.
        """
        return not self.cells.shared and self.discrepancy > UNLIKE

    @cached_property
    def moved(self) -> MovedShares:
        """Return how the weights of the cells vary with the users."""
        return MovedShares.of(self.cells, self.expected_shares())

    @property
    def drawn_components(self) -> tuple[Component, ...]:
        """Return the components that curves are drawn from, one for each weight."""
        return tuple(fit.component for fit in self.components)

    def draws_of_components(
        self,
        numbers: FixedNumbers,
        *,
        data_set: int = 0,
        own_uniform: FloatArray | None = None,
    ) -> list[IntArray]:
        """Return the numbers of the draws that come from each component.

        Parameters
        ----------
        numbers
            Their uniform numbers choose the component of each draw.
        data_set
            The number of the data set: components of other data sets get other draws.
        own_uniform
            A number in 0..1 for each draw, which is this model's own. It chooses the push: the
            push of one model says nothing about the push of another. Numbers that models have in
            common choose scale and kind.
        """
        uniform = (numbers.uniform + data_set * _GOLDEN) % 1.0
        if own_uniform is None:
            component_of_draw = _chosen(uniform, self.weights)
        else:
            pushes = [component.own_items for component in self.drawn_components]
            component_of_draw = _chosen_by_two(
                own_uniform, uniform, weights=self.weights, group=_numbered(pushes)
            )
        return [np.flatnonzero(component_of_draw == at) for at in range(len(self.weights))]

    def expected_shares(self) -> list[FloatArray]:
        """Return the shares of the cells that the curves expect, by stratum."""
        shares = [np.zeros(len(stratum.shares)) for stratum in self.cells.strata]
        for weight, fit in zip(self.weights, self.components, strict=True):
            for number, mode in enumerate(fit.modes):
                shares[number] += weight * (self.cells.strata[number].likelihood @ mode.weights)
        return shares


@dataclass(frozen=True, eq=False)
class DrawnCurves:
    """Curves, and the shares of cells, of each draw.

    ``curves`` are P(R) before targets are put where the sample shows them (draws x bins), by
    stratum. ``shares`` are the weights of the cells, or of groups of cells (see `MovedShares`), and
    sum to one in each draw. ``total`` is the weight of all targets, divided by the weight of users.
    """

    curves: tuple[FloatArray, ...]
    shares: FloatArray
    total: FloatArray

    @classmethod
    @one_thread()
    def of(cls, fitted: Fitted, numbers: FixedNumbers) -> DrawnCurves:
        """Draw from the components of one model, each as often as its weight has it."""
        cells = fitted.cells
        moved = fitted.moved
        normals = numbers.normals(SIZE + len(moved.mean))
        curves = [np.empty((numbers.draws, len(stratum.grid))) for stratum in cells.strata]
        weights = np.empty((numbers.draws, len(moved.mean)))
        total = np.empty(numbers.draws)
        of_components = fitted.draws_of_components(numbers)
        for fit, draws in zip(fitted.components, of_components, strict=True):
            if not len(draws):
                continue
            directions = _leading_directions(fit, moved, cells=cells)
            for some in in_parts(draws, SIZE + len(cells.weight)):
                moving = turned(normals[some], numbers.even[some], directions=directions)
                weights[some], total[some] = moved.draw(moving[:, SIZE:] @ moved.root)
                of_stratum = moved_curves(
                    fit,
                    cells,
                    centre=moving[:, :SIZE] @ fit.component.error_root,
                    weights=moved.in_cells(weights[some]),
                )
                for number, masses in of_stratum:
                    curves[number][some] = masses
        weights /= weights.sum(axis=1, keepdims=True)
        return cls(curves=tuple(curves), shares=weights, total=total)

    def followed(self, fitted: Fitted) -> tuple[FloatArray, ...]:
        """Return where the targets are (draws x bins), by stratum, given the shares of cells.

        The targets of a cell lie in the bins as the curve says: P(bin | cell) is proportional to
        P(cell | bin) P(bin), and P(bin) is the sum over cells of share times P(bin | cell).
        """
        followed = []
        start = 0
        for stratum, curve in zip(fitted.cells.strata, self.curves, strict=True):
            end = start + len(stratum.shares)
            mass = np.empty_like(curve)
            for some in in_parts(np.arange(len(curve)), len(fitted.moved.group)):
                shares = fitted.moved.in_cells(self.shares[some])[:, start:end]
                mass[some] = follow(curve[some], stratum.likelihood, shares=shares)
            followed.append(mass)
            start = end
        return tuple(followed)


def follow(curves: FloatArray, likelihood: FloatArray, *, shares: FloatArray) -> FloatArray:
    """Return curves whose cells have the given shares (draws x bins).

    The first cell holds the first bin and half of the second one. The curve expects 0.6 of the
    targets there, and the sample shows 0.3: what the cell puts in each bin is halved.

    >>> curve = np.array([[0.5, 0.2, 0.3]])
    >>> likelihood = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    >>> follow(curve, likelihood, shares=np.array([[0.3, 0.7]])).round(3).tolist()
    [[0.25, 0.225, 0.525]]
    """
    expected = np.maximum(curves @ likelihood.T, _TINY)
    return curves * ((shares / expected) @ likelihood)


@dataclass(frozen=True, eq=False)
class Cloud:
    """Some thousand curves P(R) of equal probability: all answers are read from them.

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
    #: The weight of all targets, divided by the weight of users, for each draw.
    total: FloatArray = field(repr=False)
    #: Whether only bounds hold: targets share items, and it is not known which items beat which.
    blind: bool = False
    #: The numbers that it was drawn by; None where it was drawn together with other clouds.
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
        return cls(
            fitted=fitted,
            masses=drawn.followed(fitted),
            total=drawn.total,
            blind=blind,
            numbers=numbers,
        )

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

        The targets must have been counted with the weights of the metric (`RankCounts.for_metric`).

        Raises
        ------
        MetricError
            If the metric weighs the relevant items of a user in another way.
        """
        parsed = parse(metric)
        self._check(parsed)
        return self.of_metric(parsed, population=population)

    @one_thread()
    def of_metric(self, metric: Metric, *, population: bool = True) -> FromDraws:
        """Return a metric; the caller knows that the targets were counted with its weights."""
        draws = self.draws(metric, population=population)
        return FromDraws.of(draws, minimum=0.0, maximum=self._maximum(metric))

    @one_thread()
    def draws(self, metric: Metric, *, population: bool = True) -> FloatArray:
        """Return a metric for each draw."""
        weights = [_weights_in(stratum.grid, metric) for stratum in self.fitted.cells.strata]
        scale = self.fitted.cells.weight_per_user
        if population or self.printed:
            mean_over_targets = sum(
                masses @ of_bins for masses, of_bins in zip(self.masses, weights, strict=True)
            )
            mean_over_users = scale * self.total * mean_over_targets
        else:
            assert self.numbers is not None
            # The curves before targets are followed take room: they are drawn again.
            drawn = DrawnCurves.of(self.fitted, self.numbers)
            placed = placed_targets(self.fitted.cells, drawn.curves, weights=weights)
            mean_over_users = scale * placed
        return np.asarray(np.minimum(mean_over_users, self._maximum(metric)))

    @one_thread()
    def expect(self, function: Callable[[FloatArray], npt.ArrayLike]) -> FromDraws:
        """Return the mean over targets of a function of full ranks, such as a metric of your own.

        Parameters
        ----------
        function
            It takes an array of ranks (the middles of bins) and returns a number for each.

        Raises
        ------
        InputError
            If it returns another number of values, or one that is not finite.

        Examples
        --------
        >>> from unsample.posterior import shipped
        >>> counts = RankCounts.from_ranks([1, 2, 9] * 50, items=1_000, sampled=99)
        >>> cloud = Cloud.of(counts, shipped(), protocol="unseen")
        >>> own = cloud.expect(lambda ranks: 1.0 / ranks)
        >>> bool(np.isclose(own.value, cloud.metric("MRR").value, rtol=0.01))
        True
        """
        mean = np.zeros(len(self.total))
        for stratum, masses in zip(self.fitted.cells.strata, self.masses, strict=True):
            middle = (stratum.grid.low + stratum.grid.high) / 2.0
            values = np.asarray(function(middle), dtype=np.float64)
            if values.shape != middle.shape or not np.isfinite(values).all():
                raise InputError(
                    "function must return one finite number for each rank, got "
                    f"{values.shape} for {middle.shape}"
                )
            mean += masses @ values
        return FromDraws.of(mean)

    @one_thread()
    def quantiles(self, probabilities: Sequence[float]) -> list[RankDistribution]:
        """Return, for each probability, that quantile of P(R) in each bin.

        Quantiles of different bins come from different curves, so they need not sum to one.
        """
        for probability in probabilities:
            check_real("probabilities", probability, low=0.0, high=1.0)
        grid, masses = self.on_one_grid()
        quantiles = np.quantile(masses, list(probabilities), axis=0)
        return [RankDistribution(grid, mass) for mass in quantiles]

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
        for probability in probabilities:
            check_real("probabilities", probability, low=0.0, high=1.0)
        grid, masses = self.on_one_grid()
        recall = np.cumsum(masses, axis=1)
        return grid.high, np.asarray(np.quantile(recall, list(probabilities), axis=0))

    def to_dict(self, probabilities: Sequence[float] = (0.025, 0.5, 0.975)) -> dict[str, Any]:
        """Return quantiles of P(R) and of Recall@K, as lists that JSON can hold."""
        ks, recall = self.recall(probabilities)
        return {
            "k": ks.tolist(),
            "probabilities": list(probabilities),
            "mass": [quantile.mass.tolist() for quantile in self.quantiles(probabilities)],
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

        Then the data do not show how large the error is: another draw, without these items, would
        have shown none. Items are very few if fewer than four items of equal effect would have the
        same spread.
        """
        cells = self.fitted.cells
        if cells.items is None:
            return False
        best = self.fitted.components[int(np.argmax(self.fitted.weights))]
        slopes, _, _ = _gradient(best, cells, metric=metric)
        effects = cells.items.effects @ slopes
        # The items that beat no target have no effect.
        changes = np.append(effects, np.zeros(cells.items.drawn - len(effects)))
        squares = (changes - changes.mean()) ** 2
        scores = cells.centred(slopes)
        of_users = cells.user_products.between(scores, scores)
        of_items = float(squares.sum())
        return of_items > of_users and _equal_parts(squares) < _FEWEST_ITEMS

    @property
    def printed(self) -> bool:
        """Return whether the data are printed numbers, which hold no single targets."""
        return any(stratum.printed for stratum in self.fitted.cells.strata)

    def on_one_grid(self) -> tuple[RankGrid, FloatArray]:
        """Return the bins of all strata together, and the curves on them."""
        strata = self.fitted.cells.strata
        if len(strata) == 1:
            return strata[0].grid, self.masses[0]
        grids = [stratum.grid for stratum in strata]
        largest = max(grid.items for grid in grids)
        # No bin lies partly beyond the last rank of a smaller catalogue.
        ends = np.array([grid.items + 1 for grid in grids if grid.items < largest])
        lows = np.unique(np.concatenate([*(grid.low for grid in grids), ends.astype(int)]))
        fine = RankGrid(lows, largest)
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
        items = max(stratum.grid.items for stratum in cells.strata)
        return float(metric.weights(np.array([1]), items)[0])


def _chosen(uniform: FloatArray, weights: FloatArray) -> IntArray:
    """Return the choice that each number in 0..1 makes, given the weights of the choices.

    >>> _chosen(np.array([0.1, 0.3, 0.9]), np.array([1.0, 3.0])).tolist()
    [0, 1, 1]
    """
    ends = np.cumsum(weights)
    return np.searchsorted(ends / max(float(ends[-1]), _TINY), uniform).clip(max=len(weights) - 1)


def _chosen_by_two(
    uniform: FloatArray,
    uniform_inside: FloatArray,
    *,
    weights: FloatArray,
    group: IntArray,
) -> IntArray:
    """Return the choice that two numbers in 0..1 make: the first its group, the second inside it.

    Two choices in group 0 have the weights 1 and 1, one choice in group 1 has the weight 2:

    >>> weights = np.array([1.0, 1.0, 2.0])
    >>> first = np.array([0.1, 0.1, 0.6])
    >>> second = np.array([0.4, 0.6, 0.1])
    >>> _chosen_by_two(first, second, weights=weights, group=np.array([0, 0, 1])).tolist()
    [0, 1, 2]
    """
    members = [np.flatnonzero(group == number) for number in range(int(group.max()) + 1)]
    group_of_draw = _chosen(uniform, np.array([weights[choices].sum() for choices in members]))
    chosen = np.empty(len(uniform), dtype=np.int64)
    for number, choices in enumerate(members):
        draws = group_of_draw == number
        chosen[draws] = choices[_chosen(uniform_inside[draws], weights[choices])]
    return chosen


def _numbered(values: Sequence[Hashable]) -> IntArray:
    """Return the number of each value among the different ones.

    >>> _numbered(["a", "b", "a"]).tolist()
    [0, 1, 0]
    """
    number = {value: at for at, value in enumerate(dict.fromkeys(values))}
    return np.array([number[value] for value in values], dtype=np.int64)


def _equal_parts(parts: FloatArray) -> float:
    """Return how many equal parts would have the sum and the sum of squares of these.

    >>> _equal_parts(np.array([1.0, 1.0, 1.0, 0.0]))
    3.0
    """
    return float(parts.sum()) ** 2 / max(float((parts**2).sum()), _TINY)


def _weights_in(grid: RankGrid, metric: Metric) -> FloatArray:
    """Return the mean weight that a metric gives the ranks of each bin."""
    return bin_weights(metric, grid, items=grid.items)


def in_parts(rows: IntArray, columns: int) -> list[IntArray]:
    """Return rows in parts that take little memory with so many columns; usually one part.

    >>> [len(part) for part in in_parts(np.arange(4_000), columns=1_000)]
    [2000, 2000]
    """
    return np.array_split(rows, max(1, -(-len(rows) * columns // _ROOM)))


def _weighs_like(metric: Metric, other: Metric) -> bool:
    """Return whether the relevant items of a user have the same shares in two metrics."""
    return metric.family.share is other.family.share


def moved_curves(
    fit: ComponentFit, cells: CondensedCells, *, centre: FloatArray, weights: FloatArray
) -> list[tuple[int, FloatArray]]:
    """Return each stratum's number and its curves (draws x bins), one Newton step from the modes.

    ``centre`` (draws x shapes) is how far each draw moves the prior's centre, ``weights`` (draws x
    cells) are the weights of the cells in each draw.
    """
    curves = []
    start = 0
    for number, (stratum, mode) in enumerate(zip(cells.strata, fit.modes, strict=True)):
        end = start + len(stratum.shares)
        of_stratum = weights[:, start:end]
        shares = of_stratum / np.maximum(of_stratum.sum(axis=1, keepdims=True), _TINY)
        coefficients = mode.moved(centre, shares - stratum.shares)
        curves.append((number, mode.masses(coefficients)))
        start = end
    return curves


def _leading_directions(
    fit: ComponentFit, moved: MovedShares, *, cells: CondensedCells
) -> FloatArray:
    """Return orthonormal directions of the normal numbers that move the leading metrics most.

    They come from the gradients of the logarithms of these metrics at the modes, by the normal
    numbers that move the prior's centre and the cells' weights.
    """
    groups = len(moved.mean)
    gradients = np.zeros((EVEN, SIZE + groups))
    deviations = np.sqrt(moved.variance)
    for row, metric in enumerate(map(parse, _LEADING)):
        of_weights, by_centre, value = _gradient(fit, cells, metric=metric)
        of_groups = np.bincount(moved.group, of_weights * moved.within, minlength=groups)
        gradients[row, :SIZE] = fit.component.error_root @ by_centre
        gradients[row, SIZE:] = moved.root @ (deviations * of_groups)
        gradients[row] /= max(value, _TINY)
    return upright(gradients)


def _gradient(
    fit: ComponentFit, cells: CondensedCells, *, metric: Metric
) -> tuple[FloatArray, FloatArray, float]:
    """Return the slopes of a metric at the modes, by cells' weights and by the prior's centre.

    The third is the value of the metric there. A cell's weight changes the metric in two ways: it
    counts the metric inside the cell more often, and it moves the curve.
    """
    by_weights = []
    by_centre = np.zeros(SIZE)
    value = 0.0
    for stratum, mode in zip(cells.strata, fit.modes, strict=True):
        in_cell, slope = _in_cells(stratum, mode, metric=metric)
        slope = stratum.part * slope
        through = mode.response @ slope / max(stratum.part, _TINY)
        by_weights.append((in_cell + through) / cells.total)
        by_centre += mode.inverse @ slope
        value += stratum.part * float(stratum.shares @ in_cell)
    of_weights = np.concatenate(by_weights)
    # Only the differences of weights count, for shares sum to one.
    of_weights -= float(of_weights @ cells.weight) / cells.total
    return of_weights, by_centre, value


def _in_cells(
    stratum: StratumCells, mode: Mode, *, metric: Metric
) -> tuple[FloatArray, FloatArray]:
    """Return a metric in each cell at a mode, and the slope of its mean by the coefficients.

    Where own items push targets down, the metric's weight belongs to the bin after the push, and
    the shapes to the bin before it.
    """
    weights = _weights_in(stratum.grid, metric)
    likelihood = stratum.likelihood
    weighted = stratum.likelihood * weights
    if mode.push is not None:
        likelihood = likelihood @ mode.push
        weighted = weighted @ mode.push
    in_cell, slopes = _slopes_in_cells(
        mode.before, shapes=mode.density.shapes, likelihood=likelihood, weighted=weighted
    )
    return in_cell, np.asarray(stratum.shares @ slopes)


def _slopes_in_cells(
    curve: FloatArray, *, shapes: FloatArray, likelihood: FloatArray, weighted: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return E[w | cell], and its slopes by the coefficients of shapes (cells x shapes).

    ``likelihood`` is P(cell | bin), and ``weighted`` is the mean of w in a bin, times P(cell |
    bin). The slope is the covariance of w and the shape x inside the cell, E[w x] - E[w] E[x]. One
    cell has two bins, in halves, with w = x = (1, 0): E[w] = 1/2, and the slope is 1/2 - 1/4.

    >>> in_cell, slopes = _slopes_in_cells(
    ...     np.array([0.5, 0.5]),
    ...     shapes=np.array([[1.0], [0.0]]),
    ...     likelihood=np.array([[1.0, 1.0]]),
    ...     weighted=np.array([[1.0, 0.0]]),
    ... )
    >>> in_cell.tolist(), slopes.tolist()
    ([0.5], [[0.25]])
    """
    joint = likelihood * curve
    expected = np.maximum(joint.sum(axis=1), _TINY)
    in_cell = weighted @ curve / expected
    shapes_in_cell = joint @ shapes / expected[:, None]
    products_in_cell = (weighted * curve) @ shapes / expected[:, None]
    return in_cell, products_in_cell - in_cell[:, None] * shapes_in_cell


def gradient_of_log(mass: FloatArray, shapes: FloatArray, *, grid: RankGrid) -> FloatArray:
    """Return the slopes of the logarithms of the leading metrics (metrics x shapes).

    The slope of log E[w] is E[w x] / E[w] - E[x]. With the shape x = (1, 0) of two bins, half of
    the targets in each, log Recall@1 has the slope 1 - 0.5.

    >>> mass = np.array([0.5, 0.5])
    >>> grid = RankGrid(np.array([1, 2]), 2)
    >>> float(gradient_of_log(mass, np.array([[1.0], [0.0]]), grid=grid)[0, 0])
    0.5
    """
    slopes = []
    for metric in map(parse, _LEADING):
        weights = _weights_in(grid, metric)
        value = float(mass @ weights)
        slopes.append((mass * weights) @ shapes / max(value, _TINY) - mass @ shapes)
    return np.stack(slopes)


def upright(gradients: FloatArray) -> FloatArray:
    """Return orthonormal directions (columns), the first along the first gradient, and so on.

    >>> directions = upright(np.array([[0.0, 2.0, 0.0], [5.0, 1.0, 0.0], [0.0, 3.0, 4.0]]))
    >>> directions.round(6).astype(int).T.tolist()
    [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    """
    # Where a gradient is a mixture of the gradients before it, any direction will do.
    basis, upper = np.linalg.qr(gradients.T + 1e-12 * np.eye(gradients.shape[1], EVEN))
    return np.asarray(basis * np.where(np.diag(upper) < 0.0, -1.0, 1.0))


def turned(normals: FloatArray, even: FloatArray, *, directions: FloatArray) -> FloatArray:
    """Return normal numbers whose parts along the directions are the even ones.

    >>> first = np.array([[1.0], [0.0]])
    >>> turned(np.array([[5.0, 7.0]]), np.array([[-1.0]]), directions=first).tolist()
    [[-1.0, 7.0]]
    """
    return np.asarray(normals + (even - normals @ directions) @ directions.T)
