r"""The cloud given the numbers that a paper prints: evidence like any other.

A printed metric of a sample is a mean over users of f(r), rounded. Given a curve, the means of all
printed metrics have the expectation F and the covariance S: the covariance of f(r), divided by the
number of users, and the variance of the rounding. The mode minimises

.. math:: \tfrac12 (y - F(c))' S^{-1} (y - F(c)) + \tfrac12 c'c

(Gauss and Newton's steps), and its information is J' S^-1 J with J the derivatives of F. A draw
moves the prior's centre and the numbers. A few numbers allow curves far from the mode, so a draw
takes one step from the mode and another one from where it arrives: on data sets that were left out,
intervals were a tenth to a quarter narrower than after one step, and held as often. Printed numbers
have no cells in which targets could be followed: a metric is read from the curve itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from unsample._checks import FloatArray
from unsample._threads import one_thread
from unsample.counts import Strata
from unsample.likelihood import CellProducts, CondensedCells, StratumCells
from unsample.metrics import Metric
from unsample.posterior._basis import SIZE, shapes_on
from unsample.posterior._cloud import Cloud, Fitted, gradient_of_log, turned, upright
from unsample.posterior._components import Component, components_of
from unsample.posterior._fixed_numbers import FixedNumbers
from unsample.posterior._modes import MAX_INFORMATION
from unsample.posterior._prior import Prior
from unsample.sampling import RankGrid, SamplingModel

#: Newton's steps of the search for a mode, at most.
_STEPS = 60
#: The search ends where no coefficient moves by more than this, ...
_SMALL_MOVE = 1e-7
#: ... or where a step would be a smaller part of Newton's step.
_SMALL_STEP = 1e-6
#: No coefficient of a draw moves by more in its second step: curves bend in between.
_FARTHEST = 3.0
#: Further digits of a number do not change a curve.
_SHARPEST = 1e-6
#: The factor on the covariance of the prior's error, compared with sampled ranks: a few numbers do
#: not show how unusual a data set is. Chosen on families of data sets and kinds of models that were
#: left out; without it, intervals of 95 % from HR@10 and NDCG@10 held in 90 to 92 %.
PRINTED = 1.4


@dataclass(frozen=True, eq=False)
class Numbers:
    """Printed metrics of a sampled evaluation: the middle and half-width of each rounding.

    >>> from unsample.metrics import parse_all
    >>> from unsample.posterior import shipped
    >>> hit_rate, ndcg = parse_all(["HR@10", "NDCG@10"])
    >>> numbers = Numbers(
    ...     design=SamplingModel(items=3706, sampled=99),
    ...     users=6040,
    ...     metrics=(hit_rate, ndcg),
    ...     middle=np.array([0.690, 0.412]),
    ...     half=np.array([0.0005, 0.0005]),
    ... )
    >>> metric = cloud_of_numbers(numbers, shipped(), protocol="unseen").metric("Recall@100")
    >>> 0.3 < metric.value < 0.6
    True
    """

    design: SamplingModel
    users: int
    metrics: tuple[Metric, ...]
    middle: FloatArray
    half: FloatArray

    @property
    def grid(self) -> RankGrid:
        """Return the bins of the curves."""
        return RankGrid.coarse(self.design.items, sampled=self.design.sampled)

    def cells(self) -> CondensedCells:
        """Return the numbers as cells without targets, each with an error of variance 1."""
        grid = self.grid
        count = len(self.metrics)
        none = np.zeros(1, dtype=np.int64)
        no_ranks = np.zeros(count, dtype=np.int64)
        stratum = StratumCells(
            grid=grid,
            likelihood=np.zeros((count, len(grid))),
            shares=np.zeros(count),
            part=1.0,
            sampled=no_ranks,
            first=no_ranks,
            sizes=none,
            group=none,
            printed=True,
        )
        users = float(self.users)
        own = np.arange(count)
        return CondensedCells(
            strata=(stratum,),
            designs=Strata(
                items=none,
                sampled=none,
                numbers=np.zeros((1, 1), dtype=np.int64),
                count=1,
            ),
            weight=np.zeros(count),
            total=users,
            norm=users,
            independent=users,
            users=users,
            user_products=CellProducts(row=own, column=own, total=np.ones(count)),
        )


@dataclass(frozen=True, eq=False)
class NumbersFit:
    """The mode of a curve given printed numbers, under one component.

    ``first`` (numbers x bins) has the expected numbers of a target in each bin, ``middle`` has the
    printed numbers. Both are in standard errors at the mode: multiplied by the inverse of a root of
    S, so that their errors are independent and have the variance 1.
    """

    component: Component
    shapes: FloatArray
    log_base: FloatArray
    coefficients: FloatArray
    first: FloatArray
    middle: FloatArray
    log_evidence: float
    #: Where a user's own items push the targets of each bin; ``first`` is expected after the push.
    push: FloatArray | None = None

    @property
    def slopes(self) -> FloatArray:
        """Return the derivatives of the numbers at the mode (numbers x shapes)."""
        mass = self.masses(self.coefficients)
        return np.asarray((self.first * mass) @ (self.shapes - mass @ self.shapes))

    def masses(self, coefficients: FloatArray) -> FloatArray:
        """Return the curves of coefficients (last axis), before own items push targets down."""
        return _mass(coefficients @ self.shapes.T + self.log_base)

    def centre(self, common: FloatArray, own: FloatArray) -> FloatArray:
        """Return how far the prior's centre moves (draws x shapes), given normal numbers.

        ``common`` are the numbers of what the models of a data set share, ``own`` are the numbers
        of this model.
        """
        error = common @ self.component.common_root + own @ self.component.own_root
        return np.asarray(math.sqrt(PRINTED) * error)

    def curves(self, centre: FloatArray, errors: FloatArray) -> FloatArray:
        """Return curves (draws x bins), two steps from the mode.

        ``centre`` moves the prior's centre, ``errors`` (draws x numbers) move the printed numbers
        by so many standard errors.
        """
        slopes = self.slopes
        information = np.eye(SIZE) + slopes.T @ slopes
        moved = np.linalg.solve(information, (centre + errors @ slopes).T).T
        coefficients = self._step(
            self.coefficients + moved, centre=centre, wanted=self.middle + errors
        )
        masses = self.masses(coefficients)
        return masses if self.push is None else np.asarray(masses @ self.push.T)

    def _step(self, start: FloatArray, *, centre: FloatArray, wanted: FloatArray) -> FloatArray:
        """Return coefficients after a step of Gauss and Newton, for each draw from its own start.

        It leads to centre + J' (1 + J J')^-1 e, with e = wanted - F(start) + J (start - centre).
        """
        mass = self.masses(start)
        mean = mass @ self.first.T
        mean_shape = mass @ self.shapes
        slopes = np.stack(
            [
                (mass * of_number) @ self.shapes - mean[:, [number]] * mean_shape
                for number, of_number in enumerate(self.first)
            ],
            axis=1,
        )
        error = wanted - mean + np.einsum("dns,ds->dn", slopes, start - centre)
        move = centre + _explaining(error, slopes) - start
        return np.asarray(start + np.clip(move, -_FARTHEST, _FARTHEST))

    def leading_directions(self, grid: RankGrid) -> FloatArray:
        """Return the directions of the normal numbers that move the leading metrics most."""
        slopes = self.slopes
        root = math.sqrt(PRINTED) * self.component.error_root
        by_normals = np.linalg.solve(
            np.eye(SIZE) + slopes.T @ slopes, np.concatenate([root, slopes]).T
        )
        mass = self.masses(self.coefficients)
        return upright(gradient_of_log(mass, self.shapes, grid=grid) @ by_normals)


@dataclass(frozen=True, eq=False)
class FittedNumbers(Fitted):
    """Printed numbers fitted under each component that a protocol allows.

    ``log_evidence`` is the log of the probability of the numbers on a usual data set, under the
    kind that makes them most probable. (Unusual data sets can give almost any numbers.)
    """

    fits: tuple[NumbersFit, ...] = field(default=(), kw_only=True)
    log_evidence: float = field(kw_only=True)
    #: The numbers, the prior and the protocol that it was fitted with, to fit again.
    asked: tuple[Numbers, Prior, str | None] | None = field(default=None, kw_only=True, repr=False)

    @classmethod
    @one_thread()
    def of_numbers(
        cls, numbers: Numbers, prior: Prior, *, protocol: str | None = None
    ) -> FittedNumbers:
        """Fit the curve of a model under the components of all kinds that a protocol allows."""
        kinds = prior.possible(protocol)
        prior.check_own_items(numbers.grid.items)
        moments = _Moments.of(numbers)
        sampled = float(numbers.design.sampled)
        fits = []
        for kind in kinds:
            components = components_of(prior.learned[kind], kind, sampled=sampled, seen=prior.seen)
            fits.append([moments.pushed_by(component).fit(component) for component in components])
        weights = prior.weights_of_components(
            protocol,
            kinds,
            log_evidence=[[fit.log_evidence for fit in of_kind] for of_kind in fits],
        )
        return cls(
            cells=numbers.cells(),
            components=(),
            weights=np.concatenate(weights),
            fits=tuple(fit for of_kind in fits for fit in of_kind),
            log_evidence=max(map(_of_usual_data_sets, fits)),
            asked=(numbers, prior, protocol),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be fitted again: copies for other processes stay small."""
        return vars(self) if self.asked is None else {"asked": self.asked}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Fit again."""
        if "fits" not in state:
            numbers, prior, protocol = state["asked"]
            state = vars(FittedNumbers.of_numbers(numbers, prior, protocol=protocol))
        self.__dict__.update(state)

    @property
    def drawn_components(self) -> tuple[Component, ...]:
        """Return the components that curves are drawn from, one for each weight."""
        return tuple(fit.component for fit in self.fits)

    @one_thread()
    def cloud(self, fixed: FixedNumbers) -> Cloud:
        """Draw the curves."""
        grid = self.cells.strata[0].grid
        count = len(self.cells.weight)
        normals = fixed.normals(SIZE + count)
        curves = np.empty((fixed.draws, len(grid)))
        for fit, draws in zip(self.fits, self.draws_of_components(fixed), strict=True):
            if not len(draws):
                continue
            directions = fit.leading_directions(grid)
            moving = turned(normals[draws], fixed.even[draws], directions=directions)
            centre = math.sqrt(PRINTED) * moving[:, :SIZE] @ fit.component.error_root
            curves[draws] = fit.curves(centre, moving[:, SIZE:])
        return replace(self._cloud_of(curves), numbers=fixed)

    def drawn_again(
        self,
        fixed: FixedNumbers,
        *,
        common: FloatArray,
        own: FloatArray,
        own_uniform: FloatArray,
        errors: FloatArray,
        data_set: int = 0,
    ) -> Cloud:
        """Return the cloud drawn again, by numbers that models of a data set have in common.

        Parameters
        ----------
        common, own
            Normal numbers (draws x shapes) for the prior's error: for the part that the models of a
            data set share, and for the part that is a model's own.
        own_uniform
            A number in 0..1 for each draw, which chooses the push.
        errors
            Normal numbers (draws x printed numbers) for the users.
        data_set
            The number of the data set.
        """
        curves = np.empty((fixed.draws, len(self.cells.strata[0].grid)))
        of_components = self.draws_of_components(fixed, data_set=data_set, own_uniform=own_uniform)
        for fit, draws in zip(self.fits, of_components, strict=True):
            if len(draws):
                centre = fit.centre(common[draws], own[draws])
                curves[draws] = fit.curves(centre, errors[draws])
        return self._cloud_of(curves)

    def _cloud_of(self, curves: FloatArray) -> Cloud:
        """Return a cloud of curves, in which no targets can be followed."""
        return Cloud(fitted=self, masses=(curves,), total=np.ones(len(curves)))


def cloud_of_numbers(
    numbers: Numbers,
    prior: Prior,
    *,
    protocol: str | None = None,
    fixed: FixedNumbers | None = None,
) -> Cloud:
    """Return the cloud of a model of which a paper prints some numbers."""
    fitted = FittedNumbers.of_numbers(numbers, prior, protocol=protocol)
    return fitted.cloud(FixedNumbers() if fixed is None else fixed)


def _of_usual_data_sets(fits: Sequence[NumbersFit]) -> float:
    """Return the log evidence of the components of a kind that are not wider than usual."""
    usual = [fit.log_evidence for fit in fits if fit.component.scale == 1.0]
    return float(np.logaddexp.reduce(usual))


def _explaining(error: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the most probable coefficients that explain errors of numbers (draws x shapes).

    These are J' (1 + J J')^-1 e for slopes J (draws x numbers x shapes): the matrix has a row for
    each number, of which there are fewer than shapes. With J = 2 an error of 5 gives 2 * 5 / 5.

    >>> _explaining(np.array([[5.0]]), np.array([[[2.0, 0.0]]])).tolist()
    [[2.0, 0.0]]
    """
    covariance = np.eye(error.shape[1]) + slopes @ slopes.transpose(0, 2, 1)
    weight = np.linalg.solve(covariance, error[:, :, None])[:, :, 0]
    return np.asarray(np.einsum("dns,dn->ds", slopes, weight))


