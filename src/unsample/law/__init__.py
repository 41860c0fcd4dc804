"""P(what was seen given the global rank R), on any grid of ranks, and distributions of R itself."""

from unsample.law._grid import RankDistribution, RankGrid, RankPoints, bin_weights, mean_over
from unsample.law._law import LARGEST_URN, Law, as_better, check_sampler, draw_sampled_ranks

__all__ = [
    "LARGEST_URN",
    "Law",
    "RankDistribution",
    "RankGrid",
    "RankPoints",
    "as_better",
    "bin_weights",
    "check_sampler",
    "draw_sampled_ranks",
    "mean_over",
]
