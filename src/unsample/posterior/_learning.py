"""Learning a prior from full evaluations.

The coefficients of model m on data set d of kind k are mu_k + b_d + c_dm, with b_d ~ N(0, B_k) and
c_dm ~ t(0, W_k), and one mu for each kind around a common mean. The likelihood of the coefficients,
given a full histogram of ranks, is a normal distribution (Laplace's approximation). Means and
covariances are found from these by expectation-maximisation. Inverse Wishart priors shrink the
covariances of each kind towards common ones. So a kind with three data sets borrows from the
others, and the variance of its mean is added to its own.

Full histograms are less smooth than the curves that a sample should be fitted with (in a list by
popularity each rank is one item). So they are fitted under a part of the covariances. How wide
intervals must be is found by leaving out data sets and models: a factor on each of the two
covariances (`Prior.calibrated`).

The weights of the data sets of one family sum to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unsample._checks import FloatArray, IntArray, as_integer_array
from unsample._threads import cached_property
from unsample.errors import InputError, RankError
from unsample.likelihood import LogDensity
from unsample.posterior._basis import SIZE, odd_top, shapes_on, vague_deviation, vague_mean
from unsample.posterior._symmetric_root import symmetric_root
from unsample.sampling import RankGrid

#: The assumed covariances count like so many data sets, ...
_VAGUE = 10.0
#: ... and the common covariances of all kinds count like so many data sets of one kind.
_COMMON = 200.0
#: Standard deviation of the common mean, in standard deviations of a coefficient; rounds.
_MEAN_DEVIATIONS, _ROUNDS = 3.0, 30
#: Curves are fitted with these parts of the covariances.
_PART_BETWEEN, _PART_WITHIN = 0.7, 0.5
#: A few data sets of a kind agree too well at the top: this much of the variance of `odd_top`,
#: divided by the square of their number, is added.
_FEW = 2.0
#: Degrees of freedom of the t distribution of models around their data set.
_TAILS = 5.0
#: Factors are those at this number of sampled items.
_USUAL_SAMPLE = 99.0
#: Full histograms are fitted with standard deviations that are larger by this factor.
_FREE = 2.0


@dataclass(frozen=True, eq=False)
class History:
    """A full evaluation: targets counted in the bins of ``grid``, the data set and its kind.

    ``weight`` is that of the data set, the same in all its histories.
    """

    grid: RankGrid
    counts: IntArray
    dataset: str
    kind: str
    weight: float = 1.0

    @classmethod
    def of_ranks(
        cls, ranks: IntArray, items: int, *, dataset: str = "own", kind: str = "unseen"
    ) -> History:
        """Count full-catalogue ranks among ``items`` items."""
        whole = as_integer_array("ranks", ranks, hint="ranks start at 1").astype(np.int64)
        if len(whole) and not 1 <= int(whole.min()) <= int(whole.max()) <= items:
            raise RankError(
                f"ranks must be full-catalogue ranks in 1..items = {items}, got "
                f"{int(whole.min())} to {int(whole.max())}"
            )
        grid = RankGrid.coarse(items)
        counts = np.bincount(grid.locate(whole), minlength=len(grid))
        return cls(grid, counts, dataset, kind)

    def evidence(self) -> Gaussian:
        """Return the likelihood of the coefficients, as a normal distribution."""
        grid = RankGrid.coarse(self.grid.items)
        counts = np.bincount(grid.locate(self.grid.low), self.counts, minlength=len(grid))
        total = float(counts.sum())
        if total <= 0:
            raise InputError("a history must hold at least one rank, got none")
        shapes, mean, free = shapes_on(grid), vague_mean(), _FREE * vague_deviation()
        problem = LogDensity(
            likelihood=np.eye(len(grid)),
            shares=counts / total,
            targets=total,
            shapes=shapes * free,
            log_base=shapes @ mean + np.log(grid.width),
        )
        fit = problem.fit()
        weights = fit.weights
        centred = shapes - weights @ shapes
        precision = total * (centred * weights[:, None]).T @ centred
        score = total * ((counts / total - weights) @ shapes)
        return Gaussian(precision, precision @ (mean + free * fit.coefficients) + score)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """exp(-x' precision x / 2 + shift' x), as a function of the coefficients x."""

    precision: FloatArray
    shift: FloatArray


@dataclass(frozen=True, eq=False)
class Learned:
    """The learned mean of one kind, and the covariances of data sets and of models.

    ``between`` includes the variance of the mean, which all models of a data set share. Curves are
    fitted under these covariances. Data sets and models that were left out differ by ``factors``
    times these covariances.
    """

    mean: FloatArray
    between: FloatArray
    within: FloatArray
    factors: tuple[float, float] = (1.0, 1.0)
    #: With which power of 99/n the factors change with the number n of sampled items.
    power: float = 0.0

    @cached_property
    def root(self) -> FloatArray:
        """Return a matrix whose product with its transpose is the covariance of one model."""
        return symmetric_root(self.between + self.within)

    @cached_property
    def shared(self) -> FloatArray:
        """Return the part of the covariance that models of a data set share, in units of ``root``.

        In these units the whole covariance is 1.
        """
        inverse = np.linalg.pinv(self.root, hermitian=True)
        return np.asarray(inverse @ self.between @ inverse)

    @cached_property
    def common_root(self) -> FloatArray:
        """Return the root of `shared`."""
        return symmetric_root(self.shared)

    @cached_property
    def own_root(self) -> FloatArray:
        """Return the root of the part of the covariance that is a model's own."""
        return symmetric_root(np.eye(SIZE) - self.shared)

    def widening(self, sampled: float) -> float:
        """Return by how much the prior's error is larger than at 99 sampled items.

        >>> from unsample.posterior._components import vague_kind
        >>> round(replace(vague_kind(), power=0.5).widening(25), 2)       # (99/25)^(0.5/2)
        1.41
        """
        return float((_USUAL_SAMPLE / max(sampled, 1.0)) ** (self.power / 2.0))

    def widened(self, by: float) -> Learned:
        """Return this with both factors multiplied."""
        return replace(self, factors=(by * self.factors[0], by * self.factors[1]))


