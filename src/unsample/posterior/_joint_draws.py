"""Joint draws of several models on one data set: for differences, probabilities and places.

All models have the same random numbers for what the models of a data set share, for scale and for
kind. A model's name chooses the numbers of what is its own, which includes its push (what it does
with items that users have seen): so a model that is on several data sets can have errors in common
there. Users who were ranked under two models move the cells of both: their covariance is the sum
over pairs of targets of one user. So do items that two models share.

A model's own interval comes from its own cloud, so it is the same alone and in company. Callers
scale the draws of each model to its printed value.

A probability of 95 % is an end of a two-sided 90 % interval: of two equal models, one would seem
better in one of ten trials. So the variance by users counts (1.96/1.645)^2 times in comparisons,
which makes it one of twenty.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample._threads import one_thread
from unsample.counts import PairCounts
from unsample.likelihood import CondensedCells
from unsample.metrics import Metric
from unsample.posterior._basis import SIZE
from unsample.posterior._cloud import Cloud, DrawnCurves, in_parts, moved_curves
from unsample.posterior._fixed_numbers import FixedNumbers
from unsample.posterior._moved_shares import MovedShares
from unsample.posterior._printed_numbers import FittedNumbers
from unsample.posterior._symmetric_root import symmetric_root

#: The factor on the variance by users in comparisons.
CAUTION = (1.959964 / 1.644854) ** 2
#: This is added to the diagonal of correlations, so that their matrix has a root.
_RIDGE = 1e-8
#: Streams of random numbers: of what models share, and of users.
_COMMON = 1
_USERS = 2
#: Data sets have streams this many bits apart.
_BITS = 40
_TINY = 1e-300
#: By the names of two models: the pairs of targets of one user, the first under the first model.
Between = Mapping[tuple[str, str], PairCounts]


@dataclass(frozen=True)
class DataSet:
    """One of several data sets: its number, and how much of its errors is the same on all of them.

    ``common`` and ``own`` are shares of a variance: of the prior's error that the models of a data
    set share, and of the error that is a model's own. Several data sets have the numbers 1, 2, and
    so on; number 0 is a data set alone.
    """

    number: int = 0
    common: float = 0.0
    own: float = 0.0

    def normals(self, numbers: FixedNumbers, *, stream: int, share: float) -> FloatArray:
        """Return normal numbers for the prior's error (draws x shapes).

        A ``share`` of their variance is the same on all data sets, and is their correlation:

        >>> numbers = FixedNumbers(draws=10_000)
        >>> one = DataSet(1).normals(numbers, stream=5, share=0.36)[:, 0]
        >>> other = DataSet(2).normals(numbers, stream=5, share=0.36)[:, 0]
        >>> bool(abs(np.corrcoef(one, other)[0, 1] - 0.36) < 0.03)
        True
        """
        here = numbers.normals(SIZE, stream=self.stream(stream))
        if self.number == 0 or share == 0.0:
            return here
        everywhere = numbers.normals(SIZE, stream=stream)
        return math.sqrt(share) * everywhere + math.sqrt(1.0 - share) * here

    def stream(self, stream: int) -> int:
        """Return the number of a stream on this data set."""
        return stream + (self.number << _BITS)


@one_thread()
def joint_draws(
    clouds: Mapping[str, Cloud],
    metrics: Sequence[Metric],
    *,
    between: Between | None = None,
    model_of: Mapping[str, str] | None = None,
    caution: float = CAUTION,
    data_set: DataSet | None = None,
    numbers: FixedNumbers | None = None,
) -> dict[str, FloatArray]:
    """Return, for each metric, its draws under all models (draws x models).

    Parameters
    ----------
    clouds
        The cloud of each model, of counts that weigh targets as the metrics do.
    between
        The pairs of targets of one user under two models, where they are known.
    model_of
        The model of each cloud that is a run: all runs of a model have its own errors.
    caution
        The factor on the variance by users.
    data_set
        Which of several data sets this is.
    """
    fixed = FixedNumbers() if numbers is None else numbers
    here = DataSet() if data_set is None else data_set
    moved = {
        name: _cautious(cloud.fitted.moved, caution)
        for name, cloud in clouds.items()
        if not cloud.printed
    }
    sampled = {name: clouds[name] for name in moved}
    scores = _scores(sampled, moved, between=between or {}, fixed=fixed, data_set=here)
    common = here.normals(fixed, stream=_COMMON, share=here.common)
    draws = {metric.name: np.empty((fixed.draws, len(clouds))) for metric in metrics}
    for column, (name, cloud) in enumerate(clouds.items()):
        model = (model_of or {}).get(name, name)
        own = here.normals(fixed, stream=stream_of(model), share=here.own)
        own_uniform = fixed.uniforms(stream=stream_of(model))
        if name in moved:
            drawn = _drawn(
                cloud,
                numbers=fixed,
                moved=moved[name],
                scores=scores[name],
                common=common,
                own=own,
                own_uniform=own_uniform,
                data_set=here.number,
            )
        elif isinstance(cloud.fitted, FittedNumbers):
            count = len(cloud.fitted.cells.weight)
            stream = here.stream(_USERS + stream_of(name))
            drawn = cloud.fitted.drawn_again(
                fixed,
                common=common,
                own=own,
                own_uniform=own_uniform,
                errors=math.sqrt(caution) * fixed.normals(count, stream=stream),
                data_set=here.number,
            )
        for metric in metrics:
            draws[metric.name][:, column] = drawn.draws(metric)
    return draws


def _cautious(moved: MovedShares, caution: float) -> MovedShares:
    """Return how cells vary where the variance by users counts ``caution`` times."""
    return replace(moved, variance=caution * moved.variance, total=math.sqrt(caution) * moved.total)


def stream_of(name: str) -> int:
    """Return the stream of what is a model's own, given its name.

    >>> stream_of("EASE") == stream_of("EASE") != stream_of("VAE")
    True
    """
    return 16 + _checksum(name)


def _checksum(name: str) -> int:
    """Return a number for a name, which may have any characters that names of files have."""
    return zlib.crc32(name.encode(errors="surrogatepass"))


def _drawn(
    cloud: Cloud,
    *,
    numbers: FixedNumbers,
    moved: MovedShares,
    scores: FloatArray,
    common: FloatArray,
    own: FloatArray,
    own_uniform: FloatArray,
    data_set: int,
) -> Cloud:
    """Return a model's cloud drawn again, by numbers that models have in common.

    ``common`` and ``own`` (draws x shapes) are normal numbers for the two parts of the prior's
    error, ``scores`` (draws x groups of cells) are normal numbers for the users.
    """
    fitted = cloud.fitted
    weights, total = moved.draw(scores)
    curves = [np.empty_like(masses) for masses in cloud.masses]
    of_components = fitted.draws_of_components(numbers, data_set=data_set, own_uniform=own_uniform)
    for fit, draws in zip(fitted.components, of_components, strict=True):
        if not len(draws):
            continue
        component = fit.component
        for some in in_parts(draws, SIZE + len(fitted.cells.weight)):
            of_stratum = moved_curves(
                fit,
                fitted.cells,
                centre=common[some] @ component.common_root + own[some] @ component.own_root,
                weights=moved.in_cells(weights[some]),
            )
            for number, masses in of_stratum:
                curves[number][some] = masses
    weights /= weights.sum(axis=1, keepdims=True)
    drawn = DrawnCurves(curves=tuple(curves), shares=weights, total=total)
    return replace(cloud, masses=drawn.followed(fitted), total=total, numbers=None)


def _scores(
    clouds: Mapping[str, Cloud],
    moved: Mapping[str, MovedShares],
    *,
    between: Between,
    fixed: FixedNumbers,
    data_set: DataSet,
) -> dict[str, FloatArray]:
    """Return normal numbers of all models' cells, correlated as their users' targets are."""
    known = {pair: counts for pair, counts in between.items() if {*pair} <= clouds.keys()}
    with_items = [name for name, cloud in clouds.items() if cloud.fitted.cells.items is not None]
    stream = data_set.stream(_USERS)
    if not known and len(with_items) < 2:
        # No two models have users or items in common.
        return {
            name: fixed.normals(len(shares.mean), stream=stream ^ _checksum(name)) @ shares.root
            for name, shares in moved.items()
        }
    # Names are sorted, so the numbers of a model do not depend on the order of models.
    names = sorted(clouds)
    starts = np.cumsum([0, *(len(moved[name].mean) for name in names)]).tolist()
    part = {name: slice(starts[at], starts[at + 1]) for at, name in enumerate(names)}
    correlation = np.zeros((starts[-1], starts[-1]))
    for name in names:
        correlation[part[name], part[name]] = moved[name].correlation
    for pair in combinations(names, 2):
        one, other = pair
        covariance = _covariance(
            clouds[one].fitted.cells,
            clouds[other].fitted.cells,
            groups=(moved[one].group, moved[other].group),
            known=known,
            pair=pair,
        )
        if covariance is None:
            continue
        inverse = np.outer(moved[one].inverse_deviation, moved[other].inverse_deviation)
        block = covariance * inverse
        correlation[part[one], part[other]] = block
        correlation[part[other], part[one]] = block.T
    normals = fixed.normals(int(starts[-1]), stream=stream)
    scores = normals @ _root(correlation)
    return {name: scores[:, part[name]] for name in names}


def _covariance(
    one: CondensedCells,
    other: CondensedCells,
    *,
    groups: tuple[IntArray, IntArray],
    known: Between,
    pair: tuple[str, str],
) -> FloatArray | None:
    """Return the covariance of the weights of two models' cells, by group; None if not known.

    It is the sum over users of products of what their targets add to a cell of each model, and the
    covariance by the items that both models share.
    """
    rows, columns = groups
    covariance = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1))
    reverse = pair[::-1]
    if pair in known:
        products = one.crossed(other, known[pair], groups=groups)
    elif reverse in known:
        products = other.crossed(one, known[reverse], groups=groups[::-1]).transposed()
    else:
        products = None
    if products is not None:
        # The last row and column of the products count users.
        inside = (products.row < len(covariance)) & (products.column < covariance.shape[1])
        cells = products.row[inside], products.column[inside]
        np.add.at(covariance, cells, products.total[inside])
    if one.items is not None and other.items is not None:
        of_items = one.items.covariance_with(other.items)
        np.add.at(covariance, np.ix_(rows, columns), of_items)
    elif products is None:
        return None
    return covariance


def _root(correlation: FloatArray) -> FloatArray:
    """Return a matrix R with R'R = correlation: rows of normal numbers times R are correlated.

    >>> correlation = np.array([[1.0, 0.6], [0.6, 1.0]])
    >>> _root(correlation).round(3).tolist()                             # 0.6^2 + 0.8^2 = 1
    [[1.0, 0.6], [0.0, 0.8]]
    """
    try:
        lower = np.linalg.cholesky(correlation + _RIDGE * np.eye(len(correlation)))
    except np.linalg.LinAlgError:
        # Pairs of coarse cells, or noise that was subtracted, may leave negative variances.
        root = symmetric_root(correlation)
        lengths = np.sqrt((root**2).sum(axis=0))
        return np.asarray(root / np.maximum(lengths, _TINY))
    return np.asarray(lower.T)
