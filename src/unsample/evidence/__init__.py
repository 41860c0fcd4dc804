"""`RankCounts`: how many targets were seen at each sampled rank, under each design.

It is the evidence: everything downstream needs these counts and nothing else about the users. A
cell is (sampled, items, low..high): a design and a sampled rank, or a range of ranks where only
that is known (HR@5 and HR@10 of a paper tell how many ranks lie in 6..10). Where users have several
targets, a cell also holds the number of relevant items of its users and the place among them.

`PairCounts` say how many pairs of targets of one user fall into each pair of cells: of one model,
where its users have several targets, or of two models, which are paired by user. All of it adds up
over files, workers and days, and names no user.
"""

from unsample.evidence._catalogues import (
    SIZE_STEPS,
    SMALL_CATALOGUE,
    size_on_grid,
    size_ranges,
)
from unsample.evidence._cells import WHOLE, DesignCells, rank_hint, refuse_joint
from unsample.evidence._columns import distinct_rows
from unsample.evidence._counts import RankCounts
from unsample.evidence._lists import rank_in_lists
from unsample.evidence._means import on_pair_cells, variance_of_mean
from unsample.evidence._models import ModelCounts
from unsample.evidence._pairs import (
    PAIR_KEYS,
    RANK_STEPS,
    RANKS_ALONE,
    PairCounts,
    pair_keys,
    pairs_between,
    rank_bin,
)
from unsample.evidence._scored import sampled_ranks, shared_targets
from unsample.evidence._shared import NEGATIVES, ItemCounts, numbered
from unsample.evidence._targets import Targets
from unsample.evidence._ties import (
    TIE_RULES,
    TieRule,
    check_ties,
    rank_with_ties,
    tie_place,
    tie_seed,
)
from unsample.evidence._users import deviations_of_mean, number_users

__all__ = [
    "NEGATIVES",
    "PAIR_KEYS",
    "RANKS_ALONE",
    "RANK_STEPS",
    "SIZE_STEPS",
    "SMALL_CATALOGUE",
    "TIE_RULES",
    "WHOLE",
    "DesignCells",
    "ItemCounts",
    "ModelCounts",
    "PairCounts",
    "RankCounts",
    "Targets",
    "TieRule",
    "check_ties",
    "deviations_of_mean",
    "distinct_rows",
    "number_users",
    "numbered",
    "on_pair_cells",
    "pair_keys",
    "pairs_between",
    "rank_bin",
    "rank_hint",
    "rank_in_lists",
    "rank_with_ties",
    "refuse_joint",
    "sampled_ranks",
    "shared_targets",
    "size_on_grid",
    "size_ranges",
    "tie_place",
    "tie_seed",
    "variance_of_mean",
]
