"""The components of the prior: kinds of evaluations, how unusual a data set is, and its top.

A component is a normal distribution of the coefficients of log P(R). The components of a kind have
the same mean and covariance, but for three things.

* *Scale.* Some data sets differ from all others. Both covariances are multiplied by s^2, for a few
  s, with prior weights that fall as s^-3. The data choose a scale by its evidence.
* *Top.* Sampled ranks hardly show the first N/n ranks. Some models put a target first far more
  often than a smooth curve does. Such tops shift the mean of a few coefficients and add to their
  variance.
* *Own items.* Where the items that a user has seen are among the candidates, they push targets
  down (`_own_items`). Each habit of models in this has components of its own.

>>> of_kind = components_of(vague_kind(), "unseen")
>>> [component.scale for component in of_kind if component.top == "smooth"]
[1.0, 1.5, 2.0, 3.0, 5.0]
>>> round(sum(component.prior_weight for component in of_kind), 6)
1.0
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from unsample._checks import FloatArray
from unsample._threads import cached_property
from unsample.posterior._basis import SIZE, vague_deviation, vague_mean
from unsample.posterior._learning import Learned
from unsample.posterior._own_items import OwnItems, push_matrix, usual_own_items
from unsample.posterior._symmetric_root import symmetric_root
from unsample.sampling import RankGrid

#: How unusual a data set may be, and the power with which the prior weight falls.
SCALES = (1.0, 1.5, 2.0, 3.0, 5.0)
_FALL = 3.0
#: The kind of curves among unseen items whose targets are pushed down by a user's own items.
PUSHED = "pushed"
#: Each of its six pushes has all scales, so it takes fewer.
PUSHED_SCALES = (1.0, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class Top:
    """What the first ranks may be like, beside the curve of the kind.

    By the index of a coefficient of log P(R): ``shift`` is added to its mean, and the square of
    ``deviation`` to its variance.
    """

    name: str
    shift: Mapping[int, float] = field(default_factory=dict)
    deviation: Mapping[int, float] = field(default_factory=dict)


#: The top of most data sets.
SMOOTH = Top("smooth")
#: A model that puts many targets first, beside what its curve has.
SPIKE = Top("spike", shift={0: 1.8}, deviation={0: 1.0})
#: Prior weights of the tops by kind; smooth tops have the rest.
TOPS: Mapping[str, Mapping[Top, float]] = {
    "unseen": {SPIKE: 0.02},
    "repeats": {SPIKE: 0.06},
    "graph": {SPIKE: 0.06},
}


@dataclass(frozen=True, eq=False)
class Component:
    """A normal distribution of the coefficients of log P(R), and its weight in its kind.

    ``root`` is the symmetric root of the covariance under which curves are fitted: coefficients are
    mean + root c with c ~ N(0, 1). The centre of the prior may be wrong. Its error in units of
    ``root`` is the sum of two parts: the models of a data set share the one whose covariance has
    ``common_root`` as its root, and each model has its own one, with ``own_root``.
    """

    kind: str
    scale: float
    top: str
    prior_weight: float
    mean: FloatArray
    root: FloatArray
    common_root: FloatArray
    own_root: FloatArray
    #: How many of a user's own items stand above a target; None where none is a candidate.
    own_items: OwnItems | None = None

    def push(self, grid: RankGrid) -> FloatArray | None:
        """Return where own items push targets (new bins x old bins), or None if none do."""
        return None if self.own_items is None else push_matrix(grid, self.own_items)

    def widened(self, by: float) -> Component:
        """Return the component with an error of its centre that is larger by a factor."""
        return replace(self, common_root=by * self.common_root, own_root=by * self.own_root)

    @cached_property
    def error_root(self) -> FloatArray:
        """Return the root of the covariance of one model's whole error of the centre.

        Covariances of the two parts add up: their roots 3 and 4 make the root 5.

        >>> component = components_of(vague_kind(), "unseen")[0]
        >>> one = np.eye(SIZE)
        >>> sum_of_two = replace(component, common_root=3.0 * one, own_root=4.0 * one).error_root
        >>> sum_of_two.diagonal()[:2].round(6).tolist()
        [5.0, 5.0]
        """
        covariance = self.common_root @ self.common_root + self.own_root @ self.own_root
        return symmetric_root(covariance)


def components_of(
    learned: Learned, kind: str, *, sampled: float = 99.0, seen: Sequence[int] = ()
) -> tuple[Component, ...]:
    """Return the components of a kind: each scale with a smooth top, and each other top once.

    Parameters
    ----------
    sampled
        The number of sampled items, on which the error of the prior depends.
    seen
        The number of own items among the candidates, for each of some equal parts of the users;
        empty where nobody knows it. Only the kind `PUSHED` depends on it.

    Examples
    --------
    The kind "unseen" has five scales and one other top, pushed curves have six pushes at each of
    three scales:

    >>> len(components_of(vague_kind(), "unseen")), len(components_of(vague_kind(), PUSHED))
    (6, 18)
    """
    by = learned.widening(sampled)
    usual = _usual_components(learned, kind, seen=tuple(seen))
    return tuple(component.widened(by) for component in usual)


@lru_cache(maxsize=256)
def _usual_components(
    learned: Learned, kind: str, *, seen: tuple[int, ...]
) -> tuple[Component, ...]:
    """Return the components of a kind at 99 sampled items."""
    if kind != PUSHED:
        return _scaled(learned, kind)
    return tuple(
        replace(component, own_items=own_items, prior_weight=probability * component.prior_weight)
        for own_items, probability in usual_own_items(seen)
        for component in _scaled(learned, kind, scales=PUSHED_SCALES)
    )


def _scaled(
    learned: Learned, kind: str, *, scales: Sequence[float] = SCALES
) -> tuple[Component, ...]:
    """Return the components of a kind, each scale with a smooth top, and each other top once.

    Prior weights of smooth tops fall as s^-3: the scales 1 and 2 share 0.98 as 8 : 1.

    >>> of_kind = _scaled(vague_kind(), "unseen", scales=(1.0, 2.0))
    >>> [(component.top, round(component.prior_weight, 4)) for component in of_kind]
    [('smooth', 0.8711), ('smooth', 0.1089), ('spike', 0.02)]
    """
    tops = TOPS.get(kind, {})
    weight_of_smooth = 1.0 - sum(tops.values())
    falling = np.array(scales) ** -_FALL
    weights = weight_of_smooth * falling / falling.sum()
    smooth = [
        Component(
            kind=kind,
            scale=scale,
            top=SMOOTH.name,
            prior_weight=float(weight),
            mean=learned.mean,
            root=scale * learned.root,
            common_root=math.sqrt(learned.factors[0]) * learned.common_root,
            own_root=math.sqrt(learned.factors[1]) * learned.own_root,
        )
        for scale, weight in zip(scales, weights, strict=True)
    ]
    others = [
        _with_top(learned, kind, top=top, prior_weight=weight) for top, weight in tops.items()
    ]
    return (*smooth, *others)


def _with_top(learned: Learned, kind: str, *, top: Top, prior_weight: float) -> Component:
    """Return the component of a data set that is usual but for its first ranks.

    What the top adds to the variance is a model's own.

    >>> spiked = _with_top(vague_kind(), "unseen", top=SPIKE, prior_weight=0.02)
    >>> usual = vague_kind()
    >>> round(float((spiked.mean - usual.mean)[0]), 3)
    1.8
    >>> more = (spiked.root @ spiked.root - usual.between - usual.within)[0, 0]
    >>> round(float(more), 3)                                  # the square of the deviation 1.0
    1.0
    """
    shift = np.zeros(SIZE)
    for index, by in top.shift.items():
        shift[index] = by
    added_variance = np.zeros(SIZE)
    for index, deviation in top.deviation.items():
        added_variance[index] = deviation**2
    added = np.diag(added_variance)
    root = symmetric_root(learned.between + learned.within + added)
    inverse = np.linalg.inv(root)
    common_factor, own_factor = learned.factors
    common = inverse @ (common_factor * learned.between) @ inverse
    own = inverse @ (own_factor * learned.within + added) @ inverse
    return Component(
        kind=kind,
        scale=1.0,
        top=top.name,
        prior_weight=prior_weight,
        mean=learned.mean + shift,
        root=root,
        common_root=symmetric_root(common),
        own_root=symmetric_root(own),
    )


def vague_kind() -> Learned:
    """Return what is known of a kind before anything is learned, for examples and tests."""
    half = 0.5 * np.diag(vague_deviation() ** 2)
    return Learned(mean=vague_mean(), between=half, within=half)
