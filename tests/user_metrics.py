"""Metrics of one user's list, written down slowly; and whose metric is which.

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


def split(name: str, places: List) -> tuple[str, int]:
    """Return a name without its K, and the K: without one, the length of the list."""
    family, _, k = name.partition("@")
    return ALIASES.get(family, family), int(k) if k else len(places)


def value(name: str, places: List) -> float:
    """Return a metric of one list, such as ``NDCG(gain=exp)@10``; without a K, of the whole."""
    family, k = split(name, places)
    return (FORMULAS | FOREIGN)[family](places, k)


def mean(name: str, lists: Sequence[List]) -> float:
    """Return the mean over users, or what stands for it."""
    family, k = split(name, lists[0])
    if family in POOLED:
        return POOLED[family](lists, k)
    return math.fsum(value(name, places) for places in lists) / len(lists)


def names(cutoffs: Sequence[int]) -> list[str]:
    """Return every metric at these cutoffs, and on the whole list."""
    cut = [f"{family}@{k}" for family in FORMULAS if family not in WHOLE for k in cutoffs]
    return [*cut, *FORMULAS]


# -- what libraries compute under other or the same names ------------------------------------------


def ap_of_k(places: List, k: int) -> float:
    return precisions(places, k) / k


def ap_of_hits(places: List, k: int) -> float:
    """TorchMetrics' own: what was not found does not count at all."""
    return precisions(places, k) / max(relevant(places[:k]), 1)


def precision_of_list(places: List, k: int) -> float:
    """LensKit's own: a list that is shorter than K is not filled up."""
    return relevant(places[:k]) / min(k, len(places))


def limited_auc(places: List, k: int) -> float:
    """implicit's own: pairs beyond K are in the right order half of the time."""
    top, others = places[:k], len(places) - relevant(places)
    seen = sum(relevant(top[:place]) for place, gain in enumerate(top) if not gain)
    beyond = (relevant(top) + relevant(places)) / 2 * (others - (len(top) - relevant(top)))
    return (seen + beyond) / (relevant(places) * others)


#: Metrics of a user that libraries have and that are no metric of ours.
FOREIGN: dict[str, Callable[[List, int], float]] = {
    "AP / K": ap_of_k,
    "AP / hits": ap_of_hits,
    "hits / min(K, list)": precision_of_list,
    "limited AUC": limited_auc,
}


def pooled_recall(lists: Sequence[List], k: int) -> float:
    """implicit's precision: all hits of all users by all that were possible."""
    hits = sum(relevant(places[:k]) for places in lists)
    return hits / sum(min(relevant(places), k) for places in lists)


def grouped_auc(lists: Sequence[List], k: int) -> float:
    """RecBole's GAUC: users count by how many relevant items they have."""
    sizes = [relevant(places) for places in lists]
    return sum(size * auc(row, k) for size, row in zip(sizes, lists, strict=True)) / sum(sizes)


#: And those that are no mean over users.
POOLED: dict[str, Callable[[Sequence[List], int], float]] = {
    "pooled Recall(norm=min)": pooled_recall,
    "AUC, by targets": grouped_auc,
}

