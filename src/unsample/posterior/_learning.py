"""Learning a prior from full evaluations.

The coefficients of model m on data set d of kind k are mu_k + b_d + c_dm, with b_d ~ N(0, B_k) and
c_dm ~ t(0, W_k). The means mu_k of the kinds lie around a common mean. The likelihood of the
coefficients, given a full histogram of ranks, is a normal distribution (Laplace's approximation).
Expectation-maximisation finds means and covariances from these likelihoods. Inverse Wishart priors
shrink the covariances of each kind towards common ones. So a kind with three data sets borrows from
the others. The variance of its mean is added to its covariance.

Full histograms are less smooth than the curves that should be fitted to a sample (in a list by
popularity each rank is one item). So samples are fitted under a part of the covariances. A factor
on each of the two covariances makes intervals as wide as they must be to hold on data sets and
models that were left out (`Prior.calibrated`).

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
#: The standard deviation of the common mean, in vague standard deviations of a coefficient.
_MEAN_DEVIATIONS = 3.0
#: Rounds of expectation-maximisation.
_ROUNDS = 30
#: Samples are fitted with these parts of the covariances.
_PART_BETWEEN = 0.7
_PART_WITHIN = 0.5
#: A few data sets of a kind agree too well at the top: this much of the variance of `odd_top`,
#: divided by the square of their number, is added.
_FEW = 2.0
#: Degrees of freedom of the t distribution of models around their data set.
_TAILS = 5.0
#: Factors hold at this number of sampled items.
_USUAL_SAMPLE = 99.0
#: Full histograms are fitted with standard deviations that are larger by this factor.
_FREE = 2.0


@dataclass(frozen=True, eq=False)
class History:
    """A full evaluation: targets counted in the bins of ``grid``, the data set and its kind.

    ``weight`` is the weight of the data set, the same in all its histories.
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
        """Count full-catalogue ranks among ``items`` items.

        >>> History.of_ranks(np.array([1, 3, 3]), items=4).counts.tolist()
        [1, 0, 2, 0]

        Raises
        ------
        RankError
            If a rank is not in 1..items.
        """
        whole = as_integer_array("ranks", ranks, hint="ranks start at 1").astype(np.int64)
        if len(whole) and not 1 <= int(whole.min()) <= int(whole.max()) <= items:
            raise RankError(
                f"ranks must be full-catalogue ranks in 1..items = {items}, got "
                f"{int(whole.min())} to {int(whole.max())}"
            )
        grid = RankGrid.coarse(items)
        counts = np.bincount(grid.locate(whole), minlength=len(grid))
        return cls(grid=grid, counts=counts, dataset=dataset, kind=kind)

    def evidence(self) -> Gaussian:
        """Return the likelihood of the coefficients, as a normal distribution.

        With the weights p of bins at a mode c, the shares f that were counted, and M targets, the
        precision is M times the covariance of the shapes X under p, and the slope of the
        log-likelihood at c is M (f - p)' X. The first shape is the spike. With a tenth of a
        thousand targets at rank 1, the mode has p = 0.098 there, and the precision of the spike is
        1000 times 0.098 times 0.902:

        >>> ranks = np.append(np.full(100, 1), 2 + np.arange(900))
        >>> evidence = History.of_ranks(ranks, items=1000).evidence()
        >>> round(float(evidence.precision[0, 0]))
        88
        """
        grid = RankGrid.coarse(self.grid.items)
        counts = np.bincount(grid.locate(self.grid.low), self.counts, minlength=len(grid))
        total = float(counts.sum())
        if total <= 0:
            raise InputError("a history must hold at least one rank, got none")
        shapes = shapes_on(grid)
        mean = vague_mean()
        free = _FREE * vague_deviation()
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
        mode = mean + free * fit.coefficients
        return Gaussian(precision=precision, shift=precision @ mode + score)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """exp(-x' precision x / 2 + shift' x), as a function of the coefficients x.

    It is highest at x = precision^-1 shift.
    """

    precision: FloatArray
    shift: FloatArray


@dataclass(frozen=True, eq=False)
class Learned:
    """The learned mean of one kind, and the covariances of data sets and of models.

    ``between`` includes the variance of the mean, which all models of a data set share. Curves are
    fitted under these covariances. The centre of the prior errs by ``factors`` times these
    covariances (of data sets, of models), as data sets and models that were left out show.
    """

    mean: FloatArray
    between: FloatArray
    within: FloatArray
    factors: tuple[float, float] = (1.0, 1.0)
    #: The power of 99/n by which the factors change with the number n of sampled items.
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


