"""Joint draws of several models on one data set: for differences, probabilities and places.

What the models of a data set share has the same normal numbers for all of them, and so have scale
and kind. What is a model's own has numbers by its name, so that it is the same on every data set as
far as errors are. Users who were ranked under two models move the cells of both: the covariance is
that of pairs of their targets. Two models that met the same items share these too.

A model's own interval comes from its own cloud: it is the same alone and in company. Who compares
scales the draws of each model to its printed value.

A probability of 95 % is an end of a two-sided 90 % interval. Two equal models would have one in one
of ten trials. So the users' part counts (1.96/1.645)^2 times in comparisons: one in twenty.
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

#: How much more the users' part counts in comparisons.
CAUTION = (1.959964 / 1.644854) ** 2
#: Correlations are reduced by this, so that their matrix has a root.
_RIDGE = 1e-8
_COMMON, _USERS = 1, 2
_TINY = 1e-300
#: One of the models, and the pairs of targets of one user under two of them.
Between = Mapping[tuple[str, str], PairCounts]


@dataclass(frozen=True)
class DataSet:
    """One of several data sets: its number, and what its errors share with those of the others.

    Of the variance of the prior's error so large a share is the same everywhere: of what models
    share, and of what is a model's own.
    """

    number: int = 0
    common: float = 0.0
    own: float = 0.0

    def normals(self, numbers: FixedNumbers, stream: int, share: float) -> FloatArray:
        """Return the prior's normal numbers of one stream (draws x shapes)."""
        here = numbers.normals(SIZE, stream=stream + (self.number << 40))
        if self.number == 0 or share == 0.0:
            return here
        everywhere = numbers.normals(SIZE, stream=stream)
        return math.sqrt(share) * everywhere + math.sqrt(1.0 - share) * here


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

    ``between`` are the pairs of targets of one user, where they are known. ``model_of`` names the
    model of clouds that are runs: what is a model's own is the same for all its runs. Each cloud
    must be of counts that weigh targets as the metrics do.
    """
    fixed = FixedNumbers() if numbers is None else numbers
    where = DataSet() if data_set is None else data_set
    moved = {
        name: _cautious(cloud.fitted.moved, caution)
        for name, cloud in clouds.items()
        if not cloud.printed
    }
    scores = _scores({name: clouds[name] for name in moved}, moved, between or {}, fixed, where)
    common = where.normals(fixed, _COMMON, where.common)
    found = {metric.name: np.empty((fixed.draws, len(clouds))) for metric in metrics}
    for place, (name, cloud) in enumerate(clouds.items()):
        model = (model_of or {}).get(name, name)
        own = where.normals(fixed, stream_of(model), where.own)
        if name in moved:
            drawn = _drawn(
                cloud,
                numbers=fixed,
                moved=moved[name],
                scores=scores[name],
                common=common,
                own=own,
                data_set=where.number,
            )
        elif isinstance(cloud.fitted, FittedNumbers):
            count = len(cloud.fitted.cells.weight)
            stream = _USERS + stream_of(name) + (where.number << 40)
            drawn = cloud.fitted.drawn_again(
                fixed,
                common=common,
                own=own,
                errors=math.sqrt(caution) * fixed.normals(count, stream=stream),
                data_set=where.number,
            )
        for metric in metrics:
            found[metric.name][:, place] = drawn.draws(metric)
    return found


def _cautious(moved: MovedShares, caution: float) -> MovedShares:
    return replace(moved, variance=caution * moved.variance, total=math.sqrt(caution) * moved.total)


def stream_of(name: str) -> int:
    """Return the stream of what is a model's own."""
    return 16 + _checksum(name)


def _checksum(name: str) -> int:
    """Return a number for a name, which may hold whatever files hold."""
    return zlib.crc32(name.encode(errors="surrogatepass"))


