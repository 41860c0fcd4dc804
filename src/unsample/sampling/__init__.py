"""P(sampled rank r given global rank R), on any grid of ranks, and distributions of R itself."""

from unsample.sampling._catalogue_sizes import (
    few_sizes,
)
from unsample.sampling._rank_grid import (
    RankDistribution,
    RankGrid,
    bin_starts,
    bin_weights,
    mean_over,
)
from unsample.sampling._sampling_model import (
    LARGEST_URN,
    SamplingModel,
    as_better,
    draw_sampled_ranks,
    refuse_overdrawn,
)

__all__ = [
    "LARGEST_URN",
    "RankDistribution",
    "RankGrid",
    "SamplingModel",
    "as_better",
    "bin_starts",
    "bin_weights",
    "draw_sampled_ranks",
    "few_sizes",
    "mean_over",
    "refuse_overdrawn",
]