def learn(histories: Sequence[History], evidence: Sequence[Gaussian]) -> dict[str, Learned]:
    """Return what the histories show of each kind; ``evidence`` is that of each history."""
    kinds = sorted({each.kind for each in histories})
    keys = sorted({(each.kind, each.dataset) for each in histories})
    index = {key: at for at, key in enumerate(keys)}
    number = np.array([index[each.kind, each.dataset] for each in histories])
    order = np.argsort(number, kind="stable")
    number = number[order]
    weight = np.zeros(len(keys))
    weight[number] = [histories[at].weight for at in order]
    climb = _Climb(
        precision=np.stack([evidence[at].precision for at in order]),
        shift=np.stack([evidence[at].shift for at in order]),
        number=number,
        weight=weight,
        kind=np.array([kinds.index(kind) for kind, _ in keys]),
    )
    for _ in range(_ROUNDS):
        climb.round()
    odd = np.diag(odd_top() ** 2)
    return {
        kind: Learned(
            climb.mean[at],
            _PART_BETWEEN * (climb.between[at] + climb.mean_covariance[at]),
            _PART_WITHIN * (climb.within[at] + _FEW / climb.data_sets(at) ** 2 * odd),
        )
        for at, kind in enumerate(kinds)
    }


@dataclass(eq=False)
class _Climb:
    """Expectation-maximisation: its current point, and one round of it."""

    precision: FloatArray
    shift: FloatArray
    number: IntArray
    weight: FloatArray
    kind: IntArray

    def __post_init__(self) -> None:
        kinds = int(self.kind.max()) + 1
        self.starts = np.flatnonzero(np.r_[True, np.diff(self.number) > 0])
        half = 0.5 * np.diag(vague_deviation() ** 2)
        self.vague, self.common_between, self.common_within = half, half, half
        self.between = self.within = np.repeat(half[None], kinds, axis=0)
        self.usual = np.ones(len(self.number))
        self.mean = np.zeros((kinds, SIZE))
        self.mean_covariance = np.zeros((kinds, SIZE, SIZE))

    def data_sets(self, kind: int) -> float:
        """Return how many data sets a kind has; those of a family count as one."""
        return max(1.0, float(self.weight[self.kind == kind].sum()))

    def round(self) -> None:
        """Find the means for these covariances, then the covariances around the means."""
        own, kind = self.kind[self.number], self.kind
        # The information on mu + b from the models of a data set, whose own c are unknown.
        within = self.within[own] / self.usual[:, None, None]
        blurred = _inverse(np.eye(SIZE) + self.precision @ within)
        precision = np.add.reduceat(blurred @ self.precision, self.starts, axis=0)
        shift = np.add.reduceat(_dot(blurred, self.shift), self.starts, axis=0)
        self._find_means(precision, shift)
        mean = self.mean[kind]
        # E[b b'] of each data set and E[c c'] of each model.
        covariance = _inverse(_inverse(self.between)[kind] + precision)
        part = _dot(covariance, shift - _dot(precision, mean))
        squares = (_outer(part) + covariance) * self.weight[:, None, None]
        inverse = _inverse(self.within)[own]
        own_covariance = _inverse(inverse * self.usual[:, None, None] + self.precision)
        left = self.shift - _dot(self.precision, (mean + part)[self.number])
        passed = own_covariance @ self.precision
        own_squares = _outer(_dot(own_covariance, left)) + own_covariance
        own_squares += passed @ covariance[self.number] @ passed.swapaxes(1, 2)
        own_weight = self.weight[self.number]
        # Models far from all others count less, as under a t distribution: they do not widen the
        # rest.
        far = np.einsum("mij,mji->m", own_squares, inverse)
        self.usual = (_TAILS + SIZE) / (_TAILS + far)
        own_squares *= (own_weight * self.usual)[:, None, None]
        self.common_between, self.between = self._covariances(squares, self.weight, kind)
        self.common_within, self.within = self._covariances(own_squares, own_weight, own)

    def _find_means(self, precision: FloatArray, shift: FloatArray) -> None:
        """Find the mean of each kind around a common one, by generalised least squares."""
        blurred = _inverse(np.eye(SIZE) + precision @ self.between[self.kind])
        weight = self.weight
        precisions = np.zeros_like(self.mean_covariance)
        shifts = np.zeros_like(self.mean)
        np.add.at(precisions, self.kind, weight[:, None, None] * (blurred @ precision))
        np.add.at(shifts, self.kind, weight[:, None] * _dot(blurred, shift))
        around = self.common_between + self.common_within
        inverse = _inverse(around)
        blurred_kind = _inverse(np.eye(SIZE) + precisions @ around)
        vague = (_MEAN_DEVIATIONS * vague_deviation()) ** -2.0
        common_precision = np.diag(vague) + (blurred_kind @ precisions).sum(axis=0)
        common_covariance = _inverse(common_precision)
        common = common_covariance @ (vague * vague_mean() + _dot(blurred_kind, shifts).sum(axis=0))
        covariance = _inverse(inverse + precisions)
        self.mean = _dot(covariance, inverse @ common + shifts)
        passed = covariance @ inverse
        self.mean_covariance = covariance + passed @ common_covariance @ passed.swapaxes(1, 2)

    def _covariances(
        self, squares: FloatArray, weight: FloatArray, kind: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the covariance of all kinds, and those of each kind, shrunk towards it."""
        sums = np.zeros_like(self.between)
        np.add.at(sums, kind, squares)
        sizes = np.bincount(kind, weight, minlength=len(sums))
        common = (_VAGUE * self.vague + sums.sum(axis=0)) / (_VAGUE + sizes.sum())
        each = (_COMMON * common + sums) / (_COMMON + sizes)[:, None, None]
        return common, (each + each.swapaxes(1, 2)) / 2.0


def _dot(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the product of each matrix with its vector."""
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _inverse(matrices: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def _outer(vectors: FloatArray) -> FloatArray:
    return vectors[:, :, None] * vectors[:, None, :]


def condition(learned: Learned, evidence: Sequence[Gaussian], trust: float) -> Learned:
    """Return the prior of further models on the data set of the evidence.

    The mean becomes that of the data set, as far as its models show it. The covariance of models is
    moved towards theirs, as if ``trust`` models had been seen before.
    """
    precision = np.stack([each.precision for each in evidence])
    shift = np.stack([each.shift for each in evidence])
    blurred = _inverse(np.eye(SIZE) + precision @ learned.within)
    precisions, shifts = (blurred @ precision).sum(axis=0), _dot(blurred, shift).sum(axis=0)
    between = _inverse(_inverse(learned.between) + precisions)
    mean = learned.mean + between @ (shifts - precisions @ learned.mean)
    own = _inverse(_inverse(learned.within) + precision)
    part = _dot(own, shift - _dot(precision, np.repeat(mean[None], len(own), axis=0)))
    passed = own @ precision
    squares = _outer(part) + own + passed @ between @ passed.swapaxes(1, 2)
    within = (trust * learned.within + squares.sum(axis=0)) / (trust + len(own))
    return replace(learned, mean=mean, between=between, within=(within + within.T) / 2.0)