def _drawn(
    cloud: Cloud,
    *,
    numbers: FixedNumbers,
    moved: MovedShares,
    scores: FloatArray,
    common: FloatArray,
    own: FloatArray,
    data_set: int,
) -> Cloud:
    """Return a model's cloud drawn again, by numbers that models have in common."""
    fitted = cloud.fitted
    weights, total = moved.draw(scores)
    curves = [np.empty_like(each) for each in cloud.masses]
    for fit, rows in zip(fitted.components, fitted.rows(numbers, data_set), strict=True):
        if not len(rows):
            continue
        for some in in_parts(rows, SIZE + len(fitted.cells.weight)):
            centre = common[some] @ fit.component.common + own[some] @ fit.component.own
            in_cells = moved.in_cells(weights[some])
            for number, masses in moved_curves(fit, fitted.cells, centre, in_cells):
                curves[number][some] = masses
    weights /= weights.sum(axis=1, keepdims=True)
    drawn = DrawnCurves(tuple(curves), weights, total)
    return replace(cloud, masses=drawn.followed(fitted), total=total, numbers=None)


def _scores(
    clouds: Mapping[str, Cloud],
    moved: Mapping[str, MovedShares],
    between: Between,
    fixed: FixedNumbers,
    where: DataSet,
) -> dict[str, FloatArray]:
    """Return normal scores of all models' cells, correlated as their users' targets are."""
    known = {pair: each for pair, each in between.items() if {*pair} <= clouds.keys()}
    items = [name for name, cloud in clouds.items() if cloud.fitted.cells.items is not None]
    stream = _USERS + (where.number << 40)
    if not known and len(items) < 2:
        # Nobody is ranked under two models.
        return {
            name: fixed.normals(len(each.mean), stream=stream ^ _checksum(name)) @ each.root
            for name, each in moved.items()
        }
    # In whatever order models come, each has the same numbers.
    names = sorted(clouds)
    starts = np.cumsum([0, *(len(moved[name].mean) for name in names)]).tolist()
    place = {name: slice(starts[at], starts[at + 1]) for at, name in enumerate(names)}
    correlation = np.zeros((starts[-1], starts[-1]))
    for name in names:
        correlation[place[name], place[name]] = moved[name].correlation
    for one, other in combinations(names, 2):
        cells, others = clouds[one].fitted.cells, clouds[other].fitted.cells
        groups = moved[one].group, moved[other].group
        block = _covariance(cells, others, groups=groups, known=known, pair=(one, other))
        if block is None:
            continue
        block = block * np.outer(moved[one].inverse_deviation, moved[other].inverse_deviation)
        correlation[place[one], place[other]] = block
        correlation[place[other], place[one]] = block.T
    normals = fixed.normals(int(starts[-1]), stream=stream)
    scores = normals @ _root(correlation)
    return {name: scores[:, place[name]] for name in names}


def _covariance(
    one: CondensedCells,
    other: CondensedCells,
    *,
    groups: tuple[IntArray, IntArray],
    known: Between,
    pair: tuple[str, str],
) -> FloatArray | None:
    """Return the covariance of the weights of two models' cells, by group; None if not known."""
    rows, columns = groups
    found = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1))
    reverse = pair[::-1]
    if pair in known:
        products = one.crossed(other, known[pair], groups=groups)
    elif reverse in known:
        products = other.crossed(one, known[reverse], groups=groups[::-1]).transposed()
    else:
        products = None
    if products is not None:
        inside = (products.row < len(found)) & (products.column < found.shape[1])
        places = products.row[inside], products.column[inside]
        np.add.at(found, places, products.total[inside])
    if one.items is not None and other.items is not None:
        np.add.at(found, np.ix_(rows, columns), one.items.covariance_with(other.items))
    elif products is None:
        return None
    return found


def _root(correlation: FloatArray) -> FloatArray:
    """Return a matrix R with R'R = correlation: rows of normal numbers times R are correlated."""
    try:
        lower = np.linalg.cholesky(correlation + _RIDGE * np.eye(len(correlation)))
    except np.linalg.LinAlgError:
        # Coarse pairs, or parts that were taken off, may leave directions of negative variance.
        root = symmetric_root(correlation)
        lengths = np.sqrt((root**2).sum(axis=0))
        return np.asarray(root / np.maximum(lengths, _TINY))
    return np.asarray(lower.T)