def learn(histories: Sequence[History], evidence: Sequence[Gaussian]) -> dict[str, Learned]:
    """Return what the histories show of each kind.

    ``evidence`` has the `History.evidence` of each history.
    """
    kinds = sorted({history.kind for history in histories})
    data_sets = sorted({(history.kind, history.dataset) for history in histories})
    index = {key: at for at, key in enumerate(data_sets)}
    number = np.array([index[history.kind, history.dataset] for history in histories])
    order = np.argsort(number, kind="stable")
    number = number[order]
    weight = np.zeros(len(data_sets))
    weight[number] = [histories[at].weight for at in order]
    climb = _Climb(
        precision=np.stack([evidence[at].precision for at in order]),
        shift=np.stack([evidence[at].shift for at in order]),
        number=number,
        weight=weight,
        kind=np.array([kinds.index(kind) for kind, _ in data_sets]),
    )
    for _ in range(_ROUNDS):
        climb.round()
    odd = np.diag(odd_top() ** 2)
    return {
        kind: Learned(
            mean=climb.mean[at],
            between=_PART_BETWEEN * (climb.between[at] + climb.mean_covariance[at]),
            within=_PART_WITHIN * (climb.within[at] + _FEW / climb.data_sets(at) ** 2 * odd),
        )
        for at, kind in enumerate(kinds)
    }


