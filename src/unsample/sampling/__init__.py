"""P(what was seen given the global rank R), on any grid of ranks, and distributions of R itself."""

from unsample.law._grid import (
    RankDistribution,
    RankGrid,
    bin_starts,
    bin_weights,
    mean_over,
)
from unsample.law._law import LARGEST_URN, Law, as_better, draw_sampled_ranks
from unsample.law._sizes import few_sizes

__all__ = [
    "LARGEST_URN",
    "Law",
    "RankDistribution",
    "RankGrid",
    "as_better",
    "bin_starts",
    "bin_weights",
    "draw_sampled_ranks",
    "few_sizes",
    "mean_over",
]
