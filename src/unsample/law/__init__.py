"""P(what was seen given the global rank R), on any grid of ranks, and distributions of R itself."""

from unsample.law._distribution import RankDistribution, bin_weights
from unsample.law._grid import RankGrid, mean_over
from unsample.law._law import Law, draw_sampled_ranks

__all__ = [
    "Law",
    "RankDistribution",
    "RankGrid",
    "bin_weights",
    "draw_sampled_ranks",
    "mean_over",
]
