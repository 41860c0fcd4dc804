"""The laboratory: data sets, recommenders, the paper reproduced, and bundled ranks."""

from unsample.lab import datasets, experiment, recommenders
from unsample.lab.datasets import load_ranks

__all__ = ["datasets", "experiment", "load_ranks", "recommenders"]
