"""The families of metrics: the weight of a rank, and the share of a target in each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.metrics._metric import Kernel, MetricFamily, Share, first_only, ones


def _ideal_share(kernel: Kernel) -> Share:
    """Return the share that divides by the greatest DCG of a user's targets among K items.

    Three targets have at most 1 + 1/log2(3) among two items.

    >>> share = _ideal_share(_discount)
    >>> share(np.array([3]), position=np.array([1]), k=2.0).round(4).tolist()
    [0.6131]
    """

    def share(relevant: IntArray, position: IntArray, k: float) -> FloatArray:
        counted = np.minimum(relevant, k).astype(np.int64)
        first_ranks = np.arange(1.0, counted.max(initial=1) + 1.0)
        greatest_dcg = np.cumsum(kernel(first_ranks, 0.0, k=k))
        return np.asarray(1.0 / greatest_dcg[counted - 1])

    return share


def _discount(ranks: FloatArray, items: float, k: float) -> FloatArray:
    """Return 1/log2(R + 1): 1 at rank 1, and 1/2 at rank 3."""
    return np.asarray(1.0 / np.log2(ranks + 1.0))


def _first_discount(ranks: FloatArray, items: float, k: float) -> FloatArray:
    """Return 1/log2(R), and 1 at rank 1 as at rank 2."""
    return np.asarray(1.0 / np.log2(np.maximum(ranks, 2.0)))


def _discount_of_hits(ranks: FloatArray, items: float, k: float) -> FloatArray:
    """Return the discount, divided by its sum over the ranks 1 to K.

    >>> _discount_of_hits(np.array([1.0, 3.0]), 100.0, 2.0).round(4)      # / (1 + 1/log2(3))
    array([0.6131, 0.3066])
    """
    positions = np.arange(1.0, k + 1.0)
    return _discount(ranks, items, k=k) / float(_discount(positions, items, k=k).sum())


def _exponential(relevance: FloatArray) -> FloatArray:
    """Return 2^relevance - 1, which is above 0 for any grade above 0."""
    return np.asarray(np.expm1(relevance * np.log(2.0)))


def _reciprocal(ranks: FloatArray, items: float, k: float) -> FloatArray:
    """Return 1/R."""
    return np.asarray(1.0 / ranks)


def _first_positions(
    ranks: FloatArray, position: IntArray, relevant: IntArray, sizes: IntArray, k: float
) -> FloatArray:
    """Return 1 for a target among the first m ranks of a user with m relevant items."""
    return np.asarray(ranks <= np.minimum(relevant, k), dtype=np.float64)


def _beaten_rivals(
    ranks: FloatArray, position: IntArray, relevant: IntArray, sizes: IntArray, k: float
) -> FloatArray:
    """Return the share of irrelevant items that a target beats.

    Of 10 items 2 are relevant. The second of them has rank 5, so that 3 of 8 others are better.

    >>> of_user = {"relevant": np.array([2]), "sizes": np.array([10]), "k": 10.0}
    >>> _beaten_rivals(np.array([5.0]), np.array([2]), **of_user)
    array([0.625])
    """
    rivals = np.maximum(sizes - relevant, 1)
    return np.where(ranks <= np.minimum(sizes, k), 1.0 - (ranks - position) / rivals, 0.0)


Recall = MetricFamily("Recall", ones)
RecallMin = MetricFamily(
    "Recall(norm=min)",
    ones,
    share=lambda relevant, position, k: 1.0 / np.minimum(relevant, k),
    single="Recall",
)
HR = MetricFamily(
    "HR",
    ones,
    aliases=("Hit", "Hits", "HitRate", "Success"),
    share=first_only,
    uses_positions=True,
    single="Recall",
)
Precision = MetricFamily(
    "Precision",
    lambda ranks, items, k: np.full_like(ranks, 1.0 / k),
    aliases=("Prec", "P"),
    share=lambda relevant, position, k: np.ones(len(relevant)),
)
NDCG = MetricFamily(
    "NDCG",
    _discount,
    share=_ideal_share(_discount),
    gain=lambda relevance: relevance,
)
NDCGExp = MetricFamily(
    "NDCG(gain=exp)",
    _discount,
    share=_ideal_share(_discount),
    single="NDCG",
    gain=_exponential,
    largest_grade=1000.0,
)
NDCGHits = MetricFamily(
    "NDCG(ideal=k)",
    _discount_of_hits,
    share=lambda relevant, position, k: np.ones(len(relevant)),
)
#: That of Järvelin and Kekäläinen (2002): the first two ranks count the same.
NDCGFirst = MetricFamily(
    "NDCG(discount=jk)",
    _first_discount,
    share=_ideal_share(_first_discount),
    gain=lambda relevance: relevance,
)
AP = MetricFamily(
    "AP",
    _reciprocal,
    aliases=("MAP",),
    share=lambda relevant, position, k: position / relevant,
    uses_positions=True,
)
APMin = MetricFamily(
    "AP(norm=min)",
    _reciprocal,
    aliases=("MAP(norm=min)",),
    share=lambda relevant, position, k: position / np.minimum(relevant, k),
    uses_positions=True,
    single="AP",
)
MRR = MetricFamily(
    "MRR",
    _reciprocal,
    aliases=("RR",),
    share=first_only,
    uses_positions=True,
    single="AP",
)
#: The share of the user's m relevant items that have the ranks 1 to m.
RPrec = MetricFamily(
    "RPrec",
    lambda ranks, items, k: np.where(ranks <= 1.0, 1.0, 0.0),
    aliases=("R-Precision",),
    jointly=_first_positions,
)
#: The share of the other items that rank below a relevant one, 0 beyond K.
AUC = MetricFamily(
    "AUC",
    lambda ranks, items, k: (items - ranks) / (items - 1.0),
    uses_items=True,
    jointly=_beaten_rivals,
)
#: The mean rank: 1 is the best, and lower is better.
MR = MetricFamily(
    "MR",
    lambda ranks, items, k: ranks,
    aliases=("MeanRank",),
    whole=True,
    unlimited=True,
    bounded=False,
)

_ALL = (
    Recall,
    RecallMin,
    HR,
    Precision,
    NDCG,
    NDCGExp,
    NDCGHits,
    NDCGFirst,
    AP,
    APMin,
    MRR,
    RPrec,
    AUC,
    MR,
)
REGISTRY: Mapping[str, MetricFamily] = MappingProxyType({family.name: family for family in _ALL})
