"""Words of the library that help texts and completion show, kept here so that neither loads it.

`tests/test_cli_loading.py` compares them with the library's own.
"""

from __future__ import annotations

DEFAULT_METRICS = ("Recall@10", "NDCG@10", "AP@10")
DEFAULT_METHOD = "auto"
ROWS = ("ranks", "comparisons", "scores", "lists")
DIALECTS = ("duckdb", "spark", "bigquery", "snowflake")
TIE_RULES = ("random", "realistic", "optimistic", "pessimistic")
CANDIDATES = ("unseen", "all")
NEGATIVES = ("own", "shared")
PRIOR_KINDS = ("recommendation", "repeats", "graph")
#: Endings of the names of plots.
PLOTS = ("png", "svg", "pdf")
#: Families of metrics, and all names of each.
METRICS = {
    "Recall": ("Recall",),
    "Recall(norm=min)": ("Recall(norm=min)",),
    "HR": ("HR", "Hit", "Hits", "HitRate", "Success"),
    "Precision": ("Precision", "Prec", "P"),
    "NDCG": ("NDCG",),
    "NDCG(gain=exp)": ("NDCG(gain=exp)",),
    "NDCG(ideal=k)": ("NDCG(ideal=k)",),
    "NDCG(discount=jk)": ("NDCG(discount=jk)",),
    "AP": ("AP", "MAP"),
    "AP(norm=min)": ("AP(norm=min)", "MAP(norm=min)"),
    "MRR": ("MRR", "RR"),
    "RPrec": ("RPrec", "R-Precision"),
    "AUC": ("AUC",),
    "MR": ("MR", "MeanRank"),
}
#: Those that look at all items and have no K.
WHOLE_METRICS = ("MR",)
METHODS = (
    "auto",
    "naive",
    "rank",
    "cls",
    "bv",
    "mn",
    "mle",
    "wmle",
    "mes",
    "beta",
    "recall_map",
)
