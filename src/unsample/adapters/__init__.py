"""One file for each foreign library or engine; none is imported before it is asked for.

``unsample.adapters.spark`` evaluates models on a Spark cluster; ``unsample.adapters.torchmetrics``
is a metric for training loops. No foreign type leaks inward: what comes back are `RankCounts`.
"""
