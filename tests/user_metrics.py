"""Metrics of one user's list, written down slowly.

A list has the grade of the item at each rank; 0 is not relevant. Every relevant item
of the user has a rank. Nothing here is imported from `unsample`, and nothing is fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

#: The grade of the item at each rank of a user's list.
List = Sequence[float]


def listed(ranks: Sequence[int], items: int, relevance: Sequence[float] | None = None) -> List:
    """Return the list of a user whose relevant items have these ranks, the first is 1."""
    grades = [0.0] * items
    for rank, gain in zip(ranks, relevance or [1.0] * len(ranks), strict=True):
        assert grades[rank - 1] == 0.0, "two items have one rank"
        grades[rank - 1] = float(gain)
    return grades


def relevant(grades: List) -> int:
    return sum(1 for gain in grades if gain > 0)


def recall(grades: List, k: int) -> float:
    return relevant(grades[:k]) / relevant(grades)


def recall_min(grades: List, k: int) -> float:
    return relevant(grades[:k]) / min(relevant(grades), k)


def hit(grades: List, k: int) -> float:
    return 1.0 if relevant(grades[:k]) > 0 else 0.0


def precision(grades: List, k: int) -> float:
    return relevant(grades[:k]) / k


def dcg(gains: List, k: int) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:k], start=1))


def ndcg(grades: List, k: int) -> float:
    return dcg(grades, k) / dcg(sorted(grades, reverse=True), k)


def ndcg_exp(grades: List, k: int) -> float:
    return ndcg([2**gain - 1 for gain in grades], k)


def ndcg_of_k(grades: List, k: int) -> float:
    """The ideal list has K relevant items, however many the user has."""
    return dcg([gain > 0 for gain in grades], k) / dcg([1.0] * k, k)  # knows no grades


def ndcg_clipped(grades: List, k: int) -> float:
    """Ranks 1 and 2 count the same, rank i from 2 on 1/log2(i)."""

    def sums(gains: List) -> float:
        return sum(gain / math.log2(max(rank, 2)) for rank, gain in enumerate(gains[:k], start=1))

    return sums(grades) / sums(sorted(grades, reverse=True))


def precisions(grades: List, k: int) -> float:
    """Return the sum of the precisions at the ranks of the hits."""
    return sum(
        precision(grades, rank) for rank in range(1, min(k, len(grades)) + 1) if grades[rank - 1]
    )


def ap(grades: List, k: int) -> float:
    return precisions(grades, k) / relevant(grades)


def ap_min(grades: List, k: int) -> float:
    return precisions(grades, k) / min(relevant(grades), k)


def mrr(grades: List, k: int) -> float:
    for rank, gain in enumerate(grades[:k], start=1):
        if gain > 0:
            return 1 / rank
    return 0.0


def rprec(grades: List, k: int) -> float:  # of the whole list always
    return precision(grades, relevant(grades))


def auc(grades: List, k: int) -> float:  # of the whole list always
    """Return the share of pairs of a relevant and another item that are in the right order."""
    pairs = [
        above < below
        for above, gain in enumerate(grades)
        for below, other in enumerate(grades)
        if gain > 0 and other == 0
    ]
    return sum(pairs) / len(pairs)


FORMULAS: dict[str, Callable[[List, int], float]] = {
    "Recall": recall,
    "Recall(norm=min)": recall_min,
    "HR": hit,
    "Precision": precision,
    "NDCG": ndcg,
    "NDCG(gain=exp)": ndcg_exp,
    "NDCG(ideal=k)": ndcg_of_k,
    "NDCG(discount=jk)": ndcg_clipped,
    "AP": ap,
    "AP(norm=min)": ap_min,
    "MRR": mrr,
    "RPrec": rprec,
    "AUC": auc,
}
#: Other names of the same numbers.
ALIASES = {
    "Hit": "HR",
    "Hits": "HR",
    "HitRate": "HR",
    "Success": "HR",
    "MAP": "AP",
    "MAP(norm=min)": "AP(norm=min)",
    "RR": "MRR",
}
#: Those that have no K.
WHOLE = ("RPrec", "AUC")


def value(name: str, grades: List) -> float:
    """Return a metric of one list, such as ``NDCG(gain=exp)@10``; without a K, of the whole."""
    family, _, k = name.partition("@")
    return FORMULAS[ALIASES.get(family, family)](grades, int(k) if k else len(grades))


def mean(name: str, lists: Sequence[List]) -> float:
    """Return the mean over users."""
    return math.fsum(value(name, grades) for grades in lists) / len(lists)


def names(cutoffs: Sequence[int]) -> list[str]:
    """Return every metric at these cutoffs, and on the whole list."""
    cut = [f"{family}@{k}" for family in FORMULAS if family not in WHOLE for k in cutoffs]
    return [*cut, *FORMULAS]