@dataclass(eq=False)
class _Climb:
    """Expectation-maximisation: its current point, and one round of it.

    Models are in the order of their data sets.
    """

    #: The likelihood of each model: see `Gaussian`.
    precision: FloatArray
    shift: FloatArray
    #: The data set of each model.
    number: IntArray
    #: The weight and the kind of each data set.
    weight: FloatArray
    kind: IntArray

    def __post_init__(self) -> None:
        kinds = int(self.kind.max()) + 1
        #: The first model of each data set.
        self.starts = np.flatnonzero(np.r_[True, np.diff(self.number) > 0])
        half = 0.5 * np.diag(vague_deviation() ** 2)
        self.vague = half
        #: B and W: common to all kinds, and of each kind.
        self.common_between = half
        self.common_within = half
        self.between = np.repeat(half[None], kinds, axis=0)
        self.within = np.repeat(half[None], kinds, axis=0)
        #: How much each model counts: less than 1 if it is far from all others.
        self.usual = np.ones(len(self.number))
        #: mu of each kind, and its covariance.
        self.mean = np.zeros((kinds, SIZE))
        self.mean_covariance = np.zeros((kinds, SIZE, SIZE))

    def data_sets(self, kind: int) -> float:
        """Return how many data sets a kind has; all data sets of a family count as one."""
        return max(1.0, float(self.weight[self.kind == kind].sum()))

    def round(self) -> None:
        """Find the means for these covariances, then the covariances around the means."""
        kind_of_model = self.kind[self.number]
        # The information on mu + b from the models of a data set, whose own c are unknown.
        within = self.within[kind_of_model] / self.usual[:, None, None]
        blurred = _blur(self.precision, within)
        precision = np.add.reduceat(blurred @ self.precision, self.starts, axis=0)
        shift = np.add.reduceat(_dot(blurred, self.shift), self.starts, axis=0)
        self._find_means(precision, shift)
        mean = self.mean[self.kind]
        # E[b b'] of each data set.
        covariance = _inverse(_inverse(self.between)[self.kind] + precision)
        part = _dot(covariance, shift - _dot(precision, mean))
        squares = (_outer(part) + covariance) * self.weight[:, None, None]
        # E[c c'] of each model.
        inverse = _inverse(self.within)[kind_of_model]
        own_covariance = _inverse(inverse * self.usual[:, None, None] + self.precision)
        left = self.shift - _dot(self.precision, (mean + part)[self.number])
        passed = own_covariance @ self.precision
        own_squares = _outer(_dot(own_covariance, left)) + own_covariance
        own_squares += passed @ covariance[self.number] @ passed.swapaxes(1, 2)
        # Models far from all others count less, as under a t distribution, so that they do not
        # widen W.
        distance = np.einsum("mij,mji->m", own_squares, inverse)
        self.usual = (_TAILS + SIZE) / (_TAILS + distance)
        own_weight = self.weight[self.number]
        own_squares *= (own_weight * self.usual)[:, None, None]
        self.common_between, self.between = self._covariances(
            squares, weight=self.weight, kind=self.kind
        )
        self.common_within, self.within = self._covariances(
            own_squares, weight=own_weight, kind=kind_of_model
        )

    def _find_means(self, precision: FloatArray, shift: FloatArray) -> None:
        """Find the mean of each kind around a common one, by generalised least squares.

        ``precision`` and ``shift`` are the likelihood of mu + b of each data set.
        """
        blurred = _blur(precision, self.between[self.kind])
        weight = self.weight
        precisions = np.zeros_like(self.mean_covariance)
        shifts = np.zeros_like(self.mean)
        np.add.at(precisions, self.kind, weight[:, None, None] * (blurred @ precision))
        np.add.at(shifts, self.kind, weight[:, None] * _dot(blurred, shift))
        around = self.common_between + self.common_within
        inverse = _inverse(around)
        blurred_kind = _blur(precisions, around)
        vague = (_MEAN_DEVIATIONS * vague_deviation()) ** -2.0
        common_precision = np.diag(vague) + (blurred_kind @ precisions).sum(axis=0)
        common_covariance = _inverse(common_precision)
        common = common_covariance @ (vague * vague_mean() + _dot(blurred_kind, shifts).sum(axis=0))
        covariance = _inverse(inverse + precisions)
        self.mean = _dot(covariance, inverse @ common + shifts)
        passed = covariance @ inverse
        self.mean_covariance = covariance + passed @ common_covariance @ passed.swapaxes(1, 2)

    def _covariances(
        self, squares: FloatArray, *, weight: FloatArray, kind: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the covariance common to all kinds, and the covariance of each kind.

        ``squares`` are E[x x'] times its weight, for each data set or model.
        """
        sums = np.zeros_like(self.between)
        np.add.at(sums, kind, squares)
        sizes = np.bincount(kind, weight, minlength=len(sums)).astype(np.float64)
        return _shrunk(sums, sizes, vague=self.vague)


def _shrunk(
    sums: FloatArray, sizes: FloatArray, *, vague: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the covariance common to all kinds, and each kind's, shrunk towards it.

    ``sums`` are the weighted sums of squares of each kind, ``sizes`` the sums of the weights, and
    ``vague`` is the covariance before anything is learned. Ten data sets of one kind have the
    variance 3, and the other kind has none: the common variance is (10 * 1 + 30) / (10 + 10), and
    the first kind has (200 * 2 + 30) / (200 + 10).

    >>> common, of_kinds = _shrunk(
    ...     np.array([[[30.0]], [[0.0]]]), np.array([10.0, 0.0]), vague=np.array([[1.0]])
    ... )
    >>> common.tolist(), of_kinds.round(3).tolist()
    ([[2.0]], [[[2.048]], [[2.0]]])
    """
    common = (_VAGUE * vague + sums.sum(axis=0)) / (_VAGUE + sizes.sum())
    of_kinds = (_COMMON * common + sums) / (_COMMON + sizes)[:, None, None]
    return common, (of_kinds + of_kinds.swapaxes(1, 2)) / 2.0


def _blur(precision: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return (1 + P W)^-1, which multiplies the precision P and the shift of a likelihood of x.

    The product is the likelihood of x - c, where c is unknown and has the covariance W. A precision
    of 1/2 is a variance of 2, and a variance of 2 + 6 is a precision of 1/8:

    >>> precision = np.array([[[0.5]]])
    >>> (_blur(precision, np.array([[6.0]])) @ precision).tolist()
    [[[0.125]]]
    """
    return _inverse(np.eye(precision.shape[-1]) + precision @ covariance)


def _dot(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the product of each matrix with its vector.

    >>> _dot(np.array([[[2.0, 0.0], [0.0, 3.0]]]), np.array([[1.0, 10.0]])).tolist()
    [[2.0, 30.0]]
    """
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _inverse(matrices: FloatArray) -> FloatArray:
    """Return the inverse of each matrix."""
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def _outer(vectors: FloatArray) -> FloatArray:
    """Return the product of each vector with itself, x x'.

    >>> _outer(np.array([[1.0, 10.0]])).tolist()
    [[[1.0, 10.0], [10.0, 100.0]]]
    """
    return vectors[:, :, None] * vectors[:, None, :]


def condition(learned: Learned, evidence: Sequence[Gaussian], *, trust: float) -> Learned:
    """Return the prior of further models on the data set of the evidence.

    The mean moves to the mean of the data set, as far as its models show it. The covariance of
    models moves towards the covariance of these models, as if ``trust`` models had been seen
    before.

    Evidence that says nothing changes neither mean nor covariance:

    >>> from unsample.posterior._components import vague_kind
    >>> nothing = Gaussian(precision=np.zeros((SIZE, SIZE)), shift=np.zeros(SIZE))
    >>> after = condition(vague_kind(), [nothing], trust=20.0)
    >>> bool(np.allclose(after.mean, vague_kind().mean))
    True
    >>> bool(np.allclose(after.within, vague_kind().within))
    True

    A precise model with a coefficient of 3 moves the mean half of the way, where data sets vary as
    much as models:

    >>> precision = 1e9 * np.eye(SIZE)
    >>> model = Gaussian(precision=precision, shift=precision @ (vague_kind().mean + 3.0))
    >>> moved = condition(vague_kind(), [model], trust=20.0).mean - vague_kind().mean
    >>> moved[:3].round(3).tolist()
    [1.5, 1.5, 1.5]
    """
    precision = np.stack([of_model.precision for of_model in evidence])
    shift = np.stack([of_model.shift for of_model in evidence])
    blurred = _blur(precision, learned.within)
    precisions = (blurred @ precision).sum(axis=0)
    shifts = _dot(blurred, shift).sum(axis=0)
    between = _inverse(_inverse(learned.between) + precisions)
    mean = learned.mean + between @ (shifts - precisions @ learned.mean)
    own_covariance = _inverse(_inverse(learned.within) + precision)
    models = len(own_covariance)
    left = shift - _dot(precision, np.repeat(mean[None], models, axis=0))
    part = _dot(own_covariance, left)
    passed = own_covariance @ precision
    squares = _outer(part) + own_covariance + passed @ between @ passed.swapaxes(1, 2)
    within = (trust * learned.within + squares.sum(axis=0)) / (trust + models)
    return replace(learned, mean=mean, between=between, within=(within + within.T) / 2.0)
