"""Maximum entropy with a squared distance to the histogram (MES)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unsample._checks import check_choice, check_real
from unsample.errors import MethodError
from unsample.estimators._base import DistributionEstimator
from unsample.estimators._bases import BASES, base_measure
from unsample.estimators._observed import Observed
from unsample.estimators._solvers import Solution, maximum_entropy

__all__ = ["MES"]


@dataclass(frozen=True)
class MES(DistributionEstimator):
    r"""Maximum entropy with a squared distance to the histogram.

    .. math:: \max_\pi \; \eta H(\pi) - c \sum_r \tilde P(r)
              \Big(\sum_R P(r|R) \pi_R - \tilde P(r)\Big)^2

    ``scaling`` names c: ``"printed"`` is 1, the formula of the paper, with eta = 0.001;
    ``"later"`` is n, as in the authors' later public code, which uses it with eta = 0.01. The
    printed eta gives less variance than the paper's tables show; eta = 0.0001 gives theirs.

    ``base`` is what P(R) is in the absence of data: H is the entropy relative to it. The paper's is
    ``"uniform"``; ``"reciprocal"`` is 1/R, and ``"power"`` and ``"beta"`` are laws fitted to the
    same data.

    Catalogues of several sizes are pooled: their common histogram is compared with its
    expectation. Samples of several sizes n are compared one by one, and the distances averaged
    over the targets.

    References: Jin et al., AAAI 2021; Li et al., AAAI 2023 (uniform base; the others are our own).
    """

    name: ClassVar[str] = "mes"
    eta: float = 0.001
    scaling: str = "printed"
    base: str = "uniform"

    def __post_init__(self) -> None:
        check_real("eta", self.eta, low=0.0, open_low=True, error=MethodError)
        check_choice("scaling", self.scaling, ("printed", "later"), error=MethodError)
        check_choice("base", self.base, BASES, error=MethodError)

    def solve(self, observed: Observed) -> Solution:
        """Return the mass of each bin by Newton's method on the dual."""
        pools = list(observed.pools(self.name))
        shares = np.concatenate([pool.shares for pool in pools], axis=1)
        within = [
            pool.shares / np.maximum(pool.shares.sum(axis=1, keepdims=True), 1e-300)
            for pool in pools
        ]
        scale = [
            np.full(len(pool.low), 1.0 if self.scaling == "printed" else pool.high[-1])
            for pool in pools
        ]
        return maximum_entropy(
            np.concatenate([pool.matrix for pool in pools]),
            np.concatenate(within, axis=1),
            cell_weights=np.concatenate(scale) * shares,
            widths=base_measure(self.base, observed) * observed.grid.items,
            eta=self.eta,
        )
