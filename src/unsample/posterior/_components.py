"""The components of the prior: kinds of evaluations, how unusual a data set is, and its top.

A component is a normal distribution of the coefficients of log P(R). The components of a kind have
the same mean and covariance, but for two things.

* *Scale.* Some data sets differ from all others. Both covariances are multiplied by s^2, for a few
  s, with prior weights that fall as s^-3. The data choose among them by their evidence.
* *Top.* Sampled ranks hardly tell what is within the first N/n ranks. Some models put a target
  first far more often than a smooth curve has it. Such tops shift the mean and widen a few
  coefficients.

>>> some = components_of(vague_kind(), "unseen")
>>> [each.scale for each in some if each.top == "smooth"]
[1.0, 1.5, 2.0, 3.0, 5.0]
>>> round(sum(each.prior_weight for each in some), 6)
1.0
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from unsample._checks import FloatArray
from unsample._threads import cached_property
from unsample.posterior._basis import SIZE, coefficient_of_hinge, vague_deviation, vague_mean
from unsample.posterior._learning import Learned
from unsample.posterior._symmetric_root import symmetric_root

#: How unusual a data set may be, and the power with which the prior weight falls.
SCALES, _FALL = (1.0, 1.5, 2.0, 3.0, 5.0), 3.0


@dataclass(frozen=True, eq=False)
class Top:
    """What the first ranks may be like: shifts of coefficients, and standard deviations more."""

    name: str
    shift: Mapping[int, float] = field(default_factory=dict)
    deviation: Mapping[int, float] = field(default_factory=dict)


#: The top of most data sets.
SMOOTH = Top("smooth")
#: A model that puts many targets first, beside what its curve has.
SPIKE = Top("spike", shift={0: 1.8}, deviation={0: 1.0})
#: The first ranks are nearly empty, down to about the named rank: items that users have seen fill
#: them.
HOLES = (
    Top(
        "hole to 4",
        shift={0: -2.5, coefficient_of_hinge(4): -0.4},
        deviation={0: 1.5, coefficient_of_hinge(4): 0.4},
    ),
    Top(
        "hole to 16",
        shift={coefficient_of_hinge(16): -1.2},
        deviation={coefficient_of_hinge(16): 0.7},
    ),
    Top(
        "hole to 64",
        shift={coefficient_of_hinge(64): -1.0},
        deviation={coefficient_of_hinge(64): 0.6},
    ),
)
#: Prior weights of the tops by kind; what is left is that of smooth ones.
TOPS: Mapping[str, Mapping[Top, float]] = {
    "unseen": {SPIKE: 0.02},
    "all": dict.fromkeys(HOLES, 0.1),
    "repeats": {SPIKE: 0.06},
    "graph": {SPIKE: 0.06},
}


@dataclass(frozen=True, eq=False)
class Component:
    """A normal distribution of the coefficients of log P(R), and its weight in its kind.

    ``root`` is the symmetric root of the covariance under which curves are fitted: coefficients are
    mean + root c with c ~ N(0, 1). ``common`` and ``own`` are roots of the covariances, in units of
    ``root``, of what the models of a data set share and of what is one model's own: by so much the
    centre of the prior may be wrong.
    """

    kind: str
    scale: float
    top: str
    prior_weight: float
    mean: FloatArray
    root: FloatArray
    common: FloatArray
    own: FloatArray

    def widened(self, by: float) -> Component:
        """Return the component with an error of its centre that is larger by a factor."""
        return replace(self, common=by * self.common, own=by * self.own)

    @cached_property
    def error_root(self) -> FloatArray:
        """Return the root of the covariance by which the centre may be wrong, for one model."""
        return symmetric_root(self.common @ self.common + self.own @ self.own)


def components_of(learned: Learned, kind: str, *, sampled: float = 99.0) -> tuple[Component, ...]:
    """Return the components of a kind: each scale with a smooth top, and each other top once.

    How far the prior may be wrong depends on how many items were ``sampled``.
    """
    by = learned.widening(sampled)
    return tuple(component.widened(by) for component in _usual_components(learned, kind))


@lru_cache(maxsize=256)
def _usual_components(learned: Learned, kind: str) -> tuple[Component, ...]:
    """Return the components of a kind at 99 sampled items."""
    tops = TOPS.get(kind, {})
    smooth = 1.0 - sum(tops.values())
    falling = np.array(SCALES) ** -_FALL
    weights = smooth * falling / falling.sum()
    found = [
        Component(
            kind=kind,
            scale=scale,
            top=SMOOTH.name,
            prior_weight=float(weight),
            mean=learned.mean,
            root=scale * learned.root,
            common=math.sqrt(learned.factors[0]) * learned.common_root,
            own=math.sqrt(learned.factors[1]) * learned.own_root,
        )
        for scale, weight in zip(SCALES, weights, strict=True)
    ]
    return (*found, *(_with_top(learned, kind, top, weight) for top, weight in tops.items()))


def _with_top(learned: Learned, kind: str, top: Top, weight: float) -> Component:
    """Return the component of a data set that is usual but for its first ranks."""
    shift = np.zeros(SIZE)
    for index, by in top.shift.items():
        shift[index] = by
    more = np.zeros(SIZE)
    for index, deviation in top.deviation.items():
        more[index] = deviation**2
    root = symmetric_root(learned.between + learned.within + np.diag(more))
    inverse = np.linalg.inv(root)
    common_factor, own_factor = learned.factors
    common = inverse @ (common_factor * learned.between) @ inverse
    own = inverse @ (own_factor * learned.within + np.diag(more)) @ inverse
    return Component(
        kind=kind,
        scale=1.0,
        top=top.name,
        prior_weight=weight,
        mean=learned.mean + shift,
        root=root,
        common=symmetric_root(common),
        own=symmetric_root(own),
    )


def vague_kind() -> Learned:
    """Return what is known of a kind before anything is learned, for examples and tests."""
    half = 0.5 * np.diag(vague_deviation() ** 2)
    return Learned(vague_mean(), half, half)
