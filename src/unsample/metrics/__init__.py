"""Top-K metrics as values: of each user, then averaged over users.

A user has one relevant item or several, the targets, at some ranks R of the user's full list. The
user's metric is a sum over the targets: a weight w(R) for the rank, times the share of the target
in the user's metric. With m relevant items and the cutoff K:

======================  =================  ===================================
metric                  w(R) up to K       share of the j-th target of m
======================  =================  ===================================
Recall@K                1                  1/m
Recall(norm=min)@K      1                  1/min(m, K)
HR@K                    1                  1 for the first target, 0 for others
Precision@K             1/K                1
NDCG@K                  1/log2(R + 1)      1/(ideal DCG of min(m, K) targets)
NDCG(ideal=k)@K         1/log2(R + 1)      1/(ideal DCG of K targets)
NDCG(discount=jk)@K     1/log2(max(R, 2))  1/(ideal DCG of min(m, K) targets)
AP@K                    1/R                j/m
AP(norm=min)@K          1/R                j/min(m, K)
MRR@K                   1/R                1 for the first target, 0 for others
MR                      R                  1/m
======================  =================  ===================================

Recall and HR agree where users have one relevant item, and so do AP and MRR. With grades, NDCG
weighs each target by its gain: the grade itself, or 2^grade - 1 with ``NDCG(gain=exp)``.

>>> metric = parse("hr@10")
>>> metric, metric.weights([1, 10, 11], items=100).tolist()
(HR@10, [1.0, 1.0, 0.0])
>>> import numpy as np
>>> two_users = np.array([0, 0, 1])
>>> (Recall @ 10).of_users([1, 30, 4], two_users, items=100).tolist()
[0.5, 1.0]

A metric prints as it was asked for, whatever the case, and its name parses back to it.

>>> metric == Recall @ 10, metric.same_as(Recall @ 10)
(False, True)

A metric without ``@K`` is over all items. `custom` makes one of your own.
"""

from unsample.metrics._families import (
    AP,
    AUC,
    HR,
    MR,
    MRR,
    NDCG,
    REGISTRY,
    Precision,
    Recall,
    RPrec,
)
from unsample.metrics._metric import Metric, MetricFamily, custom, positions_by_user
from unsample.metrics._names import (
    DEFAULT_METRICS,
    DEFAULT_OF_ONE_TARGET,
    find_metric,
    parse,
    parse_all,
)

__all__ = [
    "AP",
    "AUC",
    "DEFAULT_METRICS",
    "DEFAULT_OF_ONE_TARGET",
    "HR",
    "MR",
    "MRR",
    "NDCG",
    "REGISTRY",
    "Metric",
    "MetricFamily",
    "Precision",
    "RPrec",
    "Recall",
    "custom",
    "find_metric",
    "parse",
    "parse_all",
    "positions_by_user",
]
