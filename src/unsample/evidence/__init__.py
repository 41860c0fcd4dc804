"""`RankCounts`: how many targets were seen at each sampled rank, under each design.

It is the sufficient statistic: estimators need these counts and nothing else about the users. A
cell is (sampled, items, low..high): a design and a sampled rank, or a range of ranks where only
that is known (HR@5 and HR@10 of a paper tell how many ranks lie in 6..10). Counts can be added, so
parts can be built anywhere and merged.

Users may have several targets. Then a cell also holds the number of relevant items of its users,
and pair counts tell how often targets of one user are in two cells: metrics are per user, and
errors count users.
Cells keep the sum of the weights and of the squared weights, which is what errors need.
"""

from unsample.evidence._catalogues import group_catalogues, group_with_shares, size_ranges
from unsample.evidence._cells import DesignCells, refuse_joint
from unsample.evidence._columns import distinct_rows, in_parts
from unsample.evidence._counts import RankCounts, design_columns, pair_keys
from unsample.evidence._drawn import DrawnPart, freedom_of
from unsample.evidence._pairs import (
    PAIR_KEYS,
    RANK_STEPS,
    RANKS_ALONE,
    SIZE_STEPS,
    SMALL_CATALOGUE,
    ModelCounts,
    PairCounts,
    rank_bin,
    size_on_grid,
)
from unsample.evidence._pools import (
    NEGATIVES,
    PoolCounts,
    difference_part,
    numbered,
    shared_pools,
)
from unsample.evidence._scored import beats_of, compare_lists, sampled_ranks, shared_targets
from unsample.evidence._targets import Targets
from unsample.evidence._ties import (
    TIE_RULES,
    TieRule,
    check_ties,
    place_halves,
    rank_with_ties,
    tie_names,
    tie_place,
    tie_seed,
    tie_uniforms,
)
from unsample.evidence._users import (
    deviations_of_mean,
    distinct_users,
    number_users,
    rank_in_lists,
)

__all__ = [
    "NEGATIVES",
    "PAIR_KEYS",
    "RANKS_ALONE",
    "RANK_STEPS",
    "SIZE_STEPS",
    "SMALL_CATALOGUE",
    "TIE_RULES",
    "DesignCells",
    "DrawnPart",
    "ModelCounts",
    "PairCounts",
    "PoolCounts",
    "RankCounts",
    "Targets",
    "TieRule",
    "beats_of",
    "check_ties",
    "compare_lists",
    "design_columns",
    "deviations_of_mean",
    "difference_part",
    "distinct_rows",
    "distinct_users",
    "freedom_of",
    "group_catalogues",
    "group_with_shares",
    "in_parts",
    "number_users",
    "numbered",
    "pair_keys",
    "place_halves",
    "rank_bin",
    "rank_in_lists",
    "rank_with_ties",
    "refuse_joint",
    "sampled_ranks",
    "shared_pools",
    "shared_targets",
    "size_on_grid",
    "size_ranges",
    "tie_names",
    "tie_place",
    "tie_seed",
    "tie_uniforms",
]
