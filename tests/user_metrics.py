"""Metrics of one user's list, written down slowly.

A list says for each place how relevant the item there is; 0 is not relevant. Every relevant item
of the user has a place. Nothing here is imported from `unsample`, and nothing is fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

#: How relevant the item at each place of a user's list is.
List = Sequence[float]


def listed(ranks: Sequence[int], items: int, relevance: Sequence[float] | None = None) -> List:
    """Return the list of a user whose relevant items have these ranks, the first is 1."""
    places = [0.0] * items
    for rank, gain in zip(ranks, relevance or [1.0] * len(ranks), strict=True):
        assert places[rank - 1] == 0.0, "two items have one place"
        places[rank - 1] = float(gain)
    return places


def relevant(places: List) -> int:
    return sum(1 for gain in places if gain > 0)


def recall(places: List, k: int) -> float:
    return relevant(places[:k]) / relevant(places)


def recall_min(places: List, k: int) -> float:
    return relevant(places[:k]) / min(relevant(places), k)


def hit(places: List, k: int) -> float:
    return 1.0 if relevant(places[:k]) > 0 else 0.0


def precision(places: List, k: int) -> float:
    return relevant(places[:k]) / k


def dcg(gains: List, k: int) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains[:k], start=1))


def ndcg(places: List, k: int) -> float:
    return dcg(places, k) / dcg(sorted(places, reverse=True), k)


def ndcg_exp(places: List, k: int) -> float:
    return ndcg([2**gain - 1 for gain in places], k)


def ndcg_of_k(places: List, k: int) -> float:
    """The ideal list has K relevant items, however many the user has."""
    return dcg([gain > 0 for gain in places], k) / dcg([1.0] * k, k)  # knows no grades


def ndcg_clipped(places: List, k: int) -> float:
    """Places 1 and 2 count the same, place i from 2 on 1/log2(i)."""

    def sums(gains: List) -> float:
        return sum(gain / math.log2(max(place, 2)) for place, gain in enumerate(gains[:k], start=1))

    return sums(places) / sums(sorted(places, reverse=True))


def precisions(places: List, k: int) -> float:
    """Return the sum of the precisions at the places of the hits."""
    return sum(
        precision(places, place) for place in range(1, min(k, len(places)) + 1) if places[place - 1]
    )


def ap(places: List, k: int) -> float:
    return precisions(places, k) / relevant(places)


def ap_min(places: List, k: int) -> float:
    return precisions(places, k) / min(relevant(places), k)


def mrr(places: List, k: int) -> float:
    for place, gain in enumerate(places[:k], start=1):
        if gain > 0:
            return 1 / place
    return 0.0


def rprec(places: List, k: int) -> float:  # of the whole list always
    return precision(places, relevant(places))


def auc(places: List, k: int) -> float:  # of the whole list always
    """Return the share of pairs of a relevant and another item that are in the right order."""
    pairs = [
        above < below
        for above, gain in enumerate(places)
        for below, other in enumerate(places)
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


def value(name: str, places: List) -> float:
    """Return a metric of one list, such as ``NDCG(gain=exp)@10``; without a K, of the whole."""
    family, _, k = name.partition("@")
    return FORMULAS[ALIASES.get(family, family)](places, int(k) if k else len(places))


def mean(name: str, lists: Sequence[List]) -> float:
    """Return the mean over users."""
    return math.fsum(value(name, places) for places in lists) / len(lists)


def names(cutoffs: Sequence[int]) -> list[str]:
    """Return every metric at these cutoffs, and on the whole list."""
    cut = [f"{family}@{k}" for family in FORMULAS if family not in WHOLE for k in cutoffs]
    return [*cut, *FORMULAS]
