"""The laboratory: data sets, recommenders, the paper reproduced, and bundled ranks.

>>> load_ranks("ml-1m", "ease", candidates="unseen").ranks.size
6040
"""

from unsample.lab import datasets, paper, recommenders
from unsample.lab._evaluate import evaluate
from unsample.lab.datasets import load_ranks

__all__ = ["datasets", "evaluate", "load_ranks", "paper", "recommenders"]
