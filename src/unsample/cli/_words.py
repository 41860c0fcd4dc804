"""Words of the library that help texts and completion show, kept here so that neither loads it.

`tests/test_cli_loading.py` compares them with the library's own.
"""

from __future__ import annotations

DEFAULT_METRICS = ("Recall@10", "NDCG@10", "AP@10")
DEFAULT_METHOD = "auto"
ROWS = ("ranks", "comparisons", "scores")
TIE_RULES = ("random", "realistic", "optimistic", "pessimistic")
CANDIDATES = ("unseen", "all")
NEGATIVES = ("own", "shared")
PRIOR_KINDS = ("recommendation", "repeats", "graph")
ERRORS = ("bootstrap", "delta")
CORRECTIONS = ("holm", "bonferroni", "none")
#: Endings of the names of plots.
PLOTS = ("png", "svg", "pdf")
