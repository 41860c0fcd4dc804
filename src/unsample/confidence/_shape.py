"""What may be assumed of P(R) where the sample cannot see: limits on how steep it is.

A sample of n - 1 items blurs the top N/n ranks into one. How P(R) is spread inside that zone is
not in the data, and without any assumption the bounds of a metric@K with small K span from zero
to everything. The assumption here is mild and can be stated in a sentence: seen on logarithmic
axes, P(R) is never steeper than a given exponent.

The limits hold at the top. Where the sample sees more, they loosen in step with what it sees: at
rank R a sample blurs ranks by a factor of about 1 + sqrt(N/(n R)), and a change within that blur
is what the limits must rule out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray, check_choice, check_real
from unsample.errors import InputError

__all__ = ["CANDIDATES", "SHAPES", "Shape", "shape_for"]

#: Below this multiple of N/n a shape with ``dents`` lets P(R) rise as steeply as it likes.
_DENTED = 3.0


@dataclass(frozen=True)
class Shape:
    """Limits of the local exponent d log P(R) / d log R.

    ``fall`` and ``rise`` limit it at the top ranks: P(R) falls no faster than R^-fall and rises no
    faster than R^rise. With ``loosens`` the limits widen where the sample resolves more than they
    say; without, they hold for every rank. With ``dents``, P(R) may rise at any speed among the
    ranks the sample cannot see: training items that were left among the candidates take the first
    places and push the targets down.
    """

    fall: float
    rise: float
    dents: bool = False
    loosens: bool = True

    def __post_init__(self) -> None:
        for name in ("fall", "rise"):
            value = getattr(self, name)
            if value != math.inf:
                check_real(name, value, low=0.0, hint="an exponent, or infinity for no limit")

    @property
    def limits_nothing(self) -> bool:
        """Return whether every P(R) has this shape."""
        return self.fall == math.inf and self.rise == math.inf

    def exponents(self, ranks: FloatArray, blind_rank: float) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest exponent allowed at each rank."""
        reach = ranks / blind_rank
        extra = np.sqrt(1.0 + reach) - 1.0 if self.loosens else np.zeros_like(reach)
        highest = self.rise + extra
        if self.dents:
            highest = np.where(reach < _DENTED, math.inf, highest)
        return -self.fall - extra, highest

    def __str__(self) -> str:
        if self.limits_nothing:
            return "nothing about P(R)"
        parts = []
        if math.isfinite(self.fall):
            parts.append(f"falls no faster than R^-{self.fall:g}")
        if self.rise == 0.0:
            parts.append("never rises")
        elif math.isfinite(self.rise) and not self.dents:
            parts.append(f"rises no faster than R^{self.rise:g}")
        where = " near the top" if self.loosens else ""
        return f"that P(R){where} " + " and ".join(parts)


#: Shapes by name. The exponents of ``power`` and ``depleted`` leave room around what recommenders
#: show: over the bundled everyday ranks P(R) falls by R^-1.4 to R^0.2 at the top.
SHAPES: Mapping[str, Shape] = {
    "none": Shape(math.inf, math.inf),
    "power": Shape(1.5, 0.5),
    "depleted": Shape(1.5, 0.5, dents=True),
    "non-increasing": Shape(math.inf, 0.0, loosens=False),
}

#: What the candidates were, and the shape that follows from it.
CANDIDATES: Mapping[str | None, str] = {"unseen": "power", "all": "depleted", None: "depleted"}


def shape_for(shape: str | Shape | None, candidates: str | None) -> Shape:
    """Return the shape asked for by name, or the one that what was ``candidates`` implies."""
    if candidates is not None:
        check_choice("candidates", candidates, [name for name in CANDIDATES if name is not None])
    if shape is None:
        return SHAPES[CANDIDATES[candidates]]
    if isinstance(shape, Shape):
        return shape
    return SHAPES[check_choice("shape", shape, SHAPES, error=InputError)]
