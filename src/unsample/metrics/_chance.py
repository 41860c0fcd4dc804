"""Metrics of knowledge graphs that are adjusted for chance.

Random ranks have an expected metric E, which depends on the catalogue sizes N alone (Berrendorf et
al. 2020; Hoyt et al. 2022, "A Unified Framework for Rank-based Evaluation Metrics for Link
Prediction"). A metric x becomes (x - E)/(1 - E), where 1 is the best possible value, of hits and of
ranks. AMR is x/E. As in PyKEEN, E is a mean over all targets, each with its own N:

==========  ==========  ===========
adjusted    x           E of one N
==========  ==========  ===========
AHits@K     Hits@K      min(K/N, 1)
AMRR        MRR         H(N)/N
AMRI        MR          (N + 1)/2
AMR         MR          (N + 1)/2
==========  ==========  ===========

H(N) is 1 + 1/2 + ... + 1/N. So an adjusted metric is the metric itself on another scale, and so are
its intervals and bounds.

>>> (AHits @ 10).family.chance.scale(10, items=np.array([100, 400]))
(1.0666666666666667, -0.06666666666666667)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray
from unsample.errors import MetricError
from unsample.metrics._families import HR, MR, MRR
from unsample.metrics._metric import Kernel, MetricFamily, register


@dataclass(frozen=True)
class Chance:
    """The expected metric of random ranks, and the scale of the metric adjusted for it."""

    base: MetricFamily
    #: The name of the metric in this field.
    called: str
    #: The expectation for catalogues of these sizes, given K (infinite where there is none).
    expected: Callable[[FloatArray, float], FloatArray]
    #: Whether the metric is divided by its expectation, instead of moved to 0 for chance.
    divides: bool = False

    def scale(
        self, k: int | None, items: npt.ArrayLike, weights: FloatArray | None = None
    ) -> tuple[float, float]:
        """Return a and b of the adjusted metric a x + b, for targets with these catalogues."""
        sizes = np.asarray(items, dtype=np.float64)
        expected = self.expected(sizes, np.inf if k is None else float(k))
        mean = float(np.average(expected, weights=weights))
        if self.divides:
            return 1.0 / mean, 0.0
        if mean == 1.0:
            raise MetricError(
                f"{self.called} must leave room above chance to be adjusted, got one that is "
                "1 for random ranks too; use a smaller K"
            )
        return 1.0 / (1.0 - mean), -mean / (1.0 - mean)


def _middle(items: FloatArray, k: float) -> FloatArray:
    return (items + 1.0) / 2.0


def _harmonic(items: FloatArray, k: float) -> FloatArray:
    from scipy.special import digamma

    return np.asarray((digamma(items + 1.0) + np.euler_gamma) / items)


def _share(items: FloatArray, k: float) -> FloatArray:
    return np.minimum(k / items, 1.0)


def _not_of_one(name: str, base: str) -> Kernel:
    """Return a kernel that refuses: the scale depends on all targets, not on one rank."""

    def kernel(ranks: FloatArray, items: float, k: float) -> FloatArray:
        raise MetricError(
            f"{name} must be asked of exact, estimate or evaluate, which adjust for chance; use "
            f"{base} here, which differs by the scale alone"
        )

    return kernel


def _adjusted(
    name: str, alias: str, chance: Chance, summary: str, *, whole: bool = True
) -> MetricFamily:
    kernel = _not_of_one(name, chance.called)
    return register(
        MetricFamily(
            name, kernel, aliases=(alias,), summary=summary, whole=whole, unlimited=True,
            uses_items=True, chance=chance,
        )
    )  # fmt: skip


AHits = _adjusted(
    "AHits",
    "AdjustedHits",
    Chance(HR, "Hits", _share),
    "Hits@K moved to 0 for random ranks, 1 for the best",
    whole=False,
)
AMRR = _adjusted(
    "AMRR",
    "AdjustedMRR",
    Chance(MRR, "MRR", _harmonic),
    "MRR moved to 0 for random ranks, 1 for the best",
)
AMRI = _adjusted(
    "AMRI",
    "AdjustedMeanRankIndex",
    Chance(MR, "MR", _middle),
    "mean rank moved to 0 for random ranks, 1 for the best, -1 for the worst",
)
AMR = _adjusted(
    "AMR",
    "AdjustedMeanRank",
    Chance(MR, "MR", _middle, divides=True),
    "mean rank divided by that of random ranks: lower is better",
)