def _mass(exponent: FloatArray) -> FloatArray:
    """Return distributions, given their logarithms up to a constant (last axis).

    >>> _mass(np.log([1.0, 3.0])).round(3).tolist()
    [0.25, 0.75]
    """
    mass = np.exp(exponent - exponent.max(axis=-1, keepdims=True))
    return np.asarray(mass / mass.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class _Moments:
    """The expectation of printed numbers, given the bin of a target's full rank.

    ``first`` (numbers x bins) has the means of f(r), ``second`` (numbers x numbers x bins) has the
    means of products of two numbers. Among 2 of 3 items, the target at rank 2 is first with the
    probability 1/2:

    >>> from unsample.metrics import parse
    >>> numbers = Numbers(
    ...     design=SamplingModel(items=3, sampled=1),
    ...     users=100,
    ...     metrics=(parse("HR@1"),),
    ...     middle=np.array([0.5]),
    ...     half=np.array([0.05]),
    ... )
    >>> moments = _Moments.of(numbers)
    >>> moments.first.round(3).tolist()
    [[1.0, 0.5, 0.0]]

    If all targets have rank 2, a user's number has the variance 1/4, and a hundred users count as
    100 / (1 + 100/50,000). A rounding by at most 0.05 has the variance 0.05^2 / 3:

    >>> mean, root = moments.moments_on(np.array([0.0, 1.0, 0.0]))
    >>> float(mean[0]), round(float(root[0, 0] ** 2), 6)                   # 0.002505 + 0.000833
    (0.5, 0.003338)
    """

    numbers: Numbers
    grid: RankGrid
    first: FloatArray
    second: FloatArray

    @classmethod
    def of(cls, numbers: Numbers) -> _Moments:
        """Sum over sampled ranks."""
        design = numbers.design
        grid = numbers.grid
        ranks = np.arange(1, design.n + 1)
        features = np.stack([metric.weights(ranks, design.n) for metric in numbers.metrics])
        likelihood = design.matrix(ranks, ranks, grid=grid)
        return cls(
            numbers=numbers,
            grid=grid,
            first=features @ likelihood,
            second=(features[:, None, :] * features[None, :, :]) @ likelihood,
        )

    def pushed_by(self, component: Component) -> _Moments:
        """Return what the numbers are where the rank before own items push targets is in a bin."""
        push = component.push(self.grid)
        if push is None:
            return self
        return replace(self, first=self.first @ push, second=self.second @ push)

    def fit(self, component: Component) -> NumbersFit:
        """Return the mode under a component."""
        basis = shapes_on(self.grid)
        shapes = basis @ component.root
        log_base = basis @ component.mean + np.log(self.grid.width)
        loss_at = partial(self._loss, shapes=shapes, log_base=log_base)
        error_at = partial(self._error, shapes=shapes, log_base=log_base)
        coefficients = np.zeros(SIZE)
        loss = loss_at(coefficients)
        for _ in range(_STEPS):
            error, slopes = error_at(coefficients)
            information = np.eye(SIZE) + slopes.T @ slopes
            move = np.linalg.solve(information, slopes.T @ error - coefficients)
            step = 1.0
            reached = loss_at(coefficients + move)
            while reached > loss and step > _SMALL_STEP:
                step /= 2.0
                reached = loss_at(coefficients + step * move)
            coefficients = coefficients + step * move
            loss = reached
            if step * float(np.abs(move).max()) < _SMALL_MOVE or step <= _SMALL_STEP:
                break
        _, slopes = error_at(coefficients)
        information = np.eye(SIZE) + slopes.T @ slopes
        log_evidence = -loss - 0.5 * float(np.linalg.slogdet(information)[1])
        _, root = self.moments_on(_mass(shapes @ coefficients + log_base))
        return NumbersFit(
            component=component,
            shapes=shapes,
            log_base=log_base,
            coefficients=coefficients,
            first=np.asarray(np.linalg.solve(root, self.first)),
            middle=np.asarray(np.linalg.solve(root, self.numbers.middle)),
            log_evidence=log_evidence + float(np.log(component.prior_weight)),
            push=component.push(self.grid),
        )

    def moments_on(self, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the expectation of the numbers on a curve, and the root of their covariance."""
        mean = self.first @ mass
        covariance = self.second @ mass - np.outer(mean, mean)
        # Curves are not exactly sums of shapes, so users count less the more there are.
        of_one_user = 1.0 / self.numbers.users + 1.0 / MAX_INFORMATION
        rounding = np.diag(np.maximum(self.numbers.half, _SHARPEST) ** 2 / 3.0)
        return mean, np.asarray(np.linalg.cholesky(covariance * of_one_user + rounding))

    def _error(
        self, coefficients: FloatArray, *, shapes: FloatArray, log_base: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return printed less expected numbers, and J, both in standard errors."""
        mass = _mass(shapes @ coefficients + log_base)
        mean, root = self.moments_on(mass)
        slopes = (self.first * mass) @ (shapes - mass @ shapes)
        error = np.asarray(np.linalg.solve(root, self.numbers.middle - mean))
        return error, np.asarray(np.linalg.solve(root, slopes))

    def _loss(self, coefficients: FloatArray, *, shapes: FloatArray, log_base: FloatArray) -> float:
        """Return minus the log of the density of the numbers times the prior, up to a constant.

        It is half of (y - F)' S^-1 (y - F) + c'c + log det S.
        """
        mean, root = self.moments_on(_mass(shapes @ coefficients + log_base))
        error = np.linalg.solve(root, self.numbers.middle - mean)
        log_determinant = 2.0 * float(np.log(np.diag(root)).sum())
        return 0.5 * float(error @ error + coefficients @ coefficients + log_determinant)
