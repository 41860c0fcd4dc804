"""The laboratory: data sets, recommenders, the paper reproduced, and bundled ranks."""

from unsample.lab import datasets, paper, recommenders
from unsample.lab.datasets import load_ranks

__all__ = ["datasets", "load_ranks", "paper", "recommenders"]