#: Library -> its name of a metric -> ours, or that of a formula above, or None.
SAME: dict[str, dict[str, str | None]] = {
    "trec": {
        "AP": "AP",
        "AP@K": "AP@K",
        "RR": "MRR",
        "RR@K": "MRR@K",
        "P@K": "Precision@K",
        "R@K": "Recall@K",
        "Rprec": "RPrec",
        "Success@K": "HR@K",
        "nDCG": "NDCG",
        "nDCG@K": "NDCG@K",
        "graded nDCG": "NDCG",
        "graded nDCG@K": "NDCG@K",
        "graded nDCG(gains={2:3,3:7})@K": "NDCG(gain=exp)@K",
        "graded nDCG(dcg='exp-log2')@K": "NDCG(gain=exp)@K",
        "pytrec_eval map": "AP",
        "pytrec_eval map_cut@K": "AP@K",
        "pytrec_eval recip_rank": "MRR",
        "pytrec_eval P@K": "Precision@K",
        "pytrec_eval recall@K": "Recall@K",
        "pytrec_eval Rprec": "RPrec",
        "pytrec_eval success@K": "HR@K",
        "pytrec_eval ndcg": "NDCG",
        "pytrec_eval ndcg_cut@K": "NDCG@K",
    },
    "ranx": {
        "hits": None,  # how many, not a share
        "hits@K": None,
        "hit_rate": "HR",
        "hit_rate@K": "HR@K",
        "precision": "Precision",
        "precision@K": "Precision@K",
        "recall": "Recall",
        "recall@K": "Recall@K",
        "f1": None,
        "f1@K": None,
        "mrr": "MRR",
        "mrr@K": "MRR@K",
        "map": "AP",
        "map@K": "AP@K",
        "ndcg": "NDCG",
        "ndcg@K": "NDCG@K",
        "ndcg_burges": "NDCG(gain=exp)",
        "ndcg_burges@K": "NDCG(gain=exp)@K",
        "graded ndcg": "NDCG",
        "graded ndcg@K": "NDCG@K",
        "graded ndcg_burges": "NDCG(gain=exp)",
        "graded ndcg_burges@K": "NDCG(gain=exp)@K",
        "r-precision": "RPrec",
    },
    "recbole": {
        "hit@K": "HR@K",
        "mrr@K": "MRR@K",
        "map@K": "AP(norm=min)@K",
        "recall@K": "Recall@K",
        "ndcg@K": "NDCG@K",
        "precision@K": "Precision@K",
        "gauc": "AUC, by targets",
    },
    "lenskit": {
        "Recall": "Recall",
        "Recall@K": "Recall(norm=min)@K",
        "Precision": "Precision",
        "Precision@K": "hits / min(K, list)@K",  # Precision@K up to the length of the list
        "Hit": "HR",
        "Hit@K": "HR@K",
        "RecipRank": "MRR",
        "RecipRank@K": "MRR@K",
        "AveragePrecision": "AP",
        "AveragePrecision@K": "AP(norm=min)@K",
        "NDCG": "NDCG(discount=jk)",
        "NDCG@K": "NDCG(discount=jk)@K",
        "NDCG(weight=LogRankWeight(offset=1))": "NDCG",
        "NDCG(weight=LogRankWeight(offset=1))@K": "NDCG@K",
        "graded NDCG(gain='rating', weight=LogRankWeight(offset=1))": "NDCG",
        "graded NDCG(gain='rating', weight=LogRankWeight(offset=1))@K": "NDCG@K",
    },
    "rectools": {
        "Precision@K": "Precision@K",
        "Precision(r_precision=True)@K": "Recall(norm=min)@K",
        "Recall@K": "Recall@K",
        "HitRate@K": "HR@K",
        "MAP@K": "AP@K",
        "MAP(divide_by_k=True)@K": "AP / K@K",
        "NDCG@K": "NDCG(ideal=k)@K",
        "NDCG(divide_by_achievable=True)@K": "NDCG@K",
        "MRR@K": "MRR@K",
        "PartialAUC@K": None,  # of the K best items that are not relevant
    },
    "cornac": {
        "NDCG": "NDCG",
        "NDCG@K": "NDCG@K",
        "NCRR": None,
        "NCRR@K": None,
        "HitRatio": "HR",
        "HitRatio@K": "HR@K",
        "Precision": "Precision",
        "Precision@K": "Precision@K",
        "Recall": "Recall",
        "Recall@K": "Recall@K",
        "F1": None,
        "F1@K": None,
        "MRR": "MRR",
        "AUC": "AUC",
        "MAP": "AP",
    },
    "implicit": {
        "precision@K": "pooled Recall(norm=min)@K",
        "map@K": "AP(norm=min)@K",
        "ndcg@K": "NDCG@K",
        "auc@K": "limited AUC@K",  # the AUC where K is the whole list
    },
    "torchmetrics": {
        "RetrievalMAP": "AP",
        "RetrievalMAP@K": "AP / hits@K",
        "RetrievalMRR": "MRR",
        "RetrievalMRR@K": "MRR@K",
        "RetrievalPrecision": "Precision",
        "RetrievalPrecision@K": "Precision@K",
        "RetrievalRecall": "Recall",
        "RetrievalRecall@K": "Recall@K",
        "RetrievalHitRate": "HR",
        "RetrievalHitRate@K": "HR@K",
        "RetrievalNormalizedDCG": "NDCG",
        "RetrievalNormalizedDCG@K": "NDCG@K",
        "graded RetrievalNormalizedDCG": "NDCG",
        "graded RetrievalNormalizedDCG@K": "NDCG@K",
        "RetrievalAUROC": "AUC",
        "RetrievalAUROC@K": None,  # of pairs in the first K places; 0 where there are none
        "RetrievalRPrecision": "RPrec",
    },
}


def same(library: str, theirs: str) -> str | None:
    """Return our name of a library's metric, its K in place."""
    name, _, k = theirs.partition("@")
    ours = SAME[library][f"{name}@K" if k else name]
    return ours and ours.replace("@K", f"@{k}")


def is_ours(name: str) -> bool:
    """Return whether a name of the table is one that `unsample` knows."""
    return name.partition("@")[0] in FORMULAS


def tolerance(library: str, theirs: str) -> float:
    """Return how far a library's number may be from the formula: some are rounded or single."""
    if "exp-log2" in theirs:
        return 1e-5
    return 1e-6 if library == "torchmetrics" or theirs == "gauc" else 1e-12
